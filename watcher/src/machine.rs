//! Sans-IO list/watch state machine: decides which request to send, which event to emit and when to wait. No I/O,
//! clock, HTTP, JSON or kube types.
//!
//! ```text
//!   Empty --list-watch-----> Listing{continue} --last page--> Listed{rv} --opened--> Watching{rv}
//!      \                                                         ^                      |   ^
//!       \                                                        +---eof, timeout, cut---+   |
//!        `--streaming list--> InitialWatch -------------------initial-events-end------------'
//!
//!   Expired (410 by code or reason, in any answer), too large RV, n failed starts on one RV -> Empty
//!   ten minutes without event or bookmark for the watched RV -> Probing -> Watching, or Empty if the server went back
//!   ten more, and the probe was ahead -> Empty
//!   eof or error inside InitialWatch -> Empty; rejected or never marked -> list-watch
//!   any error, and a watch that ended immediately -> BackingOff{until, then}
//! ```
//!
//! In words: a snapshot is read (`State::Listing` or `State::InitialWatch`) and emitted as `Init`, `InitApply`…,
//! `InitDone`; a watch is requested at its resourceVersion (`State::Listed`) and followed (`State::Watching`). If a
//! watch ends and its resourceVersion is not in doubt, the next one resumes from the last complete event; otherwise
//! the machine relists. The delay grows with each failure, regardless of successes in between, until watches have
//! worked for two minutes: neither `Init` nor a successful LIST resets it, otherwise a loop of LIST and 410 would
//! never slow down.
//!
//! There are two kinds of time. *Listened* time stops while the consumer is busy ([`Input::Unattended`]): bytes may
//! be waiting unread, so the server counts as silent only while the stream was polled. *Elapsed* time always
//! advances. Timeouts that end a request or trigger a probe use listened time; delays between requests use elapsed
//! time.
//!
//! | timer | starts | time | reset by | stopped |
//! |---|---|---|---|---|
//! | `list_timeout` of a page or probe | request | listened | any bytes | after the head of a rejection |
//! | `idle_timeout` of a watch or streaming list | request | listened | any bytes | after the head of a rejection |
//! | end of a watch: `timeoutSeconds` plus 15 s, or `idle_timeout` | response head | listened | an event or newer bookmark | |
//! | `initial_events_timeout` | response head | listened | an initial event; not a bookmark | |
//! | end marker: `timeoutSeconds` plus 15 s | response head | listened | nothing | |
//! | `staleness_probe_after` | a snapshot, a probe, or the end of a watch that advanced | listened | the same | |
//! | delay: backoff, Retry-After | failure read | elapsed | nothing | |
//! | `backoff.reset_after` | a watch opens | elapsed | a failure | |
//! | minimum watch lifetime: 1 s | a watch opens | elapsed | | |
//!
//! For the last two, time in which the consumer was busy counts as healthy: no failure was observed, and a busy
//! consumer slows requests down anyway.
//!
//! | counter | counts | leads to | reset by |
//! |---|---|---|---|
//! | `failures` of a page, 3 | failures of one page except expired tokens | relist | the page, a relist |
//! | `failures` of a form, 3 | failed requests for a snapshot (connections that fail before a streaming list is answered: 10) | the next form | a snapshot, the next form |
//! | `lost_pages`, 2 | lists ended by a token that was rejected, or by a page that stayed too new for the watch cache | a list without pages | a snapshot |
//! | `failed_pages`, 3 | lists ended by `failures` of a page | a list without pages | a snapshot |
//! | `unpaged_failures`, 3 | failed lists without pages | a list in pages | a snapshot |
//! | `empty_pages`, 1000 | consecutive pages without items | a list without pages | an item, a relist |
//! | `failed_resumes`, 3 | watches at one version that failed or ended immediately | relist | a snapshot, an event or bookmark, a watch that lasted |
//! | `server_errors`, 10 | watch starts at one version that returned 5xx | relist | a snapshot, an opened watch |
//! | `unmarked_lists`, 3 | streaming lists that ended before their marker | LIST before streaming lists from now on | a snapshot |
//! | `rv_regressions`, 3 | watches that went back in time | resourceVersions treated as opaque text | `backoff.reset_after` |
//!
//! Slow responses are not counted: a request answered before its deadline is not a failure.
//!
//! No state lasts as long as a failure does if another request would be answered. A snapshot can be requested in several
//! forms: by streaming list or LIST (if the configuration has streaming lists), at a version or not
//! ([`ListSemantic::Any`](crate::ListSemantic::Any)), in pages or not. What follows a failure that repeats:
//!
//! | state | failure | next request | after |
//! |---|---|---|---|
//! | InitialWatch | 400, 403, 405, 422 | LIST, from now on | 1 |
//! | | 410 or too large, at a version | a streaming list without one | 1 |
//! | | 410 or too large, without one: the watch cache lags | LIST | 1 |
//! | | 429, 503 | LIST (one or two are no reason: WLIST-11) | 3 |
//! | | any other response; an ERROR event | LIST | 1 |
//! | | connection refused or reset, before a response | LIST | 10 |
//! | | eof, reset, garbage, silence | LIST, before streaming lists from now on | 3 |
//! | | no marker in full time | the same | 1 |
//! | Listing, page 1 | 410 or too large; 400 or 422; an older list | a list without the version | 1 |
//! | | anything, at a version or not | a streaming list; a list without the version, or with it again | 3 |
//! | Listing, later page | 410 and other 4xx; too large, after 3 retries of the page | a list without pages | 2 lists |
//! | | anything else, after 3 retries of the page | a list without pages | 3 lists |
//! | Listing, without pages | anything | a list in pages | 3 |
//! | Listed | 410, too large | LIST | 1 |
//! | | 4xx, no watch stream, silence | LIST | 3 |
//! | | 5xx | LIST | 10 |
//! | | 429, connection refused or reset | a probe, and LIST if the server is ahead | 10 min |
//! | Watching | 410, too large, unreadable or older events | LIST | 1 |
//! | | garbage, ERROR events, ends at once | LIST | 3 |
//! | | ERROR 429 | as 429 in Listed | 10 min |
//! | | no event and no newer bookmark, whatever else is sent | a probe; LIST if the server is ahead | 10 min; 20 min |
//! | Probing | anything | the watch, then a probe again | 1 |
//!
//! Two states remain as long as the failure: a list whose objects do not decode (every form has them), and, after part of a
//! list at an unknown version was emitted, a list without a version (any other may be older).

mod clock;
mod form;
mod initial_watch;
mod input;
mod listing;
mod memory;
mod output;
mod probing;
mod watching;

use std::collections::VecDeque;
use std::time::Duration;

use self::clock::{Clock, Listened};
use self::initial_watch::InitialWatch;
pub use self::input::{Change, Input, PageMeta, RequestId, ResponsePart};
use self::listing::Listing;
use self::memory::Memory;
pub use self::output::Output;
use self::probing::{Doubt, Probing};
use self::watching::{Listed, WatchTimes, Watching};
use crate::backoff::DefaultBackoff;
use crate::config::Config;
use crate::error::Error;
use crate::event::Event;
use crate::object::Identity;
use crate::request::Request;
use crate::version::ResourceVersion;

/// The list/watch state machine without its I/O driver; see the diagram in the module documentation.
///
/// To drive it: pass each input to [`handle`](Self::handle), drain [`poll_output`](Self::poll_output), then wait for
/// the next input or for [`poll_timeout`](Self::poll_timeout), at which the input is [`Input::Timeout`]. `now` is the
/// time since an arbitrary fixed moment and never decreases.
#[derive(Debug)]
pub struct Machine<O> {
    config: Config,
    state: State<O>,
    clock: Clock,
    memory: Memory,
    backoff: DefaultBackoff,
    identify: Identify<O>,
    random: fastrand::Rng,
    outputs: VecDeque<Output<O>>,
    last_request: u64,
}

/// Returns the identity of an object: names, uid and resourceVersion.
pub type Identify<O> = for<'a> fn(&'a O) -> Identity<'a>;

/// The states of the diagram.
#[derive(Debug)]
enum State<O> {
    /// No resourceVersion to watch from. Left immediately.
    Empty,
    /// A LIST is in progress, page by page.
    Listing(Box<Listing>),
    /// A streaming list is in progress.
    InitialWatch(Box<InitialWatch<O>>),
    /// The snapshot is emitted; a watch at its resourceVersion was requested.
    Listed(Listed),
    /// The watch is open.
    Watching(Watching),
    /// A LIST with limit=1 checks that the server has not gone back in time.
    Probing(Box<Probing<O>>),
    /// No request is sent until then.
    BackingOff { until: Duration, then: Then },
}

/// What to do after a delay.
#[derive(Debug)]
enum Then {
    /// Relist.
    Empty,
    /// Request the same page again.
    Listing(Box<Listing>),
    /// Watch from this resourceVersion.
    Listed(ResourceVersion),
    /// Check that the server is still at this resourceVersion, and if so watch from there.
    Probing(ResourceVersion, Doubt),
}

/// Length of a delay.
#[derive(Debug, Clone, Copy)]
enum Pause {
    /// None.
    Skip,
    /// The initial delay, without increasing later ones: for ends that are not failures but affect many watchers at
    /// once.
    First,
    /// A failure: longer than the last delay, and not shorter than `retry_after`.
    Step { retry_after: Option<Duration> },
}

impl Pause {
    const STEP: Self = Self::Step { retry_after: None };
}

impl<O> Machine<O> {
    /// Creates a machine in `State::Empty`, due immediately. `seed` overrides [`Config::seed`]; `identify` is the
    /// machine's only access to objects.
    pub fn new(config: Config, seed: u64, identify: Identify<O>) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        Self {
            backoff: DefaultBackoff::new(config.backoff, random.u64(..)),
            identify,
            config,
            state: State::Empty,
            clock: Clock::default(),
            memory: Memory::default(),
            random,
            outputs: VecDeque::new(),
            last_request: 0,
        }
    }

    /// Processes an input.
    pub fn handle(&mut self, now: Duration, input: Input<'_, O>) {
        match input {
            Input::Timeout => self.timed_out(now),
            Input::Unattended(time) => self.clock.skip(time),
            Input::Answer { request, answer } if self.state.request() == Some(request) => {
                self.answered(now, answer)
            }
            Input::Answer { request, .. } => {
                tracing::trace!(request = request.0, "dropped: the request was abandoned")
            }
        }
    }

    /// Returns the next action; `None` when all are done.
    pub fn poll_output(&mut self) -> Option<Output<O>> {
        self.outputs.pop_front()
    }

    /// Returns the event if it is the only output: the common case, in which it is not moved again.
    #[cfg(feature = "client")]
    pub(crate) fn poll_only_event(&mut self) -> Option<Event<O>> {
        if self.outputs.len() > 1 {
            return None;
        }
        match self.outputs.pop_front()? {
            Output::Event(event) => Some(event),
            output
            @ (Output::Request { .. } | Output::Cancel(_) | Output::Error(_) | Output::Wait { .. }) => {
                self.outputs.push_back(output);
                None
            }
        }
    }

    /// Returns when to call [`Input::Timeout`] if there is no other input before.
    pub fn poll_timeout(&self) -> Option<Duration> {
        let silent_at = match &self.state {
            State::Empty => return Some(Duration::ZERO),
            State::BackingOff { until, .. } => return Some(*until),
            State::Listing(listing) => listing.deadline,
            State::InitialWatch(initial) => initial.deadline(),
            State::Listed(listed) => listed.deadline,
            State::Watching(watching) => watching.deadline(),
            State::Probing(probing) => probing.deadline,
        };
        self.clock.due(silent_at)
    }

    /// Returns the resourceVersion at which the emitted objects equal the server's. `None` during or before a relist.
    pub fn synced(&self) -> Option<&ResourceVersion> {
        match &self.state {
            State::Listed(listed) => Some(&listed.resume),
            State::Watching(watching) => Some(&watching.resume),
            State::Probing(probing) => Some(&probing.resume),
            State::BackingOff {
                then: Then::Listed(resume) | Then::Probing(resume, _),
                ..
            } => Some(resume),
            State::BackingOff {
                then: Then::Empty | Then::Listing(_),
                ..
            }
            | State::Empty
            | State::Listing(_)
            | State::InitialWatch(_) => None,
        }
    }

    fn timed_out(&mut self, now: Duration) {
        if self.poll_timeout().is_none_or(|at| now < at) {
            return;
        }
        match std::mem::replace(&mut self.state, State::Empty) {
            State::Empty => self.start(now),
            State::Listing(listing) => self.list_silent(now, listing),
            State::InitialWatch(initial) => self.initial_watch_silent(now, &initial),
            State::Listed(listed) => self.watch_start_silent(now, listed),
            State::Watching(watching) => self.watch_silent(now, watching),
            State::Probing(probing) => self.probing_silent(now, *probing),
            State::BackingOff { then, .. } => self.proceed(now, then),
        }
    }

    fn answered(&mut self, now: Duration, answer: ResponsePart<'_, O>) {
        if matches!(answer, ResponsePart::Refusing) {
            return self.state.wait_for_body();
        }
        self.state.touch(self.clock.listened(now), &self.config);
        if matches!(answer, ResponsePart::Progress) {
            return;
        }
        match std::mem::replace(&mut self.state, State::Empty) {
            State::Listing(listing) => self.list_answered(now, listing, answer),
            State::InitialWatch(initial) => self.initial_watch_answered(now, initial, answer),
            State::Listed(listed) => self.watch_start_answered(now, listed, answer),
            State::Watching(watching) => self.watch_answered(now, watching, answer),
            State::Probing(probing) => self.version_answered(now, probing, answer),
            // Neither state has a request, so no answer arrives here.
            state @ (State::Empty | State::BackingOff { .. }) => self.state = state,
        }
    }

    /// Leaves `State::Empty`: sends the first request of a snapshot.
    fn start(&mut self, now: Duration) {
        if self.memory.next_is_streaming(&self.config) {
            self.start_initial_watch(now);
        } else {
            self.start_listing(now);
        }
    }

    fn proceed(&mut self, now: Duration, then: Then) {
        match then {
            Then::Empty => self.start(now),
            Then::Listing(listing) => self.ask_for_page(now, listing),
            Then::Listed(resume) => self.start_watch(now, resume),
            Then::Probing(resume, doubt) => self.start_probing(now, resume, doubt),
        }
    }

    fn pause(&mut self, now: Duration, pause: Pause, then: Then) {
        let delay = match pause {
            Pause::Skip => return self.proceed(now, then),
            Pause::First => self.backoff.first_delay(),
            Pause::Step { retry_after } => {
                if self.is_long_healthy(now) {
                    self.backoff.reset();
                    self.memory.rv_regressions = 0;
                }
                self.memory.healthy_since = None;
                let asked_for = retry_after
                    .unwrap_or_default()
                    .min(self.config.backoff.retry_after_max);
                self.backoff.next_delay().max(asked_for)
            }
        };
        let until = now + delay;
        self.outputs.push_back(Output::Wait {
            until,
            then: then.word(),
        });
        self.state = State::BackingOff { until, then };
    }

    /// Discards the current state and reads a new snapshot.
    fn relist(&mut self, now: Duration, pause: Pause) {
        self.pause(now, pause, Then::Empty);
    }

    fn ask(&mut self, request: Request) -> RequestId {
        self.last_request += 1;
        let id = RequestId(self.last_request);
        self.outputs.push_back(Output::Request { id, request });
        id
    }

    fn cancel(&mut self, request: RequestId) {
        self.outputs.push_back(Output::Cancel(request));
    }

    fn emit(&mut self, event: Event<O>) {
        self.outputs.push_back(Output::Event(event));
    }

    fn report(&mut self, error: Error) {
        self.outputs.push_back(Output::Error(error));
    }

    /// Reports a protocol event such as an expired version only if it follows an earlier failure: users treat every
    /// error as fatal (kube#1615), and an expired version after a healthy period is not one.
    fn report_if_repeated(&mut self, now: Duration, error: Error) {
        if self.backoff.is_fresh() || self.is_long_healthy(now) {
            tracing::debug!(%error, "recovering");
        } else {
            self.report(error);
        }
    }

    fn is_long_healthy(&self, now: Duration) -> bool {
        let reset_after = self.config.backoff.reset_after;
        self.memory
            .healthy_since
            .is_some_and(|since| now.saturating_sub(since) >= reset_after)
    }

    /// Returns the times of the next watch.
    fn watch_times(&mut self) -> WatchTimes {
        let timeout_seconds = self
            .config
            .timeout
            .unwrap_or_else(|| self.random.u32(TIMEOUT_SECONDS));
        // 0 leaves the end to the server, which takes at most an hour (--min-request-timeout, doubled).
        let longest = Duration::from_secs(match timeout_seconds {
            0 => 3600,
            seconds => u64::from(seconds),
        });
        WatchTimes {
            timeout_seconds,
            longest,
            idle: self.config.idle_timeout.unwrap_or(longest + IDLE_MARGIN),
        }
    }
}

/// `timeoutSeconds` of watches without a configured `timeout`: below the 300 s after which many load balancers cut
/// connections, and wide enough that watchers which started together drift apart.
const TIMEOUT_SECONDS: std::ops::RangeInclusive<u32> = 232..=290;

/// Margin after `timeoutSeconds` before a silent watch is abandoned: the server's own end must have time to arrive.
const IDLE_MARGIN: Duration = Duration::from_secs(15);

impl<O> State<O> {
    fn request(&self) -> Option<RequestId> {
        match self {
            Self::Empty | Self::BackingOff { .. } => None,
            Self::Listing(listing) => Some(listing.request),
            Self::InitialWatch(initial) => Some(initial.request),
            Self::Listed(listed) => Some(listed.request),
            Self::Watching(watching) => Some(watching.request),
            Self::Probing(probing) => Some(probing.request),
        }
    }

    /// Restarts the idle timeout: bytes were received.
    fn touch(&mut self, now: Listened, config: &Config) {
        match self {
            Self::Empty | Self::BackingOff { .. } => {}
            Self::Listing(listing) => listing.deadline = now.after(config.list_timeout),
            Self::InitialWatch(initial) => initial.reset_idle(now),
            Self::Listed(listed) => listed.deadline = now.after(listed.times.idle),
            Self::Watching(watching) => watching.silent_at = now.after(watching.times.idle),
            Self::Probing(probing) => probing.deadline = now.after(config.list_timeout),
        }
    }

    /// Stops the deadline after the head of a rejection; the driver limits the wait for its body.
    fn wait_for_body(&mut self) {
        match self {
            Self::Empty | Self::BackingOff { .. } | Self::Watching(_) => {}
            Self::Listing(listing) => listing.deadline = Listened::NEVER,
            Self::InitialWatch(initial) => initial.wait_for_body(),
            Self::Listed(listed) => listed.deadline = Listened::NEVER,
            Self::Probing(probing) => probing.deadline = Listened::NEVER,
        }
    }
}

impl Then {
    fn word(&self) -> &'static str {
        match self {
            Self::Empty => "read the set",
            Self::Listing(_) => "ask for the page again",
            Self::Listed(_) => "watch",
            Self::Probing(..) => "check the version",
        }
    }
}

#[cfg(test)]
mod tests;
