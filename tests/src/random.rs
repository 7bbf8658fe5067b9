//! Random scenarios: a seed in, a scenario out, the same one each time.
//!
//! The server fails, delays, cuts, expires and forgets; of some seeds it is restored from a backup, of others it lies and
//! then expires what the lies were told of. A client that keeps the requirements converges in each, and every invariant
//! holds. What flags such a run is a defect of the client, of the fake, or of the judge. Nothing here plays a scenario or
//! knows a verdict.

use std::fmt::{self, Display, Formatter};
use std::path::Path;
use std::sync::Arc;

use fake_apiserver::scenario::{self, SharedScenario, Style};

pub use self::client::{Client, Server, Target};
pub use self::step::{Action, Answer, Cut, Ending, Lie, Reply, Step, Times, When};
pub use self::write::{Object, Write};

mod client;
mod draw;
mod step;
mod write;

/// How far a server is to be believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It fails, but never lies.
    Honest,
    /// It goes back in time.
    Restored,
    /// It lies, and in the end expires what the lies were told of.
    Lying,
}

/// A scenario as a value: drawn from a seed, printable as a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// The seed it was drawn from.
    pub seed: u64,
    /// How far the server is to be believed.
    pub kind: Kind,
    /// What the server is.
    pub server: Server,
    /// What is read.
    pub target: Target,
    /// What the client is configured with.
    pub client: Client,
    /// In the store before the client starts.
    pub objects: Vec<Object>,
    /// What happens, in order.
    pub steps: Vec<Step>,
}

impl Draft {
    /// Draws the scenario of a seed.
    pub fn of(seed: u64) -> Self {
        draw::draft(seed)
    }

    /// The invariants that a right client may break, as the server lies in this way; with reasons.
    fn excused(&self) -> &'static str {
        let reorders = |action: &Action| matches!(action, Action::Lie(Lie::Reorder(_)));
        if self.steps.iter().any(|step| step.actions.iter().any(reorders)) {
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
        let id = format!("random/seed-{}", self.seed);
        let path = format!("scenarios/{id}.yaml");
        match scenario::parse(&id, Path::new(&path), &self.to_string()) {
            Ok(scenario) => Arc::new(scenario),
            Err(errors) => panic!("{self}\n{}", errors.render(Style::Plain)),
        }
    }
}

/// The scenario file.
impl Display for Draft {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "scenario: v1")?;
        writeln!(f, "title: Random scenario of seed {}", self.seed)?;
        writeln!(
            f,
            "why: A client that keeps the requirements converges, whatever fails."
        )?;
        writeln!(f, "covers: [LIST-01]")?;
        writeln!(f, "target: {}", self.target)?;
        writeln!(f, "server: {}", self.server)?;
        writeln!(f, "client: {}", self.client)?;
        if !self.objects.is_empty() {
            writeln!(f, "objects:")?;
            for object in &self.objects {
                match object.binds {
                    Some(name) => writeln!(f, "  - {{{object}, as: v{name}}}")?,
                    None => writeln!(f, "  - {object}")?,
                }
            }
        }
        if !self.steps.is_empty() {
            writeln!(f, "steps:")?;
            for step in &self.steps {
                writeln!(f, "  - {step}")?;
            }
        }
        match self.excused() {
            "" => writeln!(f, "expect: {{within: 12h}}"),
            excused => writeln!(f, "expect: {{within: 12h, excused: [{excused}]}}"),
        }
    }
}
