//! Schemas of objects: fields, their types, and how lists and maps are merged. Those of built-in kinds are published by
//! kube-apiserver, those of custom resources are in their definitions.
//!
//! ```text
//! Schema::of_builtin(kind, version)        the whole object …
//!   .field("spec")?.field("containers")? … down to a list …
//!   .merge_key()                         … "name": the merge key of a strategic merge patch
//!   .unknown_fields(&object)             … or all errors of strict field validation at once
//! ```
//!
//! It must not know requests or the store.
//!
//! Source: "Merge strategy" of "Server-Side Apply" and "Notes on the strategic merge patch" (Kubernetes documentation),
//! KEP-2896 (OpenAPI v3), "Specifying a structural schema" (custom resources).

use std::collections::BTreeMap;
use std::sync::OnceLock;

use apimachinery::Version;
use apimachinery::kind::ApiResource;
use serde::Deserialize;
use serde_json::Value;

use crate::published;

/// Schema of a value.
#[derive(Debug, Default)]
pub struct Schema {
    shape: Shape,
    reference: Option<(Version, String)>,
    /// Target of the reference, once it is resolved.
    referred: OnceLock<Option<&'static Schema>>,
    format: String,
    properties: BTreeMap<String, Schema>,
    /// Schema of list items or map values.
    items: Option<Box<Schema>>,
    patch_strategy: String,
    patch_merge_key: Option<String>,
    list_type: Option<String>,
    list_map_keys: Vec<String>,
    atomic: bool,
    /// Whether an object can have fields that are not listed.
    open: bool,
    default: Value,
    form: Form,
    others: Others,
}

/// Published type, as apply distinguishes it; finer than [`Shape`] where that is [`Shape::Anything`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Form {
    /// No type: a scalar, a list or an object.
    #[default]
    Any,
    /// `object`, with listed fields or without.
    Object,
    /// `array`.
    List,
    /// `integer` or `number`.
    Numeric,
    /// `string` without a format.
    Text,
    /// `boolean`.
    Boolean,
    /// A scalar of any type: `string` with a format, or a quantity.
    Scalar,
    /// `runtime.RawExtension`: any value, replaced as a whole.
    Opaque,
}

/// Fields of an object beside the listed ones (`additionalProperties`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Others {
    /// Nothing is specified.
    #[default]
    Unspecified,
    /// `false`.
    Forbidden,
    /// `true`.
    Anything,
    /// They have a schema.
    Typed,
}

/// Type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Shape {
    /// Object with the listed fields, and others only if it [preserves](Schema::preserves) them.
    Object,
    /// Object with any keys, and one schema for all values.
    Map,
    /// List with one schema for all items.
    List,
    /// `string`.
    Text,
    /// `integer`.
    Integer,
    /// `number`.
    Number,
    /// `boolean`.
    Boolean,
    /// Any value: no type, or several.
    #[default]
    Anything,
}

impl Schema {
    /// Returns the schema of a built-in kind; `None` if this version does not publish it.
    pub fn of_builtin(kind: &ApiResource, version: Version) -> Option<&'static Self> {
        let group = match &*kind.group {
            "" => "core",
            group => group.split('.').next().unwrap_or(group),
        };
        [
            "io.k8s.api",
            "io.k8s.apiextensions-apiserver.pkg.apis",
            "io.k8s.kube-aggregator.pkg.apis",
        ]
        .iter()
        .find_map(|origin| {
            let name = [*origin, group, &kind.version, &kind.kind].join(".");
            definition(version, &name)
        })
    }

    /// Returns the schema of a custom resource from its definition (`openAPIV3Schema`).
    pub fn of_custom(definition: &Value, version: Version) -> Self {
        let raw = Raw::deserialize(definition).unwrap_or_default();
        let preserves = raw.kind == "object" && raw.preserve_unknown_fields;
        let mut schema = raw.read(version, true);
        if schema.shape == Shape::Anything && preserves {
            (schema.shape, schema.open) = (Shape::Object, true);
        }
        if schema.shape == Shape::Object {
            schema.name_metadata(version);
        }
        schema
    }

    /// Adds the schema of metadata, which a definition can omit.
    fn name_metadata(&mut self, version: Version) {
        for name in ["apiVersion", "kind"] {
            self.properties.entry(name.to_owned()).or_insert_with(|| Self {
                shape: Shape::Text,
                ..Self::default()
            });
        }
        let metadata = Self {
            reference: Some((version, OBJECT_META.to_owned())),
            ..Self::default()
        };
        self.properties.insert("metadata".to_owned(), metadata);
    }

    /// Returns the type of values.
    pub fn shape(&self) -> Shape {
        self.resolved().shape
    }

    /// Returns the published format, which narrows [`Shape`]: `int32`, `date-time`, `int-or-string`, …; empty if there is
    /// none.
    pub fn format(&self) -> &str {
        &self.resolved().format
    }

    /// Returns the published type name: `io.k8s.api.core.v1.PodSpec`; `None` if it has none.
    pub fn type_name(&self) -> Option<&str> {
        self.reference.as_ref().map(|(_, name)| name.as_str())
    }

    /// Returns the schema of a field: a listed one of an object, any of a map. `None`: there is no such field.
    pub fn field(&self, name: &str) -> Option<&Self> {
        let resolved = self.resolved();
        match resolved.shape {
            Shape::Object => resolved.properties.get(name),
            Shape::Map => resolved.items.as_deref(),
            Shape::List | Shape::Text | Shape::Integer | Shape::Number | Shape::Boolean | Shape::Anything => {
                None
            }
        }
    }

    /// Returns the published type.
    pub fn form(&self) -> Form {
        self.resolved().form
    }

    /// Returns whether the schema refers to a published one by its name.
    pub fn is_reference(&self) -> bool {
        self.reference.is_some()
    }

    /// Returns the schema of a listed field.
    pub fn listed(&self, name: &str) -> Option<&Self> {
        self.resolved().properties.get(name)
    }

    /// Returns whether any field is listed.
    pub fn lists_fields(&self) -> bool {
        !self.resolved().properties.is_empty()
    }

    /// Returns which fields beside the listed ones are specified, and their schema.
    pub fn others(&self) -> (Others, Option<&Self>) {
        let resolved = self.resolved();
        let values = resolved.items.as_deref();
        (
            resolved.others,
            values.filter(|_| resolved.others == Others::Typed),
        )
    }

    /// Returns the schema of the items of a list.
    pub fn items(&self) -> Option<&Self> {
        let resolved = self.resolved();
        resolved
            .items
            .as_deref()
            .filter(|_| resolved.shape == Shape::List)
    }

    /// Returns the merge key of a list for strategic merge patches.
    pub fn merge_key(&self) -> Option<&str> {
        self.patch_merge_key.as_deref()
    }

    /// Returns the merge key as the only one, for apply; empty if there is none.
    pub fn merge_keys(&self) -> &[String] {
        self.patch_merge_key.as_slice()
    }

    /// Returns whether a strategic merge patch merges this list instead of replacing it.
    pub fn merges(&self) -> bool {
        self.has_strategy("merge")
    }

    /// Returns whether a strategic merge patch replaces this object instead of merging it.
    pub fn replaces(&self) -> bool {
        self.has_strategy("replace")
    }

    /// Returns whether a strategic merge patch removes keys of this object that it does not name.
    pub fn retains_keys(&self) -> bool {
        self.has_strategy("retainKeys")
    }

    /// Returns the list type for apply: `atomic`, `set` or `map`; `None`: the default, atomic.
    pub fn list_type(&self) -> Option<&str> {
        self.resolved().list_type.as_deref()
    }

    /// Returns the keys of the items of a list of type `map`, for apply.
    pub fn list_map_keys(&self) -> &[String] {
        &self.resolved().list_map_keys
    }

    /// Returns the default value.
    pub fn default_value(&self) -> Option<&Value> {
        Some(&self.default).filter(|default| !default.is_null())
    }

    /// Returns whether apply treats this object or map as atomic: one manager replaces it as a whole.
    pub fn is_atomic(&self) -> bool {
        self.atomic || self.resolved().atomic
    }

    /// Returns whether this object preserves unknown fields (`x-kubernetes-preserve-unknown-fields`).
    pub fn preserves(&self) -> bool {
        self.resolved().open
    }

    /// Returns the paths of all unknown fields in `value`, in order: `spec.replica`, `spec.containers[0].nam`.
    pub fn unknown_fields(&self, value: &Value) -> Vec<String> {
        let mut unknown = Vec::new();
        self.look_for_unknown(value, "", &mut unknown);
        unknown
    }

    fn look_for_unknown(&self, value: &Value, path: &str, unknown: &mut Vec<String>) {
        match value {
            Value::Object(fields) if matches!(self.shape(), Shape::Object | Shape::Map) => {
                for (name, value) in fields {
                    let path = match path {
                        "" => name.clone(),
                        path => format!("{path}.{name}"),
                    };
                    match self.field(name) {
                        Some(schema) => schema.look_for_unknown(value, &path, unknown),
                        None if self.preserves() => {}
                        None => unknown.push(path),
                    }
                }
            }
            Value::Array(values) => {
                if let Some(items) = self.items() {
                    for (nth, value) in values.iter().enumerate() {
                        items.look_for_unknown(value, &format!("{path}[{nth}]"), unknown);
                    }
                }
            }
            Value::Object(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn has_strategy(&self, name: &str) -> bool {
        self.patch_strategy.split(',').any(|strategy| strategy == name)
    }

    fn resolved(&self) -> &Self {
        match &self.reference {
            Some((version, name)) => {
                let referred = self.referred.get_or_init(|| definition(*version, name));
                referred.unwrap_or(self)
            }
            None => self,
        }
    }
}

const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const RAW_EXTENSION: &str = "io.k8s.apimachinery.pkg.runtime.RawExtension";
const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// Returns the published type of this name, parsed at first use.
fn definition(version: Version, name: &str) -> Option<&'static Schema> {
    type Definitions = BTreeMap<&'static str, OnceLock<Schema>>;
    static DEFINITIONS: [OnceLock<Definitions>; 4] = [const { OnceLock::new() }; 4];
    let definitions = DEFINITIONS[published::nth(version)].get_or_init(|| {
        let names = published::schemas(version).keys();
        names.map(|name| (*name, OnceLock::new())).collect()
    });
    let (name, schema) = definitions.get_key_value(name)?;
    Some(schema.get_or_init(|| {
        let text = published::schemas(version).get(name);
        let raw: Raw = text
            .and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default();
        let mut schema = raw.read(version, false);
        // Converters of schemas know these two by name (kube-openapi `schemaconv`).
        match *name {
            QUANTITY => schema.form = Form::Scalar,
            RAW_EXTENSION => schema.form = Form::Opaque,
            _ => {}
        }
        schema
    }))
}

/// Schema as published; only the fields that are used here.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Raw {
    #[serde(rename = "$ref")]
    reference: Option<String>,
    #[serde(rename = "type")]
    kind: String,
    format: String,
    properties: Option<BTreeMap<String, Raw>>,
    items: Option<Box<Raw>>,
    #[serde(rename = "additionalProperties")]
    values: Option<Values>,
    #[serde(rename = "allOf")]
    all_of: Vec<Raw>,
    #[serde(rename = "x-kubernetes-patch-strategy")]
    patch_strategy: String,
    #[serde(rename = "x-kubernetes-patch-merge-key")]
    patch_merge_key: Option<String>,
    #[serde(rename = "x-kubernetes-list-type")]
    list_type: Option<String>,
    #[serde(rename = "x-kubernetes-list-map-keys")]
    list_map_keys: Vec<String>,
    #[serde(rename = "x-kubernetes-map-type")]
    map_type: String,
    default: Value,
    #[serde(rename = "x-kubernetes-preserve-unknown-fields")]
    preserve_unknown_fields: bool,
    #[serde(rename = "x-kubernetes-embedded-resource")]
    embedded: bool,
}

/// `additionalProperties`: a schema or a boolean.
#[derive(Deserialize)]
#[serde(untagged)]
enum Values {
    Allowed(bool),
    Of(Box<Raw>),
}

impl Raw {
    /// Converts a raw schema. `custom`: an object without `properties` has no fields; a built-in type without them decodes
    /// its own JSON.
    fn read(self, version: Version, custom: bool) -> Schema {
        let wrapped = self.all_of.into_iter().find_map(|part| part.reference);
        let reference = self.reference.or(wrapped).and_then(|reference| {
            let name = reference.rsplit_once('/').map(|(_, name)| name.to_owned());
            name.map(|name| (version, name))
        });
        let names = self.properties.is_some() || self.embedded;
        let form = match (self.kind.as_str(), self.format.as_str()) {
            ("object", _) => Form::Object,
            ("array", _) => Form::List,
            ("integer" | "number", _) => Form::Numeric,
            ("boolean", _) => Form::Boolean,
            ("string", "" | "byte") => Form::Text,
            ("string", _) => Form::Scalar,
            (_, _) => Form::Any,
        };
        let others = match &self.values {
            None => Others::Unspecified,
            Some(Values::Allowed(false)) => Others::Forbidden,
            Some(Values::Allowed(true)) => Others::Anything,
            Some(Values::Of(_)) if form == Form::Object => Others::Typed,
            Some(Values::Of(_)) => Others::Unspecified,
        };
        let (shape, items) = match (self.kind.as_str(), self.values, self.items) {
            ("array", _, items) => (Shape::List, items),
            ("object", Some(Values::Of(values)), _) => (Shape::Map, Some(values)),
            ("object", Some(Values::Allowed(true)), _) => (Shape::Anything, None),
            ("object", _, _) if self.preserve_unknown_fields && !(custom && names) => (Shape::Anything, None),
            ("object", _, _) if custom || self.properties.is_some() => (Shape::Object, None),
            ("string", _, _) => (Shape::Text, None),
            ("integer", _, _) => (Shape::Integer, None),
            ("number", _, _) => (Shape::Number, None),
            ("boolean", _, _) => (Shape::Boolean, None),
            _ => (Shape::Anything, None),
        };
        let mut schema = Schema {
            shape,
            reference,
            referred: OnceLock::new(),
            format: self.format,
            properties: self
                .properties
                .unwrap_or_default()
                .into_iter()
                .map(|(name, raw)| (name, raw.read(version, custom)))
                .collect(),
            items: items.map(|raw| Box::new(raw.read(version, custom))),
            patch_strategy: self.patch_strategy,
            patch_merge_key: self.patch_merge_key,
            list_type: self.list_type,
            list_map_keys: self.list_map_keys,
            atomic: self.map_type == "atomic",
            open: self.preserve_unknown_fields,
            default: self.default,
            form,
            others,
        };
        if custom && self.embedded && schema.shape == Shape::Object {
            schema.name_metadata(version);
        }
        schema
    }
}

#[cfg(test)]
mod tests;
