//! Right clients behind the proxy, without faults and with each fault once: they recover, and nobody is accused.

use std::collections::BTreeSet;
use std::pin::pin;
use std::time::Duration;

use futures::{Stream, StreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::Client;
use kube_client::api::{Api, DeleteParams, PostParams};
use kube_core::ResourceExt as _;
use serde_json::json;
use tests::repository;
use tokio::sync::mpsc;

use crate::running::Running;

/// Longer than any recovery takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a client reports.
enum Report {
    Init,
    Apply(String),
    InitDone,
    Delete(String),
}

/// A client behind a proxy, and the cluster that it is compared with.
struct World {
    _upstream: Running,
    proxy: Running,
    truth: Api<ConfigMap>,
    written: u32,
}

impl World {
    async fn new() -> Self {
        let upstream = Running::upstream();
        let proxy = Running::proxy(&upstream, &["--as-me", "--strict", "--quiet"]);
        let truth = Api::namespaced(upstream.client().await, "default");
        Self {
            _upstream: upstream,
            proxy,
            truth,
            written: 0,
        }
    }

    /// Runs a client behind the proxy in a separate thread, until it is dropped.
    async fn client<S: Stream<Item = Report>>(
        &self,
        of: impl FnOnce(Api<ConfigMap>) -> S + Send + 'static,
    ) -> Cache {
        let config = self.proxy.config().await;
        let (report, reports) = mpsc::unbounded_channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let client = Client::try_from(config).unwrap();
                let mut stream = pin!(of(Api::namespaced(client, "default")));
                loop {
                    tokio::select! {
                        () = report.closed() => return,
                        // The receiver may be gone meanwhile.
                        Some(next) = stream.next() => drop(report.send(next)),
                    }
                }
            });
        });
        Cache {
            reports,
            names: BTreeSet::new(),
            fresh: None,
        }
    }

    /// Creates an object, and deletes the one before.
    async fn write(&mut self) {
        self.written += 1;
        let map = json!({ "metadata": { "name": format!("m{}", self.written) } });
        let map = serde_json::from_value(map).unwrap();
        self.truth.create(&PostParams::default(), &map).await.unwrap();
        if self.written > 2 {
            let name = format!("m{}", self.written - 2);
            self.truth.delete(&name, &DeleteParams::default()).await.unwrap();
        }
    }

    /// Waits until the client has what the cluster has.
    async fn settled(&self, client: &mut Cache, after: &str) {
        let listed = self.truth.list(&Default::default()).await.unwrap();
        let expected: BTreeSet<String> = listed.items.iter().map(ConfigMap::name_any).collect();
        let reached = tokio::time::timeout(PATIENCE, client.read_until(&expected)).await;
        assert!(
            reached.is_ok(),
            "after {after}: {:?} instead of {expected:?}",
            client.names
        );
    }

    /// Ends the proxy, which must accuse nobody.
    fn acquits(self) {
        let ended = self.proxy.stop();
        assert_eq!(ended.verdict["outcome"], "pass", "{}", ended.verdict);
        assert_eq!(ended.code, Some(0), "{}", ended.log);
    }
}

/// Names of the objects that a client has.
struct Cache {
    reports: mpsc::UnboundedReceiver<Report>,
    names: BTreeSet<String>,
    fresh: Option<BTreeSet<String>>,
}

impl Cache {
    async fn read_until(&mut self, expected: &BTreeSet<String>) {
        while self.names != *expected {
            match self.reports.recv().await.expect("a client does not end") {
                Report::Init => self.fresh = Some(BTreeSet::new()),
                Report::Apply(name) => {
                    self.fresh.as_mut().unwrap_or(&mut self.names).insert(name);
                }
                Report::InitDone => self.names = self.fresh.take().expect("it began"),
                Report::Delete(name) => {
                    self.names.remove(&name);
                }
            }
        }
    }
}

fn ours(maps: Api<ConfigMap>, config: watcher::Config) -> impl Stream<Item = Report> {
    use watcher::Event;
    let events = watcher::watcher(maps, config);
    events.filter_map(async |event| {
        Some(match event.ok()? {
            Event::Init => Report::Init,
            Event::InitApply(map) | Event::Apply(map) => Report::Apply(map.name_any()),
            Event::InitDone => Report::InitDone,
            Event::Delete(map) => Report::Delete(map.name_any()),
        })
    })
}

/// Settings for faults that come faster than the default backoff recovers from.
fn patient() -> watcher::Config {
    watcher::Config::default().backoff(watcher::BackoffConfig {
        initial: Duration::from_millis(300),
        max: Duration::from_secs(1),
        ..watcher::BackoffConfig::default()
    })
}

fn kube_runtime(maps: Api<ConfigMap>, config: kube_runtime::watcher::Config) -> impl Stream<Item = Report> {
    use kube_runtime::WatchStreamExt as _;
    use kube_runtime::watcher::Event;
    let events = kube_runtime::watcher(maps, config).default_backoff();
    events.filter_map(async |event| {
        Some(match event.ok()? {
            Event::Init => Report::Init,
            Event::InitApply(map) | Event::Apply(map) => Report::Apply(map.name_any()),
            Event::InitDone => Report::InitDone,
            Event::Delete(map) => Report::Delete(map.name_any()),
        })
    })
}

/// A fault, and the `ctl` commands that make it.
type Fault = (&'static str, &'static [&'static [&'static str]]);

/// Faults from which every client has to recover.
const FAULTS: [Fault; 13] = [
    ("an ERROR event with 410", &[&["expire"]]),
    ("a clean end", &[&["cut", "--how", "eof"]]),
    (
        "a cut line",
        &[
            &[
                "apply",
                "when: {watch: next}, do: {truncate: {after_events: 0, percent: 50, then: fin}}",
            ],
            &["cut"],
        ],
    ),
    ("a reset", &[&["cut", "--how", "rst"]]),
    ("GOAWAY", &[&["apply", "do: goaway"], &["cut", "--how", "eof"]]),
    (
        "a refused connection",
        &[&["refuse", "300ms"], &["cut", "--how", "rst"]],
    ),
    (
        "a delay",
        &[&["apply", "when: {watch: next}, do: {delay: 300ms}"], &["cut"]],
    ),
    (
        "a watch without bookmarks",
        &[&["apply", "when: {watch: next}, do: no_bookmarks"], &["cut"]],
    ),
    ("a bookmark", &[&["bookmark"]]),
    (
        "an event that is repeated",
        &[&["apply", "when: {watch: next}, do: {repeat_event: 2}"], &["cut"]],
    ),
    ("watches that lag", &[&["lag", "300ms"]]),
    ("watches that stood still", &[&["freeze"], &["thaw"]]),
    ("a reset of all faults", &[&["reset"]]),
];

/// Those that kube-runtime answers as no client should, of which it is rightly accused.
const FAULTS_BY_STATUS: [Fault; 4] = [
    ("a status 410", &[&["expire", "--status"], &["cut"]]),
    (
        "a list that fails",
        &[
            &["fail", "503", "--kind", "list", "--retry-after", "1"],
            &["expire"],
        ],
    ),
    (
        "an expired continue token",
        &[
            &[
                "apply",
                "when: {page: 2}, do: {reply: {status: 410, reason: Expired}}",
            ],
            &["expire"],
        ],
    ),
    (
        "a rate limit",
        &[
            &["fail", "429", "--kind", "watch", "--retry-after", "1"],
            &["cut"],
        ],
    ),
];

#[tokio::test]
async fn nobody_is_accused_without_faults() {
    use kube_runtime::watcher::Config;
    let mut world = World::new().await;
    let mut clients = [
        world.client(|maps| ours(maps, watcher::Config::default())).await,
        world
            .client(|maps| kube_runtime(maps, Config::default().streaming_lists()))
            .await,
        world
            .client(|maps| kube_runtime(maps, Config::default().page_size(1)))
            .await,
    ];
    for _ in 0..4 {
        world.write().await;
        for client in &mut clients {
            world.settled(client, "a write").await;
        }
    }
    world.acquits();
}

#[tokio::test]
async fn our_watcher_recovers_from_each_fault_and_is_not_accused() {
    let world = World::new().await;
    let config = patient().page_size(1);
    let client = world.client(|maps| ours(maps, config)).await;
    let faults: Vec<_> = FAULTS.iter().chain(&FAULTS_BY_STATUS).collect();
    recovers(world, client, &faults).await;
}

#[tokio::test]
async fn kube_runtime_recovers_from_each_fault_and_is_not_accused() {
    let world = World::new().await;
    let client = world
        .client(|maps| kube_runtime(maps, kube_runtime::watcher::Config::default()))
        .await;
    let faults: Vec<_> = FAULTS.iter().collect();
    recovers(world, client, &faults).await;
}

/// Returns the `ctl` commands in the table of faults of docs/real-cluster.md, as words.
fn commands_of_the_page() -> Vec<Vec<String>> {
    let page = std::fs::read_to_string(repository::root().join("docs/real-cluster.md")).unwrap();
    let table = page.split("| `fake-apiserver ctl …` |").nth(1).unwrap();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let cells = rows.map(|row| row.split(" | ").next().unwrap().trim_start_matches('|').trim());
    let commands = cells.flat_map(|cell| cell.split(" · ").map(|command| command.trim_matches('`')));
    let words = commands.map(|command| match command.split_once(" '") {
        Some((verb, rule)) => vec![verb.to_owned(), rule.trim_end_matches('\'').to_owned()],
        None => command.split(' ').map(str::to_owned).collect(),
    });
    words.collect()
}

#[tokio::test]
async fn the_commands_of_the_page_are_those_of_ctl() {
    let world = World::new().await;
    let _client = world.client(|maps| ours(maps, patient())).await;
    let mut commands = commands_of_the_page();
    assert!(commands.len() > 10, "{commands:?}");
    // Nothing opens another watch after it.
    commands.sort_by_key(|command| command[0] == "stall");
    for command in commands {
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        world.proxy.steer_watch(&command);
        world.proxy.steer(&["reset"]);
    }
}

async fn recovers(mut world: World, mut client: Cache, faults: &[&Fault]) {
    world.write().await;
    world.settled(&mut client, "the start").await;
    for (fault, commands) in faults {
        for command in *commands {
            world.proxy.steer_watch(command);
        }
        world.write().await;
        world.settled(&mut client, fault).await;
    }
    world.acquits();
}
