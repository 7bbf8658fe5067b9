//! Requirements of a caching client, counted by compliance, as text.

use std::fmt::Write;

use fake_apiserver::scenario::catalogue::Level;

use crate::coverage::{Compliance, Coverage};

/// Returns a row for MUST and one for SHOULD, then a line for each requirement that is not kept in a scenario.
pub fn table(covered: &[Coverage<'_>]) -> String {
    let mut text = String::from("requirements  kept  elsewhere  broken  undecided\n");
    for level in [Level::Must, Level::Should] {
        let count = |is: fn(&Compliance<'_>) -> bool| {
            let of_level = covered.iter().filter(|one| one.requirement.level == level);
            match of_level.filter(|one| is(&one.compliance)).count() {
                0 => "·".to_owned(),
                number => number.to_string(),
            }
        };
        let _infallible = writeln!(
            text,
            "{:<12}  {:>4}  {:>9}  {:>6}  {:>9}",
            level.word(),
            count(|compliance| *compliance == Compliance::Kept),
            count(|compliance| matches!(compliance, Compliance::Shown(..) | Compliance::NotConcerned(..))),
            count(|compliance| matches!(compliance, Compliance::Broken(_))),
            count(|compliance| matches!(compliance, Compliance::Undecided(_) | Compliance::Nothing)),
        );
    }
    for one in covered {
        let id = &one.requirement.id;
        let _infallible = match &one.compliance {
            Compliance::Kept => Ok(()),
            Compliance::Shown(file, word) => writeln!(text, "elsewhere {id}: {word} in {file}"),
            Compliance::NotConcerned(name, value) => {
                writeln!(
                    text,
                    "elsewhere {id}: the client sent no list with {name}={value}"
                )
            }
            Compliance::Broken(by) => writeln!(text, "broken    {id}: {}", by.join(", ")),
            Compliance::Undecided(why) => writeln!(text, "undecided {id}: {why}"),
            Compliance::Nothing => writeln!(text, "undecided {id}: no scenario covers it"),
        };
    }
    text
}
