//! Validates objects that are sent without being written: in events, and as items of pages.

use serde_json::Value;

use super::Validator;
use super::world::World;
use crate::SentObject;
use crate::problem::{Code, Problem};
use crate::raw::{Loose, Name, ShortObject};
use crate::read::{At, First, Json};
use crate::span::Span;

impl Validator<'_> {
    /// Returns the object of an event: by name, or as given.
    pub(super) fn event_object(&mut self, world: &mut World, object: Option<&At<Loose>>) -> SentObject {
        let Some(object) = object else {
            return SentObject::Given(Value::Null);
        };
        if let Loose::Whole(Json(Value::String(name))) = &object.value {
            let span = object.span;
            let name = First(Name {
                name: Some(At {
                    span,
                    value: name.clone(),
                }),
                namespace: None,
                resource: None,
            });
            if let Some(name) = self.present(world, &name, span) {
                return SentObject::Stored(name);
            }
        }
        SentObject::Given(self.loose(world, object))
    }

    /// Returns the JSON of a scripted object.
    pub(super) fn loose(&mut self, world: &mut World, object: &At<Loose>) -> Value {
        let value = match &object.value {
            Loose::Short(short) => self.sent_object(world, short, object.span),
            Loose::Whole(Json(value)) => self.with_namespace(world, value.clone()),
        };
        world.may_hold_anything(value.to_string());
        value
    }

    fn sent_object(&mut self, world: &World, short: &ShortObject, span: Span) -> Value {
        let misplaced = [
            short.repeat.as_ref().map(|at| at.span),
            short.binds.as_ref().map(|at| at.span),
        ];
        for span in misplaced.into_iter().flatten() {
            self.problem(
                Problem::new(
                    Code::Misplaced,
                    span,
                    "this object is only sent: it is neither repeated nor named",
                )
                .label("does not belong here")
                .hint("leave it out, or write the object with `apply`"),
            );
        }
        let json = self.short(short, span).map(|(_, json)| json);
        self.with_namespace(world, json.unwrap_or_default())
    }

    /// Adds the target's namespace to a namespaced object without one.
    fn with_namespace(&self, world: &World, mut object: Value) -> Value {
        let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
        let kind = self.kinds.by_api_version(text("apiVersion"), text("kind"));
        let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
        if let (true, Some(metadata)) = (kind.is_some_and(|kind| kind.namespaced), metadata)
            && metadata.contains_key("name")
        {
            metadata
                .entry("namespace")
                .or_insert_with(|| Value::String(world.namespace()));
        }
        object
    }
}
