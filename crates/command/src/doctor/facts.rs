//! Facts about this machine for `doctor`: environment, sockets, folders, limits, `kubectl`. It must not know which of them
//! are problems.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use http::Uri;
use serde::Deserialize;

use crate::ctl::client::Client;
use crate::{private, state};

/// Timeout of a server for accepting a connection, and for a response.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// Proxy variables that clients read.
const PROXIES: [&str; 6] = [
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "ALL_PROXY",
    "https_proxy",
    "http_proxy",
    "all_proxy",
];

/// Facts about the machine. Errors are texts, because they are only printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Facts {
    /// Requested port; 0: any.
    pub(super) port: u16,
    /// Result of connecting to a listener on that port.
    pub(super) loopback: Result<(), Loopback>,
    /// Kubeconfig that clients read by default.
    pub(super) kubeconfig: Kubeconfig,
    /// Names of proxy variables that are set. Their values can contain passwords.
    pub(super) proxies: Vec<String>,
    /// `NO_PROXY`, or `no_proxy`.
    pub(super) no_proxy: String,
    /// Hard limit of open files; `None`: unlimited.
    pub(super) open_files: Option<u64>,
    /// Folders that must be writable: use, path, and the error if it is not.
    pub(super) folders: Vec<(FolderUse, PathBuf, Option<String>)>,
    /// Minor version of kubectl (1.x), or the reason why there is none.
    pub(super) kubectl: Result<u32, String>,
    /// Control API in the environment.
    pub(super) control: Option<Control>,
    /// Servers with a state file: description, and whether they accept connections.
    pub(super) running: Vec<(String, bool)>,
}

/// Why a port of the loopback interface cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Loopback {
    /// Error of binding the port.
    Bind(io::ErrorKind, String),
    /// Error of a connection to it.
    Connect(String),
}

/// Use of a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FolderUse {
    /// Kubeconfigs.
    Temporary,
    /// State files, by which `ctl` finds servers.
    State,
    /// Home folder, with the discovery cache of kubectl.
    Home,
}

/// Kubeconfig that clients read by default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kubeconfig {
    /// `KUBECONFIG` is not set and there is no default file.
    None,
    /// The file in `KUBECONFIG` does not exist.
    Missing(String),
    /// It cannot be read.
    Broken(String, String),
    /// Its current context has this server.
    Leads {
        /// Whether `KUBECONFIG` is set.
        by_variable: bool,
        /// URL of the server of the current context.
        url: String,
        /// Whether it is a loopback address.
        is_local: bool,
        /// Whether it accepts connections. Checked only if it is local.
        accepts: bool,
    },
}

/// Control API in the environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Control {
    pub(super) url: String,
    /// Version of the server, or the reason why it did not respond.
    pub(super) version: Result<String, String>,
}

/// Reads all facts.
pub(super) async fn gather(port: u16) -> Facts {
    let set = |name: &&str| variable(name).is_some();
    let mut running = Vec::new();
    for server in state::running() {
        let accepts = host_of(&server.control).is_some_and(|host| accepts(&host));
        running.push((format!("{} ({})", server.server, server.what), accepts));
    }
    Facts {
        port,
        loopback: loopback(port),
        kubeconfig: kubeconfig(),
        proxies: PROXIES
            .iter()
            .filter(|name| set(name))
            .map(|&name| name.to_owned())
            .collect(),
        no_proxy: variable("NO_PROXY")
            .or_else(|| variable("no_proxy"))
            .unwrap_or_default(),
        open_files: rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum,
        folders: folders(),
        kubectl: kubectl(),
        control: control().await,
        running,
    }
}

/// Listens on the port and connects to it.
fn loopback(port: u16) -> Result<(), Loopback> {
    let refused = |error: io::Error| Loopback::Bind(error.kind(), error.to_string());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(refused)?;
    let address = listener.local_addr().map_err(refused)?;
    let lost = |error: io::Error| Loopback::Connect(error.to_string());
    TcpStream::connect_timeout(&address, ANSWERS_WITHIN).map_err(lost)?;
    Ok(())
}

/// The parts of a kubeconfig that lead to a server.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct File {
    current_context: String,
    contexts: Vec<Context>,
    clusters: Vec<Cluster>,
}

#[derive(Debug, Deserialize)]
struct Context {
    name: String,
    context: ContextBody,
}

#[derive(Debug, Deserialize)]
struct ContextBody {
    cluster: String,
}

#[derive(Debug, Deserialize)]
struct Cluster {
    name: String,
    cluster: ClusterBody,
}

#[derive(Debug, Deserialize)]
struct ClusterBody {
    server: String,
}

fn kubeconfig() -> Kubeconfig {
    let variable = std::env::var_os("KUBECONFIG").filter(|value| !value.is_empty());
    let named: Vec<PathBuf> = match &variable {
        Some(value) => std::env::split_paths(value).collect(),
        None => std::env::home_dir()
            .map(|home| home.join(".kube/config"))
            .into_iter()
            .collect(),
    };
    let there: Vec<&PathBuf> = named.iter().filter(|file| file.exists()).collect();
    if there.is_empty() {
        return variable.map_or(Kubeconfig::None, |value| {
            Kubeconfig::Missing(value.to_string_lossy().into_owned())
        });
    }
    // Merged as clients do: the first file with a value takes precedence.
    let mut merged = File::default();
    for path in there {
        let read = std::fs::read_to_string(path)
            .map_err(|error| error.to_string())
            .and_then(|text| serde_saphyr::from_str::<File>(&text).map_err(|error| error.to_string()));
        match read {
            Err(error) => return Kubeconfig::Broken(path.display().to_string(), first_line(&error)),
            Ok(file) => {
                if merged.current_context.is_empty() {
                    merged.current_context = file.current_context;
                }
                merged.contexts.extend(file.contexts);
                merged.clusters.extend(file.clusters);
            }
        }
    }
    let Some(url) = merged.server() else {
        let value = variable.map_or_else(
            || "~/.kube/config".to_owned(),
            |value| value.to_string_lossy().into_owned(),
        );
        return Kubeconfig::Broken(value, "its current context names no server".to_owned());
    };
    let is_local = host_of(url).is_some_and(|host| {
        let addresses = host.to_socket_addrs();
        addresses.is_ok_and(|mut addresses| addresses.all(|address| address.ip().is_loopback()))
    });
    Kubeconfig::Leads {
        by_variable: variable.is_some(),
        url: url.to_owned(),
        is_local,
        accepts: is_local && host_of(url).is_some_and(|host| accepts(&host)),
    }
}

impl File {
    fn server(&self) -> Option<&str> {
        let context = self
            .contexts
            .iter()
            .find(|context| context.name == self.current_context)?;
        let cluster = self
            .clusters
            .iter()
            .find(|cluster| cluster.name == context.context.cluster)?;
        Some(&cluster.cluster.server)
    }
}

/// Returns `host:port` of a URL.
fn host_of(url: &str) -> Option<String> {
    let url: Uri = url.parse().ok()?;
    let default = if url.scheme_str()? == "http" { 80 } else { 443 };
    Some(format!("{}:{}", url.host()?, url.port_u16().unwrap_or(default)))
}

fn accepts(host: &str) -> bool {
    let addresses: Vec<SocketAddr> = host.to_socket_addrs().map(Iterator::collect).unwrap_or_default();
    addresses
        .iter()
        .any(|address| TcpStream::connect_timeout(address, ANSWERS_WITHIN).is_ok())
}

fn folders() -> Vec<(FolderUse, PathBuf, Option<String>)> {
    let state = state::folder();
    // The nearest existing parent is checked in place of a folder that `serve` would create.
    let state = state
        .ancestors()
        .find(|folder| folder.exists())
        .unwrap_or(&state)
        .to_owned();
    let mut folders = vec![
        (FolderUse::Temporary, std::env::temp_dir()),
        (FolderUse::State, state),
    ];
    folders.extend(std::env::home_dir().map(|home| (FolderUse::Home, home)));
    folders
        .into_iter()
        .map(|(of, path)| {
            let refused = unwritable(&path);
            (of, path, refused)
        })
        .collect()
}

/// Returns the error of creating a file in a folder; `None` if it succeeds.
fn unwritable(folder: &Path) -> Option<String> {
    match private::new_folder(folder, ".fake-apiserver-doctor-") {
        Err(failure) => Some(failure.to_string()),
        Ok(made) => std::fs::remove_dir(made).err().map(|error| error.to_string()),
    }
}

fn kubectl() -> Result<u32, String> {
    let arguments = ["version", "--client", "--output", "json"];
    let output = Command::new("kubectl")
        .args(arguments)
        .output()
        .map_err(|error| error.to_string())?;
    let printed: serde_json::Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("its version is unreadable: {error}"))?;
    let minor = printed
        .pointer("/clientVersion/minor")
        .and_then(serde_json::Value::as_str);
    let minor = minor.and_then(|minor| minor.trim_end_matches('+').parse().ok());
    minor.ok_or_else(|| "it prints no version".to_owned())
}

async fn control() -> Option<Control> {
    let url = variable("FAKE_APISERVER_CONTROL")?;
    let version = match variable("FAKE_APISERVER_CONTROL_TOKEN") {
        None => Err("FAKE_APISERVER_CONTROL_TOKEN is not set".to_owned()),
        Some(token) => match Client::to(&url, &token) {
            None => Err("it is no URL such as http://127.0.0.1:41234".to_owned()),
            Some(client) => version(&client).await,
        },
    };
    Some(Control { url, version })
}

async fn version(client: &Client) -> Result<String, String> {
    let answered = tokio::time::timeout(ANSWERS_WITHIN, client.get("/v1")).await;
    let state = answered
        .map_err(|_| format!("no answer within {} s", ANSWERS_WITHIN.as_secs()))?
        .map_err(|failure| failure.to_string())?;
    let version = state["version"].as_str();
    version
        .map(str::to_owned)
        .ok_or_else(|| "the server is not a fake-apiserver".to_owned())
}

/// Returns a variable that is set and not empty.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_without_a_port_has_that_of_its_scheme() {
        let hosts = [
            "http://a/b",
            "https://a",
            "https://[::1]:6443/",
            "https://[::1]",
            "https://user@a:1/",
            "a:1",
            "http://",
        ];
        let found = hosts.map(|url| host_of(url).unwrap_or_default());
        assert_eq!(found, ["a:80", "a:443", "[::1]:6443", "[::1]:443", "a:1", "", ""]);
    }

    #[test]
    fn the_current_context_leads_to_its_cluster() {
        let text = "current-context: b\ncontexts:\n- {name: a, context: {cluster: x}}\n- {name: b, context: {cluster: y, user: u}}\nclusters:\n- {name: x, cluster: {server: one}}\n- {name: y, cluster: {server: two}}\n";
        let file: File = serde_saphyr::from_str(text).unwrap();
        assert_eq!(file.server(), Some("two"));
        let none = File {
            current_context: "c".to_owned(),
            ..file
        };
        assert_eq!(none.server(), None);
    }

    #[test]
    fn a_taken_port_is_no_free_one() {
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = taken.local_addr().unwrap().port();
        assert!(matches!(
            loopback(port),
            Err(Loopback::Bind(io::ErrorKind::AddrInUse, _))
        ));
        assert_eq!(loopback(0), Ok(()));
    }
}
