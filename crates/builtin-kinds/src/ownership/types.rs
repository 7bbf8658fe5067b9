//! Types of values as apply distinguishes them: what a value can be, and how the parts of a list or map relate. A type is
//! read from a schema, or deduced from the value where a schema leaves it open.
//!
//! Source: kube-openapi `schemaconv/{openapi,smd}.go`; structured-merge-diff `schema/elements.go` and `typed/helpers.go`.

use serde_json::Value;

use super::set::Element;
use crate::schema::{Form, Others, Schema};

/// Type of a value, before it is known what the value is (`TypeRef`).
#[derive(Clone, Copy)]
pub(super) enum Type<'s> {
    /// That of a schema. `open`: one above it preserves unknown fields.
    Of { schema: &'s Schema, open: bool },
    /// Deduced from the value: a map by its entries, a list as a whole.
    Deduced,
    /// Any value, as a whole.
    Whole,
    /// No type: the field is not declared.
    Undeclared,
}

/// What a value of a type can be.
#[derive(Clone, Copy)]
pub(super) struct Atom<'s> {
    pub(super) map: Option<MapType<'s>>,
    pub(super) scalar: Option<Scalar>,
    pub(super) list: Option<ListType<'s>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Scalar {
    Numeric,
    Text,
    Boolean,
    Untyped,
}

#[derive(Clone, Copy)]
pub(super) struct MapType<'s> {
    /// Schema that lists the fields.
    listed: Option<&'s Schema>,
    open: bool,
    /// Type of the entries that are not listed.
    others: Type<'s>,
    /// Whether it is replaced as a whole.
    pub(super) is_atomic: bool,
}

#[derive(Clone, Copy)]
pub(super) struct ListType<'s> {
    pub(super) items: Type<'s>,
    pub(super) relation: Relation<'s>,
}

/// Relation of the items of a list.
#[derive(Clone, Copy)]
pub(super) enum Relation<'s> {
    /// The list is replaced as a whole.
    Atomic,
    /// Items are identified by their value.
    Set,
    /// Items are identified by these fields.
    Keyed(&'s [String]),
}

impl<'s> Type<'s> {
    /// Returns the type of an object of a kind; `None`: it has no schema.
    pub(super) fn of(schema: Option<&'s Schema>) -> Self {
        schema.map_or(Self::Deduced, |schema| Self::Of { schema, open: false })
    }

    /// Returns what a value can be.
    pub(super) fn atom(self) -> Atom<'s> {
        match self {
            Self::Of { schema, open } => of_schema(schema, open),
            Self::Deduced => untyped(Self::Deduced, false),
            Self::Whole => untyped(Self::Whole, true),
            Self::Undeclared => Atom {
                map: None,
                scalar: None,
                list: None,
            },
        }
    }

    /// Returns what this value can be.
    pub(super) fn atom_for(self, value: Option<&Value>) -> Atom<'s> {
        self.atom().narrowed(value)
    }
}

fn untyped(entries: Type<'_>, is_atomic: bool) -> Atom<'_> {
    Atom {
        map: Some(MapType {
            listed: None,
            open: false,
            others: entries,
            is_atomic,
        }),
        scalar: Some(Scalar::Untyped),
        list: Some(ListType {
            items: Type::Whole,
            relation: Relation::Atomic,
        }),
    }
}

fn of_schema(schema: &Schema, open: bool) -> Atom<'_> {
    // A schema that is referred to by name is read by itself.
    let open = open && !schema.is_reference() || schema.preserves();
    let map = || {
        let others = match schema.others() {
            (Others::Typed, Some(schema)) => Type::Of { schema, open },
            (Others::Anything | Others::Typed, _) => Type::Deduced,
            (Others::Forbidden, _) => Type::Undeclared,
            (Others::Unspecified, _) if open || !schema.lists_fields() => Type::Deduced,
            (Others::Unspecified, _) => Type::Undeclared,
        };
        MapType {
            listed: Some(schema),
            open,
            others,
            is_atomic: schema.is_atomic(),
        }
    };
    let list = || ListType {
        items: schema
            .items()
            .map_or(Type::Whole, |schema| Type::Of { schema, open }),
        relation: relation(schema),
    };
    let nothing = Atom {
        map: None,
        scalar: None,
        list: None,
    };
    let scalar = |scalar| Atom {
        scalar: Some(scalar),
        ..nothing
    };
    match schema.form() {
        Form::Any => Atom {
            map: Some(map()),
            scalar: Some(Scalar::Untyped),
            list: Some(list()),
        },
        Form::Object => Atom {
            map: Some(map()),
            ..nothing
        },
        Form::List => Atom {
            list: Some(list()),
            ..nothing
        },
        Form::Numeric => scalar(Scalar::Numeric),
        Form::Text => scalar(Scalar::Text),
        Form::Boolean => scalar(Scalar::Boolean),
        Form::Scalar => scalar(Scalar::Untyped),
        Form::Opaque => Type::Whole.atom(),
    }
}

/// A list without a list type has that of its strategy for patches.
fn relation(schema: &Schema) -> Relation<'_> {
    match schema.list_type() {
        Some("map") => Relation::Keyed(schema.list_map_keys()),
        Some("set") => Relation::Set,
        None if schema.merges() => match schema.merge_keys() {
            [] => Relation::Set,
            keys => Relation::Keyed(keys),
        },
        Some(_) | None => Relation::Atomic,
    }
}

impl<'s> Atom<'s> {
    /// Returns what a value can be that is this one. Null can be anything, and a value of none of the types is left to checks.
    fn narrowed(self, value: Option<&Value>) -> Self {
        let nothing = Self {
            map: None,
            scalar: None,
            list: None,
        };
        match value {
            Some(Value::Object(_)) if self.map.is_some() => Self {
                map: self.map,
                ..nothing
            },
            Some(Value::Array(_)) if self.list.is_some() => Self {
                list: self.list,
                ..nothing
            },
            Some(Value::Bool(_) | Value::Number(_) | Value::String(_)) if self.scalar.is_some() => Self {
                scalar: self.scalar,
                ..nothing
            },
            Some(_) | None => self,
        }
    }

    /// Returns whether both, of one type, can be the same.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.map.is_some() == other.map.is_some()
            && self.scalar.is_some() == other.scalar.is_some()
            && self.list.is_some() == other.list.is_some()
    }
}

impl<'s> MapType<'s> {
    /// Returns the type of an entry.
    pub(super) fn entry(&self, name: &str) -> Type<'s> {
        self.field(name).unwrap_or(self.others)
    }

    /// Returns the type of a listed field.
    pub(super) fn field(&self, name: &str) -> Option<Type<'s>> {
        let schema = self.listed?.listed(name)?;
        Some(Type::Of {
            schema,
            open: self.open,
        })
    }

    /// Returns the type of the entries that are not listed.
    pub(super) fn others(&self) -> Type<'s> {
        self.others
    }

    /// Returns whether nothing is known of the entries.
    pub(super) fn is_deduced(&self) -> bool {
        matches!(self.others, Type::Deduced) && !self.listed.is_some_and(Schema::lists_fields)
    }
}

impl ListType<'_> {
    pub(super) fn is_atomic(&self) -> bool {
        matches!(self.relation, Relation::Atomic)
    }

    /// Returns the path element of an item of a list that is not atomic.
    ///
    /// # Errors
    ///
    /// It has none; the text is that of structured-merge-diff.
    pub(super) fn element(&self, item: &Value) -> Result<Element, String> {
        match self.relation {
            Relation::Atomic => Err("invalid indexing of non-associative list".to_owned()),
            Relation::Keyed(keys) => self.by_keys(keys, item),
            Relation::Set => match item {
                Value::Object(_) => {
                    Err("associative list without keys has an element that's a map type".to_owned())
                }
                Value::Array(_) => Err("not supported: associative list with lists as elements".to_owned()),
                Value::Null => {
                    Err("associative list without keys has an element that's an explicit null".to_owned())
                }
                Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(Element::Value(item.clone())),
            },
        }
    }

    /// A key that is absent has its default.
    fn by_keys(&self, keys: &[String], item: &Value) -> Result<Element, String> {
        let item = match item {
            Value::Object(item) => item,
            Value::Null => return Err("associative list with keys may not have a null element".to_owned()),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                return Err("associative list with keys may not have non-map elements".to_owned());
            }
        };
        let default = |name: &str| match self.items {
            Type::Of { schema, .. } => schema.listed(name).and_then(Schema::default_value),
            Type::Deduced | Type::Whole | Type::Undeclared => None,
        };
        let values = keys
            .iter()
            .filter_map(|name| Some((name.clone(), item.get(name).or_else(|| default(name))?.clone())));
        let mut values: Vec<(String, Value)> = values.collect();
        if values.is_empty() && !keys.is_empty() {
            let keys: Vec<String> = keys.iter().map(|key| apimachinery::go_text::quote(key)).collect();
            return Err(format!(
                "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values \
                 for any key fields)",
                keys.join(" ")
            ));
        }
        values.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(Element::Key(values))
    }
}
