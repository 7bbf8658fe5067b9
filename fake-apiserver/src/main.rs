//! The command line: serves the truth, or one scenario, to any client there is, and shows what both sides do.
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
use fake_apiserver::api::Access;
use fake_apiserver::manifests;
use fake_apiserver::net::{Edge, ListenerLimits, serve};
use fake_apiserver::record::{Frame, FrameType, Record, Side, What};
use fake_apiserver::scenario::{self, Scenario, ServerSettings, Style, Version};
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
    /// Serve an apiserver that only tells the truth on 127.0.0.1 until interrupted, for kubectl or any other client.
    ///
    /// Prints `export KUBECONFIG=…` on standard output once the server listens, and what happens, line by line, on
    /// standard error. Whatever is written is forgotten at the end.
    ///
    /// Example: fake-apiserver serve --objects pods.yaml --port 6443
    Serve {
        /// Objects that are there from the start, as YAML or JSON, one or several documents. Namespaces that they name
        /// are made.
        #[arg(long, value_name = "FILE")]
        objects: Option<PathBuf>,
        /// The port to listen on; 0 takes a free one.
        #[arg(long, default_value_t = 0)]
        port: u16,
        /// The Kubernetes minor to answer as: 1.33, 1.34, 1.35 or 1.36.
        #[arg(long, default_value = "1.36", value_parser = minor)]
        kubernetes_version: Version,
        /// Let in only who sends this bearer token; the kubeconfig has it.
        #[arg(long)]
        token: Option<String>,
        /// The bearer token of the user `limited`, who may read discovery and nothing else.
        #[arg(long, requires = "token")]
        limited_token: Option<String>,
        /// What chance decides by: generated names, how long watches without a timeout live.
        #[arg(long, default_value_t = 0)]
        seed: u64,
    },
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
    /// The file of objects is wrong.
    Objects(String),
    System(String, io::Error),
}

fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
        .with_writer(io::stderr)
        .init();
    let outcome = match Arguments::parse().command {
        Command::Play { file, port, seed } => play(&file, port, seed),
        Command::Serve {
            objects,
            port,
            kubernetes_version,
            token,
            limited_token,
            seed,
        } => {
            let access = token.map(|token| Access { token, limited_token });
            serve_truth(objects.as_deref(), port, kubernetes_version, access, seed)
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Objects(message)) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
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
    eprintln!("{}: {}", scenario.id, scenario.title);
    let namespace = scenario.target.namespace.clone();
    let server = Server::with_limits(scenario, seed, server::Limits::endless());
    run(Served {
        server,
        port,
        namespace,
        token: None,
        shown_from: 0,
    })
}

fn serve_truth(
    objects: Option<&Path>,
    port: u16,
    version: Version,
    access: Option<Access>,
    seed: u64,
) -> Result<(), Failure> {
    let settings = ServerSettings {
        version,
        ..ServerSettings::default()
    };
    let mut server = Server::standalone(settings, seed);
    if let Some(file) = objects {
        let wrong = |message: String| Failure::Objects(format!("{}: {message}", file.display()));
        let text = std::fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
        for object in manifests::read(&text).map_err(wrong)? {
            server.put(&object).map_err(wrong)?;
        }
    }
    let token = access.as_ref().map(|access| access.token.clone());
    if let Some(access) = access {
        server = server.with_access(access);
    }
    let shown_from = server.records().len();
    run(Served {
        server,
        port,
        namespace: None,
        token,
        shown_from,
    })
}

fn minor(text: &str) -> Result<Version, String> {
    match text {
        "1.33" => Ok(Version::V1_33),
        "1.34" => Ok(Version::V1_34),
        "1.35" => Ok(Version::V1_35),
        "1.36" => Ok(Version::V1_36),
        _ => Err("known are 1.33, 1.34, 1.35 and 1.36".to_owned()),
    }
}

/// A server about to be served.
struct Served {
    server: Server,
    port: u16,
    /// What clients are told to use by default.
    namespace: Option<String>,
    /// What clients are told to send.
    token: Option<String>,
    /// The first record that is news to whoever watches.
    shown_from: usize,
}

fn run(served: Served) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::System("no runtime".to_owned(), error))?;
    runtime.block_on(serve_until_interrupted(served))
}

async fn serve_until_interrupted(served: Served) -> Result<(), Failure> {
    let port = served.port;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .await
        .map_err(|error| Failure::System(format!("cannot listen on 127.0.0.1:{port}"), error))?;
    let address = listener
        .local_addr()
        .map_err(|error| Failure::System("no address".to_owned(), error))?;
    let url = format!("http://{address}");
    let kubeconfig = Kubeconfig::write(&url, served.namespace.as_deref(), served.token.as_deref())?;
    let edge = Edge::new(served.server);
    writeln!(io::stdout(), "export KUBECONFIG={}", kubeconfig.path.display())
        .map_err(|error| Failure::System("standard output is closed".to_owned(), error))?;

    let ended = tokio::select! {
        ended = serve(listener, edge.clone(), ListenerLimits::default(), told_to_stop()) => ended,
        () = edge.keep_time() => Ok(()),
        () = show(&edge, served.shown_from) => Ok(()),
    };
    ended.map_err(|error| Failure::System("cannot serve".to_owned(), io::Error::other(error)))
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

/// Writes every record from `shown` on on standard error as it comes. Never ends by itself.
async fn show(edge: &Edge, mut shown: usize) {
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
    fn write(url: &str, namespace: Option<&str>, token: Option<&str>) -> Result<Self, Failure> {
        let folder = std::env::temp_dir().join(format!("fake-apiserver-{}", std::process::id()));
        let path = folder.join("kubeconfig");
        let user = match token {
            Some(token) => serde_json::json!({ "token": token }),
            None => serde_json::json!({}),
        };
        let text = serde_json::json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "fake", "cluster": {"server": url}}],
            "users": [{"name": "fake", "user": user}],
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
