//! Random scenarios: a seed in, a scenario out, the same one each time.
//!
//! All of them are *honest*: the server fails, delays, cuts, expires and forgets, but a client that keeps the requirements
//! converges, and every invariant holds. What flags such a run is a defect of the client, of the fake, or of the judge.
//! Nothing here plays a scenario or knows a verdict.

use std::fmt::{self, Display, Formatter};
use std::path::Path;
use std::sync::Arc;

use fake_apiserver::scenario::{self, SharedScenario, Style};

pub use self::client::{Client, Server};
pub use self::step::{Action, Answer, Cut, Ending, Object, Step, When, Write};

mod client;
mod draw;
mod step;

/// A scenario as a value: drawn from a seed, printable as a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// The seed it was drawn from.
    pub seed: u64,
    /// What the server is.
    pub server: Server,
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
        writeln!(f, "server: {}", self.server)?;
        writeln!(f, "client: {}", self.client)?;
        if !self.objects.is_empty() {
            writeln!(f, "objects:")?;
            for object in &self.objects {
                writeln!(f, "  - {object}")?;
            }
        }
        if !self.steps.is_empty() {
            writeln!(f, "steps:")?;
            for step in &self.steps {
                writeln!(f, "  - {step}")?;
            }
        }
        writeln!(f, "expect: {{within: 2h}}")
    }
}
