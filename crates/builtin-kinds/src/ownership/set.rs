//! A set of fields, as a tree: what owners own, and what a write changes. It must not know objects nor schemas.
//!
//! An element of a path is written as in FieldsV1: `f:name`, `k:{"name":"c"}` for an item by its keys, `v:"x"` for an item
//! by itself.
//!
//! Source: structured-merge-diff `fieldpath`.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde_json::{Map, Value};

/// From the top of the object.
pub(super) type Path = Vec<String>;

/// A set of fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Fields {
    /// Is this very place in it?
    itself: bool,
    /// What is in it further down, by element; none of them is empty.
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
    /// One place, and nothing below it.
    pub(super) fn place() -> Self {
        Self {
            itself: true,
            below: BTreeMap::new(),
        }
    }

    /// From FieldsV1.
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

    /// As FieldsV1.
    pub(super) fn written(self) -> Value {
        // What has nothing below it can only be there by itself.
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

    /// In order: the places on one level before what is below any of them.
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

    /// This very place comes in.
    pub(super) fn put_itself(&mut self) {
        self.itself = true;
    }

    /// What is below `element` comes in.
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

    /// Drops what is below the elements that do not count.
    pub(super) fn keep(&mut self, mut counts: impl FnMut(&str) -> bool) {
        self.below.retain(|element, _| counts(element));
    }

    /// The same one element further down, of which the place itself goes.
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

    /// Is the path in it, or anything below it?
    pub(super) fn has_below(&self, path: &[String]) -> bool {
        match path.split_first() {
            None => true,
            Some((element, rest)) => self
                .below
                .get(element)
                .is_some_and(|fields| fields.has_below(rest)),
        }
    }

    /// Is this very place in it?
    pub(super) fn has_itself(&self) -> bool {
        self.itself
    }

    /// What is in it below an element.
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
