//! Admission by policies: each write of a client is mutated by the current mutating admission policies and validated by the
//! validating ones. It must not know how they are evaluated.
//!
//! Source: apiserver `pkg/admission/plugin/policy/{generic,mutating,validating}`.

use std::collections::BTreeSet;
use std::sync::Arc;

use apimachinery::selector::LabelSelector;
use apimachinery::status::{Cause, Status};
use apimachinery::write::Subresource;
use builtin_kinds::admission_policy::mutating::{Denial, Mutations};
use builtin_kinds::admission_policy::{ParamQuery, Policies, Request};
use builtin_kinds::scale::label_selector;
use scenario::AdmissionPlugin;
use serde_json::Value;

use super::Writer;
use super::webhooks::Attributes;
use crate::model::{Model, Objects};

/// Mutating policies or webhooks of a write that are invoked again after a change of something else.
#[derive(Debug)]
pub(super) struct Reinvocation<K> {
    /// Those that ask for it, once the object changes.
    waiting: BTreeSet<K>,
    /// Those for which it did.
    due: BTreeSet<K>,
}

impl<K: Ord> Reinvocation<K> {
    pub(super) fn new() -> Self {
        Self {
            waiting: BTreeSet::new(),
            due: BTreeSet::new(),
        }
    }

    /// Records a change of the object.
    pub(super) fn changed(&mut self) {
        self.due.append(&mut self.waiting);
    }

    /// Asks for another invocation after the next change.
    pub(super) fn wait(&mut self, key: K) {
        self.waiting.insert(key);
    }

    /// Whether the object changed after it attributes.
    pub(super) fn is_due(&self, key: &K) -> bool {
        self.due.contains(key)
    }
}

impl Model {
    /// Returns the current validating policies; `None`: there are none.
    fn admission_policies(&self) -> Option<Arc<Policies>> {
        let has = self.plugins.has(AdmissionPlugin::ValidatingAdmissionPolicy);
        let policies = self.of_admission("validatingadmissionpolicies").filter(|_| has)?;
        let bindings = self.of_admission("validatingadmissionpolicybindings")?;
        Some(self.admission.of(&[policies, bindings], || {
            Policies::new(&json_of(policies), &json_of(bindings))
        }))
    }

    /// Returns the current mutating policies; `None`: there are none.
    pub(super) fn mutations(&self) -> Option<Arc<Mutations>> {
        let has = self.plugins.has(AdmissionPlugin::MutatingAdmissionPolicy);
        let policies = self.of_admission("mutatingadmissionpolicies").filter(|_| has)?;
        let bindings = self.of_admission("mutatingadmissionpolicybindings")?;
        Some(self.mutations.of(&[policies, bindings], || {
            Mutations::new(&json_of(policies), &json_of(bindings))
        }))
    }

    fn params(&self, query: &ParamQuery<'_>, namespace: Option<&str>) -> Vec<Value> {
        let Some(kind) = self.catalog.find_kind(query.api_version, query.kind) else {
            return Vec::new();
        };
        let namespace = query.namespace.or(namespace).filter(|_| kind.namespaced);
        let objects = self.objects(kind);
        if !query.name.is_empty() {
            let object = objects.get(kind.key(namespace, query.name).as_str());
            return object.map(|object| object.json()).into_iter().collect();
        }
        let Ok(selector) = LabelSelector::parse(&label_selector(query.selector)) else {
            return Vec::new();
        };
        let within = watchcache::range(objects, namespace, "");
        let selected = within.filter(|object| selector.matches(object));
        selected.map(|object| object.json()).collect()
    }
}

fn json_of(objects: &Objects) -> Vec<Value> {
    objects.values().map(|object| object.json()).collect()
}

impl Writer<'_> {
    /// Returns the object after the mutating policies; `None`: it is unchanged. `round`: 0, or 1 for the second evaluation of
    /// those that ask for one.
    ///
    /// # Errors
    /// 403: a policy fails, and that is a refusal; as for webhooks, where an object cannot be read back.
    pub(super) fn mutate_by_policies(
        &mut self,
        attributes: Attributes<'_>,
        round: u8,
        again: &mut Reinvocation<String>,
    ) -> Result<Option<Value>, Status> {
        let Some(mutations) = self.model.mutations().filter(|_| self.requester.is_some()) else {
            return Ok(None);
        };
        let namespace = self.collection.namespace.clone();
        let mut object = attributes.object.cloned();
        let (mut denials, mut evaluated) = (Vec::new(), false);
        for policy in mutations.of(&self.kind) {
            // What the policies before it made of the object is not matched again.
            let Some(versioned) = self.versioned_if(attributes, |request, equivalents| {
                policy.selects(request, equivalents)
            })?
            else {
                continue;
            };
            let params = |query: &ParamQuery<'_>| self.model.params(query, namespace.as_deref());
            let (invocations, unconfigured) = policy.invocations(&versioned.request(attributes), &params);
            denials.extend(unconfigured);
            for invocation in &invocations {
                let before = object.clone();
                let current = self.versioned(attributes.of(before.as_ref()), versioned.kind())?;
                let key = invocation.key();
                match invocation.conditions_hold(&current.request(attributes.of(before.as_ref()))) {
                    Ok(true) if round == 0 || again.is_due(&key) => {}
                    Ok(_) => continue,
                    Err(denial) => {
                        denials.push(denial);
                        continue;
                    }
                }
                for nth in 0..invocation.mutations() {
                    let current = self.versioned(attributes.of(object.as_ref()), versioned.kind())?;
                    let request = current.request(attributes.of(object.as_ref()));
                    match invocation.mutated(nth, &request, self.model.version) {
                        Ok(None) => {}
                        Ok(Some(mutated)) => {
                            evaluated = true;
                            if request.object != Some(&mutated) {
                                let now = attributes.of(object.as_ref());
                                object = Some(self.read_back(&current, mutated, now)?);
                            }
                        }
                        Err(denial) => denials.push(denial),
                    }
                }
                if object != before {
                    again.changed();
                }
                if invocation.is_reinvoked() {
                    again.wait(key);
                }
            }
        }
        if let Some(status) = self.denied(attributes.name, &denials) {
            return Err(status);
        }
        // As in apiserver: a mutation that changes nothing counts, and for its own policy too.
        if evaluated {
            again.changed();
        }
        let changed = object.as_ref() != attributes.object;
        Ok(object.filter(|_| changed))
    }

    /// The Status of the denials: message and reason are those of the first.
    fn denied(&self, name: &str, denials: &[Denial]) -> Option<Status> {
        let first = denials.first()?;
        let causes = denials.iter().map(|denial| Cause {
            message: denial.message.clone(),
            ..Cause::default()
        });
        let mut status = Status::forbidden(&self.kind, name, "", causes.collect());
        status.message.clone_from(&first.message);
        first.reason.clone_into(&mut status.reason);
        Some(status)
    }

    /// Validates a write by the policies.
    ///
    /// # Errors
    /// Their refusal: 422, or what the policy says.
    pub(super) fn admit_by_policies(
        &mut self,
        (object, old): (Option<&Value>, Option<&Value>),
        name: &str,
        subresource: Option<Subresource>,
    ) -> Result<(), Status> {
        let policies = self.model.admission_policies();
        let Some(policies) = policies.filter(|policies| self.requester.is_some() && !policies.is_empty())
        else {
            return Ok(());
        };
        let namespace = self.collection.namespace.clone();
        let (namespace_object, authorizer) = (self.namespace_object(), self.authorizer());
        let request = Request {
            operation: match (object, old) {
                (Some(_), None) => "CREATE",
                (Some(_), Some(_)) => "UPDATE",
                (None, _) => "DELETE",
            },
            kind: &self.stored_kind(),
            request_kind: &self.stored_kind(),
            part: None,
            subresource: subresource.map_or("", Subresource::name),
            name,
            namespace: namespace.as_deref(),
            dry_run: self.dry_run,
            user: &self.user(),
            options: &Value::Null,
            object,
            old,
            namespace_object: namespace_object.as_ref(),
            authorizer: authorizer.as_ref(),
        };
        let params = |query: &ParamQuery<'_>| self.model.params(query, namespace.as_deref());
        let verdict = policies.judge(&request, &params);
        self.warnings.extend(verdict.warnings);
        match verdict.refusal {
            None => Ok(()),
            Some(refusal) => {
                let cause = Cause {
                    message: refusal.message.clone(),
                    ..Cause::default()
                };
                let mut status = Status::forbidden(&self.kind, name, &refusal.message, vec![cause]);
                status.reason = refusal.reason;
                status.code = refusal.code;
                Err(status)
            }
        }
    }
}
