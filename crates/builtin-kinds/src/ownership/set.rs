//! Set of field paths, as a tree, and its form on the wire (`FieldsV1`). It must not know objects or schemas.
//!
//! Source: structured-merge-diff `fieldpath/{element,set,serialize,serialize-pe}.go` and the order of values in `value/value.go`.

use std::cmp::Ordering;
use std::fmt::{self, Display, Formatter};

use apimachinery::encode::encode_json;
use apimachinery::go_text;
use serde_json::{Map, Value};

/// Step of a path.
#[derive(Debug, Clone)]
pub(super) enum Element {
    /// Entry of an object or map by its name.
    Field(Box<str>),
    /// Item of a keyed list by its keys, sorted by name.
    Key(Vec<(String, Value)>),
    /// Item of a set by its value.
    Value(Value),
    /// Item by its place.
    Index(i64),
}

/// Path from the root of the object.
pub(super) type Path = Vec<Element>;

impl Element {
    /// Decodes `f:name`, `k:{"name":"c"}`, `v:"x"` or `i:1`. `Ok(None)`: a kind of element that is not known, which is ignored.
    fn decode(text: &str) -> Result<Option<Self>, Undecodable> {
        let (kind, content) = text.split_at_checked(2).ok_or(Undecodable)?;
        match kind {
            "f:" => Ok(Some(Self::Field(content.into()))),
            "k:" => match serde_json::from_str(content) {
                Ok(Value::Object(keys)) => {
                    let mut keys: Vec<(String, Value)> = keys.into_iter().collect();
                    keys.sort_by(|(a, _), (b, _)| a.cmp(b));
                    Ok(Some(Self::Key(keys)))
                }
                Ok(_) | Err(_) => Err(Undecodable),
            },
            "v:" => serde_json::from_str(content)
                .map(|value| Some(Self::Value(value)))
                .map_err(|_| Undecodable),
            "i:" => content
                .parse()
                .map(|index| Some(Self::Index(index)))
                .map_err(|_| Undecodable),
            _ if kind.ends_with(':') => Ok(None),
            _ => Err(Undecodable),
        }
    }

    fn encode(self) -> String {
        match self {
            Self::Field(name) => {
                let mut text = String::with_capacity(name.len() + 2);
                text.push_str("f:");
                text.push_str(&name);
                text
            }
            Self::Key(keys) => {
                let keys = Value::Object(keys.into_iter().collect());
                ["k:", &json(&keys)].concat()
            }
            Self::Value(value) => ["v:", &json(&value)].concat(),
            Self::Index(index) => format!("i:{index}"),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
        }
    }

    /// Compares with the entry of this name.
    fn cmp_field(&self, other: &str) -> Ordering {
        match self {
            Self::Field(name) => (**name).cmp(other),
            Self::Key(_) | Self::Value(_) | Self::Index(_) => Ordering::Greater,
        }
    }
}

impl Ord for Element {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(one), Self::Field(other)) => one.cmp(other),
            (Self::Key(one), Self::Key(other)) => {
                let order = |((a, x), (b, y)): (&(String, Value), &(String, Value))| {
                    a.cmp(b).then_with(|| compare(x, y))
                };
                let differing = one.iter().zip(other).map(order).find(|order| order.is_ne());
                differing.unwrap_or_else(|| one.len().cmp(&other.len()))
            }
            (Self::Value(one), Self::Value(other)) => compare(one, other),
            (Self::Index(one), Self::Index(other)) => one.cmp(other),
            (one, other) => one.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Element {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Element {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Element {}

/// As in messages: `.spec`, `[name="c"]`, `[="x"]`, `[0]`.
impl Display for Element {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(out, ".{name}"),
            Self::Key(keys) => {
                let keys: Vec<String> = keys
                    .iter()
                    .map(|(name, value)| format!("{name}={}", shown(value)))
                    .collect();
                write!(out, "[{}]", keys.join(","))
            }
            Self::Value(value) => write!(out, "[={}]", shown(value)),
            Self::Index(index) => write!(out, "[{index}]"),
        }
    }
}

/// Formats a path as in messages: `.spec.containers[name="c"].image`.
pub(super) fn shown_path(path: &[Element]) -> String {
    path.iter().map(Element::to_string).collect()
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => go_text::quote(text),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string()
        }
    }
}

fn json(value: &Value) -> String {
    String::from_utf8(encode_json(value)).unwrap_or_default()
}

/// Total order of values: numbers, texts, booleans, lists, maps, null; a number is compared whatever its type.
fn compare(one: &Value, other: &Value) -> Ordering {
    let rank = |value: &Value| match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    };
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => match (one.as_i64(), other.as_i64()) {
            (Some(one), Some(other)) => one.cmp(&other),
            (_, _) => {
                let (one, other) = (one.as_f64(), other.as_f64());
                one.partial_cmp(&other).unwrap_or(Ordering::Equal)
            }
        },
        (Value::String(one), Value::String(other)) => one.cmp(other),
        (Value::Bool(one), Value::Bool(other)) => one.cmp(other),
        (Value::Array(_), Value::Array(_)) | (Value::Object(_), Value::Object(_)) => {
            json(one).cmp(&json(other))
        }
        (_, _) => rank(one).cmp(&rank(other)),
    }
}

/// Text that is no set of fields.
#[derive(Debug)]
pub(super) struct Undecodable;

/// A set of field paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Fields {
    /// Whether the root of this set is a member.
    is_member: bool,
    /// Members below the root, sorted by element; none of the sets is empty.
    below: Vec<(Element, Fields)>,
}

impl Fields {
    /// Returns the set with only its root.
    pub(super) fn root() -> Self {
        Self {
            is_member: true,
            below: Vec::new(),
        }
    }

    /// Returns the set with one path.
    pub(super) fn single(path: Path) -> Self {
        path.into_iter().rev().fold(Self::root(), |below, element| Self {
            is_member: false,
            below: vec![(element, below)],
        })
    }

    /// Returns the set of these parts, whose elements can be in any order and repeat.
    pub(super) fn of_parts(mut parts: Vec<(Element, Self)>) -> Self {
        parts.retain(|(_, fields)| !fields.is_empty());
        if !parts.is_sorted_by(|(a, _), (b, _)| a < b) {
            parts.sort_by(|(a, _), (b, _)| a.cmp(b));
            parts.dedup_by(|(later, fields), (earlier, kept)| {
                let repeats = later == earlier;
                if repeats {
                    *kept = std::mem::take(kept).union(std::mem::take(fields));
                }
                repeats
            });
        }
        Self {
            is_member: false,
            below: parts,
        }
    }

    /// Decodes FieldsV1.
    ///
    /// # Errors
    ///
    /// A key is no path element, or a value no set.
    pub(super) fn decode(written: &Value) -> Result<Self, Undecodable> {
        let entries = match written {
            Value::Object(entries) => entries,
            Value::Null => return Ok(Self::default()),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                return Err(Undecodable);
            }
        };
        let mut parts = Vec::with_capacity(entries.len());
        let mut has_marker = false;
        for (element, written) in entries {
            if element == "." {
                has_marker = true;
                continue;
            }
            if let Some(element) = Element::decode(element)? {
                let mut below = Self::decode(written)?;
                below.is_member |= below.below.is_empty();
                parts.push((element, below));
            }
        }
        let mut fields = Self::of_parts(parts);
        fields.is_member = has_marker;
        Ok(fields)
    }

    /// Encodes as FieldsV1.
    pub(super) fn encode(self) -> Value {
        // A set without members below its root has only the root, which needs no `.`.
        let has_marker = self.is_member && !self.below.is_empty();
        let mut tree = Map::with_capacity(self.below.len() + usize::from(has_marker));
        if has_marker {
            tree.insert(".".to_owned(), Value::Object(Map::new()));
        }
        for (element, fields) in self.below {
            tree.insert(element.encode(), fields.encode());
        }
        Value::Object(tree)
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.is_member && self.below.is_empty()
    }

    /// Returns whether the root is a member.
    pub(super) fn is_member(&self) -> bool {
        self.is_member
    }

    /// Returns the elements below the root, sorted, with the sets below them.
    pub(super) fn children(&self) -> &[(Element, Self)] {
        &self.below
    }

    /// Returns the members below an element.
    pub(super) fn below(&self, element: &Element) -> Option<&Self> {
        let place = self.below.binary_search_by(|(own, _)| own.cmp(element)).ok()?;
        Some(&self.below[place].1)
    }

    /// Returns the members below the entry of this name.
    pub(super) fn below_field(&self, name: &str) -> Option<&Self> {
        let place = self.below.binary_search_by(|(own, _)| own.cmp_field(name)).ok()?;
        Some(&self.below[place].1)
    }

    /// Returns all paths: those of one level before those below it.
    pub(super) fn paths(&self) -> Vec<Path> {
        let mut paths: Vec<Path> = Vec::new();
        self.collect_paths(&mut Vec::new(), &mut paths);
        paths
    }

    fn collect_paths(&self, path: &mut Path, paths: &mut Vec<Path>) {
        for (element, _) in self.below.iter().filter(|(_, fields)| fields.is_member) {
            paths.push(path.iter().chain([element]).cloned().collect());
        }
        for (element, fields) in &self.below {
            path.push(element.clone());
            fields.collect_paths(path, paths);
            path.pop();
        }
    }

    /// Adds the root.
    pub(super) fn insert_root(&mut self) {
        self.is_member = true;
    }

    /// Removes the root, but nothing below it.
    pub(super) fn remove_root(&mut self) {
        self.is_member = false;
    }

    /// Returns the members of both.
    pub(super) fn union(self, others: Self) -> Self {
        let is_member = self.is_member | others.is_member;
        if self.below.is_empty() || others.below.is_empty() {
            let below = if self.below.is_empty() {
                others.below
            } else {
                self.below
            };
            return Self { is_member, below };
        }
        let mut below = Vec::with_capacity(self.below.len() + others.below.len());
        let (mut own, mut others) = (
            self.below.into_iter().peekable(),
            others.below.into_iter().peekable(),
        );
        loop {
            let order = match (own.peek(), others.peek()) {
                (Some((one, _)), Some((other, _))) => one.cmp(other),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => break,
            };
            match order {
                Ordering::Less => below.extend(own.next()),
                Ordering::Greater => below.extend(others.next()),
                Ordering::Equal => {
                    if let (Some((element, one)), Some((_, other))) = (own.next(), others.next()) {
                        below.push((element, one.union(other)));
                    }
                }
            }
        }
        Self { is_member, below }
    }

    /// Returns the members of all sets, which can be many: they are united in pairs.
    pub(super) fn union_of(mut sets: Vec<Self>) -> Self {
        while sets.len() > 1 {
            let mut rest = sets.into_iter();
            sets = std::iter::from_fn(|| {
                let one = rest.next()?;
                Some(match rest.next() {
                    Some(other) => one.union(other),
                    None => one,
                })
            })
            .collect();
        }
        sets.pop().unwrap_or_default()
    }

    /// Adds the members of another set.
    pub(super) fn add(&mut self, others: Self) {
        *self = std::mem::take(self).union(others);
    }

    /// Removes the members of another set; what is below them stays.
    pub(super) fn subtract(&mut self, others: &Self) {
        self.is_member &= !others.is_member;
        if others.below.is_empty() {
            return;
        }
        self.below.retain_mut(|(element, fields)| {
            if let Some(others) = others.below(element) {
                fields.subtract(others);
            }
            !fields.is_empty()
        });
    }

    /// Returns the members that both have.
    pub(super) fn intersection(&self, others: &Self) -> Self {
        let below = self.below.iter().filter_map(|(element, fields)| {
            let common = fields.intersection(others.below(element)?);
            (!common.is_empty()).then(|| (element.clone(), common))
        });
        Self {
            is_member: self.is_member && others.is_member,
            below: below.collect(),
        }
    }

    /// Removes the entries that `predicate` rejects by their names, with everything below them.
    pub(super) fn retain_fields(&mut self, mut predicate: impl FnMut(&str) -> bool) {
        self.below.retain(|(element, _)| match element {
            Element::Field(name) => predicate(name),
            Element::Key(_) | Element::Value(_) | Element::Index(_) => true,
        });
    }

    /// Changes the set below the entry of this name.
    pub(super) fn change_field(&mut self, name: &str, change: impl FnOnce(&mut Self)) {
        if let Ok(place) = self.below.binary_search_by(|(own, _)| own.cmp_field(name)) {
            change(&mut self.below[place].1);
            if self.below[place].1.is_empty() {
                self.below.remove(place);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Fields;

    fn fields(written: serde_json::Value) -> Fields {
        Fields::decode(&written).unwrap()
    }

    #[test]
    fn sets_survive_decoding_and_encoding() {
        let written = json!({
            "f:a": {},
            "f:b": {".": {}, "f:c": {"v:1": {}}, "f:d": {}},
            "f:e": {"f:f": {}},
        });
        let set = fields(written.clone());
        let paths = set.paths().into_iter().map(Fields::single);
        assert_eq!(Fields::union_of(paths.collect()), set);
        assert_eq!(set.encode().to_string(), written.to_string());
    }

    #[test]
    fn items_are_sorted_by_value_and_not_by_their_text() {
        let set = fields(json!({"f:p": {
            "k:{\"port\":443}": {}, "k:{\"port\":80}": {}, "v:\"a\"": {}, "v:10": {}, "v:9.5": {}, "i:2": {}, "i:10": {},
        }}));
        assert_eq!(
            set.encode().to_string(),
            r#"{"f:p":{"k:{\"port\":80}":{},"k:{\"port\":443}":{},"v:9.5":{},"v:10":{},"v:\"a\"":{},"i:2":{},"i:10":{}}}"#
        );
    }

    #[test]
    fn elements_that_are_not_known_are_ignored_and_invalid_ones_rejected() {
        assert_eq!(
            fields(json!({"x:a": {"f:b": {}}, "f:c": {}})),
            fields(json!({"f:c": {}}))
        );
        for invalid in [
            json!({"a": {}}),
            json!({"fa": {}}),
            json!({"v:": {}}),
            json!({"k:1": {}}),
            json!({"i:x": {}}),
        ] {
            assert!(Fields::decode(&invalid).is_err(), "{invalid}");
        }
        assert!(Fields::decode(&json!({"f:a": 1})).is_err());
    }

    #[test]
    fn subtraction_leaves_no_empty_sets() {
        let set = fields(json!({"f:a": {".": {}, "f:b": {}}, "f:c": {"f:d": {"f:e": {}}}}));
        let mut rest = set.clone();
        rest.subtract(&fields(
            json!({"f:a": {}, "f:c": {"f:d": {"f:e": {}}}, "f:x": {}}),
        ));
        assert_eq!(rest, fields(json!({"f:a": {"f:b": {}}})));
        rest.subtract(&set);
        assert!(rest.is_empty());
        assert_eq!(
            set.intersection(&fields(json!({"f:a": {"f:b": {}}, "f:c": {"f:d": {}}}))),
            fields(json!({"f:a": {"f:b": {}}}))
        );
    }
}
