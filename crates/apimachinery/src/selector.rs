//! Label selectors and field selectors, with the grammar and error messages of kube-apiserver.
//!
//! Sources: apimachinery `labels/selector.go` and `fields/selector.go`; "Labels and Selectors" and "Field Selectors" in the
//! documentation.

use serde_json::Value;

use super::object::Stored;
use crate::kind::{ApiResource, UnknownField};

mod label_parser;

/// Both selectors of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selector {
    /// `labelSelector`.
    pub labels: LabelSelector,
    /// `fieldSelector`.
    pub fields: FieldSelector,
}

impl Selector {
    /// Returns whether it selects everything.
    pub fn is_empty(&self) -> bool {
        self.labels.requirements.is_empty() && self.fields.is_empty()
    }

    /// Returns whether it selects this version of an object.
    pub fn matches(&self, object: &Stored) -> bool {
        self.labels.matches(object) && self.fields.matches(object)
    }
}

/// Label selector: requirements, all of which must match.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
}

/// One requirement of a label selector.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Requirement {
    key: String,
    operator: Operator,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Operator {
    /// Sorted.
    In(Vec<String>),
    /// Sorted.
    NotIn(Vec<String>),
    Exists,
    Absent,
    Greater(i64),
    Less(i64),
}

impl LabelSelector {
    /// Parses a label selector. Empty text selects everything. The error is the message of kube-apiserver.
    pub fn parse(text: &str) -> Result<Self, String> {
        Ok(Self {
            requirements: label_parser::parse(text)?,
        })
    }

    /// Returns whether all requirements match the labels of an object.
    pub fn matches(&self, object: &Stored) -> bool {
        self.holds(|key| object.label(key))
    }

    /// Returns whether all requirements match `metadata.labels` of an object.
    pub fn matches_labels(&self, labels: &Value) -> bool {
        self.holds(|key| labels.get(key).and_then(Value::as_str))
    }

    fn holds<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.requirements.iter().all(|requirement| {
            let value = label(&requirement.key);
            let has = |values: &[String], value: &str| {
                values.binary_search_by(|other| other.as_str().cmp(value)).is_ok()
            };
            let number = || value.and_then(|value| value.parse::<i64>().ok());
            match &requirement.operator {
                Operator::In(values) => value.is_some_and(|value| has(values, value)),
                Operator::NotIn(values) => value.is_none_or(|value| !has(values, value)),
                Operator::Exists => value.is_some(),
                Operator::Absent => value.is_none(),
                Operator::Greater(bound) => number().is_some_and(|number| number > *bound),
                Operator::Less(bound) => number().is_some_and(|number| number < *bound),
            }
        })
    }
}

/// Field selector: terms, all of which must match.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSelector {
    terms: Vec<Term>,
}

/// One term of a field selector.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Term {
    field: String,
    equal: bool,
    value: String,
}

impl FieldSelector {
    /// Parses a field selector. Empty text selects everything. The error is the message of kube-apiserver.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut terms = Vec::new();
        for part in split_unescaped(text) {
            if part.is_empty() {
                continue;
            }
            let (field, equal, value) = split_term(part)
                .ok_or_else(|| format!("invalid selector: '{text}'; can't understand '{part}'"))?;
            terms.push(Term {
                field: field.to_owned(),
                equal,
                value: unescape(value)?,
            });
        }
        Ok(Self { terms })
    }

    /// Returns whether it selects everything.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Returns the selector for the object of this name, as a deprecated watch path with a name has it.
    pub fn name(name: &str) -> Self {
        Self {
            terms: vec![Term {
                field: "metadata.name".to_owned(),
                equal: true,
                value: name.to_owned(),
            }],
        }
    }

    /// Returns the name if it selects by `metadata.name=`.
    pub fn exact_name(&self) -> Option<&str> {
        self.terms
            .iter()
            .find(|term| term.equal && term.field == "metadata.name")
            .map(|term| term.value.as_str())
    }

    /// Checks that the kind supports all fields. The error is the message of kube-apiserver.
    pub fn check(&self, kind: &ApiResource) -> Result<(), String> {
        for term in &self.terms {
            let known = term.field == "metadata.name"
                || term.field == "metadata.namespace" && kind.selects_namespace()
                || kind.selectable.iter().any(|field| field.label == term.field);
            if !known {
                return Err(match kind.unknown_field {
                    UnknownField::OnlyNameAndNamespace => format!(
                        "\"{}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
                        term.field
                    ),
                    UnknownField::NotSupported | UnknownField::OnlyName => {
                        format!("field label not supported: {}", term.field)
                    }
                    UnknownField::NotSupportedForKind => {
                        format!("field label \"{}\" not supported for {}", term.field, kind.kind)
                    }
                    UnknownField::NotSupportedForType => format!(
                        "field label not supported for {}, Kind={}: {}",
                        kind.api_version(),
                        kind.kind,
                        term.field
                    ),
                });
            }
        }
        Ok(())
    }

    fn matches(&self, object: &Stored) -> bool {
        self.terms
            .iter()
            .all(|term| (field_value(object, &term.field) == term.value) == term.equal)
    }
}

fn field_value<'a>(object: &'a Stored, field: &str) -> &'a str {
    match field {
        "metadata.name" => object.name(),
        "metadata.namespace" => object.namespace().unwrap_or_default(),
        field => object.selectable(field),
    }
}

/// Splits at commas without a backslash before them.
fn split_unescaped(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (at, character) in text.char_indices() {
        if escaped {
            escaped = false;
        } else if character == '\\' {
            escaped = true;
        } else if character == ',' {
            parts.push(&text[start..at]);
            start = at + 1;
        }
    }
    parts.push(&text[start..]);
    parts
}

/// Splits at the first operator: `!=`, `==` or `=`.
fn split_term(part: &str) -> Option<(&str, bool, &str)> {
    part.char_indices().find_map(|(at, _)| {
        let rest = &part[at..];
        [("!=", false), ("==", true), ("=", true)]
            .into_iter()
            .find_map(|(operator, equal)| {
                rest.strip_prefix(operator)
                    .map(|value| (&part[..at], equal, value))
            })
    })
}

/// Removes escapes. Only backslash, comma and equals sign can be escaped; the last two must be.
fn unescape(value: &str) -> Result<String, String> {
    let mut plain = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => plain.push(escaped),
                Some(other) => {
                    return Err(format!(
                        "invalid field selector: invalid escape sequence: \\{other}"
                    ));
                }
                None => return Err("invalid field selector: invalid escape sequence: \\".to_owned()),
            },
            ',' | '=' => {
                return Err(format!(
                    "invalid field selector: unescaped character in value: {character}"
                ));
            }
            plain_character => plain.push(plain_character),
        }
    }
    Ok(plain)
}
