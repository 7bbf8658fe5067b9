//! The endings of `main.rs` over HTTP/2: by prior knowledge over a pipe, by ALPN over a socket; and what only HTTP/2
//! has.

use std::error::Error as _;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use conformance::drive::sim::Dialer;
use fake_apiserver::api::Header;
use fake_apiserver::fault::{Ending, Http2Error};
use fake_apiserver::net::tls::Protocols;
use fake_apiserver::net::{
    Broken, ConnectionSettings, Edge, ListenerLimits, Protocol, SendError, ServeOptions, TlsOptions,
};
use http::header::CONNECTION;
use http::{HeaderValue, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::{Connect, HttpConnector};
use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::TokioExecutor;
use rstest::rstest;

use crate::in_process::in_process;
use crate::scripted::Out::{self, Close, Data, End, Goaway, Head};
use crate::scripted::Scripted;
use crate::{connect, runtime};

const WHOLE: Ending = Ending::Eof;

pub(crate) fn over_pipe(core: Scripted) -> Client<Dialer, Full<Bytes>> {
    Client::builder(TokioExecutor::new())
        .http2_only(true)
        .build(Dialer::new(Edge::new(core)))
}

async fn over_tls(core: Scripted) -> (Client<HttpsConnector<HttpConnector>, Full<Bytes>>, String) {
    let options = ServeOptions {
        tls: Some(TlsOptions {
            protocols: Protocols::Http2OrHttp1,
            ..TlsOptions::default()
        }),
        ..ServeOptions::default()
    };
    let listening = options.bind().await.unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots
        .add(listening.authority().unwrap().certificate_der())
        .unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(config)
        .https_only()
        .enable_all_versions()
        .build();
    let url = listening.url();
    tokio::spawn(listening.serve(Edge::new(core), std::future::pending()));
    (Client::builder(TokioExecutor::new()).build(connector), url)
}

/// Returns what a client receives of a response: its body, frame by frame, and how it ended.
async fn look<C: Connect + Clone + Send + Sync + 'static>(
    http: &Client<C, Full<Bytes>>,
    uri: &str,
    patience: Duration,
) -> (Vec<String>, String) {
    let mut seen = Vec::new();
    let ended = tokio::time::timeout(patience, async {
        let mut response = match http.get(uri.parse().unwrap()).await {
            Ok(response) => response,
            Err(error) => return format!("{} before the head", no_answer(&error)),
        };
        assert_eq!(response.version(), http::Version::HTTP_2);
        assert!(response.headers().contains_key("date"));
        while let Some(frame) = response.body_mut().frame().await {
            match frame {
                Ok(frame) => seen.push(frame.data_ref().unwrap().escape_ascii().to_string()),
                Err(error) => return broken(&error),
            }
        }
        "eof".to_owned()
    })
    .await
    .unwrap_or_else(|_| "silence".to_owned());
    (seen, ended)
}

/// The same without bytes.
async fn look_in_process(core: Scripted) -> (Vec<String>, String) {
    let words = |broken| match broken {
        Broken::Closed => "connection closed".to_owned(),
        Broken::Reset => "connection reset".to_owned(),
        Broken::StreamReset(code) => format!("stream reset {:?}", h2::Reason::from(code.code())),
    };
    let mut seen = Vec::new();
    let ended = tokio::time::timeout(Duration::from_secs(60), async {
        let http = in_process(Protocol::Http2, core);
        let request = Request::get("/x").body(Bytes::new()).unwrap();
        let mut response = match http.send(request).await {
            Ok(response) => response,
            Err(SendError::NoResponse(broken)) => return format!("{} before the head", words(broken)),
            Err(SendError::Refused) => panic!("it is refused"),
        };
        while let Some(frame) = response.body_mut().frame().await {
            match frame {
                Ok(frame) => seen.push(frame.data_ref().unwrap().escape_ascii().to_string()),
                Err(broken) => return words(broken),
            }
        }
        "eof".to_owned()
    });
    let ended = ended.await.unwrap_or_else(|_| "silence".to_owned());
    (seen, ended)
}

fn no_answer(error: &Error) -> String {
    let error = error
        .source()
        .and_then(|source| source.downcast_ref::<hyper::Error>());
    broken(error.unwrap())
}

fn broken(error: &hyper::Error) -> String {
    let source = error.source().unwrap();
    let http2 = source.downcast_ref::<h2::Error>();
    if let Some(io) = http2.map_or_else(|| source.downcast_ref(), h2::Error::get_io) {
        let known = [
            (io::ErrorKind::ConnectionReset, "connection reset"),
            (io::ErrorKind::BrokenPipe, "connection closed"),
            (
                io::ErrorKind::UnexpectedEof,
                "connection closed without close_notify",
            ),
        ];
        let found = known.iter().find(|(kind, _)| *kind == io.kind());
        let (_, words) = found.unwrap_or_else(|| panic!("unexpected: {:?}", io.kind()));
        return (*words).to_owned();
    }
    let error = http2.unwrap();
    assert!(error.is_reset(), "unexpected: {error:?}");
    format!("stream reset {:?}", error.reason().unwrap())
}

#[rstest]
#[case::eof(&[Head(None), Data(b"one\n"), Data(b"two\n"), End(WHOLE)], &[r"one\n", r"two\n"], "eof", "eof")]
#[case::eof_of_a_known_length(&[Head(Some(4)), Data(b"one\n"), End(WHOLE)], &[r"one\n"], "eof", "eof")]
#[case::eof_without_a_body(&[Head(None), End(WHOLE)], &[], "eof", "eof")]
#[case::fin(&[Head(None), Data(b"one\n"), Data(b"tw"), End(Ending::Fin)], &[r"one\n", "tw"], "connection closed", "connection closed")]
#[case::fin_before_the_head(&[End(Ending::Fin)], &[], "connection closed before the head", "connection closed before the head")]
#[case::rst(&[Head(None), Data(b"one\n"), Data(b"tw"), End(Ending::Rst)], &[r"one\n", "tw"], "connection reset", "connection reset")]
#[case::stall(&[Head(None), Data(b"one\n"), End(Ending::Stall)], &[r"one\n"], "silence", "silence")]
#[case::stall_before_the_head(&[End(Ending::Stall)], &[], "silence", "silence")]
#[case::eof_and_close(&[Head(None), Data(b"one\n"), Data(b"two\n"), End(WHOLE), Close], &[r"one\n", r"two\n"], "eof", "eof")]
#[case::fin_and_close(&[Head(None), Data(b"one\n"), Data(b"tw"), End(Ending::Fin), Close], &[r"one\n", "tw"], "connection closed", "connection closed")]
#[case::stall_and_close(&[Head(None), Data(b"one\n"), End(Ending::Stall), Close], &[r"one\n"], "connection closed", "connection closed")]
#[case::no_close_notify(&[Head(None), Data(b"tw"), End(Ending::NoCloseNotify)], &["tw"], "connection closed", "connection closed without close_notify")]
#[case::rst_stream(
    &[Head(None), Data(b"one\n"), Data(b"tw"), End(Ending::RstStream(Http2Error::InternalError))],
    &[r"one\n", "tw"], "stream reset INTERNAL_ERROR", "stream reset INTERNAL_ERROR"
)]
#[case::rst_stream_after_the_head(
    &[Head(None), End(Ending::RstStream(Http2Error::Cancel))],
    &[], "stream reset CANCEL", "stream reset CANCEL"
)]
#[case::rst_stream_before_the_head(
    &[End(Ending::RstStream(Http2Error::RefusedStream))],
    &[], "stream reset REFUSED_STREAM before the head", "stream reset REFUSED_STREAM before the head"
)]
// GOAWAY counts the stream as processed, so the client sees a closed connection.
#[case::goaway(
    &[Head(None), Data(b"one\n"), End(Ending::Goaway(Http2Error::EnhanceYourCalm))],
    &[r"one\n"], "connection closed", "connection closed"
)]
fn every_ending_looks_alike_over_pipe_and_tls_and_in_process(
    #[case] pieces: &[Out],
    #[case] body: &[&str],
    #[case] over_a_pipe: &str,
    #[case] over_a_socket: &str,
) {
    let body: Vec<String> = body.iter().map(|part| (*part).to_owned()).collect();
    let core = || Scripted {
        pieces: pieces.to_vec(),
        ..Scripted::default()
    };
    let piped = runtime(true)
        .block_on(async { look(&over_pipe(core()), "http://fake/x", Duration::from_secs(60)).await });
    assert_eq!(piped, (body.clone(), over_a_pipe.to_owned()), "over a pipe");
    let in_process = runtime(true).block_on(look_in_process(core()));
    assert_eq!(in_process, (body.clone(), over_a_pipe.to_owned()), "in process");
    let socketed = runtime(false).block_on(async {
        let (http, base) = over_tls(core()).await;
        look(&http, &format!("{base}/x"), Duration::from_millis(300)).await
    });
    assert_eq!(socketed, (body, over_a_socket.to_owned()), "over TLS");
}

#[test]
fn a_body_of_any_size_comes_whole_through_small_windows() {
    // More than 64 KiB, the initial flow-control window of a stream.
    static LARGE: [u8; 1 << 20] = [b'x'; 1 << 20];
    let core = Scripted {
        pieces: vec![Head(None), Data(&LARGE), Data(b"end"), End(WHOLE)],
        ..Scripted::default()
    };
    let whole = runtime(true).block_on(async {
        let http: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new())
            .http2_only(true)
            .http2_initial_stream_window_size(65_535)
            .http2_initial_connection_window_size(65_535)
            .build(Dialer::new(Edge::new(core)));
        let response = http.get("http://fake/x".parse().unwrap()).await.unwrap();
        response.into_body().collect().await.unwrap().to_bytes()
    });
    assert_eq!(whole.len(), LARGE.len() + 3);
    assert!(whole.ends_with(b"xend"));
}

#[test]
fn an_answer_to_head_has_no_body() {
    let core = Scripted {
        pieces: vec![Head(Some(4)), Data(b"one\n"), End(WHOLE)],
        ..Scripted::default()
    };
    runtime(true).block_on(async {
        let request = Request::head("http://fake/x").body(Full::default()).unwrap();
        let response = over_pipe(core).request(request).await.unwrap();
        assert_eq!(response.headers()["content-length"], "4");
        assert!(
            response
                .into_body()
                .collect()
                .await
                .unwrap()
                .to_bytes()
                .is_empty()
        );
    });
}

/// A connection whose frames the test reads.
async fn by_hand(
    core: Scripted,
    limits: ListenerLimits,
) -> (
    h2::client::SendRequest<Bytes>,
    tokio::task::JoinHandle<Result<(), h2::Error>>,
    Edge,
) {
    let edge = Edge::new(core);
    let near = connect(
        &edge,
        ConnectionSettings {
            limits,
            ..ConnectionSettings::default()
        },
    );
    let (send, connection) = h2::client::handshake(near).await.unwrap();
    (send, tokio::spawn(connection), edge)
}

fn get() -> Request<()> {
    Request::get("http://fake/x").body(()).unwrap()
}

#[test]
fn a_graceful_goaway_leaves_what_is_under_way_alone() {
    let core = Scripted {
        pieces: vec![Head(None), Data(b"one\n"), Goaway],
        ..Scripted::default()
    };
    runtime(true).block_on(async {
        let (mut send, connection, edge) = by_hand(core, ListenerLimits::default()).await;
        let (response, _) = send.send_request(get(), true).unwrap();
        let mut body = response.await.unwrap().into_body();
        assert_eq!(body.data().await.unwrap().unwrap(), "one\n");
        // The client itself refuses the next request once it has read the GOAWAY.
        let refused = loop {
            match send.clone().ready().await {
                Ok(_) => tokio::task::yield_now().await,
                Err(error) => break error,
            }
        };
        assert_eq!(refused.reason(), Some(h2::Reason::NO_ERROR));
        assert!(
            tokio::time::timeout(Duration::from_secs(10), body.data())
                .await
                .is_err()
        );
        drop((body, send));
        connection.await.unwrap().unwrap();
        edge.deserted().await;
    });
}

#[test]
fn a_closing_goaway_has_an_error_code() {
    let core = Scripted {
        pieces: vec![
            Head(None),
            Data(b"one\n"),
            End(Ending::Goaway(Http2Error::EnhanceYourCalm)),
        ],
        ..Scripted::default()
    };
    runtime(true).block_on(async {
        let (mut send, connection, edge) = by_hand(core, ListenerLimits::default()).await;
        let (response, _) = send.send_request(get(), true).unwrap();
        let mut body = response.await.unwrap().into_body();
        assert_eq!(body.data().await.unwrap().unwrap(), "one\n");
        assert!(body.data().await.unwrap().is_err());
        let error = connection.await.unwrap().unwrap_err();
        assert!(error.is_go_away() && error.is_remote(), "{error:?}");
        assert_eq!(error.reason(), Some(h2::Reason::ENHANCE_YOUR_CALM));
        edge.deserted().await;
    });
}

#[rstest]
#[case::unknown(401, Vec::new())]
#[case::connection_close(200, vec![(CONNECTION, HeaderValue::from_static("close"))])]
fn goaway_follows_the_response_if_the_connection_must_close(
    #[case] status: u16,
    #[case] headers: Vec<Header>,
) {
    let core = Scripted {
        pieces: vec![Out::HeadOf(status), Data(b"no\n"), End(WHOLE)],
        headers,
        ..Scripted::default()
    };
    runtime(true).block_on(async {
        let (mut send, connection, _) = by_hand(core, ListenerLimits::default()).await;
        let (response, _) = send.send_request(get(), true).unwrap();
        let response = response.await.unwrap();
        assert_eq!(response.status(), status);
        assert!(!response.headers().contains_key("connection"));
        let mut body = response.into_body();
        assert_eq!(body.data().await.unwrap().unwrap(), "no\n");
        drop(body);
        // The server closes although the client would keep the connection.
        connection.await.unwrap().unwrap();
        drop(send);
    });
}

#[test]
fn no_more_streams_than_allowed_are_open_at_a_time() {
    let core = Scripted {
        pieces: vec![Head(None)],
        ..Scripted::default()
    };
    runtime(true).block_on(async {
        let limits = ListenerLimits {
            streams: 2,
            ..ListenerLimits::default()
        };
        let (send, _connection, _) = by_hand(core, limits).await;
        let mut bodies = Vec::new();
        for _ in 0..2 {
            let (response, _) = send
                .clone()
                .ready()
                .await
                .unwrap()
                .send_request(get(), true)
                .unwrap();
            bodies.push(response.await.unwrap());
        }
        let third = async {
            send.clone()
                .ready()
                .await
                .unwrap()
                .send_request(get(), true)
                .unwrap()
                .0
                .await
        };
        tokio::pin!(third);
        assert!(
            tokio::time::timeout(Duration::from_secs(10), third.as_mut())
                .await
                .is_err()
        );
        bodies.pop();
        assert_eq!(third.await.unwrap().status(), StatusCode::OK);
    });
}

#[test]
fn each_abandoned_stream_is_reported_and_the_connection_stays_open() {
    let inputs = Arc::<Mutex<Vec<String>>>::default();
    let core = Scripted {
        pieces: vec![Head(None), Data(b"one\n")],
        inputs: inputs.clone(),
        ..Scripted::default()
    };
    runtime(true).block_on(async {
        let (mut send, connection, edge) = by_hand(core, ListenerLimits::default()).await;
        for _ in 0..2 {
            let (response, _) = send.send_request(get(), true).unwrap();
            drop(response.await.unwrap());
            tokio::time::timeout(Duration::from_secs(1), std::future::pending::<()>())
                .await
                .unwrap_err();
        }
        drop(send);
        connection.await.unwrap().unwrap();
        edge.deserted().await;
    });
    let expected = [
        "connected 1",
        "request 1 on 1: /x?",
        "abandoned 1",
        "request 2 on 1: /x?",
        "abandoned 2",
        "disconnected 1 by Client",
    ];
    assert_eq!(*inputs.lock().unwrap(), expected);
}
