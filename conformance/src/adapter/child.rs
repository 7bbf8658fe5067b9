//! An adapter as a process: its private directory, its pipes, and its end.
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

/// Bytes of a message.
const LINE_BYTES_MAX: usize = 8 << 20;

/// Bytes read at a time.
const CHUNK: usize = 64 << 10;

/// Bytes read before others get their turn.
const READ_AT_ONCE: usize = 4 << 20;

/// Lines of standard error that are shown.
const LINES_SHOWN: usize = 8;

/// Between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);

/// Between the end of its output and its exit.
const CLOSED: Duration = Duration::from_secs(1);

/// How long the adapter may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeLimits {
    /// From its start to `hello`.
    pub hello: Duration,
    /// From a command to its answer.
    pub answer: Duration,
    /// From `stop` to its exit.
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

/// The adapter cannot be started, or the system refused what it needs.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The command cannot be started.
    #[error("cannot start {0}: {1}")]
    Command(String, #[source] io::Error),
    /// No directory, no pipe.
    #[error("the system refused what a test needs: {0}")]
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

/// What an adapter has said so far. Shared with the server, which reads it before every request it records: what was
/// printed before the request was sent, is recorded before it.
#[derive(Debug, Clone)]
pub struct Mailbox {
    inbox: Arc<Mutex<Inbox>>,
    /// Something was read by the server: the pipe says nothing of what is read already.
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

/// What an adapter did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// It printed something.
    Heard,
    /// It exited, with this status.
    Exited(Option<ExitStatus>),
}

impl Mailbox {
    /// Does something with the session.
    pub fn with<T>(&self, with: impl FnOnce(&mut Session) -> T) -> T {
        with(&mut self.lock().session)
    }

    /// Reads what has been printed by now.
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
        // Nothing panics under the lock half way.
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inbox {
    /// Takes what `from` has by now. Was there anything, or its end?
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
    /// Starts `command` with the kubeconfig in `home`, a directory that is created, and removed with this value.
    ///
    /// # Errors
    /// The command or the system.
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
        // Two ways to one pipe: tokio's knows when there is something, and the other one does not wait to be told.
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

    /// What the adapter has said so far.
    pub fn mailbox(&self) -> &Mailbox {
        &self.mailbox
    }

    /// Completes when the adapter printed something, which is read, or exited.
    pub async fn next(&mut self) -> Moment {
        tokio::select! {
            biased;
            () = heard(&self.mailbox, &self.output) => {}
            status = self.process.wait() => {
                self.mailbox.read();
                return Moment::Exited(status.ok());
            }
        }
        if self.mailbox.is_closed() {
            if let Ok(status) = timeout(CLOSED, self.process.wait()).await {
                return Moment::Exited(status.ok());
            }
            let fault = "the adapter closed its standard output before `stop`, and did not exit";
            self.mailbox.with(|session| session.at_fault(fault.to_owned()));
        }
        Moment::Heard
    }

    /// The process of the adapter, while it lives.
    pub fn id(&self) -> Option<u32> {
        self.process.id()
    }

    /// Processor time of the adapter, as far as it was measured: its last moments are not.
    pub fn load(&mut self) -> Load {
        if let Some(process) = self.process.id() {
            self.load = self.load.max(Load::of(process));
        }
        self.load
    }

    /// Time that the adapter was ready to run and waited for a processor.
    pub fn held_up(&mut self) -> Duration {
        self.load().held_up
    }

    /// Waits until the session is as `until` has it, for `limit` at most, without the time in which a busy machine held the
    /// adapter up. False: it never was, or the process exited.
    pub async fn until(&mut self, limit: Duration, until: impl Fn(&Session) -> bool) -> bool {
        let mailbox = self.mailbox.clone();
        let reached = || mailbox.with(|session| until(session) || session.fault().is_some());
        let mut left = limit;
        while !left.is_zero() {
            let before = self.held_up();
            let reading = async {
                while !reached() {
                    if let Moment::Exited(_) = self.next().await {
                        return;
                    }
                }
            };
            // A limit that passes while the answer comes is no reason to miss it.
            if timeout(left, reading).await.is_ok() {
                break;
            }
            left = more(left, self.held_up().saturating_sub(before));
        }
        mailbox.with(|session| until(session))
    }

    /// Sends a command. A process that no longer reads is found out otherwise.
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

    /// Sends a line that need not be a command.
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

    /// Waits for the exit that was requested, for `limit`; then SIGTERM, then SIGKILL, to the whole group. `None`: it did not
    /// exit by itself.
    pub async fn end(&mut self, limit: Duration) -> Option<ExitStatus> {
        let (mut left, mut status) = (limit, None);
        while !left.is_zero() {
            let before = self.held_up();
            // A full pipe would keep it from exiting.
            let exited = async {
                loop {
                    if let Moment::Exited(status) = self.next().await {
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
        // What it started may have outlived it.
        self.group.signal(Signal::KILL);
        let _ = self.process.wait().await;
        self.mailbox.read();
        status
    }

    /// The last lines of standard error, once it has ended.
    pub async fn last_errors(&mut self) -> Vec<String> {
        self.errors.last(LINES_SHOWN).await
    }
}

/// How much longer to wait after `waited`, in which the machine held the adapter up for `held_up`; zero: the limit passed.
fn more(waited: Duration, held_up: Duration) -> Duration {
    // Less is what any process waits.
    let counts = held_up >= waited / 10;
    // Less than was waited: the sum stays bounded, however busy the machine is.
    if counts {
        held_up.min(waited * 3 / 4)
    } else {
        Duration::ZERO
    }
}

/// Completes when there is something to read, and reads it; never once the pipe is closed.
async fn heard(mailbox: &Mailbox, output: &Receiver) {
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

/// How a process ended, in words: `exited with status 1`, `died (signal: 9 (SIGKILL))`.
pub fn exit_words(status: Option<ExitStatus>) -> String {
    match status.map(|status| (status, status.code())) {
        Some((_, Some(code))) => format!("exited with status {code}"),
        Some((status, None)) => format!("died ({status})"),
        None => "ended".to_owned(),
    }
}

/// Adds the last line of standard error, where there is one: it often has the reason.
pub(super) fn with_last_line(why: String, errors: &[String]) -> String {
    match errors.last() {
        Some(last) => format!("{why}; last line on standard error: {last}"),
        None => why,
    }
}

/// A private directory, removed with this value.
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
            tracing::warn!(%error, left = %self.0.display(), "left behind");
        }
    }
}
