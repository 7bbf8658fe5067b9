//! JSON Patch as kube-apiserver applies it, which differs from RFC 6902 in places.
//!
//! Source: `evanphx/json-patch` v4, the library of kube-apiserver; apiserver `server/config.go` for the limit of copies.

use apimachinery::depth::{DEPTH_MAX, TOO_DEEP};
use apimachinery::encode::encode_json;
use apimachinery::go_text;
use json_patch::PatchOperation;
use json_patch::jsonptr::Pointer;
use serde_json::{Map, Value};

use super::PatchError;
use super::tree::{Container, Id, Tree};

/// Maximum bytes of all copies of a patch together (`JSONPatchMaxCopyBytes`, 3 MiB).
const COPIED_BYTES_MAX: usize = 3 * 1024 * 1024;

/// Maximum depth of the result before it is decoded as its kind, which has the final limit.
const LEVELS_MAX: usize = DEPTH_MAX * 2;

/// Applies the operations in order, each of which is read when it is its turn.
///
/// # Errors
///
/// The error of the first operation that fails, or of a result above a limit.
pub(super) fn apply(object: Value, operations: &[Map<String, Value>]) -> Result<Value, PatchError> {
    let mut document = Document::new(object);
    for operation in operations {
        document.apply(&read(operation).map_err(PatchError::Other)?)?;
    }
    document.into_value()
}

/// Reads an operation; a missing value is null.
fn read(operation: &Map<String, Value>) -> Result<PatchOperation, String> {
    let text = |field: &str| operation.get(field).and_then(Value::as_str);
    let op = text("op").unwrap_or("unknown");
    let (needed, lazy) = match op {
        "add" | "remove" | "copy" => (&["from", "path"][usize::from(op != "copy")..], false),
        "move" => (&["from", "path"][..], true),
        "replace" | "test" => (&["path"][..], true),
        other => return Err(format!("Unexpected kind: {other}")),
    };
    for field in needed {
        if text(field).is_none() {
            let why = match (*field, lazy || *field == "from") {
                ("from", _) => "operation, missing from field: missing value",
                (_, true) => "operation missing path field: missing value",
                (_, false) => "missing value",
            };
            return Err(format!("{op} operation failed to decode {field}: {why}"));
        }
    }
    let mut operation = operation.clone();
    operation.entry("value").or_insert(Value::Null);
    serde_json::from_value(Value::Object(operation)).map_err(|_| {
        // The path does not begin with a slash.
        let path = text("path").unwrap_or_default();
        missing_path(op, path)
    })
}

/// Error of an operation for whose path there is no container.
fn missing_path(op: &str, path: &str) -> String {
    match op {
        "add" | "remove" => {
            format!("{op} operation does not apply: doc is missing path: \"{path}\": {MISSING}")
        }
        "test" => format!("test operation does not apply: is missing path: {path}: {MISSING}"),
        "move" | "copy" => {
            format!("{op} operation does not apply: doc is missing destination path: {path}: {MISSING}")
        }
        op => format!("{op} operation does not apply: doc is missing path: {path}: {MISSING}"),
    }
}

const MISSING: &str = "missing value";

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
    fn new(object: Value) -> Self {
        let mut tree = Tree::new();
        let root = tree.put(object);
        Self {
            tree,
            root,
            copied_bytes: 0,
        }
    }

    fn into_value(self) -> Result<Value, PatchError> {
        let value = self.tree.into_value(self.root, LEVELS_MAX);
        value.ok_or_else(|| PatchError::Other(TOO_DEEP.to_owned()))
    }

    fn apply(&mut self, operation: &PatchOperation) -> Result<(), PatchError> {
        if let PatchOperation::Test(test) = operation {
            return self.test(&test.path, &test.value);
        }
        self.change(operation).map_err(PatchError::Other)
    }

    fn change(&mut self, operation: &PatchOperation) -> Result<(), String> {
        match operation {
            PatchOperation::Add(add) => {
                let target = self.target(&add.path);
                let target = target.ok_or_else(|| missing_path("add", add.path.as_str()))?;
                let value = self.tree.put(add.value.clone());
                self.add(&target, value)
                    .map_err(|why| format!("error in add for path: '{}': {why}", add.path))
            }
            PatchOperation::Remove(remove) => {
                let target = self.target(&remove.path);
                let target = target.ok_or_else(|| missing_path("remove", remove.path.as_str()))?;
                self.remove(&target)
                    .map_err(|why| format!("error in remove for path: '{}': {why}", remove.path))
            }
            PatchOperation::Replace(replace) => self.replace_at(&replace.path, &replace.value),
            PatchOperation::Move(change) => {
                let from = self.target(&change.from).ok_or_else(|| {
                    let from = &change.from;
                    format!("move operation does not apply: doc is missing from path: {from}: {MISSING}")
                })?;
                let in_move = |key: &str, why: String| format!("error in move for path: '{key}': {why}");
                let value = self.get(&from).map_err(|why| in_move(&from.key, why))?;
                self.remove(&from).map_err(|why| in_move(&from.key, why))?;
                let target = self.target(&change.path);
                let target = target.ok_or_else(|| missing_path("move", change.path.as_str()))?;
                let value = match value {
                    Some(value) => value,
                    None => self.tree.put(Value::Null),
                };
                self.add(&target, value)
                    .map_err(|why| in_move(change.path.as_str(), why))
            }
            PatchOperation::Copy(change) => {
                let from = self.target(&change.from).ok_or_else(|| {
                    let from = &change.from;
                    format!("copy operation does not apply: doc is missing from path: {from}: {MISSING}")
                })?;
                let source = self
                    .get(&from)
                    .map_err(|why| format!("error in copy for from: '{}': {why}", change.from))?;
                let target = self.target(&change.path);
                let target = target.ok_or_else(|| missing_path("copy", change.path.as_str()))?;
                // A missing field of an object is null.
                let copy = source.map_or(Some(Value::Null), |id| self.tree.copied(id, LEVELS_MAX));
                let copy = copy.ok_or_else(|| TOO_DEEP.to_owned())?;
                self.copied_bytes += encode_json(&copy).len();
                if self.copied_bytes > COPIED_BYTES_MAX {
                    return Err(format!(
                        "Unable to complete the copy, the accumulated size increase of copy is {}, exceeding the limit {}",
                        self.copied_bytes, COPIED_BYTES_MAX
                    ));
                }
                let copy = self.tree.put(copy);
                self.add(&target, copy)
                    .map_err(|why| format!("error while adding value during copy: {why}"))
            }
            PatchOperation::Test(_) => Ok(()),
        }
    }

    fn replace_at(&mut self, path: &Pointer, value: &Value) -> Result<(), String> {
        if path.is_root() {
            let contained = value.is_object() || value.is_array();
            self.root = self.tree.put(value.clone());
            // The library formats an error that it does not have.
            return match contained {
                true => Ok(()),
                false => Err("replace operation value must be object or array: %!w(<nil>)".to_owned()),
            };
        }
        let target = self.target(path);
        let target = target.ok_or_else(|| missing_path("replace", path.as_str()))?;
        if self.get(&target).is_err() {
            return Err(format!(
                "replace operation does not apply: doc is missing key: {path}: {MISSING}"
            ));
        }
        let value = self.tree.put(value.clone());
        self.replace(&target, value)
            .map_err(|why| format!("error in remove for path: '{path}': {why}"))
    }

    fn test(&mut self, path: &Pointer, value: &Value) -> Result<(), PatchError> {
        let equal = if path.is_root() {
            self.tree.equals(self.root, value)
        } else {
            let target = self.target(path);
            let target = target.ok_or_else(|| PatchError::Other(missing_path("test", path.as_str())))?;
            let found = self
                .get(&target)
                .map_err(|why| PatchError::Other(format!("error in test for path: '{path}': {why}")))?;
            // A missing field of an object equals null. Controllers use such a test before they write the first finalizer
            // (kube-runtime's `finalizer`).
            found.map_or(value.is_null(), |id| self.tree.equals(id, value))
        };
        match equal {
            true => Ok(()),
            false => Err(PatchError::Test(format!(
                "testing value {path} failed: test failed"
            ))),
        }
    }

    fn target(&mut self, path: &Pointer) -> Option<Target> {
        let (above, key) = path.split_back()?;
        let mut holder = self.tree.container(self.root)?;
        for token in above.tokens() {
            let key = token.decoded().into_owned();
            let id = self.get(&Target { holder, key }).ok()??;
            holder = self.tree.container(id)?;
        }
        let key = key.decoded().into_owned();
        Some(Target { holder, key })
    }

    /// Returns the value at the target; `None`: an object has no such field, or the value is null.
    ///
    /// # Errors
    /// A list has no such item.
    fn get(&mut self, target: &Target) -> Result<Option<Id>, String> {
        let found = match target.holder {
            Container::Object(id) => {
                let fields = self.tree.fields(id);
                fields.and_then(|fields| fields.get(&target.key).copied())
            }
            Container::List(id) => match self.tree.items(id) {
                Some(items) => items.get(index(&target.key, items.len())?),
                None => None,
            },
        };
        Ok(found.filter(|id| !self.tree.is_null(*id)))
    }

    fn add(&mut self, target: &Target, value: Id) -> Result<(), String> {
        match target.holder {
            Container::Object(id) => {
                if let Some(fields) = self.tree.fields(id) {
                    fields.insert(target.key.clone(), value);
                }
            }
            Container::List(id) => {
                if let Some(items) = self.tree.items(id) {
                    // Negative indices count from the end.
                    let at = match target.key.as_str() {
                        "-" => items.len(),
                        key => index(key, items.len() + 1).map_err(|why| match key.parse::<i64>() {
                            Ok(_) => why,
                            Err(_) => format!("value was not a proper array index: '{key}': {why}"),
                        })?,
                    };
                    items.insert(at, value);
                }
            }
        }
        Ok(())
    }

    /// Replaces a value; in an object a missing field is added.
    fn replace(&mut self, target: &Target, value: Id) -> Result<(), String> {
        match target.holder {
            Container::Object(_) => self.add(target, value),
            Container::List(id) => {
                if let Some(items) = self.tree.items(id) {
                    let at = index(&target.key, items.len())?;
                    items.set(at, value);
                }
                Ok(())
            }
        }
    }

    fn remove(&mut self, target: &Target) -> Result<(), String> {
        match target.holder {
            Container::Object(id) => {
                let key = &target.key;
                let fields = self.tree.fields(id);
                let removed = fields.and_then(|fields| fields.remove(key));
                removed
                    .map(drop)
                    .ok_or_else(|| format!("Unable to remove nonexistent key: {key}: {MISSING}"))
            }
            Container::List(id) => {
                if let Some(items) = self.tree.items(id) {
                    let at = index(&target.key, items.len())?;
                    items.remove(at);
                }
                Ok(())
            }
        }
    }
}

/// Parses a key as index of a list of this length; negative ones count from its end.
fn index(key: &str, length: usize) -> Result<usize, String> {
    let given: i64 = key
        .parse()
        .map_err(|_| format!("strconv.Atoi: parsing {}: invalid syntax", go_text::quote(key)))?;
    let length = i64::try_from(length).unwrap_or(i64::MAX);
    let index = if given < 0 { given + length } else { given };
    let index = usize::try_from(index).ok();
    index
        .filter(|index| i64::try_from(*index).is_ok_and(|index| index < length))
        .ok_or_else(|| format!("Unable to access invalid index: {given}: invalid index referenced"))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Map, Value, json};

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
        let operations: Vec<Map<String, Value>> = serde_json::from_value(operations).unwrap();
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
        let operations: Vec<Map<String, Value>> = serde_json::from_value(operations).unwrap();
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
        let operations: Vec<Map<String, Value>> = serde_json::from_value(operations).unwrap();
        let object = json!({"l": [1, 2, 3], "m": {}});
        assert!(apply(object, &operations).is_err());
    }

    /// In the words of the library, which the recordings of webhooks hold for the first ones.
    #[rstest]
    #[case(json!({"op": "remove", "path": "/m/zz"}), "error in remove for path: '/m/zz': Unable to remove nonexistent key: zz: missing value")]
    #[case(json!({"op": "replace", "path": "/m/zz/y", "value": 1}), "replace operation does not apply: doc is missing path: /m/zz/y: missing value")]
    #[case(json!({"op": "test", "path": "/l/0", "value": 9}), "testing value /l/0 failed: test failed")]
    #[case(json!({"op": "frob", "path": "/l"}), "Unexpected kind: frob")]
    #[case(json!({"path": "/l"}), "Unexpected kind: unknown")]
    #[case(json!({"op": "add", "value": 1}), "add operation failed to decode path: missing value")]
    #[case(json!({"op": "test", "value": 1}), "test operation failed to decode path: operation missing path field: missing value")]
    #[case(json!({"op": "copy", "path": "/l"}), "copy operation failed to decode from: operation, missing from field: missing value")]
    #[case(json!({"op": "add", "path": "l", "value": 1}), "add operation does not apply: doc is missing path: \"l\": missing value")]
    #[case(json!({"op": "add", "path": "/l/9", "value": 1}), "error in add for path: '/l/9': Unable to access invalid index: 9: invalid index referenced")]
    #[case(json!({"op": "add", "path": "/l/x", "value": 1}), "error in add for path: '/l/x': value was not a proper array index: 'x': strconv.Atoi: parsing \"x\": invalid syntax")]
    #[case(json!({"op": "replace", "path": "/l/9", "value": 1}), "replace operation does not apply: doc is missing key: /l/9: missing value")]
    #[case(json!({"op": "move", "from": "/x/y", "path": "/l"}), "move operation does not apply: doc is missing from path: /x/y: missing value")]
    #[case(json!({"op": "copy", "from": "/l", "path": "/x/y"}), "copy operation does not apply: doc is missing destination path: /x/y: missing value")]
    fn errors_are_those_of_the_library(#[case] operation: Value, #[case] expected: &str) {
        let object = json!({"l": [1, 2, 3], "m": {}});
        let operations = [operation.as_object().cloned().unwrap()];
        assert_eq!(apply(object, &operations).unwrap_err().to_string(), expected);
    }

    #[test]
    fn a_missing_value_is_null() {
        let operations = [json!({"op": "add", "path": "/a"}).as_object().cloned().unwrap()];
        assert_eq!(apply(json!({}), &operations), Ok(json!({"a": null})));
    }
}
