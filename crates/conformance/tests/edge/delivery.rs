//! What idle watches receive when an event occurs, whether or not they read it at once.

use bytes::Bytes;
use conformance::drive::pipe::Pipe;
use fake_apiserver::net::{ConnectionSettings, Edge};
use fake_apiserver::scenario::ServerSettings;
use fake_apiserver::server::Server;
use rstest::rstest;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::{connect, runtime};

const CM: &str = "/api/v1/namespaces/default/configmaps";

/// Reads until the bytes read end with `end`.
async fn read_to(near: &mut Pipe, end: &[u8]) -> Vec<u8> {
    let mut read = Vec::new();
    while !read.ends_with(end) {
        read.push(near.read_u8().await.unwrap());
    }
    read
}

async fn create(edge: &Edge, name: &str, padding: usize) {
    let padding = "x".repeat(padding);
    let body = format!(r#"{{"metadata":{{"name":"{name}"}},"data":{{"x":"{padding}"}}}}"#);
    let request = format!(
        "POST {CM} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let (mut near, mut answer) = (connect(edge, ConnectionSettings::default()), Vec::new());
    near.write_all(request.as_bytes()).await.unwrap();
    near.read_to_end(&mut answer).await.unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 201 "));
}

/// Returns the next chunk of a body.
async fn chunk(near: &mut Pipe) -> Bytes {
    let size = read_to(near, b"\r\n").await;
    let size = std::str::from_utf8(&size).unwrap().trim_end();
    let mut chunk = vec![0; usize::from_str_radix(size, 16).unwrap() + 2];
    near.read_exact(&mut chunk).await.unwrap();
    let chunk = Bytes::from(chunk);
    assert!(chunk.ends_with(b"}\n\r\n"), "a chunk is a line");
    chunk
}

#[rstest]
#[case::what_is_taken_at_once(100, false)]
#[case::what_is_read_in_time(100_000, true)]
#[case::what_is_more_than_the_connection_takes(100_000, false)]
#[case::a_line_that_is_more_than_it_takes(400_000, false)]
fn every_watch_is_sent_every_event_whole_and_in_order(#[case] padding: usize, #[case] reads: bool) {
    runtime(true).block_on(async {
        let edge = Edge::new(Server::standalone(ServerSettings::default(), 0));
        let mut watches = [(); 3].map(|()| connect(&edge, ConnectionSettings::default()));
        for watch in &mut watches {
            let request = format!("GET {CM}?watch=true HTTP/1.1\r\nHost: x\r\n\r\n");
            watch.write_all(request.as_bytes()).await.unwrap();
            read_to(watch, b"\r\n\r\n").await;
        }
        let names = ["a", "b", "c", "d", "e"];
        let mut seen = vec![Vec::new(); watches.len()];
        for name in names {
            create(&edge, name, padding).await;
            if reads {
                for (watch, seen) in watches.iter_mut().zip(&mut seen) {
                    seen.push(chunk(watch).await);
                }
            }
        }
        for (watch, seen) in watches.iter_mut().zip(&mut seen) {
            while seen.len() < names.len() {
                seen.push(chunk(watch).await);
            }
            for (name, line) in names.iter().zip(seen) {
                let named = format!(r#""name":"{name}","#);
                let start = &line[..line.len().min(400)];
                assert!(
                    start.windows(named.len()).any(|part| part == named.as_bytes()),
                    "{}",
                    start.escape_ascii()
                );
                assert!(line.len() > padding);
            }
        }
    });
}
