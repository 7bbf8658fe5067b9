//! `kube_client::Api` as a client under test: `watch` and `list` without anything around them, so that what fails is for the
//! caller. It must not know the scenario.

use conformance::client::{Client, Start};
use fake_apiserver::report::{Report, ReportedObject};
use fake_apiserver::scenario::{ClientSettings, Contract, ListSemantic};
use futures::stream::{self, BoxStream, StreamExt as _};
use kube_client::Api;
use kube_client::api::{ListParams, WatchEvent, WatchParams};
use kube_core::DynamicObject;

use crate::{api_of, api_status, content, reported};

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

/// One watch. What it delivers is handed on, up to its end.
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

/// One list: pages up to the last, or to the first that fails.
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
                    // A version beside a token is refused.
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
