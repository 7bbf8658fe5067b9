//! What selects, what is refused, and how: tables over the evaluator. It must not know storage or HTTP.

use apimachinery::Version;
use rstest::rstest;

use super::*;
use crate::catalog::Catalog;

fn kind(group: &str, plural: &str) -> KindRef {
    Catalog::builtin(Version::NEWEST)
        .find(group, plural)
        .cloned()
        .expect("it is built in")
}

fn hook(more: &Value, mutating: bool) -> Hook {
    let mut json = json!({
        "name": "h.example.com",
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}],
        "admissionReviewVersions": ["v2", "v1"],
        "sideEffects": "None",
        "clientConfig": {"url": "https://127.0.0.1:1/"},
    });
    for (field, value) in more.as_object().into_iter().flatten() {
        json[field] = value.clone();
    }
    Hook::read(&json, "all", mutating)
}

fn create_request<'a>(kind: &'a ApiResource, object: &'a Value, nothing: &'a Value) -> Request<'a> {
    Request {
        operation: "CREATE",
        kind,
        request_kind: kind,
        part: None,
        subresource: "",
        name: "a",
        namespace: Some("n"),
        dry_run: false,
        user: nothing,
        options: nothing,
        object: Some(object),
        old: None,
        namespace_object: None,
        authorizer: None,
    }
}

fn answered(body: &Value) -> Outcome {
    Outcome::Answered {
        status: 200,
        content_type: "application/json".to_owned(),
        body: body.to_string().into_bytes(),
    }
}

fn reviewed(response: Value) -> Value {
    json!({ "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response })
}

#[rstest]
#[case::all(json!({}), true)]
#[case::other_operation(json!({"rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "operations": ["UPDATE"]}]}), false)]
#[case::cluster(json!({"rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "operations": ["*"], "scope": "Cluster"}]}), false)]
#[case::parts_only(json!({"rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["configmaps/status"], "operations": ["*"]}]}), false)]
#[case::labelled(json!({"objectSelector": {"matchLabels": {"app": "x"}}}), true)]
#[case::labelled_otherwise(json!({"objectSelector": {"matchLabels": {"app": "y"}}}), false)]
fn rules_and_labels_select(#[case] more: Value, #[case] selected: bool) {
    let kind = kind("", "configmaps");
    let object = json!({"metadata": {"name": "a", "labels": {"app": "x"}}});
    let found = hook(&more, false).selects(
        &create_request(&kind, &object, &Value::Null),
        std::slice::from_ref(&kind),
    );
    assert_eq!(found.is_some(), selected);
}

#[rstest]
#[case::equivalent("Equivalent", Some("autoscaling/v1"))]
#[case::exact("Exact", None)]
fn another_version_is_the_same_resource_unless_it_must_be_exact(
    #[case] policy: &str,
    #[case] shown: Option<&str>,
) {
    let catalog = Catalog::builtin(Version::NEWEST);
    let versions: Vec<KindRef> = catalog
        .kinds()
        .iter()
        .filter(|kind| kind.kind == "HorizontalPodAutoscaler")
        .cloned()
        .collect();
    let newest = versions
        .iter()
        .find(|kind| kind.version == "v2")
        .expect("v2 is served");
    let rule = json!([{"apiGroups": ["autoscaling"], "apiVersions": ["v1"], "operations": ["*"],
                       "resources": ["horizontalpodautoscalers"]}]);
    let object = json!({"metadata": {}});
    let found = hook(&json!({"rules": rule, "matchPolicy": policy}), false)
        .selects(&create_request(newest, &object, &Value::Null), &versions);
    assert_eq!(found.map(|kind| kind.api_version()).as_deref(), shown);
}

#[rstest]
#[case::holds("object.metadata.name == 'a'", "Fail", Ok(true))]
#[case::holds_not("request.operation == 'UPDATE'", "Fail", Ok(false))]
#[case::fails(
    "object.nothing == 1",
    "Fail",
    Err(
        "configmaps \"a\" is forbidden: expression 'object.nothing == 1' resulted in error: no such key: nothing"
    )
)]
#[case::fails_and_is_ignored("object.nothing == 1", "Ignore", Ok(false))]
fn conditions(#[case] expression: &str, #[case] policy: &str, #[case] expected: Result<bool, &str>) {
    let kind = kind("", "configmaps");
    let object = json!({"metadata": {"name": "a"}});
    let hook = hook(
        &json!({"failurePolicy": policy, "matchConditions": [{"name": "c", "expression": expression}]}),
        false,
    );
    let held = hook.conditions_hold(&create_request(&kind, &object, &Value::Null));
    let held = held.map_err(|status| status.message);
    assert_eq!(held, expected.map_err(str::to_owned));
}

#[rstest]
#[case::without_words(json!({}), 400, "", "admission webhook \"h.example.com\" denied the request without explanation")]
#[case::a_reason(json!({"reason": "Odd", "code": 200}), 400, "Odd", "admission webhook \"h.example.com\" denied the request: Odd")]
#[case::a_message(json!({"message": "no", "code": 403}), 403, "", "admission webhook \"h.example.com\" denied the request: no")]
fn denials(#[case] status: Value, #[case] code: u16, #[case] reason: &str, #[case] message: &str) {
    let answer = reviewed(json!({"uid": "1", "allowed": false, "status": status, "warnings": ["w"]}));
    let refusal = hook(&json!({}), false)
        .verdict("1", "https://h/", &answered(&answer))
        .unwrap_err();
    let refused = refusal.status;
    assert_eq!(
        (refused.code, refused.reason.as_str(), refused.message.as_str()),
        (code, reason, message)
    );
    assert_eq!(refusal.warnings, ["w"]);
}

#[rstest]
#[case::no_response(json!({"kind": "AdmissionReview"}), "webhook response was absent")]
#[case::another_uid(reviewed(json!({"uid": "2", "allowed": true})), "expected response.uid=\"1\", got \"2\"")]
#[case::no_kind(json!({"response": {"uid": "1", "allowed": true}}), "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind=")]
#[case::no_patch_type(reviewed(json!({"uid": "1", "allowed": true, "patch": "W10="})), "webhook returned response.patch but not response.patchType")]
#[case::no_patch(reviewed(json!({"uid": "1", "allowed": true, "patchType": "JSONPatch"})), "webhook returned response.patchType but not response.patch")]
fn invalid_responses(#[case] answer: Value, #[case] why: &str) {
    let refused = hook(&json!({}), true)
        .verdict("1", "https://h/", &answered(&answer))
        .unwrap_err();
    assert_eq!(
        refused.status.message,
        format!(
            "Internal error occurred: failed calling webhook \"h.example.com\": received invalid webhook response: {why}"
        )
    );
    let ignoring = hook(&json!({"failurePolicy": "Ignore"}), true);
    assert!(ignoring.verdict("1", "https://h/", &answered(&answer)).is_ok());
}

#[test]
fn validating_webhooks_return_no_patch() {
    let answer = reviewed(json!({"uid": "1", "allowed": true, "patchType": "JSONPatch", "patch": "W10="}));
    let refused = hook(&json!({}), false).verdict("1", "https://h/", &answered(&answer));
    let told = refused.unwrap_err().status.message;
    assert!(
        told.ends_with("validating webhook may not return response.patch"),
        "{told}"
    );
    assert!(
        hook(&json!({}), true)
            .verdict("1", "https://h/", &answered(&answer))
            .is_ok()
    );
}

#[test]
fn a_review_is_of_the_first_version_that_is_known() {
    let kind = kind("", "configmaps");
    let object = json!({"metadata": {"name": "a"}});
    let review = hook(&json!({}), false).review(&create_request(&kind, &object, &Value::Null), "1");
    assert_eq!(review["apiVersion"], "admission.k8s.io/v1");
    assert_eq!(review["request"]["uid"], "1");
    assert_eq!(review["request"]["requestKind"]["kind"], "ConfigMap");
    assert_eq!(review["request"]["oldObject"], Value::Null);
    assert!(review["request"].get("subResource").is_none());
}

#[test]
fn side_effects_forbid_dry_runs() {
    let has = hook(&json!({"sideEffects": "Some"}), false);
    assert!(has.check_dry_run(false).is_ok());
    assert_eq!(
        has.check_dry_run(true).unwrap_err().message,
        "admission webhook \"h.example.com\" does not support dry run"
    );
    assert!(hook(&json!({}), false).check_dry_run(true).is_ok());
}
