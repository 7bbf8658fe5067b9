//! The life of a command: its exits, and its restarts with the delays of `restart`. It must not know what it is judged for.

use std::time::Duration;

use fake_apiserver::net::Edge;
use tokio::time::timeout;

use super::child::{Child, Launch};
use super::restart::{self, Backoff, RestartPolicy};
use crate::Failure;

/// Maximum time for the server to see the connections of an exited command closed.
pub(super) const CLOSING: Duration = Duration::from_secs(2);

/// Maximum time until the first connection of an exited command is accepted.
const ARRIVING: Duration = Duration::from_millis(250);

/// Why a command is not running any more.
pub(super) enum Left {
    /// It exited, and is not started again.
    Gone,
    /// It exited before its first request, with a description.
    NotStarted(String),
    /// It exited with an error, and the delay of its next restart exceeds the time limit.
    KeepsFailing(String),
}

/// Completes when the command exited and is not started again. `limit`: time limit of the scenario.
pub(super) async fn lives(
    child: &mut Child,
    launch: &Launch,
    edge: &Edge,
    policy: RestartPolicy,
    limit: Duration,
) -> Result<Left, Failure> {
    let (mut backoff, mut restarts, mut started) = (Backoff::default(), 0, edge.elapsed());
    loop {
        let ended = child.exited().await;
        let ran = edge.elapsed().saturating_sub(started);
        let (code, signal) = ended.code_and_signal();
        edge.client_exited(code, signal);
        // Its last requests are read before its connections are seen to be closed.
        let _closed = timeout(CLOSING, edge.deserted()).await;
        let after = format!("the command {} after {:.2} s", ended.words(), ran.as_secs_f64());
        if restarts == 0 && !arrives(edge).await {
            return Ok(Left::NotStarted(format!("{after}, before any request")));
        }
        if policy == RestartPolicy::Never || !ended.is_failure() {
            return Ok(Left::Gone);
        }
        let delay = backoff.next(ran);
        if edge.elapsed() + delay >= limit {
            return Ok(Left::KeepsFailing(format!(
                "{after} and was restarted {restarts}×; its next restart, {} s later, would exceed --timeout",
                delay.as_secs()
            )));
        }
        let _passed = timeout(delay, std::future::pending::<()>()).await;
        child.restart(launch)?;
        (restarts, started) = (restarts + 1, edge.elapsed());
        edge.client_restarted(restarts);
    }
}

/// Returns whether the command reached the server. A connection that it opened last may not be accepted yet.
async fn arrives(edge: &Edge) -> bool {
    let has_arrived = || edge.read_records(0, restart::has_arrived);
    let arrival = async {
        loop {
            let stirred = edge.stirred();
            if has_arrived() {
                return;
            }
            stirred.await;
        }
    };
    timeout(ARRIVING, arrival).await.is_ok()
}
