//! Attacks on a served fake from outside; the caller sets their size, and checks the memory of the server and whether it
//! still responds to another client.
//!
//! They write raw bytes, because no HTTP client sends such requests. All of them stay on loopback, and nothing sleeps.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

/// Timeout for a response.
const PATIENCE: Duration = Duration::from_secs(30);

/// A response as text, and its status.
#[derive(Debug)]
pub struct Answered {
    /// Status; 0 if the connection ended without a response.
    pub status: u16,
    /// The whole response, including its head.
    pub text: String,
}

/// Opens a connection and writes `bytes`.
///
/// # Errors
///
/// The server does not accept them.
pub fn sent(address: SocketAddr, bytes: &[u8]) -> io::Result<TcpStream> {
    let mut socket = TcpStream::connect(address)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_write_timeout(Some(PATIENCE))?;
    socket.write_all(bytes)?;
    Ok(socket)
}

/// Sends `bytes` on a new connection and reads until the server closes it.
pub fn exchange(address: SocketAddr, bytes: &[u8]) -> Answered {
    let mut text = Vec::new();
    if let Ok(mut socket) = sent(address, bytes) {
        // Bytes before a reset are kept.
        let _cut = socket.read_to_end(&mut text);
    }
    let text = String::from_utf8_lossy(&text).into_owned();
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok());
    Answered {
        status: status.unwrap_or_default(),
        text,
    }
}

/// Returns a request with `head` (lines without their ends, the request line first), `Connection: close` and a body.
pub fn request(head: &[&str], body: &str) -> Vec<u8> {
    let mut text = head.join("\r\n");
    if !body.is_empty() {
        text.push_str(&format!("\r\nContent-Length: {}", body.len()));
    }
    format!("{text}\r\nConnection: close\r\n\r\n{body}").into_bytes()
}

/// Sends a GET of `target`, as a well-behaved client.
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
///
/// If the server rejects one.
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
///
/// If the server rejects a patch.
pub fn rewrite(address: SocketAddr, times: usize) {
    for number in 0..times {
        let body = format!(r#"{{"metadata":{{"annotations":{{"n":"{number}"}}}}}}"#);
        let target = "/api/v1/namespaces/default/configmaps/large-0";
        let patched = write(address, "PATCH", target, "application/merge-patch+json", &body);
        assert_eq!(patched.status, 200, "{}", patched.text);
    }
}

/// Requests `count` whole lists, each on its own connection, and never reads them. `accept` is the media type.
///
/// # Panics
///
/// If the server accepts no connection.
pub fn unread_lists(address: SocketAddr, count: usize, target: &str, accept: &str) -> Vec<TcpStream> {
    let asked = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\n\r\n");
    (0..count)
        .map(|_| {
            let mut socket = sent(address, asked.as_bytes()).expect("it listens");
            // The first bytes show that the response has started.
            let mut first = [0; 12];
            socket.read_exact(&mut first).expect("it answers");
            socket
        })
        .collect()
}

/// Opens `count` watches without a time limit, sends one more byte on each, and disconnects. `version` is that of HTTP.
///
/// # Panics
///
/// If the server accepts no connection.
pub fn abandoned_watches(address: SocketAddr, count: usize, version: &str, connection: &str) {
    let asked = format!(
        "GET /api/v1/pods?watch=1&timeoutSeconds={} HTTP/{version}\r\nHost: localhost\r\nConnection: {connection}\r\n\r\n",
        i64::MAX
    );
    for _ in 0..count {
        let mut socket = sent(address, asked.as_bytes()).expect("it listens");
        let mut first = [0; 12];
        socket.read_exact(&mut first).expect("it answers");
        socket.write_all(b"x").expect("the connection is open");
        drop(socket);
    }
}

/// Opens `count` watches and keeps them open.
///
/// # Panics
///
/// If the server accepts no connection.
pub fn watches(address: SocketAddr, count: usize) -> Vec<TcpStream> {
    unread_lists(address, count, "/api/v1/pods?watch=1", "application/json")
}

/// Returns a watch path with a long selector, whose parsed form is many times its size.
pub fn long_selector() -> String {
    let values: Vec<String> = (0..9_000).map(|nth| format!("v{nth}")).collect();
    format!(
        "/api/v1/pods?watch=1&labelSelector=a%20in%20({})",
        values.join(",")
    )
}

/// Sends a body of `bytes` that is too large, all of it before reading, and returns the response.
pub fn oversized(address: SocketAddr, bytes: usize) -> Answered {
    let head = [
        "POST /api/v1/namespaces/default/configmaps HTTP/1.1",
        "Host: localhost",
        "Content-Type: application/json",
    ];
    exchange(address, &request(&head, &"x".repeat(bytes)))
}

/// Requests `target` on `streams` streams of one HTTP/2 connection with an empty flow-control window, so that only heads of
/// responses can be sent. Returns when all heads are received.
///
/// # Panics
///
/// If the server accepts no connection, or does not respond to all requests.
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

/// Returns an HTTP/2 frame.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("frames are short");
    let [_, length @ ..] = length.to_be_bytes();
    [&length[..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Closes the sending half of the connection.
pub fn half_close(socket: &TcpStream) {
    // The peer may have closed it already.
    let _gone = socket.shutdown(Shutdown::Write);
}

/// Returns the peak resident memory of a process in bytes (`VmHWM` of `/proc/PID/status`); `None` if it is not available.
pub fn peak_memory(pid: u32) -> Option<usize> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: usize = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kilobytes * 1024)
}

/// Returns the CPU time of all threads of a process (`/proc/PID/task/*/schedstat`); `None` if it is not available.
pub fn cpu_time(pid: u32) -> Option<Duration> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let taken = threads.filter_map(|thread| {
        let stat = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        stat.split(' ').next()?.parse::<u64>().ok()
    });
    Some(Duration::from_nanos(taken.sum()))
}
