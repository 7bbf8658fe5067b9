//! Type check of an applied configuration, whose error texts differ from those of other writes.
//!
//! Source: structured-merge-diff `typed/validate.go`; recordings of kube-apiserver.

use std::collections::BTreeSet;

use apimachinery::go_text;
use serde_json::Value;

use super::types::{Atom, ListType, MapType, Scalar, Type};
use crate::schema::Form;

/// Checks the types of a value. `repeats`: whether items of a list can share their element.
///
/// # Errors
///
/// All type errors, in order: `.spec.replicas: expected numeric (int or float), got string`.
pub(super) fn check(of: Type<'_>, value: &Value, repeats: bool) -> Result<(), Vec<String>> {
    let mut check = Check {
        repeats,
        path: String::new(),
        errors: Vec::new(),
    };
    check.value(of, value);
    if check.errors.is_empty() {
        Ok(())
    } else {
        Err(check.errors)
    }
}

/// The errors as one text.
pub(super) fn joined(errors: &[String]) -> String {
    match errors {
        [one] => one.clone(),
        several => format!("errors:\n  {}", several.join("\n  ")),
    }
}

struct Check {
    repeats: bool,
    /// Path of the checked value.
    path: String,
    errors: Vec<String>,
}

impl Check {
    fn error(&mut self, why: &str) {
        let at = &self.path;
        self.errors.push(match at.as_str() {
            "" => why.to_owned(),
            at => format!("{at}: {why}"),
        });
    }

    fn value(&mut self, of: Type<'_>, value: &Value) {
        match of.atom_for(Some(value)) {
            Atom { map: Some(map), .. } => match value {
                Value::Null => {}
                Value::Object(_) => self.entries(&map, value),
                Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                    self.error(&format!("expected map, got &{{{}}}", go_text::value(value)));
                }
            },
            Atom {
                scalar: Some(scalar), ..
            } => {
                if let Some(why) = misfit(scalar, value) {
                    self.error(&why);
                }
            }
            Atom { list: Some(list), .. } => match value {
                Value::Null => {}
                Value::Array(items) => self.items(&list, items),
                Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
                    self.error(&format!("expected list, got &{{{}}}", go_text::value(value)));
                }
            },
            Atom { .. } => self.error("schema error: invalid atom: inlined"),
        }
    }

    /// A field that is not declared ends the check of the object.
    fn entries(&mut self, map: &MapType<'_>, value: &Value) {
        for (name, value) in value.as_object().into_iter().flatten() {
            let length = self.path.len();
            self.path.push('.');
            self.path.push_str(name);
            let of = map.entry(name);
            let is_declared = !matches!(of, Type::Undeclared);
            if is_declared {
                self.value(of, value);
            } else {
                self.error("field not declared in schema");
            }
            self.path.truncate(length);
            if !is_declared {
                return;
            }
        }
    }

    fn items(&mut self, list: &ListType<'_>, items: &[Value]) {
        let mut seen = BTreeSet::new();
        for (nth, item) in items.iter().enumerate() {
            let length = self.path.len();
            if list.is_atomic() {
                self.path.push_str(&format!("[{nth}]"));
            } else {
                let element = match list.element(item) {
                    Ok(element) => element,
                    Err(why) => return self.error(&format!("element {nth}: {why}")),
                };
                let shown = element.to_string();
                if !self.repeats && !seen.insert(element) {
                    self.error(&format!("duplicate entries for key {shown}"));
                }
                self.path.push_str(&shown);
            }
            self.value(list.items, item);
            self.path.truncate(length);
        }
    }
}

fn misfit(scalar: Scalar, value: &Value) -> Option<String> {
    let shown = || go_text::value(value);
    let inner = || format!("&value.valueUnstructured{{Value:{}}}", shown());
    match (scalar, value) {
        (_, Value::Null)
        | (Scalar::Numeric, Value::Number(_))
        | (Scalar::Text, Value::String(_))
        | (Scalar::Boolean, Value::Bool(_))
        | (Scalar::Untyped, Value::Number(_) | Value::String(_) | Value::Bool(_)) => None,
        (Scalar::Text, _) => Some(format!("expected string, got {}", inner())),
        (Scalar::Boolean, _) => Some(format!("expected boolean, got {}", inner())),
        (Scalar::Untyped, _) => Some(format!("expected any scalar, got &{{{}}}", shown())),
        (Scalar::Numeric, _) => {
            let what = match value {
                Value::String(_) => "string".to_owned(),
                Value::Bool(_) => "bool".to_owned(),
                Value::Null | Value::Number(_) | Value::Array(_) | Value::Object(_) => inner(),
            };
            Some(format!("expected numeric (int or float), got {what}"))
        }
    }
}

/// Returns the paths of the parts of a value that can only be replaced as a whole: `.spec.selector`.
pub(super) fn whole_parts(of: Type<'_>, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    collect_whole(of, value, "", &mut found);
    found
}

fn collect_whole(of: Type<'_>, value: &Value, path: &str, found: &mut Vec<String>) {
    // What has no schema has no parts that are known to be atomic.
    let is_known = matches!(of, Type::Of { schema, .. } if schema.form() != Form::Any);
    match (of.atom_for(Some(value)), value) {
        (Atom { map: Some(map), .. }, Value::Object(entries)) => {
            if map.is_atomic && is_known && !path.is_empty() {
                found.push(path.to_owned());
            }
            for (name, value) in entries {
                if let Some(of) = map.field(name) {
                    collect_whole(of, value, &format!("{path}.{name}"), found);
                }
            }
        }
        (Atom { list: Some(list), .. }, Value::Array(items)) => {
            if list.is_atomic() && is_known && !path.is_empty() {
                found.push(path.to_owned());
            }
            for (nth, item) in items.iter().enumerate() {
                collect_whole(list.items, item, &format!("{path}[{nth}]"), found);
            }
        }
        (_, _) => {}
    }
}
