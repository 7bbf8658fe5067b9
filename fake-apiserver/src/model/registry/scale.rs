//! Writes to `scale`: only the replicas change, and the response is a Scale.

use std::sync::Arc;

use apimachinery::encode::encode_json;
use apimachinery::kind::Scale;
use apimachinery::object::Stored;
use apimachinery::options::Representation;
use apimachinery::status::{Cause, Status};
use apimachinery::write::Subresource;
use builtin_kinds::ownership::Ownership;
use builtin_kinds::{catalog, scale};
use bytes::Bytes;
use serde_json::Value;

use super::update::Owners;
use super::{Writer, text};

impl Writer<'_> {
    pub(super) fn rescale(&mut self, current: &Arc<Stored>, sent: &Value) -> Result<(u16, Bytes), Status> {
        let kind = self.stored_kind();
        let scale = kind.scale.as_ref().ok_or_else(Status::unknown_path)?;
        let replicas = sent
            .pointer("/spec/replicas")
            .and_then(Value::as_i64)
            .unwrap_or(0);
        self.check_replicas(current.name(), scale, replicas)?;
        let live = current.json();
        let mut object = live.clone();
        scale::set(scale, &mut object, replicas);
        self.write_scale(
            (current, live),
            object,
            sent,
            Owners::NotedOfScale(scale.spec.clone()),
        )
    }

    /// Applies a Scale: the manager owns the replicas.
    pub(super) fn apply_scale(
        &mut self,
        name: &str,
        config: &Value,
        force: bool,
    ) -> Result<(u16, Bytes), Status> {
        let current = self.current(name)?;
        let (kind, of_scale) = (self.stored_kind(), catalog::scale());
        let scale = kind.scale.as_ref().ok_or_else(Status::unknown_path)?;
        let of = Ownership::new(&of_scale, self.model.version, &self.manager, "", String::new());
        of.check(config)?;
        let wanted = config.pointer("/spec/replicas").and_then(Value::as_i64);
        let live = current.json();
        let (mut object, replicas) = self
            .ownership(&kind, &self.manager, Some(Subresource::Scale))
            .apply_scale(&live, &scale.spec, wanted, force)?;
        self.check_applied(config, name, false)?;
        self.check_replicas(name, scale, replicas)?;
        scale::set(scale, &mut object, replicas);
        self.write_scale((&current, live), object, config, Owners::Said)
    }

    fn check_replicas(&self, name: &str, scale: &Scale, replicas: i64) -> Result<(), Status> {
        let kind = self.stored_kind();
        if replicas < 0 {
            let (of, field, why) = if kind.custom {
                (kind, scale::path(&scale.spec), "should be a non-negative integer")
            } else {
                let field = "spec.replicas".to_owned();
                (catalog::scale(), field, "must be greater than or equal to 0")
            };
            let fault = Cause {
                reason: "FieldValueInvalid".to_owned(),
                message: format!("Invalid value: {replicas}: {why}"),
                field,
            };
            return Err(Status::invalid_object(&of, name, &[fault]));
        }
        Ok(())
    }

    /// Writes the object of a received Scale, and responds with its Scale.
    fn write_scale(
        &mut self,
        (current, live): (&Arc<Stored>, Value),
        mut object: Value,
        sent: &Value,
        owners: Owners,
    ) -> Result<(u16, Bytes), Status> {
        let kind = self.stored_kind();
        let version = match text(sent, "resourceVersion") {
            "" => current.revision.to_string(),
            version => version.to_owned(),
        };
        object["metadata"]["resourceVersion"] = version.into();
        self.part = Some(Subresource::Scale);
        let (status, body) = self.replace((current, live), None, object, owners)?;
        match self.form {
            // A Scale has the metadata of its object.
            Representation::Metadata(_) => Ok((status, body)),
            Representation::Table(_) => {
                let stored = self.current(current.name())?;
                Ok((status, self.shown(&scale::of(&stored)?)))
            }
            Representation::Full => {
                let object = serde_json::from_slice(&body).unwrap_or_default();
                let mut body = encode_json(&scale::shown(&kind, &object)?);
                body.push(b'\n');
                Ok((status, body.into()))
            }
        }
    }
}
