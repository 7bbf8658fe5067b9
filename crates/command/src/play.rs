//! `fake-apiserver play`: one scenario, for any client.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use fake_apiserver::net::ServeOptions;
use fake_apiserver::record::line::printable;
use fake_apiserver::scenario::{ScenarioFile, Style};
use fake_apiserver::server::{Limits, Server};
use judge::wire::{Loops, Needs, needs};
use recording::Header;

use crate::judging::{Judge, JudgeArguments};
use crate::recorder::RecordArguments;
use crate::serve::Listening;
use crate::session::Session;
use crate::stage::{self, Announce, Origin, Stage};
use crate::{Failure, output};

/// Serve one scenario to any client until interrupted.
///
/// Listens on 127.0.0.1. Prints `export KUBECONFIG=…` on standard output once it listens, and logs requests and
/// responses on standard error. The steps run once, from the start of the program; after the last step the server
/// injects no more faults.
///
/// Example: fake-apiserver play scenarios/gone/http-410-at-watch-start-forces-a-relist.yaml --port 6443
#[derive(Debug, Args)]
pub(crate) struct Play {
    /// Scenario file.
    file: PathBuf,
    /// Serve HTTPS with a CA created at start; the kubeconfig trusts it.
    #[arg(long)]
    tls: bool,
    #[command(flatten)]
    listening: Listening,
    #[command(flatten)]
    judging: JudgeArguments,
    #[command(flatten)]
    recording: RecordArguments,
}

/// Plays until interrupted.
///
/// # Errors
///
/// The file is invalid, or a system error.
pub(crate) fn run(play: Play) -> Result<(), Failure> {
    play.judging.check()?;
    let scenario = ScenarioFile::named(&play.file).load();
    let scenario = Arc::new(scenario.map_err(|errors| Failure::Drawn(errors.render(Style::for_stderr())))?);
    output::log(&printable(&format!("{}: {}", scenario.id, scenario.title)));
    if let Some(Needs::Adapter(words)) = needs(&scenario) {
        let words = printable(&words).into_owned();
        output::log(&format!(
            "warning: this scenario needs {words}; its steps run up to that point"
        ));
    }
    let listening = play.listening;
    let mut header = Header::new("play", scenario.server.version.name(), recording::Origin::Model);
    header.scenario = Some(scenario.id.clone());
    let kept = play.recording.kept()?;
    let recorder = play.recording.open(header)?;
    let server = Server::recorded(scenario.clone(), listening.control.seed, Limits::endless(), kept);
    let stage = Stage {
        server: server.keeping(stage::RECORDS_KEPT),
        what: scenario.id.clone(),
        origin: Origin::Model(scenario.server.version),
        wall_clock: None,
        serving: ServeOptions {
            address: (Ipv4Addr::LOCALHOST, listening.port).into(),
            ..stage::serving(&scenario.server, play.tls)
        },
        control_port: listening.control.control_port,
        control_token: listening.control.control_token,
        ui: listening.control.ui,
        namespace: scenario.target.namespace.clone(),
        kubeconfig: listening.kubeconfig,
        service_account: None,
    };
    let excused = scenario
        .expect
        .excused
        .iter()
        .map(|excuse| excuse.invariant.clone());
    let judge = Judge::new(Loops::Many, excused.collect());
    let session = Session {
        announce: Announce::Shell,
        introduction: None,
        exit_with_stdin: false,
        shows_all: true,
        shown_from: 0,
        judging: play.judging,
        recorder,
    };
    stage::block_on(async |stop| {
        stop.or_end_unnoticed();
        session.hold(stage, judge, &stop).await
    })
}
