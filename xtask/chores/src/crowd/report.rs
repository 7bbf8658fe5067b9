//! Output of `crowd`: a line or a JSON object per program when it ends, its differences from the record, and a summary. It must
//! not decide anything.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;

use e2e::crowd::Program;
use e2e::crowd::record::{Accusation, Difference, Played, Seen};
use e2e::crowd::results::Counts;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};

use super::served::Served;

/// Outcome of a program.
#[derive(Debug)]
pub(super) struct Outcome<'e> {
    pub(super) program: &'e Program,
    /// What it did, or why it could not be run.
    pub(super) seen: Result<(Seen, Option<Served>), String>,
    pub(super) differences: Vec<Difference>,
    /// Number of accusations that are upheld in the record.
    pub(super) upheld: usize,
    pub(super) took: Duration,
}

/// Prints results as programs end.
pub(super) struct Report {
    is_json: bool,
    verbose: bool,
    bar: ProgressBar,
}

impl Report {
    /// `steps`: the number of scenarios and served programs.
    pub(super) fn new(is_json: bool, verbose: bool, steps: usize) -> Self {
        let bar = ProgressBar::with_draw_target(Some(steps as u64), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{wide_bar} {pos} of {len} runs, {elapsed}") {
            bar.set_style(style);
        }
        Self {
            is_json,
            verbose,
            bar,
        }
    }

    /// A scenario, or the plan of a served program, is over.
    pub(super) fn step(&self) {
        self.bar.inc(1);
    }

    /// Prints the outcome of a program.
    pub(super) fn program(&self, outcome: &Outcome<'_>) {
        if self.is_json {
            self.print(&(outcome.json().to_string() + "\n"));
        } else {
            self.print(&outcome.text(self.verbose));
        }
    }

    /// Prints the summary.
    pub(super) fn ends(&self, outcomes: &[Outcome<'_>], runs: &Path) {
        self.bar.finish_and_clear();
        let broken = outcomes.iter().filter(|outcome| outcome.seen.is_err()).count();
        let different = outcomes
            .iter()
            .filter(|outcome| !outcome.differences.is_empty())
            .count();
        let all = outcomes.len();
        if self.is_json {
            let footer = json!({"footer": {
                "programs": all,
                "asRecorded": all - different - broken,
                "different": different,
                "broken": broken,
            }});
            self.print(&format!("{footer}\n"));
            return;
        }
        let mut summary = format!("\n{} of {all} programs as recorded", all - different - broken);
        if different > 0 {
            let _infallible = write!(summary, ", {different} different");
        }
        if broken > 0 {
            let _infallible = write!(summary, ", {broken} not run");
        }
        let _infallible = writeln!(summary, "; output in {}", runs.display());
        self.print(&summary);
    }

    fn print(&self, text: &str) {
        self.bar.suspend(|| {
            let mut out = io::stdout().lock();
            let _closed_pipe = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        });
    }
}

impl Outcome<'_> {
    fn text(&self, verbose: bool) -> String {
        let name = &self.program.name;
        let (seen, served) = match &self.seen {
            Ok((seen, served)) => (seen, served),
            Err(why) => return format!("{name}: not run: {why}\n"),
        };
        let Counts {
            passed,
            accused,
            not_judged,
            not_played,
            reads,
        } = seen.counts();
        let mut text = format!(
            "{name}: {passed} passed, {accused} failed, {not_judged} not judged, {not_played} skipped"
        );
        if let Some(served) = served {
            let _infallible = write!(
                text,
                "; serve: {reads} lists and watches, {} accusations",
                served.accusations.len()
            );
            if !served.ended.is_empty() {
                let _infallible = write!(text, ", ended {} times", served.ended.len());
            }
        }
        let _infallible = writeln!(text, "; {} upheld; {} s", self.upheld, self.took.as_secs());
        for difference in &self.differences {
            let _infallible = writeln!(text, "  {difference}");
        }
        if verbose {
            for (id, played) in &seen.scenarios {
                if let Played::NotJudged(why) = played {
                    let _infallible = writeln!(text, "  not judged: {id}: {why}");
                }
            }
            if let Some(served) = served {
                let _infallible = writeln!(
                    text,
                    "  serve: {} of {} calls of ctl had no effect, because no watch was open",
                    served.without_effect, served.faults
                );
                for ending in &served.ended {
                    let _infallible = writeln!(text, "  serve: the program {ending}, and was started again");
                }
            }
        }
        text
    }

    fn json(&self) -> Value {
        let name = &self.program.name;
        let seconds = self.took.as_secs();
        let (seen, served) = match &self.seen {
            Ok((seen, served)) => (seen, served),
            Err(why) => return json!({"program": name, "seconds": seconds, "error": why}),
        };
        let counts = seen.counts();
        let is_upheld = |accusation: &Accusation| {
            !self
                .differences
                .iter()
                .any(|difference| matches!(difference, Difference::NotUpheld(new) if new == accusation))
        };
        let accusations: Vec<Value> = seen
            .accusations
            .iter()
            .map(|accusation| {
                json!({
                    "scenario": accusation.scenario,
                    "check": accusation.check,
                    "requirements": accusation.requirements,
                    "sentence": accusation.sentence,
                    "upheld": is_upheld(accusation),
                })
            })
            .collect();
        let reasons = |of: &dyn Fn(&Played) -> Option<String>| -> Vec<Value> {
            let reasons = seen.scenarios.iter();
            reasons
                .filter_map(|(id, played)| Some(json!({"scenario": id, "reason": of(played)?})))
                .collect()
        };
        json!({
            "program": name,
            "library": self.program.library,
            "passed": counts.passed,
            "failed": counts.accused,
            "notJudged": reasons(&|played| match played {
                Played::NotJudged(why) => Some(why.clone()),
                Played::Passed | Played::Failed | Played::NotPlayed(_) => None,
            }),
            "notPlayed": reasons(&|played| match played {
                Played::NotPlayed(why) => Some(why.clone()),
                Played::Passed | Played::Failed | Played::NotJudged(_) => None,
            }),
            "serve": served.as_ref().map(|served| json!({
                "reads": served.reads,
                "faults": served.faults,
                "withoutEffect": served.without_effect,
                "ended": served.ended,
            })),
            "accusations": accusations,
            "differences": self.differences.iter().map(ToString::to_string).collect::<Vec<String>>(),
            "seconds": seconds,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use e2e::crowd::Kind;

    use super::*;

    fn program() -> Program {
        Program {
            name: "informer".to_owned(),
            title: "an informer".to_owned(),
            library: "client-go v0.37.0".to_owned(),
            known_as: None,
            source: "https://example.com".to_owned(),
            kind: Kind::Minimal,
            run: vec!["informer".to_owned()],
            options: Vec::new(),
            gate: true,
        }
    }

    fn accusation() -> Accusation {
        Accusation {
            scenario: "gone/expired".to_owned(),
            check: "INV-04".to_owned(),
            requirements: vec!["GONE-01".to_owned()],
            sentence: "the client watches again".to_owned(),
        }
    }

    fn outcome<'p>(program: &'p Program, differences: Vec<Difference>) -> Outcome<'p> {
        let scenarios = [
            ("gone/expired", Played::Failed),
            ("gone/silent", Played::NotJudged("time is up".to_owned())),
        ];
        let seen = Seen {
            scenarios: BTreeMap::from(scenarios.map(|(id, played)| (id.to_owned(), played))),
            reads: Some(7),
            accusations: vec![accusation()],
            ..Seen::default()
        };
        let served = Served {
            reads: 7,
            accusations: Vec::new(),
            faults: 9,
            without_effect: 2,
            ended: vec!["exited with code 1".to_owned()],
        };
        Outcome {
            program,
            seen: Ok((seen, Some(served))),
            differences,
            upheld: 0,
            took: Duration::from_millis(61_500),
        }
    }

    #[test]
    fn a_program_is_a_line_and_its_differences() {
        let program = program();
        let outcome = outcome(&program, vec![Difference::NotUpheld(accusation())]);
        assert_eq!(
            outcome.text(false),
            "informer: 0 passed, 1 failed, 1 not judged, 0 skipped; serve: 7 lists and watches, 0 accusations, ended 1 \
             times; 0 upheld; 61 s\n  not upheld: gone/expired INV-04 GONE-01: the client watches again\n"
        );
        let verbose = outcome.text(true);
        assert!(
            verbose.contains("  not judged: gone/silent: time is up\n"),
            "{verbose}"
        );
        assert!(verbose.contains("the program exited with code 1"), "{verbose}");
    }

    #[test]
    fn json_has_each_accusation_and_whether_it_is_upheld() {
        let program = program();
        let new = outcome(&program, vec![Difference::NotUpheld(accusation())]).json();
        assert_eq!(new["accusations"][0]["upheld"], false);
        assert_eq!(new["notJudged"][0]["scenario"], "gone/silent");
        assert_eq!(
            outcome(&program, Vec::new()).json()["accusations"][0]["upheld"],
            true
        );
        let broken = Outcome {
            seen: Err("no".to_owned()),
            ..outcome(&program, Vec::new())
        };
        assert_eq!(broken.json()["error"], "no");
        assert_eq!(broken.text(false), "informer: not run: no\n");
    }
}
