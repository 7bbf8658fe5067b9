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
    itself: bool,
    /// Members below the root, by element; none of the sets is empty.
    below: BTreeMap<String, Fields>,
}

impl FromIterator<Path> for Fields {
    fn from_iter<I: IntoIterator<Item = Path>>(paths: I) -> Self {
        let mut fields = Self::default();
        for path in paths {
            let single = path.into_iter().rev().fold(Self::place(), |below, element| {
                let mut single = Self::default();
                single.put(element, below);
                single
            });
            fields.add(single);
        }
        fields
    }
}

impl Fields {
    /// Returns the set with only its root.
    pub(super) fn place() -> Self {
        Self {
            itself: true,
            below: BTreeMap::new(),
        }
    }

    /// Decodes FieldsV1.
    pub(super) fn read(written: &Value) -> Self {
        let mut fields = Self::default();
        for (element, written) in written.as_object().into_iter().flatten() {
            if element == "." {
                continue;
            }
            let mut below = Self::read(written);
            below.itself = below.is_empty() || written.get(".").is_some();
            fields.put(element.clone(), below);
        }
        fields
    }

    /// Encodes as FieldsV1.
    pub(super) fn written(self) -> Value {
        // A set without members below its root has only the root, which needs no `.`.
        let said = self.itself && !self.below.is_empty();
        let mut tree = Map::with_capacity(self.below.len() + usize::from(said));
        if said {
            tree.insert(".".to_owned(), Value::Object(Map::new()));
        }
        for (element, fields) in self.below {
            tree.insert(element, fields.written());
        }
        Value::Object(tree)
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.itself && self.below.is_empty()
    }

    /// Returns all paths: those of one level before those below it.
    pub(super) fn paths(&self) -> Vec<Path> {
        let mut paths: Vec<Path> = self.itself.then(Vec::new).into_iter().collect();
        self.collect_paths(&mut Vec::new(), &mut paths);
        paths
    }

    fn collect_paths(&self, path: &mut Path, paths: &mut Vec<Path>) {
        for (element, _) in self.below.iter().filter(|(_, fields)| fields.itself) {
            paths.push(path.iter().chain([element]).cloned().collect());
        }
        for (element, fields) in &self.below {
            path.push(element.clone());
            fields.collect_paths(path, paths);
            path.pop();
        }
    }

    /// Adds the root.
    pub(super) fn put_itself(&mut self) {
        self.itself = true;
    }

    /// Adds the members of `fields` below `element`.
    pub(super) fn put(&mut self, element: String, fields: Self) {
        if fields.is_empty() {
            return;
        }
        match self.below.entry(element) {
            Entry::Occupied(mut below) => below.get_mut().add(fields),
            Entry::Vacant(below) => drop(below.insert(fields)),
        }
    }

    pub(super) fn add(&mut self, others: Self) {
        self.itself |= others.itself;
        for (element, fields) in others.below {
            self.put(element, fields);
        }
    }

    /// Removes the members below all elements that `counts` rejects.
    pub(super) fn keep(&mut self, mut counts: impl FnMut(&str) -> bool) {
        self.below.retain(|element, _| counts(element));
    }

    /// Does the same one level below `element`, and removes the path of that element itself.
    pub(super) fn keep_below(&mut self, element: &str, counts: impl FnMut(&str) -> bool) {
        if let Some(fields) = self.below.get_mut(element) {
            fields.itself = false;
            fields.keep(counts);
            if fields.is_empty() {
                self.below.remove(element);
            }
        }
    }

    pub(super) fn take_away(&mut self, others: &Self) {
        self.itself &= !others.itself;
        self.below.retain(|element, fields| {
            if let Some(others) = others.below.get(element) {
                fields.take_away(others);
            }
            !fields.is_empty()
        });
    }

    pub(super) fn common(&self, others: &Self) -> Self {
        let mut common = Self {
            itself: self.itself && others.itself,
            below: BTreeMap::new(),
        };
        for (element, fields) in &self.below {
            if let Some(others) = others.below.get(element) {
                common.put(element.clone(), fields.common(others));
            }
        }
        common
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
    pub(super) fn has_itself(&self) -> bool {
        self.itself
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
    fn a_set_is_read_as_it_is_written() {
        let set = fields(&["f:b/f:d", "f:a", "f:b", "f:b/f:c/v:1", "f:e/f:f"]);
        let written = json!({
            "f:a": {},
            "f:b": {".": {}, "f:c": {"v:1": {}}, "f:d": {}},
            "f:e": {"f:f": {}},
        });
        assert_eq!(Fields::read(&written), set);
        assert_eq!(set.paths().into_iter().collect::<Fields>(), set);
        assert_eq!(set.written().to_string(), written.to_string());
    }

    #[test]
    fn what_is_taken_away_leaves_nothing_empty_behind() {
        let set = fields(&["f:a", "f:a/f:b", "f:c/f:d/f:e"]);
        let mut rest = set.clone();
        rest.take_away(&fields(&["f:a", "f:c/f:d/f:e", "f:x"]));
        assert_eq!(rest, fields(&["f:a/f:b"]));
        assert_eq!(set.common(&fields(&["f:a/f:b", "f:c/f:d"])), fields(&["f:a/f:b"]));
        rest.take_away(&set);
        assert!(rest.is_empty());
    }

    #[test]
    fn a_path_that_only_leads_to_others_is_in_it_by_them() {
        let set = fields(&["f:a/f:b/f:c"]);
        let has = |path: &[&str]| {
            let path: Vec<String> = path.iter().map(|element| (*element).to_owned()).collect();
            set.has_below(&path)
        };
        assert!(has(&["f:a"]) && has(&["f:a", "f:b", "f:c"]));
        assert!(!has(&["f:b"]) && !has(&["f:a", "f:b", "f:c", "f:d"]));
    }
}
