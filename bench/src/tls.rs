//! TLS connections to a server with its own certificate authority. Independent of the requests sent.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::child::Child;

/// A TLS connection with blocking reads and writes.
pub(crate) type TlsStream = StreamOwned<ClientConnection, TcpStream>;

/// Returns a configuration that trusts the server's certificate authority.
///
/// # Errors
/// If the server printed none, or it cannot be parsed.
pub(crate) fn trust(server: &Child) -> io::Result<Arc<ClientConfig>> {
    let authority = server.authority.as_deref();
    let authority =
        authority.ok_or_else(|| io::Error::other("the server printed no certificate authority"))?;
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

/// Opens a connection; the handshake happens with the first write.
pub(crate) fn open(server: &Child, trusting: &Arc<ClientConfig>) -> io::Result<TlsStream> {
    let name = ServerName::from(server.address.ip());
    let session = ClientConnection::new(Arc::clone(trusting), name).map_err(io::Error::other)?;
    let socket = TcpStream::connect(server.address)?;
    // Otherwise delayed acknowledgements would be measured.
    socket.set_nodelay(true)?;
    Ok(StreamOwned::new(session, socket))
}

/// Sends a request, and reads the start of the response.
///
/// # Errors
/// If the status is not `200`.
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
