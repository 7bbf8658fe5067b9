//! Baseline for a fan-out: no HTTP stack, one write of a prepared chunk per watcher.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use crate::floor::bare::print_address;

const HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";

/// Serves until killed. `GET` opens a watch; `POST /SIZE` is answered, and then sends an event of that size to all
/// watchers in order.
pub(crate) fn serve() -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    print_address(listener.local_addr()?)?;
    let mut watchers: Vec<TcpStream> = Vec::new();
    loop {
        let (mut socket, _) = listener.accept()?;
        socket.set_nodelay(true)?;
        let request = read_request(&mut socket)?;
        if request.starts_with("GET") {
            socket.write_all(HEAD)?;
            watchers.push(socket);
            continue;
        }
        command(socket, request, &mut watchers)?;
        // A new control connection starts a new measurement.
        watchers.clear();
    }
}

/// Executes the requests of a control connection until it closes.
fn command(mut socket: TcpStream, mut request: String, watchers: &mut [TcpStream]) -> io::Result<()> {
    let mut chunk = Vec::new();
    loop {
        let size = request
            .split_whitespace()
            .nth(1)
            .and_then(|path| path.trim_start_matches('/').parse::<usize>().ok())
            .unwrap_or(0);
        if chunk.len() < size {
            chunk = format!("{size:x}\r\n").into_bytes();
            chunk.resize(chunk.len() + size - 1, b'x');
            chunk.extend_from_slice(b"\n\r\n");
        }
        socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")?;
        for watcher in &mut *watchers {
            watcher.write_all(&chunk)?;
        }
        request = match read_request(&mut socket) {
            Ok(request) => request,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        };
    }
}

/// Reads a request head without a body.
fn read_request(socket: &mut TcpStream) -> io::Result<String> {
    let mut buffer = [0; 4096];
    let mut filled = 0;
    while !buffer[..filled].ends_with(b"\r\n\r\n") {
        match socket.read(&mut buffer[filled..])? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => filled += read,
        }
    }
    Ok(String::from_utf8_lossy(&buffer[..filled]).into_owned())
}
