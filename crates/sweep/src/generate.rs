//! Generates random scenarios: the same seed gives the same scenario.
//!
//! The server fails, delays, cuts, expires and compacts; with some seeds it is restored from a backup. The profile
//! *lies* adds scripted contents that differ from the store, followed by an expiry of the affected versions. A client
//! that meets the requirements converges in each scenario, and every invariant that the generator does not excuse
//! holds. A failure is therefore a defect of the client, of the fake, or of the judge. This module neither runs nor
//! judges scenarios.

use std::fmt::{self, Display, Formatter};
use std::path::Path;

use fake_apiserver::fault::Ending;
use fake_apiserver::scenario::raw::{
    ActionKey, ActionKeys, At, Client, Duration, Entries, Expectations, File, First, LanguageVersion, Object,
    OneOrMany, OrNothing, Server, ShortObject, StatusKeys, StepKeys, Target, When, WordOr,
};
use fake_apiserver::scenario::{self, LoadErrors, Scenario, Style};
use serde::{Deserialize, Serialize};

use self::names::Trigger;

mod draw;
mod faults;
pub mod names;
pub mod rarity;
mod smaller;
mod sound;

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

/// The parts of a scenario file that are generated from a seed, and that shrinking makes smaller.
#[derive(Debug, Clone, PartialEq)]
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
    pub objects: Vec<At<Object>>,
    /// Steps in order, without the [`conclusion`](Self::conclusion).
    pub steps: Vec<StepKeys>,
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
    pub fn conclusion(&self) -> Vec<StepKeys> {
        let mut steps = Vec::new();
        // An optional step must be followed by another.
        if self.steps.last().is_some_and(|last| last.optional.is_some()) {
            steps.push(step(draw::after(1_000), [ActionKey::Compact(().into())]));
        }
        if self.words().any(|word| word == "freeze_watch_cache") {
            let thaw = ActionKey::ThawWatchCache(OrNothing(None).into());
            steps.push(step(draw::after(1_000), [thaw]));
        }
        if (self.lies() && !self.lies_to_the_end) || self.wrote_after_restore() {
            let clear = ActionKey::ClearWatchCache(OrNothing(None).into());
            steps.push(step(draw::after(1_000 + self.restarting_ms()), [clear]));
            steps.push(expired("Expired"));
        }
        steps
    }

    /// Returns the time for which restarts keep the server from answering watches: a refused watch cannot be sent an ERROR event.
    fn restarting_ms(&self) -> u64 {
        let times = self.actions().filter_map(ActionKeys::key).map(|key| {
            let ActionKey::Restart(restart) = key else {
                return 0;
            };
            let times = restart
                .value
                .0
                .iter()
                .flat_map(|restart| [&restart.down, &restart.filling]);
            times.flatten().filter_map(|time| time.value.as_ms()).sum()
        });
        times.sum()
    }

    /// Returns true if the server sends false contents.
    pub fn lies(&self) -> bool {
        let mut keys = self.actions().filter_map(ActionKeys::key);
        keys.any(|key| names::lie(key).is_some())
    }

    /// Returns all actions except those of the conclusion.
    pub fn actions(&self) -> impl Iterator<Item = &ActionKeys> {
        self.steps.iter().flat_map(StepKeys::items)
    }

    fn words(&self) -> impl Iterator<Item = &'static str> {
        self.actions().filter_map(ActionKeys::key).map(ActionKey::word)
    }

    /// Returns true if versions may be reused after a restore.
    fn wrote_after_restore(&self) -> bool {
        let mut restored = false;
        let mut writes = self
            .actions()
            .filter_map(ActionKeys::key)
            .filter(|key| names::is_write(key));
        writes.any(|write| {
            let is_restore = write.word() == "restore";
            let wrote = restored && !is_restore;
            restored |= is_restore;
            wrote
        })
    }

    /// Returns the scenario, built from the values that are printed.
    ///
    /// # Panics
    /// If the draft is not a valid scenario, which is a defect of the generator. The message contains the file and
    /// all errors.
    pub fn scenario(&self) -> Scenario {
        match self.try_scenario() {
            Ok(scenario) => scenario,
            Err(errors) => panic!("{self}\n{}", errors.render(Style::Plain)),
        }
    }

    /// Returns the scenario, built from the values that are printed.
    ///
    /// # Errors
    /// If the draft is not a valid scenario: all errors, without positions.
    pub fn try_scenario(&self) -> Result<Scenario, LoadErrors> {
        let id = format!("found/seed-{}", self.seed);
        let path = format!("scenarios/{id}.yaml");
        scenario::build(&id, Path::new(&path), self.file(&self.title(), WHY))
    }

    /// Returns the size that shrinking reduces: the length of the file, then its text, so that smaller numbers are
    /// smaller.
    pub fn size(&self) -> (usize, String) {
        let text = self.file("", "").to_string();
        (text.len(), text)
    }

    fn expectations(&self) -> Expectations {
        let reorders = self.words().any(|word| word == "reorder_events");
        let why = "a client that trusts the older event resumes from it";
        let excuse = Entries(vec![(
            "INV-02".to_owned().into(),
            OrNothing(Some(why.into())).into(),
        )]);
        let mut expect = Expectations {
            excused: reorders.then(|| vec![excuse.into()]),
            ..Expectations::default()
        };
        if self.lies() && self.lies_to_the_end {
            // Any cache is allowed; time for forbidden requests and events.
            expect.settle = at(Duration::ms(120_000));
            expect.not_converged = at("the server never takes its last lie back");
        } else {
            expect.within = at(Duration::ms(6 * 3_600_000));
        }
        expect
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
    pub fn file(&self, title: &str, why: &str) -> File {
        let steps = self.steps.iter().cloned().chain(self.conclusion());
        let steps: Vec<_> = steps
            .map(|step| {
                let waits = names::waits(&step);
                At::from(StepKeys {
                    within: waits.then(|| Duration::ms(3 * 3_600_000).into()),
                    ..step
                })
            })
            .collect();
        File {
            scenario: at(LanguageVersion::V1),
            title: at(title),
            why: at(why),
            covers: at(vec![At::from(REQUIREMENT.to_owned())]),
            target: Some(self.target.clone())
                .filter(|target| *target != default_target())
                .map(|target| First(target).into()),
            server: Some(self.server.clone()).filter(|server| *server != Server::default()),
            client: Some(self.client.clone()).filter(|client| *client != Client::default()),
            objects: Some(self.objects.clone()).filter(|objects| !objects.is_empty()),
            steps: Some(steps).filter(|steps| !steps.is_empty()),
            expect: Some(self.expectations()),
            ..File::default()
        }
    }
}

/// Returns a key with its value.
fn at<T>(value: impl Into<T>) -> Option<At<T>> {
    Some(value.into().into())
}

/// Returns the target of a file without one.
fn default_target() -> Target {
    Target {
        resource: at("configmaps"),
        namespace: None,
    }
}

/// Returns a step that is met once.
fn step<const N: usize>(when: Option<At<WordOr<When>>>, actions: [ActionKey; N]) -> StepKeys {
    let actions = actions.map(|key| At::from(WordOr(ActionKeys::from(key))));
    StepKeys {
        when,
        actions: at(OneOrMany(actions.into())),
        ..StepKeys::default()
    }
}

/// Returns a step that expires the next watch.
fn expired(reason: &str) -> StepKeys {
    let status = StatusKeys {
        code: at(410_u64),
        reason: at(reason),
        ..StatusKeys::default()
    };
    let actions = [
        ActionKey::Error(status.into()),
        ActionKey::End(Ending::Eof.into()),
    ];
    step(draw::next(Trigger::NextWatch), actions)
}

/// Returns `name`, or `namespace/name`.
fn key_of(object: &ShortObject) -> Option<String> {
    let bodies = object.bodies();
    let (_, body) = bodies.first()?;
    let name = &body.value.name.as_ref()?.value;
    Some(match &body.value.namespace {
        Some(namespace) => format!("{}/{name}", namespace.value),
        None => name.clone(),
    })
}

/// Prints the scenario file.
impl Display for Draft {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file(&self.title(), WHY))
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
            .map(|(seed, profile)| Draft::of(seed, profile).file("t", "w").to_string());
        assert!(texts[0] != texts[1] && texts[0] != texts[2], "{texts:?}");
    }

    /// Returns a scenario as text, without positions.
    fn without_places(scenario: &Scenario) -> String {
        let text = format!("{scenario:?}");
        let mut parts = text.split("Place { line: ");
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |text, part| {
            text + part.split_once('}').map_or(part, |(_, rest)| rest)
        })
    }

    /// Every draft is valid and sound, and its file is parsed to the scenario that is built without it.
    #[test]
    fn every_draft_is_valid_and_sound_and_equals_its_file() {
        for seed in 0..2_000 {
            for profile in [Profile::Honest, Profile::Lies] {
                let draft = Draft::of(seed, profile);
                let built = draft.scenario();
                let parsed = scenario::parse(&built.id, &built.path, &draft.to_string());
                let parsed =
                    parsed.unwrap_or_else(|errors| panic!("{draft}\n{}", errors.render(Style::Plain)));
                let (parsed, built) = (without_places(&parsed), without_places(&built));
                assert!(parsed == built, "{draft}\nparsed: {parsed}\nbuilt:  {built}");
                assert_eq!(draft.unsound(), None, "{draft}");
                let mut actions = draft.actions().map(names::name);
                assert!(actions.all(|name| names::NAMES.contains(&name)), "{draft}");
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
