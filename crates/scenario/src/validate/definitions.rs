//! CustomResourceDefinitions of a file: adds their kinds and validates objects against their schemas. Also limits
//! nesting.

use apimachinery::Version;
use apimachinery::depth::{DEPTH_MAX, is_too_deep};
use apimachinery::kind::ApiResource;
use builtin_kinds::crd;
use serde_json::Value;

use super::Validator;
use super::world::World;
use crate::problem::{Code, Problem};
use crate::raw::Object;
use crate::read::{At, Json};
use crate::span::Span;
use crate::{Manifest, ObjectName};

impl Validator<'_> {
    /// Adds the kinds defined by `objects`, before anything else is validated: the target may be one of them.
    pub(super) fn definitions(&mut self, objects: &[At<Object>]) {
        for object in objects {
            let Object::Whole(Json(json)) = &object.value else {
                continue;
            };
            let text = |key: &str| json.get(key).and_then(Value::as_str).unwrap_or_default();
            let kind = self.kinds.by_api_version(text("apiVersion"), text("kind"));
            if !kind.is_some_and(|kind| kind.defines) || is_too_deep(json) {
                continue;
            }
            for fault in self.kinds.define(json).err().unwrap_or_default() {
                self.refused(object.span, "definition", &fault);
            }
        }
    }

    /// Validates new objects of a kind defined by the file against its schema, and applies defaults.
    pub(super) fn fit_definition(
        &mut self,
        world: &World,
        manifests: &mut [Manifest],
        kind: &ApiResource,
        span: Span,
    ) {
        if kind.definition.is_none() {
            return;
        }
        let definition = ObjectName {
            group: String::from("apiextensions.k8s.io"),
            plural: String::from("customresourcedefinitions"),
            namespace: None,
            name: kind.qualified(),
        };
        if world.has(&definition) == Some(false) {
            self.problem(
                Problem::new(
                    Code::TooEarly,
                    span,
                    format!("`{}` is not served at that moment", kind.kind),
                )
                .label("its definition is not there")
                .hint(format!(
                    "write the CustomResourceDefinition `{}` first",
                    definition.name
                )),
            );
        }
        let faults: Vec<Vec<String>> = manifests
            .iter_mut()
            .map(|manifest| crd::receive_new(kind, &mut manifest.json, Version::default()))
            .collect();
        // Copies of a template have the same errors.
        for fault in faults
            .into_iter()
            .find(|faults| !faults.is_empty())
            .unwrap_or_default()
        {
            self.refused(span, &kind.kind, &fault);
        }
    }

    fn refused(&mut self, span: Span, what: &str, fault: &str) {
        self.problem(
            Problem::new(
                Code::BadForm,
                span,
                format!("a server refuses this {what}: {fault}"),
            )
            .label("would not be stored"),
        );
    }

    /// Returns true if an object is nested deeper than a server accepts.
    pub(super) fn too_deep(&mut self, json: &Value, span: Span) -> bool {
        let too_deep = is_too_deep(json);
        if too_deep {
            self.problem(
                Problem::new(
                    Code::OutOfRange,
                    span,
                    format!("an object has at most {DEPTH_MAX} levels of maps and lists"),
                )
                .label("this object has more"),
            );
        }
        too_deep
    }
}
