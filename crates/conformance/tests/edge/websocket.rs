//! A watch over a WebSocket, byte for byte.

use std::sync::{Arc, Mutex};

use conformance::drive::pipe::Pipe;
use fake_apiserver::fault::Ending;
use fake_apiserver::net::{ConnectionSettings, Edge};
use rstest::rstest;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::scripted::Out::{self, Close, Data, End, HeadOf};
use crate::scripted::Scripted;
use crate::{connect, runtime};

const ASKED: &[u8] =
    b"GET /x?watch=1 HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
const HEAD: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\nx-probe: 1\r\n\r\n";

fn connected(core: Scripted) -> (Pipe, Edge) {
    let edge = Edge::new(core);
    (connect(&edge, ConnectionSettings::default()), edge)
}

#[rstest]
#[case::messages_and_a_clean_end(
    &[Data(b"one\n"), Data(b"two\n"), End(Ending::Eof)],
    b"\x81\x04one\n\x81\x04two\n\x88\x02\x03\xe8"
)]
#[case::a_message_in_parts(
    &[Data(b"o"), Data(b"n"), Data(b"e\n"), End(Ending::Eof)],
    b"\x01\x01o\x00\x01n\x80\x02e\n\x88\x02\x03\xe8"
)]
#[case::a_message_for_every_line_of_a_piece(
    &[Data(b"one\ntwo\nth"), Data(b"ree\nfour\n"), End(Ending::Eof)],
    b"\x81\x04one\n\x81\x04two\n\x01\x02th\x80\x04ree\n\x81\x05four\n\x88\x02\x03\xe8"
)]
#[case::a_close_without_a_frame(&[Data(b"one\n"), End(Ending::Fin)], b"\x81\x04one\n")]
#[case::a_stall_and_a_close_of_the_connection(&[Data(b"one\n"), End(Ending::Stall), Close], b"\x81\x04one\n")]
fn events_are_text_messages(#[case] pieces: &[Out], #[case] expected: &[u8]) {
    let mut all = vec![HeadOf(101)];
    all.extend(pieces);
    let core = Scripted {
        pieces: all,
        ..Scripted::default()
    };
    let read = runtime(true).block_on(async {
        let (mut near, edge) = connected(core);
        near.write_all(ASKED).await.unwrap();
        let mut read = Vec::new();
        near.read_to_end(&mut read).await.unwrap();
        edge.deserted().await;
        read
    });
    let expected = [HEAD, expected].concat();
    assert_eq!(
        read.escape_ascii().to_string(),
        expected.escape_ascii().to_string()
    );
}

#[test]
fn a_ping_is_answered_and_a_close_ends_the_watch() {
    let inputs = Arc::<Mutex<Vec<String>>>::default();
    let core = Scripted {
        pieces: vec![HeadOf(101)],
        inputs: inputs.clone(),
        ..Scripted::default()
    };
    runtime(true).block_on(async {
        let (mut near, edge) = connected(core);
        near.write_all(ASKED).await.unwrap();
        let mut head = vec![0; HEAD.len()];
        near.read_exact(&mut head).await.unwrap();
        assert_eq!(head, HEAD);
        // Masked, as clients have to; the mask of zeros changes nothing.
        near.write_all(b"\x89\x82\0\0\0\0hi").await.unwrap();
        let mut pong = [0; 4];
        near.read_exact(&mut pong).await.unwrap();
        assert_eq!(&pong, b"\x8a\x02hi");
        near.write_all(b"\x88\x82\0\0\0\0\x03\xe8").await.unwrap();
        edge.deserted().await;
    });
    let expected = [
        "connected 1",
        "request 1 on 1: /x?watch=1",
        "abandoned 1",
        "disconnected 1 by Client",
    ];
    assert_eq!(*inputs.lock().unwrap(), expected);
}
