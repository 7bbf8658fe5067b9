//! Check of a pod resize against its node, which must exist and have the capacity.
//!
//! Source: kubernetes `plugin/pkg/admission/podresize`.

use apimachinery::Version;
use apimachinery::status::{Cause, Status};
use builtin_kinds::types;
use scenario::AdmissionPlugin;
use serde_json::Value;

use super::Writer;
use super::limits::{amounts, together};

/// Divisors that convert billionths to the units in messages; CPU is in thousandths.
const UNITS: [(&str, i128); 2] = [("cpu", 1_000_000), ("memory", 1_000_000_000)];

impl Writer<'_> {
    /// Checks that a resized pod fits its node.
    ///
    /// # Errors
    ///
    /// 403.
    pub(super) fn fits_node(&self, pod: &Value, old: &Value, name: &str) -> Result<(), Status> {
        if !self.has(AdmissionPlugin::PodResizeValidator) {
            return Ok(());
        }
        let wanted = pod["spec"]["nodeName"].as_str().unwrap_or_default();
        if self.model.version < Version::V1_36 || wanted.is_empty() || pod["spec"] == old["spec"] {
            return Ok(());
        }
        let refused = |why: &str, reason: Option<&str>| {
            let cause = reason.map(|reason| Cause {
                reason: reason.to_owned(),
                ..Cause::default()
            });
            Err(Status::forbidden(
                &self.stored_kind(),
                name,
                why,
                cause.into_iter().collect(),
            ))
        };
        let kind = self.model.catalog.find("", "nodes");
        let node = kind.and_then(|kind| self.model.objects(kind).get(wanted));
        let Some(node) = node.map(|node| node.json()) else {
            return refused(&format!("node \"{wanted}\" not found"), None);
        };
        match node["metadata"]["labels"]["kubernetes.io/os"].as_str() {
            None | Some("linux") => {}
            Some(other) => {
                let why =
                    format!("pod resize is only supported on linux nodes, node \"{wanted}\" is \"{other}\"");
                return refused(&why, Some("UnsupportedPlatform"));
            }
        }
        let (requests, there) = (
            together(&pod["spec"], "requests"),
            amounts(&node["status"]["allocatable"]),
        );
        let shortages = UNITS.iter().filter_map(|(resource, one)| {
            let amount = |text: Option<&String>| text.map_or(0, |text| types::amount(text));
            let (request, has) = (amount(requests.get(*resource)), amount(there.get(*resource)));
            let rounded_up = |amount: i128| amount / one + i128::from(amount % one > 0);
            (request > has).then(|| {
                format!(
                    "{resource}, requested: {}, allocatable: {}",
                    rounded_up(request),
                    rounded_up(has)
                )
            })
        });
        let shortages: Vec<String> = shortages.collect();
        if shortages.is_empty() {
            return Ok(());
        }
        let why = format!(
            "node didn't have enough allocatable resources: {}",
            shortages.join("; ")
        );
        refused(&why, Some("NodeCapacity"))
    }
}
