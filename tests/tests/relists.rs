//! A client that relists after every watch breaks one SHOULD, WATCH-02, and meets every MUST: it fails the scenarios
//! that cover WATCH-02, and no others.

use conformance::baseline::Baseline;
use conformance::suite::{self, Driver, Plan};
use tests::reference::{Mistake, Reference};
use tests::{parallel, repository};

#[test]
fn a_client_that_always_relists_breaks_nothing_but_watch_02() {
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
    let (mut failed, mut accused) = (0, Vec::new());
    for judged in judged.iter().filter(|judged| !judged.verdict.passed()) {
        failed += 1;
        for found in &judged.verdict.contradictions {
            if found.requirements != ["WATCH-02"] {
                let (id, check) = (&judged.scenario.id, &found.check);
                accused.push(format!(
                    "{id}: {check} {:?}: {}",
                    found.requirements, found.sentence
                ));
            }
        }
    }
    assert!(accused.is_empty(), "\n{}", accused.join("\n"));
    assert!(failed > 0, "no scenario shows that it relists");
}
