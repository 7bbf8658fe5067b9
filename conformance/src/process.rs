//! Commands under test as processes: what they must not inherit, the group they are stopped with, and the end of what they
//! print. It must not know what they are for.

mod lines;

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

/// Lines of what a command prints that are kept, each counted once while it repeats.
const LINES_KEPT: usize = 200;

/// Bytes of a line that are kept.
const LINE_BYTES_MAX: usize = 4 << 10;

/// Bytes read at a time.
const CHUNK: usize = 16 << 10;

/// How long the rest of the output is read once a command has ended: what it started may hold its pipes open.
const LAST_OUTPUT: Duration = Duration::from_secs(1);

/// Variables by which a proxy or a cluster around us would lead a client elsewhere.
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

/// Removes what would lead a client to another server from the environment of a command.
pub fn only_here(command: &mut Command) {
    for name in ELSEWHERE {
        command.env_remove(name);
    }
}

/// The process group of a command that was started with `process_group(0)`.
#[derive(Debug, Clone, Copy)]
pub struct Group(Option<Pid>);

impl Group {
    /// The group that `child` leads.
    pub fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self(id.and_then(Pid::from_raw))
    }

    /// Sends a signal to all processes of the group.
    pub fn signal(self, signal: Signal) {
        if let Some(group) = self.0 {
            // Nobody left to hear it is what is wanted.
            let _ = kill_process_group(group, signal);
        }
    }
}

/// The end of what a command prints.
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
    /// Reads `from` to its end, and calls `each` with every line. Needs a runtime.
    pub fn read(
        &mut self,
        from: impl AsyncRead + Unpin + Send + 'static,
        each: impl FnMut(&str) + Send + 'static,
    ) {
        self.readers
            .push(tokio::spawn(listen(from, self.printed.clone(), each)));
    }

    /// The last lines, `most` of them, once the command has ended.
    pub async fn last(&mut self, most: usize) -> Vec<String> {
        for reader in self.readers.drain(..) {
            // The output so far is kept, even if another process still holds the pipe.
            let _ = timeout(LAST_OUTPUT, reader).await;
        }
        let printed = self.printed.lock().unwrap_or_else(PoisonError::into_inner);
        let first = printed.len().saturating_sub(most);
        printed.iter().skip(first).map(Repeated::words).collect()
    }
}

/// Reads to the end, whatever is printed: a pipe closed too early would end the command.
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

/// A line without what a terminal would obey; what is no UTF-8 is replaced.
fn shown(line: &[u8], more: u64) -> String {
    let text = String::from_utf8_lossy(line);
    let mut line = printable(text.trim_end_matches('\r')).into_owned();
    if more > 0 {
        line.push_str(&format!(" … {more} more bytes"));
    }
    line
}
