//! Formats a failure as a scenario file: its name and text. Writes nothing.

use conformance::invariants::INVARIANTS;

use crate::cause::Cause;
use crate::generate::{self, Draft};
use crate::shrink::Shrunk;

/// Scenario file of a shrunk failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// File name without a folder.
    pub name: String,
    /// File content.
    pub text: String,
}

/// Returns the file for the shrunk failure of `draft`. `folder`: its future location, for the command that replays
/// it.
pub fn file(cause: &Cause, draft: &Draft, shrunk: &Shrunk, client: &str, folder: &str) -> File {
    let check = cause.check();
    let statement = INVARIANTS
        .iter()
        .find(|invariant| check.ends_with(invariant.id))
        .map_or("The scenario is played to its end", |invariant| {
            invariant.statement
        });
    let name = format!(
        "{}-{}-seed-{}.yaml",
        kebab(check),
        draft.profile.word(),
        draft.seed
    );
    let title = format!("{} (random seed {})", capital(statement), draft.seed);
    let why = format!("Found by a random scenario. {cause}");
    let text = format!(
        "# yaml-language-server: $schema=../../schema/scenario.v1.json\n\
         # Seed {} of profile {}, generator {}, client {client}; shrunk in {} plays.\n\
         # Replay: cargo xtask sweep replay {folder}/{name} --client {client} --seed {}\n{}",
        draft.seed,
        draft.profile.word(),
        generate::VERSION,
        shrunk.plays,
        shrunk.seed,
        shrunk.draft.file(&title, &why)
    );
    File { name, text }
}

/// Converts `wire INV-04` to `wire-inv-04`.
fn kebab(text: &str) -> String {
    let words: Vec<String> = text
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_ascii_lowercase)
        .collect();
    words.join("-")
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::Profile;

    #[test]
    fn a_file_contains_its_check_and_seed_and_is_valid() {
        let draft = Draft::of(5, Profile::Honest);
        let shrunk = Shrunk {
            draft: draft.clone(),
            seed: 0,
            plays: 7,
        };
        let cause = Cause::of("wire INV-04", "the client watched \"again\": 7");
        let file = file(&cause, &draft, &shrunk, "watcher", "scenarios/found");
        assert_eq!(file.name, "wire-inv-04-honest-seed-5.yaml");
        assert!(file.text.contains(
            "sweep replay scenarios/found/wire-inv-04-honest-seed-5.yaml --client watcher --seed 0"
        ));
        let path = std::path::Path::new("scenarios/found/wire-inv-04-honest-seed-5.yaml");
        let parsed = fake_apiserver::scenario::parse("found/wire-inv-04-honest-seed-5", path, &file.text);
        assert!(parsed.is_ok(), "{}", file.text);
    }
}
