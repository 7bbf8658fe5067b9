//! What one client did, as adapters/results/NAME.json keeps it: outcomes and broken requirements, no times and no texts, so
//! that two runs write the same file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use conformance::adapter::message::Hello;
use conformance::adapter::outcome::Outcome;
use conformance::adapter::standing::Standing;
use conformance::adapter::tested::Tested;
use e2e::adapters::Client;
use report::results::{Results, TestResult};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// `hello` of the adapter.
    pub(crate) client: Library,
    pub(crate) recovers: String,
    pub(crate) capabilities: BTreeSet<String>,
    /// By scenario.
    pub(crate) tests: BTreeMap<String, Test>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Library {
    pub(crate) lang: String,
    pub(crate) version: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Test {
    pub(crate) outcome: Outcome,
    /// Its attempts came out differently: nothing is judged.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) flaky: bool,
    /// The requirements that it covers and the client broke.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) broken: BTreeSet<String>,
    /// Why it is unsupported or was not played.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) why: String,
}

impl Record {
    /// Reads the output of `fake-apiserver conformance --format json`, and returns what in it is not as expected.
    ///
    /// # Errors
    /// It is not complete.
    pub(crate) fn of_run(client: &Client, output: &str) -> Result<(Self, Vec<String>), String> {
        let name = &client.name;
        let results = Results::parse(output).map_err(|error| format!("{name}: {error}"))?;
        let footer = results
            .footer
            .filter(|footer| footer.complete)
            .ok_or_else(|| format!("{name}: the run did not come to its end"))?;
        let complaints = results.tests.iter().filter(|test| test.standing.is_failure());
        let complaints = complaints.map(|test| complaint(name, &test.id, test.standing, &test.message));
        let record = Self {
            client: Library {
                lang: footer.client.lang,
                version: footer.client.version,
            },
            recovers: footer.recovers.word().to_owned(),
            capabilities: footer.capabilities.iter().map(|one| one.word()).collect(),
            tests: results
                .tests
                .iter()
                .map(|test| (test.id.clone(), Test::of(test)))
                .collect(),
        };
        Ok((record, complaints.collect()))
    }

    /// What a client did, and what of it is not as expected.
    pub(crate) fn of_tests(name: &str, hello: &Hello, tests: &[Tested]) -> (Self, Vec<String>) {
        let complaints = tests.iter().filter(|test| test.standing.is_failure());
        let complaints = complaints
            .map(|test| complaint(name, &test.scenario.id, test.standing, &test.reported().why))
            .collect();
        let record = Self {
            client: Library {
                lang: hello.client.lang.clone(),
                version: hello.client.version.clone(),
            },
            recovers: hello.recovers.word().to_owned(),
            capabilities: hello.caps.iter().map(|one| one.word().to_owned()).collect(),
            tests: tests
                .iter()
                .map(|test| (test.scenario.id.clone(), Test::of_tested(test)))
                .collect(),
        };
        (record, complaints)
    }

    /// Takes over the tests of an earlier record that were not played now.
    pub(crate) fn completed(mut self, earlier: &Self) -> Self {
        for (id, test) in &earlier.tests {
            self.tests.entry(id.clone()).or_insert_with(|| test.clone());
        }
        self
    }

    /// Reads the record of a client.
    ///
    /// # Errors
    /// There is none, or it has mistakes.
    pub(crate) fn read(root: &Path, client: &str) -> Result<Self, String> {
        let file = file(root, client);
        let text = std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        serde_json::from_str(&text).map_err(|error| format!("{}: {error}", file.display()))
    }

    /// Is there a record?
    pub(crate) fn exists(root: &Path, client: &str) -> bool {
        file(root, client).is_file()
    }

    /// Whether the client failed this scenario, in every attempt.
    pub(crate) fn is_failure(&self, scenario: &str) -> bool {
        let test = self.tests.get(scenario);
        test.is_some_and(|test| test.outcome.accuses_client() && !test.flaky)
    }

    /// Writes the record of a client.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn write(&self, root: &Path, client: &str) -> Result<(), String> {
        let file = file(root, client);
        let text = serde_json::to_string_pretty(self).map_err(|error| error.to_string())?;
        let folder = file.parent().map_or(Ok(()), std::fs::create_dir_all);
        folder
            .and_then(|()| std::fs::write(&file, text + "\n"))
            .map_err(|error| format!("{}: {error}", file.display()))
    }

    /// What a run on another version of the library fixes and breaks: a line for each test that comes out otherwise.
    pub(crate) fn changes(&self, fresh: &Self) -> (Vec<String>, Vec<String>) {
        let (mut fixed, mut broken) = (Vec::new(), Vec::new());
        for (id, is) in &fresh.tests {
            let Some(was) = self.tests.get(id).filter(|was| !was.is_like(is)) else {
                continue;
            };
            let line = format!("{id}: {}, recorded as {}", is.shown(), was.shown());
            let accuses = |test: &Test| test.outcome.accuses_client() && !test.flaky;
            let gained = is.broken.difference(&was.broken).next().is_some();
            let lost = was.broken.difference(&is.broken).next().is_some();
            match (accuses(was), accuses(is)) {
                (true, false) => fixed.push(line),
                (false, true) => broken.push(line),
                (true, true) if gained => broken.push(line),
                (true, true) if lost => fixed.push(line),
                (true, true) | (false, false) => {}
            }
        }
        (fixed, broken)
    }

    /// How a fresh run differs from this record, in what the page is made of.
    pub(crate) fn differences(&self, client: &str, fresh: &Self) -> Vec<String> {
        let mut differences = Vec::new();
        if self.client != fresh.client {
            differences.push(format!("{client}: another version"));
        }
        if (&self.recovers, &self.capabilities) != (&fresh.recovers, &fresh.capabilities) {
            differences.push(format!("{client}: its adapter declares something else"));
        }
        let ids: BTreeSet<&String> = self.tests.keys().chain(fresh.tests.keys()).collect();
        for id in ids {
            let word = |record: &Self| match record.tests.get(id) {
                None => "absent",
                Some(test) if test.flaky => Standing::Flaky.word(),
                Some(test) => test.outcome.word(),
            };
            let (was, is) = (word(self), word(fresh));
            if was != is {
                differences.push(format!("{client}: {id}: {is}, recorded as {was}"));
                continue;
            }
            let broken = |record: &Self| {
                let broken = record.tests.get(id).map(|test| &test.broken);
                broken
                    .into_iter()
                    .flatten()
                    .cloned()
                    .collect::<Vec<_>>()
                    .join(" ")
            };
            let (was, is) = (broken(self), broken(fresh));
            if was != is {
                differences.push(format!("{client}: {id}: breaks {is}, recorded as {was}"));
            }
        }
        differences
    }
}

impl Test {
    fn of(test: &TestResult) -> Self {
        let broken = test.covers.iter().filter(|id| test.breaks(id)).cloned();
        Self::new(test.outcome, test.standing, broken, &test.message)
    }

    /// What came out of a test.
    pub(crate) fn of_tested(test: &Tested) -> Self {
        let reported = test.reported();
        Self::new(
            reported.outcome,
            test.standing,
            test.broken().into_iter(),
            &reported.why,
        )
    }

    fn new(outcome: Outcome, standing: Standing, broken: impl Iterator<Item = String>, why: &str) -> Self {
        let flaky = standing == Standing::Flaky;
        Self {
            outcome,
            flaky,
            broken: broken.filter(|_| outcome.is_judged() && !flaky).collect(),
            why: if matches!(outcome, Outcome::Unsupported | Outcome::NotPlayed) {
                why.to_owned()
            } else {
                String::new()
            },
        }
    }

    /// The outcome, with what is broken: `fail (GONE-01 LIST-02)`.
    fn shown(&self) -> String {
        let word = if self.flaky {
            Standing::Flaky.word()
        } else {
            self.outcome.word()
        };
        let broken: Vec<&str> = self.broken.iter().map(String::as_str).collect();
        match broken.is_empty() {
            true => word.to_owned(),
            false => format!("{word} ({})", broken.join(" ")),
        }
    }

    /// Did a test come out the same, in what the page is made of?
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        (self.outcome, self.flaky, &self.broken) == (other.outcome, other.flaky, &other.broken)
    }
}

/// One line about such a test.
fn complaint(client: &str, id: &str, standing: Standing, message: &str) -> String {
    format!("{client}: {id}: {}: {message}", standing.word())
}

fn file(root: &Path, client: &str) -> PathBuf {
    root.join("adapters/results").join(format!("{client}.json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEST: &str = r#"{"id":"a/b","title":"t","covers":["LIST-01","LIST-02"],"outcome":"OUTCOME","standing":"STANDING","message":"m","known":null,"attempts":[{"outcome":"OUTCOME","message":"m","contradictions":[{"check":"INV-03","requirements":["LIST-02"],"sentence":"s","place":null,"evidence":[],"expected":"","actual":""}],"strayOutput":null,"stderr":[],"tookMs":1}],"rerun":""}"#;
    const FOOTER: &str = r#"{"footer":{"complete":true,"client":{"name":"x","lang":"go","version":"1"},"recovers":"caller","capabilities":["ordered","gzip"],"tests":1,"outcomes":{},"requirements":{},"staleEntries":[],"exitCode":0}}"#;

    fn of(lines: &[&str]) -> Result<(Record, Vec<String>), String> {
        let client = Client {
            name: "x".to_owned(),
            title: String::new(),
            ecosystem: String::new(),
            run: Vec::new(),
            older: false,
        };
        Record::of_run(&client, &lines.join("\n"))
    }

    fn test(outcome: &str, standing: &str) -> String {
        TEST.replace("OUTCOME", outcome).replace("STANDING", standing)
    }

    #[test]
    fn a_run_is_recorded_without_times_and_texts() {
        let (record, complaints) = of(&[&test("fail", "unexpected-failure"), FOOTER]).unwrap();
        assert_eq!(complaints, ["x: a/b: unexpected-failure: m"]);
        assert_eq!(
            (record.client.lang.as_str(), record.recovers.as_str()),
            ("go", "caller")
        );
        let sorted: Vec<&str> = record.capabilities.iter().map(String::as_str).collect();
        assert_eq!(sorted, ["gzip", "ordered"]);
        let kept = &record.tests["a/b"];
        let broken: Vec<&str> = kept.broken.iter().map(String::as_str).collect();
        assert_eq!(
            (kept.outcome, broken, kept.why.as_str()),
            (Outcome::Fail, vec!["LIST-02"], "")
        );

        let (record, _) = of(&[&test("crash", "known-failure"), FOOTER]).unwrap();
        assert_eq!(
            record.tests["a/b"].broken.len(),
            1,
            "a crash breaks what its contradiction names"
        );
        let (record, _) = of(&[&test("fail", "flaky"), FOOTER]).unwrap();
        assert_eq!(
            (record.tests["a/b"].flaky, record.tests["a/b"].broken.len()),
            (true, 0)
        );
    }

    #[test]
    fn a_fix_differs_from_a_new_failure() {
        let record = |tests: &[(&str, Outcome, &str)]| {
            let mut record = of(&[FOOTER]).unwrap().0;
            for (id, outcome, broken) in tests {
                let broken = broken.split_whitespace().map(str::to_owned);
                let test = Test::new(*outcome, Standing::Failed, broken, "");
                record.tests.insert((*id).to_owned(), test);
            }
            record
        };
        let was = record(&[
            ("a/fixed", Outcome::Fail, "A-1"),
            ("b/broken", Outcome::Pass, ""),
            ("c/same", Outcome::Hang, "A-2"),
            ("d/less", Outcome::Fail, "A-1 A-2"),
            ("e/more", Outcome::Fail, "A-1"),
            ("f/unsupported", Outcome::Unsupported, ""),
        ]);
        let is = record(&[
            ("a/fixed", Outcome::Pass, ""),
            ("b/broken", Outcome::Hang, "A-3"),
            ("c/same", Outcome::Hang, "A-2"),
            ("d/less", Outcome::Fail, "A-2"),
            ("e/more", Outcome::Fail, "A-1 A-4"),
            ("f/unsupported", Outcome::Pass, ""),
        ]);
        let (fixed, broken) = was.changes(&is);
        assert_eq!(
            fixed,
            [
                "a/fixed: pass, recorded as fail (A-1)",
                "d/less: fail (A-2), recorded as fail (A-1 A-2)"
            ]
        );
        assert_eq!(
            broken,
            [
                "b/broken: hang (A-3), recorded as pass",
                "e/more: fail (A-1 A-4), recorded as fail (A-1)"
            ]
        );
    }

    #[test]
    fn a_run_is_compared_in_all_that_the_page_shows() {
        let (record, _) = of(&[&test("fail", "known-failure"), FOOTER]).unwrap();
        assert_eq!(record.differences("x", &record), Vec::<String>::new());
        let (passed, _) = of(&[&test("pass", "ok"), FOOTER]).unwrap();
        let found = record.differences("x", &passed);
        assert_eq!(found, ["x: a/b: pass, recorded as fail"]);
        let other = test("fail", "known-failure")
            .replace("\"requirements\":[\"LIST-02\"]", "\"requirements\":[\"LIST-01\"]");
        let (other, _) = of(&[&other, FOOTER]).unwrap();
        let found = record.differences("x", &other);
        assert_eq!(found, ["x: a/b: breaks LIST-01, recorded as LIST-02"]);
        let footer = FOOTER
            .replace("caller", "library")
            .replace("\"version\":\"1\"", "\"version\":\"2\"");
        let (other, _) = of(&[&test("fail", "known-failure"), &footer]).unwrap();
        let found = record.differences("x", &other);
        assert_eq!(
            found,
            ["x: another version", "x: its adapter declares something else"]
        );
    }

    #[test]
    fn a_run_that_was_cut_off_or_is_none_is_not_recorded() {
        let whole = test("fail", "known-failure");
        assert!(of(&[&whole]).unwrap_err().contains("did not come to its end"));
        let other = FOOTER.replace("true", "false");
        assert!(of(&[&whole, &other]).is_err());
        assert!(of(&["{\"id\":3}", FOOTER]).unwrap_err().contains("line 1"));
    }
}
