//! Generates programs of definitions from a seed: dry runs that create definitions with random schemas, most of them almost right.

use fake_apiserver::scenario::Version;
use fastrand::Rng;
use serde_json::{Map, Value, json};

use super::generate::Program;
use super::{Between, Subject};

const PATH: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All";

struct Maker {
    random: Rng,
}

/// Returns the program of a seed.
pub(super) fn program(seed: u64, version: Version) -> Program {
    let mut maker = Maker {
        random: Rng::with_seed(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xDEF5),
    };
    let steps = (0..maker.random.usize(2..6)).map(
        |_| json!({"request": {"method": "POST", "path": PATH, "body": maker.definition().to_string()}}),
    );
    Program {
        subject: Subject::Definitions,
        seed,
        parts: [steps.collect(), Vec::new()],
        namespace: format!("d{seed}v{}", version as u8),
        between: Between::Nothing,
    }
}

/// Position of a schema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SchemaPosition {
    Root,
    Inside,
    /// In `allOf`, `anyOf`, `oneOf` or `not`.
    Nested,
}

impl Maker {
    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.random.usize(0..of.len())]
    }

    fn chance(&mut self, percent: u8) -> bool {
        self.random.u8(0..100) < percent
    }

    fn definition(&mut self) -> Value {
        let schema = self.schema(SchemaPosition::Root, 3);
        let mut versions = vec![self.version("v1", true, schema.clone())];
        if self.chance(20) {
            let second = match self.chance(50) {
                true => schema,
                false => self.schema(SchemaPosition::Root, 2),
            };
            versions.push(self.version("v2", false, second));
        }
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "randoms.random.example.com"},
            "spec": {
                "group": "random.example.com", "scope": "Namespaced",
                "names": {"plural": "randoms", "kind": "Random"}, "versions": versions,
            },
        })
    }

    fn version(&mut self, name: &str, is_stored: bool, schema: Value) -> Value {
        let mut version = json!({
            "name": name, "served": true, "storage": is_stored, "schema": {"openAPIV3Schema": schema},
        });
        if self.chance(30) {
            version["subresources"] = json!({"status": {}});
        }
        // With a schema that is not structural, a real server panics.
        if self.chance(12) {
            let paths = [
                ".spec",
                ".a",
                ".a.b",
                ".a[b]",
                ".metadata.name",
                "a",
                "",
                ".a.",
                ".b.c",
            ];
            let fields: Vec<Value> = (0..self.random.usize(1..4))
                .map(|_| json!({"jsonPath": self.one(&paths)}))
                .collect();
            version["selectableFields"] = fields.into();
            let text = json!({"type": self.one(&["string", "object", "integer"])});
            version["schema"]["openAPIV3Schema"] = json!({"type": "object", "properties": {
                "a": {"type": "object", "properties": {"b": text}}, "spec": text,
                "b": {"type": "object", "additionalProperties": text},
            }});
        }
        if self.chance(10) {
            version["deprecationWarning"] = self.one(&["", "old", "old\n"]).into();
            version["deprecated"] = self.chance(60).into();
        }
        if self.chance(10) {
            version["additionalPrinterColumns"] = json!([{
                "name": self.one(&["A", ""]), "type": self.one(&["string", "date", "map"]),
                "format": self.one(&["", "int32", "other"]), "jsonPath": self.one(&[".a", "a", ""]),
            }]);
        }
        version
    }

    fn schema(&mut self, place: SchemaPosition, depth: u8) -> Value {
        let kinds = match place {
            SchemaPosition::Root => &[
                "object", "object", "object", "object", "object", "object", "object", "", "array",
            ][..],
            SchemaPosition::Inside if depth == 0 => &[
                "string", "integer", "boolean", "number", "string", "", "null", "other",
            ],
            SchemaPosition::Inside => &[
                "object", "object", "object", "array", "array", "string", "integer", "boolean", "",
            ],
            SchemaPosition::Nested => &["", "", "", "", "", "string", "integer"],
        };
        let kind = self.one(kinds);
        let mut schema = json!({});
        if !kind.is_empty() {
            schema["type"] = kind.into();
        }
        let has = |kind: &str, of: &str| kind == of || kind.is_empty() && place == SchemaPosition::Nested;
        if has(kind, "object") && depth > 0 && self.chance(85) {
            schema["properties"] = self.properties(place, depth - 1);
        }
        if kind == "object" && self.chance(15) {
            schema["additionalProperties"] = match self.random.u8(0..4) {
                0 => true.into(),
                1 => false.into(),
                _ => self.below(place, depth),
            };
        }
        if has(kind, "array") && depth > 0 && self.chance(if kind == "array" { 90 } else { 15 }) {
            schema["items"] = self.below(place, depth);
        }
        self.lists(&mut schema, kind);
        self.limits(&mut schema, kind);
        self.flags(&mut schema, place);
        self.combinations(&mut schema, place, depth);
        self.default(&mut schema, place);
        schema
    }

    fn below(&mut self, place: SchemaPosition, depth: u8) -> Value {
        let place = if place == SchemaPosition::Root {
            SchemaPosition::Inside
        } else {
            place
        };
        self.schema(place, depth.saturating_sub(1))
    }

    fn properties(&mut self, place: SchemaPosition, depth: u8) -> Value {
        let mut properties = Map::new();
        for _ in 0..self.random.usize(1..4) {
            let names = match place {
                SchemaPosition::Root => &["a", "b", "spec", "status", "metadata", "kind", "apiVersion"][..],
                SchemaPosition::Inside | SchemaPosition::Nested => {
                    &["a", "b", "c", "a", "b", "metadata", "kind"]
                }
            };
            let name = self.one(names);
            let of_server = match name {
                "metadata" if self.chance(70) => Some(json!({"type": "object"})),
                "kind" | "apiVersion" if self.chance(80) => Some(json!({"type": "string"})),
                _ => None,
            };
            let schema = match of_server {
                Some(mut schema) => {
                    if name == "metadata" && self.chance(50) {
                        schema["properties"] =
                            json!({self.one(&["name", "generateName", "labels"]): {"type": "string"}});
                    }
                    schema
                }
                None if place == SchemaPosition::Nested => self.schema(SchemaPosition::Nested, depth),
                None => self.schema(SchemaPosition::Inside, depth),
            };
            properties.insert(name.to_owned(), schema);
        }
        Value::Object(properties)
    }

    fn lists(&mut self, schema: &mut Value, kind: &str) {
        if kind == "array" && self.chance(30) || self.chance(2) {
            schema["x-kubernetes-list-type"] =
                self.one(&["atomic", "set", "map", "map", "map", "other"]).into();
        }
        if schema["x-kubernetes-list-type"] == "map" && self.chance(90) || self.chance(1) {
            let keys: Vec<&str> = (0..self.random.usize(1..3))
                .map(|_| self.one(&["a", "b", "c"]))
                .collect();
            schema["x-kubernetes-list-map-keys"] = keys.into();
        }
        if kind == "object" && self.chance(8) || self.chance(1) {
            schema["x-kubernetes-map-type"] = self.one(&["atomic", "granular", "other"]).into();
        }
    }

    fn limits(&mut self, schema: &mut Value, kind: &str) {
        if self.chance(25) {
            let limits = match kind {
                "string" => &[
                    ("maxLength", "3"),
                    ("minLength", "1"),
                    ("pattern", "\"^a\""),
                    ("pattern", "\"(\""),
                    ("enum", "[\"a\",\"b\"]"),
                    ("format", "\"date\""),
                ][..],
                "integer" | "number" => &[
                    ("maximum", "3"),
                    ("minimum", "1"),
                    ("multipleOf", "2"),
                    ("enum", "[1,2]"),
                ],
                "array" => &[("maxItems", "1"), ("minItems", "1"), ("uniqueItems", "true")],
                "object" => &[
                    ("required", "[\"a\"]"),
                    ("maxProperties", "1"),
                    ("minProperties", "1"),
                ],
                _ => &[
                    ("required", "[\"a\"]"),
                    ("maxLength", "3"),
                    ("minimum", "1"),
                    ("pattern", "\"[\""),
                ],
            };
            let (name, value) = self.one(limits);
            schema[name] = value.parse().unwrap_or_default();
        }
        if self.chance(3) {
            let (name, value) = self.one(&[
                ("$ref", "\"#/x\""),
                ("id", "\"x\""),
                ("$schema", "\"http://x\""),
                ("patternProperties", "{\"a\":{\"type\":\"string\"}}"),
                ("definitions", "{\"a\":{\"type\":\"string\"}}"),
                ("dependencies", "{\"a\":[\"b\"]}"),
                ("additionalItems", "true"),
                ("title", "\"t\""),
                ("description", "\"d\""),
                ("externalDocs", "{\"url\":\"http://x\"}"),
                ("example", "1"),
            ]);
            schema[name] = value.parse().unwrap_or_default();
        }
    }

    fn flags(&mut self, schema: &mut Value, place: SchemaPosition) {
        for (flag, percent) in [
            ("nullable", 6),
            ("x-kubernetes-preserve-unknown-fields", 6),
            ("x-kubernetes-embedded-resource", 4),
            ("x-kubernetes-int-or-string", 3),
        ] {
            let percent = if place == SchemaPosition::Nested {
                percent / 2
            } else {
                percent
            };
            if self.chance(percent) {
                schema[flag] = (!self.chance(8)).into();
            }
        }
        let untyped = schema["type"].is_null() && place == SchemaPosition::Inside;
        if untyped && self.chance(70) {
            let flag = self.one(&[
                "x-kubernetes-preserve-unknown-fields",
                "x-kubernetes-int-or-string",
            ]);
            schema[flag] = true.into();
        }
    }

    fn combinations(&mut self, schema: &mut Value, place: SchemaPosition, depth: u8) {
        if depth == 0 || !self.chance(if place == SchemaPosition::Root { 8 } else { 12 }) {
            return;
        }
        if self.chance(20) {
            let any_of = json!([{"type": "integer"}, {"type": "string"}]);
            match self.chance(70) {
                true => schema["anyOf"] = any_of,
                false => schema["allOf"] = json!([{"anyOf": any_of}, {"minimum": 1}]),
            }
            return;
        }
        let nested: Vec<Value> = (0..self.random.usize(1..3))
            .map(|_| self.schema(SchemaPosition::Nested, depth - 1))
            .collect();
        match self.one(&["allOf", "anyOf", "oneOf", "not"]) {
            "not" => schema["not"] = nested.into_iter().next().unwrap_or_default(),
            field => schema[field] = nested.into(),
        }
    }

    fn default(&mut self, schema: &mut Value, place: SchemaPosition) {
        let percent = match place {
            SchemaPosition::Root => 3,
            SchemaPosition::Inside => 10,
            SchemaPosition::Nested => 2,
        };
        if !self.chance(percent) {
            return;
        }
        let fitting = match schema["type"].as_str() {
            Some("object") => &["{}", "{\"a\":\"a\"}", "{\"a\":1,\"b\":{}}", "{\"x\":null}"][..],
            Some("array") => &[
                "[]",
                "[\"a\"]",
                "[{}]",
                "[\"a\",\"a\"]",
                "[{\"a\":\"a\"},{\"a\":\"a\"}]",
            ],
            Some("string") => &["\"a\"", "\"\"", "\"abcd\"", "\"2020-01-01\""],
            Some("integer") => &["1", "2", "5", "1.5"],
            _ => &["1", "true", "\"a\"", "{}", "1.5"],
        };
        let any = &["1", "\"a\"", "{}", "[]", "null", "true"][..];
        let of = if self.chance(75) { fitting } else { any };
        schema["default"] = self.one(of).parse().unwrap_or_default();
    }
}
