//! One request in bytes on its own connection, for tests of what a client library would not send or not show.

use std::io::{Read as _, Write as _};
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
