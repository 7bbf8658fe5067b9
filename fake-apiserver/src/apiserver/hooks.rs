//! Requests that wait for webhooks: their calls go out, and each outcome leads to the next attempt. What is asked, the model
//! decides.

use std::time::Duration;

use builtin_kinds::webhook::{self, Outcome};
use trace::record::{StreamId, What};

use super::output::Output;
use super::{ApiServer, Source};
use crate::api::{User, WriteRequest};
use crate::model::{HookCall, Replies};

/// A call of a webhook, numbered from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

/// A write between two attempts.
#[derive(Debug)]
pub(super) struct Waiting {
    /// Kept only where there are webhooks to wait for.
    pub(super) request: Option<WriteRequest>,
    /// Whose write it is.
    pub(super) user: User,
    /// Decides generated names: the same in all attempts.
    pub(super) seed: u64,
    pub(super) replies: Replies,
    /// Calls without an outcome.
    left: usize,
}

impl Waiting {
    pub(super) fn new(request: WriteRequest, user: User, seed: u64) -> Box<Self> {
        Box::new(Self {
            request: Some(request),
            user,
            seed,
            replies: Replies::default(),
            left: 0,
        })
    }
}

/// A call without an outcome.
#[derive(Debug)]
pub(super) struct Calling {
    stream: StreamId,
    key: String,
    call: HookCall,
    since: Duration,
}

impl ApiServer {
    /// Begins the calls that the last attempt waits for.
    pub(super) fn call_hooks(&mut self, now: Duration, stream: StreamId, mut waiting: Box<Waiting>) {
        let calls = waiting.replies.take_wanted();
        waiting.left = calls.len();
        if let Some(open) = self.open.get_mut(&stream) {
            open.source = Source::Hooked(waiting);
        }
        for (key, call) in calls {
            self.calls += 1;
            let id = CallId(self.calls);
            let nowhere = call.address.clone().err();
            self.calling.insert(
                id,
                Calling {
                    stream,
                    key,
                    call: call.clone(),
                    since: now,
                },
            );
            match nowhere {
                Some(why) => self.hook_answered(now, id, Outcome::Failed(why)),
                None => self.outputs.push_back(Output::Call { id, call }),
            }
        }
    }

    /// A call has an outcome. The last one leads to the next attempt. Outcomes of a request that is gone have no effect.
    pub(crate) fn hook_answered(&mut self, now: Duration, id: CallId, outcome: Outcome) {
        let Some(Calling {
            stream,
            key,
            call,
            since,
        }) = self.calling.remove(&id)
        else {
            return;
        };
        self.log.push(
            now,
            What::Webhook {
                stream,
                webhook: call.webhook.clone(),
                url: call.url.clone(),
                verdict: webhook::gist(&outcome),
                took: now.saturating_sub(since),
            },
        );
        let Some(open) = self.open.get_mut(&stream) else {
            return;
        };
        let Source::Hooked(waiting) = &mut open.source else {
            return;
        };
        waiting.replies.add(key, call, outcome);
        waiting.left -= 1;
        if waiting.left > 0 {
            return;
        }
        if let Source::Hooked(waiting) = std::mem::replace(&mut open.source, Source::Decided) {
            self.attempt_write(now, stream, waiting);
            self.touched.insert(stream);
        }
    }
}
