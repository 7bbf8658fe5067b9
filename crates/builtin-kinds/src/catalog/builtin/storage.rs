//! Storage classes, CSI and devices.

use std::borrow::Cow::Borrowed;

use apimachinery::Version;
use apimachinery::kind::{ApiResource, Generation, Names::Literal, SelectableFields, UnknownField};

use super::{CORE, field};

/// CSINode.
const NODE: ApiResource = ApiResource {
    group: Borrowed("storage.k8s.io"),
    plural: Borrowed("csinodes"),
    singular: Borrowed("csinode"),
    kind: Borrowed("CSINode"),
    list_kind: Borrowed("CSINodeList"),
    namespaced: false,
    fields: &["spec"],
    zero: r#","spec":{"drivers":null}"#,
    deletion_shows_object: true,
    unconditional_update: false,
    ..CORE
};

pub(super) static ROWS: &[ApiResource] = &[
    ApiResource {
        group: Borrowed("storage.k8s.io"),
        plural: Borrowed("csidrivers"),
        singular: Borrowed("csidriver"),
        kind: Borrowed("CSIDriver"),
        list_kind: Borrowed("CSIDriverList"),
        namespaced: false,
        fields: &["spec"],
        zero: r#","spec":{}"#,
        deletion_shows_object: true,
        unconditional_update: false,
        ..CORE
    },
    ApiResource {
        until: Some(Version::V1_37),
        ..NODE
    },
    ApiResource {
        since: Version::V1_37,
        status: true,
        fields: CORE.fields,
        zero: r#","spec":{"drivers":null},"status":{}"#,
        first_status: Some("{}"),
        ..NODE
    },
    ApiResource {
        group: Borrowed("storage.k8s.io"),
        plural: Borrowed("csistoragecapacities"),
        singular: Borrowed("csistoragecapacity"),
        kind: Borrowed("CSIStorageCapacity"),
        list_kind: Borrowed("CSIStorageCapacityList"),
        fields: &[
            "nodeTopology",
            "storageClassName",
            "capacity",
            "maximumVolumeSize",
        ],
        zero: r#","storageClassName":"""#,
        unconditional_update: false,
        ..CORE
    },
    ApiResource {
        group: Borrowed("storage.k8s.io"),
        plural: Borrowed("storageclasses"),
        singular: Borrowed("storageclass"),
        kind: Borrowed("StorageClass"),
        list_kind: Borrowed("StorageClassList"),
        short_names: Literal(&["sc"]),
        namespaced: false,
        fields: &[
            "provisioner",
            "parameters",
            "reclaimPolicy",
            "mountOptions",
            "allowVolumeExpansion",
            "volumeBindingMode",
            "allowedTopologies",
        ],
        zero: r#","provisioner":"""#,
        deletion_shows_object: true,
        ..CORE
    },
    ApiResource {
        group: Borrowed("storage.k8s.io"),
        plural: Borrowed("volumeattachments"),
        singular: Borrowed("volumeattachment"),
        kind: Borrowed("VolumeAttachment"),
        list_kind: Borrowed("VolumeAttachmentList"),
        namespaced: false,
        status: true,
        zero: r#","spec":{"attacher":"","source":{},"nodeName":""},"status":{"attached":false}"#,
        deletion_shows_object: true,
        unconditional_update: false,
        first_status: Some(r#"{"attached":false}"#),
        ..CORE
    },
    ApiResource {
        group: Borrowed("storage.k8s.io"),
        plural: Borrowed("volumeattributesclasses"),
        singular: Borrowed("volumeattributesclass"),
        kind: Borrowed("VolumeAttributesClass"),
        list_kind: Borrowed("VolumeAttributesClassList"),
        short_names: Literal(&["vac"]),
        since: Version::V1_34,
        stored_as: Some(("v1beta1", Some(Version::V1_36))),
        namespaced: false,
        fields: &["driverName", "parameters"],
        zero: r#","driverName":"""#,
        deletion_shows_object: true,
        ..CORE
    },
    ApiResource {
        group: Borrowed("resource.k8s.io"),
        plural: Borrowed("deviceclasses"),
        singular: Borrowed("deviceclass"),
        kind: Borrowed("DeviceClass"),
        list_kind: Borrowed("DeviceClassList"),
        since: Version::V1_34,
        stored_as: Some(("v1beta2", Some(Version::V1_35))),
        namespaced: false,
        generation: Generation::Spec,
        fields: &["spec"],
        zero: r#","spec":{}"#,
        deletion_shows_object: true,
        ..CORE
    },
    ApiResource {
        group: Borrowed("resource.k8s.io"),
        plural: Borrowed("devicetaintrules"),
        singular: Borrowed("devicetaintrule"),
        kind: Borrowed("DeviceTaintRule"),
        list_kind: Borrowed("DeviceTaintRuleList"),
        since: Version::V1_37,
        stored_as: Some(("v1beta2", None)),
        namespaced: false,
        status: true,
        generation: Generation::Spec,
        zero: r#","spec":{"taint":{"key":"","effect":""}},"status":{}"#,
        unconditional_update: false,
        first_status: Some("{}"),
        ..CORE
    },
    ApiResource {
        group: Borrowed("resource.k8s.io"),
        plural: Borrowed("resourceclaims"),
        singular: Borrowed("resourceclaim"),
        kind: Borrowed("ResourceClaim"),
        list_kind: Borrowed("ResourceClaimList"),
        since: Version::V1_34,
        stored_as: Some(("v1beta2", Some(Version::V1_35))),
        status: true,
        zero: r#","spec":{"devices":{"requests":null}},"status":{}"#,
        deletion_shows_object: true,
        first_status: Some("{}"),
        ..CORE
    },
    ApiResource {
        group: Borrowed("resource.k8s.io"),
        plural: Borrowed("resourceclaimtemplates"),
        singular: Borrowed("resourceclaimtemplate"),
        kind: Borrowed("ResourceClaimTemplate"),
        list_kind: Borrowed("ResourceClaimTemplateList"),
        since: Version::V1_34,
        stored_as: Some(("v1beta2", Some(Version::V1_35))),
        fields: &["spec"],
        zero: r#","spec":{"metadata":{},"spec":{"devices":{"requests":null}}}"#,
        deletion_shows_object: true,
        ..CORE
    },
    ApiResource {
        group: Borrowed("resource.k8s.io"),
        plural: Borrowed("resourceslices"),
        singular: Borrowed("resourceslice"),
        kind: Borrowed("ResourceSlice"),
        list_kind: Borrowed("ResourceSliceList"),
        since: Version::V1_34,
        stored_as: Some(("v1beta2", Some(Version::V1_35))),
        namespaced: false,
        generation: Generation::Spec,
        fields: &["spec"],
        zero: r#","spec":{"driver":"","pool":{"name":"","generation":0,"resourceSliceCount":0}}"#,
        selectable: SelectableFields::Literal(&[
            field("spec.nodeName", "/spec/nodeName"),
            field("spec.driver", "/spec/driver"),
        ]),
        unknown_field: UnknownField::NotSupportedForType,
        deletion_shows_object: true,
        ..CORE
    },
    ApiResource {
        group: Borrowed("storagemigration.k8s.io"),
        plural: Borrowed("storageversionmigrations"),
        singular: Borrowed("storageversionmigration"),
        kind: Borrowed("StorageVersionMigration"),
        list_kind: Borrowed("StorageVersionMigrationList"),
        since: Version::V1_37,
        stored_as: Some(("v1beta1", None)),
        namespaced: false,
        status: true,
        zero: r#","spec":{"resource":{"group":"","resource":""}},"status":{}"#,
        unconditional_update: false,
        first_status: Some("{}"),
        ..CORE
    },
];
