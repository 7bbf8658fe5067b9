//! Validation of pod scheduling: tolerations, affinity, topology spread constraints, scheduling gates.

use super::context::FieldContext;
use super::formats::{label_value, qualified_name};
use super::objects::effect;
use super::workloads::{key, operator_and_key};
use crate::error_list::ErrorList;

pub(super) fn scheduling_gate(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let name = context.text("name");
    let why = qualified_name(name, context.version);
    for why in &why {
        errors.invalid(context.path, &name.into(), why);
    }
    if context.repeats(&["name"]) {
        errors.duplicate(context.path, &name.into(), "");
    }
}

pub(super) fn spread_once(context: &FieldContext<'_>, errors: &mut ErrorList) {
    // The error has the path of the list and the index of the first of the two.
    let at = context
        .path
        .rsplit_once('[')
        .map_or(context.path, |(list, _)| list);
    if context.is_repeated(&["topologyKey", "whenUnsatisfiable"]) {
        let (key, otherwise) = (context.text("topologyKey"), context.text("whenUnsatisfiable"));
        errors.duplicate(
            &format!("{at}[{}].{{topologyKey, whenUnsatisfiable}}", context.nth),
            &format!("{{{key}, {otherwise}}}").into(),
            "",
        );
    }
}

pub(super) fn toleration(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let (key, operator, value) = (
        context.text("key"),
        context.text("operator"),
        context.text("value"),
    );
    let at = context.at("operator");
    if key.is_empty() {
        if operator != "Exists" {
            let why =
                "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            errors.invalid(&at, &operator.into(), why);
        }
    } else {
        for why in qualified_name(key, context.version) {
            errors.invalid(&context.at("key"), &key.into(), &why);
        }
    }
    if !context.value["tolerationSeconds"].is_null() && context.text("effect") != "NoExecute" {
        errors.invalid(
            &context.at("effect"),
            &context.text("effect").into(),
            "effect must be 'NoExecute' when `tolerationSeconds` is set",
        );
    }
    match operator {
        "" | "Equal" => {
            for why in label_value(value, context.version) {
                errors.invalid(&at, &value.into(), &why);
            }
        }
        "Exists" if !value.is_empty() => {
            errors.invalid(
                &at,
                &value.into(),
                "value must be empty when `operator` is 'Exists'",
            );
        }
        "Exists" => {}
        other => errors.unsupported(&at, &other.into(), &["Equal", "Exists"]),
    }
    if !context.text("effect").is_empty() {
        effect(context.text("effect"), &context.at("effect"), errors);
    }
}

pub(super) fn node_requirement(context: &FieldContext<'_>, errors: &mut ErrorList) {
    if !matches!(context.text("operator"), "Gt" | "Lt") {
        return operator_and_key(context, errors);
    }
    if context.list("values").len() != 1 {
        errors.required(
            &context.at("values"),
            "must be specified single value when `operator` is 'Lt' or 'Gt'",
        );
    }
    key(context, errors);
}

pub(super) fn topology_key(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let (key, at) = (context.text("topologyKey"), context.at("topologyKey"));
    if key.is_empty() {
        errors.required(&at, "can not be empty");
    }
    for why in qualified_name(key, context.version) {
        errors.invalid(&at, &key.into(), &why);
    }
}
