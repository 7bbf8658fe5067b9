//! Validation of a definition, with the messages of the server.
//!
//! Checks what could not be served, and the usual mistakes of authors. The cost of rules in CEL is not estimated.
//!
//! Source: apiextensions `apis/apiextensions/validation/validation.go`.

use std::collections::BTreeSet;

use apimachinery::status::Cause;
use serde_json::{Value, json};

use super::structural::texts;
use super::{approval, schema_check};
use crate::error_list::ErrorList;
use crate::fields::list;
use crate::naming::{dns1035_label, subdomain};
use crate::validation::webhooks::is_https;

/// Types of printer columns.
const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];

fn legal_name(found: &mut ErrorList, field: &str, value: &Value, errors: fn(&str) -> Vec<String>) {
    for why in errors(value.as_str().unwrap_or_default()) {
        found.invalid(field, value, &why);
    }
}

/// Returns the validation errors of a definition with defaults; `old`: the definition before an update.
pub(crate) fn validate(definition: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut found = ErrorList::default();
    let spec = &definition["spec"];
    let (group, names) = (text(&spec["group"]), &spec["names"]);
    let name = text(&definition["metadata"]["name"]);
    if name != format!("{}.{group}", text(&names["plural"])) {
        let why = "must be spec.names.plural+\".\"+spec.group";
        found.invalid("metadata.name", &name.into(), why);
    }
    if group.is_empty() {
        found.required("spec.group", "");
    } else {
        legal_name(&mut found, "spec.group", &spec["group"], subdomain);
        if subdomain(group).is_empty() && !group.contains('.') {
            found.invalid(
                "spec.group",
                &spec["group"],
                "should be a domain with at least one dot",
            );
        }
    }
    match text(&spec["scope"]) {
        "" => found.required("spec.scope", ""),
        "Cluster" | "Namespaced" => {}
        _ => found.unsupported("spec.scope", &spec["scope"], &["Cluster", "Namespaced"]),
    }
    if spec["preserveUnknownFields"] == true {
        let why = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        found.invalid("spec.preserveUnknownFields", &true.into(), why);
    }
    versions(&mut found, spec);
    names_of(&mut found, names);
    conversion(&mut found, &spec["conversion"]);
    stored(&mut found, definition);
    approval::check(&mut found, definition, old);
    found.into_causes()
}

fn text(json: &Value) -> &str {
    json.as_str().unwrap_or_default()
}

fn versions(found: &mut ErrorList, spec: &Value) {
    let versions = list(spec, "versions");
    // Properties that all versions share are checked and reported once.
    let alone = versions.len() == 1;
    for (index, version) in versions.iter().enumerate() {
        let at = format!("spec.versions[{index}]");
        legal_name(found, &format!("{at}.name"), &version["name"], dns1035_label);
        let place = |of_version: &str, of_spec: &str| {
            if alone {
                format!("spec.{of_spec}")
            } else {
                format!("{at}.{of_version}")
            }
        };
        let schema = &version["schema"]["openAPIV3Schema"];
        if schema.is_object() {
            let place = place("schema.openAPIV3Schema", "validation.openAPIV3Schema");
            schema_check::root(found, schema, &place);
        } else {
            found.required(&format!("{at}.schema.openAPIV3Schema"), "");
        }
        let columns = place("additionalPrinterColumns", "additionalPrinterColumns");
        for (index, column) in version["additionalPrinterColumns"]
            .as_array()
            .into_iter()
            .flatten()
            .enumerate()
        {
            printer_column(found, column, &format!("{columns}[{index}]"));
        }
        scale(
            found,
            &version["subresources"]["scale"],
            &place("subresources.scale", "subresources.scale"),
        );
        let selectable = place("selectableFields", "selectableFields");
        for (index, field) in version["selectableFields"]
            .as_array()
            .into_iter()
            .flatten()
            .enumerate()
        {
            let at = format!("{selectable}[{index}].jsonPath");
            selectable_field(
                found,
                &version["schema"]["openAPIV3Schema"],
                &field["jsonPath"],
                &at,
            );
        }
    }
    let listed: Vec<&str> = versions.iter().map(|version| text(&version["name"])).collect();
    let mut known = BTreeSet::new();
    if !listed.iter().all(|name| known.insert(*name)) {
        found.invalid(
            "spec.versions",
            &go_versions(versions),
            "must contain unique version names",
        );
    }
    if versions
        .iter()
        .filter(|version| version["storage"] == true)
        .count()
        != 1
    {
        found.invalid(
            "spec.versions",
            &go_versions(versions),
            "must have exactly one version marked as storage version",
        );
    }
    if let Some(first) = listed.first().filter(|first| !dns1035_label(first).is_empty()) {
        legal_name(found, "spec.version", &(*first).into(), dns1035_label);
    }
}

/// Formats the versions as Go prints its internal struct.
fn go_versions(versions: &[Value]) -> Value {
    if versions.is_empty() {
        return Value::Null;
    }
    let shown = versions.iter().map(|version| {
        json!({
            "Name": version["name"],
            "Served": version["served"],
            "Storage": version["storage"],
            "Deprecated": version["deprecated"] == true,
            "DeprecationWarning": version["deprecationWarning"],
            "Schema": null,
            "Subresources": null,
            "AdditionalPrinterColumns": null,
            "SelectableFields": null,
        })
    });
    shown.collect()
}

fn printer_column(found: &mut ErrorList, column: &Value, at: &str) {
    if text(&column["name"]).is_empty() {
        found.required(&format!("{at}.name"), "");
    }
    let known = format!("must be one of {}", COLUMN_TYPES.join(","));
    match text(&column["type"]) {
        "" => found.required(&format!("{at}.type"), &known),
        kind if COLUMN_TYPES.contains(&kind) => {}
        _ => found.invalid(&format!("{at}.type"), &column["type"], &known),
    }
    let place = format!("{at}.JSONPath");
    match text(&column["jsonPath"]) {
        "" => found.required(&place, ""),
        path if path.starts_with('.') => {}
        _ => found.invalid(&place, &column["jsonPath"], SIMPLE),
    }
}

const SIMPLE: &str = "must be a simple json path starting with .";

fn scale(found: &mut ErrorList, scale: &Value, at: &str) {
    if !scale.is_object() {
        return;
    }
    for (field, below, why) in [
        (
            "specReplicasPath",
            &[".spec."][..],
            "should be a json path under .spec",
        ),
        (
            "statusReplicasPath",
            &[".status."][..],
            "should be a json path under .status",
        ),
        (
            "labelSelectorPath",
            &[".spec.", ".status."][..],
            "should be a json path under either .spec or .status",
        ),
    ] {
        let place = format!("{at}.{field}");
        match text(&scale[field]) {
            "" if field == "labelSelectorPath" => {}
            "" => found.required(&place, ""),
            path if !path.starts_with('.') => found.invalid(&place, &scale[field], SIMPLE),
            path if below.iter().any(|below| path.starts_with(below)) => {}
            _ => found.invalid(&place, &scale[field], why),
        }
    }
}

fn selectable_field(found: &mut ErrorList, schema: &Value, path: &Value, at: &str) {
    let mut here = Some(schema);
    for name in text(path).split('.').filter(|name| !name.is_empty()) {
        here = here.and_then(|schema| schema["properties"].get(name));
    }
    match (text(path), here) {
        ("", _) => found.required(at, ""),
        (_, None) => found.invalid(at, path, "is an invalid path: does not refer to a valid field"),
        (_, Some(schema)) if matches!(text(&schema["type"]), "string" | "boolean" | "integer") => {}
        (_, Some(schema)) => {
            let why = format!(
                "must point to a field of type string, boolean or integer. {} is neither string, boolean nor integer",
                text(&schema["type"])
            );
            found.invalid(at, path, &why);
        }
    }
}

fn names_of(found: &mut ErrorList, names: &Value) {
    for field in ["plural", "singular", "kind", "listKind"] {
        let (at, value) = (format!("spec.names.{field}"), text(&names[field]));
        let is_kind = matches!(field, "kind" | "listKind");
        if value.is_empty() {
            found.required(&at, "");
        } else if is_kind {
            for why in dns1035_label(&value.to_lowercase()) {
                let why = format!("may have mixed case, but should otherwise match: {why}");
                found.invalid(&at, &names[field], &why);
            }
        } else {
            legal_name(found, &at, &names[field], dns1035_label);
        }
    }
    for field in ["shortNames", "categories"] {
        for (index, name) in texts(&names[field]).into_iter().enumerate() {
            legal_name(
                found,
                &format!("spec.names.{field}[{index}]"),
                &name.into(),
                dns1035_label,
            );
        }
    }
    let (kind, list) = (text(&names["kind"]), &names["listKind"]);
    if !kind.is_empty() && text(list) == kind {
        found.invalid(
            "spec.names.listKind",
            list,
            "kind and listKind may not be the same",
        );
    }
}

fn conversion(found: &mut ErrorList, conversion: &Value) {
    let at = "spec.conversion";
    let webhook = &conversion["webhook"];
    match text(&conversion["strategy"]) {
        "None" => {
            let why = "should not be set when strategy is not set to Webhook";
            if webhook["clientConfig"].is_object() {
                found.forbidden(&format!("{at}.webhookClientConfig"), why);
            }
            if !texts(&webhook["conversionReviewVersions"]).is_empty() {
                found.forbidden(&format!("{at}.conversionReviewVersions"), why);
            }
        }
        "" => found.required(&format!("{at}.strategy"), ""),
        "Webhook" => {
            let client = &webhook["clientConfig"];
            let place = format!("{at}.webhookClientConfig");
            match (client["url"].as_str(), client["service"].is_object()) {
                _ if !client.is_object() => {
                    found.required(&place, "required when strategy is set to Webhook");
                }
                (Some(url), false) => is_https(url, &format!("{place}.url"), found),
                (None, true) => {
                    for field in ["name", "namespace"] {
                        if text(&client["service"][field]).is_empty() {
                            found.required(&format!("{place}.service.{field}"), "");
                        }
                    }
                }
                (_, _) => found.required(&place, "exactly one of url or service is required"),
            }
            let place = format!("{at}.conversionReviewVersions");
            let versions = texts(&webhook["conversionReviewVersions"]);
            if versions.is_empty() {
                found.required(&place, "");
            } else if !versions
                .iter()
                .any(|version| ["v1", "v1beta1"].contains(&version.as_str()))
            {
                let why = "must include at least one of v1, v1beta1";
                found.invalid(&place, &webhook["conversionReviewVersions"], why);
            }
        }
        _ => found.unsupported(
            &format!("{at}.strategy"),
            &conversion["strategy"],
            &["None", "Webhook"],
        ),
    }
}

fn stored(found: &mut ErrorList, definition: &Value) {
    let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
    let storage: Vec<&Value> = versions.filter(|version| version["storage"] == true).collect();
    let stored = &definition["status"]["storedVersions"];
    let at = "status.storedVersions";
    if texts(stored).is_empty() {
        found.invalid(at, stored, "must have at least one stored version");
        return;
    }
    if let Some(last) = storage.last()
        && !texts(stored).contains(&text(&last["name"]).to_owned())
    {
        found.invalid(
            at,
            stored,
            &format!("must have the storage version {}", text(&last["name"])),
        );
    }
}

/// Returns the errors of changes to immutable fields: scope, group and plural.
pub(crate) fn changes(definition: &Value, old: &Value) -> Vec<Cause> {
    let mut found = ErrorList::default();
    let established = super::names::is_true(old, "Established");
    for (field, fixed) in [
        ("group", true),
        ("names/plural", true),
        ("scope", established),
        ("names/kind", established),
    ] {
        let pointer = format!("/spec/{field}");
        let (new, old) = (definition.pointer(&pointer), old.pointer(&pointer));
        if fixed && new != old {
            let at = format!("spec.{}", field.replace('/', "."));
            found.invalid(&at, new.unwrap_or(&Value::Null), "field is immutable");
        }
    }
    found.into_causes()
}
