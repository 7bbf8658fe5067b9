//! What an HTTP client receives for each ending and each write: over a pipe under virtual time, over a socket, and in process.

#![expect(clippy::unwrap_used, reason = "the helpers of a test may fail it")]

mod delivery;
mod http2;
mod in_process;
mod limits;
mod scripted;
mod websocket;

use std::error::Error as _;
use std::io;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use conformance::drive::pipe::{Pipe, pipe};
use conformance::drive::sim::Dialer;
use fake_apiserver::fault::Ending;
use fake_apiserver::net::{ConnectionSettings, Edge, ListenerLimits, Protocol, serve, serve_connection};
use fake_apiserver::record::{Record, RunEnd, What};
use http::{Request, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::connect::{Connect, HttpConnector};
use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::TokioExecutor;
use rstest::rstest;
use tokio::net::TcpListener;

use crate::in_process::in_process;
use crate::scripted::{Out, Scripted};

/// Returns the client's end of a connection served over a pipe.
fn connect(edge: &Edge, settings: ConnectionSettings) -> Pipe {
    let (near, far) = pipe();
    let conn = edge.accept().unwrap();
    tokio::spawn(serve_connection(
        edge.clone(),
        conn,
        far,
        settings,
        std::future::pending(),
    ));
    near
}

/// A client that sends GET requests.
trait Http {
    /// Returns the response, or what a client receives instead of its head.
    async fn get(&self, uri: &str) -> Result<http::Response<Seen>, &'static str>;
}

/// A body whose error describes what a client receives.
type Seen = BoxBody<Bytes, &'static str>;

impl<C: Connect + Clone + Send + Sync + 'static> Http for Client<C, Full<Bytes>> {
    async fn get(&self, uri: &str) -> Result<http::Response<Seen>, &'static str> {
        let response = Client::get(self, uri.parse().unwrap()).await;
        let response = response.map_err(|error| no_answer(&error))?;
        Ok(response.map(|body| body.map_err(|error| broken(&error)).boxed()))
    }
}

/// Returns what a client receives of a response: its body, frame by frame, and how it ended.
async fn look(http: &impl Http, uri: &str, patience: Duration) -> (Vec<String>, &'static str) {
    let mut seen = Vec::new();
    let ended = tokio::time::timeout(patience, async {
        let mut response = match http.get(uri).await {
            Ok(response) => response,
            Err(instead) => return instead,
        };
        assert!(response.headers().contains_key("date"));
        assert_eq!(response.headers()["x-probe"], "1");
        while let Some(frame) = response.body_mut().frame().await {
            match frame {
                Ok(frame) => seen.push(frame.data_ref().unwrap().escape_ascii().to_string()),
                Err(broken) => return broken,
            }
        }
        "eof"
    })
    .await
    .unwrap_or("silence");
    (seen, ended)
}

fn broken(error: &hyper::Error) -> &'static str {
    let kind = error
        .source()
        .and_then(|source| source.downcast_ref::<io::Error>())
        .map(io::Error::kind);
    match kind {
        Some(io::ErrorKind::ConnectionReset) => "reset",
        Some(io::ErrorKind::UnexpectedEof) => "incomplete",
        _ if error.is_incomplete_message() => "incomplete",
        _ => panic!("unexpected: {error:?}"),
    }
}

fn no_answer(error: &Error) -> &'static str {
    let mut source = error.source();
    while let Some(error) = source {
        match error.downcast_ref::<io::Error>().map(io::Error::kind) {
            Some(io::ErrorKind::ConnectionRefused) => return "refused",
            Some(io::ErrorKind::ConnectionReset) => return "reset before the head",
            _ => {}
        }
        if error
            .downcast_ref::<hyper::Error>()
            .is_some_and(hyper::Error::is_incomplete_message)
        {
            return "closed before the head";
        }
        source = error.source();
    }
    panic!("unexpected: {error:?}");
}

fn over_pipe(core: Scripted) -> Client<Dialer, Full<Bytes>> {
    Client::builder(TokioExecutor::new()).build(Dialer::new(Edge::new(core)))
}

async fn over_socket(core: Scripted) -> (Client<HttpConnector, Full<Bytes>>, String) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(serve(
        listener,
        Edge::new(core),
        ListenerLimits::default(),
        std::future::pending(),
    ));
    (
        Client::builder(TokioExecutor::new()).build_http(),
        format!("http://{address}"),
    )
}

fn runtime(paused: bool) -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(paused)
        .build()
        .unwrap()
}

const WHOLE: Ending = Ending::Eof;
use Out::{Close, Data, End, Head};

#[rstest]
#[case::eof(&[Head(None), Data(b"one\n"), Data(b"two\n"), End(WHOLE)], &[r"one\n", r"two\n"], "eof")]
#[case::eof_of_a_known_length(&[Head(Some(4)), Data(b"one\n"), End(WHOLE)], &[r"one\n"], "eof")]
#[case::fin(&[Head(None), Data(b"one\n"), Data(b"tw"), End(Ending::Fin)], &[r"one\n", "tw"], "incomplete")]
#[case::fin_short_of_the_length(&[Head(Some(9)), Data(b"one"), End(Ending::Fin)], &["one"], "incomplete")]
#[case::fin_after_the_head(&[Head(None), End(Ending::Fin)], &[], "incomplete")]
#[case::fin_before_the_head(&[End(Ending::Fin)], &[], "closed before the head")]
#[case::rst(&[Head(None), Data(b"one\n"), Data(b"tw"), End(Ending::Rst)], &[r"one\n", "tw"], "reset")]
#[case::rst_before_the_head(&[End(Ending::Rst)], &[], "reset before the head")]
#[case::stall(&[Head(None), Data(b"one\n"), End(Ending::Stall)], &[r"one\n"], "silence")]
#[case::stall_before_the_head(&[End(Ending::Stall)], &[], "silence")]
#[case::eof_and_close(&[Head(None), Data(b"one\n"), Data(b"two\n"), End(WHOLE), Close], &[r"one\n", r"two\n"], "eof")]
#[case::eof_of_a_known_length_and_close(&[Head(Some(4)), Data(b"one\n"), End(WHOLE), Close], &[r"one\n"], "eof")]
#[case::fin_and_close(&[Head(None), Data(b"one\n"), Data(b"tw"), End(Ending::Fin), Close], &[r"one\n", "tw"], "incomplete")]
#[case::stall_and_close(&[Head(None), Data(b"one\n"), End(Ending::Stall), Close], &[r"one\n"], "incomplete")]
#[case::stall_short_of_the_length_and_close(&[Head(Some(9)), Data(b"one"), End(Ending::Stall), Close], &["one"], "incomplete")]
#[case::stall_before_the_head_and_close(&[End(Ending::Stall), Close], &[], "closed before the head")]
fn every_ending_looks_alike_over_pipe_and_socket_and_in_process(
    #[case] pieces: &[Out],
    #[case] body: &[&str],
    #[case] ended: &str,
) {
    let expected = (
        body.iter().map(|part| (*part).to_owned()).collect::<Vec<_>>(),
        ended,
    );
    let core = || Scripted {
        pieces: pieces.to_vec(),
        ..Scripted::default()
    };
    let piped = runtime(true)
        .block_on(async { look(&over_pipe(core()), "http://fake/x", Duration::from_secs(3600)).await });
    assert_eq!(piped, expected, "over a pipe");
    let in_process = runtime(true).block_on(async {
        look(
            &in_process(Protocol::Http1, core()),
            "/x",
            Duration::from_secs(3600),
        )
        .await
    });
    assert_eq!(in_process, expected, "in process");
    let socketed = runtime(false).block_on(async {
        let (http, base) = over_socket(core()).await;
        look(&http, &format!("{base}/x"), Duration::from_millis(300)).await
    });
    assert_eq!(socketed, expected, "over a socket");
}

#[rstest]
#[case::chunked(None)]
#[case::of_a_known_length(Some(5))]
fn every_piece_is_a_separate_write(#[case] length: Option<u64>) {
    // The second piece begins inside a character, so a client must not decode piece by piece.
    let pieces = vec![Head(length), Data(b"sn\xc3"), Data(b"\xb6w"), End(WHOLE)];
    let core = Scripted {
        pieces,
        ..Scripted::default()
    };
    let (seen, _) = runtime(true)
        .block_on(async { look(&over_pipe(core), "http://fake/x", Duration::from_secs(1)).await });
    assert_eq!(seen, [r"sn\xc3", r"\xb6w"]);
}

#[test]
fn a_refused_connection_looks_like_a_server_that_is_down() {
    let core = || Scripted {
        refuses: true,
        ..Scripted::default()
    };
    let (_, ended) = runtime(true)
        .block_on(async { look(&over_pipe(core()), "http://fake/x", Duration::from_secs(1)).await });
    assert_eq!(ended, "refused");
    let ended = runtime(false).block_on(async {
        let (http, base) = over_socket(core()).await;
        look(&http, &format!("{base}/x"), Duration::from_secs(5)).await.1
    });
    // A listening socket cannot refuse a connection.
    assert_eq!(ended, "reset before the head");
}

#[test]
fn nobody_listens_while_connections_are_refused_and_then_someone_does() {
    runtime(false).block_on(async {
        let core = Scripted {
            pieces: vec![Head(None), End(WHOLE)],
            refused_until: Duration::from_millis(300),
            ..Scripted::default()
        };
        let (http, base) = over_socket(core).await;
        let mut seen = std::collections::BTreeSet::new();
        while !seen.contains("eof") {
            seen.insert(look(&http, &format!("{base}/x"), Duration::from_secs(5)).await.1);
        }
        // A connection accepted before the listener closed is reset.
        seen.remove("reset before the head");
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), ["eof", "refused"]);
    });
}

#[rstest]
#[case::watch(&[Head(None), Data(b"one\n")], true)]
#[case::stalled_watch(&[Head(None), Data(b"one\n"), End(Ending::Stall)], true)]
#[case::whole_answer(&[Head(None), Data(b"one\n"), End(WHOLE)], false)]
fn an_abandoned_response_is_reported_before_its_connection(#[case] pieces: &[Out], #[case] abandoned: bool) {
    let inputs = Arc::<Mutex<Vec<String>>>::default();
    let core = Scripted {
        pieces: pieces.to_vec(),
        inputs: inputs.clone(),
        ..Scripted::default()
    };
    runtime(true).block_on(async {
        let edge = Edge::new(core);
        let http: Client<_, Full<Bytes>> =
            Client::builder(TokioExecutor::new()).build(Dialer::new(edge.clone()));
        let response = http.get("http://fake/x?a=b%20c".parse().unwrap()).await.unwrap();
        assert_eq!(edge.connections(), 1);
        drop((response, http));
        edge.deserted().await;
    });
    let mut expected = vec!["connected 1", "request 1 on 1: /x?a=b%20c"];
    expected.extend(abandoned.then_some("abandoned 1"));
    expected.push("disconnected 1 by Client");
    assert_eq!(*inputs.lock().unwrap(), expected);
}

#[rstest]
#[case::fin(Some(Ending::Fin))]
#[case::rst(Some(Ending::Rst))]
#[case::idle(None)]
fn a_connection_closed_by_the_server_is_reported(#[case] ending: Option<Ending>) {
    let inputs = Arc::<Mutex<Vec<String>>>::default();
    let pieces = vec![Head(None), End(ending.unwrap_or(WHOLE))];
    let core = Scripted {
        pieces,
        inputs: inputs.clone(),
        ..Scripted::default()
    };
    runtime(true).block_on(async {
        let edge = Edge::new(core);
        let http: Client<_, Full<Bytes>> =
            Client::builder(TokioExecutor::new()).build(Dialer::new(edge.clone()));
        look(&http, "http://fake/x", Duration::from_secs(1)).await;
        edge.deserted().await;
    });
    let expected = ["connected 1", "request 1 on 1: /x?", "disconnected 1 by Server"];
    assert_eq!(*inputs.lock().unwrap(), expected);
}

#[test]
fn a_response_abandoned_before_its_head_is_reported() {
    let inputs = Arc::<Mutex<Vec<String>>>::default();
    let core = Scripted {
        inputs: inputs.clone(),
        ..Scripted::default()
    };
    runtime(true).block_on(async {
        let edge = Edge::new(core);
        let http: Client<_, Full<Bytes>> =
            Client::builder(TokioExecutor::new()).build(Dialer::new(edge.clone()));
        let seen = look(&http, "http://fake/x", Duration::from_secs(1)).await;
        assert_eq!(seen, (Vec::new(), "silence"));
        drop(http);
        edge.deserted().await;
    });
    let expected = [
        "connected 1",
        "request 1 on 1: /x?",
        "abandoned 1",
        "disconnected 1 by Client",
    ];
    assert_eq!(*inputs.lock().unwrap(), expected);
}

#[rstest]
#[case::http1(over_pipe)]
#[case::http2(http2::over_pipe)]
fn a_body_beyond_three_mebibytes_never_reaches_the_server(
    #[case] client: fn(Scripted) -> Client<Dialer, Full<Bytes>>,
) {
    let inputs = Arc::<Mutex<Vec<String>>>::default();
    let core = Scripted {
        pieces: vec![Head(None), End(WHOLE)],
        inputs: inputs.clone(),
        ..Scripted::default()
    };
    let send = |size: usize| {
        Request::post("http://fake/x")
            .body(Full::new(Bytes::from(vec![b' '; size])))
            .unwrap()
    };
    runtime(true).block_on(async {
        let http = client(core);
        let limit = 3 * 1024 * 1024;
        assert_eq!(http.request(send(limit)).await.unwrap().status(), StatusCode::OK);
        let response = http.request(send(limit + 1)).await.unwrap();
        assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let expected_body = "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\",\"message\":\"Request entity \
                    too large: limit is 3145728\",\"reason\":\"RequestEntityTooLarge\",\"code\":413}\n";
        assert_eq!(body, expected_body);
    });
    let requests = inputs
        .lock()
        .unwrap()
        .iter()
        .filter(|line| line.starts_with("request"))
        .count();
    assert_eq!(requests, 1);
}

#[test]
fn a_panic_of_the_server_ends_the_run_as_the_harness_own_fault() {
    let records = runtime(true).block_on(async {
        let edge = Edge::new(Scripted::default());
        let http: Client<_, Full<Bytes>> =
            Client::builder(TokioExecutor::new()).build(Dialer::new(edge.clone()));
        tokio::spawn(async move { http.get("http://fake/panic".parse().unwrap()).await });
        edge.broken().await;
        let breakage = edge.breakage().unwrap();
        assert!(breakage.contains("while handling GET /panic: "), "{breakage}");
        edge.finished().await;
        edge.take_records()
    });
    let [
        Record {
            what: What::RunEnded(RunEnd::Harness { message }),
            ..
        },
    ] = records.as_slice()
    else {
        panic!("unexpected: {records:?}");
    };
    assert!(message.contains("as asked"), "{message}");
}

#[test]
fn only_loopback_is_served() {
    runtime(false).block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).await.unwrap();
        let served = serve(
            listener,
            Edge::new(Scripted::default()),
            ListenerLimits::default(),
            std::future::pending(),
        )
        .await;
        assert!(served.is_err());
    });
}
