//! A running server, and what a test reads from it. Changes are in `steer`, assertions in `expect`.

use std::collections::BTreeSet;
use std::time::Duration;

use fake_apiserver::net::{Credentials, Edge, Listening};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::request::{Request, requests};
use crate::trace::Trace;
use crate::verdict::Verdict;

/// A Kubernetes apiserver in memory, for one test. It is stopped when it is dropped.
///
/// Its methods panic when they are misused and when an expectation fails, as assertions do. Call them inside the tokio runtime
/// in which the server was started.
#[derive(Debug)]
pub struct FakeApiserver {
    pub(crate) edge: Edge,
    /// Addresses: of the server, then of its secondary; none in memory.
    pub(crate) sockets: Vec<Socket>,
    /// Closes the pipes in this process when it is dropped.
    pub(crate) running: watch::Sender<()>,
    pub(crate) patience: Duration,
    pub(crate) strict: bool,
    /// Rules not carried out so far; a strict server reports them at its end.
    pub(crate) rules: std::sync::Mutex<BTreeSet<u64>>,
    pub(crate) tasks: Vec<JoinHandle<()>>,
}

/// One address.
#[derive(Debug)]
pub(crate) struct Socket {
    pub(crate) url: String,
    kubeconfig: String,
    #[cfg(feature = "kube")]
    pub(crate) authority: Option<Vec<u8>>,
}

impl FakeApiserver {
    /// Returns its URL: `http://127.0.0.1:PORT`.
    ///
    /// # Panics
    /// The server is in memory.
    #[track_caller]
    pub fn url(&self) -> &str {
        &self.socket("URL").url
    }

    /// Returns a kubeconfig, for kubectl and other processes.
    ///
    /// # Panics
    /// The server is in memory.
    #[track_caller]
    pub fn kubeconfig(&self) -> &str {
        &self.socket("kubeconfig").kubeconfig
    }

    /// Returns every request so far, in order of arrival.
    pub fn requests(&self) -> Vec<Request> {
        self.edge.read_records(0, |records| {
            let requests = requests(records).into_iter();
            requests.map(|(_, request)| request).collect()
        })
    }

    /// Returns everything that happened so far.
    pub fn trace(&self) -> Trace {
        Trace(self.edge.read_records(0, <[_]>::to_vec))
    }

    /// Returns the verdict so far: which clients violated which invariants of LIST and WATCH.
    pub fn verdict(&self) -> Verdict {
        let now = self.edge.elapsed();
        self.edge.read_records(0, |records| Verdict::of(records, now))
    }

    /// Returns the time since it was started.
    pub fn elapsed(&self) -> Duration {
        self.edge.elapsed()
    }

    /// Returns the first socket.
    #[track_caller]
    pub(crate) fn socket(&self, what: &str) -> &Socket {
        let first = self.sockets.first();
        first.unwrap_or_else(|| panic!("a server in memory has no {what}: only its own clients reach it"))
    }
}

impl Socket {
    /// Returns the address of a listener.
    pub(crate) fn of(listener: &Listening) -> Self {
        Self {
            url: listener.url(),
            kubeconfig: listener.kubeconfig(Credentials::None, None).text(),
            #[cfg(feature = "kube")]
            authority: listener
                .authority()
                .map(|authority| authority.certificate_der().to_vec()),
        }
    }
}

impl Drop for FakeApiserver {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
        if self.strict && !std::thread::panicking() {
            self.assert_clean();
        }
    }
}
