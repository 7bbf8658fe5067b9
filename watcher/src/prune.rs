//! Selects the fields that are dropped while objects are decoded.
//!
//! Data only; `decode` applies it.

use std::collections::BTreeMap;

/// A set of fields to drop.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prune {
    root: Node,
}

/// What to drop at and below one field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Node {
    /// Drop this field.
    is_dropped: bool,
    /// If set, drop all fields but these.
    only: Option<Vec<String>>,
    fields: BTreeMap<String, Node>,
    /// Node for each item of a list.
    items: Option<Box<Node>>,
}

impl Prune {
    /// Drops nothing.
    pub fn nothing() -> Self {
        Self::default()
    }

    /// Drops the field at this path: names separated by dots, `[]` for each item of a list, and names that contain
    /// dots in brackets and quotes.
    ///
    /// ```
    /// # use watcher::decode::Prune;
    /// let prune = Prune::nothing()
    ///     .field("metadata.managedFields")
    ///     .field("spec.containers[].env")
    ///     .field(r#"metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]"#);
    /// assert!(!prune.is_empty());
    /// ```
    #[must_use]
    pub fn field(mut self, path: &str) -> Self {
        let mut node = &mut self.root;
        for part in (Parts { rest: path }) {
            node = match part {
                Part::Field(name) => node.fields.entry(name.to_owned()).or_default(),
                Part::Items => node.items.get_or_insert_default(),
            };
        }
        node.is_dropped = true;
        self
    }

    /// Drops all top-level fields but these.
    #[cfg(feature = "client")]
    #[must_use]
    pub(crate) fn all_but(mut self, fields: &[&str]) -> Self {
        self.root.only = Some(fields.iter().map(|&field| field.to_owned()).collect());
        self
    }

    /// Returns true if nothing is dropped.
    pub fn is_empty(&self) -> bool {
        self.root == Node::default()
    }

    pub(crate) fn root(&self) -> &Node {
        &self.root
    }
}

enum Part<'a> {
    Field(&'a str),
    Items,
}

struct Parts<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Parts<'a> {
    type Item = Part<'a>;

    fn next(&mut self) -> Option<Part<'a>> {
        let rest = self.rest.strip_prefix('.').unwrap_or(self.rest);
        if rest.is_empty() {
            return None;
        }
        if let Some(rest) = rest.strip_prefix("[]") {
            self.rest = rest;
            return Some(Part::Items);
        }
        if let Some((name, rest)) = rest.strip_prefix("[\"").and_then(|rest| rest.split_once("\"]")) {
            self.rest = rest;
            return Some(Part::Field(name));
        }
        let end = rest.find(['.', '[']).filter(|end| *end > 0).unwrap_or(rest.len());
        self.rest = &rest[end..];
        Some(Part::Field(&rest[..end]))
    }
}

impl Node {
    /// Returns true if nothing is dropped below this field.
    pub(crate) fn is_leaf(&self) -> bool {
        self.only.is_none() && self.fields.is_empty() && self.items.is_none()
    }

    /// Returns how many fields are dropped if each occurs at most once in an object; `None` if list items or all-but
    /// lists are involved.
    pub(crate) fn dropped_once(&self) -> Option<usize> {
        if self.is_dropped {
            return Some(1);
        }
        if self.only.is_some() || self.items.is_some() {
            return None;
        }
        self.fields.values().map(Self::dropped_once).sum()
    }

    pub(crate) fn keeps(&self, field: &str) -> bool {
        let is_named = self
            .only
            .as_ref()
            .is_none_or(|only| only.iter().any(|name| name == field));
        is_named && self.fields.get(field).is_none_or(|node| !node.is_dropped)
    }

    pub(crate) fn below(&self, field: &str) -> Option<&Self> {
        self.fields.get(field)
    }

    pub(crate) fn items(&self) -> Option<&Self> {
        self.items.as_deref()
    }
}
