//! Complete bodies on the wire.

use apimachinery::encode::encode_json;
use apimachinery::options::{Collection, MetaVersion, Representation, RowObject, TableOptions};
use rstest::rstest;

use super::*;

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Returns a world with one object, and its uid.
fn one(group: &str, plural: &str, namespace: Option<&str>, object: Value) -> (World, String) {
    let mut world = World::empty(&ServerSettings::default());
    let uid = world.apply(group, plural, namespace, "one", object).uid;
    (world, uid)
}

#[test]
fn a_list_of_a_built_in_kind_is_in_struct_order_and_its_items_have_no_type() {
    let (world, uid) = one(
        "",
        "configmaps",
        Some("probe"),
        json!({ "data": { "z": "<&>\u{2028}", "a": "1" }, "immutable": true,
                "metadata": { "annotations": { "z": "1", "a": "2" }, "labels": { "y": "1", "b": "2" } } }),
    );
    assert_eq!(
        text(&world.page(CM).encode()),
        format!(
            "{{\"kind\":\"ConfigMapList\",\"apiVersion\":\"v1\",\"metadata\":{{\"resourceVersion\":\"1001\"}},\
             \"items\":[{{\"metadata\":{{\"name\":\"one\",\"namespace\":\"probe\",\"uid\":\"{uid}\",\
             \"resourceVersion\":\"1001\",\"creationTimestamp\":\"2026-01-01T00:00:00Z\",\
             \"labels\":{{\"b\":\"2\",\"y\":\"1\"}},\"annotations\":{{\"a\":\"2\",\"z\":\"1\"}}}},\
             \"immutable\":true,\"data\":{{\"a\":\"1\",\"z\":\"\\u003c\\u0026\\u003e\\u2028\"}}}}]}}\n"
        )
    );
}

#[test]
fn a_list_of_custom_resources_is_sorted_and_its_items_have_their_type() {
    let (world, uid) = one(
        "probe.example.com",
        "widgets",
        Some("probe"),
        json!({ "spec": { "z": { "y": 1, "x": 2 }, "a": 1 } }),
    );
    assert_eq!(
        text(&world.page(WD).encode()),
        format!(
            "{{\"apiVersion\":\"probe.example.com/v1\",\"items\":[{{\"apiVersion\":\"probe.example.com/v1\",\
             \"kind\":\"Widget\",\"metadata\":{{\"creationTimestamp\":\"2026-01-01T00:00:00Z\",\"generation\":1,\
             \"name\":\"one\",\"namespace\":\"probe\",\"resourceVersion\":\"1001\",\"uid\":\"{uid}\"}},\
             \"spec\":{{\"a\":1,\"z\":{{\"x\":2,\"y\":1}}}}}}],\"kind\":\"WidgetList\",\
             \"metadata\":{{\"continue\":\"\",\"resourceVersion\":\"1001\"}}}}\n"
        )
    );
}

#[test]
fn an_empty_list_has_items() {
    let world = World::empty(&ServerSettings::default());
    assert_eq!(
        text(&world.page(CM).encode()),
        "{\"kind\":\"ConfigMapList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"1000\"},\"items\":[]}\n"
    );
}

#[test]
fn a_page_has_token_and_count_after_its_revision() {
    let page = World::fixture(Version::NEWEST).page(&format!("{CM}?limit=2"));
    let body = page.encode();
    let token = page.continue_token.clone().unwrap();
    let head = format!(
        "{{\"kind\":\"ConfigMapList\",\"apiVersion\":\"v1\",\"metadata\":{{\"resourceVersion\":\"1009\",\
         \"continue\":\"{token}\",\"remainingItemCount\":3}},\"items\":["
    );
    assert!(text(&body).starts_with(&head), "{}", text(&body));
}

#[rstest]
fn a_page_as_json_is_the_page_as_bytes(
    #[values(CM, WD, "/api/v1/namespaces")] path: &str,
    #[values("", "?limit=1")] query: &str,
    #[values(Representation::Full, Representation::Metadata(MetaVersion::V1))] form: Representation,
) {
    let mut page = World::fixture(Version::NEWEST).page(&format!("{path}{query}"));
    page.form = form;
    let mut json = encode_json(&page.to_json());
    json.push(b'\n');
    assert_eq!(text(&json), text(&page.encode()));
}

#[test]
fn a_single_object_and_a_watch_event_have_their_type() {
    let (world, uid) = one("", "configmaps", Some("probe"), json!({}));
    let object = format!(
        "{{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{{\"name\":\"one\",\"namespace\":\"probe\",\
         \"uid\":\"{uid}\",\"resourceVersion\":\"1001\",\"creationTimestamp\":\"2026-01-01T00:00:00Z\"}}}}"
    );
    let get = world.object_request(&format!("{CM}/one"));
    let GetOutcome::Found { body, .. } = world.model.get(world.now, world.now, &get) else {
        panic!("no object")
    };
    assert_eq!(text(&body), format!("{object}\n"));
    for target in [
        format!("{CM}?watch=1"),
        format!("{CM}?watch=1&resourceVersion=1000"),
    ] {
        let WatchPoll::Frame(frame) = world.watch(&target).poll(&world.model, world.now) else {
            panic!("no frame")
        };
        assert_eq!(
            text(&frame.line),
            format!("{{\"type\":\"ADDED\",\"object\":{object}}}\n")
        );
    }
}

#[test]
fn metadata_alone_is_a_typed_object_for_every_kind() {
    let (world, uid) = one(
        "probe.example.com",
        "widgets",
        Some("probe"),
        json!({ "spec": { "a": 1 } }),
    );
    let object = format!(
        "{{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{{\"name\":\"one\",\
         \"namespace\":\"probe\",\"uid\":\"{uid}\",\"resourceVersion\":\"1001\",\"generation\":1,\
         \"creationTimestamp\":\"2026-01-01T00:00:00Z\"}}}}"
    );
    let mut list = world.list_request(WD);
    list.form = Representation::Metadata(MetaVersion::V1);
    let ListOutcome::Page(page) = world.model.list(world.now, world.now, &list) else {
        panic!("no page")
    };
    assert_eq!(
        text(&page.encode()),
        format!(
            "{{\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":\"meta.k8s.io/v1\",\
             \"metadata\":{{\"resourceVersion\":\"1001\"}},\"items\":[{object}]}}\n"
        )
    );
    let mut watch = world.watch_request(&format!("{WD}?watch=1"));
    watch.form = Representation::Metadata(MetaVersion::V1);
    let mut watch = world.model.open_watch(world.now, &watch, LIFETIME).unwrap();
    let WatchPoll::Frame(frame) = watch.poll(&world.model, world.now) else {
        panic!("no frame")
    };
    assert_eq!(
        text(&frame.line),
        format!("{{\"type\":\"ADDED\",\"object\":{object}}}\n")
    );
}

#[rstest]
#[case::config_map(
    "",
    "configmaps",
    Representation::Full,
    false,
    r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"9"}}"#
)]
#[case::the_end_of_initial_events("", "configmaps", Representation::Full, true, r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}"#)]
#[case::pod("", "pods", Representation::Full, false, r#"{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"9"},"spec":{"containers":null},"status":{}}"#)]
#[case::service("", "services", Representation::Full, false, r#"{"kind":"Service","apiVersion":"v1","metadata":{"resourceVersion":"9"},"spec":{},"status":{"loadBalancer":{}}}"#)]
#[case::deployment("apps", "deployments", Representation::Full, false, r#"{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"resourceVersion":"9"},"spec":{"replicas":0,"selector":null,"template":{"metadata":{},"spec":{"containers":null}},"strategy":{}},"status":{}}"#)]
#[case::custom_resource("probe.example.com", "widgets", Representation::Full, true, r#"{"apiVersion":"probe.example.com/v1","kind":"Widget","metadata":{"annotations":{"k8s.io/initial-events-end":"true"},"resourceVersion":"9"}}"#)]
#[case::metadata_alone(
    "",
    "pods",
    Representation::Metadata(MetaVersion::V1),
    false,
    r#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"9"}}"#
)]
fn a_bookmark_is_a_zero_value_with_a_revision(
    #[case] group: &str,
    #[case] plural: &str,
    #[case] form: Representation,
    #[case] end: bool,
    #[case] object: &str,
) {
    let world = World::fixture(Version::NEWEST);
    let collection = Collection {
        kind: world.model.catalog().find(group, plural).unwrap().clone(),
        namespace: None,
    };
    let frame = world
        .model
        .bookmark_frame(&collection, "9", end.then_some("true"), form);
    assert_eq!(
        text(&frame.line),
        format!("{{\"type\":\"BOOKMARK\",\"object\":{object}}}\n")
    );
}

#[test]
fn every_kind_s_bookmark_is_json_of_that_kind() {
    let world = World::fixture(Version::NEWEST);
    for kind in world.model.catalog().kinds() {
        let collection = Collection {
            kind: kind.clone(),
            namespace: None,
        };
        let frame = world
            .model
            .bookmark_frame(&collection, "9", None, Representation::Full);
        let line: Value = serde_json::from_slice(&frame.line).unwrap();
        assert_eq!(line["object"]["kind"], *kind.kind);
        assert_eq!(line["object"]["apiVersion"], kind.api_version());
    }
}

#[test]
fn an_error_event_contains_its_status() {
    let frame = crate::model::error_frame(&Status::expired_watch(5, 1234));
    assert_eq!(
        text(&frame.line),
        "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\
         \"status\":\"Failure\",\"message\":\"too old resource version: 5 (1234)\",\"reason\":\"Expired\",\
         \"code\":410}}\n"
    );
    assert_eq!(
        frame.kind,
        FrameType::Error {
            code: 410,
            reason: "Expired".to_owned()
        }
    );
}

#[test]
fn each_version_is_encoded_once() {
    let world = World::fixture(Version::NEWEST);
    let object = world.model.object(&cm("cm-1")).unwrap();
    assert_eq!(
        object.encoded(Representation::Full).as_ptr(),
        object.encoded(Representation::Full).as_ptr()
    );
    let line = |world: &World| {
        let mut watch = world.watch(&format!("{CM}?watch=1&resourceVersion=1002"));
        let WatchPoll::Frame(frame) = watch.poll(&world.model, world.now) else {
            panic!("no frame")
        };
        frame.line
    };
    assert_eq!(line(&world).as_ptr(), line(&world).as_ptr());
}

/// Errors that need a store.
#[rstest]
#[case::list(
    Status::expired_list(),
    r#""message":"The resourceVersion for the provided list is too old.","reason":"Expired","code":410}"#
)]
#[case::etcd_watch(
    Status::expired_etcd_watch(),
    r#""message":"The resourceVersion for the provided watch is too old.","reason":"Expired","code":410}"#
)]
#[case::token_that_cannot_be_offered(Status::expired_continue(None), r#""message":"The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter.","reason":"Expired","code":410}"#)]
#[case::too_large(Status::too_large(999_999_999, 1234, 1), r#""message":"Timeout: Too large resource version: 999999999, current: 1234","reason":"Timeout","details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}],"retryAfterSeconds":1},"code":504}"#)]
fn a_refusal_is_a_status_byte_for_byte(#[case] status: Status, #[case] expected: &str) {
    let head = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","#;
    assert_eq!(text(&status.to_bytes()), format!("{head}{expected}\n"));
    assert_eq!(encode_json(&status.to_json()), status.encode());
}

#[test]
fn an_expired_token_is_a_status_byte_for_byte() {
    assert_eq!(
        text(&Status::expired_continue(Some("TOKEN")).to_bytes()),
        "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{\"continue\":\"TOKEN\"},\"status\":\"Failure\",\
         \"message\":\"The provided continue parameter is too old to display a consistent list result. You can start a \
         new list without the continue parameter, or use the continue token in this response to retrieve the remainder \
         of the results. Continuing with the provided token results in an inconsistent list - objects that were \
         created, modified, or deleted between the time the first chunk was returned and now may show up in the list.\",\
         \"reason\":\"Expired\",\"code\":410}\n"
    );
}

/// A list that is encoded while it is sent has the bytes of one encoded at once.
#[rstest]
fn a_long_list_is_the_same_in_chunks(
    #[values("application/json", "application/yaml")] accept: &'static str,
    #[values("", "pretty=true")] query: &str,
    #[values(
        Representation::Full,
        Representation::Metadata(MetaVersion::V1),
        Representation::Table(TableOptions { version: MetaVersion::V1, object: RowObject::Full }),
        Representation::Table(TableOptions { version: MetaVersion::V1, object: RowObject::None })
    )]
    form: Representation,
    #[values(CM, WD)] target: &str,
) {
    let mut world = World::fixture(Version::NEWEST);
    let (group, plural) = if target == CM {
        ("", "configmaps")
    } else {
        ("probe.example.com", "widgets")
    };
    let content = json!({ "text": "two\nlines\n\n", "quoted": "a: \"b\" <&>", "long": "word ".repeat(50) });
    let object = if target == CM {
        json!({ "data": content })
    } else {
        json!({ "spec": { "deep": [content, {}, []] } })
    };
    world.apply(group, plural, Some("probe"), "one", object.clone());
    world.apply(group, plural, Some("probe"), "two", object);
    let mut headers = http::HeaderMap::new();
    headers.insert("accept", http::HeaderValue::from_static(accept));
    let request = crate::api::HttpRequest {
        method: http::Method::GET,
        path: String::new(),
        query: query.into(),
        headers,
        body: ::bytes::Bytes::new(),
    };
    let page = crate::model::Page {
        form,
        ..world.page(target)
    };
    let whole = crate::api::ok(page.encode()).in_the_style_of(&request);
    let (pieces, head) = crate::api::StyledText::new(page.into_text(), &request).unwrap();
    let pieces: Vec<u8> = pieces.flatten().collect();
    assert_eq!(text(&pieces), text(&whole.body));
    assert_eq!(head.headers, whole.headers);
}
