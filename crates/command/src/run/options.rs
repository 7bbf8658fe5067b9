//! Options of `run`, and their help. It must not know what they do.

use std::cell::RefCell;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use conformance::adapter::standing::Shard;
use fake_apiserver::model::catalog::KindRef;
use fake_apiserver::scenario::Version;
use fake_apiserver::scenario::edition::Edition;
use judge::wire::SETTINGS;

use super::known::Library;
use super::restart::RestartPolicy;
use crate::recorder::RecordArguments;
pub(super) use crate::scoring::Flaky;
use crate::scoring::edition_of;
use crate::words::span;

const EXIT_CODES: &str = "\
Exit codes:
  0   every scenario that was judged passed, or failed in nothing that counts
  1   a scenario failed
  2   invalid command line or scenario file (the other files are run)
  3   the command cannot be started, or ended before its first request
  4   nothing was judged
  5   a known failure of --known-failures passes, or its scenario does not exist: remove the entry
  70  system error, or a bug in the server
  130 interrupted by SIGINT, SIGTERM or SIGHUP";

/// How long a command that works may do nothing: longer than any delay between requests that RETRY-03 allows, which is a minute.
const HANG_AFTER: &str = "75s";

/// Run scenarios against a command and judge its requests.
///
/// The command is a controller, operator or informer in any language. Each scenario starts one server and one process of
/// the command, with KUBECONFIG set (also FAKE_APISERVER_SCENARIO, FAKE_APISERVER_CLIENT and FAKE_APISERVER_TARGET as
/// JSON, FAKE_APISERVER_CONTROL and FAKE_APISERVER_CONTROL_TOKEN). The command must list and watch the target of the
/// scenario, by default ConfigMaps in namespace default, until it receives SIGTERM. Only requests are judged; judging the
/// client's cache requires an adapter.
///
/// Example: fake-apiserver run gone/ -- ./my-controller
#[derive(Debug, Args)]
#[command(
    after_help = EXIT_CODES
)]
pub(crate) struct Run {
    /// Scenario files, folders, or ids, e.g. gone/ [default: all built-in ones].
    ///
    /// A name that is no file or folder is the id of a built-in scenario, or the beginning of several.
    #[arg(value_name = "SCENARIO|DIR|ID")]
    pub(super) scenarios: Vec<PathBuf>,
    /// Command to test, with its arguments.
    #[arg(last = true, required_unless_present = "list", value_name = "COMMAND")]
    pub(super) command: Vec<String>,
    /// Seed for all randomness.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) seed: u64,
    /// Time limit per scenario, in addition to the time that its steps take.
    ///
    /// A scenario that reaches the limit is not judged. In folders, scenarios whose steps take more than a third of it, or
    /// that grant the client more than four times as much, are skipped (see --profile).
    #[arg(long, value_name = "DURATION", default_value = "90s", value_parser = span)]
    pub(super) timeout: Duration,
    /// Time without a request after which a step that waits for one is a failure.
    ///
    /// In addition to the time that the steps take or grant (`within`). A command that sends requests is not accused of what is
    /// missing: the scenario goes on up to --timeout, and is not judged.
    #[arg(long, value_name = "DURATION", default_value = HANG_AFTER, value_parser = span)]
    pub(super) hang_after: Duration,
    /// Time between SIGTERM and SIGKILL.
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = span)]
    pub(super) grace: Duration,
    /// When to start a command again that exited by itself.
    ///
    /// A command that exits with an error after it sent requests is started again as by a kubelet: at once, then after 10 s,
    /// 20 s, 40 s, up to 5 min. The scenario goes on, and a LIST of the new process counts as a relist. An exit without error
    /// is an end. With `never` an exit with an error is a failure too.
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = RestartPolicy::OnFailure)]
    pub(super) restart: RestartPolicy,
    /// Number of scenarios to run in parallel.
    ///
    /// Each has its own server and process: use more than one only if the processes do not conflict, e.g. on a port.
    #[arg(long, short, value_name = "N", default_value = "1")]
    pub(super) jobs: NonZeroUsize,
    /// Serve the live view, and print its URL.
    ///
    /// A page for a browser on this machine, which follows one scenario after the other. The URL contains the control token.
    #[arg(long, conflicts_with = "jobs")]
    pub(super) ui: bool,
    /// Port and token of the live view, which are the same for every scenario.
    #[arg(skip)]
    pub(super) seat: RefCell<Option<(u16, String)>>,
    /// Output format.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(super) format: Format,
    /// Also run scenarios that need specific client settings.
    ///
    /// Without a value: all of them. With a list: those that need no other setting, e.g.
    /// --assume-configured=page_size,labels. FAKE_APISERVER_CLIENT has the settings of the scenario as JSON. Not needed for
    /// settings that the command's own requests show: timeout, page_size, labels, fields, bookmarks, list_semantic.
    #[arg(
        long,
        value_name = "SETTING,…",
        num_args = 0..=1,
        require_equals = true,
        value_delimiter = ',',
        default_missing_value = ALL,
        value_parser = setting
    )]
    pub(super) assume_configured: Vec<String>,
    /// Run scenarios on this resource instead, e.g. deployments.apps.
    ///
    /// The same writes and faults, on valid objects of that kind. A scenario that depends on its own kind is not judged. With
    /// --upstream also a custom resource of the cluster, e.g. widgets.example.com.
    #[arg(long)]
    pub(super) resource: Option<String>,
    /// Its kind, once it is found.
    #[arg(skip)]
    pub(super) kind: std::cell::OnceCell<KindRef>,
    /// Run scenarios in this namespace instead.
    #[arg(long)]
    pub(super) namespace: Option<String>,
    #[arg(
        long,
        value_name = "VERSION",
        help = format!("Override the Kubernetes minor version: {}", Version::names())
    )]
    pub(super) kubernetes_version: Option<Version>,
    /// Run only scenarios with this tag (repeatable), e.g. minor.
    ///
    /// `minor`: what a client meets in a new Kubernetes minor.
    #[arg(long, value_name = "TAG")]
    pub(super) tag: Vec<String>,
    /// Which scenarios of folders to run.
    #[arg(long, value_enum, default_value_t = Profile::Quick)]
    pub(super) profile: Profile,
    /// File of known failures, each with its reason and issue.
    ///
    /// As that of `conformance`: {scenario: ID, outcome: mismatch|stuck|crash, breaks: [REQUIREMENT], reason: TEXT, issue:
    /// URL|owner/repo#N|none public}. A known failure does not fail the run; an entry whose scenario passes does.
    #[arg(long, value_name = "FILE")]
    pub(super) known_failures: Option<PathBuf>,
    /// Library whose known failures do not count, e.g. kube-runtime@5 (repeatable).
    ///
    /// `client-go@0.37`, `controller-runtime`, `kopf@1`: a name and the beginning of a version; a wrong one lists all.
    ///
    /// A scenario that fails as programs of that library do (e2e/crowd, read by a person each) does not fail the run, and its line
    /// has the reason and where it is public. What else the command does wrong fails.
    #[arg(long, value_name = "NAME@VERSION", value_parser = Library::parse)]
    pub(super) library: Vec<Library>,
    /// Edition of the requirements, e.g. 2026.1, or `latest`.
    ///
    /// Default: all requirements of this version. With an edition only its scenarios are played, and only its requirements count: a
    /// later version of fake-apiserver does not fail a command that passes. A file or id that is named is always played.
    #[arg(long, value_name = "NAME", value_parser = edition_of)]
    pub(super) edition: Option<&'static Edition>,
    /// Repeat a failed scenario up to N times.
    ///
    /// A scenario that passes then is flaky: the outcomes of all attempts are printed, with the reasons of the first.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) retries: u32,
    /// Whether flaky scenarios fail the run.
    #[arg(long, value_enum, default_value_t = Flaky::Fail)]
    pub(super) flaky: Flaky,
    /// Count warnings as failures.
    ///
    /// A warning is a failure that breaks only requirements at SHOULD or MAY.
    #[arg(long)]
    pub(super) strict: bool,
    /// Run one part of the scenarios only, e.g. 1/4 for the first of four.
    ///
    /// The part of a scenario depends on its id alone, so that it stays when scenarios are added.
    #[arg(long, value_name = "PART/OF", value_parser = Shard::parse)]
    pub(super) shard: Option<Shard>,
    /// Print the scenarios that would be played, with their titles, and start nothing.
    #[arg(long)]
    pub(super) list: bool,
    /// Also write the results to this file as JUnit XML.
    #[arg(long, value_name = "FILE")]
    pub(super) junit: Option<PathBuf>,
    /// Also write a self-contained HTML report to this file.
    ///
    /// It has a timeline of every scenario that was played: requests, responses, and the steps of the server.
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,
    /// Keep scenario, trace and output of failed scenarios in this new directory.
    ///
    /// `fake-apiserver report DIR --html FILE` draws them.
    #[arg(long, value_name = "DIR")]
    pub(super) evidence: Option<PathBuf>,
    #[command(flatten)]
    pub(super) recording: RecordArguments,
    /// Play the scenarios in front of a real cluster, as `proxy` does.
    ///
    /// The server is a proxy for the cluster of --kubeconfig, and the command gets a kubeconfig for it. Scenarios whose steps an
    /// upstream cannot do are not played. Only invariants are judged. Objects of scenarios are written with --allow-writes alone, in
    /// their namespace (see --namespace), if there is none of that name, and deleted afterwards.
    #[cfg(feature = "proxy")]
    #[arg(long, conflicts_with_all = ["tls", "kubernetes_version"], help_heading = "Cluster")]
    pub(super) upstream: bool,
    #[cfg(feature = "proxy")]
    #[command(flatten)]
    pub(super) cluster: crate::cluster::ClusterArguments,
    /// The cluster of --upstream, once it has answered.
    #[cfg(feature = "proxy")]
    #[arg(skip)]
    pub(super) connected: std::cell::OnceCell<crate::cluster::Connected>,
    /// Serve HTTPS.
    #[arg(long)]
    pub(super) tls: bool,
    /// Log requests, responses and the command's output on standard error.
    #[arg(long)]
    pub(super) trace: bool,
}

impl Run {
    /// Returns the options of the cluster, as they were given.
    pub(super) fn upstream_words(&self) -> String {
        #[cfg(feature = "proxy")]
        return format!(" --upstream{}", self.cluster.words());
        #[cfg(not(feature = "proxy"))]
        String::new()
    }

    /// Whether objects of scenarios are written to a real cluster.
    pub(super) fn may_write(&self) -> bool {
        #[cfg(feature = "proxy")]
        return self.cluster.allow_writes;
        #[cfg(not(feature = "proxy"))]
        false
    }

    /// Keeps the kind of `--resource`, which is found once.
    pub(super) fn takes(&self, kind: KindRef) {
        self.kind.set(kind).expect("a run has one resource");
    }

    /// Whether the scenarios are played in front of a real cluster.
    pub(super) fn is_before_upstream(&self) -> bool {
        #[cfg(feature = "proxy")]
        return self.upstream;
        #[cfg(not(feature = "proxy"))]
        false
    }

    /// Whether the traces of scenarios are needed at the end.
    pub(super) fn keeps_records(&self) -> bool {
        self.html.is_some() || self.evidence.is_some() || self.recording.record.is_some()
    }
}

/// Format of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// Text, with the reasons of every failure.
    Text,
    /// One JSON object per scenario, and a footer with counts.
    Json,
    /// JUnit XML, for continuous integration.
    Junit,
}

/// Value for all settings.
pub(super) const ALL: &str = "all";

fn setting(text: &str) -> Result<String, String> {
    if text == ALL || SETTINGS.contains(&text) {
        Ok(text.to_owned())
    } else {
        Err(format!("expected all, or one of {}", SETTINGS.join(", ")))
    }
}

/// Selection of scenarios in folders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Profile {
    /// Skip scenarios that take minutes.
    Quick,
    /// Include scenarios that take minutes: backoff, silence, idle watches.
    Full,
}
