//! `POST /v1/wait`: waits until the trace fulfils a condition, so that tests need no sleeps.

use fake_apiserver::net::{Edge, SteerError};
use fake_apiserver::record::Record;
use fake_apiserver::record::line::line;
use serde_json::json;

use super::answer::{ControlResponse, Refusal, json_answer};

/// Waits. Responds with the matching record, or with 504 and the last request.
pub(super) async fn wait(edge: Edge, text: &str) -> Result<ControlResponse, Refusal> {
    match edge.wait_for(text).await {
        Ok(record) => Ok(met_by(&record)),
        Err(SteerError::Mistakes(errors)) => Err(Refusal::mistakes(&errors)),
        Err(late @ SteerError::TimedOut(_)) => {
            Err(Refusal::new(504, late.to_string()).hint("GET /v1/trace?format=text shows what came instead"))
        }
        Err(other @ (SteerError::Refused(_) | SteerError::Stopped)) => {
            Err(Refusal::new(503, other.to_string()))
        }
    }
}

fn met_by(record: &Record) -> ControlResponse {
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
