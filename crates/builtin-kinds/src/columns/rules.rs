//! Cell of each column of each kind, from left to right.

use apimachinery::Version;
use apimachinery::kind::ApiResource;
use serde_json::Value;

use super::Cell::{self, Age, Computed, Count, CreatedAt, Flag, Name, Number, Text, TextOr};
use super::{cluster, extension, network, pods, selectors, workloads};

/// Cells of a kind without a printer.
pub(super) const FALLBACK: &[Cell] = &[Name, CreatedAt];

/// Cells of a definition; its printer, too, has no rows for an empty list.
pub(super) const DEFINITION: &[Cell] = &[
    Name,
    Text("/spec/scope"),
    Computed(extension::served_versions),
    CreatedAt,
    Text("/spec/group"),
    Text("/spec/names/kind"),
    Computed(extension::short_names),
    Computed(extension::is_established),
];

const NAME_AND_AGE: &[Cell] = &[Name, Age];

const EVENT: &[Cell] = &[
    Computed(cluster::event_last_seen),
    Text("/type"),
    Text("/reason"),
    Computed(cluster::event_object),
    Computed(cluster::event_subobject),
    Computed(cluster::event_source),
    Computed(cluster::event_message),
    Computed(cluster::event_first_seen),
    Computed(cluster::event_count),
    Name,
];

const AUTOSCALER: &[Cell] = &[
    Name,
    Computed(workloads::autoscaled),
    Computed(workloads::autoscaler_targets),
    Computed(workloads::autoscaler_minimum),
    Number("/spec/maxReplicas"),
    Number("/status/currentReplicas"),
    Age,
];

const BINDING: &[Cell] = &[
    Name,
    Computed(cluster::bound_role),
    Age,
    Computed(cluster::bound_users),
    Computed(cluster::bound_groups),
    Computed(cluster::bound_service_accounts),
];

const ADMISSION_BINDING: &[Cell] = &[
    Name,
    Text("/spec/policyName"),
    Computed(extension::admission_parameter),
    Age,
];

/// Group, resource and cells.
pub(super) const RULES: &[(&str, &str, &[Cell])] = &[
    ("", "configmaps", &[Name, Count(&["/data", "/binaryData"]), Age]),
    (
        "",
        "componentstatuses",
        &[
            Name,
            Computed(cluster::component_status),
            Text("/conditions/0/message"),
            Text("/conditions/0/error"),
        ],
    ),
    ("", "endpoints", &[Name, Computed(network::endpoints), Age]),
    ("", "events", EVENT),
    ("", "limitranges", FALLBACK),
    ("", "namespaces", &[Name, Text("/status/phase"), Age]),
    (
        "",
        "nodes",
        &[
            Name,
            Computed(cluster::node_status),
            Computed(cluster::node_roles),
            Age,
            Text("/status/nodeInfo/kubeletVersion"),
            Computed(cluster::node_internal_ip),
            Computed(cluster::node_external_ip),
            TextOr("/status/nodeInfo/osImage", "<unknown>"),
            Computed(cluster::node_kernel),
            TextOr("/status/nodeInfo/containerRuntimeVersion", "<unknown>"),
        ],
    ),
    (
        "",
        "persistentvolumeclaims",
        &[
            Name,
            Computed(cluster::volume_status),
            Text("/spec/volumeName"),
            Computed(cluster::claim_capacity),
            Computed(cluster::claim_access_modes),
            Computed(cluster::storage_class_of),
            TextOr("/spec/volumeAttributesClassName", "<unset>"),
            Age,
            TextOr("/spec/volumeMode", "<unset>"),
        ],
    ),
    (
        "",
        "persistentvolumes",
        &[
            Name,
            Computed(cluster::volume_capacity),
            Computed(cluster::volume_access_modes),
            Text("/spec/persistentVolumeReclaimPolicy"),
            Computed(cluster::volume_status),
            Computed(cluster::volume_claim),
            Computed(cluster::storage_class_of),
            TextOr("/spec/volumeAttributesClassName", "<unset>"),
            Text("/status/reason"),
            Age,
            TextOr("/spec/volumeMode", "<unset>"),
        ],
    ),
    (
        "",
        "pods",
        &[
            Name,
            Computed(pods::ready),
            Computed(pods::status),
            Computed(pods::restarts),
            Age,
            TextOr("/status/podIPs/0/ip", "<none>"),
            TextOr("/spec/nodeName", "<none>"),
            TextOr("/status/nominatedNodeName", "<none>"),
            Computed(pods::readiness_gates),
        ],
    ),
    (
        "",
        "podtemplates",
        &[
            Name,
            Computed(|row| workloads::names(row, "/template/spec/containers")),
            Computed(|row| workloads::images(row, "/template/spec/containers")),
            Computed(|row| selectors::labels(row.object.pointer("/template/metadata/labels")).into()),
        ],
    ),
    (
        "",
        "replicationcontrollers",
        &[
            Name,
            Number("/spec/replicas"),
            Number("/status/replicas"),
            Number("/status/readyReplicas"),
            Age,
            Computed(workloads::container_names),
            Computed(workloads::container_images),
            Computed(network::selected_labels),
        ],
    ),
    (
        "",
        "resourcequotas",
        &[
            Name,
            Computed(cluster::quota_requests),
            Computed(cluster::quota_limits),
            Age,
        ],
    ),
    ("", "secrets", &[Name, Text("/type"), Count(&["/data"]), Age]),
    ("", "serviceaccounts", NAME_AND_AGE),
    (
        "",
        "services",
        &[
            Name,
            Text("/spec/type"),
            TextOr("/spec/clusterIPs/0", "<none>"),
            Computed(network::external_ip),
            Computed(network::service_ports),
            Age,
            Computed(network::selected_labels),
        ],
    ),
    (
        "apiregistration.k8s.io",
        "apiservices",
        &[
            Name,
            Computed(extension::api_service),
            Computed(extension::api_availability),
            Age,
        ],
    ),
    (
        "apps",
        "controllerrevisions",
        &[Name, Computed(workloads::controller), Number("/revision"), Age],
    ),
    (
        "apps",
        "daemonsets",
        &[
            Name,
            Number("/status/desiredNumberScheduled"),
            Number("/status/currentNumberScheduled"),
            Number("/status/numberReady"),
            Number("/status/updatedNumberScheduled"),
            Number("/status/numberAvailable"),
            Computed(workloads::node_selector),
            Age,
            Computed(workloads::container_names),
            Computed(workloads::container_images),
            Computed(workloads::selector),
        ],
    ),
    (
        "apps",
        "deployments",
        &[
            Name,
            Computed(workloads::ready),
            Number("/status/updatedReplicas"),
            Number("/status/availableReplicas"),
            Age,
            Computed(workloads::container_names),
            Computed(workloads::container_images),
            Computed(workloads::bare_selector),
        ],
    ),
    (
        "apps",
        "replicasets",
        &[
            Name,
            Number("/spec/replicas"),
            Number("/status/replicas"),
            Number("/status/readyReplicas"),
            Age,
            Computed(workloads::container_names),
            Computed(workloads::container_images),
            Computed(workloads::selector),
        ],
    ),
    (
        "apps",
        "statefulsets",
        &[
            Name,
            Computed(workloads::ready),
            Age,
            Computed(workloads::container_names),
            Computed(workloads::container_images),
        ],
    ),
    ("events.k8s.io", "events", EVENT),
    ("autoscaling", "horizontalpodautoscalers", AUTOSCALER),
    (
        "autoscaling",
        "scales",
        &[Name, Number("/spec/replicas"), Number("/status/replicas"), Age],
    ),
    (
        "batch",
        "cronjobs",
        &[
            Name,
            Text("/spec/schedule"),
            TextOr("/spec/timeZone", "<none>"),
            Computed(workloads::suspended),
            Count(&["/status/active"]),
            Computed(workloads::last_schedule),
            Age,
            Computed(|row| workloads::names(row, "/spec/jobTemplate/spec/template/spec/containers")),
            Computed(|row| workloads::images(row, "/spec/jobTemplate/spec/template/spec/containers")),
            Computed(|row| selectors::shown(row.object.pointer("/spec/jobTemplate/spec/selector")).into()),
        ],
    ),
    (
        "batch",
        "jobs",
        &[
            Name,
            Computed(workloads::job_status),
            Computed(workloads::completions),
            Computed(workloads::job_duration),
            Age,
            Computed(workloads::container_names),
            Computed(workloads::container_images),
            Computed(workloads::selector),
        ],
    ),
    (
        "certificates.k8s.io",
        "certificatesigningrequests",
        &[
            Name,
            Age,
            TextOr("/spec/signerName", "<none>"),
            Text("/spec/username"),
            Computed(extension::requested_duration),
            Computed(extension::signing_state),
        ],
    ),
    (
        "certificates.k8s.io",
        "clustertrustbundles",
        &[Name, TextOr("/spec/signerName", "<none>")],
    ),
    (
        "certificates.k8s.io",
        "podcertificaterequests",
        &[
            Name,
            Text("/spec/podName"),
            Text("/spec/serviceAccountName"),
            Text("/spec/nodeName"),
            Text("/spec/signerName"),
            Computed(extension::certificate_state),
            Computed(extension::unverified_annotations),
        ],
    ),
    (
        "resource.k8s.io",
        "devicetaintrules",
        &[
            Name,
            Text("/spec/taint/key"),
            Text("/spec/taint/value"),
            Text("/spec/taint/effect"),
            Computed(extension::tainted_since),
            Age,
        ],
    ),
    (
        "storagemigration.k8s.io",
        "storageversionmigrations",
        &[
            Name,
            Computed(extension::migrated_resource),
            Computed(extension::migration_state),
        ],
    ),
    (
        "networking.k8s.io",
        "ingressclasses",
        &[
            Computed(network::ingress_class_name),
            Text("/spec/controller"),
            Computed(network::ingress_class_parameters),
            Age,
        ],
    ),
    (
        "networking.k8s.io",
        "ingresses",
        &[
            Name,
            TextOr("/spec/ingressClassName", "<none>"),
            Computed(network::ingress_hosts),
            Computed(network::ingress_address),
            Computed(network::ingress_ports),
            Age,
        ],
    ),
    (
        "networking.k8s.io",
        "ipaddresses",
        &[Name, Computed(network::ip_address_parent), Age],
    ),
    (
        "networking.k8s.io",
        "networkpolicies",
        &[
            Name,
            Computed(|row| {
                selectors::shown(Some(
                    row.object.pointer("/spec/podSelector").unwrap_or(&Value::Null),
                ))
                .into()
            }),
            Age,
        ],
    ),
    (
        "networking.k8s.io",
        "servicecidrs",
        &[Name, Computed(network::cidrs), Age],
    ),
    (
        "policy",
        "poddisruptionbudgets",
        &[
            Name,
            Computed(workloads::min_available),
            Computed(workloads::max_unavailable),
            Number("/status/disruptionsAllowed"),
            Age,
        ],
    ),
    ("rbac.authorization.k8s.io", "clusterrolebindings", BINDING),
    ("rbac.authorization.k8s.io", "rolebindings", BINDING),
    ("rbac.authorization.k8s.io", "clusterroles", FALLBACK),
    ("rbac.authorization.k8s.io", "roles", FALLBACK),
    (
        "storage.k8s.io",
        "csidrivers",
        &[
            Name,
            Flag("/spec/attachRequired", true),
            Flag("/spec/podInfoOnMount", false),
            Flag("/spec/storageCapacity", false),
            Computed(extension::token_audiences),
            Flag("/spec/requiresRepublish", false),
            Computed(extension::driver_modes),
            Age,
        ],
    ),
    (
        "storage.k8s.io",
        "csinodes",
        &[Name, Count(&["/spec/drivers"]), Age],
    ),
    ("storage.k8s.io", "csistoragecapacities", FALLBACK),
    (
        "storage.k8s.io",
        "storageclasses",
        &[
            Computed(cluster::storage_class_name),
            Text("/provisioner"),
            TextOr("/reclaimPolicy", "Delete"),
            TextOr("/volumeBindingMode", "Immediate"),
            Flag("/allowVolumeExpansion", false),
            Age,
        ],
    ),
    (
        "storage.k8s.io",
        "volumeattachments",
        &[
            Name,
            Text("/spec/attacher"),
            Text("/spec/source/persistentVolumeName"),
            Text("/spec/nodeName"),
            Flag("/status/attached", false),
            Age,
        ],
    ),
    (
        "storage.k8s.io",
        "volumeattributesclasses",
        &[Name, Text("/driverName"), Age],
    ),
    (
        "admissionregistration.k8s.io",
        "mutatingadmissionpolicies",
        &[
            Name,
            Count(&["/spec/mutations"]),
            Computed(extension::admission_parameter_kind),
            Age,
        ],
    ),
    (
        "admissionregistration.k8s.io",
        "mutatingadmissionpolicybindings",
        ADMISSION_BINDING,
    ),
    (
        "admissionregistration.k8s.io",
        "mutatingwebhookconfigurations",
        &[Name, Count(&["/webhooks"]), Age],
    ),
    (
        "admissionregistration.k8s.io",
        "validatingadmissionpolicies",
        &[
            Name,
            Count(&["/spec/validations"]),
            Computed(extension::admission_parameter_kind),
            Age,
        ],
    ),
    (
        "admissionregistration.k8s.io",
        "validatingadmissionpolicybindings",
        ADMISSION_BINDING,
    ),
    (
        "admissionregistration.k8s.io",
        "validatingwebhookconfigurations",
        &[Name, Count(&["/webhooks"]), Age],
    ),
    ("apiextensions.k8s.io", "customresourcedefinitions", DEFINITION),
    (
        "scheduling.k8s.io",
        "priorityclasses",
        &[
            Name,
            Number("/value"),
            Flag("/globalDefault", false),
            Age,
            Text("/preemptionPolicy"),
        ],
    ),
    (
        "coordination.k8s.io",
        "leases",
        &[Name, Text("/spec/holderIdentity"), Age],
    ),
    ("node.k8s.io", "runtimeclasses", &[Name, Text("/handler"), Age]),
    (
        "discovery.k8s.io",
        "endpointslices",
        &[
            Name,
            Text("/addressType"),
            Computed(network::slice_ports),
            Computed(network::slice_endpoints),
            Age,
        ],
    ),
    ("resource.k8s.io", "deviceclasses", NAME_AND_AGE),
    (
        "resource.k8s.io",
        "resourceclaims",
        &[Name, Computed(extension::claim_state), Age],
    ),
    ("resource.k8s.io", "resourceclaimtemplates", NAME_AND_AGE),
    (
        "resource.k8s.io",
        "resourceslices",
        &[
            Name,
            Text("/spec/nodeName"),
            Text("/spec/driver"),
            Text("/spec/pool/name"),
            Age,
        ],
    ),
    (
        "flowcontrol.apiserver.k8s.io",
        "flowschemas",
        &[
            Name,
            Text("/spec/priorityLevelConfiguration/name"),
            Number("/spec/matchingPrecedence"),
            TextOr("/spec/distinguisherMethod/type", "<none>"),
            Age,
            Computed(extension::dangling),
        ],
    ),
    (
        "flowcontrol.apiserver.k8s.io",
        "prioritylevelconfigurations",
        &[
            Name,
            Text("/spec/type"),
            Computed(|row| extension::limited(row, "/spec/limited/nominalConcurrencyShares")),
            Computed(|row| extension::limited(row, "/spec/limited/limitResponse/queuing/queues")),
            Computed(|row| extension::limited(row, "/spec/limited/limitResponse/queuing/handSize")),
            Computed(|row| extension::limited(row, "/spec/limited/limitResponse/queuing/queueLengthLimit")),
            Age,
        ],
    ),
];

/// Cells of older versions that differ.
pub(super) struct Older {
    group: &'static str,
    plural: &'static str,
    before: Version,
    pub(super) cells: &'static [Cell],
}

impl Older {
    pub(super) fn applies_to(&self, kind: &ApiResource, version: Version) -> bool {
        self.group == kind.group && self.plural == kind.plural && version < self.before
    }
}

pub(super) const OLDER: &[Older] = &[
    Older {
        group: "",
        plural: "serviceaccounts",
        before: Version::V1_35,
        cells: &[Name, Count(&["/secrets"]), Age],
    },
    Older {
        group: "apiextensions.k8s.io",
        plural: "customresourcedefinitions",
        before: Version::V1_37,
        cells: FALLBACK,
    },
];
