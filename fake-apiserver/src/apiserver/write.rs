//! Writes of clients.

use std::sync::Arc;
use std::time::Duration;

use trace::record::StreamId;

use super::hooks::Waiting;
use super::{ApiServer, Source};
use crate::api::access::{Authorizer, Requester, User};
use crate::api::{self, Answer, WriteRequest};
use crate::model::{Model, Undone, Written};

impl ApiServer {
    /// Carries out a write of `user` and queues its response, or begins the calls of webhooks that it waits for; waiting reads
    /// and watches are pumped in the same turn.
    pub(super) fn decide_write(
        &mut self,
        now: Duration,
        stream: StreamId,
        request: WriteRequest,
        user: Arc<User>,
    ) {
        let seed = self.draw();
        self.attempt_write(now, stream, Waiting::new(request, user, seed));
    }

    /// Makes an attempt at a write.
    pub(super) fn attempt_write(&mut self, now: Duration, stream: StreamId, mut waiting: Box<Waiting>) {
        let Some(request) = waiting.request.take() else {
            return;
        };
        let kind = request.collection.kind.clone();
        waiting.request = (self.model.has_hooks() || Model::may_convert(&kind)).then(|| request.clone());
        let authorizer = self.limits(&waiting.user).unwrap_or(Authorizer::AlwaysAllow);
        let Waiting {
            user, replies, seed, ..
        } = &mut *waiting;
        let requester = Requester {
            user,
            authorizer: &authorizer,
        };
        // A scenario with a small window means the events of its steps: those of the client's own writes come on top.
        let is_of_target = self
            .followed
            .as_ref()
            .is_some_and(|followed| followed.is_of_target(&request.collection));
        if is_of_target {
            self.model.count_events(&kind, false);
        }
        let done = self.model.write_as(now, request, *seed, Some(requester), replies);
        if is_of_target {
            self.model.count_events(&kind, true);
        }
        match done {
            Ok(done) => {
                self.record_writes(now, Some(stream), done.written);
                self.compact_if_due(now);
                self.touch_all();
                let fits = self.fits(stream, |asked| api::object_fits(asked, &kind));
                let mut answer = match fits {
                    Ok(()) => Answer::json(done.status, done.body),
                    Err(status) => status.into(),
                };
                answer.headers.extend(api::warnings(&done.warnings));
                self.answer(stream, answer);
            }
            Err(Undone::Refused(refused)) => {
                let mut answer = Answer::from(refused.status);
                answer.headers.extend(api::warnings(&refused.warnings));
                self.answer(stream, answer);
            }
            Err(Undone::Waits) => self.call_hooks(now, stream, waiting),
            Err(Undone::Converts) => self.convert(now, stream, Source::Hooked(waiting)),
        }
    }

    /// Records writes. `by`: the request that made them.
    pub(super) fn record_writes(&mut self, now: Duration, by: Option<StreamId>, written: Vec<Written>) {
        for written in written {
            let kind = written.stored.kind.clone();
            self.wrote(now, by, &kind.group, &kind.plural, Ok(written));
        }
    }
}
