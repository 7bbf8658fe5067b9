//! `kube-apiserver`: the in-memory apiserver with the flags of the real one, TLS and authentication.
//!
//! Source: kubernetes 1.37.2 `cmd/kube-apiserver/app`; recorded messages and exit codes.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use fake_apiserver::api::Access;
use fake_apiserver::api::access::Authorization;
use fake_apiserver::net::{Edge, ListenerLimits, ServeOptions};
use fake_apiserver::record::Record;
use fake_apiserver::scenario::{Scenario, ServerSettings, Version};
use fake_apiserver::server::Server;
use judge::wire::Loops;
use rustix::process::{Pid, getppid};
use serde_json::Value;

use super::behind::{self, Behind, CONTROLLERS, REAL};
use super::beside;
use super::faults::{self, Faults};
use super::flags::{self, Dialect, Given, Parsed};
use super::keeper::Keeper;
use super::options::{Front, Options, options};
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

/// Runs it. `called`: the name by which it was called, with the directory.
pub(super) fn main(called: &OsStr, arguments: &[String]) -> ExitCode {
    let real = beside::find(called, REAL);
    let is_question = |word: &String| matches!(word.as_str(), "--help" | "-h" | "--version");
    if let Some(real) = real.as_ref().filter(|_| arguments.iter().any(is_question)) {
        // controller-runtime asks which flags there are.
        let error = std::process::Command::new(real).args(arguments).exec();
        return failed(&Failure::System(
            format!("cannot start {}", real.display()),
            error,
        ));
    }
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
    let done = serve(called, real.as_deref(), arguments, &given, &mut keeper);
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

/// A server that is ready to be served.
pub(super) struct Prepared {
    pub(super) stage: Stage,
    pub(super) judge: Judge,
    /// Number of rules of the environment.
    pub(super) rules: usize,
    /// Name of the scenario.
    pub(super) scenario: String,
    pub(super) shown_from: u64,
    pub(super) logs_all: bool,
}

/// Serves until it is stopped, and returns the line of its verdict. `real`: a program to forward to.
fn serve(
    called: &OsStr,
    real: Option<&Path>,
    arguments: &[String],
    given: &Given,
    keeper: &mut Option<Keeper>,
) -> Result<Value, Failure> {
    let parent = getppid();
    state::forget_killed();
    let faults = Faults::from_environment();
    let controllers = beside::find(called, CONTROLLERS);
    stage::block_on(async |stop| {
        stop.or_end_unnoticed();
        let (prepared, mut behind) = match real {
            None => (of_model(given, &faults)?, Behind::default()),
            Some(program) => behind::real(program, arguments, given, &faults).await?,
        };
        let Prepared {
            stage,
            judge,
            rules,
            scenario,
            shown_from,
            logs_all,
        } = prepared;
        let commentator = Commentator {
            judge: judge.clone(),
            shows_all: logs_all,
        };
        let mut running = Running::open(stage, judge.clone()).await?;
        let (url, edge) = (running.url().to_owned(), running.edge.clone());
        if let Some(keeper) = keeper.as_mut() {
            keeper.hold(&verdict::line(&url, &judge.verdict(), &left(&edge), false));
        }
        let in_front = if real.is_some() { "in front of" } else { "as" };
        output::log(&format!(
            "fake-apiserver {in_front} kube-apiserver at {url}, {rules} rules, {scenario}"
        ));
        let kubeconfig = running.kubeconfig().to_owned();
        let mut broken = None;
        let ends = async {
            let judged = async {
                match keeper {
                    Some(keeper) => hold(keeper, &edge, &judge, &url, parent).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = stop.requested() => {}
                () = judged => {}
                failure = behind.attend(controllers.as_deref(), &kubeconfig) => broken = Some(failure),
            }
        };
        let hear = |now, records: &[Record]| {
            commentator.hear(now, records);
        };
        running.serve(shown_from, ends, hear).await;
        behind.stop().await;
        stage::unbroken(&running.edge)?;
        match broken {
            Some(failure) => Err(failure),
            None => Ok(verdict::line(&url, &judge.verdict(), &left(&running.edge), true)),
        }
    })
}

/// Prepares the in-memory apiserver.
fn of_model(given: &Given, faults: &Faults) -> Result<Prepared, Failure> {
    let version = std::env::var(VERSION).ok().filter(|version| !version.is_empty());
    let options = options(given, version.as_deref()).map_err(Failure::Usage)?;
    let scenario = faults.scenario()?;
    let mut server = faults::server(scenario.clone(), settings(&options));
    let rules = faults.add_rules(&mut server)?;
    let access = access()?;
    let server = server
        .with_access(access.clone())
        .with_access_settings(options.access)
        .with_authorization(options.authorization);
    let shown_from = server.next_record();
    let version = scenario
        .as_ref()
        .map_or(options.version, |scenario| scenario.server.version);
    let name = scenario.as_ref().map(|scenario| scenario.id.to_string());
    let Front { logs_all, .. } = options.front;
    Ok(Prepared {
        stage: Stage {
            wall_clock: Some(wall_clock),
            ..staged(
                server,
                Origin::Model(version),
                options.front,
                access,
                Some(options.authorization),
            )?
        },
        judge: Judge::new(Loops::Many, excused(scenario.as_deref())),
        rules,
        scenario: name.unwrap_or_else(|| "no scenario".to_owned()),
        shown_from,
        logs_all,
    })
}

/// Returns new tokens.
pub(super) fn access() -> Result<Access, Failure> {
    Ok(Access {
        token: random::word()?,
        limited_token: None,
        signing_secret: random::bytes()?,
    })
}

/// Returns the environment of a server with the flags of kube-apiserver.
pub(super) fn staged(
    server: Server,
    origin: Origin,
    front: Front,
    access: Access,
    authorization: Option<Authorization>,
) -> Result<Stage, Failure> {
    Ok(Stage {
        server: server.keeping(stage::RECORDS_KEPT),
        what: format!("as kube-apiserver at {}", front.address),
        origin,
        wall_clock: None,
        serving: ServeOptions {
            address: front.address,
            tls: Some(front.tls),
            access: Some(access),
            checks_pages: false,
            authorization,
            limits: ListenerLimits {
                grace: GRACE,
                ..ListenerLimits::default()
            },
            webhooks: webhooks::from_environment()?,
        },
        control_port: 0,
        control_token: None,
        ui: false,
        namespace: None,
        kubeconfig: None,
        service_account: None,
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
