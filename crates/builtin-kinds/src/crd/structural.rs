//! Structural schema of a custom resource, parsed once.
//!
//! Here it is only parsed; `prune` and `validate` use it. It must not know the metadata of objects, or storage.
//!
//! Source: "Specifying a structural schema" in the documentation of custom resources; apiextensions
//! `apiserver/schema/structural.go`.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Map, Value};

use super::patterns::{Budget, Pattern};
use super::rule::Rule;

/// A schema.
#[derive(Debug, Default)]
pub(super) struct Schema {
    pub(super) kind: Type,
    /// Name of a type that does not exist. Definitions cannot have it, but their defaults are checked before.
    pub(super) unknown_type: Option<Box<str>>,
    pub(super) nullable: bool,
    pub(super) default: Option<Value>,
    pub(super) properties: BTreeMap<String, Schema>,
    pub(super) additional: Additional,
    pub(super) items: Option<Box<Schema>>,
    /// `x-kubernetes-preserve-unknown-fields`.
    pub(super) preserves: bool,
    /// `x-kubernetes-embedded-resource`.
    pub(super) embedded: bool,
    pub(super) list: List,
    pub(super) rules: Rules,
    /// `x-kubernetes-validations`.
    pub(super) cel: Vec<Rule>,
    /// Whether it, or a schema below it, has rules in CEL.
    pub(super) has_cel: bool,
}

/// `type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Type {
    #[default]
    Any,
    Object,
    Array,
    Text,
    Integer,
    Number,
    Boolean,
    /// `x-kubernetes-int-or-string`.
    IntegerOrText,
}

impl Type {
    /// Returns its name in messages.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Any => "",
            Self::Object => "object",
            Self::Array => "array",
            Self::Text => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::IntegerOrText => "integer,string",
        }
    }
}

/// `additionalProperties`.
#[derive(Debug, Default)]
pub(super) enum Additional {
    /// Not specified.
    #[default]
    None,
    /// Any value.
    Any,
    /// No value. Definitions cannot have it, but their defaults are checked before.
    Forbidden,
    /// Values of this schema.
    Schema(Box<Schema>),
}

/// `x-kubernetes-list-type`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum List {
    #[default]
    Atomic,
    Set,
    /// By these keys.
    Map(Vec<String>),
}

/// Constraints of a value besides its type.
#[derive(Debug, Default)]
pub(super) struct Rules {
    pub(super) required: Vec<String>,
    pub(super) allowed: Vec<Value>,
    /// The same, as a set.
    pub(super) is_allowed: HashSet<Value>,
    pub(super) minimum: Option<f64>,
    pub(super) above_minimum: bool,
    pub(super) maximum: Option<f64>,
    pub(super) below_maximum: bool,
    pub(super) multiple_of: Option<f64>,
    pub(super) length: Bounds,
    pub(super) item_count: Bounds,
    pub(super) property_count: Bounds,
    pub(super) unique_items: bool,
    pub(super) pattern: Option<Pattern>,
    pub(super) format: String,
    pub(super) all_of: Vec<Schema>,
    pub(super) any_of: Vec<Schema>,
    pub(super) one_of: Vec<Schema>,
    pub(super) not: Option<Box<Schema>>,
}

/// Minimum and maximum number.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) min: Option<u64>,
    pub(super) max: Option<u64>,
}

impl Schema {
    /// Parses `openAPIV3Schema`. Errors are ignored: they are reported when the definition is validated.
    pub(super) fn read(json: &Value) -> Self {
        Self::within(json, &Budget::default())
    }

    fn within(json: &Value, budget: &Budget) -> Self {
        let flag = |name: &str| json[name].as_bool().unwrap_or_default();
        let properties: BTreeMap<String, Self> = members(&json["properties"])
            .map(|(name, schema)| (name.clone(), Self::within(schema, budget)))
            .collect();
        let additional = match &json["additionalProperties"] {
            schema @ Value::Object(_) => Additional::Schema(Box::new(Self::within(schema, budget))),
            Value::Bool(true) => Additional::Any,
            Value::Bool(false) => Additional::Forbidden,
            Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => Additional::None,
        };
        let items = json["items"]
            .is_object()
            .then(|| Box::new(Self::within(&json["items"], budget)));
        let below = properties
            .values()
            .chain(items.as_deref())
            .any(|schema| schema.has_cel)
            || matches!(&additional, Additional::Schema(schema) if schema.has_cel);
        let cel = Rule::list(&json["x-kubernetes-validations"], budget);
        let rules = Rules::read(json, budget);
        let word = json["type"].as_str().unwrap_or_default();
        let unknown_type = !word.is_empty() && type_of(word) == Type::Any;
        let beside = rules.all_of.iter().any(|schema| schema.has_cel);
        Self {
            kind: if flag("x-kubernetes-int-or-string") {
                Type::IntegerOrText
            } else {
                type_of(word)
            },
            unknown_type: unknown_type.then(|| word.into()),
            nullable: flag("nullable"),
            default: json.get("default").cloned(),
            properties,
            additional,
            items,
            preserves: flag("x-kubernetes-preserve-unknown-fields"),
            embedded: flag("x-kubernetes-embedded-resource"),
            list: match json["x-kubernetes-list-type"].as_str() {
                Some("set") => List::Set,
                Some("map") => List::Map(texts(&json["x-kubernetes-list-map-keys"])),
                Some(_) | None => List::Atomic,
            },
            rules,
            has_cel: !cel.is_empty() || below || beside,
            cel,
        }
    }
}

impl Rules {
    fn read(json: &Value, budget: &Budget) -> Self {
        let schemas = |name: &str| {
            let listed = json[name].as_array().into_iter().flatten();
            let schemas = listed.map(|schema| Schema::within(schema, budget));
            schemas.collect::<Vec<_>>()
        };
        let bounds = |min: &str, max: &str| Bounds {
            min: json[min].as_u64(),
            max: json[max].as_u64(),
        };
        let flag = |name: &str| json[name].as_bool().unwrap_or_default();
        Self {
            required: texts(&json["required"]),
            is_allowed: json["enum"].as_array().into_iter().flatten().cloned().collect(),
            allowed: json["enum"].as_array().cloned().unwrap_or_default(),
            minimum: json["minimum"].as_f64(),
            above_minimum: flag("exclusiveMinimum"),
            maximum: json["maximum"].as_f64(),
            below_maximum: flag("exclusiveMaximum"),
            multiple_of: json["multipleOf"].as_f64(),
            length: bounds("minLength", "maxLength"),
            item_count: bounds("minItems", "maxItems"),
            property_count: bounds("minProperties", "maxProperties"),
            unique_items: flag("uniqueItems"),
            pattern: json["pattern"]
                .as_str()
                .map(|pattern| Pattern::new(pattern, budget)),
            format: json["format"].as_str().unwrap_or_default().to_owned(),
            all_of: schemas("allOf"),
            any_of: schemas("anyOf"),
            one_of: schemas("oneOf"),
            not: json["not"]
                .is_object()
                .then(|| Box::new(Schema::within(&json["not"], budget))),
        }
    }
}

fn type_of(word: &str) -> Type {
    match word {
        "object" => Type::Object,
        "array" => Type::Array,
        "string" => Type::Text,
        "integer" => Type::Integer,
        "number" => Type::Number,
        "boolean" => Type::Boolean,
        _ => Type::Any,
    }
}

/// Returns the members of an object; none for other values.
pub(super) fn members(json: &Value) -> impl Iterator<Item = (&String, &Value)> {
    json.as_object().into_iter().flat_map(Map::iter)
}

/// Returns the strings of a list; none for other values.
pub(super) fn texts(json: &Value) -> Vec<String> {
    let listed = json.as_array().into_iter().flatten();
    listed.filter_map(Value::as_str).map(str::to_owned).collect()
}
