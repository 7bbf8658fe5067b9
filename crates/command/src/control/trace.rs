//! `GET /v1/trace`: a stream of records, one per line, as JSON or text.

use std::convert::Infallible;

use bytes::Bytes;
use fake_apiserver::net::Edge;
use fake_apiserver::record::Record;
use fake_apiserver::record::line::line;
use futures::stream;
use http::Response;
use http::header::{CONTENT_TYPE, HeaderValue};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;

use super::answer::{Answer, Refusal};

/// Maximum records per chunk.
const CHUNK: usize = 500;

/// Format of the records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Json,
    Text,
}

/// Returns the records from `since` on; with `follow` the response does not end.
pub(super) fn follow(edge: Edge, query: &str) -> Result<Answer, Refusal> {
    let (mut since, mut follows, mut format) = (0_u64, false, Format::Json);
    for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
        match (name, value) {
            ("since", value) => {
                since = value
                    .parse()
                    .map_err(|_| Refusal::bad(format!("since={value}: expected the number of a record")))?;
            }
            ("follow", "true") => follows = true,
            ("follow", "false") => follows = false,
            ("format", "json") => format = Format::Json,
            ("format", "text") => format = Format::Text,
            _ => {
                return Err(Refusal::bad(format!("unknown parameter {name}={value}"))
                    .hint("expected since=NUMBER, follow=true|false, format=json|text"));
            }
        }
    }
    let records = stream::unfold(Some((edge, since)), move |at| async move {
        let (edge, mut since) = at?;
        loop {
            let stirred = edge.stirred();
            let text = edge.read_records(since, |records| written(records, format, &mut since));
            if !text.is_empty() {
                drop(stirred);
                return Some((frame(text), Some((edge, since))));
            }
            if !follows {
                return None;
            }
            stirred.await;
        }
    });
    let mut answer = Response::new(StreamBody::new(records).boxed_unsync());
    let kind = match format {
        Format::Json => "application/x-ndjson",
        Format::Text => "text/plain; charset=utf-8",
    };
    answer
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    Ok(answer)
}

fn frame(text: String) -> Result<Frame<Bytes>, Infallible> {
    Ok(Frame::data(Bytes::from(text)))
}

fn written(records: &[Record], format: Format, since: &mut u64) -> String {
    let mut text = String::new();
    for record in records.iter().take(CHUNK) {
        match format {
            Format::Json => {
                text.push_str(
                    &serde_json::to_string(record).expect("a record is plain data and always serializes"),
                );
            }
            Format::Text => text.push_str(&line(record)),
        }
        text.push('\n');
        *since = record.seq + 1;
    }
    text
}
