//! Connections of clients to a server, plain or over TLS. Independent of the requests sent.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::http::PATIENCE;

/// Where a server listens, and whether it speaks TLS.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    address: SocketAddr,
    /// With the server's certificate authority.
    trusting: Option<Arc<ClientConfig>>,
}

impl From<SocketAddr> for Place {
    fn from(address: SocketAddr) -> Self {
        let trusting = None;
        Self { address, trusting }
    }
}

impl Place {
    /// Returns the place of a server that speaks TLS, with the PEM certificate of its authority.
    ///
    /// # Errors
    /// If it cannot be parsed.
    pub(crate) fn over_tls(address: SocketAddr, authority: &[u8]) -> io::Result<Self> {
        let mut roots = RootCertStore::empty();
        let authority = CertificateDer::from_pem_slice(authority).map_err(io::Error::other)?;
        roots.add(authority).map_err(io::Error::other)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let trusting = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self {
            address,
            trusting: Some(Arc::new(trusting)),
        })
    }

    /// Opens a connection with blocking reads and writes; its handshake is over.
    pub(crate) fn open(&self) -> io::Result<Link<TcpStream>> {
        let mut socket = TcpStream::connect_timeout(&self.address, PATIENCE)?;
        // Otherwise delayed acknowledgements would be measured.
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        let Some(trusting) = &self.trusting else {
            return Ok(Link::Plain(socket));
        };
        let name = ServerName::from(self.address.ip());
        let mut session = ClientConnection::new(Arc::clone(trusting), name).map_err(io::Error::other)?;
        while session.is_handshaking() {
            session.complete_io(&mut socket)?;
        }
        Ok(Link::Tls(Box::new(StreamOwned::new(session, socket))))
    }
}

/// A connection.
pub(crate) enum Link<S: Read + Write> {
    Plain(S),
    Tls(Box<StreamOwned<ClientConnection, S>>),
}

impl Link<TcpStream> {
    /// Returns the connection for a poll.
    pub(crate) fn nonblocking(self) -> io::Result<Link<mio::net::TcpStream>> {
        let converted = |socket: TcpStream| {
            socket.set_nonblocking(true)?;
            Ok::<_, io::Error>(mio::net::TcpStream::from_std(socket))
        };
        Ok(match self {
            Self::Plain(socket) => Link::Plain(converted(socket)?),
            Self::Tls(stream) => {
                let (session, socket) = stream.into_parts();
                Link::Tls(Box::new(StreamOwned::new(session, converted(socket)?)))
            }
        })
    }
}

impl<S: Read + Write> Link<S> {
    pub(crate) fn socket(&mut self) -> &mut S {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(stream) => &mut stream.sock,
        }
    }
}

impl<S: Read + Write> Read for Link<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

impl<S: Read + Write> Write for Link<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(socket) => socket.flush(),
            Self::Tls(stream) => stream.flush(),
        }
    }
}
