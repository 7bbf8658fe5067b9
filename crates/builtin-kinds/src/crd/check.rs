//! Validation of a definition, with the messages of the server.
//!
//! Checks what could not be served, and the usual mistakes of authors. The cost of rules in CEL is not estimated.
//!
//! Source: apiextensions `apis/apiextensions/validation/validation.go`.

use std::collections::BTreeSet;

use apimachinery::Version;
use apimachinery::go_text;
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

/// Formats of printer columns.
const COLUMN_FORMATS: [&str; 8] = [
    "byte",
    "date",
    "date-time",
    "double",
    "float",
    "int32",
    "int64",
    "password",
];

fn legal_name(found: &mut ErrorList, field: &str, value: &Value, errors: fn(&str) -> Vec<String>) {
    for why in errors(value.as_str().unwrap_or_default()) {
        found.invalid(field, value, &why);
    }
}

/// Returns the validation errors of a definition with defaults; `old`: the definition before an update.
pub(crate) fn validate(definition: &Value, old: Option<&Value>, version: Version) -> Vec<Cause> {
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
    versions(&mut found, spec, version);
    names_of(&mut found, names);
    conversion(&mut found, &spec["conversion"]);
    stored(&mut found, definition);
    approval::check(&mut found, definition, old);
    found.into_causes()
}

fn text(json: &Value) -> &str {
    json.as_str().unwrap_or_default()
}

/// Fields of a version that are properties of the definition where all versions have the same.
const PER_VERSION: [&str; 4] = [
    "schema",
    "subresources",
    "additionalPrinterColumns",
    "selectableFields",
];

fn versions(found: &mut ErrorList, spec: &Value, server: Version) {
    let versions = list(spec, "versions");
    // Properties that all versions share are checked and reported once, as properties of all of them.
    let any_status = versions
        .iter()
        .any(|version| version["subresources"]["status"].is_object());
    // Compared once: with every version for every version, the cost would be the square of their number.
    let shared: Vec<&str> = PER_VERSION
        .into_iter()
        .filter(|field| versions.iter().all(|other| other[*field] == versions[0][*field]))
        .collect();
    let shares = |field: &str| shared.contains(&field);
    for (index, version) in versions.iter().enumerate() {
        let at = format!("spec.versions[{index}]");
        legal_name(found, &format!("{at}.name"), &version["name"], dns1035_label);
        let place = |field: &str, of_version: &str, of_spec: &str| match shares(field) {
            true => format!("spec.{of_spec}"),
            false => format!("{at}.{of_version}"),
        };
        let is_first = |field: &str| index == 0 || !shares(field);
        let schema = &version["schema"]["openAPIV3Schema"];
        if !schema.is_object() {
            found.required(&format!("{at}.schema.openAPIV3Schema"), "");
        } else if is_first("schema") {
            let place = place("schema", "schema.openAPIV3Schema", "validation.openAPIV3Schema");
            let own_status = version["subresources"]["status"].is_object();
            let has_status = if shares("schema") { any_status } else { own_status };
            schema_check::root(found, schema, &place, (has_status, server));
        }
        deprecation(found, version, &at);
        let field = "additionalPrinterColumns";
        let columns = place(field, field, field);
        for (index, column) in list(version, field)
            .iter()
            .enumerate()
            .filter(|_| is_first(field))
        {
            printer_column(found, column, &format!("{columns}[{index}]"));
        }
        if is_first("subresources") {
            let place = place("subresources", "subresources.scale", "subresources.scale");
            scale(found, &version["subresources"]["scale"], &place);
        }
        let field = "selectableFields";
        if !list(version, field).is_empty() && is_first(field) {
            let at = place(field, field, field);
            if shares("schema") && !shares(field) {
                let why = "may only be set when `version.schema.openAPIV3Schema` is not included";
                found.invalid(&at, &"".into(), why);
            } else if shares(field) && !shares("schema") {
                let why = "may only be set when validations.schema is included";
                found.invalid(&at, &"".into(), why);
            } else {
                selectable_fields(found, schema, list(version, field), &at);
            }
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
    let format = text(&column["format"]);
    if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
        let why = format!("must be one of {}", COLUMN_FORMATS.join(","));
        found.invalid(&format!("{at}.format"), &column["format"], &why);
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

/// Maximum number of selectable fields of a version.
const SELECTABLE_MAX: usize = 8;

fn selectable_fields(found: &mut ErrorList, schema: &Value, fields: &[Value], at: &str) {
    let mut known = BTreeSet::new();
    for (index, field) in fields.iter().enumerate() {
        let at = format!("{at}[{index}].jsonPath");
        let path = &field["jsonPath"];
        if text(path).is_empty() {
            found.required(&at, "");
            continue;
        }
        let of = match leads_to(text(path), schema) {
            Ok(of) => of,
            Err(why) => {
                found.invalid(&at, path, &format!("is an invalid path: {why}"));
                continue;
            }
        };
        if text(path).split('.').nth(1) == Some("metadata") {
            found.invalid(&at, path, "must not point to fields in metadata");
        }
        if !matches!(text(&of["type"]), "string" | "boolean" | "integer") {
            let why = "must point to a field of type string, boolean or integer. Enum string fields and strings with \
                       formats are allowed.";
            found.invalid(&at, path, why);
        }
        if !known.insert(text(path)) {
            found.duplicate(&at, path, "");
        }
    }
    if known.len() > SELECTABLE_MAX {
        found.too_many(at, known.len(), SELECTABLE_MAX);
    }
}

/// Returns the schema that a path of names leads to.
///
/// # Errors
/// Why it leads nowhere, as in `ValidFieldPath` of apiextensions.
fn leads_to<'s>(path: &str, schema: &'s Value) -> Result<&'s Value, String> {
    let mut rest = path;
    let mut here = schema;
    while !rest.is_empty() {
        if rest.starts_with('[') {
            return Err("array notation is not allowed".to_owned());
        }
        let Some(named) = rest.strip_prefix('.') else {
            let end = rest.find(['.', '[', ']']).unwrap_or(rest.len()).max(1);
            return Err(format!("expected [ or . but got: {}", &rest[..end]));
        };
        if named.is_empty() {
            return Err("unexpected end of JSON path".to_owned());
        }
        let end = named.find(['.', '[', ']']).unwrap_or(named.len()).max(1);
        let (name, behind) = named.split_at(end);
        let properties = here["properties"].as_object().filter(|named| !named.is_empty());
        let below = match properties {
            Some(named) => named.get(name),
            None => Some(&here["additionalProperties"]).filter(|additional| additional.is_object()),
        };
        here = below.ok_or("does not refer to a valid field")?;
        rest = behind;
    }
    Ok(here)
}

/// Maximum length of the warning about a deprecated version, in bytes.
const WARNING_BYTES_MAX: usize = 256;

fn deprecation(found: &mut ErrorList, version: &Value, at: &str) {
    let (at, warning) = (format!("{at}.deprecationWarning"), &version["deprecationWarning"]);
    let Some(words) = warning.as_str() else { return };
    let mut add = |why: &str| found.invalid(&at, warning, why);
    if version["deprecated"] != true {
        return add("can only be set for deprecated versions");
    }
    if words.len() > WARNING_BYTES_MAX {
        add("must be <= 256 characters long");
    }
    if words.is_empty() {
        add("must not be an empty string");
    }
    if let Some((nth, _)) = words
        .char_indices()
        .find(|(_, letter)| !go_text::is_printable(*letter))
    {
        add(&format!(
            "must only contain printable UTF-8 characters; non-printable character found at index {nth}"
        ));
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
