//! Set of field paths, as a tree. It must not know objects or schemas.
//!
//! Path elements are written as in FieldsV1: `f:name`, `k:{"name":"c"}` for an item by its keys, `v:"x"` for an item by its
//! value.
//!
//! Source: structured-merge-diff `fieldpath`.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde_json::{Map, Value};

/// Path from the root of the object.
pub(super) type Path = Vec<String>;

/// A set of field paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Fields {
    /// Whether the root of this set is a member.
    has_root: bool,
    /// Members below the root, by element; none of the sets is empty.
    below: BTreeMap<String, Fields>,
}

impl FromIterator<Path> for Fields {
    fn from_iter<I: IntoIterator<Item = Path>>(paths: I) -> Self {
        let mut fields = Self::default();
        for path in paths {
            let single = path.into_iter().rev().fold(Self::root(), |below, element| {
                let mut single = Self::default();
                single.insert(element, below);
                single
            });
            fields.add(single);
        }
        fields
    }
}

impl Fields {
    /// Returns the set with only its root.
    pub(super) fn root() -> Self {
        Self {
            has_root: true,
            below: BTreeMap::new(),
        }
    }

    /// Decodes FieldsV1.
    pub(super) fn decode(written: &Value) -> Self {
        let mut fields = Self::default();
        for (element, written) in written.as_object().into_iter().flatten() {
            if element == "." {
                continue;
            }
            let mut below = Self::decode(written);
            below.has_root = below.is_empty() || written.get(".").is_some();
            fields.insert(element.clone(), below);
        }
        fields
    }

    /// Encodes as FieldsV1.
    pub(super) fn encode(self) -> Value {
        // A set without members below its root has only the root, which needs no `.`.
        let has_marker = self.has_root && !self.below.is_empty();
        let mut tree = Map::with_capacity(self.below.len() + usize::from(has_marker));
        if has_marker {
            tree.insert(".".to_owned(), Value::Object(Map::new()));
        }
        for (element, fields) in self.below {
            tree.insert(element, fields.encode());
        }
        Value::Object(tree)
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.has_root && self.below.is_empty()
    }

    /// Returns all paths: those of one level before those below it.
    pub(super) fn paths(&self) -> Vec<Path> {
        let mut paths: Vec<Path> = self.has_root.then(Vec::new).into_iter().collect();
        self.collect_paths(&mut Vec::new(), &mut paths);
        paths
    }

    fn collect_paths(&self, path: &mut Path, paths: &mut Vec<Path>) {
        for (element, _) in self.below.iter().filter(|(_, fields)| fields.has_root) {
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
        self.has_root = true;
    }

    /// Adds the members of `fields` below `element`.
    pub(super) fn insert(&mut self, element: String, fields: Self) {
        if fields.is_empty() {
            return;
        }
        match self.below.entry(element) {
            Entry::Occupied(mut below) => below.get_mut().add(fields),
            Entry::Vacant(below) => drop(below.insert(fields)),
        }
    }

    pub(super) fn add(&mut self, others: Self) {
        self.has_root |= others.has_root;
        for (element, fields) in others.below {
            self.insert(element, fields);
        }
    }

    /// Removes the members below all elements that `predicate` rejects.
    pub(super) fn retain(&mut self, mut predicate: impl FnMut(&str) -> bool) {
        self.below.retain(|element, _| predicate(element));
    }

    /// Does the same one level below `element`, and removes the path of that element itself.
    pub(super) fn retain_below(&mut self, element: &str, predicate: impl FnMut(&str) -> bool) {
        if let Some(fields) = self.below.get_mut(element) {
            fields.has_root = false;
            fields.retain(predicate);
            if fields.is_empty() {
                self.below.remove(element);
            }
        }
    }

    pub(super) fn subtract(&mut self, others: &Self) {
        self.has_root &= !others.has_root;
        self.below.retain(|element, fields| {
            if let Some(others) = others.below.get(element) {
                fields.subtract(others);
            }
            !fields.is_empty()
        });
    }

    pub(super) fn intersection(&self, others: &Self) -> Self {
        let mut intersection = Self {
            has_root: self.has_root && others.has_root,
            below: BTreeMap::new(),
        };
        for (element, fields) in &self.below {
            if let Some(others) = others.below.get(element) {
                intersection.insert(element.clone(), fields.intersection(others));
            }
        }
        intersection
    }

    /// Returns whether the path or one below it is a member.
    pub(super) fn has_below(&self, path: &[String]) -> bool {
        match path.split_first() {
            None => true,
            Some((element, rest)) => self
                .below
                .get(element)
                .is_some_and(|fields| fields.has_below(rest)),
        }
    }

    /// Returns whether the root is a member.
    pub(super) fn has_root(&self) -> bool {
        self.has_root
    }

    /// Returns the members below an element.
    pub(super) fn below(&self, element: &str) -> Option<&Self> {
        self.below.get(element)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Fields;

    fn fields(paths: &[&str]) -> Fields {
        let path = |path: &&str| path.split('/').map(str::to_owned).collect();
        paths.iter().map(path).collect()
    }

    #[test]
    fn sets_survive_encoding_and_decoding() {
        let set = fields(&["f:b/f:d", "f:a", "f:b", "f:b/f:c/v:1", "f:e/f:f"]);
        let written = json!({
            "f:a": {},
            "f:b": {".": {}, "f:c": {"v:1": {}}, "f:d": {}},
            "f:e": {"f:f": {}},
        });
        assert_eq!(Fields::decode(&written), set);
        assert_eq!(set.paths().into_iter().collect::<Fields>(), set);
        assert_eq!(set.encode().to_string(), written.to_string());
    }

    #[test]
    fn subtraction_leaves_no_empty_sets() {
        let set = fields(&["f:a", "f:a/f:b", "f:c/f:d/f:e"]);
        let mut rest = set.clone();
        rest.subtract(&fields(&["f:a", "f:c/f:d/f:e", "f:x"]));
        assert_eq!(rest, fields(&["f:a/f:b"]));
        assert_eq!(
            set.intersection(&fields(&["f:a/f:b", "f:c/f:d"])),
            fields(&["f:a/f:b"])
        );
        rest.subtract(&set);
        assert!(rest.is_empty());
    }

    #[test]
    fn paths_of_members_are_not_members() {
        let set = fields(&["f:a/f:b/f:c"]);
        let has = |path: &[&str]| {
            let path: Vec<String> = path.iter().map(|element| (*element).to_owned()).collect();
            set.has_below(&path)
        };
        assert!(has(&["f:a"]) && has(&["f:a", "f:b", "f:c"]));
        assert!(!has(&["f:b"]) && !has(&["f:a", "f:b", "f:c", "f:d"]));
    }
}
