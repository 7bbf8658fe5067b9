//! Both command lines as programs: output, files, and exit codes.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use rstest::rstest;
use serde_json::Value;
use tests::programs::{self, program};
use tests::repository;

// ---- fake-apiserver play

/// A running `fake-apiserver play`, stopped at the end of the test.
struct Playing(Child);

impl Drop for Playing {
    fn drop(&mut self) {
        // It may have exited already.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn play_serves_a_scenario_through_its_kubeconfig() {
    let file = "scenarios/watch/clean-ends-cost-no-list.yaml";
    let child = program("fake-apiserver")
        .args(["play", file])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut playing = Playing(child);
    let mut line = String::new();
    let mut printed = BufReader::new(playing.0.stdout.take().unwrap());
    printed.read_line(&mut line).unwrap();
    let kubeconfig = line.trim_end().strip_prefix("export KUBECONFIG=");
    let kubeconfig = Path::new(kubeconfig.unwrap_or_else(|| panic!("no kubeconfig in {line:?}"))).to_owned();

    let config: Value = serde_json::from_str(&std::fs::read_to_string(&kubeconfig).unwrap()).unwrap();
    let server = config
        .pointer("/clusters/0/cluster/server")
        .and_then(Value::as_str)
        .unwrap();
    let address = server.strip_prefix("http://").unwrap();
    let answer = get(address, "/api/v1/namespaces/default/configmaps?limit=500");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    let body = &answer[answer.find('{').unwrap()..=answer.rfind('}').unwrap()];
    let list: Value = serde_json::from_str(body).unwrap();
    assert_eq!(list.get("kind"), Some(&Value::from("ConfigMapList")));
    let items = list.get("items").and_then(Value::as_array).unwrap();
    let names: Vec<&str> = items
        .iter()
        .map(|item| item.pointer("/metadata/name").and_then(Value::as_str).unwrap())
        .collect();
    assert_eq!(names, ["a", "b"]);

    // As sent by `kill` and an interrupt.
    let pid = playing.0.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-TERM", &pid])
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(playing.0.wait().unwrap().code(), Some(0));
    assert!(!kubeconfig.exists(), "{} is left behind", kubeconfig.display());
    let mut shown = String::new();
    let mut errors = playing.0.stderr.take().unwrap();
    errors.read_to_string(&mut shown).unwrap();
    assert!(
        shown.contains("LIST /api/v1/namespaces/default/configmaps?limit=500"),
        "{shown}"
    );
}

#[test]
fn play_points_at_the_error_in_a_file() {
    let file = broken_file("broken.yaml");
    let ended = program("fake-apiserver").arg("play").arg(&file).output().unwrap();
    assert_eq!(ended.status.code(), Some(2), "{}", text_of(&ended.stderr));
    assert_eq!(text_of(&ended.stdout), "");
    let place = format!("{}:6:5", file.display());
    let message = text_of(&ended.stderr);
    assert!(message.contains(&place), "no {place} in\n{message}");
}

/// Writes a scenario with an error in line 6, column 5.
fn broken_file(name: &str) -> PathBuf {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let text = "scenario: v1\ntitle: t\nwhy: w\ncovers: [LIST-01]\nsteps:\n  - wenn: {list: 1}\n";
    std::fs::write(&file, text).expect("Cargo made the folder");
    file
}

fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("the server listens");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("the server reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the server answers");
    answer
}

// ---- cargo xtask scenarios

#[test]
fn json_is_a_record_a_scenario_and_a_footer() {
    let ended = scenarios(&["gone/", "tl/", "--format", "json"]);
    assert_eq!(ended.status.code(), Some(0), "{}", text_of(&ended.stderr));
    let printed = text_of(&ended.stdout);
    let mut lines: Vec<Value> = printed
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let footer = lines.pop().unwrap();
    let count = |of: &str| footer.pointer(&format!("/footer/{of}")).and_then(Value::as_u64);
    let all = repository::scenarios();
    let ids: Vec<&str> = all
        .iter()
        .map(|scenario| scenario.id.as_str())
        .filter(|id| id.starts_with("gone/") || id.starts_with("tl/"))
        .collect();
    assert_eq!(count("scenarios"), Some(ids.len() as u64));
    assert_eq!(count("passed"), Some(ids.len() as u64));
    let played: Vec<&str> = lines
        .iter()
        .map(|line| line.get("id").and_then(Value::as_str).unwrap())
        .collect();
    assert_eq!(played, ids);
    for line in &lines {
        for (key, value) in [
            ("client", "watcher"),
            ("driver", "sim"),
            ("outcome", "pass"),
            ("verdict", "passed"),
            ("message", ""),
        ] {
            assert_eq!(line.get(key), Some(&Value::from(value)), "{key} of {line}");
        }
        assert_eq!(line.get("end"), Some(&Value::from("complete")), "{line}");
        assert!(
            line["endMs"].as_u64() > Some(0) && line["requests"].as_u64() > Some(1),
            "{line}"
        );
        assert_eq!(
            line.get("trace"),
            Some(&Value::from(Vec::<Value>::new())),
            "{line}"
        );
        let covers = line.get("covers").and_then(Value::as_array).unwrap();
        assert!(!covers.is_empty(), "{line}");
    }
}

#[rstest]
#[case::unknown_client(&["--client", "nobody"], 2, "there is no client nobody; there are: watcher, kube-runtime")]
#[case::nothing_selected(&["no-such-group/"], 4, "no scenario matches no-such-group/")]
#[case::nothing_to_show(&["--show", "no/such"], 4, "there is no scenario no/such")]
#[case::unknown_driver(&["--driver", "dream"], 2, "[possible values: sim, live]")]
fn failures_have_a_message_and_an_exit_code(
    #[case] arguments: &[&str],
    #[case] code: i32,
    #[case] message: &str,
) {
    let ended = scenarios(arguments);
    assert_eq!(ended.status.code(), Some(code));
    assert_eq!(text_of(&ended.stdout), "");
    let errors = text_of(&ended.stderr);
    assert!(errors.contains(message), "no {message:?} in\n{errors}");
}

#[test]
fn the_page_shows_what_kube_runtime_fails() {
    let printed = text_of(&scenarios(&["--client", "kube-runtime"]).stdout);
    let table: String = printed
        .split_inclusive('\n')
        .skip_while(|line| !line.starts_with("group "))
        .take_while(|line| !line.trim().is_empty())
        .collect();
    let page = std::fs::read_to_string(repository::root().join("docs/kube-runtime.md")).unwrap();
    assert!(!table.is_empty(), "no table in {printed}");
    assert!(
        page.contains(&table),
        "this goes into docs/kube-runtime.md, and its last line into the sentence above it:\n{table}"
    );
}

#[test]
fn nothing_is_coloured_in_a_pipe() {
    let ended = scenarios(&["tl/"]);
    let printed = text_of(&ended.stdout);
    assert!(!printed.is_empty() && !printed.contains('\x1b'), "{printed:?}");
}

// ---- Both in a terminal

#[cfg(target_os = "linux")]
#[rstest]
#[case::by_default(None, true)]
#[case::unless_unwanted(Some("1"), false)]
fn mistakes_are_drawn_in_colour(#[case] no_color: Option<&str>, #[case] coloured: bool) {
    let file = broken_file(&format!("colour-{coloured}.yaml"));
    let command = format!(
        "{} play {}",
        programs::path("fake-apiserver").display(),
        file.display()
    );
    let printed = on_a_terminal(&command, no_color);
    assert!(printed.contains("wenn"), "{printed:?}");
    assert_eq!(printed.contains('\x1b'), coloured, "{printed:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn results_are_not_coloured_when_unwanted() {
    // The progress line is drawn on standard error, and is independent of colours.
    let command = format!(
        "{} scenarios --client kube-runtime wlist/ 2>/dev/null",
        programs::path("chores").display()
    );
    let printed = on_a_terminal(&command, Some("1"));
    assert!(printed.contains("wlist "), "{printed:?}");
    assert!(!printed.contains('\x1b'), "{printed:?}");
}

/// Returns the output of a command in a terminal, provided by `script` of util-linux.
#[cfg(target_os = "linux")]
fn on_a_terminal(command: &str, no_color: Option<&str>) -> String {
    let mut terminal = Command::new("script");
    terminal
        .args(["-qec", command, "/dev/null"])
        .current_dir(repository::root())
        .stdin(Stdio::null())
        .env("TERM", "xterm-256color")
        .env_remove("NO_COLOR");
    if let Some(value) = no_color {
        terminal.env("NO_COLOR", value);
    }
    text_of(&terminal.output().expect("`script` is installed").stdout)
}

// ---- Helpers

fn scenarios(arguments: &[&str]) -> Output {
    program("chores")
        .arg("scenarios")
        .args(arguments)
        .env("NO_COLOR", "1")
        .output()
        .expect("it was just built")
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
