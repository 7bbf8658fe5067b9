//! Writes of clients beyond those that were recorded, one row per rule.

use rstest::rstest;

use super::*;
use crate::api::WriteRequest;
use crate::api::access::{Authorizer, Requester, User};
use crate::model::hooks::Replies;
use crate::model::registry::{Done, Undone};

const POD: &str = "/api/v1/namespaces/probe/pods";
const NS: &str = "/api/v1/namespaces";

impl World {
    /// Sends a write as a client.
    pub(super) fn write(&mut self, method: &str, target: &str, body: &str) -> Result<Done, Answer> {
        let write = self.write_request(method, target, body)?;
        let done = self.model.write(self.now, write, 7);
        done.map_err(|refused| refused.status.into())
    }

    fn write_request(&self, method: &str, target: &str, body: &str) -> Result<WriteRequest, Answer> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut headers = http::HeaderMap::new();
        let (method, media_type) = match method {
            "PATCH" => (method, "application/merge-patch+json"),
            "APPLY" => ("PATCH", "application/apply-patch+yaml"),
            _ => (method, "application/json"),
        };
        headers.insert("content-type", media_type.parse().unwrap());
        let request = HttpRequest {
            method: method.parse().unwrap(),
            path: path.to_owned(),
            query: query.into(),
            headers,
            body: ::bytes::Bytes::copy_from_slice(body.as_bytes()),
        };
        match parse(&request, self.model.catalog(), true)? {
            Request::Write(write) => Ok(write),
            other @ (Request::List(_)
            | Request::Watch(_)
            | Request::Get(_)
            | Request::Review(_)
            | Request::Connect(_)
            | Request::Document(_)) => {
                panic!("no write: {other:?}")
            }
        }
    }

    /// Returns the code with the number of changes, or with the message of the error.
    pub(super) fn outcome(&mut self, method: &str, target: &str, body: &str) -> String {
        match self.write(method, target, body) {
            Ok(done) => format!("{} {}", done.status, done.written.len()),
            Err(answer) => {
                let body: Value = serde_json::from_slice(&answer.body).unwrap();
                format!("{} {}", answer.status, body["message"].as_str().unwrap())
            }
        }
    }

    pub(super) fn shown(&mut self, method: &str, target: &str, body: &str) -> Value {
        serde_json::from_slice(&self.write(method, target, body).unwrap().body).unwrap()
    }
}

/// Each row: a write of the fixture, and its code with the number of changes, or with the error.
#[rstest]
#[case::a_name_that_is_none(
    "POST",
    CM,
    r#"{"metadata":{"name":"Bad_Name"}}"#,
    "422 ConfigMap \"Bad_Name\" is invalid: metadata.name: Invalid value: \"Bad_Name\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)]
#[case::a_namespace_with_a_dot(
    "POST",
    NS,
    r#"{"metadata":{"name":"a.b"}}"#,
    "422 Namespace \"a.b\" is invalid: metadata.name: Invalid value: \"a.b\": must not contain dots"
)]
#[case::another_kind(
    "POST",
    CM,
    r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"}}"#,
    "400 Pod in version \"v1\" cannot be handled as a ConfigMap: converting (v1.Pod) to (core.ConfigMap): unknown conversion"
)]
#[case::another_version(
    "POST",
    CM,
    r#"{"apiVersion":"apps/v1","metadata":{"name":"x"}}"#,
    "400 the API version in the data (apps/v1) does not match the expected API version (v1)"
)]
#[case::another_custom_kind(
    "POST",
    WD,
    r#"{"apiVersion":"probe.example.com/v1","kind":"Gadget","metadata":{"name":"x"}}"#,
    "422 Gadget.probe.example.com \"x\" is invalid: kind: Invalid value: \"Gadget\": must be Widget"
)]
#[case::a_label_that_is_a_number(
    "POST",
    CM,
    r#"{"metadata":{"name":"x","labels":{"a":1}}}"#,
    "400 ConfigMap in version \"v1\" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string"
)]
#[case::no_namespace_needed(
    "POST",
    "/api/v1/namespaces/none/configmaps",
    r#"{"metadata":{"name":"x"}}"#,
    "201 1"
)]
#[case::an_update_without_name(
    "PUT",
    "/api/v1/namespaces/probe/configmaps/cm-1",
    "{}",
    "400 the name of the object (based on URL) was undeterminable: name must be provided"
)]
#[case::an_empty_uid(
    "PUT",
    "/api/v1/namespaces/probe/configmaps/cm-1",
    r#"{"metadata":{"name":"cm-1","uid":""}}"#,
    "200 1"
)]
#[case::an_update_that_creates(
    "PUT",
    "/apis/coordination.k8s.io/v1/namespaces/probe/leases/l",
    r#"{"metadata":{"name":"l"}}"#,
    "201 1"
)]
#[case::an_update_that_creates_at_a_version(
    "PUT",
    "/apis/coordination.k8s.io/v1/namespaces/probe/leases/l",
    r#"{"metadata":{"name":"l","resourceVersion":"5"}}"#,
    "201 1"
)]
#[case::an_update_that_creates_with_a_uid(
    "PUT",
    "/apis/coordination.k8s.io/v1/namespaces/probe/leases/l",
    r#"{"metadata":{"name":"l","uid":"u"}}"#,
    "409 Operation cannot be fulfilled on leases.coordination.k8s.io \"l\": StorageError: invalid object, Code: 4, Key: /registry/leases/probe/l, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: u, UID in object meta: "
)]
#[case::a_stale_custom_update("PUT", "/apis/probe.example.com/v1/namespaces/probe/widgets/wd-1", r#"{"apiVersion":"probe.example.com/v1","kind":"Widget","metadata":{"name":"wd-1","resourceVersion":"1"}}"#, "409 Operation cannot be fulfilled on widgets.probe.example.com \"wd-1\": the object has been modified; please apply your changes to the latest version and try again")]
#[case::a_patch_of_an_old_version(
    "PATCH",
    "/api/v1/namespaces/probe/configmaps/cm-1",
    r#"{"metadata":{"resourceVersion":"1"}}"#,
    "409 Operation cannot be fulfilled on configmaps \"cm-1\": the object has been modified; please apply your changes to the latest version and try again"
)]
#[case::a_patch_that_renames(
    "PATCH",
    "/api/v1/namespaces/probe/configmaps/cm-1",
    r#"{"metadata":{"name":"a"}}"#,
    "400 the name of the object (a) does not match the name on the URL (cm-1)"
)]
#[case::a_patch_of_nothing(
    "PATCH",
    "/api/v1/namespaces/probe/configmaps/none",
    "{}",
    "404 configmaps \"none\" not found"
)]
#[case::a_patch_without_effect("PATCH", "/api/v1/namespaces/probe/configmaps/cm-1", "{}", "200 0")]
#[case::a_forced_patch(
    "PATCH",
    "/api/v1/namespaces/probe/configmaps/cm-1?force=true",
    "{}",
    "422 PatchOptions.meta.k8s.io \"\" is invalid: force: Forbidden: may not be specified for non-apply patch"
)]
#[case::delete_by_version(
    "DELETE",
    "/api/v1/namespaces/probe/configmaps/cm-1?resourceVersion=1",
    "",
    "409 Operation cannot be fulfilled on ConfigMap \"cm-1\": the ResourceVersion in the precondition (1) does not match the ResourceVersion in record (1003). The object might have been modified"
)]
#[case::delete_by_the_right_version(
    "DELETE",
    "/api/v1/namespaces/probe/configmaps/cm-1",
    r#"{"preconditions":{"resourceVersion":"1003"}}"#,
    "200 1"
)]
#[case::an_unknown_policy(
    "DELETE",
    "/api/v1/namespaces/probe/configmaps/cm-1?propagationPolicy=x",
    "",
    "422 DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value: \"x\": supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\""
)]
#[case::foreground_waits(
    "DELETE",
    "/api/v1/namespaces/probe/configmaps/cm-1?propagationPolicy=Foreground",
    "",
    "200 1"
)]
#[case::background_is_at_once(
    "DELETE",
    "/api/v1/namespaces/probe/configmaps/cm-1?orphanDependents=false",
    "",
    "200 1"
)]
#[case::a_dry_run_of_many("DELETE", "/api/v1/namespaces/probe/configmaps?dryRun=All", "", "200 0")]
#[case::many("DELETE", "/api/v1/namespaces/probe/configmaps", "", "200 5")]
#[case::the_rest_of_many(
    "DELETE",
    "/api/v1/namespaces/probe/configmaps?fieldSelector=metadata.name!%3Dcm-1",
    "",
    "200 4"
)]
#[case::an_immortal(
    "DELETE",
    "/api/v1/namespaces/default",
    "",
    "403 namespaces \"default\" is forbidden: this namespace may not be deleted"
)]
fn a_write_is_done_or_refused(
    #[case] method: &str,
    #[case] target: &str,
    #[case] body: &str,
    #[case] expected: &str,
) {
    let mut world = World::fixture(Version::NEWEST);
    assert_eq!(world.outcome(method, target, body), expected);
}

/// The requests were authorized as an update or a patch; the default roles grant nothing more.
#[rstest]
#[case(
    "APPLY",
    "/api/v1/namespaces/probe/configmaps/new?fieldManager=m",
    r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"new"}}"#,
    "configmaps \"new\" is forbidden: User \"pat\" cannot create resource \"configmaps\" in API group \"\" in the namespace \"probe\""
)]
#[case(
    "PUT",
    "/apis/coordination.k8s.io/v1/namespaces/probe/leases/new",
    r#"{"metadata":{"name":"new"}}"#,
    "leases.coordination.k8s.io \"new\" is forbidden: User \"pat\" cannot create resource \"leases\" in API group \"coordination.k8s.io\" in the namespace \"probe\""
)]
#[case(
    "PATCH",
    "/api/v1/namespaces/probe/configmaps/cm-1",
    r#"{"data":{"k":"2"}}"#,
    ""
)]
fn an_update_that_creates_needs_the_right_to_create(
    #[case] method: &str,
    #[case] target: &str,
    #[case] body: &str,
    #[case] expected: &str,
) {
    let mut world = World::fixture(Version::NEWEST);
    let write = world.write_request(method, target, body).unwrap();
    let authorizer = Authorizer::Roles(world.model.policy());
    let user = User {
        name: "pat".to_owned(),
        ..User::default()
    };
    let requester = Requester {
        user: &user,
        authorizer: &authorizer,
    };
    let replies = &mut Replies::default();
    let outcome = world
        .model
        .write_as(world.now, write, 7, Some(requester), replies);
    let message = match outcome {
        Ok(_) => String::new(),
        Err(Undone::Refused(refused)) => refused.status.message,
        Err(other @ (Undone::Waits | Undone::Converts)) => panic!("{other:?}"),
    };
    assert_eq!(message, expected);
}

#[test]
fn generated_names_are_unique() {
    let mut world = World::fixture(Version::NEWEST);
    let body = r#"{"metadata":{"generateName":"g-"}}"#;
    let first = world.shown("POST", CM, body);
    // The same seed generates the same name, which exists now.
    let second = world.shown("POST", CM, body);
    let name = |object: &Value| object["metadata"]["name"].as_str().unwrap().to_owned();
    assert_ne!(name(&first), name(&second));
    assert_eq!(first["metadata"]["generateName"], "g-");
    let added = name(&first)[2..].to_owned();
    assert!(added.len() == 5 && added.chars().all(|c| "bcdfghjklmnpqrstvwxz2456789".contains(c)));
}

#[test]
fn enforced_namespaces_must_exist() {
    let mut world = World::fixture(Version::NEWEST);
    world.model.enforce_namespaces();
    let body = r#"{"metadata":{"name":"x"}}"#;
    assert_eq!(
        world.outcome("POST", "/api/v1/namespaces/none/configmaps", body),
        "404 namespaces \"none\" not found"
    );
    assert_eq!(world.outcome("POST", CM, body), "201 1");
}

#[test]
fn a_bound_pod_has_a_grace_period() {
    let mut world = World::fixture(Version::NEWEST);
    let pod = r#"{"metadata":{"name":"p"},"spec":{"nodeName":"n","terminationGracePeriodSeconds":10,"containers":[{"name":"c","image":"i"}]},"status":{"phase":"Running"}}"#;
    let path = format!("{POD}/p");
    assert_eq!(
        world.shown("POST", POD, pod)["status"],
        json!({ "phase": "Pending", "qosClass": "BestEffort" })
    );
    let outcome = world.shown("DELETE", &path, "");
    assert_eq!(outcome["metadata"]["deletionTimestamp"], "2026-01-01T00:00:10Z");
    assert_eq!(outcome["metadata"]["deletionGracePeriodSeconds"], 10);
    assert_eq!(outcome["metadata"]["generation"], 2);
    // A second delete changes nothing; a shorter period takes effect; a delete by the node removes the pod.
    assert_eq!(world.outcome("DELETE", &path, ""), "200 0");
    assert_eq!(
        world.outcome("PATCH", &path, r#"{"metadata":{"labels":{"a":"b"}}}"#),
        "200 1"
    );
    assert_eq!(
        world.outcome("DELETE", &format!("{path}?gracePeriodSeconds=5"), ""),
        "200 1"
    );
    assert_eq!(
        world.outcome("DELETE", &format!("{path}?gracePeriodSeconds=0"), ""),
        "200 2"
    );
    assert_eq!(world.outcome("DELETE", &path, ""), "404 pods \"p\" not found");
}

#[test]
fn a_namespace_is_deleted_when_it_is_finalized() {
    let mut world = World::fixture(Version::NEWEST);
    let path = format!("{NS}/gone");
    assert_eq!(
        world.outcome("POST", NS, r#"{"metadata":{"name":"gone"}}"#),
        "201 1"
    );
    assert_eq!(world.shown("DELETE", &path, "")["status"]["phase"], "Terminating");
    assert_eq!(world.outcome("DELETE", &path, ""), "200 0");
    assert_eq!(
        world.outcome("PATCH", &path, r#"{"metadata":{"labels":{"a":"b"}}}"#),
        "200 1"
    );
    let outcome = world.outcome(
        "POST",
        &format!("{path}/configmaps"),
        r#"{"metadata":{"name":"c"}}"#,
    );
    assert!(
        outcome.starts_with("403 configmaps \"c\" is forbidden: unable to create new content"),
        "{outcome}"
    );
    let finalized = r#"{"metadata":{"name":"gone"},"spec":{}}"#;
    assert_eq!(
        world.outcome("PUT", &format!("{path}/finalize"), finalized),
        "200 1"
    );
    assert_eq!(
        world.outcome("DELETE", &path, ""),
        "404 namespaces \"gone\" not found"
    );
}

#[test]
fn foreground_deletion_sets_a_finalizer() {
    let mut world = World::fixture(Version::NEWEST);
    let path = format!("{CM}/cm-1");
    let outcome = world.shown("DELETE", &path, r#"{"propagationPolicy":"Foreground"}"#);
    assert_eq!(outcome["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    assert_eq!(
        world.outcome("PATCH", &path, r#"{"metadata":{"finalizers":null}}"#),
        "200 1"
    );
    assert_eq!(
        world.outcome("DELETE", &path, ""),
        "404 configmaps \"cm-1\" not found"
    );
}

#[test]
fn finalizers_cannot_be_added_to_a_marked_object() {
    let mut world = World::fixture(Version::NEWEST);
    let path = format!("{CM}/cm-1");
    world.shown("PATCH", &path, r#"{"metadata":{"finalizers":["a.b/c"]}}"#);
    world.shown("DELETE", &path, "");
    assert_eq!(
        world.outcome("PATCH", &path, r#"{"metadata":{"finalizers":["a.b/c","a.b/d"]}}"#),
        "422 ConfigMap \"cm-1\" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the \
         object is being deleted, found new finalizers []string{\"a.b/d\"}"
    );
    assert_eq!(
        world.outcome("POST", CM, r#"{"metadata":{"name":"cm-1"}}"#),
        "409 object is being deleted: configmaps \"cm-1\" already exists"
    );
}

#[test]
fn compaction_of_etcd_keeps_the_watch_cache() {
    let mut world = World::fixture(Version::NEWEST);
    world.put("cm-1", "2", None);
    world.model.storage_mut().compact_store();
    assert_eq!(world.model.oldest_watchable("", "configmaps"), Some(1000));
    assert_eq!(world.model.oldest_watchable("", "events"), Some(1010));
    assert_eq!(world.model.compacted(), 1010);
    world.model.storage_mut().restart_watch_caches();
    // The record of the compaction by the apiserver was a write.
    assert_eq!(world.model.oldest_watchable("", "configmaps"), Some(1011));
}
