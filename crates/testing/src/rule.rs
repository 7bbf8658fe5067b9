//! Rules: actions on matching requests. A method has the name of the scenario language's action unless Rust has a
//! better one; docs/scenario-language.md explains them.
//!
//! A rule is text for `fake_apiserver::scenario::parse_rule`, which also finds its mistakes. Nothing here knows how an
//! action is carried out.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::matcher::{List, Matcher, Page, Pattern, Requests, Watch, kind};
use crate::status::{Status, time};

/// A rule: which requests, how often, and the actions. By default it applies once.
///
/// The first rule that matches a request is carried out before the request is answered; the rest of the response is as
/// without a rule. Actions are carried out in the order written. Methods for some kinds of requests exist only on rules
/// for these.
///
/// ```
/// use std::time::Duration;
/// use fake_apiserver_testing::{Ending, List, Page, Rule, Status, Update, Watch};
///
/// // A continue token that expires between two pages: the real 410, because history is really gone.
/// let expired = Rule::on(Page::of("pods")).compact();
/// // Three lists fail.
/// let overload = Rule::on(List::of("pods")).times(3).respond(Status::service_unavailable());
/// // Every watch is reset after two events.
/// let flaky = Rule::on(Watch::of("pods")).always().cut_after(2, Ending::Rst);
/// // Another client writes first: a real conflict.
/// let conflict = Rule::on(Update::of("configmaps").named("a"))
///     .apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {by: somebody else}}");
/// # let _ = (expired, overload, flaky, conflict, Duration::ZERO);
/// ```
pub struct Rule<K> {
    when: When,
    name: Option<String>,
    times: Option<(&'static str, Value)>,
    actions: Vec<Value>,
    kind: PhantomData<fn() -> K>,
}

/// Trigger of a rule.
#[derive(Debug, Clone, PartialEq)]
enum When {
    /// Requests.
    Request(Pattern),
    /// At once, on the open watches that match.
    Now(Pattern),
    /// In the text of the rule.
    Text(String),
}

/// How the body of a response ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Cleanly: the body is complete, the connection may be used again.
    Eof,
    /// The connection is closed inside the body (TCP FIN).
    Fin,
    /// The connection is reset (TCP RST).
    Rst,
    /// Nothing more is sent; the connection stays open.
    Stall,
}

impl Ending {
    fn word(self) -> &'static str {
        match self {
            Self::Eof => "eof",
            Self::Fin => "fin",
            Self::Rst => "rst",
            Self::Stall => "stall",
        }
    }
}

impl<K: kind::RequestKind> Rule<K> {
    /// A rule on the next request that matches.
    pub fn on(matcher: Matcher<K>) -> Self {
        Self::new(When::Request(matcher.pattern))
    }

    fn new(when: When) -> Self {
        Self {
            when,
            name: None,
            times: None,
            actions: Vec::new(),
            kind: PhantomData,
        }
    }

    /// Names the rule in the trace.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Carries the rule out for this many requests, from 1 to 100,000. Default 1.
    #[must_use]
    pub fn times(mut self, requests: u32) -> Self {
        self.times = Some(("times", json!(requests)));
        self
    }

    /// Carries the rule out for every matching request within this time, counted from the first one.
    #[must_use]
    pub fn during(mut self, duration: Duration) -> Self {
        self.times = Some(("for", json!(time(duration))));
        self
    }

    /// Carries the rule out for the next 100,000 matching requests.
    #[must_use]
    pub fn always(self) -> Self {
        self.times(100_000)
    }

    /// Responds with this failure. A write is not carried out.
    #[must_use]
    pub fn respond(self, status: Status) -> Self {
        let reply = status.reply();
        self.action("reply", reply)
    }

    /// Carries the request out, so that a write is stored, and responds with this failure instead: a gateway's timeout.
    #[must_use]
    pub fn respond_after_write(self, status: Status) -> Self {
        let mut reply = status.reply();
        if let Value::Object(reply) = &mut reply {
            reply.insert("after_write".to_owned(), Value::Bool(true));
        }
        self.action("reply", reply)
    }

    /// Responds with this HTTP status and a JSON body.
    ///
    /// # Panics
    /// `body` cannot be serialized as JSON.
    #[must_use]
    #[track_caller]
    pub fn respond_json(self, status: u16, body: impl Serialize) -> Self {
        let body = serde_json::to_value(body).expect("the body of a response is serialized as JSON");
        self.action("reply", json!({ "status": status, "json": body }))
    }

    /// Responds with this HTTP status and a text body, as a proxy in front of an apiserver does.
    #[must_use]
    pub fn respond_text(self, status: u16, body: impl Into<String>) -> Self {
        self.action("reply", json!({ "status": status, "body": body.into() }))
    }

    /// Sends the response, its head included, this much later.
    #[must_use]
    pub fn delay(self, by: Duration) -> Self {
        self.action("delay", json!(time(by)))
    }

    /// Sends the body slowly: `bytes` at a time, `every` so often.
    #[must_use]
    pub fn drip(self, bytes: u32, every: Duration) -> Self {
        self.action("drip", json!({ "bytes": bytes, "every": time(every) }))
    }

    /// Ends writes inside multi-byte UTF-8 characters.
    #[must_use]
    pub fn split_utf8(self) -> Self {
        self.action("split_utf8", Value::Null)
    }

    /// Compresses the body where the client accepts gzip.
    #[must_use]
    pub fn gzip(self) -> Self {
        self.action("gzip", Value::Null)
    }

    /// Never responds, not even with a head: the connection ends this way. A write is not carried out. [`Ending::Eof`] is a mistake here.
    #[must_use]
    pub fn no_answer(self, ending: Ending) -> Self {
        self.action("no_answer", json!(ending.word()))
    }

    /// Carries the request out, so that a write is stored, and never responds, as [`Rule::no_answer`] does.
    #[must_use]
    pub fn lose_answer(self, ending: Ending) -> Self {
        self.action("lose_answer", json!(ending.word()))
    }

    /// Cuts the body after this many bytes.
    #[must_use]
    pub fn truncate(self, after_bytes: u64, ending: Ending) -> Self {
        self.action(
            "truncate",
            json!({ "after_bytes": after_bytes, "then": ending.word() }),
        )
    }

    /// Ends the response now: on a watch, the open stream.
    #[must_use]
    pub fn end(self, ending: Ending) -> Self {
        self.action("end", json!(ending.word()))
    }

    /// Refuses new connections for this long.
    #[must_use]
    pub fn refuse_connections(self, duration: Duration) -> Self {
        self.action("refuse", json!(time(duration)))
    }

    /// Creates or replaces an object, as another client would, before the request is answered: a typed object, a
    /// [`Value`], or YAML.
    #[must_use]
    #[track_caller]
    pub fn apply(self, object: impl Serialize) -> Self {
        let objects = crate::objects::values([object]);
        let objects = objects.unwrap_or_else(|mistake| panic!("{mistake}"));
        self.action("apply", Value::Array(objects))
    }

    /// Deletes an object, as another client would, before the request is answered. `name` is `NAME` or `NAMESPACE/NAME`.
    #[must_use]
    pub fn delete(self, resource: &str, name: &str) -> Self {
        self.action("delete", crate::objects::deletion(resource, name))
    }

    /// Compacts the history, before the request is answered: older continue tokens, exact lists and watch starts are 410
    /// from then on.
    #[must_use]
    pub fn compact(self) -> Self {
        self.action("compact", Value::Null)
    }

    /// Freezes the watch cache of the rule's resource: cached reads go stale, watches are sent nothing new.
    #[must_use]
    pub fn freeze_watch_cache(self) -> Self {
        self.action("freeze_watch_cache", Value::Null)
    }

    /// Lets the watch cache of the rule's resource catch up.
    #[must_use]
    pub fn thaw_watch_cache(self) -> Self {
        self.action("thaw_watch_cache", Value::Null)
    }

    /// Adds any action of the scenario language, by its key and argument: `rule.action("rst_stream", "CANCEL".into())`.
    #[must_use]
    pub fn action(mut self, key: &str, argument: Value) -> Self {
        let mut action = Map::new();
        action.insert(key.to_owned(), argument);
        self.actions.push(Value::Object(action));
        self
    }

    /// Adds a change to the response of a LIST. The server carries out one action `edit_page`, so all changes are in one.
    fn edit_page(mut self, key: &str, value: Value) -> Self {
        let mut edits = self.actions.iter_mut();
        match edits.find_map(|action| action.get_mut("edit_page")?.as_object_mut()) {
            Some(edit) => drop(edit.insert(key.to_owned(), value)),
            None => return self.action("edit_page", json!({ key: value })),
        }
        self
    }
}

impl Rule<Requests> {
    /// Creates a rule from its text, as `fake-apiserver ctl apply` and `POST /v1/rules` accept it
    /// (docs/control-api.md). Methods of the rule do not change it.
    pub fn yaml(text: impl Into<String>) -> Self {
        Self::new(When::Text(text.into()))
    }
}

impl Rule<List> {
    /// Leaves objects out of the first page, by their names; `*` leaves out all.
    #[must_use]
    pub fn omit(self, names: &[&str]) -> Self {
        self.edit_page("without", json!(names))
    }

    /// Replaces the continue token of the first page, for [`Matcher::query`]: a client that sends this one is answered as if it sent
    /// the real one. A list without a further page gets an empty one.
    #[must_use]
    pub fn continue_token(self, token: impl Into<String>) -> Self {
        self.edit_page("continue", json!(token.into()))
    }
}

impl Rule<Page> {
    /// Leaves objects out of the page, by their names; `*` leaves out all.
    #[must_use]
    pub fn omit(self, names: &[&str]) -> Self {
        self.edit_page("without", json!(names))
    }

    /// Replaces the continue token of the page, for [`Matcher::query`]: a client that sends this one is answered as if it sent the real
    /// one. The last page gets an empty one after it.
    #[must_use]
    pub fn continue_token(self, token: impl Into<String>) -> Self {
        self.edit_page("continue", json!(token.into()))
    }
}

impl Rule<Watch> {
    /// Creates a rule that is carried out at once, on every open watch that matches. Without such a watch it is a
    /// mistake. Conditions on the query cannot be used.
    pub fn now(matcher: Matcher<Watch>) -> Self {
        Self::new(When::Now(matcher.pattern))
    }

    /// Ends the stream after this many more events.
    #[must_use]
    pub fn cut_after(self, events: u32, ending: Ending) -> Self {
        self.tear_after(events, 0, ending)
    }

    /// Ends the stream after this many more events and this share of the next line, in percent from 0 to 99.
    #[must_use]
    pub fn tear_after(self, events: u32, percent: u8, ending: Ending) -> Self {
        self.action(
            "truncate",
            json!({ "after_events": events, "percent": percent, "then": ending.word() }),
        )
    }

    /// Sends nothing more; the connection stays open.
    #[must_use]
    pub fn stall(self) -> Self {
        self.end(Ending::Stall)
    }

    /// Sends an ERROR event. The stream stays open until [`Rule::end`].
    #[must_use]
    pub fn error(self, status: Status) -> Self {
        let event = status.event();
        self.action("error", event)
    }

    /// Sends an event that the store does not have: `ADDED`, `MODIFIED`, `DELETED` or any other type, and any object.
    ///
    /// # Panics
    /// `object` cannot be serialized as JSON.
    #[must_use]
    #[track_caller]
    pub fn event(self, kind: &str, object: impl Serialize) -> Self {
        let object = serde_json::to_value(object).expect("the object of an event is serialized as JSON");
        self.action("event", json!({ "type": kind, "object": object }))
    }

    /// Sends a bookmark.
    #[must_use]
    pub fn bookmark(self) -> Self {
        self.action("bookmark", Value::Null)
    }

    /// Sends the bookmark that ends the initial events of a streaming list, at this version, which the store need not have.
    ///
    /// With [`Rule::event`] before it and [`Rule::end`] behind, the whole stream is written in the rule:
    ///
    /// ```
    /// # use fake_apiserver_testing::{Ending, Rule, Watch};
    /// # use serde_json::json;
    /// let map = |name: &str, version: &str| json!({"metadata": {"name": name, "resourceVersion": version}});
    /// let stream = Rule::on(Watch::of("configmaps"))
    ///     .event("ADDED", map("a", "3"))
    ///     .initial_events_end("5")
    ///     .event("DELETED", map("a", "7"))
    ///     .end(Ending::Eof);
    /// # let _ = stream;
    /// ```
    #[must_use]
    pub fn initial_events_end(self, version: impl Into<String>) -> Self {
        let version = version.into();
        self.action("bookmark", json!({ "rv": version, "initial_events_end": "true" }))
    }

    /// Sends a line as it is, with a newline at its end.
    #[must_use]
    pub fn send(self, line: impl Into<String>) -> Self {
        self.action("send", json!({ "text": line.into() }))
    }

    /// Skips the next events, although the store changed.
    #[must_use]
    pub fn drop_events(self, events: u32) -> Self {
        self.action("drop_events", json!(events))
    }

    /// Sends the next event this many times, from 2.
    #[must_use]
    pub fn repeat_event(self, times: u32) -> Self {
        self.action("repeat_event", json!(times))
    }

    /// Sends the next events, from 2, in reverse order.
    #[must_use]
    pub fn reorder_events(self, events: u32) -> Self {
        self.action("reorder_events", json!(events))
    }

    /// Sends this many events, from 2, in one write.
    #[must_use]
    pub fn coalesce(self, events: u32) -> Self {
        self.action("coalesce", json!(events))
    }

    /// Sends no bookmarks, not even the one that ends a streaming list.
    #[must_use]
    pub fn no_bookmarks(self) -> Self {
        self.action("no_bookmarks", Value::Null)
    }
}

impl<K> Rule<K> {
    /// Erases the type.
    pub(crate) fn erased(self) -> Rule<Requests> {
        Rule {
            when: self.when,
            name: self.name,
            times: self.times,
            actions: self.actions,
            kind: PhantomData,
        }
    }

    /// Returns its name in messages.
    pub(crate) fn called(&self) -> String {
        match &self.when {
            When::Request(pattern) => format!("rule on {pattern}"),
            When::Now(pattern) => format!("at once on {pattern}"),
            When::Text(text) => format!("rule {text}"),
        }
    }

    /// Returns the resource of its matcher in the server's spelling; `None`: every resource, or one named in its text.
    ///
    /// # Errors
    /// No such resource, or a matcher that cannot be used here.
    pub(crate) fn resource(&self, served: &[String]) -> Result<Option<String>, String> {
        match &self.when {
            When::Request(pattern) => pattern.resource(served),
            When::Now(pattern) => {
                pattern.open_watches()?;
                pattern.resource(served)
            }
            When::Text(_) => Ok(None),
        }
    }

    /// Returns the rule as text; `resource` is the matcher's resource in the server's spelling.
    pub(crate) fn text(&self, resource: Option<String>) -> String {
        let pattern = match &self.when {
            When::Text(text) => return text.clone(),
            When::Request(pattern) | When::Now(pattern) => pattern,
        };
        let mut rule = Map::new();
        if let Some(name) = &self.name {
            rule.insert("name".to_owned(), json!(name));
        }
        let mut from = pattern.from.clone();
        from.extend(resource.map(|resource| ("resource".to_owned(), Value::String(resource))));
        if !from.is_empty() {
            rule.insert("from".to_owned(), Value::Object(from));
        }
        if matches!(self.when, When::Request(_)) {
            rule.insert("when".to_owned(), pattern.when_json());
        }
        rule.extend(
            self.times
                .as_ref()
                .map(|(key, value)| ((*key).to_owned(), value.clone())),
        );
        if !self.actions.is_empty() {
            rule.insert("do".to_owned(), Value::Array(self.actions.clone()));
        }
        format!("{:#}", Value::Object(rule))
    }
}

impl<K> Clone for Rule<K> {
    fn clone(&self) -> Self {
        Self {
            when: self.when.clone(),
            name: self.name.clone(),
            times: self.times.clone(),
            actions: self.actions.clone(),
            kind: PhantomData,
        }
    }
}

/// The rule as text, which [`Rule::yaml`], `fake-apiserver ctl apply` and `POST /v1/rules` take.
impl<K> fmt::Display for Rule<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(None))
    }
}

impl<K> fmt::Debug for Rule<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_the_text_of_one() {
        let rule = Rule::on(List::of("pods").query("limit", "2"))
            .named("slow")
            .times(2)
            .delay(Duration::from_secs(1))
            .respond(Status::too_many_requests(7));
        let text: Value = serde_json::from_str(&rule.to_string()).unwrap();
        assert_eq!(
            text,
            json!({
                "name": "slow",
                "from": {"resource": "pods"},
                "when": {"list": "next", "query": {"limit": {"is": "2"}}},
                "times": 2,
                "do": [
                    {"delay": "1000ms"},
                    {"reply": {
                        "reason": "TooManyRequests",
                        "message": "Too many requests, please try again later.",
                        "retry_after_seconds": 7,
                        "status": 429,
                        "retry_after": "7",
                    }},
                ],
            })
        );
    }
}
