//! One resource of the API in one version: names, scope, verbs, and all other properties that differ between kinds.
//!
//! The rows of the catalog are in `builtin-kinds`. No kind is named here.

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Weak};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::Version;

/// Returns a resource as messages and options name it: `configmaps`, `deployments.apps`.
pub fn qualified(plural: &str, group: &str) -> String {
    match group {
        "" => plural.to_owned(),
        group => [plural, ".", group].concat(),
    }
}

/// Error for a field selector that a kind does not support (conversion functions of each API group).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnknownField {
    /// `"x" is not a known field selector: only "metadata.name", "metadata.namespace"`.
    OnlyNameAndNamespace,
    /// `field label not supported: x`.
    NotSupported,
    /// The same, also for `metadata.namespace`.
    OnlyName,
    /// `field label "x" not supported for Job`.
    NotSupportedForKind,
    /// `field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: x`.
    NotSupportedForType,
}

/// Text of a row: a literal of a built-in kind, or owned by the row of a custom resource.
pub type Text = Cow<'static, str>;

/// Names in a row, in order.
#[derive(Debug, Clone)]
pub enum Names {
    /// Names of a built-in kind.
    Literal(&'static [&'static str]),
    /// Names in a definition, shared by the rows of its versions.
    Shared(Arc<[String]>),
}

impl Names {
    /// Returns the names.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let (literal, shared): (&[&str], &[String]) = match self {
            Self::Literal(names) => (names, &[]),
            Self::Shared(names) => (&[], names),
        };
        literal.iter().copied().chain(shared.iter().map(String::as_str))
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }
}

/// Field selector other than `metadata.name` and `metadata.namespace`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SelectableField<'a> {
    /// Label in the request.
    pub label: &'a str,
    /// JSON pointer to the value.
    pub pointer: &'a str,
    /// JSON pointer to the value if there is none at `pointer`; empty: no fallback.
    pub fallback: &'a str,
    /// Value if the object has none.
    pub default: &'a str,
}

impl SelectableField<'_> {
    /// Returns the value in `json`; `None` if it has none.
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

/// Field selectors of a kind, in order.
#[derive(Debug)]
pub enum SelectableFields {
    /// Those of a built-in kind.
    Literal(&'static [SelectableField<'static>]),
    /// Label and JSON pointer of each of `selectableFields` in a definition.
    Defined(Vec<(String, String)>),
}

impl SelectableFields {
    /// Returns the fields.
    pub fn iter(&self) -> impl Iterator<Item = SelectableField<'_>> {
        let (literal, defined): (&[SelectableField<'_>], &[(String, String)]) = match self {
            Self::Literal(fields) => (fields, &[]),
            Self::Defined(fields) => (&[], fields),
        };
        let defined = defined.iter().map(|(label, pointer)| SelectableField {
            label,
            pointer,
            fallback: "",
            default: "",
        });
        literal.iter().copied().chain(defined)
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }
}

/// What `metadata.generation` of a kind counts.
///
/// Source: `PrepareForCreate` and `PrepareForUpdate` of the strategies in `pkg/registry` of kube-apiserver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generation {
    /// It has none.
    None,
    /// It is 1 for ever.
    One,
    /// Changes of everything but the metadata and, if it is a subresource, the status.
    Spec,
    /// Those, and changes of the annotations.
    SpecAndAnnotations,
    /// As `Spec`, and each write with an empty list or map, which differs from the absent one that is stored
    /// (`reflect.DeepEqual` in the strategy).
    SpecAsSent,
}

/// What a deletion waits for, besides finalizers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletion {
    /// Nothing.
    AtOnce,
    /// The grace period, once the object is bound to a node: the kubelet then deletes it.
    AfterGrace,
    /// `spec.finalizers`: the object contains other objects, and is finalized when they are deleted.
    WhenEmpty,
}

/// Format of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameRule {
    /// A DNS subdomain (RFC 1123).
    Subdomain,
    /// A DNS label (RFC 1123).
    Label,
    /// A DNS label that begins with a letter (RFC 1035); from 1.36 on (`RelaxedServiceNameValidation`) any label.
    ServiceName,
    /// A DNS subdomain with room for a suffix of eleven characters.
    Short,
    /// A path segment.
    PathSegment,
    /// An IP address in its canonical form.
    IpAddress,
    /// A DNS subdomain (RFC 1123) without `spec.signerName`; with it, the signer's name with colons, a colon, and a subdomain.
    OfSigner,
}

/// JSON pointers of the `scale` subresource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scale {
    /// Desired replicas.
    pub spec: Text,
    /// Current replicas.
    pub status: Text,
    /// Selector of the replicas.
    pub selector: ScaleSelector,
}

/// Format of the selector of a scaled object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScaleSelector {
    /// `LabelSelector` at this pointer.
    Labels(Text),
    /// Map of labels at this pointer.
    Map(Text),
    /// Selector as text at this pointer.
    Text(Text),
    /// No selector.
    None,
}

/// Type of a review: a create that is answered and never stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Review {
    /// SelfSubjectAccessReview.
    OwnAccess,
    /// SubjectAccessReview.
    Access,
    /// LocalSubjectAccessReview: the access of a user in the namespace of the review.
    LocalAccess,
    /// SelfSubjectRulesReview.
    OwnRules,
    /// SelfSubjectReview.
    Requester,
    /// TokenReview.
    Token,
    /// TokenRequest of a service account.
    NewToken,
}

/// Subresource, as in discovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part<'a> {
    /// `status`.
    pub name: &'static str,
    /// Kind of its bodies.
    pub kind: &'a str,
    /// Group and version of that kind, if they differ from those of the object.
    pub group_version: Option<(&'static str, &'static str)>,
    /// Supported verbs.
    pub verbs: &'static [&'static str],
}

/// Definition of a custom resource, in one version.
#[derive(Debug)]
pub struct RowDefinition {
    /// Digest of everything that its row is made of.
    pub digest: [u8; 32],
    /// Schema, columns and conversion; the type is known to the code that made the row.
    pub content: Box<dyn Any + Send + Sync>,
}

/// One kind in one version.
///
/// A built-in row is only equal to itself. Rows of custom resources are equal if their definitions are.
#[derive(Debug)]
pub struct ApiResource {
    /// API group, empty for core.
    pub group: Text,
    /// `v1`.
    pub version: Text,
    /// `configmaps`.
    pub plural: Text,
    /// `configmap`.
    pub singular: Text,
    /// `ConfigMap`.
    pub kind: Text,
    /// `ConfigMapList`.
    pub list_kind: Text,
    /// `cm`.
    pub short_names: Names,
    /// Categories for kubectl, such as `all`.
    pub categories: Names,
    /// Verbs for collections and objects, in the order of discovery.
    pub verbs: &'static [&'static str],
    /// Deprecation warning of every response; empty: none.
    pub deprecation: Text,
    /// First minor version that serves it.
    pub since: Version,
    /// First minor version that serves it by another row; `None`: none does.
    pub until: Option<Version>,
    /// Group and version of the row whose objects it shows in another representation; `None`: its own.
    pub shows: Option<(Text, Text)>,
    /// Older version used for storage, and the minor version that ends this; `None` as the latter: no end.
    pub stored_as: Option<(&'static str, Option<Version>)>,
    /// Whether objects are namespaced.
    pub namespaced: bool,
    /// Whether this is a custom resource: keys sorted at all depths, list items with their type, separate error texts.
    pub custom: bool,
    /// Whether its objects define kinds.
    pub defines: bool,
    /// Whether it is served from a watch cache. Events are read from etcd.
    pub watch_cached: bool,
    /// Whether it has a `status` subresource.
    pub status: bool,
    /// `scale` subresource.
    pub scale: Option<Scale>,
    /// Other subresources in discovery. The router decides which of them are served.
    pub parts: &'static [Part<'static>],
    /// Type of review; `None`: not a review.
    pub review: Option<Review>,
    /// What `metadata.generation` counts.
    pub generation: Generation,
    /// Order of the keys after `metadata`.
    pub fields: &'static [&'static str],
    /// Zero value after `metadata`, as JSON text with a leading comma: the body of a bookmark.
    pub zero: &'static str,
    /// Annotations of a zero value.
    pub zero_annotations: &'static [(&'static str, &'static str)],
    /// Supported field selectors other than name and namespace.
    pub selectable: SelectableFields,
    /// Error for other field selectors.
    pub unknown_field: UnknownField,
    /// What its deletion waits for.
    pub deletion: Deletion,
    /// Whether a deletion without a propagation policy orphans dependents.
    pub orphans: bool,
    /// Whether a deletion responds with the object instead of a Status.
    pub deletion_shows_object: bool,
    /// Whether an update of an object that does not exist creates it.
    pub update_creates: bool,
    /// Whether an update may omit `metadata.resourceVersion`.
    pub unconditional_update: bool,
    /// Format of its names.
    pub names: NameRule,
    /// Status of a new object as JSON text, whatever the request contains; empty: no status. `None`: the status in the
    /// request.
    pub first_status: Option<&'static str>,
    /// Definition of a custom resource.
    pub definition: Option<RowDefinition>,
}

impl PartialEq for ApiResource {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
            || match (&self.definition, &other.definition) {
                (Some(one), Some(other)) => one.digest == other.digest,
                (_, _) => false,
            }
    }
}

impl Eq for ApiResource {}

/// Shared reference to a row: to one of the built-in rows, which are static, or to a row of a custom resource, which is freed
/// with the last reference.
#[derive(Clone)]
pub struct KindRef(Row);

#[derive(Clone)]
enum Row {
    Builtin(&'static ApiResource),
    Defined(Arc<ApiResource>),
}

impl PartialEq for KindRef {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for KindRef {}

impl KindRef {
    /// Returns the address of a built-in row; `None` for a row of a custom resource, whose address is used again after it is
    /// freed.
    pub fn builtin_address(&self) -> Option<usize> {
        match &self.0 {
            Row::Builtin(row) => Some(std::ptr::from_ref(*row).addr()),
            Row::Defined(_) => None,
        }
    }

    /// Returns a reference that does not keep the row of a custom resource; `None` for a built-in row, which is never freed.
    pub fn downgrade(&self) -> Option<Weak<ApiResource>> {
        match &self.0 {
            Row::Builtin(_) => None,
            Row::Defined(row) => Some(Arc::downgrade(row)),
        }
    }
}

impl From<&'static ApiResource> for KindRef {
    /// Refers to a built-in row.
    fn from(row: &'static ApiResource) -> Self {
        Self(Row::Builtin(row))
    }
}

impl From<ApiResource> for KindRef {
    /// Shares a row of a custom resource.
    fn from(row: ApiResource) -> Self {
        Self(Row::Defined(Arc::new(row)))
    }
}

impl Deref for KindRef {
    type Target = ApiResource;

    fn deref(&self) -> &ApiResource {
        match &self.0 {
            Row::Builtin(row) => row,
            Row::Defined(row) => row,
        }
    }
}

impl fmt::Debug for KindRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// Verbs of a resource whose objects are read and written as a whole.
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

/// Verbs of a custom resource, in the order of apiextensions-apiserver's discovery.
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
    /// Returns the group and plural under which objects are stored: all versions of a resource share them.
    pub fn storage(&self) -> (&str, &str) {
        let group = self.shows.as_ref().map_or(&self.group, |(group, _)| group);
        (group, &self.plural)
    }

    /// Returns whether the field selector `metadata.namespace` is supported. Most cluster-scoped kinds support it too, with an
    /// empty value.
    pub(crate) fn selects_namespace(&self) -> bool {
        !matches!(
            self.unknown_field,
            UnknownField::OnlyName | UnknownField::NotSupportedForType
        )
    }

    /// Returns whether its collections or objects support `verb`.
    pub fn allows(&self, verb: &str) -> bool {
        self.verbs.contains(&verb)
    }

    /// Returns whether objects of it are stored. Reviews and bindings, for example, appear in discovery but cannot be read.
    pub fn is_stored(&self) -> bool {
        self.allows("delete") && self.allows("get")
    }

    /// Returns all subresources, in the order of discovery.
    pub fn subresources(&self) -> Vec<Part<'_>> {
        let mut parts = Vec::new();
        if self.status {
            parts.push(Part {
                name: "status",
                kind: &self.kind,
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

    /// Returns `storageVersionHash` of discovery; `None` for a resource that is not stored.
    ///
    /// Source: apiserver `endpoints/discovery/storageversionhash.go`.
    pub fn storage_version_hash(&self, version: Version) -> Option<String> {
        if !self.is_stored() {
            return None;
        }
        let shown = self.shows.as_ref();
        let (group, stored) = shown.map_or((&*self.group, &*self.version), |(group, version)| {
            (&**group, &**version)
        });
        let stored = match self.stored_as {
            Some((older, until)) if until.is_none_or(|until| version < until) => older,
            Some(_) | None => stored,
        };
        let digest = Sha256::digest(format!("{group}/{stored}/{}", self.kind));
        Some(STANDARD.encode(&digest[..8]))
    }

    /// Returns the API version: `v1`, `apps/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone().into_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Returns whether bodies with this `apiVersion` are decoded as this kind. Evictions of policy/v1beta1 are accepted,
    /// though that version is no longer served.
    pub fn is_read_from(&self, api_version: &str) -> bool {
        api_version == self.api_version() || self.kind == "Eviction" && api_version == "policy/v1beta1"
    }

    /// Returns the resource as messages name it: `configmaps`, `deployments.apps`.
    pub fn qualified(&self) -> String {
        qualified(&self.plural, &self.group)
    }

    /// Returns `namespace/name`, or `name` for cluster-scoped kinds: the key by which lists are sorted, bytewise.
    pub fn key(&self, namespace: Option<&str>, name: &str) -> String {
        match namespace {
            Some(namespace) if self.namespaced => [namespace, "/", name].concat(),
            Some(_) | None => name.to_owned(),
        }
    }

    /// Returns the Go type of its list, as in the message of a 406.
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
