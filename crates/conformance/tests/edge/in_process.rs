//! Connections without bytes: which one a request takes, and when either side closes it.
//!
//! What a client sees of each ending is in the tables of `main.rs` and `http2.rs`.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use fake_apiserver::fault::{Ending, Http2Error};
use fake_apiserver::net::{Broken, Edge, InProcess, ListenerLimits, Protocol, SendError};
use http::Request;
use http_body_util::BodyExt as _;
use rstest::rstest;

use crate::scripted::Out::{Close, Data, End, Goaway, Head};
use crate::scripted::{Out, Scripted};
use crate::{Http, Seen, WHOLE, look, runtime};

/// A client of `core`, in the current runtime.
pub(crate) fn in_process(protocol: Protocol, core: Scripted) -> InProcess {
    InProcess::new(Edge::new(core), protocol, ListenerLimits::default())
}

impl Http for InProcess {
    async fn get(&self, uri: &str) -> Result<http::Response<Seen>, &'static str> {
        let request = Request::get(uri).body(Bytes::new()).unwrap();
        let response = self.send(request).await.map_err(|error| match error {
            SendError::Refused => "refused",
            SendError::NoResponse(Broken::Closed) => "closed before the head",
            SendError::NoResponse(Broken::Reset) => "reset before the head",
            SendError::NoResponse(Broken::StreamReset(code)) => panic!("a stream of HTTP/1.1: {code:?}"),
        })?;
        let broken = |broken| match broken {
            Broken::Closed => "incomplete",
            Broken::Reset => "reset",
            Broken::StreamReset(code) => panic!("a stream of HTTP/1.1: {code:?}"),
        };
        Ok(response.map(|body| body.map_err(broken).boxed()))
    }
}

/// Runs `play` with a client of a server with these pieces, drops the client, and returns the inputs of the server.
fn inputs_of(pieces: &[Out], play: impl AsyncFnOnce(&InProcess, &Edge)) -> Vec<String> {
    inputs_over(Protocol::Http1, ListenerLimits::default(), pieces, play)
}

fn inputs_over(
    protocol: Protocol,
    limits: ListenerLimits,
    pieces: &[Out],
    play: impl AsyncFnOnce(&InProcess, &Edge),
) -> Vec<String> {
    let inputs = Arc::<Mutex<Vec<String>>>::default();
    let core = Scripted {
        pieces: pieces.to_vec(),
        inputs: inputs.clone(),
        ..Scripted::default()
    };
    runtime(true).block_on(async {
        let edge = Edge::new(core);
        let http = InProcess::new(edge.clone(), protocol, limits);
        play(&http, &edge).await;
        drop(http);
        edge.deserted().await;
    });
    Arc::try_unwrap(inputs).unwrap().into_inner().unwrap()
}

async fn twice(http: &InProcess, _: &Edge) {
    for _ in 0..2 {
        assert_eq!(look(http, "/x", Duration::from_secs(1)).await.1, "eof");
    }
}

#[test]
fn a_connection_is_used_again() {
    assert_eq!(
        inputs_of(&[Head(None), Data(b"one\n"), End(WHOLE)], twice),
        [
            "connected 1",
            "request 1 on 1: /x?",
            "request 2 on 1: /x?",
            "disconnected 1 by Client"
        ]
    );
}

#[rstest]
#[case::goaway(&[Head(None), Goaway, End(WHOLE)])]
#[case::close(&[Head(None), End(WHOLE), Close])]
fn a_connection_that_the_server_closes_is_not_used_again(#[case] pieces: &[Out]) {
    assert_eq!(
        inputs_of(pieces, twice),
        [
            "connected 1",
            "request 1 on 1: /x?",
            "disconnected 1 by Server",
            "connected 2",
            "request 2 on 2: /x?",
            "disconnected 2 by Server"
        ]
    );
}

#[test]
fn a_request_on_a_connection_that_is_being_closed_is_sent_again() {
    let inputs = inputs_of(&[Head(Some(0)), End(WHOLE), Close], async |http, _| {
        // Nothing runs between the two: the connection is still to learn that it is closed.
        let first = http.get("/1").await.unwrap();
        assert!(first.into_body().frame().await.is_none());
        assert_eq!(look(http, "/2", Duration::from_secs(1)).await.1, "eof");
    });
    let requests: Vec<&String> = inputs.iter().filter(|line| line.starts_with("request")).collect();
    assert_eq!(requests, ["request 1 on 1: /1?", "request 2 on 2: /2?"]);
}

#[test]
fn two_requests_at_a_time_take_two_connections() {
    let inputs = inputs_of(&[Head(None), Data(b"one\n")], async |http, edge| {
        let open = [http.get("/1").await.unwrap(), http.get("/2").await.unwrap()];
        assert_eq!(edge.connections(), 2);
        drop(open);
    });
    assert_eq!(
        inputs,
        [
            "connected 1",
            "request 1 on 1: /1?",
            "connected 2",
            "request 2 on 2: /2?",
            "abandoned 1",
            "disconnected 1 by Client",
            "abandoned 2",
            "disconnected 2 by Client"
        ]
    );
}

#[test]
fn a_response_given_up_before_its_head_is_reported() {
    let inputs = inputs_of(&[], async |http, _| {
        assert_eq!(look(http, "/x", Duration::from_secs(1)).await.1, "silence");
    });
    assert_eq!(
        inputs,
        [
            "connected 1",
            "request 1 on 1: /x?",
            "abandoned 1",
            "disconnected 1 by Client"
        ]
    );
}

#[rstest]
#[case::fin(Ending::Fin)]
#[case::rst(Ending::Rst)]
fn a_connection_ended_by_the_server_is_reported(#[case] how: Ending) {
    let inputs = inputs_of(&[Head(None), End(how)], async |http, _| {
        look(http, "/x", Duration::from_secs(1)).await;
    });
    assert_eq!(
        inputs,
        ["connected 1", "request 1 on 1: /x?", "disconnected 1 by Server"]
    );
}

#[test]
fn an_idle_connection_is_closed_by_the_server() {
    let idle = ListenerLimits::default().idle;
    let inputs = inputs_of(&[Head(None), End(WHOLE)], async |http, edge| {
        look(http, "/x", Duration::from_secs(1)).await;
        let open = tokio::time::timeout(idle - Duration::from_secs(1), edge.deserted()).await;
        assert!(open.is_err(), "it is closed too early");
        edge.deserted().await;
    });
    assert_eq!(inputs.last().unwrap(), "disconnected 1 by Server");
}

/// More than a connection holds in flight, in pieces.
const MUCH: [Out; 3] = [Head(None), Data(&[b'x'; 200 * 1024]), Data(&[b'x'; 200 * 1024])];

#[test]
fn a_client_that_reads_nothing_is_disconnected() {
    let patience = ListenerLimits::default().write;
    let inputs = inputs_of(&MUCH, async |http, edge| {
        let response = http.get("/x").await.unwrap();
        let open = tokio::time::timeout(patience - Duration::from_secs(1), edge.deserted()).await;
        assert!(open.is_err(), "it is disconnected too early");
        edge.deserted().await;
        drop(response);
    });
    assert_eq!(inputs[2..], ["cut off 1", "disconnected 1 by Server"]);
}

#[test]
fn a_client_that_reads_slowly_is_not_disconnected() {
    let pieces = [&MUCH[..], &MUCH[1..], &[End(WHOLE)]].concat();
    let inputs = inputs_of(&pieces, async |http, edge| {
        let mut response = http.get("/x").await.unwrap();
        let pause = ListenerLimits::default().write - Duration::from_secs(1);
        for _ in 0..2 {
            let gone = tokio::time::timeout(pause, edge.deserted()).await;
            assert!(gone.is_err(), "it is disconnected");
            assert!(response.body_mut().frame().await.unwrap().is_ok());
        }
        let rest = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(rest.len(), 2 * 200 * 1024);
    });
    assert_eq!(inputs.last().unwrap(), "disconnected 1 by Client");
}

// ---- HTTP/2

fn inputs_over_http2(pieces: &[Out], play: impl AsyncFnOnce(&InProcess, &Edge)) -> Vec<String> {
    inputs_over(Protocol::Http2, ListenerLimits::default(), pieces, play)
}

#[test]
fn requests_share_a_connection_of_http2() {
    let inputs = inputs_over_http2(&[Head(None), Data(b"one\n")], async |http, edge| {
        let first = http.get("/1").await.unwrap();
        let second = http.get("/2").await.unwrap();
        assert_eq!(edge.connections(), 1);
        drop(first);
        tokio::task::yield_now().await;
        assert_eq!(
            edge.connections(),
            1,
            "giving a response up ends its stream alone"
        );
        drop(second);
    });
    assert_eq!(
        inputs,
        [
            "connected 1",
            "request 1 on 1: /1?",
            "request 2 on 1: /2?",
            "abandoned 1",
            "abandoned 2",
            "disconnected 1 by Client"
        ]
    );
}

#[test]
fn a_stream_that_is_reset_leaves_the_others_alone() {
    let reset = Ending::RstStream(Http2Error::InternalError);
    let inputs = inputs_over_http2(&[Head(None), End(reset)], async |http, edge| {
        for path in ["/1", "/2"] {
            let request = Request::get(path).body(Bytes::new()).unwrap();
            let mut response = http.send(request).await.unwrap();
            let broken = response.body_mut().frame().await.unwrap().unwrap_err();
            assert_eq!(broken, Broken::StreamReset(Http2Error::InternalError));
        }
        assert_eq!(edge.connections(), 1);
    });
    assert_eq!(inputs.last().unwrap(), "disconnected 1 by Client");
}

#[test]
fn an_ending_of_the_connection_ends_every_stream() {
    let limits = ListenerLimits::default();
    let pieces = [
        &MUCH[..],
        &MUCH[1..],
        &MUCH[1..],
        &MUCH[1..],
        &MUCH[1..],
        &MUCH[1..],
        &[End(Ending::Fin)],
    ]
    .concat();
    let inputs = inputs_over(Protocol::Http2, limits, &pieces, async |http, edge| {
        // More than the window: the first response does not reach its ending until it is read.
        let send = async |path| {
            let request = Request::get(path).body(Bytes::new()).unwrap();
            http.send(request).await.unwrap().into_body()
        };
        let (first, second) = (send("/1").await, send("/2").await);
        assert_eq!(edge.connections(), 1);
        assert_eq!(second.collect().await.unwrap_err(), Broken::Closed);
        assert_eq!(first.collect().await.unwrap_err(), Broken::Closed);
        edge.deserted().await;
    });
    assert_eq!(inputs.last().unwrap(), "disconnected 1 by Server");
    assert!(!inputs.contains(&"abandoned 1".to_owned()), "{inputs:?}");
}

#[test]
fn a_graceful_goaway_leaves_open_streams_alone() {
    let inputs = inputs_over_http2(&[Head(None), Data(b"one\n"), Goaway], async |http, edge| {
        let mut first = http.get("/1").await.unwrap();
        assert!(first.body_mut().frame().await.unwrap().is_ok());
        let second = http.get("/2").await.unwrap();
        assert_eq!(edge.connections(), 2);
        let more = tokio::time::timeout(Duration::from_secs(9), first.body_mut().frame()).await;
        assert!(more.is_err(), "it ended");
        drop((first, second));
    });
    let requests: Vec<&String> = inputs.iter().filter(|line| line.starts_with("request")).collect();
    assert_eq!(requests, ["request 1 on 1: /1?", "request 2 on 2: /2?"]);
}

#[test]
fn a_request_beyond_the_limit_of_streams_waits() {
    let limits = ListenerLimits {
        streams: 1,
        ..ListenerLimits::default()
    };
    let pieces = [Head(None), Data(b"one\n")];
    let inputs = inputs_over(Protocol::Http2, limits, &pieces, async |http, edge| {
        let first = http.get("/1").await.unwrap();
        let second = tokio::time::timeout(Duration::from_secs(9), http.get("/2")).await;
        assert!(second.is_err(), "it is answered");
        assert_eq!(edge.connections(), 1);
        drop(first);
        drop(http.get("/3").await.unwrap());
    });
    let requests: Vec<&String> = inputs.iter().filter(|line| line.starts_with("request")).collect();
    assert_eq!(
        requests,
        ["request 1 on 1: /1?", "request 2 on 1: /3?"],
        "2 was given up"
    );
}
