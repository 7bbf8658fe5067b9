//! Validation of volumes, PersistentVolumes and claims.
//!
//! Source: kubernetes `pkg/apis/core/validation/validation.go`.

use serde_json::Value;

use super::context::FieldContext;
use crate::error_list::ErrorList;
use crate::{naming, types};

/// Required fields of volume sources.
const NEEDED: [(&str, &str); 4] = [
    ("hostPath", "path"),
    ("configMap", "name"),
    ("secret", "secretName"),
    ("persistentVolumeClaim", "claimName"),
];

/// Whether a volume has one source, with what it needs, and a valid name.
pub(super) fn is_sound(volume: &Value) -> bool {
    let fields = volume.as_object().into_iter().flatten();
    let mut sources = fields
        .map(|(field, _)| field.as_str())
        .filter(|field| *field != "name");
    let only = sources.next();
    let complete = |(source, field): &(&str, &str)| {
        only != Some(*source)
            || volume[*source][*field]
                .as_str()
                .is_some_and(|text| !text.is_empty())
    };
    let name = volume["name"].as_str().unwrap_or_default();
    sources.next().is_none() && NEEDED.iter().all(complete) && naming::label(name).is_empty()
}

pub(super) fn volume_source(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let fields = context.value.as_object().into_iter().flatten();
    let mut sources: Vec<&String> = fields
        .map(|(field, _)| field)
        .filter(|field| *field != "name")
        .collect();
    // kube-apiserver checks `emptyDir` first.
    sources.sort_by_key(|source| *source != "emptyDir");
    for second in sources.iter().skip(1) {
        errors.forbidden(&context.at(second), "may not specify more than 1 volume type");
    }
    if let [only] = sources.as_slice() {
        let needed = NEEDED.iter().find(|(source, _)| source == only);
        for (source, field) in needed.into_iter() {
            if context.value[*source][*field].as_str().is_none_or(str::is_empty) {
                errors.required(&context.at(&format!("{source}.{field}")), "");
            }
        }
    }
}

/// Validates access modes.
pub(super) fn access_modes(context: &FieldContext<'_>, errors: &mut ErrorList) {
    const MODES: [&str; 4] = [
        "ReadOnlyMany",
        "ReadWriteMany",
        "ReadWriteOnce",
        "ReadWriteOncePod",
    ];
    let modes = context.list("accessModes");
    let at = context.at("accessModes");
    for mode in modes {
        if !mode.as_str().is_some_and(|mode| MODES.contains(&mode)) {
            errors.unsupported(&at, mode, &MODES);
        }
    }
    if modes.len() > 1 && modes.contains(&"ReadWriteOncePod".into()) {
        errors.forbidden(&at, "may not use ReadWriteOncePod with other access modes");
    }
}

pub(super) fn claim(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let storage = &context.value["resources"]["requests"]["storage"];
    let at = context.at("resources[storage]");
    match storage.as_str() {
        None => errors.required(&at, ""),
        Some(amount) if amount == "0" || amount.starts_with('-') => {
            errors.invalid(&at, storage, "must be greater than zero");
        }
        Some(_) => {}
    }
}

/// Validates the capacity of a volume.
pub(super) fn capacity(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let (at, capacity) = (context.at("capacity"), &context.value["capacity"]);
    let amounts = capacity.as_object();
    if amounts.is_none_or(|amounts| amounts.len() != 1 || !amounts.contains_key("storage")) {
        errors.unsupported(&at, capacity, &["storage"]);
    }
    for (name, amount) in amounts.into_iter().flatten() {
        if types::amount(amount.as_str().unwrap_or_default()) <= 0 {
            errors.invalid(&format!("{at}[{name}]"), amount, "must be greater than zero");
        }
    }
}

/// Fields of a PersistentVolume that are not its source.
const NO_SOURCES: [&str; 9] = [
    "accessModes",
    "capacity",
    "claimRef",
    "mountOptions",
    "nodeAffinity",
    "persistentVolumeReclaimPolicy",
    "storageClassName",
    "volumeAttributesClassName",
    "volumeMode",
];

/// Validates that a PersistentVolume has exactly one source.
pub(super) fn lasting_source(context: &FieldContext<'_>, errors: &mut ErrorList) {
    let fields = context.value.as_object().into_iter().flatten();
    let sources: Vec<&String> = fields
        .map(|(field, _)| field)
        .filter(|field| !NO_SOURCES.contains(&field.as_str()))
        .collect();
    if sources.is_empty() {
        errors.required(context.path, "must specify a volume type");
    }
    for second in sources.iter().skip(1) {
        errors.forbidden(&context.at(second), "may not specify more than 1 volume type");
    }
    if let [only] = sources.as_slice() {
        let needed = NEEDED_TO_LAST.iter().filter(|(source, _)| source == only);
        for (source, field) in needed {
            if context.value[*source][*field].as_str().is_none_or(str::is_empty) {
                errors.required(&context.at(&format!("{source}.{field}")), "");
            }
        }
        if *only == "local" && context.value["nodeAffinity"].is_null() {
            errors.required(&context.at("nodeAffinity"), "Local volume requires node affinity");
        }
    }
}

/// Required fields of PersistentVolume sources.
const NEEDED_TO_LAST: [(&str, &str); 6] = [
    ("hostPath", "path"),
    ("csi", "driver"),
    ("csi", "volumeHandle"),
    ("nfs", "server"),
    ("nfs", "path"),
    ("local", "path"),
];
