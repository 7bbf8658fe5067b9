//! Shrinks a program on which two servers differ, by removing steps while they still differ.

use std::sync::atomic::{AtomicU64, Ordering};

use fake_apiserver::scenario::Version;
use serde_json::Value;

use super::generate::{Program, probe};
use super::{Between, CAPACITY, Difference, Subject, create, foreign_write, prepare, ready, steps, text};
use crate::error::Error;
use crate::http::Remote;
use crate::in_process::InProcess;
use crate::player::{Played, go_on};
use crate::side_by_side;
use crate::transport::Transport;

/// Returns the maximum number of plays on the real server; a compaction takes 16 s.
fn patience(between: Between) -> usize {
    match between {
        Between::Nothing => 80,
        Between::Restart => 12,
        Between::Compaction => 5,
    }
}

/// Returns the shortest program found; `None` if it does not differ when played alone.
pub(super) async fn shrink(
    program: &Program,
    of: (Subject, Version),
    real: &mut Remote,
) -> Result<Option<Difference>, Error> {
    let mut left = patience(program.between);
    let mut best = program.whole();
    let Some(mut texts) = differ(&best, &program.namespace, of, real).await? else {
        return Ok(None);
    };
    // Halves first, then single steps, the last ones first.
    let mut size = best.len() / 2;
    while size > 0 && left > 0 {
        let mut end = best.len();
        while end >= size && left > 0 {
            let mut shorter = best.clone();
            shorter.drain(end - size..end);
            left -= 1;
            if let Some(found) = differ(&shorter, &program.namespace, of, real).await? {
                best = shorter;
                texts = found;
            }
            end -= size.min(end);
            end = end.min(best.len());
            if end < size {
                break;
            }
        }
        size /= 2;
    }
    Ok(Some(Difference {
        seed: program.seed,
        probe: probe(program.subject, program.seed, &best, &program.namespace),
        side_by_side: side_by_side(&texts.0, &texts.1),
    }))
}

/// Returns both transcripts, if they differ.
async fn differ(
    values: &[Value],
    namespace: &str,
    (subject, version): (Subject, Version),
    real: &mut Remote,
) -> Result<Option<(String, String)>, Error> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let fresh = format!("{namespace}s{}", NEXT.fetch_add(1, Ordering::Relaxed));
    let renamed: Vec<Value> = values
        .iter()
        .map(|value| serde_json::from_str(&value.to_string().replace(namespace, &fresh)).unwrap_or_default())
        .collect();
    let mut fake = InProcess::with_capacity(version, CAPACITY);
    if subject == Subject::Writes {
        prepare(&mut fake, subject).await?;
    }
    let on_fake = alone(&renamed, (subject, &fresh), &mut fake).await;
    let on_real = alone(&renamed, (subject, &fresh), real).await;
    // A program is invalid if it uses a name whose step was removed.
    let (Ok(on_real), Ok(on_fake)) = (on_real, on_fake) else {
        return Ok(None);
    };
    Ok((on_real != on_fake).then_some((on_real, on_fake)))
}

async fn alone<T: Transport>(
    values: &[Value],
    (subject, namespace): (Subject, &str),
    server: &mut T,
) -> Result<String, Error> {
    create(server, "/api/v1/namespaces", namespace).await?;
    let mut story = Played::default();
    for (index, value) in values.iter().enumerate() {
        if value.get("control").is_some() {
            foreign_write(server, &format!("{namespace}x{index}")).await?;
        }
        go_on(&mut story, &steps(std::slice::from_ref(value))?, server).await?;
        if value.get("control").is_some() {
            ready(server).await?;
        }
    }
    Ok(text(story, subject, namespace, server.authority()))
}
