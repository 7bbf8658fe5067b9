//! The Go structs that a real server reads built-in kinds into. They decide which fields there are, in which order they
//! are written and which are left out when empty. How patches merge them, `schema` knows.
//!
//! The table is data (`data/types.txt`), printed from the sources of Kubernetes by `oracle/types`. Custom resources have
//! no struct and are not in it.
//!
//! Its lines: `kind`, apiVersion, Kind, struct; `struct`, name; and below a struct one
//! line a field, with its name, its type, and what its tags and markers say. A type is a scalar, `*T`, `[]T`,
//! `{}T` (a map of strings) or the name of a struct, behind its own Go name and `=` if it has one.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use apimachinery::Version;
use apimachinery::kind::ApiResource;
use serde_json::{Map, Value};

use crate::published;

mod problems;
mod protobuf;
pub(crate) mod quantities;
mod read;
mod scalars;

pub use protobuf::from_protobuf;
pub use quantities::{amount, difference, sum};
pub use read::{Reading, conform, duplicates, read_named, read_text, read_tree, restorable};

/// The table.
#[derive(Debug)]
struct Types {
    /// By Kind, group and version: what differs first is compared first.
    kinds: BTreeMap<(&'static str, &'static str, &'static str), Root>,
    structs: Vec<Struct>,
}

/// The struct of a kind.
#[derive(Debug)]
struct Root {
    index: usize,
    /// What it is where nothing is said, in each version; made once it is asked for.
    zeros: [OnceLock<Value>; 4],
}

/// A struct, with the fields of what it embeds.
#[derive(Debug)]
pub struct Struct {
    /// `core/v1.PodSpec`.
    pub name: &'static str,
    /// In the order they are written.
    pub fields: Vec<Field>,
    /// Can a server fill anything in, here or further down? Once `defaults` was asked.
    pub has_defaults: OnceLock<bool>,
}

/// A field of a struct.
#[derive(Debug)]
pub struct Field {
    /// As JSON has it.
    pub name: &'static str,
    /// What it holds.
    pub holds: Type,
    /// Is it left out when it is empty?
    omit_empty: bool,
    /// And also when it is a struct without content? (Since 1.34.)
    omit_zero: bool,
    /// Its value where it is not said.
    pub default: Option<&'static str>,
    /// In protobuf: `3`, or `2.3` for what is in an embedded struct. Empty where it has none.
    number: &'static str,
}

/// A Go type.
#[derive(Debug)]
pub struct Type {
    /// As Go prints it: `[]v1.Container`.
    go: String,
    /// What JSON it takes.
    pub shape: Shape,
}

/// What JSON a type takes.
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
    /// Whatever.
    Any,
    /// The struct of this number.
    Struct(usize),
    /// The same, or null.
    Pointer(Box<Type>),
    /// A JSON array.
    List(Box<Type>),
    /// A JSON object with any keys.
    Map(Box<Type>),
}

/// The struct of a built-in kind; `None` for custom resources.
pub fn of(kind: &ApiResource) -> Option<&'static Struct> {
    root(kind).map(|root| &types().structs[root.index])
}

/// An object of this kind that says nothing but that it has metadata, in the form of its struct; `None` for custom
/// resources.
pub fn zero(kind: &ApiResource, version: Version) -> Option<&'static Value> {
    let zero = || {
        let nothing = Value::Object(Map::from_iter([(
            "metadata".to_owned(),
            Value::Object(Map::new()),
        )]));
        read_tree(kind, &nothing, version).object
    };
    root(kind).map(|root| root.zeros[published::nth(version)].get_or_init(zero))
}

fn root(kind: &ApiResource) -> Option<&'static Root> {
    if kind.custom {
        return None;
    }
    types().kinds.get(&(kind.kind, kind.group, kind.version))
}

/// The struct of this name.
pub(crate) fn named(name: &str) -> Option<&'static Struct> {
    let structs = &types().structs;
    let index = structs.binary_search_by(|known| known.name.cmp(name)).ok()?;
    Some(&structs[index])
}

impl Struct {
    /// The field of this name.
    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// `PodSpec`.
    fn bare(&self) -> &'static str {
        self.name.rsplit('.').next().unwrap_or_default()
    }
}

impl Type {
    /// What is behind the pointer, if it is one.
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

    /// Is it a pointer?
    pub(crate) fn is_pointer(&self) -> bool {
        matches!(self.shape, Shape::Pointer(_))
    }

    /// The struct it is or points to.
    pub(crate) fn as_struct(&self) -> Option<&'static Struct> {
        if let Shape::Struct(index) = &self.target().shape {
            return Some(&types().structs[*index]);
        }
        None
    }

    /// The struct whose values are somewhere in it.
    pub(crate) fn holder(&self) -> Option<&'static Struct> {
        match self.items().or_else(|| self.values()) {
            Some(below) => below.holder(),
            None => self.as_struct(),
        }
    }

    /// What it is a list of.
    pub(crate) fn items(&self) -> Option<&Type> {
        if let Shape::List(items) = &self.target().shape {
            return Some(items);
        }
        None
    }

    /// What it is a map of.
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
    // Fields refer to structs that may come later, so all names are known first.
    let names: BTreeMap<&'static str, usize> = text
        .lines()
        .filter_map(|line| words(line).nth(1).filter(|_| line.starts_with("struct\t")))
        .enumerate()
        .map(|(index, name)| (name, index))
        .collect();
    let mut types = Types {
        kinds: BTreeMap::new(),
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
                    zeros: Default::default(),
                };
                types.kinds.insert((kind, group, version), root);
            }
            Some("struct") => types.structs.push(Struct {
                name: words.next().expect("a struct has a name"),
                fields: Vec::new(),
                has_defaults: OnceLock::new(),
            }),
            Some(_) | None => {
                let owner = types.structs.last_mut().expect("fields stand below their struct");
                owner.fields.push(field(words, &names));
            }
        }
    }
    types
}

fn field(mut words: impl Iterator<Item = &'static str>, names: &BTreeMap<&'static str, usize>) -> Field {
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

fn type_of(text: &'static str, names: &BTreeMap<&'static str, usize>) -> Type {
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
        // Whatever is no text is read as a number.
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
    use super::*;
    use crate::catalog::Catalog;

    #[test]
    fn every_built_in_kind_has_its_struct() {
        for kind in Catalog::builtin(Version::V1_36).kinds() {
            assert_eq!(of(kind).is_some(), !kind.custom, "{}", kind.kind);
        }
    }

    #[test]
    fn structs_are_sorted_and_say_what_their_tags_say() {
        assert!(types().structs.is_sorted_by_key(|known| known.name));
        let spec = named("core/v1.PodSpec").unwrap();
        let containers = spec.field("containers").unwrap();
        assert_eq!(containers.holds.go, "[]v1.Container");
        let container = containers.holds.items().unwrap().as_struct().unwrap();
        let pull = container.field("imagePullPolicy").unwrap();
        assert_eq!(pull.holds.go, "v1.PullPolicy");
    }
}
