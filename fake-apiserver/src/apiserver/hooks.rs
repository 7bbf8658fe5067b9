//! Requests that wait for webhooks: their calls go out, and each outcome leads to the next attempt. What is asked, the model
//! decides.

use std::sync::Arc;
use std::time::Duration;

use apimachinery::status::Status;
use builtin_kinds::webhook::{self, Outcome};
use trace::record::{StreamId, What};

use super::memory::REVIEW_BYTES_MAX;
use super::output::Output;
use super::{ApiServer, Source};
use crate::api::{User, WriteRequest};
use crate::model::conversions::{Batch, Need};
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
    pub(super) user: Arc<User>,
    /// Decides generated names: the same in all attempts.
    pub(super) seed: u64,
    pub(super) replies: Replies,
}

impl Waiting {
    pub(super) fn new(request: WriteRequest, user: Arc<User>, seed: u64) -> Box<Self> {
        Box::new(Self {
            request: Some(request),
            user,
            seed,
            replies: Replies::default(),
        })
    }
}

/// A call without an outcome.
#[derive(Debug)]
pub(super) struct Calling {
    stream: StreamId,
    purpose: Purpose,
    call: HookCall,
    since: Duration,
}

/// What an outcome is for.
#[derive(Debug)]
enum Purpose {
    /// The next attempt at a write.
    Reply { key: String },
    /// Objects in another version.
    Conversion(Batch),
}

impl ApiServer {
    /// Begins the calls that the last attempt waits for.
    pub(super) fn call_hooks(&mut self, now: Duration, stream: StreamId, mut waiting: Box<Waiting>) {
        let calls = waiting.replies.take_wanted();
        let calls = calls
            .into_iter()
            .map(|(key, call)| (Purpose::Reply { key }, call));
        self.begin_calls(now, stream, Some(Source::Hooked(waiting)), calls.collect());
    }

    /// Begins the conversions that the last answer needs, which goes on from `then`; or answers that they failed.
    pub(super) fn convert(&mut self, now: Duration, stream: StreamId, then: Source) {
        match self.model.take_need() {
            Need::Failed(status) => self.answer(stream, status.into()),
            Need::Nothing => {
                let status = Status::internal_error("a conversion was needed, and is not any more");
                self.answer(stream, status.into());
            }
            Need::Calls(calls) => self.begin_conversions(now, stream, Some(then), calls),
        }
    }

    /// Begins conversions; `then`: `None` for a watch, which goes on.
    pub(super) fn begin_conversions(
        &mut self,
        now: Duration,
        stream: StreamId,
        then: Option<Source>,
        calls: Vec<(Batch, HookCall)>,
    ) {
        let calls = calls.into_iter();
        let calls = calls.map(|(batch, call)| (Purpose::Conversion(batch), call));
        self.begin_calls(now, stream, then, calls.collect());
    }

    fn begin_calls(
        &mut self,
        now: Duration,
        stream: StreamId,
        then: Option<Source>,
        calls: Vec<(Purpose, HookCall)>,
    ) {
        let Some(open) = self.open.get_mut(&stream) else {
            return;
        };
        open.source = then.unwrap_or_else(|| std::mem::replace(&mut open.source, Source::Decided));
        open.calls += calls.len();
        for (purpose, call) in calls {
            self.calls += 1;
            let id = CallId(self.calls);
            let under_way = self.calling.values().map(|calling| calling.call.body.len());
            let nowhere = match under_way.sum::<usize>() + call.body.len() {
                0..=REVIEW_BYTES_MAX => call.address.clone().err(),
                _ => Some("too many reviews are under way".to_owned()),
            };
            let calling = Calling {
                stream,
                purpose,
                call: call.clone(),
                since: now,
            };
            self.calling.insert(id, calling);
            match nowhere {
                Some(why) => self.hook_answered(now, id, Outcome::Failed(why)),
                None => self.outputs.push_back(Output::Call { id, call }),
            }
        }
    }

    /// A call has an outcome. The last one leads to the next attempt. Outcomes of a request that is gone have no effect.
    pub(crate) fn hook_answered(&mut self, now: Duration, id: CallId, outcome: Outcome) {
        let Some(calling) = self.calling.remove(&id) else {
            return;
        };
        let Calling {
            stream,
            purpose,
            call,
            since,
        } = calling;
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
        let open = self.open.get_mut(&stream);
        match purpose {
            Purpose::Conversion(batch) => self.model.add_converted(batch, &call.url, &outcome),
            Purpose::Reply { key } => {
                if let Some(Source::Hooked(waiting)) = open.map(|open| &mut open.source) {
                    waiting.replies.add(key, call, outcome);
                }
            }
        }
        let Some(open) = self.open.get_mut(&stream) else {
            return;
        };
        open.calls = open.calls.saturating_sub(1);
        if open.calls > 0 {
            return;
        }
        self.touched.push(stream);
        if let Source::Hooked(_) = open.source
            && let Source::Hooked(waiting) = std::mem::replace(&mut open.source, Source::Decided)
        {
            self.attempt_write(now, stream, waiting);
        } else {
            self.decide(now, stream);
        }
    }
}
