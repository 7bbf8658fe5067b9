//! Plays the probes of `fidelity/oracle/probes` against a Kubernetes API server, real or fake, and compares the transcripts with
//! recordings of a real one.
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
mod fixture;
#[expect(
    clippy::disallowed_methods,
    reason = "the edge: a real server has its own clock"
)]
mod http;
mod in_process;
mod members;
mod normalise;
pub mod page;
mod player;
mod probe;
pub mod random;
mod transcript;
mod transport;
pub mod verdict;
mod webhook;

pub use compare::side_by_side;
pub use error::Error;
pub use http::{Remote, Target};
pub use in_process::InProcess;
pub use probe::{Probe, load};

/// Target of probes.
pub enum Server {
    /// Over a socket.
    Remote(Box<Remote>),
    /// The fake, in this process, under virtual time.
    InProcess(Box<InProcess>),
}

/// Plays a probe and returns its transcript.
///
/// # Errors
/// The probe cannot be played, because of the probe, the server or the caller.
pub async fn transcript(probe: &Probe, server: &mut Server) -> Result<String, Error> {
    match server {
        Server::Remote(server) => text(probe, server.as_mut()).await,
        Server::InProcess(server) => text(probe, server.as_mut()).await,
    }
}

async fn text(probe: &Probe, server: &mut impl transport::Transport) -> Result<String, Error> {
    let played = player::play(probe, server).await?;
    Ok(transcript::render(probe, &played, server.authority()))
}
