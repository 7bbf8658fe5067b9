//! Determines whether a scenario can run with a client without an adapter, which neither reports events nor accepts
//! settings.

use std::time::Duration;

use ::trace::record::{Record, Verb, What};
use apimachinery::path::decoded_path;
use scenario::matching::words_for_emitted;
use scenario::{
    Action, ClientMode, ClientSettings, Contract, EmittedKind, Expected, InitialList, ListSemantic, Named,
    Ref, ReplyBody, RequestKind, Scenario, ServerSettings, ShapeAction, StreamAction, Times, Trigger,
};

use crate::words::span;

/// What a scenario needs beyond the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Needs {
    /// A trigger that only an adapter can report: it would never be met.
    Adapter(String),
    /// Client settings that have to be configured.
    Told(String),
    /// Time that its script takes: without an adapter, time is real.
    Time(Duration),
    /// The server in memory: an upstream cannot do what the scenario does.
    Model(String),
}

impl Needs {
    /// Describes the need.
    pub fn words(&self) -> String {
        match self {
            Self::Adapter(words) | Self::Told(words) | Self::Model(words) => words.clone(),
            Self::Time(took) => format!(
                "{} of real time: name its file to play it",
                span(took.as_millis() as u64)
            ),
        }
    }
}

/// Returns what a scenario needs that an upstream cannot do; `None`: nothing. `may_write`: whether its objects are written to the
/// upstream; otherwise its client has those of the upstream alone.
pub fn needs_model(scenario: &Scenario, may_write: bool) -> Option<Needs> {
    let own = ServerSettings {
        transport: scenario.server.transport,
        max_concurrent_streams: scenario.server.max_concurrent_streams,
        version: scenario.server.version,
        rejected_streams_count: scenario.server.rejected_streams_count,
        ..ServerSettings::default()
    };
    if scenario.server != own {
        return Some(Needs::Model(
            "the server in memory: it has settings of the server, which are the cluster's own".to_owned(),
        ));
    }
    scenario.steps.iter().enumerate().find_map(|(index, step)| {
        if waits_for_a_name(&step.when) {
            let (step, line) = (index + 1, step.at.line);
            return Some(Needs::Model(format!(
                "the server in memory: step {step} (line {line}) waits for a version that another step names"
            )));
        }
        step.actions.iter().find_map(|action| {
            let why = match action.needs_model() {
                Some(_) if action.is_write() && may_write => return None,
                Some(_) if action.is_write() => "it writes to the cluster, which --allow-writes permits",
                Some((why, _)) => why,
                None if invents(action) => "sends objects or versions that are not the cluster's",
                None => return None,
            };
            let (step, line, word) = (index + 1, step.at.line, action.word());
            Some(Needs::Model(format!(
                "the server in memory: step {step} (line {line}), {word}: {why}"
            )))
        })
    })
}

/// Returns whether a trigger names a version other than that of the first list: an event may come before the response of the write
/// that names its version.
fn waits_for_a_name(when: &Trigger) -> bool {
    let is_other =
        |wanted: &Expected| matches!(wanted, Expected::Ref(Ref::ResourceVersion(_) | Ref::Continue(_)));
    match when {
        Trigger::Request(request) => request.query.iter().any(|query| is_other(&query.value)),
        Trigger::Emitted(emitted) => emitted.resource_version.as_ref().is_some_and(is_other),
        Trigger::Now | Trigger::After(_) | Trigger::Quiet(_) | Trigger::Synced => false,
    }
}

/// Returns whether an action sends an object or a version that the file has: what a client does with it is no mistake, or harms
/// the cluster.
fn invents(action: &Action) -> bool {
    match action {
        Action::Shape(ShapeAction::Reply(reply)) => match &reply.body {
            ReplyBody::Status(status) => reply.status < 400 || status.inconsistent_token,
            ReplyBody::Raw(_) | ReplyBody::Json(_) => reply.status < 400,
            ReplyBody::Unmodified => false,
        },
        Action::Stream(StreamAction::Send(frames)) => frames.iter().any(|frame| {
            let text = String::from_utf8_lossy(&frame.bytes);
            text.contains("resourceVersion") || text.contains("\"metadata\"")
        }),
        Action::Stream(StreamAction::SendEvent { kind, .. }) => kind != "ERROR",
        Action::Stream(StreamAction::SendBookmark { resource_version, .. }) => resource_version.is_some(),
        Action::Shape(_) | Action::Rule(_) | Action::Store(_) | Action::Stream(_) | Action::Refuse(_) => {
            false
        }
    }
}

/// Returns what a scenario needs beyond the wire; `None`: nothing.
pub fn needs(scenario: &Scenario) -> Option<Needs> {
    if scenario.client.contract != Contract::Informer {
        let contract = scenario.client.contract.word();
        return Some(Needs::Adapter(format!("an adapter: it starts one {contract}")));
    }
    let reported = scenario
        .steps
        .iter()
        .enumerate()
        .find_map(|(index, step)| match &step.when {
            // Events on the wire are taken for the client's reports (see `Limits::reports`).
            Trigger::Emitted(wanted) => match wanted.kind {
                // The wire does not show when a slow consumer processes an event.
                _ if scenario.client.consumer_delay_ms > 0 => {
                    Some((index, step.at.line, words_for_emitted(wanted)))
                }
                EmittedKind::InitApply | EmittedKind::InitDone | EmittedKind::Apply | EmittedKind::Delete => {
                    None
                }
                EmittedKind::Init | EmittedKind::Error => {
                    Some((index, step.at.line, words_for_emitted(wanted)))
                }
            },
            Trigger::Now | Trigger::Request(_) | Trigger::After(_) | Trigger::Quiet(_) | Trigger::Synced => {
                None
            }
        });
    if let Some((index, line, wanted)) = reported {
        return Some(Needs::Adapter(format!(
            "an adapter: step {} (line {line}) waits for {wanted}, and without one that never comes",
            index + 1
        )));
    }
    let mut settings = required_settings(scenario);
    settings.retain(|setting| key_of(setting) != GZIP);
    (!settings.is_empty()).then(|| Needs::Told(format!("a client configured with {}", settings.join(", "))))
}

/// Returns the minimum duration of the script, regardless of the client: its delays and quiet periods.
pub fn takes(scenario: &Scenario) -> Duration {
    let steps = scenario.steps.iter().map(|step| {
        let own_ms = match step.when {
            Trigger::After(ms) | Trigger::Quiet(ms) => ms,
            Trigger::Now | Trigger::Request(_) | Trigger::Emitted(_) | Trigger::Synced => 0,
        };
        let held_ms = match step.times {
            Times::For(ms) => ms,
            Times::Count(_) => 0,
        };
        own_ms + held_ms
    });
    Duration::from_millis(steps.sum::<u64>() + scenario.expect.settle_ms)
}

/// Returns the maximum time a scenario grants its client, in addition to the script's duration and explicit limits.
pub fn grants(scenario: &Scenario) -> Duration {
    let steps = scenario.steps.iter().filter_map(|step| step.within_ms);
    Duration::from_millis(steps.sum::<u64>() + scenario.expect.within_ms.unwrap_or_default())
}

/// Key of the setting that no command must have: nothing is compressed for one that does not accept it.
const GZIP: &str = "gzip";

/// Keys of `client:` in a scenario.
pub const SETTINGS: [&str; 18] = [
    "contract",
    "resource_version",
    "mode",
    "object",
    "labels",
    "fields",
    "timeout",
    "list_semantic",
    "initial_list",
    "page_size",
    "bookmarks",
    "idle_timeout",
    "list_timeout",
    "staleness_probe_after",
    "backoff",
    "consumer_delay",
    "consumer_delay_event",
    GZIP,
];

/// Returns the keys of `client:` in which the scenario differs from the default.
pub fn configured(scenario: &Scenario) -> Vec<&'static str> {
    let settings = required_settings(scenario);
    let is_set = |key: &str| settings.iter().any(|setting| key_of(setting) == key);
    SETTINGS.into_iter().filter(|key| is_set(key)).collect()
}

/// Returns the key of a required setting, which is written as in a scenario file.
fn key_of(setting: &str) -> &str {
    let setting = setting.trim_matches('`');
    setting.split_once(':').map_or(setting, |(key, _)| key)
}

/// Returns the keys of `client:` that a command must be configured with: all in which the scenario differs from the default but
/// `gzip`.
pub fn needed_settings(scenario: &Scenario) -> Vec<&'static str> {
    let mut keys = configured(scenario);
    keys.retain(|key| *key != GZIP);
    keys
}

/// Settings whose value requests have.
const SHOWN_BY_REQUESTS: [&str; 7] = [
    "labels",
    "fields",
    "timeout",
    "list_semantic",
    "initial_list",
    "page_size",
    "bookmarks",
];

/// Returns whether the requests of a client may show a setting: other settings are only effective inside of it.
pub fn is_shown_by_requests(key: &str) -> bool {
    SHOWN_BY_REQUESTS.contains(&key)
}

/// Returns whether all requests for the scenario's target have the value that the scenario requires of a setting; `None`: no request
/// is of a kind that shows it.
pub fn is_set(scenario: &Scenario, key: &str, records: &[Record]) -> Option<bool> {
    let client = &scenario.client;
    let target = &scenario.target;
    let reads = || {
        records.iter().filter_map(|record| {
            let What::Request {
                verb, path, query, ..
            } = &record.what
            else {
                return None;
            };
            let path = decoded_path(path);
            let named = Named::by(&path);
            let is_of_target = named.group == target.group && named.plural == target.plural;
            (is_of_target && *verb != Verb::Other).then_some((*verb, query.as_slice()))
        })
    };
    let value = |query: &[(String, String)], name: &str| {
        let found = query.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    };
    // Requests of these verbs; further pages of a list repeat its token instead of its parameters.
    let of = |verbs: &'static [Verb]| {
        reads()
            .filter(|(verb, _)| verbs.contains(verb))
            .map(|(_, query)| query)
            .filter(|query| value(query, "continue").is_empty())
    };
    let (lists, watches) = (|| of(&[Verb::List]), || of(&[Verb::Watch, Verb::WatchList]));
    let has = |wanted: Option<String>, name: &'static str| {
        let wanted = wanted.unwrap_or_default();
        move |query: &[(String, String)]| value(query, name) == wanted
    };
    match key {
        "labels" => all(
            reads().map(|(_, query)| query),
            has(client.labels.clone(), "labelSelector"),
        ),
        "fields" => all(
            reads().map(|(_, query)| query),
            has(client.fields.clone(), "fieldSelector"),
        ),
        "timeout" => {
            let seconds = client.timeout_s.map(|seconds| seconds.to_string());
            all(watches(), has(seconds, "timeoutSeconds"))
        }
        "page_size" => {
            let size = client.page_size.map(|size| size.to_string());
            let is_paged = size.is_some();
            let has_limit = has(size, "limit");
            // A list from the watch cache has all items in one page.
            all(lists(), |query| {
                has_limit(query) && !(is_paged && value(query, "resourceVersion") == "0")
            })
        }
        "bookmarks" => all(watches(), |query| {
            let requested = value(query, "allowWatchBookmarks");
            client.bookmarks != matches!(requested.as_str(), "" | "0" | "false" | "False")
        }),
        "list_semantic" => all(lists().take(1), |query| {
            (client.list_semantic == ListSemantic::Any) == (value(query, "resourceVersion") == "0")
        }),
        "initial_list" => {
            let streams = reads().next().map(|(verb, _)| verb == Verb::WatchList);
            streams.map(|streams| streams == (client.initial_list == InitialList::StreamingList))
        }
        _ => None,
    }
}

/// Returns whether a property holds for all; `None` without any.
fn all<T>(items: impl Iterator<Item = T>, mut holds: impl FnMut(T) -> bool) -> Option<bool> {
    items.fold(None, |all, item| Some(holds(item) && all.unwrap_or(true)))
}

/// Returns true if a step waits for a second page, or an expectation requires one.
fn turns_pages(scenario: &Scenario) -> bool {
    let is_page = |kind: RequestKind| matches!(kind, RequestKind::Page { .. });
    let mut required = scenario.steps.iter().filter(|step| !step.optional);
    let waited_for = required.any(|step| match &step.when {
        Trigger::Request(request) => is_page(request.kind),
        Trigger::Now | Trigger::Emitted(_) | Trigger::After(_) | Trigger::Quiet(_) | Trigger::Synced => false,
    });
    waited_for
        || scenario
            .expect
            .requests
            .iter()
            .any(|request| request.any_of.iter().all(|one| is_page(one.kind)))
}

/// Returns the settings that differ from client defaults, or that the scenario depends on.
fn required_settings(scenario: &Scenario) -> Vec<String> {
    let (client, default) = (&scenario.client, ClientSettings::default());
    let mut settings = Vec::new();
    match (client.contract, &client.resource_version) {
        (Contract::Informer, _) => {}
        (contract, Some(version)) => {
            settings.push(format!("`contract: {}`", contract.word()));
            settings.push(format!("`resource_version: {version}`"));
        }
        (contract, None) => settings.push(format!("`contract: {}`", contract.word())),
    }
    match (client.mode, &client.object) {
        (ClientMode::Object, Some(object)) => settings.push(format!("`object: {object}`")),
        (ClientMode::Object, None) => settings.push("`mode: object`".to_owned()),
        (ClientMode::Metadata, _) => settings.push("`mode: metadata`".to_owned()),
        (ClientMode::Watcher, _) => {}
    }
    for (key, value) in [("labels", &client.labels), ("fields", &client.fields)] {
        if let Some(value) = value {
            settings.push(format!("`{key}: {value}`"));
        }
    }
    if let Some(seconds) = client.timeout_s {
        settings.push(format!("`timeout: {seconds}s`"));
    }
    if client.list_semantic == ListSemantic::Any {
        settings.push("`list_semantic: any`".to_owned());
    }
    if client.initial_list == InitialList::StreamingList {
        settings.push("`initial_list: streaming_list`".to_owned());
    }
    // Clients that read from the watch cache get all items in one page.
    if client.page_size != default.page_size || turns_pages(scenario) {
        settings.push(match client.page_size {
            Some(size) => format!("`page_size: {size}`"),
            None => "`page_size: none`".to_owned(),
        });
    }
    if client.bookmarks != default.bookmarks {
        settings.push("`bookmarks: false`".to_owned());
    }
    if let Some(ms) = client.idle_timeout_ms {
        settings.push(format!("`idle_timeout: {ms}ms`"));
    }
    if let Some(ms) = client.list_timeout_ms {
        settings.push(format!("`list_timeout: {ms}ms`"));
    }
    if let Some(after) = client.staleness_probe_after_ms {
        settings.push(match after {
            Some(ms) => format!("`staleness_probe_after: {ms}ms`"),
            None => "`staleness_probe_after: none`".to_owned(),
        });
    }
    if client.backoff != default.backoff {
        settings.push("`backoff`".to_owned());
    }
    if client.consumer_delay_ms != default.consumer_delay_ms {
        settings.push(format!("`consumer_delay: {}ms`", client.consumer_delay_ms));
    }
    if let Some(nth) = client.consumer_delay_event {
        settings.push(format!("`consumer_delay_event: {nth}`"));
    }
    if client.gzip != default.gzip {
        settings.push(format!("`{GZIP}: true`"));
    }
    settings
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use scenario::parse;

    use super::*;
    use crate::trace::sample::Sample;

    #[rstest]
    #[case::nothing("", &[])]
    #[case::a_page_awaited("steps: [{when: {list: 1, page: 2}}]", &["page_size"])]
    #[case::a_page_expected("expect: {requests: [list, {page: 2}]}", &["page_size"])]
    #[case::delays("client: {backoff: {initial: 1s}, list_timeout: 5s}", &["list_timeout", "backoff"])]
    #[case::probes("client: {staleness_probe_after: none}", &["staleness_probe_after"])]
    fn non_default_settings_are_required(#[case] part: &str, #[case] keys: &[&str]) {
        let text = format!(
            "scenario: v1\ntitle: t\nwhy: w\ncovers: [PAGE-01]\nobjects:\n  - {{repeat: 600, configmap: {{name: \"a-{{i}}\"}}}}\n{part}\n"
        );
        let scenario = parse("group/claim", std::path::Path::new("claim.yaml"), &text).unwrap();
        assert_eq!(configured(&scenario), keys);
        assert_eq!(needs(&scenario).is_some(), !keys.is_empty());
    }

    /// Requests of a client with `limit=2`, `timeoutSeconds=30` and no other parameter.
    fn requests() -> Vec<Record> {
        let mut sample = Sample::new();
        sample.list(&[("limit", "2")]);
        sample.list(&[("limit", "2"), ("continue", "t")]);
        sample.request(Verb::Watch, &[("watch", "true"), ("timeoutSeconds", "30")]);
        sample.records()
    }

    #[rstest]
    #[case::the_same_timeout("timeout: 30s", "timeout", Some(true))]
    #[case::another_timeout("timeout: 10s", "timeout", Some(false))]
    #[case::the_same_limit("page_size: 2", "page_size", Some(true))]
    #[case::another_limit("page_size: 3", "page_size", Some(false))]
    #[case::no_bookmarks("bookmarks: false", "bookmarks", Some(true))]
    #[case::a_selector("labels: app=x", "labels", Some(false))]
    #[case::the_latest_list("list_semantic: any", "list_semantic", Some(false))]
    #[case::a_streaming_list("initial_list: streaming_list", "initial_list", Some(false))]
    #[case::nothing_on_the_wire("idle_timeout: 5s", "idle_timeout", None)]
    fn requests_show_settings(#[case] setting: &str, #[case] key: &str, #[case] expected: Option<bool>) {
        let text = format!("scenario: v1\ntitle: t\nclient: {{{setting}}}\n");
        let scenario = parse("group/claim", std::path::Path::new("claim.yaml"), &text).unwrap();
        assert_eq!(configured(&scenario), [key]);
        assert_eq!(is_set(&scenario, key, &requests()), expected);
        assert_eq!(is_set(&scenario, key, &[]), None);
        assert_eq!(is_shown_by_requests(key), expected.is_some());
    }

    #[test]
    fn one_watch_is_started_by_an_adapter_alone() {
        let text = "scenario: v1\ntitle: t\nwhy: w\ncovers: [PAGE-01]\nclient: {contract: watch, resource_version: \"1\"}\n";
        let scenario = parse("group/claim", std::path::Path::new("claim.yaml"), text).unwrap();
        assert_eq!(configured(&scenario), ["contract", "resource_version"]);
        let words = needs(&scenario).map(|needs| needs.words());
        assert_eq!(words.as_deref(), Some("an adapter: it starts one watch"));
    }

    #[rstest]
    #[case::at_once("", false)]
    #[case::slowly("client: {consumer_delay: 1s}", true)]
    fn checks_of_a_slow_consumer_need_an_adapter(#[case] client: &str, #[case] needs_adapter: bool) {
        let text = format!(
            "scenario: v1\ntitle: t\nwhy: w\ncovers: [PAGE-01]\n{client}\nsteps: [{{when: {{emitted: init_done}}}}]\n"
        );
        let scenario = parse("group/claim", std::path::Path::new("claim.yaml"), &text).unwrap();
        assert_eq!(matches!(needs(&scenario), Some(Needs::Adapter(_))), needs_adapter);
    }
}
