//! Clients that follow a collection, and what each holds: adapters by their reports, kubectl by what it prints. They must not know
//! the faults.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use conformance::adapter::message::{self, Event, FirstList, Options};
use e2e::kubectl::{Kubectl, RunningCommand};
use e2e::lines::Lines;
use e2e::server::Server;
use e2e::toolchain::repository;
use serde_json::Value;

/// Longer than any recovery takes: client-go waits up to a minute between two lists, if faults come faster than its backoff forgets.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);

/// After which our watcher gives up a silent watch: not before the apiserver's next bookmark, which comes each minute. Others have
/// no such setting, and wait for minutes or for ever.
const IDLE_TIMEOUT_MS: u64 = 90_000;

/// Objects by name: UID and version.
pub(crate) type Objects = BTreeMap<String, (String, String)>;

/// How a client lists.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lists {
    /// In pages, also after a fault.
    Paged,
    /// At once: client-go asks for pages only without a version, which it has after its first list.
    Whole,
    /// By a watch.
    Streaming,
}

pub(crate) enum Follower {
    Adapter(Adapter),
    Kubectl(KubectlWatch),
}

impl Follower {
    /// Returns what it holds.
    pub(crate) fn cache(&mut self) -> Objects {
        match self {
            Self::Adapter(adapter) => adapter.cache(),
            Self::Kubectl(watch) => watch.held.clone(),
        }
    }

    /// Waits until it holds these objects.
    pub(crate) fn settled(&mut self, expected: &Objects, after: &str) {
        match self {
            Self::Adapter(adapter) => adapter.settled(expected, after),
            Self::Kubectl(watch) => watch.settled(expected, after),
        }
    }
}

/// A client of the conformance suite, and what it holds by its reports.
pub(crate) struct Adapter {
    child: Child,
    stdin: ChildStdin,
    lines: Lines,
    errors: Lines,
    next: usize,
    held: Objects,
    /// The list that it reads.
    fresh: Option<Objects>,
    dumps: bool,
}

impl Adapter {
    pub(crate) fn start(command: &[String], proxy: &Server, lists: Lists) -> Self {
        let mut child = Command::new(&command[0])
            .args(&command[1..])
            .env("KUBECONFIG", proxy.kubeconfig())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut adapter = Self {
            stdin: child.stdin.take().unwrap(),
            lines: Lines::of(child.stdout.take().unwrap()),
            errors: Lines::of(child.stderr.take().unwrap()),
            child,
            next: 0,
            held: Objects::new(),
            fresh: None,
            dumps: false,
        };
        let Event::Hello(hello) = adapter.event() else {
            panic!("{command:?} says no hello")
        };
        adapter.dumps = hello.caps.contains(&message::Capability::Cache);
        // Faults come faster than default backoffs recover from.
        let backoff = message::Backoff {
            initial_ms: Some(300),
            max_ms: Some(1_000),
            ..message::Backoff::default()
        };
        let can = |capability| hello.caps.contains(&capability);
        let options = Options {
            page_size: (lists == Lists::Paged).then_some(1),
            initial_list: (lists != Lists::Streaming).then_some(FirstList::List),
            backoff: can(message::Capability::Backoff).then_some(backoff),
            idle_timeout_ms: can(message::Capability::IdleTimeout).then_some(IDLE_TIMEOUT_MS),
            ..Options::default()
        };
        let start = message::Start::on_config_maps("informer", options);
        adapter.send(&message::Command::Start(Box::new(start)));
        adapter
    }

    fn send(&mut self, command: &message::Command) {
        let line = serde_json::to_string(command).unwrap();
        writeln!(self.stdin, "{line}").unwrap();
    }

    /// Waits for the next message.
    fn event(&mut self) -> Event {
        let found = self.lines.find(self.next, |line| Some(line.to_owned()));
        let (number, line) = found.unwrap_or_else(|_| panic!("no message; {:?}", self.errors.since(0)));
        self.next = number + 1;
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line}: {error}"))
    }

    /// Waits until its reports add up to these objects.
    pub(crate) fn settled(&mut self, expected: &Objects, after: &str) {
        while self.held != *expected || self.fresh.is_some() {
            assert!(
                self.lines.find_for(PATIENCE, self.next, |_| Some(())).is_ok(),
                "after {after}: {:?} instead of {expected:?}; {:?}",
                self.held,
                self.errors.since(0)
            );
            let event = self.event();
            self.take(event);
        }
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Init => self.fresh = Some(Objects::new()),
            Event::InitApply(object) | Event::Apply(object) | Event::Add(object) | Event::Update(object) => {
                let (name, identity) = identified(object);
                self.fresh
                    .as_mut()
                    .unwrap_or(&mut self.held)
                    .insert(name, identity);
            }
            Event::InitDone => self.held = self.fresh.take().unwrap(),
            Event::Delete(object) => drop(self.held.remove(&identified(object).0)),
            Event::Dump { items, .. } => self.held = items.into_iter().map(identified).collect(),
            Event::Synced | Event::Bookmark { .. } | Event::Error { .. } => {}
            Event::Hello(_) | Event::End | Event::Closed | Event::Unsupported { .. } => {
                panic!("unexpected: {event:?}")
            }
        }
    }

    /// Returns its cache if it has one, else what its reports add up to.
    pub(crate) fn cache(&mut self) -> Objects {
        if self.dumps {
            self.send(&message::Command::Dump { id: 1 });
            loop {
                let event = self.event();
                let is_dump = matches!(event, Event::Dump { .. });
                self.take(event);
                if is_dump {
                    break;
                }
            }
        }
        self.held.clone()
    }
}

impl Drop for Adapter {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Returns name, UID and version.
fn identified(object: message::Object) -> (String, (String, String)) {
    match object.obj {
        Some(whole) => identified_whole(&whole),
        None => (
            object.name.unwrap(),
            (object.uid.unwrap_or_default(), object.rv.unwrap_or_default()),
        ),
    }
}

fn identified_whole(object: &Value) -> (String, (String, String)) {
    let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default().to_owned();
    (text("name"), (text("uid"), text("resourceVersion")))
}

/// `kubectl get --watch` in a loop of the shell: it ends with its watch.
pub(crate) struct KubectlWatch {
    running: RunningCommand,
    next: usize,
    held: Objects,
}

/// Printed before kubectl is started.
const STARTED: &str = "started";

impl KubectlWatch {
    pub(crate) fn start(kubectl: &Kubectl) -> Self {
        let watch = "kubectl get configmaps --watch --output-watch-events --output=json --chunk-size=1";
        let again = format!("while :; do echo {STARTED}; {watch}; done");
        Self {
            running: kubectl.start_shell(repository(), &again),
            next: 0,
            held: Objects::new(),
        }
    }

    pub(crate) fn settled(&mut self, expected: &Objects, after: &str) {
        while self.held != *expected {
            let printed = self.running.printed();
            let next = printed.find_for(PATIENCE, self.next, |line| Some(line.to_owned()));
            let Ok((number, line)) = next else {
                panic!("after {after}: {:?} instead of {expected:?}", self.held)
            };
            self.next = number + 1;
            if line == STARTED {
                self.held.clear();
            } else {
                self.take(&line);
            }
        }
    }

    fn take(&mut self, line: &str) {
        let event: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        // A page of the first list is one event.
        if let Some(items) = event["object"]["items"].as_array() {
            self.held.extend(items.iter().map(identified_whole));
            return;
        }
        let (name, identity) = identified_whole(&event["object"]);
        match event["type"].as_str() {
            Some("ADDED" | "MODIFIED") => drop(self.held.insert(name, identity)),
            Some("DELETED") => drop(self.held.remove(&name)),
            // It asks for no bookmarks, and prints the one of the fault like any event.
            Some("ERROR" | "BOOKMARK") => {}
            other => panic!("{other:?}: {line}"),
        }
    }
}
