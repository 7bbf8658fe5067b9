//! One resource of the API in one version: names, scope, verbs, and everything else that differs from kind to kind.
//!
//! The rows are elsewhere; nothing here knows a kind by its name.

use std::any::Any;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::Version;

/// How a kind answers a field selector it does not support (the conversion functions of each API group).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnknownField {
    /// `"x" is not a known field selector: only "metadata.name", "metadata.namespace"`.
    OnlyNameAndNamespace,
    /// `field label not supported: x`.
    NotSupported,
    /// `field label "x" not supported for Job`.
    NotSupportedForKind,
    /// `field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: x`.
    NotSupportedForType,
}

/// A field selector beyond `metadata.name` and `metadata.namespace`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SelectableField {
    /// The label a request uses.
    pub label: &'static str,
    /// Where the value is, as a JSON pointer.
    pub pointer: &'static str,
    /// Where the value is if `pointer` leads to none; empty: nowhere else.
    pub fallback: &'static str,
    /// The value where there is none.
    pub default: &'static str,
}

impl SelectableField {
    /// The value in `json`; `None`: there is none.
    pub(crate) fn value<'v>(&self, json: &'v Value) -> Option<&'v Value> {
        let at = |pointer: &str| json.pointer(pointer).filter(|value| !value.is_null());
        let value = at(self.pointer);
        let is_empty = value.is_none_or(|value| value == "");
        match self.fallback {
            fallback if is_empty && !fallback.is_empty() => at(fallback),
            _ => value,
        }
    }
}

/// What a deletion waits for, beside finalizers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletion {
    /// Nothing.
    AtOnce,
    /// Once it is placed on a node, the grace period: the kubelet deletes it for good.
    AfterGrace,
    /// `spec.finalizers`: it holds other objects, and is finalized when they are gone.
    WhenEmpty,
}

/// What a name must look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameRule {
    /// A DNS subdomain (RFC 1123).
    Subdomain,
    /// A DNS label (RFC 1123).
    Label,
    /// A DNS label that begins with a letter (RFC 1035); from 1.36 on (`RelaxedServiceNameValidation`) any label.
    ServiceName,
    /// A DNS subdomain short enough to have a number of eleven letters behind it.
    Short,
    /// What can stand in a path.
    PathSegment,
    /// An IP address in its canonical form.
    IpAddress,
}

/// Where the `scale` subresource finds its numbers, as JSON pointers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scale {
    /// How many there shall be.
    pub spec: &'static str,
    /// How many there are.
    pub status: &'static str,
    /// Which objects these are.
    pub selector: ScaleSelector,
}

/// How a scaled object says what it selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScaleSelector {
    /// A `LabelSelector` at this pointer.
    Labels(&'static str),
    /// A map of labels at this pointer.
    Map(&'static str),
    /// A selector as text at this pointer.
    Text(&'static str),
    /// It does not say.
    None,
}

/// What a review asks. It is answered and never stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Review {
    /// May I do this?
    OwnAccess,
    /// May this user do this?
    Access,
    /// May this user do this in the namespace of the review?
    LocalAccess,
    /// What may I do?
    OwnRules,
    /// Who am I?
    Asker,
    /// Whose token is this?
    Token,
    /// May I have a token of this service account?
    NewToken,
}

/// A subresource as discovery shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// `status`.
    pub name: &'static str,
    /// The Kind of its bodies.
    pub kind: &'static str,
    /// Group and version of that Kind, where they are not those of the object.
    pub group_version: Option<(&'static str, &'static str)>,
    /// What may be done with it.
    pub verbs: &'static [&'static str],
}

/// One kind, in one version.
///
/// Rows are compared by identity: there is one of each.
#[derive(Debug)]
pub struct ApiResource {
    /// API group, empty for core.
    pub group: &'static str,
    /// `v1`.
    pub version: &'static str,
    /// `configmaps`.
    pub plural: &'static str,
    /// `configmap`.
    pub singular: &'static str,
    /// `ConfigMap`.
    pub kind: &'static str,
    /// `ConfigMapList`.
    pub list_kind: &'static str,
    /// `cm`.
    pub short_names: &'static [&'static str],
    /// `all`: the groups of resources kubectl has names for.
    pub categories: &'static [&'static str],
    /// What may be done with its collections and objects, in the order of discovery.
    pub verbs: &'static [&'static str],
    /// What every answer warns of, because nobody should use it any more; empty: nothing.
    pub deprecation: &'static str,
    /// The first minor that serves it.
    pub since: Version,
    /// Group and version of the row whose objects it shows in another form; `None`: its own.
    pub shows: Option<(&'static str, &'static str)>,
    /// The older version that is stored, up to and without a minor, or in all of them.
    pub stored_as: Option<(&'static str, Option<Version>)>,
    /// Do its objects live in namespaces?
    pub namespaced: bool,
    /// Is it a custom resource: keys sorted at all depths, items with their type, other texts for refusals?
    pub custom: bool,
    /// Do its objects define kinds?
    pub defines: bool,
    /// Is it served from a watch cache? Events are read from etcd.
    pub watch_cached: bool,
    /// Does it have a `status` subresource?
    pub status: bool,
    /// Its `scale` subresource.
    pub scale: Option<Scale>,
    /// The subresources beside these two that discovery shows. Which of them are served, the router says.
    pub parts: &'static [Part],
    /// What is asked by creating one; `None`: nothing.
    pub review: Option<Review>,
    /// Does `metadata.generation` count changes of its content?
    pub generation: bool,
    /// Order of the keys after `metadata`.
    pub fields: &'static [&'static str],
    /// What a zero value has after `metadata`, as JSON text with a leading comma: the body of a bookmark.
    /// `{0}` stands for a zero `ObjectMeta`.
    pub zero: &'static str,
    /// Annotations a zero value has.
    pub zero_annotations: &'static [(&'static str, &'static str)],
    /// Fields that can be selected by, beside name and namespace.
    pub selectable: &'static [SelectableField],
    /// What is said to the others.
    pub unknown_field: UnknownField,
    /// What its deletion waits for.
    pub deletion: Deletion,
    /// Does a deletion that does not speak of dependents leave them behind?
    pub orphans: bool,
    /// Is the answer to its deletion the object, not a Status?
    pub deletion_shows_object: bool,
    /// Does an update of what is not there create it?
    pub update_creates: bool,
    /// May an update leave `metadata.resourceVersion` out?
    pub unconditional_update: bool,
    /// What its names must look like.
    pub names: NameRule,
    /// The status of a new object, as JSON text, whatever its creator says; empty: none. `None`: the creator's.
    pub first_status: Option<&'static str>,
    /// What its definition says beside these columns; only of a custom resource. Who made the row knows its type.
    pub definition: Option<&'static (dyn Any + Send + Sync)>,
}

impl PartialEq for ApiResource {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for ApiResource {}

/// The verbs of what can be read and written as a whole.
pub const ALL_VERBS: &[&str] = &[
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
];

/// The verbs of a custom resource, in the order of apiextensions-apiserver's discovery.
pub const CUSTOM_VERBS: &[&str] = &[
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "create",
    "update",
    "watch",
];

const PART_VERBS: &[&str] = &["get", "patch", "update"];

impl ApiResource {
    /// Group and plural under which its objects are stored: all versions of a resource show the same objects.
    pub fn storage(&self) -> (&'static str, &'static str) {
        (self.shows.map_or(self.group, |(group, _)| group), self.plural)
    }

    /// May this be done with its collections or objects?
    pub fn allows(&self, verb: &str) -> bool {
        self.verbs.contains(&verb)
    }

    /// Are there objects of it? What has none is shown by discovery and never read: reviews, bindings.
    pub fn is_stored(&self) -> bool {
        self.allows("delete") && self.allows("get")
    }

    /// All subresources, in the order of discovery.
    pub fn subresources(&self) -> Vec<Part> {
        let mut parts = Vec::new();
        if self.status {
            parts.push(Part {
                name: "status",
                kind: self.kind,
                group_version: None,
                verbs: PART_VERBS,
            });
        }
        if self.scale.is_some() {
            parts.push(Part {
                name: "scale",
                kind: "Scale",
                group_version: Some(("autoscaling", "v1")),
                verbs: PART_VERBS,
            });
        }
        parts.extend_from_slice(self.parts);
        if !self.custom {
            parts.sort_by_key(|part| part.name);
        }
        parts
    }

    /// What discovery calls `storageVersionHash`; `None` for what is not stored.
    ///
    /// Source: apiserver `endpoints/discovery/storageversionhash.go`.
    pub fn storage_version_hash(&self, version: Version) -> Option<String> {
        if !self.is_stored() {
            return None;
        }
        let (group, stored) = self.shows.unwrap_or((self.group, self.version));
        let stored = match self.stored_as {
            Some((older, until)) if until.is_none_or(|until| version < until) => older,
            Some(_) | None => stored,
        };
        let digest = Sha256::digest(format!("{group}/{stored}/{}", self.kind));
        Some(STANDARD.encode(&digest[..8]))
    }

    /// `v1`, `apps/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Are bodies of this `apiVersion` read as this kind? Evictions are those of policy/v1beta1 too, which is served no
    /// more.
    pub fn is_read_from(&self, api_version: &str) -> bool {
        api_version == self.api_version() || self.kind == "Eviction" && api_version == "policy/v1beta1"
    }

    /// `configmaps`, `deployments.apps`: how messages name the resource.
    pub fn qualified(&self) -> String {
        if self.group.is_empty() {
            self.plural.to_owned()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }

    /// `namespace/name`, or `name` for cluster-scoped kinds: what lists are ordered by, bytewise.
    pub fn key(&self, namespace: Option<&str>, name: &str) -> String {
        match namespace {
            Some(namespace) if self.namespaced => [namespace, "/", name].concat(),
            Some(_) | None => name.to_owned(),
        }
    }

    /// The Go type of its list, as a 406 names it.
    pub fn go_list_type(&self) -> String {
        if self.custom {
            return "*unstructured.UnstructuredList".to_owned();
        }
        let package = if self.group.is_empty() {
            "core"
        } else {
            self.group.split('.').next().unwrap_or("core")
        };
        format!("*{package}.{}", self.list_kind)
    }
}
