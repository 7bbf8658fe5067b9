//! Connections without bytes: which one a request takes, and when either side closes it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use fake_apiserver::fault::Ending;
use fake_apiserver::net::{Broken, Edge, InProcess, ListenerLimits, SendError};
use http::Request;
use http_body_util::BodyExt as _;
use rstest::rstest;

use crate::scripted::Out::{Close, Data, End, Goaway, Head};
use crate::scripted::{Out, Scripted};
use crate::{Http, Seen, WHOLE, look, runtime};

/// A client of `core`, in the current runtime.
pub(crate) fn in_process(core: Scripted) -> InProcess {
    InProcess::new(Edge::new(core), ListenerLimits::default())
}

impl Http for InProcess {
    async fn get(&self, uri: &str) -> Result<http::Response<Seen>, &'static str> {
        let request = Request::get(uri).body(Bytes::new()).unwrap();
        let response = self.send(request).await.map_err(|error| match error {
            SendError::Refused => "refused",
            SendError::NoResponse(Broken::Closed) => "closed before the head",
            SendError::NoResponse(Broken::Reset) => "reset before the head",
        })?;
        let broken = |broken| match broken {
            Broken::Closed => "incomplete",
            Broken::Reset => "reset",
        };
        Ok(response.map(|body| body.map_err(broken).boxed()))
    }
}

/// Runs `play` with a client of a server with these pieces, drops the client, and returns what the server was told.
fn heard(pieces: &[Out], play: impl AsyncFnOnce(&InProcess, &Edge)) -> Vec<String> {
    let heard = Arc::<Mutex<Vec<String>>>::default();
    let core = Scripted {
        pieces: pieces.to_vec(),
        heard: heard.clone(),
        ..Scripted::default()
    };
    runtime(true).block_on(async {
        let edge = Edge::new(core);
        let http = InProcess::new(edge.clone(), ListenerLimits::default());
        play(&http, &edge).await;
        drop(http);
        edge.deserted().await;
    });
    Arc::try_unwrap(heard).unwrap().into_inner().unwrap()
}

async fn twice(http: &InProcess, _: &Edge) {
    for _ in 0..2 {
        assert_eq!(look(http, "/x", Duration::from_secs(1)).await.1, "eof");
    }
}

#[test]
fn a_connection_is_used_again() {
    assert_eq!(
        heard(&[Head(None), Data(b"one\n"), End(WHOLE)], twice),
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
        heard(pieces, twice),
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
    let heard = heard(&[Head(Some(0)), End(WHOLE), Close], async |http, _| {
        // Nothing runs between the two: the connection is still to learn that it is closed.
        let first = http.get("/1").await.unwrap();
        assert!(first.into_body().frame().await.is_none());
        assert_eq!(look(http, "/2", Duration::from_secs(1)).await.1, "eof");
    });
    let requests: Vec<&String> = heard.iter().filter(|line| line.starts_with("request")).collect();
    assert_eq!(requests, ["request 1 on 1: /1?", "request 2 on 2: /2?"]);
}

#[test]
fn two_requests_at_a_time_take_two_connections() {
    let heard = heard(&[Head(None), Data(b"one\n")], async |http, edge| {
        let open = [http.get("/1").await.unwrap(), http.get("/2").await.unwrap()];
        assert_eq!(edge.connections(), 2);
        drop(open);
    });
    assert_eq!(
        heard,
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
    let heard = heard(&[], async |http, _| {
        assert_eq!(look(http, "/x", Duration::from_secs(1)).await.1, "silence");
    });
    assert_eq!(
        heard,
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
    let heard = heard(&[Head(None), End(how)], async |http, _| {
        look(http, "/x", Duration::from_secs(1)).await;
    });
    assert_eq!(
        heard,
        ["connected 1", "request 1 on 1: /x?", "disconnected 1 by Server"]
    );
}

#[test]
fn an_idle_connection_is_closed_by_the_server() {
    let idle = ListenerLimits::default().idle;
    let heard = heard(&[Head(None), End(WHOLE)], async |http, edge| {
        look(http, "/x", Duration::from_secs(1)).await;
        let open = tokio::time::timeout(idle - Duration::from_secs(1), edge.deserted()).await;
        assert!(open.is_err(), "it is closed too early");
        edge.deserted().await;
    });
    assert_eq!(heard.last().unwrap(), "disconnected 1 by Server");
}

/// More than a connection holds in flight, in pieces.
const MUCH: [Out; 3] = [Head(None), Data(&[b'x'; 200 * 1024]), Data(&[b'x'; 200 * 1024])];

#[test]
fn a_client_that_reads_nothing_is_disconnected() {
    let patience = ListenerLimits::default().write;
    let heard = heard(&MUCH, async |http, edge| {
        let response = http.get("/x").await.unwrap();
        let open = tokio::time::timeout(patience - Duration::from_secs(1), edge.deserted()).await;
        assert!(open.is_err(), "it is disconnected too early");
        edge.deserted().await;
        drop(response);
    });
    assert_eq!(heard[2..], ["cut off 1", "disconnected 1 by Server"]);
}

#[test]
fn a_client_that_reads_slowly_is_not_disconnected() {
    let pieces = [&MUCH[..], &MUCH[1..], &[End(WHOLE)]].concat();
    let heard = heard(&pieces, async |http, edge| {
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
    assert_eq!(heard.last().unwrap(), "disconnected 1 by Client");
}
