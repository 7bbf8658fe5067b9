//! Validation of pod scheduling: tolerations, affinity, topology spread constraints, scheduling gates.

use super::formats::{label_value, qualified_name};
use super::objects::effect;
use super::place::Place;
use super::workloads::{key, operator_and_key};
use crate::error_list::ErrorList;

pub(super) fn scheduling_gate(place: &Place<'_>, found: &mut ErrorList) {
    let name = place.text("name");
    let why = qualified_name(name, place.version);
    for why in &why {
        found.invalid(place.path, &name.into(), why);
    }
    if place.repeats(&["name"]) {
        found.duplicate(place.path, &name.into(), "");
    }
}

pub(super) fn spread_once(place: &Place<'_>, found: &mut ErrorList) {
    // The error has the path of the list and the index of the first of the two.
    let at = place.path.rsplit_once('[').map_or(place.path, |(list, _)| list);
    if place.is_repeated(&["topologyKey", "whenUnsatisfiable"]) {
        let (key, otherwise) = (place.text("topologyKey"), place.text("whenUnsatisfiable"));
        found.duplicate(
            &format!("{at}[{}].{{topologyKey, whenUnsatisfiable}}", place.nth),
            &format!("{{{key}, {otherwise}}}").into(),
            "",
        );
    }
}

pub(super) fn toleration(place: &Place<'_>, found: &mut ErrorList) {
    let (key, operator, value) = (place.text("key"), place.text("operator"), place.text("value"));
    let at = place.at("operator");
    if key.is_empty() {
        if operator != "Exists" {
            let why =
                "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            found.invalid(&at, &operator.into(), why);
        }
    } else {
        for why in qualified_name(key, place.version) {
            found.invalid(&place.at("key"), &key.into(), &why);
        }
    }
    if !place.value["tolerationSeconds"].is_null() && place.text("effect") != "NoExecute" {
        found.invalid(
            &place.at("effect"),
            &place.text("effect").into(),
            "effect must be 'NoExecute' when `tolerationSeconds` is set",
        );
    }
    match operator {
        "" | "Equal" => {
            for why in label_value(value, place.version) {
                found.invalid(&at, &value.into(), &why);
            }
        }
        "Exists" if !value.is_empty() => {
            found.invalid(
                &at,
                &value.into(),
                "value must be empty when `operator` is 'Exists'",
            );
        }
        "Exists" => {}
        other => found.unsupported(&at, &other.into(), &["Equal", "Exists"]),
    }
    if !place.text("effect").is_empty() {
        effect(place.text("effect"), &place.at("effect"), found);
    }
}

pub(super) fn node_requirement(place: &Place<'_>, found: &mut ErrorList) {
    if !matches!(place.text("operator"), "Gt" | "Lt") {
        return operator_and_key(place, found);
    }
    if place.list("values").len() != 1 {
        found.required(
            &place.at("values"),
            "must be specified single value when `operator` is 'Lt' or 'Gt'",
        );
    }
    key(place, found);
}

pub(super) fn topology_key(place: &Place<'_>, found: &mut ErrorList) {
    let (key, at) = (place.text("topologyKey"), place.at("topologyKey"));
    if key.is_empty() {
        found.required(&at, "can not be empty");
    }
    for why in qualified_name(key, place.version) {
        found.invalid(&at, &key.into(), &why);
    }
}
