//! The process and its clock: a restart, and jumps of the wall clock.
//!
//! Neither touches the stored state.

use std::time::Duration;

use scenario::Restart;
use trace::fault::Ending;
use trace::record::{ConnId, StreamId, Turn};

use super::balancer::Balancer;
use super::output::Output;
use super::{ApiServer, Source};

impl ApiServer {
    /// Adds a second replica behind the same address.
    pub(super) fn balance(&mut self) {
        self.open_secondary();
        self.balancer = Some(Balancer::default());
    }

    /// Restarts the process: what it has not sent yet is lost, its connections are closed, and its watch caches are filled
    /// again. While it is down, the other replica gets the connections, if there is one.
    pub(crate) fn restart(&mut self, now: Duration, restart: &Restart) {
        let of_it: Vec<ConnId> = self
            .conns
            .iter()
            .filter(|(_, replica)| restart.at.is_none_or(|at| at == **replica))
            .map(|(conn, _)| *conn)
            .collect();
        for conn in of_it {
            self.abort_connection(conn);
        }
        let up = now + Duration::from_millis(restart.down_ms);
        match &mut self.balancer {
            Some(balancer) => balancer.take_out(restart.at, up),
            None => self.refused_until = self.refused_until.max(up),
        }
        self.model
            .restart(now, restart.at, up + Duration::from_millis(restart.filling_ms));
        self.turned(
            now,
            Turn::Restarted {
                replica: restart.at,
                down_ms: restart.down_ms,
                filling_ms: restart.filling_ms,
            },
        );
    }

    fn abort_connection(&mut self, conn: ConnId) {
        let streams: Vec<StreamId> = self
            .by_conn
            .range((conn, StreamId(0))..=(conn, StreamId(u64::MAX)))
            .map(|(_, stream)| *stream)
            .collect();
        let mut is_idle = true;
        for stream in streams {
            // One that stalled is over, and its connection is still open.
            let Some(open) = self.open.get_mut(&stream).filter(|open| !open.exchange.is_over()) else {
                continue;
            };
            is_idle = false;
            open.source = Source::Decided;
            open.exchange.abort(Ending::Fin);
            self.touched.push(stream);
        }
        if is_idle {
            self.outputs.push_back(Output::Close { conn });
        }
    }

    /// Sets the wall clock forward or back.
    pub(crate) fn jump_clock(&mut self, now: Duration, by_ms: i64) {
        self.model.jump_clock(by_ms);
        self.turned(now, Turn::ClockSet { by_ms });
    }

    /// Wall clock at `now`, since 1970.
    pub(crate) fn wall_clock(&self, now: Duration) -> Duration {
        self.model.wall_clock(now)
    }
}
