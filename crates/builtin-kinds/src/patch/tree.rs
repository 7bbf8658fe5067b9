//! Document during the application of a JSON Patch: values are split into nodes only along the paths of operations. Moving a
//! value costs nothing, and inserting into a long list does not move all items after it.
//!
//! It must not know operations.
//!
//! Source: `lazyNode` of `evanphx/json-patch` v4.

use std::collections::BTreeMap;

use apimachinery::depth::is_deeper_than;
use serde_json::Value;

/// Index of a node in [`Tree::nodes`].
pub(super) type Id = usize;

/// A document as a tree of nodes.
#[derive(Debug)]
pub(super) struct Tree {
    /// Removed nodes are dropped together with the tree, so that no drop recurses.
    nodes: Vec<Node>,
}

#[derive(Debug)]
enum Node {
    /// Not split.
    Whole(Value),
    /// Sorted, as Go encodes the nodes it has decoded.
    Object(BTreeMap<String, Id>),
    List(Chunks),
}

/// Operand of an operation: a map or a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Container {
    Object(Id),
    List(Id),
}

impl Tree {
    pub(super) fn new() -> Self {
        Self { nodes: Vec::new() }
    }

    pub(super) fn put(&mut self, value: Value) -> Id {
        self.nodes.push(Node::Whole(value));
        self.nodes.len() - 1
    }

    /// Returns the node as a map or list, splitting it if necessary; `None` if it is neither.
    pub(super) fn container(&mut self, id: Id) -> Option<Container> {
        let value = match &mut self.nodes[id] {
            Node::Object(_) => return Some(Container::Object(id)),
            Node::List(_) => return Some(Container::List(id)),
            Node::Whole(value) => value.take(),
        };
        match value {
            Value::Object(fields) => {
                let fields = fields.into_iter().map(|(name, value)| (name, self.put(value)));
                let fields = fields.collect();
                self.nodes[id] = Node::Object(fields);
                Some(Container::Object(id))
            }
            Value::Array(items) => {
                let items = items.into_iter().map(|item| self.put(item)).collect();
                self.nodes[id] = Node::List(Chunks::new(items));
                Some(Container::List(id))
            }
            scalar @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
                self.nodes[id] = Node::Whole(scalar);
                None
            }
        }
    }

    pub(super) fn is_null(&self, id: Id) -> bool {
        matches!(&self.nodes[id], Node::Whole(Value::Null))
    }

    pub(super) fn fields(&mut self, id: Id) -> Option<&mut BTreeMap<String, Id>> {
        match &mut self.nodes[id] {
            Node::Object(fields) => Some(fields),
            Node::Whole(_) | Node::List(_) => None,
        }
    }

    pub(super) fn items(&mut self, id: Id) -> Option<&mut Chunks> {
        match &mut self.nodes[id] {
            Node::List(items) => Some(items),
            Node::Whole(_) | Node::Object(_) => None,
        }
    }

    /// Returns a copy of a node as a value; `None` if it is deeper than `levels`.
    pub(super) fn copied(&self, id: Id, levels: usize) -> Option<Value> {
        match &self.nodes[id] {
            Node::Whole(value) => (!is_deeper_than(value, levels)).then(|| value.clone()),
            Node::Object(fields) => {
                let levels = levels.checked_sub(1)?;
                let fields = fields
                    .iter()
                    .map(|(name, id)| Some((name.clone(), self.copied(*id, levels)?)));
                fields.collect::<Option<_>>().map(Value::Object)
            }
            Node::List(items) => {
                let levels = levels.checked_sub(1)?;
                let items = items.iter().map(|id| self.copied(id, levels));
                items.collect::<Option<_>>().map(Value::Array)
            }
        }
    }

    /// Returns the document as a value; `None` if it is deeper than `levels`.
    pub(super) fn into_value(mut self, id: Id, levels: usize) -> Option<Value> {
        self.taken(id, levels)
    }

    fn taken(&mut self, id: Id, levels: usize) -> Option<Value> {
        match std::mem::replace(&mut self.nodes[id], Node::Whole(Value::Null)) {
            Node::Whole(value) => (!is_deeper_than(&value, levels)).then_some(value),
            Node::Object(fields) => {
                let levels = levels.checked_sub(1)?;
                let fields = fields
                    .into_iter()
                    .map(|(name, id)| Some((name, self.taken(id, levels)?)));
                fields.collect::<Option<_>>().map(Value::Object)
            }
            Node::List(items) => {
                let levels = levels.checked_sub(1)?;
                let items = items.iter().map(|id| self.taken(id, levels));
                items.collect::<Option<_>>().map(Value::Array)
            }
        }
    }

    /// Returns whether the node equals the value, at the cost of reading the value.
    pub(super) fn equals(&self, id: Id, value: &Value) -> bool {
        match (&self.nodes[id], value) {
            (Node::Whole(whole), value) => whole == value,
            (Node::Object(fields), Value::Object(others)) => {
                let same = |(name, id): (&String, &Id)| {
                    others.get(name).is_some_and(|other| self.equals(*id, other))
                };
                fields.len() == others.len() && fields.iter().all(same)
            }
            (Node::List(items), Value::Array(others)) => {
                let same = |(id, other): (Id, &Value)| self.equals(id, other);
                items.len() == others.len() && items.iter().zip(others).all(same)
            }
            (Node::Object(_) | Node::List(_), _) => false,
        }
    }
}

/// List in chunks.
#[derive(Debug)]
pub(super) struct Chunks {
    chunks: Vec<Vec<Id>>,
    length: usize,
}

/// Half of the length at which a chunk is split.
const CHUNK: usize = 512;

impl Chunks {
    fn new(items: Vec<Id>) -> Self {
        Self {
            length: items.len(),
            chunks: items.chunks(CHUNK).map(<[Id]>::to_vec).collect(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.length
    }

    fn iter(&self) -> impl Iterator<Item = Id> + '_ {
        self.chunks.iter().flatten().copied()
    }

    /// Returns the chunk of an item, and the index in the chunk.
    fn find(&self, mut index: usize) -> Option<(usize, usize)> {
        for (nth, chunk) in self.chunks.iter().enumerate() {
            if index < chunk.len() {
                return Some((nth, index));
            }
            index -= chunk.len();
        }
        None
    }

    pub(super) fn get(&self, index: usize) -> Option<Id> {
        self.find(index).map(|(chunk, at)| self.chunks[chunk][at])
    }

    pub(super) fn set(&mut self, index: usize, id: Id) {
        if let Some((chunk, at)) = self.find(index) {
            self.chunks[chunk][at] = id;
        }
    }

    /// Inserts an item before the one at `index`; a larger index appends.
    pub(super) fn insert(&mut self, index: usize, id: Id) {
        if self.chunks.is_empty() {
            self.chunks.push(Vec::new());
        }
        let last = self.chunks.len() - 1;
        let (chunk, at) = self.find(index).unwrap_or((last, self.chunks[last].len()));
        self.chunks[chunk].insert(at, id);
        self.length += 1;
        if self.chunks[chunk].len() >= 2 * CHUNK {
            let behind = self.chunks[chunk].split_off(CHUNK);
            self.chunks.insert(chunk + 1, behind);
        }
    }

    pub(super) fn remove(&mut self, index: usize) {
        if let Some((chunk, at)) = self.find(index) {
            self.chunks[chunk].remove(at);
            self.length -= 1;
            if self.chunks[chunk].is_empty() {
                self.chunks.remove(chunk);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_equal_the_original_list() {
        let mut list: Vec<Id> = (0..3000).collect();
        let mut chunks = Chunks::new(list.clone());
        for turn in 0..4000 {
            let at = turn * 7919 % (list.len() + 1);
            if turn % 3 == 0 && at < list.len() {
                list.remove(at);
                chunks.remove(at);
            } else {
                list.insert(at, turn);
                chunks.insert(at, turn);
            }
        }
        chunks.set(5, 77);
        list[5] = 77;
        assert_eq!(chunks.iter().collect::<Vec<_>>(), list);
        assert_eq!((chunks.len(), chunks.get(list.len())), (list.len(), None));
        assert!(chunks.chunks.iter().all(|chunk| chunk.len() < 2 * CHUNK));
    }
}
