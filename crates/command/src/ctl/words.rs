//! Flags as rules, and responses as lines.

use std::fmt::Write as _;

use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};

/// Message of kube-apiserver for a resourceVersion that is too old.
pub(super) const TOO_OLD: &str = "The resourceVersion for the provided watch is too old.";

/// Requests and watches to match: all given conditions must hold.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Match")]
pub(super) struct From {
    /// Match requests whose User-Agent contains this text.
    #[arg(long)]
    user_agent: Option<String>,
    /// Match a connection: 4 is c4 in the trace.
    #[arg(long)]
    connection: Option<u64>,
    /// Match a request: 7 is #7 in the trace.
    #[arg(long)]
    stream: Option<u64>,
    /// Match a resource, e.g. pods or deployments.apps.
    #[arg(long)]
    resource: Option<String>,
    /// Match a namespace.
    #[arg(short, long)]
    namespace: Option<String>,
    /// Match a verb: get, create, update, patch, delete or deletecollection.
    #[arg(long)]
    verb: Option<String>,
    /// Match the object of this name.
    #[arg(long)]
    name: Option<String>,
    /// Match a subresource, e.g. status.
    #[arg(long)]
    subresource: Option<String>,
    /// Match an HTTP method.
    #[arg(long)]
    method: Option<String>,
    /// Match paths with this prefix.
    #[arg(long)]
    path: Option<String>,
    /// Match a replica: primary, or secondary (`serve --secondary`).
    #[arg(long)]
    replica: Option<String>,
}

impl From {
    fn json(&self) -> Map<String, Value> {
        let Self {
            user_agent,
            connection,
            stream,
            resource,
            namespace,
            verb,
            name,
            subresource,
            method,
            path,
            replica,
        } = self;
        let texts = [
            ("user_agent", user_agent),
            ("resource", resource),
            ("namespace", namespace),
            ("verb", verb),
            ("name", name),
            ("subresource", subresource),
            ("method", method),
            ("path", path),
            ("replica", replica),
        ];
        let numbers = [("connection", connection), ("stream", stream)];
        let texts = texts
            .into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), json!(value.as_ref()?))));
        let numbers = numbers
            .into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), json!(value.as_ref()?))));
        texts.chain(numbers).collect()
    }
}

/// Watch caches to change.
#[derive(Debug, Args)]
pub(super) struct Cache {
    /// Only the watch cache of this resource [default: all resources].
    #[arg(long)]
    resource: Option<String>,
    /// Only this replica: primary, or secondary (`serve --secondary`) [default: both].
    #[arg(long)]
    replica: Option<String>,
}

impl Cache {
    /// Returns the rule with this action.
    pub(super) fn rule(self, action: &str, argument: Option<&str>) -> String {
        let from = From {
            resource: self.resource,
            replica: self.replica,
            ..From::default()
        };
        rule(&from, None, 1, json!({ action: argument }))
    }
}

/// A kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Kind {
    /// LIST requests.
    List,
    /// WATCH requests.
    Watch,
    /// Any request.
    Request,
}

impl Kind {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Watch => "watch",
            Self::Request => "request",
        }
    }
}

/// How a watch ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum How {
    /// End the response cleanly.
    Eof,
    /// Close the connection in mid-body.
    Fin,
    /// Reset the connection.
    Rst,
}

impl How {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Eof => "eof",
            Self::Fin => "fin",
            Self::Rst => "rst",
        }
    }
}

/// Format of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum TraceFormat {
    /// One readable line per record.
    Text,
    /// One JSON object per record.
    Json,
}

impl TraceFormat {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}

/// Returns a rule with one action; `kind`: the request it waits for.
pub(super) fn rule(from: &From, kind: Option<&str>, times: u32, action: Value) -> String {
    let mut rule = Map::new();
    let from = from.json();
    if !from.is_empty() {
        rule.insert("from".to_owned(), Value::Object(from));
    }
    if let Some(kind) = kind {
        rule.insert("when".to_owned(), json!({ kind: "next" }));
        rule.insert("times".to_owned(), json!(times));
    }
    rule.insert("do".to_owned(), action);
    Value::Object(rule).to_string()
}

/// Returns a scripted response with a Status.
pub(super) fn reply(
    status: u16,
    reason: Option<String>,
    message: Option<String>,
    retry_after: Option<String>,
) -> Value {
    let mut reply = Map::new();
    reply.insert("status".to_owned(), json!(status));
    // kubectl prints only the message.
    let message = message.or_else(|| {
        let status = http::StatusCode::from_u16(status).ok()?;
        let words = status.canonical_reason()?;
        Some(match status.as_u16() {
            429 => "too many requests, please try again later".to_owned(),
            503 => "the server is currently unable to handle the request".to_owned(),
            _ => words.to_lowercase(),
        })
    });
    for (key, value) in [
        ("reason", reason),
        ("message", message),
        ("retry_after", retry_after),
    ] {
        if let Some(value) = value {
            reply.insert(key.to_owned(), json!(value));
        }
    }
    json!({ "reply": reply })
}

/// Returns the action for a 410 as an event, after which the stream ends, as in kube-apiserver.
pub(crate) fn expired_event() -> Value {
    json!([
        {"error": {"code": 410, "reason": "Expired", "message": TOO_OLD}},
        {"end": "eof"},
    ])
}

/// Returns the action for a bookmark.
pub(crate) fn bookmark(version: Option<String>) -> Value {
    match version {
        Some(version) => json!({ "bookmark": { "rv": version } }),
        None => json!({ "bookmark": null }),
    }
}

/// Adds braces to a map without them, which need no quotes in a shell; a single word is a rule already.
pub(super) fn braced(text: &str) -> String {
    let text = text.trim();
    let flow = text.contains(": ") || text.contains(":{");
    if text.starts_with('{') || text.contains('\n') || !flow {
        text.to_owned()
    } else {
        format!("{{{text}}}")
    }
}

/// Formats the result of adding a rule.
pub(super) fn made(made: &Value) -> String {
    if let Some(done) = made.get("done").and_then(Value::as_str) {
        let streams = made["streams"].as_array().map(Vec::as_slice).unwrap_or_default();
        if let Some(writes) = made["writes"].as_array() {
            let writes = writes.iter().filter_map(Value::as_str);
            return writes.map(|write| format!("{write}\n")).collect();
        }
        let on: Vec<String> = streams.iter().map(|stream| format!("#{stream}")).collect();
        return if on.is_empty() {
            format!("done: {done}\n")
        } else {
            format!("done: {done} on {}\n", on.join(", "))
        };
    }
    rules(&Value::Array(vec![made["rule"].clone()]), "active")
}

/// Formats rules, one per line.
pub(super) fn rules(rules: &Value, how: &str) -> String {
    let list = rules.as_array().map(Vec::as_slice).unwrap_or_default();
    if list.is_empty() {
        return "no rules\n".to_owned();
    }
    let mut lines = String::new();
    for rule in list {
        let word = |key: &str| rule.get(key).and_then(Value::as_str).unwrap_or_default();
        let name = match word("name") {
            "" => String::new(),
            name => format!(" ({name})"),
        };
        let left = match rule.get("left").and_then(Value::as_u64) {
            Some(left) => format!(", {left} left"),
            None => String::new(),
        };
        // Writing to a String cannot fail.
        let _ = writeln!(
            lines,
            "rule {}{name} {how}: {} on {}; matched {}{left}",
            rule["id"],
            word("does"),
            word("waitsFor"),
            rule["met"],
        );
    }
    lines
}

/// Formats open responses, one per line.
pub(super) fn streams(answer: &Value) -> String {
    let list = answer["streams"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    if list.is_empty() {
        return "no open responses\n".to_owned();
    }
    let mut lines = String::new();
    for stream in list {
        let word = |key: &str| stream.get(key).and_then(Value::as_str).unwrap_or_default();
        let open_s = stream["openMs"].as_u64().unwrap_or_default() / 1000;
        let _ = writeln!(
            lines,
            "#{} c{} {} {} {} open for {open_s} s by {}",
            stream["stream"],
            stream["connection"],
            word("replica"),
            word("verb"),
            word("target"),
            stream
                .get("userAgent")
                .and_then(Value::as_str)
                .unwrap_or("an unnamed client"),
        );
    }
    lines
}

/// Formats the status of a server, and how to reach it.
pub(super) fn status(state: &Value, token: &str) -> String {
    let mut lines = String::new();
    let word = |key: &str| state.get(key).and_then(Value::as_str).unwrap_or_default();
    let _ = writeln!(
        lines,
        "fake-apiserver {} as Kubernetes {}, resourceVersion {}, {} open streams, {} rules",
        word("version"),
        word("kubernetes"),
        word("resourceVersion"),
        state["openStreams"],
        state["rules"],
    );
    for server in state["servers"].as_array().into_iter().flatten() {
        let word = |key: &str| server.get(key).and_then(Value::as_str).unwrap_or_default();
        let _ = writeln!(lines, "  {:<10}  {}", word("replica"), word("url"));
    }
    let _ = writeln!(lines, "  kubeconfig  {}", word("kubeconfig"));
    let _ = writeln!(lines, "  token       {token}");
    let memory = &state["memory"];
    if memory.is_object() {
        let mib = |key: &str| memory[key].as_f64().unwrap_or_default() / 1_048_576.0;
        let _ = writeln!(
            lines,
            "  memory      history {:.1}, events {:.1}, trace {:.1}, answers {:.1}, queries {:.1}, judge {:.1} of {:.0} MiB",
            mib("history"),
            mib("events"),
            mib("trace"),
            mib("answers"),
            mib("queries"),
            mib("judge"),
            mib("budget"),
        );
    }
    lines
}
