//! Admission by webhooks: each write of a client is sent to those that select it, mutating ones first, which come after the
//! mutating policies. It must not know how they are called.
//!
//! Source: apiserver `pkg/admission/plugin/webhook`, `pkg/admission/reinvocation.go`, `endpoints/handlers/{create,update}.go`.

use std::sync::Arc;

use apimachinery::kind::{Generation, KindRef};
use apimachinery::object::Stored;
use apimachinery::status::Status;
use apimachinery::time::timestamp;
use apimachinery::write::Subresource;
use builtin_kinds::admission_policy::Request;
use builtin_kinds::admission_webhook::{Hook, Hooks, Patch};
use builtin_kinds::crd::Definition;
use builtin_kinds::expression::Authorizer;
use builtin_kinds::{catalog, ownership, rbac, scale, types};
use scenario::AdmissionPlugin;
use serde_json::{Value, json};

use super::policies::Reinvocation;
use super::{Writer, parts, remove};
use crate::api::access::User;
use crate::api::write::check_namespace;
use crate::model::Model;
use crate::model::hooks::Reply;
use crate::model::write::{self, Live, Outcome};

/// Attributes of a write (`admission.Attributes`), its objects in the version in which they are stored.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attributes<'a> {
    pub(super) object: Option<&'a Value>,
    pub(super) old: Option<&'a Value>,
    pub(super) name: &'a str,
    pub(super) subresource: Option<Subresource>,
}

impl<'a> Attributes<'a> {
    /// The same write with this object.
    pub(super) fn of<'o>(self, object: Option<&'o Value>) -> Attributes<'o>
    where
        'a: 'o,
    {
        Attributes { object, ..self }
    }
}

impl Model {
    /// Returns the current webhooks; `None`: there are none.
    fn hooks(&self, mutating: bool) -> Option<Arc<Hooks>> {
        let (plural, derived, plugin) = match mutating {
            true => (
                "mutatingwebhookconfigurations",
                &self.mutating_hooks,
                AdmissionPlugin::MutatingAdmissionWebhook,
            ),
            false => (
                "validatingwebhookconfigurations",
                &self.validating_hooks,
                AdmissionPlugin::ValidatingAdmissionWebhook,
            ),
        };
        let objects = self.of_admission(plural).filter(|_| self.plugins.has(plugin))?;
        let json = || {
            objects
                .values()
                .map(|object| object.json())
                .collect::<Vec<Value>>()
        };
        Some(derived.of(&[objects], || Hooks::new(&json(), mutating)))
    }

    /// Whether a write of this kind may have to wait for webhooks.
    pub(crate) fn has_hooks(&self) -> bool {
        self.hooks(true).is_some() || self.hooks(false).is_some()
    }
}

/// The Status of an attempt that waits for webhooks. It is never sent.
pub(super) fn suspended() -> Status {
    Status::internal_error("waits for a webhook")
}

impl Writer<'_> {
    /// Whether there are mutating policies or webhooks.
    pub(super) fn mutating(&self) -> bool {
        self.requester.is_some() && (self.model.mutations().is_some() || self.model.hooks(true).is_some())
    }

    /// Applies the mutating policies and webhooks to a new object.
    ///
    /// # Errors
    /// Their refusal; a Status that is not sent, while one is waited for.
    pub(super) fn mutate_new(&mut self, object: &mut Value, name: &str, uid: &str) -> Result<(), Status> {
        if !self.mutating() {
            return Ok(());
        }
        let sent = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        self.name_namespace(object);
        // Admission of these kinds comes before the webhooks, what else the server adds after them.
        let known = types::of(&self.kind).map(|known| known.name);
        if let Some(
            "core/v1.Pod"
            | "core/v1.PersistentVolumeClaim"
            | "core/v1.PersistentVolume"
            | "core/v1.Node"
            | "storage/v1.VolumeAttributesClass"
            | "networking/v1.Ingress",
        ) = known
        {
            let status = object.get("status").cloned();
            self.admit_new(object, name, uid)?;
            match status {
                Some(status) => object["status"] = status,
                None => remove(object, "status"),
            }
        }
        let attributes = Attributes {
            object: Some(&object.clone()),
            old: None,
            name: &sent,
            subresource: None,
        };
        if let Some(mutated) = self.mutated(attributes)? {
            check_namespace(&mutated, &self.collection)?;
            *object = mutated;
        }
        Ok(())
    }

    /// Applies the mutating policies and webhooks to the object that replaces `stored`.
    ///
    /// # Errors
    /// As [`Writer::mutate_new`].
    pub(super) fn mutate_changed(
        &mut self,
        object: &mut Value,
        stored: &Value,
        name: &str,
        subresource: Option<Subresource>,
    ) -> Result<(), Status> {
        if !self.mutating() {
            return Ok(());
        }
        self.name_namespace(object);
        let attributes = Attributes {
            object: Some(&object.clone()),
            old: Some(stored),
            name,
            subresource,
        };
        if let Some(mutated) = self.mutated(attributes)? {
            let owners = mutated.clone();
            *object = parts::written(&self.kind, subresource, stored, mutated);
            ownership::copy(&owners, object);
        }
        Ok(())
    }

    /// Sends a new object as it is to be stored to the validating webhooks.
    ///
    /// # Errors
    /// As [`Writer::mutate_new`].
    pub(super) fn validate_new_by_hooks(&mut self, object: &Value, name: &str) -> Result<(), Status> {
        if self.requester.is_none() || self.model.hooks(false).is_none() {
            return Ok(());
        }
        let mut object = object.clone();
        object["metadata"]["creationTimestamp"] = timestamp(self.time()).into();
        if self.kind.generation != Generation::None {
            object["metadata"]["generation"] = 1.into();
        }
        self.validate_by_hooks(Attributes {
            object: Some(&object),
            old: None,
            name,
            subresource: None,
        })
    }

    /// Sends the object that replaces `current`, as it is to be stored, to the validating webhooks.
    ///
    /// # Errors
    /// As [`Writer::mutate_new`].
    pub(super) fn validate_changed_by_hooks(
        &mut self,
        manifest: &Value,
        (current, live): Live<'_>,
        subresource: Option<Subresource>,
    ) -> Result<(), Status> {
        if self.requester.is_none() || self.model.hooks(false).is_none() {
            return Ok(());
        }
        let (kind, key) = (&self.kind, current.key.as_str());
        let outcome = write::replace(
            kind,
            key,
            Some((current, live)),
            manifest.clone(),
            self.time(),
            String::new(),
        );
        let mut object = match outcome {
            Outcome::Put(object) | Outcome::Released(object) => object,
            Outcome::Same(_) => live.clone(),
            Outcome::Gone => manifest.clone(),
        };
        object["metadata"]["resourceVersion"] = current.revision.to_string().into();
        self.validate_by_hooks(Attributes {
            object: Some(&object),
            old: Some(live),
            name: current.name(),
            subresource,
        })
    }

    /// Sends a deletion to the mutating webhooks, then to the validating ones; `name`: that of the request, which one of a
    /// collection does not have.
    ///
    /// # Errors
    /// As [`Writer::mutate_new`].
    pub(super) fn admit_deletion(&mut self, stored: &Stored, name: &str) -> Result<(), Status> {
        if self.requester.is_none() || !self.model.has_hooks() {
            return Ok(());
        }
        let attributes = Attributes {
            object: None,
            old: Some(&stored.json()),
            name,
            subresource: None,
        };
        self.mutated(attributes)?;
        self.validate_by_hooks(attributes)
    }

    /// Sends the object of a POST to a subresource, which is of another kind, to the mutating webhooks, then to the validating
    /// ones. Returns it as the first ones change it.
    ///
    /// # Errors
    /// As [`Writer::mutate_new`].
    pub(super) fn admit_posted(
        &mut self,
        part: &KindRef,
        subresource: &'static str,
        object: &Value,
        name: &str,
    ) -> Result<Value, Status> {
        let mut object = object.clone();
        if self.requester.is_none() || !self.model.has_hooks() {
            return Ok(object);
        }
        self.name_namespace(&mut object);
        let conformed = types::conform(part, &object);
        let mut object = conformed.map_err(Status::unexplained)?.unwrap_or(object);
        let attributes = Attributes {
            object: None,
            old: None,
            name,
            subresource: None,
        };
        let kind = self.stored_kind();
        for mutating in [true, false] {
            let hooks = self.model.hooks(mutating);
            for hook in hooks.iter().flat_map(|hooks| hooks.of(&kind)) {
                let of_post = attributes.of(Some(&object));
                let mut versioned = self.requested(of_post);
                versioned.part = Some((part.clone(), subresource));
                let request = versioned.request(of_post);
                if hook.selects(&request, std::slice::from_ref(&kind)).is_none()
                    || !hook.conditions_hold(&request)?
                {
                    continue;
                }
                hook.check_dry_run(self.dry_run)?;
                let Some(reply) = self.call(hook, &versioned, of_post, 0)? else {
                    return Err(suspended());
                };
                let patch = self.apply_reply(hook, &reply)?;
                if !patch.is_empty() {
                    object = hook.patched(Some(&object), &patch)?;
                }
            }
        }
        Ok(object)
    }

    /// Returns the object after the mutating policies and then the mutating webhooks; `None`: it is unchanged.
    fn mutated(&mut self, attributes: Attributes<'_>) -> Result<Option<Value>, Status> {
        if !self.mutating() {
            return Ok(None);
        }
        let hooks = self.model.hooks(true);
        let hooks: &[Hook] = hooks.as_ref().map_or(&[], |hooks| hooks.of(&self.kind));
        let mut object = attributes.object.cloned();
        let mut changed = false;
        let (mut again, mut policies) = (Reinvocation::new(), Reinvocation::new());
        for round in 0..2_u8 {
            let now = attributes.of(object.as_ref());
            if let Some(mutated) = self.mutate_by_policies(now, round, &mut policies)? {
                (object, changed) = (Some(mutated), true);
                again.changed();
            }
            for (nth, hook) in hooks.iter().enumerate() {
                if round > 0 && !again.is_due(&nth) {
                    continue;
                }
                let attributes = attributes.of(object.as_ref());
                let Some(versioned) = self.selected_by(hook, attributes)? else {
                    continue;
                };
                let Some(reply) = self.call(hook, &versioned, attributes, round)? else {
                    return Err(suspended());
                };
                let patch = self.apply_reply(hook, &reply)?;
                if !patch.is_empty() {
                    let patched = hook.patched(versioned.object.as_ref(), &patch)?;
                    let read = self.read_back(&versioned, patched, attributes)?;
                    if object.as_ref() != Some(&read) {
                        (object, changed) = (Some(read), true);
                        again.changed();
                        policies.changed();
                    }
                }
                if hook.reinvoked {
                    again.wait(nth);
                }
            }
        }
        Ok(object.filter(|_| changed))
    }

    /// Sends a write to all validating webhooks at once.
    ///
    /// # Errors
    /// As [`Writer::mutate_new`].
    pub(super) fn validate_by_hooks(&mut self, attributes: Attributes<'_>) -> Result<(), Status> {
        let Some(hooks) = self.model.hooks(false).filter(|_| self.requester.is_some()) else {
            return Ok(());
        };
        let hooks = hooks.of(&self.kind);
        let mut versioned = Vec::new();
        for hook in hooks {
            if let Some(selected) = self.selected_by(hook, attributes)? {
                versioned.push((hook, selected));
            }
        }
        let mut replies = Vec::new();
        for (hook, versioned) in &versioned {
            replies.push((*hook, self.call(hook, versioned, attributes, 0)?));
        }
        if self.replies.waits() {
            return Err(suspended());
        }
        let mut refusal = Ok(());
        for (hook, reply) in replies {
            let Some(reply) = reply else { continue };
            let applied = self.apply_reply(hook, &reply).map(drop);
            refusal = refusal.and(applied);
        }
        refusal
    }

    /// Returns the patch of a reply, and records its warnings.
    fn apply_reply(&mut self, hook: &Hook, reply: &Reply) -> Result<Patch, Status> {
        match hook.verdict(&reply.uid, &reply.url, &reply.outcome) {
            Ok(verdict) => {
                self.warnings.extend(verdict.warnings);
                Ok(verdict.patch)
            }
            Err(refusal) => {
                self.warnings.extend(refusal.warnings);
                Err(refusal.status)
            }
        }
    }

    /// Returns the objects in the version that the webhook selects; `None`: it is not called.
    fn selected_by(
        &mut self,
        hook: &Hook,
        attributes: Attributes<'_>,
    ) -> Result<Option<VersionedAttributes>, Status> {
        let Some(versioned) = self.versioned_if(attributes, |request, equivalents| {
            hook.selects(request, equivalents)
        })?
        else {
            return Ok(None);
        };
        if !hook.conditions_hold(&versioned.request(attributes))? {
            return Ok(None);
        }
        hook.check_dry_run(self.dry_run)?;
        Ok(Some(versioned))
    }

    /// Returns the objects in the version of the kind that `selects` returns; `None` if it returns none.
    pub(super) fn versioned_if(
        &mut self,
        attributes: Attributes<'_>,
        selects: impl for<'e> Fn(&Request<'_>, &'e [KindRef]) -> Option<&'e KindRef>,
    ) -> Result<Option<VersionedAttributes>, Status> {
        let own = self.requested_kind();
        let equivalents = self.model.catalog.kinds().iter();
        let equivalents = equivalents.filter(|kind| kind.storage() == own.storage());
        let mut equivalents: Vec<KindRef> = equivalents.cloned().collect();
        if !equivalents.contains(&own) {
            equivalents.push(own);
        }
        let selected = selects(&self.requested(attributes).request(attributes), &equivalents);
        selected.map(|kind| self.versioned(attributes, kind)).transpose()
    }

    /// Returns the objects in the version of a kind.
    ///
    /// # Errors
    /// As [`Writer::in_version`].
    pub(super) fn versioned(
        &mut self,
        attributes: Attributes<'_>,
        kind: &KindRef,
    ) -> Result<VersionedAttributes, Status> {
        let mut versioned = self.requested(attributes);
        let stored = self.stored_kind();
        for object in [&mut versioned.old, &mut versioned.object].into_iter().flatten() {
            *object = match versioned.part.is_some() {
                true => scale::shown(&self.kind, object)?,
                false => self.in_version(object.take(), (&stored, kind))?,
            };
        }
        versioned.kind = kind.clone();
        Ok(versioned)
    }

    /// Returns the objects in the version in which they are stored.
    fn requested(&self, attributes: Attributes<'_>) -> VersionedAttributes {
        let scaled = self.part == Some(Subresource::Scale);
        VersionedAttributes {
            kind: self.requested_kind(),
            request_kind: self.requested_kind(),
            part: scaled.then(|| (catalog::scale(), Subresource::Scale.name())),
            object: attributes.object.cloned(),
            old: attributes.old.cloned(),
            namespace: self.collection.namespace.clone(),
            namespace_object: self.namespace_object(),
            user: self.user(),
            authorizer: self.authorizer(),
            options: self.options(attributes),
            dry_run: self.dry_run,
        }
    }

    /// Returns the outcome of a review; `None`: it is pending.
    fn call(
        &mut self,
        hook: &Hook,
        versioned: &VersionedAttributes,
        attributes: Attributes<'_>,
        round: u8,
    ) -> Result<Option<Arc<Reply>>, Status> {
        let called = (hook.name.as_str(), &hook.client, hook.timeout);
        let review = |uid: &str| hook.review(&versioned.request(attributes), uid);
        self.replies.call(self.model, self.now, called, round, review)
    }

    /// Returns a patched object in the version in which it is stored, with defaults.
    pub(super) fn read_back(
        &mut self,
        versioned: &VersionedAttributes,
        patched: Value,
        attributes: Attributes<'_>,
    ) -> Result<Value, Status> {
        let kind = self.stored_kind();
        let before = attributes.object.cloned().unwrap_or_default();
        if versioned.part.is_some() {
            let mut object = before;
            let replicas = patched.pointer("/spec/replicas").and_then(Value::as_i64);
            if let Some(at) = &kind.scale {
                scale::set(at, &mut object, replicas.unwrap_or(0));
            }
            return Ok(object);
        }
        let mut object = patched;
        if versioned.kind != kind {
            if let Some(definition) = Definition::of(&versioned.kind) {
                definition.fill(&mut object);
            }
            object = self.in_version(object, (&versioned.kind, &kind))?;
        }
        if let Some(definition) = Definition::of(&kind) {
            definition.fill(&mut object);
            self.mutated = true;
        }
        self.filled(&mut object);
        let conformed = types::conform(&kind, &object).map_err(|why| Status::internal_error(&why))?;
        let mut object = conformed.unwrap_or(object);
        // Webhooks cannot change who owns which field.
        ownership::copy(&before, &mut object);
        Ok(object)
    }

    /// Sets the namespace of the path.
    fn name_namespace(&self, object: &mut Value) {
        if let Some(namespace) = self.collection.namespace.as_deref() {
            object["metadata"]["namespace"] = namespace.into();
        }
    }

    pub(super) fn namespace_object(&self) -> Option<Value> {
        let kind = self.model.catalog.find("", "namespaces")?;
        let objects = self.model.objects(kind);
        objects
            .get(self.collection.namespace.as_deref()?)
            .map(|object| object.json())
    }

    pub(super) fn user(&self) -> Value {
        self.requester.map_or(Value::Null, |requester| {
            let user = requester.user;
            json!({ "username": user.name, "uid": user.uid, "groups": user.groups, "extra": user.extra })
        })
    }

    /// Authorizer of the user, for expressions.
    pub(super) fn authorizer(&self) -> Option<Authorizer> {
        let requester = self.requester?;
        let authorizer = requester.authorizer.clone();
        let decide = move |name: &str, groups: &[String], attributes: &rbac::Attributes| {
            let user = User {
                name: name.to_owned(),
                groups: groups.to_vec(),
                uid: String::new(),
                extra: Default::default(),
            };
            authorizer.decide(&user, attributes)
        };
        Some(Authorizer::new(
            &requester.user.name,
            &requester.user.groups,
            decide,
        ))
    }

    /// `options` of the request.
    fn options(&self, attributes: Attributes<'_>) -> Value {
        let kind = match (attributes.object, attributes.old) {
            (Some(_), None) => "CreateOptions",
            (Some(_), Some(_)) => "UpdateOptions",
            (None, _) => "DeleteOptions",
        };
        let mut options = json!({ "kind": kind, "apiVersion": "meta.k8s.io/v1" });
        let dry_run = self.dry_run.then(|| json!(["All"]));
        // The order of their fields is not the same.
        if kind != "DeleteOptions"
            && let Some(dry_run) = &dry_run
        {
            options["dryRun"] = dry_run.clone();
        }
        for (name, value) in &self.options {
            options[*name] = value.clone();
        }
        if let Some(dry_run) = dry_run {
            options["dryRun"] = dry_run;
        }
        options
    }
}

/// Attributes of a write in the version that a webhook or policy selects (`VersionedAttributes`).
pub(super) struct VersionedAttributes {
    kind: KindRef,
    /// Kind of the request.
    request_kind: KindRef,
    /// Kind of the objects and name of the subresource, if they are those of one.
    part: Option<(KindRef, &'static str)>,
    object: Option<Value>,
    old: Option<Value>,
    namespace: Option<String>,
    namespace_object: Option<Value>,
    user: Value,
    authorizer: Option<Authorizer>,
    options: Value,
    dry_run: bool,
}

impl VersionedAttributes {
    /// Kind of the version of the objects.
    pub(super) fn kind(&self) -> &KindRef {
        &self.kind
    }

    pub(super) fn request<'a>(&'a self, attributes: Attributes<'a>) -> Request<'a> {
        Request {
            operation: match (attributes.object, attributes.old) {
                (Some(_), None) => "CREATE",
                (Some(_), Some(_)) => "UPDATE",
                (None, _) => "DELETE",
            },
            kind: &self.kind,
            request_kind: &self.request_kind,
            part: self.part.as_ref().map(|(kind, _)| &**kind),
            subresource: match self.part {
                Some((_, name)) => name,
                None => attributes.subresource.map_or("", Subresource::name),
            },
            name: attributes.name,
            namespace: self.namespace.as_deref(),
            dry_run: self.dry_run,
            user: &self.user,
            options: &self.options,
            object: self.object.as_ref(),
            old: self.old.as_ref(),
            namespace_object: self.namespace_object.as_ref(),
            authorizer: self.authorizer.as_ref(),
        }
    }
}
