//! The requirements of a caching client, counted by what the scenarios say of them, for people.

use std::fmt::Write;

use fake_apiserver::scenario::catalogue::Level;

use crate::coverage::{Covered, Said};

/// A row for MUST and one for SHOULD, then those that no scenario shows kept, by name.
pub fn table(covered: &[Covered<'_>]) -> String {
    let mut text = String::from("requirements  kept  elsewhere  broken  undecided\n");
    for level in [Level::Must, Level::Should] {
        let count = |is: fn(&Said<'_>) -> bool| {
            let of_level = covered.iter().filter(|one| one.requirement.level == level);
            match of_level.filter(|one| is(&one.said)).count() {
                0 => "·".to_owned(),
                number => number.to_string(),
            }
        };
        let _infallible = writeln!(
            text,
            "{:<12}  {:>4}  {:>9}  {:>6}  {:>9}",
            level.word(),
            count(|said| *said == Said::Kept),
            count(|said| matches!(said, Said::Shown(..) | Said::NotConcerned(..))),
            count(|said| matches!(said, Said::Broken(_))),
            count(|said| matches!(said, Said::Undecided(_) | Said::Nothing)),
        );
    }
    for one in covered {
        let id = &one.requirement.id;
        let _infallible = match &one.said {
            Said::Kept => Ok(()),
            Said::Shown(file, word) => writeln!(text, "elsewhere {id}: {word} in {file}"),
            Said::NotConcerned(name, value) => {
                writeln!(
                    text,
                    "elsewhere {id}: the client sent no list with {name}={value}"
                )
            }
            Said::Broken(by) => writeln!(text, "broken    {id}: {}", by.join(", ")),
            Said::Undecided(why) => writeln!(text, "undecided {id}: {why}"),
            Said::Nothing => writeln!(text, "undecided {id}: no scenario covers it"),
        };
    }
    text
}
