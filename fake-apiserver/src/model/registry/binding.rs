//! Bindings: the node of a pod is set once.
//!
//! Source: kubernetes `pkg/registry/core/pod/storage/storage.go` (`BindingREST`).

use apimachinery::Version;
use apimachinery::kind::ApiResource;
use apimachinery::status::Status;
use apimachinery::time::timestamp;
use builtin_kinds::catalog;
use builtin_kinds::error_list::ErrorList;
use bytes::Bytes;
use serde_json::{Value, json};

use super::{DONE, Writer, is_terminating, text};
use crate::model::write::{self, Outcome};

impl Writer<'_> {
    /// Binds a pod to the node of the binding; its generation does not change. `resource` is the resource of the POST.
    ///
    /// # Errors
    ///
    /// 400 for a binding of another pod, 403 in a terminating namespace, 404, 409 for a pod that cannot be bound, 500 for a
    /// target that is not a node.
    pub(super) fn bind(
        &mut self,
        resource: &ApiResource,
        name: &str,
        binding: &Value,
    ) -> Result<(u16, Bytes), Status> {
        self.takes(resource, name)?;
        if text(binding, "name") != name {
            return Err(Status::bad_request(
                "name in URL does not match name in Binding object",
            ));
        }
        check_target(&binding["target"])?;
        let binding = &match resource.plural == "pods" {
            true => self.admit_posted(&catalog::binding(), "binding", binding, name)?,
            false => binding.clone(),
        };
        if name.is_empty() {
            return Err(Status::bad_request("Name parameter required."));
        }
        let current = self.current(name)?;
        self.check_uid(current.name(), &current.uid, binding)?;
        self.check_version(&current, binding)?;
        let live = current.json();
        let mut object = live.clone();
        let gated = object["spec"]["schedulingGates"].get(0).is_some();
        let refused = match object["spec"]["nodeName"].as_str() {
            _ if is_terminating(&object) => Some("is being deleted, cannot be assigned to a host".to_owned()),
            Some(assigned) => Some(format!("is already assigned to node \"{assigned}\"")),
            None => gated.then(|| "has non-empty .spec.schedulingGates".to_owned()),
        };
        if let Some(why) = refused {
            return Err(Status::not_bound(&self.kind, name, &why));
        }
        object["spec"]["nodeName"] = binding["target"]["name"].clone();
        let mut copied = vec!["annotations"];
        if self.model.version >= Version::V1_35 {
            copied.push("labels");
            if let Some(status) = object["status"].as_object_mut() {
                status.shift_remove("nominatedNodeName");
            }
        }
        for field in copied {
            for (key, value) in binding["metadata"][field].as_object().into_iter().flatten() {
                object["metadata"][field][key] = value.clone();
            }
        }
        let scheduled = json!({ "type": "PodScheduled", "status": "True" });
        self.note_condition(&mut object["status"], scheduled);
        let (kind, key) = (&self.kind, current.key.clone());
        let object = self.conformed(object);
        let replaced = Some((&current, &live));
        let mut outcome = write::replace(kind, &key, replaced, object, self.time(), String::new());
        if let Outcome::Put(bound) = &mut outcome {
            bound["metadata"]["generation"] = live["metadata"]["generation"].clone();
        }
        self.commit(key, Some(&current), outcome)?;
        Ok((201, Bytes::from_static(DONE)))
    }

    /// Sets a condition; its transition time changes only with its status.
    pub(super) fn note_condition(&self, status: &mut Value, mut condition: Value) {
        let mut conditions = status["conditions"].as_array().cloned().unwrap_or_default();
        let place = conditions
            .iter()
            .position(|known| known["type"] == condition["type"]);
        let same = place.filter(|place| conditions[*place]["status"] == condition["status"]);
        condition["lastTransitionTime"] = match same {
            Some(place) => conditions[place]["lastTransitionTime"].clone(),
            None => timestamp(self.time()).into(),
        };
        match place {
            Some(place) => conditions[place] = condition,
            None => conditions.push(condition),
        }
        status["conditions"] = conditions.into();
    }
}

/// Checks the target of a binding.
///
/// # Errors
///
/// 500 for a target that is not a node, or has no name.
fn check_target(target: &Value) -> Result<(), Status> {
    let text = |field: &str| target[field].as_str().unwrap_or_default();
    let mut found = ErrorList::default();
    if !matches!(text("kind"), "" | "Node") {
        found.unsupported("target.kind", &target["kind"], &["Node", "<empty>"]);
    }
    if text("name").is_empty() {
        found.required("target.name", "");
    }
    let errors = found.into_causes();
    let errors: Vec<String> = errors
        .iter()
        .map(|cause| format!("{}: {}", cause.field, cause.message))
        .collect();
    match errors.as_slice() {
        [] => Ok(()),
        [one] => Err(Status::unexplained(one.as_str())),
        several => Err(Status::unexplained(format!("[{}]", several.join(", ")))),
    }
}
