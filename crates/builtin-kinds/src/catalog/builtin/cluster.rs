//! Leases, events, priority classes and runtime classes.

use std::borrow::Cow::Borrowed;

use apimachinery::kind::{ApiResource, Generation, Names::Literal, SelectableFields, UnknownField};

use super::{CORE, field};

pub(super) static ROWS: &[ApiResource] = &[
    ApiResource {
        group: Borrowed("coordination.k8s.io"),
        plural: Borrowed("leases"),
        singular: Borrowed("lease"),
        kind: Borrowed("Lease"),
        list_kind: Borrowed("LeaseList"),
        fields: &["spec"],
        zero: r#","spec":{}"#,
        update_creates: true,
        unconditional_update: false,
        ..CORE
    },
    ApiResource {
        group: Borrowed("events.k8s.io"),
        plural: Borrowed("events"),
        singular: Borrowed("event"),
        kind: Borrowed("Event"),
        list_kind: Borrowed("EventList"),
        short_names: Literal(&["ev"]),
        shows: Some((Borrowed(""), Borrowed("v1"))),
        watch_cached: false,
        fields: &[
            "eventTime",
            "series",
            "reportingController",
            "reportingInstance",
            "action",
            "reason",
            "regarding",
            "related",
            "note",
            "type",
            "deprecatedSource",
            "deprecatedFirstTimestamp",
            "deprecatedLastTimestamp",
            "deprecatedCount",
        ],
        zero: concat!(
            r#","eventTime":null,"regarding":{},"deprecatedSource":{},"#,
            r#""deprecatedFirstTimestamp":null,"deprecatedLastTimestamp":null"#,
        ),
        selectable: SelectableFields::Literal(&[
            field("regarding.kind", "/regarding/kind"),
            field("regarding.namespace", "/regarding/namespace"),
            field("regarding.name", "/regarding/name"),
            field("regarding.uid", "/regarding/uid"),
            field("regarding.apiVersion", "/regarding/apiVersion"),
            field("regarding.resourceVersion", "/regarding/resourceVersion"),
            field("regarding.fieldPath", "/regarding/fieldPath"),
            field("reason", "/reason"),
            field("reportingController", "/reportingController"),
            field("type", "/type"),
        ]),
        unknown_field: UnknownField::NotSupported,
        update_creates: true,
        ..CORE
    },
    ApiResource {
        group: Borrowed("flowcontrol.apiserver.k8s.io"),
        plural: Borrowed("flowschemas"),
        singular: Borrowed("flowschema"),
        kind: Borrowed("FlowSchema"),
        list_kind: Borrowed("FlowSchemaList"),
        namespaced: false,
        status: true,
        generation: Generation::Spec,
        zero: r#","spec":{"priorityLevelConfiguration":{"name":""},"matchingPrecedence":0},"status":{}"#,
        first_status: Some("{}"),
        ..CORE
    },
    ApiResource {
        group: Borrowed("flowcontrol.apiserver.k8s.io"),
        plural: Borrowed("prioritylevelconfigurations"),
        singular: Borrowed("prioritylevelconfiguration"),
        kind: Borrowed("PriorityLevelConfiguration"),
        list_kind: Borrowed("PriorityLevelConfigurationList"),
        namespaced: false,
        status: true,
        generation: Generation::Spec,
        zero: r#","spec":{"type":""},"status":{}"#,
        first_status: Some("{}"),
        ..CORE
    },
    ApiResource {
        group: Borrowed("node.k8s.io"),
        plural: Borrowed("runtimeclasses"),
        singular: Borrowed("runtimeclass"),
        kind: Borrowed("RuntimeClass"),
        list_kind: Borrowed("RuntimeClassList"),
        namespaced: false,
        fields: &["handler", "overhead", "scheduling"],
        zero: r#","handler":"""#,
        update_creates: true,
        unconditional_update: false,
        ..CORE
    },
    ApiResource {
        group: Borrowed("scheduling.k8s.io"),
        plural: Borrowed("priorityclasses"),
        singular: Borrowed("priorityclass"),
        kind: Borrowed("PriorityClass"),
        list_kind: Borrowed("PriorityClassList"),
        short_names: Literal(&["pc"]),
        namespaced: false,
        generation: Generation::One,
        fields: &["value", "globalDefault", "description", "preemptionPolicy"],
        zero: r#","value":0"#,
        ..CORE
    },
];
