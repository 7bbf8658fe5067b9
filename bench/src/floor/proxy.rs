//! Baseline for a proxy: hyper on both sides, with the TLS of `fake-apiserver proxy` in front. Bodies pass part by part;
//! nothing reads them, and nothing is recorded.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use fake_apiserver::net::tls::{Authority, Protocols};
use fake_apiserver::net::{Credentials, Kubeconfig};
use http::header::{CONNECTION, TRANSFER_ENCODING};
use http::uri::Scheme;
use http::{Request, Response, Uri};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;

use super::bare::print;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Forwards until killed. Prints the path of the kubeconfig, which it writes for clients.
pub(crate) fn serve(upstream: SocketAddr, kubeconfig: &Path) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let authority = Authority::generate().map_err(io::Error::other)?;
        let acceptor = authority
            .acceptor(&[], Protocols::Http1)
            .map_err(io::Error::other)?;
        let written = Kubeconfig {
            server: format!("https://{}", listener.local_addr()?),
            authority_pem: Some(authority.certificate_pem()),
            credentials: Credentials::None,
            namespace: "default".to_owned(),
        };
        written.write(kubeconfig)?;
        print(&format!("export KUBECONFIG={}", kubeconfig.display()))?;
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let client: Client<_, Incoming> = Client::builder(TokioExecutor::new()).build(connector);
        loop {
            let (socket, _) = listener.accept().await?;
            socket.set_nodelay(true)?;
            let (acceptor, client) = (acceptor.clone(), client.clone());
            let service = service_fn(move |request| forward(client.clone(), upstream, request));
            tokio::spawn(async move {
                // A client that disconnects is not an error.
                let Ok(stream) = acceptor.accept(socket).await else {
                    return;
                };
                let _ = http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    })
}

async fn forward(
    client: Client<HttpConnector, Incoming>,
    upstream: SocketAddr,
    mut request: Request<Incoming>,
) -> Result<Response<Incoming>, Error> {
    let mut parts = std::mem::take(request.uri_mut()).into_parts();
    parts.scheme = Some(Scheme::HTTP);
    parts.authority = Some(upstream.to_string().parse()?);
    *request.uri_mut() = Uri::from_parts(parts)?;
    request.headers_mut().remove(CONNECTION);
    let mut response = client.request(request).await?;
    for hop_by_hop in [CONNECTION, TRANSFER_ENCODING] {
        response.headers_mut().remove(hop_by_hop);
    }
    Ok(response)
}
