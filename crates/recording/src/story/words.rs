//! Endings, errors and replies, as a scenario has them.

use scenario::raw::{ActionKey, At, Json, OneOrMany, Reply, StatusKeys, Text};
use serde_json::Value;
use trace::fault::Ending;

use super::exchange::Exchange;
use crate::steps::at;

/// Returns an ending as an action.
pub(super) fn ending(how: Ending) -> ActionKey {
    match how {
        Ending::Eof => ActionKey::Eof(().into()),
        Ending::Fin => ActionKey::Fin(().into()),
        Ending::Rst => ActionKey::Rst(().into()),
        Ending::Stall => ActionKey::Stall(().into()),
        Ending::NoCloseNotify => ActionKey::NoCloseNotify(().into()),
        Ending::RstStream(code) => ActionKey::RstStream(code.into()),
        Ending::Goaway(_) => ActionKey::End(how.into()),
    }
}

/// Returns an ERROR event. `status`: its Status, if that was recorded.
pub(super) fn error(code: u16, reason: &str, status: Option<&Value>) -> ActionKey {
    let has_code = code != 0 && status.is_none_or(|status| status.get("code").is_some());
    let keys = StatusKeys {
        code: has_code.then(|| u64::from(code).into()),
        reason: Some(reason).filter(|reason| !reason.is_empty()).and_then(at),
        message: member(status, "message"),
        retry_after_seconds: retry_after_seconds(status),
        causes: causes(status),
    };
    ActionKey::Error(keys.into())
}

/// Returns a response with a status. `body`: what was sent, if that was recorded.
pub(super) fn reply(
    exchange: &Exchange<'_>,
    status: u16,
    retry_after: Option<&str>,
    body: Option<Value>,
) -> ActionKey {
    let mut reply = Reply {
        status: at(status),
        retry_after: retry_after.map(Text::from),
        ..Reply::default()
    };
    match body {
        Some(body) if body["kind"] == "Status" && body.is_object() => {
            reply.code = match body.get("code") {
                None => at("absent"),
                Some(code) if *code == status => None,
                Some(code) => Some(text(code).into()),
            };
            reply.reason = member(Some(&body), "reason");
            reply.message = member(Some(&body), "message");
            reply.retry_after_seconds = retry_after_seconds(Some(&body));
            reply.causes = causes(Some(&body));
        }
        Some(Value::String(text)) => reply.body = Some(Text(text).into()),
        Some(json) => reply.json = Some(Json(json).into()),
        None => {
            let body = exchange.body.as_ref();
            reply.reason = body.and_then(|body| body.reason).and_then(at);
            reply.message = body.and_then(|body| body.message).and_then(at);
        }
    }
    let has_token = exchange.body.as_ref().is_some_and(|body| body.has_token);
    reply.inconsistent_token = has_token.then(|| true.into());
    ActionKey::Reply(reply.into())
}

/// Returns a member of a Status.
fn member(status: Option<&Value>, name: &str) -> Option<At<Text>> {
    Some(text(status?.get(name)?).into())
}

/// Returns a value as text.
fn text(value: &Value) -> Text {
    Text(value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}

fn retry_after_seconds(status: Option<&Value>) -> Option<At<u64>> {
    Some(status?["details"].get("retryAfterSeconds")?.as_u64()?.into())
}

fn causes(status: Option<&Value>) -> Option<At<OneOrMany<Text>>> {
    let causes = status?["details"]["causes"].as_array()?;
    let reasons: Vec<Text> = causes.iter().map(|cause| text(&cause["reason"])).collect();
    (!reasons.is_empty()).then(|| OneOrMany(reasons).into())
}
