//! S8: from the start of the process to its first answer, over plain HTTP and over TLS.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use super::Ground;
use crate::child::Child;
use crate::http::{Connection, request};
use crate::swarm::now;
use crate::table::{Judged, Line, Measured, Row, median};

pub(super) fn measure(ground: &Ground) -> io::Result<Measured> {
    let (mut plain, mut floor, mut tls) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ground.sizes.starts {
        plain.push(once(&ground.server, &["serve", "--quiet"], "/version")?);
        floor.push(once(&ground.own, &["floor", "bare"], "/100")?);
        tls.push(once(&ground.server, &["serve", "--quiet", "--tls"], "/version")?);
    }
    let row = |work: &str, ours, other, must, moonshot| Row {
        name: "S8",
        work: format!("start to first answer, {work}"),
        unit: "ms",
        ours: median(ours),
        other,
        judged: Judged::Value {
            must: Line::AtMost(must),
            moonshot: Line::AtMost(moonshot),
        },
    };
    Ok(vec![
        row(
            "plain HTTP",
            plain,
            Some(("bare hyper", median(floor))),
            10.0,
            2.0,
        ),
        row("TLS", tls, None, 15.0, 3.0),
    ]
    .into())
}

/// In milliseconds.
fn once(program: &Path, arguments: &[&str], path: &str) -> io::Result<f64> {
    let began = now();
    let server = Child::start_anywhere(program, arguments)?;
    let asked = request("GET", path, b"");
    let took: Duration;
    match &server.authority {
        None => {
            let answer = Connection::open(server.address)?.ask(&asked, false)?;
            took = began.elapsed();
            answer.good("the first request")?;
        }
        Some(authority) => {
            let mut answer = [0; 64];
            let read = over_tls(&server, authority, &asked, &mut answer)?;
            took = began.elapsed();
            if !answer[..read].starts_with(b"HTTP/1.1 200 ") {
                return Err(io::Error::other("the first request over TLS is not answered"));
            }
        }
    }
    Ok(took.as_secs_f64() * 1e3)
}

/// Asks on a connection of its own, and reads how the answer begins.
fn over_tls(server: &Child, authority: &[u8], asked: &[u8], answer: &mut [u8]) -> io::Result<usize> {
    let mut roots = RootCertStore::empty();
    let authority = CertificateDer::from_pem_slice(authority).map_err(io::Error::other)?;
    roots.add(authority).map_err(io::Error::other)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let settings = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::from(server.address.ip());
    let session = ClientConnection::new(Arc::new(settings), name).map_err(io::Error::other)?;
    let socket = TcpStream::connect(server.address)?;
    // Otherwise what is measured is how long the other side puts its acknowledgement off.
    socket.set_nodelay(true)?;
    let mut stream = rustls::StreamOwned::new(session, socket);
    stream.write_all(asked)?;
    stream.read(answer)
}
