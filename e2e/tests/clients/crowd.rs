//! Crowds: many list/watch loops in several processes, with cut connections, 410s, refused connections and rebuilt caches.
//! The judge of the server reports no violations of correct clients.
//!
//! Informers of one program share its connections, replicas of it its User-Agent. A round begins when all loops have received
//! the writes of the previous one. `CROWD_ROUNDS=200 cargo test -p e2e --test clients crowd` plays more rounds; `CROWD_LOOPS`
//! is the number of loops of the largest program of client-go and of our watcher.

use std::process::Command;

use e2e::client::{Client, ClientEvent};
use e2e::server::{Server, Transport};
use e2e::toolchain::{self, or_skip};
use rstest::rstest;
use serde_json::{Value, json};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Rounds in CI: one of each kind.
const ROUNDS: usize = 7;
/// Loops of the largest programs in CI.
const LOOPS: usize = 4;

/// Violations of kube-runtime (docs/kube-runtime-defects.md); it sends no User-Agent.
const KNOWN: [(&str, &str); 2] = [
    ("(no User-Agent)", "INV-04"), // it watches from the same version again after HTTP 410
    ("(no User-Agent)", "INV-16"), // it does not read Retry-After
];

/// A program and its number of loops.
struct Member {
    client: Client,
    loops: usize,
}

#[rstest]
fn nobody_in_a_crowd_is_accused(#[values(Transport::Http, Transport::Tls)] transport: Transport) {
    let Some(informer) = or_skip(toolchain::go("informer")) else {
        return;
    };
    let informers = |loops: usize| {
        let mut command = Command::new(informer.get_program());
        command.args(["typed", &loops.to_string()]);
        (command, loops)
    };
    let watchers = |loops: usize| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_watcher"));
        command.arg(loops.to_string());
        (command, loops)
    };
    let reflector = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kube-runtime"));
        command.arg("reflector");
        (command, 1)
    };
    let server = Server::serve(transport);
    let most = number("CROWD_LOOPS").unwrap_or(LOOPS);
    let programs = [
        informers(most),
        informers(2),
        informers(2),
        watchers(most),
        watchers(2),
        watchers(2),
        reflector(),
        reflector(),
    ];
    let mut crowd: Vec<Member> = programs
        .into_iter()
        .map(|(command, loops)| Member {
            client: Client::start(command, &server),
            loops,
        })
        .collect();
    expect(&mut crowd, ClientEvent::Synced);
    for round in 0..number("CROWD_ROUNDS").unwrap_or(ROUNDS) {
        let (first, second) = (format!("first-{round}"), format!("second-{round}"));
        server.create(CONFIG_MAPS, &config_map(&first));
        expect(&mut crowd, ClientEvent::Added(&first, "1"));
        disturb(&server, round);
        server.create(CONFIG_MAPS, &config_map(&second));
        expect(&mut crowd, ClientEvent::Added(&second, "1"));
        server.delete(&format!("{CONFIG_MAPS}/{first}"));
        expect(&mut crowd, ClientEvent::Deleted(&first));
        if round > 1 {
            server.delete(&format!("{CONFIG_MAPS}/second-{}", round - 2));
            expect(&mut crowd, ClientEvent::Deleted(&format!("second-{}", round - 2)));
        }
    }
    let verdict: Value = serde_json::from_str(&server.ctl(&["verdict"])).expect("a verdict is JSON");
    let clients = verdict["clients"].as_array().expect("clients came");
    let accused: Vec<&Value> = clients
        .iter()
        .flat_map(|client| client["contradictions"].as_array().into_iter().flatten())
        .filter(|violation| {
            !KNOWN
                .iter()
                .any(|known| *known == (text(violation, "client"), text(violation, "check")))
        })
        .collect();
    assert!(accused.is_empty(), "{accused:#?}");
    let reads: u64 = clients.iter().filter_map(|client| client["reads"].as_u64()).sum();
    assert!(reads > 0, "it heard them");
}

fn expect(crowd: &mut [Member], violation: ClientEvent<'_>) {
    for member in crowd {
        member.client.expect_times(member.loops, violation);
    }
}

/// Disturbs all of them at once.
fn disturb(server: &Server, round: usize) {
    let whose = ["--resource", "configmaps"];
    let ctl = |arguments: &[&str]| {
        server.ctl(&[arguments, &whose].concat());
    };
    match round % ROUNDS {
        0 => ctl(&["cut", "--how", "rst"]),
        1 => ctl(&["expire"]),
        2 => {
            ctl(&["expire", "--status", "--times", "3"]);
            ctl(&["cut", "--how", "fin"]);
        }
        3 => {
            server.ctl(&["apply", "do: [compact, clear_watch_cache]"]);
        }
        4 => {
            ctl(&["fail", "503", "--times", "3"]);
            ctl(&["cut", "--how", "rst"]);
        }
        5 => {
            server.ctl(&["refuse", "300ms"]);
            ctl(&["cut", "--how", "rst"]);
        }
        _ => ctl(&["cut", "--how", "eof"]),
    }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"v": "1"}}})
}

fn number(name: &str) -> Option<usize> {
    std::env::var(name).ok()?.parse().ok()
}
