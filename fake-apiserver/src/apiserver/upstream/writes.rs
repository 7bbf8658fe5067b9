//! Writes of rules to the upstream: one after the other, in the order of the rules, each with its outcome in the trace.
//!
//! It knows neither requests nor responses: those are in `crate::upstream::write`.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use scenario::StoreAction;
use serde_json::Value;
use trace::record::What;

use crate::apiserver::ApiServer;
use crate::apiserver::output::Output;
use crate::upstream::Failure;
use crate::upstream::write::Write;

/// Most writes that wait: a rule may write at every request.
const WAITING_MAX: usize = 1_000;

/// Writes that have no outcome yet.
#[derive(Debug, Default)]
pub(super) struct Writes {
    /// Number of the newest.
    made: u64,
    sent: Option<(u64, Write)>,
    waiting: VecDeque<(u64, Write)>,
}

impl ApiServer {
    /// Whether rules may write to the upstream.
    pub(crate) fn may_write_upstream(&self) -> bool {
        self.upstream
            .as_ref()
            .is_some_and(|upstream| upstream.settings.may_write)
    }

    /// Number of the newest write to the upstream.
    pub(crate) fn upstream_writes(&self) -> u64 {
        self.upstream.as_ref().map_or(0, |upstream| upstream.writes.made)
    }

    /// Writes what an action writes to the upstream, once the writes before it have an outcome.
    pub(crate) fn write_upstream(&mut self, now: Duration, action: &StoreAction) {
        for write in Write::all(action, self.model.catalog()) {
            let Some(upstream) = &mut self.upstream else {
                return;
            };
            upstream.writes.made += 1;
            let number = upstream.writes.made;
            if upstream.writes.waiting.len() >= WAITING_MAX {
                let why = format!("{WAITING_MAX} writes wait for the upstream already");
                self.record_upstream_write(now, number, &write, Err(why));
            } else {
                upstream.writes.waiting.push_back((number, write));
            }
        }
        self.send_next_write(now);
    }

    /// A write has an outcome.
    pub(crate) fn upstream_written(
        &mut self,
        now: Duration,
        number: u64,
        outcome: Result<(u16, Bytes), Failure>,
    ) {
        let sent = self.upstream.as_mut().map(|upstream| &mut upstream.writes.sent);
        let Some((_, write)) = sent.and_then(|sent| sent.take_if(|(sent, _)| *sent == number)) else {
            return;
        };
        let written = match outcome {
            Ok((status, body)) => write.read(status, &body),
            Err(failure) => Err(failure.to_string()),
        };
        let done = written.map(|written| {
            if let Some(definition) = &written.definition {
                self.model.know_definition(definition);
            }
            if let Some(wrote) = written.wrote {
                if let Some(upstream) = &mut self.upstream {
                    upstream.saw(&wrote.object.resource_version);
                }
                self.log.push(now, What::Wrote(wrote));
            }
            written.how
        });
        self.record_upstream_write(now, number, &write, done);
        self.send_next_write(now);
    }

    /// Reads the kinds of a CustomResourceDefinition of the upstream, so that rules can name them.
    pub(crate) fn know_definition(&mut self, definition: &Value) {
        self.model.know_definition(definition);
    }

    fn send_next_write(&mut self, now: Duration) {
        while let Some(upstream) = &mut self.upstream
            && upstream.writes.sent.is_none()
            && let Some((number, write)) = upstream.writes.waiting.pop_front()
        {
            match write.request.clone() {
                Ok(request) => {
                    upstream.writes.sent = Some((number, write));
                    self.outputs.push_back(Output::UpstreamWrite {
                        write: number,
                        request,
                    });
                }
                Err(why) => self.record_upstream_write(now, number, &write, Err(why)),
            }
        }
    }

    fn record_upstream_write(
        &mut self,
        now: Duration,
        number: u64,
        write: &Write,
        done: Result<&'static str, String>,
    ) {
        let (how, failure) = match done {
            Ok(how) => (how, None),
            Err(why) => (write.aim(), Some(why)),
        };
        let what = What::UpstreamWrite {
            write: number,
            object: write.object(),
            how: how.to_owned(),
            failure,
        };
        self.log.push(now, what);
    }
}
