//! `fake-apiserver run`: its output about a command, and its exit codes.

use std::path::{Path, PathBuf};
use std::process::Output;

use rstest::rstest;
use tests::programs::program;

/// A scenario that waits for a list and needs no reports.
const PLAYABLE: &str = "scenarios/auth/a-forbidden-list-is-surfaced-and-retried.yaml";
/// A scenario that needs a setting which requests do not show.
const NEEDS_CONFIGURATION: &str = "scenarios/conn/a-dead-peer-is-noticed-within-a-minute.yaml";

fn run(arguments: &[&str]) -> Output {
    let mut command = program("fake-apiserver");
    command.arg("run").args(arguments).env("NO_COLOR", "1");
    command.output().expect("it was just built")
}

#[rstest]
#[case::needs_configuration(&[NEEDS_CONFIGURATION, "--", "true"], 4, "needs a client configured with `idle_timeout: 50000ms`")]
#[case::ends_without_a_request(&[PLAYABLE, PLAYABLE, "--", "sh", "-c", "echo the reason; exit 7"], 3, "the reason")]
#[case::ends_well_without_a_request(&[PLAYABLE, "--", "true"], 3, "the command exited with code 0 after 0.")]
#[case::as_junit(&[PLAYABLE, "--format", "junit", "--", "false"], 3, "before any request")]
#[case::as_json(&[PLAYABLE, "--format", "json", "--", "false"], 3, "\"outcome\":\"not_started\"")]
fn outcomes_have_a_message_and_an_exit_code(
    #[case] arguments: &[&str],
    #[case] code: i32,
    #[case] message: &str,
) {
    let ended = run(arguments);
    let printed = String::from_utf8_lossy(&ended.stdout);
    assert_eq!(ended.status.code(), Some(code), "{printed}");
    assert!(printed.contains(message), "no {message:?} in\n{printed}");
}

#[rstest]
#[case::no_such_command(&[PLAYABLE, "--", "/no/such/command"], 3, "cannot start /no/such/command")]
#[case::no_such_resource(&["--list", "--resource", "unicorns"], 2, "--resource unicorns: unknown resource; expected a name such as pods")]
#[case::no_such_scenario(&["no-such.yaml", "--", "true"], 2, "no-such.yaml")]
fn failures_have_a_message_and_an_exit_code(
    #[case] arguments: &[&str],
    #[case] code: i32,
    #[case] message: &str,
) {
    let ended = run(arguments);
    let printed = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(code), "{printed}");
    assert!(printed.contains(message), "no {message:?} in\n{printed}");
}

#[rstest]
#[case::as_listed("list-only", "mismatch", "[WATCH-01]", 0, "known failure of ")]
#[case::breaks_something_else("list-only", "mismatch", "[RETRY-05]", 1, "0 passed, 1 failed, 0 skipped")]
#[case::another_outcome("list-only", "crash", "[WATCH-01]", 1, "0 passed, 1 failed, 0 skipped")]
#[case::it_passes("list-and-watch", "mismatch", "[]", 5, "passes: remove the entry")]
fn a_known_failure_does_not_fail_a_run(
    #[case] name: &str,
    #[case] outcome: &str,
    #[case] breaks: &str,
    #[case] code: i32,
    #[case] message: &str,
) {
    let requests = match name {
        "list-only" => "only: true, requests: [list]",
        _ => "requests: [list, watch]",
    };
    let id = format!("known-{name}-{outcome}-{}", breaks.len());
    let steps = "steps: [{when: {watch: 1}}]";
    let path = scenario(&id, &format!("{steps}\nexpect: {{{requests}}}\n"));
    let list = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(&id)
        .with_extension("yaml");
    let entry = format!(
        "- {{scenario: run/{id}, outcome: {outcome}, breaks: {breaks}, reason: it watches, issue: none public}}\n"
    );
    std::fs::write(&list, entry).expect("the folder of tests can be written");
    let list = list.display().to_string();
    let ended = run(&[
        &path,
        "--known-failures",
        &list,
        "--",
        env!("CARGO_BIN_EXE_follow"),
    ]);
    let printed = String::from_utf8_lossy(&ended.stdout);
    assert_eq!(ended.status.code(), Some(code), "{printed}");
    assert!(printed.contains(message), "no {message:?} in\n{printed}");
}

/// What no MUST forbids, and what nobody is known to send, is shown and fails no run.
#[rstest]
#[case::a_must("kube-apiserver", &[], 1, "mismatch", "0 passed, 1 failed, 0 skipped")]
#[case::a_should_at_most("aggregated-or-old-server", &[], 0, "warning", "0 passed, 0 failed, 1 warned, 0 skipped")]
#[case::warnings_count("aggregated-or-old-server", &["--strict"], 1, "mismatch", "0 passed, 1 failed, 0 skipped")]
#[case::hardening("nobody-known", &["--strict", "--retries", "1"], 0, "not scored, mismatch", "0 passed, 0 failed, 1 not scored, 0 skipped")]
fn a_failure_counts_by_its_level(
    #[case] provoked_by: &str,
    #[case] options: &[&str],
    #[case] code: i32,
    #[case] word: &str,
    #[case] counts: &str,
) {
    let steps = "steps: [{when: {watch: 1}}]\nexpect: {only: true, requests: [list]}\n";
    let name = format!("level-{provoked_by}-{}", options.len());
    let path = scenario(&name, &format!("provoked_by: {provoked_by}\n{steps}"));
    let ended = run(&[options, &[&path, "--", env!("CARGO_BIN_EXE_follow")]].concat());
    let printed = String::from_utf8_lossy(&ended.stdout);
    assert_eq!(ended.status.code(), Some(code), "{printed}");
    for message in [word, counts] {
        assert!(printed.contains(message), "no {message:?} in\n{printed}");
    }
}

#[test]
fn scenarios_are_listed_without_being_played() {
    let ended = run(&["--list", "gone/", "--shard", "1/2"]);
    let first = String::from_utf8_lossy(&ended.stdout).into_owned();
    let ended = run(&["--list", "gone/", "--shard", "2/2"]);
    let second = String::from_utf8_lossy(&ended.stdout).into_owned();
    let ended = run(&["--list", "gone/"]);
    let all = String::from_utf8_lossy(&ended.stdout).into_owned();
    let mut parts: Vec<&str> = first.lines().chain(second.lines()).collect();
    parts.sort_unstable();
    assert!(first.lines().count() > 2 && second.lines().count() > 2, "{all}");
    assert_eq!(parts, all.lines().collect::<Vec<_>>());
}

/// In a folder, scenarios that take long are skipped.
#[test]
fn long_scenarios_of_a_folder_are_not_played() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("scenarios/long");
    std::fs::create_dir_all(&folder).expect("the folder of tests can be written");
    let text = "scenario: v1\ntitle: A claim\nsteps: [{when: {after: 70s}, do: eof}]\n";
    std::fs::write(folder.join("claim.yaml"), text).expect("the folder of tests can be written");
    let ended = run(&[&folder.display().to_string(), "--", "false"]);
    let printed = String::from_utf8_lossy(&ended.stdout);
    assert_eq!(ended.status.code(), Some(4), "{printed}");
    let message = "needs 70 s of real time: name its file to play it";
    assert!(printed.contains(message), "no {message:?} in\n{printed}");
}

/// Scripts that wait for reports, use HTTP/2 over TLS and refuse connections, for a command without reports.
#[test]
fn a_command_without_an_adapter_passes_what_it_does_right() {
    let scenarios = [
        "bookmark/empty-version-is-no-place-to-resume",
        "conn/a-graceful-goaway-lets-the-watch-run-on",
        "conn/a-reset-watch-resumes-where-it-was",
        "event/an-addition-of-a-known-object-replaces-it",
        "gone/error-event-in-mid-stream-forces-a-relist",
        "stream/large-events-are-read",
        "watch/clean-ends-cost-no-list",
    ];
    let files: Vec<String> = scenarios.map(|id| format!("scenarios/{id}.yaml")).into();
    let mut arguments: Vec<&str> = files.iter().map(String::as_str).collect();
    arguments.extend(["--jobs", "7", "--", env!("CARGO_BIN_EXE_follow")]);
    let ended = run(&arguments);
    let printed = String::from_utf8_lossy(&ended.stdout);
    assert_eq!(ended.status.code(), Some(0), "{printed}");
    for id in scenarios {
        assert!(printed.contains(&format!("✔ {id} ")), "no {id} in\n{printed}");
    }
}

/// A server that is down does not listen, and returns on the same port.
#[test]
fn a_command_outlives_a_server_that_is_down() {
    let ended = run(&[
        "scenarios/conn/an-outage-in-mid-watch-is-survived.yaml",
        "--",
        env!("CARGO_BIN_EXE_follow"),
    ]);
    let printed = String::from_utf8_lossy(&ended.stdout);
    assert_eq!(ended.status.code(), Some(0), "{printed}");
}

/// Writes a scenario file with these steps and expectations.
fn scenario(name: &str, text: &str) -> String {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("scenarios/run");
    std::fs::create_dir_all(&folder).expect("the folder of tests can be written");
    let file = folder.join(name).with_extension("yaml");
    let head = "scenario: v1\ntitle: A claim\nwhy: A reason.\ncovers: [WATCH-01]\n";
    std::fs::write(&file, format!("{head}{text}")).expect("the folder of tests can be written");
    file.display().to_string()
}

/// A command that does nothing fails the step that waits for it, after `--hang-after`; one that sends requests is not accused of
/// what is missing.
#[rstest]
#[case::silent("exec sleep 600", 1, "step 2 (line 8) waited 2")]
#[case::active(
    "while :; do sleep 0.5; curl -s -o /dev/null \"$url\"; done",
    4,
    "not judged: stopped by --timeout after 4 s, when step 2 was waiting for the 1st WATCH"
)]
fn only_silence_is_a_hang(#[case] then: &str, #[case] code: i32, #[case] message: &str) {
    let steps =
        "steps:\n  - when: {list: 1}\n    do: {reply: {status: 500}}\n  - when: {watch: 1}\n    do: eof\n";
    let url =
        r#"url=$(sed -n 's/.*"server": "\(.*\)".*/\1/p' "$KUBECONFIG")/api/v1/namespaces/default/configmaps"#;
    let script = format!("{url}; curl -s -o /dev/null \"$url\"; {then}");
    let file = scenario(&format!("silence-{code}"), steps);
    let times = ["--hang-after", "2s", "--timeout", "4s"];
    let ended = run(&[&times[..], &[&file, "--", "sh", "-c", &script]].concat());
    let printed = String::from_utf8_lossy(&ended.stdout);
    assert_eq!(ended.status.code(), Some(code), "{printed}");
    assert!(printed.contains(message), "no {message:?} in\n{printed}");
}

/// If no fault took effect, a client that deviates from the script may be correct.
#[rstest]
#[case::a_cut_behind_the_end(
    "cut-behind-the-end",
    "steps:\n  - when: {list: 1}\n    do: {truncate: {after_bytes: 1000000, then: rst}}\nexpect: {requests: [list, list]}\n",
    "the `truncate` of step 1 (line 6) never took effect"
)]
#[case::another_way(
    "another-way",
    "steps:\n  - when: {watch: 1, query: {limit: \"3\"}}\n    within: 1s\n    do: eof\n",
    "the server had injected no fault by then: the client took another way: step 1 (line 6)"
)]
fn a_fault_without_effect_proves_nothing(#[case] name: &str, #[case] text: &str, #[case] message: &str) {
    let ended = run(&[&scenario(name, text), "--", env!("CARGO_BIN_EXE_follow")]);
    let printed = String::from_utf8_lossy(&ended.stdout);
    assert_eq!(ended.status.code(), Some(4), "{printed}");
    assert!(printed.contains("not judged: "), "{printed}");
    assert!(printed.contains(message), "no {message:?} in\n{printed}");
}

/// What an operator reads and writes before its own resource, with `curl` and the server of its kubeconfig: namespaces,
/// discovery, access reviews, leases.
#[test]
fn a_command_finds_a_whole_cluster() {
    let review = "apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let reviewed = r#"{"spec":{"resourceAttributes":{"verb":"list","resource":"configmaps"}}}"#;
    let script = format!(
        r#"
        url=$(sed -n 's/.*"server": "\(.*\)".*/\1/p' "$KUBECONFIG")
        get() {{ curl -sf "$url/$1" >/dev/null || {{ echo "no $1" >&2; exit 9; }}; }}
        post() {{ curl -sf -H 'Content-Type: application/json' -d "$2" "$url/$1" || {{ echo "no $1" >&2; exit 9; }}; }}
        for path in version healthz api apis openapi/v3 api/v1/namespaces/default api/v1/namespaces/kube-system \
            apis/apiregistration.k8s.io/v1/apiservices/v1.apps apis/apiextensions.k8s.io/v1/customresourcedefinitions
        do get "$path"; done
        post {review} '{reviewed}' | tr -d ' ' | grep -q '"allowed":true' || {{ echo 'not allowed' >&2; exit 9; }}
        for namespace in default kube-system
        do post "apis/coordination.k8s.io/v1/namespaces/$namespace/leases?dryRun=All" '{{"metadata":{{"name":"leader"}}}}' >/dev/null; done
        exec "$FOLLOW"
        "#
    );
    let mut command = program("fake-apiserver");
    let scenario = "scenarios/conn/a-reset-watch-resumes-where-it-was.yaml";
    command
        .args(["run", scenario, "--", "sh", "-c", &script])
        .env("NO_COLOR", "1")
        .env("FOLLOW", env!("CARGO_BIN_EXE_follow"));
    let ended = command.output().expect("it was just built");
    let printed = String::from_utf8_lossy(&ended.stdout);
    assert_eq!(ended.status.code(), Some(0), "{printed}");
}

/// The example reads ConfigMaps of all namespaces.
#[rstest]
#[case::to_another_namespace(
    &["--namespace", "shop"],
    0,
    "✔ gone/error-event-in-mid-stream-forces-a-relist "
)]
#[case::to_what_the_command_does_not_read(
    &["--resource", "deployments.apps"],
    4,
    "the command read configmaps in all namespaces, but the scenario is about deployments.apps in namespace default: make it read that, or move the scenario: --resource configmaps"
)]
fn scenarios_are_retargeted(#[case] to: &[&str], #[case] code: i32, #[case] message: &str) {
    let mut arguments = vec!["scenarios/gone/error-event-in-mid-stream-forces-a-relist.yaml"];
    arguments.extend(to);
    arguments.extend(["--", env!("CARGO_BIN_EXE_follow")]);
    let ended = run(&arguments);
    let printed = String::from_utf8_lossy(&ended.stdout);
    assert_eq!(ended.status.code(), Some(code), "{printed}");
    assert!(printed.contains(message), "no {message:?} in\n{printed}");
}

#[rstest]
#[case::depends_on_its_kind(
    "a-kind-as-written",
    "steps:\n  - when: {watch: 1}\n    do: {send: '{\"type\":\"ADDED\",\"object\":{\"kind\":\"ConfigMap\"}}'}\n",
    "not judged: it cannot be moved: a `send` sends a ConfigMap as it is written"
)]
fn scenarios_that_cannot_be_retargeted_are_not_judged(
    #[case] name: &str,
    #[case] text: &str,
    #[case] message: &str,
) {
    let ended = run(&[&scenario(name, text), "--resource", "pods", "--", "true"]);
    let printed = String::from_utf8_lossy(&ended.stdout);
    assert_eq!(ended.status.code(), Some(4), "{printed}");
    assert!(printed.contains(message), "no {message:?} in\n{printed}");
}

/// A client in Python that lists and watches ConfigMaps. `sys.argv[1]`: what its process does after the stream of its first watch
/// ended, if it is the first one: `fails` or `ends`.
const CLIENT: &str = r#"
import json, os, re, sys, urllib.request
server = re.search(r'"?server"?: *"?([^",\s]+)', open(os.environ["KUBECONFIG"]).read()).group(1)
path = server + "/api/v1/namespaces/default/configmaps"
marker = os.environ["KUBECONFIG"] + ".started"
first = not os.path.exists(marker)
open(marker, "w").close()
print("process", "1" if first else "2", flush=True)
while True:
    version = json.load(urllib.request.urlopen(path))["metadata"]["resourceVersion"]
    with urllib.request.urlopen(path + "?watch=true&timeoutSeconds=30&resourceVersion=" + version) as watch:
        for line in watch:
            pass
    if first and sys.argv[1] == "fails":
        sys.exit("the watch ended")
    if sys.argv[1] == "ends":
        sys.exit(0)
"#;

/// The watch ends after an event, and another one follows.
const ENDS_A_WATCH: &str = "objects: [{configmap: {name: a}}]
steps:
  - when: {watch: 1}
  - as: b
    do: {apply: {configmap: {name: b}}}
  - eof
  - apply: {configmap: {name: c}}
expect:
  requests:
    - list
    - {watch: {resourceVersion: $start}}
    - {watch: {resourceVersion: $b}}
";

/// A command that exits with an error and is started again is judged by what it does then; one that exits without an error, or
/// is not started again, gave up.
#[rstest]
#[case::restarted("fails", &[], 0, "restarted 1× (exited with code 1)")]
#[case::never_restarted("fails", &["--restart", "never"], 1, "the command exited with code 1 before the scenario was over")]
#[case::ended("ends", &[], 1, "the client gave up for good before the scenario was over")]
fn a_command_that_fails_is_started_again(
    #[case] then: &str,
    #[case] options: &[&str],
    #[case] code: i32,
    #[case] message: &str,
) {
    let file = scenario(&format!("restart-{then}-{code}"), ENDS_A_WATCH);
    let mut arguments = vec![file.as_str()];
    arguments.extend(options);
    arguments.extend(["--", "python3", "-c", CLIENT, then]);
    let ended = run(&arguments);
    let printed = String::from_utf8_lossy(&ended.stdout);
    assert_eq!(ended.status.code(), Some(code), "{printed}");
    assert!(printed.contains(message), "no {message:?} in\n{printed}");
}

/// A command that gives up the first time and not the second is flaky. The page and the directory have the first attempt.
#[rstest]
#[case::a_failure(&[], 1, "0 passed, 1 failed")]
#[case::reported_only(&["--flaky", "report"], 0, "0 passed, 0 failed")]
fn a_failure_is_repeated_and_kept(#[case] options: &[&str], #[case] code: i32, #[case] counts: &str) {
    let name = format!("flaky-{code}");
    let file = scenario(&name, ENDS_A_WATCH);
    let folder = new_folder(&name);
    let path = |name: &str| folder.join(name).display().to_string();
    let script = r#"mkdir "$2" 2>/dev/null && then=ends || then=fails; exec python3 -c "$1" $then"#;
    let (page, kept, mark) = (path("report.html"), path("evidence"), path("mark"));
    let mut arguments = vec![
        file.as_str(),
        "--retries",
        "2",
        "--html",
        &page,
        "--evidence",
        &kept,
    ];
    arguments.extend(options);
    arguments.extend(["--", "sh", "-c", script, "sh", CLIENT, &mark]);
    let ended = run(&arguments);
    let printed = String::from_utf8_lossy(&ended.stdout);
    assert_eq!(ended.status.code(), Some(code), "{printed}");
    for message in [
        "flaky\n",
        "tries  mismatch, pass\n",
        "the client gave up for good",
        counts,
    ] {
        assert!(printed.contains(message), "no {message:?} in\n{printed}");
    }
    let drawn = std::fs::read_to_string(&page).expect("the page was written");
    let id = format!("run/{name}");
    for text in [
        &id,
        "the client gave up for good",
        "LIST /api/v1/namespaces/default/configmaps",
    ] {
        assert!(drawn.contains(text), "no {text:?} in the page");
    }
    // What was kept draws the same.
    let again = path("again.html");
    let mut report = program("fake-apiserver");
    let drawn = report.args(["report", &kept, "--html", &again]).status();
    assert!(drawn.is_ok_and(|status| status.success()));
    let again = std::fs::read_to_string(again).expect("the page was written");
    assert!(again.contains("the client gave up for good"));
    // Nothing is overwritten.
    let ended = run(&arguments);
    assert_eq!(ended.status.code(), Some(2));
}

/// An edition leaves out what it does not list, and what it withdrew accuses nobody.
#[test]
fn an_edition_selects_and_scores() {
    let listed = |options: &[&str]| {
        let ended = run(&[&["--list", "page/"], options].concat());
        String::from_utf8_lossy(&ended.stdout).lines().count()
    };
    assert!(listed(&["--edition", "2026.1"]) < listed(&[]));
    assert!(listed(&["--edition", "2026.1"]) > 3);
    let ended = run(&["--list", "--edition", "2025.1"]);
    assert_eq!(ended.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&ended.stderr).contains("this version has: 2026.1"));
}

/// Returns a new empty folder for a test.
fn new_folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("run").join(name);
    match std::fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => panic!("{error}"),
        Ok(()) | Err(_) => {}
    }
    std::fs::create_dir_all(&folder).expect("the folder of tests can be written");
    folder
}

/// A command that fails again and again is not judged, and its output is shown.
#[test]
fn a_command_that_keeps_failing_is_not_judged() {
    let script = r#"url=$(sed -n 's/.*"server": "\(.*\)".*/\1/p' "$KUBECONFIG"); curl -s -o /dev/null "$url/api"; echo the reason; exit 2"#;
    let file = scenario(
        "keeps-failing",
        "steps:\n  - when: {list: 1}\n    do: {reply: {status: 500}}\n",
    );
    let times = ["--hang-after", "1s", "--timeout", "6s"];
    let ended = run(&[&times[..], &[&file, "--", "sh", "-c", script]].concat());
    let printed = String::from_utf8_lossy(&ended.stdout);
    assert_eq!(ended.status.code(), Some(4), "{printed}");
    let message = "not judged: the command exited with code 2 after";
    assert!(
        printed.contains(message) && printed.contains("output the reason"),
        "{printed}"
    );
}

/// A scenario that needs a setting is judged if the command's requests have its value.
#[rstest]
#[case::with_the_value("timeout: 30s", 0, "1 passed")]
#[case::with_another_value("timeout: 10s", 4, "and add --assume-configured=timeout\n")]
fn requests_show_what_a_command_is_configured_with(
    #[case] client: &str,
    #[case] code: i32,
    #[case] message: &str,
) {
    let text = format!("client: {{{client}}}\nsteps: [{{when: {{watch: 1}}}}]\n");
    let file = scenario(&format!("settings-{code}"), &text);
    let ended = run(&[&file, "--", "python3", "-c", CLIENT, "lives"]);
    let printed = String::from_utf8_lossy(&ended.stdout);
    assert_eq!(ended.status.code(), Some(code), "{printed}");
    assert!(printed.contains(message), "no {message:?} in\n{printed}");
}

/// A stop request ends the run with what was played.
#[test]
fn an_interrupted_run_has_no_verdict_on_what_it_interrupted() {
    let mut command = program("fake-apiserver");
    let script = r#"kill -INT $PPID; exec sleep 600"#;
    command
        .args([
            "run", PLAYABLE, PLAYABLE, "--format", "json", "--", "sh", "-c", script,
        ])
        .env("NO_COLOR", "1");
    let ended = command.output().expect("it was just built");
    let printed = String::from_utf8_lossy(&ended.stdout);
    assert_eq!(ended.status.code(), Some(130), "{printed}");
    let lines: Vec<serde_json::Value> = printed
        .lines()
        .map(|line| serde_json::from_str(line).expect("every line is JSON"))
        .collect();
    assert_eq!(lines.len(), 2, "{printed}");
    assert_eq!(lines[0]["outcome"], "interrupted");
    assert_eq!(lines[1]["footer"]["interrupted"], true);
}

/// A controller as people write them: it renews a lease, records an event, and marks every object of the target.
const OPERATOR: &str = r#"
import http.client, json, os, re, threading, time, urllib.request
server = re.search(r'"?server"?: *"?([^",\s]+)', open(os.environ["KUBECONFIG"]).read()).group(1)
configmaps = "/api/v1/namespaces/default/configmaps"
leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"

def send(method, path, body=None, content="application/json"):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(server + path, data, {"Content-Type": content}, method=method)
    try:
        return json.load(urllib.request.urlopen(request))
    except OSError:
        return {}

def renew():
    while True:
        now = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())
        send("PATCH", leases + "/operator", {"spec": {"renewTime": now, "leaseTransitions": time.time_ns() % 1000}},
             "application/merge-patch+json")
        time.sleep(0.3)

def mark(found):
    if "marked" not in found["metadata"].get("annotations", {}):
        path = configmaps + "/" + found["metadata"]["name"]
        send("PATCH", path, {"metadata": {"annotations": {"marked": "yes"}}}, "application/merge-patch+json")

send("POST", leases, {"metadata": {"name": "operator"}, "spec": {"holderIdentity": "operator"}})
reference = {"kind": "Lease", "name": "operator", "namespace": "kube-system"}
send("POST", "/api/v1/namespaces/kube-system/events",
     {"metadata": {"name": "elected"}, "involvedObject": reference, "reason": "LeaderElection"})
threading.Thread(target=renew, daemon=True).start()
version = None
while True:
    try:
        if version is None:
            listed = json.load(urllib.request.urlopen(server + configmaps))
            version = listed["metadata"]["resourceVersion"]
            for item in listed["items"]:
                mark(item)
        query = "?watch=true&allowWatchBookmarks=true&timeoutSeconds=300&resourceVersion=" + version
        with urllib.request.urlopen(server + configmaps + query) as watch:
            for line in watch:
                if not line.endswith(b"\n"):
                    break
                event = json.loads(line)
                if event["type"] == "ERROR":
                    version = None
                    break
                version = event["object"]["metadata"]["resourceVersion"]
                if event["type"] in ("ADDED", "MODIFIED"):
                    mark(event["object"])
    except (OSError, http.client.HTTPException):
        pass
    time.sleep(0.3)
"#;

/// The versions of such a client are not those of a client that only reads, and it is never idle.
#[test]
fn a_client_that_writes_is_not_accused() {
    let scenarios = [
        "conn/a-line-cut-at-forty-percent-is-not-an-event",
        "conn/a-reset-watch-resumes-where-it-was",
        "conn/cut-mid-line-resumes-from-the-last-whole-event",
        "event/the-version-of-a-deletion-is-where-to-resume",
        "gone/error-event-at-watch-start-forces-a-relist",
        "gone/error-event-in-mid-stream-forces-a-relist",
        "watch/clean-ends-cost-no-list",
        "watch/clean-eof-resumes-from-the-last-event",
    ];
    let files: Vec<String> = scenarios.map(|id| format!("scenarios/{id}.yaml")).into();
    let mut arguments: Vec<&str> = files.iter().map(String::as_str).collect();
    arguments.extend(["--jobs", "8", "--", "python3", "-c", OPERATOR]);
    let ended = run(&arguments);
    let printed = String::from_utf8_lossy(&ended.stdout);
    assert!(
        ended.status.success() && printed.contains("8 passed, 0 failed"),
        "{printed}"
    );
}

/// A client that only watches: each watch starts without a version, as with a list.
const WATCHER: &str = r#"
import http.client, os, re, time, urllib.request
server = re.search(r'"?server"?: *"?([^",\s]+)', open(os.environ["KUBECONFIG"]).read()).group(1)
while True:
    try:
        with urllib.request.urlopen(server + "/api/v1/namespaces/default/configmaps?watch=true") as watch:
            for line in watch:
                pass
    except (OSError, http.client.HTTPException):
        pass
    time.sleep(0.3)
"#;

#[test]
fn a_watch_without_a_version_is_a_start_like_a_list() {
    let text = "objects: [{configmap: {name: a}}]
steps:
  - when: {emitted: init_done}
    as: b
    do: {apply: {configmap: {name: b}}}
  - when: {emitted: {apply: b}}
    do: rst
  - apply: {configmap: {name: c}}
expect:
  requests:
    - list
    - {watch: {resourceVersion: $start}}
    - {resume: $b}
  counts: [{list: {}, at_least: 2}]
";
    let file = scenario("starts-without-a-version", text);
    let ended = run(&[&file, "--", "python3", "-c", WATCHER]);
    let printed = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success(), "{printed}");
}

/// A client that waits before it lists again: for as long as its first argument, in seconds, and with its stream open.
const PATIENT: &str = r#"
import json, os, re, sys, time, urllib.request
server = re.search(r'"?server"?: *"?([^",\s]+)', open(os.environ["KUBECONFIG"]).read()).group(1)
path = server + "/api/v1/namespaces/default/configmaps"
while True:
    version = json.load(urllib.request.urlopen(path))["metadata"]["resourceVersion"]
    watch = urllib.request.urlopen(path + "?watch=true&resourceVersion=" + version)
    for line in watch:
        if json.loads(line)["type"] == "ERROR":
            break
    time.sleep(float(sys.argv[1]))
"#;

/// A run does not end before a client that is between two watches, or was sent an ERROR, has done what is expected.
#[rstest]
#[case::its_stream_stays_open("do: {error: {code: 410, reason: Expired}}", "")]
#[case::its_stream_ends("do: eof", "  not_converged: an event was dropped\n")]
fn what_is_expected_is_waited_for(#[case] fault: &str, #[case] expect: &str) {
    let text = format!(
        "objects: [{{configmap: {{name: a}}}}]
steps:
  - {{when: {{watch: 1}}, {fault}}}
expect:
  requests: [list, watch, list]
{expect}"
    );
    let file = scenario(&format!("waits-{}", expect.len()), &text);
    let ended = run(&[&file, "--", "python3", "-c", PATIENT, "3"]);
    let printed = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success(), "{printed}");
}
