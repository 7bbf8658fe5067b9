//! The rest of a watch over a WebSocket: every event a text message, the clean end a close frame with 1000.
//!
//! It must not know what an event is: every line is a message, however many lines a piece of data has, and what of a line
//! comes alone is a fragment. Clients read one event a message (`x/net/websocket` sends them so).

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

/// Nobody has anything to say to a watch.
const RECEIVED_MAX: usize = 64 * 1024;

/// Sends what the server decides until either side ends it, and says who did. A client that does not take a message
/// within `patience` is cut.
pub(crate) async fn serve_websocket(
    io: impl AsyncRead + AsyncWrite + Unpin,
    mut ticket: Ticket,
    patience: Duration,
) -> Side {
    let config = WebSocketConfig::default()
        .read_buffer_size(1024)
        // Every message is written through.
        .write_buffer_size(0)
        .max_message_size(Some(RECEIVED_MAX))
        .max_frame_size(Some(RECEIVED_MAX));
    let mut socket = WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await;
    let mut in_message = false;
    loop {
        let piece = tokio::select! {
            biased;
            received = socket.next() => match received {
                // Pings are answered by the library, and what else a client says is nothing to a watch.
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Text(_) | Message::Binary(_) | Message::Frame(_))) => continue,
                Some(Ok(Message::Close(_)) | Err(_)) | None => return Side::Client,
            },
            piece = poll_fn(|cx| ticket.poll_piece(cx)) => piece,
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
                // A client that is gone already needs no farewell.
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
                    // The flush carries it out, and fails for that.
                    let _ = socket.flush().await;
                    return Side::Server;
                }
            }
        }
    }
}

/// Splits data behind every newline, without copying it.
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
