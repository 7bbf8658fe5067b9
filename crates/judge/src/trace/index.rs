//! Builds the index of a trace, in one pass over its records.

use std::collections::BTreeMap;

use ::trace::record::{ConnectionRecord, ExchangeRecord, Group, RunRecord, ScriptRecord, StoreRecord};

use super::*;

pub(super) fn build(records: &[Record]) -> Trace<'_> {
    let mut index = Index {
        trace: Trace {
            records,
            exchanges: Vec::new(),
            reports: Vec::new(),
            writes: Vec::new(),
            deliveries: Vec::new(),
            snapshots: Vec::new(),
            bindings: Vec::new(),
            steps: Vec::new(),
            refused: Vec::new(),
            withheld: Vec::new(),
            rolled_back: None,
            errors: Vec::new(),
            restarts: Vec::new(),
            stop: None,
            ended: None,
            until: None,
        },
        attempt: Attempt::default(),
        attempts: 0,
        revision: None,
        gone: BTreeMap::new(),
    };
    records.iter().for_each(|record| index.take(record));
    let Index { mut trace, gone, .. } = index;
    for exchange in &mut trace.exchanges {
        exchange.disconnected = gone.get(&exchange.conn).copied();
    }
    trace
}

/// State of the current list attempt.
#[derive(Default)]
struct Attempt<'a> {
    began: Option<Moment>,
    pages: Vec<Page<'a>>,
}

/// The trace up to a record.
struct Index<'a> {
    trace: Trace<'a>,
    attempt: Attempt<'a>,
    /// Number of list attempts.
    attempts: u32,
    /// The store's revision.
    revision: Option<u64>,
    gone: BTreeMap<ConnId, (Moment, Side)>,
}

impl<'a> Index<'a> {
    fn take(&mut self, record: &'a Record) {
        let at = Moment::of(record);
        let trace = &mut self.trace;
        match record.what.group() {
            Group::Exchange(of) => self.exchange(at, of),
            Group::Connection(ConnectionRecord::Refused) => trace.refused.push(at),
            Group::Connection(ConnectionRecord::Disconnected { conn, by }) => {
                self.gone.entry(*conn).or_insert((at, *by));
            }
            Group::Store(StoreRecord::Wrote(write)) => {
                self.revision = write.object.resource_version.parse().ok().or(self.revision);
                trace.writes.push(Wrote { at, write });
            }
            Group::Store(StoreRecord::Restored { to }) => {
                self.revision = Some(*to);
                trace.rolled_back.get_or_insert(record.seq);
            }
            Group::Script(ScriptRecord::Step { step, how: _ }) => trace.steps.push((at, *step)),
            Group::Script(ScriptRecord::Bound {
                name,
                value,
                continue_token,
            }) => {
                trace.bindings.push(Binding {
                    at,
                    name,
                    value,
                    continue_token: continue_token.as_deref(),
                });
            }
            Group::Run(RunRecord::Reported(report)) => {
                let key = report.object().map(|object| object.key()).unwrap_or_default();
                trace.reports.push(Reported { at, report, key });
                if let Report::Error { .. } = report {
                    trace.errors.push(record.seq);
                }
            }
            Group::Run(RunRecord::ClientRestarted { .. }) => trace.restarts.push(at),
            Group::Run(RunRecord::StopRequested) => {
                trace.stop.get_or_insert(at);
            }
            Group::Run(RunRecord::RunEnded(end)) => {
                trace.ended.get_or_insert((at, end));
            }
            Group::Connection(ConnectionRecord::Connected { .. } | ConnectionRecord::Goaway { .. })
            | Group::Store(StoreRecord::Turned { .. })
            | Group::Script(
                ScriptRecord::Rule { .. } | ScriptRecord::UpstreamWrite { .. } | ScriptRecord::ScriptDone,
            )
            | Group::Run(RunRecord::ClientExited { .. } | RunRecord::LeftOpen { .. }) => {}
        }
    }

    fn exchange(&mut self, at: Moment, of: ExchangeRecord<'a>) {
        match of {
            ExchangeRecord::Request {
                stream,
                conn,
                verb,
                method,
                path,
                query,
                accept,
                user_agent,
                replica: _,
                violations,
            } => self.asked(Exchange {
                stream: *stream,
                conn: *conn,
                asked: at,
                verb: *verb,
                method,
                path,
                query,
                accept: accept.as_deref(),
                user_agent: user_agent.as_deref(),
                violations,
                revision: self.revision,
                attempt: self.attempts,
                page: 0,
                head: None,
                answer: None,
                frames: Vec::new(),
                end: None,
                disconnected: None,
            }),
            ExchangeRecord::Head {
                stream,
                status,
                retry_after,
                scripted,
            } => {
                if let Some(exchange) = self.find(*stream) {
                    exchange.head = Some(Head {
                        sent: at,
                        status: *status,
                        retry_after: retry_after.as_deref(),
                        scripted: *scripted,
                    });
                }
            }
            ExchangeRecord::Page {
                stream,
                resource_version,
                continue_token,
                remaining,
                items,
                scripted,
            } => {
                let page = Page {
                    sent: at,
                    resource_version,
                    continue_token,
                    remaining: *remaining,
                    items,
                    scripted: *scripted,
                };
                self.page(*stream, page);
            }
            ExchangeRecord::Body {
                stream,
                bytes,
                reason,
                message,
                continue_token,
            } => {
                let body = Body {
                    sent: at,
                    bytes: *bytes,
                    reason: reason.as_deref(),
                    message: message.as_deref(),
                    continue_token: continue_token.as_deref(),
                };
                let is_success =
                    |exchange: &Exchange<'_>| exchange.status().is_some_and(|status| status < 300);
                self.opaque(*stream, ResponseBody::Body(body), at, is_success);
            }
            ExchangeRecord::Torn { stream, sent, bytes } => {
                let torn = ResponseBody::Torn {
                    sent: at,
                    bytes_sent: *sent,
                    bytes: *bytes,
                };
                // Only the framing is missing: a client that parses the JSON has the complete list.
                self.opaque(*stream, torn, at, |_| sent >= bytes);
            }
            ExchangeRecord::Frame { stream, frame } => self.frame(*stream, frame, at),
            ExchangeRecord::End { stream, how, by } => {
                if let Some(exchange) = self.find(*stream) {
                    exchange.end.get_or_insert(End {
                        at,
                        how: *how,
                        by: *by,
                    });
                }
            }
            ExchangeRecord::Withheld { stream, object } => self.trace.withheld.push(Withheld {
                at,
                stream: *stream,
                object,
            }),
            ExchangeRecord::Sent { .. } | ExchangeRecord::Webhook { .. } => {}
        }
    }

    fn find(&mut self, stream: StreamId) -> Option<&mut Exchange<'a>> {
        let mut newest_first = self.trace.exchanges.iter_mut().rev();
        newest_first.find(|exchange| exchange.stream == stream)
    }

    fn asked(&mut self, mut exchange: Exchange<'a>) {
        if exchange.verb == Verb::List {
            if exchange.query("continue").is_none() {
                self.attempts += 1;
                self.attempt = Attempt {
                    began: Some(exchange.asked),
                    pages: Vec::new(),
                };
            }
            exchange.attempt = self.attempts;
            exchange.page = self.attempt.pages.len() as u32 + 1;
        }
        self.trace.exchanges.push(exchange);
    }

    fn page(&mut self, stream: StreamId, page: Page<'a>) {
        let at = page.sent;
        for object in page.items {
            self.trace.deliveries.push(Delivery {
                sent: at,
                stream,
                object,
                op: Op::Set,
                listed: true,
                whole: true,
                scripted: page.scripted,
                after_error: false,
            });
        }
        let attempts = self.attempts;
        let Some(exchange) = self.find(stream) else {
            return;
        };
        exchange.answer = Some(ResponseBody::Page(page));
        // A page of an earlier, abandoned attempt completes nothing.
        if exchange.attempt == attempts && exchange.status().is_none_or(|status| status == 200) {
            self.attempt.pages.push(page);
            if page.continue_token.is_empty() {
                let began = self.attempt.began.unwrap_or(at);
                let snapshot = listed(stream, began, at, &self.attempt.pages);
                self.trace.snapshots.push(snapshot);
            }
        }
    }

    /// Adds an answer whose items are not known; `is_list`: a client takes that to a LIST for a complete one.
    fn opaque(
        &mut self,
        stream: StreamId,
        answer: ResponseBody<'a>,
        at: Moment,
        is_list: impl FnOnce(&Exchange<'_>) -> bool,
    ) {
        let Some(exchange) = self.find(stream) else {
            return;
        };
        exchange.answer = Some(answer);
        if exchange.verb == Verb::List && is_list(exchange) {
            let began = exchange.asked;
            self.trace.snapshots.push(opaque(stream, began, at));
        }
    }

    fn frame(&mut self, stream: StreamId, frame: &'a Frame, at: Moment) {
        let Some(exchange) = self.find(stream) else {
            return;
        };
        // Clients do not read watch events from the body of an error response.
        if exchange.status().is_some_and(|status| status >= 300) {
            return;
        }
        let after_error = exchange.error_frame().is_some();
        exchange.frames.push(SentFrame { sent: at, frame });
        let ends_initial_events = exchange.verb == Verb::WatchList && !after_error && is_end_marker(frame);
        let snapshot = ends_initial_events.then(|| streamed(exchange, at));
        if let Some((object, op)) = state(frame) {
            self.trace.deliveries.push(Delivery {
                sent: at,
                stream,
                object,
                op,
                listed: false,
                whole: readable(frame),
                scripted: frame.scripted,
                after_error,
            });
        }
        self.trace.snapshots.extend(snapshot);
    }
}

/// Returns the object state in a frame.
fn state(frame: &Frame) -> Option<(&ObjectRef, Op)> {
    let op = match &frame.kind {
        FrameType::Added | FrameType::Modified => Op::Set,
        FrameType::Deleted => Op::Gone,
        FrameType::Bookmark { .. } | FrameType::Error { .. } | FrameType::Raw => return None,
    };
    frame.object.as_deref().map(|object| (object, op))
}

/// Returns true for the end marker: only the value `"true"` counts (KEP-3157; client-go `TestWatchList`).
fn is_end_marker(frame: &Frame) -> bool {
    match &frame.kind {
        FrameType::Bookmark { initial_events_end } => {
            initial_events_end.as_deref() == Some("true") && readable(frame)
        }
        FrameType::Added
        | FrameType::Modified
        | FrameType::Deleted
        | FrameType::Error { .. }
        | FrameType::Raw => false,
    }
}

fn listed<'a>(stream: StreamId, began: Moment, done: Moment, pages: &[Page<'a>]) -> Snapshot<'a> {
    let first = pages
        .first()
        .map(|page| page.resource_version)
        .unwrap_or_default();
    let lower = |version: &str| match (version.parse::<u128>(), first.parse::<u128>()) {
        (Ok(version), Ok(first)) => version < first,
        (Ok(_) | Err(_), Ok(_) | Err(_)) => false,
    };
    Snapshot {
        began,
        done,
        stream,
        resume: pages
            .iter()
            .map(|page| page.resource_version)
            .filter(|version| !version.is_empty() && (*version == first || lower(version)))
            .collect(),
        items: pages
            .iter()
            .flat_map(|page| page.items)
            .map(|object| (object, Op::Set))
            .collect(),
        consistent: pages.iter().all(|page| page.resource_version == first),
        scripted: pages.iter().any(|page| page.scripted),
        opaque: false,
    }
}

fn streamed<'a>(exchange: &Exchange<'a>, done: Moment) -> Snapshot<'a> {
    let marker = exchange.frames.last().and_then(|sent| sent.frame.object.as_ref());
    Snapshot {
        began: exchange.asked,
        done,
        stream: exchange.stream,
        resume: marker
            .map(|object| object.resource_version.as_str())
            .filter(|rv| !rv.is_empty())
            .into_iter()
            .collect(),
        items: exchange
            .frames
            .iter()
            .filter(|sent| readable(sent.frame))
            .filter_map(|sent| state(sent.frame))
            .collect(),
        consistent: true,
        scripted: exchange.frames.iter().any(|sent| sent.frame.scripted),
        opaque: exchange.frames.iter().any(|sent| !readable(sent.frame)),
    }
}

fn opaque<'a>(stream: StreamId, began: Moment, done: Moment) -> Snapshot<'a> {
    Snapshot {
        began,
        done,
        stream,
        resume: Vec::new(),
        items: Vec::new(),
        consistent: false,
        scripted: true,
        opaque: true,
    }
}

#[cfg(test)]
mod tests {
    use super::super::*;
    use crate::trace::sample::Sample;

    #[test]
    fn a_page_asked_for_again_keeps_its_number() {
        let mut s = Sample::new();
        s.list(&[("limit", "1")]).page("10", "t", &[("a", "5")]);
        s.list(&[("limit", "1"), ("continue", "t")])
            .status(503, "ServiceUnavailable");
        s.list(&[("limit", "1"), ("continue", "t")])
            .page("10", "", &[("b", "7")]);
        let records = s.records();
        let trace = Trace::new(&records);
        assert_eq!(
            trace
                .lists()
                .map(|list| (list.attempt, list.page))
                .collect::<Vec<_>>(),
            [(1, 1), (1, 2), (1, 2)]
        );
        assert_eq!(trace.snapshots.len(), 1);
        assert_eq!(trace.snapshots[0].items.len(), 2);
        assert_eq!(trace.snapshots[0].resume, ["10", "10"]);
    }

    #[test]
    fn a_saved_trace_reads_back_equal() {
        let mut s = Sample::new();
        s.wrote("a", "5");
        s.list(&[]).page("10", "", &[("a", "5")]);
        s.watch("10").added("b", "11").torn_added("c", "12", 17).rst();
        s.emit_init(&[("a", "5")]);
        s.emit_error("broken");
        let records = s.complete();
        let mut saved = Vec::new();
        write_ndjson(&records, &mut saved).unwrap();
        assert_eq!(read_ndjson(saved.as_slice()).unwrap(), records);
        let gap = saved
            .split_inclusive(|byte| *byte == b'\n')
            .skip(1)
            .flatten()
            .copied()
            .collect::<Vec<u8>>();
        assert!(matches!(
            read_ndjson(gap.as_slice()),
            Err(ReadError::Order { line: 1, seq: 1 })
        ));
    }
}
