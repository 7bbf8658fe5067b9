//! Web pages that send requests to a server on the user's machine.

use e2e::attacks::{exchange, request};
use rstest::rstest;

use crate::server;

const READ: &str = "GET /api/v1/secrets HTTP/1.1";
const CREATE: &str = "POST /api/v1/namespaces HTTP/1.1";
const WATCH: &str = "GET /api/v1/secrets?watch=1 HTTP/1.1";
const LOCAL: &str = "Host: 127.0.0.1:1";
const EVIL: &str = "Origin: https://evil.example";
const DEV: &str = "Origin: http://localhost:3000";
const BODY: &str = r#"{"metadata":{"name":"n"}}"#;

#[rstest]
#[case::rebound(&[READ, "Host: evil.example"], "", 421)]
#[case::local(&[READ, LOCAL], "", 200)]
#[case::creates(&[CREATE, LOCAL, EVIL], BODY, 403)]
#[case::creates_as_text(&[CREATE, LOCAL, EVIL, "Content-Type: text/plain"], BODY, 403)]
#[case::creates_from_a_local_page(&[CREATE, LOCAL, DEV], BODY, 415)]
#[case::creates_from_a_local_page_as_json(&[CREATE, LOCAL, DEV, "Content-Type: application/json"], BODY, 201)]
// Programs send no `Origin`, and some no `Content-Type`: kube-apiserver then assumes JSON.
#[case::a_program_creates(&[CREATE, LOCAL], BODY, 201)]
fn a_page_of_another_site_gets_nothing(#[case] head: &[&str], #[case] body: &str, #[case] status: u16) {
    let server = server();
    let answered = exchange(server.address(), &request(head, body));
    assert_eq!(answered.status, status, "{}", answered.text);
}

#[rstest]
#[case::foreign(EVIL, "403")]
#[case::from_a_file("Origin: null", "403")]
#[case::local("Origin: http://127.0.0.1:1", "101")]
fn a_web_socket_is_for_pages_of_this_machine(#[case] origin: &str, #[case] status: &str) {
    let server = server();
    let head = [
        WATCH,
        LOCAL,
        origin,
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    ];
    let asked = format!("{}\r\n\r\n", head.join("\r\n"));
    let mut socket = e2e::attacks::sent(server.address(), asked.as_bytes()).unwrap();
    let mut first = [0; 12];
    std::io::Read::read_exact(&mut socket, &mut first).unwrap();
    assert_eq!(String::from_utf8_lossy(&first), format!("HTTP/1.1 {status}"));
}
