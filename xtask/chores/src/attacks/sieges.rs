//! The attacks measured: requests of `tests::attacks` over a socket, and the connections of `e2e::attacks`. It must not
//! know their limits.

use std::net::{SocketAddr, TcpStream};

use e2e::attacks::{self, exchange, fill, request, rewrite, unread_lists, windowless_lists};
use fake_apiserver::api::HttpRequest;
use tests::attacks::ATTACKS;

/// An attack on a running server.
pub(super) struct Siege {
    /// Finding it comes from (`S5`).
    pub(super) finding: &'static str,
    pub(super) name: &'static str,
    /// Size in the finding.
    pub(super) full: usize,
    /// Small size, for a smoke run.
    pub(super) small: usize,
    /// Precondition, by size; not measured.
    before: Box<dyn Fn(SocketAddr, usize)>,
    /// Attack, by size.
    play: Box<dyn Fn(SocketAddr, usize) -> Outcome>,
}

/// Result of an attack.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Status of the response, if there was one request; 0: no response.
    pub(super) status: Option<u16>,
    /// Connections kept open until memory is measured.
    _held: Vec<TcpStream>,
}

impl Outcome {
    fn held(sockets: Vec<TcpStream>) -> Self {
        Self {
            status: None,
            _held: sockets,
        }
    }
}

impl Siege {
    fn new(
        finding: &'static str,
        name: &'static str,
        (full, small): (usize, usize),
        before: impl Fn(SocketAddr, usize) + 'static,
        play: impl Fn(SocketAddr, usize) -> Outcome + 'static,
    ) -> Self {
        Self {
            finding,
            name,
            full,
            small,
            before: Box::new(before),
            play: Box::new(play),
        }
    }

    /// Sets up the precondition.
    pub(super) fn prepare(&self, address: SocketAddr, size: usize) {
        (self.before)(address, size);
    }

    /// Runs the attack.
    pub(super) fn play(&self, address: SocketAddr, size: usize) -> Outcome {
        (self.play)(address, size)
    }

    /// Returns all attacks, in the order of the findings.
    pub(super) fn all() -> Vec<Self> {
        let mut all: Vec<Self> = ATTACKS.iter().map(requests).collect();
        all.extend(connections());
        all.sort_by_key(|siege| siege.finding.trim_start_matches('S').parse::<u32>().ok());
        all
    }
}

/// Returns an attack of one request.
fn requests(attack: &'static tests::attacks::Attack) -> Siege {
    let sizes = (attack.size, attack.size.min(20));
    let before = |address, size| {
        for request in (attack.before)(size) {
            exchange(address, &bytes(&request));
        }
    };
    let play = |address, size| Outcome {
        status: Some(exchange(address, &bytes(&(attack.request)(size))).status),
        ..Outcome::default()
    };
    Siege::new(attack.finding, attack.name, sizes, before, play)
}

const LIST: &str = "/api/v1/configmaps";
const JSON: &str = "application/json";
const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";

/// Bytes of a value; three of them make a large list.
const VALUE: usize = 1_000_000;

fn connections() -> Vec<Siege> {
    let nothing = |_: SocketAddr, _: usize| {};
    let done = Outcome::default;
    let lists = |name, target: &'static str, accept: &'static str| {
        let before = |address, _| fill(address, 30, VALUE);
        let play = move |address, size| Outcome::held(unread_lists(address, size, target, accept));
        Siege::new("S6", name, (60, 2), before, play)
    };
    vec![
        Siege::new(
            "S3",
            "patches of a 100 KB object",
            (40_000, 20),
            |address, _| fill(address, 1, 100_000),
            move |address, size| {
                rewrite(address, size);
                done()
            },
        ),
        Siege::new(
            "S3",
            "patches of a 1 MB object",
            (5_327, 20),
            |address, _| fill(address, 1, VALUE),
            move |address, size| {
                rewrite(address, size);
                done()
            },
        ),
        Siege::new(
            "S3",
            "request heads of 100 KB",
            (5_000, 20),
            nothing,
            move |address, size| {
                let target = format!("/api/v1/pods?labelSelector={}", "x".repeat(100_000));
                for _ in 0..size {
                    attacks::neighbour(address, &target);
                }
                done()
            },
        ),
        Siege::new(
            "S4",
            "watches left with a byte",
            (16_384, 20),
            nothing,
            move |address, size| {
                attacks::abandoned_watches(address, size, "1.1", "keep-alive");
                done()
            },
        ),
        Siege::new(
            "S5",
            "watches of one client",
            (5_000, 20),
            nothing,
            |address, size| Outcome::held(attacks::watches(address, size)),
        ),
        Siege::new(
            "S6",
            "watches of long selectors",
            (3_000, 20),
            nothing,
            |address, size| Outcome::held(unread_lists(address, size, &attacks::long_selector(), JSON)),
        ),
        lists("unread lists of 30 MB", LIST, JSON),
        lists("unread lists as YAML", LIST, "application/yaml"),
        lists("unread lists, indented", "/api/v1/configmaps?pretty=true", JSON),
        lists(
            "unread tables with objects",
            "/api/v1/configmaps?includeObject=Object",
            TABLE,
        ),
        Siege::new(
            "S6",
            "HTTP/2 streams without a window",
            (100, 2),
            |address, _| fill(address, 10, VALUE),
            |address, size| {
                let streams = u32::try_from(size).unwrap_or(u32::MAX);
                Outcome::held(vec![windowless_lists(address, streams, LIST)])
            },
        ),
        Siege::new(
            "S6",
            "unread lists of 10 MB",
            (3_000, 20),
            |address, _| fill(address, 10, VALUE),
            |address, size| {
                // Some are cut: together they exceed the limit on pending responses.
                let asked = request(&[&format!("GET {LIST} HTTP/1.1"), "Host: localhost"], "");
                let sockets = (0..size).filter_map(|_| attacks::sent(address, &asked).ok());
                Outcome::held(sockets.collect())
            },
        ),
        Siege::new(
            "S14",
            "idle connections",
            (16_000, 20),
            nothing,
            |address, size| {
                let sockets = (0..size).map_while(|_| TcpStream::connect(address).ok());
                Outcome::held(sockets.collect())
            },
        ),
    ]
}

/// Formats a request as HTTP/1.1, the last on its connection.
fn bytes(request: &HttpRequest) -> Vec<u8> {
    let mut head = format!("{} {}", request.method, request.path);
    if !request.query.as_str().is_empty() {
        head.push('?');
        head.push_str(request.query.as_str());
    }
    head.push_str(" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
    let mut bytes = head.into_bytes();
    for (name, value) in &request.headers {
        bytes.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    bytes.extend(format!("Content-Length: {}\r\n\r\n", request.body.len()).into_bytes());
    bytes.extend_from_slice(&request.body);
    bytes
}
