//! Limits on slow clients, on both protocols, in virtual time.

use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use bytes::Bytes;
use conformance::drive::pipe::Pipe;
use fake_apiserver::net::{ConnectionSettings, Edge, ListenerLimits, serve};
use http::Request;
use rstest::rstest;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::scripted::Out::{Data, End, Head};
use crate::scripted::Scripted;
use crate::{connect, runtime};

fn limits() -> ListenerLimits {
    ListenerLimits {
        head: Duration::from_secs(32),
        body: Duration::from_secs(60),
        idle: Duration::from_secs(90),
        ..ListenerLimits::default()
    }
}

fn connected() -> (Pipe, Edge) {
    let edge = Edge::new(Scripted {
        pieces: vec![
            Head(None),
            Data(b"one\n"),
            End(fake_apiserver::fault::Ending::Eof),
        ],
        ..Scripted::default()
    });
    let settings = ConnectionSettings {
        tls: None,
        limits: limits(),
        ..ConnectionSettings::default()
    };
    (connect(&edge, settings), edge)
}

/// Returns when the connection ended, in seconds, and the bytes received before.
async fn over(near: &mut Pipe, edge: &Edge) -> (u64, Vec<u8>) {
    let mut read = Vec::new();
    near.read_to_end(&mut read).await.unwrap();
    edge.deserted().await;
    (edge.elapsed().as_secs(), read)
}

#[rstest]
#[case::sends_nothing("", 90)]
#[case::stops_in_the_request_line("GET /x HT", 32)]
#[case::stops_in_the_headers("GET /x HTTP/1.1\r\nHost: x\r\nA: ", 32)]
#[case::stops_in_the_preface("PRI * HT", 90)]
// GOAWAY is sent, and one second later the connection is closed.
#[case::stops_after_the_preface("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 91)]
#[case::stops_in_the_body("POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nsome", 60)]
fn who_stops_half_way_is_cut(#[case] sent: &str, #[case] after: u64) {
    runtime(true).block_on(async {
        let (mut near, edge) = connected();
        near.write_all(sent.as_bytes()).await.unwrap();
        assert_eq!(over(&mut near, &edge).await.0, after);
    });
}

#[test]
fn a_byte_now_and_then_does_not_keep_a_head_alive() {
    runtime(true).block_on(async {
        let (mut near, edge) = connected();
        let mut ticks = tokio::time::interval(Duration::from_secs(5));
        near.write_all(b"GET /x HTTP/1.1\r\n").await.unwrap();
        loop {
            ticks.tick().await;
            if near.write_all(b"a").await.is_err() {
                break;
            }
        }
        edge.deserted().await;
        let after = edge.elapsed().as_secs();
        assert!((32..=35).contains(&after), "{after}");
    });
}

#[test]
fn a_connection_is_kept_between_requests_and_not_for_ever() {
    runtime(true).block_on(async {
        let (mut near, edge) = connected();
        let mut ticks = tokio::time::interval(Duration::from_secs(80));
        for _ in 0..3 {
            ticks.tick().await;
            near.write_all(b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n")
                .await
                .unwrap();
        }
        let (after, read) = over(&mut near, &edge).await;
        assert_eq!(after, 2 * 80 + 90);
        let answers = String::from_utf8(read)
            .unwrap()
            .matches("HTTP/1.1 200 OK")
            .count();
        assert_eq!(answers, 3);
    });
}

#[test]
fn an_http2_body_that_never_comes_resets_its_stream_alone() {
    runtime(true).block_on(async {
        let (near, edge) = connected();
        let (mut send, connection) = h2::client::handshake(near).await.unwrap();
        let connection = tokio::spawn(connection);
        let post = || Request::post("http://fake/x").body(()).unwrap();
        let (response, mut body) = send.send_request(post(), false).unwrap();
        body.send_data(Bytes::from_static(b"some"), false).unwrap();
        let error = response.await.unwrap_err();
        assert_eq!(
            (error.reason(), edge.elapsed().as_secs()),
            (Some(h2::Reason::CANCEL), 60)
        );
        let (response, _) = send.send_request(post(), true).unwrap();
        assert_eq!(response.await.unwrap().status(), 200);
        // An idle connection is closed although the client would keep it.
        connection.await.unwrap().unwrap();
        assert_eq!(edge.elapsed().as_secs(), 60 + 90);
        drop(send);
    });
}

#[rstest]
#[case::as_many_headers_as_may_be(1, 99, "HTTP/1.1 200 OK")]
#[case::too_many_headers(1, 100, "HTTP/1.1 431 ")]
#[case::too_many_bytes(2_000, 70, "HTTP/1.1 431 ")]
fn a_head_is_bounded(#[case] value: usize, #[case] count: usize, #[case] begins: &str) {
    runtime(true).block_on(async {
        let (mut near, edge) = connected();
        let header = format!("a: {}\r\n", "b".repeat(value));
        let head = format!("GET /x HTTP/1.1\r\nhost: x\r\n{}\r\n", header.repeat(count));
        near.write_all(head.as_bytes()).await.unwrap();
        let (_, read) = over(&mut near, &edge).await;
        let text = String::from_utf8_lossy(&read);
        assert!(text.starts_with(begins), "{text}");
    });
}

#[rstest]
#[case::an_idle_one_makes_room("", true)]
#[case::one_with_a_request_stays("GET /x HTTP/1.1\r\nHost: x\r\n\r\n", false)]
fn a_connection_above_the_limit_replaces_an_idle_one(#[case] asked: &str, #[case] makes_room: bool) {
    runtime(false).block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let edge = Edge::new(Scripted {
            pieces: vec![Head(None)],
            ..Scripted::default()
        });
        let limits = ListenerLimits {
            connections: 1,
            ..limits()
        };
        tokio::spawn(serve(listener, edge.clone(), limits, std::future::pending()));
        let mut first = TcpStream::connect(address).await.unwrap();
        if !asked.is_empty() {
            first.write_all(asked.as_bytes()).await.unwrap();
            first.read_u8().await.unwrap();
        }
        // A rejected connection may be reset before `connect` returns.
        let second = TcpStream::connect(address).await;
        let mut loser = match (makes_room, second) {
            (true, Ok(mut second)) => {
                second
                    .write_all(b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n")
                    .await
                    .unwrap();
                second.read_u8().await.unwrap();
                first
            }
            (false, Ok(second)) => second,
            (false, Err(_)) => return,
            (true, Err(error)) => panic!("not accepted: {error}"),
        };
        let error = loser.read_u8().await.unwrap_err();
        assert!(
            matches!(
                error.kind(),
                io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof
            ),
            "{error}"
        );
        // The socket closes before the task that served it ends.
        for _ in 0..1000 {
            if edge.connections() == 1 {
                return;
            }
            tokio::task::yield_now().await;
        }
        panic!("{} connections are counted", edge.connections());
    });
}

static LARGE: [u8; 8 * 1024 * 1024] = [b'x'; 8 * 1024 * 1024];

#[rstest]
#[case::streamed("GET /x HTTP/1.1\r\nHost: x\r\n\r\n", None)]
#[case::of_a_known_length("GET /x HTTP/1.1\r\nHost: x\r\n\r\n", Some(LARGE.len() as u64))]
#[case::of_http_1_0("GET /x HTTP/1.0\r\n\r\n", None)]
fn who_takes_nothing_is_cut_after_a_minute(#[case] sent: &str, #[case] length: Option<u64>) {
    let inputs = std::sync::Arc::<std::sync::Mutex<Vec<String>>>::default();
    let edge_inputs = inputs.clone();
    runtime(true).block_on(async move {
        let edge = Edge::new(Scripted {
            pieces: vec![Head(length), Data(&LARGE)],
            inputs: edge_inputs,
            ..Scripted::default()
        });
        let mut near = connect(&edge, ConnectionSettings::default());
        near.write_all(sent.as_bytes()).await.unwrap();
        tokio::select! {
            () = edge.deserted() => {}
            () = edge.keep_time() => {}
        }
        assert_eq!(edge.elapsed().as_secs(), 60);
        drop(near);
    });
    let inputs = inputs.lock().unwrap();
    assert_eq!(inputs[2..], ["cut off 1", "disconnected 1 by Server"]);
}

#[test]
fn a_watch_ends_with_its_connection_after_any_input() {
    runtime(true).block_on(async {
        let edge = Edge::new(Scripted {
            pieces: vec![Head(None), Data(b"one\n")],
            ..Scripted::default()
        });
        let mut near = connect(&edge, ConnectionSettings::default());
        near.write_all(b"GET /x HTTP/1.1\r\nHost: x\r\n\r\nand more")
            .await
            .unwrap();
        near.read_u8().await.unwrap();
        drop(near);
        edge.deserted().await;
        assert_eq!(edge.elapsed(), Duration::ZERO);
    });
}
