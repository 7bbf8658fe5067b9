//! Attacks on `fake-apiserver serve`, small enough for every run: nothing crashes, memory stays within its budget, and
//! another client gets responses. `SECURITY.md` names these tests for its guarantees.

mod browsers;
mod connections;
mod memory;
mod readers;

use e2e::attacks::{neighbour, peak_memory};
use e2e::server::{Server, Transport};

const MIB: usize = 1024 * 1024;

fn server() -> Server {
    Server::serve(Transport::Http)
}

/// Checks that another client gets a response, and that peak memory is at most `most` bytes.
fn holds(server: &Server, most: usize) {
    let answered = neighbour(server.address(), "/healthz");
    assert_eq!(answered.status, 200, "{}", answered.text);
    if let Some(peak) = peak_memory(server.pid()) {
        assert!(peak < most, "{} MiB were taken", peak / MIB);
    }
}

/// Returns the memory that the server reports for a part, in MiB.
fn metric(server: &Server, part: &str) -> f64 {
    let status = server.ctl(&["status"]);
    let after = status.split(&format!("{part} ")).nth(1);
    let number = after.and_then(|rest| rest.split([',', ' ', '\n']).next());
    number
        .and_then(|number| number.parse().ok())
        .unwrap_or_else(|| panic!("no memory of {part}: {status}"))
}
