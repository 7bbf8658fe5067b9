//! Apply and updates by several managers, in several versions.

use apimachinery::Version;
use apimachinery::kind::{ApiResource, KindRef};
use apimachinery::status::Status;
use rstest::rstest;
use serde_json::{Value, json};

use super::{OneVersion, Ownership, Versions};
use crate::catalog::Catalog;
use crate::crd;

const VERSION: Version = Version::NEWEST;

/// Versions of a custom resource without a conversion webhook.
struct Rows(Vec<KindRef>);

impl Rows {
    fn things() -> Self {
        let spec = json!({
            "size": {"type": "integer", "default": 1},
            "nest": {"type": "object", "properties": {"a": {"type": "string", "default": "d"}, "b": {"type": "string"}}},
            "m": {"type": "object", "additionalProperties": {"type": "string"}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": {"type": "string"}}},
            "ports": {
                "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "proto"],
                "items": {"type": "object", "properties": {
                    "port": {"type": "integer"}, "proto": {"type": "string", "default": "TCP"}, "name": {"type": "string"},
                }},
            },
        });
        let mut newer = spec.clone();
        newer["newer"] = json!({"type": "string"});
        let version = |name: &str, spec: Value| {
            json!({
                "name": name, "served": true, "storage": name == "v1",
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": spec}}}},
            })
        };
        let definition = json!({
            "metadata": {"name": "things.example.com"},
            "spec": {
                "group": "example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
                "versions": [version("v1", newer), version("v1beta1", spec)],
            },
            "status": {
                "acceptedNames": {"plural": "things", "kind": "Thing"},
                "conditions": [{"type": "Established", "status": "True"}, {"type": "NamesAccepted", "status": "True"}],
            },
        });
        Self(crd::rows(&definition))
    }

    fn of(&self, version: &str) -> KindRef {
        self.0.iter().find(|row| row.version == version).unwrap().clone()
    }
}

impl Versions for Rows {
    fn kind(&self, api_version: &str) -> Option<KindRef> {
        self.0
            .iter()
            .find(|row| row.api_version() == api_version)
            .cloned()
    }

    fn convert(&mut self, object: &Value, _from: &ApiResource, to: &ApiResource) -> Result<Value, Status> {
        let mut object = object.clone();
        object["apiVersion"] = to.api_version().into();
        Ok(object)
    }
}

/// Versions that count conversions.
struct Counted(Rows, usize);

impl Versions for Counted {
    fn kind(&self, api_version: &str) -> Option<KindRef> {
        self.0.kind(api_version)
    }

    fn convert(&mut self, object: &Value, from: &ApiResource, to: &ApiResource) -> Result<Value, Status> {
        self.1 += 1;
        self.0.convert(object, from, to)
    }
}

fn builtin(group: &str, plural: &str) -> KindRef {
    Catalog::builtin(VERSION).find(group, plural).unwrap().clone()
}

/// An object after applications of these specs by managers, in versions.
fn applied(steps: &[(&str, &str, Value)]) -> Result<Value, Status> {
    let mut rows = Rows::things();
    let mut live =
        json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "x", "uid": "u"}});
    // Something else manages it, so that nothing counts as applied before.
    live["metadata"]["managedFields"] = json!([{
        "manager": "first", "operation": "Update", "apiVersion": "example.com/v1", "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": {"f:labels": {"f:a": {}}}},
    }]);
    for (manager, version, spec) in steps {
        let kind = rows.of(version);
        live["apiVersion"] = kind.api_version().into();
        let ownership = Ownership::new(&kind, VERSION, manager, "", "2026-01-01T00:00:00Z".to_owned());
        let mut config =
            json!({"apiVersion": kind.api_version(), "kind": "Thing", "metadata": {"name": "x"}});
        if !spec.is_null() {
            config["spec"] = spec.clone();
        }
        live = ownership.apply(&live, &config, false, &mut rows)?;
    }
    Ok(live)
}

/// Entries of an object: manager, version, fields.
fn entries(object: &Value) -> Vec<(String, String, Value)> {
    let text = |entry: &Value, field: &str| entry[field].as_str().unwrap_or_default().to_owned();
    let entries = object["metadata"]["managedFields"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let shown = |entry: &Value| {
        (
            text(entry, "manager"),
            text(entry, "apiVersion"),
            entry["fieldsV1"].clone(),
        )
    };
    entries
        .iter()
        .map(shown)
        .filter(|(manager, ..)| manager != "first")
        .collect()
}

#[rstest]
#[case::entries_of_a_map(json!({"m": {"l": "1"}}))]
#[case::free_fields(json!({"free": {"z": {"a": [1]}}}))]
#[case::items(json!({"ports": [{"port": 80}]}))]
#[case::fields_with_defaults(json!({"nest": {"b": "1"}}))]
#[case::an_empty_object(json!({"nest": {}}))]
fn what_is_no_longer_applied_goes_as_a_structure(#[case] spec: Value) {
    let object = applied(&[("m", "v1", spec), ("m", "v1", Value::Null)]).unwrap();
    assert!(object.get("spec").is_none_or(Value::is_null), "{object}");
    assert_eq!(entries(&object), []);
}

#[test]
fn what_another_manager_owns_stays() {
    let steps = [
        (
            "a",
            "v1",
            json!({"ports": [{"port": 80, "name": "x"}], "m": {"k": "1"}}),
        ),
        ("b", "v1", json!({"ports": [{"port": 80}], "m": {"l": "2"}})),
        ("a", "v1", Value::Null),
    ];
    let object = applied(&steps).unwrap();
    assert_eq!(object["spec"], json!({"ports": [{"port": 80}], "m": {"l": "2"}}));
}

#[test]
fn a_manager_keeps_one_entry_in_two_versions() {
    let steps = [
        ("m", "v1beta1", json!({"nest": {"b": "1"}, "m": {"k": "1"}})),
        ("m", "v1", json!({"nest": {"b": "2"}})),
    ];
    let object = applied(&steps).unwrap();
    assert_eq!(object["spec"], json!({"nest": {"b": "2"}}));
    let fields = json!({"f:spec": {"f:nest": {"f:b": {}}}});
    assert_eq!(
        entries(&object),
        [("m".to_owned(), "example.com/v1".to_owned(), fields)]
    );
}

#[test]
fn conflicts_are_found_in_the_version_of_the_owner() {
    let refused = applied(&[
        ("a", "v1beta1", json!({"size": 1})),
        ("b", "v1", json!({"size": 2})),
    ])
    .unwrap_err();
    assert_eq!(
        refused.message,
        "Apply failed with 1 conflict: conflict with \"a\": .spec.size"
    );
}

#[test]
fn an_object_that_does_not_fit_the_version_of_an_owner_is_refused() {
    let steps = [
        ("a", "v1beta1", json!({"size": 1})),
        ("b", "v1", json!({"newer": "1"})),
        ("b", "v1", json!({"newer": "2"})),
    ];
    let refused = applied(&steps[..2]).unwrap_err();
    assert_eq!(
        refused.message,
        "failed to convert new object: .spec.newer: field not declared in schema"
    );
}

#[rstest]
#[case::an_empty_list_and_an_empty_map(json!({"free": {"a": []}}), json!({"free": {"a": {}}}), ".spec.free.a")]
#[case::a_part_of_a_whole(json!({"whole": {"a": "1"}}), json!({"whole": {}}), ".spec.whole")]
#[case::an_item_with_a_default_key(
    json!({"ports": [{"port": 80, "name": "x"}]}),
    json!({"ports": [{"port": 80, "proto": "TCP", "name": "y"}]}),
    ".spec.ports[port=80,proto=\"TCP\"].name"
)]
fn other_values_conflict(#[case] one: Value, #[case] other: Value, #[case] field: &str) {
    let refused = applied(&[("a", "v1", one), ("b", "v1", other)]).unwrap_err();
    assert_eq!(refused.details.unwrap().causes[0].field, field);
}

#[test]
fn equal_values_are_shared_whatever_the_type_of_a_number() {
    let object = applied(&[
        ("a", "v1", json!({"free": {"a": 1}})),
        ("b", "v1", json!({"free": {"a": 1.0}})),
    ])
    .unwrap();
    assert_eq!(entries(&object).len(), 2);
}

#[test]
fn a_null_is_merged_and_left_to_validation() {
    let object = applied(&[("a", "v1", json!({"nest": null}))]).unwrap();
    assert_eq!(object["spec"], json!({"nest": null}));
}

#[test]
fn items_are_in_the_order_of_the_configuration() {
    let names =
        |names: &[u32]| json!({"ports": names.iter().map(|port| json!({"port": port})).collect::<Vec<_>>()});
    let object = applied(&[
        ("a", "v1", names(&[1, 2, 3])),
        ("b", "v1", names(&[4, 3, 1])),
        ("c", "v1", names(&[9, 2])),
    ])
    .unwrap();
    let ports = object["spec"]["ports"].as_array().unwrap().iter();
    let ports: Vec<u64> = ports.map(|port| port["port"].as_u64().unwrap()).collect();
    assert_eq!(ports, [9, 2, 4, 3, 1]);
}

#[test]
fn a_probe_goes_with_what_the_server_set_in_it() {
    let kind = builtin("apps", "deployments");
    let with = |probe: Value| {
        let mut config = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"},
            "spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}},
        });
        if !probe.is_null() {
            config["spec"]["template"]["spec"]["containers"][0]["livenessProbe"] = probe;
        }
        config
    };
    let ownership = Ownership::new(&kind, VERSION, "m", "", "2026-01-01T00:00:00Z".to_owned());
    let nothing = super::nothing();
    let mut live = ownership
        .apply(
            &nothing,
            &with(json!({"httpGet": {"port": 80}})),
            false,
            &mut OneVersion,
        )
        .unwrap();
    let probe = &mut live["spec"]["template"]["spec"]["containers"][0]["livenessProbe"];
    probe["periodSeconds"] = 10.into();
    probe["httpGet"]["scheme"] = "HTTP".into();
    live["metadata"]["uid"] = "u".into();
    let object = ownership
        .apply(&live, &with(Value::Null), false, &mut OneVersion)
        .unwrap();
    assert_eq!(
        object["spec"]["template"]["spec"]["containers"],
        json!([{"name": "c", "image": "i"}])
    );
}

#[rstest]
#[case::removed(json!([]), true)]
#[case::reset(json!([{}]), true)]
#[case::absent(Value::Null, false)]
#[case::invalid(json!([{"manager": "z", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"a": {}}}]), false)]
fn clients_can_remove_managers(#[case] sent: Value, #[case] gone: bool) {
    let kind = builtin("", "configmaps");
    let ownership = Ownership::new(&kind, VERSION, "m", "", "2026-01-01T00:00:00Z".to_owned());
    let mut live = json!({"metadata": {"name": "x"}, "data": {"a": "1"}});
    ownership.note_update(&super::nothing(), &mut live);
    live["metadata"]["uid"] = "u".into();
    let mut object = live.clone();
    ownership
        .note_write(&live, &mut object, Some(&sent), &mut OneVersion)
        .unwrap();
    assert_eq!(object["metadata"].get("managedFields").is_none(), gone);
}

#[test]
fn the_oldest_of_too_many_updates_are_united() {
    let kind = builtin("", "configmaps");
    let mut live = super::nothing();
    for nth in 0..14 {
        let manager = format!("m{nth:02}");
        let ownership = Ownership::new(
            &kind,
            VERSION,
            &manager,
            "",
            format!("2026-01-01T00:00:{nth:02}Z"),
        );
        let mut object = live.clone();
        object["data"][format!("k{nth:02}")] = "1".into();
        object["metadata"]["uid"] = "u".into();
        ownership.note_update(&live, &mut object);
        live = object;
    }
    let managers: Vec<String> = entries(&live).into_iter().map(|(manager, ..)| manager).collect();
    assert_eq!(managers.len(), 10);
    assert_eq!(managers[..2], ["ancient-changes", "m05"]);
}

#[test]
fn a_set_of_what_became_atomic_is_united() {
    let kind = Rows::things().of("v1");
    let ownership = Ownership::new(&kind, VERSION, "m", "", "2026-01-01T00:00:00Z".to_owned());
    let live = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"uid": "u"}, "spec": {"whole": {"a": "1"}}});
    let sent = json!([{
        "manager": "z", "operation": "Apply", "apiVersion": "example.com/v1", "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:whole": {"f:a": {}}}},
    }]);
    let mut object = live.clone();
    ownership
        .note_write(&live, &mut object, Some(&sent), &mut OneVersion)
        .unwrap();
    assert_eq!(entries(&object)[0].2, json!({"f:spec": {"f:whole": {}}}));
}

/// A client can write any number of managers, and an object can be large.
#[test]
fn conversions_are_counted_by_versions_and_not_by_managers() {
    let conversions = |managers: usize| {
        let mut versions = Counted(Rows::things(), 0);
        let kind = versions.0.of("v1");
        let entry = |nth: usize| {
            json!({
                "manager": format!("m{nth}"), "operation": "Apply", "apiVersion": "example.com/v1beta1",
                "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:size": {}}},
            })
        };
        let live = json!({
            "apiVersion": "example.com/v1", "kind": "Thing", "spec": {"size": 1},
            "metadata": {"name": "x", "uid": "u", "managedFields": (0..managers).map(entry).collect::<Vec<_>>()},
        });
        let mut object = live.clone();
        object["spec"]["size"] = 2.into();
        let ownership = Ownership::new(&kind, VERSION, "m", "", "2020-01-01T00:00:00Z".to_owned());
        ownership
            .note_write(&live, &mut object, None, &mut versions)
            .unwrap();
        versions.1
    };
    assert_eq!((conversions(1), conversions(50)), (3, 3));
}
