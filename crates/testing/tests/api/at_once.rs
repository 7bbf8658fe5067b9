//! Changes to a running server, and waits for what a client does.

use std::time::Duration;

use fake_apiserver_testing::{FakeApiserver, List, Rule, Status, Verb, Watch};
use futures::StreamExt as _;
use futures::stream::BoxStream;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::api::{ListParams, WatchEvent, WatchParams};

use super::{code, config_map, maps, names, panics, panics_later, with};

/// An open watch from now on.
async fn watch(server: &FakeApiserver) -> BoxStream<'static, kube_client::Result<WatchEvent<ConfigMap>>> {
    let from = server.resource_version();
    let watch = maps(server).watch(&WatchParams::default(), &from).await;
    watch.expect("it is opened").boxed()
}

#[tokio::test(start_paused = true)]
async fn writes_from_outside_are_sent() {
    let server = with(&["a"]).start().await;
    let mut events = watch(&server).await;
    server.apply(config_map("a", "2"));
    server.delete("configmaps", "a");
    assert!(matches!(events.next().await, Some(Ok(WatchEvent::Modified(_)))));
    assert!(matches!(events.next().await, Some(Ok(WatchEvent::Deleted(_)))));
    server.reset();
    assert!(matches!(events.next().await, Some(Ok(WatchEvent::Added(_)))));
    let wrong = [
        panics(|| server.delete("configmaps", "kube-system/x")),
        panics(|| server.delete("configmap", "x")),
        panics(|| server.apply("{apiVersion: v1, kind: Widget, metadata: {name: w}}")),
        panics(|| server.apply("kind: [")),
    ];
    insta::assert_snapshot!(wrong.join("\n---\n"), @r"
    there is no kube-system/x in configmaps
    ---
    no resource `configmap` is served; did you mean `configmaps`?
    ---
    the fake serves no `Widget` of `v1` (it is one of `ConfigMap`, `Binding`, `ComponentStatus`, `Endpoints`, `Event`, `LimitRange`, `Namespace`, `Node`, `PersistentVolumeClaim`, `PersistentVolume`, `Pod`, `PodTemplate` and 60 others)
    ---
    object 0: unclosed bracket '[' at line 1, column 7
    ");
}

#[tokio::test(start_paused = true)]
async fn open_watches_are_cut_expired_and_stalled() {
    let server = with(&["a"]).start().await;
    let (mut one, mut two) = (watch(&server).await, watch(&server).await);
    assert_eq!(server.cut_watches(), 2);
    assert!(matches!(one.next().await, Some(Err(_))) && matches!(two.next().await, Some(Err(_))));
    let mut one = watch(&server).await;
    assert_eq!(server.send_bookmarks(), 1);
    assert!(matches!(one.next().await, Some(Ok(WatchEvent::Bookmark(_)))));
    assert_eq!(server.expire_watches(), 1);
    assert!(matches!(one.next().await, Some(Ok(WatchEvent::Error(status))) if status.code == 410));
    assert!(one.next().await.is_none());
    let mut one = watch(&server).await;
    assert_eq!(server.stall_watches(), 1);
    server.apply(config_map("b", "1"));
    let hour = Duration::from_secs(3600);
    assert!(tokio::time::timeout(hour, one.next()).await.is_err());
    drop(one);
    tokio::task::yield_now().await;
}

#[tokio::test(start_paused = true)]
async fn without_an_open_watch_there_is_nothing_to_cut() {
    let server = with(&["a"]).start().await;
    insta::assert_snapshot!(panics(|| assert_eq!(server.cut_watches(), 0)), @"at once on WATCH: no open watch matches: end needs one; wait for it first: `server.wait_for(Watch::any()).await`");
}

#[tokio::test(start_paused = true)]
async fn history_is_compacted() {
    let server = with(&["a", "b"]).start().await;
    let api = maps(&server);
    let page = api.list(&ListParams::default().limit(1)).await.unwrap();
    server.apply(config_map("a", "2"));
    server.compact();
    let next = ListParams::default().continue_token(&page.metadata.continue_.unwrap());
    assert_eq!(code(names(&api, &next).await), 410);
    let old = page.metadata.resource_version.unwrap();
    let mut events = api.watch(&WatchParams::default(), &old).await.unwrap().boxed();
    assert!(matches!(events.next().await, Some(Ok(WatchEvent::Error(status))) if status.code == 410));
}

#[tokio::test(start_paused = true)]
async fn a_restart_ends_watches_and_empties_the_cache_window() {
    let server = with(&["a"]).start().await;
    let old = server.resource_version();
    let mut events = watch(&server).await;
    server.apply(config_map("a", "2"));
    assert!(matches!(events.next().await, Some(Ok(WatchEvent::Modified(_)))));
    server.restart(Duration::from_secs(5));
    assert!(matches!(events.next().await, Some(Err(_)) | None));
    assert_eq!(code(names(&maps(&server), &ListParams::default()).await), 0);
    tokio::time::advance(Duration::from_secs(6)).await;
    let mut events = maps(&server)
        .watch(&WatchParams::default(), &old)
        .await
        .unwrap()
        .boxed();
    assert!(matches!(events.next().await, Some(Ok(WatchEvent::Error(status))) if status.code == 410));
    server.restart(Duration::ZERO);
    assert_eq!(code(names(&maps(&server), &ListParams::default()).await), 200);
    server.refuse_connections(Duration::from_secs(5));
    assert_eq!(code(names(&maps(&server), &ListParams::default()).await), 0);
}

#[tokio::test(start_paused = true)]
async fn watch_caches_are_frozen_delayed_and_thawed() {
    let server = with(&["a"]).start().await;
    let any = ListParams::default().match_any();
    let api = maps(&server);
    server.freeze_watch_cache("configmaps");
    server.apply(config_map("b", "1"));
    assert_eq!(names(&api, &any).await.unwrap(), ["a"]);
    server.thaw_watch_cache("configmaps");
    assert_eq!(names(&api, &any).await.unwrap(), ["a", "b"]);
    server.lag_watch_cache("configmaps", Duration::from_secs(2));
    server.apply(config_map("c", "1"));
    assert_eq!(names(&api, &any).await.unwrap(), ["a", "b"]);
    tokio::time::advance(Duration::from_secs(3)).await;
    assert_eq!(names(&api, &any).await.unwrap(), ["a", "b", "c"]);
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_with_the_request() {
    let server = with(&["a"]).start().await;
    let api = maps(&server);
    let client = tokio::spawn(async move {
        names(&api, &ListParams::default()).await.unwrap();
        tokio::time::timeout(Duration::from_secs(5), std::future::pending::<()>())
            .await
            .unwrap_err();
        names(&api, &ListParams::default().limit(3)).await.unwrap();
    });
    assert_eq!(server.wait_for(List::of("configmaps")).await.verb, Verb::List);
    let second = server.wait_for(List::of("configmaps").nth(2)).await;
    assert_eq!(
        (second.at, second.query("limit")),
        (Duration::from_secs(5), Some("3"))
    );
    client.await.unwrap();
    // A request that came before the call counts, and is answered by now.
    assert_eq!(
        server.wait_for(List::of("configmaps").nth(2)).await.status,
        Some(200)
    );
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_with_an_event() {
    let server = with(&["a"]).start().await;
    let watch = watch(&server).await;
    let read = tokio::spawn(watch.for_each(async |_| {}));
    server.apply(config_map("a", "2"));
    server
        .wait_for_event(Watch::of("configmaps"), "MODIFIED", "default/a")
        .await;
    server.delete("configmaps", "a");
    server.wait_for_event(Watch::any(), "DELETED", "").await;
    drop(server);
    read.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_times_out_shows_the_records() {
    let server = with(&["a"]).patience(Duration::from_secs(5)).start().await;
    names(&maps(&server), &ListParams::default()).await.unwrap();
    let nothing = with(&[]).start().await;
    let messages = [
        panics_later(server.wait_for(Watch::of("configmaps"))).await,
        panics_later(nothing.wait_for(Watch::any())).await,
        panics(|| drop(server.wait_for(Watch::of("configmap")))),
        panics_later(server.wait_for_event(Watch::of("configmaps"), "DELETED", "a")).await,
        panics(|| drop(server.wait_for_event(Watch::any(), "GONE", "a"))),
        panics(|| drop(server.wait_for_event(Watch::any().nth(2), "DELETED", ""))),
    ];
    // The line number of the wait changes with this file.
    let messages = messages.join("\n---\n");
    let place = format!("{}:", file!());
    let messages: Vec<String> = messages
        .lines()
        .map(|line| match line.split_once(&place) {
            Some((before, _)) => format!("{before}FILE:LINE:COLUMN"),
            None => line.to_owned(),
        })
        .collect();
    insta::assert_snapshot!(messages.join("\n"), @r"
    waited 5 s for WATCH configmaps at FILE:LINE:COLUMN
    others, nearest first:
      0.000s #1 LIST configmaps in default → 200   (not WATCH)
    ---
    waited 30 s for WATCH at FILE:LINE:COLUMN
    no request came at all
    ---
    no resource `configmap` is served; did you mean `configmaps`?
    ---
    waited 5 s for DELETED a on WATCH configmaps at FILE:LINE:COLUMN
    others, nearest first:
      0.000s #1 LIST configmaps in default → 200   (not WATCH)
    ---
    WATCH: `type` cannot be `GONE` (it is one of `ADDED`, `MODIFIED`, `DELETED`, `BOOKMARK`, `ERROR`)
    ---
    WATCH number 2: open watches cannot be selected by number or query
    ");
}

#[tokio::test(start_paused = true)]
async fn a_strict_server_reports_when_it_is_dropped() {
    let quiet = with(&["a"])
        .strict()
        .rule(Rule::on(List::any()).respond(Status::new(418)))
        .start()
        .await;
    assert_eq!(code(names(&maps(&quiet), &ListParams::default()).await), 418);
    drop(quiet);
    let unused = with(&["a"])
        .strict()
        .rule(Rule::on(Watch::of("pods")).named("flaky").stall())
        .start()
        .await;
    insta::assert_snapshot!(panics(move || drop(unused)), @"rule flaky was never carried out: end on the next WATCH");
    // A test that already fails is not failed twice.
    let failing = with(&[])
        .strict()
        .rule(Rule::on(Watch::any()).stall())
        .start()
        .await;
    let message = panics(move || {
        let _server = failing;
        panic!("the test failed");
    });
    assert_eq!(message, "the test failed");
}

#[tokio::test(start_paused = true)]
async fn a_violation_is_reported_with_its_proof() {
    let server = with(&["a"]).start().await;
    let api = maps(&server);
    let list = api.list(&ListParams::default()).await.unwrap();
    let version = list.metadata.resource_version.unwrap();
    assert!(server.verdict().is_pass());
    server.rule(
        Rule::on(Watch::any())
            .always()
            .error(Status::expired())
            .end(fake_apiserver_testing::Ending::Eof),
    );
    // The client uses a version again that was 410.
    for _ in 0..4 {
        let events = api.watch(&WatchParams::default(), &version).await.unwrap();
        events.collect::<Vec<_>>().await;
    }
    let verdict = server.verdict();
    assert!(!verdict.is_pass() && !verdict.violations().is_empty());
    assert_eq!(verdict.clients()[0].client, "(no User-Agent)");
    insta::assert_snapshot!(panics(|| server.assert_clean()), @r"
    verdict: mismatch
      INV-04 (no User-Agent) reading configmaps in default: the client watched from 1005 at 0.000s though the server had sent 410 at 0.000s and no new list was complete
        proof: 0.000s client > #3 c1 WATCH /api/v1/namespaces/default/configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&resourceVersion=1005
      INV-04 (no User-Agent) reading configmaps in default: the client watched from 1005 at 0.000s though the server had sent 410 at 0.000s and no new list was complete
        proof: 0.000s client > #4 c1 WATCH /api/v1/namespaces/default/configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&resourceVersion=1005
      INV-04 (no User-Agent) reading configmaps in default: the client watched from 1005 at 0.000s though the server had sent 410 at 0.000s and no new list was complete
        proof: 0.000s client > #5 c1 WATCH /api/v1/namespaces/default/configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&resourceVersion=1005
    ");
}
