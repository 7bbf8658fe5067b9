//! Cells of pods.
//!
//! Source: kubernetes `pkg/printers/internalversion/printers.go` (`printPod`).

use std::collections::HashSet;
use std::ops::Not as _;

use apimachinery::Version;
use serde_json::{Value, json};

use super::{Row, number, text};
use crate::age;

/// READY: number of ready containers.
pub(super) fn ready(row: &Row<'_>) -> Value {
    let pod = Pod::read(row);
    format!("{}/{}", pod.ready, pod.containers).into()
}

/// STATUS.
pub(super) fn status(row: &Row<'_>) -> Value {
    Pod::read(row).reason.into()
}

/// RESTARTS, and the time of the last one.
pub(super) fn restarts(row: &Row<'_>) -> Value {
    let pod = Pod::read(row);
    match pod.last_restart {
        Some(_) if pod.restarts == 0 => "0".into(),
        Some((_, time)) => format!("{} ({} ago)", pod.restarts, age::since(Some(time), row.now)).into(),
        None => pod.restarts.to_string().into(),
    }
}

/// READINESS GATES: number of conditions that are met.
pub(super) fn readiness_gates(row: &Row<'_>) -> Value {
    let gates = row.list("/spec/readinessGates");
    if gates.is_empty() {
        return "<none>".into();
    }
    let met = gates
        .iter()
        .filter(|gate| is_true(row, text(gate, "/conditionType")));
    format!("{}/{}", met.count(), gates.len()).into()
}

/// Returns the row condition of a completed pod.
pub(super) fn conditions(row: &Row<'_>) -> Option<Value> {
    let (reason, message) = match row.text("/status/phase") {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return None,
    };
    Some(json!([{ "type": "Completed", "status": "True", "reason": reason, "message": message }]))
}

#[derive(Debug, Default)]
struct Pod<'a> {
    reason: String,
    ready: usize,
    containers: usize,
    restarts: i64,
    last_restart: Option<(f64, &'a str)>,
}

impl<'a> Pod<'a> {
    fn read(row: &Row<'a>) -> Self {
        let mut pod = Self {
            reason: row.text("/status/phase").to_owned(),
            containers: row.list("/spec/containers").len()
                + row
                    .list("/spec/initContainers")
                    .iter()
                    .filter(|container| is_sidecar(container))
                    .count(),
            ..Self::default()
        };
        if !row.text("/status/reason").is_empty() {
            row.text("/status/reason").clone_into(&mut pod.reason);
        }
        let gated = |condition: &&Value| {
            condition["type"] == "PodScheduled" && condition["reason"] == "SchedulingGated"
        };
        if row
            .list("/status/conditions")
            .iter()
            .any(|condition| gated(&condition))
        {
            "SchedulingGated".clone_into(&mut pod.reason);
        }
        let mut sidecars = Self::default();
        let initializing = pod.start(row, &mut sidecars);
        if !initializing || is_true(row, "Initialized") {
            (pod.restarts, pod.last_restart) = (sidecars.restarts, sidecars.last_restart);
            pod.run(row);
        }
        if row.is_deleted() {
            if row.text("/status/reason") == "NodeLost" {
                "Unknown".clone_into(&mut pod.reason);
            } else if !matches!(row.text("/status/phase"), "Succeeded" | "Failed") {
                "Terminating".clone_into(&mut pod.reason);
            }
        }
        pod
    }

    /// Adds the init containers, in order. Returns true if one of them is not complete.
    fn start(&mut self, row: &Row<'a>, sidecars: &mut Self) -> bool {
        let specified = row.list("/spec/initContainers").iter();
        let sidecar_names: HashSet<&Value> = specified
            .clone()
            .filter(|container| is_sidecar(container))
            .map(|container| &container["name"])
            .collect();
        let statuses = row.list("/status/initContainerStatuses");
        for (index, status) in statuses.iter().enumerate() {
            let sidecar = sidecar_names.contains(&status["name"]);
            self.restarted(status);
            if sidecar {
                sidecars.restarted(status);
            }
            let terminated = status
                .pointer("/state/terminated")
                .filter(|state| !state.is_null());
            let waiting = text(status, "/state/waiting/reason");
            if terminated.is_some_and(|state| number(state, "/exitCode") == 0) {
                continue;
            }
            if sidecar && status["started"] == true {
                self.ready += usize::from(status["ready"] == true);
                continue;
            }
            self.reason = match terminated {
                Some(state) => format!("Init:{}", end_of(state)),
                None if !matches!(waiting, "" | "PodInitializing") => format!("Init:{waiting}"),
                None => format!("Init:{index}/{}", specified.len()),
            };
            return true;
        }
        false
    }

    /// Adds the containers; the first one determines the reason.
    fn run(&mut self, row: &Row<'a>) {
        let (mut running, mut error) = (false, None);
        for status in row.list("/status/containerStatuses").iter().rev() {
            self.restarted(status);
            let state = |name: &str| status["state"].get(name).filter(|state| !state.is_null());
            let waiting = text(status, "/state/waiting/reason");
            if !waiting.is_empty() {
                waiting.clone_into(&mut self.reason);
            } else if let Some(terminated) = state("terminated") {
                self.reason = end_of(terminated);
                if number(terminated, "/exitCode") != 0 {
                    error = Some(self.reason.clone());
                }
            } else if status["ready"] == true && state("running").is_some() {
                running = true;
                self.ready += 1;
            }
        }
        if self.reason != "Completed" {
            return;
        }
        let error = error.filter(|_| row.version >= Version::V1_35);
        if running && is_true(row, "Ready") {
            "Running".clone_into(&mut self.reason);
        } else if let Some(error) = error {
            self.reason = error;
        } else if running {
            "NotReady".clone_into(&mut self.reason);
        }
    }

    fn restarted(&mut self, status: &'a Value) {
        self.restarts += number(status, "/restartCount");
        let finished = text(status, "/lastState/terminated/finishedAt");
        let finished = age::seconds(finished).map(|seconds| (seconds, finished));
        if let Some((seconds, _)) = finished
            && self.last_restart.is_some_and(|(last, _)| last >= seconds).not()
        {
            self.last_restart = finished;
        }
    }
}

/// Returns the reason for the end of a container.
fn end_of(terminated: &Value) -> String {
    match (text(terminated, "/reason"), number(terminated, "/signal")) {
        ("", 0) => format!("ExitCode:{}", number(terminated, "/exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

fn is_sidecar(container: &Value) -> bool {
    container["restartPolicy"] == "Always"
}

fn is_true(row: &Row<'_>, condition: &str) -> bool {
    row.condition(condition)
        .is_some_and(|condition| condition["status"] == "True")
}
