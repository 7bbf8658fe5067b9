//! Useless connections, and bytes that are not HTTP.

use std::net::SocketAddr;

use e2e::attacks::{Answered, abandoned_watches, exchange, fill, neighbour, oversized, request, watches};
use e2e::server::Server;
use rstest::rstest;

use crate::{MIB, holds, server};

/// Maximum number of polls of the server's state.
const LOOKS: usize = 200;

fn open_streams(server: &Server) -> String {
    let status = server.ctl(&["status"]);
    let words: Vec<&str> = status.split(", ").collect();
    let streams = words.iter().find(|word| word.ends_with("open streams"));
    (*streams.expect("`ctl status` prints open streams")).to_owned()
}

#[rstest]
#[case::keeps_alive("1.1", "keep-alive")]
#[case::closes("1.1", "close")]
#[case::of_http_1_0("1.0", "close")]
fn a_watch_ends_with_its_connection_after_any_input(#[case] version: &str, #[case] connection: &str) {
    let server = server();
    abandoned_watches(server.address(), 50, version, connection);
    let gone = (0..LOOKS).any(|_| open_streams(&server) == "0 open streams");
    assert!(gone, "{} are left", open_streams(&server));
}

#[test]
fn it_stops_at_once_with_many_watches_open() {
    let mut server = server();
    let open = watches(server.address(), 500);
    assert_eq!(server.stop(), Some(0));
    drop(open);
}

#[rstest]
#[case::no_host("GET /version HTTP/1.1\r\nConnection: close\r\n\r\n", 400)]
#[case::two_hosts(
    "GET /version HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    400
)]
// As Go's server handles it.
#[case::bare_line_feeds("GET /version HTTP/1.1\nHost: localhost\nConnection: close\n\n", 200)]
#[case::http_1_0("GET /version HTTP/1.0\r\n\r\n", 200)]
#[case::a_tunnel(
    "CONNECT localhost:443 HTTP/1.1\r\nHost: localhost:443\r\nConnection: close\r\n\r\n",
    405
)]
#[case::bad_chunks(
    "POST /api/v1/namespaces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n",
    400
)]
fn what_is_no_request_is_refused_in_words(#[case] sent: &str, #[case] status: u16) {
    let server = server();
    let answered = exchange(server.address(), sent.as_bytes());
    assert_eq!(answered.status, status, "{}", answered.text);
    holds(&server, 512 * MIB);
}

#[test]
fn oversized_bodies_are_rejected() {
    let server = server();
    for _ in 0..5 {
        let answered = oversized(server.address(), 8 * MIB);
        assert_eq!(answered.status, 413, "{}", answered.text);
    }
}

#[test]
fn a_deep_object_in_an_edited_table_is_answered() {
    let server = server();
    create_deep(server.address());
    server.ctl(&["apply", "when: {list: next}, do: {edit_page: {rv: \"120\"}}"]);
    let line = "GET /apis/deep.test/v1/widgets?includeObject=Object HTTP/1.1";
    let accept = "Accept: application/json;as=Table;g=meta.k8s.io;v=v1";
    let Answered { status, text } =
        exchange(server.address(), &request(&[line, "Host: localhost", accept], ""));
    assert_eq!(status, 200, "{text}");
    assert!(text.contains("\"deep\""), "the object is there");
    holds(&server, 512 * MIB);
    assert_eq!(neighbour(server.address(), "/version").status, 200);
    fill(server.address(), 1, 10);
}

/// Creates a custom resource, and an object of it close to the maximum depth.
fn create_deep(address: SocketAddr) {
    let definition = r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.deep.test"},"spec":{"group":"deep.test","scope":"Namespaced","names":{"plural":"widgets","singular":"widget","kind":"Widget","listKind":"WidgetList"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}"#;
    let target = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let made = e2e::attacks::write(address, "POST", target, "application/json", definition);
    assert_eq!(made.status, 201, "{}", made.text);
    let deep = format!("{}1{}", "{\"a\":".repeat(95), "}".repeat(95));
    let object = format!(
        r#"{{"apiVersion":"deep.test/v1","kind":"Widget","metadata":{{"name":"deep"}},"spec":{deep}}}"#
    );
    let target = "/apis/deep.test/v1/namespaces/default/widgets";
    let made = e2e::attacks::write(address, "POST", target, "application/json", &object);
    assert_eq!(made.status, 201, "{}", made.text);
}
