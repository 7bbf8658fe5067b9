//! S8: from the start of the process to its first answer.

use std::io;
use std::path::Path;

use super::Ground;
use crate::child::Child;
use crate::http::{Connection, request};
use crate::swarm::now;
use crate::table::{Judged, Line, Measured, Row, median};

pub(super) fn measure(ground: &Ground) -> io::Result<Measured> {
    let (mut ours, mut floor) = (Vec::new(), Vec::new());
    for _ in 0..ground.sizes.starts {
        ours.push(once(&ground.server, &["serve", "--quiet"], "/version")?);
        floor.push(once(&ground.own, &["floor", "bare"], "/100")?);
    }
    Ok(vec![Row {
        name: "S8",
        work: "start to first answer, plain HTTP".to_owned(),
        unit: "ms",
        ours: median(ours),
        other: Some(("bare hyper", median(floor))),
        judged: Judged::Value {
            must: Line::AtMost(10.0),
            moonshot: Line::AtMost(2.0),
        },
    }]
    .into())
}

fn once(program: &Path, arguments: &[&str], path: &str) -> io::Result<f64> {
    let began = now();
    let server = Child::start_anywhere(program, arguments)?;
    let answer = Connection::open(server.address)?.ask(&request("GET", path, b""), false)?;
    let took = began.elapsed();
    answer.good("the first request")?;
    Ok(took.as_secs_f64() * 1e3)
}
