//! Starting a server, reaching it, reading what happened.

use std::time::Duration;

use fake_apiserver_testing::{Builder, Ending, FakeApiserver, List, Matcher, Rule, Status, Verb, Watch};
use futures::StreamExt as _;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube_client::api::{
    Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams,
};
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_client::{Client, Config};
use kube_core::ApiResource;
use rstest::rstest;
use serde_json::json;

use super::{config_map, maps, names, panics, with};

const WIDGETS: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions:
    - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
---
apiVersion: example.com/v1
kind: Widget
metadata: {name: w, namespace: tools}
";

#[rstest]
#[case::sockets(FakeApiserver::builder())]
#[case::tls(FakeApiserver::builder().tls())]
#[case::memory(FakeApiserver::builder().in_memory())]
#[tokio::test]
async fn a_client_reads_the_objects_of_the_start(#[case] builder: Builder) {
    let typed = ConfigMap {
        metadata: kube_core::ObjectMeta {
            name: Some("typed".to_owned()),
            namespace: Some("elsewhere".to_owned()),
            ..Default::default()
        },
        ..ConfigMap::default()
    };
    let server = builder
        .secondary()
        .objects([typed])
        .object(config_map("json", "1"))
        .crd(WIDGETS)
        .start()
        .await;
    for client in [
        server.client(),
        server.client_named("my-controller/1"),
        server.secondary_client(),
    ] {
        let all: Api<ConfigMap> = Api::all(client.clone());
        assert_eq!(
            names(&all, &ListParams::default()).await.unwrap(),
            ["json", "typed"]
        );
        let widgets = ApiResource {
            group: "example.com".to_owned(),
            version: "v1".to_owned(),
            api_version: "example.com/v1".to_owned(),
            kind: "Widget".to_owned(),
            plural: "widgets".to_owned(),
        };
        let widgets: Api<DynamicObject> = Api::namespaced_with(client, "tools", &widgets);
        assert!(widgets.get_opt("w").await.unwrap().is_some());
    }
    server.expect(List::of("configmaps"), 3);
    server.expect(List::of("configmaps").user_agent("my-controller"), 1);
    server.expect(List::of("configmaps").at_secondary(), 1);
}

#[tokio::test]
async fn sockets_are_found_by_url_config_and_kubeconfig() {
    let server = FakeApiserver::builder()
        .tls()
        .object(config_map("a", "1"))
        .start()
        .await;
    assert!(server.url().starts_with("https://127.0.0.1:"), "{}", server.url());
    let kubeconfig = Kubeconfig::from_yaml(server.kubeconfig()).unwrap();
    let read = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .unwrap();
    for config in [server.config(), read] {
        let api: Api<ConfigMap> = Api::default_namespaced(Client::try_from(config).unwrap());
        assert_eq!(names(&api, &ListParams::default()).await.unwrap(), ["a"]);
    }
}

#[tokio::test]
async fn what_only_sockets_have_is_refused_in_memory() {
    let server = with(&[]).start().await;
    let refused = [
        panics(|| assert_eq!(server.url(), "")),
        panics(|| assert_eq!(server.kubeconfig(), "")),
        panics(|| drop(server.config())),
        panics(|| drop(server.secondary_client())),
        panics(|| drop(server.client_named("a\nb"))),
    ];
    insta::assert_snapshot!(refused.join("\n"), @r"
    a server in memory has no URL: only its own clients reach it
    a server in memory has no kubeconfig: only its own clients reach it
    a server in memory has no config: only its own clients reach it
    there is no secondary: start the server with `.secondary()`
    `a
    b` cannot be a User-Agent
    ");
}

#[tokio::test]
async fn all_mistakes_of_a_builder_are_reported_at_once() {
    let mistakes = FakeApiserver::builder()
        .version("1.12")
        .objects(["kind: ["])
        .object(json!({"apiVersion": "v1", "kind": "Widget", "metadata": {"name": "w"}}))
        .object(json!({"apiVersion": "v1", "kind": "ConfigMap"}))
        .rule(Rule::on(List::of("configmap")).respond(Status::expired()))
        .tls()
        .in_memory()
        .try_start()
        .await
        .unwrap_err();
    insta::assert_snapshot!(mistakes, @r#"
    the builder of this server has mistakes:
      version `1.12`: expected 1.34, 1.35, 1.36 or 1.37
      object 0: unclosed bracket '[' at line 1, column 7
      `tls` has no effect on a server in memory
      Widget "w": "Widget" of "v1" is not served
      ConfigMap "": a ConfigMap has no metadata.name
      no resource `configmap` is served; did you mean `configmaps`?
    "#);
    let mistakes = with(&[]).rule(Rule::on(List::of("pods"))).try_start().await;
    insta::assert_snapshot!(mistakes.unwrap_err(), @r"
    the builder of this server has mistakes:
      rule on LIST pods: this rule does nothing (e.g. `when: {list: next}` and `do: {reply: {status: 503}}`)
    ");
}

#[rstest]
#[case("1.34", "34")]
#[case("1.37", "37")]
#[tokio::test]
async fn a_version_is_answered_as(#[case] version: &str, #[case] minor: &str) {
    let server = with(&[]).version(version).start().await;
    assert_eq!(server.client().apiserver_version().await.unwrap().minor, minor);
}

#[tokio::test]
async fn bootstrap_objects_are_there_on_request() {
    let cases = [
        (FakeApiserver::builder(), false),
        (FakeApiserver::builder().bootstrap_objects(), true),
    ];
    for (builder, there) in cases {
        let server = builder.in_memory().start().await;
        let services: Api<k8s_openapi::api::core::v1::Service> = Api::default_namespaced(server.client());
        assert_eq!(services.get_opt("kubernetes").await.unwrap().is_some(), there);
        let namespaces: Api<Namespace> = Api::all(server.client());
        assert_eq!(
            namespaces.list(&ListParams::default()).await.unwrap().items.len(),
            4
        );
    }
}

#[tokio::test(start_paused = true)]
async fn requests_are_typed() {
    let server = with(&["a"]).start().await;
    let api = maps(&server);
    let mut map = api.get("a").await.unwrap();
    map.data = Some([("v".to_owned(), "2".to_owned())].into());
    api.replace("a", &PostParams::default(), &map).await.unwrap();
    api.create(
        &PostParams::default(),
        &serde_json::from_value(config_map("b", "1")).unwrap(),
    )
    .await
    .unwrap();
    let patch = Patch::Merge(json!({"data": {"v": "3"}}));
    api.patch("b", &PatchParams::default(), &patch).await.unwrap();
    api.delete("b", &DeleteParams::default()).await.unwrap();
    api.delete_collection(&DeleteParams::default(), &ListParams::default())
        .await
        .unwrap();
    let deployments: Api<Deployment> = Api::namespaced(server.client(), "shop");
    assert_eq!(super::code(deployments.get_status("web").await), 404);
    server.client().apiserver_version().await.unwrap();
    let seen = server.requests();
    let verbs: Vec<Verb> = seen.iter().map(|request| request.verb).collect();
    assert_eq!(
        verbs,
        [
            Verb::Get,
            Verb::Update,
            Verb::Create,
            Verb::Patch,
            Verb::Delete,
            Verb::DeleteCollection,
            Verb::Get,
            Verb::Other
        ]
    );
    let status = &seen[6];
    assert_eq!(
        (
            status.resource.as_str(),
            status.namespace.as_deref(),
            status.name.as_deref()
        ),
        ("deployments.apps", Some("shop"), Some("web"))
    );
    assert_eq!(
        (status.subresource.as_deref(), status.status),
        (Some("status"), Some(404))
    );
    let printed: Vec<String> = seen.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(printed.join("\n"), @r"
    0.000s #1 GET configmaps/a in default → 200
    0.000s #2 UPDATE configmaps/a in default → 200
    0.000s #3 CREATE configmaps in default → 201
    0.000s #4 PATCH configmaps/b in default → 200
    0.000s #5 DELETE configmaps/b in default → 200
    0.000s #6 DELETECOLLECTION configmaps in default → 200
    0.000s #7 GET deployments.apps/web/status in shop → 404
    0.000s #8 GET /version → 200
    ");
}

#[tokio::test(start_paused = true)]
async fn the_trace_is_the_same_in_every_run() {
    let mut traces = Vec::new();
    for _ in 0..2 {
        let server = with(&["a"])
            .rule(
                Rule::on(Watch::any())
                    .named("cut")
                    .cut_after(1, fake_apiserver_testing::Ending::Eof),
            )
            .start()
            .await;
        let api = maps(&server);
        let list = api.list(&ListParams::default()).await.unwrap();
        let version = list.metadata.resource_version.unwrap();
        let events = api.watch(&WatchParams::default(), &version).await.unwrap();
        server.apply(config_map("b", "1"));
        assert_eq!(events.collect::<Vec<_>>().await.len(), 1);
        assert_eq!(server.elapsed(), Duration::ZERO);
        assert_eq!(
            server.trace().records().len(),
            server.trace().to_string().lines().count()
        );
        traces.push(server.trace().to_string());
    }
    assert_eq!(traces[0], traces[1]);
    insta::assert_snapshot!(traces[0], @r"
    0.000s store  . create namespaces/default@1001
    0.000s store  . create namespaces/kube-node-lease@1002
    0.000s store  . create namespaces/kube-public@1003
    0.000s store  . create namespaces/kube-system@1004
    0.000s store  . create configmaps/default/a@1005
    0.000s client > connects (c1)
    0.000s client > #1 c1 LIST /api/v1/namespaces/default/configmaps
    0.000s server < #1 200
    0.000s server < #1 rv=1005 items=1
    0.000s server < #1 eof
    0.000s client > #2 c1 WATCH /api/v1/namespaces/default/configmaps?watch=true&timeoutSeconds=290&allowWatchBookmarks=true&resourceVersion=1005
    0.000s script . rule cut on #2: truncate
    0.000s server < #2 200
    0.000s script . rule at once: apply
    0.000s store  . create configmaps/default/b@1006
    0.000s server < #2 ADDED default/b@1006
    0.000s server < #2 eof
    ");
}

#[tokio::test(start_paused = true)]
async fn watch_cache_and_bookmarks_are_set() {
    let server = with(&["a"])
        .watch_cache_capacity(1)
        .bookmark_interval(Duration::from_secs(5))
        .seed(7)
        .start()
        .await;
    let version = server.resource_version();
    for v in ["2", "3", "4"] {
        server.apply(config_map("a", v));
    }
    let api = maps(&server);
    let params = WatchParams::default();
    let mut events = api.watch(&params, &version).await.unwrap().boxed();
    assert!(matches!(events.next().await, Some(Ok(WatchEvent::Error(status))) if status.code == 410));
    let mut events = api
        .watch(&params, &server.resource_version())
        .await
        .unwrap()
        .boxed();
    // A bookmark is sent once the version has moved on elsewhere.
    server.apply("{apiVersion: v1, kind: Secret, metadata: {name: s}}");
    let event = events.next().await;
    assert!(matches!(event, Some(Ok(WatchEvent::Bookmark(_)))), "{event:?}");
    assert!(
        server.elapsed() <= Duration::from_secs(10),
        "{:?}",
        server.elapsed()
    );
}

#[tokio::test]
async fn streaming_lists_can_be_turned_off() {
    for (builder, code) in [(with(&[]), 200), (with(&[]).without_streaming_lists(), 422)] {
        let server = builder.start().await;
        let streaming = WatchParams::default().initial_events();
        let watched = maps(&server).watch(&streaming, "0").await;
        assert_eq!(super::code(watched), code);
    }
}

#[rstest]
#[case::sockets(FakeApiserver::builder())]
#[case::memory(FakeApiserver::builder().in_memory())]
#[tokio::test]
async fn a_dropped_server_is_gone(#[case] builder: Builder) {
    let server = builder.start().await;
    let api = maps(&server);
    let watch = api
        .watch(&WatchParams::default(), &server.resource_version())
        .await
        .unwrap();
    drop(server);
    watch.for_each(async |_| {}).await;
    // The runtime drops the listener's task in its next turns.
    while super::code(names(&api, &ListParams::default()).await) != 0 {
        tokio::task::yield_now().await;
    }
}

#[test]
fn a_server_is_shared_between_threads() {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<FakeApiserver>();
}

#[test]
fn matchers_are_cloned_and_shown() {
    let matcher: Matcher<List> = List::of("pods").in_namespace("default").clone();
    assert_eq!(format!("{matcher:?}"), "Matcher(\"LIST pods in default\")");
}

/// A client of any library: no kube-client, also where the server has sockets and TLS.
#[rstest]
#[case::in_memory(FakeApiserver::builder().in_memory())]
#[case::sockets(FakeApiserver::builder())]
#[case::tls(FakeApiserver::builder().tls())]
#[tokio::test]
async fn the_server_is_a_service(#[case] builder: Builder) {
    use tower::ServiceExt as _;

    let server = builder.start().await;
    let path = "/api/v1/namespaces/default/configmaps";
    let get = || http::Request::get(path).body(String::new()).unwrap();
    let service = server.service().user_agent("mine");
    assert_eq!(service.clone().oneshot(get()).await.unwrap().status(), 200);
    server.rule(Rule::on(List::any()).no_answer(Ending::Rst));
    assert!(service.clone().oneshot(get()).await.is_err());
    let whole = http::Request::get(format!("http://ignored{path}"));
    let named = whole.header("user-agent", "theirs").body(String::new()).unwrap();
    assert_eq!(service.oneshot(named).await.unwrap().status(), 200);
    let agents = server
        .requests()
        .into_iter()
        .filter_map(|request| request.user_agent);
    assert_eq!(agents.collect::<Vec<_>>(), ["mine", "mine", "theirs"]);
}
