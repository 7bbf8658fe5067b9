//! A watcher of each version of kube over `FakeApiserver::service`, in virtual time: the crate for tests depends on none.

/// Follows ConfigMaps through a 410, and lists again.
macro_rules! follows_through_a_410 {
    ($name:ident, $kube:ident, $openapi:ident) => {
        #[tokio::test(start_paused = true)]
        async fn $name() {
            use fake_apiserver_testing::{FakeApiserver, List, Rule, Status, Watch};
            use futures::StreamExt as _;
            use $kube::runtime::{WatchStreamExt as _, watcher};
            use $kube::{Api, Client, ResourceExt as _};
            use $openapi::api::core::v1::ConfigMap;

            let server = FakeApiserver::builder()
                .in_memory()
                .object("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")
                .rule(Rule::on(Watch::of("configmaps")).error(Status::expired()))
                .start()
                .await;
            let client = Client::new(server.service().user_agent(stringify!($name)), "default");
            let api: Api<ConfigMap> = Api::default_namespaced(client);
            let events = watcher(api, watcher::Config::default()).default_backoff();
            let applied = events
                .applied_objects()
                .filter_map(async |event| event.ok())
                .boxed();
            let names: Vec<String> = applied.take(2).map(|map| map.name_any()).collect().await;
            assert_eq!(names, ["a", "a"]);
            server.expect(List::of("configmaps"), 2);
            assert_eq!(
                server.requests()[0].user_agent.as_deref(),
                Some(stringify!($name))
            );
        }
    };
}

follows_through_a_410!(kube_5, kube_of_5, k8s_openapi_of_5);
follows_through_a_410!(kube_4, kube_of_4, k8s_openapi_of_4);
follows_through_a_410!(kube_3, kube_of_3, k8s_openapi_of_3);
