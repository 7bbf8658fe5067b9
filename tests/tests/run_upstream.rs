//! `fake-apiserver run --upstream`: a command is judged in front of a cluster, here one of `serve`.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdin, Output, Stdio};
use std::sync::LazyLock;

use rstest::rstest;
use serde_json::Value;
use tests::programs::program;

/// An object changes, and the watch ends.
const WRITES: &str = "watch/clean-eof-resumes-from-the-last-event";
/// A step that only the server in memory can do.
const COMPACTS: &str = "bookmark/progress-by-bookmark-outlives-a-compaction";
const FOLLOW: &str = env!("CARGO_BIN_EXE_follow");

/// A cluster, which ends with its standard input.
struct Cluster {
    child: Child,
    stdin: Option<ChildStdin>,
    kubeconfig: String,
    control: [(&'static str, String); 2],
}

impl Cluster {
    fn start() -> Self {
        Self::with(&[])
    }

    fn with(options: &[&str]) -> Self {
        let mut child = program("fake-apiserver")
            .args([
                "serve",
                "--tls",
                "--token",
                "of-the-cluster",
                "--announce",
                "json",
                "--exit-with-stdin",
                "--quiet",
            ])
            .args(options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it was just built");
        let mut line = String::new();
        let output = child.stdout.as_mut().expect("it is piped");
        BufReader::new(output).read_line(&mut line).expect("it is text");
        let announced: Value = serde_json::from_str(&line).expect("it is JSON");
        let text = |value: &Value| value.as_str().expect("it is text").to_owned();
        Self {
            stdin: child.stdin.take(),
            child,
            kubeconfig: text(&announced["kubeconfigs"][0]),
            control: [
                ("FAKE_APISERVER_CONTROL", text(&announced["control"])),
                ("FAKE_APISERVER_CONTROL_TOKEN", text(&announced["token"])),
            ],
        }
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = program("fake-apiserver");
        command.args(["run", "--upstream", "--as-me", "--kubeconfig", &self.kubeconfig]);
        command.args(arguments).env("NO_COLOR", "1");
        command.output().expect("it was just built")
    }

    fn ctl(&self, arguments: &[&str]) -> String {
        let mut command = program("fake-apiserver");
        command.arg("ctl").args(arguments).envs(self.control.clone());
        let done = command.output().expect("it was just built");
        assert!(done.status.success(), "{done:?}");
        String::from_utf8_lossy(&done.stdout).into_owned()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.stdin.take());
        // It ends with its input.
        let _ = self.child.wait();
    }
}

/// File of a scenario that expires watches, and writes nothing. Written once: a file that is being written is empty for a moment.
static FAULTS: LazyLock<String> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("scenarios/upstream");
    std::fs::create_dir_all(&folder).expect("the folder of tests can be written");
    let file = folder.join("an-expired-watch.yaml");
    let text = "scenario: v1\ntitle: A claim\nwhy: A reason.\ncovers: [GONE-01]\nsteps:\n  - when: {watch: 1}\n    \
                do: [{error: {code: 410, reason: Expired}}, eof]\n  - when: {watch: next}\n\
                expect:\n  within: 5s\n  requests: [list, watch, list, {watch: {resourceVersion: 12}}]\n";
    std::fs::write(&file, text).expect("the folder of tests can be written");
    file.display().to_string()
});

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_right_command_passes_and_nothing_is_written() {
    let cluster = Cluster::start();
    let ended = cluster.run(&[&FAULTS, WRITES, COMPACTS, "--", FOLLOW]);
    let text = printed(&ended);
    assert_eq!(ended.status.code(), Some(0), "{text}");
    for part in [
        "✔ upstream/an-expired-watch ",
        &format!("– {WRITES}   needs the server in memory: step 2"),
        "it writes to the cluster, which --allow-writes permits",
        &format!("– {COMPACTS}   needs the server in memory: step 2"),
        "1 passed, 0 failed, 2 skipped (2 need the server in memory)",
    ] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
    let trace = cluster.ctl(&["trace"]);
    assert!(!trace.contains("PATCH") && !trace.contains("DELETE"), "{trace}");
    assert!(trace.contains("LIST /api/v1/configmaps"), "{trace}");
}

/// Reads a custom resource, and lists it again after each watch.
const READS_WIDGETS: &str = r#"
import json, os, re, ssl, urllib.request
text = open(os.environ["KUBECONFIG"]).read()
server, token = (re.search('"?%s"?: "?([^"\\s,]+)' % key, text).group(1) for key in ("server", "token"))
opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=ssl._create_unverified_context()))
def get(query):
    url = server + "/apis/example.com/v1/namespaces/default/widgets" + query
    return opener.open(urllib.request.Request(url, headers={"Authorization": "Bearer " + token, "User-Agent": "widgets"}))
while True:
    version = json.load(get(""))["metadata"]["resourceVersion"]
    for line in get("?watch=true&resourceVersion=" + version): pass
"#;

/// An operator's own resource is found by the discovery of the cluster.
#[test]
fn a_custom_resource_is_one_of_the_cluster() {
    let definition = tests::repository::root().join("e2e/envtest/config/crd/bases/example.com_widgets.yaml");
    let cluster = Cluster::with(&["--crd", &definition.display().to_string()]);
    let widgets = ["--resource", "widgets.example.com"];
    let ended = cluster.run(&[&widgets[..], &[&FAULTS, "--", "python3", "-c", READS_WIDGETS]].concat());
    let text = printed(&ended);
    assert_eq!(ended.status.code(), Some(0), "{text}");
    assert!(text.contains("1 passed, 0 failed, 0 skipped"), "{text}");
    let ended = cluster.run(&[&widgets[..], &[&FAULTS, "--", FOLLOW]].concat());
    let text = printed(&ended);
    assert!(
        text.contains("the scenario is about widgets.example.com in namespace default"),
        "{text}"
    );
    let writes = ["--allow-writes", WRITES, "--", "python3", "-c", READS_WIDGETS];
    let ended = cluster.run(&[&widgets[..], &writes].concat());
    let text = printed(&ended);
    assert!(text.contains("1 passed, 0 failed, 0 skipped"), "{text}");
    for unknown in ["widgets", "gadgets.example.com", "widgets.example.org"] {
        let ended = cluster.run(&["--resource", unknown, &FAULTS, "--", FOLLOW]);
        let text = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(2), "{text}");
        let message =
            format!("--resource {unknown}: the cluster serves no resource {unknown}; kubectl api-resources");
        assert!(text.contains(&message), "{text}");
    }
}

#[test]
fn objects_of_a_scenario_are_written_if_allowed_and_deleted_afterwards() {
    let cluster = Cluster::start();
    let ended = cluster.run(&[WRITES, "--allow-writes", "--", FOLLOW]);
    let text = printed(&ended);
    assert_eq!(ended.status.code(), Some(0), "{text}");
    assert!(text.contains(&format!("✔ {WRITES} ")), "{text}");
    let trace = cluster.ctl(&["trace"]);
    for part in ["create configmaps/default/a", "delete configmaps/default/a"] {
        assert!(trace.contains(part), "no {part:?} in\n{trace}");
    }

    // What is there is not the scenario's to change.
    cluster.ctl(&["apply", "do: {apply: {configmap: {name: a, data: {of: me}}}}"]);
    let before = cluster.ctl(&["trace"]).matches("configmaps/default/a").count();
    let ended = cluster.run(&[WRITES, "--allow-writes", "--", FOLLOW]);
    let text = printed(&ended);
    assert_eq!(ended.status.code(), Some(4), "{text}");
    assert!(
        text.contains("the cluster has configmaps default/a, which the scenario would change"),
        "{text}"
    );
    let after = cluster.ctl(&["trace"]).matches("configmaps/default/a").count();
    assert_eq!(after, before, "it is not written");
}

/// A client that watches a version again that has just expired.
const STUBBORN: &str = r#"
set -eu
cd "$(mktemp -d)"
url=$(sed -n 's/.*"server": "\(.*\)".*/\1/p' "$KUBECONFIG")
token=$(sed -n 's/.*"token": "\(.*\)".*/\1/p' "$KUBECONFIG")
sed -n 's/.*"certificate-authority-data": "\(.*\)".*/\1/p' "$KUBECONFIG" | base64 -d > ca
get() { curl -sS --cacert ca -H "Authorization: Bearer $token" "$url/api/v1/namespaces/default/configmaps$1"; }
version=$(get "" | sed -n 's/.*"resourceVersion":"\([0-9]*\)".*/\1/p' | head -1)
while true; do get "?watch=true&resourceVersion=${version:-1}" > /dev/null || true; sleep 1; done
"#;

#[rstest]
#[case::text("text", "INV-04")]
#[case::junit("junit", "INV-04")]
#[case::json("json", "\"INV-04\"")]
fn a_wrong_command_fails(#[case] format: &str, #[case] shown: &str) {
    let cluster = Cluster::start();
    let ended = cluster.run(&[
        &FAULTS,
        "--timeout",
        "20s",
        "--format",
        format,
        "--",
        "sh",
        "-c",
        STUBBORN,
    ]);
    let text = printed(&ended);
    assert_eq!(
        ended.status.code(),
        Some(1),
        "{text} {}",
        String::from_utf8_lossy(&ended.stderr)
    );
    assert!(text.contains(shown), "no {shown:?} in\n{text}");
    if format == "text" {
        let again = format!("--upstream --kubeconfig {} --as-me", cluster.kubeconfig);
        assert!(text.contains(&again), "no {again:?} in\n{text}");
    }
}

#[rstest]
#[case::no_cluster(&["--upstream"], "which cluster? add --kubeconfig FILE")]
#[case::no_upstream(&["--kubeconfig", "/nowhere"], "add --upstream")]
#[case::nobody_to_write(&["--upstream", "--kubeconfig", "/nowhere", "--allow-writes"], "--as-me")]
#[case::no_file(&["--upstream", "--kubeconfig", "/nowhere"], "/nowhere: No such file")]
fn mistakes_are_explained(#[case] options: &[&str], #[case] message: &str) {
    let mut command = program("fake-apiserver");
    let ended = command
        .arg("run")
        .args(options)
        .args([&FAULTS, "--", "true"])
        .output();
    let ended = ended.expect("it was just built");
    let text = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(2), "{text}");
    assert!(text.contains(message), "no {message:?} in\n{text}");
}

#[test]
fn what_is_not_played_is_not_listed() {
    let list = |options: &[&str]| {
        let mut command = program("fake-apiserver");
        let ended = command.args(["run", "--list"]).args(options).output();
        printed(&ended.expect("it was just built"))
    };
    let before = ["--upstream", "--kubeconfig", "/nowhere"];
    let (all, some) = (list(&[]), list(&before));
    let writing = list(&[&before[..], &["--as-me", "--allow-writes"]].concat());
    assert!(!writing.contains(COMPACTS), "{writing}");
    assert!(
        all.contains(WRITES) && writing.contains(WRITES) && !some.contains(WRITES),
        "{some}"
    );
    let count = |list: &str| list.lines().count();
    assert!(0 < count(&some) && count(&some) < count(&writing) && count(&writing) < count(&all));
}
