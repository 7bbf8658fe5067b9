//! What the JUnit XML of `run` and `conformance` have in common. It must not know how their tests are judged.

use std::io;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use crate::Failure;

/// Returns a report of one suite, with a failed test case for each known failure of `stale` that is none.
///
/// # Errors
///
/// It cannot be written as XML.
pub(crate) fn xml(mut suite: TestSuite, stale: &[String]) -> Result<String, Failure> {
    for entry in stale {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
        status.set_type("stale").set_message(entry.as_str());
        suite.add_test_case(TestCase::new(entry.as_str(), status));
    }
    let mut report = Report::new(suite.name.to_string());
    report.add_test_suite(suite);
    report
        .to_string()
        .map_err(|error| Failure::System("no JUnit report".to_owned(), io::Error::other(error)))
}
