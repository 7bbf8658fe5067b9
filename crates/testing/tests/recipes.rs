//! The recipes of docs/recipes.md, compiled and run. The last test compares the page with these functions.

use std::collections::BTreeMap;
use std::time::Duration;

use fake_apiserver_testing::{Create, Ending, FakeApiserver, Get, List, Page, Rule, Status, Update, Watch};
use futures::StreamExt as _;
use futures::stream::BoxStream;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::api::{ApiResource, DynamicObject, ListParams, PostParams};
use kube_client::{Api, Client, Error, ResourceExt as _};
use kube_runtime::reflector::{self, Store};
use kube_runtime::{WatchStreamExt as _, watcher};
use serde_json::{Value, json};

/// Represents your controller: follows ConfigMaps into a store.
struct Follower {
    store: Store<ConfigMap>,
    events: BoxStream<'static, watcher::Result<watcher::Event<ConfigMap>>>,
}

impl Follower {
    fn new(client: Client) -> Self {
        let (store, writer) = reflector::store();
        let config = watcher::Config::default().page_size(2);
        let events = watcher(Api::default_namespaced(client), config).default_backoff();
        Self {
            store,
            events: reflector::reflector(writer, events).boxed(),
        }
    }

    /// Runs until the store has exactly these objects. Time is virtual: an hour takes no time.
    async fn until(&mut self, names: &[&str]) {
        let hour = Duration::from_secs(3600);
        loop {
            let mut stored: Vec<String> = self.store.state().iter().map(|map| map.name_any()).collect();
            stored.sort();
            if stored == names {
                return;
            }
            let event = tokio::time::timeout(hour, self.events.next()).await;
            assert!(event.is_ok(), "the store has {stored:?}, expected {names:?}");
        }
    }

    /// Runs until `done` completes.
    async fn run_until<T>(&mut self, done: impl Future<Output = T>) -> T {
        tokio::select! {
            done = done => done,
            () = self.until(&["never"]) => unreachable!("no object has this name"),
        }
    }
}

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}})
}

#[tokio::test(start_paused = true)]
async fn a_continue_token_expires_between_two_pages() {
    let server = FakeApiserver::builder()
        .in_memory()
        .objects(["a", "b", "c"].map(config_map))
        .rule(
            Rule::on(Page::of("configmaps"))
                .delete("configmaps", "a")
                .compact(),
        )
        .start()
        .await;

    Follower::new(server.client()).until(&["b", "c"]).await;

    server.expect(Page::of("configmaps").without_query("resourceVersion"), 1..);
    server.expect(List::of("configmaps").query("limit", "2"), 2); // it started again with the first page
}

#[tokio::test(start_paused = true)]
async fn the_version_of_a_watch_is_gone() {
    let server = FakeApiserver::builder()
        .in_memory()
        .object(config_map("a"))
        .start()
        .await;
    let mut follower = Follower::new(server.client());
    follower.until(&["a"]).await;
    follower.run_until(server.wait_for(Watch::of("configmaps"))).await;

    server.expire_watches(); // 410 as an ERROR event, not as an HTTP status
    server.apply(config_map("b"));
    follower.until(&["a", "b"]).await;

    server.expect(List::of("configmaps"), 2);
    server.assert_clean();
}

#[tokio::test(start_paused = true)]
async fn the_apiserver_restarts() {
    let server = FakeApiserver::builder()
        .in_memory()
        .object(config_map("a"))
        .start()
        .await;
    let mut follower = Follower::new(server.client());
    follower.until(&["a"]).await;
    follower.run_until(server.wait_for(Watch::of("configmaps"))).await;

    server.restart(Duration::from_secs(10)); // no connection for ten seconds
    server.delete("configmaps", "a");
    server.apply(config_map("b"));
    follower.until(&["b"]).await;

    assert!(server.elapsed() >= Duration::from_secs(10));
    server.expect(Watch::of("configmaps"), ..10); // backs off while nobody answers
}

#[tokio::test(start_paused = true)]
async fn events_arrive_slowly() {
    let server = FakeApiserver::builder()
        .in_memory()
        .rule(Rule::on(Watch::of("configmaps")).drip(10, Duration::from_secs(1)))
        .start()
        .await;
    let mut follower = Follower::new(server.client());
    follower.run_until(server.wait_for(Watch::of("configmaps"))).await;

    server.apply(config_map("a"));
    follower.until(&["a"]).await;

    assert!(server.elapsed() >= Duration::from_secs(10)); // ten bytes a second
    server.expect(Watch::of("configmaps"), 1); // and it did not give up
}

#[tokio::test(start_paused = true)]
async fn the_apiserver_is_overloaded() {
    let server = FakeApiserver::builder()
        .in_memory()
        .object(config_map("a"))
        .rule(
            Rule::on(List::of("configmaps"))
                .times(2)
                .respond(Status::too_many_requests(7)),
        )
        .start()
        .await;

    Follower::new(server.client()).until(&["a"]).await;

    server.expect(List::of("configmaps"), 3);
    assert_eq!(server.elapsed(), Duration::from_secs(14)); // kube-client waits as long as Retry-After says
}

/// Creates the ConfigMap `child` unless the cache of the apiserver has it.
async fn ensure_child(client: Client) -> Result<(), Error> {
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    let cached = api.list(&ListParams::default().match_any()).await?; // resourceVersion=0
    if cached.items.iter().any(|map| map.name_any() == "child") {
        return Ok(());
    }
    let child: ConfigMap = serde_json::from_value(config_map("child")).expect("a ConfigMap");
    match api.create(&PostParams::default(), &child).await {
        Err(Error::Api(status)) if status.reason == "AlreadyExists" => Ok(()), // the cache was stale
        created => created.map(|_| ()),
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_is_stale() {
    let server = FakeApiserver::builder().in_memory().start().await;
    server.freeze_watch_cache("configmaps");

    ensure_child(server.client())
        .await
        .expect("the first call creates it");
    ensure_child(server.client())
        .await
        .expect("the second one does not see it, and must not fail");

    server.thaw_watch_cache("configmaps");
    ensure_child(server.client())
        .await
        .expect("the third one sees it");
    server.expect(Create::of("configmaps"), 2);
}

#[tokio::test(start_paused = true)]
async fn nothing_but_bookmarks() {
    let server = FakeApiserver::builder()
        .in_memory()
        .object(config_map("a"))
        .patience(Duration::from_secs(600))
        .start()
        .await;
    let mut follower = Follower::new(server.client());
    follower.until(&["a"]).await;
    follower.run_until(server.wait_for(Watch::of("configmaps"))).await;

    server.apply("{apiVersion: v1, kind: Secret, metadata: {name: s}}"); // the version moves on elsewhere …
    let bookmarked = server.resource_version();
    server.send_bookmarks();
    server.compact(); // … and the version of the list is gone
    let resumed = server.wait_for(Watch::of("configmaps").nth(2)); // when the first one ends, after 290 s
    let resumed = follower.run_until(resumed).await;

    assert_eq!(resumed.query("resourceVersion"), Some(bookmarked.as_str()));
    server.expect(List::of("configmaps"), 1);
}

/// Sets a key of the ConfigMap `a`. Retries conflicts, and nothing else.
async fn set(client: Client, key: &str) -> Result<(), Error> {
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    loop {
        let mut map = api.get("a").await?;
        map.data
            .get_or_insert_default()
            .insert(key.to_owned(), "set".to_owned());
        match api.replace("a", &PostParams::default(), &map).await {
            Err(Error::Api(status)) if status.reason == "Conflict" => {}
            replaced => return replaced.map(|_| ()),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_update_is_rejected() {
    let mut theirs = config_map("a");
    theirs["data"] = json!({"theirs": "set"});
    let server = FakeApiserver::builder()
        .in_memory()
        .object(config_map("a"))
        .rule(Rule::on(Update::of("configmaps").named("a")).apply(theirs)) // somebody else is faster: a real 409
        .start()
        .await;

    set(server.client(), "ours")
        .await
        .expect("the conflict is retried");
    let api: Api<ConfigMap> = Api::default_namespaced(server.client());
    let data: BTreeMap<_, _> = api.get("a").await.expect("it is there").data.unwrap_or_default();
    assert_eq!(data.keys().collect::<Vec<_>>(), ["ours", "theirs"]); // and loses nothing
    server.expect(Get::of("configmaps").named("a"), 3);

    let denied = Status::denied_by_webhook("policy.example.com", "no more keys");
    server.rule(Rule::on(Update::of("configmaps")).respond(denied));
    set(server.client(), "more")
        .await
        .expect_err("a denial is not retried");
    server.expect(Update::of("configmaps"), 3);
}

/// Renews the lease `my-controller` every two seconds. Returns when somebody else has it.
async fn lead(client: Client) -> Result<(), Error> {
    let api: Api<Lease> = Api::default_namespaced(client);
    let mut lease = api.get("my-controller").await?;
    let mut interval = tokio::time::interval(Duration::from_secs(2));
    loop {
        interval.tick().await;
        let spec = lease.spec.get_or_insert_default();
        spec.lease_transitions = Some(spec.lease_transitions.unwrap_or_default() + 1);
        lease = match api.replace("my-controller", &PostParams::default(), &lease).await {
            Ok(lease) => lease,
            Err(Error::Api(status)) if status.reason == "Conflict" => return Ok(()),
            Err(error) => return Err(error),
        };
    }
}

#[tokio::test(start_paused = true)]
async fn the_lease_of_a_leader_is_taken() {
    let lease = |holder: &str| {
        json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "my-controller", "namespace": "default"},
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15},
        })
    };
    let renewals = || Update::of("leases").named("my-controller");
    let server = FakeApiserver::builder()
        .in_memory()
        .object(lease("us"))
        .rule(Rule::on(renewals().nth(3)).apply(lease("them")))
        .start()
        .await;

    lead(server.client()).await.expect("it steps down");

    server.expect(renewals(), 3); // and writes nothing after it lost the lease
    assert_eq!(server.elapsed(), Duration::from_secs(4));
}

#[tokio::test(start_paused = true)]
async fn a_custom_resource_is_not_installed_yet() {
    let server = FakeApiserver::builder().in_memory().start().await;
    let widgets = ApiResource {
        group: "example.com".to_owned(),
        version: "v1".to_owned(),
        api_version: "example.com/v1".to_owned(),
        kind: "Widget".to_owned(),
        plural: "widgets".to_owned(),
    };
    let api: Api<DynamicObject> = Api::all_with(server.client(), &widgets);
    let mut events = watcher(api, watcher::Config::default()).default_backoff().boxed();
    while let Some(Ok(_)) = events.next().await {} // until the first 404

    server.apply(
        "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
",
    );
    server.apply("{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}}");
    let names = events.filter_map(async |event| match event {
        Ok(watcher::Event::InitApply(widget)) => Some(widget.name_any()),
        _ => None,
    });
    assert_eq!(names.boxed().next().await.as_deref(), Some("w"));
    server.expect(List::of("widgets.example.com"), 2..);
}

/// Creates the ConfigMap `owned` unless it exists: what a request with a lost answer did is seen by the next one.
async fn ensure(client: Client) -> Result<ConfigMap, Error> {
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    let mut owned = ConfigMap::default();
    owned.metadata.name = Some("owned".to_owned());
    loop {
        match api.create(&PostParams::default(), &owned).await {
            Err(Error::Api(status)) if status.reason == "AlreadyExists" => return api.get("owned").await,
            Err(Error::Api(status)) if status.code == 504 => continue, // the gateway does not say whether it was stored
            Err(Error::HyperError(_) | Error::Service(_)) => continue, // nor does a connection that ends
            result => return result,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_answer_to_a_create_is_lost() {
    let creates = || Create::of("configmaps");
    let server = FakeApiserver::builder()
        .in_memory()
        .rule(Rule::on(creates()).lose_answer(Ending::Fin))
        .start()
        .await;

    let owned = ensure(server.client()).await.expect("it exists");

    assert_eq!(owned.name_any(), "owned");
    server.expect(creates(), 2); // the first was stored, so that the second got AlreadyExists
    server.expect(Get::of("configmaps"), 1);
}

/// Counts up in the ConfigMap `counter`, and reads it again after a conflict, at most ten times.
async fn count_up(client: Client) -> Result<ConfigMap, Error> {
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    let mut conflicts = 0;
    loop {
        let mut counter = api.get("counter").await?;
        let data = counter.data.get_or_insert_default();
        let count = data.get("count").and_then(|count| count.parse::<u32>().ok());
        data.insert("count".to_owned(), (count.unwrap_or_default() + 1).to_string());
        match api.replace("counter", &PostParams::default(), &counter).await {
            Err(Error::Api(status)) if status.reason == "Conflict" && conflicts < 10 => conflicts += 1,
            result => return result,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn another_writer_is_always_faster() {
    let updates = || Update::of("configmaps").named("counter");
    let other = |count: &str| {
        let mut counter = config_map("counter");
        counter["data"] = json!({"count": count});
        counter
    };
    // Somebody writes before each of the first three updates: real conflicts, on an object that really changes.
    let server = FakeApiserver::builder()
        .in_memory()
        .object(other("0"))
        .rule(Rule::on(updates()).apply(other("10")))
        .rule(Rule::on(updates()).apply(other("20")))
        .rule(Rule::on(updates()).apply(other("30")))
        .start()
        .await;

    let counter = count_up(server.client()).await.expect("it wins at last");

    assert_eq!(counter.data.unwrap()["count"], "31"); // and no count is lost
    server.expect(updates(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_write_is_stored_although_the_gateway_times_out() {
    let updates = || Update::of("configmaps").named("counter");
    let server = FakeApiserver::builder()
        .in_memory()
        .object(config_map("counter"))
        .rule(Rule::on(updates()).respond_after_write(Status::new(504).reason("Timeout")))
        .rule(Rule::on(updates()).respond(Status::too_many_requests(1)))
        .start()
        .await;

    // kube-client sends the same update again after 504 and 429: it conflicts with itself, and has to be read again.
    let counter = count_up(server.client()).await.expect("it is stored");

    assert_eq!(counter.data.unwrap()["count"], "2"); // the first one counted: the loop is not idempotent
    server.expect(updates(), 4);
}

#[test]
fn the_page_shows_these_functions() {
    let page = include_str!("../../../docs/recipes.md");
    // The last section is compared by `watcher.rs`.
    let (page, _) = page
        .split_once("\n## Tests of a client library\n")
        .expect("the last section");
    let source = include_str!("recipes.rs");
    let shown: Vec<&str> = page
        .split("```rust\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .collect();
    for block in &shown {
        assert!(
            source.contains(block),
            "docs/recipes.md shows what is not tested here:\n{block}"
        );
    }
    let tests = |text: &str| text.matches("#[tokio::test").count();
    assert_eq!(tests(&shown.concat()), tests(source) - 1, "every recipe is shown");
}
