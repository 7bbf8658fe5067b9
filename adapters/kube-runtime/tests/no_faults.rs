//! The library without faults: it converges in `sim` and over sockets, and `sim` repeats itself byte for byte.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a test looks at the few records it is about"
)]

use std::sync::Arc;

use adapter_kube_runtime::KubeRuntime;
use conformance::drive::{Run, live, sim};
use fake_apiserver::fault::Ending;
use fake_apiserver::record::{RunEnd, What};
use fake_apiserver::scenario::{
    Action, ClientMode, ClientSettings, Expect, InitialList, Manifest, Place, Scenario, SharedScenario, Step,
    StoreAction, StreamAction, Target, Times, Trigger,
};
use rstest::rstest;

fn config_map(name: &str, value: u32) -> Manifest {
    Manifest {
        group: String::new(),
        plural: "configmaps".to_owned(),
        namespace: Some("default".to_owned()),
        name: name.to_owned(),
        json: serde_json::json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "default"},
            "data": {"value": value.to_string()},
        }),
        binds: None,
        at: Place::default(),
    }
}

fn step(when: Trigger, actions: Vec<Action>) -> Step {
    Step {
        at: Place::default(),
        name: None,
        when,
        optional: false,
        times: Times::Count(1),
        actions,
        within_ms: None,
        requirements: Vec::new(),
    }
}

fn scenario(client: ClientSettings, steps: Vec<Step>) -> SharedScenario {
    Arc::new(Scenario {
        id: "no-faults/converges".to_owned(),
        path: "no-faults/converges.yaml".into(),
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
            namespace: Some("default".to_owned()),
        },
        server: Default::default(),
        client,
        objects: vec![config_map("a", 1), config_map("b", 1), config_map("c", 1)],
        steps,
        expect: Expect::default(),
    })
}

fn end(run: &Run) -> Option<&RunEnd> {
    run.records.iter().find_map(|record| match &record.what {
        What::RunEnded(end) => Some(end),
        _ => None,
    })
}

fn cut_in_mid_stream(how: Ending) -> Vec<Step> {
    vec![
        step(
            Trigger::Quiet(50),
            vec![Action::Store(StoreAction::Apply(vec![config_map("a", 2)]))],
        ),
        step(Trigger::Now, vec![Action::Stream(StreamAction::End(how))]),
        step(
            Trigger::Now,
            vec![Action::Store(StoreAction::Apply(vec![
                config_map("b", 2),
                config_map("d", 1),
            ]))],
        ),
    ]
}

#[rstest]
#[case::listed(ClientSettings::default(), Vec::new())]
#[case::paged(ClientSettings { page_size: Some(2), ..ClientSettings::default() }, Vec::new())]
#[case::streamed(ClientSettings { initial_list: InitialList::StreamingList, ..ClientSettings::default() }, Vec::new())]
#[case::metadata(ClientSettings { mode: ClientMode::Metadata, ..ClientSettings::default() }, Vec::new())]
#[case::eof(ClientSettings::default(), cut_in_mid_stream(Ending::Eof))]
#[case::fin(ClientSettings::default(), cut_in_mid_stream(Ending::Fin))]
#[case::rst(ClientSettings::default(), cut_in_mid_stream(Ending::Rst))]
fn it_converges(#[case] client: ClientSettings, #[case] steps: Vec<Step>) {
    let scenario = scenario(client, steps);
    let first = sim(&scenario, &KubeRuntime, 3);
    assert_eq!(end(&first), Some(&RunEnd::Complete), "{:#?}", first.records);
    assert_eq!(first, sim(&scenario, &KubeRuntime, 3), "not the same twice");
    let over_sockets = live(&scenario, &KubeRuntime, 3).unwrap();
    assert_eq!(
        end(&over_sockets),
        Some(&RunEnd::Complete),
        "{:#?}",
        over_sockets.records
    );
}

#[test]
fn neither_the_thread_nor_what_ran_before_can_be_seen() {
    let cut = scenario(ClientSettings::default(), cut_in_mid_stream(Ending::Rst));
    let other = scenario(ClientSettings::default(), cut_in_mid_stream(Ending::Eof));
    let first = sim(&cut, &KubeRuntime, 3);
    std::thread::scope(|threads| {
        for before in 0..4 {
            let (cut, other, first) = (&cut, &other, &first);
            threads.spawn(move || {
                for seed in 0..before {
                    sim(other, &KubeRuntime, seed);
                }
                assert_eq!(*first, sim(cut, &KubeRuntime, 3));
            });
        }
    });
}
