//! Writes of clients.

use std::time::Duration;

use trace::record::StreamId;

use super::ApiServer;
use crate::api::access::{Asker, Authorizer, User};
use crate::api::{self, Answer, WriteRequest};
use crate::model::Written;

impl ApiServer {
    /// Carries out a write of `user` and queues its response; waiting reads and watches are pumped in the same turn.
    pub(super) fn decide_write(
        &mut self,
        now: Duration,
        stream: StreamId,
        request: WriteRequest,
        user: &User,
    ) {
        let kind = request.collection.kind;
        let seed = self.draw();
        let authorizer = self.limits(user).unwrap_or(Authorizer::AlwaysAllow);
        let asker = Asker {
            user,
            authorizer: &authorizer,
        };
        match self.model.write_as(now, request, seed, Some(asker)) {
            Ok(done) => {
                self.record_writes(now, done.written);
                self.compact_if_due(now);
                self.touch_all();
                let fits = self.fits(stream, |asked| api::object_fits(asked, kind));
                let mut answer = match fits {
                    Ok(()) => Answer::json(done.status, done.body),
                    Err(status) => status.into(),
                };
                answer.headers.extend(api::warnings(&done.warnings));
                self.answer(stream, answer);
            }
            Err(refused) => {
                let mut answer = Answer::from(refused.status);
                answer.headers.extend(api::warnings(&refused.warnings));
                self.answer(stream, answer);
            }
        }
    }

    pub(super) fn record_writes(&mut self, now: Duration, written: Vec<Written>) {
        for written in written {
            let kind = written.stored.kind;
            self.wrote(now, kind.group, kind.plural, Ok(written));
        }
    }
}
