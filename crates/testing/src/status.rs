//! Failures as a kube-apiserver reports them; the scenario language decides what is sent of them (`reply`, `error`).

use std::time::Duration;

use apimachinery::status as wire;
use serde_json::{Map, Value, json};

/// A `Status` of kind Failure: the body of a failed request, or of an ERROR event on a watch.
///
/// ```
/// use fake_apiserver_testing::Status;
///
/// let denied = Status::forbidden("quota exceeded");
/// let odd = Status::new(418).reason("Teapot").message("short and stout");
/// # let _ = (denied, odd);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Status {
    code: u16,
    reason: Option<String>,
    message: Option<String>,
    retry_after_seconds: Option<u32>,
    retry_after_header: Option<String>,
    causes: Vec<String>,
    inconsistent_token: bool,
}

impl Status {
    /// A Status with this code and nothing else.
    pub fn new(code: u16) -> Self {
        Self {
            code,
            reason: None,
            message: None,
            retry_after_seconds: None,
            retry_after_header: None,
            causes: Vec::new(),
            inconsistent_token: false,
        }
    }

    /// Sets the machine-readable `reason`: `Expired`, `AlreadyExists`, …
    #[must_use]
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// Sets the `message`.
    #[must_use]
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }

    /// Adds an entry to `details.causes`, by its reason.
    #[must_use]
    pub fn cause(mut self, reason: impl Into<String>) -> Self {
        self.causes.push(reason.into());
        self
    }

    /// Sets the `Retry-After` header and `details.retryAfterSeconds`, in whole seconds.
    #[must_use]
    pub fn retry_after(mut self, seconds: u32) -> Self {
        self.retry_after_seconds = Some(seconds);
        self.retry_after_header = Some(seconds.to_string());
        self
    }

    /// Sets the `Retry-After` header as it is: a date, or text that is neither date nor number.
    #[must_use]
    pub fn retry_after_header(mut self, value: impl Into<String>) -> Self {
        self.retry_after_header = Some(value.into());
        self
    }

    /// Offers a continue token from which an inconsistent list can be continued, as a kube-apiserver does with
    /// [`Status::expired`] on a later page.
    #[must_use]
    pub fn inconsistent_token(mut self) -> Self {
        self.inconsistent_token = true;
        self
    }

    /// 410 Expired: the resourceVersion or continue token is too old.
    pub fn expired() -> Self {
        Self::new(410)
            .reason("Expired")
            .message(wire::Status::expired_etcd_watch().message)
    }

    /// 410 Expired on a later page: the continue token is too old. It offers another one, with which the list can be
    /// continued inconsistently.
    pub fn expired_token() -> Self {
        Self::new(410)
            .reason("Expired")
            .message(wire::Status::expired_continue(Some("")).message)
            .inconsistent_token()
    }

    /// 429 TooManyRequests with `Retry-After`, in whole seconds.
    pub fn too_many_requests(retry_after_seconds: u32) -> Self {
        Self::new(429)
            .reason("TooManyRequests")
            .message("Too many requests, please try again later.")
            .retry_after(retry_after_seconds)
    }

    /// 503 ServiceUnavailable: the apiserver is overloaded or starting.
    pub fn service_unavailable() -> Self {
        Self::new(503)
            .reason("ServiceUnavailable")
            .message("the server is currently unable to handle the request")
    }

    /// 504 Timeout "Too large resource version": a watch cache is behind the requested version. With `Retry-After: 1`.
    pub fn too_large_resource_version() -> Self {
        Self::new(504)
            .reason("Timeout")
            .message("Timeout: Too large resource version")
            .cause("ResourceVersionTooLarge")
            .retry_after(1)
    }

    /// 500 InternalError.
    pub fn internal_error(message: impl Into<String>) -> Self {
        Self::new(500).reason("InternalError").message(message)
    }

    /// 409 Conflict: the object was modified since it was read.
    pub fn conflict() -> Self {
        Self::new(409).reason("Conflict").message(
            "Operation cannot be fulfilled: the object has been modified; please apply your changes to the latest \
             version and try again",
        )
    }

    /// 409 AlreadyExists.
    pub fn already_exists() -> Self {
        Self::new(409)
            .reason("AlreadyExists")
            .message("object already exists")
    }

    /// 404 NotFound.
    pub fn not_found() -> Self {
        Self::new(404)
            .reason("NotFound")
            .message("the server could not find the requested resource")
    }

    /// 403 Forbidden.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(403).reason("Forbidden").message(message)
    }

    /// 401 Unauthorized: the credentials expired.
    pub fn unauthorized() -> Self {
        Self::new(401).reason("Unauthorized").message("Unauthorized")
    }

    /// 422 Invalid: validation rejected the object.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(422).reason("Invalid").message(message)
    }

    /// 403 in the words of a validating webhook that denies a write.
    pub fn denied_by_webhook(webhook: &str, message: &str) -> Self {
        Self::forbidden(format!(
            "admission webhook \"{webhook}\" denied the request: {message}"
        ))
    }

    /// Returns the argument of the action `error`.
    pub(crate) fn event(&self) -> Value {
        let mut spec = self.spec();
        spec.insert("code".to_owned(), json!(self.code));
        Value::Object(spec)
    }

    /// Returns the argument of the action `reply`.
    pub(crate) fn reply(&self) -> Value {
        let mut reply = self.spec();
        reply.insert("status".to_owned(), json!(self.code));
        if let Some(after) = &self.retry_after_header {
            reply.insert("retry_after".to_owned(), json!(after));
        }
        if self.inconsistent_token {
            reply.insert("inconsistent_token".to_owned(), json!(true));
        }
        Value::Object(reply)
    }

    fn spec(&self) -> Map<String, Value> {
        let mut spec = Map::new();
        let texts = [("reason", &self.reason), ("message", &self.message)];
        for (key, text) in texts {
            spec.extend(text.as_ref().map(|text| (key.to_owned(), json!(text))));
        }
        if let Some(seconds) = self.retry_after_seconds {
            spec.insert("retry_after_seconds".to_owned(), json!(seconds));
        }
        if !self.causes.is_empty() {
            spec.insert("causes".to_owned(), json!(self.causes));
        }
        spec
    }
}

/// Formats a time in the scenario language. Zero becomes a millisecond: the language has no empty time.
pub(crate) fn time(time: Duration) -> String {
    format!("{}ms", time.as_millis().max(1))
}
