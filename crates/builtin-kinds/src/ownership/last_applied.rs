//! Migration of kubectl from client-side to server-side apply: the annotation with the last applied configuration allows
//! conflicts, and is kept up to date.
//!
//! Source: apimachinery `util/managedfields/internal/{lastapplied,lastappliedmanager,lastappliedupdater}.go`.

use apimachinery::encode::encode_json;
use serde_json::Value;

use super::set::Fields;
use super::{Ownership, typed, values};
use crate::crd;

/// Manager that migrates.
const KUBECTL: &str = "kubectl";

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Bytes of all annotations of an object.
const ANNOTATION_BYTES_MAX: usize = 256 * 1024;

impl Ownership<'_> {
    /// Returns the fields in which kubectl has no conflicts: those that still have the value of the last client-side apply.
    /// `None`: nothing was applied, or not in this version.
    pub(super) fn given_up(&self, live: &Value) -> Option<Fields> {
        let annotation = &live["metadata"]["annotations"][ANNOTATION];
        let last = annotation
            .as_str()
            .filter(|_| self.manager == KUBECTL)
            .and_then(|text| serde_json::from_str::<Value>(text).ok())
            .filter(|last| last["apiVersion"] == self.kind.api_version())
            .filter(|last| typed::check(self.root(), last, false).is_ok())?;
        let mut fields = values::field_set(self.root(), &last);
        let since = values::compare(self.root(), &last, live);
        fields.subtract(&since.written);
        fields.subtract(&since.removed);
        Some(fields)
    }

    /// Sets the annotation of an object that has it to the applied configuration.
    pub(super) fn keep_last_applied(&self, config: &Value, object: &mut Value) {
        let annotations = object
            .get_mut("metadata")
            .and_then(|metadata| metadata.get_mut("annotations"))
            .and_then(Value::as_object_mut);
        let Some(annotations) = annotations.filter(|_| self.manager == KUBECTL) else {
            return;
        };
        if annotations
            .get(ANNOTATION)
            .and_then(Value::as_str)
            .is_none_or(str::is_empty)
        {
            return;
        }
        let mut config = config.clone();
        let sent = config
            .get_mut("metadata")
            .and_then(|metadata| metadata.get_mut("annotations"))
            .and_then(Value::as_object_mut);
        if let Some(sent) = sent {
            sent.remove(ANNOTATION);
        }
        crd::settle_numbers(&mut config);
        config.sort_all_objects();
        let mut text = String::from_utf8(encode_json(&config)).unwrap_or_default();
        text.push('\n');
        annotations.insert(ANNOTATION.to_owned(), text.into());
        let bytes = |(name, value): (&String, &Value)| name.len() + value.as_str().map_or(0, str::len);
        if annotations.iter().map(bytes).sum::<usize>() > ANNOTATION_BYTES_MAX {
            annotations.shift_remove(ANNOTATION);
        }
    }
}
