//! The text of the scenario, with comments on what is not known.

use std::fmt::Write as _;
use std::time::Duration;

use scenario::ServerSettings;
use serde_json::{Map, Value, json};
use trace::record::Verb;

use super::exchange::{Exchange, Kind};
use super::{Draft, Options, Story};
use crate::file::Origin;
use crate::steps::{BOOKMARK_INTERVAL, millis};
use crate::yaml;

/// Longest line of a comment.
const COLUMNS: usize = 118;

/// Least time that a scenario goes on after its last step, for the client to do what it did.
const SETTLE: Duration = Duration::from_secs(8);

/// `limit` of a client that sets none.
const DEFAULT_LIMIT: &str = "500";

impl Story<'_> {
    /// Returns the scenario.
    pub(super) fn draft(mut self, options: &Options) -> Draft {
        let unknown = self.unknown(options);
        let mut text = String::new();
        comment(&mut text, &self.source(options));
        if !unknown.is_empty() {
            comment(&mut text, "What the recording does not have:");
            for line in &unknown {
                comment(&mut text, &format!("* {line}"));
            }
        }
        // Writing to a String cannot fail.
        let _ = write!(text, "scenario: v1\ntitle: {}\n", yaml::scalar(&self.title()));
        if let Some(violation) = &self.chosen.violation {
            let _ = writeln!(text, "why: {}", yaml::scalar(&violation.found.sentence));
            if !violation.found.requirements.is_empty() {
                let _ = writeln!(text, "covers: [{}]", violation.found.requirements.join(", "));
            }
        }
        let collection = &self.chosen.collection;
        let mut target = json!({ "resource": resource(&collection.group, &collection.plural) });
        if self.kind.namespaced {
            let namespace = if collection.namespace.is_empty() {
                "all"
            } else {
                &collection.namespace
            };
            target["namespace"] = json!(namespace);
        }
        let _ = writeln!(text, "target: {}", yaml::flow(&target));
        let mut steps = String::new();
        self.steps.write_steps(&mut steps);
        if let Some(server) = self.server(&steps) {
            let _ = writeln!(text, "server: {}", yaml::flow(&server));
        }
        if let Some(client) = self.client() {
            let _ = writeln!(text, "client: {}", yaml::flow(&client));
        }
        self.steps.write_objects(&mut text);
        text.push_str(&steps);
        if let Some(violation) = &self.chosen.violation {
            // The client needs the time to do it again.
            let left = Duration::from_millis(violation.at_ms).saturating_sub(self.steps.ended_at());
            let left =
                Duration::from_secs(left.as_secs() + SETTLE.as_secs()).min(options.longest_wait.max(SETTLE));
            let _ = writeln!(text, "expect: {{settle: {}}}", millis(left));
        }
        Draft { text, unknown }
    }

    fn source(&self, options: &Options) -> String {
        let header = self.recording.header.as_ref();
        let by = header.map(|header| {
            let scenario = header
                .scenario
                .as_ref()
                .map(|id| format!(" {id}"))
                .unwrap_or_default();
            let kubernetes = match header.kubernetes.as_str() {
                "" => String::new(),
                version => format!(", Kubernetes {version}"),
            };
            format!(" ({} {}{scenario}{kubernetes})", header.program, header.command)
        });
        let client = self
            .chosen
            .agent
            .as_ref()
            .map(|agent| format!(", client {agent}"));
        let around = self.chosen.violation.as_ref().map(|violation| {
            format!(
                ", up to {} at {}",
                violation.found.check,
                trace::record::line::time(Duration::from_millis(violation.at_ms))
            )
        });
        format!(
            "Made of {}{}: {}{}{}.",
            options.source,
            by.unwrap_or_default(),
            self.chosen.collection,
            client.unwrap_or_default(),
            around.unwrap_or_default()
        )
    }

    fn title(&self) -> String {
        match &self.chosen.violation {
            Some(violation) => format!(
                "The client keeps {} after what was recorded",
                violation.found.check
            ),
            None => format!("What was recorded of {}", self.chosen.collection),
        }
    }

    /// Returns what the recording does not have.
    fn unknown(&mut self, options: &Options) -> Vec<String> {
        let mut unknown = std::mem::take(&mut self.unknown);
        let header = self.recording.header.as_ref();
        let has_content = header.is_some_and(|header| header.content);
        let is_secret = self.chosen.collection.plural == "secrets";
        if !has_content || is_secret {
            unknown.insert(
                "content of objects: each has its name, and an annotation with the recorded version"
                    .to_owned(),
            );
        }
        if let Some(header) = header.filter(|header| !header.redacted.is_empty()) {
            unknown.insert(format!("redacted fields: {}", header.redacted.join(", ")));
        }
        if self.own_writes > 0 {
            unknown.insert(format!(
                "the client's own writes ({}): the client makes them again",
                self.own_writes
            ));
        }
        if self.left_out > 0 {
            unknown.insert(format!("{} objects that never changed: left out", self.left_out));
        }
        if self.steps.shortened > 0 {
            let longest = millis(options.longest_wait);
            unknown.insert(format!(
                "{} waits longer than {longest}: shortened (--longest-wait)",
                self.steps.shortened
            ));
        }
        if self.raw_lines > 0 {
            unknown.insert(format!(
                "the bytes of {} lines that are no events (--record-content keeps them)",
                self.raw_lines
            ));
        }
        if self.recording.missing > 0 {
            unknown.insert(format!(
                "{} records, before the first or in between",
                self.recording.missing
            ));
        }
        if let Some(bytes) = self.recording.cut {
            unknown.insert(format!(
                "the rest of the last line, which ends after {bytes} bytes"
            ));
        }
        if self.kind.is_custom {
            unknown.insert("the definition of the resource: this one accepts every object".to_owned());
        }
        if self.origin == Origin::Upstream {
            unknown
                .insert("writes to other resources: versions count the writes of this scenario".to_owned());
        }
        unknown.extend(self.recording.blind.iter().cloned());
        unknown.into_iter().collect()
    }

    /// Settings that make versions those of the recording, and that the steps need.
    fn server(&self, steps: &str) -> Option<Value> {
        let before = self.base.saturating_sub(self.steps.objects() as u64);
        let mut server = Map::new();
        if before > 0 && before != ServerSettings::default().revision {
            server.insert("revision".to_owned(), json!(before));
        }
        if ["rst_stream:", "goaway"].iter().any(|word| steps.contains(word)) {
            server.insert("transport".to_owned(), json!("tls_h2"));
        } else if steps.contains("no_close_notify") {
            server.insert("transport".to_owned(), json!("tls_http1"));
        }
        if self.steps.has_bookmarks {
            server.insert("bookmark_interval".to_owned(), json!(millis(BOOKMARK_INTERVAL)));
        }
        if steps.contains("replica: ") {
            server.insert("replicas".to_owned(), json!(2));
        }
        let header = self.recording.header.as_ref();
        let minor = header.and_then(|header| {
            let release = header.kubernetes.trim_start_matches('v');
            let minor: Vec<&str> = release.split('.').take(2).collect();
            minor.join(".").parse::<apimachinery::Version>().ok()
        });
        if let Some(minor) = minor.filter(|minor| *minor != apimachinery::Version::NEWEST) {
            server.insert("version".to_owned(), json!(minor.name()));
        }
        (!server.is_empty()).then_some(Value::Object(server))
    }

    /// Settings of the client that its requests show.
    fn client(&self) -> Option<Value> {
        let mut client = Map::new();
        let mut set = |name: &str, value: Value| drop(client.insert(name.to_owned(), value));
        let collection = &self.chosen.collection;
        for (name, value) in [("labels", &collection.labels), ("fields", &collection.fields)] {
            if !value.is_empty() {
                set(name, json!(value));
            }
        }
        let list = self.exchanges.iter().find(|exchange| exchange.kind == Kind::List);
        let watch = self
            .exchanges
            .iter()
            .find(|exchange| exchange.kind == Kind::Watch);
        if let Some(list) = list {
            match list.read.param("limit") {
                Some(DEFAULT_LIMIT) => {}
                Some(limit) => {
                    if let Ok(limit) = limit.parse::<u32>() {
                        set("page_size", json!(limit));
                    }
                }
                None => set("page_size", json!("none")),
            }
            if list.read.param("resourceVersion") == Some("0") {
                set("list_semantic", json!("any"));
            }
        }
        if let Some(watch) = watch {
            if watch.read.verb == Verb::WatchList {
                set("initial_list", json!("streaming_list"));
            }
            if !matches!(watch.read.param("allowWatchBookmarks"), Some("true" | "1")) {
                set("bookmarks", json!(false));
            }
        }
        let is_metadata = |exchange: &Exchange<'_>| {
            exchange
                .accept
                .is_some_and(|accept| accept.contains("as=PartialObjectMetadata"))
        };
        if list.or(watch).is_some_and(is_metadata) {
            set("mode", json!("metadata"));
        }
        (!client.is_empty()).then_some(Value::Object(client))
    }
}

fn resource(group: &str, plural: &str) -> String {
    match group {
        "" => plural.to_owned(),
        group => format!("{plural}.{group}"),
    }
}

/// Adds lines of a comment. What a client or an audit log wrote begins no line.
fn comment(text: &mut String, words: &str) {
    let words = trace::record::line::printable(words);
    let mut line = String::from("#");
    for word in words.split(' ') {
        if line.chars().count() + 1 + word.chars().count() > COLUMNS && line != "#" {
            text.push_str(&line);
            text.push('\n');
            line = "#  ".to_owned();
        }
        line.push(' ');
        line.push_str(word);
    }
    text.push_str(&line);
    text.push('\n');
}
