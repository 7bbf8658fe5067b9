//! Plays the probes of `oracle/probes` against a Kubernetes API server, real or
//! fake, and compares what came back with what a real one once answered.
//!
//! ```text
//! probes/*.yaml ──probe──▶ player ──http──▶ server
//!                            │
//!                            ▼
//!                 transcript ◀── normalise ──▶ recordings/<version>/*.txt ──▶ compare
//! ```

pub mod base64url;
pub mod compare;
pub mod error;
pub mod fixture;
pub mod http;
pub mod normalise;
pub mod player;
pub mod probe;
pub mod transcript;

use error::Error;
use http::Target;
use probe::Probe;

/// Plays a probe and returns its transcript.
pub async fn transcript(probe: &Probe, target: &Target, control: Option<&Target>) -> Result<String, Error> {
    let played = player::play(probe, target, control).await?;
    Ok(transcript::render(probe, &played, target.authority()))
}
