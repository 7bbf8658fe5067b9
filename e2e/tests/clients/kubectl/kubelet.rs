//! Commands that need a kubelet: without one the server returns an error with the reason.

use e2e::kubectl::Kubectl;
use e2e::server::{Server, Transport};
use e2e::toolchain::or_skip;
use rstest::rstest;

const PODS: &str = "
apiVersion: v1
kind: Node
metadata: {name: bare}
---
apiVersion: v1
kind: Pod
metadata: {name: waiting}
spec: {containers: [{name: c, image: nginx}]}
---
apiVersion: v1
kind: Pod
metadata: {name: placed}
spec: {nodeName: bare, containers: [{name: c, image: nginx}, {name: d, image: nginx}]}
";

#[rstest]
#[case::not_placed(&["logs", "waiting"], true, "")]
#[case::not_there(&["logs", "none"], false, "error: error from server (NotFound): pods \"none\" not found in namespace \"default\"")]
#[case::no_address(&["logs", "placed", "-c", "c"], false, "Error from server: no preferred addresses found; known addresses: []")]
#[case::nowhere_to_run(&["exec", "waiting", "--", "date"], false, "error: unable to upgrade connection: pod waiting does not have a host assigned")]
#[case::no_address_to_run_at(&["exec", "placed", "-c", "c", "--", "date"], false, "error: unable to upgrade connection: no preferred addresses found; known addresses: []")]
fn it_is_not_there(#[case] arguments: &[&str], #[case] success: bool, #[case] message: &str) {
    kubectl_at!(Transport::Http, _server, kubectl);
    kubectl.ok_with(&["apply", "-f", "-"], PODS);
    let outcome = kubectl.run(arguments);
    assert_eq!((outcome.success, outcome.err.trim()), (success, message));
    assert_eq!(outcome.out, "");
}
