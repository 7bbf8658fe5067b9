//! Whether the defaults of a structural schema are valid themselves.
//!
//! Source: apiextensions `apiserver/schema/defaulting/{validation,surroundingobject}.go`.

use std::cell::OnceCell;
use std::collections::HashSet;

use apimachinery::Version;
use apimachinery::status::Cause;
use serde_json::{Map, Value};

use super::super::prune::prune_below;
use super::super::structural::{Schema, members};
use super::super::{embedded, rules, validate};
use crate::error_list::ErrorList;

/// Adds the errors of the defaults in a schema and below it. Below `additionalProperties` and combinations there are none.
pub(super) fn check(found: &mut ErrorList, schema: &Value, at: &str, version: Version) {
    let mut check = Check { found, version };
    let resource = Resource::new(schema);
    check.below(schema, &SchemaPosition::of(&resource), at);
}

/// A resource: the object, or an embedded one.
struct Resource<'s> {
    schema: &'s Value,
    read: OnceCell<Schema>,
}

impl<'s> Resource<'s> {
    fn new(schema: &'s Value) -> Self {
        Self {
            schema,
            read: OnceCell::new(),
        }
    }
}

/// Where a schema is in the innermost resource around it, which may be this one.
struct SchemaPosition<'p> {
    resource: &'p Resource<'p>,
    /// The place of the schema that it is part of; `None` for the resource.
    above: Option<(&'p Self, Part<'p>)>,
    /// Whether it is the apiVersion, kind or metadata of the resource, or part of it.
    in_metadata: bool,
}

#[derive(Clone, Copy)]
enum Part<'p> {
    Field(&'p str),
    Item,
}

impl<'p> SchemaPosition<'p> {
    fn of(resource: &'p Resource<'p>) -> Self {
        Self {
            resource,
            above: None,
            in_metadata: false,
        }
    }

    fn is_resource(&self) -> bool {
        self.above.is_none()
    }

    fn part(&'p self, part: Part<'p>) -> Self {
        let is_of_server = matches!(part, Part::Field("metadata" | "apiVersion" | "kind"));
        Self {
            resource: self.resource,
            above: Some((self, part)),
            in_metadata: self.in_metadata || self.is_resource() && is_of_server,
        }
    }

    /// Returns a resource with nothing but the value at this place.
    fn around(&self, value: Value) -> Value {
        let (mut resource, mut place) = (value, self);
        while let Some((above, part)) = place.above {
            resource = match part {
                Part::Field(name) => Value::Object(Map::from_iter([(name.to_owned(), resource)])),
                Part::Item => Value::Array(vec![resource]),
            };
            place = above;
        }
        for (field, some) in [("kind", "Validation"), ("apiVersion", "validation/v1")] {
            if resource.get(field).is_none() {
                resource[field] = some.into();
            }
        }
        resource
    }
}

struct Check<'f> {
    found: &'f mut ErrorList,
    version: Version,
}

impl Check<'_> {
    fn below(&mut self, schema: &Value, place: &SchemaPosition<'_>, at: &str) {
        if schema.get("default").is_some_and(|default| !default.is_null()) {
            self.own(schema, place, &format!("{at}.default"));
        }
        if schema["items"].is_object() {
            self.part(&schema["items"], place, Part::Item, &format!("{at}.items"));
        }
        for (name, property) in members(&schema["properties"]) {
            let at = format!("{at}.properties[{name}]");
            self.part(property, place, Part::Field(name), &at);
        }
    }

    fn part(&mut self, schema: &Value, place: &SchemaPosition<'_>, part: Part<'_>, at: &str) {
        if schema["x-kubernetes-embedded-resource"] == true {
            let resource = Resource::new(schema);
            self.below(schema, &SchemaPosition::of(&resource), at);
        } else {
            self.below(schema, &place.part(part), at);
        }
    }

    fn own(&mut self, schema: &Value, place: &SchemaPosition<'_>, at: &str) {
        let read = as_validated(schema);
        let default = &schema["default"];
        let mut coerced = default.clone();
        if place.in_metadata {
            if let Some(why) = self.invalid_metadata(place, default) {
                let why = format!("must result in valid metadata: {why}");
                self.found.invalid(at, default, &why);
                return;
            }
        } else {
            let is_resource = place.is_resource();
            let mut pruned = default.clone();
            prune_below(&mut pruned, &read, is_resource);
            if pruned != *default {
                self.found.invalid(at, default, "must not have unknown fields");
            }
            let causes = match embedded::coerce(&mut coerced, &read, is_resource) {
                Err(cause) => vec![cause],
                Ok(_) => embedded::validate(&coerced, &read, is_resource, self.version),
            };
            if !causes.is_empty() {
                return self.add(causes, at);
            }
        }
        let mut causes = validate::validate_default(&read, &coerced, self.version);
        if causes.is_empty() {
            causes = rules::evaluate_all(&read, &coerced, Some(&coerced)).causes;
        }
        if causes.is_empty() {
            causes = rules::evaluate_all(&read, &coerced, None).causes;
        }
        self.add(causes, at);
    }

    /// Returns why a resource whose metadata has this default is invalid.
    fn invalid_metadata(&self, place: &SchemaPosition<'_>, default: &Value) -> Option<String> {
        let of = place.resource;
        let read = of.read.get_or_init(|| as_validated(of.schema));
        let mut resource = place.around(default.clone());
        let causes = match embedded::coerce(&mut resource, read, true) {
            Err(cause) => vec![cause],
            Ok(_) => embedded::validate(&resource, read, true, self.version),
        };
        let texts = causes
            .into_iter()
            .map(|Cause { field, message, .. }| format!("{field}: {message}"));
        let mut known = HashSet::new();
        let texts: Vec<String> = texts.filter(|text| known.insert(text.clone())).collect();
        match texts.as_slice() {
            [] => None,
            [one] => Some(one.clone()),
            several => Some(format!("[{}]", several.join(", "))),
        }
    }

    fn add(&mut self, causes: Vec<Cause>, at: &str) {
        for mut cause in causes {
            cause.field = match cause.field.as_str() {
                "<nil>" => at.to_owned(),
                field => format!("{at}.{field}"),
            };
            self.found.extend(vec![cause]);
        }
    }
}

/// Returns the schema by which defaults are validated. That `x-kubernetes-int-or-string` is a type holds for objects only.
fn as_validated(schema: &Value) -> Schema {
    let mut schema = schema.clone();
    without_int_or_string(&mut schema);
    Schema::read(&schema)
}

fn without_int_or_string(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            fields.shift_remove("x-kubernetes-int-or-string");
            fields.values_mut().for_each(without_int_or_string);
        }
        Value::Array(items) => items.iter_mut().for_each(without_int_or_string),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
