//! Validation errors of an object, with the texts of kube-apiserver.
//!
//! Source: apimachinery `util/validation/field/errors.go`.

use std::collections::HashSet;

use apimachinery::encode::encode_json;
use apimachinery::go_text;
use apimachinery::status::Cause;
use serde_json::Value;

/// Validation errors, in the order they are found (`field.ErrorList`).
#[derive(Debug, Default)]
pub struct ErrorList {
    causes: Vec<Cause>,
    bytes: usize,
}

/// Maximum length of all errors together; further errors are dropped. Equal to the maximum length of a request.
const TEXT_MAX: usize = apimachinery::BODY_BYTES_MAX;

impl ErrorList {
    /// Returns all errors.
    pub fn into_causes(self) -> Vec<Cause> {
        self.causes
    }

    /// Returns the number of errors.
    pub(crate) fn len(&self) -> usize {
        self.causes.len()
    }

    /// Returns the errors from the `first`th on.
    pub(crate) fn since(&self, first: usize) -> &[Cause] {
        self.causes.get(first..).unwrap_or_default()
    }

    /// Adds an internal error; `why` is its message.
    pub(crate) fn internal(&mut self, field: &str, why: &str) {
        self.push(Cause {
            reason: "InternalError".to_owned(),
            message: format!("Internal error: {why}"),
            field: field.to_owned(),
        });
    }

    /// Adds an error for a missing value. `why` may be empty.
    pub fn required(&mut self, field: &str, why: &str) {
        self.add("Required", field, with_reason("Required value", why));
    }

    /// Adds an error for an invalid value. `why` may be empty.
    pub fn invalid(&mut self, field: &str, value: &Value, why: &str) {
        if !self.is_full() {
            self.invalid_as(field, &shown(value), why);
        }
    }

    /// Adds an error for an invalid value that is printed as `shown`.
    pub(crate) fn invalid_as(&mut self, field: &str, shown: &str, why: &str) {
        let what = format!("Invalid value: {shown}");
        self.add("Invalid", field, with_reason(&what, why));
    }

    /// Adds an error for a field that must not be set, or must not change.
    pub(crate) fn forbidden(&mut self, field: &str, why: &str) {
        self.add("Forbidden", field, format!("Forbidden: {why}"));
    }

    /// Adds an error for a value that is not among `known`.
    pub fn unsupported(&mut self, field: &str, value: &Value, known: &[&str]) {
        if self.is_full() {
            return;
        }
        let known: Vec<String> = known.iter().map(|word| go_text::quote(word)).collect();
        let message = format!(
            "Unsupported value: {}: supported values: {}",
            shown(value),
            known.join(", ")
        );
        self.add("NotSupported", field, message);
    }

    /// Adds an error for a value that another item has. `why` may be empty.
    pub(crate) fn duplicate(&mut self, field: &str, value: &Value, why: &str) {
        if self.is_full() {
            return;
        }
        let what = format!("Duplicate value: {}", shown(value));
        self.add("Duplicate", field, with_reason(&what, why));
    }

    /// Adds an error for a reference to something that does not exist.
    pub(crate) fn not_found(&mut self, field: &str, value: &Value) {
        self.add("NotFound", field, format!("Not found: {}", shown(value)));
    }

    /// Adds an error for a value of more than `longest` bytes.
    pub(crate) fn too_long(&mut self, field: &str, longest: usize) {
        let bytes = if longest == 1 { "byte" } else { "bytes" };
        let message = format!("Too long: may not be more than {longest} {bytes}");
        self.add("TooLong", field, message);
    }

    /// Adds an error for a list of `count` items.
    pub(crate) fn too_many(&mut self, field: &str, count: usize, most: usize) {
        let items = if most == 1 { "item" } else { "items" };
        let message = format!("Too many: {count}: must have at most {most} {items}");
        self.add("TooMany", field, message);
    }

    pub(crate) fn extend(&mut self, more: Vec<Cause>) {
        for cause in more {
            self.push(cause);
        }
    }

    /// Adds those of `more` that are not in `before`.
    pub(crate) fn extend_with_new(&mut self, more: Vec<Cause>, before: &[Cause]) {
        let before: HashSet<&Cause> = before.iter().collect();
        let fresh = more.into_iter().filter(|cause| !before.contains(cause));
        self.extend(fresh.collect());
    }

    fn push(&mut self, cause: Cause) {
        if !self.is_full() {
            self.bytes += cause.message.len() + cause.field.len();
            self.causes.push(cause);
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.bytes > TEXT_MAX
    }

    fn add(&mut self, reason: &str, field: &str, message: String) {
        self.push(Cause {
            reason: format!("FieldValue{reason}"),
            message,
            field: field.to_owned(),
        });
    }
}

fn with_reason(what: &str, why: &str) -> String {
    match why {
        "" => what.to_owned(),
        why => format!("{what}: {why}"),
    }
}

fn shown(value: &Value) -> String {
    match value.as_str() {
        Some(text) => go_text::quote(text),
        None => String::from_utf8_lossy(&encode_json(value)).into_owned(),
    }
}
