//! What the lock of an edge guards: the server, its connections, and the responses that are laid out for them.
//!
//! It hands inputs to the server, and depends on neither tasks nor the runtime.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, SystemTime};

use http::HeaderValue;
use http::header::DATE;
use trace::record::{ConnId, StreamId};

use super::core::Core;
use super::delivery::Deliveries;
use super::panic_text;
use super::pending::{PendingResponse, lay_out};
use super::pieces::Pieces;
use super::upstream::{Errand, Forwarding};
use super::wire::Flow;
use crate::server::{ANSWER_BYTES_MAX, CallId, HookCall, Input, Output};
use crate::upstream::{Order, Outbound};

/// The server and its connections, behind the lock of an [`Edge`](super::Edge).
pub(super) struct State {
    /// `None` once its records were taken.
    pub(super) core: Option<Box<dyn Core>>,
    /// Why the server is unusable: it panicked, or it requests deadlines in the past.
    pub(super) broken: Option<String>,
    pub(super) finished: bool,
    pub(super) refused_until: Duration,
    pub(super) conns: u64,
    pub(super) conns_open: usize,
    pub(super) streams: u64,
    /// Open connections.
    pub(super) flows: BTreeMap<ConnId, Arc<Flow>>,
    /// Boxed, because a map moves its values on every insertion and removal.
    pub(super) answers: BTreeMap<StreamId, Box<PendingResponse>>,
    /// Bytes held for responses only.
    pub(super) held: usize,
    /// Idle connections to write to without waking their tasks.
    pub(super) deliveries: Deliveries,
    pub(super) dates: Dates,
    /// Time at which [`Edge::keep_time`] wakes next.
    pub(super) armed: Option<Duration>,
}

/// What an input led to beyond the responses, carried out once the lock is released.
#[derive(Default)]
pub(super) struct Outside {
    pub(super) calls: Vec<(CallId, HookCall)>,
    pub(super) errands: Vec<Errand>,
    /// Writes of the proxy itself.
    pub(super) writes: Vec<(u64, Box<Outbound>)>,
}

impl State {
    pub(super) fn handle(
        &mut self,
        now: Duration,
        input: Input,
        woken: &mut Vec<Waker>,
        outside: &mut Outside,
    ) {
        let (Some(core), None) = (&mut self.core, &self.broken) else {
            return;
        };
        let (answers, deliveries, held) = (&mut self.answers, &mut self.deliveries, &mut self.held);
        let (flows, dates) = (&self.flows, &mut self.dates);
        let during = Occasion::of(&input);
        let handled = catch_unwind(AssertUnwindSafe(|| {
            core.handle(now, input);
            while let Some(mut output) = core.poll_output() {
                match &mut output {
                    Output::Head { headers, .. } => {
                        headers.extend(core.wall_clock(now).map(|now| (DATE, dates.of(now))));
                    }
                    Output::Close { conn } => {
                        flows.get(conn).into_iter().for_each(|flow| flow.close());
                    }
                    Output::Call { id, call } => outside.calls.push((*id, call.clone())),
                    Output::Upstream { .. } | Output::UpstreamWrite { .. } => {}
                    Output::Data { .. }
                    | Output::FlushBarrier { .. }
                    | Output::Goaway { .. }
                    | Output::End { .. } => {}
                }
                if let Output::Upstream { stream, order } = output {
                    outside.errands.extend(ordered(answers, stream, order));
                    continue;
                }
                if let Output::UpstreamWrite { write, request } = output {
                    outside.writes.push((write, request));
                    continue;
                }
                if let Some(idle) = lay_out(answers, held, output, woken) {
                    deliveries.push(idle);
                }
            }
            (core.finished().is_some(), core.refused_until())
        }));
        match handled {
            Ok((finished, refused_until)) => {
                self.finished = finished;
                self.refused_until = refused_until;
                self.cut_readers();
            }
            Err(panic) => self.broke(&during.words(), &*panic),
        }
    }

    /// Marks the server as unusable after a panic.
    pub(super) fn broke(&mut self, during: &str, panic: &(dyn std::any::Any + Send)) {
        let text = panic_text(panic);
        self.broken
            .get_or_insert_with(|| format!("the server panicked while {during}: {text}"));
        self.finished = true;
    }

    /// Aborts the responses with the most buffered bytes until the sum is within the limit: their clients do not read.
    fn cut_readers(&mut self) {
        while self.held > ANSWER_BYTES_MAX {
            let most = self
                .answers
                .values_mut()
                .max_by_key(|answer| answer.pieces.held());
            let Some(answer) = most.filter(|answer| answer.pieces.held() > 0) else {
                return;
            };
            self.held -= answer.pieces.held();
            answer.pieces = Pieces::default();
            answer.flow.cut();
        }
    }
}

/// Carries out an order for the upstream; returns the request to forward, if it is one.
fn ordered(
    answers: &mut BTreeMap<StreamId, Box<PendingResponse>>,
    stream: StreamId,
    order: Order,
) -> Option<Errand> {
    // The client may have disconnected meanwhile.
    let answer = answers.get_mut(&stream)?;
    match order {
        Order::Send(request) => {
            let (forwarding, errand) = Forwarding::of(stream, request);
            answer.forwarding = Some(forwarding);
            Some(errand)
        }
        Order::Pull => {
            answer.forwarding.iter().for_each(Forwarding::pull);
            None
        }
    }
}

/// What the server was doing when it panicked. Made for every input, so that it formats nothing.
enum Occasion {
    /// Method and path of a request, without its content.
    Request(http::Method, String),
    Other(&'static str),
}

impl Occasion {
    fn of(input: &Input) -> Self {
        Self::Other(match input {
            Input::Request { request, .. } => {
                return Self::Request(request.method.clone(), request.path.clone());
            }
            Input::Connected { .. } | Input::Disconnected { .. } | Input::Authenticated { .. } => {
                "opening or closing a connection"
            }
            Input::Flushed(_) | Input::Abandoned(_) | Input::CutOff(_) => "flushing a response",
            Input::Report(_) | Input::StopRequested | Input::LeftOpen(_) => "handling a report of the client",
            Input::ClientExited { .. } | Input::ClientRestarted(_) => {
                "handling an exit or restart of the client"
            }
            Input::Control(_) => "handling a control command",
            Input::HookAnswered { .. } => "handling the response of a webhook",
            Input::Upstream { .. } | Input::UpstreamWritten { .. } => "handling a response of the upstream",
            Input::Tick => "advancing time",
        })
    }

    fn words(&self) -> String {
        match self {
            Self::Request(method, path) => format!("handling {method} {}", path.escape_debug()),
            Self::Other(words) => (*words).to_owned(),
        }
    }
}

/// Formats the header `Date`, which has no fraction of a second: once a second.
#[derive(Debug, Default)]
pub(super) struct Dates {
    last: Option<(u64, HeaderValue)>,
}

impl Dates {
    /// Returns the value for a time since 1970.
    fn of(&mut self, wall_clock: Duration) -> HeaderValue {
        // The format ends with the year 9999.
        let seconds = wall_clock.as_secs().min(253_402_300_799);
        let known = self.last.take().filter(|(of, _)| *of == seconds);
        let (_, date) = self
            .last
            .insert(known.unwrap_or_else(|| (seconds, formatted(seconds))));
        date.clone()
    }
}

fn formatted(seconds: u64) -> HeaderValue {
    let date = httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
    HeaderValue::try_from(date).expect("a date is ASCII")
}
