//! Context of a validation rule: a struct in an object, and what the rule can read around it.
//!
//! It must not know the rules.

use apimachinery::Version;
use serde_json::Value;

use super::indexes::Indexes;
use crate::error_list::ErrorList;
use crate::fields::{below, list};
use crate::types::Struct;

/// Validates a struct and everything below it.
pub(super) type Walk = fn(&'static Struct, &FieldContext<'_>, &mut ErrorList);

/// A struct in an object.
#[derive(Debug, Clone, Copy)]
pub(super) struct FieldContext<'a> {
    pub(super) value: &'a Value,
    /// Field path, as in error messages.
    pub(super) path: &'a str,
    /// The list that contains it, and its index in it; an empty list if none does.
    pub(super) list: &'a [Value],
    pub(super) nth: usize,
    /// Indexes of the lists of the object.
    pub(super) indexes: &'a Indexes,
    /// The pod spec that contains it.
    pub(super) pod: &'a Value,
    /// The whole object, and its struct.
    pub(super) root: &'a Value,
    pub(super) kind: &'static str,
    pub(super) version: Version,
    /// Validates a struct and everything below it: `rules::check`, which its callees cannot import.
    pub(super) walk: Walk,
}

impl<'a> FieldContext<'a> {
    /// Returns the context of an object.
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

    /// Sets the function that [`Self::check`] calls; without it nothing is checked.
    pub(super) fn with_walk(self, walk: Walk) -> Self {
        Self { walk, ..self }
    }

    /// Validates this struct and everything below it.
    pub(super) fn check(&self, known: &'static Struct, errors: &mut ErrorList) {
        (self.walk)(known, self, errors);
    }

    /// Returns the path of one of its fields.
    pub(super) fn at(&self, field: &str) -> String {
        if self.path.is_empty() {
            field.to_owned()
        } else {
            format!("{}.{field}", self.path)
        }
    }

    /// Returns a string field; empty if there is none.
    pub(super) fn text(&self, field: &str) -> &'a str {
        below(self.value, field).as_str().unwrap_or_default()
    }

    /// Returns whether an earlier item of the list has the same values in `fields`.
    pub(super) fn repeats(&self, fields: &[&str]) -> bool {
        self.of_its_kind(fields)
            .is_some_and(|(first, _)| first < self.nth)
    }

    /// Returns whether a later item of the list has the same values in `fields`.
    pub(super) fn is_repeated(&self, fields: &[&str]) -> bool {
        self.of_its_kind(fields).is_some_and(|(_, last)| last > self.nth)
    }

    fn of_its_kind(&self, fields: &[&str]) -> Option<(usize, usize)> {
        let own = fields.iter().map(|field| below(self.value, field).clone());
        self.indexes.find(self.list, fields, own.collect())
    }

    /// Returns the indices of the first and last item of `list` that has this value in `field`.
    pub(super) fn find(&self, list: &[Value], field: &str, value: &Value) -> Option<(usize, usize)> {
        self.indexes.find(list, &[field], vec![value.clone()])
    }

    /// Returns whether an item of `list` has this value in `field`.
    pub(super) fn has(&self, list: &[Value], field: &str, value: &Value) -> bool {
        self.find(list, field, value).is_some()
    }

    /// Returns a list field; empty if there is none.
    pub(super) fn list(&self, field: &str) -> &'a [Value] {
        list(self.value, field)
    }
}
