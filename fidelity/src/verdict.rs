//! Plays all recorded probes of all versions against the fake, with a verdict for each: identical, accepted with a reason, or
//! open.

use std::path::{Path, PathBuf};

use fake_apiserver::scenario::Version;
use serde::Deserialize;

use crate::error::Error;
use crate::http::Remote;
use crate::in_process::InProcess;
use crate::probe::{Probe, load};
use crate::{Server, transcript};

/// One entry of `fidelity/oracle/accepted.yaml`: a difference that users can accept.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Accepted {
    /// Id of a probe, or a prefix of ids and `*`.
    probe: String,
    /// Versions of the entry; empty: all.
    #[serde(default)]
    versions: Vec<String>,
    /// Why users can accept it.
    reason: String,
    /// False: it cannot occur without a socket, and is not played.
    #[serde(default = "yes")]
    played: bool,
}

fn yes() -> bool {
    true
}

impl Accepted {
    fn is_about(&self, probe: &str, version: &str) -> bool {
        let versions = self.versions.is_empty() || self.versions.iter().any(|known| known == version);
        let named = match self.probe.strip_suffix('*') {
            Some(beginning) => probe.starts_with(beginning),
            None => probe == self.probe,
        };
        versions && named
    }
}

/// Verdict on the transcript of a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The transcripts of the fake and the real server are equal.
    Identical,
    /// They differ, for this reason.
    Accepted(String),
    /// They differ, and this is to be fixed.
    Open,
}

/// One probe, played as one version.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Version of the server.
    pub version: &'static str,
    /// Id of the probe.
    pub probe: String,
    /// Title of the probe.
    pub title: String,
    /// Its verdict.
    pub verdict: Verdict,
    /// Transcript of the real server.
    pub recorded: String,
    /// Transcript of the fake, or the reason why there is none.
    pub played: String,
}

/// Folders of probes, recordings and accepted differences.
#[derive(Debug, Clone)]
pub struct Files {
    oracle: PathBuf,
}

impl Files {
    /// Returns the folders below the root of the repository.
    pub fn below(root: &Path) -> Self {
        Self {
            oracle: root.join("fidelity/oracle"),
        }
    }

    /// Returns the probes, in order of row.
    ///
    /// # Errors
    ///
    /// A file cannot be read.
    pub fn probes(&self) -> Result<Vec<Probe>, Error> {
        load(&self.oracle.join("probes"))
    }

    /// Returns the folder of the recordings of a version.
    pub fn recordings(&self, version: &str) -> PathBuf {
        self.oracle.join("recordings").join(version)
    }

    fn accepted(&self) -> Result<Vec<Accepted>, Error> {
        let file = self.oracle.join("accepted.yaml");
        let text = std::fs::read_to_string(&file).map_err(|why| Error::file(&file, &why))?;
        serde_saphyr::from_str(&text).map_err(|why| Error::caller(format!("{}: {why}", file.display())))
    }
}

/// Plays the probes whose id contains one of `only` (all, if it is empty) as each of `versions`, each on a new server.
///
/// # Errors
///
/// A file cannot be read, or an accepted difference does not occur.
pub async fn replay(files: &Files, versions: &[Version], only: &[String]) -> Result<Vec<Outcome>, Error> {
    let probes = files.probes()?;
    let accepted = files.accepted()?;
    let mut outcomes = Vec::new();
    for version in Version::ALL
        .into_iter()
        .filter(|version| versions.contains(version))
    {
        let name = version.name();
        let chosen = probes
            .iter()
            .filter(|probe| only.is_empty() || only.iter().any(|text| probe.id.contains(text)))
            .filter(|probe| probe.is_of(version));
        for probe in chosen {
            let file = files.recordings(name).join(format!("{}.txt", probe.id));
            let recorded = std::fs::read_to_string(&file).map_err(|why| Error::file(&file, &why))?;
            let recorded = with_title(&recorded, &probe.title);
            let entry = accepted.iter().find(|entry| entry.is_about(&probe.id, name));
            let played = if entry.is_some_and(|entry| !entry.played) {
                "# not played\n".to_owned()
            } else {
                let mut server = match probe.needs_sockets() {
                    true => Server::Remote(Box::new(Remote::fake(version).await?)),
                    false => Server::InProcess(Box::new(InProcess::new(version))),
                };
                match transcript(probe, &mut server).await {
                    Ok(played) => played,
                    Err(why) => format!("# not played: {why}\n"),
                }
            };
            let verdict = match (recorded == played, entry) {
                (true, None) => Verdict::Identical,
                (false, None) => Verdict::Open,
                (false, Some(entry)) => Verdict::Accepted(entry.reason.clone()),
                (true, Some(entry)) => {
                    return Err(Error::caller(format!(
                        "fidelity/oracle/accepted.yaml: {} is accepted as different on {name}, but {} is identical",
                        entry.probe, probe.id
                    )));
                }
            };
            outcomes.push(Outcome {
                version: name,
                probe: probe.id.clone(),
                title: probe.title.clone(),
                verdict,
                recorded,
                played,
            });
        }
    }
    Ok(outcomes)
}

/// Replaces the title of a transcript, its first line. A recording has the title that the probe had when it was recorded: the
/// title is not compared.
fn with_title(transcript: &str, title: &str) -> String {
    match transcript.split_once('\n') {
        Some((first, rest)) if first.starts_with("# ") => format!("# {title}\n{rest}"),
        Some(_) | None => transcript.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_not_compared() {
        let recorded = "# As recorded\n# {t} is a token\n\n> GET /\n";
        let expected = "# Reworded\n# {t} is a token\n\n> GET /\n";
        assert_eq!(with_title(recorded, "Reworded"), expected);
        assert_eq!(with_title("> GET /\n", "Reworded"), "> GET /\n");
    }
}
