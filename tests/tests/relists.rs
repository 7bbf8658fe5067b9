//! A client that lists again after every watch, however it ended, breaks one SHOULD, WATCH-02, and keeps every MUST: it
//! should fail scenarios that cover WATCH-02, and no others. The snapshot names those that still demand a resume without
//! covering it: that part may shrink and must not grow.

use std::fmt::Write as _;

use conformance::baseline::Baseline;
use conformance::suite::{self, Driver, Plan};
use tests::reference::{Mistake, Reference};
use tests::{parallel, repository};

#[test]
fn what_a_client_that_always_relists_fails_is_known() {
    let plan = Plan {
        driver: Driver::Sim,
        seed: 0,
        jobs: 1,
    };
    let client = Reference {
        mistake: Some(Mistake::ListsAfterEveryEnd),
    };
    let judged = parallel::map(&repository::scenarios(), |scenario| {
        suite::one(scenario, &client, plan, &Baseline::default())
    });
    let mut failed = String::new();
    for judged in judged.iter().filter(|judged| !judged.verdict.passed()) {
        let scenario = &judged.scenario;
        let covers = scenario.covers.iter().any(|covered| covered.id == "WATCH-02");
        let word = if covers {
            "covers WATCH-02"
        } else {
            "demands a resume"
        };
        writeln!(failed, "{word}: {}", scenario.id).unwrap();
    }
    insta::assert_snapshot!("failed", failed);
}
