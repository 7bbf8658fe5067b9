//! One NDJSON record per scenario and a footer with counts; a report without a footer was cut off.

use fake_apiserver::record::{RunEnd, What};
use judge::trace::Trace;
use judge::transcript::transcript;
use judge::verdict::{Contradiction, Outcome};
use serde::Serialize;

use crate::suite::{Counts, Judged, Standing};

/// Line of one scenario.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    id: &'a str,
    client: &'a str,
    driver: &'a str,
    seed: u64,
    outcome: Outcome,
    /// `passed`, `failed`, `known`, `stale`.
    verdict: Standing,
    covers: Vec<&'a str>,
    message: &'a str,
    contradictions: &'a [Contradiction],
    /// How the run ended, as in the trace: `"complete"`, `{"stuck": {…}}`, …; null if it did not.
    end: Option<&'a RunEnd>,
    /// End of the run in milliseconds from its start, in virtual time for `sim`.
    end_ms: Option<u64>,
    /// Requests received.
    requests: usize,
    /// Lines of the transcript; empty unless the verdict is `failed`.
    trace: Vec<String>,
}

/// The last line.
#[derive(Debug, Serialize)]
struct Footer<'a> {
    footer: &'a Counts,
}

/// Returns the line of one scenario, without its newline.
pub fn entry(judged: &Judged) -> String {
    let mut records = judged.records.iter().rev();
    let end = records.find_map(|record| {
        if let What::RunEnded(end) = &record.what {
            Some((end, record.at))
        } else {
            None
        }
    });
    let lines = match judged.standing {
        Standing::Failed => transcript(&judged.scenario, &Trace::new(&judged.records)),
        Standing::Passed | Standing::Known | Standing::Stale => String::new(),
    };
    let entry = Entry {
        id: &judged.scenario.id,
        client: judged.client,
        driver: judged.driver.word(),
        seed: judged.seed,
        outcome: judged.verdict.outcome,
        verdict: judged.standing,
        covers: judged
            .scenario
            .covers
            .iter()
            .map(|covered| covered.id.as_str())
            .collect(),
        message: judged.verdict.message(),
        contradictions: &judged.verdict.contradictions,
        end: end.map(|(end, _)| end),
        end_ms: end.and_then(|(_, at)| u64::try_from(at.as_millis()).ok()),
        requests: judged
            .records
            .iter()
            .filter(|record| matches!(record.what, What::Request { .. }))
            .count(),
        trace: lines.lines().map(str::to_owned).collect(),
    };
    serde_json::to_string(&entry).expect("proven invariant: plain strings and numbers always serialize")
}

/// Returns the last line, without its newline.
pub fn footer(counts: &Counts) -> String {
    serde_json::to_string(&Footer { footer: counts })
        .expect("proven invariant: plain strings and numbers always serialize")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use judge::trace::sample::{Sample, scenario};
    use judge::verdict::Verdict;
    use serde_json::{Value, json};

    use super::*;
    use crate::suite::Driver;

    #[test]
    fn a_failed_run_comes_with_its_end_and_its_trace() {
        let mut s = Sample::new();
        s.list(&[])
            .push(What::RunEnded(RunEnd::NotConverged { waited_ms: 7 }));
        let records = s.records();
        let judged = |standing| Judged {
            scenario: Arc::new(scenario()),
            client: "client",
            version: "1",
            driver: Driver::Sim,
            seed: 0,
            records: records.clone(),
            verdict: Verdict {
                outcome: Outcome::Mismatch,
                contradictions: Vec::new(),
            },
            standing,
            known: None,
        };
        let read = |standing| serde_json::from_str::<Value>(&entry(&judged(standing))).unwrap();
        let failed = read(Standing::Failed);
        assert_eq!(failed["end"], json!({ "not_converged": { "waited_ms": 7 } }));
        assert_eq!((&failed["endMs"], &failed["requests"]), (&json!(0), &json!(1)));
        let trace = failed["trace"].as_array().unwrap();
        assert!(
            trace.iter().any(|line| line.as_str().unwrap().contains("LIST")),
            "{failed}"
        );
        assert_eq!(read(Standing::Known)["trace"], json!([]));
    }
}
