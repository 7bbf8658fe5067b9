//! Strategic merge patch: a merge patch that merges some lists by a key, according to the schema of the kind. The result is
//! decoded as its kind elsewhere.
//!
//! Source: "Update API Objects in Place Using kubectl patch"; community design `strategic-merge-patch.md` for `$patch`,
//! `$retainKeys`, `$deleteFromPrimitiveList` and `$setElementOrder`.

use std::collections::{HashMap, HashSet};

use apimachinery::go_text;
use apimachinery::status::Status;
use serde_json::{Map, Value};

use crate::schema::Schema;

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList/";
const ELEMENT_ORDER: &str = "$setElementOrder/";

/// Applies `patch` to `object`.
///
/// # Errors
///
/// 400 for an invalid directive, 500 (as in kube-apiserver) for one that cannot be applied.
pub(super) fn merge(
    schema: Option<&Schema>,
    object: &mut Map<String, Value>,
    patch: &Map<String, Value>,
) -> Result<(), Status> {
    merge_object(schema, object, patch)
}

fn merge_object(
    schema: Option<&Schema>,
    object: &mut Map<String, Value>,
    patch: &Map<String, Value>,
) -> Result<(), Status> {
    match patch
        .get(DIRECTIVE)
        .map(|directive| directive.as_str().unwrap_or_default())
    {
        None => {}
        Some("replace") => {
            object.clone_from(patch);
            object.shift_remove(DIRECTIVE);
            return Ok(());
        }
        Some("delete") => {
            object.clear();
            return Ok(());
        }
        Some(_) => return Err(unknown_directive(patch)),
    }
    if let Some(kept) = patch.get(RETAIN_KEYS) {
        retain(object, patch, kept)?;
    }
    let mut removed = HashSet::new();
    for (name, change) in patch {
        if let Some(list) = name.strip_prefix(DELETE_FROM_LIST) {
            if !patch.contains_key(list) {
                merge_list_at(schema, object, patch, list, &[])?;
            }
            continue;
        }
        if let Some(list) = name.strip_prefix(ELEMENT_ORDER) {
            if !patch.contains_key(list) && !patch.contains_key(&format!("{DELETE_FROM_LIST}{list}")) {
                merge_list_at(schema, object, patch, list, &[])?;
            }
            continue;
        }
        if name.starts_with('$') {
            continue;
        }
        match (change, object.get_mut(name)) {
            (Value::Null, _) => drop(removed.insert(name)),
            (Value::Object(change), Some(Value::Object(current))) => {
                let below = schema.and_then(|schema| schema.field(name));
                if below.is_some_and(Schema::replaces) {
                    *current = change.clone();
                } else {
                    merge_object(below, current, change)?;
                }
            }
            (Value::Array(items), Some(Value::Array(_))) => {
                merge_list_at(schema, object, patch, name, items)?
            }
            (Value::Array(items), None) if patch.contains_key(&format!("{ELEMENT_ORDER}{name}")) => {
                let kept = without_directives(&Value::Array(items.clone())).unwrap_or_default();
                object.insert(name.clone(), Value::Array(Vec::new()));
                let kept = kept.as_array().map(Vec::as_slice).unwrap_or_default();
                merge_list_at(schema, object, patch, name, kept)?;
            }
            (change, _) => match without_directives(change) {
                Some(change) => drop(object.insert(name.clone(), change)),
                None => drop(removed.insert(name)),
            },
        }
    }
    // All at once: each removal alone moves the items after it.
    if !removed.is_empty() {
        object.retain(|name, _| !removed.contains(name));
    }
    Ok(())
}

/// Removes the fields that `$retainKeys` does not list; the fields of the patch must be in the list.
fn retain(object: &mut Map<String, Value>, patch: &Map<String, Value>, kept: &Value) -> Result<(), Status> {
    let malformed = || Status::bad_request("invalid patch format of retainKeys");
    let kept = kept.as_array().ok_or_else(malformed)?;
    let kept: HashSet<&str> = kept.iter().filter_map(Value::as_str).collect();
    let is_kept = |name: &str| kept.contains(name);
    let unlisted =
        |(name, value): (&String, &Value)| !name.starts_with('$') && !value.is_null() && !is_kept(name);
    if patch.iter().any(unlisted) {
        return Err(malformed());
    }
    object.retain(|name, _| is_kept(name));
    Ok(())
}

/// Merges `items` into the list `name`, according to the directives for that list.
fn merge_list_at(
    schema: Option<&Schema>,
    object: &mut Map<String, Value>,
    patch: &Map<String, Value>,
    name: &str,
    items: &[Value],
) -> Result<(), Status> {
    let of_list = schema.and_then(|schema| schema.field(name));
    let Some(of_list) = of_list.filter(|schema| schema.merges()) else {
        if patch.contains_key(name) {
            object.insert(name.to_owned(), Value::Array(items.to_vec()));
        }
        return Ok(());
    };
    let Some(Value::Array(current)) = object.get_mut(name) else {
        return Ok(());
    };
    let listed = |prefix: &str| {
        let list = patch.get(&format!("{prefix}{name}"));
        list.map(|list| list.as_array().map(Vec::as_slice).unwrap_or_default())
    };
    let list = List {
        key: of_list.merge_key(),
        items: of_list.items(),
    };
    *current = list.merged(
        std::mem::take(current),
        items,
        listed(DELETE_FROM_LIST).unwrap_or_default(),
        listed(ELEMENT_ORDER),
    )?;
    Ok(())
}

/// A list with merge strategy.
struct List<'a> {
    /// Merge key; `None`: the items are compared as a whole.
    key: Option<&'a str>,
    items: Option<&'a Schema>,
}

impl List<'_> {
    fn merged(
        &self,
        current: Vec<Value>,
        patch: &[Value],
        deleted: &[Value],
        order: Option<&[Value]>,
    ) -> Result<Vec<Value>, Status> {
        let (mut items, mut deleted, mut replaced) = (Vec::new(), deleted.to_vec(), false);
        for item in patch {
            let directive = item.get(DIRECTIVE);
            match directive.map(|directive| directive.as_str().unwrap_or_default()) {
                None => items.push(item),
                Some("replace") => replaced = true,
                Some("delete") => deleted.push(self.identity(item)?.clone()),
                Some("merge") => {
                    let why = "merging lists cannot yet be specified in the patch";
                    return Err(Status::unexplained(why.to_owned()));
                }
                Some(_) => {
                    let nothing = Map::new();
                    return Err(unknown_directive(item.as_object().unwrap_or(&nothing)));
                }
            }
        }
        if replaced {
            return Ok(items.into_iter().cloned().collect());
        }
        let live: Vec<Value> = current
            .iter()
            .map(|item| self.identity(item).cloned())
            .collect::<Result<_, _>>()?;
        let deleted: HashSet<Value> = deleted.into_iter().collect();
        let mut merged = current;
        merged.retain(|item| {
            !self
                .identity(item)
                .is_ok_and(|identity| deleted.contains(identity))
        });
        let mut places: HashMap<Value, usize> = HashMap::new();
        for (place, item) in merged.iter().enumerate() {
            places.entry(self.identity(item)?.clone()).or_insert(place);
        }
        for item in &items {
            let identity = self.identity(item)?;
            let there = places.get(identity).and_then(|place| merged.get_mut(*place));
            match (there, item) {
                (Some(Value::Object(there)), Value::Object(change)) => {
                    merge_object(self.items, there, change)?
                }
                (Some(_), _) => {}
                (None, item) => {
                    // Directives in it are unknown fields of the result, as in kube-apiserver.
                    places.insert(identity.clone(), merged.len());
                    merged.push(Value::clone(item));
                }
            }
        }
        let order: Vec<Value> = match order {
            Some(order) => {
                let order: Vec<Value> = order
                    .iter()
                    .map(|item| self.identity(item).cloned())
                    .collect::<Result<_, _>>()?;
                self.check_order(&items, &order)?;
                order
            }
            None => items
                .iter()
                .map(|item| self.identity(item).cloned())
                .collect::<Result<_, _>>()?,
        };
        self.ordered(merged, &order, &live)
    }

    /// Returns the merge key of an item.
    fn identity<'v>(&self, item: &'v Value) -> Result<&'v Value, Status> {
        let Some(key) = self.key else { return Ok(item) };
        item.get(key).ok_or_else(|| {
            let shown = go_text::value(item);
            Status::unexplained(format!("map: {shown} does not contain declared merge key: {key}"))
        })
    }

    /// Checks that the items of the patch are in the order of `$setElementOrder`.
    fn check_order(&self, items: &[&Value], order: &[Value]) -> Result<(), Status> {
        let mut rest = order.iter();
        for item in items {
            let identity = self.identity(item)?;
            if !rest.any(|next| next == identity) {
                let named = |identity: &Value| match self.key {
                    Some(key) => Value::Object(Map::from_iter([(key.to_owned(), identity.clone())])),
                    None => identity.clone(),
                };
                let items = Value::Array(items.iter().copied().cloned().collect());
                let order = Value::Array(order.iter().map(named).collect());
                return Err(Status::unexplained(format!(
                    "The order in patch list:\n{}\n doesn't match $setElementOrder list:\n{}\n",
                    go_text::value(&items),
                    go_text::value(&order)
                )));
            }
        }
        Ok(())
    }

    /// Sorts items in `order` accordingly; each of the others precedes the first item that follows it in `live`.
    fn ordered(&self, merged: Vec<Value>, order: &[Value], live: &[Value]) -> Result<Vec<Value>, Status> {
        let places = |list: &[Value]| {
            let backwards = list.iter().cloned().enumerate().rev();
            backwards
                .map(|(place, identity)| (identity, place))
                .collect::<HashMap<_, _>>()
        };
        let (in_order, in_live) = (places(order), places(live));
        let mut of_patch = Vec::new();
        let mut of_server = Vec::new();
        for item in merged {
            let identity = self.identity(&item)?.clone();
            match in_order.get(&identity) {
                Some(place) => of_patch.push((*place, identity, item)),
                None => of_server.push((in_live.get(&identity).copied(), item)),
            }
        }
        of_patch.sort_by_key(|(place, _, _)| *place);
        of_server.sort_by_key(|(place, _)| *place);
        let mut out = Vec::new();
        let mut of_server = of_server.into_iter().peekable();
        for (_, identity, item) in of_patch {
            let place = in_live.get(&identity).copied();
            while let Some((_, server)) = of_server.next_if(|(server, _)| place.is_some() && *server < place)
            {
                out.push(server);
            }
            out.push(item);
        }
        out.extend(of_server.map(|(_, item)| item));
        Ok(out)
    }
}

/// Returns the error of a map whose directive is not known.
fn unknown_directive(map: &Map<String, Value>) -> Status {
    let shown = go_text::value(&map[DIRECTIVE]);
    let map = go_text::value(&Value::Object(map.clone()));
    Status::unexplained(format!("unknown patch type: {shown} in map: {map}"))
}

/// Returns a new value without nulls, and without the maps in it that have a directive: there is nothing that they change.
fn without_directives(value: &Value) -> Option<Value> {
    match value {
        Value::Object(fields) if fields.contains_key(DIRECTIVE) => None,
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(_, value)| !value.is_null());
            let kept = kept.filter_map(|(name, value)| Some((name.clone(), without_directives(value)?)));
            Some(Value::Object(kept.collect()))
        }
        Value::Array(items) => Some(Value::Array(
            items.iter().filter_map(without_directives).collect(),
        )),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Some(value.clone()),
    }
}

#[cfg(test)]
mod tests {
    use apimachinery::Version;
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::catalog::Catalog;

    fn patched(path: &[&str], object: Value, patch: Value) -> Result<Value, String> {
        let kind = Catalog::builtin(Version::NEWEST)
            .find("", "pods")
            .cloned()
            .unwrap();
        let mut schema = Schema::of_builtin(&kind, Version::NEWEST).unwrap();
        for name in path {
            schema = schema.field(name).unwrap();
        }
        let (Value::Object(mut object), Value::Object(patch)) = (object, patch) else {
            panic!("both are objects");
        };
        merge(Some(schema), &mut object, &patch).map_err(|status| status.message)?;
        Ok(Value::Object(object))
    }

    #[rstest]
    #[case::merged_by_name(
        json!({"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]}),
        json!({"containers": [{"name": "b", "image": "2"}]}),
        json!({"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "2"}]})
    )]
    #[case::ordered(
        json!({"containers": [{"name": "c"}]}),
        json!({"$setElementOrder/containers": [{"name": "z"}, {"name": "c"}], "containers": [{"name": "z"}]}),
        json!({"containers": [{"name": "z"}, {"name": "c"}]})
    )]
    #[case::order_alone(
        json!({"containers": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}),
        json!({"$setElementOrder/containers": [{"name": "c"}, {"name": "a"}]}),
        json!({"containers": [{"name": "b"}, {"name": "c"}, {"name": "a"}]})
    )]
    #[case::deleted(
        json!({"containers": [{"name": "a"}, {"name": "b"}]}),
        json!({"containers": [{"name": "a", "$patch": "delete"}]}),
        json!({"containers": [{"name": "b"}]})
    )]
    #[case::replaced_list(
        json!({"containers": [{"name": "a"}, {"name": "b"}]}),
        json!({"containers": [{"$patch": "replace"}, {"name": "c"}]}),
        json!({"containers": [{"name": "c"}]})
    )]
    #[case::nested_keys(
        json!({"containers": [{"name": "a", "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "1"}]}]}),
        json!({"containers": [{"name": "a", "env": [{"name": "Y", "value": "2"}]}]}),
        json!({"containers": [{"name": "a", "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}]}]})
    )]
    #[case::atomic_lists_are_replaced(
        json!({"tolerations": [{"key": "a"}, {"key": "b"}]}),
        json!({"tolerations": [{"key": "c"}]}),
        json!({"tolerations": [{"key": "c"}]})
    )]
    #[case::volumes_keep_only_what_is_listed(
        json!({"volumes": [{"name": "v", "emptyDir": {}}]}),
        json!({"volumes": [{"$retainKeys": ["name", "secret"], "name": "v", "secret": {"secretName": "s"}}]}),
        json!({"volumes": [{"name": "v", "secret": {"secretName": "s"}}]})
    )]
    #[case::null_takes_away(
        json!({"nodeName": "n", "nodeSelector": {"a": "1", "b": "2"}}),
        json!({"nodeName": null, "nodeSelector": {"a": null}}),
        json!({"nodeSelector": {"b": "2"}})
    )]
    #[case::map_replaced(
        json!({"nodeSelector": {"a": "1"}}),
        json!({"nodeSelector": {"$patch": "replace", "z": "1"}}),
        json!({"nodeSelector": {"z": "1"}})
    )]
    #[case::replaced_before_it_was_there(
        json!({"nodeName": "n"}),
        json!({"containers": [{"$patch": "replace"}, {"name": "c"}]}),
        json!({"nodeName": "n", "containers": [{"name": "c"}]})
    )]
    #[case::absent_map_replaced(
        json!({"nodeName": "n"}),
        json!({"nodeSelector": {"$patch": "replace", "z": "1"}}),
        json!({"nodeName": "n"})
    )]
    #[case::ordered_before_it_was_there(
        json!({}),
        json!({"$setElementOrder/containers": [{"name": "a"}, {"name": "b"}], "containers": [{"name": "a"}, {"name": "b"}]}),
        json!({"containers": [{"name": "a"}, {"name": "b"}]})
    )]
    fn of_a_pod_spec(#[case] object: Value, #[case] patch: Value, #[case] outcome: Value) {
        assert_eq!(patched(&["spec"], object, patch), Ok(outcome));
    }

    #[rstest]
    #[case::merged(json!({"finalizers": ["x"]}), json!({"finalizers": ["x", "d"]}))]
    #[case::taken_out(json!({"$deleteFromPrimitiveList/finalizers": ["d"]}), json!({"finalizers": []}))]
    #[case::both(json!({"$deleteFromPrimitiveList/finalizers": ["d"], "finalizers": ["x"]}), json!({"finalizers": ["x"]}))]
    fn primitive_lists_are_merged_by_value(#[case] patch: Value, #[case] outcome: Value) {
        let object = json!({"finalizers": ["d"]});
        assert_eq!(patched(&["metadata"], object, patch), Ok(outcome));
    }

    #[rstest]
    #[case(json!({"containers": [{"image": "x"}]}), "map: map[image:x] does not contain declared merge key: name")]
    #[case(json!({"$patch": "foo"}), "unknown patch type: foo in map: map[$patch:foo]")]
    #[case(json!({"$patch": "merge"}), "unknown patch type: merge in map: map[$patch:merge]")]
    #[case(
        json!({"containers": [{"$patch": "merge", "name": "c"}]}),
        "merging lists cannot yet be specified in the patch"
    )]
    #[case(
        json!({"$setElementOrder/volumes": [{"name": "c"}], "volumes": [{"name": "q"}]}),
        "The order in patch list:\n[map[name:q]]\n doesn't match $setElementOrder list:\n[map[name:c]]\n"
    )]
    #[case(json!({"$retainKeys": "x"}), "invalid patch format of retainKeys")]
    #[case(
        json!({"$setElementOrder/containers": [{"name": "c"}], "containers": [{"name": "q", "image": "z"}]}),
        "The order in patch list:\n[map[image:z name:q]]\n doesn't match $setElementOrder list:\n[map[name:c]]\n"
    )]
    fn inapplicable_directives_are_rejected(#[case] patch: Value, #[case] words: &str) {
        let object = json!({"containers": [{"name": "c"}]});
        assert_eq!(patched(&["spec"], object, patch), Err(words.to_owned()));
    }
}
