//! One connection: TLS handshake, then HTTP/1.1 or HTTP/2, with limits.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use tokio::io::AsyncReadExt as _;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use trace::record::{ConnId, Side};

use super::http1::serve_http1;
use super::http2::serve_http2;
use super::open::Open;
use super::tls::named_by;
use super::wire::{Flow, Settles, Transport, Wire};
use super::{Edge, Guard, ListenerLimits};
use crate::api::User;

/// Preface of HTTP/2 with prior knowledge (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Bytes read to detect the protocol.
const FIRST_READ: usize = 1024;

/// Settings of connections.
#[derive(Clone, Default)]
pub struct ConnectionSettings {
    /// TLS; `None`: plain text.
    pub tls: Option<TlsAcceptor>,
    /// Limits of a connection.
    pub limits: ListenerLimits,
    /// Checks of request heads.
    pub guard: Guard,
}

/// Serves the requests of an accepted connection until either side closes it, and reports that to the server.
///
/// When `stop` completes, no further request is accepted; open responses continue to their end.
pub async fn serve_connection<T: Transport>(
    edge: Edge,
    conn: ConnId,
    transport: T,
    settings: ConnectionSettings,
    stop: impl Future<Output = ()>,
) {
    let flow = Arc::new(Flow::default());
    serve_flow(edge, conn, transport, flow, settings, stop).await;
}

/// The same over a connection with shared state.
pub(crate) async fn serve_flow<T: Transport>(
    edge: Edge,
    conn: ConnId,
    transport: T,
    flow: Arc<Flow>,
    settings: ConnectionSettings,
    stop: impl Future<Output = ()>,
) {
    // Dropping this future before it completes counts as closed by the server.
    let mut open = Open {
        edge: edge.clone(),
        conn,
        by: Side::Server,
        closed: false,
    };
    edge.carries(conn, &flow);
    let limits = &settings.limits;
    let mut stop = pin!(stop);
    let Some(acceptor) = &settings.tls else {
        let mut transport = transport;
        let first = first_read(&mut transport);
        let (speaks, read_before) = tokio::select! {
            biased;
            first = tokio::time::timeout(limits.idle, first) => match first {
                Ok(Ok(first)) => first,
                Ok(Err(())) => {
                    open.by = Side::Client;
                    return;
                }
                Err(_) => return,
            },
            () = stop.as_mut() => return,
            () = poll_fn(|cx| flow.poll_over(0, cx)) => return,
        };
        let spoken = (speaks, read_before);
        return speak(&mut open, transport, spoken, flow, &settings, stop).await;
    };
    // Boxed, as HTTP/2 below: thousands of connections have neither, and need no memory for it.
    Box::pin(serve_tls(&mut open, acceptor, transport, flow, &settings, stop)).await;
}

async fn serve_tls<T: Transport>(
    open: &mut Open,
    acceptor: &TlsAcceptor,
    transport: T,
    flow: Arc<Flow>,
    settings: &ConnectionSettings,
    mut stop: Pin<&mut impl Future<Output = ()>>,
) {
    let shaken = tokio::select! {
        biased;
        shaken = tokio::time::timeout(settings.limits.handshake, acceptor.accept(transport)) => shaken,
        () = stop.as_mut() => return,
        () = poll_fn(|cx| flow.poll_over(0, cx)) => return,
    };
    match shaken {
        Ok(Ok(stream)) => {
            if let Some(user) = certified(&stream) {
                open.edge.authenticated(open.conn, user);
            }
            let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
            let speaks = if http2 { Speaks::Http2 } else { Speaks::Http1 };
            speak(open, stream, (speaks, Bytes::new()), flow, settings, stop).await;
        }
        Ok(Err(error)) => {
            open.by = Side::Client;
            tracing::debug!(conn = open.conn.0, %error, "no TLS");
        }
        Err(_) => tracing::debug!(conn = open.conn.0, "the TLS handshake took too long"),
    }
}

enum Speaks {
    Http1,
    Http2,
}

/// Reads enough bytes to detect the protocol. Fails if the client disconnects before.
async fn first_read<T: Transport>(transport: &mut T) -> Result<(Speaks, Bytes), ()> {
    let mut read = BytesMut::with_capacity(FIRST_READ);
    loop {
        match transport.read_buf(&mut read).await {
            Ok(0) | Err(_) => return Err(()),
            Ok(_) => {}
        }
        let common = read.len().min(PREFACE.len());
        if read[..common] != PREFACE[..common] {
            return Ok((Speaks::Http1, read.freeze()));
        }
        if common == PREFACE.len() {
            return Ok((Speaks::Http2, read.freeze()));
        }
    }
}

async fn speak<T: Transport>(
    open: &mut Open,
    transport: T,
    (speaks, read_before): (Speaks, Bytes),
    flow: Arc<Flow>,
    settings: &ConnectionSettings,
    stop: impl Future<Output = ()>,
) {
    match speaks {
        Speaks::Http1 => {
            let wire = Wire::new(transport, read_before, flow.clone(), Settles::AtEveryFlush);
            serve_http1(open, wire, flow, settings, stop).await;
        }
        Speaks::Http2 => {
            let wire = Wire::new(transport, read_before, flow.clone(), Settles::WhenToldSo);
            Box::pin(serve_http2(open, wire, flow, settings, stop)).await;
        }
    }
    tracing::debug!(conn = open.conn.0, by = ?open.by, "connection over");
}

/// Returns the user of the client certificate, which the handshake has verified.
fn certified<T>(stream: &TlsStream<T>) -> Option<User> {
    let certificates = stream.get_ref().1.peer_certificates()?;
    named_by(certificates.first()?)
}
