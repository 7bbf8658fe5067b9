//! Custom resources: what a `CustomResourceDefinition` says, and the rows of the catalog that come of it.
//!
//! It must not know who asks: requests for custom resources are answered like all others, by the columns of their row.
//!
//! Source: "Extend the Kubernetes API with CustomResourceDefinitions" in the documentation; apiextensions
//! `apis/apiextensions/v1/types.go`, `registry/customresource/strategy.go`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use apimachinery::Version;
use apimachinery::kind::{
    ApiResource, Deletion, NameRule, Scale, ScaleSelector, SelectableField, UnknownField,
};
use apimachinery::status::Cause;
use apimachinery::write::Subresource;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::catalog::by_age;

mod check;
pub mod conversion;
mod formats;
pub mod names;
mod patterns;
mod prune;
mod rule;
mod rule_check;
mod rules;
mod schema_check;
mod structural;
mod validate;
mod wire;

use conversion::Conversion;
pub use rules::Found;
use structural::Schema;
pub use wire::prepared;

/// What a definition says of one version of a custom resource, beside the columns every kind has.
#[derive(Debug)]
pub struct Definition {
    /// The columns of its tables, after the name.
    pub columns: Vec<PrinterColumn>,
    /// `openAPIV3Schema`, as it was sent; null where there is none.
    pub schema: Value,
    structural: Schema,
    /// The schema of the version that is stored; `None`: this one.
    stored: Option<Arc<Schema>>,
    /// The version that is stored; `None`: this one.
    pub storage: Option<&'static ApiResource>,
    /// The webhook that converts to this version.
    pub conversion: Option<Conversion>,
}

/// One of `additionalPrinterColumns`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrinterColumn {
    /// `name`.
    pub name: String,
    /// `type`.
    pub kind: String,
    /// `format`; empty: none.
    pub format: String,
    /// `description`; empty: none.
    pub description: String,
    /// `priority`.
    pub priority: i32,
    /// `jsonPath`.
    pub json_path: String,
}

impl Definition {
    /// That of a custom resource; `None` for a built-in kind.
    pub fn of(kind: &ApiResource) -> Option<&'static Self> {
        kind.definition?.downcast_ref()
    }

    /// Takes out of an object what its schema does not know, gives the paths of that, and sets what has a default.
    pub fn receive(&self, object: &mut Value) -> Vec<String> {
        let unknown = prune::prune(object, &self.structural);
        prune::fill(object, &self.structural);
        unknown
    }

    /// The same of the metadata of the objects that the schema embeds, without defaults.
    ///
    /// # Errors
    /// Go's words for metadata that has other types.
    pub fn receive_embedded(&self, object: &mut Value, version: Version) -> Result<Vec<String>, String> {
        prune::coerce_embedded(object, &self.structural, version)
    }

    /// Makes of an object in this version what it is once it was stored and is read again: what the stored version does
    /// not know is lost.
    pub fn store(&self, object: &mut Value) {
        if self.conversion.is_some() {
            return;
        }
        if let Some(stored) = &self.stored {
            prune::prune(object, stored);
            self.read(object);
        }
    }

    /// Makes of a stored object what this version shows of it: defaults are those of the stored version.
    pub(crate) fn read(&self, object: &mut Value) {
        match &self.stored {
            Some(stored) => {
                prune::fill(object, stored);
                prune::prune(object, &self.structural);
            }
            None => drop(self.receive(object)),
        }
    }

    /// What is wrong with an object; with what changed of `old`, if there was one before.
    fn faults(&self, object: &Value, old: Option<&Value>, version: Version) -> Vec<Cause> {
        validate::faults(&self.structural, object, old, "", version)
    }

    /// The same for the status alone.
    fn status_faults(&self, object: &Value, old: &Value, version: Version) -> Vec<Cause> {
        match (self.structural.properties.get("status"), object.get("status")) {
            (Some(schema), Some(status)) => {
                validate::faults(schema, status, old.get("status"), "status", version)
            }
            (_, _) => Vec::new(),
        }
    }
}

/// What becomes of a new definition once the controllers are done with it: the definition with its conditions, and the kinds
/// that are served of it. `others`: the definitions that were established before it.
///
/// # Errors
/// What is wrong with it, each with its field, in the server's words.
pub fn established(
    manifest: &Value,
    others: &[Value],
) -> Result<(Value, Vec<&'static ApiResource>), Vec<String>> {
    let mut definition = prepared(manifest.clone(), None);
    let faults = check::faults(&definition);
    if !faults.is_empty() {
        return Err(faults.iter().map(in_words).collect());
    }
    let same_group = |other: &&Value| other["spec"]["group"] == definition["spec"]["group"];
    let taken = names::Taken::by(others.iter().filter(same_group));
    names::accept(&mut definition, &taken, "");
    names::establish(&mut definition, "");
    let rows = rows(&definition);
    match names::refusal(&definition) {
        Some(refusal) => Err(vec![refusal.to_owned()]),
        None => Ok((definition, rows)),
    }
}

/// Makes of a new object of a custom resource what is stored: sets what has a default. Gives what its schema does not know,
/// and what is wrong with the rest, in the server's words.
pub fn receive_new(kind: &ApiResource, object: &mut Value, version: Version) -> Vec<String> {
    let Some(definition) = Definition::of(kind) else {
        return Vec::new();
    };
    let unknown = definition.receive(object);
    let unknown = unknown
        .into_iter()
        .map(|path| format!("unknown field \"{path}\""));
    let mut faults = new_faults(kind, object, version);
    if faults.is_empty() {
        faults = rule_faults(kind, object, None).causes;
    }
    unknown.chain(faults.iter().map(in_words)).collect()
}

fn in_words(fault: &Cause) -> String {
    format!("{}: {}", fault.field, fault.message)
}

/// What is wrong with a new object, by the definition of its kind, or as a definition.
pub fn new_faults(kind: &ApiResource, object: &Value, version: Version) -> Vec<Cause> {
    match Definition::of(kind) {
        Some(definition) => {
            let mut faults = definition.faults(object, None, version);
            faults.extend(replica_faults(kind, object));
            faults
        }
        None if kind.defines => check::faults(&prepared(object.clone(), None)),
        None => Vec::new(),
    }
}

/// What is wrong with what becomes of `old`.
pub fn changed_faults(
    kind: &ApiResource,
    object: &Value,
    old: &Value,
    part: Option<Subresource>,
    version: Version,
) -> Vec<Cause> {
    match (Definition::of(kind), part) {
        (Some(definition), None) => {
            let mut faults = definition.faults(object, Some(old), version);
            faults.extend(replica_faults(kind, object));
            faults
        }
        (Some(definition), Some(Subresource::Status)) => definition.status_faults(object, old, version),
        (None, None) if kind.defines => {
            let mut faults = check::faults(object);
            faults.extend(check::changes(object, old));
            faults
        }
        (_, _) => Vec::new(),
    }
}

/// What the rules in CEL find wrong with an object that its schema allows; `old`: the object before an update. Also with a
/// write of the status, the whole object is held against them.
pub fn rule_faults(kind: &ApiResource, object: &Value, old: Option<&Value>) -> Found {
    Definition::of(kind).map_or_else(Found::default, |definition| {
        rules::faults(&definition.structural, object, old)
    })
}

/// A scale needs numbers that are counts.
fn replica_faults(kind: &ApiResource, object: &Value) -> Option<Cause> {
    let scale = kind.scale?;
    let value = object.pointer(scale.spec)?;
    let field = scale.spec.replace('/', ".");
    let message = match value.as_i64() {
        Some(0..) => return None,
        Some(negative) => format!("Invalid value: {negative}: should be a non-negative integer"),
        None => {
            let (shown, go_type) = match value {
                Value::String(text) => (text.clone(), "string"),
                Value::Bool(truth) => (truth.to_string(), "bool"),
                Value::Number(number) => (number.to_string(), "float64"),
                Value::Null => ("<nil>".to_owned(), "<nil>"),
                Value::Array(_) => (value.to_string(), "[]interface {}"),
                Value::Object(_) => (value.to_string(), "map[string]interface {}"),
            };
            format!(
                "Invalid value: 0: {field} accessor error: {shown} is of the type {go_type}, expected int64"
            )
        }
    };
    Some(Cause {
        reason: "FieldValueInvalid".to_owned(),
        message,
        field,
    })
}

/// The verbs of a custom resource, in the order of discovery.
const VERBS: &[&str] = &[
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "create",
    "update",
    "watch",
];

/// What is left of them while its definition goes.
const LAST_VERBS: &[&str] = &["delete", "deletecollection", "get", "list", "watch"];

/// Is it marked for deletion (`metadata.deletionTimestamp`)?
pub fn terminating(definition: &Value) -> bool {
    definition["metadata"].get("deletionTimestamp").is_some()
}

/// The rows of a definition: one for each version that is served, none before its names are accepted and it is
/// established. The same definition always gives the same rows.
pub fn rows(definition: &Value) -> Vec<&'static ApiResource> {
    if !names::is_true(definition, "Established") {
        return Vec::new();
    }
    let versions = definition["spec"]["versions"].as_array();
    let versions = versions.map(Vec::as_slice).unwrap_or_default();
    let stored = versions.iter().find(|version| version["storage"] == true);
    let names = &definition["status"]["acceptedNames"];
    let common = Common::new(json!({
        "group": definition["spec"]["group"],
        "scope": definition["spec"]["scope"],
        "names": names,
        "stored": stored.map_or(&Value::Null, |version| &version["name"]),
        "storedSchema": stored
            .filter(|_| versions.len() > 1)
            .map_or(&Value::Null, |version| &version["schema"]["openAPIV3Schema"]),
        "terminating": terminating(definition),
        "newest": newest(versions),
        "name": definition["metadata"]["name"],
        "conversion": definition["spec"]["conversion"],
    }));
    if let Some(stored) = stored.filter(|_| versions.len() > 1) {
        let row = interned(&common, stored);
        // Nobody else knows it.
        let _ = common.storage.set(row);
    }
    let served = versions.iter().filter(|version| version["served"] == true);
    served.map(|version| interned(&common, version)).collect()
}

/// What a definition says of all its versions.
struct Common {
    said: Value,
    /// The schema of the version that is stored; one for all versions.
    stored: OnceLock<Arc<Schema>>,
    /// The row of that version, which need not be served.
    storage: OnceLock<&'static ApiResource>,
    /// Stands for it among [`interned`] rows: its length must not count once a version.
    digest: String,
    short_names: &'static [&'static str],
    categories: &'static [&'static str],
}

impl Common {
    fn new(said: Value) -> Self {
        Self {
            digest: STANDARD.encode(Sha256::digest(said.to_string())),
            short_names: lasting_list(&said["names"]["shortNames"]),
            categories: lasting_list(&said["names"]["categories"]),
            stored: OnceLock::new(),
            storage: OnceLock::new(),
            said,
        }
    }
}

/// The one row of what a definition says of a version. Rows are for ever, so that requests and watches can hold them;
/// there is one for each definition that was ever different.
fn interned(common: &Common, version: &Value) -> &'static ApiResource {
    static KNOWN: Mutex<BTreeMap<String, &'static ApiResource>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let key = format!("{}{version}", common.digest);
    if let Some(kind) = known.get(&key) {
        return kind;
    }
    let kind: &'static ApiResource = Box::leak(Box::new(row(common, version)));
    known.insert(key, kind);
    kind
}

fn row(common: &Common, version: &Value) -> ApiResource {
    let said = &common.said;
    let names = &said["names"];
    let (group, kind) = (lasting(&said["group"]), lasting(&names["kind"]));
    let has_status = version["subresources"]["status"].is_object();
    let selectable = version["selectableFields"].as_array().into_iter().flatten();
    let selectable = selectable.filter_map(|field| {
        let path = field["jsonPath"].as_str()?;
        Some(SelectableField {
            label: leaked(path.trim_start_matches('.')),
            pointer: leaked(&pointer(path)),
            fallback: "",
            default: "",
        })
    });
    let schema = version["schema"]["openAPIV3Schema"].clone();
    let is_stored = said["stored"] == version["name"];
    let stored = || Arc::new(Schema::read(&said["storedSchema"]));
    let definition = Definition {
        stored: (!is_stored).then(|| Arc::clone(common.stored.get_or_init(stored))),
        storage: common.storage.get().copied().filter(|_| !is_stored),
        conversion: Conversion::read(
            said["name"].as_str().unwrap_or_default().to_owned(),
            &said["conversion"],
        ),
        columns: columns(&version["additionalPrinterColumns"]),
        structural: Schema::read(&schema),
        schema,
    };
    ApiResource {
        group,
        version: lasting(&version["name"]),
        plural: lasting(&names["plural"]),
        singular: lasting(&names["singular"]),
        kind,
        list_kind: lasting(&names["listKind"]),
        short_names: common.short_names,
        categories: common.categories,
        verbs: if said["terminating"] == true {
            LAST_VERBS
        } else {
            VERBS
        },
        deprecation: deprecation(group, kind, version, &said["newest"]),
        since: Version::V1_33,
        shows: (!is_stored).then(|| (group, lasting(&said["stored"]))),
        stored_as: None,
        namespaced: said["scope"] == "Namespaced",
        custom: true,
        defines: false,
        watch_cached: true,
        status: has_status,
        scale: scale(&version["subresources"]["scale"]),
        parts: &[],
        review: None,
        generation: true,
        fields: &["spec", "status"],
        zero: "",
        zero_annotations: &[],
        selectable: Vec::leak(selectable.collect()),
        unknown_field: UnknownField::NotSupported,
        deletion: Deletion::AtOnce,
        orphans: false,
        deletion_shows_object: false,
        update_creates: false,
        unconditional_update: false,
        names: NameRule::Subdomain,
        first_status: has_status.then_some(""),
        definition: Some(Box::leak(Box::new(definition))),
    }
}

/// The first version that should be used.
fn newest(versions: &[Value]) -> Option<&str> {
    let usable = versions
        .iter()
        .filter(|version| version["served"] == true && version["deprecated"] != true);
    let names = usable.filter_map(|version| version["name"].as_str());
    names.min_by(|one, other| by_age(one, other))
}

/// What requests for a version are warned of.
fn deprecation(group: &str, kind: &str, version: &Value, newest: &Value) -> &'static str {
    let name = version["name"].as_str().unwrap_or_default();
    let newer = newest.as_str().filter(|newest| by_age(newest, name).is_lt());
    match (version["deprecationWarning"].as_str(), newer) {
        _ if version["deprecated"] != true => "",
        (Some(warning), _) => leaked(warning),
        (None, Some(newer)) => leaked(&format!(
            "{group}/{name} {kind} is deprecated; use {group}/{newer} {kind}"
        )),
        (None, None) => leaked(&format!("{group}/{name} {kind} is deprecated")),
    }
}

fn columns(json: &Value) -> Vec<PrinterColumn> {
    let listed = json.as_array().into_iter().flatten();
    listed
        .map(|column| {
            let text = |name: &str| column[name].as_str().unwrap_or_default().to_owned();
            PrinterColumn {
                name: text("name"),
                kind: text("type"),
                format: text("format"),
                description: text("description"),
                priority: column["priority"]
                    .as_i64()
                    .and_then(|priority| i32::try_from(priority).ok())
                    .unwrap_or_default(),
                json_path: text("jsonPath"),
            }
        })
        .collect()
}

fn scale(json: &Value) -> Option<Scale> {
    let path = |name: &str| json[name].as_str().map(|path| leaked(&pointer(path)));
    Some(Scale {
        spec: path("specReplicasPath")?,
        status: path("statusReplicasPath")?,
        selector: path("labelSelectorPath").map_or(ScaleSelector::None, ScaleSelector::Text),
    })
}

/// A simple path (`.spec.replicas`) as a JSON pointer.
fn pointer(path: &str) -> String {
    let names = path.split('.').filter(|name| !name.is_empty());
    names
        .map(|name| format!("/{}", name.replace('~', "~0").replace('/', "~1")))
        .collect()
}

fn leaked(text: &str) -> &'static str {
    Box::leak(text.to_owned().into_boxed_str())
}

fn lasting(json: &Value) -> &'static str {
    leaked(json.as_str().unwrap_or_default())
}

/// The texts of a list; the same list is kept once.
fn lasting_list(json: &Value) -> &'static [&'static str] {
    static KNOWN: Mutex<BTreeMap<Vec<String>, &'static [&'static str]>> = Mutex::new(BTreeMap::new());
    let listed = structural::texts(json);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(kept) = known.get(&listed) {
        return kept;
    }
    let kept: &'static [&'static str] = Vec::leak(listed.iter().map(|text| leaked(text)).collect());
    known.insert(listed, kept);
    kept
}
