//! `etcd`: listens at the addresses of etcd, and reports health. It stores nothing, because the state is in the apiserver.
//!
//! It must not know the apiserver.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;

use super::flags::{self, Dialect, Given, Parsed};
use crate::output;
use crate::stop::Stop;

const FLAGS: &str = include_str!("etcd.flags");

/// Message of etcd for an invalid flag, shortened to the flags that are supported here.
const USAGE: &str = "Usage:

  etcd [flags]
    Start an etcd server.

  etcd --version
    Show the version of etcd.

  etcd -h | --help
    Show the help information about etcd.
";

/// Flags with an effect, and their defaults.
const CLIENT_URLS: (&str, &str) = ("listen-client-urls", "http://localhost:2379");
const PEER_URLS: (&str, &str) = ("listen-peer-urls", "http://localhost:2380");

/// Version of etcd whose flags are accepted.
const VERSION: &str = "3.6.8";

/// Delay after a failed accept.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// Process id of init in a container, which a signal without a handler does not end.
const INIT: u32 = 1;

/// Runs it.
pub(super) fn main(arguments: &[String]) -> ExitCode {
    let given = match flags::parse(Dialect::GoFlag, &flags::table(FLAGS), arguments) {
        Ok(Parsed::Run(given)) => given,
        Ok(Parsed::Help) => {
            super::print(&help());
            return ExitCode::SUCCESS;
        }
        Ok(Parsed::Version) => {
            super::print(&format!(
                "etcd Version: {VERSION}\nfake-apiserver: {}\n",
                env!("CARGO_PKG_VERSION")
            ));
            return ExitCode::SUCCESS;
        }
        Err(mistake) => return refused(&mistake, 2),
    };
    if let Some(first) = given.arguments.first() {
        return refused(&format!("\"{first}\" is not a valid flag"), 1);
    }
    match serve(&given) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            output::log(&format!("etcd: {why}"));
            output::flush_log();
            ExitCode::FAILURE
        }
    }
}

fn refused(mistake: &str, code: u8) -> ExitCode {
    output::log_raw(&format!("{mistake}\n{USAGE}\n"));
    output::flush_log();
    ExitCode::from(code)
}

/// Lists the flags as etcd does, those with an effect first.
fn help() -> String {
    let mut text = format!(
        "{USAGE}\nfake-apiserver as etcd: reports health. The objects are in the kube-apiserver beside it, in memory.\n\n"
    );
    for ((name, default), what) in [
        (CLIENT_URLS, "URLs to serve /health at."),
        (PEER_URLS, "URLs to listen on; there are no peers."),
    ] {
        text.push_str(&format!("  --{name} '{default}'\n    {what}\n"));
    }
    text.push_str("\nAccepted without effect:\n");
    for (name, _) in flags::table(FLAGS) {
        if name != CLIENT_URLS.0 && name != PEER_URLS.0 {
            text.push_str(&format!("  --{name}\n"));
        }
    }
    text
}

fn serve(given: &Given) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start the async runtime: {error}"))?;
    runtime.block_on(async {
        let mut serving = Vec::new();
        for (flag, is_client) in [(CLIENT_URLS, true), (PEER_URLS, false)] {
            for url in urls(given, flag)? {
                let (authority, listener) = listen(&url).await?;
                if is_client {
                    output::log(&format!(
                        "etcd: serving health at http://{authority}/health; objects are in kube-apiserver"
                    ));
                }
                serving.push(accept(listener, is_client));
            }
        }
        let serving = futures::future::join_all(serving);
        if std::process::id() == INIT {
            let stop = Stop::listen();
            tokio::select! {
                _ = serving => {}
                () = stop.requested() => {}
            }
        } else {
            // Like etcd, exits by the signal it received (osutil.HandleInterrupts), whose default action ends the process.
            serving.await;
        }
        Ok(())
    })
}

/// Returns the URLs of a flag.
fn urls(given: &Given, (name, default): (&str, &str)) -> Result<Vec<Uri>, String> {
    let given = given.list(name);
    let urls = if given.is_empty() { vec![default] } else { given };
    urls.into_iter()
        .map(|text| {
            let invalid = |why: &str| format!("invalid value \"{text}\" for flag -{name}: {why}");
            let url: Uri = text.parse().map_err(|_| invalid("it is no URL"))?;
            match url.scheme_str() {
                Some("http") => Ok(url),
                Some("https") => Err(invalid("only http is served here")),
                _ => Err(invalid("URL scheme must be http, https, unix, or unixs")),
            }
        })
        .collect()
}

async fn listen(url: &Uri) -> Result<(String, TcpListener), String> {
    let host = url
        .host()
        .unwrap_or_default()
        .trim_start_matches('[')
        .trim_end_matches(']');
    let port = url.port_u16().unwrap_or_default();
    let refused = |error: io::Error| format!("listen tcp {host}:{port}: {error}");
    let addresses: Vec<SocketAddr> = tokio::net::lookup_host((host, port))
        .await
        .map_err(refused)?
        .collect();
    let listener = TcpListener::bind(addresses.as_slice()).await.map_err(refused)?;
    let address = listener.local_addr().map_err(refused)?;
    Ok((address.to_string(), listener))
}

/// Serves connections, and does not return.
async fn accept(listener: TcpListener, is_client: bool) {
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let socket = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((socket, _)) => socket,
                Err(error) => {
                    output::log(&format!("etcd: a connection could not be accepted: {error}"));
                    pause().await;
                    continue;
                }
            },
            Some(_) = connections.join_next() => continue,
        };
        connections.spawn(async move {
            let service = service_fn(move |request| answered(is_client, request));
            let served = http1::Builder::new()
                .timer(TokioTimer::new())
                .serve_connection(TokioIo::new(socket), service);
            // A client that disconnects is not an error.
            let _ = served.await;
        });
    }
}

#[expect(clippy::disallowed_methods, reason = "the edge carries out its own back-off")]
async fn pause() {
    tokio::time::sleep(ACCEPT_AGAIN).await;
}

async fn answered(is_client: bool, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(answer(is_client, request.method(), request.uri().path()))
}

/// Responds like etcd 3.6, which reports health to clients but not to peers.
fn answer(is_client: bool, method: &Method, path: &str) -> Response<Full<Bytes>> {
    let (status, body) = match (is_client, path, method) {
        (true, "/health", &Method::GET) => (StatusCode::OK, r#"{"health":"true","reason":""}"#),
        (true, "/health", _) => (StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed\n"),
        _ => (StatusCode::NOT_FOUND, "404 page not found\n"),
    };
    let mut response = Response::new(Full::new(Bytes::from_static(body.as_bytes())));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    if status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(ALLOW, HeaderValue::from_static("GET"));
    }
    response
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn given(line: &[&str]) -> Given {
        let line: Vec<String> = line.iter().map(|&word| word.to_owned()).collect();
        match flags::parse(Dialect::GoFlag, &flags::table(FLAGS), &line) {
            Ok(Parsed::Run(given)) => given,
            other => panic!("{other:?}"),
        }
    }

    /// Flags of controller-runtime (`pkg/internal/testing/controlplane/etcd.go`).
    #[test]
    fn flags_of_envtest_are_accepted() {
        let given = given(&[
            "--advertise-client-urls=http://127.0.0.1:1",
            "--data-dir=/tmp/a",
            "--listen-client-urls=http://127.0.0.1:1,http://[::1]:1",
            "--listen-peer-urls=http://127.0.0.1:2",
            "--unsafe-no-fsync=true",
        ]);
        assert_eq!(urls(&given, CLIENT_URLS).unwrap().len(), 2);
        assert_eq!(urls(&given, PEER_URLS).unwrap(), ["http://127.0.0.1:2"]);
    }

    #[rstest]
    #[case("https://127.0.0.1:1", "only http is served here")]
    #[case("127.0.0.1:1", "URL scheme must be http, https, unix, or unixs")]
    fn a_wrong_url_is_refused(#[case] url: &str, #[case] expected: &str) {
        let why = urls(&given(&["--listen-client-urls", url]), CLIENT_URLS).unwrap_err();
        assert!(why.ends_with(expected), "{why}");
    }

    #[rstest]
    #[case(true, Method::GET, "/health", 200)]
    #[case(true, Method::POST, "/health", 405)]
    #[case(true, Method::GET, "/v3/kv/range", 404)]
    #[case(false, Method::GET, "/health", 404)]
    fn only_health_is_served(
        #[case] is_client: bool,
        #[case] method: Method,
        #[case] path: &str,
        #[case] status: u16,
    ) {
        assert_eq!(answer(is_client, &method, path).status(), status);
    }
}
