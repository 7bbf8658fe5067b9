//! `kube-apiserver`: the in-memory apiserver with the flags of the real one, TLS and authentication.
//!
//! Source: kubernetes 1.37.2 `cmd/kube-apiserver/app`; recorded messages and exit codes.

use std::process::ExitCode;
use std::time::Duration;

use fake_apiserver::api::Access;
use fake_apiserver::net::{Edge, ListenerLimits, ServeOptions};
use fake_apiserver::record::Record;
use fake_apiserver::scenario::{Scenario, ServerSettings, Version};
use judge::wire::Loops;
use rustix::process::{Pid, getppid};
use serde_json::Value;

use super::faults::{self, Faults};
use super::flags::{self, Dialect, Given, Parsed};
use super::keeper::Keeper;
use super::options::{Options, options};
use super::print;
use super::verdict::{self, Left};
use crate::judging::{Commentator, Judge};
use crate::serve::{WATCH_CACHE_CAPACITY, wall_clock};
use crate::stage::{self, Origin, Running, Stage};
use crate::{Failure, output, random, state, webhooks};

pub(super) const FLAGS: &str = include_str!("kube-apiserver.flags");

/// Flags with an effect.
const EFFECTS: [(&str, &str); 17] = [
    (
        "anonymous-auth",
        "Accept requests without credentials as system:anonymous [default: true].",
    ),
    (
        "authorization-mode",
        "AlwaysAllow, or anything else for authorization [default: AlwaysAllow].",
    ),
    ("bind-address", "IP address to listen on [default: 0.0.0.0]."),
    (
        "cert-dir",
        "Directory of apiserver.crt and apiserver.key; they are generated if absent.",
    ),
    (
        "client-ca-file",
        "Authority of client certificates: CN is the user, every O a group.",
    ),
    ("disable-admission-plugins", "Admission plugins without effect."),
    (
        "emulated-version",
        "Kubernetes minor version to emulate [default: the newest].",
    ),
    (
        "etcd-servers",
        "Required; not used, because objects are in memory.",
    ),
    ("secure-port", "Port to serve HTTPS at [default: 6443]."),
    (
        "service-account-issuer",
        "Required; tokens have the default issuer.",
    ),
    (
        "service-account-key-file",
        "Must be readable; tokens are signed with a random key.",
    ),
    ("service-account-signing-endpoint", "Not used."),
    (
        "service-account-signing-key-file",
        "Must be readable; tokens are signed with a random key.",
    ),
    (
        "tls-cert-file",
        "Serving certificate, instead of that in --cert-dir.",
    ),
    ("tls-private-key-file", "Key of --tls-cert-file."),
    (
        "token-auth-file",
        "Bearer tokens: lines of token,user,uid,\"group1,group2\".",
    ),
    (
        "v",
        "1 or more: log every request and response on standard error.",
    ),
];

/// Environment variable with the Kubernetes version to emulate, if no flag has it.
const VERSION: &str = "FAKE_APISERVER_KUBERNETES_VERSION";

/// How long responses may continue after SIGTERM: suites stop an apiserver after each package, with watches open.
const GRACE: Duration = Duration::from_millis(100);

/// Interval at which the current verdict is passed to the process that writes it if this one is killed.
const HELD_EVERY: Duration = Duration::from_millis(250);

/// Runs it.
pub(super) fn main(arguments: &[String]) -> ExitCode {
    let given = match flags::parse(Dialect::Pflag, &flags::table(FLAGS), arguments) {
        Ok(Parsed::Run(given)) => given,
        Ok(Parsed::Help) => {
            print(&help());
            return ExitCode::SUCCESS;
        }
        Ok(Parsed::Version) => {
            print(&format!(
                "Kubernetes {} (fake-apiserver {})\n",
                Version::NEWEST.recorded_release(),
                env!("CARGO_PKG_VERSION")
            ));
            return ExitCode::SUCCESS;
        }
        Err(mistake) => return refused(&mistake),
    };
    if !given.arguments.is_empty() {
        let words: Vec<String> = given.arguments.iter().map(|word| format!("{word:?}")).collect();
        let message = format!(
            "\"kube-apiserver\" does not take any arguments, got [{}]",
            words.join(" ")
        );
        return refused(&message);
    }
    let keeper =
        verdict::file_of_environment().and_then(|file| file.map(|file| Keeper::start(&file)).transpose());
    let mut keeper = match keeper {
        Ok(keeper) => keeper,
        Err(failure) => return failed(&failure),
    };
    let done = serve(&given, &mut keeper);
    let line = done.as_ref().map_or_else(verdict::failed, Value::clone);
    let kept = keeper.map_or(Ok(()), |keeper| keeper.finish(&line));
    match done.and(kept) {
        Ok(()) => {
            output::flush_log();
            ExitCode::SUCCESS
        }
        Err(failure) => failed(&failure),
    }
}

fn refused(mistake: &str) -> ExitCode {
    output::log(&format!("Error: {mistake}"));
    output::flush_log();
    ExitCode::FAILURE
}

fn failed(failure: &Failure) -> ExitCode {
    output::log(&format!("\"command failed\" err=\"{failure}\""));
    output::flush_log();
    ExitCode::FAILURE
}

/// Lists the flags as kube-apiserver does, one per line: controller-runtime searches for some of them.
fn help() -> String {
    let table = flags::table(FLAGS);
    let mut text = "fake-apiserver as kube-apiserver: serves the Kubernetes API from memory, for tests.\n\n\
        Usage:\n  kube-apiserver [flags]\n\nFlags with an effect:\n\n"
        .to_owned();
    let shown = |name: &str, kind: &str| format!("--{name} {kind}").trim_end().to_owned();
    for (name, kind) in &table {
        if let Some((_, effect)) = EFFECTS.iter().find(|(known, _)| known == name) {
            text.push_str(&format!("      {:50} {effect}\n", shown(name, kind)));
        }
    }
    text.push_str("\nFlags accepted without effect:\n\n");
    for (name, kind) in &table {
        if !EFFECTS.iter().any(|(known, _)| known == name) {
            text.push_str(&format!("      {}\n", shown(name, kind)));
        }
    }
    text.push_str("\nGlobal flags:\n\n  -h, --help\n      --version\n");
    text
}

/// Serves until it is stopped, and returns the line of its verdict.
fn serve(given: &Given, keeper: &mut Option<Keeper>) -> Result<Value, Failure> {
    let parent = getppid();
    state::forget_killed();
    let version = std::env::var(VERSION).ok().filter(|version| !version.is_empty());
    let options = options(given, version.as_deref()).map_err(Failure::Usage)?;
    let faults = Faults::from_environment();
    let scenario = faults.scenario()?;
    let mut server = faults::server(scenario.clone(), settings(&options));
    let rules = faults.add_rules(&mut server)?;
    let access = Access {
        token: random::word()?,
        limited_token: None,
        signing_secret: random::bytes()?,
    };
    let server = server
        .with_access(access.clone())
        .with_access_settings(options.access)
        .with_authorization(options.authorization);
    let shown_from = server.next_record();
    let stage = Stage {
        server: server.keeping(stage::RECORDS_KEPT),
        what: format!("as kube-apiserver at {}", options.address),
        origin: Origin::Model(
            scenario
                .as_ref()
                .map_or(options.version, |scenario| scenario.server.version),
        ),
        wall_clock: Some(wall_clock),
        serving: ServeOptions {
            address: options.address,
            tls: Some(options.tls),
            access: Some(access),
            checks_pages: false,
            authorization: Some(options.authorization),
            limits: ListenerLimits {
                grace: GRACE,
                ..ListenerLimits::default()
            },
            webhooks: webhooks::from_environment()?,
        },
        control_port: 0,
        control_token: None,
        namespace: None,
        kubeconfig: None,
    };
    let judge = Judge::new(Loops::Many, excused(scenario.as_deref()));
    let commentator = Commentator {
        judge: judge.clone(),
        shows_all: options.logs_all,
    };
    stage::block_on(async |stop| {
        stop.or_end_unnoticed();
        let mut running = Running::open(stage, judge.clone()).await?;
        let (url, edge) = (running.url().to_owned(), running.edge.clone());
        if let Some(keeper) = keeper.as_mut() {
            keeper.hold(&verdict::line(&url, &judge.verdict(), &left(&edge), false));
        }
        output::log(&format!(
            "fake-apiserver as kube-apiserver at {url}, {rules} rules, {}",
            scenario.as_ref().map_or("no scenario", |scenario| &scenario.id)
        ));
        let ends = async {
            match keeper {
                Some(keeper) => {
                    tokio::select! {
                        () = stop.requested() => {}
                        () = hold(keeper, &edge, &judge, &url, parent) => {}
                    }
                }
                None => stop.requested().await,
            }
        };
        let hear = |now, records: &[Record]| commentator.hear(now, records);
        running.serve(shown_from, ends, hear).await;
        stage::unbroken(&running.edge)?;
        Ok(verdict::line(&url, &judge.verdict(), &left(&running.edge), true))
    })
}

/// Passes the current verdict to the keeper after each change, and has it written when the parent of this apiserver has
/// exited without stopping it. Does not return.
#[expect(clippy::disallowed_methods, reason = "the edge decides how often it reports")]
async fn hold(keeper: &mut Keeper, edge: &Edge, judge: &Judge, url: &str, mut parent: Option<Pid>) {
    let (mut before, mut last) = (None, None);
    loop {
        let newest = edge.read_records(0, |records| records.last().map(|record| record.seq));
        // Once more after the last record, which the judge may not have processed yet.
        if newest != last || last != before {
            keeper.hold(&verdict::line(url, &judge.verdict(), &left(edge), false));
        }
        (before, last) = (last, newest);
        // A process whose parent has exited gets another one.
        if parent != getppid() {
            parent = getppid();
            keeper.write_now();
        }
        tokio::time::sleep(HELD_EVERY).await;
    }
}

/// Faults that did not occur.
fn left(edge: &Edge) -> Left {
    let left = edge.steer(|server, _| Left {
        rules: server.rules(),
        step: server.waiting_step(),
    });
    left.unwrap_or_default()
}

fn settings(options: &Options) -> ServerSettings {
    ServerSettings {
        version: options.version,
        admission: options.admission,
        watch_cache_capacity: WATCH_CACHE_CAPACITY,
        epoch_seconds: wall_clock().as_secs(),
        ..ServerSettings::default()
    }
}

/// Invariants that the scenario excuses.
fn excused(scenario: Option<&Scenario>) -> Vec<String> {
    let excuses = scenario.into_iter().flat_map(|scenario| &scenario.expect.excused);
    excuses.map(|excuse| excuse.invariant.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// controller-runtime's `CheckFlag`: `(?m)^\s*--NAME\b`.
    #[test]
    fn help_lists_flags_a_line_each_and_none_that_is_gone() {
        let help = help();
        let has = |name: &str| {
            let flag = format!("--{name}");
            help.lines()
                .any(|line| line.split_whitespace().next() == Some(flag.as_str()))
        };
        assert!(has("secure-port") && has("service-account-issuer") && has("runtime-config"));
        assert!(!has("insecure-port"), "controller-runtime would set it");
        for (name, _) in EFFECTS {
            assert!(has(name), "{name} is no flag of kube-apiserver");
        }
    }
}
