//! Processor time of a process, and the time that its threads waited for a processor: what a busy machine took from it.
//!
//! Read from `/proc` on Linux. Elsewhere nothing is known, and nothing counts as held up.

use std::path::Path;
use std::time::Duration;

/// Processor time of the threads that a process has now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Load {
    /// Time on a processor, over all threads.
    pub ran: Duration,
    /// Time ready to run and not on a processor, over all threads.
    pub waited: Duration,
    /// The same for the thread that waited longest.
    pub held_up: Duration,
}

impl Load {
    /// Reads the load of a process; zero if it is gone, or the system does not report it.
    pub fn of(process: u32) -> Self {
        let threads = Path::new("/proc").join(process.to_string()).join("task");
        let Ok(entries) = std::fs::read_dir(threads) else {
            return Self::default();
        };
        let read = |entry: std::io::Result<std::fs::DirEntry>| {
            let statistics = entry.ok()?.path().join("schedstat");
            parse(&std::fs::read_to_string(statistics).ok()?)
        };
        Self::sum(entries.filter_map(read))
    }

    /// Load of this thread.
    pub fn of_this_thread() -> Self {
        let statistics = std::fs::read_to_string("/proc/thread-self/schedstat");
        Self::sum(statistics.ok().and_then(|text| parse(&text)).into_iter())
    }

    /// Time that its threads ran or would have.
    pub fn wanted(self) -> Duration {
        self.ran + self.waited
    }

    /// The larger of both in each respect: a thread that ended takes its time along.
    pub fn max(self, other: Self) -> Self {
        Self {
            ran: self.ran.max(other.ran),
            waited: self.waited.max(other.waited),
            held_up: self.held_up.max(other.held_up),
        }
    }

    fn sum(threads: impl Iterator<Item = (Duration, Duration)>) -> Self {
        threads.fold(Self::default(), |sum, (ran, waited)| Self {
            ran: sum.ran + ran,
            waited: sum.waited + waited,
            held_up: sum.held_up.max(waited),
        })
    }
}

/// Parses `schedstat`: nanoseconds on a processor, nanoseconds on a run queue, time slices.
fn parse(text: &str) -> Option<(Duration, Duration)> {
    let mut numbers = text.split_whitespace();
    let mut next = || Some(Duration::from_nanos(numbers.next()?.parse().ok()?));
    Some((next()?, next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn the_load_of_a_process_is_that_of_its_threads() {
        let threads = ["5000000 2000000 7\n", "1000000 9000000 3\n"];
        let load = Load::sum(threads.iter().filter_map(|text| parse(text)));
        let expected = Load {
            ran: ms(6),
            waited: ms(11),
            held_up: ms(9),
        };
        assert_eq!(load, expected);
        assert_eq!(load.wanted(), ms(17));
    }

    #[test]
    fn what_is_no_statistic_is_no_load() {
        for text in ["", "5", "a b c", "-1 2 3"] {
            assert_eq!(parse(text), None, "{text:?}");
        }
        assert_eq!(Load::of(0), Load::default());
    }
}
