//! Attacks on a served fake from outside, each of a size its caller decides: what an attack costs the server is for the
//! caller to judge, by its memory and by whether a neighbour is still answered.
//!
//! They speak bytes, not a client's HTTP: what they send no client would. All of them stay on loopback, and nothing sleeps.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// An answer as bytes, and its status.
#[derive(Debug)]
pub struct Answered {
    /// The status; 0 if the connection ended without an answer.
    pub status: u16,
    /// All that was read, head included.
    pub text: String,
}

/// Opens a connection and writes `bytes` into it.
///
/// # Errors
/// The server does not take them.
pub fn sent(address: SocketAddr, bytes: &[u8]) -> io::Result<TcpStream> {
    let mut socket = TcpStream::connect(address)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_write_timeout(Some(PATIENCE))?;
    socket.write_all(bytes)?;
    Ok(socket)
}

/// Sends `bytes` on a connection of their own and reads until the server closes it.
pub fn exchange(address: SocketAddr, bytes: &[u8]) -> Answered {
    let mut text = Vec::new();
    if let Ok(mut socket) = sent(address, bytes) {
        // What came before a reset counts.
        let _cut = socket.read_to_end(&mut text);
    }
    let text = String::from_utf8_lossy(&text).into_owned();
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok());
    Answered {
        status: status.unwrap_or_default(),
        text,
    }
}

/// A request with `head` (lines without their ends, the request line first), `Connection: close` and a body.
pub fn request(head: &[&str], body: &str) -> Vec<u8> {
    let mut text = head.join("\r\n");
    if !body.is_empty() {
        text.push_str(&format!("\r\nContent-Length: {}", body.len()));
    }
    format!("{text}\r\nConnection: close\r\n\r\n{body}").into_bytes()
}

/// GETs `target` as a well-behaved neighbour.
pub fn neighbour(address: SocketAddr, target: &str) -> Answered {
    let line = format!("GET {target} HTTP/1.1");
    exchange(address, &request(&[&line, "Host: localhost"], ""))
}

/// Sends a request with a JSON body.
pub fn write(address: SocketAddr, method: &str, target: &str, content_type: &str, body: &str) -> Answered {
    let line = format!("{method} {target} HTTP/1.1");
    let kind = format!("Content-Type: {content_type}");
    exchange(address, &request(&[&line, "Host: localhost", &kind], body))
}

/// Creates `count` ConfigMaps of `bytes` each in `default`.
///
/// # Panics
/// When the server refuses one.
pub fn fill(address: SocketAddr, count: usize, bytes: usize) {
    for number in 0..count {
        let body = format!(
            r#"{{"metadata":{{"name":"large-{number}"}},"data":{{"p":"{}"}}}}"#,
            "x".repeat(bytes)
        );
        let created = write(
            address,
            "POST",
            "/api/v1/namespaces/default/configmaps",
            "application/json",
            &body,
        );
        assert_eq!(created.status, 201, "{}", created.text);
    }
}

/// Patches one large object `times` times; every version of it is as large as the object.
///
/// # Panics
/// When the server refuses one.
pub fn rewrite(address: SocketAddr, times: usize) {
    for number in 0..times {
        let body = format!(r#"{{"metadata":{{"annotations":{{"n":"{number}"}}}}}}"#);
        let target = "/api/v1/namespaces/default/configmaps/large-0";
        let patched = write(address, "PATCH", target, "application/merge-patch+json", &body);
        assert_eq!(patched.status, 200, "{}", patched.text);
    }
}

/// Asks `count` times, on a connection each, for a whole list that is never read. `accept` is the style it is asked for in.
///
/// # Panics
/// When the server takes no connection.
pub fn unread_lists(address: SocketAddr, count: usize, target: &str, accept: &str) -> Vec<TcpStream> {
    let asked = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\n\r\n");
    (0..count)
        .map(|_| {
            let mut socket = sent(address, asked.as_bytes()).expect("it listens");
            // The first bytes prove that the answer is under way.
            let mut first = [0; 12];
            socket.read_exact(&mut first).expect("it answers");
            socket
        })
        .collect()
}

/// Opens `count` watches that would last for ever, says one byte more on each, and leaves. `version` is that of HTTP.
///
/// # Panics
/// When the server takes no connection.
pub fn abandoned_watches(address: SocketAddr, count: usize, version: &str, connection: &str) {
    let asked = format!(
        "GET /api/v1/pods?watch=1&timeoutSeconds={} HTTP/{version}\r\nHost: localhost\r\nConnection: {connection}\r\n\r\n",
        i64::MAX
    );
    for _ in 0..count {
        let mut socket = sent(address, asked.as_bytes()).expect("it listens");
        let mut first = [0; 12];
        socket.read_exact(&mut first).expect("it answers");
        socket.write_all(b"x").expect("it is still there");
        drop(socket);
    }
}

/// Opens `count` watches and keeps them.
///
/// # Panics
/// When the server takes no connection.
pub fn watches(address: SocketAddr, count: usize) -> Vec<TcpStream> {
    unread_lists(address, count, "/api/v1/pods?watch=1", "application/json")
}

/// Where a watch is asked for whose selector is long: what is made of it is many times its size.
pub fn long_selector() -> String {
    let values: Vec<String> = (0..9_000).map(|nth| format!("v{nth}")).collect();
    format!(
        "/api/v1/pods?watch=1&labelSelector=a%20in%20({})",
        values.join(",")
    )
}

/// Sends a body of `bytes` that is too large, all of it before anything is read, and gives the answer.
pub fn oversized(address: SocketAddr, bytes: usize) -> Answered {
    let head = [
        "POST /api/v1/namespaces/default/configmaps HTTP/1.1",
        "Host: localhost",
        "Content-Type: application/json",
    ];
    exchange(address, &request(&head, &"x".repeat(bytes)))
}

/// Asks for `target` on `streams` streams of one HTTP/2 connection whose flow-control window is empty: nothing of an answer
/// but its head can leave. Returns when all heads are there.
///
/// # Panics
/// When the server takes no connection, or does not answer all of them.
pub fn windowless_lists(address: SocketAddr, streams: u32, target: &str) -> TcpStream {
    let (headers, settings) = (1, 4);
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    // SETTINGS_INITIAL_WINDOW_SIZE = 0 (RFC 9113, section 6.5.2).
    bytes.extend(frame(settings, 0, 0, &[0, 4, 0, 0, 0, 0]));
    // `:method: GET` and `:scheme: http` of the static table, `:path` and `:authority` as literals (RFC 7541, appendix A).
    let length = u8::try_from(target.len()).expect("targets are short");
    let block = [
        &[0x82, 0x86, 4, length][..],
        target.as_bytes(),
        &[1, 9],
        b"localhost",
    ]
    .concat();
    for stream in 0..streams {
        // END_STREAM and END_HEADERS.
        bytes.extend(frame(headers, 5, stream * 2 + 1, &block));
    }
    let mut socket = sent(address, &bytes).expect("it listens");
    let mut answered = 0;
    while answered < streams {
        let mut head = [0; 9];
        socket.read_exact(&mut head).expect("it answers");
        let [a, b, c, kind, ..] = head;
        let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        socket.read_exact(&mut payload).expect("it answers");
        answered += u32::from(kind == headers);
    }
    socket
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("frames are short");
    let [_, length @ ..] = length.to_be_bytes();
    [&length[..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Ends the connection for sending.
pub fn half_close(socket: &TcpStream) {
    // It may be gone already.
    let _gone = socket.shutdown(Shutdown::Write);
}

/// The most memory a process has taken so far, in bytes (`VmHWM` of `/proc/PID/status`); `None` where there is none.
pub fn peak_memory(pid: u32) -> Option<usize> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: usize = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kilobytes * 1024)
}

/// CPU time that the threads of a process have taken (`/proc/PID/task/*/schedstat`); `None` where there is none.
pub fn cpu_time(pid: u32) -> Option<Duration> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let taken = threads.filter_map(|thread| {
        let stat = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        stat.split(' ').next()?.parse::<u64>().ok()
    });
    Some(Duration::from_nanos(taken.sum()))
}
