//! One request in bytes on its own connection, for tests of what a client library would not send or not show.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

/// Sends a request and returns all that the server sends until it closes the connection.
///
/// # Panics
///
/// The server cannot be reached, or its response is no text.
pub fn exchange(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("the server listens");
    stream.write_all(request.as_bytes()).expect("the server reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the response is text");
    answer
}

/// Opens a watch; returns its lines once the response head arrived.
///
/// # Panics
///
/// The server cannot be reached.
pub fn watch(address: &str, path: &str) -> impl Iterator<Item = String> + use<> {
    let mut stream = TcpStream::connect(address).expect("the server listens");
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: watcher/1\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("the server reads");
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    lines.find(String::is_empty);
    lines.filter(|line| line.starts_with('{'))
}
