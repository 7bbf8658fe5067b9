//! Managers of the fields of written objects: writes in the version of the request, with conversions to those of other managers.
//!
//! It must not know how managers are computed: that is `ownership`.

use apimachinery::kind::{ApiResource, Generation, KindRef};
use apimachinery::object::{canonical, has_empty_metadata};
use apimachinery::status::Status;
use apimachinery::time::timestamp;
use apimachinery::write::Subresource;
use builtin_kinds::crd::Definition;
use builtin_kinds::ownership::{Ownership, Versions};
use builtin_kinds::{convert, ownership, types};
use serde_json::Value;

use super::Writer;

/// Versions of the written object.
struct OfWrite<'w, 'm>(&'w mut Writer<'m>);

impl Versions for OfWrite<'_, '_> {
    fn kind(&self, api_version: &str) -> Option<KindRef> {
        let own = self.0.requested_kind();
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        let found = self.0.model.catalog.find_version(group, version, &own.plural)?;
        let is_version = found.kind == own.kind && found.custom == own.custom;
        // Events are the only kind in two groups.
        let is_of_group = found.group == own.group || !own.custom && own.kind == "Event";
        (is_version && is_of_group).then(|| found.clone())
    }

    fn convert(&mut self, object: &Value, from: &ApiResource, to: &ApiResource) -> Result<Value, Status> {
        let kinds = (self.kind(&from.api_version()), self.kind(&to.api_version()));
        let (Some(from), Some(to)) = kinds else {
            return Err(Status::internal_error(
                "no conversion of a version that is not served",
            ));
        };
        self.0.in_version(object.clone(), (&from, &to))
    }
}

impl Writer<'_> {
    /// Sets the managers of an object in the stored version, which replaces `live`. `sent`: the managed fields of the request.
    ///
    /// # Errors
    ///
    /// A Status that is not sent, while a webhook is waited for. An object that cannot be converted to the version of a manager
    /// is written all the same, as by kube-apiserver.
    pub(super) fn note(
        &mut self,
        subresource: Option<Subresource>,
        live: &Value,
        object: &mut Value,
        sent: Option<&Value>,
    ) -> Result<(), Status> {
        let (kind, stored, manager) = (self.requested_kind(), self.stored_kind(), self.manager.clone());
        let sent = sent.filter(|_| subresource.is_none());
        let ownership = self.ownership(&kind, &manager, subresource);
        let noted = if kind == stored {
            ownership.note_write(live, object, sent, &mut OfWrite(self))
        } else {
            let live = self.to_version(&kind, live.clone());
            let mut written = self.to_version(&kind, object.clone());
            let noted = ownership.note_write(&live, &mut written, sent, &mut OfWrite(self));
            ownership::copy(&written, object);
            noted
        };
        match noted {
            Err(waits) if self.replies.waits() => Err(waits),
            Err(why) => {
                tracing::debug!(why = why.message, "the managers of an object stay as they are");
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Sets the managers of a new object in the stored version.
    ///
    /// # Errors
    ///
    /// As [`Writer::note`].
    pub(super) fn note_new(&mut self, object: &mut Value, sent: Option<&Value>) -> Result<(), Status> {
        let nothing = self.nothing();
        self.note(self.created_through, &nothing, object, sent)
    }

    /// Returns `live`, an object in the stored version, with the applied configuration.
    ///
    /// # Errors
    ///
    /// As [`Ownership::apply`]; the result does not have the types of its kind.
    pub(super) fn applied(
        &mut self,
        subresource: Option<Subresource>,
        live: &Value,
        config: &Value,
        force: bool,
    ) -> Result<Value, Status> {
        let (kind, stored, manager) = (self.requested_kind(), self.stored_kind(), self.manager.clone());
        let ownership = self.ownership(&kind, &manager, subresource);
        let mut object = if kind == stored {
            ownership.apply(live, config, force, &mut OfWrite(self))?
        } else {
            let live = match live["metadata"]["uid"].is_string() {
                true => self.to_version(&kind, live.clone()),
                false => types::zero(&kind).cloned().unwrap_or_else(ownership::nothing),
            };
            let applied = ownership.apply(&live, config, force, &mut OfWrite(self))?;
            let conformed = types::conform(&kind, &applied).map_err(Status::unexplained)?;
            canonical(&stored, convert::received(&kind, conformed.unwrap_or(applied)))
        };
        if let Some(definition) = Definition::of(&stored) {
            definition.fill_applied(&mut object);
            // It is stored as it is, and read without what is empty.
            self.has_unread |= has_empty_metadata(&object);
        }
        let conformed = types::conform(&stored, &object).map_err(Status::unexplained)?;
        if stored.generation == Generation::SpecAsSent {
            self.differs = conformed.as_ref() != Some(&types::read_tree(&stored, &object).object);
        }
        Ok(conformed.unwrap_or(object))
    }

    pub(super) fn ownership<'o>(
        &self,
        kind: &'o ApiResource,
        manager: &'o str,
        subresource: Option<Subresource>,
    ) -> Ownership<'o> {
        let part = match subresource {
            Some(Subresource::Status) => "status",
            Some(Subresource::EphemeralContainers) => "ephemeralcontainers",
            Some(Subresource::Resize) => "resize",
            Some(Subresource::Scale) => "scale",
            Some(Subresource::Finalize) | None => "",
        };
        Ownership::new(kind, self.model.version, manager, part, timestamp(self.time()))
    }
}
