//! S4: how often an event is serialized, for any number of watchers.
//!
//! Measured in process: watchers that receive the same memory share one serialization.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::Duration;

use fake_apiserver::api::HttpRequest;
use fake_apiserver::record::{ConnId, Replica, StreamId};
use fake_apiserver::scenario::ServerSettings;
use fake_apiserver::server::{Input, Output, Server};

use super::{CONFIG_MAPS, Ground};
use crate::fixture::config_map;
use crate::table::{Judged, Line, Measured, Row};

const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// Number of events.
const EVENTS: u64 = 10;

pub(super) fn measure(ground: &Ground) -> io::Result<Measured> {
    let watchers = ground.sizes.fewer_watchers;
    let one = texts_per_event(&["application/json"], watchers)?;
    let two = texts_per_event(&["application/json", METADATA], watchers)?;
    let row = |work: String, ours, representations: f64| Row {
        name: "S4",
        work,
        unit: "texts/event",
        ours,
        other: Some(("representations", representations)),
        judged: Judged::Ratio {
            must: Line::AtMost(1.0),
            moonshot: Line::AtMost(1.0),
        },
    };
    Ok(vec![
        row(format!("{watchers} watchers of whole objects"), one, 1.0),
        row(format!("{watchers} watchers, half of them of metadata"), two, 2.0),
    ]
    .into())
}

/// Returns the serializations per event for `watchers` that request the media types in `accepts` in turn.
fn texts_per_event(accepts: &[&str], watchers: usize) -> io::Result<f64> {
    let mut server = Server::standalone(ServerSettings::default(), 0);
    let mut streams = 0;
    let mut ask = |server: &mut Server, method: http::Method, query: &str, accept: &str, body: Vec<u8>| {
        streams += 1;
        let mut headers = http::HeaderMap::new();
        headers.insert("accept", accept.parse().map_err(io::Error::other)?);
        headers.insert("content-type", http::HeaderValue::from_static("application/json"));
        let named = if method == http::Method::PUT { "/tick" } else { "" };
        let request = HttpRequest {
            method,
            path: format!("{CONFIG_MAPS}{named}"),
            query: query.into(),
            headers,
            body: body.into(),
        };
        server.handle(
            Duration::ZERO,
            Input::Request {
                stream: StreamId(streams),
                conn: ConnId(1),
                request,
            },
        );
        Ok::<StreamId, io::Error>(StreamId(streams))
    };
    server.handle(
        Duration::ZERO,
        Input::Connected {
            conn: ConnId(1),
            replica: Replica::Primary,
            peer: None,
        },
    );
    let json = accepts[0];
    ask(
        &mut server,
        http::Method::POST,
        "",
        json,
        config_map("tick", "tick", 600, 0),
    )?;
    let mut watches = BTreeSet::new();
    for number in 0..watchers {
        let accept = accepts[number % accepts.len()];
        watches.insert(ask(
            &mut server,
            http::Method::GET,
            "watch=true",
            accept,
            Vec::new(),
        )?);
    }
    while server.poll_output().is_some() {}

    let mut texts = 0;
    for n in 1..=EVENTS {
        ask(
            &mut server,
            http::Method::PUT,
            "",
            json,
            config_map("tick", "tick", 600, n),
        )?;
        let mut handed: BTreeMap<*const u8, usize> = BTreeMap::new();
        while let Some(output) = server.poll_output() {
            if let Output::Data { stream, bytes } = output
                && watches.contains(&stream)
            {
                *handed.entry(bytes.as_ptr()).or_default() += 1;
            }
        }
        if handed.values().sum::<usize>() != watchers {
            return Err(io::Error::other(
                "an event was not delivered to every watcher in one piece",
            ));
        }
        texts += handed.len();
    }
    Ok(texts as f64 / EVENTS as f64)
}
