//! The project in `e2e/envtest`, a controller with an envtest suite as kubebuilder generates it, with the programs linked by
//! `fake-apiserver envtest-assets`: unchanged, with an injected 410, and two in parallel.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::LazyLock;
use std::time::Duration;

use e2e::lines::Lines;
use e2e::toolchain;
use rstest::rstest;
use serde_json::Value;

/// Interval and maximum number of polls for a file that another process writes.
const LOOK_EVERY: Duration = Duration::from_millis(10);
const LOOKS: u32 = 12_000;

/// Returns an empty folder for this test, in the target folder.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("envtest").join(name);
    drop(std::fs::remove_dir_all(&folder));
    std::fs::create_dir_all(&folder).expect("the target folder can be written");
    folder
}

/// Returns `fake-apiserver envtest-assets` for a folder, without our variables in its environment.
fn envtest_assets(folder: &Path) -> Command {
    let mut command = Command::new(toolchain::fake_apiserver());
    command.arg("envtest-assets").arg(folder);
    without_faults(&mut command);
    command
}

fn without_faults(command: &mut Command) {
    for variable in ["RULES", "SCENARIO", "VERDICT", "KUBERNETES_VERSION"] {
        command.env_remove(format!("FAKE_APISERVER_{variable}"));
    }
}

/// Returns its standard output, trimmed as by `$(…)`.
fn assets() -> &'static str {
    static MADE: LazyLock<String> = LazyLock::new(|| {
        let output = envtest_assets(&folder("assets"))
            .output()
            .expect("it was just built");
        assert!(output.status.success(), "{}", printed(&output));
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    });
    &MADE
}

/// Returns the same with the apiserver above in front of itself, in the part of a real one.
fn assets_in_front() -> &'static str {
    static MADE: LazyLock<String> = LazyLock::new(|| {
        let output = envtest_assets(&folder("assets-in-front"))
            .args(["--real", assets()])
            .output()
            .expect("it was just built");
        assert!(output.status.success(), "{}", printed(&output));
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    });
    &MADE
}

/// Returns the suite with the settings of a user. `None`: skip the test.
fn suite() -> Option<Command> {
    let mut suite = toolchain::or_skip(toolchain::envtest_project())?;
    without_faults(&mut suite);
    suite.arg("-test.v").env("KUBEBUILDER_ASSETS", assets());
    // For two cores with other load: a start takes 0.3 s by itself.
    suite.env("KUBEBUILDER_CONTROLPLANE_START_TIMEOUT", "2m");
    Some(suite)
}

fn printed(output: &Output) -> String {
    [&output.stdout, &output.stderr]
        .map(|bytes| String::from_utf8_lossy(bytes))
        .join("")
}

fn passes(output: &Output) {
    let text = printed(output);
    assert!(output.status.success(), "{text}");
    for test in ["TestReconcile", "TestUsersHaveNoRightsByDefault"] {
        assert!(text.contains(&format!("--- PASS: {test} ")), "{text}");
    }
}

/// Returns the lines of a verdict file.
fn verdicts(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).expect("every apiserver appends a line");
    text.lines()
        .map(|line| serde_json::from_str(line).expect(line))
        .collect()
}

/// Returns the number of LIST and WATCH requests of the controller, by the verdict.
fn reads(verdict: &Value) -> u64 {
    let clients = verdict["clients"].as_array().into_iter().flatten();
    clients.filter_map(|client| client["reads"].as_u64()).sum()
}

#[test]
fn suites_pass_two_at_a_time_and_no_verdict_is_lost() {
    let Some(mut suite) = suite() else { return };
    let file = folder("together").join("verdict.jsonl");
    suite.env("FAKE_APISERVER_VERDICT", &file);
    let mut other = Command::new(suite.get_program());
    other.args(suite.get_args());
    other.current_dir(suite.get_current_dir().expect("the tests have a folder"));
    for (name, value) in suite.get_envs() {
        match value {
            Some(value) => other.env(name, value),
            None => other.env_remove(name),
        };
    }
    let outputs = std::thread::scope(|scope| {
        [&mut suite, &mut other]
            .map(|suite| scope.spawn(|| suite.output().expect("it was just built")))
            .map(|running| running.join().expect("it does not panic"))
    });
    outputs.iter().for_each(passes);
    let verdicts = verdicts(&file);
    assert_eq!(verdicts.len(), 2, "one a suite: {verdicts:#?}");
    assert_ne!(verdicts[0]["pid"], verdicts[1]["pid"]);
    for verdict in &verdicts {
        assert_eq!(verdict["outcome"], "pass", "{verdict:#}");
        assert_eq!(verdict["stopped"], true, "{verdict:#}");
        assert!(reads(verdict) > 0, "{verdict:#}");
    }
}

#[rstest]
#[case::alone("faults", assets())]
#[case::in_front("faults-in-front", assets_in_front())]
fn a_suite_meets_a_410_that_it_does_not_know_of(#[case] name: &str, #[case] assets: &str) {
    let Some(mut suite) = suite() else { return };
    suite.env("KUBEBUILDER_ASSETS", assets);
    let folder = folder(name);
    let (rules, file) = (folder.join("rules.yaml"), folder.join("verdict-%p.jsonl"));
    // The suite defines the resource later.
    let text = "from: {resource: widgets.example.com}\nwhen: {watch: next}\ndo: {error: {code: 410, reason: Expired}}\n\
        ---\nfrom: {resource: configmaps, verb: create}\nwhen: {request: next}\ndo: {reply: {status: 500}}\n";
    std::fs::write(&rules, text).unwrap();
    suite
        .env("FAKE_APISERVER_RULES", &rules)
        .env("FAKE_APISERVER_VERDICT", &file);
    passes(&suite.output().unwrap());
    let mut written = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let verdict = written.find(|path| *path != rules).expect("%p is the process id");
    let verdicts = verdicts(&verdict);
    let [verdict] = verdicts.as_slice() else {
        panic!("{verdicts:#?}");
    };
    assert_eq!(verdict["rulesLeft"], Value::Array(Vec::new()), "both were met");
    assert_eq!(verdict["outcome"], "pass", "{verdict:#}");
}

#[test]
fn a_suite_meets_the_steps_of_a_scenario() {
    let Some(mut suite) = suite() else { return };
    let folder = folder("scenario");
    let (scenario, file) = (folder.join("scenario.yaml"), folder.join("verdict.jsonl"));
    let text = "scenario: v1\ntitle: Both watches expire at once\nwhy: A controller has several informers.\n\
        covers: [GONE-02]\nsteps:\n  - when: {watch: next}\n    times: 2\n    \
        do: {reply: {status: 410, reason: Expired}}\n  - when: {watch: 500}\n    do: {end: rst}\nexpect: {counts: [{list: {}, at_least: 1}]}\n";
    std::fs::write(&scenario, text).unwrap();
    suite
        .env("FAKE_APISERVER_SCENARIO", &scenario)
        .env("FAKE_APISERVER_VERDICT", &file)
        .env("KUBEBUILDER_ATTACH_CONTROL_PLANE_OUTPUT", "true");
    let output = suite.output().unwrap();
    passes(&output);
    assert!(
        printed(&output).contains("0 rules, scenario\n"),
        "{}",
        printed(&output)
    );
    let verdicts = verdicts(&file);
    assert_eq!(verdicts[0]["outcome"], "pass", "{verdicts:#?}");
    let left = &verdicts[0]["stepLeft"];
    assert_eq!(left["step"], 1, "two watches met the first step: {left:#}");
}

#[test]
fn a_mistake_in_the_rules_is_reported_before_the_suite_starts() {
    let folder = folder("mistake");
    let rules = folder.join("rules.yaml");
    std::fs::write(
        &rules,
        "when: {watch: next}\ndo: {eror: 410}\n---\nwhen: {list: nxt}\ndo: {end: rst}\n",
    )
    .unwrap();
    let output = envtest_assets(&folder)
        .env("FAKE_APISERVER_RULES", &rules)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", printed(&output));
    assert!(output.stdout.is_empty(), "a shell would take it for the path");
    assert!(printed(&output).contains("rules.yaml:1:"), "{}", printed(&output));
}

/// Returns the program and arguments of a kube-apiserver of `assets` without a suite, on a free port, with its files in `folder`.
fn apiserver(assets: &str, folder: &Path) -> Vec<String> {
    let key = folder.join("key");
    std::fs::write(&key, "-----BEGIN PRIVATE KEY-----\n").expect("the folder was just made");
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = free.local_addr().expect("it is bound").port();
    let program = Path::new(assets).join("kube-apiserver");
    let flag = |name: &str, value: &Path| format!("--{name}={}", value.display());
    vec![
        program.display().to_string(),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        "--etcd-servers=http://127.0.0.1:1".to_owned(),
        "--service-account-issuer=me".to_owned(),
        flag("cert-dir", &folder.join("certificates")),
        flag("service-account-key-file", &key),
        flag("service-account-signing-key-file", &key),
    ]
}

/// Starts it, and waits until it listens.
fn listening(mut command: Command, verdict: &Path) -> Child {
    without_faults(&mut command);
    command
        .env("FAKE_APISERVER_VERDICT", verdict)
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("it is there");
    let log = Lines::of(child.stderr.take().expect("piped above"));
    let started = log.find(0, |line| {
        line.contains("as kube-apiserver at https://").then_some(())
    });
    started.unwrap_or_else(|instead| panic!("it listens: {instead:?}"));
    child
}

/// Returns the only line of a verdict file. Another process writes it, so the file is polled.
fn only_verdict(file: &Path) -> Value {
    let (_open, never) = std::sync::mpsc::channel::<()>();
    for _ in 0..LOOKS {
        if std::fs::metadata(file).is_ok_and(|metadata| metadata.len() > 0) {
            break;
        }
        let _timeout = never.recv_timeout(LOOK_EVERY);
    }
    let mut verdicts = verdicts(file);
    assert_eq!(verdicts.len(), 1, "{verdicts:#?}");
    verdicts.remove(0)
}

/// fabric8's kube-api-test kills its programs (`Process.destroyForcibly`), and envtest those that do not stop in time.
#[test]
fn a_killed_apiserver_leaves_its_verdict() {
    let folder = folder("killed");
    let file = folder.join("verdict.jsonl");
    let line = apiserver(assets(), &folder);
    let mut command = Command::new(&line[0]);
    command.args(&line[1..]);
    let mut child = listening(command, &file);
    child.kill().unwrap();
    child.wait().unwrap();
    let verdict = only_verdict(&file);
    assert_eq!(verdict["stopped"], false);
    assert_eq!(verdict["outcome"], "nothing", "no client came");
}

/// A killed apiserver cannot stop the one behind it.
#[test]
fn the_apiserver_behind_a_killed_one_ends_too() {
    let folder = folder("killed-in-front");
    let line = apiserver(assets_in_front(), &folder);
    let mut command = Command::new(&line[0]);
    without_faults(command.args(&line[1..]).stderr(Stdio::piped()));
    let mut child = command.spawn().expect("it is there");
    let log = Lines::of(child.stderr.take().expect("piped above"));
    for listens in [
        "in front of kube-apiserver at https://",
        "as kube-apiserver at https://",
    ] {
        let found = log.find(0, |line| line.contains(listens).then_some(()));
        found.unwrap_or_else(|instead| panic!("{listens}: {instead:?}"));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // Both write to the pipe, so it ends with the later one.
    assert!(log.to_end().is_some(), "the one behind still runs");
}

/// A program that prints its arguments stands in for kube-controller-manager.
#[rstest]
#[case::alone("controllers", &[])]
#[case::in_front("controllers-in-front", &["--real", assets()])]
fn controllers_run_beside_the_apiserver(#[case] name: &str, #[case] arguments: &[&str]) {
    let (path, to) = (folder(&format!("{name}-path")), folder(name));
    let program = path.join("kube-controller-manager");
    std::fs::write(
        &program,
        "#!/bin/sh\necho controllers: \"$@\" >&2\nexec tail -f /dev/null\n",
    )
    .unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut made = envtest_assets(&to);
    let made = made.arg("--controllers").args(arguments).env("PATH", &path);
    let output = made.output().unwrap();
    assert!(output.status.success(), "{}", printed(&output));

    let line = apiserver(to.to_str().unwrap(), &to);
    let mut command = Command::new(&line[0]);
    without_faults(command.args(&line[1..]).stderr(Stdio::piped()));
    let mut child = command.spawn().expect("it is there");
    let log = Lines::of(child.stderr.take().expect("piped above"));
    let started = log.find(0, |line| line.strip_prefix("controllers: ").map(str::to_owned));
    let (_, started) = started.unwrap_or_else(|instead| panic!("{instead:?}"));
    for flag in ["--kubeconfig=/", "--controllers=namespace,garbagecollector"] {
        assert!(started.contains(flag), "{started}");
    }
    assert!(Left(child.id().to_string()).stop(), "it runs");
    assert!(child.wait().unwrap().success());
    assert!(log.to_end().is_some(), "the controllers still run");
}

#[test]
fn what_is_missing_of_the_real_programs_is_named() {
    let empty = folder("no-programs");
    let made = |arguments: &[&str]| {
        let mut command = envtest_assets(&folder("refused"));
        let output = command.args(arguments).env("PATH", &empty).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", printed(&output));
        assert!(output.stdout.is_empty(), "a shell would take it for the path");
        printed(&output)
    };
    let empty = empty.display().to_string();
    let none = made(&["--real", &empty]);
    assert!(none.contains("there is no kube-apiserver and no etcd"), "{none}");
    let none = made(&["--controllers"]);
    assert!(
        none.contains(&format!("no kube-controller-manager in {empty};")),
        "{none}"
    );
    let none = made(&["--real", assets(), "--controllers"]);
    assert!(none.contains(&format!("in {}, {empty};", assets())), "{none}");
}

/// A suite that panics, or has no `Stop`, leaves its control plane running.
#[test]
fn an_abandoned_apiserver_writes_its_verdict_and_goes_on() {
    let folder = folder("abandoned");
    let file = folder.join("verdict.jsonl");
    let mut suite = Command::new("sh");
    suite.args(["-c", r#""$0" "$@" >/dev/null & echo $!; read line"#]);
    suite.args(apiserver(assets(), &folder));
    suite.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut suite = listening(suite, &file);
    let printed = Lines::of(suite.stdout.take().expect("piped above"));
    let (_, pid) = printed
        .find(0, |line| Some(line.to_owned()))
        .expect("it printed the process");
    let mut left = Left(pid.clone());
    drop(suite.stdin.take());
    suite.wait().unwrap();
    let verdict = only_verdict(&file);
    assert_eq!(verdict["stopped"], false);
    assert_eq!(verdict["pid"].to_string(), pid);
    assert!(left.stop(), "it still ran");
}

/// A process that is not waited for; it ends with the test.
struct Left(String);

impl Left {
    /// Sends SIGTERM. Returns false if it has exited already.
    fn stop(&mut self) -> bool {
        let pid = std::mem::take(&mut self.0);
        !pid.is_empty()
            && Command::new("kill")
                .arg(pid)
                .status()
                .is_ok_and(|status| status.success())
    }
}

impl Drop for Left {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Flags and exit codes that libraries on top of envtest rely on.
#[test]
fn the_programs_behave_as_the_real_ones_do() {
    let run = |program: &str, argument: &str| {
        let mut command = Command::new(Path::new(assets()).join(program));
        command.arg(argument).output().expect("it is linked")
    };
    let unknown = run("kube-apiserver", "--insecure-port=0");
    assert_eq!(unknown.status.code(), Some(1));
    assert_eq!(printed(&unknown), "Error: unknown flag: --insecure-port\n");
    let unknown = run("etcd", "--foo");
    assert_eq!(unknown.status.code(), Some(2));
    assert!(printed(&unknown).starts_with("flag provided but not defined: -foo\nUsage:\n"));
    // controller-runtime's CheckFlag needs exit code 0 and a line that begins with the flag.
    for (program, flag) in [
        ("kube-apiserver", "--secure-port"),
        ("etcd", "--listen-client-urls"),
    ] {
        let help = run(program, "--help");
        assert!(help.status.success());
        assert!(
            printed(&help)
                .lines()
                .any(|line| line.trim_start().starts_with(flag)),
            "{program}"
        );
    }
}
