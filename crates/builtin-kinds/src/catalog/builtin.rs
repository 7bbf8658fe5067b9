//! Rows of a stock apiserver, by group. All values were recorded from kube-apiserver (`fidelity/oracle/probes/kinds.yaml`).

use std::borrow::Cow::Borrowed;

use apimachinery::Version;
use apimachinery::kind::{
    ALL_VERBS, ApiResource, CUSTOM_VERBS, Deletion, Generation, NameRule, Names::Literal, Part, Review,
    Scale, ScaleSelector, SelectableField, SelectableFields, UnknownField,
};

mod access;
mod cluster;
mod core;
mod extension;
mod network;
mod storage;
mod workloads;

/// Returns all rows.
pub(super) fn rows() -> impl Iterator<Item = &'static ApiResource> {
    let files = [
        core::ROWS,
        workloads::ROWS,
        network::ROWS,
        storage::ROWS,
        access::ROWS,
        cluster::ROWS,
        extension::ROWS,
    ];
    files.into_iter().flatten()
}

/// A built-in, namespaced kind of the core group without special properties: the base of all rows.
const CORE: ApiResource = ApiResource {
    group: Borrowed(""),
    version: Borrowed("v1"),
    plural: Borrowed(""),
    singular: Borrowed(""),
    kind: Borrowed(""),
    list_kind: Borrowed(""),
    short_names: Literal(&[]),
    categories: Literal(&[]),
    verbs: ALL_VERBS,
    deprecation: Borrowed(""),
    since: Version::OLDEST,
    until: None,
    shows: None,
    stored_as: None,
    namespaced: true,
    custom: false,
    defines: false,
    watch_cached: true,
    status: false,
    scale: None,
    parts: &[],
    review: None,
    generation: Generation::None,
    fields: &["spec", "status"],
    zero: "",
    zero_annotations: &[],
    selectable: SelectableFields::Literal(&[]),
    unknown_field: UnknownField::OnlyNameAndNamespace,
    deletion: Deletion::AtOnce,
    orphans: false,
    deletion_shows_object: false,
    update_creates: false,
    unconditional_update: true,
    names: NameRule::Subdomain,
    first_status: None,
    definition: None,
};

/// `scale` of a kind with replicas and a label selector.
const REPLICAS: Scale = Scale {
    spec: Borrowed("/spec/replicas"),
    status: Borrowed("/status/replicas"),
    selector: ScaleSelector::Labels(Borrowed("/spec/selector")),
};

const fn selectable(
    label: &'static str,
    pointer: &'static str,
    default: &'static str,
) -> SelectableField<'static> {
    SelectableField {
        label,
        pointer,
        fallback: "",
        default,
    }
}

/// String field.
const fn field(label: &'static str, pointer: &'static str) -> SelectableField<'static> {
    selectable(label, pointer, "")
}

/// Boolean field.
const fn flag(label: &'static str, pointer: &'static str) -> SelectableField<'static> {
    selectable(label, pointer, "false")
}

/// Number field.
const fn count(label: &'static str, pointer: &'static str) -> SelectableField<'static> {
    selectable(label, pointer, "0")
}

const fn part(
    name: &'static str,
    kind: &'static str,
    group_version: Option<(&'static str, &'static str)>,
    verbs: &'static [&'static str],
) -> Part<'static> {
    Part {
        name,
        kind,
        group_version,
        verbs,
    }
}

/// Kind of `scale` subresources. It has no collection.
pub(super) static SCALE: ApiResource = ApiResource {
    group: Borrowed("autoscaling"),
    plural: Borrowed("scales"),
    singular: Borrowed("scale"),
    kind: Borrowed("Scale"),
    list_kind: Borrowed("ScaleList"),
    verbs: &[],
    ..CORE
};

/// Kind of requests for a token of a service account. It has no collection.
pub(super) static TOKEN_REQUEST: ApiResource = ApiResource {
    group: Borrowed("authentication.k8s.io"),
    plural: Borrowed("tokenrequests"),
    singular: Borrowed("tokenrequest"),
    kind: Borrowed("TokenRequest"),
    list_kind: Borrowed("TokenRequestList"),
    verbs: &[],
    review: Some(Review::NewToken),
    ..CORE
};

/// Kind of requests to evict a pod. It has no collection.
pub(super) static EVICTION: ApiResource = ApiResource {
    group: Borrowed("policy"),
    plural: Borrowed("evictions"),
    singular: Borrowed("eviction"),
    kind: Borrowed("Eviction"),
    list_kind: Borrowed("EvictionList"),
    verbs: &[],
    ..CORE
};

/// Custom resource of the scenarios.
pub(super) static WIDGET: ApiResource = ApiResource {
    group: Borrowed("probe.example.com"),
    plural: Borrowed("widgets"),
    singular: Borrowed("widget"),
    kind: Borrowed("Widget"),
    list_kind: Borrowed("WidgetList"),
    verbs: CUSTOM_VERBS,
    custom: true,
    status: true,
    generation: Generation::Spec,
    unconditional_update: false,
    first_status: Some(""),
    unknown_field: UnknownField::NotSupported,
    ..CORE
};
