//! `GET /v1/trace`: a stream of records, one per line, as JSON, text, or rows for a view.
//!
//! A stream with a rate never holds back more than a chunk: it leaves out what is over the rate, and counts it.

use std::convert::Infallible;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use fake_apiserver::net::Edge;
use fake_apiserver::record::line::line;
use fake_apiserver::record::{Record, What};
use futures::{StreamExt as _, stream};
use http::Response;
use http::header::{CONTENT_TYPE, HeaderValue};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use percent_encoding::percent_decode_str;
use report::timeline::{Line, drawn};
use serde::Serialize;

use super::answer::{ControlResponse, Refusal};
use super::catch_up;
use crate::watches::{Asked, Filter, Known, Watches, plural};

/// Maximum records per chunk.
const CHUNK: usize = 500;

/// Interval at which records of a stream with a rate are read.
const TICK: Duration = Duration::from_millis(100);

/// Chunks of a stream with a rate, in a second.
const TICKS_A_SECOND: usize = 10;

/// Maximum number of records that one turn of a filtered stream looks at.
const LOOKED_AT: usize = 20_000;

/// Format of the records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Json,
    Text,
    Rows,
}

/// What a stream has.
#[derive(Debug, Clone)]
struct Options {
    since: u64,
    follows: bool,
    format: Format,
    filter: Filter,
    /// The newest records that exist already, at most.
    last: Option<usize>,
    /// Records a second, at most.
    rate: Option<usize>,
    /// Records that may be sent now: those of a second that had less.
    room: usize,
}

/// A record of a view.
#[derive(Serialize)]
struct Row<'r> {
    #[serde(flatten)]
    line: Line,
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<&'r str>,
}

/// Returns the records that a query asks for; with `follow` the response does not end.
pub(super) fn follow(edge: Edge, watches: Watches, query: &str) -> Result<ControlResponse, Refusal> {
    let options = parsed(query)?;
    let format = options.format;
    let records = match options.format == Format::Rows || !options.filter.is_empty() || options.last.is_some()
    {
        true => selected(edge, watches, options).boxed(),
        false => all(edge, options).boxed(),
    };
    let mut answer = Response::new(StreamBody::new(records).boxed_unsync());
    let kind = match format {
        Format::Json | Format::Rows => "application/x-ndjson",
        Format::Text => "text/plain; charset=utf-8",
    };
    answer
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    Ok(answer)
}

fn parsed(query: &str) -> Result<Options, Refusal> {
    let mut options = Options {
        since: 0,
        follows: false,
        format: Format::Json,
        filter: Filter::default(),
        last: None,
        rate: None,
        room: 0,
    };
    for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
        let number = |what: &str| {
            let number = value.parse::<u64>();
            number.map_err(|_| Refusal::bad(format!("{name}={value}: expected the number of {what}")))
        };
        match (name, value) {
            ("since", _) => options.since = number("a record")?,
            ("last", _) => options.last = Some(number("records")? as usize),
            ("rate", _) => options.rate = Some((number("records a second")? as usize).max(TICKS_A_SECOND)),
            ("follow", "true") => options.follows = true,
            ("follow", "false") => options.follows = false,
            ("format", "json") => options.format = Format::Json,
            ("format", "text") => options.format = Format::Text,
            ("format", "rows") => options.format = Format::Rows,
            ("client" | "resource", _) => read_filter(&mut options.filter, name, value),
            _ => {
                return Err(Refusal::bad(format!("unknown parameter {name}={value}")).hint(
                    "expected since=NUMBER, last=NUMBER, follow=true|false, format=json|text|rows, client=TEXT, \
                     resource=PLURAL, rate=NUMBER",
                ));
            }
        }
    }
    if options.rate.is_some() && options.format != Format::Rows {
        return Err(
            Refusal::bad("rate leaves records out, which only format=rows can show").hint("add format=rows"),
        );
    }
    Ok(options)
}

/// Takes a condition of a filter from a query; an empty one is none.
pub(super) fn read_filter(filter: &mut Filter, name: &str, value: &str) {
    let value = percent_decode_str(value).decode_utf8_lossy().into_owned();
    let value = Some(value).filter(|value| !value.is_empty());
    match name {
        "client" => filter.client = value,
        _ => filter.resource = value,
    }
}

type Part = Result<Frame<Bytes>, Infallible>;

/// Every record, as soon as it is there.
fn all(edge: Edge, options: Options) -> impl futures::Stream<Item = Part> + Send {
    stream::unfold(Some((edge, options.since)), move |at| async move {
        let (edge, mut since) = at?;
        loop {
            let stirred = edge.stirred();
            let text = edge.read_records(since, |records| written(records, options.format, &mut since));
            if !text.is_empty() {
                drop(stirred);
                return Some((frame(text), Some((edge, since))));
            }
            if !options.follows {
                return None;
            }
            stirred.await;
        }
    })
}

/// The records that a filter lets pass, as soon as it is known whose they are.
fn selected(edge: Edge, watches: Watches, options: Options) -> impl futures::Stream<Item = Part> + Send {
    let begin = Some((edge, watches, options, true));
    stream::unfold(begin, async |at| {
        let (edge, watches, mut options, mut is_first) = at?;
        if is_first {
            catch_up(&edge, &watches).await;
        }
        loop {
            if !is_first && options.rate.is_some() {
                tick().await;
            }
            let stirred = edge.stirred();
            let (text, is_behind) = edge.read_records(0, |records| {
                watches.known(records, |known| turn(records, known, &mut options, is_first))
            });
            is_first = false;
            if !text.is_empty() {
                drop(stirred);
                return Some((frame(text), Some((edge, watches, options, is_first))));
            }
            if is_behind {
                tokio::task::yield_now().await;
            } else if !options.follows {
                return None;
            } else if options.rate.is_none() {
                stirred.await;
            }
        }
    })
}

/// Returns the lines of one turn, and whether there are more records.
fn turn(kept: &[Record], known: &Known<'_>, options: &mut Options, is_first: bool) -> (String, bool) {
    let records = &kept[..kept.partition_point(|record| record.seq < known.next())];
    options.room = options.rate.map_or(usize::MAX, |rate| match is_first {
        true => rate.max(options.last.unwrap_or(0)),
        false => rate.min(options.room + rate / TICKS_A_SECOND),
    });
    if let Some(last) = options.last.filter(|_| is_first) {
        let first = first_of_last(records, known, &options.filter, last);
        options.since = options.since.max(first);
    }
    let from = records.partition_point(|record| record.seq < options.since);
    let looked_at = &records[from..];
    let looked_at = &looked_at[..looked_at.len().min(LOOKED_AT)];
    let text = chosen(looked_at, known, options);
    (text, kept.last().is_some_and(|last| last.seq >= options.since))
}

/// Returns where the newest `last` records begin that a filter lets pass.
fn first_of_last(records: &[Record], known: &Known<'_>, filter: &Filter, last: usize) -> u64 {
    let newest = records.iter().rev().filter(|record| fits(record, known, filter));
    let end = records.last().map_or(0, |record| record.seq + 1);
    newest.take(last).last().map_or(end, |first| first.seq)
}

/// Returns whether a filter lets a record pass. What concerns no request passes: rules, changes of the server.
fn fits(record: &Record, known: &Known<'_>, filter: &Filter) -> bool {
    if filter.is_empty() {
        return true;
    }
    let what = &record.what;
    if let What::Wrote(write) = what {
        let is_of = |resource: &String| *plural(resource) == *write.resource;
        return filter.resource.as_ref().is_none_or(is_of);
    }
    match what.stream() {
        Some(_) => whose(record, known).is_some_and(|asked| filter.fits(&asked)),
        None => !matches!(what, What::Connected { .. } | What::Disconnected { .. }),
    }
}

/// Returns who sent the request that a record belongs to.
fn whose(record: &Record, known: &Known<'_>) -> Option<Rc<Asked>> {
    known.asked(record.what.stream()?)
}

/// Returns the lines of some records, and moves on. Over the rate, events and writes are left out first, evenly.
fn chosen(records: &[Record], known: &Known<'_>, options: &mut Options) -> String {
    let fitting = records
        .iter()
        .filter(|record| fits(record, known, &options.filter));
    // Without a rate the rest is in the next chunk.
    let (fitting, last) = match options.rate {
        Some(_) => (fitting.collect(), records.last()),
        None => {
            let fitting: Vec<&Record> = fitting.take(CHUNK).collect();
            let is_full = fitting.len() == CHUNK;
            let last = fitting.last().copied().filter(|_| is_full);
            (fitting, last.or(records.last()))
        }
    };
    let (shown, left_out) = thinned(fitting, options.room);
    options.room -= shown.len();
    let mut text = String::new();
    if left_out > 0 {
        push_json(&mut text, &serde_json::json!({ "leftOut": left_out }));
    }
    for record in shown {
        match options.format {
            Format::Rows => push_row(&mut text, record, known),
            Format::Json | Format::Text => push(&mut text, record, options.format),
        }
    }
    if let Some(last) = last {
        options.since = last.seq + 1;
    }
    text
}

/// Leaves out what is more than `room`. Returns the rest, and the number of those left out.
fn thinned(records: Vec<&Record>, room: usize) -> (Vec<&Record>, usize) {
    let over = records.len().saturating_sub(room);
    if over == 0 {
        return (records, 0);
    }
    let is_common = |record: &Record| {
        if let What::Frame { frame, .. } = &record.what {
            return frame.kind.is_change() && !frame.scripted && frame.whole();
        }
        matches!(record.what, What::Wrote(_))
    };
    let common = records.iter().filter(|record| is_common(record)).count();
    let (rare, kept_rare) = (records.len() - common, (records.len() - common).min(room));
    let kept_common = room - kept_rare;
    // Of `all` things, `kept` at even distances.
    let keeps = |nth: usize, all: usize, kept: usize| nth * kept / all != (nth + 1) * kept / all;
    let (mut nth_common, mut nth_rare) = (0, 0);
    let shown = records.into_iter().filter(|record| {
        let (nth, all, kept) = match is_common(record) {
            true => (&mut nth_common, common, kept_common),
            false => (&mut nth_rare, rare, kept_rare),
        };
        *nth += 1;
        keeps(*nth - 1, all, kept)
    });
    (shown.collect(), over)
}

fn push_json(text: &mut String, value: &impl Serialize) {
    let json = serde_json::to_string(value);
    text.push_str(&json.expect("a record is plain data and always serializes"));
    text.push('\n');
}

fn push_row(text: &mut String, record: &Record, known: &Known<'_>) {
    let asked = whose(record, known);
    let (mut client, mut resource) = (None, None);
    if let Some(asked) = &asked {
        (client, resource) = (named(&asked.client), named(&asked.resource));
    }
    let mut object = None;
    if let What::Frame { frame, .. } = &record.what {
        object = frame.object.as_deref().and_then(|object| named(&object.key));
    } else if let What::Wrote(write) = &record.what {
        (object, resource) = (named(&write.object.key), named(&write.resource));
    } else if let What::Withheld { object: withheld, .. } = &record.what {
        object = named(&withheld.key);
    }
    let line = drawn(record);
    push_json(
        text,
        &Row {
            line,
            client,
            resource,
            object,
        },
    );
}

fn named(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

#[expect(
    clippy::disallowed_methods,
    reason = "the edge sends a stream with a rate its records at intervals"
)]
async fn tick() {
    tokio::time::sleep(TICK).await;
}

fn frame(text: String) -> Part {
    Ok(Frame::data(Bytes::from(text)))
}

fn written(records: &[Record], format: Format, since: &mut u64) -> String {
    let mut text = String::new();
    for record in records.iter().take(CHUNK) {
        push(&mut text, record, format);
        *since = record.seq + 1;
    }
    text
}

fn push(text: &mut String, record: &Record, format: Format) {
    if format == Format::Text {
        text.push_str(&line(record));
        text.push('\n');
    } else {
        push_json(text, record);
    }
}

#[cfg(test)]
mod tests {
    use fake_apiserver::record::{ConnId, Replica, Side, StreamId, Verb};

    use super::*;

    /// Records of connections, of which the last one has a request.
    fn trace(connections: u64) -> Vec<Record> {
        let closed = |conn| What::Disconnected {
            conn: ConnId(conn),
            by: Side::Client,
        };
        let request = What::Request {
            stream: StreamId(1),
            conn: ConnId(connections),
            verb: Verb::List,
            method: "GET".to_owned(),
            path: "/api/v1/pods".to_owned(),
            query: Vec::new(),
            accept: None,
            user_agent: Some("late/1".to_owned()),
            replica: Replica::Primary,
            violations: Vec::new(),
        };
        let whats = (0..connections).map(closed).chain([request]);
        { (0..).zip(whats) }
            .map(|(seq, what)| Record {
                seq,
                at: Duration::from_secs(1),
                what,
            })
            .collect()
    }

    #[test]
    fn a_record_after_many_that_do_not_fit_is_found() {
        let (records, watches) = (trace(50_000), Watches::new(false));
        let mut options = parsed("client=late&format=text").unwrap();
        let mut turns = 0;
        let text = loop {
            turns += 1;
            let (text, is_behind) =
                watches.known(&records, |known| turn(&records, known, &mut options, turns == 1));
            if !text.is_empty() || !is_behind {
                break text;
            }
        };
        assert!(text.contains("LIST"), "{text:?} after {turns} turns");
    }
}
