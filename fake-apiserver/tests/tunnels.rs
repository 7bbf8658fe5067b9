//! What a proxy carries over sockets: connections that are upgraded, and watches that a client gives up.

use std::sync::Arc;
use std::time::Duration;

use fake_apiserver::net::{Edge, ServeOptions, Standalone, Upstream, UpstreamBody};
use fake_apiserver::server::Server;
use fake_apiserver::upstream::{Failure, Lends, Outbound, Settings};
use futures::future::{BoxFuture, FutureExt as _};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Longer than any step takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// A connection for each request, without TLS.
struct Plain(String);

impl Plain {
    async fn sent(&self, request: Outbound) -> Result<http::Response<UpstreamBody>, String> {
        let socket = TcpStream::connect(&self.0)
            .await
            .map_err(|error| error.to_string())?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(socket))
            .await
            .map_err(|error| error.to_string())?;
        tokio::spawn(connection.with_upgrades());
        let mut sent = http::Request::new(Full::new(request.body));
        *sent.method_mut() = request.method;
        *sent.uri_mut() = request.target.parse().expect("it was parsed before");
        *sent.headers_mut() = request.headers;
        let host = self.0.parse().expect("an address is a header value");
        sent.headers_mut().insert(http::header::HOST, host);
        let response = sender
            .send_request(sent)
            .await
            .map_err(|error| error.to_string())?;
        Ok(response.map(|body| -> UpstreamBody { Box::pin(body.map_err(Into::into)) }))
    }
}

impl Upstream for Plain {
    fn send(&self, request: Outbound) -> BoxFuture<'_, Result<http::Response<UpstreamBody>, Failure>> {
        async { self.sent(request).await.map_err(Failure::Unreachable) }.boxed()
    }
}

/// An upstream, and a proxy for it.
struct World {
    upstream: Standalone,
    proxy: Edge,
    address: String,
}

impl World {
    async fn new() -> Self {
        let upstream = Standalone::start(Default::default())
            .await
            .expect("a port is free");
        let settings = Settings {
            token: "unused".to_owned(),
            lends: Lends::Nothing,
            may_write: false,
        };
        let to = Plain(upstream.url().trim_start_matches("http://").to_owned());
        let proxy = Edge::with_upstream(Server::forwarding(settings, 7), Arc::new(to));
        let listening = ServeOptions::default().bind().await.expect("a port is free");
        let address = listening.address().to_string();
        let served = proxy.clone();
        tokio::spawn(async move {
            let serve = listening.serve(served.clone(), std::future::pending());
            tokio::select! {
                () = serve => {}
                () = served.keep_time() => {}
            }
        });
        Self {
            upstream,
            proxy,
            address,
        }
    }

    /// Waits until the request of the upstream has ended.
    async fn upstream_closes(&self) {
        self.upstream
            .wait("{closed: any, since: 0}")
            .await
            .expect("the request to the upstream ends, too");
    }

    /// Sends a request, and reads until the response has this text.
    async fn ask(&self, head: &str, until: &str) -> TcpStream {
        let mut socket = TcpStream::connect(&self.address)
            .await
            .expect("the proxy listens");
        let head = format!(
            "{head} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer mine\r\n",
            self.address
        );
        let upgrade = match until.contains("101") {
            true => {
                "Connection: Upgrade\r\nUpgrade: websocket\r\nOrigin: http://127.0.0.1\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            }
            false => "",
        };
        let request = format!("{head}{upgrade}\r\n");
        socket
            .write_all(request.as_bytes())
            .await
            .expect("the proxy reads");
        read_until(&mut socket, until).await;
        socket
    }
}

async fn read_until(socket: &mut TcpStream, until: &str) {
    let mut read = Vec::new();
    let mut reads = async || {
        while !String::from_utf8_lossy(&read).contains(until) {
            let count = socket.read_buf(&mut read).await.expect("the proxy sends");
            assert!(
                count > 0,
                "it ended before {until}: {}",
                String::from_utf8_lossy(&read)
            );
        }
    };
    tokio::time::timeout(PATIENCE, reads())
        .await
        .expect("it is sent in time");
}

#[tokio::test]
async fn an_upgraded_connection_carries_bytes_both_ways() {
    let world = World::new().await;
    let target = "GET /api/v1/namespaces?watch=1";
    let mut socket = world.ask(target, "HTTP/1.1 101 Switching Protocols").await;
    read_until(&mut socket, "\"kube-system\"").await;
    // A ping, masked with zeros: the upstream answers it.
    socket
        .write_all(&[0x89, 0x84, 0, 0, 0, 0, b'p', b'i', b'n', b'g'])
        .await
        .expect("the proxy reads");
    read_until(&mut socket, "ping").await;
    drop(socket);
    world.upstream_closes().await;
    world
        .proxy
        .wait_for("{closed: any, since: 0}")
        .await
        .expect("the end of the tunnel is recorded");
}

#[tokio::test]
async fn a_watch_that_is_given_up_is_given_up_upstream() {
    let world = World::new().await;
    let socket = world
        .ask("GET /api/v1/namespaces?watch=1", "\"kube-system\"")
        .await;
    drop(socket);
    world.upstream_closes().await;
}

#[tokio::test]
async fn a_watch_that_a_rule_ends_is_given_up_upstream() {
    let world = World::new().await;
    let mut socket = world
        .ask("GET /api/v1/namespaces?watch=1", "\"kube-system\"")
        .await;
    world
        .proxy
        .rule("{do: [{error: {code: 410, reason: Expired}}, {end: eof}]}")
        .expect("a watch is open");
    read_until(&mut socket, "\"Expired\"").await;
    world.upstream_closes().await;
}

#[tokio::test]
async fn an_upstream_that_is_gone_is_answered_with_503() {
    let world = World::new().await;
    drop(world.upstream);
    let mut socket = TcpStream::connect(&world.address)
        .await
        .expect("the proxy listens");
    let request = format!(
        "GET /api/v1/pods HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer mine\r\n\r\n",
        world.address
    );
    socket
        .write_all(request.as_bytes())
        .await
        .expect("the proxy reads");
    read_until(&mut socket, "check that the cluster is up").await;
}
