//! Leases, events, priority classes and runtime classes.

use apimachinery::kind::{ApiResource, UnknownField};

use super::{CORE, field};

pub(super) static ROWS: &[ApiResource] = &[
    ApiResource {
        group: "coordination.k8s.io",
        plural: "leases",
        singular: "lease",
        kind: "Lease",
        list_kind: "LeaseList",
        fields: &["spec"],
        zero: r#","spec":{}"#,
        update_creates: true,
        unconditional_update: false,
        ..CORE
    },
    ApiResource {
        group: "events.k8s.io",
        plural: "events",
        singular: "event",
        kind: "Event",
        list_kind: "EventList",
        short_names: &["ev"],
        shows: Some(("", "v1")),
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
        selectable: &[
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
        ],
        unknown_field: UnknownField::NotSupported,
        update_creates: true,
        ..CORE
    },
    ApiResource {
        group: "flowcontrol.apiserver.k8s.io",
        plural: "flowschemas",
        singular: "flowschema",
        kind: "FlowSchema",
        list_kind: "FlowSchemaList",
        namespaced: false,
        status: true,
        generation: true,
        zero: r#","spec":{"priorityLevelConfiguration":{"name":""},"matchingPrecedence":0},"status":{}"#,
        first_status: Some("{}"),
        ..CORE
    },
    ApiResource {
        group: "flowcontrol.apiserver.k8s.io",
        plural: "prioritylevelconfigurations",
        singular: "prioritylevelconfiguration",
        kind: "PriorityLevelConfiguration",
        list_kind: "PriorityLevelConfigurationList",
        namespaced: false,
        status: true,
        generation: true,
        zero: r#","spec":{"type":""},"status":{}"#,
        first_status: Some("{}"),
        ..CORE
    },
    ApiResource {
        group: "node.k8s.io",
        plural: "runtimeclasses",
        singular: "runtimeclass",
        kind: "RuntimeClass",
        list_kind: "RuntimeClassList",
        namespaced: false,
        fields: &["handler", "overhead", "scheduling"],
        zero: r#","handler":"""#,
        update_creates: true,
        unconditional_update: false,
        ..CORE
    },
    ApiResource {
        group: "scheduling.k8s.io",
        plural: "priorityclasses",
        singular: "priorityclass",
        kind: "PriorityClass",
        list_kind: "PriorityClassList",
        short_names: &["pc"],
        namespaced: false,
        generation: true,
        fields: &["value", "globalDefault", "description", "preemptionPolicy"],
        zero: r#","value":0"#,
        ..CORE
    },
];
