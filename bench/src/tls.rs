//! Connections over TLS to a server that has an authority of its own. Knows nothing of what is asked on them.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::child::Child;

/// A connection, written to and read from like any other.
pub(crate) type TlsStream = StreamOwned<ClientConnection, TcpStream>;

/// Trusts the authority that the server told of.
///
/// # Errors
/// If it told of none, or of none that can be read.
pub(crate) fn trust(server: &Child) -> io::Result<Arc<ClientConfig>> {
    let authority = server.authority.as_deref();
    let authority = authority.ok_or_else(|| io::Error::other("the server has told of no authority"))?;
    let mut roots = RootCertStore::empty();
    let authority = CertificateDer::from_pem_slice(authority).map_err(io::Error::other)?;
    roots.add(authority).map_err(io::Error::other)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let trusting = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(trusting))
}

/// Opens a connection, which shakes hands with what is written first.
pub(crate) fn open(server: &Child, trusting: &Arc<ClientConfig>) -> io::Result<TlsStream> {
    let name = ServerName::from(server.address.ip());
    let session = ClientConnection::new(Arc::clone(trusting), name).map_err(io::Error::other)?;
    let socket = TcpStream::connect(server.address)?;
    // Otherwise what is measured is how long the other side puts its acknowledgement off.
    socket.set_nodelay(true)?;
    Ok(StreamOwned::new(session, socket))
}

/// Sends a request, and reads how its answer begins.
///
/// # Errors
/// If that is not `200`.
pub(crate) fn ask(stream: &mut TlsStream, asked: &[u8]) -> io::Result<()> {
    stream.write_all(asked)?;
    let mut answer = [0; 64];
    let read = stream.read(&mut answer)?;
    if answer[..read].starts_with(b"HTTP/1.1 200 ") {
        Ok(())
    } else {
        Err(io::Error::other("a request over TLS is not answered"))
    }
}
