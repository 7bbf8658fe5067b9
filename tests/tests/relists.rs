//! A client that lists again after every watch, however it ended, breaks one SHOULD, WATCH-02, and keeps every MUST: it
//! fails scenarios that cover WATCH-02, and no others.

use std::fmt::Write as _;

use conformance::baseline::Baseline;
use conformance::suite::{self, Driver, Plan};
use tests::reference::{Mistake, Reference};
use tests::{parallel, repository};

#[test]
fn a_client_that_always_relists_fails_watch_02_alone() {
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
    let (mut failed, mut wrong) = (String::new(), String::new());
    for judged in judged.iter().filter(|judged| !judged.verdict.passed()) {
        let scenario = &judged.scenario;
        if scenario.covers.iter().any(|covered| covered.id == "WATCH-02") {
            writeln!(failed, "{}", scenario.id).unwrap();
            continue;
        }
        for found in &judged.verdict.contradictions {
            writeln!(wrong, "{}: {}: {}", scenario.id, found.check, found.sentence).unwrap();
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
    insta::assert_snapshot!("failed", failed);
}
