//! Life of an informer: it starts, synchronises, receives an addition, an update and a deletion, and loses none of these over
//! a disconnect and a 410.

use std::process::Command;

use e2e::client::{Client, ClientEvent};
use e2e::server::{Server, Transport};
use e2e::toolchain::{self, Missing};
use rstest::rstest;
use serde_json::{Value, json};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn kube_runtime(mode: &str) -> Result<Command, Missing> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kube-runtime"));
    command.arg(mode);
    Ok(command)
}

fn informer(arguments: &[&str]) -> Result<Command, Missing> {
    let mut command = toolchain::go("informer")?;
    command.args(arguments);
    Ok(command)
}

#[rstest]
#[case::client_go_typed_informer(informer(&["typed"]))]
#[case::client_go_dynamic_informer(informer(&["dynamic", "v1/configmaps"]))]
#[case::python_shared_informer(toolchain::python("shared_informer.py"))]
#[case::python_watch_loop(toolchain::python("watch_loop.py"))]
#[case::python_asyncio_watch_loop(toolchain::python("watch_loop_asyncio.py"))]
#[case::javascript_informer(toolchain::javascript_informer())]
#[case::java_fabric8_informer(toolchain::java_informer())]
#[case::kube_runtime_reflector(kube_runtime("reflector"))]
#[case::kube_runtime_controller(kube_runtime("controller"))]
fn a_client_lives(
    #[case] program: Result<Command, Missing>,
    #[values(Transport::Http, Transport::Tls)] transport: Transport,
) {
    let Some(program) = toolchain::or_skip(program) else {
        return;
    };
    let server = Server::serve(transport);
    server.create(CONFIG_MAPS, &config_map("a", "1"));

    let mut client = Client::start(program, &server);
    client.expect(ClientEvent::Added("a", "1"));

    server.create(CONFIG_MAPS, &config_map("b", "1"));
    client.expect(ClientEvent::Added("b", "1"));
    server.merge(&format!("{CONFIG_MAPS}/b"), &labelled("2"));
    client.expect(ClientEvent::Updated("b", "2"));
    server.delete(&format!("{CONFIG_MAPS}/b"));
    client.expect(ClientEvent::Deleted("b"));

    // The connection is reset, and later changes are not lost.
    server.ctl(&["cut", "--how", "rst", "--resource", "configmaps"]);
    server.expect("the reset", |line| line.ends_with(" rst"));
    server.create(CONFIG_MAPS, &config_map("c", "1"));
    client.expect(ClientEvent::Added("c", "1"));
    server.expect("a new watch", is_watch);

    // The version expires: as an event in the middle of a watch …
    server.ctl(&["expire", "--resource", "configmaps"]);
    server.expect("the 410", |line| line.contains("ERROR 410"));
    server.delete(&format!("{CONFIG_MAPS}/c"));
    client.expect(ClientEvent::Deleted("c"));
    server.expect("a new watch", is_watch);

    // … and as the status of a new watch.
    server.ctl(&["expire", "--status", "--resource", "configmaps"]);
    server.ctl(&["cut", "--how", "fin", "--resource", "configmaps"]);
    server.expect("the 410", |line| line.contains(" 410"));
    server.merge(&format!("{CONFIG_MAPS}/a"), &labelled("2"));
    client.expect(ClientEvent::Updated("a", "2"));
}

fn is_watch(line: &str) -> bool {
    line.contains(" WATCH") && line.contains(" /api/v1/configmaps?")
}

fn config_map(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"v": value}}})
}

fn labelled(value: &str) -> Value {
    json!({"metadata": {"labels": {"v": value}}})
}
