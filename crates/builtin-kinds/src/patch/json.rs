//! JSON Patch as kube-apiserver applies it, which differs from RFC 6902 in places.
//!
//! Source: `evanphx/json-patch` v4, the library of kube-apiserver; apiserver `server/config.go` for the limit of copies.

use apimachinery::depth::{DEPTH_MAX, TOO_DEEP};
use apimachinery::encode::encode_json;
use json_patch::PatchOperation;
use json_patch::jsonptr::Pointer;
use serde_json::Value;

use super::PatchError;
use super::tree::{Container, Id, Tree};

/// Maximum bytes of all copies of a patch together (`JSONPatchMaxCopyBytes`, 3 MiB).
const COPIED_BYTES_MAX: usize = 3 * 1024 * 1024;

/// Maximum depth of the result before it is decoded as its kind, which has the final limit.
const LEVELS_MAX: usize = DEPTH_MAX * 2;

/// Applies the operations in order.
///
/// # Errors
///
/// The error of the first operation that fails, or of a result above a limit.
pub(super) fn apply(object: Value, operations: &[PatchOperation]) -> Result<Value, PatchError> {
    let mut tree = Tree::new();
    let root = tree.put(object);
    let mut document = Document {
        tree,
        root,
        copied_bytes: 0,
    };
    for operation in operations {
        document.apply(operation).ok_or_else(|| {
            let message = format!("{operation} cannot be carried out");
            match operation {
                PatchOperation::Test(_) => PatchError::Test(message),
                PatchOperation::Add(_)
                | PatchOperation::Remove(_)
                | PatchOperation::Replace(_)
                | PatchOperation::Move(_)
                | PatchOperation::Copy(_) => PatchError::Other(message),
            }
        })?;
    }
    let Document { tree, root, .. } = document;
    tree.into_value(root, LEVELS_MAX)
        .ok_or_else(|| PatchError::Other(TOO_DEEP.to_owned()))
}

struct Document {
    tree: Tree,
    root: Id,
    copied_bytes: usize,
}

/// Target of a path: a container and a key in it.
struct Target {
    holder: Container,
    key: String,
}

impl Document {
    /// Applies an operation. `None`: it fails.
    fn apply(&mut self, operation: &PatchOperation) -> Option<()> {
        match operation {
            PatchOperation::Add(add) => {
                let target = self.target(&add.path)?;
                let value = self.tree.put(add.value.clone());
                self.add(&target, value)
            }
            PatchOperation::Remove(remove) => {
                let target = self.target(&remove.path)?;
                self.remove(&target)
            }
            PatchOperation::Replace(replace) => {
                if replace.path.is_root() {
                    let contained = replace.value.is_object() || replace.value.is_array();
                    self.root = self.tree.put(replace.value.clone());
                    return contained.then_some(());
                }
                let target = self.target(&replace.path)?;
                let value = self.tree.put(replace.value.clone());
                self.replace(&target, value)
            }
            PatchOperation::Move(change) => {
                let from = self.target(&change.from)?;
                let value = self.get(&from)?;
                self.remove(&from)?;
                let target = self.target(&change.path)?;
                let value = match value {
                    Some(value) => value,
                    None => self.tree.put(Value::Null),
                };
                self.add(&target, value)
            }
            PatchOperation::Copy(change) => {
                let from = self.target(&change.from)?;
                let source = self.get(&from)?;
                let target = self.target(&change.path)?;
                // A missing field of an object is null.
                let copy = source.map_or(Some(Value::Null), |id| self.tree.copied(id, LEVELS_MAX))?;
                self.copied_bytes += encode_json(&copy).len();
                if self.copied_bytes > COPIED_BYTES_MAX {
                    return None;
                }
                let copy = self.tree.put(copy);
                self.add(&target, copy)
            }
            PatchOperation::Test(test) => {
                if test.path.is_root() {
                    return self.tree.equals(self.root, &test.value).then_some(());
                }
                let target = self.target(&test.path)?;
                // A missing field of an object equals null. Controllers use such a test before they write the first finalizer
                // (kube-runtime's `finalizer`).
                let equal = match self.get(&target)? {
                    None => test.value.is_null(),
                    Some(id) => self.tree.equals(id, &test.value),
                };
                equal.then_some(())
            }
        }
    }

    fn target(&mut self, path: &Pointer) -> Option<Target> {
        let (above, key) = path.split_back()?;
        let mut holder = self.tree.container(self.root)?;
        for token in above.tokens() {
            let key = token.decoded().into_owned();
            let id = self.get(&Target { holder, key })??;
            holder = self.tree.container(id)?;
        }
        let key = key.decoded().into_owned();
        Some(Target { holder, key })
    }

    /// Returns the value at the target: `Some(None)` if an object has no such field or it is null; `None` if a list has no
    /// such item.
    fn get(&mut self, target: &Target) -> Option<Option<Id>> {
        match target.holder {
            Container::Object(id) => {
                let found = self.tree.fields(id)?.get(&target.key).copied();
                Some(found.filter(|id| !self.tree.is_null(*id)))
            }
            Container::List(id) => {
                let items = self.tree.items(id)?;
                let found = items.get(index(&target.key, items.len())?)?;
                Some(Some(found).filter(|id| !self.tree.is_null(*id)))
            }
        }
    }

    fn add(&mut self, target: &Target, value: Id) -> Option<()> {
        match target.holder {
            Container::Object(id) => {
                self.tree.fields(id)?.insert(target.key.clone(), value);
            }
            Container::List(id) => {
                let items = self.tree.items(id)?;
                // Negative indices count from the end.
                let at = match target.key.as_str() {
                    "-" => items.len(),
                    key => index(key, items.len() + 1)?,
                };
                items.insert(at, value);
            }
        }
        Some(())
    }

    /// Replaces a value; in an object a missing field is added.
    fn replace(&mut self, target: &Target, value: Id) -> Option<()> {
        match target.holder {
            Container::Object(_) => self.add(target, value),
            Container::List(id) => {
                let items = self.tree.items(id)?;
                let at = index(&target.key, items.len())?;
                items.set(at, value);
                Some(())
            }
        }
    }

    fn remove(&mut self, target: &Target) -> Option<()> {
        match target.holder {
            Container::Object(id) => self.tree.fields(id)?.remove(&target.key).map(|_| ()),
            Container::List(id) => {
                let items = self.tree.items(id)?;
                let at = index(&target.key, items.len())?;
                items.remove(at);
                Some(())
            }
        }
    }
}

/// Parses a key as index of a list of this length; negative ones count from its end.
fn index(key: &str, length: usize) -> Option<usize> {
    let index: i64 = key.parse().ok()?;
    let length = i64::try_from(length).ok()?;
    let index = if index < 0 { index + length } else { index };
    usize::try_from(index).ok().filter(|_| index < length)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::apply;

    #[rstest]
    #[case::absent_is_null(json!([{"op": "test", "path": "/metadata/finalizers", "value": null}]), true)]
    #[case::absent_is_nothing_else(json!([{"op": "test", "path": "/metadata/finalizers", "value": []}]), false)]
    #[case::what_is_there_is_not_null(json!([{"op": "test", "path": "/metadata/name", "value": null}]), false)]
    #[case::below_nothing_there_is_nothing(json!([{"op": "test", "path": "/spec/replicas", "value": null}]), false)]
    #[case::past_the_end_of_a_list(json!([{"op": "test", "path": "/items/1", "value": null}]), false)]
    #[case::what_an_operation_before_added(json!([
        {"op": "add", "path": "/metadata/finalizers", "value": ["a"]},
        {"op": "test", "path": "/metadata/finalizers", "value": null},
    ]), false)]
    #[case::what_a_replacement_put_there(json!([
        {"op": "replace", "path": "/metadata/uid", "value": "u"},
        {"op": "test", "path": "/metadata/uid", "value": "u"},
    ]), true)]
    #[case::a_replacement_below_nothing(json!([{"op": "replace", "path": "/spec/replicas", "value": 1}]), false)]
    #[case::a_replacement_past_the_end_of_a_list(json!([{"op": "replace", "path": "/items/1", "value": 1}]), false)]
    fn what_is_not_there(#[case] operations: Value, #[case] passes: bool) {
        let object = json!({"metadata": {"name": "a"}, "items": [1]});
        let operations: json_patch::Patch = serde_json::from_value(operations).unwrap();
        assert_eq!(apply(object, &operations).is_ok(), passes);
    }

    #[rstest]
    #[case::negative_indices_count_from_the_end(json!([{"op": "add", "path": "/l/-1", "value": 9}, {"op": "remove", "path": "/l/-4"}]), json!({"l": [2, 3, 9], "m": {}}))]
    #[case::replaced_in_a_list(json!([{"op": "replace", "path": "/l/1", "value": {"a": 1}}, {"op": "add", "path": "/l/1/b", "value": 2}]), json!({"l": [1, {"a": 1, "b": 2}, 3], "m": {}}))]
    #[case::moved(json!([{"op": "move", "from": "/l", "path": "/m/l"}]), json!({"m": {"l": [1, 2, 3]}}))]
    #[case::copied_and_changed(json!([{"op": "copy", "from": "/l", "path": "/m/l"}, {"op": "add", "path": "/m/l/-", "value": 4}]), json!({"l": [1, 2, 3], "m": {"l": [1, 2, 3, 4]}}))]
    #[case::nothing_is_copied_as_null(json!([{"op": "copy", "from": "/x", "path": "/m/x"}]), json!({"l": [1, 2, 3], "m": {"x": null}}))]
    #[case::keys_are_unescaped(json!([{"op": "add", "path": "/m/a~1b~0", "value": 1}]), json!({"l": [1, 2, 3], "m": {"a/b~": 1}}))]
    #[case::all_of_it(json!([{"op": "replace", "path": "", "value": [1]}]), json!([1]))]
    fn operations_are_applied(#[case] operations: Value, #[case] outcome: Value) {
        let operations: json_patch::Patch = serde_json::from_value(operations).unwrap();
        let object = json!({"l": [1, 2, 3], "m": {}});
        assert_eq!(apply(object, &operations), Ok(outcome));
    }

    #[rstest]
    #[case::into_itself(json!([{"op": "move", "from": "/m", "path": "/m/a"}]))]
    #[case::behind_the_end(json!([{"op": "add", "path": "/l/4", "value": 1}]))]
    #[case::below_a_number(json!([{"op": "add", "path": "/l/0/a", "value": 1}]))]
    #[case::what_is_not_there(json!([{"op": "remove", "path": "/x"}]))]
    #[case::a_number_for_all(json!([{"op": "replace", "path": "", "value": 1}]))]
    fn inapplicable_operations_fail(#[case] operations: Value) {
        let operations: json_patch::Patch = serde_json::from_value(operations).unwrap();
        let object = json!({"l": [1, 2, 3], "m": {}});
        assert!(apply(object, &operations).is_err());
    }
}
