//! Progress of the pool on standard error: a line for each client whose tests are over, and a counter. It must not know
//! outcomes.

use std::io::{self, IsTerminal as _, Write as _};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Without a terminal, a line after so many percent of the tests.
const STEP_PERCENT: usize = 5;

/// What has been played and what is left.
#[derive(Debug)]
pub(crate) struct Progress {
    clients: Vec<Left>,
    counter: Counter,
    bar: ProgressBar,
}

/// Tests of a client that are not over.
#[derive(Debug)]
struct Left {
    name: String,
    tests: usize,
    repeated: usize,
}

/// Counts tests, and decides when that is worth a line.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counter {
    over: usize,
    of: usize,
}

impl Progress {
    /// `tests`: the number of tests of the nth client.
    pub(crate) fn new<'n>(names: impl Iterator<Item = &'n str>, tests: impl Fn(usize) -> usize) -> Self {
        let clients: Vec<Left> = names
            .enumerate()
            .map(|(number, name)| Left {
                name: name.to_owned(),
                tests: tests(number),
                repeated: 0,
            })
            .collect();
        let of = clients.iter().map(|client| client.tests).sum();
        let bar = ProgressBar::with_draw_target(Some(of as u64), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{wide_bar} {pos} of {len} tests, {elapsed}") {
            bar.set_style(style);
        }
        let progress = Self {
            clients,
            counter: Counter { over: 0, of },
            bar,
        };
        progress.print(&format!("{of} tests of {} clients", progress.clients.len()));
        progress
    }

    /// A test of a client is over, or waits for its repetition.
    pub(crate) fn played(&mut self, client: usize, is_repeated: bool) {
        self.bar.inc(1);
        let client = &mut self.clients[client];
        client.tests = client.tests.saturating_sub(1);
        client.repeated += usize::from(is_repeated);
        if client.tests == 0 {
            let line = match client.repeated {
                0 => format!("{}: done", client.name),
                1 => format!("{}: done, 1 test to repeat", client.name),
                more => format!("{}: done, {more} tests to repeat", client.name),
            };
            self.print(&line);
        }
        if let Some(line) = self.counter.count()
            && !io::stderr().is_terminal()
        {
            self.print(&line);
        }
    }

    /// Tests that came out differently from what is recorded begin again.
    pub(crate) fn repeats(&mut self, tests: usize) {
        if tests == 0 {
            return;
        }
        self.print(&format!(
            "{tests} tests came out differently from what is recorded, and are repeated"
        ));
        self.counter = Counter { over: 0, of: tests };
        self.bar.reset();
        self.bar.set_length(tests as u64);
        for client in &mut self.clients {
            client.tests = std::mem::take(&mut client.repeated);
        }
    }

    /// All tests are over.
    pub(crate) fn ends(&self) {
        self.bar.finish_and_clear();
    }

    fn print(&self, line: &str) {
        self.bar.suspend(|| {
            let _closed_pipe = writeln!(io::stderr(), "conformance: {line}");
        });
    }
}

impl Counter {
    /// Counts a test; a line, if there is something to say.
    fn count(&mut self) -> Option<String> {
        let step = |over: usize| over * 100 / self.of.max(1) / STEP_PERCENT;
        let before = step(self.over);
        let after = step(self.over + 1);
        self.over += 1;
        (after > before).then(|| format!("{} of {} tests", self.over, self.of))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_has_few_lines() {
        let mut counter = Counter { over: 0, of: 1000 };
        let lines: Vec<String> = (0..1000).filter_map(|_| counter.count()).collect();
        assert_eq!(lines.len(), 20);
        assert_eq!(
            (lines[0].as_str(), lines[19].as_str()),
            ("50 of 1000 tests", "1000 of 1000 tests")
        );
    }

    #[test]
    fn few_tests_are_counted_one_by_one() {
        let mut counter = Counter { over: 0, of: 2 };
        assert_eq!(counter.count().as_deref(), Some("1 of 2 tests"));
        assert_eq!(counter.count().as_deref(), Some("2 of 2 tests"));
        assert_eq!(Counter::default().count(), Some("1 of 0 tests".to_owned()));
    }

    #[test]
    fn a_client_is_over_with_its_last_test() {
        let mut progress = Progress::new(["a", "b"].into_iter(), |number| number + 1);
        assert_eq!(progress.counter, Counter { over: 0, of: 3 });
        progress.played(1, true);
        progress.played(0, false);
        progress.played(1, false);
        assert!(progress.clients.iter().all(|client| client.tests == 0));
        progress.repeats(1);
        assert_eq!((progress.clients[0].tests, progress.clients[1].tests), (0, 1));
        assert_eq!(progress.counter, Counter { over: 0, of: 1 });
    }
}
