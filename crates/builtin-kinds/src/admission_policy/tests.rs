//! Mutating policies, by the cases of apiserver's own tests (`policy/mutating/patch/{smd,json_patch}_test.go`).

use apimachinery::Version;
use rstest::rstest;
use serde_json::{Value, json};

use super::Request;
use super::mutating::{Denial, Mutations};
use crate::catalog;
use crate::expression::Authorizer;
use crate::rbac::{Attributes, Decision};

fn mutations(mutation: &Value) -> Mutations {
    let policy = json!({ "metadata": { "name": "p" }, "spec": {
        "matchConstraints": { "resourceRules": [
            { "apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["deployments"] },
        ] },
        "reinvocationPolicy": "Never",
        "variables": [{ "name": "more", "expression": "object.spec.replicas + 1" }],
        "mutations": [mutation],
    } });
    let binding = json!({ "metadata": { "name": "b" }, "spec": { "policyName": "p" } });
    Mutations::new(&[policy], &[binding])
}

/// What the only mutation makes of a Deployment.
fn mutated(mutation: &Value, object: &Value) -> Result<Option<Value>, Denial> {
    let catalog = catalog::Catalog::builtin(Version::NEWEST);
    let kind = catalog.find("apps", "deployments").unwrap();
    let mutations = mutations(mutation);
    let old = json!({ "spec": { "replicas": 2 } });
    let authorizer = Authorizer::new("ann", &[], |_, _, attributes| Decision {
        allowed: matches!(attributes, Attributes::Path { path, .. } if path == "/x"),
        reason: String::new(),
    });
    let request = Request {
        operation: "UPDATE",
        kind,
        request_kind: kind,
        part: None,
        subresource: "",
        name: "d",
        namespace: Some("default"),
        dry_run: false,
        user: &Value::Null,
        options: &Value::Null,
        object: Some(object),
        old: Some(&old),
        namespace_object: None,
        authorizer: Some(&authorizer),
    };
    let policy = &mutations.of(kind)[0];
    assert_eq!(policy.selects(&request, std::slice::from_ref(kind)), Some(kind));
    let (invocations, denials) = policy.invocations(&request, &|_| Vec::new());
    assert_eq!((invocations.len(), denials.len()), (1, 0));
    assert_eq!(invocations[0].conditions_hold(&request), Ok(true));
    invocations[0].mutated(0, &request, Version::NEWEST)
}

fn apply(expression: &str) -> Value {
    json!({ "patchType": "ApplyConfiguration", "applyConfiguration": { "expression": expression } })
}

fn patch(expression: &str) -> Value {
    json!({ "patchType": "JSONPatch", "jsonPatch": { "expression": expression } })
}

fn with_containers(names: &[&str]) -> Value {
    let containers: Vec<Value> = names.iter().map(|name| json!({ "name": name })).collect();
    json!({ "spec": { "template": { "spec": { "containers": containers } } } })
}

fn denied(why: &str) -> String {
    format!("policy 'p' with binding 'b' denied request: {why}")
}

#[rstest]
#[case::added_to_a_map_list(
    "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{
       volumes: [Object.spec.template.spec.volumes{name: 'y'}]}}}}",
    json!({ "spec": { "template": { "spec": { "volumes": [{ "name": "x" }] } } } }),
    json!({ "spec": { "template": { "spec": { "volumes": [{ "name": "x" }, { "name": "y" }] } } } }),
)]
#[case::conditional(
    "Object{spec: Object.spec{replicas: object.spec.replicas % 2 == 0 ? object.spec.replicas + 1 : object.spec.replicas}}",
    json!({ "spec": { "replicas": 2 } }),
    json!({ "spec": { "replicas": 3 } }),
)]
#[case::old_object(
    "Object{spec: Object.spec{replicas: oldObject.spec.replicas + 1}}",
    json!({ "spec": { "replicas": 1 } }),
    json!({ "spec": { "replicas": 3 } }),
)]
#[case::variable(
    "Object{spec: Object.spec{replicas: variables.more}}",
    json!({ "spec": { "replicas": 1 } }),
    json!({ "spec": { "replicas": 2 } }),
)]
#[case::annotations_are_merged(
    "Object{metadata: Object.metadata{annotations: {'mutated-by': 'policy'}}}",
    json!({ "metadata": { "annotations": { "own": "1" } } }),
    json!({ "metadata": { "annotations": { "own": "1", "mutated-by": "policy" } } }),
)]
#[case::optional_field(
    "Object{spec: Object.spec{?replicas: object.?spec.replicas, ?paused: object.?spec.nope}}",
    json!({ "spec": { "replicas": 4 } }),
    json!({ "spec": { "replicas": 4 } }),
)]
fn a_configuration_is_applied(#[case] expression: &str, #[case] object: Value, #[case] expected: Value) {
    let mut changed = mutated(&apply(expression), &object).unwrap().unwrap();
    for field in ["apiVersion", "kind"] {
        changed.as_object_mut().unwrap().shift_remove(field);
    }
    assert_eq!(changed, expected);
}

#[rstest]
#[case(
    "Object{spec: Object.spec{selector: Object.spec.selector{matchLabels: {'l': 'v'}}}}",
    "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.selector"
)]
#[case(
    "Object{spec: Object.specx{replicas: 1}}",
    "type mismatch: unexpected type name \"Object.specx\", expected \"Object.spec\", which matches field name path from \
     root Object type"
)]
#[case(
    "Object{spec: Object.spec{replicasx: 1}}",
    "error applying patch: failed to convert patch object to typed object: .spec.replicasx: field not declared in schema"
)]
#[case(
    "Object{spec: Object.spec{replicas: object.spec.nope}}",
    "expression 'Object{spec: Object.spec{replicas: object.spec.nope}}' resulted in error: no such key: nope"
)]
fn a_configuration_is_refused(#[case] expression: &str, #[case] why: &str) {
    let denial = mutated(&apply(expression), &json!({ "spec": { "replicas": 1 } })).unwrap_err();
    assert_eq!((denial.message, denial.reason), (denied(why), "Invalid"));
}

#[rstest]
#[case("[JSONPatch{op: 'remove', path: '/spec/template/spec/containers/1'}]", &["a", "c"])]
#[case(
    "[JSONPatch{op: 'copy', from: '/spec/template/spec/containers/0', path: '/spec/template/spec/containers/-'}]",
    &["a", "b", "c", "a"],
)]
#[case(
    "[JSONPatch{op: 'move', from: '/spec/template/spec/containers/0', path: '/spec/template/spec/containers/-'}]",
    &["b", "c", "a"],
)]
#[case(
    "[JSONPatch{op: 'add', path: '/spec/template/spec/containers/0', value: {'name': 'x'}}]",
    &["x", "a", "b", "c"],
)]
#[case(
    "[JSONPatch{op: 'add', path: '/spec/template/spec/containers/-', value: Object.spec.template.spec.containers{name: 'x'}}]",
    &["a", "b", "c", "x"],
)]
#[case(
    "object.spec.template.spec.containers.size() > 1
       ? [JSONPatch{op: 'replace', path: '/spec/template/spec/containers/0/name', value: 'z'}] : []",
    &["z", "b", "c"],
)]
fn a_patch_is_applied(#[case] expression: &str, #[case] expected: &[&str]) {
    let changed = mutated(&patch(expression), &with_containers(&["a", "b", "c"])).unwrap();
    assert_eq!(changed, Some(with_containers(expected)));
}

#[test]
fn fields_of_a_patch_can_be_read_and_keys_escaped() {
    let expression = "[
        JSONPatch{op: 'add', path: '/metadata/labels', value: {
            'op': JSONPatch{op: 'opValue'}.op,
            'has': string(has(JSONPatch{op: 'x'}.op)),
            'has-not': string(has(JSONPatch{}.op)),
            'same': string(JSONPatch{op: 'add', value: 1} == JSONPatch{op: 'add', value: 1}),
            'other': string(JSONPatch{op: 'add'} == JSONPatch{op: 'remove'}),
        }},
        JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('k8s.io/x~y'), value: 'true'},
    ]";
    let changed = mutated(&patch(expression), &json!({ "metadata": {} })).unwrap();
    let labels = json!({
        "op": "opValue", "has": "true", "has-not": "false", "same": "true", "other": "false", "k8s.io/x~y": "true",
    });
    assert_eq!(changed.unwrap()["metadata"]["labels"], labels);
}

#[test]
fn a_patch_whose_test_fails_changes_nothing() {
    let expression = "[
        JSONPatch{op: 'test', path: '/spec/replicas', value: 100},
        JSONPatch{op: 'replace', path: '/spec/replicas', value: 3},
    ]";
    let object = json!({ "spec": { "replicas": 1 } });
    assert_eq!(mutated(&patch(expression), &object), Ok(Some(object)));
}

/// The user may read `/x`, and nothing else.
#[rstest]
#[case("authorizer.path('/x').check('get').allowed()", true)]
#[case("authorizer.path('/y').check('get').allowed()", false)]
#[case("authorizer.requestResource.check('update').allowed()", false)]
fn a_mutation_asks_what_the_user_may_do(#[case] allowed: &str, #[case] expected: bool) {
    let expression = format!("Object{{spec: Object.spec{{paused: {allowed}}}}}");
    let changed = mutated(&apply(&expression), &json!({ "spec": {} })).unwrap();
    assert_eq!(changed.unwrap()["spec"]["paused"], expected);
}

#[rstest]
#[case(apply("\"I'm a teapot!\""), "must evaluate to Object but got string")]
#[case(
    apply("Object.spec.metadata{}"),
    "must evaluate to Object but got Object.spec.metadata"
)]
#[case(
    patch("[JSONPatch{op: 'add', nope: 1}]"),
    "ERROR: <input>:1:27: expected type of field 'nope' is '' but provided type is 'int'"
)]
#[case(patch("[1]"), "must evaluate to list(JSONPatch) but got list(int)")]
#[case(apply("Nope{}"), "undeclared reference to 'Nope' (in container '')")]
fn a_mutation_of_the_wrong_type_is_refused(#[case] mutation: Value, #[case] why: &str) {
    let catalog = catalog::Catalog::builtin(Version::NEWEST);
    let kind = catalog.find(super::GROUP, "mutatingadmissionpolicies").unwrap();
    let found = super::validate(kind, &json!({ "spec": mutating(&mutation) }));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].message.contains(why), "{}", found[0].message);
}

/// The spec of a policy without errors but for its mutation.
fn mutating(mutation: &Value) -> Value {
    json!({
        "matchConstraints": { "resourceRules": [{ "operations": ["CREATE"] }] },
        "reinvocationPolicy": "Never",
        "mutations": [mutation],
    })
}

#[test]
fn a_mutating_policy_has_all_its_parts() {
    let catalog = catalog::Catalog::builtin(Version::NEWEST);
    let kind = catalog.find(super::GROUP, "mutatingadmissionpolicies").unwrap();
    let errors = |spec: Value| {
        let found = super::validate(kind, &json!({ "spec": spec }));
        let shown = found
            .into_iter()
            .map(|cause| format!("{}: {}", cause.field, cause.message));
        shown.collect::<Vec<_>>()
    };
    assert_eq!(errors(mutating(&apply("Object{}"))), Vec::<String>::new());
    assert_eq!(
        errors(json!({ "matchConditions": [{}] })),
        [
            "spec.matchConditions[0].expression: Required value",
            "spec.matchConditions[0].name: Required value",
            "spec.mutations: Required value: mutations must contain at least one item",
            "spec.reinvocationPolicy: Required value",
        ]
    );
    let mut spec = mutating(&json!({ "patchType": "JSONPatch", "applyConfiguration": {} }));
    spec["matchConstraints"]["resourceRules"][0]["operations"] = json!(["DELETE"]);
    assert_eq!(
        errors(spec),
        [
            "spec.matchConstraints.resourceRules.operations: Unsupported value: \"DELETE\": supported values: \"*\", \
             \"CREATE\", \"UPDATE\"",
            "spec.mutations[0].jsonPatch: Required value: must be specified when patchType is JSONPatch",
            "spec.mutations[0].applyConfiguration: Invalid value: \"{applyConfiguration}\": must not be specified when \
             patchType is JSONPatch",
        ]
    );
}

#[rstest]
#[case("mutatingwebhookconfigurations")]
#[case("validatingwebhookconfigurations")]
fn a_match_condition_of_a_webhook_compiles(#[case] plural: &str) {
    let catalog = catalog::Catalog::builtin(Version::NEWEST);
    let kind = catalog.find(super::GROUP, plural).unwrap();
    let condition = |source: &str| json!({ "name": "c", "expression": source });
    let webhooks = json!([
        { "matchConditions": [condition("request.name != 'x' && !has(object.spec)")] },
        { "matchConditions": [condition("true"), condition("... [] bad expression"), condition("1")] },
    ]);
    let found = super::validate(kind, &json!({ "webhooks": webhooks }));
    let fields: Vec<&str> = found.iter().map(|cause| cause.field.as_str()).collect();
    let at = |nth: usize| format!("webhooks[1].matchConditions[{nth}].expression");
    assert_eq!(fields, [at(1), at(2)]);
    assert!(found[0].message.contains("compilation failed: ERROR: <input>:1:"));
    assert!(found[1].message.ends_with("must evaluate to bool but got int"));
}

#[test]
fn a_validation_constructs_nothing() {
    let catalog = catalog::Catalog::builtin(Version::NEWEST);
    let kind = catalog.find(super::GROUP, "validatingadmissionpolicies").unwrap();
    let validation = json!({ "expression": "Object{} == Object{}" });
    let found = super::validate(kind, &json!({ "spec": { "validations": [validation] } }));
    assert!(
        found[0].message.contains("undeclared reference to 'Object'"),
        "{}",
        found[0].message
    );
}

/// A policy of one validation with these variables, and its refusal of an object.
fn refused(variables: &[Value], validations: &[Value]) -> Option<String> {
    let catalog = catalog::Catalog::builtin(Version::NEWEST);
    let kind = catalog.find("apps", "deployments").unwrap();
    let policy = json!({ "metadata": { "name": "p" }, "spec": {
        "matchConstraints": { "resourceRules": [
            { "apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["deployments"] },
        ] },
        "variables": variables,
        "validations": validations,
    } });
    let binding =
        json!({ "metadata": { "name": "b" }, "spec": { "policyName": "p", "validationActions": ["Deny"] } });
    let object = json!({ "spec": { "items": (0..3000).collect::<Vec<_>>() } });
    let request = Request {
        operation: "CREATE",
        kind,
        request_kind: kind,
        part: None,
        subresource: "",
        name: "d",
        namespace: Some("default"),
        dry_run: false,
        user: &Value::Null,
        options: &Value::Null,
        object: Some(&object),
        old: None,
        namespace_object: None,
        authorizer: None,
    };
    let policies = super::Policies::new(&[policy], &[binding]);
    let verdict = policies.judge(&request, &|_| Vec::new());
    verdict.refusal.map(|refusal| refusal.message)
}

fn denial(why: &str) -> Option<String> {
    Some(format!(
        "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: {why}"
    ))
}

#[test]
fn variables_of_variables_have_a_limit() {
    let chain = |length: usize| {
        let variables: Vec<Value> = (0..length)
            .map(|nth| match nth {
                0 => json!({ "name": "v0", "expression": "[true]" }),
                nth => {
                    json!({ "name": format!("v{nth}"), "expression": format!("[variables.v{}[0]]", nth - 1) })
                }
            })
            .collect();
        let last = format!("variables.v{}[0]", length - 1);
        refused(&variables, &[json!({ "expression": last })])
    };
    assert_eq!(chain(50), None);
    let why = chain(1000).unwrap();
    assert!(
        why.ends_with("operation cancelled: actual cost limit exceeded"),
        "{why}"
    );
}

#[test]
fn a_policy_has_a_budget_for_a_request() {
    let costly = json!({ "expression": "object.spec.items.all(x, object.spec.items.size() > x)" });
    assert_eq!(refused(&[], std::slice::from_ref(&costly)), None);
    let why = denial(
        "validation failed due to running out of cost budget, no further validation rules will be run",
    );
    assert_eq!(refused(&[], &vec![costly; 600]), why);
}
