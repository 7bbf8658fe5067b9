//! Responses of the control API: JSON, with one format for all errors.

use std::convert::Infallible;

use bytes::Bytes;
use fake_apiserver::scenario::LoadErrors;
use http::header::{ALLOW, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use http::{Method, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};

use crate::check::listed;

/// A response, complete or streaming.
pub(super) type ControlResponse = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// An error: what is wrong, and what to do next.
#[derive(Debug)]
pub(super) struct Refusal {
    status: u16,
    error: String,
    hint: Option<String>,
    mistakes: Vec<Value>,
    allow: Option<String>,
}

impl Refusal {
    pub(super) fn new(status: u16, error: impl Into<String>) -> Self {
        Self {
            status,
            error: error.into(),
            hint: None,
            mistakes: Vec::new(),
            allow: None,
        }
    }

    /// 400.
    pub(super) fn bad(error: impl Into<String>) -> Self {
        Self::new(400, error)
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// 400, with all mistakes of a text and their positions.
    pub(super) fn mistakes(errors: &LoadErrors) -> Self {
        let mistakes = listed(errors);
        let first = errors.errors().first();
        let error = match (first, errors.count()) {
            (Some(first), 1) => format!("{}:{}: {}", first.at.line, first.at.column, first.message),
            (Some(first), count) => format!(
                "{}:{}: {} (and {} more)",
                first.at.line,
                first.at.column,
                first.message,
                count - 1
            ),
            (None, _) => "the text cannot be parsed".to_owned(),
        };
        Self {
            mistakes,
            hint: first.and_then(|first| first.hint.clone()),
            ..Self::bad(error)
        }
    }

    pub(super) fn into_answer(self) -> ControlResponse {
        let mut body = serde_json::Map::new();
        body.insert("error".to_owned(), json!(self.error));
        if let Some(hint) = self.hint {
            body.insert("hint".to_owned(), json!(hint));
        }
        if !self.mistakes.is_empty() {
            body.insert("mistakes".to_owned(), json!(self.mistakes));
        }
        let mut answer = json_answer(self.status, &Value::Object(body));
        let headers = answer.headers_mut();
        if self.status == 401 {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(allow) = self.allow.and_then(|allow| HeaderValue::try_from(allow).ok()) {
            headers.insert(ALLOW, allow);
        }
        answer
    }
}

/// Returns a complete response, with a newline at its end.
pub(super) fn json_answer(status: u16, value: &Value) -> ControlResponse {
    let mut answer = Response::new(Full::new(Bytes::from(format!("{value:#}\n"))).boxed_unsync());
    *answer.status_mut() = StatusCode::from_u16(status).expect("our own statuses are statuses");
    answer
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

/// Checks that the method is one of `methods`.
pub(super) fn allowed(method: &Method, methods: &[Method]) -> Result<(), Refusal> {
    if methods.contains(method) {
        return Ok(());
    }
    let allow: Vec<&str> = methods.iter().map(Method::as_str).collect();
    let allow = allow.join(", ");
    Err(Refusal {
        allow: Some(allow.clone()),
        ..Refusal::new(405, format!("method {method} is not allowed; allowed: {allow}"))
    })
}

/// Checks the token of a request, in constant time.
pub(super) fn authenticated(headers: &HeaderMap, token: &str) -> Result<(), Refusal> {
    let sent = headers
        .get(AUTHORIZATION)
        .and_then(|value| value.as_bytes().strip_prefix(b"Bearer "))
        .unwrap_or_default();
    let token = token.as_bytes();
    let differs = sent
        .iter()
        .chain(std::iter::repeat(&0))
        .zip(token)
        .fold(0, |differs, (sent, wanted)| differs | (sent ^ wanted));
    if differs == 0 && sent.len() == token.len() {
        Ok(())
    } else {
        Err(Refusal::new(401, "the control API requires its bearer token")
            .hint("send `Authorization: Bearer TOKEN`; `fake-apiserver ctl status` shows the token of a running server"))
    }
}
