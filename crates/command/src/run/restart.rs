//! Restarts of a command that exits with an error: when, how long after, and what they mean for the time limits.
//!
//! Delays are those of the kubelet. It starts nothing and reads no clock.

use std::time::Duration;

use clap::ValueEnum;
use conformance::adapter::timeouts::CpuWait;
use fake_apiserver::record::line::exited;
use fake_apiserver::record::{Record, What};
use serde_json::{Value, json};

/// Delay before the second restart, doubled by each further one; the first is immediate. `initialBackoff` of the kubelet's
/// `CrashLoopBackOff` (`pkg/kubelet/kubelet.go`).
const INITIAL_BACKOFF: Duration = Duration::from_secs(10);

/// Longest delay. `MaxContainerBackOff` (`pkg/apis/config/v1beta1`, `pkg/kubelet/kubelet.go`).
const MAX_BACKOFF: Duration = Duration::from_secs(300);

/// Lifetime after which the next restart is immediate again: twice the longest delay (`client-go/util/flowcontrol/backoff.go`,
/// `hasExpired`).
const RESET_AFTER: Duration = Duration::from_secs(600);

/// When a command that exited by itself is started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum RestartPolicy {
    /// If it exited with an error after it sent requests, with the kubelet's delays.
    OnFailure,
    /// Never.
    Never,
}

/// Delays of the restarts of one command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Backoff {
    next: Duration,
}

impl Backoff {
    /// Returns the delay before the next start of a command that ran for `ran`.
    pub(super) fn next(&mut self, ran: Duration) -> Duration {
        if ran >= RESET_AFTER {
            self.next = Duration::ZERO;
        }
        let delay = self.next;
        self.next = (delay * 2).clamp(INITIAL_BACKOFF, MAX_BACKOFF);
        delay
    }
}

/// An exit after which the command was started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Restart {
    code: Option<i32>,
    signal: Option<i32>,
    /// Time of the exit.
    at: Duration,
}

impl Restart {
    /// Returns the exits in a trace that were followed by a restart.
    pub(super) fn all(records: &[Record]) -> Vec<Self> {
        let mut last = None;
        let mut restarts = Vec::new();
        for record in records {
            if let What::ClientExited { code, signal } = record.what {
                let at = record.at;
                last = Some(Self { code, signal, at });
            } else if matches!(record.what, What::ClientRestarted { .. }) {
                restarts.extend(last.take());
            }
        }
        restarts
    }

    /// Formats as JSON, for a line of `--format json`.
    pub(super) fn json(self) -> Value {
        json!({"code": self.code, "signal": self.signal, "atMs": self.at.as_millis() as u64})
    }
}

/// Describes restarts: `restarted 2× (exited with code 1)`; `None` without any.
pub(super) fn words(restarts: &[Restart]) -> Option<String> {
    let mut how: Vec<String> = restarts
        .iter()
        .map(|restart| exited(restart.code, restart.signal))
        .collect();
    how.dedup();
    (!how.is_empty()).then(|| format!("restarted {}× ({})", restarts.len(), how.join(", ")))
}

/// Returns how long the command has not been running at `now`, because its restart is delayed. Zero while it runs.
pub(super) fn waiting(records: &[Record], now: Duration) -> CpuWait {
    let last = records.iter().rev().find(|record| {
        matches!(
            record.what,
            What::ClientExited { .. } | What::ClientRestarted { .. }
        )
    });
    let since = last.filter(|record| matches!(record.what, What::ClientExited { .. }));
    CpuWait {
        total: Duration::ZERO,
        since_activity: since.map_or(Duration::ZERO, |record| now.saturating_sub(record.at)),
    }
}

/// Returns whether the command reached the server: it sent a request, or faults of the scenario kept it from that.
pub(super) fn has_arrived(records: &[Record]) -> bool {
    let is_any = |of: fn(&What) -> bool| records.iter().any(|record| of(&record.what));
    is_any(|what| matches!(what, What::Request { .. } | What::Refused))
        || (is_any(|what| matches!(what, What::Connected { .. }))
            && is_any(|what| matches!(what, What::Step { .. })))
}

#[cfg(test)]
mod tests {
    use judge::trace::sample::Sample;
    use rstest::rstest;

    use super::*;

    fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    const EXITED: What = What::ClientExited {
        code: Some(1),
        signal: None,
    };

    #[test]
    fn delays_are_those_of_the_kubelet() {
        let mut backoff = Backoff::default();
        let delays = [1; 8].map(|ran| backoff.next(s(ran)).as_secs());
        assert_eq!(delays, [0, 10, 20, 40, 80, 160, 300, 300]);
        assert_eq!(backoff.next(s(599)), s(300));
        assert_eq!(backoff.next(s(600)), s(0), "it has run for long");
        assert_eq!(backoff.next(s(1)), s(10));
    }

    #[test]
    fn the_delay_of_a_restart_is_no_silence_of_the_command() {
        let mut sample = Sample::new();
        sample.after(1000).list(&[]).after(1000).push(EXITED);
        let waited = |sample: &Sample, now| waiting(&sample.records(), s(now)).since_activity;
        assert_eq!(waited(&sample, 12), s(10));
        sample.after(10_000).push(What::ClientRestarted { restart: 1 });
        assert_eq!(waited(&sample, 20), s(0));
    }

    #[test]
    fn restarts_are_described_with_their_reasons() {
        let mut sample = Sample::new();
        assert_eq!(words(&Restart::all(&sample.records())), None);
        sample.after(1000).push(EXITED);
        sample.push(What::ClientRestarted { restart: 1 });
        sample.push(EXITED).push(What::ClientRestarted { restart: 2 });
        sample.push(What::ClientExited {
            code: None,
            signal: Some(9),
        });
        let restarts = Restart::all(&sample.records());
        assert_eq!(
            words(&restarts).as_deref(),
            Some("restarted 2× (exited with code 1)"),
            "the last one was not followed by a restart"
        );
        assert_eq!(
            restarts[0].json(),
            json!({"code": 1, "signal": null, "atMs": 1000})
        );
    }

    #[rstest]
    #[case::nothing(&[], false)]
    #[case::refused(&[What::Refused], true)]
    #[case::connected(&[connected()], false)]
    #[case::connected_to_a_fault(&[What::Step { step: 0, how: String::new() }, connected()], true)]
    fn who_was_refused_has_arrived(#[case] records: &[What], #[case] expected: bool) {
        let mut sample = Sample::new();
        for what in records {
            sample.push(what.clone());
        }
        assert_eq!(has_arrived(&sample.records()), expected);
        assert!(has_arrived(&sample.list(&[]).records()));
    }

    fn connected() -> What {
        What::Connected {
            conn: fake_apiserver::record::ConnId(1),
            replica: fake_apiserver::record::Replica::Primary,
            peer: None,
        }
    }
}
