//! Objects of a recording as a scenario writes them. Without content an object has its name, and an annotation that differs
//! from write to write.

use std::collections::BTreeMap;

use apimachinery::object::SERVER_OWNED;
use apimachinery::{ObjectRef, Version};
use builtin_kinds::catalog::Catalog;
use serde_json::{Value, json};
use trace::record::{Record, StreamId, What};

use crate::chosen::Collection;

/// Annotation of an object whose content is not known: the version that it had.
const RECORDED: &str = "recorded-version";

/// Content in a recording.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    /// By `namespace/name` and version.
    objects: BTreeMap<(String, String), Value>,
    /// What was sent on a response, in order: lines, items, bodies.
    sent: BTreeMap<StreamId, Vec<Value>>,
}

impl Contents {
    pub(crate) fn of(records: &[Record]) -> Self {
        let mut contents = Self::default();
        for record in records {
            if let What::Wrote(write) = &record.what
                && let Some(content) = &write.content
            {
                let key = (write.object.key.clone(), write.object.resource_version.clone());
                contents.objects.insert(key, content.json());
            }
            if let What::Sent { stream, content } = &record.what {
                let json = content.json();
                let object = json
                    .get("object")
                    .filter(|_| json.get("type").is_some())
                    .unwrap_or(&json);
                let ObjectRef {
                    key,
                    resource_version,
                    ..
                } = ObjectRef::of(object);
                if !key.is_empty() && !resource_version.is_empty() {
                    contents.objects.insert((key, resource_version), object.clone());
                }
                contents.sent.entry(*stream).or_default().push(json);
            }
        }
        contents
    }

    /// Returns the content of an object.
    pub(crate) fn object(&self, key: &str, version: &str) -> Option<&Value> {
        self.objects.get(&(key.to_owned(), version.to_owned()))
    }

    /// Takes the next content that was sent on a response and that `is_it`.
    pub(crate) fn take(&mut self, stream: StreamId, is_it: impl Fn(&Value) -> bool) -> Option<Value> {
        let sent = self.sent.get_mut(&stream)?;
        let at = sent.iter().position(is_it)?;
        Some(sent.remove(at))
    }
}

/// The kind of a collection's objects.
#[derive(Debug, Clone)]
pub(crate) struct Kind {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) namespaced: bool,
    /// Whether a scenario has to define it.
    pub(crate) is_custom: bool,
    /// Namespace of objects that are written without one.
    pub(crate) home: String,
}

impl Kind {
    /// Returns the kind of a collection. `sample`: an object of it.
    pub(crate) fn of(collection: &Collection, sample: Option<&Value>, keys_are_namespaced: bool) -> Self {
        let catalog = Catalog::builtin(Version::NEWEST);
        if let Some(kind) = catalog.find(&collection.group, &collection.plural) {
            return Self {
                api_version: kind.api_version(),
                kind: kind.kind.to_string(),
                namespaced: kind.namespaced,
                is_custom: false,
                home: collection.namespace.clone(),
            };
        }
        let text = |name: &str| sample.and_then(|object| object[name].as_str()).map(str::to_owned);
        let singular = collection.plural.strip_suffix('s').unwrap_or(&collection.plural);
        let mut letters = singular.chars();
        let guessed = letters
            .next()
            .map(|first| first.to_ascii_uppercase().to_string() + letters.as_str());
        Self {
            api_version: format!("{}/{}", collection.group, collection.version),
            kind: text("kind").or(guessed).unwrap_or_default(),
            namespaced: keys_are_namespaced || !collection.namespace.is_empty(),
            is_custom: true,
            home: collection.namespace.clone(),
        }
    }

    /// Returns a definition that accepts every object.
    pub(crate) fn definition(&self, collection: &Collection) -> Value {
        let Collection {
            group,
            version,
            plural,
            ..
        } = collection;
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": { "name": format!("{plural}.{group}") },
            "spec": {
                "group": group,
                "scope": if self.namespaced { "Namespaced" } else { "Cluster" },
                "names": { "plural": plural, "kind": self.kind },
                "versions": [{
                    "name": version,
                    "served": true,
                    "storage": true,
                    "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } },
                }],
            },
        })
    }

    /// Returns namespace and name of a key, without the namespace that objects have by default.
    fn place<'k>(&self, key: &'k str) -> (Option<&'k str>, &'k str) {
        let (namespace, name) = parts(key);
        (namespace.filter(|namespace| *namespace != self.home), name)
    }

    /// Returns how a scenario names an object.
    pub(crate) fn name(&self, key: &str) -> String {
        match self.place(key) {
            (Some(_), _) => key.to_owned(),
            (None, name) => name.to_owned(),
        }
    }

    /// Returns a write of another resource: it moves the version, and no client of the collection sees it.
    pub(crate) fn elsewhere(&self, version: u64) -> Value {
        let annotations = json!({ RECORDED: version.to_string() });
        let metadata = json!({ "name": "another-resource", "annotations": annotations });
        match self.kind.as_str() {
            "Lease" => json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata }),
            _ => json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata }),
        }
    }

    /// Returns an object as it is written.
    pub(crate) fn manifest(&self, key: &str, version: &str, content: Option<&Value>) -> Value {
        let (namespace, name) = self.place(key);
        let mut object = json!({ "apiVersion": self.api_version, "kind": self.kind, "metadata": {} });
        let mut metadata = json!({ "name": name });
        if let Some(namespace) = namespace {
            metadata["namespace"] = json!(namespace);
        }
        match content.and_then(Value::as_object) {
            Some(fields) => {
                for (field, value) in fields {
                    if field != "metadata" {
                        object[field] = value.clone();
                    }
                }
                for (field, value) in fields["metadata"].as_object().into_iter().flatten() {
                    if !SERVER_OWNED.contains(&field.as_str()) && field != "managedFields" {
                        metadata[field] = value.clone();
                    }
                }
            }
            None => metadata["annotations"] = json!({ RECORDED: version }),
        }
        object["metadata"] = metadata;
        object
    }
}

/// Returns namespace and name of a key.
pub(crate) fn parts(key: &str) -> (Option<&str>, &str) {
    match key.split_once('/') {
        Some((namespace, name)) => (Some(namespace), name),
        None => (None, key),
    }
}
