//! `fake-apiserver conformance`: clients behind the adapter protocol get the verdicts of in-process clients, and an
//! adapter that violates the protocol gets an error that describes the violation, without effect on its client.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Output;

use conformance::baseline::Failure;
use fake_apiserver::scenario::edition;
use rstest::rstest;
use serde_json::Value;
use tests::programs::{path, program};
use tests::repository;

/// A scenario that takes our watcher less than a second.
const SHORT: &str = "watch/clean-eof-resumes-from-the-last-event";

/// Hello message of shell-script adapters.
const HELLO: &str = r#"{"ev":"hello","protocol":1,"client":{"name":"broken","lang":"sh","version":"1"},"contracts":["informer"],"caps":[CAPS],"recovers":"none"}"#;

fn conformance(arguments: &[&str], adapter: &[&str]) -> Output {
    let mut command = program("fake-apiserver");
    command.arg("conformance").args(arguments).arg("--").args(adapter);
    command.env("NO_COLOR", "1").output().expect("it was just built")
}

fn watcher() -> String {
    path("adapter-watcher").display().to_string()
}

fn printed(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// Returns the lines of `--format json`; the footer is the last.
fn lines(output: &Output) -> Vec<Value> {
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines()
        .map(|line| serde_json::from_str(line).expect(line))
        .collect()
}

/// Returns a new folder for the files of one test.
fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the target folder can be written");
    folder
}

#[test]
fn our_watcher_passes_what_is_played() {
    // A third of the scenarios: `cargo xtask conformance --client watcher` runs all.
    let arguments = [
        "--shard",
        "1/3",
        "--jobs",
        "64",
        "--timeout",
        "30s",
        "--format",
        "json",
    ];
    let output = conformance(&arguments, &[&watcher()]);
    assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
    let tests = lines(&output);
    let footer = &tests[tests.len() - 1]["footer"];
    assert_eq!(footer["complete"], true);
    assert!(footer["outcomes"]["pass"].as_u64() > Some(25), "{footer}");
    // One watch or one list of it cannot be started.
    let unsupported = tests.iter().filter(|test| test["outcome"] == "unsupported");
    let others = |test: &&Value| !test["id"].as_str().is_some_and(|id| id.starts_with("contract-"));
    assert_eq!(
        unsupported.filter(others).collect::<Vec<_>>(),
        Vec::<&Value>::new()
    );
}

/// kube-runtime fails as a process in real time what it fails in-process in virtual time, and nothing else.
#[test]
fn kube_runtime_fails_what_it_is_known_to_fail() {
    let adapter = path("adapter-kube-runtime");
    let groups = ["decode/", "wlist/"];
    let mut arguments = groups.to_vec();
    arguments.extend(["--jobs", "64", "--timeout", "20s", "--format", "json"]);
    let tests = lines(&conformance(&arguments, &[&adapter.display().to_string()]));
    let known = repository::known_failures("kube-runtime");
    // In virtual time its watch ends after five minutes, and the test continues.
    let idles = "decode/an-error-event-without-a-code-is-not-an-object";
    let mut seen = BTreeMap::new();
    for test in &tests[..tests.len() - 1] {
        let outcome: conformance::adapter::outcome::Outcome =
            serde_json::from_value(test["outcome"].clone()).unwrap();
        if !outcome.is_judged() {
            assert!(["unsupported", "not-played"].contains(&outcome.word()), "{test}");
            continue;
        }
        let id = test["id"].as_str().unwrap();
        let listed = known.of(id).map(|known| {
            if id == idles {
                Failure::Stuck
            } else {
                known.outcome
            }
        });
        match listed {
            Some(listed) => assert!(listed.is(outcome), "{test}"),
            None => assert!(outcome.word() == "pass" || is_by_chance(test), "{test}"),
        }
        *seen.entry(listed.is_some()).or_insert(0) += 1;
    }
    assert!(seen[&true] > 5 && seen[&false] > 5, "{seen:?}");
}

/// Returns true for the test whose result is random: it ignores `Retry-After`, and its first delay is 0.8 to 1.6 s.
fn is_by_chance(test: &Value) -> bool {
    let found = test["attempts"][0]["contradictions"].as_array();
    found.is_some_and(|found| !found.is_empty() && found.iter().all(|found| found["check"] == "INV-16"))
}

#[rstest]
#[case::no_hello("cat >/dev/null", 3, "printed no `hello` within 300 ms")]
#[case::cannot_start("exit 127", 3, "the adapter exited with status 127 before it printed `hello`")]
#[case::bad_json("echo '{\"ev\":'; cat >/dev/null", 3, "the line is not JSON")]
#[case::misspelt("echo '{\"ev\":\"helo\"}'; cat >/dev/null", 3, "did you mean `hello`?")]
#[case::stays_after_a_probe(
    "hello; read start; tail -f /dev/null",
    3,
    "did not exit at the end of standard input"
)]
#[case::fails_a_probe(
    "hello; read start || exit 1",
    3,
    "exited with status 1 at the end of standard input"
)]
#[case::dies(
    "hello; read start || exit 0; echo boom >&2; exit 3",
    1,
    "crashed: the process exited with status 3 before `stop`; last line on standard error: boom"
)]
#[case::leaves(
    "hello; read start || exit 0; exit 0",
    1,
    "crashed: the process exited with status 0 before `stop`"
)]
#[case::hangs("hello; cat >/dev/null", 1, "the client never did it: step 1 (line 9) waited")]
#[case::ignores_stop(
    "hello; trap '' TERM; read start || exit 0; tail -f /dev/null",
    3,
    "did not exit within 5 s of `stop`"
)]
#[case::floods(
    "hello; read start || exit 0; yes",
    3,
    "printed more than 16 MiB of text on standard output, first: y"
)]
#[case::reports_without_end(
    "hello; read start || exit 0; echo '{\"ev\":\"synced\"}'; yes \"{\\\"ev\\\":\\\"apply\\\",\\\"name\\\":\\\"$(printf %05000d 0)\\\",\\\"uid\\\":\\\"u\\\",\\\"rv\\\":\\\"1\\\"}\"",
    3,
    "printed more than 32 MiB of events"
)]
#[case::prints_only_json(
    "hello; read start || exit 0; echo '{}'; cat >/dev/null",
    3,
    "the line has no `ev`"
)]
#[case::takes_it_back(
    "hello; read start || exit 0; echo '{\"ev\":\"unsupported\",\"what\":\"contract\",\"why\":\"no\"}'; cat >/dev/null",
    3,
    "answered `unsupported` (contract: no) to what its `hello` declares"
)]
#[case::shows_no_lists(
    "hello '\"init-events\"'; read start || exit 0; echo '{\"ev\":\"synced\"}'; echo '{\"ev\":\"apply\",\"name\":\"a\",\"uid\":\"u\",\"rv\":\"1\"}'; cat >/dev/null",
    3,
    "declares `init-events` and printed `apply` before `init`"
)]
#[case::shuts_its_mouth(
    "hello; read start || exit 0; exec >&-; cat >/dev/null",
    3,
    "closed its standard output before `stop`"
)]
fn a_broken_adapter_gets_a_specific_error(#[case] script: &str, #[case] code: i32, #[case] message: &str) {
    let hello = format!("hello() {{ echo '{}'; }}; ", HELLO.replace("CAPS", "'\"$1\"'"));
    let arguments = [
        SHORT,
        "--hello-timeout",
        if script.starts_with("hello") {
            "10s"
        } else {
            "300ms"
        },
        "--timeout",
        "2s",
    ];
    let output = conformance(&arguments, &["sh", "-c", &format!("{hello}{script}")]);
    let printed = printed(&output);
    assert_eq!(output.status.code(), Some(code), "{printed}");
    assert!(printed.contains(message), "no {message:?} in\n{printed}");
    // Only the client's own behaviour is attributed to it.
    assert_eq!(
        printed.contains("adapter-error"),
        code == 3 && printed.contains("tests:"),
        "{printed}"
    );
}

#[test]
fn a_library_that_prints_costs_a_note() {
    let script = format!("echo starting; exec {}", watcher());
    let output = conformance(&[SHORT], &["sh", "-c", &script]);
    assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
    assert!(
        printed(&output).contains("note   the adapter printed 1 line"),
        "{}",
        printed(&output)
    );
}

/// The adapter declares a cache that it does not have.
#[test]
fn a_missing_capability_is_the_adapters_fault() {
    let script = format!(r#"{} | sed -u 's/"caps":\[/"caps":["cache",/'"#, watcher());
    let output = conformance(&[SHORT], &["sh", "-c", &script]);
    assert_eq!(output.status.code(), Some(3), "{}", printed(&output));
    assert!(
        printed(&output).contains("answered `unsupported` (cmd: dump)"),
        "{}",
        printed(&output)
    );
}

fn check_adapter(adapter: &[&str]) -> Output {
    let mut command = program("fake-apiserver");
    command
        .args(["check-adapter", "--timeout", "6s", "--"])
        .args(adapter);
    command.output().expect("it was just built")
}

#[rstest]
#[case::watcher("adapter-watcher")]
#[case::kube_runtime("adapter-kube-runtime")]
fn a_correct_adapter_passes_the_check(#[case] adapter: &str) {
    let output = check_adapter(&[path(adapter).to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
    assert!(printed(&output).contains("no mistakes"), "{}", printed(&output));
}

/// Each is our watcher's adapter, `W`, wrapped with one mistake.
#[rstest]
#[case::no_hello("exit 1", "the adapter exited with status 1 before it printed `hello`")]
#[case::prints(
    "echo starting; exec W",
    "the adapter printed 1 line of text on standard output, first: starting"
)]
#[case::any_contract_will_do(
    r#"sed -u 's/none-5eed/informer/' | W"#,
    "an unknown contract was not answered"
)]
#[case::drops_an_option(
    r#"sed -u 's/"pageSize":[0-9]*,*//' | W"#,
    "no request had limit=2: pass the option to the library"
)]
#[case::drops_events(
    r#"W | grep --line-buffered -v '"ev":"delete"'"#,
    "no `delete` for a deleted object"
)]
#[case::drops_the_set(
    r#"W | grep --line-buffered -v '"ev":"init-apply"'"#,
    "no event about the objects of the first list"
)]
#[case::never_synced(r#"W | sed -u 's/"init-events",//; /"ev":"init"/d; /"ev":"init-done"/d; s/"ev":"init-apply"/"ev":"add"/'"#, "no `synced` after the initial list")]
#[case::hides_relists(
    r#"W | sed -u '0,/"ev":"init"/!{/"ev":"init"}/d}'"#,
    "printed no second `init`"
)]
#[case::goes_on_in_a_pause(r#"sed -u 's/"events":1/"events":9/' | W"#, "an event was printed in a pause")]
#[case::ends_at_once(r#"W | sed -u '/"ev":"init-done"/a {"ev":"end"}'"#, "`end`")]
fn adapter_errors_are_specific(#[case] script: &str, #[case] message: &str) {
    let output = check_adapter(&["sh", "-c", &script.replace('W', &watcher())]);
    assert_eq!(output.status.code(), Some(1), "{}", printed(&output));
    assert!(
        printed(&output).contains(message),
        "no {message:?} in\n{}",
        printed(&output)
    );
}

#[test]
fn nothing_selected_is_not_green() {
    let output = conformance(&["no/such"], &[&watcher()]);
    assert_eq!(output.status.code(), Some(4));
    assert!(
        printed(&output).contains("no scenario begins with no/such; groups: auth"),
        "{}",
        printed(&output)
    );
    // All selected, and none run.
    let idle = format!("echo '{}'; cat >/dev/null", HELLO.replace("CAPS", ""));
    let output = conformance(&["meta/metadata"], &["sh", "-c", &idle]);
    assert_eq!(output.status.code(), Some(4), "{}", printed(&output));
    assert!(
        printed(&output).contains("unsupported: needs the capabilities `metadata-only`"),
        "{}",
        printed(&output)
    );
}

#[test]
fn known_failures_are_expected_and_stale_ones_are_not() {
    let folder = folder("known");
    let file = folder.join("known.yaml");
    let entry = |id: &str, outcome: &str| {
        std::fs::write(
            &file,
            format!("- {{scenario: {id}, outcome: {outcome}, reason: r, issue: none public}}\n"),
        )
        .unwrap();
    };
    let dies = format!(
        "echo '{}'; read start || exit 0; exit 3",
        HELLO.replace("CAPS", "")
    );
    let run = |adapter: &[&str]| {
        let output = conformance(&[SHORT, "--known-failures", file.to_str().unwrap()], adapter);
        (output.status.code(), printed(&output))
    };
    entry(SHORT, "crash");
    let (code, message) = run(&["sh", "-c", &dies]);
    assert!(
        code == Some(0) && message.contains("1 known-failure"),
        "{message}"
    );
    let (code, message) = run(&[&watcher()]);
    assert!(
        code == Some(5) && message.contains("remove the entry"),
        "{message}"
    );
    entry(SHORT, "hang");
    let (code, message) = run(&["sh", "-c", &dies]);
    assert!(code == Some(1), "{message}");
    entry("gone/no-such-scenario", "fail");
    let (code, message) = run(&[&watcher()]);
    assert!(
        code == Some(5) && message.contains("there is no scenario gone/no-such-scenario"),
        "{message}"
    );
    entry(SHORT, "pass");
    let (code, message) = run(&[&watcher()]);
    assert!(code == Some(2) && message.contains("known.yaml:1:"), "{message}");
}

#[test]
fn a_flaky_test_shows_all_of_its_attempts() {
    let folder = folder("flaky");
    // Every other start fails, but no probe does.
    let script = format!(
        "n={0}/n; if [ -e $n.2 ]; then rm $n.1 $n.2; exec {1}; elif [ -e $n.1 ]; then touch $n.2; echo '{2}'; read start; exit 3; else touch $n.1; exec {1}; fi",
        folder.display(),
        watcher(),
        // The hello message must not change.
        hello_of_watcher()
    );
    let adapter = ["sh", "-c", &script];
    let output = conformance(&[SHORT, "--retries", "2", "--format", "json"], &adapter);
    let test = &lines(&output)[0];
    assert_eq!(output.status.code(), Some(1), "{test}");
    assert_eq!(
        (&test["standing"], &test["outcome"]),
        (&"flaky".into(), &"crash".into()),
        "{test}"
    );
    assert_eq!(test["attempts"].as_array().map(Vec::len), Some(2), "{test}");
    for start in ["n.1", "n.2"] {
        let _ = std::fs::remove_file(folder.join(start));
    }
    let junit = folder.join("junit.xml");
    let arguments = [
        SHORT,
        "--retries",
        "1",
        "--flaky",
        "report",
        "--junit",
        junit.to_str().unwrap(),
    ];
    let output = conformance(&arguments, &adapter);
    assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
    assert!(
        printed(&output).contains("tries  crash, pass"),
        "{}",
        printed(&output)
    );
    assert!(std::fs::read_to_string(junit).unwrap().contains("type=\"flaky\""));
}

/// Judging old evidence again gives the same verdict; a modified verdict is detected.
#[test]
fn rejudged_evidence_gives_the_same_verdict() {
    let folder = folder("evidence");
    let kept = folder.join("kept");
    let scenarios = [
        SHORT,
        "gone/error-event-in-mid-stream",
        "scale/a-slow-consumer-loses",
    ];
    let mut arguments = scenarios.to_vec();
    let always = ["--keep", "always", "--evidence", kept.to_str().unwrap()];
    arguments.extend(always);
    assert_eq!(conformance(&arguments, &[&watcher()]).status.code(), Some(0));
    let dies = format!(
        "echo '{}'; read start || exit 0; exit 3",
        HELLO.replace("CAPS", "")
    );
    let lies = format!(
        "echo '{}'; read start || exit 0; echo '{{}}'",
        HELLO.replace("CAPS", "")
    );
    let stands = format!("echo '{}'; cat >/dev/null", HELLO.replace("CAPS", ""));
    for (name, script) in [("dies", &dies), ("lies", &lies), ("stands", &stands)] {
        let kept = kept.join(name);
        let output = conformance(
            &[SHORT, "--timeout", "2s", "--evidence", kept.to_str().unwrap()],
            &["sh", "-c", script],
        );
        assert_ne!(output.status.code(), Some(0), "{}", printed(&output));
    }
    let recheck = || {
        program("fake-apiserver")
            .arg("recheck")
            .arg(&kept)
            .output()
            .unwrap()
    };
    let output = recheck();
    let message = printed(&output);
    assert_eq!(output.status.code(), Some(0), "{message}");
    assert!(
        message.contains("6 attempts, 0 with another verdict"),
        "{message}"
    );
    for outcome in ["pass", "crash", "hang", "adapter-error, nothing to judge"] {
        assert!(
            message.contains(&format!("   {outcome}\n")),
            "no {outcome} in\n{message}"
        );
    }
    let attempt = kept.join("dies").join(SHORT).join("attempt-1/attempt.json");
    let text = std::fs::read_to_string(&attempt).unwrap();
    std::fs::write(&attempt, text.replace("\"crash\"", "\"fail\"")).unwrap();
    let output = recheck();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        printed(&output).contains("was fail (version"),
        "{}",
        printed(&output)
    );
    // Existing evidence is never mixed with new evidence.
    assert_eq!(conformance(&arguments, &[&watcher()]).status.code(), Some(2));
}

/// A scenario that is newer than the edition runs, is shown, and fails nothing.
#[test]
fn an_edition_counts_what_it_has() {
    let folder = folder("conformance-edition");
    let scenarios = folder.join("scenarios");
    // kube-runtime passes the one and fails the other, which is made one that no edition has.
    for (from, to) in [
        (SHORT, SHORT),
        ("bookmark/older-bookmark-does-not-rewind", "bookmark/newer"),
    ] {
        let to = scenarios.join(format!("{to}.yaml"));
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(repository::root().join(format!("scenarios/{from}.yaml")), to).unwrap();
    }
    let (scenarios, kept) = (scenarios.to_str().unwrap(), folder.join("kept"));
    let adapter = path("adapter-kube-runtime").display().to_string();
    let run = |arguments: &[&str]| {
        let mut all = vec!["--scenarios", scenarios];
        all.extend(arguments);
        conformance(&all, &[&adapter])
    };
    let output = run(&["--strict"]);
    assert_eq!(output.status.code(), Some(1), "{}", printed(&output));
    let output = run(&["--edition", "2026.1", "--strict", "--retries", "3"]);
    let message = printed(&output);
    assert_eq!(output.status.code(), Some(0), "{message}");
    for words in [
        "edition 2026.1 (sha256 ",
        "bookmark/newer   not scored, warn: ",
        "of these: 1 not-scored",
    ] {
        assert!(message.contains(words), "no {words} in\n{message}");
    }
    let output = run(&["bookmark/", "--edition", "latest"]);
    assert_eq!(
        output.status.code(),
        Some(4),
        "nothing counts: {}",
        printed(&output)
    );
    let output = run(&["--edition", "1999.1"]);
    assert!(
        printed(&output).contains("this version has: 2026.1, latest"),
        "{}",
        printed(&output)
    );

    let junit = folder.join("results.xml");
    let arguments = ["--edition", "2026.1", "--format", "json", "--keep", "always"];
    let files = [
        "--evidence",
        kept.to_str().unwrap(),
        "--junit",
        junit.to_str().unwrap(),
    ];
    let tests = lines(&run(&[&arguments[..], &files[..]].concat()));
    // In the order in which they end.
    for test in &tests[..2] {
        let expected = if test["id"] == SHORT { "ok" } else { "not-scored" };
        assert_eq!(test["standing"], expected, "{test}");
    }
    let footer = &tests[2]["footer"];
    assert_eq!(footer["edition"], "2026.1");
    let digest = &edition::edition("2026.1").unwrap().digest;
    assert_eq!(footer["editionDigest"], **digest);
    assert_eq!(
        footer["requirements"]["must"]["kept"],
        footer["requirements"]["must"]["judged"]
    );
    let junit = std::fs::read_to_string(junit).unwrap();
    assert!(
        junit.contains("skipped") && junit.contains("not scored: "),
        "{junit}"
    );
    let mut recheck = program("fake-apiserver");
    let output = recheck.arg("recheck").arg(&kept).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
    let attempt = kept.join(SHORT).join("attempt-1/attempt.json");
    let attempt = std::fs::read_to_string(attempt).unwrap();
    assert!(attempt.contains("\"edition\": \"2026.1\""), "{attempt}");
    assert!(
        attempt.contains(&format!("\"editionDigest\": \"{digest}\"")),
        "{attempt}"
    );
}

fn hello_of_watcher() -> String {
    let mut adapter = std::process::Command::new(watcher());
    let output = adapter
        .stdin(std::process::Stdio::null())
        .output()
        .expect("it was just built");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
fn parts_are_disjoint_and_complete() {
    let idle = format!(
        "echo '{}'; cat >/dev/null",
        HELLO
            .replace("CAPS", "")
            .replace("\"caps\"", "\"resources\":[\"nothings\"],\"caps\"")
    );
    let ids = |arguments: &[&str]| -> Vec<String> {
        let mut all = vec!["--format", "json"];
        all.extend(arguments);
        let tests = lines(&conformance(&all, &["sh", "-c", &idle]));
        tests
            .iter()
            .filter_map(|test| test["id"].as_str().map(str::to_owned))
            .collect()
    };
    let all: BTreeSet<String> = ids(&[]).into_iter().collect();
    let parts: Vec<String> = ["1/3", "2/3", "3/3"]
        .iter()
        .flat_map(|part| ids(&["--shard", part]))
        .collect();
    assert_eq!(parts.len(), all.len());
    assert_eq!(parts.into_iter().collect::<BTreeSet<_>>(), all);
    assert!(all.len() > 150);
}
