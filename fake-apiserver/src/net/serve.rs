//! Listens, and joins each socket to the server: on this machine only, unless what is said is encrypted and whoever asks
//! has to be known.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use scenario::{ServerSettings, Transport};
use socket2::SockRef;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinError, JoinSet};
use tokio_rustls::TlsAcceptor;
use trace::record::ConnId;

use super::connection::serve_flow;
use super::tls::{self, Authority, Identity, Protocols, TlsError};
use super::wire::{Flow, Transport as _};
use super::{ConnectionSettings, Credentials, Edge, Guard, Kubeconfig, panic_text};
use crate::api::Access;
use crate::api::access::Authorization;

/// Connections the system holds until they are accepted (as tokio has it).
const BACKLOG: u32 = 1024;

/// Where and how a fake is served: what a command line asks for, as one value.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// Where to listen; port 0 takes a free one. Beyond this machine only with `tls` and `access`.
    pub address: SocketAddr,
    /// TLS, with an authority made for this run.
    pub tls: Option<TlsOptions>,
    /// Who is let in; the same as the server's own ([`Server::with_access`](crate::server::Server::with_access)).
    pub access: Option<Access>,
    /// Authorization mode; `None`: that of [`Server::with_authorization`](crate::server::Server::with_authorization). Read by
    /// [`Standalone`](super::Standalone), which makes its server itself.
    pub authorization: Option<Authorization>,
    /// What a listener bears.
    pub limits: ListenerLimits,
}

impl Default for ServeOptions {
    /// A free port of this machine, without TLS, for everyone on it.
    fn default() -> Self {
        Self {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            tls: None,
            access: None,
            authorization: None,
            limits: ListenerLimits::default(),
        }
    }
}

/// What of TLS can be chosen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// Host names and addresses the server is called by, beside `127.0.0.1`, `::1` and `localhost`.
    pub names: Vec<String>,
    /// What is offered by ALPN.
    pub protocols: Protocols,
    /// Serving certificate and key that were made elsewhere; `None`: one of an authority made for this run, which is also
    /// the authority of its clients.
    pub identity: Option<Identity>,
    /// With `identity`: certificates (PEM) of the authorities of clients; `None`: no client has a certificate.
    pub client_authorities: Option<String>,
}

/// What a listener bears. Request heads are bounded to 128 KiB and 100 headers (hyper's own bound), bodies to 3 MiB.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenerLimits {
    /// Connections open at one time. One more takes the place of one without a request, or is reset.
    pub connections: usize,
    /// Requests under way at one time on an HTTP/2 connection (SETTINGS_MAX_CONCURRENT_STREAMS).
    pub streams: u32,
    /// How long answers may go on after the stop.
    pub grace: Duration,
    /// How long a TLS handshake may take.
    pub handshake: Duration,
    /// How long a request's head may take from its first byte on.
    pub head: Duration,
    /// How long a request's body may take.
    pub body: Duration,
    /// How long a connection may be without a request.
    pub idle: Duration,
    /// How long a client may take nothing of what is written to it; then it is cut.
    pub write: Duration,
}

impl Default for ListenerLimits {
    /// As an apiserver's, where it has them: `IdleTimeout`, `ReadHeaderTimeout`, `MaxConcurrentStreams` and
    /// `--request-timeout` (apiserver `server/secure_serving.go`, `server/config.go`); handshakes as Go's client has it.
    fn default() -> Self {
        Self {
            connections: 16_384,
            streams: 100,
            grace: Duration::from_secs(1),
            handshake: Duration::from_secs(10),
            head: Duration::from_secs(32),
            body: Duration::from_secs(60),
            idle: Duration::from_secs(90),
            write: Duration::from_secs(60),
        }
    }
}

/// Why nothing could be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Without TLS and a token the fake says anything to anyone: it must not be seen from outside.
    #[error(
        "{0} can be reached from other machines: beyond this machine a fake is served only with TLS and a token; ask \
         for both, or listen on 127.0.0.1"
    )]
    NotLoopback(SocketAddr),
    /// There is no such address here, or it is taken.
    #[error("cannot listen on {0}")]
    Bind(SocketAddr, #[source] io::Error),
    /// The listener cannot be asked for its address.
    #[error("the listener's address is unknown")]
    Address(#[source] io::Error),
    /// No certificate.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

impl ServeOptions {
    /// As a scenario wants its server: what is spoken, and how much at a time.
    pub fn for_scenario(settings: &ServerSettings) -> Self {
        let protocols = match settings.transport {
            Transport::Http1 => None,
            Transport::TlsHttp1 => Some(Protocols::Http1),
            Transport::TlsHttp2 => Some(Protocols::Http2),
        };
        Self {
            tls: protocols.map(|protocols| TlsOptions {
                protocols,
                ..TlsOptions::default()
            }),
            limits: ListenerLimits {
                streams: settings.max_concurrent_streams,
                ..ListenerLimits::default()
            },
            ..Self::default()
        }
    }

    /// Begins to listen: from here on clients can connect, and wait for [`Listening::serve`].
    ///
    /// # Errors
    /// If the address can be reached from other machines and TLS or a token is missing, if it cannot be listened on,
    /// and if there is no certificate for one of the names.
    pub async fn bind(self) -> Result<Listening, ServeError> {
        let guarded = self.tls.is_some() && self.access.is_some();
        if !guarded {
            loopback_only(self.address)?;
        }
        let names = self.tls.iter().flat_map(|options| options.names.iter().cloned());
        let names = names.chain([self.address.ip().to_string()]);
        let guard = match self.access {
            None => Guard::of_open_server(names),
            Some(_) => Guard::default(),
        };
        let tls = match self.tls {
            None => None,
            Some(options) => Some(Secured::with(options, self.address)?),
        };
        let listener = taken(self.address)
            .and_then(|place| place.listen(BACKLOG))
            .map_err(|error| ServeError::Bind(self.address, error))?;
        let address = listener.local_addr().map_err(ServeError::Address)?;
        Ok(Listening {
            listener,
            address,
            tls,
            limits: self.limits,
            guard,
        })
    }
}

/// TLS of a listener.
struct Secured {
    /// The authority of this run; `None`: the certificate was made elsewhere.
    authority: Option<Authority>,
    /// What clients are to trust (PEM).
    trusted_pem: String,
    acceptor: TlsAcceptor,
}

impl Secured {
    fn with(options: TlsOptions, address: SocketAddr) -> Result<Self, TlsError> {
        if let Some(identity) = options.identity {
            let clients = options.client_authorities.as_deref();
            return Ok(Self {
                acceptor: tls::given(&identity, clients, options.protocols)?,
                authority: None,
                trusted_pem: identity.certificate_pem,
            });
        }
        let authority = Authority::generate()?;
        let mut names = options.names;
        if !address.ip().is_unspecified() {
            names.push(address.ip().to_string());
        }
        Ok(Self {
            acceptor: authority.acceptor(&names, options.protocols)?,
            trusted_pem: authority.certificate_pem(),
            authority: Some(authority),
        })
    }
}

/// An address that is listened on, and what clients need to know of it.
pub struct Listening {
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<Secured>,
    limits: ListenerLimits,
    guard: Guard,
}

impl Listening {
    /// The address, with the port that was taken.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where clients of this machine find the server.
    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let mut address = self.address;
        if address.ip().is_unspecified() {
            // A certificate names places, not all of them at once.
            address.set_ip(Ipv4Addr::LOCALHOST.into());
        }
        format!("{scheme}://{address}")
    }

    /// The authority of this run, where there is TLS with a certificate of it.
    pub fn authority(&self) -> Option<&Authority> {
        self.tls.as_ref()?.authority.as_ref()
    }

    /// A kubeconfig for a client of this machine.
    pub fn kubeconfig(&self, credentials: Credentials, namespace: Option<&str>) -> Kubeconfig {
        Kubeconfig {
            server: self.url(),
            authority_pem: self.tls.as_ref().map(|tls| tls.trusted_pem.clone()),
            credentials,
            namespace: namespace.unwrap_or("default").to_owned(),
        }
    }

    /// Serves `edge` until `stop` completes, then lets answers that have begun come to their end for
    /// [`ListenerLimits::grace`], and breaks off the rest. A connection that fails to be accepted is logged and passed
    /// by.
    pub async fn serve(self, edge: Edge, stop: impl Future<Output = ()>) {
        let settings = ConnectionSettings {
            tls: self.tls.map(|tls| tls.acceptor),
            limits: self.limits,
            guard: self.guard,
        };
        accept_until(self.listener, self.address, edge, settings, stop).await;
    }
}

impl std::fmt::Debug for Listening {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listening")
            .field("url", &self.url())
            .finish_non_exhaustive()
    }
}

/// Serves `edge` on a listener of the caller's, without TLS, as [`Listening::serve`] does.
///
/// # Errors
/// If the listener is not bound to a loopback address.
pub async fn serve(
    listener: TcpListener,
    edge: Edge,
    limits: ListenerLimits,
    stop: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let address = listener.local_addr().map_err(ServeError::Address)?;
    loopback_only(address)?;
    let settings = ConnectionSettings {
        limits,
        ..ConnectionSettings::default()
    };
    accept_until(listener, address, edge, settings, stop).await;
    Ok(())
}

fn loopback_only(address: SocketAddr) -> Result<(), ServeError> {
    if address.ip().is_loopback() {
        Ok(())
    } else {
        Err(ServeError::NotLoopback(address))
    }
}

async fn accept_until(
    listener: TcpListener,
    address: SocketAddr,
    edge: Edge,
    settings: ConnectionSettings,
    stop: impl Future<Output = ()>,
) {
    let grace = settings.limits.grace;
    let (stopping, stopped) = watch::channel(false);
    let mut connections = Connections::default();
    let mut full_for = None;
    let mut stop = std::pin::pin!(stop);
    let mut replica = Replica::Open(listener);
    loop {
        let refused_for = edge.refused_for();
        replica = match replica.turned(refused_for.is_some(), address) {
            Ok(replica) => replica,
            Err(error) => {
                tracing::error!(%error, %address, "cannot listen again");
                break;
            }
        };
        tokio::select! {
            biased;
            () = stop.as_mut() => break,
            Some(over) = connections.tasks.join_next() => connections.left(over, &edge),
            () = edge.refusing() => {}
            () = pause(refused_for) => {}
            () = pause(full_for) => full_for = None,
            accepted = replica.accept(), if full_for.is_none() => match accepted {
                Ok((socket, _)) => connections.admit(socket, &edge, &settings, stopped.clone()),
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    // Trying at once again would do nothing else: files are gone, not the client.
                    connections.make_room();
                    full_for = Some(ACCEPT_AGAIN);
                }
            },
        }
    }
    // Fails only if no connection is left to hear it.
    let _ = stopping.send(true);
    let mut connections = connections.tasks;
    let all_over = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(grace, all_over).await.is_err() {
        connections.shutdown().await;
    }
}

/// A socket at this address that does not listen yet.
fn taken(address: SocketAddr) -> io::Result<TcpSocket> {
    let place = if address.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        TcpSocket::new_v6()?
    };
    // Connections of before may still be open.
    place.set_reuseaddr(true)?;
    place.bind(address)?;
    Ok(place)
}

/// A server that is down is one that does not listen.
enum Replica {
    Open(TcpListener),
    /// Nobody listens, and nobody else can take the place.
    Shut(TcpSocket),
}

impl Replica {
    fn turned(self, shut: bool, address: SocketAddr) -> io::Result<Self> {
        match (self, shut) {
            (Self::Open(listener), true) => {
                // A process that is just being started holds what we hold until it runs: dropping alone would leave the
                // place taken for that moment.
                SockRef::from(&listener).shutdown(std::net::Shutdown::Both)?;
                drop(listener);
                taken(address).map(Self::Shut)
            }
            (Self::Shut(place), false) => place.listen(BACKLOG).map(Self::Open),
            (replica @ (Self::Open(_) | Self::Shut(_)), _) => Ok(replica),
        }
    }

    async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        match self {
            Self::Open(listener) => listener.accept().await,
            Self::Shut(_) => std::future::pending().await,
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the edge carries out what the script decides"
)]
async fn pause(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => std::future::pending().await,
    }
}

/// How long nobody is accepted after that failed: Go's server waits so much at most (`net/http`, `Serve`).
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// The connections of a listener.
#[derive(Default)]
struct Connections {
    tasks: JoinSet<ConnId>,
    open: BTreeMap<ConnId, (AbortHandle, Arc<Flow>)>,
}

impl Connections {
    /// One is over. A panic of its task is one of the server.
    fn left(&mut self, over: Result<ConnId, JoinError>, edge: &Edge) {
        match over {
            Ok(conn) => drop(self.open.remove(&conn)),
            Err(error) => {
                self.open.retain(|_, (task, _)| !task.is_finished());
                if let Ok(panic) = error.try_into_panic() {
                    edge.fail(format!("a connection panicked: {}", panic_text(&*panic)));
                }
            }
        }
    }

    /// Breaks off the oldest connection that has no request. False if there is none.
    fn make_room(&mut self) -> bool {
        let mut idle = self.open.iter().filter(|(_, (_, flow))| !flow.is_serving());
        let Some((conn, (task, _))) = idle.next() else {
            return false;
        };
        task.abort();
        let conn = *conn;
        self.open.remove(&conn);
        true
    }

    fn admit(
        &mut self,
        mut socket: TcpStream,
        edge: &Edge,
        settings: &ConnectionSettings,
        mut stopped: watch::Receiver<bool>,
    ) {
        let limit = settings.limits.connections;
        if self.open.len() >= limit && !self.make_room() {
            tracing::warn!(limit, "too many connections; one more was reset");
            return socket.reset();
        }
        // It came before the door was shut: the nearest thing to a server that is down is a reset before any byte.
        let peer = socket.peer_addr().ok().map(|peer| peer.port());
        let Some(conn) = edge.accept_from(peer) else {
            return socket.reset();
        };
        // Every write is to leave at once, as a piece of its own.
        if let Err(error) = socket.set_nodelay(true) {
            tracing::warn!(%error, "writes may be merged");
        }
        let stop = async move {
            // An error means that the sender is gone, and that is a stop too.
            let _ = stopped.wait_for(|stopped| *stopped).await;
        };
        let flow = Arc::new(Flow::default());
        let served = serve_flow(edge.clone(), conn, socket, flow.clone(), settings.clone(), stop);
        let task = self.tasks.spawn(async move {
            served.await;
            conn
        });
        self.open.insert(conn, (task, flow));
    }
}
