//! Crowds: many list/watch loops of correct clients on one served fake, under random faults, in virtual time.
//!
//! Loops share what they share in clusters: a User-Agent (replicas of one controller), a process and its connection
//! pool (informers of one program), a collection. Clients come and go, write what they watch, and read objects by
//! name. The wire judge receives every record, as in `fake-apiserver serve`, and must not report a correct client.
//! This module does not decide which clients are correct.

use std::sync::Arc;
use std::time::Duration;

use conformance::client::Client;
use conformance::wire::{Loops, Violation, WireJudge, WireVerdict};
use fake_apiserver::net::{ConnectionSettings, Edge};
use fake_apiserver::scenario::ServerSettings;
use fake_apiserver::server::Server;
use fastrand::Rng;
use tokio::task::JoinSet;

mod disturb;
mod member;

use self::disturb::Disturber;
pub use self::member::KUBE_RUNTIME;
use self::member::{Process, follow};
use crate::reference::{Mistake, Reference};

/// Time after which watches of the last part of a run are abandoned, and the loops that resumed are known.
const AFTERWARDS: Duration = Duration::from_secs(180);

/// Number of records the server keeps, as in `serve`: the judge must receive them before they are dropped.
const RECORDS_KEPT: usize = 100_000;

/// Parameters of a crowd.
#[derive(Debug, Clone)]
pub struct Crowd {
    /// Seed for all randomness.
    pub seed: u64,
    /// Number of list/watch loops of correct clients.
    pub loops: usize,
    /// Virtual duration.
    pub time: Duration,
    /// Adds a loop, with a separate User-Agent, that makes this mistake.
    pub mistaken: Option<Mistake>,
}

/// Result of a run.
#[derive(Debug)]
pub struct Outcome {
    /// All violations reported, with the records of their collection.
    pub violations: Vec<Violation>,
    /// The verdict at the end.
    pub verdict: WireVerdict,
    /// Number of faults injected.
    pub faults: u64,
}

/// The User-Agent of the loop that makes a mistake.
pub const MISTAKEN: &str = "mistaken/v1";

impl Crowd {
    /// Runs the crowd in the calling thread. Equal parameters give equal outcomes.
    ///
    /// Must not be called inside a tokio runtime.
    ///
    /// # Panics
    /// If the server or the runtime fails.
    pub fn play(&self) -> Outcome {
        // Some libraries draw jitter from the thread-local generator.
        fastrand::seed(self.seed);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime without I/O asks the system for nothing");
        runtime.block_on(self.run())
    }

    async fn run(&self) -> Outcome {
        let mut rng = Rng::with_seed(self.seed);
        let settings = ServerSettings {
            watch_cache_capacity: [3, 20, 1_000][rng.usize(0..3)],
            bookmark_interval_ms: [1_000, 10_000, 60_000][rng.usize(0..3)],
            streaming_lists: [None, Some(false)][rng.usize(0..2)],
            ..ServerSettings::default()
        };
        let edge = Edge::new(Server::standalone(settings, self.seed).keeping(RECORDS_KEPT));
        let connections = ConnectionSettings::default();
        let time = edge.clone();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { time.keep_time().await });

        let mut processes: Vec<Arc<Process>> = Vec::new();
        for number in 0..self.loops {
            // Informers of one program share its connection pool; replicas share only its User-Agent.
            let process = match processes.last() {
                Some(process) if rng.u32(0..3) > 0 => process.clone(),
                Some(_) | None => {
                    let process = Process::draw(&mut rng, &edge, &connections);
                    processes.push(process.clone());
                    process
                }
            };
            let library = process.library.clone();
            tasks.spawn(follow(library, process, rng.fork(), self.seed ^ number as u64));
        }
        if let Some(mistake) = self.mistaken {
            let library: Arc<dyn Client + Send> = Arc::new(Reference {
                mistake: Some(mistake),
            });
            let process = Process::named(MISTAKEN, &edge, &connections);
            tasks.spawn(member::stay(library, process, self.seed));
        }

        let mut ear = Judging::new();
        let mut disturber = Disturber::new(rng.fork(), edge.clone(), processes);
        while edge.elapsed() < self.time {
            disturber.disturb().await;
            ear.hear(&edge);
        }
        tasks.shutdown().await;
        ear.hear(&edge);
        assert_eq!(edge.breakage(), None, "the server goes on");
        ear.conclude(edge.elapsed() + AFTERWARDS, disturber.faults)
    }
}

/// The wire judge, fed like in a running server.
struct Judging {
    judge: WireJudge,
    next_seq: u64,
    violations: Vec<Violation>,
}

impl Judging {
    fn new() -> Self {
        Self {
            judge: WireJudge::new(Loops::Many),
            next_seq: 0,
            violations: Vec::new(),
        }
    }

    fn hear(&mut self, edge: &Edge) {
        let now = edge.elapsed();
        edge.read_records(self.next_seq, |records| {
            for record in records {
                assert!(record.seq >= self.next_seq, "no record is heard twice");
                self.next_seq = record.seq + 1;
                self.violations.extend(self.judge.take(record));
            }
        });
        self.violations.extend(self.judge.pass_time(now));
    }

    fn conclude(mut self, at: Duration, faults: u64) -> Outcome {
        self.violations.extend(self.judge.pass_time(at));
        Outcome {
            violations: self.violations,
            verdict: self.judge.verdict(),
            faults,
        }
    }
}
