//! Results as JUnit XML, for continuous integration.

use conformance::adapter::message::Hello;
use conformance::adapter::outcome::Outcome;
use conformance::adapter::standing::Standing;
use conformance::adapter::tested::Tested;
use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestRerun, TestSuite};

use crate::{Failure, junit};

/// Returns the report: one suite, with a test case for each test and for each stale entry.
pub(super) fn xml(tests: &[Tested], hello: &Hello, stale: &[String]) -> Result<String, Failure> {
    let client = format!("{} {}", hello.client.name, hello.client.version);
    let mut suite = TestSuite::new(client.as_str());
    for test in tests {
        let (group, name) = test
            .scenario
            .id
            .rsplit_once('/')
            .unwrap_or(("", &test.scenario.id));
        let mut case = TestCase::new(name, status(test));
        case.set_classname(group)
            .set_time(test.attempts.iter().map(|attempt| attempt.took).sum());
        if test.standing == Standing::Warned {
            case.set_system_out(format!("warning: {}", test.reported().why));
        }
        suite.add_test_case(case);
    }
    junit::xml(suite, stale)
}

fn status(test: &Tested) -> TestCaseStatus {
    let reported = test.reported();
    let failed = |kind: NonSuccessKind| {
        let mut status = TestCaseStatus::non_success(kind);
        status
            .set_type(reported.outcome.word())
            .set_message(reported.why.as_str());
        if let Some(verdict) = &reported.verdict {
            let found = verdict.contradictions.iter();
            let all: Vec<String> = found
                .map(|found| format!("{}: {}", found.check, found.sentence))
                .collect();
            status.set_description(all.join("\n"));
        }
        status
    };
    match test.standing {
        Standing::Passed | Standing::Warned => TestCaseStatus::success(),
        Standing::NotScored if reported.outcome == Outcome::Pass => TestCaseStatus::success(),
        Standing::Known | Standing::NotJudged | Standing::NotScored => {
            let mut status = TestCaseStatus::skipped();
            let known = test.known.as_ref().filter(|_| test.standing == Standing::Known);
            status.set_type(reported.outcome.word()).set_message(match known {
                Some(known) => format!("known failure: {} ({})", known.reason, known.issue),
                None if test.standing == Standing::NotScored => format!("not scored: {}", reported.why),
                None => reported.why.clone(),
            });
            status
        }
        Standing::Failed => failed(NonSuccessKind::Failure),
        Standing::AdapterError | Standing::HarnessError => failed(NonSuccessKind::Error),
        Standing::Flaky => {
            let mut status = failed(NonSuccessKind::Failure);
            for attempt in &test.attempts {
                let mut rerun = TestRerun::new(NonSuccessKind::Failure);
                rerun
                    .set_type(attempt.outcome.word())
                    .set_message(attempt.why.as_str());
                status.add_rerun(rerun);
            }
            status.set_type(Standing::Flaky.word());
            status
        }
        Standing::Stale => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status
                .set_type(Standing::Stale.word())
                .set_message("it passes, and a failure is known: remove the entry");
            status
        }
    }
}
