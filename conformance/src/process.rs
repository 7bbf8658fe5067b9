//! Commands under test as child processes: environment, process group, and the tail of their output. It must not know
//! what the commands do.

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

/// Lines of output that are kept; a repeated line counts once.
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

/// The last lines a command printed.
#[derive(Debug, Default)]
pub struct Tail {
    printed: Arc<Mutex<VecDeque<Repeated>>>,
    readers: Vec<JoinHandle<()>>,
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
        for reader in self.readers.drain(..) {
            // Keeps the output so far, even if another process still holds the pipe.
            let _ = timeout(LAST_OUTPUT, reader).await;
        }
        let printed = self.printed.lock().unwrap_or_else(PoisonError::into_inner);
        let first = printed.len().saturating_sub(most);
        printed.iter().skip(first).map(Repeated::words).collect()
    }
}

/// Reads to the end even if nothing is kept: a pipe closed early would kill the command.
async fn listen(
    mut from: impl AsyncRead + Unpin,
    printed: Arc<Mutex<VecDeque<Repeated>>>,
    mut each: impl FnMut(&str),
) {
    let mut lines = Lines::default();
    let mut buffer = vec![0; CHUNK];
    let mut keep = |line: String| {
        each(&line);
        let mut printed = printed.lock().unwrap_or_else(PoisonError::into_inner);
        match printed.back_mut() {
            Some(last) if last.line == line => last.times += 1,
            Some(_) | None => {
                if printed.len() == LINES_KEPT {
                    printed.pop_front();
                }
                printed.push_back(Repeated { line, times: 1 });
            }
        }
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
