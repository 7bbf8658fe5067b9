//! Clients that do not read their responses: the server buffers a bounded amount, ends a watch that falls too far
//! behind, and continues where it stopped when the client reads again.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::time::Duration;

use bytes::Bytes;
use fake_apiserver::api::HttpRequest;
use fake_apiserver::fault::Ending;
use fake_apiserver::record::{ConnId, StreamId};
use fake_apiserver::scenario::ServerSettings;
use fake_apiserver::server::{Input, Output, Server};
use rstest::rstest;

const CM: &str = "/api/v1/namespaces/default/configmaps";

/// What is handed over at most before any of it is taken: the limit and one line or piece.
const BACKLOG_MAX: usize = 1024 * 1024 + 128 * 1024;

/// Bytes in an object.
const PADDING: usize = 10_000;

/// Events an open watch may lag behind.
const LAG_MAX: u64 = 10_000;

/// An answer, as far as its connection was handed it.
#[derive(Debug, Default, PartialEq)]
struct Received {
    bytes: Vec<u8>,
    /// The server waits until all of it is flushed.
    fence: bool,
    ended: Option<Ending>,
}

struct World {
    server: Server,
    answers: BTreeMap<StreamId, Received>,
    streams: u64,
    now: Duration,
    gzip: bool,
}

impl World {
    fn new() -> Self {
        Self {
            server: Server::standalone(ServerSettings::default(), 0),
            answers: BTreeMap::new(),
            streams: 0,
            now: Duration::ZERO,
            gzip: false,
        }
    }

    fn handle(&mut self, input: Input) {
        self.server.handle(self.now, input);
        while let Some(output) = self.server.poll_output() {
            match output {
                Output::Data { stream, bytes } => {
                    self.answers.entry(stream).or_default().bytes.extend(bytes);
                }
                Output::FlushBarrier { stream } => self.answers.entry(stream).or_default().fence = true,
                Output::End { stream, how } => self.answers.entry(stream).or_default().ended = Some(how),
                Output::Head { .. }
                | Output::Goaway { .. }
                | Output::Call { .. }
                | Output::Upstream { .. }
                | Output::UpstreamWrite { .. }
                | Output::Close { .. } => {}
            }
        }
    }

    fn ask(&mut self, method: http::Method, target: &str, body: String) -> StreamId {
        self.streams += 1;
        let stream = StreamId(self.streams);
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut headers = http::HeaderMap::new();
        let content_type = match method {
            http::Method::PATCH => "application/merge-patch+json",
            _ => "application/json",
        };
        headers.insert("content-type", http::HeaderValue::from_static(content_type));
        if self.gzip {
            headers.insert("accept-encoding", http::HeaderValue::from_static("gzip"));
        }
        self.handle(Input::Request {
            stream,
            conn: ConnId(1),
            request: HttpRequest {
                method,
                path: path.to_owned(),
                query: query.into(),
                headers,
                body: Bytes::from(body),
            },
        });
        stream
    }

    fn get(&mut self, target: &str) -> StreamId {
        self.ask(http::Method::GET, target, String::new())
    }

    fn create(&mut self, number: u64) {
        // What cannot be compressed much.
        let padding: String = (0..PADDING / 8)
            .map(|n| format!("{:08x}", (number * 2_654_435_761 + n as u64 * 40_503) as u32))
            .collect();
        let body = format!(
            r#"{{"metadata":{{"name":"cm-{number:05}","labels":{{"slow":""}}}},"data":{{"p":"{padding}"}}}}"#
        );
        let stream = self.ask(http::Method::POST, CM, body);
        self.answers.remove(&stream);
    }

    fn change(&mut self, n: u64) {
        let body = format!(r#"{{"binaryData":{{"n":"{n:08}"}},"data":null}}"#);
        let stream = self.ask(http::Method::PATCH, &format!("{CM}/cm-00000"), body);
        self.answers.remove(&stream);
    }

    fn answer(&self, stream: StreamId) -> &Received {
        &self.answers[&stream]
    }

    /// Reads until there is nothing more; gives how often there was something to take.
    fn read_on(&mut self, stream: StreamId) -> usize {
        let mut turns = 0;
        while std::mem::take(&mut self.answers.get_mut(&stream).expect("it was asked").fence) {
            self.handle(Input::Flushed(stream));
            turns += 1;
        }
        turns
    }

    /// How many objects came.
    fn names(&self, stream: StreamId) -> usize {
        let bytes = &self.answer(stream).bytes;
        let mut text = String::new();
        if self.gzip && bytes.starts_with(&[0x1f, 0x8b]) {
            let mut decoder = flate2::read::GzDecoder::new(bytes.as_slice());
            decoder.read_to_string(&mut text).expect("it is compressed whole");
        } else {
            assert!(!self.gzip, "it is not compressed");
            text = String::from_utf8_lossy(bytes).into_owned();
        }
        assert!(text.ends_with('\n'), "the last line is whole");
        text.matches(r#""name":"cm-"#).count()
    }
}

const OBJECTS: u64 = 300;

#[rstest]
#[case::changes(false, &["watch=1"])]
#[case::initial_events(true, &["watch=1"])]
#[case::a_list(true, &[""])]
#[case::a_compressed_list(true, &["", "gzip"])]
fn who_does_not_read_is_handed_no_more_than_a_backlog(#[case] late: bool, #[case] asks: &[&str]) {
    let mut world = World::new();
    world.gzip = asks.get(1).is_some();
    let target = format!("{CM}?labelSelector=slow&{}", asks[0]);
    let early = (!late).then(|| world.get(&target));
    for number in 0..OBJECTS {
        world.create(number);
    }
    let stream = early.unwrap_or_else(|| world.get(&target));

    let held = world.answer(stream).bytes.len();
    assert!(held <= BACKLOG_MAX, "{held} bytes are held for it");
    assert_eq!(world.answer(stream).ended, None);
    assert!(world.read_on(stream) > 1, "it went on when it was read");
    assert_eq!(world.names(stream), OBJECTS as usize);
    let over = (asks[0] != "watch=1").then_some(Ending::Eof);
    assert_eq!(world.answer(stream).ended, over);
}

#[test]
fn an_unread_watch_ends_at_its_timeout() {
    let mut world = World::new();
    let watch = world.get(&format!("{CM}?watch=1&timeoutSeconds=5"));
    for number in 0..OBJECTS {
        world.create(number);
    }
    assert_eq!(world.answer(watch).ended, None);
    assert!(world.server.poll_timeout() <= Some(Duration::from_secs(5)));
    world.now = Duration::from_secs(5);
    world.handle(Input::Tick);
    assert_eq!(world.answer(watch).ended, Some(Ending::Eof));
}

#[test]
fn a_watch_that_falls_too_far_behind_is_ended() {
    let mut world = World::new();
    let watch = world.get(&format!("{CM}?watch=1"));
    for number in 0..OBJECTS {
        world.create(number);
    }
    let held = world.answer(watch).bytes.len();
    // Writes of one object, by the name of the first.
    let mut writes = 0;
    while world.answer(watch).ended.is_none() && writes < LAG_MAX + OBJECTS {
        writes += 1;
        world.change(writes);
    }
    assert!(writes > LAG_MAX - OBJECTS, "{writes}");
    assert_eq!(world.answer(watch).ended, Some(Ending::Eof));
    assert_eq!(world.answer(watch).bytes.len(), held);
}
