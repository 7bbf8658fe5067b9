//! The parts a random scenario is made of, and how each is written in a scenario file.

use std::fmt::{self, Display, Formatter};

/// A ConfigMap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// `metadata.name`.
    pub name: String,
    /// The value of its data.
    pub value: u32,
    /// The value of the label `app`; `None`: no label.
    pub app: Option<&'static str>,
    /// Letters of filler.
    pub filler: u32,
}

impl Display for Object {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            value,
            app,
            filler,
        } = self;
        write!(f, "configmap: {{name: {name}, data: {{v: \"{value}\"}}")?;
        if let Some(app) = app {
            write!(f, ", labels: {{app: {app}}}")?;
        }
        if *filler > 0 {
            write!(f, ", filler: {filler}")?;
        }
        write!(f, "}}")
    }
}

/// A change of the truth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Creates or replaces a ConfigMap.
    Apply(Object),
    /// Deletes a ConfigMap that exists.
    Delete(String),
    /// Sets the label `app` of a ConfigMap that exists, or removes it.
    Relabel(String, Option<&'static str>),
    /// Writes an object of another resource.
    Elsewhere(u32),
    /// Forgets history.
    Compact,
    /// Rebuilds the watch cache.
    ClearWatchCache,
    /// Lets the watch cache lag by so many milliseconds.
    Lag(u32),
    /// Ends a lag.
    Thaw,
}

impl Display for Write {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Apply(object) => write!(f, "{{apply: {{{object}}}}}"),
            Self::Delete(name) => write!(f, "{{delete: {name}}}"),
            Self::Relabel(name, Some(app)) => {
                write!(f, "{{relabel: {{name: {name}, labels: {{app: {app}}}}}}}")
            }
            Self::Relabel(name, None) => write!(f, "{{relabel: {{name: {name}, labels: {{app: null}}}}}}"),
            Self::Elsewhere(number) => write!(f, "{{apply: {{secret: {{name: s-{number}}}}}}}"),
            Self::Compact => write!(f, "compact"),
            Self::ClearWatchCache => write!(f, "clear_watch_cache"),
            Self::Lag(ms) => write!(f, "{{lag_watch_cache: {ms}ms}}"),
            Self::Thaw => write!(f, "thaw_watch_cache"),
        }
    }
}

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
}

impl Display for Ending {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Eof => "eof",
            Self::Fin => "fin",
            Self::Rst => "rst",
            Self::Stall => "stall",
        })
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

/// What is done to an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Refused with this status, and `Retry-After` in seconds.
    Refuse(u32, Option<u32>),
    /// An ERROR event of this code.
    Error(u32),
    /// A bookmark of what was sent.
    Bookmark,
    /// No bookmarks, and no end marker.
    NoBookmarks,
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
    /// Not even a head.
    NoAnswer(Ending),
    /// New connections are refused for so many milliseconds.
    RefuseConnections(u32),
}

impl Display for Answer {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refuse(status, None) => write!(f, "{{reply: {{status: {status}}}}}"),
            Self::Refuse(status, Some(seconds)) => {
                write!(f, "{{reply: {{status: {status}, retry_after: \"{seconds}\"}}}}")
            }
            Self::Error(code) => write!(f, "{{error: {{code: {code}}}}}"),
            Self::Bookmark => write!(f, "bookmark"),
            Self::NoBookmarks => write!(f, "no_bookmarks"),
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
            Self::End(ending) => write!(f, "{ending}"),
            Self::NoAnswer(ending) => write!(f, "{{no_answer: {ending}}}"),
            Self::RefuseConnections(ms) => write!(f, "{{refuse: {ms}ms}}"),
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
}

impl Display for Action {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write(write) => write!(f, "{write}"),
            Self::Answer(answer) => write!(f, "{answer}"),
        }
    }
}

/// What a step waits for. Each of them comes whatever a right client does.
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
}

/// A step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// What it waits for.
    pub when: When,
    /// How many such requests it answers.
    pub times: u32,
    /// What is done, in order.
    pub actions: Vec<Action>,
}

impl Display for Step {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let actions: Vec<String> = self.actions.iter().map(ToString::to_string).collect();
        let times = match self.times {
            0 | 1 => String::new(),
            times => format!("times: {times}, "),
        };
        match self.when {
            When::Now => write!(f, "{{")?,
            When::After(ms) => write!(f, "{{when: {{after: {ms}ms}}, ")?,
            When::FirstList => write!(f, "{{when: {{list: 1}}, ")?,
            When::NextWatch => write!(f, "{{when: {{watch: next}}, within: 6h, {times}")?,
            When::NextRequest => write!(f, "{{when: {{request: next}}, within: 6h, {times}")?,
        }
        write!(f, "do: [{}]}}", actions.join(", "))
    }
}
