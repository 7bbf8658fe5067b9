//! Every known defect of kube-runtime is shown, our watcher has none of them, and the generated page is current.

use tests::{defects, repository};

#[test]
fn the_list_is_true_and_the_page_is_current() {
    let seen = defects::see();
    assert_eq!(defects::wrong(&seen), Vec::<String>::new());
    let written = std::fs::read_to_string(repository::root().join(defects::PAGE)).unwrap_or_default();
    if defects::page(&seen) != written {
        panic!(
            "{} is not current: cargo xtask defects --write-docs",
            defects::PAGE
        );
    }
}

/// B1 to B30 in order, then those of older versions.
#[test]
fn the_list_is_complete() {
    let ids: Vec<String> = defects::listed().into_iter().map(|defect| defect.id).collect();
    let current = (1..=30).map(|number| format!("B{number}"));
    let older = ('a'..='h').map(|letter| format!("S0-{letter}"));
    let oldest = ('a'..='e').map(|letter| format!("S1-{letter}"));
    assert_eq!(ids, current.chain(older).chain(oldest).collect::<Vec<_>>());
}
