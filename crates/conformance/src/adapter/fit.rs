//! Matches a scenario with the `hello` of an adapter: the `start` message, or the reason why the scenario is unsupported.
//!
//! It must not know processes.

use std::sync::Arc;

use fake_apiserver::scenario::{
    ClientMode, EmittedKind, EmittedMatch, Excuse, InitialList, ListSemantic, Place, Scenario,
    SharedScenario, Transport, Trigger,
};
use judge::wire::configured;

use super::message::{
    Backoff, Capability, Contract, FirstList, Hello, Options, PROTOCOL, Recovers, Resource, Start,
};

/// Returns the `start` message.
///
/// # Errors
/// The reason why the scenario is `unsupported`, without a full stop.
pub fn start(scenario: &Scenario, hello: &Hello) -> Result<Start, String> {
    let contract = Contract::of(scenario.client.contract);
    if !hello.contracts.contains(&contract) {
        return Err(format!("needs the contract `{}`", contract.word()));
    }
    let target = &scenario.target;
    let resource = target.resource();
    if let Some(resources) = &hello.resources
        && !resources.contains(&resource)
    {
        return Err(format!("needs the resource `{resource}`"));
    }
    let lacking: Vec<String> = needed(scenario)
        .into_iter()
        .filter(|(capability, _)| !hello.caps.contains(capability))
        .map(|(capability, why)| format!("`{}` ({why})", capability.word()))
        .collect();
    if !lacking.is_empty() {
        let plural = if lacking.len() == 1 { "y" } else { "ies" };
        return Err(format!("needs the capabilit{plural} {}", lacking.join(", ")));
    }
    Ok(Start {
        protocol: PROTOCOL,
        contract: contract.word().to_owned(),
        resource: Resource {
            group: target.group.clone(),
            version: target.version.clone(),
            plural: target.plural.clone(),
            kind: target.kind.clone(),
        },
        namespace: target.namespace.clone(),
        options: options(scenario, hello),
        paused: scenario.client.consumer_delay_ms > 0,
    })
}

/// Returns the capabilities that a scenario requires, each with the key or step that requires it.
fn needed(scenario: &Scenario) -> Vec<(Capability, String)> {
    let client = &scenario.client;
    let mut needed = Vec::new();
    for key in configured(scenario) {
        let capabilities: &[Capability] = match key {
            "mode" | "object" if client.mode == ClientMode::Metadata => &[Capability::MetadataOnly],
            "mode" | "object" => &[Capability::SingleObject],
            "labels" => &[Capability::Selectors],
            "fields" => &[Capability::FieldSelectors],
            "timeout" => &[Capability::Timeout],
            "list_semantic" => &[Capability::ResourceVersion],
            "initial_list" => &[Capability::StreamingList],
            "page_size" => &[Capability::PageSize],
            "bookmarks" => &[Capability::Bookmarks],
            "idle_timeout" => &[Capability::IdleTimeout],
            "list_timeout" => &[Capability::ListTimeout],
            "staleness_probe_after" => &[Capability::StalenessProbe],
            "consumer_delay" | "consumer_delay_event" => &[Capability::Pause],
            "gzip" => &[Capability::Gzip],
            "backoff" => match (client.backoff.retry_after_max_ms, delays(scenario)) {
                (Some(_), Some(_)) => &[Capability::Backoff, Capability::RetryAfterMax],
                (Some(_), None) => &[Capability::RetryAfterMax],
                (None, _) => &[Capability::Backoff],
            },
            _ => &[],
        };
        for capability in capabilities {
            if !needed.iter().any(|(known, _)| known == capability) {
                needed.push((*capability, format!("client.{key}")));
            }
        }
    }
    if scenario.server.transport == Transport::TlsHttp2 {
        needed.push((Capability::Http2, "server.transport".to_owned()));
    }
    let steps: Vec<(&EmittedMatch, String)> = scenario
        .steps
        .iter()
        .enumerate()
        .filter_map(|(nth, step)| match &step.when {
            Trigger::Emitted(event) => Some((event, format!("step {}", nth + 1))),
            Trigger::Now | Trigger::Request(_) | Trigger::After(_) | Trigger::Quiet(_) | Trigger::Synced => {
                None
            }
        })
        .collect();
    let expected: Vec<(&EmittedMatch, String)> = scenario
        .expect
        .events
        .iter()
        .enumerate()
        .map(|(nth, expected)| (&expected.event, format!("expect.events[{nth}]")))
        .collect();
    let error = |(event, _): &&(&EmittedMatch, String)| event.kind == EmittedKind::Error;
    if let Some((_, place)) = steps.iter().chain(&expected).find(error) {
        needed.push((Capability::Errors, place.clone()));
    }
    let relist = needs_relist_events(&steps, false).or_else(|| needs_relist_events(&expected, true));
    if let Some(place) = relist {
        needed.push((Capability::InitEvents, place.to_owned()));
    }
    needed
}

/// Returns the first event that requires visible relists. `from_start`: the first `init` belongs to the first list.
fn needs_relist_events<'p>(events: &'p [(&EmittedMatch, String)], from_start: bool) -> Option<&'p str> {
    let mut synced = false;
    for (event, place) in events {
        let of_a_list = match event.kind {
            EmittedKind::Init => synced || !from_start || event.nth > 1,
            EmittedKind::InitApply | EmittedKind::InitDone => synced || event.nth > 1,
            EmittedKind::Apply | EmittedKind::Delete => {
                synced = true;
                false
            }
            EmittedKind::Error => false,
        };
        if of_a_list {
            return Some(place);
        }
        synced |= event.kind == EmittedKind::InitDone;
    }
    None
}

/// Returns the backoff of a scenario, without the maximum `Retry-After`.
fn delays(scenario: &Scenario) -> Option<Backoff> {
    let own = &scenario.client.backoff;
    let delays = Backoff {
        initial_ms: own.initial_ms,
        max_ms: own.max_ms,
        factor: own.factor,
        reset_after_ms: own.reset_after_ms,
    };
    (delays != Backoff::default()).then_some(delays)
}

fn options(scenario: &Scenario, hello: &Hello) -> Options {
    let client = &scenario.client;
    // A declared setting is sent even if it is the default of our watcher: other libraries have other defaults.
    let declared = |capability: Capability| hello.caps.contains(&capability);
    Options {
        label_selector: client.labels.clone(),
        field_selector: client.fields.clone(),
        page_size: declared(Capability::PageSize).then(|| client.page_size.unwrap_or(0)),
        initial_list: declared(Capability::StreamingList).then_some(match client.initial_list {
            InitialList::ListWatch => FirstList::List,
            InitialList::StreamingList => FirstList::Stream,
        }),
        resource_version: client.resource_version.clone().or_else(|| {
            declared(Capability::ResourceVersion).then(|| match client.list_semantic {
                ListSemantic::MostRecent => String::new(),
                ListSemantic::Any => "0".to_owned(),
            })
        }),
        metadata_only: (client.mode == ClientMode::Metadata).then_some(true),
        object_name: client.object.clone(),
        timeout_seconds: client.timeout_s,
        allow_bookmarks: declared(Capability::Bookmarks).then_some(client.bookmarks),
        idle_timeout_ms: client.idle_timeout_ms,
        list_timeout_ms: client.list_timeout_ms,
        staleness_probe_after_ms: client.staleness_probe_after_ms.map(Option::unwrap_or_default),
        backoff: delays(scenario),
        retry_after_max_ms: client.backoff.retry_after_max_ms,
        gzip: client.gzip.then_some(true),
    }
}

/// Adapts the scenario to the adapter: invariants that its reports cannot show are excused, and if the scenario requires LIST,
/// the server rejects streaming lists, as with the feature gate `WatchList` off.
pub fn adapt(scenario: &SharedScenario, hello: &Hello) -> SharedScenario {
    let mut adapted = Scenario::clone(scenario);
    match adapted.client.initial_list {
        InitialList::ListWatch => {
            adapted.server.streaming_lists.get_or_insert(false);
        }
        InitialList::StreamingList => {}
    }
    let is_watch = adapted.client.contract == fake_apiserver::scenario::Contract::Watch;
    if is_watch && hello.recovers == Recovers::Library {
        let because = "the library restarts a watch that ended, so its end may not be visible";
        adapted.expect.not_converged_because = Some(because.to_owned());
    }
    let mut excuse = |invariants: &[&str], because: &str| {
        for invariant in invariants {
            adapted.expect.excused.push(Excuse {
                invariant: (*invariant).to_owned(),
                because: because.to_owned(),
                at: Place::default(),
            });
        }
    };
    if !hello.caps.contains(&Capability::InitEvents) {
        excuse(&["INV-08", "INV-10"], "the client does not report its lists");
    }
    if !hello.caps.contains(&Capability::Ordered) {
        excuse(&["INV-11"], "the client's events may follow its requests");
    }
    Arc::new(adapted)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::adapter::message::ClientInfo;

    fn hello(caps: &[Capability]) -> Hello {
        Hello {
            protocol: PROTOCOL,
            client: ClientInfo {
                name: "x".to_owned(),
                lang: "go".to_owned(),
                version: "1".to_owned(),
                url: None,
                issues: None,
            },
            contracts: vec![Contract::Informer],
            caps: caps.to_vec(),
            resources: Some(vec!["configmaps".to_owned()]),
            recovers: Recovers::Library,
        }
    }

    fn scenario(part: &str) -> Scenario {
        let text = format!("scenario: v1\ntitle: t\nwhy: w\ncovers: [PAGE-01]\n{part}\n");
        fake_apiserver::scenario::parse("group/claim", std::path::Path::new("claim.yaml"), &text).unwrap()
    }

    #[rstest]
    #[case::nothing("", &[])]
    #[case::pages("client: {page_size: 2}", &[Capability::PageSize])]
    #[case::metadata("client: {mode: metadata}", &[Capability::MetadataOnly])]
    #[case::delays("client: {backoff: {initial: 1s, retry_after_max: 5s}}", &[Capability::Backoff, Capability::RetryAfterMax])]
    #[case::slow("client: {consumer_delay: 1s}", &[Capability::Pause])]
    #[case::first_list("steps: [{when: {emitted: init_done}}]", &[])]
    #[case::second_list("steps: [{when: {emitted: init_done}}, {when: {emitted: init_done}}]", &[Capability::InitEvents])]
    #[case::expected_lists("expect: {events: [init, init_done, init]}", &[Capability::InitEvents])]
    #[case::expected_list("objects: [{configmap: {name: a}}]\nexpect: {events: [init, {init_apply: a}, init_done]}", &[])]
    #[case::list_after_a_change("objects: [{configmap: {name: a}}]\nexpect: {events: [{apply: a}, init_done]}", &[Capability::InitEvents])]
    #[case::errors("expect: {events: [error]}", &[Capability::Errors])]
    #[case::http2("server: {transport: tls_h2}", &[Capability::Http2])]
    fn required_capabilities(#[case] part: &str, #[case] capabilities: &[Capability]) {
        let scenario = scenario(part);
        let needed: Vec<Capability> = needed(&scenario)
            .into_iter()
            .map(|(capability, _)| capability)
            .collect();
        assert_eq!(needed, capabilities);
        assert!(start(&scenario, &hello(capabilities)).is_ok());
        assert_eq!(start(&scenario, &hello(&[])).is_ok(), capabilities.is_empty());
    }

    #[test]
    fn declared_options_are_sent() {
        let options = |caps: &[Capability]| start(&scenario(""), &hello(caps)).unwrap().options;
        assert_eq!(options(&[]), Options::default());
        assert_eq!(options(&[Capability::PageSize]).page_size, Some(500));
        assert_eq!(
            options(&[Capability::StreamingList]).initial_list,
            Some(FirstList::List)
        );
    }

    #[test]
    fn the_contract_is_that_of_the_scenario() {
        let text = "client: {contract: watch, resource_version: \"7\"}";
        let mut hello = hello(&[]);
        assert_eq!(
            start(&scenario(text), &hello),
            Err("needs the contract `watch`".to_owned())
        );
        hello.contracts = vec![Contract::Watch];
        let started = start(&scenario(text), &hello).unwrap();
        assert_eq!(started.contract, "watch");
        assert_eq!(started.options.resource_version.as_deref(), Some("7"));
        assert_eq!(
            start(&scenario(""), &hello),
            Err("needs the contract `informer`".to_owned())
        );
        // A library that restarts its watch need not report its end.
        let is_open = |recovers| {
            let hello = Hello {
                recovers,
                ..hello.clone()
            };
            let adapted = adapt(&Arc::new(scenario(text)), &hello);
            adapted.expect.not_converged_because.is_some()
        };
        assert_eq!(
            (is_open(Recovers::Library), is_open(Recovers::None)),
            (true, false)
        );
    }

    #[test]
    fn another_resource_is_unsupported() {
        let pods = scenario("target: pods");
        assert_eq!(
            start(&pods, &hello(&[])),
            Err("needs the resource `pods`".to_owned())
        );
    }
}
