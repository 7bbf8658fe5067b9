//! Carries requests to an upstream and its responses back, part by part. It must not know what the bytes mean, or how a
//! connection is made: that is in [`Upstream`].

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::future::{BoxFuture, FutureExt as _};
use http_body::Body;
use http_body_util::BodyExt as _;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional};
use tokio::sync::{Notify, oneshot};
use trace::fault::Ending;
use trace::record::{Record, Side, StreamId, What};

use super::answer::end_connection;
use super::{Edge, Piece, Ticket};
use crate::server::Input;
use crate::upstream::{Failure, Inbound, Outbound, innermost};

/// Longest response to a write of the proxy itself, in bytes.
const WRITTEN_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Longest body that is read with its head, in bytes: both go to the client in one piece.
const SHORT_BYTES: u64 = 16 * 1024;

/// Bytes that are read as one part, if they have come: a connection hands over each chunk by itself, and a watch has one an event.
const PART_BYTES: usize = 16 * 1024;

/// Bytes that are enough for a part.
const PART_BYTES_MIN: usize = 4 * 1024;

/// Time for a write of the proxy itself.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// Connection to a real apiserver, with the credentials that it lends.
pub trait Upstream: Send + Sync {
    /// Sends a request, with the lent credentials if it has none itself. A response with status 101 has its connection in
    /// its extensions, as hyper's responses have it.
    ///
    /// # Errors
    /// There is no response.
    fn send(&self, request: Outbound) -> BoxFuture<'_, Result<http::Response<UpstreamBody>, Failure>>;
}

/// Body of a response of an upstream.
pub type UpstreamBody =
    Pin<Box<dyn Body<Data = Bytes, Error = Box<dyn std::error::Error + Send + Sync>> + Send>>;

/// A forwarded request, as its response has it. Dropped with the response: then the upstream's is given up.
#[derive(Debug)]
pub(super) struct Forwarding {
    pull: Arc<Notify>,
    /// The connection of an upgraded response.
    tunnel: Option<OnUpgrade>,
    _open: oneshot::Sender<()>,
}

/// The other end: what a task needs to forward a request.
#[derive(Debug)]
pub(super) struct Errand {
    stream: StreamId,
    request: Box<Outbound>,
    pull: Arc<Notify>,
    given_up: oneshot::Receiver<()>,
}

impl Forwarding {
    /// Returns both ends of a request to forward.
    pub(super) fn of(stream: StreamId, request: Box<Outbound>) -> (Self, Errand) {
        let pull = Arc::new(Notify::new());
        let (open, given_up) = oneshot::channel();
        let errand = Errand {
            stream,
            request,
            pull: pull.clone(),
            given_up,
        };
        let forwarding = Self {
            pull,
            tunnel: None,
            _open: open,
        };
        (forwarding, errand)
    }

    /// Asks for the next part.
    pub(super) fn pull(&self) {
        self.pull.notify_one();
    }

    pub(super) fn take_tunnel(&mut self) -> Option<OnUpgrade> {
        self.tunnel.take()
    }
}

impl Edge {
    /// Forwards requests, each in a task.
    pub(super) fn forward(&self, errands: Vec<Errand>) {
        let Some(upstream) = &self.shared.upstream else {
            return;
        };
        for errand in errands {
            let (edge, upstream) = (self.clone(), upstream.clone());
            self.shared.runtime.spawn(async move {
                let Errand {
                    stream,
                    request,
                    pull,
                    given_up,
                } = errand;
                let reports = |part| edge.hand_in(|_, _| Input::Upstream { stream, part });
                tokio::select! {
                    biased;
                    // The sender is dropped, never used.
                    _ = given_up => {}
                    last = edge.answered(&*upstream, stream, *request, &pull) => reports(last),
                }
            });
        }
    }

    /// Sends requests of the proxy itself, each in a task.
    pub(super) fn write_upstream(&self, writes: Vec<(u64, Box<Outbound>)>) {
        let Some(upstream) = &self.shared.upstream else {
            return;
        };
        for (write, request) in writes {
            let (edge, upstream) = (self.clone(), upstream.clone());
            self.shared.runtime.spawn(async move {
                let outcome = tokio::time::timeout(WRITE_TIMEOUT, written(&*upstream, *request)).await;
                let outcome = outcome.unwrap_or_else(|_| {
                    let seconds = WRITE_TIMEOUT.as_secs();
                    Err(Failure::Broken(format!(
                        "there is none after {seconds} s; it may have been carried out"
                    )))
                });
                edge.hand_in(|_, _| Input::UpstreamWritten { write, outcome });
            });
        }
    }

    /// Waits until these writes to the upstream have outcomes, and returns the records. `since`: number of a record before them.
    /// `None`: the server is gone.
    pub async fn upstream_writes(&self, since: u64, mut writes: Vec<u64>) -> Option<Vec<Record>> {
        let (mut at, mut found) = (since, Vec::new());
        loop {
            // Steering stirs: the wait begins after it.
            self.steer(|_, _| ())?;
            let stirred = self.stirred();
            self.read_records(at, |records| {
                for record in records {
                    at = record.seq + 1;
                    if let What::UpstreamWrite { write, .. } = &record.what
                        && writes.contains(write)
                    {
                        writes.retain(|awaited| awaited != write);
                        found.push(record.clone());
                    }
                }
            });
            if writes.is_empty() {
                return Some(found);
            }
            stirred.await;
        }
    }

    /// Reports all parts of a response but the last, and returns that.
    async fn answered(
        &self,
        upstream: &dyn Upstream,
        stream: StreamId,
        request: Outbound,
        pull: &Notify,
    ) -> Inbound {
        let mut response = match upstream.send(request).await {
            Ok(response) => response,
            Err(failure) => return Inbound::Failed(failure),
        };
        let status = response.status().as_u16();
        let headers = std::mem::take(response.headers_mut());
        if status == 101 {
            let upgraded = hyper::upgrade::on(&mut response);
            if let Some(answer) = self.lock().answers.get_mut(&stream)
                && let Some(forwarding) = &mut answer.forwarding
            {
                forwarding.tunnel = Some(upgraded);
            }
        }
        let length = response.body().size_hint().exact();
        let mut body = response.into_body();
        let mut first = match length {
            Some(0..=SHORT_BYTES) if status != 101 => Some(next_part(&mut body).await),
            Some(_) | None => None,
        };
        let head = Inbound::Head { status, headers };
        self.hand_in(|_, _| Input::Upstream { stream, part: head });
        if status == 101 {
            // The connection of the client carries the bytes, and ends with the response.
            return std::future::pending().await;
        }
        loop {
            let part = match first.take() {
                Some(first) => first,
                None => {
                    pull.notified().await;
                    next_part(&mut body).await
                }
            };
            let Inbound::Data(data) = part else { return part };
            let (data, last) = match length {
                None if data.len() < PART_BYTES_MIN => with_what_has_come(&mut body, data).await,
                Some(_) | None => (data, None),
            };
            let part = Inbound::Data(data);
            self.hand_in(|_, _| Input::Upstream { stream, part });
            if let Some(last) = last {
                return last;
            }
        }
    }
}

/// Reads the next part of a body, or its end.
async fn next_part(body: &mut UpstreamBody) -> Inbound {
    loop {
        match body.frame().await {
            None => return Inbound::End,
            Some(Err(error)) => return Inbound::Failed(Failure::Broken(innermost(&*error))),
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) if !data.is_empty() => return Inbound::Data(data),
                // Trailers: no apiserver sends any.
                Ok(_) | Err(_) => {}
            },
        }
    }
}

/// Adds what has come of the body to its first bytes, without waiting for more. Also returns its end, if that has come.
async fn with_what_has_come(body: &mut UpstreamBody, first: Bytes) -> (Bytes, Option<Inbound>) {
    let (mut first, mut more) = (first, BytesMut::new());
    let last = loop {
        if first.len() + more.len() >= PART_BYTES {
            break None;
        }
        // The task of the connection hands over the next chunk meanwhile.
        tokio::task::yield_now().await;
        match next_part(body).now_or_never() {
            Some(Inbound::Data(next)) => {
                more.extend_from_slice(&std::mem::take(&mut first));
                more.extend_from_slice(&next);
            }
            Some(last) => break Some(last),
            None => break None,
        }
    };
    match more.is_empty() {
        true => (first, last),
        false => (more.freeze(), last),
    }
}

/// Sends a request of the proxy itself; returns status and body of the response.
async fn written(upstream: &dyn Upstream, request: Outbound) -> Result<(u16, Bytes), Failure> {
    let response = upstream.send(request).await?;
    let status = response.status().as_u16();
    let (mut body, mut read) = (response.into_body(), BytesMut::new());
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Failure::Broken(innermost(&*error)))?;
        if let Ok(data) = frame.into_data() {
            read.extend_from_slice(&data);
        }
        if read.len() > WRITTEN_BYTES_MAX {
            return Err(Failure::Broken("it is longer than any object".to_owned()));
        }
    }
    Ok((status, read.freeze()))
}

/// Carries bytes between a client and the upstream, until either side or a fault ends it. Returns the side.
pub(super) async fn serve_tunnel(
    mut client: impl AsyncRead + AsyncWrite + Unpin,
    upstream: OnUpgrade,
    mut ticket: Ticket,
) -> Side {
    let flow = ticket.flow().clone();
    let mut upstream = match upstream.await {
        Ok(upgraded) => TokioIo::new(upgraded),
        Err(error) => {
            tracing::debug!(%error, "the upstream did not upgrade");
            return Side::Server;
        }
    };
    let how = tokio::select! {
        biased;
        () = std::future::poll_fn(|cx| flow.poll_over(1, cx)) => return Side::Server,
        piece = std::future::poll_fn(|cx| ticket.poll_piece(cx)) => match piece {
            Piece::End(how) => how,
            // Both sides speak another protocol.
            Piece::Data(_) => Ending::Fin,
        },
        // Which side was the first is not known: both are closed.
        _ = copy_bidirectional(&mut client, &mut upstream) => return Side::Client,
    };
    if how == Ending::Stall {
        drop(upstream);
        std::future::poll_fn(|cx| flow.poll_over(1, cx)).await;
        return Side::Server;
    }
    std::future::poll_fn(|cx| {
        end_connection(ticket.flow(), how, cx);
        std::task::Poll::Ready(())
    })
    .await;
    // The flush carries it out, and fails because of it.
    let _ = tokio::io::AsyncWriteExt::flush(&mut client).await;
    Side::Server
}
