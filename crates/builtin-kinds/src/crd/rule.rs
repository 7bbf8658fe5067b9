//! A rule in CEL (`x-kubernetes-validations`) in a schema, and its errors that do not need a compiler. It must not know
//! objects.
//!
//! Source: apiextensions `apis/apiextensions/validation/validation.go`.

use std::sync::OnceLock;

use serde_json::{Value, json};

use super::patterns::Budget;
use super::structural::members;
use crate::error_list::ErrorList;
use crate::expression::Expression;

/// A rule. Its expressions are compiled at first use.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) rule: String,
    pub(super) message: String,
    message_expression: String,
    pub(super) reason: String,
    /// Field of the error, relative to that of the rule; empty: that of the rule.
    pub(super) field_path: String,
    pub(super) optional_old_self: Option<bool>,
    budget: Budget,
    compiled: OnceLock<Result<Expression, String>>,
    compiled_message: OnceLock<Option<Result<Expression, String>>>,
}

impl Rule {
    /// Reads `x-kubernetes-validations`, whose literal patterns are compiled within a budget.
    pub(super) fn list(json: &Value, budget: &Budget) -> Vec<Self> {
        let rules = json.as_array().into_iter().flatten();
        rules.map(|rule| Self::read(rule, budget)).collect()
    }

    fn read(json: &Value, budget: &Budget) -> Self {
        let text = |field: &str| json[field].as_str().unwrap_or_default().to_owned();
        Self {
            rule: text("rule"),
            message: text("message"),
            message_expression: text("messageExpression"),
            reason: text("reason"),
            field_path: steps(&text("fieldPath")).unwrap_or_default().join("."),
            optional_old_self: json["optionalOldSelf"].as_bool(),
            budget: budget.clone(),
            compiled: OnceLock::new(),
            compiled_message: OnceLock::new(),
        }
    }

    /// Returns the compiled rule, or its syntax errors.
    pub(super) fn expression(&self) -> Result<&Expression, &String> {
        self.compiled
            .get_or_init(|| Expression::parse_within(&self.rule, &self.budget))
            .as_ref()
    }

    /// Returns the compiled `messageExpression`, if there is one.
    pub(super) fn message_expression(&self) -> Option<Result<&Expression, &String>> {
        let compiled = self.compiled_message.get_or_init(|| {
            let source = &self.message_expression;
            (!source.trim().is_empty()).then(|| Expression::parse_within(source, &self.budget))
        });
        compiled.as_ref().map(Result::as_ref)
    }

    /// Returns whether it is a transition rule, which refers to `oldSelf`.
    pub(super) fn is_transition(&self) -> bool {
        self.expression()
            .is_ok_and(|expression| expression.uses("oldSelf"))
    }

    /// Returns whether the rule or its message refers to `oldSelf`.
    pub(super) fn sees_old(&self) -> bool {
        let message = self.message_expression().and_then(Result::ok);
        self.is_transition() || message.is_some_and(|message| message.uses("oldSelf"))
    }

    /// Returns its name in messages.
    pub(super) fn shown(&self) -> &str {
        match self.message.trim() {
            "" => self.rule.trim(),
            message => message,
        }
    }
}

const REASONS: [&str; 4] = [
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
];

/// Returns the errors of the rules of a schema, apart from their expressions.
pub(super) fn validate(found: &mut ErrorList, schema: &Value, at: &str) {
    let rules = schema["x-kubernetes-validations"].as_array();
    for (index, rule) in rules.into_iter().flatten().enumerate() {
        let at = |field: &str| format!("{at}.x-kubernetes-validations[{index}].{field}");
        let text = |field: &str| rule[field].as_str().unwrap_or_default();
        let (expression, message) = (text("rule").trim(), text("message"));
        if expression.is_empty() {
            found.required(&at("rule"), "rule is not specified");
        } else if !message.is_empty() && message.trim().is_empty() {
            found.invalid(&at("message"), &message.into(), "must be non-empty if specified");
        } else if message.trim().contains('\n') {
            found.invalid(&at("message"), &message.into(), "must not contain line breaks");
        } else if expression.contains('\n') && message.is_empty() {
            let why = "message must be specified if rule contains line breaks";
            found.required(&at("message"), why);
        }
        if !text("messageExpression").is_empty() && text("messageExpression").trim().is_empty() {
            found.required(&at("messageExpression"), "must be non-empty if specified");
        }
        let reason = &rule["reason"];
        if reason.as_str().is_some_and(|reason| !REASONS.contains(&reason)) {
            found.unsupported(&at("reason"), reason, &REASONS);
        }
        let path = text("fieldPath");
        if !path.is_empty() && path.trim().is_empty() {
            found.invalid(&at("fieldPath"), &path.into(), "must be non-empty if specified");
        } else if path.contains('\n') {
            found.invalid(&at("fieldPath"), &path.into(), "must not contain line breaks");
        } else if !path.is_empty() && !leads_somewhere(path, schema) {
            found.invalid(&at("fieldPath"), &path.into(), "must be a valid path");
        }
    }
}

/// Formats a rule as in messages.
pub(super) fn shown(rule: &Value) -> Value {
    let text = |field: &str| rule[field].as_str().unwrap_or_default();
    json!({
        "Rule": text("rule"),
        "Message": text("message"),
        "MessageExpression": text("messageExpression"),
        "Reason": rule["reason"],
        "FieldPath": text("fieldPath"),
        "OptionalOldSelf": rule["optionalOldSelf"],
    })
}

fn leads_somewhere(path: &str, schema: &Value) -> bool {
    let Some(steps) = steps(path) else { return false };
    let mut schema = schema;
    steps.iter().all(|step| {
        let property = members(&schema["properties"]).find(|(name, _)| *name == step);
        let next = match property {
            Some((_, property)) => Some(property),
            None if schema["properties"].is_object() => None,
            None => Some(&schema["additionalProperties"]).filter(|schema| schema.is_object()),
        };
        schema = next.unwrap_or(&Value::Null);
        next.is_some()
    })
}

/// Returns the names in a path such as `.a.b['c.d']`; `None`: it is invalid.
fn steps(path: &str) -> Option<Vec<String>> {
    let (mut steps, mut rest) = (Vec::new(), path.trim());
    while !rest.is_empty() {
        if let Some(quoted) = rest.strip_prefix("['") {
            let (name, behind) = quoted.split_once("']")?;
            steps.push(name.replace("\\'", "'").replace("\\\\", "\\"));
            rest = behind;
        } else {
            let named = rest.strip_prefix('.')?;
            let end = named.find(['.', '[']).unwrap_or(named.len());
            let (name, behind) = named.split_at(end);
            if name.is_empty() {
                return None;
            }
            steps.push(name.to_owned());
            rest = behind;
        }
    }
    Some(steps)
}
