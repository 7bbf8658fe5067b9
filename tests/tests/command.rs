//! The program `fake-apiserver` in its environment: existing files, readers that close or stall, signals, and
//! terminal control characters.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Output, Stdio};

use rstest::rstest;
use serde_json::Value;
use tests::exchange::exchange;
use tests::programs::{self, program};
use tests::repository;

/// A scenario that waits for a list and needs no reports.
const PLAYABLE: &str = "scenarios/auth/a-forbidden-list-is-surfaced-and-retried.yaml";

/// Returns an empty folder for one test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    // It may not exist.
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// A running server, stopped at the end of the test.
struct Serving {
    child: Child,
    kubeconfig: PathBuf,
    address: String,
}

impl Serving {
    fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut printed = BufReader::new(child.stdout.take().unwrap());
        printed.read_line(&mut line).unwrap();
        let kubeconfig = PathBuf::from(line.trim_end().strip_prefix("export KUBECONFIG=").unwrap());
        let config: Value = serde_json::from_str(&std::fs::read_to_string(&kubeconfig).unwrap()).unwrap();
        let server = config
            .pointer("/clusters/0/cluster/server")
            .and_then(Value::as_str);
        let address = server.unwrap().strip_prefix("http://").unwrap().to_owned();
        Self {
            child,
            kubeconfig,
            address,
        }
    }

    fn stderr(&mut self) -> ChildStderr {
        self.child.stderr.take().unwrap()
    }

    fn get(&self, path: &str, header: &str) -> String {
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\n{header}Connection: close\r\n\r\n",
            self.address
        );
        exchange(&self.address, &request)
    }

    fn signal(&mut self, signal: &str) -> ExitStatus {
        kill(signal, self.child.id());
        self.child.wait().unwrap()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have exited already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn kill(signal: &str, pid: u32) {
    let sent = Command::new("kill").args([signal, &pid.to_string()]).status();
    assert!(sent.unwrap().success());
}

fn serve() -> Command {
    let mut command = program("fake-apiserver");
    command.arg("serve");
    command
}

fn stderr_of(ended: &Output) -> String {
    String::from_utf8_lossy(&ended.stderr).into_owned()
}

// ---- Existing files

#[test]
fn a_kubeconfig_that_exists_is_refused_and_stays_as_it_was() {
    let folder = folder("kubeconfig-exists");
    let (file, link) = (folder.join("config"), folder.join("link"));
    std::fs::write(&file, "apiVersion: v1\nkind: Config\n").unwrap();
    std::os::unix::fs::symlink(folder.join("nowhere"), &link).unwrap();
    for taken in [file.as_path(), &link, Path::new("/dev/full")] {
        let ended = serve().arg("--kubeconfig").arg(taken).output().unwrap();
        assert_eq!(ended.status.code(), Some(2), "{}", stderr_of(&ended));
        let log = stderr_of(&ended);
        assert!(log.contains("exists and is never overwritten"), "{log}");
    }
    assert_eq!(
        std::fs::read_to_string(&file).unwrap(),
        "apiVersion: v1\nkind: Config\n"
    );
    assert!(link.is_symlink() && !folder.join("nowhere").exists());
    assert!(Path::new("/dev/full").exists());
}

#[test]
fn a_start_that_fails_leaves_no_kubeconfig() {
    let file = folder("failed-start").join("config");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let ended = serve()
        .args(["--control-port", &port, "--kubeconfig"])
        .arg(&file)
        .output()
        .unwrap();
    assert_eq!(ended.status.code(), Some(70), "{}", stderr_of(&ended));
    assert!(!file.exists());
}

#[test]
fn a_kubeconfig_put_in_the_place_of_ours_is_not_removed() {
    let folder = folder("kubeconfig-replaced");
    let (file, other) = (folder.join("config"), folder.join("other"));
    let mut serving = Serving::start(serve().arg("--kubeconfig").arg(&file));
    std::fs::write(&other, "of somebody else").unwrap();
    std::fs::rename(&other, &file).unwrap();
    assert!(serving.signal("-TERM").success());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "of somebody else");
}

#[test]
fn a_kubeconfig_that_a_killed_server_left_is_replaced_but_not_one_in_use() {
    let file = folder("kubeconfig-abandoned").join("config");
    let mut serving = Serving::start(serve().arg("--kubeconfig").arg(&file));
    let ended = serve().arg("--kubeconfig").arg(&file).output().unwrap();
    assert_eq!(ended.status.code(), Some(2), "{}", stderr_of(&ended));
    serving.signal("-KILL");
    assert!(file.exists());
    let mut next = Serving::start(serve().arg("--kubeconfig").arg(&file));
    assert!(next.signal("-TERM").success());
    assert!(!file.exists());
}

#[test]
fn no_state_is_written_through_a_link() {
    let runtime = folder("state-link");
    let elsewhere = folder("state-elsewhere");
    std::os::unix::fs::symlink(&elsewhere, runtime.join("fake-apiserver")).unwrap();
    let mut serving = Serving::start(serve().env("XDG_RUNTIME_DIR", &runtime));
    let mut stderr = serving.stderr();
    assert!(serving.signal("-TERM").success());
    let mut log = String::new();
    stderr.read_to_string(&mut log).unwrap();
    assert!(
        log.contains("ctl cannot find this server") && log.contains("is not a directory"),
        "{log}"
    );
    assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 0);
}

#[test]
fn the_state_is_its_users_alone() {
    let runtime = folder("state-modes");
    let mut serving = Serving::start(serve().env("XDG_RUNTIME_DIR", &runtime));
    let state = runtime.join("fake-apiserver");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let files: Vec<PathBuf> = std::fs::read_dir(&state)
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    assert_eq!((mode(&state), files.len()), (0o700, 1));
    assert_eq!(mode(&files[0]), 0o600);
    assert_eq!(mode(&serving.kubeconfig), 0o600);
    assert_eq!(mode(serving.kubeconfig.parent().unwrap()), 0o700);
    assert!(serving.signal("-TERM").success());
    assert!(!files[0].exists() && !serving.kubeconfig.exists());
}

// ---- Readers that close or stall

#[test]
fn a_reader_of_the_log_that_leaves_does_not_end_the_server() {
    let mut serving = Serving::start(&mut serve());
    drop(serving.stderr());
    for _ in 0..20 {
        assert!(serving.get("/healthz", "").starts_with("HTTP/1.1 200"));
    }
    assert!(serving.signal("-TERM").success());
}

#[test]
fn an_unread_log_stops_neither_the_server_nor_its_shutdown() {
    let mut serving = Serving::start(&mut serve());
    // A pipe takes 64 KiB; a request logs at least about 200 bytes.
    let path = format!("/api/v1/configmaps?labelSelector={}", "x".repeat(60));
    for _ in 0..1000 {
        assert!(serving.get(&path, "").starts_with("HTTP/1.1 200"));
    }
    assert!(serving.signal("-TERM").success());
}

#[test]
fn a_closed_standard_output_does_not_end_the_server() {
    let child = serve()
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut child = child;
    drop(child.stdout.take());
    let mut log = String::new();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    while !log.contains("control API at") {
        assert!(errors.read_line(&mut log).unwrap() > 0, "it ended: {log}");
    }
    kill("-TERM", child.id());
    assert!(child.wait().unwrap().success());
}

// ---- Data from clients

#[test]
fn requests_cannot_forge_lines_of_the_log() {
    let mut serving = Serving::start(&mut serve());
    let mut stderr = serving.stderr();
    let forged = "/healthz?x=%0A0.000s%20server%20%3C%20forged&y=%1b%5B2J";
    assert!(
        serving
            .get(forged, "User-Agent: a\u{9b}31m\r\n")
            .starts_with("HTTP/1.1 200")
    );
    assert!(serving.signal("-TERM").success());
    let mut log = String::new();
    stderr.read_to_string(&mut log).unwrap();
    assert!(log.contains(r"x=\n0.000s server < forged&y=\u{1b}[2J"), "{log}");
    assert!(!log.contains(['\x1b', '\u{9b}']), "{log:?}");
}

// ---- Tokens

#[rstest]
#[case::from_a_file(true)]
#[case::from_the_environment(false)]
fn a_token_need_not_be_on_the_command_line(#[case] from_file: bool) {
    let file = folder(&format!("token-{from_file}")).join("token");
    std::fs::write(&file, "secret-of-the-test\n").unwrap();
    let mut command = serve();
    if from_file {
        command.arg("--token-file").arg(&file);
    } else {
        command.env("FAKE_APISERVER_TOKEN", "secret-of-the-test");
    }
    let mut serving = Serving::start(&mut command);
    let path = "/api/v1/namespaces";
    let let_in = "Authorization: Bearer secret-of-the-test\r\n";
    assert!(serving.get(path, "").starts_with("HTTP/1.1 403"));
    assert!(serving.get(path, let_in).starts_with("HTTP/1.1 200"));
    assert!(serving.signal("-TERM").success());
}

#[rstest]
#[case::no_such_file(&["--token-file", "/no/such/file"], "/no/such/file")]
#[case::limited_alone(&["--limited-token", "x"], "--limited-token needs --token")]
#[case::empty(&["--token", ""], "must be visible ASCII")]
fn tokens_that_cannot_work_are_refused(#[case] arguments: &[&str], #[case] log: &str) {
    let ended = serve().args(arguments).output().unwrap();
    assert_eq!(ended.status.code(), Some(2));
    assert!(stderr_of(&ended).contains(log), "{}", stderr_of(&ended));
}

// ---- A command under test

#[test]
fn a_command_may_print_anything() {
    let script =
        r"printf '\377\376\033[2Jx\n'; head -c 100000 /dev/zero | tr '\0' y; echo; echo after; exit 3";
    let ended = program("fake-apiserver")
        .args(["run", PLAYABLE, "--", "sh", "-c", script])
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&ended.stdout);
    assert_eq!(ended.status.code(), Some(3), "{printed}");
    assert!(printed.contains("exited with code 3"), "{printed}");
    assert!(printed.contains("output after"), "{printed}");
    assert!(
        !printed.contains('\x1b') && printed.lines().all(|line| line.len() < 5_000),
        "{printed:?}"
    );
}

#[test]
fn a_hangup_ends_the_command_too() {
    let folder = folder("hangup");
    let facts = folder.join("facts");
    let script = format!(
        "echo $$ $KUBECONFIG > '{0}.new'; mv '{0}.new' '{0}'; exec sleep 1000",
        facts.display()
    );
    // Tests may have been started by `nohup`, and ignored signals stay ignored in children.
    let mut running = Command::new("env")
        .arg("--default-signal=HUP")
        .arg(programs::path("fake-apiserver"))
        .current_dir(repository::root())
        .args(["run", PLAYABLE, "--trace", "--", "sh", "-c"])
        .arg(format!("echo started; {script}"))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut errors = BufReader::new(running.stderr.take().unwrap());
    let mut log = String::new();
    while !log.contains("command | started") {
        assert!(errors.read_line(&mut log).unwrap() > 0, "it ended: {log}");
    }
    while !facts.exists() {
        std::thread::yield_now();
    }
    kill("-HUP", running.id());
    running.wait().unwrap();
    let facts = std::fs::read_to_string(&facts).unwrap();
    let (pid, kubeconfig) = facts.trim().split_once(' ').unwrap();
    assert!(!Path::new("/proc").join(pid).exists(), "{pid} still runs");
    assert!(!Path::new(kubeconfig).exists(), "{kubeconfig} is left behind");
}
