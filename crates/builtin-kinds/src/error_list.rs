//! What is found to be wrong with an object, in the words of the server: the constructors of its field errors.
//!
//! Source: apimachinery `util/validation/field/errors.go`.

use std::collections::HashSet;

use apimachinery::encode::encode_json;
use apimachinery::go_text;
use apimachinery::status::Cause;
use serde_json::Value;

/// Faults, in the order they are found.
#[derive(Debug, Default)]
pub struct ErrorList {
    causes: Vec<Cause>,
    bytes: usize,
}

/// Text that faults have together; what is found beyond it is not told. As much as a request can have.
const TEXT_MAX: usize = apimachinery::BODY_BYTES_MAX;

impl ErrorList {
    /// All of them.
    pub fn into_causes(self) -> Vec<Cause> {
        self.causes
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.causes.len()
    }

    /// The server could not find out. `why`: in its words.
    pub(crate) fn internal(&mut self, field: &str, why: &str) {
        self.push(Cause {
            reason: "InternalError".to_owned(),
            message: format!("Internal error: {why}"),
            field: field.to_owned(),
        });
    }

    /// The field says nothing, and must. `why` may be empty.
    pub fn required(&mut self, field: &str, why: &str) {
        self.add("Required", field, with_reason("Required value", why));
    }

    /// The field has a value it must not have. `why` may be empty.
    pub fn invalid(&mut self, field: &str, value: &Value, why: &str) {
        if !self.is_full() {
            self.invalid_as(field, &shown(value), why);
        }
    }

    /// The same, of a value that reads so.
    pub(crate) fn invalid_as(&mut self, field: &str, shown: &str, why: &str) {
        let what = format!("Invalid value: {shown}");
        self.add("Invalid", field, with_reason(&what, why));
    }

    /// The field must not be there, or not change.
    pub(crate) fn forbidden(&mut self, field: &str, why: &str) {
        self.add("Forbidden", field, format!("Forbidden: {why}"));
    }

    /// The field has none of the values there are.
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

    /// Another item has it already. `why` may be empty.
    pub(crate) fn duplicate(&mut self, field: &str, value: &Value, why: &str) {
        if self.is_full() {
            return;
        }
        let what = format!("Duplicate value: {}", shown(value));
        self.add("Duplicate", field, with_reason(&what, why));
    }

    /// The field names what is not there.
    pub(crate) fn not_found(&mut self, field: &str, value: &Value) {
        self.add("NotFound", field, format!("Not found: {}", shown(value)));
    }

    /// The field has more than so many bytes.
    pub(crate) fn too_long(&mut self, field: &str, longest: usize) {
        self.add(
            "TooLong",
            field,
            format!("Too long: may not be more than {longest} bytes"),
        );
    }

    pub(crate) fn extend(&mut self, more: Vec<Cause>) {
        for cause in more {
            self.push(cause);
        }
    }

    /// The same for those that were not there before.
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

    fn is_full(&self) -> bool {
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
