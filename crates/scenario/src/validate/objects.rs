//! Converts short forms and manifests to JSON, and tracks which objects exist.

use apimachinery::kind::{ApiResource, KindRef};
use builtin_kinds::size::json_bytes;
use serde_json::{Map, Value, json};

use super::Validator;
use super::names::Named;
use super::world::World;
use crate::problem::{Code, Problem};
use crate::raw::{Name, Object, ShortBody, ShortObject};
use crate::read::{At, Entries, First, Json, Text};
use crate::span::Span;
use crate::words::{label_key, label_value, nearest, suggest};
use crate::{Manifest, ObjectName};

impl Validator<'_> {
    /// Returns the objects of an entry, and writes them to `world`.
    pub(super) fn manifests(&mut self, world: &mut World, object: At<Object>) -> Vec<Manifest> {
        let span = object.span;
        let mut name_span = span;
        let (json, repeat, info, binds) = match object.value {
            Object::Short(short) => {
                let Some((info, json)) = self.short(&short, span) else {
                    return Vec::new();
                };
                let names = short
                    .bodies()
                    .into_iter()
                    .filter_map(|(_, body)| body.value.name.as_ref());
                name_span = names.map(|name| name.span).next().unwrap_or(span);
                (json, short.repeat, info, short.binds)
            }
            Object::Whole(Json(mut json)) => {
                if json.get("as").is_some() {
                    self.problem(
                        Problem::new(Code::Misplaced, span, "a whole manifest has no key `as`")
                            .label("this manifest")
                            .hint(
                                "name the step that writes it (`as:` beside `apply:`), or use a short form",
                            ),
                    );
                }
                let repeat = json
                    .as_object_mut()
                    .and_then(|map| map.remove("repeat"))
                    .and_then(|repeat| repeat.as_u64());
                let Some(info) = self.kind_of(&json, span) else {
                    return Vec::new();
                };
                (json, repeat.map(|value| At { span, value }), info, None)
            }
        };
        if self.too_deep(&json, span) {
            return Vec::new();
        }
        let Some(template) = self.manifest(world, json, &info, span) else {
            return Vec::new();
        };
        let copies = repeat
            .as_ref()
            .map_or(1, |repeat| usize::try_from(repeat.value).unwrap_or(usize::MAX));
        if !world.may_hold(json_bytes(&template.json).saturating_mul(copies)) {
            self.problem(
                Problem::new(Code::OutOfRange, span, "the objects take more than 512 MiB")
                    .label("up to here")
                    .hint("make `repeat` or `filler` smaller"),
            );
            return Vec::new();
        }
        let mut manifests: Vec<Manifest> = match repeat {
            None => vec![template],
            Some(repeat) => {
                if repeat.value > 1 && !template.json.to_string().contains("{i}") {
                    self.problem(
                        Problem::new(
                            Code::Repeated,
                            span,
                            format!("all {} writes of `{}` would be the same", repeat.value, template.name),
                        )
                        .label("the same object again and again")
                        .hint(format!(
                            "put the count into it: `name: \"{}-{{i}}\"` makes many objects, `data: {{v: \"{{i}}\"}}` many updates of one",
                            template.name
                        )),
                    );
                    return Vec::new();
                }
                (0..repeat.value).map(|i| counted(&template, i)).collect()
            }
        };
        self.fit_definition(world, &mut manifests, &info, span);
        if let Some(first) = manifests.first() {
            self.object_name(&first.name, name_span);
        }
        manifests.iter().for_each(|manifest| world.add(manifest));
        if let (Some(binds), Some(last)) = (binds, manifests.last_mut()) {
            last.binds = Some(self.bind(&binds, Named::Version));
        }
        manifests
    }

    /// Resolves a reference to an object that must exist.
    pub(super) fn present(&mut self, world: &World, name: &First<Name>, span: Span) -> Option<ObjectName> {
        let Name {
            name,
            namespace,
            resource,
        } = &name.0;
        let object = self.object(world, name.as_ref()?, namespace.as_ref(), resource.as_ref())?;
        let kind = self.kinds.find(&object.group, &object.plural);
        let kind = kind.as_ref().map_or("object", |kind| &kind.singular);
        if world.has(&object) == Some(false) {
            let was = world.had(&object);
            let names: Vec<&str> = world.names_of_target();
            let problem = if was {
                Problem::new(
                    Code::UnknownObject,
                    span,
                    format!("{kind} `{}` is already deleted by then", object.key()),
                )
                .label("no longer there")
                .hint("make it again with `apply` first, or leave this out")
            } else {
                let hint = match nearest(&object.name, names) {
                    Some(meant) if meant != object.name => format!("did you mean `{meant}`?"),
                    Some(_) | None => {
                        String::from("write it under `objects:` or with `apply:` in an earlier step")
                    }
                };
                Problem::new(
                    Code::UnknownObject,
                    span,
                    format!("there is no {kind} `{}` at that moment", object.key()),
                )
                .label("never written before")
                .hint(hint)
            };
            self.problem(problem);
        }
        Some(object)
    }

    /// Resolves a reference: name, and optionally namespace and resource.
    pub(super) fn object(
        &mut self,
        world: &World,
        name: &At<String>,
        namespace: Option<&At<String>>,
        resource: Option<&At<String>>,
    ) -> Option<ObjectName> {
        let info = match resource {
            Some(resource) => self.resource(resource)?,
            None => self.kinds.by_resource(&world.target_resource())?,
        };
        let (in_name, bare) = name
            .value
            .split_once('/')
            .map_or((None, name.value.as_str()), |(ns, bare)| (Some(ns), bare));
        self.object_name(bare, name.span);
        if !info.namespaced && (in_name.is_some() || namespace.is_some()) {
            self.problem(
                Problem::new(
                    Code::Conflict,
                    namespace.map_or(name.span, |n| n.span),
                    format!("{} live in no namespace", info.plural),
                )
                .label("does not belong here")
                .hint("leave the namespace out"),
            );
        }
        let namespace = match (in_name, namespace) {
            _ if !info.namespaced => None,
            (Some(in_name), _) => Some(self.namespace(&At {
                span: name.span,
                value: in_name.to_owned(),
            })),
            (None, Some(namespace)) => Some(self.namespace(namespace)),
            (None, None) => Some(world.namespace()),
        };
        Some(ObjectName {
            group: info.group.to_string(),
            plural: info.plural.to_string(),
            namespace,
            name: bare.to_owned(),
        })
    }

    /// Validates `metadata.name`.
    pub(super) fn object_name(&mut self, name: &str, span: Span) {
        if !apimachinery::names::is_subdomain(name) {
            self.problem(
                Problem::new(
                    Code::BadForm,
                    span,
                    format!("`{name}` cannot be an object's name"),
                )
                .label("not a DNS name")
                .hint("lower-case letters, digits, `-` and `.`, at most 253 of them"),
            );
        }
    }

    pub(super) fn short(&mut self, short: &ShortObject, span: Span) -> Option<(KindRef, Value)> {
        let bodies = short.bodies();
        let &[(word, body)] = bodies.as_slice() else {
            self.problem(
                Problem::new(
                    Code::Conflict,
                    span,
                    match bodies.len() {
                        0 => "an object needs a kind",
                        _ => "an object has one kind, not several",
                    },
                )
                .label("one kind belongs here")
                .hint("e.g. `configmap: {name: a}`; several objects are several entries of the list"),
            );
            return None;
        };
        let Some(info) = self.kinds.by_word(word) else {
            self.problem(
                Problem::new(
                    Code::UnknownKind,
                    body.span,
                    format!("this server has no kind `{word}`"),
                )
                .label("unknown kind")
                .hint("create its CustomResourceDefinition first"),
            );
            return None;
        };
        let body = self.body(&info, body);
        Some((info, body))
    }

    fn body(&mut self, info: &ApiResource, at: &At<ShortBody>) -> Value {
        let body = &at.value;
        let mut metadata = Map::new();
        if let Some(name) = &body.name {
            metadata.insert("name".into(), Value::String(name.value.clone()));
        }
        if let Some(namespace) = &body.namespace {
            metadata.insert("namespace".into(), Value::String(namespace.value.clone()));
            if !info.namespaced {
                self.problem(
                    Problem::new(
                        Code::Conflict,
                        namespace.span,
                        format!("{} live in no namespace", info.plural),
                    )
                    .label("does not belong here")
                    .hint("leave `namespace` out"),
                );
            } else if !namespace.value.contains("{i}") {
                self.namespace(namespace);
            }
        }
        if let Some(labels) = &body.labels {
            for (key, value) in &labels.0 {
                self.label(key, Some(&value.0));
            }
            metadata.insert("labels".into(), texts(labels));
        }
        if let Some(annotations) = &body.annotations {
            metadata.insert("annotations".into(), texts(annotations));
        }
        if let Some(finalizers) = &body.finalizers {
            let finalizers = finalizers
                .iter()
                .map(|text| Value::String(text.0.clone()))
                .collect();
            metadata.insert("finalizers".into(), Value::Array(finalizers));
        }
        let mut object = Map::new();
        object.insert("apiVersion".into(), Value::String(info.api_version()));
        object.insert("kind".into(), Value::String(info.kind.to_string()));
        object.insert("metadata".into(), Value::Object(metadata));

        let keeps_data = matches!(&*info.singular, "configmap" | "secret");
        let misplaced = [
            body.data
                .as_ref()
                .filter(|_| !keeps_data)
                .map(|data| (data.span, "data")),
            body.filler
                .as_ref()
                .filter(|_| info.singular != "configmap")
                .map(|filler| (filler.span, "filler")),
            body.spec
                .as_ref()
                .filter(|_| keeps_data)
                .map(|spec| (spec.span, "spec")),
            body.status
                .as_ref()
                .filter(|_| keeps_data)
                .map(|status| (status.span, "status")),
        ];
        for (span, key) in misplaced.into_iter().flatten() {
            self.problem(
                Problem::new(Code::Conflict, span, format!("a {} has no `{key}`", info.kind))
                    .label("does not belong here")
                    .hint(match keeps_data {
                        true => "it keeps its content in `data`",
                        false => "it keeps its content in `spec`",
                    }),
            );
        }
        let mut data = body.data.as_ref().map(|data| texts(&data.value));
        if let Some(filler) = &body.filler {
            let letters = "x".repeat(usize::try_from(filler.value).unwrap_or(0));
            data.get_or_insert_with(|| json!({}))["filler"] = Value::String(letters);
        }
        let spec = body.spec.as_ref().map(|spec| spec.value.0.clone());
        let status = body.status.as_ref().map(|status| status.value.0.clone());
        for (key, value) in body.fields.iter().flat_map(|fields| &fields.value.0) {
            if matches!(
                key.value.as_str(),
                "apiVersion" | "kind" | "metadata" | "data" | "spec" | "status"
            ) {
                self.problem(
                    Problem::new(
                        Code::Conflict,
                        key.span,
                        format!("`{}` is not for `fields`", key.value),
                    )
                    .label("does not belong here")
                    .hint("it has its own key, or follows from the kind"),
                );
            }
            object.insert(key.value.clone(), value.0.clone());
        }
        for (key, value) in [("data", data), ("spec", spec), ("status", status)] {
            if let Some(value) = value {
                object.insert(key.into(), value);
            }
        }
        Value::Object(object)
    }

    /// Validates a label.
    pub(super) fn label(&mut self, key: &At<String>, value: Option<&str>) {
        let fault = label_key(&key.value).err().or_else(|| {
            value
                .filter(|value| !value.contains("{i}"))
                .and_then(|value| label_value(value).err())
        });
        if let Some(fault) = fault {
            self.problem(Problem::new(Code::BadForm, key.span, fault).label("not a label").hint(
                "letters, digits, `-`, `_` and `.`, at most 63 of them; a key may have a DNS name and `/` before it",
            ));
        }
    }

    fn kind_of(&mut self, json: &Value, span: Span) -> Option<KindRef> {
        let text = |key: &str| json.get(key).and_then(Value::as_str).unwrap_or_default();
        let known = self.kinds.by_api_version(text("apiVersion"), text("kind"));
        if known.is_none() {
            let kinds: Vec<&str> = self.kinds.all().iter().map(|kind| &*kind.kind).collect();
            let hint = match self.kinds.all().iter().find(|kind| kind.kind == text("kind")) {
                Some(kind) => format!("a {} is of apiVersion `{}`", kind.kind, kind.api_version()),
                None => suggest(text("kind"), kinds),
            };
            self.problem(
                Problem::new(
                    Code::UnknownKind,
                    span,
                    format!(
                        "the fake serves no `{}` of `{}`",
                        text("kind"),
                        text("apiVersion")
                    ),
                )
                .label("unknown kind")
                .hint(hint),
            );
        }
        known
    }

    fn manifest(
        &mut self,
        world: &World,
        mut json: Value,
        info: &ApiResource,
        span: Span,
    ) -> Option<Manifest> {
        let metadata = json.get_mut("metadata").and_then(Value::as_object_mut)?;
        // A number in place of a name is read as written, as for all texts.
        let name = match metadata.get("name") {
            Some(Value::String(name)) => name.clone(),
            Some(other) => other.to_string(),
            None => return None,
        };
        metadata.insert("name".into(), Value::String(name.clone()));
        let namespace = match metadata.get("namespace").and_then(Value::as_str) {
            Some(namespace) => Some(namespace.to_owned()),
            None if info.namespaced => {
                let namespace = world.namespace();
                metadata.insert("namespace".into(), Value::String(namespace.clone()));
                Some(namespace)
            }
            None => None,
        };
        Some(Manifest {
            group: info.group.to_string(),
            plural: info.plural.to_string(),
            namespace: namespace.filter(|_| info.namespaced),
            name,
            json,
            binds: None,
            at: self.place(span),
        })
    }
}

fn texts(entries: &Entries<Text>) -> Value {
    Value::Object(
        entries
            .0
            .iter()
            .map(|(key, value)| (key.value.clone(), Value::String(value.0.clone())))
            .collect(),
    )
}

/// Returns the `i`-th copy: replaces `{i}` in every text by the number.
fn counted(template: &Manifest, i: u64) -> Manifest {
    fn fill(value: &Value, i: &str) -> Value {
        match value {
            Value::String(text) => Value::String(text.replace("{i}", i)),
            Value::Array(items) => Value::Array(items.iter().map(|item| fill(item, i)).collect()),
            Value::Object(map) => Value::Object(
                map.iter()
                    .map(|(key, value)| (key.clone(), fill(value, i)))
                    .collect(),
            ),
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }
    let i = i.to_string();
    Manifest {
        name: template.name.replace("{i}", &i),
        namespace: template
            .namespace
            .as_ref()
            .map(|namespace| namespace.replace("{i}", &i)),
        json: fill(&template.json, &i),
        ..template.clone()
    }
}
