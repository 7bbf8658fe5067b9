//! Objects, and changes of the truth, as a random scenario writes them.

use std::fmt::{self, Display, Formatter};

/// An object: of the target's kind, unless said otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// The short form: `configmap`, `pod` …
    pub kind: &'static str,
    /// `metadata.namespace`; `None`: the target's, or `default`.
    pub namespace: Option<&'static str>,
    /// `metadata.name`.
    pub name: String,
    /// The value of its annotation `v`; 0: none.
    pub value: u32,
    /// The value of its annotation `t`, as between the quotes of a file; empty: none.
    pub text: &'static str,
    /// The value of the label `app`; `None`: no label.
    pub app: Option<&'static str>,
    /// Bytes of a second annotation, of which each third is the start of a character of three bytes.
    pub filler: u32,
    /// The name that is bound to the version of its write.
    pub binds: Option<u32>,
}

impl Object {
    /// `name`, or `namespace/name`.
    pub fn key(&self) -> String {
        match self.namespace {
            Some(namespace) => format!("{namespace}/{}", self.name),
            None => self.name.clone(),
        }
    }
}

/// Without the name that is bound to it, which stands beside it.
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
            annotations.push(format!(
                "filler: \"{}\"",
                "€".repeat(self.filler.div_ceil(3) as usize)
            ));
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

/// A change of the truth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Creates or replaces an object.
    Apply(Object),
    /// Creates or replaces so many objects with names of their own: a burst, and pages.
    ApplyMany(&'static str, u32),
    /// Deletes an object that exists.
    Delete(String),
    /// Sets the label `app` of an object that exists, or removes it.
    Relabel(String, Option<&'static str>),
    /// Forgets history.
    Compact,
    /// Rebuilds the watch cache.
    ClearWatchCache,
    /// The watch cache follows the store no more.
    Freeze,
    /// Lets the watch cache lag by so many milliseconds.
    Lag(u32),
    /// Ends a freeze or a lag.
    Thaw,
    /// The store goes back to the version of this name.
    Restore(u32),
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
            Self::ClearWatchCache => write!(f, "clear_watch_cache"),
            Self::Freeze => write!(f, "freeze_watch_cache"),
            Self::Lag(ms) => write!(f, "{{lag_watch_cache: {ms}ms}}"),
            Self::Thaw => write!(f, "thaw_watch_cache"),
            Self::Restore(name) => write!(f, "{{restore: $v{name}}}"),
        }
    }
}
