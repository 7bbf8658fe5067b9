//! The rows of a stock apiserver.

use crate::scenario::Version;

use super::{ALL_VERBS, Deletion, Kind, NameRule, SelectableField, UnknownField};

/// All of them, group by group.
pub(super) fn rows() -> impl Iterator<Item = &'static Kind> {
    KINDS.iter()
}

const fn field(label: &'static str, pointer: &'static str) -> SelectableField {
    SelectableField {
        label,
        pointer,
        default: "",
    }
}

const fn flag(label: &'static str, pointer: &'static str) -> SelectableField {
    SelectableField {
        label,
        pointer,
        default: "false",
    }
}

/// A built-in, namespaced kind of the core group with nothing special: the row the others differ from.
pub(super) const CORE: Kind = Kind {
    group: "",
    version: "v1",
    plural: "",
    singular: "",
    kind: "",
    list_kind: "",
    short_names: &[],
    categories: &[],
    verbs: ALL_VERBS,
    since: Version::V1_33,
    shows: None,
    stored_as: None,
    namespaced: true,
    custom: false,
    watch_cached: true,
    status: false,
    scale: None,
    parts: &[],
    generation: false,
    fields: &["spec", "status"],
    zero: "",
    selectable: &[],
    unknown_field: UnknownField::NotSupported,
    deletion: Deletion::AtOnce,
    deletion_shows_object: false,
    update_creates: false,
    unconditional_update: true,
    names: NameRule::Subdomain,
    first_status: None,
    definition: None,
};

static KINDS: [Kind; 10] = [
    Kind {
        plural: "configmaps",
        singular: "configmap",
        kind: "ConfigMap",
        list_kind: "ConfigMapList",
        short_names: &["cm"],
        fields: &["immutable", "data", "binaryData"],
        unknown_field: UnknownField::OnlyNameAndNamespace,
        ..CORE
    },
    Kind {
        plural: "events",
        singular: "event",
        kind: "Event",
        list_kind: "EventList",
        short_names: &["ev"],
        watch_cached: false,
        fields: &[
            "involvedObject",
            "reason",
            "message",
            "source",
            "firstTimestamp",
            "lastTimestamp",
            "count",
            "type",
            "eventTime",
            "series",
            "action",
            "related",
            "reportingComponent",
            "reportingInstance",
        ],
        zero: concat!(
            r#","involvedObject":{},"source":{},"firstTimestamp":null,"lastTimestamp":null,"eventTime":null"#,
            r#","reportingComponent":"","reportingInstance":"""#
        ),
        selectable: &[
            field("involvedObject.kind", "/involvedObject/kind"),
            field("involvedObject.namespace", "/involvedObject/namespace"),
            field("involvedObject.name", "/involvedObject/name"),
            field("involvedObject.uid", "/involvedObject/uid"),
            field("involvedObject.apiVersion", "/involvedObject/apiVersion"),
            field(
                "involvedObject.resourceVersion",
                "/involvedObject/resourceVersion",
            ),
            field("involvedObject.fieldPath", "/involvedObject/fieldPath"),
            field("reason", "/reason"),
            field("reportingComponent", "/reportingComponent"),
            field("source", "/source/component"),
            field("type", "/type"),
        ],
        update_creates: true,
        ..CORE
    },
    Kind {
        plural: "namespaces",
        singular: "namespace",
        kind: "Namespace",
        list_kind: "NamespaceList",
        short_names: &["ns"],
        namespaced: false,
        status: true,
        zero: r#","spec":{},"status":{}"#,
        selectable: &[field("status.phase", "/status/phase")],
        deletion: Deletion::WhenEmpty,
        deletion_shows_object: true,
        names: NameRule::Label,
        first_status: Some(r#"{"phase":"Active"}"#),
        ..CORE
    },
    Kind {
        plural: "nodes",
        singular: "node",
        kind: "Node",
        list_kind: "NodeList",
        short_names: &["no"],
        namespaced: false,
        status: true,
        zero: concat!(
            r#","spec":{},"status":{"daemonEndpoints":{"kubeletEndpoint":{"Port":0}},"nodeInfo":{"machineID":"""#,
            r#","systemUUID":"","bootID":"","kernelVersion":"","osImage":"","containerRuntimeVersion":"""#,
            r#","kubeletVersion":"","kubeProxyVersion":"","operatingSystem":"","architecture":""}}"#
        ),
        selectable: &[flag("spec.unschedulable", "/spec/unschedulable")],
        ..CORE
    },
    Kind {
        plural: "pods",
        singular: "pod",
        kind: "Pod",
        list_kind: "PodList",
        short_names: &["po"],
        status: true,
        generation: true,
        zero: r#","spec":{"containers":null},"status":{}"#,
        selectable: &[
            field("spec.nodeName", "/spec/nodeName"),
            field("spec.restartPolicy", "/spec/restartPolicy"),
            field("spec.schedulerName", "/spec/schedulerName"),
            field("spec.serviceAccountName", "/spec/serviceAccountName"),
            flag("spec.hostNetwork", "/spec/hostNetwork"),
            field("status.phase", "/status/phase"),
            field("status.podIP", "/status/podIP"),
            field("status.nominatedNodeName", "/status/nominatedNodeName"),
        ],
        deletion: Deletion::AfterGrace,
        deletion_shows_object: true,
        first_status: Some(r#"{"phase":"Pending"}"#),
        ..CORE
    },
    Kind {
        plural: "secrets",
        singular: "secret",
        kind: "Secret",
        list_kind: "SecretList",
        fields: &["immutable", "data", "stringData", "type"],
        selectable: &[field("type", "/type")],
        ..CORE
    },
    Kind {
        plural: "services",
        singular: "service",
        kind: "Service",
        list_kind: "ServiceList",
        short_names: &["svc"],
        status: true,
        zero: r#","spec":{},"status":{"loadBalancer":{}}"#,
        selectable: &[
            field("spec.clusterIP", "/spec/clusterIP"),
            field("spec.type", "/spec/type"),
        ],
        deletion_shows_object: true,
        update_creates: true,
        names: NameRule::LetterLabel,
        first_status: Some(r#"{"loadBalancer":{}}"#),
        ..CORE
    },
    Kind {
        group: "apps",
        plural: "deployments",
        singular: "deployment",
        kind: "Deployment",
        list_kind: "DeploymentList",
        short_names: &["deploy"],
        status: true,
        generation: true,
        zero: concat!(
            r#","spec":{"replicas":0,"selector":null,"template":{"metadata":{0},"spec":{"containers":null}}"#,
            r#","strategy":{}},"status":{}"#
        ),
        unknown_field: UnknownField::OnlyNameAndNamespace,
        first_status: Some("{}"),
        ..CORE
    },
    Kind {
        group: "batch",
        plural: "jobs",
        singular: "job",
        kind: "Job",
        list_kind: "JobList",
        status: true,
        generation: true,
        zero: r#","spec":{"template":{"metadata":{0},"spec":{"containers":null}}},"status":{}"#,
        selectable: &[SelectableField {
            label: "status.successful",
            pointer: "/status/succeeded",
            default: "0",
        }],
        first_status: Some("{}"),
        ..CORE
    },
    Kind {
        group: "coordination.k8s.io",
        plural: "leases",
        singular: "lease",
        kind: "Lease",
        list_kind: "LeaseList",
        fields: &["spec"],
        zero: r#","spec":{}"#,
        unknown_field: UnknownField::OnlyNameAndNamespace,
        update_creates: true,
        unconditional_update: false,
        ..CORE
    },
];

/// The custom resource that scenarios speak of.
pub(super) static WIDGET: Kind = Kind {
    group: "probe.example.com",
    plural: "widgets",
    singular: "widget",
    kind: "Widget",
    list_kind: "WidgetList",
    custom: true,
    status: true,
    generation: true,
    unconditional_update: false,
    first_status: Some(""),
    ..CORE
};
