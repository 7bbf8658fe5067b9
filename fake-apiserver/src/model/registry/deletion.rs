//! Deletions: immediate, after a grace period, or after the last finalizer.
//!
//! Source: apiserver `registry/rest/delete.go` and `registry/generic/registry/store.go`.

use std::sync::Arc;

use apimachinery::kind::{ApiResource, Deletion};
use apimachinery::object::Stored;
use apimachinery::options::{ListRequest, RequestedVersion, VersionMatch};
use apimachinery::status::Status;
use bytes::Bytes;
use serde_json::Value;

use super::webhooks::suspended;
use super::{Writer, finalizers, is_terminating};
use crate::api::write::{DeleteOptions, Propagation};
use crate::model::Model;
use crate::model::list::ListOutcome;
use crate::model::write::{self, Outcome};

const ORPHANS: &str = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to \
                       remove them or set propagationPolicy=Orphan to suppress this warning";

/// Namespaces that cannot be deleted.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

impl Writer<'_> {
    pub(super) fn delete(&mut self, name: &str, options: &DeleteOptions) -> Result<(u16, Bytes), Status> {
        let kind = self.stored_kind();
        self.warn_of_orphans(options);
        if kind.deletion == Deletion::WhenEmpty && IMMORTAL.contains(&name) {
            return Err(Status::forbidden(
                &kind,
                name,
                "this namespace may not be deleted",
                Vec::new(),
            ));
        }
        let current = self.current(name)?;
        check_preconditions(&kind, &current, options)?;
        self.admit_by_policies((None, Some(&current.json())), name, None)?;
        if !self.admitted {
            self.admit_deletion(&current, name)?;
        }
        let key = current.key.clone();
        let mut marked = current.json();
        let terminating = is_terminating(&marked);
        if kind.defines && !terminating {
            self.model.definition_marked(self.now, &mut marked);
            return Ok((200, self.commit(key, Some(&current), Outcome::Put(marked))?));
        }
        propagate(&kind, &mut marked, options);
        let has_finalizers = finalizers(&marked).next().is_some();
        let waits = match kind.deletion {
            Deletion::WhenEmpty => marked.pointer("/spec/finalizers/0").is_some(),
            Deletion::AfterGrace | Deletion::AtOnce => false,
        };
        let grace = grace_period(&kind, &marked, options);
        let graceful = kind.deletion == Deletion::AfterGrace;
        let pending = if graceful {
            grace > 0 || has_finalizers
        } else {
            has_finalizers || waits
        };
        let changed = if terminating {
            // The grace period of an object marked for deletion can only be shortened.
            let before = marked
                .pointer("/metadata/deletionGracePeriodSeconds")
                .and_then(Value::as_i64);
            graceful && options.grace_period_seconds.is_some() && before.is_some_and(|before| grace < before)
        } else {
            pending || graceful
        };
        let mut last = current;
        if changed {
            write::mark_deleted(&mut marked, self.time(), (!waits).then_some(grace), !terminating);
            if waits {
                marked["status"]["phase"] = "Terminating".into();
            }
            let body = self.commit(key.clone(), Some(&last), Outcome::Put(marked))?;
            if pending || self.dry_run {
                return Ok((pending_status(pending, options), body));
            }
            last = self.find(name).unwrap_or(last);
        } else if pending {
            let body = self.commit(key, Some(&last), Outcome::Same(Arc::clone(&last)))?;
            return Ok((pending_status(true, options), body));
        }
        let uid = last.uid.clone();
        let body = self.commit(key, Some(&last), Outcome::Gone)?;
        self.delete_endpoints(name);
        Ok((
            200,
            if kind.deletion_shows_object {
                body
            } else {
                Status::deleted(&kind, name, &uid)
            },
        ))
    }

    /// Deletes the endpoints of a service.
    ///
    /// Source: kubernetes `pkg/registry/core/service/storage/storage.go` (`afterDelete`).
    fn delete_endpoints(&mut self, service: &str) {
        let kind = self.stored_kind();
        if !(kind.group.is_empty() && kind.kind == "Service") || self.dry_run {
            return;
        }
        let namespace = self.collection.namespace.as_deref();
        if let Ok(endpoints) = self.model.named("endpoints", namespace, service) {
            let (kind, key) = (endpoints.kind.clone(), endpoints.key.clone());
            let written = self
                .model
                .carry_out(self.now, &kind, key, Some(endpoints), Outcome::Gone);
            self.written.push(written);
        }
    }

    /// Adds the warning for a job whose pods are orphaned by default.
    fn warn_of_orphans(&mut self, options: &DeleteOptions) {
        let warned = self.warnings.iter().any(|warning| warning == ORPHANS);
        if self.kind.kind == "Job" && options.propagation.is_none() && !warned {
            self.warnings.push(ORPHANS.to_owned());
        }
    }

    pub(super) fn delete_collection(
        &mut self,
        list: &ListRequest,
        options: &DeleteOptions,
    ) -> Result<(u16, Bytes), Status> {
        self.warn_of_orphans(options);
        // They are listed in pages, and a page at a version is exact.
        let exact = list.version_match.is_none() && matches!(list.resource_version, RequestedVersion::At(_));
        let list = &ListRequest {
            version_match: list.version_match.or(exact.then_some(VersionMatch::Exact)),
            ..list.clone()
        };
        // A lagging watch cache is not waited for: it cannot advance before this call returns.
        let page = match self.model.list(self.now + watchcache::FRESH_WAIT, self.now, list) {
            ListOutcome::Page(page) => page,
            ListOutcome::Refused(status) => return Err(status),
            ListOutcome::Wait { .. } => unreachable!("the wait is over"),
        };
        if Model::may_convert(&self.kind) && self.model.needs() {
            self.converts = true;
            return Err(suspended());
        }
        // Nothing is deleted before all of them are admitted.
        for item in &page.items {
            if let Some(current) = self.find(item.name()) {
                self.admit_deletion(&current, "")?;
            }
        }
        self.admitted = true;
        for item in &page.items {
            if self.find(item.name()).is_some() {
                self.delete(item.name(), options)?;
            }
        }
        Ok((200, page.encode()))
    }
}

pub(super) fn check_preconditions(
    kind: &ApiResource,
    current: &Stored,
    options: &DeleteOptions,
) -> Result<(), Status> {
    let name = current.name();
    if let Some(uid) = options.uid.as_ref().filter(|uid| **uid != current.uid) {
        let why = format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been \
             deleted and then recreated",
            current.uid
        );
        return Err(Status::precondition_failed(kind, name, &why));
    }
    let revision = current.revision.to_string();
    if let Some(wanted) = options
        .resource_version
        .as_ref()
        .filter(|wanted| **wanted != revision)
    {
        let why = format!(
            "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record \
             ({revision}). The object might have been modified"
        );
        return Err(Status::precondition_failed(kind, name, &why));
    }
    Ok(())
}

/// Sets the finalizers for the garbage collector.
fn propagate(kind: &ApiResource, object: &mut Value, options: &DeleteOptions) {
    // The store of events has no garbage collection.
    if kind.kind == "Event" && !kind.custom {
        return;
    }
    let said = finalizers(object).any(|name| matches!(name, "orphan" | "foregroundDeletion"));
    let by_itself = (kind.orphans && !said).then_some(Propagation::Orphan);
    let Some(propagation) = options.propagation.or(by_itself) else {
        return;
    };
    let mut names: Vec<String> = finalizers(object)
        .filter(|name| !matches!(*name, "orphan" | "foregroundDeletion"))
        .map(str::to_owned)
        .collect();
    match propagation {
        Propagation::Foreground => names.push("foregroundDeletion".to_owned()),
        Propagation::Orphan => names.push("orphan".to_owned()),
        Propagation::Background => {}
    }
    object["metadata"]["finalizers"] = names.into();
}

/// Returns the grace period in seconds.
fn grace_period(kind: &ApiResource, object: &Value, options: &DeleteOptions) -> i64 {
    if kind.deletion != Deletion::AfterGrace {
        return 0;
    }
    let seconds = options.grace_period_seconds.or_else(|| {
        object
            .pointer("/spec/terminationGracePeriodSeconds")
            .and_then(Value::as_i64)
    });
    let placed = object
        .pointer("/spec/nodeName")
        .and_then(Value::as_str)
        .is_some_and(|node| !node.is_empty());
    let over = matches!(
        object.pointer("/status/phase").and_then(Value::as_str),
        Some("Succeeded" | "Failed")
    );
    // In a cluster the period is defaulted to 30 s on create; this store keeps the value in the request.
    match seconds.unwrap_or(30) {
        _ if !placed || over => 0,
        negative if negative < 0 => 1,
        seconds => seconds,
    }
}

fn pending_status(pending: bool, options: &DeleteOptions) -> u16 {
    if pending && options.accepted_only {
        202
    } else {
        200
    }
}
