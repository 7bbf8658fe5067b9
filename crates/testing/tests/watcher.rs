//! Unit tests of a client library, here of kube-runtime's watcher, with the server in place of a stub of its requests: streaming
//! lists that begin, resume and fail before their end, and a LIST in pages. docs/recipes.md shows one of them.
//!
//! They use nothing of this crate's feature `kube`: `FakeApiserver::service` alone, so that a library could have them in its
//! own workspace. They must not use what is private in kube-runtime.

use std::time::Duration;

use fake_apiserver_testing::{
    Ending, FakeApiserver, List, Matcher, Page, Requests, Rule, Status, Watch, kind,
};
use futures::{Stream, StreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::{Api, Client, ResourceExt as _};
use kube_runtime::{reflector, watcher};
use serde_json::{Value, json};

/// A ConfigMap that the selectors of these tests select.
fn config_map(name: &str, value: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": "test"}},
        "data": {"value": value},
    })
}

/// The same with a version, for events that the store does not have.
fn at(version: &str, name: &str) -> Value {
    let mut map = config_map(name, version);
    map["metadata"]["resourceVersion"] = version.into();
    map
}

fn api(server: &FakeApiserver) -> Api<ConfigMap> {
    Api::default_namespaced(Client::new(server.service(), "default"))
}

fn selecting(config: watcher::Config) -> watcher::Config {
    config.labels("app=test").fields("metadata.name!=ignored")
}

fn selected<K: kind::RequestKind>(matcher: Matcher<K>) -> Matcher<K> {
    matcher
        .query("labelSelector", "app=test")
        .query("fieldSelector", "metadata.name!=ignored")
}

/// WATCH that begins a streaming list.
fn begins() -> Matcher<Watch> {
    Watch::of("configmaps")
        .query("resourceVersion", "0")
        .query("sendInitialEvents", "true")
}

/// WATCH that resumes behind this version.
fn resumes(version: &str) -> Matcher<Watch> {
    Watch::of("configmaps")
        .query("resourceVersion", version)
        .without_query("sendInitialEvents")
}

/// Time is virtual: an hour takes none.
const HOUR: Duration = Duration::from_secs(3600);

/// Returns the next events and errors, one text each.
async fn next<const N: usize>(
    events: &mut (impl Stream<Item = watcher::Result<watcher::Event<ConfigMap>>> + Unpin),
) -> [String; N] {
    let mut texts = Vec::new();
    while texts.len() < N {
        let event = tokio::time::timeout(HOUR, events.next()).await;
        let event = event.unwrap_or_else(|_| panic!("no event after {texts:?}"));
        let event = event.expect("a watcher does not end");
        texts.push(event.map_or_else(|error| error.to_string(), |event| event.to_string()));
    }
    texts.try_into().expect("N texts")
}

#[tokio::test(start_paused = true)]
async fn a_watch_resumes_behind_the_last_event_before_an_error() {
    let server = FakeApiserver::builder()
        .in_memory()
        .rule(
            Rule::on(Watch::of("configmaps"))
                .event("ADDED", at("2", "a"))
                .event("ADDED", at("3", "b"))
                .initial_events_end("4")
                .event("MODIFIED", at("5", "a"))
                .error(Status::new(502).reason("BadGateway").message("no backend"))
                .event("MODIFIED", at("6", "b")) // a watch goes on after an error other than 410
                .end(Ending::Eof),
        )
        .rule(Rule::on(Watch::of("configmaps")).end(Ending::Eof))
        .rule(Rule::on(Watch::of("configmaps")).no_answer(Ending::Fin))
        .start()
        .await;
    let config = selecting(watcher::Config::default().streaming_lists());
    let mut events = watcher(api(&server), config).boxed();

    assert_eq!(
        next(&mut events).await,
        ["Init", "InitApply(a)", "InitApply(b)", "InitDone", "Apply(a)"]
    );
    assert_eq!(
        next(&mut events).await,
        [
            "error returned by apiserver during watch: no backend: BadGateway",
            "Apply(b)"
        ]
    );
    let [lost] = next(&mut events).await;
    assert!(lost.starts_with("failed to start watching object: "), "{lost}");

    server.expect(selected(begins()), 1);
    server.expect(selected(resumes("6")), 2);
    server.expect(Requests::any(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_is_followed_by_its_changes() {
    let server = FakeApiserver::builder()
        .in_memory()
        .objects(["a", "b", "c"].map(|name| config_map(name, "old")))
        .start()
        .await;
    let config = selecting(watcher::Config::default().streaming_lists());
    let mut events = watcher(api(&server), config).boxed();
    assert_eq!(
        next(&mut events).await,
        ["Init", "InitApply(a)", "InitApply(b)", "InitApply(c)", "InitDone"]
    );

    server.apply(config_map("a", "new"));
    server.delete("configmaps", "b");
    server.apply(config_map("c", "new"));
    assert_eq!(next(&mut events).await, ["Apply(a)", "Delete(b)", "Apply(c)"]);

    let version = server.resource_version();
    server.rule(Rule::now(Watch::of("configmaps")).end(Ending::Eof));
    server.apply(config_map("d", "new"));
    assert_eq!(next(&mut events).await, ["Apply(d)"]);

    server.expect(selected(begins()), 1);
    server.expect(selected(resumes(&version)), 1);
    server.expect(Requests::any(), 2);
    server.assert_clean();
}

/// Reads the events into a store, and returns the names that it has after them.
async fn stored<const N: usize>(server: &FakeApiserver, expected: [&str; N]) -> Vec<String> {
    let (reader, mut writer) = reflector::store();
    let config = selecting(watcher::Config::default().streaming_lists());
    let events = watcher(api(server), config).inspect(|event| {
        if let Ok(event) = event {
            writer.apply_watcher_event(event);
        }
    });
    assert_eq!(next(&mut events.boxed()).await, expected);
    let mut names: Vec<String> = reader.state().iter().map(|map| map.name_any()).collect();
    names.sort();
    names
}

#[tokio::test(start_paused = true)]
async fn objects_of_a_streaming_list_cut_before_its_end_are_dropped() {
    let server = FakeApiserver::builder()
        .in_memory()
        .objects(["a", "b"].map(|name| config_map(name, "old")))
        .rule(Rule::on(Watch::of("configmaps")).cut_after(2, Ending::Eof))
        .rule(Rule::on(Watch::of("configmaps")).delete("configmaps", "b"))
        .start()
        .await;
    let events = [
        "Init",
        "InitApply(a)",
        "InitApply(b)",
        "Init",
        "InitApply(a)",
        "InitDone",
    ];
    assert_eq!(stored(&server, events).await, ["a"]);
    server.expect(selected(begins()), 2);
    server.expect(Requests::any(), 2);
    server.assert_clean();
}

#[tokio::test(start_paused = true)]
async fn objects_of_a_streaming_list_that_expires_before_its_end_are_dropped() {
    let server = FakeApiserver::builder()
        .in_memory()
        .object(config_map("a", "old"))
        .rule(
            Rule::on(Watch::of("configmaps"))
                .event("ADDED", at("2", "a"))
                .event("ADDED", at("3", "b")) // the store never had it
                // The stream stays open, and the rest of the list would come: the client has to begin another.
                .error(Status::new(410).reason("Expired").message("too old")),
        )
        .start()
        .await;
    let events = [
        "Init",
        "InitApply(a)",
        "InitApply(b)",
        "error returned by apiserver during watch: too old: Expired",
        "Init",
        "InitApply(a)",
        "InitDone",
    ];
    assert_eq!(stored(&server, events).await, ["a"]);
    server.expect(selected(begins()), 2);
    server.expect(Requests::any(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_list_is_read_in_pages_before_the_watch() {
    let second = || Page::of("configmaps").query("continue", "second");
    let third = || Page::of("configmaps").query("continue", "third");
    let server = FakeApiserver::builder()
        .in_memory()
        .objects(["a", "b", "c"].map(|name| config_map(name, "old")))
        .rule(Rule::on(List::of("configmaps")).continue_token("second"))
        .rule(Rule::on(second()).continue_token("third"))
        .rule(Rule::on(Watch::of("configmaps")).apply(config_map("d", "new")))
        .start()
        .await;
    let version = server.resource_version();
    let mut events = watcher(api(&server), selecting(watcher::Config::default().page_size(1))).boxed();
    assert_eq!(
        next(&mut events).await,
        [
            "Init",
            "InitApply(a)",
            "InitApply(b)",
            "InitApply(c)",
            "InitDone",
            "Apply(d)"
        ]
    );

    server.expect(selected(List::of("configmaps")).query("limit", "1"), 1);
    server.expect(selected(second()).query("limit", "1"), 1);
    server.expect(selected(third()).query("limit", "1"), 1);
    server.expect(selected(resumes(&version)), 1);
    server.expect(Requests::any(), 4);
    server.assert_clean();
}

#[test]
fn the_page_shows_one_of_them() {
    let page = include_str!("../../../docs/recipes.md");
    let source = include_str!("watcher.rs");
    let (_, shown) = page
        .split_once("\n## Tests of a client library\n")
        .expect("the section");
    let (_, block) = shown.split_once("```rust\n").expect("a block");
    let (block, _) = block.split_once("```").expect("its end");
    assert!(block.contains("#[tokio::test"), "{block}");
    assert!(
        source.contains(block),
        "docs/recipes.md shows what is not tested here:\n{block}"
    );
}
