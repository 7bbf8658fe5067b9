//! The kinds that are served, as one table: everything that differs from kind to kind is a column here.
//!
//! Nothing else in the model may ask for a kind by name.

/// How a kind answers a field selector it does not support (the conversion functions of each API group).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnknownField {
    /// `"x" is not a known field selector: only "metadata.name", "metadata.namespace"`.
    OnlyNameAndNamespace,
    /// `field label not supported: x`.
    NotSupported,
}

/// A field selector beyond `metadata.name` and `metadata.namespace`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SelectableField {
    /// The label a request uses.
    pub label: &'static str,
    /// Where the value is, as a JSON pointer.
    pub pointer: &'static str,
    /// The value where there is none.
    pub default: &'static str,
}

/// What a deletion waits for, beside finalizers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletion {
    /// Nothing.
    AtOnce,
    /// Once it is placed on a node, the grace period: whoever runs it deletes it for good.
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
    /// A DNS label that begins with a letter (RFC 1035).
    LetterLabel,
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

/// One kind.
#[derive(Debug, PartialEq, Eq)]
pub struct Kind {
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
    /// Do its objects live in namespaces?
    pub namespaced: bool,
    /// Is it a custom resource: keys sorted at all depths, items with their type, other texts for refusals?
    pub custom: bool,
    /// Is it served from a watch cache? Events are read from etcd.
    pub watch_cached: bool,
    /// Does it have a `status` subresource?
    pub status: bool,
    /// Does `metadata.generation` count changes of its content?
    pub generation: bool,
    /// Order of the keys after `metadata`.
    pub fields: &'static [&'static str],
    /// What a zero value has after `metadata`, as JSON text with a leading comma: the body of a bookmark.
    /// `{0}` stands for a zero `ObjectMeta`.
    pub zero: &'static str,
    /// Fields that can be selected by, beside name and namespace.
    pub selectable: &'static [SelectableField],
    /// What is said to the others.
    pub unknown_field: UnknownField,
    /// What its deletion waits for.
    pub deletion: Deletion,
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
}

impl Kind {
    /// `v1`, `apps/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
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
            Some(namespace) if self.namespaced => format!("{namespace}/{name}"),
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

/// A built-in, namespaced kind of the core group with nothing special: the row the others differ from.
const CORE: Kind = Kind {
    group: "",
    version: "v1",
    plural: "",
    singular: "",
    kind: "",
    list_kind: "",
    short_names: &[],
    namespaced: true,
    custom: false,
    watch_cached: true,
    status: false,
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
};

static KINDS: [Kind; 11] = [
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
    Kind {
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
    },
];

/// Groups of a stock apiserver: an unknown path below one of them is refused by the apiserver itself, in its own
/// dialect, and below any other group by nobody, in plain text.
pub const BUILTIN_GROUPS: &[&str] = &[
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "apps",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
];

/// The kinds that are served.
#[derive(Debug, Clone, Copy)]
pub struct Catalog {
    kinds: &'static [Kind],
}

impl Catalog {
    /// All of them.
    pub fn builtin() -> Self {
        Self { kinds: &KINDS }
    }

    /// The kind of this group and plural.
    pub fn find(&self, group: &str, plural: &str) -> Option<&'static Kind> {
        self.kinds
            .iter()
            .find(|kind| kind.group == group && kind.plural == plural)
    }

    /// All of them, in the order of the table.
    pub fn kinds(&self) -> &'static [Kind] {
        self.kinds
    }
}
