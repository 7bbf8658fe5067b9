//! Runs a client of this process as an adapter: commands on standard input, events on standard output.
//!
//! It only translates: reports of the client are printed as they arrive.

use std::io::{self, BufRead as _, Write as _};
use std::process::ExitCode;

use fake_apiserver::report::{Report, ReportedObject};
use fake_apiserver::scenario::{
    self, BackoffSettings, ClientMode, ClientSettings, InitialList, ListSemantic, Target,
};
use futures::StreamExt as _;
use futures::stream::BoxStream;
use hyper_util::client::legacy::connect::HttpConnector;
use kube_client::Config;
use kube_client::client::{ClientBuilder, ConfigExt as _};
use kube_client::config::KubeConfigOptions;
use rustls::pki_types::CertificateDer;
use tokio::sync::mpsc;
use tower_http::decompression::DecompressionLayer;

use super::message::{
    ClientInfo, Command, Contract, Event, FirstList, Hello, Object, Options, PROTOCOL, Start,
};
use crate::client::{self, Client};
use crate::drive::stack;

/// Declarations of an adapter about its client, beside the name and version.
pub use super::message::{Capability, Recovers};

/// All capabilities but `cache`: a client that obeys all settings, and is a stream without a cache.
pub const OF_A_STREAM: [Capability; 21] = [
    Capability::Selectors,
    Capability::FieldSelectors,
    Capability::PageSize,
    Capability::ResourceVersion,
    Capability::StreamingList,
    Capability::MetadataOnly,
    Capability::SingleObject,
    Capability::Timeout,
    Capability::Bookmarks,
    Capability::IdleTimeout,
    Capability::ListTimeout,
    Capability::StalenessProbe,
    Capability::Backoff,
    Capability::RetryAfterMax,
    Capability::Gzip,
    Capability::Http2,
    Capability::Pause,
    Capability::Close,
    Capability::Errors,
    Capability::InitEvents,
    Capability::Ordered,
];

/// What retries a refused request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retries {
    /// The client under test alone.
    OfTheClient,
    /// kube-client too, by its default layer (429, 503 and 504, with `Retry-After`), without TLS.
    OfKubeClient,
}

/// Runs `client` as an adapter on standard input and output until `stop` or the end of input.
pub fn serve(client: &dyn Client, capabilities: &[Capability], recovers: Recovers) -> ExitCode {
    serve_with(client, capabilities, recovers, Retries::OfTheClient)
}

/// Runs `client` as an adapter as [`serve`] does, with this setting of kube-client.
pub fn serve_with(
    client: &dyn Client,
    capabilities: &[Capability],
    recovers: Recovers,
    retries: Retries,
) -> ExitCode {
    match run(client, capabilities, recovers, retries) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Standard error may be closed.
            let _ = writeln!(io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(
    client: &dyn Client,
    capabilities: &[Capability],
    recovers: Recovers,
    retries: Retries,
) -> io::Result<()> {
    print(&Event::Hello(Hello {
        protocol: PROTOCOL,
        client: ClientInfo {
            name: client.name().to_owned(),
            lang: "rust".to_owned(),
            version: client.version().to_owned(),
            url: None,
            issues: None,
        },
        contracts: client.contracts().iter().copied().map(Contract::of).collect(),
        caps: capabilities.to_vec(),
        resources: None,
        recovers,
    }))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (sender, lines) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            // The receiver is dropped when the adapter exits.
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    let result = runtime.block_on(handle_commands(client, retries, lines));
    runtime.shutdown_background();
    result
}

async fn handle_commands(
    client: &dyn Client,
    retries: Retries,
    mut lines: mpsc::UnboundedReceiver<String>,
) -> io::Result<()> {
    let mut reports: BoxStream<'static, Report> = futures::stream::pending().boxed();
    // Events about objects that may still be printed; `None`: any number.
    let mut credit: Option<u32> = None;
    loop {
        let line = tokio::select! {
            biased;
            line = lines.recv() => line,
            report = reports.next(), if credit != Some(0) => {
                match report {
                    Some(report) => {
                        if report.object().is_some() {
                            credit = credit.map(|credit| credit - 1);
                        }
                        print(&event(report))?;
                    }
                    None => {
                        reports = futures::stream::pending().boxed();
                        print(&Event::End)?;
                    }
                }
                continue;
            }
        };
        match line.as_deref().map(serde_json::from_str::<Command>) {
            None | Some(Ok(Command::Stop)) => return Ok(()),
            Some(Ok(Command::Start(start))) if offered(client, &start).is_some() => {
                let kube = kube(start.options.gzip == Some(true), retries)
                    .await
                    .map_err(io::Error::other)?;
                credit = start.paused.then_some(0);
                let contract = offered(client, &start).unwrap_or_default();
                reports = client.start(kube, start_of(*start, contract));
            }
            Some(Ok(Command::Start(start))) => unsupported("contract", &start.contract)?,
            Some(Ok(Command::Pause)) => credit = Some(0),
            Some(Ok(Command::Resume { events })) => credit = events,
            Some(Ok(Command::Close)) => {
                // Dropping the stream stops the client.
                reports = futures::stream::pending().boxed();
                print(&Event::Closed)?;
            }
            Some(Ok(Command::Dump { .. })) => unsupported("cmd", "dump")?,
            Some(Err(error)) => unsupported("cmd", &error.to_string())?,
        }
    }
}

/// Returns the contract of `start`, if the client supports it.
fn offered(client: &dyn Client, start: &Start) -> Option<scenario::Contract> {
    let mut all = client.contracts().iter().copied();
    all.find(|contract| contract.word() == start.contract)
}

fn unsupported(what: &str, why: &str) -> io::Result<()> {
    print(&Event::Unsupported {
        what: what.to_owned(),
        why: Some(why.to_owned()),
    })
}

fn print(event: &Event) -> io::Result<()> {
    let line = serde_json::to_string(event)?;
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Returns a client for the server in `KUBECONFIG`.
async fn kube(gzip: bool, retries: Retries) -> Result<kube_client::Client, Error> {
    let config = Config::from_kubeconfig(&KubeConfigOptions::default()).await?;
    client_of(config, gzip, retries)
}

/// Returns a client with the credentials of a configuration. With TLS, ALPN selects the HTTP version. Call inside a tokio runtime.
fn client_of(mut config: Config, gzip: bool, retries: Retries) -> Result<kube_client::Client, Error> {
    config.default_retry = retries == Retries::OfKubeClient;
    if let Some(authority) = config.root_cert.as_ref().and_then(|all| all.first()) {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        let tls = stack::with_any_http(tcp, CertificateDer::from(authority.clone()));
        let credentials = config.auth_layer()?;
        return Ok(stack::client_with(tls, config.cluster_url, credentials, gzip));
    }
    let builder = ClientBuilder::try_from(config)?;
    Ok(if gzip {
        builder.with_layer(&DecompressionLayer::new()).build()
    } else {
        builder.build()
    })
}

/// Returns the parameters for a client of this process.
fn start_of(start: Start, contract: scenario::Contract) -> client::Start {
    let Start {
        resource,
        namespace,
        options,
        ..
    } = start;
    client::Start {
        target: Target {
            group: resource.group,
            version: resource.version,
            plural: resource.plural,
            kind: resource.kind,
            namespace,
        },
        settings: settings(options, contract),
        seed: 0,
    }
}

fn settings(options: Options, contract: scenario::Contract) -> ClientSettings {
    let default = ClientSettings::default();
    let backoff = options.backoff.unwrap_or_default();
    ClientSettings {
        contract,
        resource_version: match contract {
            scenario::Contract::Watch => options.resource_version.clone(),
            scenario::Contract::Informer | scenario::Contract::List => None,
        },
        mode: match (options.metadata_only, &options.object_name) {
            (_, Some(_)) => ClientMode::Object,
            (Some(true), None) => ClientMode::Metadata,
            (Some(false) | None, None) => ClientMode::Watcher,
        },
        object: options.object_name,
        labels: options.label_selector,
        fields: options.field_selector,
        timeout_s: options.timeout_seconds,
        list_semantic: match options.resource_version.as_deref() {
            Some("0") => ListSemantic::Any,
            Some(_) | None => ListSemantic::MostRecent,
        },
        initial_list: match options.initial_list {
            Some(FirstList::Stream) => InitialList::StreamingList,
            Some(FirstList::List) | None => InitialList::ListWatch,
        },
        page_size: options
            .page_size
            .map_or(default.page_size, |size| (size > 0).then_some(size)),
        bookmarks: options.allow_bookmarks.unwrap_or(default.bookmarks),
        idle_timeout_ms: options.idle_timeout_ms,
        list_timeout_ms: options.list_timeout_ms,
        staleness_probe_after_ms: options
            .staleness_probe_after_ms
            .map(|after| (after > 0).then_some(after)),
        backoff: BackoffSettings {
            initial_ms: backoff.initial_ms,
            max_ms: backoff.max_ms,
            factor: backoff.factor,
            reset_after_ms: backoff.reset_after_ms,
            retry_after_max_ms: options.retry_after_max_ms,
        },
        gzip: options.gzip.unwrap_or(false),
        consumer_delay_ms: 0,
        consumer_delay_event: None,
    }
}

fn event(report: Report) -> Event {
    match report {
        Report::Init => Event::Init,
        Report::InitApply(reported) => Event::InitApply(object(reported)),
        Report::InitDone => Event::InitDone,
        Report::Apply(reported) => Event::Apply(object(reported)),
        Report::Delete(reported) => Event::Delete(object(reported)),
        Report::Error { message, code } => Event::Error {
            message,
            code,
            reason: None,
        },
        // Not reported by clients of this process: their stream ends, or the process does.
        Report::Ended | Report::Crashed { .. } => Event::End,
    }
}

fn object(reported: ReportedObject) -> Object {
    match reported.content {
        Some(content) => Object {
            obj: Some(std::sync::Arc::unwrap_or_clone(content)),
            ..Object::default()
        },
        None => Object {
            obj: None,
            ns: reported.namespace,
            name: Some(reported.name),
            uid: reported.uid,
            rv: reported.resource_version,
            is_final: None,
        },
    }
}

#[cfg(test)]
mod tests {
    use fake_apiserver::api::Access;
    use fake_apiserver::net::{Credentials, Edge, ServeOptions, TlsOptions};
    use fake_apiserver::scenario::ServerSettings;
    use fake_apiserver::server::Server;
    use kube_client::client::Body;
    use kube_client::config::Kubeconfig;

    use super::*;
    use crate::adapter::{fit, message};

    #[tokio::test]
    async fn a_client_over_tls_has_the_credentials_of_its_kubeconfig() {
        let access = Access {
            token: "t0ken".to_owned(),
            limited_token: None,
            signing_secret: [0; 32],
        };
        let options = ServeOptions {
            tls: Some(TlsOptions::default()),
            access: Some(access.clone()),
            ..ServeOptions::default()
        };
        let listening = options.bind().await.unwrap();
        let kubeconfig = listening.kubeconfig(Credentials::Token(access.token.clone()), None);
        let kubeconfig = Kubeconfig::from_yaml(&kubeconfig.text()).unwrap();
        let server = Server::standalone(ServerSettings::default(), 0).with_access(access);
        tokio::spawn(listening.serve(Edge::new(server), std::future::pending()));
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        let client = client_of(config.unwrap(), false, Retries::OfTheClient).unwrap();
        let request = http::Request::get("/api/v1/namespaces").body(Body::empty());
        let response = client.send(request.unwrap()).await.unwrap();
        assert_eq!(response.status(), 200);
    }

    /// The settings of a scenario are the same in this process and through the protocol.
    #[test]
    fn settings_survive_the_protocol() {
        let text = "scenario: v1\ntitle: t\nwhy: w\ncovers: [PAGE-01]\nclient: {labels: a=b, fields: metadata.name=a, timeout: 7s, list_semantic: any, initial_list: streaming_list, page_size: none, bookmarks: false, idle_timeout: 2s, list_timeout: 3s, staleness_probe_after: none, backoff: {initial: 1s, max: 2s, factor: 3, reset_after: 4s, retry_after_max: 5s}, gzip: true}\n";
        let scenario = fake_apiserver::scenario::parse("g/c", std::path::Path::new("c.yaml"), text).unwrap();
        let caps = message::schema()["$defs"]["Capability"]["oneOf"]
            .as_array()
            .unwrap();
        let caps = caps
            .iter()
            .map(|one| serde_json::from_value(one["const"].clone()).unwrap())
            .collect();
        let hello = Hello {
            protocol: PROTOCOL,
            client: ClientInfo {
                name: "x".to_owned(),
                lang: "rust".to_owned(),
                version: "1".to_owned(),
                url: None,
                issues: None,
            },
            contracts: vec![Contract::Informer],
            caps,
            resources: None,
            recovers: Recovers::Library,
        };
        let line = serde_json::to_string(&fit::start(&scenario, &hello).unwrap()).unwrap();
        let start = start_of(serde_json::from_str(&line).unwrap(), scenario::Contract::Informer);
        assert_eq!(start.settings, scenario.client);
        assert_eq!(start.target, scenario.target);
        assert_eq!(
            settings(Options::default(), scenario::Contract::Informer),
            ClientSettings::default()
        );
    }
}
