//! A watch over a WebSocket: every event is a text message, the clean end a close frame with code 1000.
//!
//! Every line is one message, also if a piece of data has several; an incomplete line is a fragment. Clients expect one event
//! per message (as `x/net/websocket` sends them).

use std::future::poll_fn;
use std::time::Duration;

use bytes::Bytes;
use futures::{SinkExt as _, StreamExt as _};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{CloseCode, Data, OpCode};
use tokio_tungstenite::tungstenite::protocol::frame::{CloseFrame, Frame};
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use trace::fault::Ending;
use trace::record::Side;

use super::answer::end_connection;
use super::{Piece, Ticket};

/// Largest message of a client: watches expect none.
const RECEIVED_MAX: usize = 64 * 1024;

/// Sends the watch until either side ends it, and returns that side. A client that does not read a message within `patience`
/// is disconnected.
pub(crate) async fn serve_websocket(
    io: impl AsyncRead + AsyncWrite + Unpin,
    mut ticket: Ticket,
    patience: Duration,
) -> Side {
    let config = WebSocketConfig::default()
        .read_buffer_size(1024)
        // Every message is flushed.
        .write_buffer_size(0)
        .max_message_size(Some(RECEIVED_MAX))
        .max_frame_size(Some(RECEIVED_MAX));
    let mut socket = WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await;
    let flow = ticket.flow().clone();
    let mut in_message = false;
    loop {
        let piece = tokio::select! {
            biased;
            received = socket.next() => match received {
                // The library answers pings, and other messages are ignored.
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Text(_) | Message::Binary(_) | Message::Frame(_))) => continue,
                Some(Ok(Message::Close(_)) | Err(_)) | None => return Side::Client,
            },
            piece = poll_fn(|cx| ticket.poll_piece(cx)) => piece,
            () = poll_fn(|cx| flow.poll_over(1, cx)) => return Side::Server,
        };
        match piece {
            Piece::Data(bytes) => {
                for line in lines(bytes) {
                    let whole = line.ends_with(b"\n");
                    let frame = frame(line, in_message, whole);
                    in_message = !whole;
                    match tokio::time::timeout(patience, socket.send(Message::Frame(frame))).await {
                        Ok(Ok(())) => {}
                        Ok(Err(_)) => return Side::Client,
                        Err(_) => {
                            ticket.cut();
                            return Side::Server;
                        }
                    }
                }
            }
            Piece::End(Ending::Eof) => {
                let close = CloseFrame {
                    code: CloseCode::Normal,
                    reason: "".into(),
                };
                // A client that has disconnected needs no close frame.
                let _ = socket.close(Some(close)).await;
                return Side::Server;
            }
            Piece::End(how) => {
                poll_fn(|cx| {
                    end_connection(ticket.flow(), how, cx);
                    std::task::Poll::Ready(())
                })
                .await;
                if how != Ending::Stall {
                    // The flush carries it out, and fails because of it.
                    let _ = socket.flush().await;
                    return Side::Server;
                }
            }
        }
    }
}

/// Splits data after every newline, without copying.
fn lines(mut bytes: Bytes) -> impl Iterator<Item = Bytes> {
    std::iter::from_fn(move || {
        let newline = bytes.iter().position(|byte| *byte == b'\n');
        let end = newline.map_or(bytes.len(), |newline| newline + 1);
        (end > 0).then(|| bytes.split_to(end))
    })
}

fn frame(bytes: Bytes, in_message: bool, whole: bool) -> Frame {
    let data = if in_message { Data::Continue } else { Data::Text };
    Frame::message(bytes, OpCode::Data(data), whole)
}
