//! The trace in memory: complete, or limited to the newest records by count and bytes.

use std::time::Duration;

use apimachinery::ObjectRef;
use trace::record::{ExchangeRecord, Group, Record, ScriptRecord, StoreRecord, What};

use super::memory::TRACE_BYTES_MAX;

/// Append-only trace; the oldest records may be trimmed.
#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) records: Vec<Record>,
    pub(super) forgotten: u64,
    /// Least weight of records to keep; `None`: keep all.
    pub(super) kept: Option<usize>,
    weight: usize,
    bytes: usize,
}

/// Most bytes recorded of a text of the request head.
const TEXT_MAX: usize = 4 * 1024;

/// Most query parameters recorded of a request.
const PARAMETERS_MAX: usize = 64;

/// Returns the text, truncated with an ellipsis.
pub(super) fn clipped(text: &str) -> String {
    if text.len() <= TEXT_MAX {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(TEXT_MAX)])
}

/// Returns the parameters, truncated.
pub(super) fn clipped_query(query: &[(String, String)]) -> Vec<(String, String)> {
    let parameters = query.iter().take(PARAMETERS_MAX);
    parameters
        .map(|(name, value)| (clipped(name), clipped(value)))
        .collect()
}

/// Approximate heap size of a record, in bytes. Objects of frames are shared with the watch cache.
fn bytes(what: &What) -> usize {
    let object = |object: &ObjectRef| {
        size_of::<ObjectRef>() + object.key.len() + object.uid.len() + object.resource_version.len()
    };
    let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let more = match what.group() {
        Group::Exchange(ExchangeRecord::Request {
            path,
            query,
            accept,
            user_agent,
            violations,
            ..
        }) => {
            let query = query
                .iter()
                .map(|(name, value)| size_of::<(String, String)>() + name.len() + value.len());
            let violations = violations.iter().map(|text| size_of::<String>() + text.len());
            path.len() + text(accept) + text(user_agent) + query.sum::<usize>() + violations.sum::<usize>()
        }
        Group::Exchange(ExchangeRecord::Page {
            items,
            continue_token,
            ..
        }) => continue_token.len() + items.iter().map(object).sum::<usize>(),
        Group::Exchange(ExchangeRecord::Body {
            reason,
            message,
            continue_token,
            ..
        }) => text(reason) + text(message) + text(continue_token),
        Group::Exchange(ExchangeRecord::Withheld { object: of, .. }) => object(of),
        Group::Exchange(ExchangeRecord::Sent { content, .. }) => content.len(),
        Group::Store(StoreRecord::Wrote(write)) => {
            object(&write.object) + write.content.as_ref().map_or(0, |content| content.len())
        }
        Group::Exchange(ExchangeRecord::Webhook {
            webhook,
            url,
            verdict,
            ..
        }) => webhook.len() + url.len() + verdict.len(),
        Group::Store(StoreRecord::Turned { how, .. }) => how.to_string().len(),
        Group::Script(ScriptRecord::Step { how, .. } | ScriptRecord::Rule { how, .. }) => how.len(),
        Group::Script(ScriptRecord::UpstreamWrite { object, failure, .. }) => {
            object.len() + failure.as_ref().map_or(0, String::len)
        }
        Group::Connection(_)
        | Group::Exchange(
            ExchangeRecord::Head { .. }
            | ExchangeRecord::Torn { .. }
            | ExchangeRecord::Frame { .. }
            | ExchangeRecord::End { .. },
        )
        | Group::Store(StoreRecord::Restored { .. })
        | Group::Script(ScriptRecord::Bound { .. } | ScriptRecord::ScriptDone)
        | Group::Run(_) => 0,
    };
    size_of::<Record>() + more
}

/// Items of a list that weigh as much as one record.
const ITEMS_A_RECORD: usize = 4;

/// Weight of a record, in records: lists carry their items.
fn weight(what: &What) -> usize {
    if let What::Page { items, .. } = what {
        1 + items.len() / ITEMS_A_RECORD
    } else {
        1
    }
}

impl Log {
    /// Appends a record of time `at`.
    pub(super) fn push(&mut self, at: Duration, what: What) {
        tracing::debug!(at_ms = at.as_millis() as u64, what = what.name(), "recorded");
        self.weight += weight(&what);
        self.bytes += bytes(&what);
        self.records.push(Record {
            seq: self.forgotten + self.records.len() as u64,
            at,
            what,
        });
    }

    /// Approximate size, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Trims old records in batches: removing one at a time would move all others each time.
    pub(super) fn trim(&mut self) {
        let Some(kept) = self.kept else { return };
        if self.weight <= 2 * kept && self.bytes <= TRACE_BYTES_MAX {
            return;
        }
        let mut old = 0;
        while (self.weight > kept || self.bytes > TRACE_BYTES_MAX / 2) && old < self.records.len() {
            self.weight -= weight(&self.records[old].what);
            self.bytes -= bytes(&self.records[old].what);
            old += 1;
        }
        self.records.drain(..old);
        self.forgotten += old as u64;
    }
}
