//! The watcher's mind: which request to send next, which event to tell, when to wait. Pure: no I/O, no clock, no type
//! of object. It must not know HTTP, JSON or kube.
//!
//! ```text
//!   Empty --list-watch-----> Listing{continue} --last page--> Listed{rv} --opened--> Watching{rv}
//!      \                                                         ^                      |   ^
//!       \                                                        +---eof, timeout, cut---+   |
//!        `--streaming list--> InitialWatch -------------------initial-events-end------------'
//!
//!   Expired (410 by code or reason, in any answer), too large RV, n failed starts on one RV -> Empty
//!   ten minutes without a sign of the version watched -> Probing -> Watching, or Empty if the server went back
//!   eof or fault inside InitialWatch -> Empty; refused or never marked -> list-watch
//!   any error, and a watch that ended at once -> BackingOff{until, then}
//! ```
//!
//! The drawing in words: a set is read (`State::Listing` or `State::InitialWatch`) and told as `Init`, `InitApply`…,
//! `InitDone`; from its version a watch is asked for (`State::Listed`) and followed (`State::Watching`). What ends a
//! watch without doubt about its version resumes at the last event that came whole; doubt reads the set again. The delay
//! grows with each failure, whatever succeeds in between, until watches worked for two minutes on end: neither `Init`
//! nor a LIST that is answered resets it, or a loop of LIST and 410 would never slow down.
//!
//! Time comes in two kinds. *Listened* time stands still while the consumer is busy ([`Input::Unattended`]): bytes may lie
//! unread then, so a server is silent only for as long as somebody listened. *Elapsed* time goes on. A limit that ends a
//! request, or doubts a server, counts the first; a pause that the server was promised counts the second.
//!
//! | timer | starts | counts | set back by | stands still |
//! |---|---|---|---|---|
//! | `list_timeout` of a page or probe | request | listened | any bytes | behind the head of a refusal |
//! | `idle_timeout` of a watch or streaming list | request | listened | any bytes | behind the head of a refusal |
//! | `initial_events_timeout` | response head | listened | an initial event; not a bookmark | |
//! | end marker: `timeoutSeconds` and 15 s | response head | listened | nothing | |
//! | `staleness_probe_after` | a set, or the end of a watch that moved or was confirmed | listened | the same | |
//! | pause: backoff, Retry-After | failure read | elapsed | nothing | |
//! | `backoff.reset_after` | a watch opens | elapsed | a failure | |
//! | a watch ended at once: 1 s | a watch opens | elapsed | | |
//!
//! The last two count a busy time as good: what nobody saw is held against nobody, and a busy consumer slows requests
//! down by itself.
//!
//! | counter | counts | leads to | reset by |
//! |---|---|---|---|
//! | `failures` of a page, 3 | failures of one page but expired tokens | relist | the page, a relist |
//! | `lost_pages`, 2 | lists ended by an expired token, or a page too new for the watch cache to the last try | a list without pages | a set |
//! | `empty_pages`, 1000 | pages without items in a row | a list without pages | an item, a relist |
//! | `setbacks`, 3 | watches of one version that failed or ended at once | relist | a set, an event or bookmark, a watch that lasted |
//! | `server_errors`, 10 | watch starts of one version answered by 5xx | relist | a set, an opened watch |
//! | `unmarked`, 3 | streaming lists that ended before their marker | LIST for good | a set |
//! | `disorders`, 3 | watches that went back in time | versions are taken for text | `backoff.reset_after` |
//!
//! No counter counts a late answer: a request that is late but answered in time fails nothing.

mod clock;
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
pub use self::input::{Answer, Change, Input, PageMeta, RequestId};
use self::listing::Listing;
use self::memory::Memory;
pub use self::output::Output;
use self::probing::Probing;
use self::watching::{Listed, Watching};
use crate::backoff::DefaultBackoff;
use crate::config::Config;
use crate::error::Error;
use crate::event::Event;
use crate::object::Identity;
use crate::request::Request;
use crate::version::ResourceVersion;

/// A watcher without its hands: see the module's drawing.
///
/// Drive it so: [`handle`](Self::handle) what happened, drain [`poll_output`](Self::poll_output), wait for the next
/// thing to happen or for [`poll_timeout`](Self::poll_timeout), which is then an [`Input::Timeout`]. `now` is the time
/// since any fixed moment and never goes back.
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

/// Tells which object one is, and which state of it.
pub type Identify<O> = for<'a> fn(&'a O) -> Identity<'a>;

/// The boxes of the drawing.
#[derive(Debug)]
enum State<O> {
    /// No version is known to watch from. It is left at once.
    Empty,
    /// A LIST is on its way, page by page.
    Listing(Box<Listing>),
    /// A streaming list is on its way.
    InitialWatch(Box<InitialWatch<O>>),
    /// The set is told up to a version; a watch from there was asked for.
    Listed(Listed),
    /// The watch is open.
    Watching(Watching),
    /// The server is asked whether it is still there.
    Probing(Box<Probing<O>>),
    /// Nothing is asked for until then.
    BackingOff { until: Duration, then: Then },
}

/// Where the way goes on after a pause.
#[derive(Debug)]
enum Then {
    /// Relist.
    Empty,
    /// Ask for the same page again.
    Listing(Box<Listing>),
    /// Watch from this version.
    Listed(ResourceVersion),
    /// Ask whether the server is still at this version, and watch from there if it is.
    Probing(ResourceVersion),
}

/// How long to pause.
#[derive(Debug, Clone, Copy)]
enum Pause {
    /// Not at all.
    Skip,
    /// A first delay that does not make the next ones longer: for ends that are no failures but come in herds.
    First,
    /// A failure: longer than the last one, and at least as long as the server asks for.
    Step { retry_after: Option<Duration> },
}

impl Pause {
    const STEP: Self = Self::Step { retry_after: None };
}

impl<O> Machine<O> {
    /// A machine in `State::Empty`, due at once. `seed` takes the place of [`Config::seed`]; `identify` tells which
    /// object one is, and is all that the machine knows of objects.
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

    /// Takes in what happened.
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

    /// What to do next, until `None`.
    pub fn poll_output(&mut self) -> Option<Output<O>> {
        self.outputs.pop_front()
    }

    /// The event, where it is all there is to do: the common case, in which it is not moved again.
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

    /// When to come back with [`Input::Timeout`] if nothing else happens.
    pub fn poll_timeout(&self) -> Option<Duration> {
        let silent_at = match &self.state {
            State::Empty => return Some(Duration::ZERO),
            State::BackingOff { until, .. } => return Some(*until),
            State::Listing(listing) => listing.deadline,
            State::InitialWatch(initial) => initial.deadline(),
            State::Listed(listed) => listed.deadline,
            State::Watching(watching) => watching.deadline,
            State::Probing(probing) => probing.deadline,
        };
        self.clock.due(silent_at)
    }

    /// Up to which version the set that was told is the server's. `None` while it is read, or about to be.
    pub fn synced(&self) -> Option<&ResourceVersion> {
        match &self.state {
            State::Listed(listed) => Some(&listed.resume),
            State::Watching(watching) => Some(&watching.resume),
            State::Probing(probing) => Some(&probing.resume),
            State::BackingOff {
                then: Then::Listed(resume) | Then::Probing(resume),
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

    fn answered(&mut self, now: Duration, answer: Answer<'_, O>) {
        if matches!(answer, Answer::Refusing) {
            return self.state.wait_for_body();
        }
        self.state.touch(self.clock.listened(now), &self.config);
        if matches!(answer, Answer::Progress) {
            return;
        }
        match std::mem::replace(&mut self.state, State::Empty) {
            State::Listing(listing) => self.list_answered(now, listing, answer),
            State::InitialWatch(initial) => self.initial_watch_answered(now, initial, answer),
            State::Listed(listed) => self.watch_start_answered(now, listed, answer),
            State::Watching(watching) => self.watch_answered(now, watching, answer),
            State::Probing(probing) => self.version_answered(now, probing, answer),
            // Neither has a request, so no answer gets here.
            state @ (State::Empty | State::BackingOff { .. }) => self.state = state,
        }
    }

    /// Leaves `State::Empty`.
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
            Then::Probing(resume) => self.start_probing(now, resume),
        }
    }

    fn pause(&mut self, now: Duration, pause: Pause, then: Then) {
        let delay = match pause {
            Pause::Skip => return self.proceed(now, then),
            Pause::First => self.backoff.first_delay(),
            Pause::Step { retry_after } => {
                if self.is_long_healthy(now) {
                    self.backoff.reset();
                    self.memory.disorders = 0;
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

    /// Relists.
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

    /// Reports what belongs to the protocol only where it follows on an earlier failure: users take every error for a
    /// fatal one (kube#1615), and an expired version after a healthy time is none.
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

    /// `timeoutSeconds` and how long the watch may then be silent.
    fn watch_times(&mut self) -> (u32, Duration) {
        let timeout_seconds = self
            .config
            .timeout
            .unwrap_or_else(|| self.random.u32(TIMEOUT_SECONDS));
        // 0 leaves the end to the server, which takes at most an hour (--min-request-timeout, doubled).
        let longest = if timeout_seconds == 0 {
            3600
        } else {
            timeout_seconds
        };
        let idle = self
            .config
            .idle_timeout
            .unwrap_or(Duration::from_secs(u64::from(longest)) + IDLE_MARGIN);
        (timeout_seconds, idle)
    }
}

/// Where a watch has no `timeout` of its own: below the 300 s after which many load balancers cut, and apart from each
/// other by enough that watchers which started together drift apart.
const TIMEOUT_SECONDS: std::ops::RangeInclusive<u32> = 232..=290;

/// How much later than its `timeoutSeconds` a silent watch is given up: the server's own end must have the time to come.
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

    /// The other side lives: its silence is measured from now on.
    fn touch(&mut self, now: Listened, config: &Config) {
        match self {
            Self::Empty | Self::BackingOff { .. } => {}
            Self::Listing(listing) => listing.deadline = now.after(config.list_timeout),
            Self::InitialWatch(initial) => initial.heard_at(now),
            Self::Listed(listed) => listed.deadline = now.after(listed.idle),
            Self::Watching(watching) => watching.deadline = now.after(watching.idle),
            Self::Probing(probing) => probing.deadline = now.after(config.list_timeout),
        }
    }

    /// A refusal is on its way, and the driver does not wait for its body for long.
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
            Self::Probing(_) => "check the version",
        }
    }
}

#[cfg(test)]
mod tests;
