//! Custom resources: parses a `CustomResourceDefinition`, and makes the rows of the catalog for it.
//!
//! It must not know requests: those for custom resources are answered like all others, by the columns of their row.
//!
//! Source: "Extend the Kubernetes API with CustomResourceDefinitions" in the documentation; apiextensions
//! `apis/apiextensions/v1/types.go`, `registry/customresource/strategy.go`.

use std::sync::{Arc, OnceLock};

use apimachinery::Version;
use apimachinery::kind::{
    ApiResource, Deletion, Generation, KindRef, NameRule, Names, RowDefinition, Scale, ScaleSelector,
    SelectableFields, Text, UnknownField,
};
use apimachinery::status::Cause;
use apimachinery::write::Subresource;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::catalog::by_age;

pub mod approval;
mod check;
pub mod conversion;
mod embedded;
pub(crate) mod formats;
pub mod names;
pub(crate) mod patterns;
mod prune;
mod rule;
mod rule_check;
mod rules;
mod schema_check;
mod structural;
mod validate;
mod wire;

use conversion::Conversion;
pub(crate) use prune::settle_numbers;
pub use rules::Found;
use structural::Schema;
pub use wire::prepared;

/// One version of a definition, without the properties that every row has.
#[derive(Debug)]
pub struct Definition {
    /// Printer columns, after the name.
    pub columns: Vec<PrinterColumn>,
    /// `openAPIV3Schema` as sent; null: none.
    pub schema: Value,
    structural: Schema,
    /// Schema for apply and patches, read at first use, and the version of the server that it refers to.
    typed: OnceLock<(Version, crate::schema::Schema)>,
    /// Schema of the storage version; `None`: this version is stored.
    stored: Option<Arc<Schema>>,
    /// Row of the storage version; `None`: this version is stored.
    pub storage: Option<KindRef>,
    /// Webhook that converts to this version.
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
    /// Returns the definition of a custom resource; `None` for a built-in kind.
    pub fn of(kind: &ApiResource) -> Option<&Self> {
        kind.definition.as_ref()?.content.downcast_ref()
    }

    /// Returns the schema as apply and patches read it. A server has one version.
    pub(crate) fn typed(&self, version: Version) -> &crate::schema::Schema {
        let read = || (version, crate::schema::Schema::of_custom(&self.schema, version));
        let (known, schema) = self.typed.get_or_init(read);
        debug_assert_eq!(*known, version, "two servers share a definition");
        schema
    }

    /// Sets the defaults of an applied object, whose unknown fields are pruned only when it is stored. A null stays, unless it has
    /// a default: validation rejects it.
    pub fn fill_applied(&self, object: &mut Value) {
        prune::settle_numbers(object);
        prune::fill_applied(object, &self.structural);
    }

    /// Sets defaults, and removes nothing but the nulls that have one.
    pub fn fill(&self, object: &mut Value) {
        prune::fill_applied(object, &self.structural);
    }

    /// Sets the default of the status of a new object, which has none. Returns whether there is one.
    pub fn fill_status(&self, object: &mut Value) -> bool {
        let status = self.structural.properties.get("status");
        let has_default = status.is_some_and(|status| status.default.is_some());
        if has_default {
            prune::fill(object, &self.structural);
        }
        has_default
    }

    /// Prunes unknown fields, returns their paths, and sets defaults.
    pub fn receive(&self, object: &mut Value) -> Vec<String> {
        prune::settle_numbers(object);
        let unknown = prune::prune(object, &self.structural);
        prune::fill(object, &self.structural);
        unknown
    }

    /// Prunes unknown fields in the metadata of embedded objects, and returns their paths.
    ///
    /// # Errors
    /// Metadata with wrong types; the message is Go's.
    pub fn receive_embedded(&self, object: &mut Value) -> Result<Vec<String>, String> {
        embedded::coerce(object, &self.structural, false)
            .map_err(|cause| format!("{}: {}", cause.field, cause.message))
    }

    /// Converts an object in this version to what is read after it was stored: fields that the storage version does not
    /// have are dropped.
    pub fn store(&self, object: &mut Value) {
        if self.conversion.is_some() {
            return;
        }
        if let Some(stored) = &self.stored {
            prune::prune(object, stored);
            self.read(object);
        }
    }

    /// Converts a stored object to this version, with the defaults of the storage version.
    pub(crate) fn read(&self, object: &mut Value) {
        match &self.stored {
            Some(stored) => {
                prune::fill(object, stored);
                prune::prune(object, &self.structural);
            }
            None => drop(self.receive(object)),
        }
    }

    /// Returns the validation errors of an object. Unchanged parts of `old` are not validated again.
    fn errors(&self, object: &Value, old: Option<&Value>, version: Version) -> Vec<Cause> {
        validate::validate(&self.structural, object, old, "", version)
    }

    /// Returns the validation errors of the status.
    fn status_errors(&self, object: &Value, old: &Value, version: Version) -> Vec<Cause> {
        match (self.structural.properties.get("status"), object.get("status")) {
            (Some(schema), Some(status)) => {
                validate::validate(schema, status, old.get("status"), "status", version)
            }
            (_, _) => Vec::new(),
        }
    }
}

/// Returns a new definition as its controllers leave it, with its conditions, and the served rows. `others`: established
/// definitions.
///
/// # Errors
/// The validation errors, each with its field, as the server reports them.
pub fn established(manifest: &Value, others: &[Value]) -> Result<(Value, Vec<KindRef>), Vec<String>> {
    let mut definition = prepared(manifest.clone(), None);
    let errors = check::validate(&definition, None, Version::NEWEST);
    if !errors.is_empty() {
        return Err(errors.iter().map(in_words).collect());
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

/// Prunes a new custom object and sets defaults. Returns its unknown fields and its validation errors, as the server reports
/// them.
pub fn receive_new(kind: &ApiResource, object: &mut Value, version: Version) -> Vec<String> {
    let Some(definition) = Definition::of(kind) else {
        return Vec::new();
    };
    let unknown = definition.receive(object);
    let unknown = unknown
        .into_iter()
        .map(|path| format!("unknown field \"{path}\""));
    let mut errors = validate_create(kind, object, version);
    let found = evaluate_rules(kind, object, None, &errors);
    errors.extend(found.causes);
    unknown.chain(errors.iter().map(in_words)).collect()
}

fn in_words(error: &Cause) -> String {
    format!("{}: {}", error.field, error.message)
}

/// Returns the validation errors of a new object: of a custom resource, or of a definition.
pub fn validate_create(kind: &ApiResource, object: &Value, version: Version) -> Vec<Cause> {
    match Definition::of(kind) {
        Some(definition) => {
            let mut errors = definition.errors(object, None, version);
            errors.extend(replicas_error(kind, object));
            errors
        }
        None if kind.defines => check::validate(&prepared(object.clone(), None), None, version),
        None => Vec::new(),
    }
}

/// Returns the validation errors of an update of `old`.
pub fn validate_update(
    kind: &ApiResource,
    object: &Value,
    old: &Value,
    part: Option<Subresource>,
    version: Version,
) -> Vec<Cause> {
    match (Definition::of(kind), part) {
        (Some(definition), None) => {
            let mut errors = definition.errors(object, Some(old), version);
            errors.extend(replicas_error(kind, object));
            errors
        }
        (Some(definition), Some(Subresource::Status)) => definition.status_errors(object, old, version),
        (None, None) if kind.defines => {
            let mut errors = check::validate(object, Some(old), version);
            errors.extend(check::changes(object, old));
            errors
        }
        (_, _) => Vec::new(),
    }
}

/// Evaluates the rules in CEL for an object, unless one of its `errors` blocks that; `old`: the object before an update. A write
/// of the status evaluates the rules of the whole object.
pub fn evaluate_rules(kind: &ApiResource, object: &Value, old: Option<&Value>, errors: &[Cause]) -> Found {
    match Definition::of(kind) {
        Some(definition) if !errors.iter().any(validate::blocks) => {
            rules::evaluate_all(&definition.structural, object, old)
        }
        Some(_) | None => Found::default(),
    }
}

/// Returns the error of replicas that are not a non-negative integer.
fn replicas_error(kind: &ApiResource, object: &Value) -> Option<Cause> {
    let scale = kind.scale.as_ref()?;
    let value = object.pointer(&scale.spec)?;
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

/// Verbs of a custom resource, in the order of discovery.
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

/// Verbs while its definition is being deleted.
const LAST_VERBS: &[&str] = &["delete", "deletecollection", "get", "list", "watch"];

/// Returns whether it is marked for deletion (`metadata.deletionTimestamp`).
pub fn terminating(definition: &Value) -> bool {
    definition["metadata"].get("deletionTimestamp").is_some()
}

/// Returns the rows of a definition: one for each served version, none before the definition is established. Rows of the
/// same definition are equal.
pub fn rows(definition: &Value) -> Vec<KindRef> {
    if !names::is_true(definition, "Established") {
        return Vec::new();
    }
    let versions = definition["spec"]["versions"].as_array();
    let versions = versions.map(Vec::as_slice).unwrap_or_default();
    let stored = versions.iter().find(|version| version["storage"] == true);
    let names = &definition["status"]["acceptedNames"];
    let mut common = Common::new(json!({
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
    let stored = stored.filter(|_| versions.len() > 1);
    common.storage = stored.map(|version| row(&common, version));
    let served = versions.iter().filter(|version| version["served"] == true);
    let rows = served.map(|version| match (&common.storage, stored) {
        (Some(row), Some(stored)) if std::ptr::eq(stored, version) => row.clone(),
        (_, _) => row(&common, version),
    });
    rows.collect()
}

/// Properties that all versions of a definition share.
struct Common {
    said: Value,
    /// Schema of the storage version, shared by all rows.
    stored: Arc<Schema>,
    /// Row of the storage version, which need not be served.
    storage: Option<KindRef>,
    /// Digest of `said`. Digests of rows are computed from it, so that their cost does not grow with its length.
    digest: String,
    short_names: Names,
    categories: Names,
}

impl Common {
    fn new(said: Value) -> Self {
        let names = |json| Names::Shared(structural::texts(json).into());
        Self {
            digest: STANDARD.encode(Sha256::digest(said.to_string())),
            short_names: names(&said["names"]["shortNames"]),
            categories: names(&said["names"]["categories"]),
            stored: Arc::new(Schema::read(&said["storedSchema"])),
            storage: None,
            said,
        }
    }
}

/// Returns the row of a version.
fn row(common: &Common, version: &Value) -> KindRef {
    let said = &common.said;
    let is_stored = said["stored"] == version["name"];
    let names = &said["names"];
    let (group, kind) = (text(&said["group"]), text(&names["kind"]));
    let has_status = version["subresources"]["status"].is_object();
    let selectable = version["selectableFields"].as_array().into_iter().flatten();
    let selectable = selectable.filter_map(|field| {
        let path = field["jsonPath"].as_str()?;
        Some((path.trim_start_matches('.').to_owned(), pointer(path)))
    });
    let schema = version["schema"]["openAPIV3Schema"].clone();
    let definition = Definition {
        typed: OnceLock::new(),
        stored: (!is_stored).then(|| Arc::clone(&common.stored)),
        storage: common.storage.clone().filter(|_| !is_stored),
        conversion: Conversion::read(
            said["name"].as_str().unwrap_or_default().to_owned(),
            &said["conversion"],
        ),
        columns: columns(&version["additionalPrinterColumns"]),
        structural: Schema::read(&schema),
        schema,
    };
    let row = ApiResource {
        deprecation: deprecation(&group, &kind, version, &said["newest"]),
        shows: (!is_stored).then(|| (group.clone(), text(&said["stored"]))),
        group,
        version: text(&version["name"]),
        plural: text(&names["plural"]),
        singular: text(&names["singular"]),
        kind,
        list_kind: text(&names["listKind"]),
        short_names: common.short_names.clone(),
        categories: common.categories.clone(),
        verbs: if said["terminating"] == true {
            LAST_VERBS
        } else {
            VERBS
        },
        since: Version::OLDEST,
        until: None,
        stored_as: None,
        namespaced: said["scope"] == "Namespaced",
        custom: true,
        defines: false,
        watch_cached: true,
        status: has_status,
        scale: scale(&version["subresources"]["scale"]),
        parts: &[],
        review: None,
        generation: Generation::Spec,
        fields: &["spec", "status"],
        zero: "",
        zero_annotations: &[],
        selectable: SelectableFields::Defined(selectable.collect()),
        unknown_field: match said["scope"] == "Namespaced" {
            true => UnknownField::NotSupported,
            false => UnknownField::OnlyName,
        },
        deletion: Deletion::AtOnce,
        orphans: false,
        deletion_shows_object: false,
        update_creates: false,
        unconditional_update: false,
        names: NameRule::Subdomain,
        first_status: has_status.then_some(""),
        definition: Some(RowDefinition {
            digest: Sha256::digest(format!("{}{version}", common.digest)).into(),
            content: Box::new(definition),
        }),
    };
    row.into()
}

/// Returns the served version with the highest priority that is not deprecated.
fn newest(versions: &[Value]) -> Option<&str> {
    let usable = versions
        .iter()
        .filter(|version| version["served"] == true && version["deprecated"] != true);
    let names = usable.filter_map(|version| version["name"].as_str());
    names.min_by(|one, other| by_age(one, other))
}

/// Returns the deprecation warning of a version; empty: none.
fn deprecation(group: &str, kind: &str, version: &Value, newest: &Value) -> Text {
    let name = version["name"].as_str().unwrap_or_default();
    let newer = newest.as_str().filter(|newest| by_age(newest, name).is_lt());
    match (version["deprecationWarning"].as_str(), newer) {
        _ if version["deprecated"] != true => Text::Borrowed(""),
        (Some(warning), _) => warning.to_owned().into(),
        (None, Some(newer)) => {
            format!("{group}/{name} {kind} is deprecated; use {group}/{newer} {kind}").into()
        }
        (None, None) => format!("{group}/{name} {kind} is deprecated").into(),
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
    let path = |name: &str| json[name].as_str().map(|path| Text::Owned(pointer(path)));
    Some(Scale {
        spec: path("specReplicasPath")?,
        status: path("statusReplicasPath")?,
        selector: path("labelSelectorPath").map_or(ScaleSelector::None, ScaleSelector::Text),
    })
}

/// Converts a simple path (`.spec.replicas`) to a JSON pointer.
fn pointer(path: &str) -> String {
    let names = path.split('.').filter(|name| !name.is_empty());
    names
        .map(|name| format!("/{}", name.replace('~', "~0").replace('/', "~1")))
        .collect()
}

fn text(json: &Value) -> Text {
    json.as_str().unwrap_or_default().to_owned().into()
}
