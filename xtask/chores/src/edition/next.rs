//! The page on the next edition: how what would be frozen today differs from the newest edition. It must not read files.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use fake_apiserver::scenario::catalogue;
use fake_apiserver::scenario::edition::{Edition, Scored};
use fake_apiserver::scenario::errata::Errata;

/// Errata of a requirement whose scenarios went to a part of it say this before the id of that part.
const SPLIT: &str = "the requirement was split, and the scenario shows ";

/// Returns the name of the edition after this one: `2026.2` after `2026.1`.
pub(super) fn name(after: &str) -> String {
    let (year, number) = after.split_once('.').unwrap_or((after, "0"));
    let number: u32 = number.parse().unwrap_or_default();
    format!("{year}.{}", number + 1)
}

/// Returns the page: what the next edition changes over the newest one, and why.
pub(super) fn page(newest: &Edition, next: &Edition, errata: &Errata) -> String {
    let (was, is) = (&newest.name, &next.name);
    let mut text = format!(
        "# What edition {is} will change\n\n\
         Edition {is} is not frozen: this page compares {was} with the catalogue and the scenarios as they are now. Written by\n\
         `cargo xtask edition --page`. Until it is frozen, a client that pins {was} is scored by that list and\n\
         [its errata](withdrawn.md), and sees what is new as `not scored` ([editions](conformance.md#editions)).\n\n\
         | | {was} | {is} |\n|---|---|---|\n"
    );
    let counted = |edition: &Edition| edition.requirements.len();
    let scenarios = |edition: &Edition| {
        let all = edition.requirements.values().flat_map(|scored| &scored.scenarios);
        all.collect::<BTreeSet<_>>().len()
    };
    // Writing to a String cannot fail.
    let _ = writeln!(text, "| requirements | {} | {} |", counted(newest), counted(next));
    let _ = writeln!(
        text,
        "| scenarios | {} | {} |",
        scenarios(newest),
        scenarios(next)
    );

    text.push_str("\n## New requirements\n\n| id | level | requirement | why |\n|---|---|---|---|\n");
    for (id, scored) in next
        .requirements
        .iter()
        .filter(|(id, _)| !newest.requirements.contains_key(*id))
    {
        let Some(requirement) = catalogue::requirement(id) else {
            continue;
        };
        let from: BTreeSet<&str> = errata
            .withdrawn
            .iter()
            .filter(|one| one.reason.strip_prefix(SPLIT) == Some(id))
            .map(|one| one.requirement.as_str())
            .collect();
        let why = match from.is_empty() {
            true => requirement.consequence.word().to_owned(),
            false => format!("split from {}", from.into_iter().collect::<Vec<_>>().join(", ")),
        };
        let _ = writeln!(
            text,
            "| {id} | {} | {} | {why} |",
            scored.level.word(),
            requirement.text
        );
    }

    text.push_str("\n## Other levels\n\n| id | was | will be | why |\n|---|---|---|---|\n");
    for (id, scored, before) in both(newest, next).filter(|(_, scored, before)| scored.level != before.level)
    {
        let why = match errata.lowered.get(id) {
            Some(lowered) => lowered.reason.as_str(),
            None => "its level rule in the catalogue",
        };
        let _ = writeln!(
            text,
            "| {id} | {} | {} | {why} |",
            before.level.word(),
            scored.level.word()
        );
    }

    let mut gone = String::new();
    for (id, before) in newest
        .requirements
        .iter()
        .filter(|(id, _)| !next.requirements.contains_key(*id))
    {
        let why = match (
            errata.lowered.get(id),
            errata.withdrawn.iter().find(|one| one.requirement == *id),
        ) {
            (Some(lowered), _) => lowered.reason.as_str(),
            (None, Some(withdrawn)) => withdrawn.reason.as_str(),
            (None, None) => "no scenario shows it",
        };
        let _ = writeln!(gone, "| {id} | {} | {why} |", before.level.word());
    }

    if !gone.is_empty() {
        let _ = write!(
            text,
            "\n## No longer counted\n\n| id | was | why |\n|---|---|---|\n{gone}"
        );
    }

    text.push_str(
        "\n## Further scenarios\n\nRequirements of the edition that other scenarios show too. Scenarios that no longer show one are in\n\
         [withdrawn.md](withdrawn.md).\n\n| id | scenarios |\n|---|---|\n",
    );
    for (id, scored, before) in both(newest, next) {
        let added: Vec<String> = scored
            .scenarios
            .difference(&before.scenarios)
            .map(|scenario| format!("[{scenario}](../scenarios/{scenario}.yaml)"))
            .collect();
        if !added.is_empty() {
            let _ = writeln!(text, "| {id} | {} |", added.join(", "));
        }
    }
    text
}

/// Returns the requirements that both editions have, with what the next and the newest one say of each.
fn both<'e>(
    newest: &'e Edition,
    next: &'e Edition,
) -> impl Iterator<Item = (&'e str, &'e Scored, &'e Scored)> {
    let requirements = next.requirements.iter();
    requirements.filter_map(|(id, scored)| Some((id.as_str(), scored, newest.requirements.get(id)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_names_what_is_new_lowered_or_gone() {
        let edition = |name: &str, requirements: &str| {
            Edition::parse(&format!("edition: \"{name}\"\nrequirements:\n{requirements}")).unwrap()
        };
        let newest = edition(
            "2026.1",
            "  LIST-01: {level: MUST, scenarios: [a/b]}\n  LIST-09: {level: MUST, scenarios: [a/b]}\n  GONE-01: {level: MUST, scenarios: [a/c]}\n",
        );
        let next = edition(
            &name("2026.1"),
            "  LIST-01: {level: SHOULD, scenarios: [a/b, a/d]}\n  GONE-01: {level: MUST, scenarios: [a/c]}\n  LIST-11: {level: SHOULD, scenarios: [a/e]}\n",
        );
        let errata = Errata::parse(
            "withdrawn:\n  - requirement: LIST-09\n    scenarios: [a/b]\n    date: \"2026-11-27\"\n    reason: \"the requirement was split, and the scenario shows LIST-11\"\nlowered:\n  LIST-01: {to: SHOULD, date: \"2026-11-27\", reason: \"no document requires it\"}\n",
        )
        .unwrap();
        let page = page(&newest, &next, &errata);
        for line in [
            "# What edition 2026.2 will change",
            "| requirements | 3 | 3 |",
            "| scenarios | 2 | 4 |",
            "| LIST-11 | SHOULD |",
            "| split from LIST-09 |",
            "| LIST-01 | MUST | SHOULD | no document requires it |",
            "| LIST-09 | MUST | the requirement was split, and the scenario shows LIST-11 |",
            "| LIST-01 | [a/d](../scenarios/a/d.yaml) |",
        ] {
            assert!(page.contains(line), "{line}: {page}");
        }
        assert!(!page.contains("| GONE-01"), "{page}");
    }
}
