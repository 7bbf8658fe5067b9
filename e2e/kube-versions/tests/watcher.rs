//! What the tests of kube-runtime's own watcher say, said with a server instead of a stub of its requests: streaming lists
//! that begin, resume and fail before their end, and a LIST in pages. kube-rs could have them in its workspace, because the
//! crate for tests depends on no version of kube.
//!
//! Source: tests of `kube_runtime::watcher`, version 5.0.0. They must not use what is private there.

use fake_apiserver_testing::{Ending, FakeApiserver, Request, Rule, Status, Verb, Watch};
use futures::{Stream, StreamExt as _};
use k8s_openapi_of_5::api::core::v1::ConfigMap;
use kube_of_5::runtime::{reflector, watcher};
use kube_of_5::{Api, Client, ResourceExt as _};

/// A ConfigMap that the selectors of these tests select.
fn config_map(name: &str, value: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, labels: {{app: test}}}}, data: {{value: '{value}'}}}}"
    )
}

/// Starts a server with these ConfigMaps, in virtual time.
async fn server<K: fake_apiserver_testing::kind::RequestKind>(
    names: &[&str],
    rules: impl IntoIterator<Item = Rule<K>>,
) -> FakeApiserver {
    let objects = names.iter().map(|name| config_map(name, "old"));
    let builder = FakeApiserver::builder().in_memory().objects(objects);
    rules
        .into_iter()
        .fold(builder, |builder, rule| builder.rule(rule))
        .start()
        .await
}

fn api(server: &FakeApiserver) -> Api<ConfigMap> {
    Api::default_namespaced(Client::new(server.service(), "default"))
}

/// Only what these tests create; the server has other ConfigMaps where a controller publishes certificates.
fn selecting(config: watcher::Config) -> watcher::Config {
    config.labels("app=test").fields("metadata.name!=ignored")
}

/// Returns the next `count` events and errors, one word each.
async fn next(
    events: &mut (impl Stream<Item = Result<watcher::Event<ConfigMap>, watcher::Error>> + Unpin),
    count: usize,
) -> Vec<String> {
    let words = events.take(count).map(|event| match event {
        Ok(event) => event.to_string(),
        Err(error) => error.to_string(),
    });
    words.collect().await
}

/// Returns the requests for ConfigMaps of one verb.
fn sent(server: &FakeApiserver, verb: Verb) -> Vec<Request> {
    let requests = server.requests();
    requests
        .into_iter()
        .filter(|request| request.verb == verb)
        .collect()
}

#[track_caller]
fn selects(request: &Request) {
    assert_eq!(request.query("labelSelector"), Some("app=test"), "{request}");
    assert_eq!(
        request.query("fieldSelector"),
        Some("metadata.name!=ignored"),
        "{request}"
    );
}

#[track_caller]
fn begins_a_streaming_list(request: &Request) {
    assert_eq!(request.query("sendInitialEvents"), Some("true"), "{request}");
    assert_eq!(request.query("resourceVersion").unwrap_or("0"), "0", "{request}");
}

#[track_caller]
fn resumes(request: &Request, version: &str) {
    assert_eq!(request.query("sendInitialEvents"), None, "{request}");
    assert_eq!(request.query("resourceVersion"), Some(version), "{request}");
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_is_followed_by_its_changes() {
    let server = server::<Watch>(&["a", "b", "c"], []).await;
    let config = selecting(watcher::Config::default().timeout(1).streaming_lists());
    let mut events = watcher(api(&server), config).boxed();
    assert_eq!(
        next(&mut events, 5).await,
        ["Init", "InitApply(a)", "InitApply(b)", "InitApply(c)", "InitDone"]
    );

    server.apply(config_map("a", "new"));
    server.delete("configmaps", "b");
    server.apply(config_map("c", "new"));
    assert_eq!(next(&mut events, 3).await, ["Apply(a)", "Delete(b)", "Apply(c)"]);

    // The watch ends by its own timeout, and the next one begins where it ended.
    let version = server.resource_version();
    server.apply(config_map("d", "new"));
    assert_eq!(next(&mut events, 1).await, ["Apply(d)"]);
    let watches = sent(&server, Verb::Watch);
    begins_a_streaming_list(&watches[0]);
    watches.iter().for_each(selects);
    watches[1..].iter().for_each(|watch| resumes(watch, &version));
    assert!(sent(&server, Verb::List).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_watch_resumes_behind_the_last_event_before_an_error() {
    let server = server::<Watch>(&["a", "b", "c"], []).await;
    let config = selecting(watcher::Config::default().streaming_lists());
    let mut events = watcher(api(&server), config).boxed();
    assert_eq!(next(&mut events, 5).await.last().unwrap(), "InitDone");
    server.apply(config_map("a", "new"));
    assert_eq!(next(&mut events, 1).await, ["Apply(a)"]);
    let version = server.resource_version();

    let failure = Status::new(502)
        .reason("BadGateway")
        .message("the gateway failed");
    server.rule(Rule::now(Watch::of("configmaps")).error(failure).end(Ending::Eof));
    assert_eq!(
        next(&mut events, 1).await,
        ["error returned by apiserver during watch: the gateway failed: BadGateway"]
    );
    server.apply(config_map("a", "newest"));
    assert_eq!(next(&mut events, 1).await, ["Apply(a)"]);

    let watches = sent(&server, Verb::Watch);
    assert_eq!(watches.len(), 2);
    begins_a_streaming_list(&watches[0]);
    resumes(&watches[1], &version);
    watches.iter().for_each(selects);
}

/// Reads a streaming list that fails before its end, and returns what was emitted and what a store has afterwards.
async fn emitted_and_stored(
    server: &FakeApiserver,
    count: usize,
    fail: impl Fn(&str),
) -> (Vec<String>, Vec<String>) {
    let (reader, mut writer) = reflector::store::<ConfigMap>();
    let config = watcher::Config::default().labels("app=test").streaming_lists();
    let mut events = watcher(api(server), config).boxed();
    let mut emitted = Vec::new();
    while emitted.len() < count {
        let event = events.next().await.expect("a watcher does not end");
        if let Ok(event) = &event {
            writer.apply_watcher_event(event);
        }
        let word = event.map_or_else(|error| error.to_string(), |event| event.to_string());
        fail(&word);
        emitted.push(word);
    }
    let mut names: Vec<String> = reader.state().iter().map(|map| map.name_any()).collect();
    names.sort();
    (emitted, names)
}

#[tokio::test(start_paused = true)]
async fn objects_of_a_streaming_list_cut_before_its_end_are_dropped() {
    let cut = Rule::on(Watch::of("configmaps")).cut_after(2, Ending::Eof);
    let gone = Rule::on(Watch::of("configmaps")).delete("configmaps", "b");
    let server = server(&["a", "b"], [cut, gone]).await;
    let (emitted, stored) = emitted_and_stored(&server, 6, |_| {}).await;
    assert_eq!(
        emitted,
        [
            "Init",
            "InitApply(a)",
            "InitApply(b)",
            "Init",
            "InitApply(a)",
            "InitDone"
        ]
    );
    assert_eq!(stored, ["a"]);
    sent(&server, Verb::Watch)
        .iter()
        .for_each(begins_a_streaming_list);
}

#[tokio::test(start_paused = true)]
async fn objects_of_a_streaming_list_that_expires_before_its_end_are_dropped() {
    let server = server(&["a", "b"], [Rule::on(Watch::of("configmaps")).no_bookmarks()]).await;
    let (emitted, stored) = emitted_and_stored(&server, 7, |word| {
        if word == "InitApply(b)" {
            server.delete("configmaps", "b");
            server.rule(
                Rule::now(Watch::of("configmaps"))
                    .drop_events(1)
                    .error(Status::expired())
                    .end(Ending::Eof),
            );
        }
    })
    .await;
    assert_eq!(emitted[..3], ["Init", "InitApply(a)", "InitApply(b)"]);
    assert!(
        emitted[3].starts_with("error returned by apiserver during watch: "),
        "{}",
        emitted[3]
    );
    assert_eq!(emitted[4..], ["Init", "InitApply(a)", "InitDone"]);
    assert_eq!(stored, ["a"]);
    sent(&server, Verb::Watch)
        .iter()
        .for_each(begins_a_streaming_list);
}

#[tokio::test(start_paused = true)]
async fn a_list_is_read_in_pages_before_the_watch() {
    let server = server::<Watch>(&["a", "b", "c"], []).await;
    let version = server.resource_version();
    let mut events = watcher(api(&server), selecting(watcher::Config::default().page_size(1))).boxed();
    assert_eq!(
        next(&mut events, 5).await,
        ["Init", "InitApply(a)", "InitApply(b)", "InitApply(c)", "InitDone"]
    );
    server.apply(config_map("d", "new"));
    assert_eq!(next(&mut events, 1).await, ["Apply(d)"]);

    let pages = sent(&server, Verb::List);
    assert_eq!(pages.len(), 3);
    assert_eq!(pages[0].query("continue"), None);
    for page in &pages {
        assert_eq!(page.query("limit"), Some("1"), "{page}");
        selects(page);
    }
    assert!(pages[1..].iter().all(|page| page.query("continue").is_some()));
    let watches = sent(&server, Verb::Watch);
    assert_eq!(watches.len(), 1);
    resumes(&watches[0], &version);
    selects(&watches[0]);
}
