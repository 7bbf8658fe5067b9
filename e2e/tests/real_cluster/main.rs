//! `fake-apiserver proxy` before a real kube-apiserver with its etcd: clients of four projects recover from each fault, hold what
//! the apiserver has, and are accused of nothing that a person has not upheld.
//!
//! It needs the oracle: `cargo xtask oracle build --version 1.37`.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod faults;
mod followers;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use e2e::adapters::Registry;
use e2e::crowd::record::{Record, SERVE};
use e2e::kubectl::Kubectl;
use e2e::server::Server;
use e2e::toolchain::{self, or_skip, repository};
use faults::{Ctl, FAULTS, Logged, LoggedAfter, Opened, Step, Write};
use followers::{Adapter, Follower, KubectlWatch, Lists, Objects, PATIENCE};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube_client::{Client, Error, ResourceExt as _};
use regex::Regex;
use serde_json::{Value, json};
use tests::oracle::Oracle;
use tests::programs;
use tokio::runtime::Runtime;

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
            let mut config = tests::kubeconfig::config(proxy.kubeconfig()).await;
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
        member.follower.settled(&objects, "the start");
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
            member.follower.settled(&expected, fault.name);
            member.has_no_rule(fault.name);
        }
        report(fault.name);
    }
    for member in &members {
        cluster.write_without_answer(&member.proxy, &format!("unanswered-{}", member.name));
    }
    let expected = cluster.objects();
    for member in &mut members {
        member.follower.settled(&expected, "writes without an answer");
        assert_eq!(member.follower.cache(), expected, "{}", member.name);
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
    ours.follower.settled(&expected, "silence");
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
