//! Admission by policies: each write of a client is held against the validating admission policies of this moment. It must not
//! know how they are evaluated.

use std::sync::Arc;

use apimachinery::selector::LabelSelector;
use apimachinery::status::{Cause, Status};
use apimachinery::write::Subresource;
use builtin_kinds::admission_policy::{GROUP, ParamQuery, Policies, Request};
use builtin_kinds::scale::label_selector;
use serde_json::{Value, json};

use super::Writer;
use crate::model::{Model, Objects};

impl Model {
    /// Returns the policies of this moment; `None`: there are none.
    fn admission_policies(&self) -> Option<Arc<Policies>> {
        let objects = |plural: &str| {
            let kind = self.catalog.find(GROUP, plural)?;
            Some(self.objects(kind)).filter(|objects| !objects.is_empty())
        };
        let policies = objects("validatingadmissionpolicies")?;
        let bindings = objects("validatingadmissionpolicybindings")?;
        let json = |objects: &Objects| {
            objects
                .values()
                .map(|object| object.json())
                .collect::<Vec<Value>>()
        };
        Some(self.admission.of(&[policies, bindings], || {
            Policies::new(&json(policies), &json(bindings))
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

impl Writer<'_> {
    /// Holds a write against the policies.
    ///
    /// # Errors
    /// Their refusal: 422, or what the policy says.
    pub(super) fn admit_by_policies(
        &mut self,
        (object, old): (Option<&Value>, Option<&Value>),
        name: &str,
        subresource: Option<Subresource>,
    ) -> Result<(), Status> {
        let Some(asker) = self.asker else { return Ok(()) };
        let Some(policies) = self
            .model
            .admission_policies()
            .filter(|policies| !policies.is_empty())
        else {
            return Ok(());
        };
        let user = json!({
            "username": asker.user.name, "uid": asker.user.uid, "groups": asker.user.groups, "extra": asker.user.extra,
        });
        let namespace = self.collection.namespace.clone();
        let namespace_object = namespace.as_deref().and_then(|name| {
            let kind = self.model.catalog.find("", "namespaces")?;
            self.model.objects(kind).get(name).map(|object| object.json())
        });
        let request = Request {
            operation: match (object, old) {
                (Some(_), None) => "CREATE",
                (Some(_), Some(_)) => "UPDATE",
                (None, _) => "DELETE",
            },
            kind: &self.stored_kind(),
            asked: &self.stored_kind(),
            part: None,
            subresource: subresource.map_or("", Subresource::name),
            name,
            namespace: namespace.as_deref(),
            dry_run: self.dry_run,
            user: &user,
            options: &Value::Null,
            object,
            old,
            namespace_object: namespace_object.as_ref(),
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
