//! The library against a minimal server: its reports arrive in order, and the same seed gives the same run.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a test looks at the few records it is about"
)]

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use adapter_kube_runtime::KubeRuntime;
use bytes::Bytes;
use conformance::client::Client;
use conformance::drive::Run;
use conformance::drive::live::live_against;
use conformance::drive::sim::sim_against;
use fake_apiserver::fault::Ending;
use fake_apiserver::net::Core;
use fake_apiserver::record::{ConnId, Record, RunEnd, Side, StreamId, What};
use fake_apiserver::report::Report;
use fake_apiserver::scenario::{ClientMode, ClientSettings, Expect, Scenario, SharedScenario, Target};
use fake_apiserver::server::{Input, Output};
use rstest::rstest;

/// Serves one LIST, a WATCH that expires after an event, another LIST; finished when the second list is reported.
#[derive(Default)]
struct OneRelist {
    outputs: VecDeque<Output>,
    records: Vec<Record>,
    lists: u32,
    end: Option<RunEnd>,
}

impl OneRelist {
    fn push(&mut self, at: Duration, what: What) {
        self.records.push(Record {
            seq: self.records.len() as u64,
            at,
            what,
        });
    }

    fn answer(&mut self, stream: StreamId, body: &str, ending: Option<Ending>) {
        let headers = vec![(
            "content-type".parse().expect("a name"),
            "application/json".parse().expect("a value"),
        )];
        self.outputs.push_back(Output::Head {
            stream,
            status: 200,
            headers,
            length: None,
        });
        for line in body.split_inclusive('\n') {
            self.outputs.push_back(Output::Data {
                stream,
                bytes: Bytes::copy_from_slice(line.as_bytes()),
            });
        }
        self.outputs.extend(ending.map(|how| Output::End { stream, how }));
    }
}

const OBJECT: &str = r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"default","uid":"u1","resourceVersion":"RV"}}"#;
const EXPIRED: &str = r#"{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old","reason":"Expired","code":410}}"#;

impl Core for OneRelist {
    fn accepts(&mut self, _: Duration) -> bool {
        true
    }

    fn handle(&mut self, now: Duration, input: Input) {
        match input {
            Input::Connected { conn, replica, peer } => {
                self.push(now, What::Connected { conn, replica, peer })
            }
            Input::Disconnected { conn, by } => self.push(now, What::Disconnected { conn, by }),
            Input::Abandoned(stream) | Input::CutOff(stream) => {
                self.push(
                    now,
                    What::End {
                        stream,
                        how: Ending::Fin,
                        by: Side::Client,
                    },
                );
            }
            Input::Request { stream, request, .. } if request.query.as_str().contains("watch=true") => {
                let event = OBJECT.replace("RV", "11");
                if self.lists == 1 {
                    let lines = format!("{{\"type\":\"MODIFIED\",\"object\":{event}}}\n{EXPIRED}\n");
                    self.answer(stream, &lines, Some(Ending::Eof));
                } else {
                    self.answer(stream, "", None);
                }
            }
            Input::Request { stream, .. } => {
                self.lists += 1;
                let list = format!(
                    "{{\"kind\":\"ConfigMapList\",\"apiVersion\":\"v1\",\"metadata\":{{\"resourceVersion\":\"{}\"}},\"items\":[{}]}}\n",
                    9 + self.lists,
                    OBJECT.replace("RV", "10"),
                );
                self.answer(stream, &list, Some(Ending::Eof));
            }
            Input::Report(report) => {
                if self.lists == 2 && report == Report::InitDone {
                    self.end = Some(RunEnd::Complete);
                }
                if matches!(report, Report::Ended | Report::Crashed { .. }) {
                    self.end = Some(RunEnd::ClientGone);
                }
                self.push(now, What::Reported(report));
            }
            Input::StopRequested => self.push(now, What::StopRequested),
            Input::LeftOpen(connections) => self.push(now, What::LeftOpen { connections }),
            Input::Flushed(_)
            | Input::Authenticated { .. }
            | Input::ClientExited { .. }
            | Input::ClientRestarted(_)
            | Input::Control(_)
            | Input::HookAnswered { .. }
            | Input::Upstream { .. }
            | Input::UpstreamWritten { .. }
            | Input::Tick => {}
        }
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn poll_timeout(&self) -> Option<Duration> {
        None
    }

    fn finished(&self) -> Option<&RunEnd> {
        self.end.as_ref()
    }

    fn records(&self) -> &[Record] {
        &self.records
    }

    fn into_records(self: Box<Self>) -> Vec<Record> {
        self.records
    }
}

fn scenario(mode: ClientMode, group: &str, plural: &str, kind: &str) -> SharedScenario {
    Arc::new(Scenario {
        id: "a/b".to_owned(),
        path: "a/b.yaml".into(),
        title: String::new(),
        why: String::new(),
        covers: Vec::new(),
        provoked_by: None,
        tags: Vec::new(),
        refs: Vec::new(),
        target: Target {
            group: group.to_owned(),
            version: "v1".to_owned(),
            plural: plural.to_owned(),
            kind: kind.to_owned(),
            namespace: Some("default".to_owned()),
        },
        server: Default::default(),
        client: ClientSettings {
            mode,
            object: Some("a".to_owned()),
            ..ClientSettings::default()
        },
        objects: Vec::new(),
        steps: Vec::new(),
        expect: Expect::default(),
    })
}

fn play(scenario: &SharedScenario, client: &dyn Client, seed: u64) -> Run {
    sim_against(OneRelist::default(), scenario, client, seed)
}

fn reported(run: &Run) -> Vec<String> {
    let reports = run.records.iter().filter_map(|record| match &record.what {
        What::Reported(report) => Some(report),
        _ => None,
    });
    reports
        .map(|report| match (report, report.object()) {
            (Report::Error { code, .. }, _) => format!("error {code:?}"),
            (_, Some(object)) => {
                let version = object.resource_version.as_deref().unwrap_or_default();
                let content = if object.content.is_some() { " whole" } else { "" };
                format!("{} {} {version}{content}", report.word(), object.key())
            }
            (_, None) => report.word().to_owned(),
        })
        .collect()
}

const WHOLE: &[&str] = &[
    "init",
    "init_apply default/a 10 whole",
    "init_done",
    "apply default/a 11 whole",
    "error Some(410)",
    "init",
    "init_apply default/a 10 whole",
    "init_done",
];

const META: &[&str] = &[
    "init",
    "init_apply default/a 10",
    "init_done",
    "apply default/a 11",
    "error Some(410)",
    "init",
    "init_apply default/a 10",
    "init_done",
];

#[rstest]
#[case::typed(ClientMode::Watcher, "", "configmaps", "ConfigMap", WHOLE)]
#[case::dynamic(ClientMode::Watcher, "", "secrets", "Secret", WHOLE)]
#[case::metadata(ClientMode::Metadata, "", "configmaps", "ConfigMap", META)]
#[case::dynamic_metadata(ClientMode::Metadata, "probe.example.com", "widgets", "Widget", META)]
fn what_the_library_does_is_reported_in_order(
    #[case] mode: ClientMode,
    #[case] group: &str,
    #[case] plural: &str,
    #[case] kind: &str,
    #[case] expected: &[&str],
) {
    assert_eq!(
        reported(&play(&scenario(mode, group, plural, kind), &KubeRuntime, 7)),
        expected
    );
}

#[test]
fn the_events_over_sockets_are_the_same() {
    let scenario = scenario(ClientMode::Watcher, "", "configmaps", "ConfigMap");
    let run = live_against(OneRelist::default(), &scenario, &KubeRuntime, 7).unwrap();
    assert_eq!(reported(&run), WHOLE);
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_seed_another_backoff() {
    let scenario = scenario(ClientMode::Watcher, "", "configmaps", "ConfigMap");
    let runs = [7, 7, 8].map(|seed| play(&scenario, &KubeRuntime, seed));
    assert_eq!(runs[0], runs[1]);
    let relisted_at = |run: &Run| {
        run.records
            .iter()
            .rfind(|record| matches!(record.what, What::Reported(_)))
            .map(|record| record.at)
    };
    assert_ne!(relisted_at(&runs[0]), relisted_at(&runs[2]));
    assert!(relisted_at(&runs[0]) >= Some(Duration::from_millis(800)));
}

#[test]
fn every_connection_is_seen_to_close() {
    let run = play(
        &scenario(ClientMode::Watcher, "", "configmaps", "ConfigMap"),
        &KubeRuntime,
        7,
    );
    let mut open = BTreeSet::<ConnId>::new();
    let mut stopped = false;
    for record in &run.records {
        match &record.what {
            What::Connected { conn, .. } => assert!(open.insert(*conn)),
            What::Disconnected { conn, .. } => assert!(open.remove(conn)),
            What::StopRequested => stopped = true,
            _ => {}
        }
    }
    assert!(stopped && open.is_empty(), "{:#?}", run.records);
}
