//! Steps of a random scenario and their actions, as written in a scenario file.

use std::fmt::{self, Display, Formatter};

use super::{Object, Write};

/// How a response ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Clean end.
    Eof,
    /// The connection is closed within the body.
    Fin,
    /// The connection is reset.
    Rst,
    /// No more bytes are sent.
    Stall,
    /// The TLS connection ends without close_notify.
    NoCloseNotify,
    /// RST_STREAM with this code.
    RstStream(&'static str),
    /// GOAWAY with this code.
    Goaway(&'static str),
}

impl Display for Ending {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Eof => write!(f, "eof"),
            Self::Fin => write!(f, "fin"),
            Self::Rst => write!(f, "rst"),
            Self::Stall => write!(f, "stall"),
            Self::NoCloseNotify => write!(f, "no_close_notify"),
            Self::RstStream(code) => write!(f, "{{rst_stream: {code}}}"),
            Self::Goaway(code) => write!(f, "{{goaway: {code}}}"),
        }
    }
}

/// Where a body is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// After this many bytes.
    Bytes(u32),
    /// After this many events and this percentage of the next.
    Events(u32, u32),
}

/// An error response, or another response instead of the normal one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply {
    /// HTTP status.
    pub status: u16,
    /// `Retry-After` header, verbatim.
    pub retry_after: Option<&'static str>,
    /// Other keys, as in a file; empty: a Status of this code.
    pub rest: &'static str,
}

/// A fault of a response without false contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseFault {
    /// An error response.
    Refuse(Reply),
    /// An ERROR event, with these keys.
    Error(&'static str),
    /// A bookmark at the version sent so far.
    Bookmark,
    /// No bookmarks, and no end marker.
    NoBookmarks,
    /// The end marker has this value; `absent`: no value.
    EndMarker(&'static str),
    /// The next event is sent this many times.
    Repeat(u32),
    /// The response, including its head, is delayed by this many milliseconds.
    Delay(u32),
    /// This many bytes at a time, this many milliseconds apart.
    Drip(u32, u32),
    /// Writes end within characters.
    SplitUtf8,
    /// This many events per write.
    Coalesce(u32),
    /// Compressed.
    Gzip,
    /// Truncated, and ended like this.
    Truncate(Cut, Ending),
    /// Ended.
    End(Ending),
    /// The connection accepts no more requests.
    Goaway,
    /// No response, not even a head.
    NoAnswer(Ending),
    /// A page with equivalent contents, with these keys.
    EditPage(&'static str),
    /// New connections are refused for this many milliseconds.
    RefuseConnections(u32),
}

impl ResponseFault {
    fn name(&self) -> &'static str {
        match self {
            Self::Refuse(reply) if reply.retry_after.is_some() => "reply with Retry-After",
            Self::Refuse(reply) => match reply.status {
                410 => "reply 410",
                429 => "reply 429",
                500.. => "reply 5xx",
                ..=499 => "reply 4xx",
            },
            Self::Error(keys) if keys.starts_with("code: 410") => "error 410",
            Self::Error(_) => "other error",
            Self::Bookmark => "bookmark",
            Self::NoBookmarks => "no_bookmarks",
            Self::EndMarker(_) => "end_marker",
            Self::Repeat(_) => "repeat_event",
            Self::Delay(_) => "delay",
            Self::Drip(..) => "drip",
            Self::SplitUtf8 => "split_utf8",
            Self::Coalesce(_) => "coalesce",
            Self::Gzip => "gzip",
            Self::Truncate(_, ending) => match ending {
                Ending::Eof => "truncate eof",
                Ending::Fin => "truncate fin",
                Ending::Rst => "truncate rst",
                Ending::Stall => "truncate stall",
                Ending::NoCloseNotify => "truncate no_close_notify",
                Ending::RstStream(_) => "truncate rst_stream",
                Ending::Goaway(_) => "truncate goaway",
            },
            Self::End(ending) => match ending {
                Ending::Eof => "end eof",
                Ending::Fin => "end fin",
                Ending::Rst => "end rst",
                Ending::Stall => "end stall",
                Ending::NoCloseNotify => "end no_close_notify",
                Ending::RstStream(_) => "end rst_stream",
                Ending::Goaway(_) => "end goaway",
            },
            Self::NoAnswer(_) => "no_answer",
            Self::Goaway => "goaway",
            Self::RefuseConnections(_) => "refuse",
            Self::EditPage(_) => "edit_page",
        }
    }
}

impl Display for ResponseFault {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refuse(reply) => {
                write!(f, "{{reply: {{status: {}", reply.status)?;
                if let Some(retry_after) = reply.retry_after {
                    write!(f, ", retry_after: {retry_after:?}")?;
                }
                if !reply.rest.is_empty() {
                    write!(f, ", {}", reply.rest)?;
                }
                write!(f, "}}}}")
            }
            Self::Error(keys) => write!(f, "{{error: {{{keys}}}}}"),
            Self::Bookmark => write!(f, "bookmark"),
            Self::NoBookmarks => write!(f, "no_bookmarks"),
            Self::EndMarker(value) => write!(f, "{{end_marker: {value}}}"),
            Self::Repeat(times) => write!(f, "{{repeat_event: {times}}}"),
            Self::Delay(ms) => write!(f, "{{delay: {ms}ms}}"),
            Self::Drip(bytes, ms) => write!(f, "{{drip: {{bytes: {bytes}, every: {ms}ms}}}}"),
            Self::SplitUtf8 => write!(f, "split_utf8"),
            Self::Coalesce(events) => write!(f, "{{coalesce: {events}}}"),
            Self::Gzip => write!(f, "gzip"),
            Self::Truncate(Cut::Bytes(bytes), then) => {
                write!(f, "{{truncate: {{after_bytes: {bytes}, then: {then}}}}}")
            }
            Self::Truncate(Cut::Events(events, percent), then) => write!(
                f,
                "{{truncate: {{after_events: {events}, percent: {percent}, then: {then}}}}}"
            ),
            Self::End(ending) => write!(f, "{{end: {ending}}}"),
            Self::Goaway => write!(f, "goaway"),
            Self::NoAnswer(ending) => write!(f, "{{no_answer: {ending}}}"),
            Self::EditPage(keys) => write!(f, "{{edit_page: {{{keys}}}}}"),
            Self::RefuseConnections(ms) => write!(f, "{{refuse: {ms}ms}}"),
        }
    }
}

/// False or unreadable contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lie {
    /// The next events are dropped.
    Drop(u32),
    /// The next events are sent in reverse order.
    Reorder(u32),
    /// An unreadable line or response, as in a file.
    Unreadable(&'static str),
    /// An event of this type with an object state that is not in the store, with or without a version.
    Event(&'static str, Object, Option<&'static str>),
    /// A bookmark at a version that was never sent.
    Bookmark(&'static str),
    /// A page with these keys.
    Page(String),
}

impl Display for Lie {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Drop(count) => write!(f, "{{drop_events: {count}}}"),
            Self::Reorder(count) => write!(f, "{{reorder_events: {count}}}"),
            Self::Unreadable(what) => write!(f, "{{{what}}}"),
            Self::Event(kind, object, version) => {
                write!(f, "{{event: {{type: {kind}, object: {{{object}}}")?;
                if let Some(version) = version {
                    write!(f, ", rv: {version}")?;
                }
                write!(f, "}}}}")
            }
            Self::Bookmark(version) => write!(f, "{{bookmark: {{rv: {version}}}}}"),
            Self::Page(keys) => write!(f, "{{edit_page: {{{keys}}}}}"),
        }
    }
}

/// An action of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// On the store.
    Write(Write),
    /// On a response.
    ResponseFault(ResponseFault),
    /// False contents for the client.
    Lie(Lie),
}

impl Action {
    /// All names.
    pub const NAMES: [&'static str; 56] = [
        "apply",
        "apply many",
        "delete",
        "relabel",
        "compact",
        "clear_watch_cache",
        "freeze_watch_cache",
        "lag_watch_cache",
        "thaw_watch_cache",
        "one replica's watch cache",
        "restore",
        "restart",
        "restart of one replica",
        "jump_clock",
        "reply 4xx",
        "reply 410",
        "reply 429",
        "reply 5xx",
        "reply with Retry-After",
        "error 410",
        "other error",
        "bookmark",
        "no_bookmarks",
        "end_marker",
        "repeat_event",
        "delay",
        "drip",
        "split_utf8",
        "coalesce",
        "gzip",
        "truncate eof",
        "truncate fin",
        "truncate rst",
        "truncate stall",
        "truncate no_close_notify",
        "truncate rst_stream",
        "truncate goaway",
        "end eof",
        "end fin",
        "end rst",
        "end stall",
        "end no_close_notify",
        "end rst_stream",
        "end goaway",
        "no_answer",
        "goaway",
        "refuse",
        "edit_page",
        "lie: drop_events",
        "lie: reorder_events",
        "lie: unreadable line",
        "lie: unreadable answer",
        "lie: event",
        "lie: event with a wrong version",
        "lie: bookmark",
        "lie: page",
    ];

    /// Returns the name without arguments; one of [`NAMES`](Self::NAMES).
    pub fn name(&self) -> &'static str {
        match self {
            Self::Write(Write::Restart(_, _, Some(_))) => "restart of one replica",
            Self::Write(write) if write.replica().is_some() => "one replica's watch cache",
            Self::Write(write) => match write {
                Write::Apply(_) => "apply",
                Write::ApplyMany(..) => "apply many",
                Write::Delete(_) => "delete",
                Write::Relabel(..) => "relabel",
                Write::Compact => "compact",
                Write::ClearWatchCache(_) => "clear_watch_cache",
                Write::Freeze(_) => "freeze_watch_cache",
                Write::Lag(..) => "lag_watch_cache",
                Write::Thaw(_) => "thaw_watch_cache",
                Write::Restore(_) => "restore",
                Write::Restart(..) => "restart",
                Write::JumpClock(_) => "jump_clock",
            },
            Self::ResponseFault(answer) => answer.name(),
            Self::Lie(lie) => match lie {
                Lie::Drop(_) => "lie: drop_events",
                Lie::Reorder(_) => "lie: reorder_events",
                Lie::Unreadable(text) if text.starts_with("send") => "lie: unreadable line",
                Lie::Unreadable(_) => "lie: unreadable answer",
                Lie::Event(_, _, None) => "lie: event",
                Lie::Event(_, _, Some(_)) => "lie: event with a wrong version",
                Lie::Bookmark(_) => "lie: bookmark",
                Lie::Page(_) => "lie: page",
            },
        }
    }

    /// Returns true if a step with this action must be met only once, because it binds a name or changes which
    /// objects exist.
    pub fn happens_once(&self) -> bool {
        match self {
            Self::Write(
                Write::Delete(_)
                | Write::Relabel(..)
                | Write::Restore(_)
                | Write::Apply(Object { binds: Some(_), .. }),
            ) => true,
            Self::Write(_) | Self::ResponseFault(_) | Self::Lie(_) => false,
        }
    }
}

impl Display for Action {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write(write) => write!(f, "{write}"),
            Self::ResponseFault(answer) => write!(f, "{answer}"),
            Self::Lie(lie) => write!(f, "{lie}"),
        }
    }
}

/// The trigger of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// None.
    Now,
    /// This many milliseconds.
    After(u32),
    /// The first LIST. Only for the first step of a client that lists.
    FirstList,
    /// The next WATCH.
    NextWatch,
    /// The next request.
    NextRequest,
    /// The next LIST: a client with working watches sends none.
    NextList,
    /// The second page of the latest LIST.
    SecondPage,
    /// An event reported by the client, as in a file.
    Emitted(&'static str),
    /// The client has recovered.
    Synced,
    /// This many milliseconds without requests and events.
    Quiet(u32),
}

impl When {
    /// Returns the name without arguments.
    pub fn name(self) -> &'static str {
        match self {
            Self::Now => "now",
            Self::After(_) => "after",
            Self::FirstList => "first list",
            Self::NextWatch => "watch",
            Self::NextRequest => "request",
            Self::NextList => "list",
            Self::SecondPage => "page",
            Self::Emitted(_) => "emitted",
            Self::Synced => "synced",
            Self::Quiet(_) => "quiet",
        }
    }

    /// Returns true if the trigger depends on the client's progress.
    pub fn waits(self) -> bool {
        !matches!(self, Self::Now | Self::After(_))
    }

    /// Returns true if a request meets it.
    pub fn is_request(self) -> bool {
        self.is_list() || matches!(self, Self::NextWatch | Self::NextRequest)
    }

    /// Returns true if a LIST meets it.
    pub fn is_list(self) -> bool {
        matches!(self, Self::FirstList | Self::NextList | Self::SecondPage)
    }

    /// Returns true if the actions of such a step act on a watch.
    pub fn is_watch(self) -> bool {
        !self.is_list() && self != Self::NextRequest
    }

    /// Returns true if every correct client meets it.
    pub fn is_certain(self) -> bool {
        match self {
            Self::Now
            | Self::After(_)
            | Self::FirstList
            | Self::NextWatch
            | Self::NextRequest
            | Self::Synced => true,
            Self::NextList | Self::SecondPage | Self::Emitted(_) | Self::Quiet(_) => false,
        }
    }
}

impl Display for When {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Now => Ok(()),
            Self::After(ms) => write!(f, "when: {{after: {ms}ms}}, "),
            Self::FirstList => write!(f, "when: {{list: 1}}, "),
            Self::NextWatch => write!(f, "when: {{watch: next}}, "),
            Self::NextRequest => write!(f, "when: {{request: next}}, "),
            Self::NextList => write!(f, "when: {{list: next}}, "),
            Self::SecondPage => write!(f, "when: {{page: 2}}, "),
            Self::Emitted(what) => write!(f, "when: {{emitted: {what}}}, "),
            Self::Synced => write!(f, "when: synced, "),
            Self::Quiet(ms) => write!(f, "when: {{quiet: {ms}ms}}, "),
        }
    }
}

/// How many requests a step handles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Times {
    /// This many.
    Count(u32),
    /// All for this many milliseconds.
    For(u32),
}

/// A step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Trigger.
    pub when: When,
    /// Skipped when a later step is met first.
    pub is_optional: bool,
    /// How many requests it handles.
    pub times: Times,
    /// Actions, in order.
    pub actions: Vec<Action>,
}

impl Step {
    /// Returns true if the step depends on the client's progress.
    pub fn waits(&self) -> bool {
        // Actions on a response wait for an open watch, unless a request meets the step.
        let is_write = |action: &Action| matches!(action, Action::Write(_));
        self.when.waits() || !self.actions.iter().all(is_write)
    }
}

impl Display for Step {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let actions: Vec<String> = self.actions.iter().map(ToString::to_string).collect();
        write!(f, "{{{}", self.when)?;
        if self.waits() {
            write!(f, "within: 3h, ")?;
        }
        if self.is_optional {
            write!(f, "optional: true, ")?;
        }
        match self.times {
            Times::Count(0 | 1) => {}
            Times::Count(times) => write!(f, "times: {times}, ")?,
            Times::For(ms) => write!(f, "for: {ms}ms, ")?,
        }
        match actions.as_slice() {
            [action] => write!(f, "do: {action}}}"),
            actions => write!(f, "do: [{}]}}", actions.join(", ")),
        }
    }
}
