//! Stop requests: SIGINT, SIGTERM and SIGHUP, from the start of the program on, so that none is lost between two scenarios.
//! It must not know what is stopped.

use std::io::{self, Write as _};
use std::time::Duration;

use tokio::sync::{oneshot, watch};

/// Time in which the thread that serves has to notice a stop request.
const NOTICED_WITHIN: Duration = Duration::from_secs(1);

/// Exit code of a program that was interrupted.
pub(crate) const INTERRUPTED: u8 = 130;

/// Whether a stop was requested.
#[derive(Debug, Clone)]
pub(crate) struct Stop(watch::Receiver<bool>);

impl Stop {
    /// Listens for signals from now on. Needs a runtime.
    pub(crate) fn listen() -> Self {
        let (requested, stop) = watch::channel(false);
        // Without a handler the default action of the signal ends the program.
        let signals = signals();
        tokio::spawn(async move {
            signals.await;
            // No receiver is left, which is fine.
            let _ = requested.send(true);
            // The handler stays: a dropped sender would look like a request.
            requested.closed().await;
        });
        Self(stop)
    }

    /// Returns a handle that also completes at the end of standard input.
    pub(crate) fn or_end_of_stdin(&self) -> Self {
        let (requested, stop) = watch::channel(false);
        let (closed, ended) = oneshot::channel();
        // A blocking read ends with the process.
        std::thread::spawn(move || {
            // A read error means the end, too.
            let _ = io::copy(&mut io::stdin(), &mut io::sink());
            let _ = closed.send(());
        });
        let signals = self.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = signals.requested() => {}
                _ = ended => {}
            }
            // No receiver is left, which is fine.
            let _ = requested.send(true);
            requested.closed().await;
        });
        Self(stop)
    }

    /// Ends the process if this runtime does not notice a stop request within a second: its only thread may be at work on a
    /// request. Then nothing is written and no verdict is given.
    pub(crate) fn or_end_unnoticed(&self) {
        let mut noticed = self.0.clone();
        let (listening, listens) = std::sync::mpsc::channel();
        let watch = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let Ok(runtime) = runtime else {
                tracing::warn!("no runtime: a stop request waits for the running request");
                return;
            };
            let unnoticed = runtime.block_on(async {
                let signals = signals();
                // The thread that waits for it may have ended.
                let _ = listening.send(());
                signals.await;
                let noticed = noticed.wait_for(|requested| *requested);
                tokio::time::timeout(NOTICED_WITHIN, noticed).await.is_err()
            });
            if unnoticed {
                // Nobody may read it.
                let _ = writeln!(
                    io::stderr(),
                    "stopped: the running request did not end within {} s",
                    NOTICED_WITHIN.as_secs()
                );
                std::process::exit(i32::from(INTERRUPTED));
            }
        };
        match std::thread::Builder::new().name("stop".to_owned()).spawn(watch) {
            // An error means that the thread ended, and logged the reason.
            Ok(_) => drop(listens.recv()),
            Err(error) => tracing::warn!(%error, "no thread: a stop request waits for the running request"),
        }
    }

    /// Completes once a stop was requested.
    pub(crate) async fn requested(&self) {
        let mut stop = self.0.clone();
        if stop.wait_for(|requested| *requested).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Returns whether a stop was requested.
    pub(crate) fn is_requested(&self) -> bool {
        *self.0.borrow()
    }
}

#[cfg(unix)]
fn signals() -> impl Future<Output = ()> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut kinds = vec![SignalKind::interrupt(), SignalKind::terminate()];
    if !hangup_is_ignored() {
        kinds.push(SignalKind::hangup());
    }
    let mut listeners: Vec<_> = kinds.into_iter().filter_map(|kind| signal(kind).ok()).collect();
    async move {
        std::future::poll_fn(|context| {
            let came = listeners
                .iter_mut()
                .any(|listener| listener.poll_recv(context).is_ready());
            if came {
                std::task::Poll::Ready(())
            } else {
                std::task::Poll::Pending
            }
        })
        .await;
    }
}

#[cfg(not(unix))]
fn signals() -> impl Future<Output = ()> {
    async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// `nohup` starts a program with SIGHUP ignored, which must stay so.
#[cfg(unix)]
fn hangup_is_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // Signal 1 is the lowest bit.
    ignored
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & 1 == 1)
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::process::{Command, Stdio};

    use super::*;

    const CHILD: &str = "FAKE_APISERVER_TEST_BUSY";

    /// A process whose thread is busy, if `CHILD` is set; else it starts one, and stops it.
    #[test]
    fn a_busy_process_ends_at_a_stop_request() {
        if std::env::var_os(CHILD).is_some() {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                Stop::listen().or_end_unnoticed();
                println!("busy");
                std::thread::park_timeout(Duration::from_secs(60));
            });
            return;
        }
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "stop::tests::a_busy_process_ends_at_a_stop_request",
                "--nocapture",
            ])
            .env(CHILD, "1")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let told = lines.map_while(Result::ok).find(|line| line.contains("busy"));
        assert!(told.is_some());
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(i32::from(INTERRUPTED)));
    }
}
