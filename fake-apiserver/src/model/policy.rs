//! The roles and bindings of this moment, as the evaluator takes them. It must not know who asks.
//!
//! They are read again when one of the four resources changed: every request is judged by the roles of that moment. A server
//! without bootstrap objects has the default roles and bindings of a kube-apiserver nevertheless: without them nobody could
//! read discovery.

use std::sync::Arc;

use apimachinery::Version;
use builtin_kinds::rbac::{GROUP, Policy, RESOURCES};
use serde_json::Value;

use super::bootstrap::recorded;
use super::{Model, Objects};

impl Model {
    /// Returns the roles and bindings of this moment.
    pub(crate) fn policy(&self) -> Arc<Policy> {
        let from: Vec<&Objects> = RESOURCES
            .iter()
            .filter_map(|resource| self.catalog.find(GROUP, resource))
            .map(|kind| self.objects(kind))
            .collect();
        self.policy.of(&from, || {
            let defaults = match self.bootstrapped {
                true => Vec::new(),
                false => defaults(self.version),
            };
            let stored: Vec<(&str, Value)> = from
                .iter()
                .flat_map(|objects| objects.values())
                .map(|object| (&*object.kind.plural, object.json()))
                .collect();
            let objects = defaults.iter().chain(&stored);
            Policy::new(objects.map(|(resource, object)| (*resource, object)))
        })
    }
}

/// The recorded roles and bindings of a version, each after its resource.
fn defaults(version: Version) -> Vec<(&'static str, Value)> {
    let api_version = format!("{GROUP}/v1");
    recorded(version.minor())
        .filter(|recorded| recorded.api_version == api_version)
        .filter_map(|recorded| {
            let plural = format!("{}s", recorded.kind.to_ascii_lowercase());
            let resource = RESOURCES.iter().find(|resource| **resource == plural)?;
            Some((*resource, serde_json::from_str(recorded.json).ok()?))
        })
        .collect()
}

/// The policy of a server to which nothing was added.
#[cfg(test)]
pub(crate) fn default_policy(version: Version) -> Policy {
    let defaults = defaults(version);
    Policy::new(defaults.iter().map(|(resource, object)| (*resource, object)))
}
