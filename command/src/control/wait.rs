//! `POST /v1/wait`: the fence of a test. It ends when the trace shows what is waited for, and never by guessing a time.

use std::path::Path;
use std::time::Duration;

use fake_apiserver::net::Edge;
use fake_apiserver::record::line::{line, span};
use fake_apiserver::record::{Record, What};
use fake_apiserver::scenario::{Waiting, parse_wait};
use serde_json::json;

use super::answer::{Answer, Refusal, json_answer};

/// Waits. Answers with the record that was waited for, or with 504 and what came nearest.
pub(super) async fn wait(edge: Edge, text: &str) -> Result<Answer, Refusal> {
    let wait = parse_wait(Path::new("wait"), text).map_err(|errors| Refusal::mistakes(&errors))?;
    let timeout_ms = wait.timeout_ms;
    let next = edge.steer(|server, _| server.next_record()).unwrap_or_default();
    let mut waiting = Waiting::new(wait, next);
    let words = waiting.words();
    let mut last_request = None;
    let met = tokio::time::timeout(Duration::from_millis(timeout_ms), async {
        let mut at = 0;
        loop {
            let stirred = edge.stirred();
            let met = edge.read_records(at, |records| {
                for record in records {
                    at = record.seq + 1;
                    if matches!(record.what, What::Request { .. }) {
                        last_request = Some(line(record));
                    }
                    if waiting.is_met(record) {
                        return Some(record.clone());
                    }
                }
                None
            });
            if let Some(met) = met {
                return met;
            }
            stirred.await;
        }
    })
    .await;
    match met {
        Ok(record) => Ok(met_by(&record)),
        Err(_) => {
            let nearest = match last_request {
                Some(request) => format!("the last request was: {request}"),
                None => "no request came at all".to_owned(),
            };
            Err(
                Refusal::new(504, format!("waited {} for {words}; {nearest}", span(timeout_ms)))
                    .hint("GET /v1/trace?format=text shows what came instead"),
            )
        }
    }
}

fn met_by(record: &Record) -> Answer {
    json_answer(
        200,
        &json!({
            "record": record,
            "line": line(record),
            "stream": record.what.stream(),
            "nextRecord": record.seq + 1,
        }),
    )
}
