//! State of the protocol in one run of an adapter: turns lines into reports, and detects violations of the protocol.
//!
//! Sans-IO: it must not know processes, pipes or time.

use std::collections::{BTreeMap, VecDeque};

use fake_apiserver::report::{Report, ReportedObject};
use serde_json::Value;

use super::line::{self, Line};
use super::message::{Capability, Contract, Event, Hello, Object, PROTOCOL};

/// Maximum stray output, in bytes.
const STRAY_BYTES_MAX: u64 = 16 << 20;

/// Maximum number of events: more than a hundred times those of any scenario.
const EVENTS_MAX: u64 = 1_000_000;

/// Maximum size of all messages of an adapter, in bytes: more than fifty times those of any scenario. The trace has what they
/// report, and evidence has the trace.
const MESSAGE_BYTES_MAX: usize = 32 << 20;

/// Maximum size of the received output that is kept as evidence, in bytes.
const KEPT_BYTES_MAX: usize = 16 << 20;

/// Maximum length of quoted stray output, in characters.
const QUOTED_MAX: usize = 80;

/// One run of an adapter.
#[derive(Debug, Default)]
pub struct Session {
    hello: Option<Hello>,
    started: bool,
    contract: Option<Contract>,
    /// First violation of the protocol; later lines are ignored.
    fault: Option<String>,
    unsupported: Option<(String, String)>,
    refusals: usize,
    stray: Stray,
    reports: VecDeque<Report>,
    /// Objects of the initial list so far; `None` after `synced`, or if the adapter reports lists itself.
    first: Option<BTreeMap<String, ReportedObject>>,
    /// An `init` was reported.
    lists: bool,
    dump: Option<(u64, Vec<ReportedObject>)>,
    events: u64,
    objects: u64,
    ended: bool,
    /// `close` was sent.
    closing: bool,
    /// `closed` was received.
    closed: bool,
    received: Vec<u8>,
    message_bytes: usize,
}

/// Output that is not a message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stray {
    /// Number of lines.
    pub lines: u64,
    /// Beginning of the first line.
    pub first: String,
    bytes: u64,
}

impl Stray {
    /// Returns a summary; `None` if there was no stray output.
    pub fn words(&self) -> Option<String> {
        let lines = match self.lines {
            0 => return None,
            1 => "1 line".to_owned(),
            more => format!("{more} lines"),
        };
        Some(format!(
            "the adapter printed {lines} of text on standard output, first: {}; print free text on standard error",
            self.first
        ))
    }
}

impl Session {
    /// Handles the next line of standard output, without its newline.
    pub fn take(&mut self, text: &[u8]) {
        if self.fault.is_some() {
            return;
        }
        if self.received.len() + text.len() < KEPT_BYTES_MAX {
            self.received.extend_from_slice(text);
            self.received.push(b'\n');
        }
        match line::read(text) {
            Line::Event(event) => {
                self.message_bytes += text.len();
                if let Err(fault) = self.event(*event).and_then(|()| self.bounded()) {
                    self.fault = Some(fault);
                }
            }
            Line::Stray(text) => self.stray(&text),
            Line::Invalid(why) => self.fault = Some(format!("the adapter printed an invalid message: {why}")),
        }
    }

    /// Records that a line exceeded the maximum size of a message.
    pub fn too_long(&mut self, bytes: usize) {
        self.fail(format!(
            "the adapter printed a line of more than {bytes} bytes; a message ends with a newline"
        ));
    }

    /// Records a violation of the protocol. The first one is kept.
    pub fn fail(&mut self, fault: String) {
        self.fault.get_or_insert(fault);
    }

    /// Records that `start` was sent.
    pub fn start(&mut self, contract: Contract) {
        self.started = true;
        self.contract = Some(contract);
        if contract == Contract::Informer && !self.can(Capability::InitEvents) {
            self.first = Some(BTreeMap::new());
        }
    }

    /// Returns true if the adapter reports lists in this contract.
    fn shows_lists(&self) -> bool {
        match self.contract {
            Some(Contract::Informer) => self.can(Capability::InitEvents),
            Some(Contract::List | Contract::Watch) | None => true,
        }
    }

    fn stray(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        if self.stray.lines == 0 {
            self.stray.first = text.chars().take(QUOTED_MAX).collect();
        }
        self.stray.lines += 1;
        self.stray.bytes += text.len() as u64 + 1;
        if self.stray.bytes > STRAY_BYTES_MAX {
            self.fault = Some(format!(
                "the adapter printed more than {} MiB of text on standard output, first: {}",
                STRAY_BYTES_MAX >> 20,
                self.stray.first
            ));
        }
    }

    /// Checks that the adapter did not print more than any client has reason to.
    fn bounded(&self) -> Result<(), String> {
        if self.events > EVENTS_MAX {
            return Err(format!("the adapter printed more than {EVENTS_MAX} events"));
        }
        if self.message_bytes > MESSAGE_BYTES_MAX {
            let mebibytes = MESSAGE_BYTES_MAX >> 20;
            return Err(format!("the adapter printed more than {mebibytes} MiB of events"));
        }
        Ok(())
    }

    fn event(&mut self, event: Event) -> Result<(), String> {
        self.events += 1;
        let word = word_of(&event);
        match (&event, &self.hello) {
            (Event::Hello(hello), None) => {
                check_hello(hello)?;
                self.hello = Some(hello.clone());
                return Ok(());
            }
            (Event::Hello(_), Some(_)) => return Err("the adapter printed a second `hello`".to_owned()),
            (_, None) => {
                return Err(format!(
                    "the first message of the adapter is `{word}`: print `hello` before anything else"
                ));
            }
            (_, Some(_)) if !self.started => {
                return Err(format!("the adapter printed `{word}` before it received `start`"));
            }
            (_, Some(_)) => {}
        }
        if self.ended
            && !matches!(
                event,
                Event::Dump { .. } | Event::Closed | Event::Unsupported { .. }
            )
        {
            return Err(format!("the adapter printed `{word}` after `end`"));
        }
        self.record_event(event, &word)
    }

    fn record_event(&mut self, event: Event, word: &str) -> Result<(), String> {
        match event {
            Event::Init | Event::InitApply(_) | Event::InitDone if !self.shows_lists() => {
                return Err(format!(
                    "the adapter printed `{word}` without the capability `init-events`: add it to `caps` in `hello`"
                ));
            }
            Event::Init => {
                self.lists = true;
                self.reports.push_back(Report::Init);
            }
            Event::InitApply(object) => {
                let object = identified(object, word)?;
                self.objects += 1;
                // The adapter reports lists: a missing `init` is a fault of the library, and is judged.
                self.lists = true;
                self.reports.push_back(Report::InitApply(object));
            }
            Event::InitDone => {
                self.lists = true;
                self.reports.push_back(Report::InitDone);
            }
            Event::Apply(object) | Event::Add(object) | Event::Update(object) => {
                let object = identified(object, word)?;
                self.upsert(object, word)?;
            }
            Event::Delete(object) => {
                let object = reported(object, word)?;
                self.delete(object, word)?;
            }
            Event::Synced => self.synced(),
            Event::Bookmark { .. } => {}
            Event::Error { message, code, .. } => self.reports.push_back(Report::Error { message, code }),
            Event::End => {
                self.ended = true;
                self.reports.push_back(Report::Ended);
            }
            Event::Dump { id, items } => {
                let items: Result<Vec<_>, String> =
                    items.into_iter().map(|item| reported(item, word)).collect();
                self.dump = Some((id, items?));
            }
            Event::Closed if self.closing => self.closed = true,
            Event::Closed => return Err("the adapter printed `closed` without `close`".to_owned()),
            Event::Unsupported { what, why } => {
                self.refusals += 1;
                self.unsupported.get_or_insert((what, why.unwrap_or_default()));
            }
            Event::Hello(_) => {}
        }
        Ok(())
    }

    fn upsert(&mut self, object: ReportedObject, word: &str) -> Result<(), String> {
        self.objects += 1;
        match &mut self.first {
            Some(first) => {
                if first.is_empty() && !self.lists {
                    self.lists = true;
                    self.reports.push_back(Report::Init);
                }
                first.insert(object.key(), object.clone());
                self.reports.push_back(Report::InitApply(object));
            }
            None => {
                self.require_init(word)?;
                self.reports.push_back(Report::Apply(object));
            }
        }
        Ok(())
    }

    fn delete(&mut self, object: ReportedObject, word: &str) -> Result<(), String> {
        self.objects += 1;
        match &mut self.first {
            // A list has no deletions: report it again without the object.
            Some(first) => {
                first.remove(&object.key());
                // Each is an event again.
                self.events += first.len() as u64;
                self.lists = true;
                self.reports.push_back(Report::Init);
                self.reports
                    .extend(first.values().cloned().map(Report::InitApply));
            }
            None => {
                self.require_init(word)?;
                self.reports.push_back(Report::Delete(object));
            }
        }
        Ok(())
    }

    /// Checks that an adapter that reports lists has reported the initial list before any change.
    fn require_init(&self, word: &str) -> Result<(), String> {
        if self.lists || self.contract != Some(Contract::Informer) || !self.shows_lists() {
            return Ok(());
        }
        Err(format!(
            "the adapter declares `init-events` and printed `{word}` before `init`: print `init`, `init-apply`…, `init-done` for the first list, or remove the capability"
        ))
    }

    fn synced(&mut self) {
        if self.first.take().is_some() {
            if !self.lists {
                self.lists = true;
                self.reports.push_back(Report::Init);
            }
            self.reports.push_back(Report::InitDone);
        }
    }

    fn can(&self, capability: Capability) -> bool {
        self.hello
            .as_ref()
            .is_some_and(|hello| hello.caps.contains(&capability))
    }

    /// Returns the next report.
    pub fn poll_report(&mut self) -> Option<Report> {
        self.reports.pop_front()
    }

    /// Returns the `hello`, if it was received.
    pub fn hello(&self) -> Option<&Hello> {
        self.hello.as_ref()
    }

    /// Returns the violation of the protocol, if any.
    pub fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    /// Returns the first `unsupported`: what, and why.
    pub fn unsupported(&self) -> Option<(&str, &str)> {
        self.unsupported
            .as_ref()
            .map(|(what, why)| (what.as_str(), why.as_str()))
    }

    /// Number of `unsupported` messages.
    pub fn refusals(&self) -> usize {
        self.refusals
    }

    /// Returns true if the response to `dump` was received.
    pub fn has_dump(&self) -> bool {
        self.dump.is_some()
    }

    /// Takes the response to `dump`.
    pub fn take_dump(&mut self) -> Option<(u64, Vec<ReportedObject>)> {
        self.dump.take()
    }

    /// Records that `close` was sent.
    pub fn close(&mut self) {
        self.closing = true;
    }

    /// Returns true if the response to `close` was received.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Output that is not a message.
    pub fn stray_output(&self) -> &Stray {
        &self.stray
    }

    /// Number of events about objects so far.
    pub fn objects(&self) -> u64 {
        self.objects
    }

    /// Returns true if `end` was received.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Takes the received lines, up to 16 MiB.
    pub fn take_received(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.received)
    }
}

fn check_hello(hello: &Hello) -> Result<(), String> {
    if hello.protocol != PROTOCOL {
        return Err(format!(
            "`hello` has protocol {}, and this runner supports {PROTOCOL}",
            hello.protocol
        ));
    }
    if hello.contracts.is_empty() {
        return Err("`contracts` in `hello` is empty: there is nothing to test".to_owned());
    }
    let client = &hello.client;
    for (key, text) in [
        ("name", &client.name),
        ("lang", &client.lang),
        ("version", &client.version),
    ] {
        if text.trim().is_empty() {
            return Err(format!("`client.{key}` in `hello` is empty"));
        }
    }
    Ok(())
}

/// Returns the object of an event that adds or changes it. Requires uid and resourceVersion.
fn identified(object: Object, word: &str) -> Result<ReportedObject, String> {
    let whole = object.obj.is_some();
    let object = reported(object, word)?;
    // A complete object may lack them: it is what the library stores.
    for (key, value) in [("uid", &object.uid), ("rv", &object.resource_version)] {
        if !whole && value.is_none() {
            return Err(format!(
                "`{word}` has no `{key}`, and no complete object in `obj`"
            ));
        }
    }
    Ok(object)
}

fn reported(object: Object, word: &str) -> Result<ReportedObject, String> {
    let Object {
        obj,
        ns,
        name,
        uid,
        rv,
        is_final,
    } = object;
    if is_final.is_some() && word != "delete" {
        return Err(format!("`{word}` has `final`, which belongs to `delete`"));
    }
    let Some(whole) = obj else {
        let name = name.ok_or_else(|| format!("`{word}` has no `name`, and no complete object in `obj`"))?;
        return Ok(ReportedObject {
            namespace: ns,
            name,
            uid,
            resource_version: rv,
            content: None,
        });
    };
    if !whole.is_object() {
        return Err(format!("`obj` of `{word}` is not an object"));
    }
    let metadata = |key: &str| match &whole["metadata"][key] {
        Value::String(text) => Some(text.clone()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => None,
    };
    for (key, given, field) in [
        ("namespace", &ns, "ns"),
        ("name", &name, "name"),
        ("uid", &uid, "uid"),
        ("resourceVersion", &rv, "rv"),
    ] {
        if given.is_some() && *given != metadata(key) {
            return Err(format!(
                "`{field}` of `{word}` differs from `metadata.{key}` of its `obj`"
            ));
        }
    }
    Ok(ReportedObject {
        namespace: metadata("namespace"),
        name: metadata("name").unwrap_or_default(),
        uid: metadata("uid"),
        resource_version: metadata("resourceVersion"),
        content: Some(std::sync::Arc::new(whole)),
    })
}

fn word_of(event: &Event) -> String {
    let value = serde_json::to_value(event).unwrap_or_default();
    value["ev"].as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn session(caps: &str, lines: &[&str]) -> Session {
        let mut session = Session::default();
        let hello = format!(
            r#"{{"ev":"hello","protocol":1,"client":{{"name":"x","lang":"go","version":"1"}},"contracts":["informer"],"caps":[{caps}],"recovers":"library"}}"#
        );
        session.take(hello.as_bytes());
        session.start(Contract::Informer);
        for line in lines {
            session.take(line.as_bytes());
        }
        session
    }

    fn reports(mut session: Session) -> Vec<String> {
        assert_eq!(session.fault(), None);
        let mut words = Vec::new();
        while let Some(report) = session.poll_report() {
            let object = report.object().map(|object| format!(" {}", object.key()));
            words.push(format!("{}{}", report.word(), object.unwrap_or_default()));
        }
        words
    }

    const A: &str = r#"{"ev":"add","ns":"n","name":"a","uid":"u","rv":"1"}"#;

    /// Each deletion before `synced` repeats the list.
    #[test]
    fn a_list_that_is_repeated_without_end_is_a_fault() {
        let mut session = session("", &[]);
        for n in 0..20_000 {
            session.take(format!(r#"{{"ev":"add","ns":"n","name":"{n}","uid":"u","rv":"1"}}"#).as_bytes());
        }
        let gone = br#"{"ev":"delete","ns":"n","name":"none"}"#;
        let deletions = (1..).take_while(|_| {
            session.take(gone);
            session.reports.clear();
            session.fault().is_none()
        });
        assert_eq!(deletions.count(), 48, "20,001 events each, and 20,001 before");
        assert_eq!(
            session.fault(),
            Some("the adapter printed more than 1000000 events")
        );
    }

    #[test]
    fn without_init_events_the_initial_list_ends_at_synced() {
        let b =
            r#"{"ev":"add","obj":{"metadata":{"namespace":"n","name":"b","uid":"u","resourceVersion":"2"}}}"#;
        let gone = r#"{"ev":"delete","ns":"n","name":"a"}"#;
        assert_eq!(
            reports(session("", &[A, b, r#"{"ev":"synced"}"#, A, gone])),
            [
                "init",
                "init_apply n/a",
                "init_apply n/b",
                "init_done",
                "apply n/a",
                "delete n/a"
            ]
        );
        assert_eq!(
            reports(session("", &[r#"{"ev":"synced"}"#])),
            ["init", "init_done"]
        );
        assert_eq!(
            reports(session("", &[A, b, gone, r#"{"ev":"synced"}"#])),
            [
                "init",
                "init_apply n/a",
                "init_apply n/b",
                "init",
                "init_apply n/b",
                "init_done"
            ]
        );
    }

    #[test]
    fn with_init_events_lists_are_reported_verbatim() {
        let lines = [
            r#"{"ev":"init"}"#,
            r#"{"ev":"init-done"}"#,
            r#"{"ev":"synced"}"#,
            A,
            r#"{"ev":"end"}"#,
        ];
        assert_eq!(
            reports(session(r#""init-events""#, &lines)),
            ["init", "init_done", "apply n/a", "ended"]
        );
    }

    /// kube-runtime 0.99 has no event for the beginning of a streaming list.
    #[test]
    fn a_list_without_init_is_not_a_fault_of_the_adapter() {
        let lines = [
            r#"{"ev":"init-apply","ns":"n","name":"a","uid":"u","rv":"1"}"#,
            r#"{"ev":"init-done"}"#,
            A,
        ];
        let session = session(r#""init-events""#, &lines);
        assert_eq!(reports(session), ["init_apply n/a", "init_done", "apply n/a"]);
    }

    #[rstest]
    #[case::second_hello("", &[r#"{"ev":"hello","protocol":1,"client":{"name":"x","lang":"go","version":"1"},"contracts":["informer"],"recovers":"library"}"#], "a second `hello`")]
    #[case::not_declared("", &[r#"{"ev":"init"}"#], "without the capability `init-events`")]
    #[case::declared_only(r#""init-events""#, &[A], "printed `add` before `init`")]
    #[case::no_version("", &[r#"{"ev":"add","ns":"n","name":"a","uid":"u"}"#], "`add` has no `rv`")]
    #[case::no_name("", &[r#"{"ev":"delete","ns":"n"}"#], "`delete` has no `name`")]
    #[case::contradictory("", &[r#"{"ev":"apply","rv":"2","obj":{"metadata":{"name":"a","resourceVersion":"1"}}}"#], "`rv` of `apply` differs from `metadata.resourceVersion`")]
    #[case::closed_without_close("", &[r#"{"ev":"closed"}"#], "printed `closed` without `close`")]
    #[case::after_the_end("", &[r#"{"ev":"end"}"#, A], "printed `add` after `end`")]
    #[case::final_of_an_add("", &[r#"{"ev":"add","name":"a","uid":"u","rv":"1","final":false}"#], "which belongs to `delete`")]
    fn violations_of_the_protocol(#[case] caps: &str, #[case] lines: &[&str], #[case] why: &str) {
        let session = session(caps, lines);
        assert!(
            session.fault().is_some_and(|fault| fault.contains(why)),
            "{:?}",
            session.fault()
        );
    }

    #[rstest]
    #[case::no_hello(A, "print `hello` before anything else")]
    #[case::other_protocol(
        r#"{"ev":"hello","protocol":2,"client":{"name":"x","lang":"go","version":"1"},"contracts":["informer"],"recovers":"library"}"#,
        "has protocol 2"
    )]
    #[case::no_contract(
        r#"{"ev":"hello","protocol":1,"client":{"name":"x","lang":"go","version":"1"},"contracts":[],"recovers":"library"}"#,
        "`contracts` in `hello` is empty"
    )]
    fn the_first_line_is_hello(#[case] line: &str, #[case] why: &str) {
        let mut session = Session::default();
        session.take(line.as_bytes());
        assert!(
            session.fault().is_some_and(|fault| fault.contains(why)),
            "{:?}",
            session.fault()
        );
    }

    #[test]
    fn events_before_start_are_a_violation() {
        let mut session = Session::default();
        session.take(br#"{"ev":"hello","protocol":1,"client":{"name":"x","lang":"go","version":"1"},"contracts":["informer"],"recovers":"library"}"#);
        session.take(br#"{"ev":"synced"}"#);
        assert_eq!(
            session.fault(),
            Some("the adapter printed `synced` before it received `start`")
        );
    }

    #[test]
    fn stray_output_is_counted_and_bounded() {
        let mut session = session("", &["hello world", "", "again"]);
        assert!(
            session
                .stray_output()
                .words()
                .is_some_and(|words| words.contains("2 lines") && words.contains("hello world"))
        );
        let line = "x".repeat(1 << 20);
        for _ in 0..16 {
            session.take(line.as_bytes());
        }
        assert!(
            session
                .fault()
                .is_some_and(|fault| fault.contains("more than 16 MiB"))
        );
        assert!(session.take_received().len() <= KEPT_BYTES_MAX);
    }
}
