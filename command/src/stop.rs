//! Stop requests: SIGINT, SIGTERM and SIGHUP, from the start of the program on, so that none is lost between two scenarios.
//! It must not know what is stopped.

use std::io;

use tokio::sync::{oneshot, watch};

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
