//! A server that runs until interrupted, as `serve`, `play` and `proxy` have it: introduced, logged, judged. It must not know what the
//! server serves.

use fake_apiserver::record::Record;

use crate::judging::{Commentator, Judge, JudgeArguments, conclude};
use crate::stage::{self, Announce, Running, Stage};
use crate::stop::Stop;
use crate::{Failure, output};

/// How a server is introduced and logged.
pub(crate) struct Session {
    /// How to print where the server is.
    pub(crate) announce: Announce,
    /// A line to log after that.
    pub(crate) introduction: Option<String>,
    /// Whether the end of standard input is a request to stop.
    pub(crate) exit_with_stdin: bool,
    /// Whether to log every record instead of violations only.
    pub(crate) shows_all: bool,
    /// Number of the first record to log.
    pub(crate) shown_from: u64,
    /// What becomes of the verdict.
    pub(crate) judging: JudgeArguments,
}

impl Session {
    /// Serves until a stop is requested, and prints the verdict.
    ///
    /// # Errors
    ///
    /// The server cannot be served or is broken, or as [`conclude`].
    pub(crate) async fn hold(self, stage: Stage, judge: Judge, stop: &Stop) -> Result<(), Failure> {
        let commentator = Commentator {
            judge: judge.clone(),
            shows_all: self.shows_all,
        };
        let of_stdin = self.exit_with_stdin.then(|| stop.or_end_of_stdin());
        let stop = of_stdin.as_ref().unwrap_or(stop);
        let mut running = Running::open(stage, judge.clone()).await?;
        running.introduce(stop, self.announce).await?;
        self.introduction.iter().for_each(|line| output::log(line));
        let hear = |now, records: &[Record]| commentator.hear(now, records);
        running.serve(self.shown_from, stop.requested(), hear).await;
        stage::unbroken(&running.edge)?;
        drop(running);
        conclude(&judge.verdict(), &self.judging, stop).await
    }
}
