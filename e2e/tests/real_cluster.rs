//! `fake-apiserver proxy` before a real kube-apiserver with its etcd: clients of four projects recover from each fault, hold what
//! the apiserver has, and are accused of nothing that a person has not upheld.
//!
//! It needs the oracle: `cargo xtask oracle build --version 1.37`.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use conformance::adapter::message::{self, Event, FirstList, Options};
use e2e::adapters::Registry;
use e2e::crowd::record::{Record, SERVE};
use e2e::kubectl::{Kubectl, RunningCommand};
use e2e::lines::Lines;
use e2e::server::Server;
use e2e::toolchain::{self, or_skip, repository};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube_client::config::{Config, KubeConfigOptions, Kubeconfig};
use kube_client::{Client, Error, ResourceExt as _};
use regex::Regex;
use serde_json::{Value, json};
use tests::oracle::Oracle;
use tests::programs;
use tokio::runtime::Runtime;

/// Longer than any recovery takes: client-go waits up to a minute between two lists, if faults come faster than its backoff forgets.
const PATIENCE: Duration = Duration::from_secs(180);

/// After which our watcher gives up a silent watch: not before the apiserver's next bookmark, which comes each minute. Others have
/// no such setting, and wait for minutes or for ever.
const IDLE_TIMEOUT_MS: u64 = 90_000;

/// Objects by name: UID and version.
type Objects = BTreeMap<String, (String, String)>;

/// A fault of the proxy.
struct Fault {
    name: &'static str,
    /// Whether only a list in pages meets it.
    paged: bool,
    /// Each is done for all clients before the next.
    steps: &'static [Step],
}

/// A step of a fault.
enum Step {
    /// `ctl` with these arguments, once a watch is open that they apply to.
    Ctl(&'static [&'static str]),
    /// The cluster is written to.
    Write,
    /// Waits for a line of the proxy's log after the last one: its side and text match this expression as a whole.
    Logged(&'static str),
    /// The same, not sooner than so many milliseconds after the last one.
    LoggedAfter(u64, &'static str),
    /// Waits for another watch, which the apiserver answers with 200.
    Opened,
}

use Step::{Ctl, Logged, LoggedAfter, Opened, Write};

/// All that a proxy can inject, each with what its log has of it.
const FAULTS: &[Fault] = &[
    Fault {
        name: "410 as an event",
        paged: false,
        steps: &[
            Ctl(&["expire"]),
            Write,
            Logged(r"server ~ #\d+ ERROR 410 Expired"),
            Opened,
        ],
    },
    Fault {
        name: "410 as the status of a watch",
        paged: false,
        steps: &[
            Ctl(&["expire", "--status"]),
            Ctl(&["cut"]),
            Write,
            Logged(r"server ~ #\d+ 410"),
            Opened,
        ],
    },
    Fault {
        name: "an expired continue token",
        paged: true,
        steps: &[
            Ctl(&[
                "apply",
                "when: {page: 2}, do: {reply: {status: 410, reason: Expired}}",
            ]),
            Ctl(&["expire"]),
            Write,
            Logged(r"client > #\d+ c\d+ LIST .*[?&]continue=.*"),
            Logged(r"server ~ #\d+ 410"),
            Opened,
        ],
    },
    Fault {
        name: "a clean end",
        paged: false,
        steps: &[
            Ctl(&["cut", "--how", "eof"]),
            Write,
            Logged(r"server < #\d+ eof"),
            Opened,
        ],
    },
    Fault {
        name: "a cut line",
        paged: false,
        steps: &[
            Ctl(&[
                "apply",
                "when: {watch: next}, do: {truncate: {after_events: 0, percent: 50, then: fin}}",
            ]),
            Ctl(&["cut"]),
            Opened,
            Write,
            Logged(r"server ~ #\d+ \d+ of \d+ bytes of (ADDED|MODIFIED|DELETED) .*"),
            Logged(r"server ~ #\d+ fin"),
            Opened,
        ],
    },
    Fault {
        name: "a reset",
        paged: false,
        steps: &[
            Ctl(&["cut", "--how", "rst"]),
            Write,
            Logged(r"server ~ #\d+ rst"),
            Opened,
        ],
    },
    Fault {
        name: "GOAWAY",
        paged: false,
        steps: &[
            Ctl(&["apply", "do: goaway"]),
            Ctl(&["cut", "--how", "eof"]),
            Write,
            Logged(r"server ~ goaway NO_ERROR \(c\d+\)"),
            Logged(r"client > connects \(c\d+\)"),
            Opened,
        ],
    },
    Fault {
        name: "refused connections",
        paged: false,
        steps: &[
            Ctl(&["refuse", "3s"]),
            Ctl(&["apply", "do: goaway"]),
            Ctl(&["cut", "--how", "rst"]),
            Write,
            Logged(r"store  \. connections refused for 3000 ms \(now \d+\)"),
            LoggedAfter(3000, r"client > connects \(c\d+\)"),
            Opened,
        ],
    },
    Fault {
        name: "a rate limit",
        paged: false,
        steps: &[
            Ctl(&["fail", "429", "--kind", "watch", "--retry-after", "1"]),
            Ctl(&["cut"]),
            Write,
            Logged(r"server ~ #\d+ 429 Retry-After: 1"),
            Opened,
        ],
    },
    Fault {
        name: "watches that lag",
        paged: false,
        steps: &[
            Ctl(&["lag", "300ms"]),
            Write,
            Logged(r"store  \. every watch cache lags by 300 ms \(now \d+\)"),
            LoggedAfter(300, r"server [<~] #\d+ ADDED .*"),
            Ctl(&["thaw"]),
        ],
    },
    Fault {
        name: "watches that stand still",
        paged: false,
        steps: &[
            Ctl(&["freeze"]),
            Write,
            Logged(r"store  \. every watch cache frozen \(now \d+\)"),
            Ctl(&["thaw"]),
            Logged(r"store  \. every watch cache thawed \(now \d+\)"),
            Logged(r"server [<~] #\d+ ADDED .*"),
        ],
    },
    Fault {
        name: "a watch without bookmarks",
        paged: false,
        steps: &[
            Ctl(&["apply", "when: {watch: next}, do: no_bookmarks"]),
            Ctl(&["cut"]),
            Write,
            Logged(r"script \. rule \d+ on #\d+: no_bookmarks"),
            Logged(r"server [<~] #\d+ 200"),
        ],
    },
    Fault {
        name: "a bookmark",
        paged: false,
        steps: &[Ctl(&["bookmark"]), Logged(r"server ~ #\d+ BOOKMARK @\d+"), Write],
    },
    Fault {
        name: "an event that is repeated",
        paged: false,
        steps: &[
            Ctl(&["apply", "when: {watch: next}, do: {repeat_event: 2}"]),
            Ctl(&["cut"]),
            Opened,
            Write,
            Logged(r"server ~ #\d+ (ADDED|MODIFIED|DELETED) .*"),
        ],
    },
];

impl Fault {
    /// Returns whether a client that lists like this meets it.
    fn is_for(&self, lists: Lists) -> bool {
        !self.paged || lists == Lists::Paged
    }
}

impl Step {
    /// Does it for these clients.
    fn run(&self, cluster: &mut Cluster, members: &mut [&mut Member]) {
        match self {
            Ctl(command) => members.iter().for_each(|member| member.steer(command)),
            Write => cluster.write(),
            Logged(line) => {
                for member in members {
                    member.at = member.logged(line).0;
                }
            }
            LoggedAfter(ms, line) => {
                for member in members {
                    let (at, _) = member.logged(line);
                    let after = at.checked_sub(member.at).unwrap();
                    assert!(
                        after >= Duration::from_millis(*ms),
                        "{}: {line} after {after:?}",
                        member.name
                    );
                    member.at = at;
                }
            }
            Opened => {
                for member in members {
                    member.at = member.opened();
                }
            }
        }
    }
}

/// The real cluster, and the writes to it.
struct Cluster {
    oracle: Oracle,
    runtime: Runtime,
    maps: Api<ConfigMap>,
    written: u32,
}

impl Cluster {
    fn start(folder: &Path) -> Self {
        let oracle = Oracle::start(folder);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let maps = Api::namespaced(runtime.block_on(oracle.client()), "default");
        Self {
            oracle,
            runtime,
            maps,
            written: 0,
        }
    }

    /// Creates an object, changes the one before, and deletes an older one.
    fn write(&mut self) {
        self.written += 1;
        let name = |back: u32| self.written.checked_sub(back).filter(|number| *number > 0);
        let name = |back| name(back).map(|number| format!("m{number}"));
        self.runtime.block_on(async {
            if let Some(name) = name(0) {
                self.maps
                    .create(&PostParams::default(), &config_map(&name))
                    .await
                    .unwrap();
            }
            if let Some(name) = name(1) {
                let label = Patch::Merge(json!({ "metadata": { "labels": { "changed": "yes" } } }));
                self.maps
                    .patch(&name, &PatchParams::default(), &label)
                    .await
                    .unwrap();
            }
            if let Some(name) = name(3) {
                self.maps.delete(&name, &DeleteParams::default()).await.unwrap();
            }
        });
    }

    /// Creates an object through a proxy that loses the answer.
    fn write_without_answer(&self, proxy: &Server, name: &str) {
        proxy.ctl(&[
            "apply",
            "when: {request: next}, from: {verb: create, resource: configmaps}, do: {lose_answer: rst}",
        ]);
        let created = self.runtime.block_on(async {
            let kubeconfig = Kubeconfig::read_from(proxy.kubeconfig()).unwrap();
            let options = KubeConfigOptions::default();
            let mut config = Config::from_custom_kubeconfig(kubeconfig, &options)
                .await
                .unwrap();
            config.default_retry = false;
            let maps: Api<ConfigMap> = Api::namespaced(Client::try_from(config).unwrap(), "default");
            maps.create(&PostParams::default(), &config_map(name)).await
        });
        assert!(
            matches!(created, Err(Error::HyperError(_) | Error::Service(_))),
            "{created:?}"
        );
        assert!(self.objects().contains_key(name), "{name} is stored");
    }

    /// Returns what the apiserver lists.
    fn objects(&self) -> Objects {
        let list = self.runtime.block_on(self.maps.list(&Default::default()));
        let identified = |map: ConfigMap| {
            let version = map.resource_version().unwrap();
            (map.name_any(), (map.uid().unwrap(), version))
        };
        list.unwrap().items.into_iter().map(identified).collect()
    }
}

fn config_map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({ "metadata": { "name": name } })).unwrap()
}

/// A client behind its own proxy.
struct Member {
    name: &'static str,
    /// When the last line was logged that a fault waited for.
    at: Duration,
    /// Name in e2e/crowd/record.yaml, if the judge accuses its library rightly.
    recorded: Option<&'static str>,
    lists: Lists,
    proxy: Server,
    follower: Follower,
}

/// How a client lists.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lists {
    /// In pages, also after a fault.
    Paged,
    /// At once: client-go asks for pages only without a version, which it has after its first list.
    Whole,
    /// By a watch.
    Streaming,
}

enum Follower {
    Adapter(Adapter),
    Kubectl(KubectlWatch),
}

impl Member {
    fn steer(&self, command: &[&str]) {
        self.proxy.ctl_on_watch(command);
    }

    /// Nothing of a fault is left for the next one.
    fn has_no_rule(&self, after: &str) {
        let rules = self.proxy.ctl(&["rules"]);
        assert_eq!(rules, "no rules\n", "{}: {after}", self.name);
    }

    /// Waits for a line of the proxy's log. Returns its time, and what the first group matches.
    fn logged(&self, expression: &str) -> (Duration, String) {
        let whole = Regex::new(&format!(r"^(\d+)\.(\d{{3}})s (?:{expression})$")).unwrap();
        let what = format!("{}: {expression}", self.name);
        let line = self
            .proxy
            .expect_for(PATIENCE, &what, |line| whole.is_match(line));
        let found = whole.captures(&line).unwrap();
        let number = |group: usize| found[group].parse::<u64>().unwrap();
        let at = Duration::from_millis(number(1) * 1000 + number(2));
        let group = found.get(3).map(|group| group.as_str().to_owned());
        (at, group.unwrap_or_default())
    }

    /// Waits for another watch, which is answered with 200. Returns the time of the answer.
    fn opened(&self) -> Duration {
        let (_, stream) = self.logged(r"client > #(\d+) c\d+ WATCH(?:-LIST)? .*");
        self.logged(&format!("server [<~] #{stream} 200")).0
    }

    fn cache(&mut self) -> Objects {
        match &mut self.follower {
            Follower::Adapter(adapter) => adapter.cache(),
            Follower::Kubectl(watch) => watch.held.clone(),
        }
    }

    /// Waits until it holds these objects.
    fn settled(&mut self, expected: &Objects, after: &str) {
        match &mut self.follower {
            Follower::Adapter(adapter) => adapter.settled(expected, after),
            Follower::Kubectl(watch) => watch.settled(expected, after),
        }
    }

    /// Returns what it is accused of, beside what a person has upheld: once each, because each fault comes once.
    fn accused(self, record: &Record) -> Vec<Value> {
        let Self {
            name,
            recorded,
            lists,
            mut proxy,
            follower,
            ..
        } = self;
        drop(follower);
        assert_eq!(proxy.stop(), Some(0), "{name}");
        let printed = proxy.printed().to_end().unwrap().join("\n");
        let (_, verdict) = printed.split_once('\n').unwrap();
        let verdict: Value = serde_json::from_str(verdict).unwrap();
        let clients = verdict["clients"].as_array().unwrap();
        let reads: u64 = clients
            .iter()
            .map(|client| client["reads"].as_u64().unwrap())
            .sum();
        let opened = FAULTS.iter().filter(|fault| fault.is_for(lists));
        let opened = opened.flat_map(|fault| fault.steps);
        let opened = opened.filter(|step| matches!(step, Opened)).count() as u64;
        assert!(reads > opened, "{name} was judged: {verdict}");
        let mut accusations: Vec<Value> = clients
            .iter()
            .flat_map(|client| client["contradictions"].as_array().unwrap().clone())
            .collect();
        report(&format!(
            "{name}: {reads} lists and watches, {}",
            verdict["outcome"]
        ));
        for accusation in &accusations {
            report(&format!("  {}: {}", accusation["check"], accusation["sentence"]));
        }
        let known = recorded.map(|program| record.of(program).accusations);
        let known = known.unwrap_or_default().into_iter().map(|entry| entry.value);
        for upheld in known.filter(|entry| entry.scenario == SERVE) {
            let is_it = |accusation: &Value| {
                accusation["check"] == upheld.check
                    && accusation["requirements"] == json!(upheld.requirements)
            };
            if let Some(found) = accusations.iter().position(is_it) {
                accusations.remove(found);
            }
        }
        accusations
    }
}

/// A client of the conformance suite, and what it holds by its reports.
struct Adapter {
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
    fn start(command: &[String], proxy: &Server, lists: Lists) -> Self {
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
        adapter.send(&message::Command::Start(Box::new(message::Start {
            protocol: message::PROTOCOL,
            contract: "informer".to_owned(),
            resource: message::Resource {
                group: String::new(),
                version: "v1".to_owned(),
                plural: "configmaps".to_owned(),
                kind: "ConfigMap".to_owned(),
            },
            namespace: Some("default".to_owned()),
            options,
            paused: false,
        })));
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
    fn settled(&mut self, expected: &Objects, after: &str) {
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
    fn cache(&mut self) -> Objects {
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
struct KubectlWatch {
    running: RunningCommand,
    next: usize,
    held: Objects,
}

/// Printed before kubectl is started.
const STARTED: &str = "started";

impl KubectlWatch {
    fn start(kubectl: &Kubectl) -> Self {
        let watch = "kubectl get configmaps --watch --output-watch-events --output=json --chunk-size=1";
        let again = format!("while :; do echo {STARTED}; {watch}; done");
        Self {
            running: kubectl.start_shell(repository(), &again),
            next: 0,
            held: Objects::new(),
        }
    }

    fn settled(&mut self, expected: &Objects, after: &str) {
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

/// Starts the clients, each behind its own proxy; those that cannot be built here are left out.
fn members(cluster: &Cluster) -> Vec<Member> {
    let registry = Registry::read(repository()).unwrap();
    let fake_apiserver = toolchain::fake_apiserver();
    let target = fake_apiserver.ancestors().nth(2).unwrap();
    let programs: Vec<(&str, PathBuf)> = ["adapter-watcher", "adapter-kube-runtime"]
        .map(|name| (name, programs::path(name)))
        .to_vec();
    let programs: Vec<(&str, &Path)> = programs
        .iter()
        .map(|(name, path)| (*name, path.as_path()))
        .collect();
    let clients = [
        ("watcher", Lists::Paged, None),
        ("kube-runtime", Lists::Paged, Some("kube-watcher")),
        ("client-go-informer", Lists::Whole, None),
        ("client-go-typed", Lists::Streaming, None),
    ];
    // All are built before one is started: it would watch for as long as the others are built.
    let commands = clients.map(|(name, ..)| {
        let mut all = registry.clients.iter();
        let client = all.find(|client| client.name == name).unwrap();
        or_skip(registry.command(repository(), target, client, &programs))
    });
    let kubectl = or_skip(toolchain::go("kubectl"));
    let proxy = || {
        let kubeconfig = cluster.oracle.kubeconfig().to_str().unwrap();
        Server::start(
            "proxy",
            &["--kubeconfig", kubeconfig, "--as-me", "--verdict", "json"],
        )
    };
    let mut members = Vec::new();
    for ((name, lists, recorded), command) in clients.into_iter().zip(commands) {
        let Some(command) = command else { continue };
        let proxy = proxy();
        let follower = Follower::Adapter(Adapter::start(&command, &proxy, lists));
        members.push(Member {
            name,
            at: Duration::ZERO,
            recorded,
            lists,
            proxy,
            follower,
        });
    }
    if kubectl.is_some() {
        let proxy = proxy();
        let kubectl = Kubectl::new(&proxy).unwrap();
        members.push(Member {
            name: "kubectl",
            at: Duration::ZERO,
            recorded: None,
            lists: Lists::Paged,
            proxy,
            follower: Follower::Kubectl(KubectlWatch::start(&kubectl)),
        });
    }
    members
}

#[test]
#[ignore = "needs the oracle"]
fn before_a_real_apiserver_every_client_recovers_from_each_fault_and_none_is_accused_wrongly() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("real-cluster");
    std::fs::create_dir_all(&folder).unwrap();
    let mut cluster = Cluster::start(&folder);
    cluster.write();
    cluster.write();
    let mut members = members(&cluster);
    let objects = cluster.objects();
    for member in &mut members {
        member.settled(&objects, "the start");
    }
    for member in &members {
        member.opened();
    }
    for fault in FAULTS {
        let (mut met, unmet): (Vec<&mut Member>, Vec<&mut Member>) =
            members.iter_mut().partition(|member| fault.is_for(member.lists));
        for step in fault.steps {
            step.run(&mut cluster, &mut met);
        }
        let expected = cluster.objects();
        for member in met.into_iter().chain(unmet) {
            member.settled(&expected, fault.name);
            member.has_no_rule(fault.name);
        }
        report(fault.name);
    }
    for member in &members {
        cluster.write_without_answer(&member.proxy, &format!("unanswered-{}", member.name));
    }
    let expected = cluster.objects();
    for member in &mut members {
        member.settled(&expected, "writes without an answer");
        assert_eq!(member.cache(), expected, "{}", member.name);
        member.has_no_rule("writes without an answer");
    }
    for member in &members {
        member.steer(&["stall"]);
        member.logged(r"server ~ #\d+ stall");
    }
    cluster.write();
    let expected = cluster.objects();
    let ours = members
        .iter_mut()
        .find(|member| member.name == "watcher")
        .unwrap();
    ours.opened();
    ours.settled(&expected, "silence");
    report("silence");
    let record = Record::read(repository()).unwrap();
    let accused: Vec<Value> = members
        .into_iter()
        .flat_map(|member| member.accused(&record))
        .collect();
    assert!(accused.is_empty(), "{accused:#?}");
}

/// Prints a line that the harness does not hide.
fn report(line: &str) {
    // Writing to the log of the test cannot fail.
    drop(writeln!(std::io::stderr(), "{line}"));
}
