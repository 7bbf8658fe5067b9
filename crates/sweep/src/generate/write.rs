//! Objects and writes of a random scenario.

use std::fmt::{self, Display, Formatter};

/// An object, by default of the target's kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// Short form: `configmap`, `pod` …
    pub kind: &'static str,
    /// `metadata.namespace`; `None`: the target's, or `default`.
    pub namespace: Option<&'static str>,
    /// `metadata.name`.
    pub name: String,
    /// Value of its annotation `v`; 0: none.
    pub value: u32,
    /// Value of its annotation `t`, as between the quotes of a file; empty: none.
    pub text: &'static str,
    /// Value of the label `app`; `None`: no label.
    pub app: Option<&'static str>,
    /// Bytes of a second annotation, which consists of three-byte characters.
    pub filler: u32,
    /// Name bound to the version of its write.
    pub binds: Option<u32>,
}

impl Object {
    /// Returns `name`, or `namespace/name`.
    pub fn key(&self) -> String {
        match self.namespace {
            Some(namespace) => format!("{namespace}/{}", self.name),
            None => self.name.clone(),
        }
    }

    /// Returns the text of the second annotation.
    pub fn filler_text(&self) -> String {
        "€".repeat(self.filler.div_ceil(3) as usize)
    }
}

/// Prints the object without the name bound to its version, which is a separate key.
impl Display for Object {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self {
            kind, name, value, ..
        } = self;
        write!(f, "{kind}: {{name: {name}")?;
        if let Some(namespace) = self.namespace {
            write!(f, ", namespace: {namespace}")?;
        }
        let mut annotations = Vec::new();
        if *value > 0 {
            annotations.push(format!("v: \"{value}\""));
        }
        if !self.text.is_empty() {
            annotations.push(format!("t: \"{}\"", self.text));
        }
        if self.filler > 0 {
            annotations.push(format!("filler: \"{}\"", self.filler_text()));
        }
        if !annotations.is_empty() {
            write!(f, ", annotations: {{{}}}", annotations.join(", "))?;
        }
        if let Some(app) = self.app {
            write!(f, ", labels: {{app: {app}}}")?;
        }
        write!(f, "}}")
    }
}

/// A write to the store, or a change of its watch cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Creates or replaces an object.
    Apply(Object),
    /// Creates or replaces this many objects with distinct names: a burst, and pages.
    ApplyMany(&'static str, u32),
    /// Deletes an object that exists.
    Delete(String),
    /// Sets the label `app` of an object that exists, or removes it.
    Relabel(String, Option<&'static str>),
    /// Compacts the store.
    Compact,
    /// Rebuilds the watch cache.
    ClearWatchCache(Where),
    /// Stops the watch cache.
    Freeze(Where),
    /// Delays the watch cache by this many milliseconds.
    Lag(u32, Where),
    /// Ends a freeze or a lag.
    Thaw(Where),
    /// Restores the store to the version of this name.
    Restore(u32),
    /// Restarts an apiserver: milliseconds for which it is down, and for which its watch caches are filled after that.
    Restart(u32, u32, Where),
    /// Sets the server's wall clock forward or back by this many seconds.
    JumpClock(i32),
}

/// Replica of a write to a watch cache; `None`: both.
pub type Where = Option<&'static str>;

impl Write {
    /// Returns the replica, for writes that name one.
    pub fn replica(&self) -> Where {
        match self {
            Self::ClearWatchCache(at)
            | Self::Freeze(at)
            | Self::Lag(_, at)
            | Self::Thaw(at)
            | Self::Restart(_, _, at) => *at,
            Self::Apply(_)
            | Self::ApplyMany(..)
            | Self::Delete(_)
            | Self::Relabel(..)
            | Self::Compact
            | Self::Restore(_)
            | Self::JumpClock(_) => None,
        }
    }

    /// Returns the write without its replica.
    #[must_use]
    pub fn everywhere(&self) -> Self {
        match self {
            Self::ClearWatchCache(_) => Self::ClearWatchCache(None),
            Self::Freeze(_) => Self::Freeze(None),
            Self::Lag(ms, _) => Self::Lag(*ms, None),
            Self::Thaw(_) => Self::Thaw(None),
            Self::Restart(down_ms, filling_ms, _) => Self::Restart(*down_ms, *filling_ms, None),
            Self::Apply(_)
            | Self::ApplyMany(..)
            | Self::Delete(_)
            | Self::Relabel(..)
            | Self::Compact
            | Self::Restore(_)
            | Self::JumpClock(_) => self.clone(),
        }
    }
}

/// Prints an action on a watch cache.
fn turn(f: &mut Formatter<'_>, word: &str, at: Where) -> fmt::Result {
    match at {
        Some(replica) => write!(f, "{{{word}: {{replica: {replica}}}}}"),
        None => write!(f, "{word}"),
    }
}

impl Display for Write {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Apply(object) => {
                write!(f, "{{apply: {{{object}}}")?;
                if let Some(name) = object.binds {
                    write!(f, ", as: v{name}")?;
                }
                write!(f, "}}")
            }
            Self::ApplyMany(kind, count) => {
                write!(f, "{{apply: {{repeat: {count}, {kind}: {{name: \"m-{{i}}\"}}}}}}")
            }
            Self::Delete(name) => write!(f, "{{delete: {name}}}"),
            Self::Relabel(name, app) => {
                let app = app.unwrap_or("null");
                write!(f, "{{relabel: {{name: {name}, labels: {{app: {app}}}}}}}")
            }
            Self::Compact => write!(f, "compact"),
            Self::ClearWatchCache(at) => turn(f, "clear_watch_cache", *at),
            Self::Freeze(at) => turn(f, "freeze_watch_cache", *at),
            Self::Lag(ms, None) => write!(f, "{{lag_watch_cache: {ms}ms}}"),
            Self::Lag(ms, Some(at)) => write!(f, "{{lag_watch_cache: {{by: {ms}ms, replica: {at}}}}}"),
            Self::Thaw(at) => turn(f, "thaw_watch_cache", *at),
            Self::Restore(name) => write!(f, "{{restore: $v{name}}}"),
            Self::Restart(0, 0, at) => turn(f, "restart", *at),
            Self::Restart(down_ms, filling_ms, at) => {
                let mut keys = vec![format!("down: {down_ms}ms")];
                if *filling_ms > 0 {
                    keys.push(format!("filling: {filling_ms}ms"));
                }
                keys.extend(at.map(|at| format!("replica: {at}")));
                write!(f, "{{restart: {{{}}}}}", keys.join(", "))
            }
            Self::JumpClock(seconds) => {
                let how = if *seconds < 0 { "back" } else { "forward" };
                write!(f, "{{jump_clock: {{{how}: {}s}}}}", seconds.unsigned_abs())
            }
        }
    }
}
