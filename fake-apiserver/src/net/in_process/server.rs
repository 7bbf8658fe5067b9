//! The server's end of a connection in process: takes requests, and passes the pieces of responses on. No HTTP library.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures::stream::{FuturesUnordered, StreamExt as _};
use tokio::sync::mpsc;
use trace::fault::{Ending, Http2Error};
use trace::record::{ConnId, Side};

use super::body::{self, Broken, Gone, Writer};
use super::{Exchange, NoResponse, Protocol};
use crate::net::answer::response;
use crate::net::deadline::Deadline;
use crate::net::http2::is_last;
use crate::net::open::Open;
use crate::net::wire::Flow;
use crate::net::{Edge, ListenerLimits, Piece, Ticket};

/// The server's end of a connection.
pub(super) struct Server {
    edge: Edge,
    conn: ConnId,
    flow: Arc<Flow>,
    protocol: Protocol,
    /// Most requests at a time.
    concurrent: usize,
    /// Timeout of a connection without a request.
    idle: Duration,
    /// Timeout of a client that does not read.
    patience: Duration,
}

/// Takes no more requests. Those that were not taken are sent again on another connection.
fn give_back(requests: &mut mpsc::UnboundedReceiver<Exchange>) {
    requests.close();
    while let Ok(Exchange { request, respond }) = requests.try_recv() {
        // The client may have given it up.
        let _ = respond.send(Err(NoResponse::NotTaken(Box::new(request))));
    }
}

/// How a response ended.
enum Ended {
    /// It is complete.
    Complete,
    /// The client gave it up.
    ByClient,
    /// Its stream ended, and its connection continues (HTTP/2).
    Stream,
    /// The connection ends.
    Connection,
}

impl Server {
    pub(super) fn new(edge: Edge, conn: ConnId, protocol: Protocol, limits: &ListenerLimits) -> Self {
        let concurrent = match protocol {
            Protocol::Http1 => 1,
            Protocol::Http2 => limits.streams as usize,
        };
        Self {
            edge,
            conn,
            flow: Arc::new(Flow::default()),
            protocol,
            concurrent,
            idle: limits.idle,
            patience: limits.write,
        }
    }

    /// Serves requests until either side closes the connection.
    pub(super) async fn serve(self, mut requests: mpsc::UnboundedReceiver<Exchange>) {
        // Dropped after all responses.
        let mut open = Open {
            edge: self.edge.clone(),
            conn: self.conn,
            by: Side::Server,
            closed: false,
        };
        self.edge.carries(self.conn, &self.flow);
        let mut exchanges = FuturesUnordered::new();
        let mut idle = Deadline::default();
        // No more requests are taken, and those that are open continue.
        let mut leaving = false;
        let by = poll_fn(|cx| {
            loop {
                while let Poll::Ready(Some(ended)) = exchanges.poll_next_unpin(cx) {
                    match (ended, self.protocol) {
                        (Ended::Complete | Ended::Stream, _) | (Ended::ByClient, Protocol::Http2) => {}
                        (Ended::ByClient, Protocol::Http1) if self.flow.is_ended() => {
                            return Poll::Ready(Side::Server);
                        }
                        (Ended::ByClient, Protocol::Http1) => return Poll::Ready(Side::Client),
                        (Ended::Connection, _) => return Poll::Ready(Side::Server),
                    }
                    self.flow.serves(!exchanges.is_empty());
                }
                if self.flow.take_goaway() | self.flow.is_closing() {
                    leaving = true;
                    give_back(&mut requests);
                }
                if leaving && exchanges.is_empty() {
                    return Poll::Ready(self.closer());
                }
                if leaving || exchanges.len() >= self.concurrent {
                    break;
                }
                match requests.poll_recv(cx) {
                    Poll::Ready(Some(exchange)) if exchange.respond.is_closed() => {}
                    Poll::Ready(Some(exchange)) => {
                        self.flow.serves(true);
                        exchanges.push(self.exchange(exchange));
                    }
                    Poll::Ready(None) if exchanges.is_empty() => return Poll::Ready(Side::Client),
                    Poll::Ready(None) | Poll::Pending => break,
                }
            }
            if self.flow.poll_over(exchanges.len(), cx).is_ready() {
                return Poll::Ready(Side::Server);
            }
            if !exchanges.is_empty() {
                idle.clear();
            } else if !idle.is_set() {
                idle.set(self.idle);
            }
            idle.poll_passed(cx).map(|()| Side::Server)
        })
        .await;
        if by == Side::Server {
            // Before the responses are dropped: the client did not give them up.
            open.close(by);
        }
        open.by = by;
        drop(exchanges);
        give_back(&mut requests);
    }

    /// Side that closes a connection after its last response. Over HTTP/2 the client closes it after GOAWAY.
    fn closer(&self) -> Side {
        match self.protocol {
            Protocol::Http2 if !self.flow.is_ended() => Side::Client,
            Protocol::Http1 | Protocol::Http2 => Side::Server,
        }
    }

    async fn exchange(&self, exchange: Exchange) -> Ended {
        let Exchange { request, mut respond } = exchange;
        let mut ticket = self.edge.request(self.conn, request, self.flow.clone());
        let head = poll_fn(|cx| {
            let gone = |cx: &mut Context<'_>| respond.poll_closed(cx);
            self.unless_gone(cx, gone, |cx| ticket.poll_head(cx))
        });
        let head = match head.await {
            Ok(Ok(head)) => head,
            Ok(Err(Ending::Stall)) => return self.stalled(|cx| respond.poll_closed(cx)).await,
            Ok(Err(how)) => {
                // The client may have given it up.
                let _ = respond.send(Err(NoResponse::Ended(Broken::of(how, self.protocol))));
                return self.ends(how);
            }
            Err(Gone) => return Ended::ByClient,
        };
        let (mut writer, body) = body::channel(self.protocol);
        let response = response(head, body);
        if is_last(&response, self.protocol == Protocol::Http2) {
            self.flow.goaway();
        }
        if respond.send(Ok(response)).is_err() {
            return Ended::ByClient;
        }
        self.send_body(&mut ticket, &mut writer).await
    }

    async fn send_body(&self, ticket: &mut Ticket, writer: &mut Writer) -> Ended {
        loop {
            let piece = poll_fn(|cx| {
                let gone = |cx: &mut Context<'_>| writer.poll_gone(cx);
                self.unless_gone(cx, gone, |cx| ticket.poll_piece(cx))
            });
            match piece.await {
                Ok(Piece::Data(bytes)) => {
                    writer.push(bytes);
                    if let Err(ended) = self.room(ticket, writer).await {
                        return ended;
                    }
                }
                Ok(Piece::End(Ending::Eof)) => {
                    writer.end(Ok(()));
                    return Ended::Complete;
                }
                Ok(Piece::End(Ending::Stall)) => return self.stalled(|cx| writer.poll_gone(cx)).await,
                Ok(Piece::End(how)) => {
                    writer.end(Err(Broken::of(how, self.protocol)));
                    return self.ends(how);
                }
                Err(Gone) => return Ended::ByClient,
            }
        }
    }

    /// Carries an ending out, which the client sees already.
    fn ends(&self, how: Ending) -> Ended {
        if let (Ending::RstStream(_), Protocol::Http2) = (how, self.protocol) {
            return Ended::Stream;
        }
        self.flow.arm(how);
        Ended::Connection
    }

    /// Waits until the client has read enough. A client that reads nothing for too long loses its stream, over HTTP/1.1 with the
    /// connection.
    async fn room(&self, ticket: &mut Ticket, writer: &mut Writer) -> Result<(), Ended> {
        let mut deadline = Deadline::default();
        let mut unread = None;
        let timed_out = poll_fn(|cx| {
            if unread.replace(writer.unread()) != Some(writer.unread()) {
                deadline.clear();
            }
            if let Poll::Ready(room) = writer.poll_room(cx) {
                return Poll::Ready(room.map(|()| false).map_err(|Gone| Ended::ByClient));
            }
            if !deadline.is_set() {
                deadline.set(self.patience);
            }
            ready!(deadline.poll_passed(cx));
            Poll::Ready(Ok(true))
        });
        if !timed_out.await? {
            return Ok(());
        }
        ticket.cut();
        Err(match self.protocol {
            Protocol::Http1 => {
                self.flow.cut();
                Ended::Connection
            }
            Protocol::Http2 => {
                writer.end(Err(Broken::StreamReset(Http2Error::Cancel)));
                Ended::Stream
            }
        })
    }

    /// Sends nothing more, until the client gives up or the connection is closed.
    async fn stalled(&self, mut gone: impl FnMut(&mut Context<'_>) -> Poll<()>) -> Ended {
        self.flow.stalls();
        poll_fn(|cx| gone(cx)).await;
        self.flow.gave_up_stalled();
        Ended::ByClient
    }

    /// Polls, unless the client gave the response up.
    fn unless_gone<T>(
        &self,
        cx: &mut Context<'_>,
        mut gone: impl FnMut(&mut Context<'_>) -> Poll<()>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<Result<T, Gone>> {
        if gone(cx).is_ready() {
            return Poll::Ready(Err(Gone));
        }
        poll(cx).map(Ok)
    }
}
