//! The command under test as a process: started with what it needs to find the server, stopped with patience.

use std::collections::VecDeque;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fake_apiserver::record::line::printable;
use fake_apiserver::scenario::Scenario;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::settings;
use crate::stage::Running;
use crate::{Failure, output};

/// Lines of what it prints that are remembered, each counted once while it repeats.
const LINES_KEPT: usize = 200;

/// Bytes of a line that are remembered.
const LINE_BYTES_MAX: usize = 4 << 10;

/// Bytes read at a time.
const CHUNK: usize = 16 << 10;

/// How long the rest of what a command printed is read once it has ended: what it started may hold its pipes open.
const LAST_OUTPUT: Duration = Duration::from_secs(1);

/// Lines shown of them.
const LINES_SHOWN: usize = 8;

/// Where a proxy or a cluster around us would lead a client astray.
const ASTRAY: [&str; 8] = [
    "KUBERNETES_SERVICE_HOST",
    "KUBERNETES_SERVICE_PORT",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
];

/// A running command.
pub(super) struct Child {
    child: tokio::process::Child,
    group: Option<Pid>,
    printed: Arc<Mutex<VecDeque<Repeated>>>,
    /// Who reads what it prints.
    listeners: Vec<JoinHandle<()>>,
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

/// How a command ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ended {
    status: Option<ExitStatus>,
    /// It was told to.
    told: bool,
}

impl Ended {
    /// SIGTERM itself ended it: whatever comes later was sent before.
    pub(super) fn was_stopped_at_once(&self) -> bool {
        let signal = self.status.and_then(|status| status.signal());
        self.told && signal == Some(Signal::TERM.as_raw())
    }

    /// What is wrong with that end, if anything: `ended with exit code 1`, `was killed by signal 11`.
    pub(super) fn crash(&self) -> Option<String> {
        let status = self.status.filter(|status| !self.told && !status.success())?;
        Some(match status.code() {
            Some(code) => format!("exited with code {code}"),
            None => format!("died ({status})"),
        })
    }
}

impl Child {
    /// Starts the command in a new process group, so that its children are stopped with it.
    pub(super) fn start(
        command: &[String],
        running: &Running,
        scenario: &Scenario,
        shows: bool,
    ) -> Result<Self, Failure> {
        let (program, arguments) = command
            .split_first()
            .ok_or_else(|| Failure::Usage("missing command after --".to_owned()))?;
        let mut started = Command::new(program);
        started
            .args(arguments)
            .env("KUBECONFIG", running.kubeconfig())
            .env("FAKE_APISERVER_SCENARIO", &scenario.id)
            .env(
                "FAKE_APISERVER_CLIENT",
                settings::client(&scenario.client).to_string(),
            )
            .env(
                "FAKE_APISERVER_TARGET",
                settings::target(&scenario.target).to_string(),
            )
            .envs(running.control())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        for name in ASTRAY {
            started.env_remove(name);
        }
        let mut child = started.spawn().map_err(|error| {
            let is_callers = matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied
            );
            if is_callers {
                Failure::NoServer(format!("cannot start {program}: {error}"))
            } else {
                Failure::System(format!("cannot start {program}"), error)
            }
        })?;
        let printed = Arc::new(Mutex::new(VecDeque::new()));
        let mut listeners = Vec::new();
        if let Some(out) = child.stdout.take() {
            listeners.push(tokio::spawn(listen(out, printed.clone(), shows)));
        }
        if let Some(errors) = child.stderr.take() {
            listeners.push(tokio::spawn(listen(errors, printed.clone(), shows)));
        }
        let group = child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(Pid::from_raw);
        Ok(Self {
            child,
            group,
            printed,
            listeners,
        })
    }

    /// Completes when it ends by itself.
    pub(super) async fn exited(&mut self) -> Ended {
        let status = self.child.wait().await.ok();
        Ended { status, told: false }
    }

    /// SIGTERM, then SIGKILL after `grace`.
    pub(super) async fn stop(&mut self, grace: Duration) -> Ended {
        if let Ok(Some(status)) = self.child.try_wait() {
            self.signal(Signal::KILL);
            return Ended {
                status: Some(status),
                told: false,
            };
        }
        self.signal(Signal::TERM);
        let ended = timeout(grace, self.child.wait()).await;
        // What it started may have outlived it.
        self.signal(Signal::KILL);
        let status = match ended {
            Ok(status) => status.ok(),
            Err(_) => self.child.wait().await.ok(),
        };
        Ended { status, told: true }
    }

    /// The end of what it printed, once it has ended.
    pub(super) async fn last_words(&mut self) -> Vec<String> {
        for listener in self.listeners.drain(..) {
            // The output so far is kept, even if another process still holds the pipe.
            let _ = timeout(LAST_OUTPUT, listener).await;
        }
        let printed = self.printed.lock().unwrap_or_else(PoisonError::into_inner);
        let first = printed.len().saturating_sub(LINES_SHOWN);
        printed.iter().skip(first).map(Repeated::words).collect()
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // Nobody left to hear it is what is wanted.
            let _ = kill_process_group(group, signal);
        }
    }
}

/// Reads to the end, whatever is printed: a pipe closed too early would end the command.
async fn listen(mut from: impl AsyncRead + Unpin, printed: Arc<Mutex<VecDeque<Repeated>>>, shows: bool) {
    let mut lines = Lines::default();
    let mut buffer = vec![0; CHUNK];
    let mut keep = |line: String| {
        if shows {
            output::log(&format!("        command | {line}"));
        }
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

/// Bytes cut into lines of bounded length.
#[derive(Debug, Default)]
struct Lines {
    line: Vec<u8>,
    /// Bytes of this line that are not kept.
    more: u64,
}

impl Lines {
    fn take(&mut self, bytes: &[u8], keep: &mut impl FnMut(String)) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, ends) = match part.split_last() {
                Some((b'\n', text)) => (text, true),
                Some(_) | None => (part, false),
            };
            let fits = text.len().min(LINE_BYTES_MAX - self.line.len());
            self.line.extend_from_slice(&text[..fits]);
            self.more += (text.len() - fits) as u64;
            if ends {
                keep(self.cut());
            }
        }
    }

    fn end(mut self, keep: &mut impl FnMut(String)) {
        if !self.line.is_empty() || self.more > 0 {
            keep(self.cut());
        }
    }

    /// The line so far: what is no UTF-8 replaced, what a terminal would obey escaped.
    fn cut(&mut self) -> String {
        let text = String::from_utf8_lossy(&self.line);
        let mut line = printable(text.trim_end_matches('\r')).into_owned();
        if self.more > 0 {
            line.push_str(&format!(" … {} more bytes", self.more));
        }
        self.line.clear();
        self.more = 0;
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(chunks: &[&[u8]]) -> Vec<String> {
        let (mut lines, mut all) = (Lines::default(), Vec::new());
        let mut keep = |line| all.push(line);
        for chunk in chunks {
            lines.take(chunk, &mut keep);
        }
        lines.end(&mut keep);
        all
    }

    #[test]
    fn who_dies_of_the_signal_sends_nothing_after_it() {
        let ended = |raw: i32, told: bool| Ended {
            status: Some(ExitStatus::from_raw(raw)),
            told,
        };
        assert!(ended(15, true).was_stopped_at_once());
        assert!(!ended(9, true).was_stopped_at_once(), "it outlived SIGTERM");
        assert!(!ended(0, true).was_stopped_at_once(), "it ended by itself");
        assert!(!ended(15, false).was_stopped_at_once(), "nobody stopped it");
    }

    #[test]
    fn lines_are_cut_wherever_the_chunks_are() {
        assert_eq!(lines(&[b"one\ntw", b"o\r\n\nlast"]), ["one", "two", "", "last"]);
    }

    #[test]
    fn bytes_that_are_no_text_are_shown_as_such() {
        assert_eq!(
            lines(&[b"\xff\xfe a\x1b[2Jb\n"]),
            ["\u{fffd}\u{fffd} a\\u{1b}[2Jb"]
        );
    }

    #[test]
    fn a_line_without_an_end_is_bounded() {
        let chunk = vec![b'x'; LINE_BYTES_MAX];
        let all = lines(&[&chunk, &chunk, &chunk]);
        assert_eq!(all.len(), 1);
        assert!(all[0].len() < LINE_BYTES_MAX + 40, "{} bytes", all[0].len());
        assert!(all[0].ends_with(&format!(" … {} more bytes", 2 * LINE_BYTES_MAX)));
    }
}
