//! A failure at both widths, and the summary.

use std::sync::Arc;

use judge::trace::sample::{Sample, scenario};
use rstest::rstest;

use super::*;
use crate::suite::Driver;

fn failed() -> Judged {
    let mut s = Sample::new();
    s.wrote("a", "5")
        .list(&[])
        .page("10", "", &[("a", "5")])
        .emit_init(&[("a", "5")]);
    s.watch("5");
    let records = s.complete();
    let scenario = Arc::new(scenario());
    let verdict = judge::judge(&scenario, &records);
    Judged {
        scenario,
        client: "watcher",
        version: "0.1.0",
        driver: Driver::Sim,
        seed: 7,
        records,
        verdict,
        standing: Standing::Failed,
        known: None,
    }
}

#[test]
fn a_failure_side_by_side() {
    insta::assert_snapshot!(failure(&failed(), Style { colour: false, columns: 112 }), @r#"
    ✘ FAIL sample/hand-written   watcher 0.1.0   mismatch
      claim  A sample
      INV-01 LIST-02   scenarios/sample/hand-written.yaml
        expected                                             actual
        WATCH resourceVersion=10                             WATCH resourceVersion=5
      why    the client watched from 5 at 0.000s, the version of a@5, an item of a list and not the list's own; it
             could resume only from 10
      rerun  cargo xtask scenarios --client watcher --driver sim --seed 7 sample/hand-written
      look   cargo xtask scenarios --client watcher --driver sim --seed 7 --show sample/hand-written
    "#);
}

#[test]
fn a_failure_stacked() {
    insta::assert_snapshot!(failure(&failed(), Style { colour: false, columns: 80 }), @r#"
    ✘ FAIL sample/hand-written   watcher 0.1.0   mismatch
      claim  A sample
      INV-01 LIST-02   scenarios/sample/hand-written.yaml
        expected WATCH resourceVersion=10
        actual   WATCH resourceVersion=5
      why    the client watched from 5 at 0.000s, the version of a@5, an item of a
             list and not the list's own; it could resume only from 10
      rerun  cargo xtask scenarios --client watcher --driver sim --seed 7 sample/hand-written
      look   cargo xtask scenarios --client watcher --driver sim --seed 7 --show sample/hand-written
    "#);
}

#[rstest]
#[case::of_the_repository("scenarios/sample/hand-written.yaml", "sample/hand-written")]
#[case::from_its_root("./scenarios/sample/hand-written.yaml", "sample/hand-written")]
#[case::elsewhere("/tmp/x/hand-written.yaml", "/tmp/x/hand-written.yaml")]
#[case::another_scenarios_folder(
    "/tmp/scenarios/sample/hand-written.yaml",
    "/tmp/scenarios/sample/hand-written.yaml"
)]
#[case::relative("./mine/hand-written.yaml", "./mine/hand-written.yaml")]
#[case::spaces("/tmp/my files/it's.yaml", r"'/tmp/my files/it'\''s.yaml'")]
fn commands_name_a_file_that_can_be_run(#[case] path: &str, #[case] argument: &str) {
    let mut judged = failed();
    let scenario = Arc::make_mut(&mut judged.scenario);
    scenario.path = path.into();
    let text = failure(
        &judged,
        Style {
            colour: false,
            columns: 200,
        },
    );
    for command in [
        format!("--seed 7 {argument}\n"),
        format!("--seed 7 --show {argument}\n"),
    ] {
        assert!(text.contains(&command), "{command}{text}");
    }
}

#[test]
fn the_summary_is_a_table() {
    insta::assert_snapshot!(summary(&[failed()], Style { colour: false, columns: 80 }), @r#"
    group   passed  failed  known  stale
    sample       ·       1      ·      ·
    "#);
}

#[test]
fn long_words_are_broken() {
    assert_eq!(wrap("ab cdefgh i", 4), ["ab", "cdef", "gh i"]);
}
