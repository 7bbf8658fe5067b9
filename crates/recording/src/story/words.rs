//! Endings, errors and replies, as a scenario file writes them.

use serde_json::{Map, Value, json};
use trace::fault::Ending;

use super::exchange::Exchange;
use crate::yaml;

/// Returns an ending as an action.
pub(super) fn ending(how: Ending) -> String {
    match how {
        Ending::Eof | Ending::Fin | Ending::Rst | Ending::Stall | Ending::NoCloseNotify => how.word(),
        Ending::RstStream(_) => ending_value(how),
        Ending::Goaway(_) => format!("{{end: {}}}", ending_value(how)),
    }
}

/// Returns an ending as the value of an action.
pub(super) fn ending_value(how: Ending) -> String {
    match how {
        Ending::Eof | Ending::Fin | Ending::Rst | Ending::Stall | Ending::NoCloseNotify => how.word(),
        Ending::RstStream(code) => format!("{{rst_stream: {}}}", code.word()),
        Ending::Goaway(code) => format!("{{goaway: {}}}", code.word()),
    }
}

/// Returns an ERROR event. `status`: its Status, if that was recorded.
pub(super) fn error(code: u16, reason: &str, status: Option<&Value>) -> String {
    let mut keys = Map::new();
    let has = |name: &str| status.is_none_or(|status| status.get(name).is_some());
    if code != 0 && has("code") {
        keys.insert("code".to_owned(), json!(code));
    }
    if !reason.is_empty() {
        keys.insert("reason".to_owned(), json!(reason));
    }
    details(status, &mut keys);
    format!("{{error: {}}}", yaml::flow(&Value::Object(keys)))
}

/// Returns a response with a status. `body`: what was sent, if that was recorded.
pub(super) fn reply(
    exchange: &Exchange<'_>,
    status: u16,
    retry_after: Option<&str>,
    body: Option<Value>,
) -> String {
    let mut keys = Map::from_iter([("status".to_owned(), json!(status))]);
    if let Some(after) = retry_after {
        keys.insert("retry_after".to_owned(), json!(after));
    }
    match body {
        Some(body) if body["kind"] == "Status" && body.is_object() => {
            match body.get("code") {
                None => drop(keys.insert("code".to_owned(), json!("absent"))),
                Some(code) if *code != json!(status) => drop(keys.insert("code".to_owned(), code.clone())),
                Some(_) => {}
            }
            if let Some(reason) = body.get("reason") {
                keys.insert("reason".to_owned(), reason.clone());
            }
            details(Some(&body), &mut keys);
        }
        Some(Value::String(text)) => drop(keys.insert("body".to_owned(), json!(text))),
        Some(json) => drop(keys.insert("json".to_owned(), json)),
        None => {
            if let Some(body) = &exchange.body {
                if let Some(reason) = body.reason {
                    keys.insert("reason".to_owned(), json!(reason));
                }
                if let Some(message) = body.message {
                    keys.insert("message".to_owned(), json!(message));
                }
            }
        }
    }
    if exchange.body.as_ref().is_some_and(|body| body.has_token) {
        keys.insert("inconsistent_token".to_owned(), json!(true));
    }
    format!("{{reply: {}}}", yaml::flow(&Value::Object(keys)))
}

/// Adds what a Status has beside code and reason.
fn details(status: Option<&Value>, keys: &mut Map<String, Value>) {
    let Some(status) = status else { return };
    if let Some(message) = status.get("message") {
        keys.insert("message".to_owned(), message.clone());
    }
    if let Some(seconds) = status["details"].get("retryAfterSeconds") {
        keys.insert("retry_after_seconds".to_owned(), seconds.clone());
    }
    let causes = status["details"]["causes"].as_array();
    let causes: Vec<Value> = causes
        .into_iter()
        .flatten()
        .map(|cause| cause["reason"].clone())
        .collect();
    if !causes.is_empty() {
        keys.insert("causes".to_owned(), Value::Array(causes));
    }
}
