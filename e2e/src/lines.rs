//! Lines printed by a program: tests wait for a line, for a limited time, and report the lines that were printed instead.

use std::io::{BufRead as _, BufReader, Read};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Timeout of a wait. Only a failing test reaches it.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Output of one pipe of a running program.
#[derive(Debug, Clone)]
pub struct Lines {
    read: Arc<(Mutex<Progress>, Condvar)>,
}

#[derive(Debug, Default)]
struct Progress {
    lines: Vec<String>,
    ended: bool,
}

impl Lines {
    /// Reads a pipe to its end on a separate thread, so that the program never blocks.
    pub fn of(pipe: impl Read + Send + 'static) -> Self {
        let read = Arc::new((Mutex::new(Progress::default()), Condvar::new()));
        let written = read.clone();
        std::thread::spawn(move || {
            let (state, changed) = &*written;
            let mut lines = BufReader::new(pipe).lines();
            loop {
                let line = lines.next();
                let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
                match line {
                    Some(Ok(line)) => state.lines.push(line),
                    Some(Err(_)) | None => {
                        state.ended = true;
                        changed.notify_all();
                        return;
                    }
                }
                changed.notify_all();
            }
        });
        Self { read }
    }

    /// Returns the number of lines so far.
    pub fn count(&self) -> usize {
        self.lock().lines.len()
    }

    /// Returns the lines from number `from` on.
    pub fn since(&self, from: usize) -> Vec<String> {
        self.lock().lines.iter().skip(from).cloned().collect()
    }

    /// Waits for a line from number `from` on for which `is` returns a value; returns its number and that value.
    ///
    /// # Errors
    ///
    /// The lines printed instead, if the program ends or the timeout expires.
    pub fn find<T>(&self, from: usize, is: impl Fn(&str) -> Option<T>) -> Result<(usize, T), Vec<String>> {
        self.find_for(PATIENCE, from, is)
    }

    /// The same with another timeout.
    ///
    /// # Errors
    ///
    /// The lines printed instead, if the program ends or the timeout expires.
    pub fn find_for<T>(
        &self,
        patience: Duration,
        from: usize,
        is: impl Fn(&str) -> Option<T>,
    ) -> Result<(usize, T), Vec<String>> {
        let (_, changed) = &*self.read;
        let mut found = None;
        let mut looked_at = from;
        let waited = changed.wait_timeout_while(self.lock(), patience, |state| {
            while found.is_none() && looked_at < state.lines.len() {
                found = is(&state.lines[looked_at]).map(|made| (looked_at, made));
                looked_at += 1;
            }
            found.is_none() && !state.ended
        });
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        found.ok_or_else(|| state.lines.iter().skip(from).cloned().collect())
    }

    /// Waits for the end of the program, and returns all its lines; `None` if the timeout expires first.
    pub fn to_end(&self) -> Option<Vec<String>> {
        let all = self.find(0, |_| None::<()>).err();
        all.filter(|_| self.lock().ended)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Progress> {
        self.read.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::Lines;

    #[test]
    fn a_line_matches_once_and_a_miss_lists_the_output() {
        let lines = Lines::of("one\ntwo\nthree\n".as_bytes());
        let is = |wanted: &'static str| move |line: &str| (line == wanted).then_some(());
        assert_eq!(lines.find(0, is("two")), Ok((1, ())));
        assert_eq!(lines.find(2, is("two")), Err(vec!["three".to_owned()]));
    }
}
