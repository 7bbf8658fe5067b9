//! Writes of a scale: nothing but the number of replicas changes, and the answer is a scale again.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use crate::api::{Cause, Form, Status};
use crate::model::catalog;
use crate::model::encode_json;
use crate::model::object::Stored;
use crate::model::scale;

use super::update::Owners;
use super::{Writer, text};

impl Writer<'_> {
    pub(super) fn rescale(&mut self, current: &Arc<Stored>, sent: &Value) -> Result<(u16, Bytes), Status> {
        let kind = self.kind();
        let scale = kind.scale.ok_or_else(Status::unknown_path)?;
        let replicas = sent
            .pointer("/spec/replicas")
            .and_then(Value::as_i64)
            .unwrap_or(0);
        if replicas < 0 {
            let (of, field, why) = if kind.custom {
                (kind, scale::path(scale.spec), "should be a non-negative integer")
            } else {
                let field = "spec.replicas".to_owned();
                (catalog::scale(), field, "must be greater than or equal to 0")
            };
            let fault = Cause {
                reason: "FieldValueInvalid".to_owned(),
                message: format!("Invalid value: {replicas}: {why}"),
                field,
            };
            return Err(Status::invalid_object(of, current.name(), &[fault]));
        }
        let mut object = current.json();
        scale::set(scale, &mut object, replicas);
        let version = match text(sent, "resourceVersion") {
            "" => current.revision.to_string(),
            version => version.to_owned(),
        };
        object["metadata"]["resourceVersion"] = version.into();
        let (status, body) = self.replace(current, None, object, Owners::NotedOfScale(scale.spec))?;
        match self.form {
            // A scale has the metadata of its object.
            Form::Metadata(_) => Ok((status, body)),
            Form::Table(_) => {
                let stored = self.current(current.name())?;
                Ok((status, self.shown(&scale::of(&stored)?)))
            }
            Form::Full => {
                let object = serde_json::from_slice(&body).unwrap_or_default();
                Ok((status, encode_json(&scale::shown(kind, &object)?).into()))
            }
        }
    }
}
