//! Storage classes, CSI and devices.

use apimachinery::Version;
use apimachinery::kind::{ApiResource, UnknownField};

use super::{CORE, field};

pub(super) static ROWS: &[ApiResource] = &[
    ApiResource {
        group: "storage.k8s.io",
        plural: "csidrivers",
        singular: "csidriver",
        kind: "CSIDriver",
        list_kind: "CSIDriverList",
        namespaced: false,
        fields: &["spec"],
        zero: r#","spec":{}"#,
        deletion_shows_object: true,
        unconditional_update: false,
        ..CORE
    },
    ApiResource {
        group: "storage.k8s.io",
        plural: "csinodes",
        singular: "csinode",
        kind: "CSINode",
        list_kind: "CSINodeList",
        namespaced: false,
        fields: &["spec"],
        zero: r#","spec":{"drivers":null}"#,
        deletion_shows_object: true,
        unconditional_update: false,
        ..CORE
    },
    ApiResource {
        group: "storage.k8s.io",
        plural: "csistoragecapacities",
        singular: "csistoragecapacity",
        kind: "CSIStorageCapacity",
        list_kind: "CSIStorageCapacityList",
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
        group: "storage.k8s.io",
        plural: "storageclasses",
        singular: "storageclass",
        kind: "StorageClass",
        list_kind: "StorageClassList",
        short_names: &["sc"],
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
        group: "storage.k8s.io",
        plural: "volumeattachments",
        singular: "volumeattachment",
        kind: "VolumeAttachment",
        list_kind: "VolumeAttachmentList",
        namespaced: false,
        status: true,
        zero: r#","spec":{"attacher":"","source":{},"nodeName":""},"status":{"attached":false}"#,
        deletion_shows_object: true,
        unconditional_update: false,
        first_status: Some(r#"{"attached":false}"#),
        ..CORE
    },
    ApiResource {
        group: "storage.k8s.io",
        plural: "volumeattributesclasses",
        singular: "volumeattributesclass",
        kind: "VolumeAttributesClass",
        list_kind: "VolumeAttributesClassList",
        short_names: &["vac"],
        since: Version::V1_34,
        stored_as: Some(("v1beta1", Some(Version::V1_36))),
        namespaced: false,
        fields: &["driverName", "parameters"],
        zero: r#","driverName":"""#,
        deletion_shows_object: true,
        ..CORE
    },
    ApiResource {
        group: "resource.k8s.io",
        plural: "deviceclasses",
        singular: "deviceclass",
        kind: "DeviceClass",
        list_kind: "DeviceClassList",
        since: Version::V1_34,
        stored_as: Some(("v1beta2", Some(Version::V1_35))),
        namespaced: false,
        generation: true,
        fields: &["spec"],
        zero: r#","spec":{}"#,
        deletion_shows_object: true,
        ..CORE
    },
    ApiResource {
        group: "resource.k8s.io",
        plural: "resourceclaims",
        singular: "resourceclaim",
        kind: "ResourceClaim",
        list_kind: "ResourceClaimList",
        since: Version::V1_34,
        stored_as: Some(("v1beta2", Some(Version::V1_35))),
        status: true,
        zero: r#","spec":{"devices":{"requests":null}},"status":{}"#,
        deletion_shows_object: true,
        first_status: Some("{}"),
        ..CORE
    },
    ApiResource {
        group: "resource.k8s.io",
        plural: "resourceclaimtemplates",
        singular: "resourceclaimtemplate",
        kind: "ResourceClaimTemplate",
        list_kind: "ResourceClaimTemplateList",
        since: Version::V1_34,
        stored_as: Some(("v1beta2", Some(Version::V1_35))),
        fields: &["spec"],
        zero: r#","spec":{"metadata":{0},"spec":{"devices":{"requests":null}}}"#,
        deletion_shows_object: true,
        ..CORE
    },
    ApiResource {
        group: "resource.k8s.io",
        plural: "resourceslices",
        singular: "resourceslice",
        kind: "ResourceSlice",
        list_kind: "ResourceSliceList",
        since: Version::V1_34,
        stored_as: Some(("v1beta2", Some(Version::V1_35))),
        namespaced: false,
        generation: true,
        fields: &["spec"],
        zero: r#","spec":{"driver":"","pool":{"name":"","generation":0,"resourceSliceCount":0}}"#,
        selectable: &[
            field("spec.nodeName", "/spec/nodeName"),
            field("spec.driver", "/spec/driver"),
        ],
        unknown_field: UnknownField::NotSupportedForType,
        deletion_shows_object: true,
        ..CORE
    },
];
