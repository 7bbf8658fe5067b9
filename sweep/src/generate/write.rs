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
    ClearWatchCache,
    /// Stops the watch cache.
    Freeze,
    /// Delays the watch cache by this many milliseconds.
    Lag(u32),
    /// Ends a freeze or a lag.
    Thaw,
    /// Restores the store to the version of this name.
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
