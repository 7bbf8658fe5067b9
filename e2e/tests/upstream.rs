//! The texts in upstream/: each has its parts, agrees with the record, and its command shows what it says. Every weighty defect
//! of the record that no public issue describes has a text, or a reason for having none.
//!
//! The gate runs a command each in Java, JavaScript and Python, whose libraries other tests install. `cargo test -p e2e --test upstream -- --ignored` runs all, and takes ten minutes;
//! with `UPSTREAM_ONLY=kopf/` those whose path contains this.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};

use e2e::adapters::{KnownBug, Registry};
use e2e::toolchain::{self, or_skip, repository};
use e2e::upstream::owed::{self, Owed, Record};
use e2e::upstream::run::{self, Ran};
use e2e::upstream::{PAGE, Text, table, versions};
use rstest::rstest;
use scenario::catalogue::Provoker;

fn texts() -> Vec<Text> {
    Text::all(repository()).unwrap_or_else(|why| panic!("{why}"))
}

fn none(wrong: &[String]) {
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_text_has_its_parts() {
    let wrong = texts().into_iter().flat_map(|text| {
        let program = std::fs::read_to_string(repository().join(&text.head.program));
        match program {
            Ok(program) => text.wrong(&program),
            Err(error) => vec![format!("{}: {}: {error}", text.path, text.head.program)],
        }
    });
    none(&wrong.collect::<Vec<_>>());
}

#[test]
fn every_text_agrees_with_the_record() {
    let root = repository();
    let versions = versions(root).unwrap();
    let registry = Registry::read(root).unwrap();
    let records = Record::all(root).unwrap();
    let bugs = KnownBug::read(root).unwrap();
    let mut wrong = Vec::new();
    for Text { path, head, .. } in texts() {
        let listed = versions.get(&head.library).and_then(|versions| versions.first());
        if listed != Some(&head.version) {
            wrong.push(format!(
                "{path}: {} {} is not the newest of adapters/versions.yaml: {listed:?}",
                head.library, head.version
            ));
        }
        if provoker(root, &head.scenario).is_some_and(|provoker| provoker > Provoker::Proxy) {
            wrong.push(format!(
                "{path}: no server of a supported version, network or proxy sends the input of {}",
                head.scenario
            ));
        }
        for client in &head.clients {
            if !registry.clients.iter().any(|known| known.name == *client) {
                wrong.push(format!("{path}: there is no client {client}"));
            }
            let Some(record) = records.iter().find(|record| record.client == *client) else {
                wrong.push(format!("{path}: {client} has no record of failures"));
                continue;
            };
            let is_bug = |bug: &KnownBug| {
                bug.clients.contains(client) && bug.scenario.as_ref() == Some(&head.scenario)
            };
            let breaks = |id: &String| record.has_broken(id) || bugs.iter().any(is_bug);
            for id in head
                .requirements
                .iter()
                .chain(&head.also)
                .filter(|id| !breaks(id))
            {
                wrong.push(format!("{path}: the record of {client} does not have {id}"));
            }
        }
        // The library of an operator framework may be an older one than the text is about.
        let measured = |client: &String| {
            records
                .iter()
                .any(|record| record.client == *client && record.version == head.version)
        };
        if !head.clients.iter().any(measured) {
            wrong.push(format!(
                "{path}: no client of the record was measured with {}",
                head.version
            ));
        }
    }
    none(&wrong);
}

#[test]
fn a_weighty_defect_without_a_public_issue_has_a_text_or_a_reason() {
    let root = repository();
    let (records, bugs) = (Record::all(root).unwrap(), KnownBug::read(root).unwrap());
    let texts = texts();
    let has_text = |owed: &Owed| {
        texts.iter().any(|Text { head, .. }| match owed {
            Owed::Requirement { client, requirement } => {
                head.clients.contains(client)
                    && (head.requirements.contains(requirement) || head.also.contains(requirement))
            }
            Owed::Bug { client, scenario } => head.clients.contains(client) && head.scenario == *scenario,
        })
    };
    let owed = owed::owed(&records, &bugs, |scenario| provoker(root, scenario));
    let open = owed
        .iter()
        .filter(|owed| !has_text(owed) && !owed::is_explained(owed, &records, &bugs));
    let open: Vec<String> = open.map(|owed| format!("{owed:?}")).collect();
    assert!(
        open.is_empty(),
        "each needs a text in upstream/, or in adapters/known-bugs.yaml a public issue or `no_text`:\n{}",
        open.join("\n")
    );
}

#[test]
fn the_page_lists_all_texts() {
    let file = repository().join(PAGE);
    let page = std::fs::read_to_string(&file).unwrap();
    let (head, rest) = page.split_once("| library |").expect("the page has the table");
    let end = rest.split_once("\n\n").map_or("", |(_, end)| end);
    let expected = format!("{head}{}", table(&texts()));
    let expected = if end.is_empty() {
        expected
    } else {
        format!("{expected}\n{end}")
    };
    if page != expected && std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        std::fs::write(&file, &expected).unwrap();
        return;
    }
    assert!(
        page == expected,
        "the table of {PAGE} is not that of the texts; INSTA_UPDATE=always writes it"
    );
}

/// A part of a minute each.
#[rstest]
#[case::java("java")]
#[case::javascript("mjs")]
#[case::python("py")]
fn the_command_of_one_text_per_language_shows_its_defect(#[case] extension: &str) {
    let of = texts().into_iter();
    let of: Vec<Text> = of
        .filter(|text| text.head.gate && text.head.program.ends_with(extension))
        .collect();
    assert_eq!(
        of.len(),
        1,
        "one text has a program in {extension} and `gate: true`"
    );
    none(&unshown(&of));
}

#[test]
#[ignore = "takes ten minutes: .ci/nightly runs it"]
fn the_command_of_every_text_shows_its_defect() {
    let only = std::env::var("UPSTREAM_ONLY").unwrap_or_default();
    let mut texts = texts();
    texts.retain(|text| text.path.contains(&only));
    assert!(!texts.is_empty(), "no path of a text contains {only}");
    none(&unshown(&texts));
}

/// Commands that run at a time: they mostly wait.
const AT_A_TIME: usize = 3;

/// Exit code of a command that judged nothing, because the machine was busy.
const NOTHING_JUDGED: i32 = 4;

/// How often a command that judged nothing is repeated.
const REPETITIONS: usize = 3;

/// Runs the commands of texts. Returns what is wrong: each has to fail, and its report to charge the requirements of its text.
fn unshown(texts: &[Text]) -> Vec<String> {
    let target: PathBuf = toolchain::fake_apiserver()
        .ancestors()
        .nth(2)
        .expect("the folder of the profile lies in the target's")
        .to_owned();
    // Programs of one language share a build, so that this is not done in parallel.
    let prepared = texts.iter().filter_map(|text| {
        let prepared = or_skip(run::prepare(repository(), &target, text))?;
        Some((text, prepared))
    });
    let prepared: Mutex<Vec<_>> = Mutex::new(prepared.collect());
    let wrong = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                loop {
                    let next = prepared.lock().unwrap_or_else(PoisonError::into_inner).pop();
                    let Some((text, prepared)) = next else { break };
                    let mut ran = prepared.run();
                    for _ in 0..REPETITIONS {
                        if ran.code == Some(NOTHING_JUDGED) {
                            ran = prepared.run();
                        }
                    }
                    let missing = unshown_by(text, &ran);
                    wrong
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .extend(missing);
                }
            });
        }
    });
    wrong.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn unshown_by(text: &Text, ran: &Ran) -> Option<String> {
    let required = text.head.requirements.iter();
    let missing: Vec<&String> = required.filter(|id| !ran.requirements.contains(*id)).collect();
    // What breaks a SHOULD is a warning.
    let is_warned = ran.code == Some(0) && ran.output.contains("0 failed, 1 warned");
    let shown = (ran.code == Some(1) || is_warned) && missing.is_empty();
    (!shown).then(|| {
        format!(
            "{}: `{}` ended with {:?} and did not show {missing:?}:\n{}",
            text.path, text.head.command, ran.code, ran.output
        )
    })
}

/// Who sends the input of a scenario, where that is stricter than its requirements.
fn provoker(root: &Path, id: &str) -> Option<Provoker> {
    static READ: LazyLock<Mutex<BTreeMap<String, Option<Provoker>>>> = LazyLock::new(Mutex::default);
    let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    *read.entry(id.to_owned()).or_insert_with(|| {
        let scenarios = root.join("scenarios");
        let file = scenarios.join(format!("{id}.yaml"));
        let scenario = scenario::load(&file, &scenarios).unwrap_or_else(|errors| panic!("{id}: {errors:?}"));
        scenario.provoked_by
    })
}
