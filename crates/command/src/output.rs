//! Standard output and standard error of a running server. A reader that disconnects or stops reading neither ends nor blocks
//! the server. It must not know the content.
//!
//! Standard error is a log: lines are queued, up to a limit, for a separate thread, and are dropped and counted if they are
//! not read. Standard output has results: nothing is dropped, but after a stop request a reader without progress is given up.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io::{self, Write as _};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fake_apiserver::record::line::{is_printable, printable};
use tokio::time::timeout;

use crate::Failure;
use crate::stop::Stop;

/// Maximum bytes of queued log lines. A reader that lags by a few seconds loses nothing.
const WAITING_BYTES_MAX: usize = 4 << 20;

/// Maximum wait on exit for the log to be read.
const LAST_LINES: Duration = Duration::from_secs(1);

/// Time without progress after which standard output counts as not read.
const STALLED: Duration = Duration::from_secs(2);

/// Bytes per write to standard output: progress is checked after each.
const CHUNK: usize = 4096;

static LOG: LazyLock<Arc<Log>> = LazyLock::new(|| {
    let log = Arc::new(Log::default());
    let written = log.clone();
    let thread = std::thread::Builder::new().name("log".to_owned());
    if thread.spawn(move || written.write_to(&mut io::stderr())).is_err() {
        log.lock().gone = true;
    }
    log
});

/// Logs one line to standard error. Never fails, never blocks. The line can contain our colours; other text must be escaped
/// with [`printable`].
pub(crate) fn log(line: &str) {
    LOG.push(format!("{line}\n"));
}

/// Logs text unchanged, without a newline: progress.
pub(crate) fn log_raw(text: &str) {
    LOG.push(text.to_owned());
}

/// Waits until the log is written, for at most a second.
pub(crate) fn flush_log() {
    LOG.flush(LAST_LINES);
}

/// Escapes as [`printable`] does, except newlines.
pub(crate) fn printable_lines(text: &str) -> Cow<'_, str> {
    if text.split('\n').all(is_printable) {
        return Cow::Borrowed(text);
    }
    let lines: Vec<Cow<'_, str>> = text.split('\n').map(printable).collect();
    Cow::Owned(lines.join("\n"))
}

/// Writes a result to standard output.
///
/// # Errors
///
/// Standard output is closed, or was not read for two seconds after a stop request.
pub(crate) async fn print(text: String, stop: &Stop) -> Result<(), Failure> {
    let written = Arc::new(AtomicUsize::new(0));
    let progress = written.clone();
    let mut writing = pin!(tokio::task::spawn_blocking(move || {
        let mut out = io::stdout().lock();
        for chunk in text.as_bytes().chunks(CHUNK) {
            out.write_all(chunk)?;
            out.flush()?;
            progress.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }));
    let failed = |error: io::Error| {
        let what = if error.kind() == io::ErrorKind::BrokenPipe {
            "standard output is closed"
        } else {
            "cannot write to standard output"
        };
        Failure::System(what.to_owned(), error)
    };
    loop {
        let before = written.load(Ordering::Relaxed);
        match timeout(STALLED, &mut writing).await {
            Ok(Ok(result)) => return result.map_err(failed),
            Ok(Err(error)) => return Err(failed(io::Error::other(error))),
            Err(_) if stop.is_requested() && written.load(Ordering::Relaxed) == before => {
                return Err(failed(io::ErrorKind::TimedOut.into()));
            }
            Err(_) => {}
        }
    }
}

/// A writer of the log, for `tracing`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogWriter;

impl io::Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LOG.push(String::from_utf8_lossy(bytes).into_owned());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Queue of lines for a reader that may be slow, stalled or gone.
#[derive(Debug, Default)]
struct Log {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    lines: VecDeque<String>,
    bytes: usize,
    /// Number of lines dropped since the last one that was written.
    dropped: u64,
    /// Whether a line is being written.
    writing: bool,
    /// Whether the reader is gone.
    gone: bool,
}

impl Log {
    fn push(&self, line: String) {
        let mut waiting = self.lock();
        if waiting.gone {
            return;
        }
        if waiting.bytes + line.len() > WAITING_BYTES_MAX {
            waiting.dropped += 1;
            return;
        }
        waiting.bytes += line.len();
        waiting.lines.push_back(line);
        self.changed.notify_all();
    }

    /// Writes until the reader is gone.
    fn write_to(&self, out: &mut impl io::Write) {
        loop {
            let mut waiting = self.lock();
            waiting.writing = false;
            self.changed.notify_all();
            waiting = self
                .changed
                .wait_while(waiting, |waiting| waiting.lines.is_empty())
                .unwrap_or_else(PoisonError::into_inner);
            let mut text: String = waiting.lines.drain(..).collect();
            if waiting.dropped > 0 {
                text.push_str(&format!(
                    "warning: {} log lines dropped: standard error was not read\n",
                    waiting.dropped
                ));
            }
            waiting.dropped = 0;
            waiting.bytes = 0;
            waiting.writing = true;
            drop(waiting);
            if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() {
                let mut waiting = self.lock();
                waiting.gone = true;
                waiting.writing = false;
                waiting.lines.clear();
                self.changed.notify_all();
                return;
            }
        }
    }

    fn flush(&self, limit: Duration) {
        let waiting = self.lock();
        // A slower reader loses the end of the log.
        let _ = self.changed.wait_timeout_while(waiting, limit, |waiting| {
            !waiting.gone && (waiting.writing || !waiting.lines.is_empty())
        });
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unread_lines_are_dropped_and_counted() {
        let log = Log::default();
        let line = "x".repeat(WAITING_BYTES_MAX / 4);
        for _ in 0..6 {
            log.push(line.clone());
        }
        let waiting = log.lock();
        assert_eq!((waiting.lines.len(), waiting.dropped), (4, 2));
    }

    #[test]
    fn a_reader_that_left_ends_the_log_and_nothing_else() {
        struct Closed;
        impl io::Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let log = Log::default();
        log.push("one\n".to_owned());
        log.write_to(&mut Closed);
        log.push("two\n".to_owned());
        log.flush(Duration::ZERO);
        assert!(log.lock().gone && log.lock().lines.is_empty());
    }

    #[test]
    fn several_lines_keep_their_newlines() {
        assert_eq!(printable_lines("a\n\x1bb\rc"), "a\n\\u{1b}b\\rc");
    }
}
