//! S5: what a watcher costs that is sent nothing.

use std::io;

use super::{CONFIG_MAPS, Ground, create, current_version, watch_from};
use crate::fixture::config_map;
use crate::http::Connection;
use crate::swarm::Swarm;
use crate::table::{Judged, Line, Measured, Row, median};

pub(super) fn measure(ground: &Ground) -> io::Result<Measured> {
    let watchers = ground.sizes.watchers;
    let mut found = Vec::new();
    for _ in 0..ground.sizes.repetitions {
        let server = ground.ours()?;
        let mut commander = Connection::open(server.address)?;
        create(&mut commander, CONFIG_MAPS, &config_map("tick", "tick", 0, 0))?;
        let version = current_version(&mut commander)?;
        let before = server.memory()?.own;
        let _swarm = Swarm::open(server.address, &watch_from(&version), watchers)?;
        let grown = server.memory()?.own.saturating_sub(before);
        found.push(grown as f64 / watchers as f64 / 1024.0);
    }
    Ok(vec![Row {
        name: "S5",
        work: format!("memory of {watchers} idle watchers, plain HTTP"),
        unit: "KB/watcher",
        ours: median(found),
        other: None,
        judged: Judged::Value {
            must: Line::AtMost(16.0),
            moonshot: Line::AtMost(11.0),
        },
    }]
    .into())
}
