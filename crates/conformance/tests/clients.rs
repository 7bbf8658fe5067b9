//! Clients that panic, spin, end or report nothing: each run ends, and its trace has the reason.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a test looks at the few records it is about"
)]

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use conformance::client::{Client, Start};
use conformance::drive::Run;
use conformance::drive::sim::sim_against;
use fake_apiserver::net::Core;
use fake_apiserver::record::{Record, RunEnd, What};
use fake_apiserver::report::{Report, ReportedObject};
use fake_apiserver::scenario::{ClientSettings, Expect, Scenario, SharedScenario, Target};
use fake_apiserver::server::{Input, Output};
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use rstest::rstest;

/// Records reports; finished when the client ends or after enough reports.
#[derive(Default)]
struct Listener {
    records: Vec<Record>,
    end: Option<RunEnd>,
}

impl Core for Listener {
    fn accepts(&mut self, _: Duration) -> bool {
        true
    }

    fn handle(&mut self, at: Duration, input: Input) {
        let what = match input {
            Input::Report(report) => {
                if matches!(report, Report::Ended | Report::Crashed { .. }) || self.records.len() >= 9 {
                    self.end = Some(RunEnd::ClientGone);
                }
                What::Reported(report)
            }
            Input::StopRequested => What::StopRequested,
            Input::LeftOpen(connections) => What::LeftOpen { connections },
            _ => return,
        };
        self.records.push(Record {
            seq: self.records.len() as u64,
            at,
            what,
        });
    }

    fn poll_output(&mut self) -> Option<Output> {
        None
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

/// How a client misbehaves.
#[derive(Debug, Clone, Copy)]
enum Habit {
    Ends,
    PanicsAtStart,
    PanicsLater,
    Spins,
    Chatters,
    Silent,
}

impl Client for Habit {
    fn name(&self) -> &'static str {
        "habit"
    }

    fn version(&self) -> &'static str {
        "1"
    }

    fn start(&self, _: kube_client::Client, _: Start) -> BoxStream<'static, Report> {
        match self {
            Self::Ends => stream::iter([Report::Init]).boxed(),
            Self::PanicsAtStart => panic!("at the start"),
            Self::PanicsLater => stream::iter([Report::Init])
                .chain(stream::poll_fn(|_| panic!("on the {}", "way")))
                .boxed(),
            Self::Spins => stream::poll_fn(|cx| {
                cx.waker().wake_by_ref();
                Poll::Pending
            })
            .boxed(),
            Self::Chatters => stream::repeat_with(|| Report::Apply(object())).boxed(),
            Self::Silent => stream::pending().boxed(),
        }
    }
}

fn object() -> ReportedObject {
    ReportedObject {
        namespace: None,
        name: "a".to_owned(),
        uid: None,
        resource_version: None,
        content: None,
    }
}

fn scenario(consumer_delay_ms: u64) -> SharedScenario {
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
            group: String::new(),
            version: "v1".to_owned(),
            plural: "configmaps".to_owned(),
            kind: "ConfigMap".to_owned(),
            namespace: None,
        },
        server: Default::default(),
        client: ClientSettings {
            consumer_delay_ms,
            ..ClientSettings::default()
        },
        objects: Vec::new(),
        steps: Vec::new(),
        expect: Expect::default(),
    })
}

fn reported(run: &Run) -> Vec<String> {
    run.records
        .iter()
        .map(|record| match &record.what {
            What::Reported(Report::Crashed { message }) => format!("crashed: {message}"),
            What::Reported(report) => report.word().to_owned(),
            What::StopRequested => "stop".to_owned(),
            What::LeftOpen { .. } => "left open".to_owned(),
            What::RunEnded(RunEnd::Harness { message }) => format!("harness: {message}"),
            other => panic!("unexpected: {other:?}"),
        })
        .collect()
}

#[rstest]
#[case(Habit::Ends, &["init", "ended", "stop"])]
#[case(Habit::PanicsAtStart, &["crashed: at the start", "stop"])]
#[case(Habit::PanicsLater, &["init", "crashed: on the way", "stop"])]
#[case(Habit::Spins, &["crashed: spins: polled 300000 times while no time passed", "stop"])]
#[case(Habit::Silent, &["harness: the run took more than 604800 s"])]
fn a_run_always_ends(#[case] habit: Habit, #[case] expected: &[&str]) {
    assert_eq!(
        reported(&sim_against(Listener::default(), &scenario(0), &habit, 1)),
        expected
    );
}

#[test]
fn a_client_that_never_pauses_is_stopped_when_the_server_has_enough() {
    let run = sim_against(Listener::default(), &scenario(0), &Habit::Chatters, 1);
    assert_eq!(reported(&run), [&["apply"; 10][..], &["stop"]].concat());
}

#[test]
fn a_slow_consumer_takes_its_time_over_every_object() {
    let run = sim_against(Listener::default(), &scenario(250), &Habit::Chatters, 1);
    let at: Vec<u128> = run.records.iter().map(|record| record.at.as_millis()).collect();
    assert_eq!(at[..4], [0, 250, 500, 750]);
}
