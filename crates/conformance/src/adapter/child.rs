//! Process of an adapter: its private directory, its pipes, and its termination.
//!
//! It must not know scenarios or verdicts.

use std::fs::{DirBuilder, File};
use std::io::{self, Read as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fake_apiserver::net::Kubeconfig;
use rustix::process::Signal;
use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::process::{ChildStdin, Command};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::message;
use super::session::Session;
use crate::process::load::Load;
use crate::process::{Group, Tail, only_here, parts_of_lines};

/// Maximum size of a message, in bytes.
const LINE_BYTES_MAX: usize = 8 << 20;

/// Size of one read, in bytes.
const CHUNK: usize = 64 << 10;

/// Maximum number of bytes read before other tasks run.
const READ_AT_ONCE: usize = 4 << 20;

/// Maximum number of printed lines of standard error.
const LINES_SHOWN: usize = 8;

/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);

/// Time limit from the end of standard output to the exit.
const CLOSED: Duration = Duration::from_secs(1);

/// Time limits of an adapter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeLimits {
    /// From the start to `hello`.
    pub hello: Duration,
    /// From a command to its response.
    pub answer: Duration,
    /// From `stop` to the exit.
    pub stop: Duration,
}

impl Default for TimeLimits {
    fn default() -> Self {
        Self {
            hello: Duration::from_secs(30),
            answer: Duration::from_secs(5),
            stop: Duration::from_secs(5),
        }
    }
}

/// The adapter cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The command cannot be started.
    #[error("cannot start {0}: {1}")]
    Command(String, #[source] io::Error),
    /// A directory, pipe or socket cannot be created.
    #[error("cannot create a directory, pipe or socket: {0}")]
    System(#[from] io::Error),
}

/// A running adapter. Dropping it kills its process group and removes its directory.
#[derive(Debug)]
pub struct Child {
    process: tokio::process::Child,
    group: Group,
    input: Option<ChildStdin>,
    output: Receiver,
    mailbox: Mailbox,
    errors: Tail,
    load: Load,
    _home: Home,
}

/// Output of an adapter so far. Shared with the server, which reads it before it records a request: events printed before the
/// request was sent are recorded before it.
#[derive(Debug, Clone)]
pub struct Mailbox {
    inbox: Arc<Mutex<Inbox>>,
    /// Notified when the server has read output: the pipe does not become readable for it.
    read: Arc<Notify>,
}

#[derive(Debug)]
struct Inbox {
    session: Session,
    /// The read end of the adapter's standard output, which never blocks.
    pipe: File,
    line: Vec<u8>,
    closed: bool,
}

/// An event of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildEvent {
    /// Output was read.
    Output,
    /// It exited, with this status.
    Exited(Option<ExitStatus>),
}

impl Mailbox {
    /// Calls `with` with the session.
    pub fn with<T>(&self, with: impl FnOnce(&mut Session) -> T) -> T {
        with(&mut self.lock().session)
    }

    /// Reads the output that is available.
    pub fn read(&self) {
        let mut inbox = self.lock();
        let Ok(mut pipe) = inbox.pipe.try_clone() else {
            return;
        };
        if inbox.read(|chunk| pipe.read(chunk)) {
            self.read.notify_one();
        }
    }

    fn is_closed(&self) -> bool {
        self.lock().closed
    }

    fn lock(&self) -> MutexGuard<'_, Inbox> {
        // No code panics while it holds the lock.
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inbox {
    /// Reads what is available. Returns true if there was output, or its end.
    fn read(&mut self, mut from: impl FnMut(&mut [u8]) -> io::Result<usize>) -> bool {
        if self.closed {
            return false;
        }
        let mut chunk = vec![0; CHUNK];
        let mut read = 0;
        while read < READ_AT_ONCE {
            match from(&mut chunk) {
                Ok(0) => {
                    self.closed = true;
                    self.take(b"\n");
                    return true;
                }
                Ok(bytes) => {
                    read += bytes;
                    self.take(&chunk[..bytes]);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => {
                    self.closed = true;
                    return true;
                }
            }
        }
        read > 0
    }

    fn take(&mut self, bytes: &[u8]) {
        for (text, ends) in parts_of_lines(bytes) {
            if self.line.len() + text.len() > LINE_BYTES_MAX {
                self.line.clear();
                return self.session.too_long(LINE_BYTES_MAX);
            }
            self.line.extend_from_slice(text);
            if ends {
                let line = std::mem::take(&mut self.line);
                self.session.take(&line);
            }
        }
    }
}

impl Child {
    /// Starts `command` with the kubeconfig in `home`, a directory that is created, and removed when this value is dropped.
    ///
    /// # Errors
    /// The command cannot be started, or a directory or pipe cannot be created.
    pub fn start(command: &[String], kubeconfig: &Kubeconfig, home: &Path) -> Result<Self, StartError> {
        let (program, arguments) = command
            .split_first()
            .ok_or_else(|| StartError::Command("nothing".to_owned(), io::ErrorKind::InvalidInput.into()))?;
        let home = Home::create(home)?;
        let file = home.0.join("kubeconfig");
        kubeconfig.write(&file)?;
        let mut started = Command::new(program);
        started
            .args(arguments)
            .env("KUBECONFIG", &file)
            .env("HOME", home.0.join("home"))
            .env("TMPDIR", home.0.join("tmp"))
            .env("TZ", "UTC")
            .env("LANG", "C.UTF-8")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        only_here(&mut started);
        for (name, _) in std::env::vars_os() {
            let name_text = name.to_string_lossy();
            if name_text.starts_with("KUBE_FEATURE_") || name_text.starts_with("KUBERNETES_SERVICE_") {
                started.env_remove(&name);
            }
        }
        let mut process = started
            .spawn()
            .map_err(|error| StartError::Command(program.clone(), error))?;
        let group = Group::of(&process);
        let mut errors = Tail::default();
        if let Some(stderr) = process.stderr.take() {
            errors.read(stderr, |_| {});
        }
        let piped = || io::Error::from(io::ErrorKind::BrokenPipe);
        let pipe = process.stdout.take().ok_or_else(piped)?.into_owned_fd()?;
        // Two handles of one pipe: tokio's waits until it is readable, the other one reads without waiting.
        let inbox = Inbox {
            session: Session::default(),
            pipe: File::from(pipe.try_clone()?),
            line: Vec::new(),
            closed: false,
        };
        Ok(Self {
            input: process.stdin.take(),
            output: Receiver::from_owned_fd(pipe)?,
            mailbox: Mailbox {
                inbox: Arc::new(Mutex::new(inbox)),
                read: Arc::new(Notify::new()),
            },
            process,
            group,
            errors,
            load: Load::default(),
            _home: home,
        })
    }

    /// Output of the adapter so far.
    pub fn mailbox(&self) -> &Mailbox {
        &self.mailbox
    }

    /// Waits until output was read, or the adapter exited.
    pub async fn next(&mut self) -> ChildEvent {
        tokio::select! {
            biased;
            () = read_output(&self.mailbox, &self.output) => {}
            status = self.process.wait() => {
                self.mailbox.read();
                return ChildEvent::Exited(status.ok());
            }
        }
        if self.mailbox.is_closed() {
            if let Ok(status) = timeout(CLOSED, self.process.wait()).await {
                return ChildEvent::Exited(status.ok());
            }
            let fault = "the adapter closed its standard output before `stop`, and did not exit";
            self.mailbox.with(|session| session.fail(fault.to_owned()));
        }
        ChildEvent::Output
    }

    /// Process id, until the adapter has exited.
    pub fn id(&self) -> Option<u32> {
        self.process.id()
    }

    /// Returns the CPU time of the adapter until the last measurement before its exit.
    pub fn load(&mut self) -> Load {
        if let Some(process) = self.process.id() {
            self.load = self.load.max(Load::of(process));
        }
        self.load
    }

    /// Returns the time for which the adapter waited for a processor.
    pub fn held_up(&mut self) -> Duration {
        self.load().held_up
    }

    /// Waits until `until` is true for the session, at most for `limit`, not counting the time for which the adapter waited for
    /// a processor. Returns false at the time limit, or if the process exited.
    pub async fn until(&mut self, limit: Duration, until: impl Fn(&Session) -> bool) -> bool {
        let mailbox = self.mailbox.clone();
        let reached = || mailbox.with(|session| until(session) || session.fault().is_some());
        let mut left = limit;
        while !left.is_zero() {
            let before = self.held_up();
            let reading = async {
                while !reached() {
                    if let ChildEvent::Exited(_) = self.next().await {
                        return;
                    }
                }
            };
            // A response may arrive at the same time as the timeout.
            if timeout(left, reading).await.is_ok() {
                break;
            }
            left = more(left, self.held_up().saturating_sub(before));
        }
        mailbox.with(|session| until(session))
    }

    /// Sends a command. Write errors are ignored: the exit of the process is detected elsewhere.
    pub async fn send(&mut self, command: &message::Command) {
        if let message::Command::Start(start) = command {
            let contracts = [
                message::Contract::Informer,
                message::Contract::Watch,
                message::Contract::List,
            ];
            let known = contracts.into_iter().find(|known| known.word() == start.contract);
            let contract = known.unwrap_or(message::Contract::Informer);
            self.mailbox.with(|session| session.start(contract));
        }
        let line = serde_json::to_string(command)
            .expect("proven invariant: plain strings and numbers always serialize");
        self.send_line(&line).await;
    }

    /// Sends a line, also one that is not a valid command.
    pub async fn send_line(&mut self, line: &str) {
        if let Some(input) = &mut self.input {
            let _ = input.write_all(format!("{line}\n").as_bytes()).await;
            let _ = input.flush().await;
        }
    }

    /// Closes the adapter's standard input.
    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// Waits for the exit, at most for `limit`; then sends SIGTERM and SIGKILL to the process group. Returns `None` if it did
    /// not exit by itself.
    pub async fn end(&mut self, limit: Duration) -> Option<ExitStatus> {
        let (mut left, mut status) = (limit, None);
        while !left.is_zero() {
            let before = self.held_up();
            // Read on: a full pipe would block the adapter.
            let exited = async {
                loop {
                    if let ChildEvent::Exited(status) = self.next().await {
                        return status;
                    }
                }
            };
            match timeout(left, exited).await {
                Ok(exited) => {
                    status = exited;
                    break;
                }
                Err(_) => left = more(left, self.held_up().saturating_sub(before)),
            }
        }
        if status.is_none() {
            self.group.signal(Signal::TERM);
            let _ = timeout(GRACE, self.process.wait()).await;
        }
        // Its child processes may still run.
        self.group.signal(Signal::KILL);
        let _ = self.process.wait().await;
        self.mailbox.read();
        status
    }

    /// Returns the last lines of standard error, after it has ended.
    pub async fn last_errors(&mut self) -> Vec<String> {
        self.errors.last(LINES_SHOWN).await
    }
}

/// Returns how much longer to wait after `waited`, of which the adapter waited for a processor for `held_up`. Zero: the limit
/// has passed.
fn more(waited: Duration, held_up: Duration) -> Duration {
    // Any process waits for less than that.
    let counts = held_up >= waited / 10;
    // Less than `waited`, so that the sum stays bounded on a busy machine.
    if counts {
        held_up.min(waited * 3 / 4)
    } else {
        Duration::ZERO
    }
}

/// Waits for output and reads it. Never completes once the pipe is closed.
async fn read_output(mailbox: &Mailbox, output: &Receiver) {
    let readable = async {
        if mailbox.is_closed() || output.readable().await.is_err() {
            return std::future::pending().await;
        }
        mailbox.lock().read(|chunk| output.try_read(chunk));
    };
    tokio::select! {
        () = readable => {}
        () = mailbox.read.notified() => {}
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.group.signal(Signal::KILL);
    }
}

/// Describes the end of a process: `exited with status 1`, `died (signal: 9 (SIGKILL))`.
pub fn exit_words(status: Option<ExitStatus>) -> String {
    match status.map(|status| (status, status.code())) {
        Some((_, Some(code))) => format!("exited with status {code}"),
        Some((status, None)) => format!("died ({status})"),
        None => "ended".to_owned(),
    }
}

/// Appends the last line of standard error, if any: it often has the reason.
pub(super) fn with_last_line(why: String, errors: &[String]) -> String {
    match errors.last() {
        Some(last) => format!("{why}; last line on standard error: {last}"),
        None => why,
    }
}

/// A private directory, removed when this value is dropped.
#[derive(Debug)]
struct Home(PathBuf);

impl Home {
    fn create(path: &Path) -> io::Result<Self> {
        let private = |path: &Path| DirBuilder::new().mode(0o700).create(path);
        private(path)?;
        let home = Self(path.to_owned());
        private(&path.join("home"))?;
        private(&path.join("tmp"))?;
        Ok(home)
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::warn!(%error, left = %self.0.display(), "cannot remove the directory of an adapter");
        }
    }
}
