//! ResourceQuotas: a write beyond the limits of its namespace is rejected, any other is counted.
//!
//! As in kube-apiserver, a quota enforces the limits in its status: a controller copies them there and counts existing
//! objects. Without that controller a quota has no effect until a client writes its status, and deletions do not decrease the
//! usage.
//!
//! Without a quota in the namespace it must cost nothing. The usage of an object is computed in `usage`.
//!
//! Source: apiserver `admission/plugin/resourcequota/controller.go`.

use std::collections::BTreeSet;
use std::sync::Arc;

use apimachinery::object::Stored;
use apimachinery::status::Status;
use apimachinery::write::Subresource;
use builtin_kinds::types;
use scenario::AdmissionPlugin;
use serde_json::Value;

use super::Writer;
use super::limits::{Amounts, amounts};
use super::usage::{Scope, Usage};

impl Writer<'_> {
    /// Counts a new object, or one that replaces `old`.
    ///
    /// # Errors
    ///
    /// 403 for an exceeded quota, for a quota without usage in its status, and for a pod without a request or limit that is
    /// counted.
    pub(super) fn charge(
        &mut self,
        object: &Value,
        old: Option<&Value>,
        name: &str,
        part: Option<Subresource>,
    ) -> Result<(), Status> {
        if self.collection.namespace.is_none() || !self.has(AdmissionPlugin::ResourceQuota) {
            return Ok(());
        }
        let quotas = self.in_namespace("", "resourcequotas");
        if quotas.is_empty() {
            return Ok(());
        }
        let usage = Usage::of(&self.collection.kind);
        if !usage.handles(object, old, part) {
            return Ok(());
        }
        let refused = |why: String| Status::forbidden(&self.collection.kind, name, &why, Vec::new());
        let mut charged: Vec<(Arc<Stored>, Value)> = Vec::new();
        for quota in quotas {
            let shown = quota.json();
            let limited = Quota::of(&shown, &usage);
            if limited.counted.is_empty() || !limited.covers(&usage, object) {
                continue;
            }
            if let Some(why) = usage.left_out(&limited.counted, object) {
                return Err(refused(format!("failed quota: {}: {why}", quota.name())));
            }
            if limited
                .counted
                .iter()
                .any(|resource| !limited.used.contains_key(resource))
            {
                let names: Vec<&str> = limited.counted.iter().map(String::as_str).collect();
                return Err(refused(format!(
                    "status unknown for quota: {}, resources: {}",
                    quota.name(),
                    names.join(",")
                )));
            }
            let before = old.filter(|old| limited.covers(&usage, old));
            let more = limited.asked_for(&usage, object, before);
            if more.is_empty() {
                continue;
            }
            let mut used = limited.used.clone();
            for (resource, amount) in &more {
                let now = used.entry(resource.clone()).or_insert_with(|| "0".to_owned());
                *now = types::sum([now.as_str(), amount]);
            }
            let exceeded: Vec<&String> = more
                .keys()
                .filter(|resource| types::amount(&used[*resource]) > types::amount(&limited.hard[*resource]))
                .collect();
            if !exceeded.is_empty() && part != Some(Subresource::Status) {
                return Err(refused(format!(
                    "exceeded quota: {}, requested: {}, used: {}, limited: {}",
                    quota.name(),
                    listed(&exceeded, &more),
                    listed(&exceeded, &limited.used),
                    listed(&exceeded, &limited.hard)
                )));
            }
            let mut status = shown["status"].clone();
            status["used"] = used
                .into_iter()
                .map(|(resource, amount)| (resource, Value::from(amount)))
                .collect();
            charged.push((quota, status));
        }
        if !self.dry_run {
            for (quota, status) in charged {
                self.note_status(&quota, status);
            }
        }
        Ok(())
    }
}

/// A quota, by its status.
struct Quota {
    hard: Amounts,
    used: Amounts,
    /// Resources of this kind that it limits.
    counted: BTreeSet<String>,
    scopes: Vec<Scope>,
}

impl Quota {
    fn of(quota: &Value, usage: &Usage) -> Self {
        let hard = amounts(&quota["status"]["hard"]);
        let counted = hard.keys().filter(|resource| usage.counts(resource)).cloned();
        Self {
            counted: counted.collect(),
            used: amounts(&quota["status"]["used"]),
            scopes: Scope::all(&quota["spec"]),
            hard,
        }
    }

    fn covers(&self, usage: &Usage, object: &Value) -> bool {
        self.scopes.iter().all(|scope| usage.is_in(scope, object))
    }

    /// Returns the additional usage of an object that replaces another one.
    fn asked_for(&self, usage: &Usage, object: &Value, before: Option<&Value>) -> Amounts {
        let before = before.map(|before| usage.uses(before)).unwrap_or_default();
        let mut more = usage.uses(object);
        more.retain(|resource, amount| {
            if let Some(before) = before.get(resource) {
                *amount = types::difference(amount, before);
            }
            types::amount(amount) > 0 && self.hard.contains_key(resource)
        });
        more
    }
}

fn listed(names: &[&String], amounts: &Amounts) -> String {
    let shown = names.iter().map(|name| {
        let amount = amounts.get(*name).map_or("0", String::as_str);
        format!("{name}={amount}")
    });
    shown.collect::<Vec<_>>().join(",")
}
