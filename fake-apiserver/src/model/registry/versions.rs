//! Objects of a write in other versions of their kind: in those that webhooks, policies and managers have, and in the one that is
//! stored. A webhook of the definition may have to convert.
//!
//! It must not know who wants the other version.
//!
//! Source: apiserver `pkg/admission/conversion.go`; apiextensions `apiserver/conversion/converter.go`.

use apimachinery::kind::KindRef;
use apimachinery::object::{Stored, canonical};
use apimachinery::status::Status;
use builtin_kinds::crd::Definition;
use builtin_kinds::crd::conversion::{self, Conversion};
use builtin_kinds::{convert, types};
use serde_json::Value;

use super::Writer;
use super::webhooks::suspended;
use crate::model::write::Outcome;

impl Writer<'_> {
    /// Returns an object in another version of its kind. A custom resource is neither pruned nor completed, as on a real server.
    ///
    /// # Errors
    /// The conversion fails; a Status that is not sent, while a webhook is waited for.
    pub(super) fn in_version(
        &mut self,
        mut object: Value,
        (from, to): (&KindRef, &KindRef),
    ) -> Result<Value, Status> {
        if from == to {
            return Ok(canonical(to, object));
        }
        if let Some(conversion) = Conversion::between(from, to) {
            return self.by_webhook(conversion, &canonical(from, object), (from, to));
        }
        if to.custom {
            // What is empty stays, because a manager may have it.
            object["apiVersion"] = to.api_version().into();
            object.sort_all_objects();
            return Ok(object);
        }
        let stored = Stored::as_is(from, String::new(), 0, convert::received(from, object));
        let object = convert::converted(&stored, to).json();
        // It is a struct, whose fields without a value are there.
        Ok(match types::conform(to, &object) {
            Ok(Some(conformed)) => conformed,
            Ok(None) | Err(_) => object,
        })
    }

    /// Returns an object of a built-in kind in another version.
    pub(super) fn to_version(&self, kind: &KindRef, object: Value) -> Value {
        if *kind == self.kind {
            return canonical(kind, object);
        }
        let stored = Stored::as_is(&self.kind, String::new(), 0, object);
        convert::converted(&stored, kind).json()
    }

    /// Returns the kind and the outcome that is stored, and what is read of it then; a webhook may have to convert both ways.
    ///
    /// # Errors
    /// As [`Writer::in_version`].
    pub(super) fn in_storage(
        &mut self,
        outcome: Outcome,
    ) -> Result<(KindRef, Outcome, Option<Value>), Status> {
        let kind = self.stored_kind();
        let storage = Definition::of(&kind).and_then(|definition| definition.storage.clone());
        let conversion = storage
            .as_ref()
            .and_then(|storage| Conversion::between(&kind, storage));
        let (Some(storage), Some(conversion)) = (&storage, conversion) else {
            return Ok((kind, outcome, None));
        };
        let Outcome::Put(object) = outcome else {
            return Ok((kind, outcome, None));
        };
        let object = conversion::in_store(canonical(&kind, object));
        let stored = self.by_webhook(conversion, &object, (&kind, storage))?;
        let stored = received(storage, stored);
        let read = self.by_webhook(conversion, &stored, (storage, &kind))?;
        let read = received(&kind, read);
        Ok((storage.clone(), Outcome::Put(stored), Some(read)))
    }

    /// Returns an object as a webhook converts it.
    fn by_webhook(
        &mut self,
        conversion: &Conversion,
        object: &Value,
        (from, to): (&KindRef, &KindRef),
    ) -> Result<Value, Status> {
        let sent = [object.clone()];
        let called = (conversion.name.as_str(), &conversion.client, conversion::TIMEOUT);
        let review = |uid: &str| conversion.review(&sent, to, uid);
        let Some(reply) = self.replies.call(self.model, self.now, called, 0, review)? else {
            return Err(suspended());
        };
        let answered = (reply.uid.as_str(), reply.url.as_str(), &reply.outcome);
        let converted = conversion.converted(answered, &sent, (from, to));
        let object = converted.map_err(Status::unexplained)?.pop().unwrap_or_default();
        Ok(canonical(to, object))
    }
}

/// Returns a converted custom resource as it is decoded from the store.
fn received(kind: &KindRef, mut object: Value) -> Value {
    if let Some(definition) = Definition::of(kind) {
        definition.receive(&mut object);
    }
    canonical(kind, object)
}
