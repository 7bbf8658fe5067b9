//! Where a rule is asked: a struct somewhere in an object, with what its rule may look at.
//!
//! It must not know the rules.

use apimachinery::Version;
use serde_json::Value;

use super::indexes::Indexes;
use crate::error_list::ErrorList;
use crate::fields::{below, list};
use crate::types::Struct;

/// Checks a struct and everything below it.
pub(super) type Walk = fn(&'static Struct, &Place<'_>, &mut ErrorList);

/// A struct somewhere in an object.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) value: &'a Value,
    /// Where it is, as refusals say it.
    pub(super) path: &'a str,
    /// The list it is in, and which of its items it is; empty where it is in none.
    pub(super) list: &'a [Value],
    pub(super) nth: usize,
    /// What was asked of the lists of the object.
    pub(super) indexes: &'a Indexes,
    /// The spec of the pod it belongs to.
    pub(super) pod: &'a Value,
    /// The whole object, and its struct.
    pub(super) root: &'a Value,
    pub(super) kind: &'static str,
    pub(super) version: Version,
    /// Checks a struct and everything below it: `rules::check`, which must not be imported by what it calls.
    pub(super) walk: Walk,
}

impl<'a> Place<'a> {
    /// An object.
    pub(super) fn of(object: &'a Value, kind: &'static str, version: Version, indexes: &'a Indexes) -> Self {
        Self {
            value: object,
            path: "",
            list: &[],
            nth: 0,
            indexes,
            pod: &Value::Null,
            root: object,
            kind,
            version,
            walk: |_, _, _| {},
        }
    }

    /// With rules that [`Self::check`] asks; without them it checks nothing.
    pub(super) fn walked_by(self, walk: Walk) -> Self {
        Self { walk, ..self }
    }

    /// Checks this struct and everything below it.
    pub(super) fn check(&self, known: &'static Struct, found: &mut ErrorList) {
        (self.walk)(known, self, found);
    }

    /// The path of a field of it.
    pub(super) fn at(&self, field: &str) -> String {
        if self.path.is_empty() {
            field.to_owned()
        } else {
            format!("{}.{field}", self.path)
        }
    }

    /// A text in it; empty where there is none.
    pub(super) fn text(&self, field: &str) -> &'a str {
        below(self.value, field).as_str().unwrap_or_default()
    }

    /// Does an item before it have the same in these fields?
    pub(super) fn repeats(&self, fields: &[&str]) -> bool {
        self.of_its_kind(fields)
            .is_some_and(|(first, _)| first < self.nth)
    }

    /// Does an item behind it?
    pub(super) fn is_repeated(&self, fields: &[&str]) -> bool {
        self.of_its_kind(fields).is_some_and(|(_, last)| last > self.nth)
    }

    fn of_its_kind(&self, fields: &[&str]) -> Option<(usize, usize)> {
        let own = fields.iter().map(|field| below(self.value, field).clone());
        self.indexes.find(self.list, fields, own.collect())
    }

    /// Has an item of the list this value in its field?
    pub(super) fn has(&self, list: &[Value], field: &str, value: &Value) -> bool {
        self.indexes.find(list, &[field], vec![value.clone()]).is_some()
    }

    /// A list in it; empty where there is none.
    pub(super) fn list(&self, field: &str) -> &'a [Value] {
        list(self.value, field)
    }
}
