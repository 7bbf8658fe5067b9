//! Files and logs of earlier versions are read and judged as they were: `tests/corpus` has them, and its README how they
//! were written. docs/stability.md has the promise that this holds.
//!
//! A file of the corpus never changes. What a later version reads or judges otherwise on purpose is listed in [`WITHDRAWN`],
//! with the reason. It must not compare times, ports or ids of processes, which differ between runs.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use conformance::adapter::evidence::{self, Summary};
use conformance::adapter::line::{self, Line};
use conformance::adapter::message;
use conformance::baseline::Baseline;
use conformance::suite::{self, Driver, Plan};
use fake_apiserver::record::Record;
use fake_apiserver::scenario::Contract;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tests::programs::{self, program};
use tests::reference::Reference;
use tests::{exchange, parallel, repository};

/// Files, and the start of the differences in them that are intended, with the reason.
const WITHDRAWN: [(&str, &str, &str); 0] = [];

/// Keys whose values are compared, and not only their types: they are what a run was judged to be.
const JUDGED: [&str; 15] = [
    "check",
    "complete",
    "covers",
    "done",
    "edition",
    "ev",
    "exitCode",
    "id",
    "invariant",
    "kept",
    "outcome",
    "requirements",
    "standing",
    "status",
    "verdict",
];

/// Bearer token of the control API.
const TOKEN: &str = "known-to-the-test";

/// Returns the folder of each version of the formats, sorted.
fn versions() -> Vec<PathBuf> {
    let corpus = repository::root().join("tests/corpus");
    let entries = std::fs::read_dir(corpus)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut versions: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    versions.sort();
    assert!(!versions.is_empty(), "there is no corpus");
    versions
}

/// Returns all files below `folder` with this ending, sorted.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left = vec![folder.to_owned()];
    while let Some(folder) = left.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                left.push(path);
            } else if path.to_string_lossy().ends_with(ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    assert!(!found.is_empty(), "{} has no {ending}", folder.display());
    found
}

fn read(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// Returns the values of a file or an output: one JSON value in several lines, or one per line.
fn values(text: &str) -> Vec<Value> {
    let stream = serde_json::Deserializer::from_str(text).into_iter();
    stream.map(|value| value.expect("JSON")).collect()
}

/// Returns what `is` lacks of `was`: keys, types, and the values of [`JUDGED`] keys.
fn lost(was: &Value, is: &Value, path: &str, lost_so_far: &mut Vec<String>) {
    match (was, is) {
        (Value::Object(was), Value::Object(is)) => {
            for (key, was) in was {
                let path = format!("{path}.{key}");
                match is.get(key) {
                    None => lost_so_far.push(format!("{path} is gone")),
                    Some(is) if JUDGED.contains(&key.as_str()) && !was.is_object() && was != is => {
                        lost_so_far.push(format!("{path} was {was} and is {is}"));
                    }
                    Some(is) => lost(was, is, &path, lost_so_far),
                }
            }
        }
        // Lists vary in length and order from run to run: any element that has what this one had is its counterpart.
        (Value::Array(was), Value::Array(is)) => {
            for (nth, was) in was.iter().enumerate() {
                let same_place = is.get(nth).or(is.last());
                let found = same_place.into_iter().chain(is).map(|is| {
                    let mut found = Vec::new();
                    lost(was, is, &format!("{path}[{nth}]"), &mut found);
                    found
                });
                let best = found
                    .enumerate()
                    .min_by_key(|(at, found)| (!found.is_empty(), *at));
                match best {
                    Some((_, found)) => lost_so_far.extend(found),
                    None if was.is_object() => lost_so_far.push(format!("{path} is empty")),
                    None => {}
                }
            }
        }
        (Value::Null, _) | (_, Value::Null) => {}
        (was, is) if std::mem::discriminant(was) != std::mem::discriminant(is) => {
            lost_so_far.push(format!("{path} was {was} and is {is}"));
        }
        _ => {}
    }
}

/// Compares the values of a file with those of this version.
fn compare(file: &str, was: &[Value], is: &[Value]) {
    let mut found = Vec::new();
    if was.len() > is.len() {
        found.push(format!("{} values, there were {}", is.len(), was.len()));
    }
    for (nth, (was, is)) in was.iter().zip(is).enumerate() {
        lost(was, is, &format!("[{nth}]"), &mut found);
    }
    found.retain(|found| {
        !WITHDRAWN
            .iter()
            .any(|(of, start, _)| file.ends_with(of) && found.starts_with(start))
    });
    assert!(found.is_empty(), "{file}:\n{}", found.join("\n"));
}

/// Reads a value as this version does, and compares it with what this version writes for it: a key that is not read any
/// more is not written either.
fn written_again<T: DeserializeOwned + Serialize>(file: &Path, text: &str) {
    let was = values(text);
    let read = |value: &Value| match serde_json::from_value::<T>(value.clone()) {
        Ok(read) => serde_json::to_value(read).unwrap(),
        Err(error) => panic!("{}: {error}: {value}", file.display()),
    };
    let is: Vec<Value> = was.iter().map(read).collect();
    for (was, is) in was.iter().zip(&is) {
        assert_eq!(was, is, "{}", file.display());
    }
}

/// True if outputs that the corpus does not have yet are to be written.
fn records() -> bool {
    std::env::var("CORPUS").is_ok_and(|word| word == "record")
}

#[test]
fn scenarios_are_read_and_a_correct_client_passes_them() {
    for version in versions() {
        let scenarios: Vec<_> = files(&version.join("scenarios"), ".yaml")
            .iter()
            .map(|file| repository::load(file))
            .filter(|scenario| scenario.client.contract == Contract::Informer)
            // Has every key, and makes no sense.
            .filter(|scenario| !scenario.id.ends_with("every-key"))
            .collect();
        let judged = parallel::map(&scenarios, |scenario| {
            let plan = Plan {
                driver: Driver::Sim,
                seed: 0,
                jobs: 1,
            };
            suite::one(scenario, &Reference { mistake: None }, plan, &Baseline::default())
        });
        assert!(judged.len() > 30, "{}", judged.len());
        for judged in judged {
            assert!(
                judged.verdict.passed(),
                "{}: {}",
                judged.scenario.id,
                judged.verdict.message()
            );
        }
    }
}

#[test]
fn every_key_of_the_language_is_in_the_corpus() {
    fn keys_of(schema: &Value, keys: &mut BTreeSet<String>) {
        match schema {
            Value::Object(map) => {
                let properties = map.get("properties").and_then(Value::as_object);
                keys.extend(properties.into_iter().flat_map(Map::keys).cloned());
                map.values().for_each(|value| keys_of(value, keys));
            }
            Value::Array(list) => list.iter().for_each(|value| keys_of(value, keys)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let schema: Value =
        serde_json::from_str(&read(&repository::root().join("schema/scenario.v1.json"))).unwrap();
    let mut keys = BTreeSet::new();
    keys_of(&schema, &mut keys);
    let corpus = versions();
    let texts: String = corpus
        .iter()
        .flat_map(|version| files(version, ".yaml"))
        .map(|file| read(&file))
        .collect();
    let words: BTreeSet<&str> = texts
        .split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .collect();
    let missing: Vec<&String> = keys.iter().filter(|key| !words.contains(key.as_str())).collect();
    assert_eq!(
        missing, [&""; 0],
        "add a scenario with these keys to the newest corpus"
    );
}

#[test]
fn evidence_is_judged_the_same() {
    for version in versions() {
        let attempts = evidence::find(&version.join("evidence")).unwrap();
        let mut outcomes = BTreeSet::new();
        for attempt in &attempts {
            written_again::<Summary>(attempt, &read(&attempt.join("attempt.json")));
            written_again::<Record>(attempt, &read(&attempt.join("records.ndjson")));
            let rechecked = evidence::recheck(attempt).unwrap();
            outcomes.insert(rechecked.recorded.outcome.word());
            assert!(
                rechecked.is_same(),
                "{}: was {}, now {:?}",
                attempt.display(),
                rechecked.recorded.message,
                rechecked.current
            );
        }
        assert_eq!(
            outcomes.into_iter().collect::<Vec<_>>(),
            ["crash", "fail", "hang", "pass", "warn"]
        );
    }
}

#[test]
fn messages_of_adapters_and_to_them_are_read() {
    for version in versions() {
        for file in files(&version, "events.ndjson") {
            for text in read(&file).lines().filter(|line| !line.is_empty()) {
                let Line::Event(event) = line::read(text.as_bytes()) else {
                    panic!("{}: {:?}", file.display(), line::read(text.as_bytes()));
                };
                let (was, is): (Value, _) = (
                    serde_json::from_str(text).unwrap(),
                    serde_json::to_value(event).unwrap(),
                );
                assert_eq!(was, is, "{}", file.display());
            }
        }
        let commands = version.join("adapter/commands.ndjson");
        written_again::<message::Command>(&commands, &read(&commands));
    }
}

/// Runs every command of `commands.ndjson` in the root of the repository. `$NAME` is a program of the repository.
#[test]
fn commands_end_with_the_same_codes_and_print_the_same_keys() {
    for version in versions() {
        let file = version.join("commands.ndjson");
        let was = values(&read(&file));
        let ran = parallel::map(&was, |line| run(&version, line));
        let is: Vec<Value> = ran.into_iter().map(Option::unwrap_or_default).collect();
        if records() {
            write_lines(&file, &completed(&was, &is, "exitCode"));
        }
        compare(&file.display().to_string(), &was, &is);
    }
}

/// Returns the lines as they were, and as they are where they have no such key yet.
fn completed(was: &[Value], is: &[Value], key: &str) -> Vec<Value> {
    let lines = was.iter().zip(is);
    lines
        .map(|(was, is)| if was.get(key).is_some() { was } else { is }.clone())
        .collect()
}

/// Runs one command and compares its output; returns the line with the exit code of this version.
fn run(version: &Path, line: &Value) -> Option<Value> {
    let mut command = program("fake-apiserver");
    for argument in line["arguments"].as_array()? {
        let argument = argument.as_str()?;
        match argument.strip_prefix('$') {
            Some(name) => command.arg(programs::path(name)),
            None => command.arg(argument),
        };
    }
    let output = command
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let mut is = line.clone();
    is["exitCode"] = json!(output.status.code());
    if let Some(name) = line["output"].as_str() {
        let file = version.join(name);
        let text = String::from_utf8(output.stdout).unwrap();
        let printed = values(&text);
        if records() && !file.exists() {
            write_lines(&file, &printed);
        }
        compare(&file.display().to_string(), &values(&read(&file)), &printed);
    }
    Some(is)
}

/// Sends every request of `control.ndjson`, to one server and in order, and compares statuses and bodies; then its verdict.
#[test]
fn requests_to_the_control_api_are_answered_with_the_same_keys() {
    for version in versions() {
        let file = version.join("control.ndjson");
        let was = values(&read(&file));
        let (is, verdict) = control(&was);
        let recorded = version.join("outputs/serve-verdict.json");
        if records() {
            write_lines(&file, &completed(&was, &is, "status"));
            if !recorded.exists() {
                write_lines(&recorded, std::slice::from_ref(&verdict));
            }
        }
        compare(&file.display().to_string(), &was, &is);
        compare(
            &recorded.display().to_string(),
            &values(&read(&recorded)),
            &[verdict],
        );
    }
}

/// Returns the requests with the statuses and bodies of this version, and the verdict that the server prints at its end.
fn control(requests: &[Value]) -> (Vec<Value>, Value) {
    let mut server = program("fake-apiserver")
        .args(["serve", "--bare", "--quiet", "--verdict", "json"])
        .args(["--announce", "json", "--exit-with-stdin"])
        .args(["--control-token", TOKEN])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(server.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    let announced: Value = serde_json::from_str(&line).unwrap();
    let address = |key: &str| {
        announced[key]
            .as_str()
            .unwrap()
            .trim_start_matches("http://")
            .to_owned()
    };
    let (api, control) = (address("server"), address("control"));
    let answered = requests
        .iter()
        .map(|request| {
            let mut is = request.clone();
            let text = |key: &str| request[key].as_str().unwrap_or_default();
            if request["server"] == true {
                let (status, _) = exchange(&api, "GET", text("path"), "");
                is["status"] = json!(status);
            } else {
                let (status, body) = exchange(&control, text("method"), text("path"), text("body"));
                is["status"] = json!(status);
                is["answer"] = Value::Array(values(&body));
            }
            is
        })
        .collect();
    drop(server.stdin.take());
    let mut verdict = String::new();
    output.read_to_string(&mut verdict).unwrap();
    server.wait().unwrap();
    let verdict = values(&verdict).pop().unwrap();
    (answered, verdict)
}

/// Sends a request on its own connection; returns status and body.
fn exchange(address: &str, method: &str, path: &str, body: &str) -> (u16, String) {
    // HTTP/1.0: the end of the connection is the end of the body.
    let request = format!(
        "{method} {path} HTTP/1.0\r\nHost: localhost\r\nUser-Agent: corpus\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let answer = exchange::exchange(address, &request);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, body.to_owned())
}

/// Writes values, one per line, without what depends on this machine or this run.
fn write_lines(file: &Path, values: &[Value]) {
    let lines: String = values
        .iter()
        .map(|value| portable(value.clone()).to_string() + "\n")
        .collect();
    std::fs::write(file, lines).unwrap();
}

/// Replaces the folders of programs and files, ports, and ids of processes.
fn portable(value: Value) -> Value {
    match value {
        Value::Object(map) => map
            .into_iter()
            .map(|(key, value)| {
                let value = match key.as_str() {
                    "pid" => json!(1),
                    "peer" => json!(50_000),
                    "kubeconfig" if value.is_string() => json!("kubeconfig"),
                    _ => portable(value),
                };
                (key, value)
            })
            .collect(),
        Value::Array(list) => list.into_iter().map(portable).collect(),
        Value::String(text) => Value::String(portable_text(&text)),
        same @ (Value::Null | Value::Bool(_) | Value::Number(_)) => same,
    }
}

fn portable_text(text: &str) -> String {
    let programs = programs::path("fake-apiserver");
    let folder = format!("{}/", programs.parent().unwrap().display());
    let text = text.replace(&folder, "").replace(TOKEN, "token");
    let mut parts = text.split("127.0.0.1:");
    let mut portable = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        portable.push_str("127.0.0.1:6443");
        portable.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    portable
}

/// The comparison finds what it has to find.
#[test]
fn a_changed_or_removed_key_is_found() {
    let was = json!({"id": "a", "tests": [{"outcome": "pass", "tookMs": 1}], "known": null});
    let found = |is: Value| {
        let mut found = Vec::new();
        lost(&was, &is, "", &mut found);
        found
    };
    let later = json!({"id": "a", "tests": [{"outcome": "pass", "tookMs": 9, "new": 1}], "known": {}});
    assert_eq!(found(later), [""; 0]);
    let renamed = json!({"id": "a", "tests": [{"result": "pass", "tookMs": "9 ms"}], "known": null});
    assert_eq!(
        found(renamed),
        [
            ".tests[0].outcome is gone",
            ".tests[0].tookMs was 1 and is \"9 ms\""
        ]
    );
    let judged = json!({"id": "a", "tests": [{"outcome": "fail", "tookMs": 1}], "known": null});
    assert_eq!(found(judged), [".tests[0].outcome was \"pass\" and is \"fail\""]);
    let emptied = json!({"id": "a", "tests": [], "known": null});
    assert_eq!(found(emptied), [".tests is empty"]);
}
