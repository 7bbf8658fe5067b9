//! The effect of each method of a rule on a client.

use std::time::Duration;

use fake_apiserver_testing::{
    Create, Delete, DeleteCollection, Ending, FakeApiserver, Get, List, Page, Patch, Requests, Rule, Status,
    Update, Watch,
};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::Api;
use kube_client::api::{DeleteParams, ListParams, PatchParams, PostParams, WatchEvent, WatchParams};
use rstest::rstest;
use serde_json::json;

use super::{code, config_map, maps, names, panics, with};

/// Returns what a watch of all ConfigMaps from the version `from` receives until it ends: `MODIFIED a`, or how it broke
/// off.
async fn watched(server: &FakeApiserver, from: &str) -> Vec<String> {
    let api = maps(server);
    let events = match api.watch(&WatchParams::default(), from).await {
        Ok(events) => events,
        Err(error) => return vec![format!("no watch: {}", code::<()>(Err(error)))],
    };
    let word = |event| match event {
        Ok(WatchEvent::Added(map)) => format!("ADDED {}", name(&map)),
        Ok(WatchEvent::Modified(map)) => format!("MODIFIED {}", name(&map)),
        Ok(WatchEvent::Deleted(map)) => format!("DELETED {}", name(&map)),
        Ok(WatchEvent::Bookmark(bookmark)) => {
            let end = bookmark.metadata.annotations.get("k8s.io/initial-events-end");
            let end = end.map(|end| format!(" {} {end}", bookmark.metadata.resource_version));
            format!("BOOKMARK{}", end.unwrap_or_default())
        }
        Ok(WatchEvent::Error(status)) => format!("ERROR {}", status.code),
        Err(_) => "broken".to_owned(),
    };
    events.map(word).collect().await
}

fn name(map: &ConfigMap) -> &str {
    map.metadata.name.as_deref().unwrap_or_default()
}

#[rstest]
#[case(Status::expired(), 410, "Expired")]
#[case(Status::conflict(), 409, "Conflict")]
#[case(Status::already_exists(), 409, "AlreadyExists")]
#[case(Status::not_found(), 404, "NotFound")]
#[case(Status::forbidden("no"), 403, "Forbidden")]
#[case(Status::denied_by_webhook("w.example.com", "no"), 403, "Forbidden")]
#[case(Status::unauthorized(), 401, "Unauthorized")]
#[case(Status::invalid("no"), 422, "Invalid")]
#[case(Status::internal_error("oops"), 500, "InternalError")]
#[case(Status::new(418).reason("Teapot").message("short").cause("Handle"), 418, "Teapot")]
#[tokio::test(start_paused = true)]
async fn a_failure_is_what_the_client_gets(#[case] status: Status, #[case] code: u16, #[case] reason: &str) {
    let server = with(&["a"])
        .rule(Rule::on(List::any()).respond(status))
        .start()
        .await;
    let api = maps(&server);
    let Err(kube_client::Error::Api(failure)) = names(&api, &ListParams::default()).await else {
        panic!("the request does not fail");
    };
    assert_eq!((failure.code, failure.reason.as_str()), (code, reason));
    assert_eq!(
        names(&api, &ListParams::default()).await.unwrap(),
        ["a"],
        "once is the default"
    );
    assert!(server.requests()[0].scripted);
}

#[rstest]
#[case(Status::too_many_requests(7), 7)]
#[case(Status::too_large_resource_version(), 1)]
#[case(Status::service_unavailable().retry_after(3), 3)]
#[case(Status::service_unavailable().retry_after_header("4"), 4)]
#[tokio::test(start_paused = true)]
async fn retry_after_is_waited_for(#[case] status: Status, #[case] seconds: u64) {
    let server = with(&["a"])
        .rule(Rule::on(List::any()).respond(status))
        .start()
        .await;
    assert_eq!(
        names(&maps(&server), &ListParams::default()).await.unwrap(),
        ["a"]
    );
    assert_eq!(server.elapsed().as_secs(), seconds);
    server.expect(List::any(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_rule_is_carried_out_so_often() {
    let teapot = || Status::new(418);
    let server = with(&[])
        .rule(Rule::on(List::any()).times(2).respond(teapot()))
        .start()
        .await;
    let list = async || code(names(&maps(&server), &ListParams::default()).await);
    assert_eq!([list().await, list().await, list().await], [418, 418, 200]);
    server.rule(Rule::on(List::any()).always().respond(teapot()));
    assert_eq!([list().await, list().await], [418, 418]);
    server.clear_rules();
    server.rule(Rule::on(List::any().nth(2)).respond(teapot()));
    assert_eq!([list().await, list().await, list().await], [200, 418, 200]);
    server.rule(
        Rule::on(List::any())
            .during(Duration::from_secs(5))
            .respond(teapot()),
    );
    assert_eq!([list().await, list().await], [418, 418]);
    tokio::time::advance(Duration::from_secs(6)).await;
    assert_eq!(list().await, 200);
    server.rule(Rule::yaml("{when: {list: next}, do: {reply: {status: 418}}}"));
    assert_eq!([list().await, list().await], [418, 200]);
}

#[tokio::test(start_paused = true)]
async fn a_rule_waits_for_its_kind_of_request() {
    let server = with(&["a", "b"]).start().await;
    let api = maps(&server);
    let teapot = || Status::new(418);
    let map: ConfigMap = serde_json::from_value(config_map("new", "1")).unwrap();
    let merge = kube_client::api::Patch::Merge(json!({"data": {"v": "3"}}));
    server.rule(Rule::on(Get::of("configmaps").named("a")).respond(teapot()));
    server.rule(Rule::on(Create::of("configmaps")).respond(teapot()));
    server.rule(Rule::on(Update::of("configmaps").named("a")).respond(teapot()));
    server.rule(Rule::on(Patch::of("configmaps").in_namespace("default")).respond(teapot()));
    server.rule(Rule::on(Delete::of("configmaps")).respond(teapot()));
    server.rule(Rule::on(DeleteCollection::of("configmaps")).respond(teapot()));
    server.rule(Rule::on(List::of("configmaps").query("limit", "7")).respond(teapot()));
    server.rule(Rule::on(List::of("configmaps").with_query("labelSelector")).respond(teapot()));
    assert_eq!(code(names(&api, &ListParams::default()).await), 200);
    assert_eq!(code(names(&api, &ListParams::default().limit(7)).await), 418);
    assert_eq!(code(names(&api, &ListParams::default().labels("x=y")).await), 418);
    assert_eq!(code(api.get("b").await), 200);
    assert_eq!(code(api.get("a").await), 418);
    assert_eq!(
        code(
            api.replace("b", &PostParams::default(), &api.get("b").await.unwrap())
                .await
        ),
        200
    );
    assert_eq!(code(api.replace("a", &PostParams::default(), &map).await), 418);
    assert_eq!(code(api.create(&PostParams::default(), &map).await), 418);
    assert_eq!(code(api.patch("a", &PatchParams::default(), &merge).await), 418);
    assert_eq!(code(api.delete("b", &DeleteParams::default()).await), 418);
    let all = (DeleteParams::default(), ListParams::default());
    assert_eq!(code(api.delete_collection(&all.0, &all.1).await), 418);
    server.rule(Rule::on(Patch::of("configmaps").subresource("status")).respond(teapot()));
    server.rule(Rule::on(Requests::any().user_agent("other")).respond(teapot()));
    assert_eq!(code(api.patch("a", &PatchParams::default(), &merge).await), 200);
    server.clear_rules();
    server.rule(Rule::on(List::any().without_query("limit")).respond(teapot()));
    assert_eq!(code(names(&api, &ListParams::default().limit(7)).await), 200);
    assert_eq!(code(names(&api, &ListParams::default()).await), 418);
    server.rule(Rule::on(Requests::of("configmaps")).respond(teapot()));
    assert_eq!(code(api.get("a").await), 418);
    server.rule(Rule::on(Page::of("configmaps")).respond(Status::expired_token()));
    let page = api.list(&ListParams::default().limit(1)).await.unwrap();
    let token = page.metadata.continue_.unwrap();
    assert_eq!(
        code(names(&api, &ListParams::default().limit(1).continue_token(&token)).await),
        410
    );
}

#[tokio::test(start_paused = true)]
async fn a_response_can_be_anything() {
    let server = with(&["a", "b"]).start().await;
    let api = maps(&server);
    let list = async || names(&api, &ListParams::default()).await;
    let empty = json!({"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {}, "items": []});
    server.rule(Rule::on(List::any()).respond_json(200, empty));
    assert!(list().await.unwrap().is_empty());
    server.rule(Rule::on(List::any()).respond_text(502, "Bad Gateway"));
    assert_eq!(code(list().await), 502);
    server.rule(Rule::on(List::any()).omit(&["a"]));
    assert_eq!(list().await.unwrap(), ["b"]);
    server.rule(Rule::on(Page::any()).omit(&["*"]));
    server.rule(Rule::on(List::any()).omit(&["a"]).continue_token("second"));
    let first = api.list(&ListParams::default().limit(1)).await.unwrap();
    assert!(first.items.is_empty(), "both changes are made");
    let token = first.metadata.continue_.unwrap();
    assert_eq!(token, "second");
    let second = names(&api, &ListParams::default().continue_token(&token)).await;
    assert!(second.unwrap().is_empty());
    server.rule(Rule::on(List::any()).delay(Duration::from_secs(9)));
    assert_eq!(list().await.unwrap(), ["a", "b"]);
    assert_eq!(server.elapsed(), Duration::from_secs(9));
    server.rule(Rule::on(List::any()).drip(10, Duration::from_secs(1)));
    assert_eq!(list().await.unwrap(), ["a", "b"]);
    assert!(server.elapsed() > Duration::from_secs(30));
    server.rule(Rule::on(List::any()).split_utf8().gzip());
    assert_eq!(list().await.unwrap(), ["a", "b"]);
}

/// A write is carried out or not, as the rule says; its client sees the same failure.
#[rstest]
#[case::not_answered(Rule::on(Create::any()).no_answer(Ending::Fin), false)]
#[case::lost(Rule::on(Create::any()).lose_answer(Ending::Fin), true)]
#[case::refused(Rule::on(Create::any()).respond(Status::new(500)), false)]
#[case::timed_out(Rule::on(Create::any()).respond_after_write(Status::new(500)), true)]
#[case::cut(Rule::on(Create::any()).truncate(10, Ending::Fin), true)]
#[case::ended(Rule::on(Create::any()).end(Ending::Rst), true)]
#[tokio::test(start_paused = true)]
async fn a_failed_write_is_stored_or_not(#[case] rule: Rule<Create>, #[case] is_stored: bool) {
    let server = FakeApiserver::builder().in_memory().rule(rule).start().await;
    let api: Api<ConfigMap> = Api::default_namespaced(server.client());
    let mut map = ConfigMap::default();
    map.metadata.name = Some("made".to_owned());
    assert!(api.create(&Default::default(), &map).await.is_err());
    assert_eq!(api.get_opt("made").await.unwrap().is_some(), is_stored);
}

/// A rule for any request may match a read, which has nothing to carry out.
#[tokio::test(start_paused = true)]
async fn the_answer_to_a_read_is_lost_as_well() {
    let rule = Rule::on(Requests::any()).lose_answer(Ending::Fin).times(2);
    let server = FakeApiserver::builder().in_memory().rule(rule).start().await;
    let api: Api<ConfigMap> = Api::default_namespaced(server.client());
    assert!(api.list(&Default::default()).await.is_err());
    assert!(api.get("made").await.is_err());
    assert!(api.list(&Default::default()).await.is_ok());
}

#[rstest]
#[case(Rule::on(List::any()).no_answer(Ending::Rst))]
#[case(Rule::on(List::any()).no_answer(Ending::Fin))]
#[case(Rule::on(List::any()).truncate(10, Ending::Fin))]
#[case(Rule::on(List::any()).end(Ending::Rst))]
#[tokio::test(start_paused = true)]
async fn a_broken_response_is_no_response(#[case] rule: Rule<List>) {
    let server = with(&["a"]).rule(rule).start().await;
    assert_eq!(code(names(&maps(&server), &ListParams::default()).await), 0);
}

#[tokio::test(start_paused = true)]
async fn a_rule_changes_the_store_before_the_answer() {
    let server = with(&["a", "b"]).start().await;
    let api = maps(&server);
    let old = api.get("a").await.unwrap();
    server.rule(Rule::on(Update::of("configmaps")).apply(config_map("a", "2")));
    assert_eq!(code(api.replace("a", &PostParams::default(), &old).await), 409);
    server.rule(Rule::on(Get::any()).delete("configmaps", "default/b"));
    assert_eq!(code(api.get("b").await), 404);
    server.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}");
    server.rule(Rule::on(Page::any()).apply(config_map("a", "3")).compact());
    let page = api.list(&ListParams::default().limit(1)).await.unwrap();
    let token = page.metadata.continue_.unwrap();
    assert_eq!(
        code(names(&api, &ListParams::default().continue_token(&token)).await),
        410
    );
    server.rule(Rule::on(List::any()).refuse_connections(Duration::from_secs(3)));
    assert_eq!(code(names(&api, &ListParams::default()).await), 200);
    assert_eq!(code(names(&maps(&server), &ListParams::default()).await), 0);
    tokio::time::advance(Duration::from_secs(4)).await;
    assert_eq!(code(names(&maps(&server), &ListParams::default()).await), 200);
}

#[rstest]
#[case::cut(Rule::on(Watch::any()).cut_after(1, Ending::Rst), "ADDED c, broken")]
#[case::torn(Rule::on(Watch::any()).tear_after(1, 50, Ending::Rst), "ADDED c, broken")]
#[case::ended(Rule::on(Watch::any()).cut_after(2, Ending::Eof), "ADDED c, ADDED d")]
#[case::error(Rule::on(Watch::any()).error(Status::expired()).end(Ending::Eof), "ERROR 410")]
#[case::dropped(Rule::on(Watch::any()).drop_events(1).cut_after(2, Ending::Eof), "ADDED d, MODIFIED a")]
#[case::repeated(Rule::on(Watch::any()).repeat_event(2).cut_after(3, Ending::Eof), "ADDED c, ADDED c, ADDED d")]
#[case::reordered(Rule::on(Watch::any()).reorder_events(2).cut_after(2, Ending::Eof), "ADDED d, ADDED c")]
#[case::coalesced(Rule::on(Watch::any()).coalesce(2).cut_after(2, Ending::Eof), "ADDED c, ADDED d")]
#[case::ghost(
    Rule::on(Watch::any()).event("DELETED", config_map("ghost", "1")).bookmark().end(Ending::Eof),
    "DELETED ghost, BOOKMARK"
)]
#[case::initial_events_end(
    Rule::on(Watch::any()).initial_events_end("7").event("MODIFIED", config_map("a", "2")).end(Ending::Eof),
    "BOOKMARK 7 true, MODIFIED a"
)]
#[case::raw(Rule::on(Watch::any()).send("no JSON").end(Ending::Eof), "broken")]
#[case::refused(Rule::on(Watch::any()).respond(Status::expired()), "no watch: 410")]
#[case::without_bookmarks(Rule::on(Watch::any()).no_bookmarks().cut_after(1, Ending::Eof), "ADDED c")]
#[tokio::test(start_paused = true)]
async fn a_watch_is_sent(#[case] rule: Rule<Watch>, #[case] events: &str) {
    let server = with(&["a"]).rule(rule).start().await;
    let from = server.resource_version();
    server.apply(config_map("c", "1"));
    server.apply(config_map("d", "1"));
    server.apply(config_map("a", "2"));
    assert_eq!(watched(&server, &from).await.join(", "), events);
}

#[tokio::test(start_paused = true)]
async fn a_stalled_watch_is_silent() {
    let server = with(&["a"]).rule(Rule::on(Watch::any()).stall()).start().await;
    let from = server.resource_version();
    server.apply(config_map("c", "1"));
    let silence = tokio::time::timeout(Duration::from_secs(3600), watched(&server, &from));
    assert!(silence.await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_frozen_watch_cache_serves_stale_reads() {
    let server = with(&["a"])
        .rule(Rule::on(Get::of("configmaps")).freeze_watch_cache())
        .rule(Rule::on(Get::of("configmaps")).thaw_watch_cache())
        .start()
        .await;
    let api = maps(&server);
    let stale = async || names(&api, &ListParams::default().match_any()).await.unwrap();
    api.get("a").await.unwrap();
    server.apply(config_map("b", "1"));
    assert_eq!(stale().await, ["a"]);
    api.get("a").await.unwrap();
    assert_eq!(stale().await, ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn a_replica_can_be_stale_alone() {
    let server = with(&["a"]).secondary().start().await;
    server.rule(Rule::now(Watch::of("configmaps").at_secondary()).freeze_watch_cache());
    server.apply(config_map("b", "1"));
    let any = ListParams::default().match_any();
    assert_eq!(names(&maps(&server), &any).await.unwrap(), ["a", "b"]);
    let replica: Api<ConfigMap> = Api::default_namespaced(server.secondary_client());
    assert_eq!(names(&replica, &any).await.unwrap(), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_rule_with_a_mistake_is_refused() {
    let server = with(&[]).start().await;
    let refused = [
        panics(|| server.rule(Rule::on(List::of("deployment")).respond(Status::expired()))),
        panics(|| server.rule(Rule::on(List::of("pods")))),
        panics(|| {
            server.rule(
                Rule::on(List::of("pods"))
                    .respond(Status::expired())
                    .delay(Duration::ZERO)
                    .gzip(),
            )
        }),
        panics(|| server.rule(Rule::now(Watch::of("pods")).stall())),
        panics(|| server.rule(Rule::now(Watch::of("pods").query("resourceVersion", "1")).stall())),
        panics(|| server.rule(Rule::on(Watch::any().in_namespace("No")).stall())),
        panics(|| server.rule(Rule::on(List::any()).no_answer(Ending::Eof))),
        panics(|| server.rule(Rule::on(List::any()).times(0).gzip())),
        panics(|| server.rule(Rule::yaml("{when: {list: next}, doo: gzip}"))),
    ];
    insta::assert_snapshot!(refused.join("\n---\n"), @r"
    no resource `deployment` is served; did you mean `deployments`?
    ---
    rule on LIST pods: this rule does nothing (e.g. `when: {list: next}` and `do: {reply: {status: 503}}`)
    ---
    rule on LIST pods: `gzip` comes too late: `reply` in line 10 settles the whole answer (take one of the two)
    ---
    at once on WATCH pods: no open watch matches: end needs one; wait for it first: `server.wait_for(Watch::any()).await`
    ---
    WATCH pods with resourceVersion=1: open watches cannot be selected by number or query
    ---
    rule on WATCH in No: `No` cannot be a namespace (lower-case letters, digits and `-`, at most 63 of them)
    ---
    rule on LIST: no answer cannot end cleanly (it is one of `fin`, `rst`, `stall`; `eof` alone ends an answer cleanly)
    ---
    rule on LIST: `times` cannot be 0 (it must be from 1 to 100000)
    ---
    rule {when: {list: next}, doo: gzip}: a rule has no key `doo` (did you mean `do`?)
    ");
}
