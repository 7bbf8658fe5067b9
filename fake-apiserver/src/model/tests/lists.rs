//! LIST and GET: the state and the part of it that they return.

use http::HeaderValue;
use rstest::rstest;

use super::*;

const FIVE: &str = "probe/cm-1 probe/cm-2 probe/cm-3 probe/cm-4 probe/cm-5";

/// Returns a world at 1011: cm-1 was changed at 1010, cm-0 created at 1011.
fn moved_on(version: Version) -> World {
    let mut world = World::fixture(version);
    world.put("cm-1", "2", Some("x"));
    world.put("cm-0", "1", None);
    world
}

#[rstest]
#[case::newest("", "1011: probe/cm-0 FIVE")]
#[case::newest_paged("limit=2", "1011: probe/cm-0 probe/cm-1 continue +4")]
#[case::any("resourceVersion=0", "1011: probe/cm-0 FIVE")]
#[case::any_ignores_the_limit("resourceVersion=0&limit=2", "1011: probe/cm-0 FIVE")]
#[case::not_older("resourceVersion=1009", "1011: probe/cm-0 FIVE")]
#[case::legacy_exact_when_paged("resourceVersion=1009&limit=2", "1009: probe/cm-1 probe/cm-2 continue +3")]
#[case::not_older_paged(
    "resourceVersion=1009&resourceVersionMatch=NotOlderThan&limit=2",
    "1011: probe/cm-0 probe/cm-1 continue +4"
)]
#[case::not_older_any(
    "resourceVersion=0&resourceVersionMatch=NotOlderThan&limit=1",
    "1011: probe/cm-0 FIVE"
)]
#[case::exact("resourceVersion=1009&resourceVersionMatch=Exact", "1009: FIVE")]
#[case::exact_between_writes("resourceVersion=1010&resourceVersionMatch=Exact", "1010: FIVE")]
#[case::exact_before_some(
    "resourceVersion=1004&resourceVersionMatch=Exact",
    "1004: probe/cm-1 probe/cm-2"
)]
#[case::exact_before_all("resourceVersion=1000&resourceVersionMatch=Exact", "1000: ")]
#[case::exact_before_the_store(
    "resourceVersion=999&resourceVersionMatch=Exact",
    "410 The resourceVersion for the provided list is too old."
)]
#[case::limit_equal_to_the_rest("limit=6", "1011: probe/cm-0 FIVE")]
#[case::limit_zero("limit=0", "1011: probe/cm-0 FIVE")]
#[case::limit_negative("limit=-1", "1011: probe/cm-0 FIVE")]
#[case::selected_pages_do_not_count("limit=2&labelSelector=app%3Dx", "1011: probe/cm-1 probe/cm-3 continue")]
#[case::a_full_page_continues_though_nothing_else_matches(
    "limit=1&fieldSelector=metadata.name!%3Dcm-2,metadata.namespace%3Dprobe",
    "1011: probe/cm-0 continue"
)]
#[case::one_name("fieldSelector=metadata.name%3Dcm-2", "1011: probe/cm-2")]
#[case::one_name_ignores_the_limit("fieldSelector=metadata.name%3Dcm-2&limit=1", "1011: probe/cm-2")]
#[case::no_such_name("fieldSelector=metadata.name%3Dzzz", "1011: ")]
fn a_list_answers_from_the_state_its_options_ask_for(
    #[values(Version::OLDEST, Version::NEWEST)] version: Version,
    #[case] query: &str,
    #[case] expected: &str,
) {
    let world = moved_on(version);
    assert_eq!(
        world.list(&format!("{CM}?{query}")),
        expected.replace("FIVE", FIVE)
    );
}

#[rstest]
#[case::all_namespaces_in_byte_order(ALL_CM, "1009: probe-b/cm-1 FIVE")]
#[case::a_namespace_whose_name_another_begins_with(
    "/api/v1/namespaces/probe-b/configmaps",
    "1009: probe-b/cm-1"
)]
#[case::an_unknown_namespace("/api/v1/namespaces/nothere/configmaps", "1009: ")]
#[case::a_cluster_scoped_kind("/api/v1/namespaces", "1009: probe probe-b")]
#[case::a_custom_resource(WD, "1009: probe/wd-1")]
fn a_list_shows_its_collection_in_key_order(#[case] path: &str, #[case] expected: &str) {
    let world = World::fixture(Version::NEWEST);
    assert_eq!(world.list(path), expected.replace("FIVE", FIVE));
}

/// `at 3 s` is the response after the watch cache's timeout.
#[rstest]
#[case::not_older(Version::NEWEST, CM, "resourceVersion=2000", "wait 3s", TOO_LARGE)]
#[case::not_older_explicit(
    Version::NEWEST,
    CM,
    "resourceVersion=2000&resourceVersionMatch=NotOlderThan&limit=1",
    "wait 3s",
    TOO_LARGE
)]
#[case::legacy_exact(Version::V1_34, CM, "resourceVersion=2000&limit=1", "wait 3s", TOO_LARGE)]
#[case::exact(
    Version::V1_34,
    CM,
    "resourceVersion=2000&resourceVersionMatch=Exact",
    "wait 3s",
    TOO_LARGE
)]
#[case::not_older_without_cache(Version::NEWEST, EVENTS, "resourceVersion=2000", TOO_LARGE, TOO_LARGE)]
fn a_list_of_the_future_waits_for_it(
    #[case] version: Version,
    #[case] path: &str,
    #[case] query: &str,
    #[case] at_once: &str,
    #[case] at_3_s: &str,
) {
    let world = World::fixture(version);
    let target = format!("{path}?{query}");
    assert_eq!(world.list(&target), at_once);
    assert_eq!(world.list_after(&target, seconds(2.999)), at_once);
    assert_eq!(world.list_after(&target, seconds(3.0)), at_3_s);
}

const TOO_LARGE: &str = "504 Timeout: Too large resource version: 2000, current: 1009";

#[rstest]
#[case::cache_says_when_to_retry(CM, 1)]
#[case::etcd_does_not(EVENTS, 0)]
fn a_future_revision_has_a_retry_delay(#[case] path: &str, #[case] retry_after: u32) {
    let world = World::fixture(Version::NEWEST);
    let request = world.list_request(&format!("{path}?resourceVersion=2000"));
    let ListOutcome::Refused(status) = world.model.list(seconds(3.0), Duration::ZERO, &request) else {
        panic!("not refused");
    };
    let details = status.details.as_ref().unwrap();
    assert_eq!(details.retry_after_seconds, retry_after);
    assert_eq!(details.causes[0].reason, "ResourceVersionTooLarge");
    let header = Answer::from(status)
        .headers
        .into_iter()
        .find(|(name, _)| name == "Retry-After");
    assert_eq!(
        header.map(|(_, value)| value),
        (retry_after > 0).then(|| HeaderValue::from_static("1"))
    );
}

#[test]
fn a_waiting_list_returns_when_the_revision_is_written() {
    let mut world = World::fixture(Version::NEWEST);
    let target = format!("{CM}?resourceVersion=1010");
    assert_eq!(world.list(&target), "wait 3s");
    world.put("cm-0", "1", None);
    assert_eq!(
        world.list_after(&target, seconds(1.0)),
        format!("1010: probe/cm-0 {FIVE}")
    );
}

#[rstest]
#[case::namespaced_from_cache(Version::NEWEST, CM, "/cm-2\0")]
#[case::all_namespaces_from_cache(Version::NEWEST, ALL_CM, "/probe/cm-1\0")]
#[case::cluster_scoped_from_cache(Version::V1_34, "/api/v1/namespaces", "")]
fn a_token_names_the_revision_and_the_last_key(
    #[case] version: Version,
    #[case] path: &str,
    #[case] start: &str,
) {
    use apimachinery::continue_token::ContinueToken;
    let page = World::fixture(version).page(&format!("{path}?limit=2"));
    let token = page
        .continue_token
        .map(|token| ContinueToken::decode(&token).unwrap());
    let expected = (!start.is_empty()).then(|| ContinueToken {
        revision: 1009,
        start: start.to_owned(),
    });
    assert_eq!(token, expected);
}

#[rstest]
fn all_pages_show_the_first_one_s_revision(
    #[values(Version::OLDEST, Version::NEWEST)] version: Version,
    #[values(
        "",
        "&resourceVersion=1009",
        "&resourceVersion=1009&resourceVersionMatch=NotOlderThan"
    )]
    options: &str,
) {
    let mut world = World::fixture(version);
    let first = world.page(&format!("{CM}?limit=2{options}"));
    assert_eq!(story(&first), "1009: probe/cm-1 probe/cm-2 continue +3");
    world.put("cm-0", "1", None);
    world.delete("cm-4");
    world.put("cm-9", "1", None);
    let second = world.page(&format!(
        "{CM}?limit=2&continue={}",
        first.continue_token.unwrap()
    ));
    assert_eq!(story(&second), "1009: probe/cm-3 probe/cm-4 continue +1");
    let last = world.page(&format!("{CM}?continue={}", second.continue_token.unwrap()));
    assert_eq!(story(&last), "1009: probe/cm-5");
}

#[test]
fn a_continued_list_at_version_0_ignores_the_limit() {
    let world = World::fixture(Version::NEWEST);
    let token = world.page(&format!("{CM}?limit=2")).continue_token.unwrap();
    let target = format!("{CM}?limit=1&resourceVersion=0&continue={token}");
    assert_eq!(world.list(&target), "1009: probe/cm-3 probe/cm-4 probe/cm-5");
}

#[test]
fn an_expired_token_is_rejected_with_an_inconsistent_one() {
    let mut world = World::fixture(Version::NEWEST);
    let first = world.page(&format!("{CM}?limit=2"));
    world.put("cm-2a", "new", None);
    world.delete("cm-5");
    world.model.storage_mut().compact();
    let request = world.list_request(&format!(
        "{CM}?limit=1&continue={}",
        first.continue_token.unwrap()
    ));
    let ListOutcome::Refused(status) = world.model.list(world.now, world.now, &request) else {
        panic!("not refused");
    };
    assert_eq!((status.code, status.reason.as_str()), (410, "Expired"));
    assert!(status.message.contains("use the continue token in this response"));
    assert_eq!(
        apimachinery::continue_token::ContinueToken::decode(&status.continue_token).unwrap(),
        apimachinery::continue_token::ContinueToken {
            revision: -1,
            start: "cm-2\0".to_owned()
        }
    );
    let rest = world.page(&format!("{CM}?limit=1&continue={}", status.continue_token));
    assert_eq!(story(&rest), "1011: probe/cm-2a continue +2");
    let rest = world.page(&format!("{CM}?limit=5&continue={}", rest.continue_token.unwrap()));
    assert_eq!(story(&rest), "1011: probe/cm-3 probe/cm-4");
}

#[rstest]
#[case::newest("", "1003 probe/cm-1")]
#[case::any("resourceVersion=0", "1003 probe/cm-1")]
#[case::not_older("resourceVersion=1009", "1003 probe/cm-1")]
#[case::the_future("resourceVersion=2000", "wait 3s")]
fn a_get_reads_the_requested_state(#[case] query: &str, #[case] expected: &str) {
    let world = World::fixture(Version::NEWEST);
    assert_eq!(world.get(&format!("{CM}/cm-1?{query}"), Duration::ZERO), expected);
}

#[rstest]
#[case(&format!("{CM}/zzz"), "404 configmaps \"zzz\" not found")]
#[case(&format!("{WD}/zzz"), "404 widgets.probe.example.com \"zzz\" not found")]
#[case(&format!("{CM}/cm-1?resourceVersion=2000"), TOO_LARGE)]
fn a_missing_object_is_404(#[case] target: &str, #[case] expected: &str) {
    assert_eq!(
        World::fixture(Version::NEWEST).get(target, seconds(3.0)),
        expected
    );
}
