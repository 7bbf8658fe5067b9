//! Validation of an object by its schema, with the messages of the server.
//!
//! Rules in CEL (`x-kubernetes-validations`) are evaluated in `rules`, unless an error blocks them. Unchanged parts
//! are not validated again ("validation ratcheting").
//!
//! Source: kube-openapi `validation/validate` (order and texts of the rules), apiextensions
//! `apiserver/validation/validation.go` (how they become causes) and `apiserver/schema/listtype/validation.go`.

use std::collections::{HashMap, HashSet};

use apimachinery::encode::encode_json;
use apimachinery::status::Cause;
use apimachinery::{BODY_BYTES_MAX, Version, go_text};
use serde_json::Value;

use super::prune::child;
use super::structural::{Additional, List, Schema, Type};
use super::{embedded, formats};

/// Message of a cause for rules in CEL that were not evaluated.
const UNCHECKED: &str = "Invalid value: null: some validation rules were not checked because the object was invalid; \
                         correct the existing errors to complete validation";

/// Returns the validation errors of `value`, which replaces `old`. `part` is its field in the object: `status`, or empty for
/// the whole object; fields in messages are relative to it.
pub(super) fn validate(
    schema: &Schema,
    value: &Value,
    old: Option<&Value>,
    part: &str,
    version: Version,
) -> Vec<Cause> {
    let mut found = Errors {
        part: part.to_owned(),
        ranges: version >= Version::V1_36,
        as_written: false,
        causes: Vec::new(),
        bytes: 0,
        bytes_max: BODY_BYTES_MAX,
    };
    found.value(schema, value, old, "");
    if part.is_empty() {
        for cause in embedded::validate(value, schema, false, version) {
            found.push(cause);
        }
    }
    found.lists(schema, value, "");
    if schema.has_cel && found.causes.iter().any(blocks) {
        found.causes.push(Cause {
            reason: "FieldValueInvalid".to_owned(),
            message: UNCHECKED.to_owned(),
            field: NO_FIELD.to_owned(),
        });
    }
    found.causes
}

/// Returns the validation errors of a default. That items of a list are unique is not checked.
pub(super) fn validate_default(schema: &Schema, value: &Value, version: Version) -> Vec<Cause> {
    let mut found = Errors {
        part: String::new(),
        ranges: version >= Version::V1_36,
        as_written: true,
        causes: Vec::new(),
        bytes: 0,
        bytes_max: BODY_BYTES_MAX,
    };
    found.value(schema, value, None, "");
    found.causes
}

/// Whether rules in CEL are not evaluated beside this error.
pub(super) fn blocks(cause: &Cause) -> bool {
    matches!(
        cause.reason.as_str(),
        "FieldValueRequired"
            | "FieldValueTypeInvalid"
            | "FieldValueTooLong"
            | "FieldValueTooMany"
            | "FieldValueNotSupported"
    )
}

/// The keys of an item of a list of type `map`, as JSON.
fn keys_of(list: &List, item: &Value) -> Option<Vec<String>> {
    let List::Map(keys) = list else { return None };
    Some(
        { keys.iter() }
            .map(|key| item[key.as_str()].to_string())
            .collect(),
    )
}

/// The items of an old list of type `map`, by their keys; no other list has items that correspond to new ones.
fn by_keys<'a>(list: &List, old: Option<&'a Value>) -> HashMap<Vec<String>, &'a Value> {
    let items = old.and_then(Value::as_array).into_iter().flatten();
    items
        .filter_map(|item| Some((keys_of(list, item)?, item)))
        .collect()
}

/// Go's text for an empty field path.
const NO_FIELD: &str = "<nil>";

struct Errors {
    part: String,
    /// Whether integers are checked against the range of their format.
    ranges: bool,
    /// Whether formats count that are not known, and are left out of the schemas of objects.
    as_written: bool,
    causes: Vec<Cause>,
    /// Length of the messages so far, and its limit: with a limit of 0 the first error ends the search.
    bytes: usize,
    bytes_max: usize,
}

impl Errors {
    fn push(&mut self, cause: Cause) {
        if !self.is_full() {
            self.bytes += cause.message.len() + cause.field.len();
            self.causes.push(cause);
        }
    }

    fn is_full(&self) -> bool {
        self.bytes > self.bytes_max
    }

    fn add(&mut self, reason: &str, message: String, path: &str) {
        let field = match (self.part.as_str(), path.strip_prefix('.').unwrap_or(path)) {
            ("", "") => NO_FIELD.to_owned(),
            (part, "") => part.to_owned(),
            ("", path) => path.to_owned(),
            (part, path) => format!("{part}.{path}"),
        };
        self.push(Cause {
            reason: reason.to_owned(),
            message,
            field,
        });
    }

    fn invalid(&mut self, shown: &str, why: &str, path: &str) {
        let message = format!("Invalid value: {shown}: {path} in body {why}");
        self.add("FieldValueInvalid", message, path);
    }

    fn invalid_without_field(&mut self, path: &str, why: &str) {
        self.push(Cause {
            reason: "FieldValueInvalid".to_owned(),
            message: format!("Invalid value: \"\": {} {why}", go_text::quote(path)),
            field: NO_FIELD.to_owned(),
        });
    }

    fn too_many(&mut self, count: usize, max: u64, path: &str) {
        let items = if max == 1 { "item" } else { "items" };
        let message = format!("Too many: {count}: must have at most {max} {items}");
        self.add("FieldValueTooMany", message, path);
    }

    fn value(&mut self, schema: &Schema, value: &Value, old: Option<&Value>, path: &str) {
        if self.is_full() || old == Some(value) {
            return;
        }
        let misfit = misfit(schema, value, self.as_written);
        if let Some((wanted, found)) = misfit.filter(|_| !(value.is_null() && schema.nullable)) {
            self.add(
                "FieldValueTypeInvalid",
                format!("Invalid value: \"{found}\": {path} in body must be of type {wanted}: \"{found}\""),
                path,
            );
        }
        // Of null, even if it is allowed, only type and enum are validated.
        if !value.is_null() {
            self.combinations(schema, value, path);
        }
        match value {
            Value::String(text) => self.text(schema, text, path),
            Value::Number(number) => self.number(schema, number, path),
            Value::Array(items) => self.items(schema, items, old, path),
            Value::Object(_) | Value::Bool(_) | Value::Null => {}
        }
        self.listed(schema, value, path);
        if value.is_object() {
            self.fields(schema, value, old, path);
        }
    }

    /// `enum`.
    fn listed(&mut self, schema: &Schema, value: &Value, path: &str) {
        let rules = &schema.rules;
        if rules.allowed.is_empty() || is_listed(&rules.is_allowed, value) {
            return;
        }
        let allowed: Vec<String> = rules
            .allowed
            .iter()
            .map(|allowed| match allowed.as_str() {
                Some(text) => go_text::quote(text),
                None => go_text::quote(&allowed.to_string()),
            })
            .collect();
        let message = format!(
            "Unsupported value: {}: supported values: {}",
            shown(value),
            allowed.join(", ")
        );
        self.add("FieldValueNotSupported", message, path);
    }

    fn text(&mut self, schema: &Schema, text: &str, path: &str) {
        let rules = &schema.rules;
        let length = text.chars().count() as u64;
        if let Some(max) = rules.length.max.filter(|max| length > *max) {
            let bytes = if max == 1 { "byte" } else { "bytes" };
            let message = format!("Too long: may not be more than {max} {bytes}");
            self.add("FieldValueTooLong", message, path);
        } else if let Some(min) = rules.length.min.filter(|min| length < *min) {
            let why = format!("should be at least {min} chars long");
            self.invalid(&go_text::quote(text), &why, path);
        } else if let Some(pattern) = rules.pattern.as_ref().filter(|pattern| !pattern.is_match(text)) {
            let why = format!("should match '{}'", pattern.text());
            self.invalid(&go_text::quote(text), &why, path);
        }
        if !formats::fits(&rules.format, text) {
            let quoted = go_text::quote(text);
            self.add(
                "FieldValueTypeInvalid",
                format!(
                    "Invalid value: {quoted}: {path} in body must be of type {}: {quoted}",
                    rules.format
                ),
                path,
            );
        }
    }

    fn number(&mut self, schema: &Schema, number: &serde_json::Number, path: &str) {
        let rules = &schema.rules;
        let (Some(value), text) = (number.as_f64(), number.to_string()) else {
            return;
        };
        if self.ranges && schema.kind == Type::Integer && !in_range(number, &rules.format) {
            let format = match rules.format.as_str() {
                "" => "(default format)".to_owned(),
                format => format!("with format {format}"),
            };
            self.push(Cause {
                reason: "FieldValueInvalid".to_owned(),
                message: format!(
                    "Invalid value: \"\": Checked value must be of type integer {format} in {path}"
                ),
                field: NO_FIELD.to_owned(),
            });
        }
        if let Some(factor) = rules.multiple_of.filter(|factor| (value / factor).fract() != 0.0) {
            self.invalid(&text, &format!("should be a multiple of {factor}"), path);
        }
        if let Some(max) = rules.maximum {
            if rules.below_maximum && value >= max {
                self.invalid(&text, &format!("should be less than {max}"), path);
            } else if value > max {
                self.invalid(&text, &format!("should be less than or equal to {max}"), path);
            }
        }
        if let Some(min) = rules.minimum {
            if rules.above_minimum && value <= min {
                self.invalid(&text, &format!("should be greater than {min}"), path);
            } else if value < min {
                self.invalid(&text, &format!("should be greater than or equal to {min}"), path);
            }
        }
    }

    fn items(&mut self, schema: &Schema, items: &[Value], old: Option<&Value>, path: &str) {
        if let Some(of) = &schema.items {
            let known = by_keys(&schema.list, old);
            for (index, item) in items.iter().enumerate() {
                let old = keys_of(&schema.list, item).and_then(|keys| known.get(&keys).copied());
                self.value(of, item, old, &format!("{path}[{index}]"));
            }
        }
        let (count, bounds) = (items.len(), schema.rules.item_count);
        if let Some(min) = bounds.min.filter(|min| (count as u64) < *min) {
            self.invalid(
                &count.to_string(),
                &format!("should have at least {min} items"),
                path,
            );
        }
        if let Some(max) = bounds.max.filter(|max| count as u64 > *max) {
            self.too_many(count, max, path);
        }
        let mut known = HashSet::new();
        if schema.rules.unique_items && !items.iter().all(|item| known.insert(item)) {
            self.invalid("\"\"", "shouldn't contain duplicates", path);
        }
    }

    fn fields(&mut self, schema: &Schema, value: &Value, old: Option<&Value>, path: &str) {
        let Some(fields) = value.as_object() else { return };
        let (count, bounds) = (fields.len(), schema.rules.property_count);
        if let Some(min) = bounds.min.filter(|min| (count as u64) < *min) {
            self.invalid(
                &count.to_string(),
                &format!("should have at least {min} properties"),
                path,
            );
        }
        if let Some(max) = bounds.max.filter(|max| count as u64 > *max) {
            self.too_many(count, max, path);
        }
        for name in &schema.rules.required {
            if !fields.contains_key(name) {
                self.add(
                    "FieldValueRequired",
                    "Required value".to_owned(),
                    &child(path, name),
                );
            }
        }
        for (name, value) in fields {
            let old = old.and_then(|old| old.get(name));
            match (schema.properties.get(name), &schema.additional) {
                (Some(schema), _) => self.value(schema, value, old, &child(path, name)),
                (None, Additional::Schema(schema)) => {
                    self.value(schema, value, old, &format!("{path}.{name}"));
                }
                (None, Additional::Forbidden) => {
                    let quoted = go_text::quote(name);
                    self.add(
                        "FieldValueInvalid",
                        format!("Invalid value: {quoted}: {path}.{name} in body is a forbidden property"),
                        path,
                    );
                }
                (None, Additional::Any | Additional::None) => {}
            }
        }
    }

    /// `allOf`, `anyOf`, `oneOf` and `not`.
    fn combinations(&mut self, schema: &Schema, value: &Value, path: &str) {
        let rules = &schema.rules;
        // If no alternative matches, only the errors of the first are reported.
        let fits = |schema: &Schema| self.errors_of(schema, value, path, 0).is_empty();
        let any_fits = rules.any_of.is_empty() || rules.any_of.iter().any(fits);
        let fitting = rules.one_of.iter().filter(|schema| fits(schema)).count();
        if !any_fits {
            self.invalid_without_field(path, "must validate at least one schema (anyOf)");
            self.push_first(&rules.any_of, value, path);
        }
        match fitting {
            _ if rules.one_of.is_empty() => {}
            0 => {
                self.invalid_without_field(
                    path,
                    "must validate one and only one schema (oneOf). Found none valid",
                );
                self.push_first(&rules.one_of, value, path);
            }
            1 => {}
            several => {
                let why = format!(
                    "must validate one and only one schema (oneOf). Found {several} valid alternatives"
                );
                self.invalid_without_field(path, &why);
            }
        }
        let mut failing = 0;
        for schema in &rules.all_of {
            let causes = self.errors_of(schema, value, path, self.bytes_max);
            failing += usize::from(!causes.is_empty());
            causes.into_iter().for_each(|cause| self.push(cause));
        }
        if failing > 0 {
            let none = if failing == rules.all_of.len() {
                ". None validated"
            } else {
                ""
            };
            self.invalid_without_field(path, &format!("must validate all the schemas (allOf){none}"));
        }
        if let Some(not) = &rules.not
            && self.errors_of(not, value, path, 0).is_empty()
        {
            self.invalid_without_field(path, "must not validate the schema (not)");
        }
    }

    fn push_first(&mut self, schemas: &[Schema], value: &Value, path: &str) {
        if let Some(first) = schemas.first().filter(|_| !self.is_full()) {
            let causes = self.errors_of(first, value, path, self.bytes_max);
            causes.into_iter().for_each(|cause| self.push(cause));
        }
    }

    fn errors_of(&self, schema: &Schema, value: &Value, path: &str, bytes_max: usize) -> Vec<Cause> {
        let mut errors = Self {
            part: self.part.clone(),
            ranges: self.ranges,
            as_written: self.as_written,
            causes: Vec::new(),
            bytes: 0,
            bytes_max,
        };
        errors.value(schema, value, None, path);
        errors.causes
    }

    /// Checks that lists of type `set` and `map` have no duplicates.
    fn lists(&mut self, schema: &Schema, value: &Value, path: &str) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    match (schema.properties.get(name), &schema.additional) {
                        (Some(schema), _) => self.lists(schema, value, &child(path, name)),
                        (None, Additional::Schema(schema)) => self.lists(schema, value, &child(path, name)),
                        (None, Additional::Any | Additional::Forbidden | Additional::None) => {}
                    }
                }
            }
            Value::Array(items) => {
                let key = |item: &Value| match &schema.list {
                    List::Atomic => None,
                    List::Set => Some(item.clone()),
                    List::Map(names) => Some(
                        names
                            .iter()
                            .filter_map(|name| Some((name.clone(), item.get(name)?.clone())))
                            .collect(),
                    ),
                };
                let keys: Vec<Option<Value>> = items.iter().map(key).collect();
                let mut known = HashSet::new();
                for (at, key) in keys.iter().enumerate() {
                    if let Some(key) = key.as_ref().filter(|key| !known.insert(*key)) {
                        let message = format!("Duplicate value: {}", shown(key));
                        self.add("FieldValueDuplicate", message, &format!("{path}[{at}]"));
                    }
                }
                if let Some(schema) = &schema.items {
                    for (index, item) in items.iter().enumerate() {
                        self.lists(schema, item, &format!("{path}[{index}]"));
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

/// Returns the type or format that a value does not have, and the one that it has; `None`: it fits. `as_written`: whether formats
/// that are not known count too.
///
/// Source: kube-openapi `validation/validate/type.go`.
fn misfit<'s>(schema: &'s Schema, value: &Value, as_written: bool) -> Option<(&'s str, &'static str)> {
    let wanted = match &schema.unknown_type {
        Some(unknown) => &**unknown,
        None => schema.kind.word(),
    };
    let format = Some(schema.rules.format.as_str());
    let format = format.filter(|format| as_written || formats::is_known(schema.kind, format));
    let format = format.unwrap_or_default();
    if wanted.is_empty() && format.is_empty() {
        return None;
    }
    let (found, found_format) = match value {
        Value::Null => return (!wanted.is_empty() && wanted != "null").then_some((wanted, "null")),
        Value::Number(number) if number.is_f64() => ("number", "float64"),
        Value::Number(_) => ("integer", "int64"),
        Value::Bool(_) => ("boolean", ""),
        Value::String(_) => ("string", ""),
        Value::Array(_) => ("array", ""),
        Value::Object(_) => ("object", ""),
    };
    if schema.unknown_type.is_none() && !wanted.is_empty() && has_type(schema.kind, value) {
        return None;
    }
    let is_numeric = matches!(schema.kind, Type::Integer | Type::Number | Type::IntegerOrText);
    let is_text = matches!(value, Value::String(_) | Value::Array(_));
    match (format, is_text) {
        ("", _) => Some((wanted, found)),
        (_, true) => is_numeric.then_some((wanted, found)),
        (format, false) if format != found_format => Some((format, found_format)),
        (_, false) => Some((wanted, found)),
    }
}

/// Returns whether a value is one of an enum, if Go converts it to the type of that: 1.5 is 1, 97 is "a", and nothing is null.
///
/// Source: kube-openapi `validation/validate/validator.go` (`basicCommonValidator`).
fn is_listed(allowed: &HashSet<Value>, value: &Value) -> bool {
    let Value::Number(number) = value else {
        return !value.is_null() && allowed.contains(value);
    };
    let converted = match (number.as_i64(), number.as_f64()) {
        (Some(whole), float) => {
            let letter = u32::try_from(whole).ok().and_then(char::from_u32);
            [
                Some(Value::from(float)),
                Some(Value::from(
                    letter.unwrap_or(char::REPLACEMENT_CHARACTER).to_string(),
                )),
            ]
        }
        #[expect(clippy::cast_possible_truncation, reason = "as in Go")]
        (None, Some(float)) => [Some(Value::from(float as i64)), None],
        (None, None) => [None, None],
    };
    allowed.contains(value) || converted.iter().flatten().any(|value| allowed.contains(value))
}

fn has_type(wanted: Type, value: &Value) -> bool {
    let integral = value.as_f64().is_some_and(|number| number.fract() == 0.0);
    match wanted {
        Type::Any => true,
        Type::Object => value.is_object(),
        Type::Array => value.is_array(),
        Type::Text => value.is_string(),
        Type::Integer => integral,
        Type::Number => value.is_number(),
        Type::Boolean => value.is_boolean(),
        Type::IntegerOrText => value.is_string() || integral,
    }
}

/// Returns whether it is an integer in the range of its format.
fn in_range(number: &serde_json::Number, format: &str) -> bool {
    match (number.as_i64(), format) {
        (Some(number), "int32") => i32::try_from(number).is_ok(),
        (Some(_), _) => true,
        (None, _) => number.as_f64().is_some_and(|number| number.fract() == 0.0),
    }
}

fn shown(value: &Value) -> String {
    match value.as_str() {
        Some(text) => go_text::quote(text),
        None => String::from_utf8_lossy(&encode_json(value)).into_owned(),
    }
}
