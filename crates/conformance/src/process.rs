//! Commands under test as child processes: environment, process group, and the first and last lines of their output. It
//! must not know what the commands do.

mod lines;
pub mod load;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fake_apiserver::record::line::printable;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use self::lines::Lines;
pub(crate) use self::lines::parts_of_lines;

/// First lines of output that are kept; a repeated line counts once.
const FIRST_LINES_KEPT: usize = 20;

/// Last lines of output that are kept.
const LINES_KEPT: usize = 200;

/// Bytes kept of a line.
const LINE_BYTES_MAX: usize = 4 << 10;

/// Bytes per read.
const CHUNK: usize = 16 << 10;

/// Longest read after the command ended: its children may hold the pipes open.
const LAST_OUTPUT: Duration = Duration::from_secs(1);

/// Variables that would direct a client to a proxy or to a surrounding cluster.
const ELSEWHERE: [&str; 8] = [
    "KUBERNETES_SERVICE_HOST",
    "KUBERNETES_SERVICE_PORT",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
];

/// Removes variables from a command's environment that would direct a client to another server.
pub fn only_here(command: &mut Command) {
    for name in ELSEWHERE {
        command.env_remove(name);
    }
}

/// Process group of a command started with `process_group(0)`.
#[derive(Debug, Clone, Copy)]
pub struct Group(Option<Pid>);

impl Group {
    /// Returns the group that `child` leads.
    pub fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self(id.and_then(Pid::from_raw))
    }

    /// Sends a signal to all processes of the group.
    pub fn signal(self, signal: Signal) {
        if let Some(group) = self.0 {
            // An empty group is the desired state, so ESRCH is no error.
            let _ = kill_process_group(group, signal);
        }
    }
}

/// The first and last lines a command printed.
#[derive(Debug, Default)]
pub struct Tail {
    printed: Arc<Mutex<Printed>>,
    readers: Vec<JoinHandle<()>>,
}

/// Lines that are kept.
#[derive(Debug, Default)]
struct Printed {
    first: Vec<Repeated>,
    /// Lines between the first and the last.
    left_out: usize,
    last: VecDeque<Repeated>,
}

impl Printed {
    fn add(&mut self, line: String) {
        let newest = self.last.back_mut().or(self.first.last_mut());
        if let Some(newest) = newest.filter(|newest| newest.line == line) {
            newest.times += 1;
            return;
        }
        let line = Repeated { line, times: 1 };
        if self.first.len() < FIRST_LINES_KEPT {
            self.first.push(line);
            return;
        }
        if self.last.len() == LINES_KEPT {
            self.last.pop_front();
            self.left_out += 1;
        }
        self.last.push_back(line);
    }

    /// Returns the first and the last lines, with the number of those between them.
    fn excerpt(&self, first: usize, last: usize) -> Vec<String> {
        let kept = self.first.len() + self.last.len();
        let lines = || self.first.iter().chain(&self.last).map(Repeated::words);
        let between = kept + self.left_out;
        if between <= first + last {
            return lines().collect();
        }
        let first = first.min(FIRST_LINES_KEPT);
        let last = last.min(kept - first);
        let left_out = between - first - last;
        let mut excerpt: Vec<String> = lines().take(first).collect();
        if first > 0 {
            let lines = if left_out == 1 { "line" } else { "lines" };
            excerpt.push(format!("… {left_out} {lines} left out"));
        }
        excerpt.extend(lines().skip(kept - last));
        excerpt
    }
}

/// A line, and how often it was printed in a row.
#[derive(Debug)]
struct Repeated {
    line: String,
    times: u64,
}

impl Repeated {
    fn words(&self) -> String {
        match self.times {
            1 => self.line.clone(),
            times => format!("{} ×{times}", self.line),
        }
    }
}

impl Tail {
    /// Reads `from` to its end and calls `each` with every line. Needs a tokio runtime.
    pub fn read(
        &mut self,
        from: impl AsyncRead + Unpin + Send + 'static,
        each: impl FnMut(&str) + Send + 'static,
    ) {
        self.readers
            .push(tokio::spawn(listen(from, self.printed.clone(), each)));
    }

    /// Returns the last lines, at most `most`, once the command has ended.
    pub async fn last(&mut self, most: usize) -> Vec<String> {
        self.excerpt(0, most).await
    }

    /// Returns the first and last lines, at most these numbers of them, once the command has ended.
    pub async fn excerpt(&mut self, first: usize, last: usize) -> Vec<String> {
        for reader in self.readers.drain(..) {
            // Keeps the output so far, even if another process still holds the pipe.
            let _ = timeout(LAST_OUTPUT, reader).await;
        }
        let printed = self.printed.lock().unwrap_or_else(PoisonError::into_inner);
        printed.excerpt(first, last)
    }
}

/// Reads to the end even if nothing is kept: a pipe closed early would kill the command.
async fn listen(mut from: impl AsyncRead + Unpin, printed: Arc<Mutex<Printed>>, mut each: impl FnMut(&str)) {
    let mut lines = Lines::default();
    let mut buffer = vec![0; CHUNK];
    let mut keep = |line: String| {
        each(&line);
        printed.lock().unwrap_or_else(PoisonError::into_inner).add(line);
    };
    loop {
        match from.read(&mut buffer).await {
            Ok(0) | Err(_) => break,
            Ok(read) => lines.take(&buffer[..read], &mut keep),
        }
    }
    lines.end(&mut keep);
}

/// Returns a line without terminal control characters; invalid UTF-8 is replaced.
fn shown(line: &[u8], more: u64) -> String {
    let text = String::from_utf8_lossy(line);
    let mut line = printable(text.trim_end_matches('\r')).into_owned();
    if more > 0 {
        line.push_str(&format!(" … {more} more bytes"));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(lines: usize) -> Printed {
        let mut printed = Printed::default();
        for line in 1..=lines {
            printed.add(line.to_string());
        }
        printed
    }

    #[test]
    fn an_excerpt_has_the_first_and_the_last_lines() {
        assert_eq!(printed(4).excerpt(2, 2), ["1", "2", "3", "4"]);
        assert_eq!(
            printed(5).excerpt(2, 2),
            ["1", "2", "… 1 line left out", "4", "5"]
        );
        assert_eq!(
            printed(1000).excerpt(2, 2),
            ["1", "2", "… 996 lines left out", "999", "1000"]
        );
        assert_eq!(printed(30).excerpt(0, 2), ["29", "30"]);
        assert_eq!(printed(3).excerpt(0, 2), ["2", "3"]);
    }

    #[test]
    fn a_repeated_line_counts_once() {
        let mut printed = printed(FIRST_LINES_KEPT);
        let last = FIRST_LINES_KEPT.to_string();
        printed.add(last.clone());
        assert_eq!(printed.excerpt(0, 1), [format!("{last} ×2")]);
        printed.add("a".to_owned());
        printed.add("a".to_owned());
        assert_eq!(printed.excerpt(1, 1), ["1", "… 19 lines left out", "a ×2"]);
    }
}
