//! Random programs, played on a real server and on the fake; every response and every frame is compared.
//!
//! ```text
//!  seed ─▶ program ─┬─▶ real server ─▶ transcript ─┐
//!                   └─▶ fake ────────▶ transcript ─┴─▶ equal? else drop steps while it still differs ─▶ probe
//! ```
//! Programs run in batches that share one fake, because they share one real server: a write of one increases the
//! revision for all. Compactions and restarts happen between two parts of all programs of a batch, because they are
//! slow.

use fake_apiserver::scenario::Version;
use serde_json::{Value, json};

use crate::error::Error;
use crate::http::Remote;
use crate::in_process::InProcess;
use crate::player::{Item, Played, go_on};
use crate::probe::{Probe, Rule, Step};
use crate::transport::{Call, Transport};
use crate::{fixture, side_by_side, transcript};

mod definitions;
mod generate;
mod objects;
mod shrink;
mod writes;

use generate::Program;

/// Programs per batch: few enough that events of the first remain in a real watch cache while all of them are played
/// (`eventFreshDuration`, 75 s).
const BATCH: u64 = 80;

/// More events than any batch creates: a real watch cache grows while its events are fresh.
const CAPACITY: usize = 1_000_000;

/// What the programs are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// Lists, gets and watches with all options, of a few small objects.
    Reads,
    /// Server-side apply, updates and patches by several managers.
    Writes,
    /// Definitions with random schemas.
    Definitions,
}

/// Operation between the parts of the programs of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Between {
    Nothing,
    Compaction,
    Restart,
}

/// A program with different responses of the two servers.
#[derive(Debug)]
pub struct Difference {
    /// Seed of the program.
    pub seed: u64,
    /// The shrunk program, as an entry of `fidelity/oracle/probes`.
    pub probe: String,
    /// Both transcripts, the real one on the left.
    pub side_by_side: String,
}

/// Result of a run.
#[derive(Debug, Default, Clone, Copy)]
pub struct Summary {
    /// Programs played.
    pub programs: u64,
    /// Requests in their steps.
    pub steps: u64,
    /// Programs that differed.
    pub different: u64,
    /// Programs during which the real server was not ready, as may happen after a restart; they prove nothing.
    pub passed_over: u64,
}

impl Summary {
    /// Returns the result of both runs.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            programs: self.programs + other.programs,
            steps: self.steps + other.steps,
            different: self.different + other.different,
            passed_over: self.passed_over + other.passed_over,
        }
    }
}

/// Plays the programs of `seeds` seeds from `first` on both servers; calls `found` with each difference when it is shrunk,
/// and `progress` with the progress. At most `shrink` differences are shrunk, because that is slow.
///
/// # Errors
///
/// A mistake of a server or the caller.
pub async fn run(
    (subject, version): (Subject, Version),
    real: &mut Remote,
    (first, seeds): (u64, u64),
    shrink: u64,
    found: &mut dyn FnMut(Difference),
    progress: &mut dyn FnMut(&Summary),
) -> Result<Summary, Error> {
    prepare(real, subject).await?;
    let mut summary = Summary::default();
    let mut from = first;
    while from < first + seeds {
        let until = (from + BATCH).min(first + seeds);
        let between = match (from / BATCH) % 8 {
            _ if subject != Subject::Reads => Between::Nothing,
            1 | 4 | 6 => Between::Compaction,
            3 => Between::Restart,
            _ => Between::Nothing,
        };
        let programs: Vec<Program> = (from..until)
            .map(|seed| match subject {
                Subject::Reads => Program::new(seed, version, between),
                Subject::Writes => writes::program(seed, version),
                Subject::Definitions => definitions::program(seed, version),
            })
            .collect();
        let mut fake = InProcess::with_capacity(version, CAPACITY);
        prepare(&mut fake, subject).await?;
        let on_fake = play(&programs, between, &mut fake).await?;
        let on_real = play(&programs, between, real).await?;
        for ((program, real_text), fake_text) in programs.iter().zip(on_real).zip(on_fake) {
            summary.programs += 1;
            summary.steps += program.steps() as u64;
            if real_text == fake_text {
                continue;
            }
            if real_text.contains("storage is (re)initializing") {
                summary.passed_over += 1;
                continue;
            }
            summary.different += 1;
            let difference = if summary.different <= shrink {
                shrink::shrink(program, (subject, version), real).await?
            } else {
                None
            };
            found(difference.unwrap_or_else(|| Difference {
                seed: program.seed,
                probe: format!(
                    "# not shrunk; only in its batch, with {between:?}\n{}",
                    program.as_probe()
                ),
                side_by_side: side_by_side(&real_text, &fake_text),
            }));
        }
        progress(&summary);
        from = until;
    }
    Ok(summary)
}

/// Creates what the programs need.
async fn prepare<T: Transport>(server: &mut T, subject: Subject) -> Result<(), Error> {
    fixture::reset(server).await?;
    if subject != Subject::Writes {
        return Ok(());
    }
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let body = objects::definition().to_string().into_bytes();
    let answer = server.send(&Call::new("POST", definitions, Some(body))).await?;
    if !matches!(answer.head.status, 201 | 409) {
        let body = String::from_utf8_lossy(&answer.body).into_owned();
        return Err(Error::server(format!("POST {}: {body}", objects::DEFINITION)));
    }
    for version in ["v1", "v1beta1"] {
        let path = format!("/apis/apply.example.com/{version}/things");
        for _ in 0..100 {
            if server.send(&Call::new("GET", &path, None)).await?.head.status == 200 {
                break;
            }
            let until = server.now() + std::time::Duration::from_millis(100);
            server.sleep_until(until).await;
        }
    }
    // Further writes follow the creation of a definition.
    let until = server.now() + std::time::Duration::from_secs(3);
    server.sleep_until(until).await;
    Ok(())
}

/// Plays the programs part by part and returns their transcripts.
async fn play<T: Transport>(
    programs: &[Program],
    between: Between,
    server: &mut T,
) -> Result<Vec<String>, Error> {
    let mut stories: Vec<Played> = programs.iter().map(|_| Played::default()).collect();
    for program in programs {
        create(server, "/api/v1/namespaces", &program.namespace).await?;
    }
    for part in 0..2 {
        if part == 1 && between == Between::Nothing {
            break;
        }
        if part == 1 {
            let first = programs.first().map_or("", |program| &program.namespace);
            foreign_write(server, &format!("{first}x")).await?;
            server
                .control(match between {
                    Between::Restart => crate::probe::Control::RestartApiserver,
                    Between::Compaction | Between::Nothing => crate::probe::Control::Compact,
                })
                .await?;
            ready(server).await?;
        }
        for (program, story) in programs.iter().zip(&mut stories) {
            let steps = steps(&program.parts[part])?;
            go_on(story, &steps, server).await?;
        }
    }
    Ok(stories
        .into_iter()
        .zip(programs)
        .map(|(story, program)| text(story, program.subject, &program.namespace, server.authority()))
        .collect())
}

/// After a restart a watch cache is filled at first use, and watches are rejected until then.
async fn ready(server: &mut impl Transport) -> Result<(), Error> {
    for collection in ["/api/v1/configmaps", "/apis/probe.example.com/v1/widgets"] {
        for _ in 0..200 {
            let call = Call::new("GET", &format!("{collection}?watch=1&timeoutSeconds=1"), None);
            let (head, stream) = server.open(&call).await?;
            server.close(stream);
            if head.status == 200 {
                break;
            }
            let until = server.now() + std::time::Duration::from_millis(50);
            server.sleep_until(until).await;
        }
    }
    Ok(())
}

/// Without it, a revision of a program could be the newest one during the operation.
async fn foreign_write(server: &mut impl Transport, namespace: &str) -> Result<(), Error> {
    create(server, "/api/v1/namespaces", namespace).await?;
    create(
        server,
        &format!("/api/v1/namespaces/{namespace}/configmaps"),
        "foreign",
    )
    .await
}

async fn create(server: &mut impl Transport, collection: &str, name: &str) -> Result<(), Error> {
    let body = json!({"metadata": {"name": name}}).to_string().into_bytes();
    // kube-apiserver responds with 429 while it starts.
    for _ in 0..200 {
        let answer = server
            .send(&Call::new("POST", collection, Some(body.clone())))
            .await?;
        match answer.head.status {
            201 | 409 => return Ok(()),
            429 | 403 | 500 | 503 => {
                let until = server.now() + std::time::Duration::from_millis(50);
                server.sleep_until(until).await;
            }
            _ => {
                let body = String::from_utf8_lossy(&answer.body).into_owned();
                return Err(Error::server(format!("POST {collection} {name}: {body}")));
            }
        }
    }
    Err(Error::server(format!(
        "POST {collection} {name}: refused for 10 s"
    )))
}

fn steps(values: &[Value]) -> Result<Vec<Step>, Error> {
    values
        .iter()
        .map(|value| {
            serde_json::from_value(value.clone()).map_err(|why| Error::author(format!("{value}: {why}")))
        })
        .collect()
}

/// Removes the start of the watch cache from a line: after a restart it differs, because the server writes while it starts.
/// Probes compare it.
fn without_beginning(line: String) -> String {
    let Some(at) = line.find("too old resource version: ") else {
        return line;
    };
    match (line[at..].find(" ("), line[at..].find(')')) {
        (Some(from), Some(until)) if from < until => {
            format!("{} (…){}", &line[..at + from], &line[at + until + 1..])
        }
        _ => line,
    }
}

/// Sorts the managed fields of an object by everything but their times, and the parts of an error, and removes allocated
/// addresses: they differ between two real servers.
fn settle(body: &mut Vec<u8>) {
    let Ok(mut object) = serde_json::from_slice::<Value>(body) else {
        return;
    };
    for pointer in ["/spec/clusterIP", "/spec/clusterIPs/0"] {
        if let Some(address) = object.pointer_mut(pointer).filter(|address| *address != "None") {
            *address = "<address>".into();
        }
    }
    // A real server reports several errors in the order of Go's maps.
    if let Some(causes) = object
        .pointer_mut("/details/causes")
        .and_then(Value::as_array_mut)
    {
        causes.sort_by_cached_key(Value::to_string);
    }
    if object["kind"] == "Status"
        && let Some(message) = object.get_mut("message")
    {
        let text = message.as_str().unwrap_or_default().to_owned();
        let mut parts: Vec<&str> = text.split([',', '\n', '[', ']']).map(str::trim).collect();
        parts.sort_unstable();
        *message = parts.join(" | ").into();
    }
    let entries = object
        .pointer_mut("/metadata/managedFields")
        .and_then(Value::as_array_mut);
    entries.unwrap_or(&mut Vec::new()).sort_by_cached_key(|entry| {
        ["operation", "manager", "apiVersion", "subresource"]
            .map(|field| entry[field].as_str().unwrap_or_default().to_owned())
    });
    *body = object.to_string().into_bytes();
}

/// Returns the transcript of a program without what is random on a real server: whether a line of a watch was sent before or
/// after the response to its write, and the length of a body without its managedFields.
fn text(story: Played, subject: Subject, namespace: &str, authority: &str) -> String {
    let Played { captures, items, .. } = story.used();
    let mut sorted = Vec::with_capacity(items.len());
    let mut lines = Vec::new();
    for item in items {
        match item {
            Item::Line { text, after } => lines.push(Item::Line {
                text: without_beginning(text),
                after,
            }),
            Item::Ended { .. } => {
                sorted.append(&mut lines);
                sorted.push(item);
            }
            Item::Answered {
                mut head,
                mut body,
                broken,
                took,
            } => {
                if subject != Subject::Reads {
                    settle(&mut body);
                }
                head.headers
                    .retain(|(name, _)| !matches!(name.as_str(), "content-length" | "transfer-encoding"));
                sorted.push(Item::Answered {
                    head,
                    body,
                    broken,
                    took,
                });
            }
            Item::Asked { .. } | Item::Opened { .. } | Item::Did(_) | Item::Called(_) => {
                sorted.push(item);
            }
        }
    }
    let played = Played {
        captures,
        items: sorted,
        hidden: Vec::new(),
    };
    let mut normalise = vec![Rule::DropPlainBookmarks, Rule::HideTimes, Rule::HideRetryAfter];
    match subject {
        Subject::Reads => {}
        Subject::Writes => normalise.push(Rule::KeepManagedFields),
        Subject::Definitions => normalise.push(Rule::CausesOnce),
    }
    let probe = Probe::unnamed("A random program", normalise);
    transcript::render(&probe, &played, authority).replace(namespace, "probe")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().build().unwrap()
    }

    fn summaries(seeds: std::ops::Range<u64>, between: Between) -> Vec<String> {
        let programs: Vec<Program> = seeds
            .map(|seed| Program::new(seed, Version::NEWEST, between))
            .collect();
        let mut fake = InProcess::with_capacity(Version::NEWEST, CAPACITY);
        let played = async {
            fixture::reset(&mut fake).await?;
            play(&programs, between, &mut fake).await
        };
        runtime().block_on(played).unwrap()
    }

    #[test]
    fn a_seed_generates_one_program() {
        let first = summaries(0..10, Between::Compaction);
        assert_eq!(first, summaries(0..10, Between::Compaction));
        assert_ne!(first, summaries(10..20, Between::Compaction));
    }

    #[test]
    fn programs_reach_every_option() {
        let mut met = BTreeSet::new();
        for seed in 0..200 {
            for step in Program::new(seed, Version::NEWEST, Between::Compaction)
                .parts
                .iter()
                .flatten()
            {
                let path = step.pointer("/request/path").or(step.pointer("/watch/path"));
                let query = path.and_then(Value::as_str).and_then(|path| path.split_once('?'));
                met.extend(query.map_or("", |(_, query)| query).split('&').map(str::to_owned));
            }
        }
        for option in [
            "resourceVersion=0",
            "resourceVersion=999999999",
            "resourceVersionMatch=Exact",
            "resourceVersionMatch=NotOlderThan",
            "limit=1",
            "limit=-1",
            "continue={t1}",
            "labelSelector=!app",
            "fieldSelector=metadata.name%3Db",
            "watch=1",
            "sendInitialEvents=true",
            "sendInitialEvents=false",
            "allowWatchBookmarks=true",
        ] {
            assert!(met.contains(option), "{option}");
        }
    }

    #[test]
    fn one_byte_of_a_write_changes_the_transcript() {
        let whole = Program::new(3, Version::NEWEST, Between::Nothing);
        let mut broken = whole.clone();
        let body = &mut broken.parts[0][0]["request"]["body"];
        *body = body.as_str().unwrap().replace("\"1\"", "\"one\"").into();
        let mut texts = Vec::new();
        for program in [whole, broken] {
            let mut fake = InProcess::with_capacity(Version::NEWEST, CAPACITY);
            texts.extend(
                runtime()
                    .block_on(play(&[program], Between::Nothing, &mut fake))
                    .unwrap(),
            );
        }
        assert_ne!(texts[0], texts[1]);
    }
}
