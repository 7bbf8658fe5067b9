//! What a record describes, and its groups. A reader matches those of a [`Group`] that concern it, and leaves the others out
//! as a whole: a new record concerns the readers of its group alone.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{ConnId, Frame, ObjectRef, Replica, RunEnd, Side, StoreWrite, StreamId, Turn, Verb};
use crate::content::Content;
use crate::fault::Ending;
use crate::report::Report;

/// Declares the records by group: [`What`], which is stored, and its groups, which borrow from it.
macro_rules! records {
    ($(
        #[doc = $about:literal]
        $group:ident($view:ident) {
            $($(#[doc = $doc:literal])*
            $variant:ident $({
                $($(#[doc = $field_doc:literal])* $(#[serde($($serde:tt)*)])? $field:ident: $type:ty,)*
            })? $(($value:ident: $of:ty))?,)*
        }
    )*) => {
        /// What a record describes.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum What {
            $($($(#[doc = $doc])*
            $variant $({
                $($(#[doc = $field_doc])* $(#[serde($($serde)*)])? $field: $type,)*
            })? $(($of))?,)*)*
        }

        /// What a record describes, by group.
        #[derive(Debug, Clone, Copy)]
        pub enum Group<'a> {
            $(#[doc = $about] $group($view<'a>),)*
        }

        $(#[doc = $about]
        #[derive(Debug, Clone, Copy)]
        pub enum $view<'a> {
            $($(#[doc = $doc])*
            $variant $({
                $($(#[doc = $field_doc])* $field: &'a $type,)*
            })? $((&'a $of))?,)*
        })*

        impl What {
            /// Returns the group of the record, with what it describes.
            pub fn group(&self) -> Group<'_> {
                match self {
                    $($(Self::$variant $({ $($field),* })? $(($value))? => {
                        Group::$group($view::$variant $({ $($field),* })? $(($value))?)
                    })*)*
                }
            }
        }
    };
}

records! {
    /// Of a connection.
    Connection(ConnectionRecord) {
        /// A connection was accepted.
        Connected {
            /// Number of the connection.
            conn: ConnId,
            /// The replica whose port was connected to.
            #[serde(default)]
            replica: Replica,
            /// The client's port; `None` if the connection is not a socket.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            peer: Option<u16>,
        },
        /// The script made a connection refuse further requests (HTTP/2 GOAWAY).
        Goaway {
            /// Number of the connection.
            conn: ConnId,
        },
        /// A connection was refused because the script simulates a server that is down.
        Refused,
        /// A connection was closed.
        Disconnected {
            /// Number of the connection.
            conn: ConnId,
            /// The side that closed it.
            by: Side,
        },
    }
    /// Of a request and its response.
    Exchange(ExchangeRecord) {
        /// A complete request arrived.
        Request {
            /// Number of the request.
            stream: StreamId,
            /// The connection it came on.
            conn: ConnId,
            /// LIST, WATCH, streaming list or other.
            verb: Verb,
            /// HTTP method.
            method: String,
            /// Path without the query.
            path: String,
            /// Query parameters, decoded, in the order sent.
            query: Vec<(String, String)>,
            /// `Accept` header, verbatim.
            accept: Option<String>,
            /// `User-Agent` header, verbatim.
            #[serde(default)]
            user_agent: Option<String>,
            /// The replica whose port it was sent to.
            #[serde(default)]
            replica: Replica,
            /// List option rules of the API that the request violates (INV-15); empty for a valid request.
            violations: Vec<String>,
        },
        /// The head of a response was sent.
        Head {
            /// The request it belongs to.
            stream: StreamId,
            /// HTTP status.
            status: u16,
            /// `Retry-After` header, verbatim.
            retry_after: Option<String>,
            /// True if the script wrote this response.
            scripted: bool,
        },
        /// A complete LIST body was sent.
        Page {
            /// The request it belongs to.
            stream: StreamId,
            /// `metadata.resourceVersion`.
            resource_version: String,
            /// `metadata.continue`; empty on the last page.
            continue_token: String,
            /// `metadata.remainingItemCount`.
            remaining: Option<i64>,
            /// The items, in order.
            items: Vec<ObjectRef>,
            /// True if the script changed it.
            scripted: bool,
        },
        /// Another complete body was sent: a Status, a single object, or anything scripted.
        Body {
            /// The request it belongs to.
            stream: StreamId,
            /// Length in bytes.
            bytes: u64,
            /// `reason` if the body is a Status.
            reason: Option<String>,
            /// `message` if the body is a Status.
            message: Option<String>,
            /// `metadata.continue` of an Expired Status with an inconsistent token.
            continue_token: Option<String>,
        },
        /// A body was truncated.
        Torn {
            /// The request it belongs to.
            stream: StreamId,
            /// Number of bytes sent.
            sent: u64,
            /// Full length in bytes.
            bytes: u64,
        },
        /// A line of a watch stream was sent, completely or in part.
        Frame {
            /// The watch.
            stream: StreamId,
            /// The line.
            frame: Frame,
        },
        /// A response ended.
        End {
            /// The request it belongs to.
            stream: StreamId,
            /// How it ended.
            how: Ending,
            /// The side that ended it.
            by: Side,
        },
        /// Content of what is sent next on a response, if the trace keeps content: an item of a list or a whole line of a watch of
        /// an upstream, or what the script sent. The content of everything else is that of its write.
        Sent {
            /// The request it belongs to.
            stream: StreamId,
            /// JSON; a text if it is none.
            content: Content,
        },
        /// The script dropped an event of the store that was due on a watch.
        Withheld {
            /// The watch.
            stream: StreamId,
            /// The object of the event.
            object: ObjectRef,
        },
        /// A webhook was called, and there is an outcome.
        Webhook {
            /// The request that waited for it.
            stream: StreamId,
            /// Name of the webhook.
            webhook: String,
            /// URL that was POSTed to.
            url: String,
            /// `allowed`, `denied`, `patched`, `converted`, `rejected`, the HTTP status of an error, or why there was no response.
            verdict: String,
            /// Time from call to outcome.
            took: Duration,
        },
    }
    /// Of the store and its watch caches.
    Store(StoreRecord) {
        /// An object was written to the store.
        Wrote(write: StoreWrite),
        /// The store was restored to an earlier revision, as from a backup; later writes are undone.
        Restored {
            /// The revision after the restore.
            to: u64,
        },
        /// Another change of store or watch cache: compaction; watch cache cleared, frozen or thawed.
        Turned {
            /// The change.
            how: Turn,
            /// The server's resourceVersion after the change.
            resource_version: u64,
        },
    }
    /// Of the scenario or the rules.
    Script(ScriptRecord) {
        /// A step's trigger was met; its actions are decided.
        Step {
            /// Index in the scenario, from 0.
            step: usize,
            /// Description for the transcript.
            how: String,
        },
        /// A rule matched, or a rule without trigger was applied; its actions are decided.
        Rule {
            /// Name or number of the rule.
            rule: String,
            /// The request that matched; `None` for a rule without trigger.
            stream: Option<StreamId>,
            /// Description.
            how: String,
        },
        /// A proxy wrote an object to its upstream because of a rule, or could not.
        UpstreamWrite {
            /// Number of the write.
            write: u64,
            /// Resource and object: `configmaps default/a`.
            object: String,
            /// `created`, `configured`, `relabeled` or `deleted`; what it should have been, if there is a failure.
            how: String,
            /// Why it was not written.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            failure: Option<String>,
        },
        /// A name of the scenario file was bound to a value.
        Bound {
            /// The name, without the `$`.
            name: String,
            /// Value of `$name`: a resourceVersion.
            value: String,
            /// Value of `$name.continue`.
            continue_token: Option<String>,
        },
        /// Every step is done.
        ScriptDone,
    }
    /// Of the client under test and the run.
    Run(RunRecord) {
        /// The client reported something.
        Reported(report: Report),
        /// The process of the client exited by itself.
        ClientExited {
            /// Exit code; `None` if a signal killed it.
            code: Option<i32>,
            /// Number of the signal that killed it.
            signal: Option<i32>,
        },
        /// The harness started the client again after it exited with an error, as a kubelet does. The new process has an empty
        /// cache.
        ClientRestarted {
            /// Number of the restart, from 1.
            restart: u32,
        },
        /// The harness asked the client to stop.
        StopRequested,
        /// The time for a stopped client to close its connections is over, and some are still open.
        LeftOpen {
            /// Number of open connections.
            connections: u64,
        },
        /// The run ended.
        RunEnded(how: RunEnd),
    }
}

impl What {
    /// Returns the request that the record belongs to; `None` for connections, writes, the script and the client.
    pub fn stream(&self) -> Option<StreamId> {
        match self.group() {
            Group::Exchange(
                ExchangeRecord::Request { stream, .. }
                | ExchangeRecord::Head { stream, .. }
                | ExchangeRecord::Page { stream, .. }
                | ExchangeRecord::Body { stream, .. }
                | ExchangeRecord::Torn { stream, .. }
                | ExchangeRecord::Frame { stream, .. }
                | ExchangeRecord::Sent { stream, .. }
                | ExchangeRecord::Withheld { stream, .. }
                | ExchangeRecord::Webhook { stream, .. }
                | ExchangeRecord::End { stream, .. },
            ) => Some(*stream),
            Group::Connection(_) | Group::Store(_) | Group::Script(_) | Group::Run(_) => None,
        }
    }

    /// Returns the name of the variant, for logs.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Connected { .. } => "connected",
            Self::Goaway { .. } => "goaway",
            Self::Refused => "refused",
            Self::Disconnected { .. } => "disconnected",
            Self::Request { .. } => "request",
            Self::Head { .. } => "head",
            Self::Page { .. } => "page",
            Self::Body { .. } => "body",
            Self::Torn { .. } => "torn",
            Self::Frame { .. } => "frame",
            Self::End { .. } => "end",
            Self::Sent { .. } => "sent",
            Self::Withheld { .. } => "withheld",
            Self::Wrote(_) => "wrote",
            Self::Restored { .. } => "restored",
            Self::Turned { .. } => "turned",
            Self::Step { .. } => "step",
            Self::Rule { .. } => "rule",
            Self::UpstreamWrite { .. } => "upstream_write",
            Self::Bound { .. } => "bound",
            Self::ScriptDone => "script_done",
            Self::Webhook { .. } => "webhook",
            Self::Reported(_) => "reported",
            Self::ClientExited { .. } => "client_exited",
            Self::ClientRestarted { .. } => "client_restarted",
            Self::StopRequested => "stop_requested",
            Self::LeftOpen { .. } => "left_open",
            Self::RunEnded(_) => "run_ended",
        }
    }
}
