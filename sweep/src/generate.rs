//! Random scenarios: a seed in, a scenario out, the same one each time.
//!
//! The server fails, delays, cuts, expires and forgets; of some seeds it is restored from a backup. In the profile *lies* it
//! lies as well, and then expires what the lies were about. A client that keeps the requirements converges in each, and every
//! invariant that the generator does not excuse holds. What flags such a run is a defect of the client, of the fake, or of the
//! judge. Nothing here plays a scenario or knows a verdict.

use std::fmt::{self, Display, Formatter};
use std::path::Path;
use std::sync::Arc;

use fake_apiserver::scenario::{self, SharedScenario, Style};
use serde::{Deserialize, Serialize};

pub use self::client::{Client, Server, Target};
pub use self::step::{Action, Answer, Cut, Ending, Lie, Reply, Step, Times, When};
pub use self::write::{Object, Write};

mod client;
mod draw;
mod faults;
pub mod rarity;
mod smaller;
mod sound;
mod step;
mod write;

/// Version of the generator: a seed is a scenario within one version.
pub const VERSION: u32 = 3;

/// How far the server can be believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// It fails and goes back in time, but never lies.
    Honest,
    /// It lies as well.
    Lies,
}

impl Profile {
    /// The word for it on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Honest => "honest",
            Self::Lies => "lies",
        }
    }
}

/// A scenario as a value: drawn from a seed, printable as a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// The seed it was drawn from.
    pub seed: u64,
    /// The profile it was drawn for.
    pub profile: Profile,
    /// What the server is.
    pub server: Server,
    /// What is read.
    pub target: Target,
    /// What the client is configured with.
    pub client: Client,
    /// In the store before the client starts.
    pub objects: Vec<Object>,
    /// What happens, in order, without the [`conclusion`](Self::conclusion).
    pub steps: Vec<Step>,
    /// The last lie is never taken back: the client may end with any cache.
    pub lies_to_the_end: bool,
}

impl Draft {
    /// Draws the scenario of a seed.
    pub fn of(seed: u64, profile: Profile) -> Self {
        draw::draft(seed, profile)
    }

    /// Steps after which the truth is read again: what was told wrong is not told again, and the next watch is expired. They
    /// follow from the others, so that no shorter draft is without one it needs.
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
        if self.writes().any(|write| matches!(write, Write::Freeze)) {
            step(When::After(1_000), vec![Action::Write(Write::Thaw)]);
        }
        if (self.lies() && !self.lies_to_the_end) || self.wrote_after_restore() {
            step(When::After(1_000), vec![Action::Write(Write::ClearWatchCache)]);
            let expired = Answer::Error("code: 410, reason: Expired");
            step(
                When::NextWatch,
                vec![Action::Answer(expired), Action::Answer(Answer::End(Ending::Eof))],
            );
        }
        steps
    }

    /// Does the server lie?
    pub fn lies(&self) -> bool {
        self.actions().any(|action| matches!(action, Action::Lie(_)))
    }

    /// All actions but those of the conclusion.
    pub fn actions(&self) -> impl Iterator<Item = &Action> {
        self.steps.iter().flat_map(|step| &step.actions)
    }

    fn writes(&self) -> impl Iterator<Item = &Write> {
        self.actions().filter_map(|action| match action {
            Action::Write(write) => Some(write),
            Action::Answer(_) | Action::Lie(_) => None,
        })
    }

    /// Versions may be told that mean something else than before.
    fn wrote_after_restore(&self) -> bool {
        let mut restored = false;
        self.writes().any(|write| {
            let is_restore = matches!(write, Write::Restore(_));
            let wrote = restored && !is_restore;
            restored |= is_restore;
            wrote
        })
    }

    /// The invariants that a right client may break, as the server lies in this way; with reasons.
    fn excused(&self) -> &'static str {
        let reorders = |action: &Action| matches!(action, Action::Lie(Lie::Reorder(_)));
        if self.actions().any(reorders) {
            "{INV-02: a client that trusts the older event resumes from it}"
        } else {
            ""
        }
    }

    /// Returns the scenario, through the same parser as a file.
    ///
    /// # Panics
    /// If the draft is no valid scenario, which is a defect of the generator. The message holds the file and every error.
    pub fn load(&self) -> SharedScenario {
        match self.try_load() {
            Ok(scenario) => scenario,
            Err(errors) => panic!("{self}\n{errors}"),
        }
    }

    /// Returns the scenario, through the same parser as a file.
    ///
    /// # Errors
    /// The draft is no valid scenario: every mistake, drawn for a terminal.
    pub fn try_load(&self) -> Result<SharedScenario, String> {
        let id = format!("found/seed-{}", self.seed);
        let path = format!("scenarios/{id}.yaml");
        scenario::parse(&id, Path::new(&path), &self.to_string())
            .map(Arc::new)
            .map_err(|errors| errors.render(Style::Plain))
    }

    /// What shrinks: the length of the file, then its text, so that smaller numbers are smaller.
    pub fn size(&self) -> (usize, String) {
        let text = self.file("", "");
        (text.len(), text)
    }

    /// What `title:` is, without a failure to name.
    fn title(&self) -> String {
        format!(
            "Random scenario of seed {}, profile {}",
            self.seed,
            self.profile.word()
        )
    }

    /// The scenario file with this title and reason.
    pub fn file(&self, title: &str, why: &str) -> String {
        let text = |prose: &str| serde_json::Value::from(prose).to_string();
        let mut lines = vec![
            "scenario: v1".to_owned(),
            format!("title: {}", text(title)),
            format!("why: {}", text(why)),
            "covers: [LIST-01]".to_owned(),
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
        lines.push(match (self.lies() && self.lies_to_the_end, self.excused()) {
            // The cache may be anything; time for what must not happen.
            (true, "") => "expect: {settle: 2m, not_converged: the server never takes its last lie back}".to_owned(),
            (true, excused) => format!(
                "expect: {{settle: 2m, not_converged: the server never takes its last lie back, excused: [{excused}]}}"
            ),
            (false, "") => "expect: {within: 6h}".to_owned(),
            (false, excused) => format!("expect: {{within: 6h, excused: [{excused}]}}"),
        });
        lines.push(String::new());
        lines.join("\n")
    }
}

/// The scenario file.
impl Display for Draft {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file(
            &self.title(),
            "A client that keeps the requirements converges, whatever fails.",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same seed draws the same scenario, another seed and another profile another.
    #[test]
    fn a_seed_is_a_scenario() {
        assert_eq!(Draft::of(7, Profile::Honest), Draft::of(7, Profile::Honest));
        let texts = [(7, Profile::Honest), (8, Profile::Honest), (7, Profile::Lies)]
            .map(|(seed, profile)| Draft::of(seed, profile).file("t", "w"));
        assert!(texts[0] != texts[1] && texts[0] != texts[2], "{texts:?}");
    }

    #[test]
    fn every_draft_is_valid_and_sound() {
        for seed in 0..2_000 {
            for profile in [Profile::Honest, Profile::Lies] {
                let draft = Draft::of(seed, profile);
                draft.load();
                assert_eq!(draft.unsound(), None, "{draft}");
            }
        }
    }

    #[test]
    fn only_the_profile_lies_lies() {
        let liars = |profile| (0..200).filter(|seed| Draft::of(*seed, profile).lies()).count();
        assert_eq!(liars(Profile::Honest), 0);
        assert!(liars(Profile::Lies) > 100);
    }
}
