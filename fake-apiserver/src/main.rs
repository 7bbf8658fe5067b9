//! The command line: serves one scenario to any client there is, and shows what both sides do.
//!
//! It judges nothing. Reports come from clients in process only, so steps that wait for what a client emitted never
//! come here; everything that waits for requests or for time does.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Parser, Subcommand};
use fake_apiserver::net::{Edge, ListenerLimits, serve};
use fake_apiserver::record::{Frame, FrameType, Record, Side, What};
use fake_apiserver::scenario::{self, Scenario, SharedScenario, Style};
use fake_apiserver::server::{self, Server};
use tokio::net::TcpListener;

/// A Kubernetes apiserver that is truthful on the wire by default and lies on cue.
#[derive(Debug, Parser)]
#[command(
    version,
    about,
    after_help = "Exit codes: 0 stopped, 1 the system refused something, 2 the scenario file or the command line is wrong.\nRUST_LOG=fake_apiserver=debug shows every decision."
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve one scenario on 127.0.0.1 until interrupted, for kubectl or any other client.
    ///
    /// Prints `export KUBECONFIG=…` on standard output once the server listens, and what happens, line by line, on
    /// standard error. The script runs once, from the start of the program; afterwards the server only tells the
    /// truth.
    ///
    /// Example: fake-apiserver play scenarios/gone/expired-mid-stream-forces-relist.yaml --port 6443
    Play {
        /// The scenario file.
        file: PathBuf,
        /// The port to listen on; 0 takes a free one.
        #[arg(long, default_value_t = 0)]
        port: u16,
        /// What chance decides by: how long watches without a timeout live.
        #[arg(long, default_value_t = 0)]
        seed: u64,
    },
}

/// Why the command could not do its work.
enum Failure {
    /// The scenario file is wrong; drawn already.
    Scenario(String),
    System(String, io::Error),
}

fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
        .with_writer(io::stderr)
        .init();
    let Command::Play { file, port, seed } = Arguments::parse().command;
    match play(&file, port, seed) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Scenario(drawn)) => {
            eprint!("{drawn}");
            ExitCode::from(2)
        }
        Err(Failure::System(what, error)) => {
            eprintln!("error: {what}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn play(file: &Path, port: u16, seed: u64) -> Result<(), Failure> {
    let scenario = Arc::new(read(file)?);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::System("no runtime".to_owned(), error))?;
    runtime.block_on(serve_until_interrupted(scenario, port, seed))
}

async fn serve_until_interrupted(scenario: SharedScenario, port: u16, seed: u64) -> Result<(), Failure> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .await
        .map_err(|error| Failure::System(format!("cannot listen on 127.0.0.1:{port}"), error))?;
    let address = listener
        .local_addr()
        .map_err(|error| Failure::System("no address".to_owned(), error))?;
    let kubeconfig = Kubeconfig::write(&format!("http://{address}"), scenario.target.namespace.as_deref())?;
    eprintln!("{}: {}", scenario.id, scenario.title);
    writeln!(io::stdout(), "export KUBECONFIG={}", kubeconfig.path.display())
        .map_err(|error| Failure::System("standard output is closed".to_owned(), error))?;

    let edge = Edge::new(Server::with_limits(scenario, seed, server::Limits::endless()));
    let served = tokio::select! {
        served = serve(listener, edge.clone(), ListenerLimits::default(), told_to_stop()) => served,
        () = edge.keep_time() => Ok(()),
        () = show(&edge) => Ok(()),
    };
    served.map_err(|error| Failure::System("cannot serve".to_owned(), io::Error::other(error)))
}

/// Completes on Ctrl-C, and on the signal `kill` sends.
async fn told_to_stop() {
    // Without a handler the system's own way of stopping a program remains.
    let interrupted = async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    #[cfg(unix)]
    if let Ok(mut terminate) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
        tokio::select! {
            () = interrupted => {}
            _ = terminate.recv() => {}
        }
        return;
    }
    interrupted.await;
}

/// Writes every record on standard error as it comes. Never ends by itself.
async fn show(edge: &Edge) {
    let mut shown = 0;
    loop {
        let stirred = edge.stirred();
        let lines = edge.read_records(shown, |records| {
            shown += records.len();
            records.iter().map(line).collect::<Vec<_>>()
        });
        for line in lines {
            eprintln!("{line}");
        }
        stirred.await;
    }
}

/// A kubeconfig file for as long as the server runs.
struct Kubeconfig {
    folder: PathBuf,
    path: PathBuf,
}

impl Kubeconfig {
    fn write(url: &str, namespace: Option<&str>) -> Result<Self, Failure> {
        let folder = std::env::temp_dir().join(format!("fake-apiserver-{}", std::process::id()));
        let path = folder.join("kubeconfig");
        let text = serde_json::json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "fake", "cluster": {"server": url}}],
            "users": [{"name": "fake", "user": {}}],
            "contexts": [{
                "name": "fake",
                "context": {"cluster": "fake", "user": "fake", "namespace": namespace.unwrap_or("default")},
            }],
            "current-context": "fake",
        });
        // JSON is YAML.
        std::fs::create_dir(&folder)
            .and_then(|()| std::fs::write(&path, format!("{text:#}\n")))
            .map_err(|error| Failure::System(format!("cannot write {}", path.display()), error))?;
        Ok(Self { folder, path })
    }
}

impl Drop for Kubeconfig {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.folder) {
            tracing::warn!(%error, folder = %self.folder.display(), "left behind");
        }
    }
}

fn read(file: &Path) -> Result<Scenario, Failure> {
    // Ids are paths below the scenarios folder, where the file is in one.
    let root = file
        .ancestors()
        .skip(1)
        .find(|folder| folder.ends_with("scenarios"));
    let root = root.or(file.parent()).unwrap_or(Path::new(""));
    scenario::load(file, root).map_err(|errors| Failure::Scenario(errors.render(Style::for_stderr())))
}

/// One record as one line: when, who, what. Versions and names, never content.
fn line(record: &Record) -> String {
    let mut line = format!("{:9.3}s ", record.at.as_secs_f64());
    // Writing to a String cannot fail.
    let _ = match &record.what {
        What::Connected { conn } => write!(line, "client > connects (c{})", conn.0),
        What::Refused => write!(line, "server ~ refuses a connection"),
        What::Disconnected {
            conn,
            by: Side::Client,
        } => write!(line, "client > disconnects (c{})", conn.0),
        What::Disconnected {
            conn,
            by: Side::Server,
        } => write!(line, "server < disconnects (c{})", conn.0),
        What::Request {
            stream,
            verb,
            method,
            path,
            query,
            violations,
            ..
        } => {
            let query: Vec<String> = query
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            let asked = if query.is_empty() {
                String::new()
            } else {
                format!("?{}", query.join("&"))
            };
            let broken = if violations.is_empty() {
                String::new()
            } else {
                format!("  ! {}", violations.join("; "))
            };
            write!(
                line,
                "client > #{} {} {method} {path}{asked}{broken}",
                stream.0,
                verb.word()
            )
        }
        What::Head {
            stream,
            status,
            retry_after,
            scripted,
        } => {
            let retry = retry_after
                .as_ref()
                .map(|after| format!(" retry-after={after}"))
                .unwrap_or_default();
            write!(line, "server < #{} {status}{retry}{}", stream.0, lie(*scripted))
        }
        What::Page {
            stream,
            resource_version,
            continue_token,
            items,
            scripted,
            ..
        } => {
            let more = if continue_token.is_empty() {
                ""
            } else {
                " continue=yes"
            };
            let items = items.len();
            write!(
                line,
                "server < #{} items={items} rv={resource_version}{more}{}",
                stream.0,
                lie(*scripted)
            )
        }
        What::Body {
            stream,
            bytes,
            reason,
            ..
        } => {
            let reason = reason
                .as_ref()
                .map(|reason| format!(" {reason}"))
                .unwrap_or_default();
            write!(line, "server < #{} {bytes} bytes{reason}", stream.0)
        }
        What::Torn { stream, sent, bytes } => {
            write!(line, "server ~ #{} torn: {sent} of {bytes} bytes", stream.0)
        }
        What::Frame { stream, frame } => {
            write!(
                line,
                "server < #{} {}{}",
                stream.0,
                event(frame),
                lie(frame.scripted)
            )
        }
        What::Withheld { stream, object } => {
            write!(
                line,
                "server ~ #{} withholds {} rv={}",
                stream.0, object.key, object.resource_version
            )
        }
        What::End {
            stream,
            how,
            by: Side::Client,
        } => write!(line, "client > #{} gives up ({})", stream.0, how.word()),
        What::End {
            stream,
            how,
            by: Side::Server,
        } => write!(line, "server < #{} {}", stream.0, how.word()),
        What::Wrote(truth) => {
            let (resource, object, op) = (&truth.resource, &truth.object, truth.op);
            write!(
                line,
                "truth  = {op:?} {resource} {} rv={}",
                object.key, object.resource_version
            )
        }
        What::Restored { to, .. } => write!(line, "truth  = restored to rv={to}"),
        What::Turned {
            how,
            resource_version,
        } => write!(line, "truth  = {how} (rv={resource_version})"),
        What::Step { step, how } => write!(line, "script : step {}: {how}", step + 1),
        What::Bound { name, value, .. } => write!(line, "script : ${name} is {value}"),
        What::ScriptDone => write!(line, "script : every step is done"),
        What::Reported(report) => write!(line, "client > {}", report.word()),
        What::StopRequested => write!(line, "client is told to stop"),
        What::LeftOpen { connections } => write!(line, "client ~ leaves {connections} open"),
        What::RunEnded(end) => write!(line, "over: {end:?}"),
    };
    line
}

fn lie(scripted: bool) -> &'static str {
    if scripted { "  (scripted)" } else { "" }
}

fn event(frame: &Frame) -> String {
    let (word, more) = match &frame.kind {
        FrameType::Added => ("ADDED", String::new()),
        FrameType::Modified => ("MODIFIED", String::new()),
        FrameType::Deleted => ("DELETED", String::new()),
        FrameType::Bookmark {
            initial_events_end: None,
        } => ("BOOKMARK", String::new()),
        FrameType::Bookmark {
            initial_events_end: Some(value),
        } => ("BOOKMARK", format!(" initial-events-end={value}")),
        FrameType::Error { code, reason } => ("ERROR", format!(" {code} {reason}")),
        FrameType::Raw => ("(raw)", format!(" {} bytes", frame.bytes)),
    };
    let object = frame
        .object
        .as_ref()
        .map(|object| format!(" {} rv={}", object.key, object.resource_version));
    let torn = if frame.whole() {
        String::new()
    } else {
        format!(" torn: {} of {} bytes", frame.sent, frame.bytes)
    };
    format!("{word}{}{more}{torn}", object.unwrap_or_default())
}
