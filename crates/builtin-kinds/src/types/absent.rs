//! Empty lists and maps that are stored as absent ones: protobuf, in which built-in objects are stored, has no difference.
//!
//! Those that the struct omits when they are empty are dropped by the decoder; the others are null when they are read.

use apimachinery::kind::ApiResource;
use serde_json::Value;

use super::{Shape, Struct, of, types};

/// Replaces the empty lists and maps of an object in the form of its kind by null. Definitions are stored as JSON.
pub fn drop_empty(kind: &ApiResource, object: &mut Value) {
    let Some(known) = of(kind).filter(|_| !kind.defines) else {
        return;
    };
    for path in paths(known) {
        let mut here = Some(&mut *object);
        for name in path {
            here = here.and_then(|value| value.get_mut(name));
        }
        match here {
            Some(value @ Value::Array(_)) if value == &Value::Array(Vec::new()) => *value = Value::Null,
            Some(value @ Value::Object(_)) if value == &Value::Object(Default::default()) => {
                *value = Value::Null;
            }
            Some(_) | None => {}
        }
    }
}

/// Returns the paths of the lists and maps that are never omitted. None is in a list or map: validation requires those.
fn paths(known: &'static Struct) -> &'static [Vec<&'static str>] {
    known.nullable.get_or_init(|| {
        let mut paths = Vec::new();
        below(known, &mut Vec::new(), &mut paths);
        paths
    })
}

/// Maximum length of a path: that of the containers in the template of a CronJob's jobs, and some more.
const DEPTH_MAX: usize = 8;

fn below(known: &'static Struct, path: &mut Vec<&'static str>, paths: &mut Vec<Vec<&'static str>>) {
    if path.len() == DEPTH_MAX {
        return;
    }
    for field in &known.fields {
        path.push(field.name);
        let mut shape = &field.holds.shape;
        if let Shape::Pointer(inner) = shape {
            shape = &inner.shape;
        }
        if let Shape::Struct(index) = shape {
            below(&types().structs[*index], path, paths);
        } else if matches!(shape, Shape::List(_) | Shape::Map(_)) && !field.omit_empty {
            paths.push(path.clone());
        }
        path.pop();
    }
}

#[cfg(test)]
mod tests {
    use apimachinery::Version;
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::catalog::Catalog;

    #[rstest]
    #[case("rbac.authorization.k8s.io", "roles", json!({"rules": []}), json!({"rules": null}))]
    #[case("", "limitranges", json!({"spec": {"limits": []}}), json!({"spec": {"limits": null}}))]
    #[case("", "limitranges", json!({"spec": {"limits": [{}]}}), json!({"spec": {"limits": [{}]}}))]
    #[case("apiextensions.k8s.io", "customresourcedefinitions", json!({"status": {"conditions": []}}), json!({"status": {"conditions": []}}))]
    fn empty_lists_are_stored_as_absent_ones(
        #[case] group: &str,
        #[case] plural: &str,
        #[case] mut object: Value,
        #[case] expected: Value,
    ) {
        let catalog = Catalog::builtin(Version::NEWEST);
        drop_empty(catalog.find(group, plural).unwrap(), &mut object);
        assert_eq!(object, expected);
    }
}
