//! Evictions: deletions of pods that are subject to PodDisruptionBudgets.
//!
//! The allowed disruptions are in the status of a budget, written by its controller; without a controller any client can
//! write them.
//!
//! Source: kubernetes `pkg/registry/core/pod/storage/eviction.go`.

use std::sync::Arc;

use apimachinery::Version;
use apimachinery::object::Stored;
use apimachinery::selector::LabelSelector;
use apimachinery::status::Status;
use apimachinery::time::timestamp;
use builtin_kinds::{catalog, scale};
use bytes::Bytes;
use serde_json::{Value, json};

use super::deletion::check_preconditions;
use super::{DONE, Writer, is_terminating, text};
use crate::api::write::{DeleteOptions, check_options};
use crate::model::write;

const SEVERAL_BUDGETS: &str =
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";

/// Maximum number of evictions that the controller of a budget has not processed.
const DISRUPTED_PODS_MAX: usize = 2_000;

impl Writer<'_> {
    /// Deletes a pod if its budget allows it.
    ///
    /// # Errors
    ///
    /// 400 for an eviction of another pod, 403 in a terminating namespace, 404, 409 for a failed precondition, 429 for a pod
    /// protected by a budget, 500 for a pod with several budgets.
    pub(super) fn evict(
        &mut self,
        name: &str,
        eviction: &Value,
        options: DeleteOptions,
    ) -> Result<(u16, Bytes), Status> {
        self.takes_content(name)?;
        if text(eviction, "name") != name {
            return Err(Status::bad_request(
                "name in URL does not match name in Eviction object",
            ));
        }
        let current = self.current(name)?;
        self.admit_posted(&catalog::eviction(), "eviction", eviction, name)?;
        let pod = current.json();
        let at_rest = matches!(
            pod["status"]["phase"].as_str(),
            Some("Pending" | "Succeeded" | "Failed")
        );
        if !at_rest && !is_terminating(&pod) {
            match self.budgets_of(&current).as_slice() {
                [] => {}
                [budget] => self.spend(budget, &pod)?,
                _ => return Err(Status::unexplained(SEVERAL_BUDGETS)),
            }
        }
        self.tell_disrupted(&current, &options)?;
        check_options(&eviction["deleteOptions"])?;
        let options = DeleteOptions {
            // The write of the condition changed the version.
            resource_version: options.resource_version.filter(|_| self.dry_run),
            ..options
        };
        // An eviction is no request to delete.
        self.admitted = true;
        self.delete(name, &options)?;
        Ok((201, Bytes::from_static(DONE)))
    }

    /// Returns the budgets that select a pod.
    fn budgets_of(&self, pod: &Stored) -> Vec<Arc<Stored>> {
        let mut budgets = self.in_namespace("policy", "poddisruptionbudgets");
        budgets.retain(|budget| {
            let selector = budget.json()["spec"]["selector"].take();
            // A null selector selects nothing, an empty one everything.
            selector.is_object()
                && LabelSelector::parse(&scale::label_selector(&selector))
                    .is_ok_and(|selector| selector.matches(pod))
        });
        budgets
    }

    /// Records the eviction of a pod in its budget, unless the pod is not counted.
    fn spend(&mut self, budget: &Arc<Stored>, pod: &Value) -> Result<(), Status> {
        let object = budget.json();
        let mut status = object["status"].clone();
        let count = |field: &str| status[field].as_i64().unwrap_or_default();
        let (healthy, desired) = (count("currentHealthy"), count("desiredHealthy"));
        let guarded = is_ready(pod)
            || object["spec"]["unhealthyPodEvictionPolicy"] != "AlwaysAllow"
                && !(healthy >= desired && desired > 0);
        if !guarded {
            return Ok(());
        }
        let generation = object["metadata"]["generation"].as_i64().unwrap_or_default();
        let name = budget.name();
        if count("observedGeneration") < generation {
            let why = format!("The disruption budget {name} is still being processed by the server.");
            return Err(Status::disruption(&why, 10));
        }
        let disrupted = status["disruptedPods"]
            .as_object()
            .map_or(0, serde_json::Map::len);
        if disrupted > DISRUPTED_PODS_MAX {
            let why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller";
            return Err(Status::budget_forbidden(name, why));
        }
        let allowed = count("disruptionsAllowed");
        if allowed <= 0 {
            return Err(Status::disruption(
                &protected(name, &status, healthy, desired, self.model.version),
                0,
            ));
        }
        status["disruptionsAllowed"] = (allowed - 1).into();
        if allowed == 1 {
            let observed = status["observedGeneration"].clone();
            let condition = json!({
                "type": "DisruptionAllowed",
                "status": "False",
                "reason": "InsufficientPods",
                "observedGeneration": observed,
                "message": "",
            });
            self.note_condition(&mut status, condition);
        }
        if !self.dry_run {
            let pod = text(pod, "name");
            status["disruptedPods"][pod] = timestamp(self.time()).into();
            self.note_status(budget, status);
        }
        Ok(())
    }

    /// Sets the condition `DisruptionTarget` of the pod.
    fn tell_disrupted(&mut self, current: &Arc<Stored>, options: &DeleteOptions) -> Result<(), Status> {
        if self.dry_run {
            return Ok(());
        }
        check_preconditions(&self.kind, current, options)?;
        let live = current.json();
        let mut object = live.clone();
        let condition = json!({
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting",
        });
        self.note_condition(&mut object["status"], condition);
        let (kind, key) = (&self.kind, current.key.clone());
        let object = self.conformed(object);
        let replaced = Some((current, &live));
        let outcome = write::replace(kind, &key, replaced, object, self.time(), String::new());
        self.commit(key, Some(current), outcome)?;
        Ok(())
    }
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    let mut ready = conditions.filter(|condition| condition["type"] == "Ready");
    ready
        .next()
        .is_some_and(|condition| condition["status"] == "True")
}

/// Returns the error of an exhausted budget.
fn protected(name: &str, status: &Value, healthy: i64, desired: i64, version: Version) -> String {
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let mut blocked = conditions
        .filter(|condition| condition["type"] == "DisruptionAllowed" && condition["status"] == "False");
    let blocked = blocked.next().map(|condition| {
        let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
        (text("reason"), text("message"))
    });
    let begin = format!("The disruption budget {name}");
    let too_few = format!("{begin} needs {desired} healthy pods and has {healthy} currently");
    if version < Version::V1_35 {
        return too_few;
    }
    match blocked.filter(|(_, message)| !message.is_empty()) {
        Some((reason, message)) if reason == "SyncFailed" => {
            format!("{begin} does not allow evicting pods currently because it failed sync: {message}")
        }
        _ if healthy <= desired => too_few,
        Some((reason, message)) => {
            format!("{begin} does not allow evicting pods currently ({reason}): {message}")
        }
        None => format!("{begin} does not allow evicting pods currently"),
    }
}
