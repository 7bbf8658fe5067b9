//! Go structs of the built-in kinds. They determine the fields, their order, and which are omitted when empty. The merge
//! strategies are in `schema`.
//!
//! The table is data (`data/types.txt`), generated from the sources of Kubernetes by `fidelity/oracle/types`. Custom resources have no
//! struct.
//!
//! Format of its lines: `kind`, apiVersion, Kind, struct; `struct`, name; and after a struct one line for each field, with
//! its name, its type, and its tags and markers. A type is a scalar, `*T`, `[]T`, `{}T` (a map with string keys) or the name
//! of a struct, preceded by its Go name and `=` if that differs.

use std::collections::HashMap;
use std::sync::OnceLock;

use apimachinery::kind::ApiResource;
use foldhash::fast::FixedState;
use serde_json::{Map, Value};

mod absent;
mod problems;
mod protobuf;
pub(crate) mod quantities;
mod read;
mod scalars;
mod times;

pub use absent::drop_empty;
pub use protobuf::from_protobuf;
pub use quantities::{amount, difference, sum};
pub use read::{Reading, conform, duplicates, read_named, read_plain, read_text, read_tree, restorable};
pub(crate) use scalars::base64_error;

/// The parsed table.
#[derive(Debug)]
struct Types {
    /// Index of the root by Kind, group and version: the most distinctive part is compared first.
    kinds: HashMap<(&'static str, &'static str, &'static str), usize, FixedState>,
    roots: Vec<Root>,
    structs: Vec<Struct>,
}

/// Struct of a kind.
#[derive(Debug)]
struct Root {
    index: usize,
    /// Zero value, computed at first use.
    zero: OnceLock<Value>,
}

/// A struct, including the fields of embedded structs.
#[derive(Debug)]
pub struct Struct {
    /// `core/v1.PodSpec`.
    pub name: &'static str,
    /// Fields in the order of encoding.
    pub fields: Vec<Field>,
    /// Whether the struct or one below it has defaults, once `defaults` has determined it.
    pub has_defaults: OnceLock<bool>,
    /// Lists and maps below it, outside of others, that are encoded as null if they are absent.
    nullable: OnceLock<Vec<Vec<&'static str>>>,
}

/// Field of a struct.
#[derive(Debug)]
pub struct Field {
    /// Name in JSON.
    pub name: &'static str,
    /// Type of the field.
    pub holds: Type,
    /// Whether it is omitted when empty.
    omit_empty: bool,
    /// Whether it is omitted also as a struct without content (since 1.34).
    omit_zero: bool,
    /// Default value.
    pub default: Option<&'static str>,
    /// Field number in protobuf: `3`, or `2.3` for a field of an embedded struct. Empty if it has none.
    number: &'static str,
}

/// A Go type.
#[derive(Debug)]
pub struct Type {
    /// Name in Go: `[]v1.Container`.
    go: String,
    /// Representation in JSON.
    pub shape: Shape,
}

impl Type {
    /// Returns whether Go's zero value counts as empty.
    fn has_empty_zero(&self) -> bool {
        match &self.shape {
            Shape::Text
            | Shape::Bool
            | Shape::Int32
            | Shape::Int64
            | Shape::Float
            | Shape::Bytes
            | Shape::Any
            | Shape::Pointer(_)
            | Shape::List(_)
            | Shape::Map(_) => true,
            Shape::Time
            | Shape::MicroTime
            | Shape::Duration
            | Shape::Quantity
            | Shape::IntOrString
            | Shape::Struct(_) => false,
        }
    }
}

/// Representation of a type in JSON.
#[derive(Debug)]
pub enum Shape {
    /// A JSON string.
    Text,
    /// `true` or `false`.
    Bool,
    /// An integer of 32 bits.
    Int32,
    /// An integer of 64 bits.
    Int64,
    /// Any number.
    Float,
    /// Base64 in a string.
    Bytes,
    /// RFC 3339 in seconds.
    Time,
    /// RFC 3339 in microseconds.
    MicroTime,
    /// A Go duration in a string.
    Duration,
    /// `resource.Quantity`: a string or a number.
    Quantity,
    /// An integer of 32 bits or a string.
    IntOrString,
    /// Any value.
    Any,
    /// Struct with this index.
    Struct(usize),
    /// The inner type, or null.
    Pointer(Box<Type>),
    /// A JSON array.
    List(Box<Type>),
    /// A JSON object with any keys.
    Map(Box<Type>),
}

/// Returns the struct of a built-in kind; `None` for a custom resource.
pub fn of(kind: &ApiResource) -> Option<&'static Struct> {
    root(kind).map(|root| &types().structs[root.index])
}

/// Returns the zero value of this kind with empty metadata, in the form of its struct; `None` for a custom resource.
pub fn zero(kind: &ApiResource) -> Option<&'static Value> {
    let zero = || {
        let nothing = Value::Object(Map::from_iter([(
            "metadata".to_owned(),
            Value::Object(Map::new()),
        )]));
        read_tree(kind, &nothing).object
    };
    root(kind).map(|root| root.zero.get_or_init(zero))
}

fn root(kind: &ApiResource) -> Option<&'static Root> {
    if kind.custom {
        return None;
    }
    let types = types();
    let index = types.kinds.get(&(&*kind.kind, &*kind.group, &*kind.version))?;
    types.roots.get(*index)
}

/// Returns the struct of this name.
pub(crate) fn named(name: &str) -> Option<&'static Struct> {
    let structs = &types().structs;
    let index = structs.binary_search_by(|known| known.name.cmp(name)).ok()?;
    Some(&structs[index])
}

impl Struct {
    /// Returns the field of this name.
    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// Returns the name without package: `PodSpec`.
    fn bare(&self) -> &'static str {
        self.name.rsplit('.').next().unwrap_or_default()
    }
}

impl Type {
    /// Returns the target of a pointer; the type itself if it is none.
    pub(crate) fn target(&self) -> &Type {
        match &self.shape {
            Shape::Pointer(target) => target,
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
            | Shape::Any
            | Shape::Struct(_)
            | Shape::List(_)
            | Shape::Map(_) => self,
        }
    }

    /// Returns whether it is a pointer.
    pub(crate) fn is_pointer(&self) -> bool {
        matches!(self.shape, Shape::Pointer(_))
    }

    /// Returns the struct it is or points to.
    pub(crate) fn as_struct(&self) -> Option<&'static Struct> {
        if let Shape::Struct(index) = &self.target().shape {
            return Some(&types().structs[*index]);
        }
        None
    }

    /// Returns the struct it contains at any level of lists, maps and pointers.
    pub(crate) fn holder(&self) -> Option<&'static Struct> {
        match self.items().or_else(|| self.values()) {
            Some(below) => below.holder(),
            None => self.as_struct(),
        }
    }

    /// Returns the type of list items.
    pub(crate) fn items(&self) -> Option<&Type> {
        if let Shape::List(items) = &self.target().shape {
            return Some(items);
        }
        None
    }

    /// Returns the type of map values.
    pub(crate) fn values(&self) -> Option<&Type> {
        if let Shape::Map(values) = &self.target().shape {
            return Some(values);
        }
        None
    }
}

fn types() -> &'static Types {
    static TYPES: OnceLock<Types> = OnceLock::new();
    TYPES.get_or_init(|| read(include_str!("../data/types.txt")))
}

fn read(text: &'static str) -> Types {
    let words = |line: &'static str| line.split('\t');
    // Fields can refer to structs further down, so all names are collected first.
    let names: HashMap<&'static str, usize, FixedState> = text
        .lines()
        .filter_map(|line| words(line).nth(1).filter(|_| line.starts_with("struct\t")))
        .enumerate()
        .map(|(index, name)| (name, index))
        .collect();
    let mut types = Types {
        kinds: HashMap::default(),
        roots: Vec::new(),
        structs: Vec::with_capacity(names.len()),
    };
    for line in text.lines() {
        let mut words = words(line);
        match words.next() {
            Some("kind") => {
                let mut next = || words.next().expect("a kind has three words");
                let (api_version, kind, name) = (next(), next(), next());
                let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
                let root = Root {
                    index: names[name],
                    zero: OnceLock::new(),
                };
                types.kinds.insert((kind, group, version), types.roots.len());
                types.roots.push(root);
            }
            Some("struct") => types.structs.push(Struct {
                name: words.next().expect("a struct has a name"),
                fields: Vec::new(),
                has_defaults: OnceLock::new(),
                nullable: OnceLock::new(),
            }),
            Some(_) | None => {
                let owner = types.structs.last_mut().expect("fields stand below their struct");
                owner.fields.push(field(words, &names));
            }
        }
    }
    types
}

fn field(
    mut words: impl Iterator<Item = &'static str>,
    names: &HashMap<&'static str, usize, FixedState>,
) -> Field {
    let name = words.next().expect("a field has a name");
    let mut field = Field {
        name,
        holds: type_of(words.next().expect("a field has a type"), names),
        omit_empty: false,
        omit_zero: false,
        default: None,
        number: "",
    };
    for word in words {
        match word.split_once('=') {
            None if word == "omitempty" => field.omit_empty = true,
            None if word == "omitzero" => field.omit_zero = true,
            Some(("default", value)) => field.default = Some(value),
            Some(("pb", number)) => field.number = number,
            Some(_) | None => {}
        }
    }
    field
}

fn type_of(text: &'static str, names: &HashMap<&'static str, usize, FixedState>) -> Type {
    if let Some((go, text)) = text
        .split_once('=')
        .filter(|(go, _)| !go.contains(['[', '{', '*']))
    {
        return Type {
            go: go.to_owned(),
            shape: type_of(text, names).shape,
        };
    }
    let inner = |text| Box::new(type_of(text, names));
    let scalar = |go: &str, shape| Type {
        go: go.to_owned(),
        shape,
    };
    if let Some(text) = text.strip_prefix('*') {
        let target = inner(text);
        return scalar(&format!("*{}", target.go), Shape::Pointer(target));
    }
    if let Some(text) = text.strip_prefix("[]") {
        let items = inner(text);
        return scalar(&format!("[]{}", items.go), Shape::List(items));
    }
    if let Some(text) = text.strip_prefix("{}") {
        let values = inner(text);
        return scalar(&format!("map[string]{}", values.go), Shape::Map(values));
    }
    match text {
        "string" => scalar(text, Shape::Text),
        "bool" => scalar(text, Shape::Bool),
        "int32" => scalar(text, Shape::Int32),
        "int" | "int64" => scalar(text, Shape::Int64),
        "float64" => scalar(text, Shape::Float),
        "bytes" => scalar("[]uint8", Shape::Bytes),
        "time" => scalar("string", Shape::Time),
        "microtime" => scalar("string", Shape::MicroTime),
        "duration" => scalar("string", Shape::Duration),
        "quantity" => scalar("resource.Quantity", Shape::Quantity),
        // A value that is not a string is decoded as a number.
        "intorstring" => scalar("int32", Shape::IntOrString),
        "any" => scalar("any", Shape::Any),
        name => {
            let index = *names.get(name).expect("the table has every struct it names");
            scalar(name.rsplit('/').next().unwrap_or(name), Shape::Struct(index))
        }
    }
}

#[cfg(test)]
mod tests {
    use apimachinery::Version;

    use super::*;
    use crate::catalog::Catalog;

    #[test]
    fn every_built_in_kind_has_its_struct() {
        for kind in Catalog::builtin(Version::NEWEST).kinds() {
            assert_eq!(of(kind).is_some(), !kind.custom, "{}", kind.kind);
        }
    }

    #[test]
    fn structs_have_the_fields_of_their_tags() {
        assert!(types().structs.is_sorted_by_key(|known| known.name));
        let spec = named("core/v1.PodSpec").unwrap();
        let containers = spec.field("containers").unwrap();
        assert_eq!(containers.holds.go, "[]v1.Container");
        let container = containers.holds.items().unwrap().as_struct().unwrap();
        let pull = container.field("imagePullPolicy").unwrap();
        assert_eq!(pull.holds.go, "v1.PullPolicy");
    }
}
