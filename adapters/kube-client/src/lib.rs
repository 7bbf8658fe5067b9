//! `kube_client::Api` as a client under test: plain `watch` and `list`, so that recovery is the caller's task; and the
//! report format of objects and errors of `kube_client`, for every client built on it. It must not know the scenario.

use std::sync::Arc;

use conformance::client::{Client, Start};
use fake_apiserver::report::{Report, ReportedObject};
use fake_apiserver::scenario::{ClientSettings, Contract, ListSemantic, Target};
use futures::stream::{self, BoxStream, StreamExt as _};
use kube_client::Api;
use kube_client::api::{ListParams, WatchEvent, WatchParams};
use kube_core::response::Status;
use kube_core::{ApiResource, DynamicObject, DynamicResourceScope, NamespaceResourceScope, Resource};
use serde::Serialize;

/// An object as JSON; `None`: its content is not reported.
pub type Content = Option<Arc<serde_json::Value>>;

/// The client under test.
#[derive(Debug, Clone, Copy, Default)]
pub struct KubeClient;

impl Client for KubeClient {
    fn name(&self) -> &'static str {
        "kube-client"
    }

    fn version(&self) -> &'static str {
        "5.0.0"
    }

    fn contracts(&self) -> &'static [Contract] {
        &[Contract::Watch, Contract::List]
    }

    fn start(&self, kube: kube_client::Client, start: Start) -> BoxStream<'static, Report> {
        let api = api_of(kube, &start.target);
        match start.settings.contract {
            Contract::Watch => watch(api, start.settings),
            Contract::List | Contract::Informer => list(api, start.settings),
        }
    }
}

/// Starts one watch and reports what it delivers, up to its end.
fn watch(api: Api<DynamicObject>, settings: ClientSettings) -> BoxStream<'static, Report> {
    let mut params = WatchParams {
        label_selector: settings.labels,
        field_selector: settings.fields,
        bookmarks: settings.bookmarks,
        ..WatchParams::default()
    };
    if let Some(seconds) = settings.timeout_s {
        params = params.timeout(seconds);
    }
    let from = settings.resource_version.unwrap_or_default();
    let opened = async move {
        match api.watch(&params, &from).await {
            Ok(events) => events
                .filter_map(async |event| match event {
                    Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => {
                        Some(Report::Apply(whole(&object)))
                    }
                    Ok(WatchEvent::Deleted(object)) => Some(Report::Delete(whole(&object))),
                    Ok(WatchEvent::Bookmark(_)) => None,
                    Ok(WatchEvent::Error(status)) => Some(Report::Error {
                        message: status.message,
                        code: Some(status.code),
                    }),
                    Err(problem) => Some(error(&problem)),
                })
                .boxed(),
            Err(problem) => stream::iter([error(&problem)]).boxed(),
        }
    };
    stream::once(opened).flatten().boxed()
}

/// Starts one list and reads pages up to the last, or to the first that fails.
fn list(api: Api<DynamicObject>, settings: ClientSettings) -> BoxStream<'static, Report> {
    let mut params = ListParams {
        label_selector: settings.labels,
        field_selector: settings.fields,
        limit: settings.page_size,
        ..ListParams::default()
    };
    if settings.list_semantic == ListSemantic::Any {
        params.resource_version = Some("0".to_owned());
    }
    let pages = stream::unfold(Some(params), move |params| {
        let api = api.clone();
        async move {
            let mut params = params?;
            Some(match api.list(&params).await {
                Ok(page) => {
                    let items = page.items.iter().map(|item| Report::InitApply(whole(item)));
                    let mut reports: Vec<Report> = items.collect();
                    let next = page.metadata.continue_.filter(|token| !token.is_empty());
                    if next.is_none() {
                        reports.push(Report::InitDone);
                    }
                    // A resourceVersion beside a continue token is rejected.
                    params.resource_version = None;
                    let next = next.map(|token| params.continue_token(&token));
                    (reports, next)
                }
                Err(problem) => (vec![error(&problem)], None),
            })
        }
    });
    let begun = stream::iter([vec![Report::Init]]);
    begun.chain(pages).flat_map(stream::iter).boxed()
}

fn error(problem: &kube_client::Error) -> Report {
    Report::Error {
        code: api_status(problem).map(|status| status.code),
        message: problem.to_string(),
    }
}

fn whole(object: &DynamicObject) -> ReportedObject {
    reported(object, content(object))
}

/// Returns the `Api` of a target, for objects of any kind.
pub fn api_of<K: Resource<DynamicType = ApiResource, Scope = DynamicResourceScope>>(
    kube: kube_client::Client,
    target: &Target,
) -> Api<K> {
    let (group, version) = (&target.group, &target.version);
    let resource = ApiResource {
        group: group.clone(),
        version: version.clone(),
        api_version: if group.is_empty() {
            version.clone()
        } else {
            format!("{group}/{version}")
        },
        kind: target.kind.clone(),
        plural: target.plural.clone(),
    };
    match &target.namespace {
        Some(namespace) => Api::namespaced_with(kube, namespace, &resource),
        None => Api::all_with(kube, &resource),
    }
}

/// Returns the `Api` of a target, for objects of a namespaced type.
pub fn typed_api_of<K: Resource<DynamicType = (), Scope = NamespaceResourceScope>>(
    kube: kube_client::Client,
    target: &Target,
) -> Api<K> {
    match &target.namespace {
        Some(namespace) => Api::namespaced(kube, namespace),
        None => Api::all(kube),
    }
}

/// Returns the report of an object.
pub fn reported<K: Resource>(object: &K, content: Content) -> ReportedObject {
    let meta = object.meta();
    ReportedObject {
        namespace: meta.namespace.clone(),
        name: meta.name.clone().unwrap_or_default(),
        uid: meta.uid.clone(),
        resource_version: meta.resource_version.clone(),
        content,
    }
}

/// Returns an object as JSON.
pub fn content<K: Serialize>(object: &K) -> Content {
    // An object decoded from JSON can be encoded; if not, the report without content shows it.
    serde_json::to_value(object).ok().map(Arc::new)
}

/// Returns the Status of the server, if the error has one.
pub fn api_status(error: &kube_client::Error) -> Option<&Status> {
    if let kube_client::Error::Api(status) = error {
        Some(status)
    } else {
        None
    }
}
