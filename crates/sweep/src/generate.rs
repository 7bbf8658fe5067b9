//! Generates random scenarios: the same seed gives the same scenario.
//!
//! The server fails, delays, cuts, expires and compacts; with some seeds it is restored from a backup. The profile
//! *lies* adds scripted contents that differ from the store, followed by an expiry of the affected versions. A client
//! that meets the requirements converges in each scenario, and every invariant that the generator does not excuse
//! holds. A failure is therefore a defect of the client, of the fake, or of the judge. This module neither runs nor
//! judges scenarios.

use std::fmt::{self, Display, Formatter};
use std::path::Path;
use std::sync::Arc;

use fake_apiserver::scenario::{self, SharedScenario, Style};
use serde::{Deserialize, Serialize};

pub use self::client::{Client, Server, Target};
pub use self::step::{Action, Cut, Ending, Lie, Reply, ResponseFault, Step, Times, When};
pub use self::write::{Object, Where, Write};

mod client;
mod draw;
mod faults;
mod made;
pub mod rarity;
mod smaller;
mod sound;
mod step;
mod write;

/// Version of the generator: a seed stands for one scenario per version.
pub const VERSION: u32 = 5;

/// Requirement that a random scenario tests, and why.
const REQUIREMENT: &str = "LIST-01";
const WHY: &str = "A client that keeps the requirements converges, whatever fails.";

/// Which faults the server has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// Failures and restores, but no false contents.
    Honest,
    /// False contents too.
    Lies,
}

impl Profile {
    /// Returns the word on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Honest => "honest",
            Self::Lies => "lies",
        }
    }
}

/// A scenario as data: generated from a seed, printable as a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// Its seed.
    pub seed: u64,
    /// Its profile.
    pub profile: Profile,
    /// Server configuration.
    pub server: Server,
    /// The collection that is read.
    pub target: Target,
    /// Client configuration.
    pub client: Client,
    /// Objects in the store before the client starts.
    pub objects: Vec<Object>,
    /// Steps in order, without the [`conclusion`](Self::conclusion).
    pub steps: Vec<Step>,
    /// The last false content is never corrected: the client may end with any cache.
    pub lies_to_the_end: bool,
}

impl Draft {
    /// Generates the scenario of a seed.
    pub fn of(seed: u64, profile: Profile) -> Self {
        draw::draft(seed, profile)
    }

    /// Returns steps after which the client reads the store again: false contents are not repeated, and the next
    /// watch expires. Derived from the other steps, so that shrinking cannot remove a step that is needed.
    pub fn conclusion(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut step = |when, actions| {
            steps.push(Step {
                when,
                is_optional: false,
                times: Times::Count(1),
                actions,
            });
        };
        // An optional step must be followed by another.
        if self.steps.last().is_some_and(|last| last.is_optional) {
            step(When::After(1_000), vec![Action::Write(Write::Compact)]);
        }
        if self.writes().any(|write| matches!(write, Write::Freeze(_))) {
            step(When::After(1_000), vec![Action::Write(Write::Thaw(None))]);
        }
        if (self.lies() && !self.lies_to_the_end) || self.wrote_after_restore() {
            step(
                When::After(1_000 + self.restarting_ms()),
                vec![Action::Write(Write::ClearWatchCache(None))],
            );
            let expired = ResponseFault::Error("code: 410, reason: Expired");
            step(
                When::NextWatch,
                vec![
                    Action::ResponseFault(expired),
                    Action::ResponseFault(ResponseFault::End(Ending::Eof)),
                ],
            );
        }
        steps
    }

    /// Returns the time for which restarts keep the server from answering watches: a refused watch cannot be sent an ERROR event.
    fn restarting_ms(&self) -> u32 {
        let times = self.writes().map(|write| {
            if let Write::Restart(down_ms, filling_ms, _) = write {
                down_ms + filling_ms
            } else {
                0
            }
        });
        times.sum()
    }

    /// Returns true if the server sends false contents.
    pub fn lies(&self) -> bool {
        self.actions().any(|action| matches!(action, Action::Lie(_)))
    }

    /// Returns all actions except those of the conclusion.
    pub fn actions(&self) -> impl Iterator<Item = &Action> {
        self.steps.iter().flat_map(|step| &step.actions)
    }

    fn writes(&self) -> impl Iterator<Item = &Write> {
        self.actions().filter_map(|action| match action {
            Action::Write(write) => Some(write),
            Action::ResponseFault(_) | Action::Lie(_) => None,
        })
    }

    /// Returns true if versions may be reused after a restore.
    fn wrote_after_restore(&self) -> bool {
        let mut restored = false;
        self.writes().any(|write| {
            let is_restore = matches!(write, Write::Restore(_));
            let wrote = restored && !is_restore;
            restored |= is_restore;
            wrote
        })
    }

    /// Returns the invariants that a correct client may break because of these faults, with reasons.
    fn excused(&self) -> &'static str {
        let reorders = |action: &Action| matches!(action, Action::Lie(Lie::Reorder(_)));
        if self.actions().any(reorders) {
            "{INV-02: a client that trusts the older event resumes from it}"
        } else {
            ""
        }
    }

    /// Parses the draft with the parser for files.
    ///
    /// # Panics
    /// If the draft is not a valid scenario, which is a defect of the generator. The message contains the file and
    /// all errors.
    pub fn load(&self) -> SharedScenario {
        match self.try_load() {
            Ok(scenario) => scenario,
            Err(errors) => panic!("{self}\n{errors}"),
        }
    }

    /// Parses the draft with the parser for files.
    ///
    /// # Errors
    /// If the draft is not a valid scenario: all errors, rendered for a terminal.
    pub fn try_load(&self) -> Result<SharedScenario, String> {
        let (id, path) = self.id();
        scenario::parse(&id, Path::new(&path), &self.to_string())
            .map(Arc::new)
            .map_err(|errors| errors.render(Style::Plain))
    }

    /// Returns the scenario's id and the path of its file.
    fn id(&self) -> (String, String) {
        let id = format!("found/seed-{}", self.seed);
        let path = format!("scenarios/{id}.yaml");
        (id, path)
    }

    /// Returns the size that shrinking reduces: the length of the file, then its text, so that smaller numbers are
    /// smaller.
    pub fn size(&self) -> (usize, String) {
        let text = self.file("", "");
        (text.len(), text)
    }

    /// Returns the last line of the file.
    fn expectation(&self) -> String {
        match (self.lies() && self.lies_to_the_end, self.excused()) {
            // Any cache is allowed; time for forbidden requests and events.
            (true, "") => {
                "expect: {settle: 2m, not_converged: the server never takes its last lie back}".to_owned()
            }
            (true, excused) => format!(
                "expect: {{settle: 2m, not_converged: the server never takes its last lie back, excused: [{excused}]}}"
            ),
            (false, "") => "expect: {within: 6h}".to_owned(),
            (false, excused) => format!("expect: {{within: 6h, excused: [{excused}]}}"),
        }
    }

    /// Returns the default `title:`.
    fn title(&self) -> String {
        format!(
            "Random scenario of seed {}, profile {}",
            self.seed,
            self.profile.word()
        )
    }

    /// Returns the scenario file with this title and reason.
    pub fn file(&self, title: &str, why: &str) -> String {
        let text = |prose: &str| serde_json::Value::from(prose).to_string();
        let mut lines = vec![
            "scenario: v1".to_owned(),
            format!("title: {}", text(title)),
            format!("why: {}", text(why)),
            format!("covers: [{REQUIREMENT}]"),
        ];
        for (key, value) in [
            ("target", self.target.to_string()),
            ("server", self.server.to_string()),
            ("client", self.client.to_string()),
        ] {
            if !value.is_empty() {
                lines.push(format!("{key}: {value}"));
            }
        }
        if !self.objects.is_empty() {
            lines.push("objects:".to_owned());
            lines.extend(self.objects.iter().map(|object| match object.binds {
                Some(name) => format!("  - {{{object}, as: v{name}}}"),
                None => format!("  - {object}"),
            }));
        }
        let conclusion = self.conclusion();
        let mut steps = self.steps.iter().chain(&conclusion).peekable();
        if steps.peek().is_some() {
            lines.push("steps:".to_owned());
            lines.extend(steps.map(|step| format!("  - {step}")));
        }
        lines.push(self.expectation());
        lines.push(String::new());
        lines.join("\n")
    }
}

/// Prints the scenario file.
impl Display for Draft {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file(&self.title(), WHY))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same seed gives the same scenario; another seed or profile gives another.
    #[test]
    fn equal_seeds_give_equal_scenarios() {
        assert_eq!(Draft::of(7, Profile::Honest), Draft::of(7, Profile::Honest));
        let texts = [(7, Profile::Honest), (8, Profile::Honest), (7, Profile::Lies)]
            .map(|(seed, profile)| Draft::of(seed, profile).file("t", "w"));
        assert!(texts[0] != texts[1] && texts[0] != texts[2], "{texts:?}");
    }

    /// Every draft is valid and sound, and its file is parsed to the scenario that is made without it.
    #[test]
    fn every_draft_is_valid_and_sound_and_equals_its_file() {
        for seed in 0..2_000 {
            for profile in [Profile::Honest, Profile::Lies] {
                let draft = Draft::of(seed, profile);
                let (parsed, made) = (made::text(&draft.load()), made::text(&draft.scenario()));
                assert!(parsed == made, "{draft}\nparsed: {parsed}\nmade:   {made}");
                assert_eq!(draft.unsound(), None, "{draft}");
            }
        }
    }

    #[test]
    fn only_the_profile_lies_has_false_contents() {
        let liars = |profile| (0..200).filter(|seed| Draft::of(*seed, profile).lies()).count();
        assert_eq!(liars(Profile::Honest), 0);
        assert!(liars(Profile::Lies) > 100);
    }
}
