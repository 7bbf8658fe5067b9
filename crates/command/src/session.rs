//! A server that runs until interrupted, as `serve`, `play` and `proxy` have it: introduced, logged, judged. It must not know what the
//! server serves.

use fake_apiserver::record::Record;

use crate::judging::{Commentator, Judge, JudgeArguments, conclude};
use crate::recorder::Recorder;
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
    /// What records it.
    pub(crate) recorder: Option<Recorder>,
}

impl Session {
    /// Serves until a stop is requested, and prints the verdict.
    ///
    /// # Errors
    ///
    /// The server cannot be served or is broken, its recording is not complete, or as [`conclude`].
    pub(crate) async fn hold(mut self, stage: Stage, judge: Judge, stop: &Stop) -> Result<(), Failure> {
        let commentator = Commentator {
            judge: judge.clone(),
            shows_all: self.shows_all,
        };
        let of_stdin = self.exit_with_stdin.then(|| stop.or_end_of_stdin());
        let stop = of_stdin.as_ref().unwrap_or(stop);
        let mut running = Running::open(stage, judge.clone()).await?;
        running.introduce(stop, self.announce).await?;
        self.introduction.iter().for_each(|line| output::log(line));
        let (shown_from, recorder) = (self.shown_from, &mut self.recorder);
        // A recording has the initial objects, too.
        let from = if recorder.is_some() { 0 } else { shown_from };
        let hear = |now, records: &[Record]| {
            let shown = records.partition_point(|record| record.seq < shown_from);
            let violations = commentator.hear(now, &records[shown..]);
            if let Some(recorder) = recorder {
                recorder.hear(records, violations > 0);
            }
        };
        running.serve(from, stop.requested(), hear).await;
        let unbroken = stage::unbroken(&running.edge);
        drop(running);
        let recorded = self
            .recorder
            .map_or(Ok(()), |recorder| recorder.finish(unbroken.is_err()));
        unbroken?;
        conclude(&judge.verdict(), &self.judging, stop).await?;
        recorded
    }
}
