//! Plays the probes of `oracle/probes` against a Kubernetes API server, real or
//! fake, and compares what came back with what a real one once answered.
//!
//! ```text
//! probes/*.yaml ──probe──▶ player ──http──▶ server
//!                            │
//!                            ▼
//!                 transcript ◀── normalise ──▶ recordings/<version>/*.txt ──▶ compare
//! ```

mod base64url;
mod compare;
mod error;
#[expect(
    clippy::disallowed_methods,
    reason = "a real server needs real time to serve what was created"
)]
mod fixture;
mod http;
mod normalise;
#[expect(
    clippy::disallowed_methods,
    reason = "this is the edge: it plays against servers that have their own clock"
)]
mod player;
mod probe;
mod transcript;

pub use compare::side_by_side;
pub use error::Error;
pub use http::Target;
pub use probe::{Probe, load};

/// What probes are played against.
pub struct Server {
    /// The API.
    pub target: Target,
    /// Where the store is compacted and the API server restarted.
    pub control: Option<Target>,
    /// The fixture is there already and stays as it is, for a server that takes no writes.
    pub fixture_is_there: bool,
}

/// Plays a probe and returns its transcript.
pub async fn transcript(probe: &Probe, server: &Server) -> Result<String, Error> {
    let played = player::play(probe, server).await?;
    Ok(transcript::render(probe, &played, server.target.authority()))
}
