//! Rejects objects of a different kind, as a misrouted request or a server that responds with a Table returns them.
//!
//! The watcher is not given its kind: `Api` does not expose it, and items of built-in lists do not contain it. It is
//! therefore learnt from responses. When a response contradicts what was learnt, that is reported and forgotten, and
//! the next response decides: a wrong first response costs an error and a retry, no more.

use std::fmt;

use super::short;
use crate::error::Malformed;

/// Kinds of the collection and of its objects, as learnt from responses.
#[derive(Debug, Default)]
pub struct Kinds {
    list: Option<Kind>,
    object: Option<Kind>,
    /// `object` was read from an object, not inferred from the kind of the list.
    is_proven: bool,
    /// JSON prefix of an object whose type was checked. A server writes the type of all objects of a collection in
    /// the same way, so comparing this prefix replaces parsing the type.
    beginning: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Kind {
    api_version: String,
    kind: String,
}

impl Kinds {
    /// Creates an instance that has learnt nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns true if the object starts with the prefix of a checked type. `false` means unknown, not wrong.
    pub(super) fn knows(&self, json: &str) -> bool {
        json.starts_with(BARE)
            || self
                .beginning
                .as_ref()
                .is_some_and(|beginning| json.starts_with(beginning))
    }

    /// Records the prefix of an object whose type was checked.
    pub(super) fn learn(&mut self, json: &str) {
        let Some(expected) = self.object.as_ref().filter(|_| self.is_proven) else {
            return;
        };
        let Kind { api_version, kind } = expected;
        let beginnings = [
            format!(r#"{{"kind":"{kind}","apiVersion":"{api_version}","metadata":{{"#),
            format!(r#"{{"apiVersion":"{api_version}","kind":"{kind}","metadata":{{"#),
        ];
        self.beginning = beginnings
            .into_iter()
            .find(|beginning| json.starts_with(beginning));
    }

    /// Checks the type of an object. An object without a type passes.
    pub(super) fn check_object(&mut self, api_version: &str, kind: &str) -> Result<(), Malformed> {
        if kind.is_empty() {
            return Ok(());
        }
        refuse_what_is_never_one(api_version, kind)?;
        match &self.object {
            Some(expected) if !expected.admits(api_version, kind) => {
                let why = expected.contradicted_by(api_version, kind);
                if !self.is_proven {
                    self.forget_object();
                }
                return Err(why);
            }
            Some(_) if self.is_proven => {}
            Some(_) | None => {
                self.object = Some(Kind::new(api_version, kind));
                self.is_proven = true;
            }
        }
        Ok(())
    }

    /// Checks the type of an item of the list checked last. The first item with a type decides for the others and
    /// overrides the kind inferred from the list.
    pub(super) fn check_item(&mut self, api_version: &str, kind: &str) -> Result<(), Malformed> {
        if !self.is_proven && !kind.is_empty() {
            self.forget_object();
        }
        self.check_object(api_version, kind)
    }

    fn forget_object(&mut self) {
        self.object = None;
        self.beginning = None;
    }

    /// Checks the type of a list. A list without a type passes.
    pub(super) fn check_list(&mut self, api_version: &str, kind: &str) -> Result<(), Malformed> {
        if kind.is_empty() {
            return Ok(());
        }
        refuse_what_is_never_one(api_version, kind)?;
        if let Some(expected) = self.list.take_if(|expected| !expected.admits(api_version, kind)) {
            return Err(expected.contradicted_by(api_version, kind));
        }
        if self.list.is_some() && self.object.is_some() {
            self.is_proven = false;
            return Ok(());
        }
        self.list = Some(Kind::new(api_version, kind));
        // The items preceded the kind of their list, and are more reliable.
        if self.is_proven {
            return Ok(());
        }
        // `List` alone is the generic kind that tools use. A custom resource may choose any list kind, so stripping
        // the suffix is a guess.
        self.object = kind
            .strip_suffix("List")
            .filter(|kind| !kind.is_empty())
            .map(|kind| Kind::new(api_version, kind));
        Ok(())
    }
}

/// Items of built-in kinds carry no type.
const BARE: &str = r#"{"metadata":{"#;

fn refuse_what_is_never_one(api_version: &str, kind: &str) -> Result<(), Malformed> {
    let is_never = (kind == "Table" && api_version.starts_with("meta.k8s.io/"))
        || (kind == "Status" && matches!(api_version, "v1" | ""));
    if is_never {
        Err(Malformed::NotExpected {
            kind: Some(short(kind)),
        })
    } else {
        Ok(())
    }
}

impl Kind {
    fn new(api_version: &str, kind: &str) -> Self {
        Self {
            api_version: short(api_version),
            kind: short(kind),
        }
    }

    fn admits(&self, api_version: &str, kind: &str) -> bool {
        let is_same_version =
            self.api_version.is_empty() || api_version.is_empty() || self.api_version == api_version;
        // Servers of one cluster may differ in whether they support metadata-only responses.
        (is_same_version && self.kind == kind) || is_partial(&self.api_version) || is_partial(api_version)
    }

    fn contradicted_by(&self, api_version: &str, kind: &str) -> Malformed {
        Malformed::WrongKind {
            expected: self.to_string(),
            found: Self::new(api_version, kind).to_string(),
        }
    }
}

/// In this group only `PartialObjectMetadata` and its list remain once Tables are rejected.
fn is_partial(api_version: &str) -> bool {
    api_version.starts_with("meta.k8s.io/")
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.api_version.is_empty() {
            write!(f, "{} ", self.api_version)?;
        }
        f.write_str(&self.kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_learnt_from_the_list_and_proved_by_an_object() {
        let mut kinds = Kinds::new();
        kinds.check_list("v1", "PodList").unwrap();
        kinds.check_object("", "").unwrap();
        kinds.check_object("v1", "Pod").unwrap();
        assert!(kinds.check_object("v1", "Service").is_err());
        assert!(
            kinds.check_object("v1", "Service").is_err(),
            "what an object proved stands"
        );
        kinds.check_object("v1", "Pod").unwrap();
    }

    #[test]
    fn an_oddly_named_list_costs_one_error() {
        let mut kinds = Kinds::new();
        kinds.check_list("g/v1", "OxenList").unwrap();
        assert!(kinds.check_object("g/v1", "Ox").is_err());
        kinds.check_object("g/v1", "Ox").unwrap();
        kinds.check_list("g/v1", "OxenList").unwrap();
        kinds.check_object("g/v1", "Ox").unwrap();
        kinds.check_list("g/v1", "Herd").unwrap_err();
        kinds.check_list("g/v1", "Herd").unwrap();
    }

    #[test]
    fn items_override_the_kind_of_their_list() {
        let mut kinds = Kinds::new();
        for _ in 0..2 {
            kinds.check_list("g/v1", "OxenList").unwrap();
            kinds.check_item("", "").unwrap();
            kinds.check_item("g/v1", "Ox").unwrap();
            assert!(kinds.check_item("g/v1", "Cow").is_err());
            assert!(kinds.check_object("g/v1", "Cow").is_err());
        }
    }

    #[test]
    fn a_misrouted_first_list_does_not_lock_the_right_one_out() {
        let mut kinds = Kinds::new();
        kinds.check_list("v1", "ServiceList").unwrap();
        assert!(kinds.check_list("v1", "PodList").is_err());
        kinds.check_list("v1", "PodList").unwrap();
        kinds.check_object("v1", "Pod").unwrap();
    }

    #[test]
    fn metadata_and_whole_objects_may_mix() {
        let mut kinds = Kinds::new();
        kinds
            .check_list("meta.k8s.io/v1", "PartialObjectMetadataList")
            .unwrap();
        kinds.check_object("v1", "Pod").unwrap();
        kinds
            .check_object("meta.k8s.io/v1", "PartialObjectMetadata")
            .unwrap();
        kinds.check_list("v1", "PodList").unwrap();
    }
}
