//! Typed values: the field set of a value, the differences of two, merging, removal, and what a set of fields lacks or has too
//! much of under a type. It must not know managers.
//!
//! Source: structured-merge-diff `typed/{tofieldset,compare,merge,remove,reconcile_schema}.go`; `fieldpath/set.go`
//! (`EnsureNamedFieldsAreMembers`).

use std::collections::{BTreeMap, BTreeSet};

use apimachinery::object::is_same;
use serde_json::{Map, Value};

use super::set::{Element, Fields};
use super::types::{Atom, ListType, MapType, Type};

/// Levels at which two values are compared as a whole before their parts are. Below them a value is compared part
/// by part only, so that deep values are not compared once for each level above.
const LEVELS_COMPARED_WHOLE: usize = 32;

/// Entries of an object or map.
type Entries = Map<String, Value>;

/// Differences between two objects.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// Added and changed fields.
    pub(super) written: Fields,
    pub(super) removed: Fields,
}

/// Returns whether two values are the same. Numbers are the same whatever their types.
pub(super) fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            let is_float = one.is_f64() || other.is_f64();
            one == other || is_float && one.as_f64() == other.as_f64()
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let equal =
                |(name, value): (&String, &Value)| other.get(name).is_some_and(|other| same(value, other));
            one.len() == other.len() && one.iter().all(equal)
        }
        (_, _) => one == other,
    }
}

/// Returns the field set of a value: every leaf and every item.
pub(super) fn field_set(of: Type<'_>, value: &Value) -> Fields {
    match of.atom_for(Some(value)) {
        Atom { map: Some(map), .. } => {
            let Some(entries) = value.as_object().filter(|_| !map.is_atomic) else {
                return if map.is_atomic {
                    Fields::root()
                } else {
                    Fields::default()
                };
            };
            let parts = entries.iter().map(|(name, value)| {
                let field = map.field(name);
                let mut fields = field_set(field.unwrap_or(map.others()), value);
                let is_empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
                if is_empty || field.is_none() {
                    fields.insert_root();
                }
                (Element::Field(name.as_str().into()), fields)
            });
            Fields::of_parts(parts.collect())
        }
        Atom { scalar: Some(_), .. } => Fields::root(),
        Atom { list: Some(list), .. } if list.is_atomic() => Fields::root(),
        Atom { list: Some(list), .. } => set_of_items(&list, value),
        Atom { .. } => Fields::default(),
    }
}

/// Items that share an element are in the set as one, without what is in them.
fn set_of_items(list: &ListType<'_>, value: &Value) -> Fields {
    let mut items: Vec<(Element, &Value)> = elements(list, value);
    let is_sorted = items.is_sorted_by(|(a, _), (b, _)| a < b);
    if !is_sorted {
        items.sort_by(|(a, _), (b, _)| a.cmp(b));
    }
    let repeats = |nth: usize, items: &[(Element, &Value)]| {
        let (element, _) = &items[nth];
        let before = nth
            .checked_sub(1)
            .is_some_and(|before| items[before].0 == *element);
        before || items.get(nth + 1).is_some_and(|(after, _)| after == element)
    };
    let repeated: Vec<bool> = (0..items.len()).map(|nth| repeats(nth, &items)).collect();
    let parts = items
        .into_iter()
        .zip(repeated)
        .map(|((element, item), repeated)| {
            let mut fields = match repeated {
                true => Fields::default(),
                false => field_set(list.items, item),
            };
            fields.insert_root();
            (element, fields)
        });
    Fields::of_parts(parts.collect())
}

/// Returns the items of a list with their elements; those that have none are left out.
fn elements<'v>(list: &ListType<'_>, value: &'v Value) -> Vec<(Element, &'v Value)> {
    let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
    items
        .iter()
        .filter_map(|item| Some((list.element(item).ok()?, item)))
        .collect()
}

/// Returns the differences of `new` from `old`.
pub(super) fn compare(of: Type<'_>, old: &Value, new: &Value) -> Changes {
    let mut comparison = Comparison::default();
    if !is_same(old, new) {
        comparison.compare(of, Some(old), Some(new), 0);
    }
    comparison.changes()
}

/// Differences at one path, while its parts are compared.
#[derive(Default)]
struct Comparison {
    written: Vec<(Element, Fields)>,
    removed: Vec<(Element, Fields)>,
    is_written: bool,
    is_removed: bool,
}

impl Comparison {
    fn changes(self) -> Changes {
        let fields = |parts: Vec<(Element, Fields)>, is_member| {
            let mut fields = Fields::of_parts(parts);
            if is_member {
                fields.insert_root();
            }
            fields
        };
        Changes {
            written: fields(self.written, self.is_written),
            removed: fields(self.removed, self.is_removed),
        }
    }

    fn compare(&mut self, of: Type<'_>, old: Option<&Value>, new: Option<&Value>, level: usize) {
        let atom = of.atom_for(new.or(old));
        if old.is_some() && new.is_some() {
            let of_old = of.atom_for(old);
            if !of_old.is_like(&atom) {
                self.by(&of_old, old, new, level);
            }
        }
        let is_leaf = self.by(&atom, old, new, level);
        if !is_leaf {
            self.is_written |= old.is_none();
            self.is_removed |= new.is_none();
        }
    }

    /// Compares as the first type of `atom`. Returns whether the values are compared as a whole.
    fn by(&mut self, atom: &Atom<'_>, old: Option<&Value>, new: Option<&Value>, level: usize) -> bool {
        match atom {
            Atom { map: Some(map), .. } => {
                let (before, after) = (old.and_then(Value::as_object), new.and_then(Value::as_object));
                let is_empty = before.is_none_or(Map::is_empty) && after.is_none_or(Map::is_empty);
                if map.is_atomic || is_empty {
                    self.whole(old, new);
                    return true;
                }
                self.entries(map, (before, after), level);
                false
            }
            Atom { scalar: Some(_), .. } => {
                self.whole(old, new);
                true
            }
            Atom { list: Some(list), .. } => {
                let (before, after) = (old.and_then(Value::as_array), new.and_then(Value::as_array));
                let is_empty = before.is_none_or(Vec::is_empty) && after.is_none_or(Vec::is_empty);
                if list.is_atomic() || is_empty {
                    self.whole(old, new);
                    return true;
                }
                self.items(list, (old, new), level);
                false
            }
            Atom { .. } => true,
        }
    }

    fn whole(&mut self, old: Option<&Value>, new: Option<&Value>) {
        match (old, new) {
            (None, _) => self.is_written = true,
            (Some(_), None) => self.is_removed = true,
            (Some(old), Some(new)) => self.is_written |= !same(old, new),
        }
    }

    fn entries(&mut self, map: &MapType<'_>, (old, new): (Option<&Entries>, Option<&Entries>), level: usize) {
        for (name, value) in old.into_iter().flatten() {
            let after = new.and_then(|new| new.get(name));
            if !after.is_some_and(|after| is_same(after, value)) || level >= LEVELS_COMPARED_WHOLE {
                self.part(map.entry(name), (Some(value), after), level, || {
                    Element::Field(name.as_str().into())
                });
            }
        }
        for (name, value) in new.into_iter().flatten() {
            if !old.is_some_and(|old| old.contains_key(name)) {
                self.part(map.entry(name), (None, Some(value)), level, || {
                    Element::Field(name.as_str().into())
                });
            }
        }
    }

    fn part(
        &mut self,
        of: Type<'_>,
        (old, new): (Option<&Value>, Option<&Value>),
        level: usize,
        element: impl FnOnce() -> Element,
    ) {
        let mut below = Self::default();
        below.compare(of, old, new, level + 1);
        let Changes { written, removed } = below.changes();
        match (written.is_empty(), removed.is_empty()) {
            (true, true) => {}
            (false, true) => self.written.push((element(), written)),
            (true, false) => self.removed.push((element(), removed)),
            (false, false) => {
                let element = element();
                self.written.push((element.clone(), written));
                self.removed.push((element, removed));
            }
        }
    }

    /// Items that share an element are compared as one.
    fn items(&mut self, list: &ListType<'_>, (old, new): (Option<&Value>, Option<&Value>), level: usize) {
        type Sides<'v> = (Vec<&'v Value>, Vec<&'v Value>);
        let mut by_element: BTreeMap<Element, Sides<'_>> = BTreeMap::new();
        for (element, item) in old.map(|old| elements(list, old)).into_iter().flatten() {
            by_element.entry(element).or_default().0.push(item);
        }
        for (element, item) in new.map(|new| elements(list, new)).into_iter().flatten() {
            by_element.entry(element).or_default().1.push(item);
        }
        for (element, (old, new)) in by_element {
            match (old.as_slice(), new.as_slice()) {
                ([] | [_], [] | [_]) => {
                    let (old, new) = (old.first().copied(), new.first().copied());
                    if level >= LEVELS_COMPARED_WHOLE || old != new {
                        self.part(list.items, (old, new), level, || element);
                    }
                }
                ([_, _, ..], [_, _, ..]) => {
                    let equal =
                        old.len() == new.len() && old.iter().zip(&new).all(|(old, new)| same(old, new));
                    if !equal {
                        self.written.push((element, Fields::root()));
                    }
                }
                (_, [] | [_]) => {
                    if let Some(new) = new.first() {
                        self.part(list.items, (None, Some(new)), level, || element.clone());
                    }
                    self.removed.push((element, Fields::root()));
                }
                (_, _) => {
                    if let Some(old) = old.first() {
                        self.part(list.items, (Some(old), None), level, || element.clone());
                    }
                    self.written.push((element, Fields::root()));
                }
            }
        }
    }
}

/// Merges `config` into `live`. Nothing is removed, and what both have is as in `config`.
pub(super) fn merge(of: Type<'_>, live: &Value, config: &Value) -> Value {
    match of.atom_for(Some(config)) {
        Atom { map: Some(map), .. } if !map.is_atomic => {
            let nothing = Map::new();
            let (there, wanted) = (live.as_object(), config.as_object().unwrap_or(&nothing));
            let Some(there) = there.filter(|there| !(there.is_empty() && wanted.is_empty())) else {
                return config.clone();
            };
            let mut merged = there.clone();
            for (name, value) in wanted {
                let value = match there.get(name) {
                    Some(there) => merge(map.entry(name), there, value),
                    None => value.clone(),
                };
                merged.insert(name.clone(), value);
            }
            Value::Object(merged)
        }
        Atom {
            map: None,
            scalar: None,
            list: Some(list),
        } if !list.is_atomic() => match (live, config) {
            (Value::Array(there), Value::Null) if !there.is_empty() => live.clone(),
            (Value::Array(there), Value::Array(wanted)) if !(there.is_empty() && wanted.is_empty()) => {
                Value::Array(merge_items(&list, live, config))
            }
            (_, _) => config.clone(),
        },
        Atom { .. } => config.clone(),
    }
}

/// Merges items in the order of `config`; an item only in `live` keeps its place before the item that follows it there.
fn merge_items(list: &ListType<'_>, live: &Value, config: &Value) -> Vec<Value> {
    let (there, wanted) = (elements(list, live), elements(list, config));
    let mut observed: BTreeMap<&Element, Option<&Value>> = BTreeMap::new();
    for (element, item) in &there {
        // Repeated items are not merged with a wanted one.
        observed
            .entry(element)
            .and_modify(|known| *known = None)
            .or_insert(Some(item));
    }
    let configured: BTreeSet<&Element> = wanted.iter().map(|(element, _)| element).collect();
    let merged_item = |element: &Element, item: &Value| match observed.get(element) {
        Some(Some(there)) => merge(list.items, there, item),
        Some(None) | None => item.clone(),
    };
    let mut shared = wanted
        .iter()
        .map(|(element, _)| element)
        .filter(|element| observed.contains_key(element));
    let mut next_shared = shared.next();
    let mut out = Vec::with_capacity(there.len().max(wanted.len()));
    let mut taken: BTreeSet<&Element> = BTreeSet::new();
    let (mut left, mut right) = (0, 0);
    while left < there.len() || right < wanted.len() {
        if let (Some((own, _)), Some((element, item))) = (there.get(left), wanted.get(right)) {
            if own == element {
                taken.insert(element);
                out.push(merged_item(element, item));
                (left, right) = (left + 1, right + 1);
                next_shared = shared.next();
                continue;
            }
            if configured.contains(own) && next_shared.is_some_and(|next| next != own) {
                left += 1;
                continue;
            }
        }
        if let Some((own, item)) = there.get(left) {
            if !configured.contains(own) {
                out.push((*item).clone());
                left += 1;
                continue;
            }
            if taken.contains(own) {
                left += 1;
            }
        }
        if let Some((element, item)) = wanted.get(right) {
            taken.insert(element);
            out.push(merged_item(element, item));
            right += 1;
            if next_shared.is_some_and(|next| next == element) {
                next_shared = shared.next();
            }
        }
    }
    out
}

/// Removes the members of `fields` from a value. A map or list that loses all its parts is null; so is one that is atomic.
pub(super) fn remove(of: Type<'_>, value: Value, fields: &Fields) -> Value {
    match (of.atom_for(Some(&value)), value) {
        (Atom { map: Some(map), .. }, Value::Object(entries)) if !map.is_atomic => {
            let left = entries.into_iter().filter_map(|(name, value)| {
                let Some(below) = fields.below_field(&name) else {
                    return Some((name, value));
                };
                if below.is_member() {
                    return None;
                }
                let value = remove(map.entry(&name), value, below);
                Some((name, value))
            });
            let left: Map<String, Value> = left.collect();
            Some(left).filter(|left| !left.is_empty()).into()
        }
        (Atom { map: Some(_), .. }, _) => Value::Null,
        (Atom { scalar: Some(_), .. }, value) => value,
        (Atom { list: Some(list), .. }, Value::Array(items)) if !list.is_atomic() => {
            let left = items.into_iter().filter_map(|item| {
                let element = list.element(&item).ok();
                match element.and_then(|element| fields.below(&element)) {
                    None => Some(item),
                    Some(below) if below.is_member() => None,
                    Some(below) => Some(remove(list.items, item, below)),
                }
            });
            let left: Vec<Value> = left.collect();
            Some(left).filter(|left| !left.is_empty()).into()
        }
        (Atom { .. }, _) => Value::Null,
    }
}

/// Returns the set with the listed fields above its members, which a set of leaves does not have.
pub(super) fn with_listed(of: Type<'_>, fields: &Fields) -> Fields {
    let atom = of.atom();
    let parts = fields.children().iter().map(|(element, below)| {
        let (of, is_listed) = match (element, &atom) {
            (Element::Field(name), Atom { map: Some(map), .. }) => {
                (map.entry(name), map.field(name).is_some())
            }
            (Element::Key(_), Atom { list: Some(list), .. }) => (list.items, false),
            (_, _) => (Type::Undeclared, false),
        };
        let mut named = with_listed(of, below);
        if is_listed || below.is_member() {
            named.insert_root();
        }
        (element.clone(), named)
    });
    Fields::of_parts(parts.collect())
}

/// Returns the set as it is under the current schema: of what has become atomic, only the whole is a member; `None`: it is
/// the same.
pub(super) fn reconciled(of: Type<'_>, fields: &Fields) -> Option<Fields> {
    let is_whole = fields.children().is_empty();
    let atom = of.atom();
    match &atom {
        Atom { map: Some(map), .. } if map.is_deduced() || is_whole => return None,
        Atom { map: Some(map), .. } if map.is_atomic => return Some(Fields::root()),
        Atom { map: Some(_), .. } => {}
        Atom { scalar: Some(_), .. } => return None,
        Atom { list: Some(_), .. } if is_whole => return None,
        Atom { list: Some(list), .. } if list.is_atomic() => return Some(Fields::root()),
        Atom { list: Some(_), .. } => {}
        Atom { .. } => return None,
    }
    let below = |element: &Element| match (&atom, element) {
        (Atom { map: Some(map), .. }, Element::Field(name)) => Some(map.entry(name)),
        (Atom { map: Some(map), .. }, _) => Some(map.others()),
        (Atom { list: Some(list), .. }, _) => Some(list.items),
        (Atom { .. }, _) => None,
    };
    let changed = fields.children().iter().map(|(element, fields)| {
        let of = below(element).filter(|of| !matches!(of, Type::Undeclared))?;
        reconciled(of, fields)
    });
    let changed: Vec<Option<Fields>> = changed.collect();
    if changed.iter().all(Option::is_none) {
        return None;
    }
    let parts = fields.children().iter().zip(changed);
    let parts = parts
        .map(|((element, fields), changed)| (element.clone(), changed.unwrap_or_else(|| fields.clone())));
    let mut whole = Fields::of_parts(parts.collect());
    if fields.is_member() {
        whole.insert_root();
    }
    Some(whole)
}
