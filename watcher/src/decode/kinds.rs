//! Keeps objects of another kind out: what a misrouted request, or a server that answers in tables, brings.

use crate::error::Malformed;

/// The kind of the collection, learnt from the first answer that names it: an `Api` does not tell it, and most list
/// items have none.
#[derive(Debug, Default)]
pub struct Kinds {
    expected: Option<Kind>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Kind {
    api_version: String,
    kind: String,
}

impl Kinds {
    /// Nothing learnt yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Checks the type of an object. One without a type passes: items of built-in lists have none.
    pub(super) fn check_object(&mut self, api_version: &str, kind: &str) -> Result<(), Malformed> {
        if kind.is_empty() {
            return Ok(());
        }
        let found = || Kind {
            api_version: super::short(api_version),
            kind: super::short(kind),
        };
        if is_never_an_object(api_version, kind) {
            return Err(Malformed::NotExpected {
                kind: Some(super::short(kind)),
            });
        }
        match &self.expected {
            None => self.expected = Some(found()),
            Some(expected) if expected.kind == kind && expected.api_version == api_version => {}
            // Servers of one cluster may differ in whether they honour a request for metadata only.
            Some(expected) if expected.is_partial() || is_partial(api_version, kind) => {}
            Some(expected) => {
                return Err(Malformed::WrongKind {
                    expected: expected.to_string(),
                    found: found().to_string(),
                });
            }
        }
        Ok(())
    }

    /// Checks the type of a list; its items are told apart from it by the ending `List`.
    pub(super) fn check_list(&mut self, api_version: &str, kind: &str) -> Result<(), Malformed> {
        match kind.strip_suffix("List") {
            // `List` is what kubectl makes of anything; it says nothing of its items.
            Some("") => Ok(()),
            Some(item) => self.check_object(api_version, item),
            None => Err(Malformed::NotExpected {
                kind: Some(super::short(kind)),
            }),
        }
    }
}

fn is_never_an_object(api_version: &str, kind: &str) -> bool {
    (kind == "Table" && api_version.starts_with("meta.k8s.io/")) || (kind == "Status" && api_version == "v1")
}

fn is_partial(api_version: &str, kind: &str) -> bool {
    kind == "PartialObjectMetadata" && api_version.starts_with("meta.k8s.io/")
}

impl Kind {
    fn is_partial(&self) -> bool {
        is_partial(&self.api_version, &self.kind)
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.api_version, self.kind)
    }
}
