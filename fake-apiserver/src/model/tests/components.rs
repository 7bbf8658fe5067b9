//! Component statuses, as recorded from kube-apiserver 1.36 without other components.

use rstest::rstest;

use super::*;

const ALL: &str = "/api/v1/componentstatuses";

#[test]
fn component_statuses_have_no_version() {
    let world = World::fixture(Version::NEWEST);
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    assert_eq!(
        text(
            &world
                .page("/api/v1/componentstatuses?fieldSelector=metadata.name%3Detcd-0")
                .encode()
        ),
        "{\"kind\":\"ComponentStatusList\",\"apiVersion\":\"v1\",\"metadata\":{},\"items\":[{\"metadata\":{\"name\":\"etcd-0\"},\"conditions\":[{\"type\":\"Healthy\",\"status\":\"True\",\"message\":\"ok\"}]}]}\n"
    );
    let request = world.object_request("/api/v1/componentstatuses/etcd-0");
    let GetOutcome::Found { body, .. } = world.model.get(world.now, world.now, &request) else {
        panic!("there is none");
    };
    assert_eq!(
        text(&body),
        "{\"kind\":\"ComponentStatus\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"etcd-0\"},\"conditions\":[{\"type\":\"Healthy\",\"status\":\"True\",\"message\":\"ok\"}]}\n"
    );
}

/// Versions, limits and continue tokens are ignored.
#[rstest]
#[case::all("")]
#[case::a_page("?limit=1")]
#[case::a_token("?continue=abc")]
#[case::a_version("?resourceVersion=5&resourceVersionMatch=Exact")]
fn all_are_listed(#[case] query: &str) {
    let page = World::fixture(Version::NEWEST).page(&format!("{ALL}{query}"));
    let names: Vec<&str> = page.items.iter().map(|item| item.name()).collect();
    assert_eq!(names, ["controller-manager", "etcd-0", "scheduler"]);
    assert_eq!(page.continue_token, None);
}

#[rstest]
#[case::watched(
    "GET",
    "?watch=1",
    405,
    "watch is not supported on resources of kind \"componentstatuses\""
)]
#[case::written(
    "POST",
    "",
    405,
    "the server does not allow this method on the requested resource"
)]
#[case::removed(
    "DELETE",
    "/etcd-0",
    405,
    "the server does not allow this method on the requested resource"
)]
fn nothing_else_is_possible(
    #[case] method: &str,
    #[case] rest: &str,
    #[case] status: u16,
    #[case] message: &str,
) {
    let refused = World::fixture(Version::NEWEST)
        .write(method, &format!("{ALL}{rest}"), "{}")
        .unwrap_err();
    let body: Value = serde_json::from_slice(&refused.body).unwrap();
    assert_eq!(
        (refused.status, body["message"].as_str()),
        (status, Some(message))
    );
}

#[test]
fn unknown_components_are_404() {
    let world = World::fixture(Version::NEWEST);
    assert_eq!(
        world.get("/api/v1/componentstatuses/nope", Duration::ZERO),
        "404 componentstatus \"nope\" not found"
    );
}
