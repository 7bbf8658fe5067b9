//! Makes the scenario of a draft without its file: equal to what the parser reads from that (a test compares thousands),
//! except for columns, in a small part of the time.
//!
//! What a draft holds as text of a file (selectors, Statuses, changed pages) is parsed once per text and thread.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fake_apiserver::fault;
use fake_apiserver::record::Replica;
use fake_apiserver::scenario::{
    self, Action as Made, BackoffSettings, ClientMode, ClientSettings, Covered, EmittedKind, EmittedMatch,
    Expect, Expected, InitialList, ListSemantic, Manifest, ObjectName, Place, Ref, RequestKind,
    RequestTrigger, Restart, RuleAction, Scenario, SentObject, ServerSettings, ShapeAction, StoreAction,
    StreamAction, Style, Transport, Trigger,
};
use serde_json::{Map, Value};

use super::write::Where;
use super::{
    Action, Client, Cut, Draft, Ending, Lie, Object, REQUIREMENT, ResponseFault, Server, Step, Times, WHY,
    When, Write,
};

/// Namespace of objects without one.
const NAMESPACE: &str = "default";

impl Draft {
    /// Returns the scenario of the printed file.
    ///
    /// # Panics
    /// If a text of the draft does not parse, which is a defect of the generator.
    pub fn scenario(&self) -> Scenario {
        // `scenario`, `title`, `why` and `covers` are the first four lines.
        let mut line = 4;
        let mut next = |is_printed: bool| {
            line += u32::from(is_printed);
            line
        };
        let target = self.target.to_string();
        next(!target.is_empty());
        next(!self.server.to_string().is_empty());
        next(!self.client.to_string().is_empty());
        let target = sample(Part::Target, &target).target.clone();
        next(!self.objects.is_empty());
        let objects = self.objects.iter().map(|object| {
            let at = place(next(true));
            Manifest {
                binds: object.binds.map(version_name),
                ..manifest(object, at)
            }
        });
        let objects = objects.collect();
        let conclusion = self.conclusion();
        next(!(self.steps.is_empty() && conclusion.is_empty()));
        let steps = self.steps.iter().chain(&conclusion).map(|step| {
            let at = place(next(true));
            made_step(step, &target, at)
        });
        let steps = steps.collect();
        let (id, path) = self.id();
        Scenario {
            id,
            path: PathBuf::from(path),
            title: self.title(),
            why: WHY.to_owned(),
            covers: vec![Covered {
                id: REQUIREMENT.to_owned(),
                at: place(4),
            }],
            provoked_by: None,
            tags: Vec::new(),
            refs: Vec::new(),
            server: server(&self.server),
            client: client(&self.client),
            objects,
            steps,
            expect: expect(&self.expectation(), place(next(true))),
            target,
        }
    }
}

fn place(line: u32) -> Place {
    Place { line, column: 1 }
}

/// Returns the name of a version.
fn version_name(number: u32) -> String {
    format!("v{number}")
}

// ---- what the parser makes of a text

/// The part of a file that a text belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    /// `target:`.
    Target,
    /// An object of this kind.
    Kind,
    /// An annotation, as between quotes.
    Annotation,
    /// An action on a watch.
    OnWatch,
    /// An action on the response to a LIST.
    OnList,
    /// `expect:`.
    Expect,
}

impl Part {
    /// Returns a scenario file with this text.
    fn file(self, text: &str) -> String {
        let head = format!("scenario: v1\ntitle: t\nwhy: w\ncovers: [{REQUIREMENT}]");
        match self {
            Self::Target if text.is_empty() => format!("{head}\nexpect: {{within: 1s}}\n"),
            Self::Target => format!("{head}\ntarget: {text}\n"),
            Self::Kind => format!("{head}\nobjects: [{text}: {{name: a}}]\n"),
            Self::Annotation => {
                format!("{head}\nobjects: [configmap: {{name: a, annotations: {{t: \"{text}\"}}}}]\n")
            }
            // With HTTP/2, so that every ending fits.
            Self::OnWatch => format!(
                "{head}\nserver: {{transport: tls_h2}}\nsteps:\n  - {{when: {{watch: next}}, do: {text}}}\n"
            ),
            // With a second page, so that every answer fits.
            Self::OnList => format!(
                "{head}\nclient: {{page_size: 1}}\nobjects: [configmap: {{name: a}}, configmap: {{name: b}}]\nsteps:\n  - {{when: {{page: 2}}, do: {text}}}\n"
            ),
            Self::Expect => format!("{head}\n{text}\n"),
        }
    }
}

thread_local! {
    static SAMPLES: RefCell<BTreeMap<Part, BTreeMap<String, Arc<Scenario>>>> = RefCell::default();
}

/// Returns a scenario that the parser read from a file with this text.
fn sample(part: Part, text: &str) -> Arc<Scenario> {
    SAMPLES.with_borrow_mut(|samples| {
        let of_part = samples.entry(part).or_default();
        if let Some(known) = of_part.get(text) {
            return known.clone();
        }
        let file = part.file(text);
        let parsed = scenario::parse("found/sample", Path::new("sample.yaml"), &file);
        let parsed = parsed.unwrap_or_else(|errors| panic!("{file}\n{}", errors.render(Style::Plain)));
        let parsed = Arc::new(parsed);
        of_part.insert(text.to_owned(), parsed.clone());
        parsed
    })
}

/// Returns the action of a text.
fn parsed_action(part: Part, text: &str) -> Made {
    let sample = sample(part, text);
    let mut actions = sample.steps.iter().flat_map(|step| &step.actions);
    actions.next().expect("the file has one action").clone()
}

// ---- settings

fn server(server: &Server) -> ServerSettings {
    ServerSettings {
        version: server
            .version
            .parse()
            .expect("versions are drawn from those that are served"),
        revision: server.revision,
        watch_cache_capacity: server.watch_cache_capacity as usize,
        bookmark_interval_ms: u64::from(server.bookmark_interval_s) * 1_000,
        streaming_lists: server.streaming_lists,
        rejected_streams_count: false,
        replicas: if server.has_replicas { 2 } else { 1 },
        transport: match server.transport {
            "tls_h2" => Transport::TlsHttp2,
            "tls_http1" => Transport::TlsHttp1,
            _ => Transport::Http1,
        },
        max_concurrent_streams: server
            .streams_max
            .filter(|_| server.is_http2())
            .unwrap_or(ServerSettings::default().max_concurrent_streams),
        ..ServerSettings::default()
    }
}

fn client(client: &Client) -> ClientSettings {
    let ms = |seconds: Option<u32>| seconds.map(|seconds| u64::from(seconds) * 1_000);
    ClientSettings {
        mode: match (client.object, client.metadata) {
            (Some(_), _) => ClientMode::Object,
            (None, true) => ClientMode::Metadata,
            (None, false) => ClientMode::Watcher,
        },
        object: client.object.map(str::to_owned),
        labels: client.labels.map(str::to_owned),
        fields: client.fields.map(str::to_owned),
        timeout_s: client.timeout_s,
        list_semantic: if client.any {
            ListSemantic::Any
        } else {
            ListSemantic::MostRecent
        },
        initial_list: if client.streaming {
            InitialList::StreamingList
        } else {
            InitialList::ListWatch
        },
        page_size: Some(client.page_size).filter(|size| *size > 0),
        bookmarks: client.bookmarks,
        idle_timeout_ms: ms(client.idle_timeout_s),
        list_timeout_ms: ms(client.list_timeout_s),
        staleness_probe_after_ms: ms(client.staleness_probe_after_s).map(Some),
        backoff: BackoffSettings {
            initial_ms: client.backoff_ms.map(|(initial, _)| initial.into()),
            max_ms: client.backoff_ms.map(|(_, max)| max.into()),
            factor: client.backoff_factor,
            ..BackoffSettings::default()
        },
        consumer_delay_ms: client.consumer_delay_ms.into(),
        consumer_delay_event: client
            .consumer_delay_event
            .filter(|_| client.consumer_delay_ms > 0),
        gzip: client.gzip,
        ..ClientSettings::default()
    }
}

fn expect(text: &str, at: Place) -> Expect {
    let mut expect = sample(Part::Expect, text).expect.clone();
    for excuse in &mut expect.excused {
        excuse.at = at;
    }
    expect
}

// ---- objects

fn manifest(object: &Object, at: Place) -> Manifest {
    let sample = sample(Part::Kind, object.kind);
    let template = sample.objects.first().expect("the file has one object");
    let namespace = object.namespace.unwrap_or(NAMESPACE);
    Manifest {
        group: template.group.clone(),
        plural: template.plural.clone(),
        namespace: Some(namespace.to_owned()),
        name: object.name.clone(),
        json: json(object, &template.json),
        binds: None,
        at,
    }
}

/// Returns the JSON of an object, with its keys in the parser's order.
fn json(object: &Object, template: &Value) -> Value {
    let text = |text: &str| Value::String(text.to_owned());
    let mut metadata = Map::new();
    metadata.insert("name".to_owned(), text(&object.name));
    if let Some(namespace) = object.namespace {
        metadata.insert("namespace".to_owned(), text(namespace));
    }
    if let Some(app) = object.app {
        let labels = Map::from_iter([("app".to_owned(), text(app))]);
        metadata.insert("labels".to_owned(), Value::Object(labels));
    }
    let mut annotations = Map::new();
    if object.value > 0 {
        annotations.insert("v".to_owned(), Value::String(object.value.to_string()));
    }
    if !object.text.is_empty() {
        let sample = sample(Part::Annotation, object.text);
        let parsed = &sample.objects[0].json["metadata"]["annotations"]["t"];
        annotations.insert("t".to_owned(), parsed.clone());
    }
    if object.filler > 0 {
        annotations.insert("filler".to_owned(), Value::String(object.filler_text()));
    }
    if !annotations.is_empty() {
        metadata.insert("annotations".to_owned(), Value::Object(annotations));
    }
    if object.namespace.is_none() {
        metadata.insert("namespace".to_owned(), text(NAMESPACE));
    }
    let mut json = Map::new();
    for key in ["apiVersion", "kind"] {
        json.insert(key.to_owned(), template[key].clone());
    }
    json.insert("metadata".to_owned(), Value::Object(metadata));
    Value::Object(json)
}

/// Returns the object of the target with this key.
fn object_name(key: &str, target: &scenario::Target) -> ObjectName {
    let (namespace, name) = key.split_once('/').unwrap_or((NAMESPACE, key));
    ObjectName {
        group: target.group.clone(),
        plural: target.plural.clone(),
        namespace: Some(namespace.to_owned()),
        name: name.to_owned(),
    }
}

// ---- steps

fn made_step(step: &Step, target: &scenario::Target, at: Place) -> scenario::Step {
    let actions = step.actions.iter();
    scenario::Step {
        at,
        name: None,
        when: trigger(step.when, at),
        optional: step.is_optional,
        times: match step.times {
            Times::Count(times) => scenario::Times::Count(times.max(1)),
            Times::For(ms) => scenario::Times::For(ms.into()),
        },
        actions: actions.map(|action| made_action(action, target, at)).collect(),
        within_ms: step.waits().then_some(3 * 3_600_000),
        requirements: Vec::new(),
    }
}

fn trigger(when: When, at: Place) -> Trigger {
    let request = |kind, nth| {
        Trigger::Request(RequestTrigger {
            kind,
            nth,
            query: Vec::new(),
        })
    };
    match when {
        When::Now => Trigger::Now,
        When::After(ms) => Trigger::After(ms.into()),
        When::FirstList => request(RequestKind::List, Some(1)),
        When::NextWatch => request(RequestKind::Watch, None),
        When::NextRequest => request(RequestKind::Any, None),
        When::NextList => request(RequestKind::List, None),
        When::SecondPage => request(RequestKind::Page { page: 2 }, None),
        When::Emitted(what) => Trigger::Emitted(EmittedMatch {
            kind: emitted(what),
            name: None,
            resource_version: None,
            code: None,
            message: None,
            nth: 1,
            at,
        }),
        When::Synced => Trigger::Synced,
        When::Quiet(ms) => Trigger::Quiet(ms.into()),
    }
}

fn emitted(word: &str) -> EmittedKind {
    let kinds = [
        EmittedKind::Init,
        EmittedKind::InitApply,
        EmittedKind::InitDone,
        EmittedKind::Apply,
        EmittedKind::Delete,
        EmittedKind::Error,
    ];
    let mut kinds = kinds.into_iter();
    kinds
        .find(|kind| kind.word() == word)
        .unwrap_or_else(|| panic!("no event is called {word}"))
}

fn made_action(action: &Action, target: &scenario::Target, at: Place) -> Made {
    match action {
        Action::Write(write) => Made::Store(made_write(write, target, at)),
        Action::ResponseFault(answer) => made_answer(answer),
        Action::Lie(lie) => made_lie(lie),
    }
}

fn made_write(write: &Write, target: &scenario::Target, at: Place) -> StoreAction {
    match write {
        Write::Apply(object) => StoreAction::Apply(vec![Manifest {
            binds: object.binds.map(version_name),
            ..manifest(object, at)
        }]),
        Write::ApplyMany(kind, count) => {
            let object = |i: u32| Object {
                kind,
                namespace: None,
                name: format!("m-{i}"),
                value: 0,
                text: "",
                app: None,
                filler: 0,
                binds: None,
            };
            StoreAction::Apply((0..*count).map(|i| manifest(&object(i), at)).collect())
        }
        Write::Delete(key) => StoreAction::Delete {
            objects: vec![object_name(key, target)],
            binds: None,
        },
        Write::Relabel(key, app) => StoreAction::Relabel {
            object: object_name(key, target),
            labels: vec![("app".to_owned(), app.map(str::to_owned))],
            binds: None,
        },
        Write::Compact => StoreAction::Compact,
        Write::ClearWatchCache(at) => StoreAction::ClearWatchCache(replica(*at)),
        Write::Freeze(at) => StoreAction::FreezeWatchCache(replica(*at)),
        Write::Lag(ms, at) => StoreAction::LagWatchCache {
            by_ms: (*ms).into(),
            at: replica(*at),
        },
        Write::Thaw(at) => StoreAction::ThawWatchCache(replica(*at)),
        Write::Restart(down_ms, filling_ms, at) => StoreAction::Restart(Restart {
            down_ms: (*down_ms).into(),
            filling_ms: (*filling_ms).into(),
            at: replica(*at),
        }),
        Write::JumpClock(seconds) => StoreAction::JumpClock {
            by_ms: i64::from(*seconds) * 1_000,
        },
        Write::Restore(name) => StoreAction::Restore {
            to: Ref::ResourceVersion(version_name(*name)),
        },
    }
}

fn replica(at: Where) -> Option<Replica> {
    at.map(|at| match at {
        "secondary" => Replica::Secondary,
        _ => Replica::Primary,
    })
}

fn made_answer(answer: &ResponseFault) -> Made {
    match *answer {
        ResponseFault::Repeat(times) => Made::Rule(RuleAction::RepeatEvent(times)),
        ResponseFault::Delay(ms) => Made::Shape(ShapeAction::Delay(ms.into())),
        ResponseFault::Drip(bytes, ms) => Made::Shape(ShapeAction::Pace(fault::Pace::Drip {
            bytes,
            every_ms: ms.into(),
        })),
        ResponseFault::Coalesce(events) => Made::Shape(ShapeAction::Pace(fault::Pace::Coalesce { events })),
        ResponseFault::Truncate(cut, then) => Made::Rule(RuleAction::Truncate {
            cut: match cut {
                Cut::Bytes(bytes) => fault::Cut::AfterBytes(bytes.into()),
                Cut::Events(events, percent) => fault::Cut::AfterEvents {
                    events,
                    percent: u8::try_from(percent).unwrap_or(99),
                },
            },
            ending: ending(then),
        }),
        ResponseFault::End(how) => Made::Stream(StreamAction::End(ending(how))),
        ResponseFault::NoAnswer(how) => Made::Shape(ShapeAction::NoAnswer(ending(how))),
        ResponseFault::RefuseConnections(ms) => Made::Refuse(ms.into()),
        ResponseFault::Refuse(_) | ResponseFault::EditPage(_) => {
            parsed_action(Part::OnList, &answer.to_string())
        }
        ResponseFault::Error(_)
        | ResponseFault::Bookmark
        | ResponseFault::NoBookmarks
        | ResponseFault::EndMarker(_)
        | ResponseFault::SplitUtf8
        | ResponseFault::Gzip
        | ResponseFault::Goaway => parsed_action(Part::OnWatch, &answer.to_string()),
    }
}

fn ending(ending: Ending) -> fault::Ending {
    match ending {
        Ending::Eof => fault::Ending::Eof,
        Ending::Fin => fault::Ending::Fin,
        Ending::Rst => fault::Ending::Rst,
        Ending::Stall => fault::Ending::Stall,
        Ending::NoCloseNotify | Ending::RstStream(_) | Ending::Goaway(_) => {
            match parsed_action(Part::OnWatch, &format!("{{end: {ending}}}")) {
                Made::Stream(StreamAction::End(ending)) => ending,
                Made::Stream(_) | Made::Store(_) | Made::Shape(_) | Made::Rule(_) | Made::Refuse(_) => {
                    panic!("`end` is parsed as an ending")
                }
            }
        }
    }
}

fn made_lie(lie: &Lie) -> Made {
    match lie {
        Lie::Drop(count) => Made::Rule(RuleAction::DropEvents(*count)),
        Lie::Reorder(count) => Made::Rule(RuleAction::ReorderEvents(*count)),
        Lie::Event(kind, object, version) => {
            let sample = sample(Part::Kind, object.kind);
            let template = sample.objects.first().expect("the file has one object");
            Made::Stream(StreamAction::SendEvent {
                kind: (*kind).to_owned(),
                object: SentObject::Given(json(object, &template.json)),
                resource_version: version.map(|version| match version {
                    "absent" => Expected::Absent,
                    quoted => Expected::Is(quoted.trim_matches('"').to_owned()),
                }),
            })
        }
        Lie::Unreadable(text) if !text.starts_with("send") => parsed_action(Part::OnList, &lie.to_string()),
        Lie::Unreadable(_) | Lie::Bookmark(_) => parsed_action(Part::OnWatch, &lie.to_string()),
        Lie::Page(_) => parsed_action(Part::OnList, &lie.to_string()),
    }
}

/// Returns the scenario as text, without columns, to compare it with another.
#[cfg(test)]
pub(super) fn text(scenario: &Scenario) -> String {
    let text = format!("{scenario:?}");
    let parts = text
        .split("column: ")
        .enumerate()
        .map(|(index, part)| match index {
            0 => part,
            _ => part.trim_start_matches(|c: char| c.is_ascii_digit()),
        });
    parts.collect()
}
