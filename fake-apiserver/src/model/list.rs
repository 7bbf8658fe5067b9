//! LIST and GET.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::api::{Form, Status};

use super::catalog::Kind;
use super::object::Stored;

/// What becomes of a LIST.
#[derive(Debug)]
pub enum ListOutcome {
    /// A page.
    Page(Page),
    /// A refusal.
    Refused(Status),
    /// Not yet: ask again when something was written, and at `until`.
    Wait {
        /// When the server gives up waiting.
        until: Duration,
    },
}

/// What becomes of a GET.
#[derive(Debug)]
pub enum GetOutcome {
    /// The object and its body.
    Found {
        /// The object.
        object: Arc<Stored>,
        /// The body, with its newline.
        body: Bytes,
    },
    /// A refusal.
    Refused(Status),
    /// Not yet: ask again when something was written, and at `until`.
    Wait {
        /// When the server gives up waiting.
        until: Duration,
    },
}

/// One page of a list.
#[derive(Debug, Clone)]
pub struct Page {
    /// Of which kind.
    pub kind: &'static Kind,
    /// How much of each object.
    pub form: Form,
    /// `metadata.resourceVersion`.
    pub resource_version: u64,
    /// `metadata.continue`.
    pub continue_token: Option<String>,
    /// `metadata.remainingItemCount`.
    pub remaining: Option<i64>,
    /// The items, in order.
    pub items: Vec<Arc<Stored>>,
}

impl Page {
    /// The body, with its newline.
    pub fn encode(&self) -> Bytes {
        Bytes::new()
    }

    /// As JSON value, in the order of the wire, for a script that edits it (written by [`super::encode_json`]).
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::Value::Null
    }
}
