//! Messages of failed expectations.

use fake_apiserver_testing::{Count, FakeApiserver, Get, List, Page, Requests, Rule, Status, Update, Watch};
use kube_client::api::ListParams;

use super::{maps, names, panics, with};

/// A server that received four requests.
async fn asked() -> FakeApiserver {
    let server = with(&["a", "b"])
        .rule(Rule::on(List::of("configmaps").nth(2)).respond(Status::expired()))
        .start()
        .await;
    let api = maps(&server);
    names(&api, &ListParams::default()).await.unwrap();
    names(&api, &ListParams::default().limit(1)).await.unwrap_err();
    let page = api.list(&ListParams::default().limit(1)).await.unwrap();
    let next = page.metadata.continue_.unwrap();
    names(&api, &ListParams::default().limit(1).continue_token(&next))
        .await
        .unwrap();
    api.get("a").await.unwrap();
    server
}

#[tokio::test(start_paused = true)]
async fn what_holds_is_silent() {
    let server = asked().await;
    server.expect(List::of("configmaps"), 3);
    server.expect(List::of("configmaps"), 3..);
    server.expect(List::of("configmaps"), 2..=3);
    server.expect(List::of("configmaps"), 2..4);
    server.expect(List::of("configmaps"), ..4);
    server.expect(List::of("configmaps"), ..=3);
    server.expect(List::of("configmaps"), ..);
    server.expect(List::of("configmaps").nth(2), 1);
    server.expect(Watch::any(), 0);
    server.expect(List::of("widgets.example.com"), 0);
    server.expect(Get::of("configmaps").named("a").in_namespace("default"), 1);
}

#[tokio::test(start_paused = true)]
async fn what_does_not_hold_is_shown_with_what_came_instead() {
    let server = asked().await;
    let messages = [
        panics(|| server.expect(List::of("configmaps"), 1)),
        panics(|| {
            server.expect(
                List::of("configmaps").query("limit", "5").in_namespace("default"),
                1..,
            )
        }),
        panics(|| server.expect(Update::of("configmaps").named("a").subresource("status"), 2..=3)),
        panics(|| server.expect(List::of("configmaps").nth(9).without_query("limit"), 1)),
        panics(|| {
            server.expect(
                List::of("pods")
                    .at_secondary()
                    .user_agent("kubectl")
                    .with_query("limit"),
                1,
            )
        }),
        panics(|| server.expect(Watch::of("configmap"), 1)),
    ];
    insta::assert_snapshot!(messages.join("\n---\n"), @r"
    expected LIST configmaps once, got 3
    matched:
      0.000s #1 LIST configmaps in default → 200
      0.000s #2 LIST configmaps in default limit=1 → 410 by a rule
      0.000s #3 LIST configmaps in default limit=1 → 200
    others, nearest first:
      0.000s #4 LIST configmaps in default limit=1 continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MTA… → 200   (not LIST)
      0.000s #5 GET configmaps/a in default → 200   (not LIST)
    ---
    expected LIST configmaps in default with limit=5 at least once, got 0
    others, nearest first:
      0.000s #1 LIST configmaps in default → 200   (limit is not 5)
      0.000s #2 LIST configmaps in default limit=1 → 410 by a rule   (limit is not 5)
      0.000s #3 LIST configmaps in default limit=1 → 200   (limit is not 5)
      0.000s #4 LIST configmaps in default limit=1 continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MTA… → 200   (not LIST, limit is not 5)
      0.000s #5 GET configmaps/a in default → 200   (not LIST, limit is not 5)
    ---
    expected UPDATE configmaps/a (status) 2 to 3 times, got 0
    others, nearest first:
      0.000s #5 GET configmaps/a in default → 200   (not UPDATE, not for subresource status)
      0.000s #1 LIST configmaps in default → 200   (not UPDATE, not named a, not for subresource status)
      0.000s #2 LIST configmaps in default limit=1 → 410 by a rule   (not UPDATE, not named a, not for subresource status)
      0.000s #3 LIST configmaps in default limit=1 → 200   (not UPDATE, not named a, not for subresource status)
      0.000s #4 LIST configmaps in default limit=1 continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MTA… → 200   (not UPDATE, not named a, not for subresource status)
    ---
    expected LIST configmaps with no limit number 9 once, got 0
    others, nearest first:
      0.000s #1 LIST configmaps in default → 200   (another number)
      0.000s #2 LIST configmaps in default limit=1 → 410 by a rule   (has limit)
      0.000s #3 LIST configmaps in default limit=1 → 200   (has limit)
      0.000s #5 GET configmaps/a in default → 200   (not LIST)
      0.000s #4 LIST configmaps in default limit=1 continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MTA… → 200   (not LIST, has limit)
    ---
    expected LIST pods from kubectl at the secondary with any limit once, got 0
    others, nearest first:
      0.000s #2 LIST configmaps in default limit=1 → 410 by a rule   (not for pods, not at the secondary, not from kubectl)
      0.000s #3 LIST configmaps in default limit=1 → 200   (not for pods, not at the secondary, not from kubectl)
      0.000s #1 LIST configmaps in default → 200   (not for pods, not at the secondary, not from kubectl, no limit)
      0.000s #4 LIST configmaps in default limit=1 continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MTA… → 200   (not LIST, not for pods, not at the secondary, not from kubectl)
      0.000s #5 GET configmaps/a in default → 200   (not LIST, not for pods, not at the secondary, not from kubectl, no limit)
    ---
    no resource `configmap` is served; did you mean `configmaps`?
    ");
}

#[tokio::test(start_paused = true)]
async fn every_other_request_lacks_something() {
    let server = asked().await;
    let messages = [
        panics(|| server.expect(Page::of("configmaps"), 99)),
        panics(|| server.expect(Requests::any().in_namespace("default").with_query("limit"), 99)),
        panics(|| server.expect(Get::any().named("a").without_query("limit"), 99)),
        panics(|| server.expect(Watch::any().user_agent("x").query("limit", "1"), 99)),
    ];
    for message in messages {
        assert!(!message.contains("another number"), "{message}");
    }
}

#[tokio::test(start_paused = true)]
async fn many_requests_are_not_all_shown() {
    let server = with(&[]).start().await;
    let nothing = panics(|| server.expect(List::any(), 1));
    for _ in 0..12 {
        names(&maps(&server), &ListParams::default()).await.unwrap();
    }
    insta::assert_snapshot!([nothing, panics(|| server.expect(List::any(), 3))].join("\n---\n"), @r"
    expected LIST once, got 0
    no request came at all
    ---
    expected LIST 3 times, got 12
    matched:
      0.000s #1 LIST configmaps in default → 200
      0.000s #2 LIST configmaps in default → 200
      0.000s #3 LIST configmaps in default → 200
      0.000s #4 LIST configmaps in default → 200
      0.000s #5 LIST configmaps in default → 200
      0.000s #6 LIST configmaps in default → 200
      0.000s #7 LIST configmaps in default → 200
      0.000s #8 LIST configmaps in default → 200
      0.000s #9 LIST configmaps in default → 200
      0.000s #10 LIST configmaps in default → 200
      and 2 more
    ");
}

#[test]
fn a_count_reads_as_a_sentence() {
    let counts: [Count; 7] = [
        0.into(),
        1.into(),
        2.into(),
        (1..).into(),
        (..=3).into(),
        (2..=3).into(),
        (..).into(),
    ];
    insta::assert_snapshot!(counts.map(|count| count.to_string()).join("\n"), @r"
    never
    once
    2 times
    at least once
    at most 3 times
    2 to 3 times
    any number of times
    ");
}
