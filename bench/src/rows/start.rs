//! S8: time from process start to the first response, over plain HTTP and over TLS.

use std::io;
use std::path::Path;

use super::Ground;
use crate::child::Child;
use crate::http::{Connection, request};
use crate::swarm::now;
use crate::table::{Judged, Line, Measured, Row, median};

pub(super) fn measure(ground: &Ground) -> io::Result<Measured> {
    let (mut plain, mut floor, mut tls) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ground.sizes.starts {
        plain.push(once(&ground.server, &["serve", "--quiet"], "/version")?);
        floor.push(once(&ground.own, &["floor", "bare"], "/100")?);
        tls.push(once(&ground.server, &["serve", "--quiet", "--tls"], "/version")?);
    }
    let row = |work: &str, ours, other, must, moonshot| Row {
        name: "S8",
        work: format!("start to first answer, {work}"),
        unit: "ms",
        ours: median(ours),
        other,
        judged: Judged::Value {
            must: Line::AtMost(must),
            moonshot: Line::AtMost(moonshot),
        },
    };
    Ok(vec![
        row(
            "plain HTTP",
            plain,
            Some(("bare hyper", median(floor))),
            10.0,
            2.0,
        ),
        row("TLS", tls, None, 15.0, 3.0),
    ]
    .into())
}

/// Returns milliseconds.
fn once(program: &Path, arguments: &[&str], path: &str) -> io::Result<f64> {
    let began = now();
    let server = Child::start_anywhere(program, arguments)?;
    let asked = request("GET", path, b"");
    let answer = Connection::open(server.place()?)?.ask(&asked, false)?;
    answer.good("the first request")?;
    Ok(began.elapsed().as_secs_f64() * 1e3)
}
