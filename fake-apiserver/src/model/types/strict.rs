//! What a strict reader finds in a body: fields that nobody knows and fields that come twice, in the order they come.
//!
//! It reads the text, because once it is an object what came twice is gone.
//!
//! Source: sigs.k8s.io/json `UnmarshalStrict`.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{Shape, Struct, of, types};
use crate::model::catalog::Kind;

/// `unknown field "spec.x"`, `duplicate field "spec.replicas"`, in the order of the text, which is JSON; nothing where it
/// is none.
pub(crate) fn strict_problems(kind: &Kind, body: &[u8]) -> Vec<String> {
    problems(of(kind).map_or(Holds::Any, Holds::Struct), body)
}

/// Only what comes twice, in a body that is no whole object.
pub(crate) fn duplicates(body: &[u8]) -> Vec<String> {
    problems(Holds::Any, body)
}

fn problems(holds: Holds, body: &[u8]) -> Vec<String> {
    let mut problems = Vec::new();
    let place = Place {
        holds,
        path: String::new(),
        problems: &mut problems,
    };
    let mut reader = serde_json::Deserializer::from_slice(body);
    if let Err(error) = place.deserialize(&mut reader) {
        tracing::debug!(%error, "no JSON");
    }
    problems
}

/// What is to be expected at a place.
#[derive(Clone, Copy)]
enum Holds {
    Any,
    Struct(&'static Struct),
    Shape(&'static Shape),
}

struct Place<'a> {
    holds: Holds,
    path: String,
    problems: &'a mut Vec<String>,
}

impl Holds {
    fn target(self) -> Self {
        match self {
            Holds::Any | Holds::Struct(_) => self,
            Holds::Shape(shape) => match shape {
                Shape::Pointer(target) => Holds::Shape(&target.shape).target(),
                Shape::Struct(index) => Holds::Struct(&types().structs[*index]),
                Shape::Text
                | Shape::Bool
                | Shape::Int32
                | Shape::Int64
                | Shape::Float
                | Shape::Bytes
                | Shape::Time
                | Shape::MicroTime
                | Shape::Duration
                | Shape::Quantity
                | Shape::IntOrString
                | Shape::Any => Holds::Any,
                Shape::List(_) | Shape::Map(_) => self,
            },
        }
    }
}

impl<'de> DeserializeSeed<'de> for Place<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Place<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let holds = self.holds.target();
        let mut seen: Vec<String> = Vec::new();
        while let Some(key) = entries.next_key::<String>()? {
            let path = if self.path.is_empty() {
                key.clone()
            } else {
                format!("{}.{key}", self.path)
            };
            let again = seen.contains(&key);
            let below = match holds {
                Holds::Struct(known) => match known.field(&key) {
                    Some(field) => Some(Holds::Shape(&field.holds.shape)),
                    None => {
                        if !again {
                            self.problems.push(format!("unknown field \"{path}\""));
                        }
                        None
                    }
                },
                Holds::Shape(Shape::Map(values)) => Some(Holds::Shape(&values.shape)),
                Holds::Shape(_) | Holds::Any => Some(Holds::Any),
            };
            match below {
                Some(holds) => {
                    if again {
                        self.problems.push(format!("duplicate field \"{path}\""));
                    }
                    entries.next_value_seed(Place {
                        holds,
                        path,
                        problems: self.problems,
                    })?;
                }
                None => drop(entries.next_value::<IgnoredAny>()?),
            }
            if !again {
                seen.push(key);
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let holds = match self.holds.target() {
            Holds::Shape(Shape::List(items)) => Holds::Shape(&items.shape),
            Holds::Shape(_) | Holds::Struct(_) | Holds::Any => Holds::Any,
        };
        for index in 0_usize.. {
            let place = Place {
                holds,
                path: format!("{}[{index}]", self.path),
                problems: self.problems,
            };
            if items.next_element_seed(place)?.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::catalog::Catalog;
    use crate::scenario::Version;

    #[test]
    fn problems_come_in_the_order_of_the_text() {
        let kind = Catalog::builtin(Version::V1_36)
            .find("apps", "deployments")
            .unwrap();
        let body =
            br#"{"foo":1,"metadata":{"name":"d","bar":1,"labels":{"a":"1","a":"2"}},"spec":{"replicas":1,
            "replicas":2,"template":{"spec":{"containers":[{"name":"c","x":1,"x":2,"ports":[{"y":2}]}],
            "zz":{"a":1,"a":2}}}}}"#;
        assert_eq!(
            strict_problems(kind, body).join(", "),
            "unknown field \"foo\", unknown field \"metadata.bar\", duplicate field \"metadata.labels.a\", duplicate \
             field \"spec.replicas\", unknown field \"spec.template.spec.containers[0].x\", unknown field \
             \"spec.template.spec.containers[0].ports[0].y\", unknown field \"spec.template.spec.zz\""
        );
    }
}
