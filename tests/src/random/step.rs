//! The steps of a random scenario, and what they do to answers, as written in a scenario file.

use std::fmt::{self, Display, Formatter};

use super::Write;

/// How an answer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Clean.
    Eof,
    /// The connection is closed inside the body.
    Fin,
    /// The connection is reset.
    Rst,
    /// Nothing more is sent.
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
    /// After so many bytes.
    Bytes(u32),
    /// After so many events and so many percent of the next.
    Events(u32, u32),
}

/// A refusal, or an answer in place of the true one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply {
    /// HTTP status.
    pub status: u16,
    /// `Retry-After`, as is.
    pub retry_after: Option<&'static str>,
    /// The other keys, as in a file; empty: a Status of this code.
    pub rest: &'static str,
}

/// What is done to an answer and is no lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Refused.
    Refuse(Reply),
    /// An ERROR event, with these keys.
    Error(&'static str),
    /// A bookmark of what was sent.
    Bookmark,
    /// No bookmarks, and no end marker.
    NoBookmarks,
    /// The end marker has this value, or none.
    EndMarker(&'static str),
    /// The next event is sent so many times.
    Repeat(u32),
    /// Head and all come so many milliseconds late.
    Delay(u32),
    /// So many bytes at a time, so many milliseconds apart.
    Drip(u32, u32),
    /// Writes end inside characters.
    SplitUtf8,
    /// So many events a write.
    Coalesce(u32),
    /// Compressed.
    Gzip,
    /// Cut, and ended so.
    Truncate(Cut, Ending),
    /// Ended.
    End(Ending),
    /// The connection takes no more requests.
    Goaway,
    /// Not even a head.
    NoAnswer(Ending),
    /// A page that says the truth in other words, with these keys.
    EditPage(&'static str),
    /// New connections are refused for so many milliseconds.
    RefuseConnections(u32),
}

impl Display for Answer {
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

/// What the server says though it is not so, or what nobody can read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lie {
    /// The next so many events are never sent.
    Drop(u32),
    /// The next so many are sent in reverse order.
    Reorder(u32),
    /// A line or an answer that nobody can read, as in a file.
    Unreadable(&'static str),
    /// An event of this type about an object that is not like that, with a version or without one.
    Event(&'static str, String, Option<&'static str>),
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

/// What is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// To the truth.
    Write(Write),
    /// To an answer.
    Answer(Answer),
    /// To the client.
    Lie(Lie),
}

impl Display for Action {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write(write) => write!(f, "{write}"),
            Self::Answer(answer) => write!(f, "{answer}"),
            Self::Lie(lie) => write!(f, "{lie}"),
        }
    }
}

/// What a step waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Nothing.
    Now,
    /// So many milliseconds.
    After(u32),
    /// The first LIST. Only for the first step of a client that lists.
    FirstList,
    /// The next WATCH.
    NextWatch,
    /// The next request.
    NextRequest,
    /// The next LIST: a client whose watches live has no reason to send one.
    NextList,
    /// The second page of the latest LIST.
    SecondPage,
    /// What the client reports, as in a file.
    Emitted(&'static str),
    /// The client has recovered.
    Synced,
    /// So many milliseconds without anything.
    Quiet(u32),
}

impl When {
    /// Does it come, whatever a right client does?
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

/// How many requests a step answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Times {
    /// So many.
    Count(u32),
    /// All for so many milliseconds.
    For(u32),
}

/// A step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// What it waits for.
    pub when: When,
    /// It is skipped when a step behind it is met first.
    pub is_optional: bool,
    /// How many such requests it answers.
    pub times: Times,
    /// What is done, in order.
    pub actions: Vec<Action>,
}

impl Display for Step {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let actions: Vec<String> = self.actions.iter().map(ToString::to_string).collect();
        write!(f, "{{{}within: 6h, ", self.when)?;
        if self.is_optional {
            write!(f, "optional: true, ")?;
        }
        match self.times {
            Times::Count(0 | 1) => {}
            Times::Count(times) => write!(f, "times: {times}, ")?,
            Times::For(ms) => write!(f, "for: {ms}ms, ")?,
        }
        write!(f, "do: [{}]}}", actions.join(", "))
    }
}
