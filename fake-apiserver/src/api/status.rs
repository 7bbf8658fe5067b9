//! The body of every refusal.

use bytes::Bytes;

use super::Answer;

/// A Kubernetes Status.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Status {
    /// `code`.
    pub code: u16,
    /// `reason`; empty: left out.
    pub reason: String,
    /// `message`.
    pub message: String,
    /// `metadata.continue`; empty: left out.
    pub continue_token: String,
    /// `details`; `None`: left out.
    pub details: Option<Details>,
}

/// `details` of a Status.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Details {
    /// `name`.
    pub name: String,
    /// `group`.
    pub group: String,
    /// `kind`: the resource's name, or the Kind for validation errors.
    pub kind: String,
    /// `uid`.
    pub uid: String,
    /// `causes`.
    pub causes: Vec<Cause>,
    /// `retryAfterSeconds`; 0: left out.
    pub retry_after_seconds: u32,
}

/// One of `details.causes`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cause {
    /// `reason`.
    pub reason: String,
    /// `message`.
    pub message: String,
    /// `field`.
    pub field: String,
}

impl Status {
    /// The body, with its newline.
    pub fn to_bytes(&self) -> Bytes {
        Bytes::new()
    }

    /// As JSON value.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::Value::Null
    }

    /// The whole answer: code, `Content-Type`, `Retry-After` where the details say so, body.
    pub fn into_answer(self) -> Answer {
        Answer {
            status: self.code,
            headers: Vec::new(),
            body: self.to_bytes(),
        }
    }
}
