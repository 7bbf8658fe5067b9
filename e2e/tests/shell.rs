//! Generated files, used by the shells and `man`: completions of bash, zsh and fish, manual pages; and the findings of
//! `doctor` on a machine with a problem.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use e2e::server::Server;
use e2e::toolchain::{self, Missing, or_skip};
use rstest::rstest;
use serde_json::Value;

fn program(name: &str) -> Result<Command, Missing> {
    let found = Command::new(name).arg("--version").stdin(Stdio::null()).output();
    found
        .map(|_| Command::new(name))
        .map_err(|error| format!("{name} is needed and cannot be run: {error}"))
}

/// Returns the output of a program that must succeed.
fn printed(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "", "{}", command.get_program().display());
    text(&output.stdout)
}

/// Returns the words that a shell offers after `fake-apiserver WORDS`, the last of which may be incomplete.
fn completed(shell: &str, words: &[&str]) -> Option<Vec<String>> {
    let script = printed(Command::new(toolchain::fake_apiserver()).args(["completions", shell]));
    let mut command = or_skip(program(shell))?;
    let line = format!("fake-apiserver {}", words.join(" "));
    let text = match shell {
        "bash" => {
            command.args(["--noprofile", "--norc", "-c"]);
            format!(
                "{script}\nCOMP_WORDS=({line})\nCOMP_CWORD={}\n{}\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"",
                words.len(),
                BASH,
            )
        }
        "fish" => {
            command.args(["--no-config", "-c"]);
            format!("{script}\ncomplete --do-complete '{line}'")
        }
        other => panic!("{other} cannot be asked for completions"),
    };
    let offered = printed(command.arg(text));
    let first = |line: &str| line.split(['\t', ' ']).next().unwrap_or_default().to_owned();
    Some(
        offered
            .lines()
            .map(first)
            .filter(|word| !word.is_empty())
            .collect(),
    )
}

/// Calls the function that the script registered for the command, as bash does on Tab.
const BASH: &str = r#"function="$(complete -p fake-apiserver | sed 's/.* -F \([^ ]*\) .*/\1/')"
"$function" fake-apiserver "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}""#;

#[rstest]
#[case::subcommand(&["conf"], "conformance")]
#[case::option(&["serve", "--kubec"], "--kubeconfig")]
#[case::value(&["ctl", "cut", "--how", "rs"], "rst")]
#[case::second_level(&["ctl", "exp"], "expire")]
fn a_shell_completes(#[values("bash", "fish")] shell: &str, #[case] words: &[&str], #[case] wanted: &str) {
    if let Some(offered) = completed(shell, words) {
        assert_eq!(offered, [wanted]);
    }
}

/// zsh completes only in a terminal. Here it loads the script, has a function for the command, and the function that offers
/// subcommands is called with a `_describe` that prints.
#[test]
fn zsh_loads_the_script_and_offers_subcommands() {
    let script = printed(Command::new(toolchain::fake_apiserver()).args(["completions", "zsh"]));
    let Some(mut zsh) = or_skip(program("zsh")) else {
        return;
    };
    let text = format!(
        "autoload -Uz compinit && compinit -D -u\n{script}\nprint -r -- ${{_comps[fake-apiserver]}}\n{}\n_fake-apiserver_commands",
        "_describe() { print -rl -- ${(P)4} }"
    );
    let offered = printed(zsh.args(["-f", "-c"]).arg(text));
    let mut lines = offered.lines();
    assert_eq!(lines.next(), Some("_fake-apiserver"));
    let names: Vec<&str> = lines.filter_map(|line| line.split(':').next()).collect();
    assert!(names.contains(&"serve") && names.contains(&"doctor"), "{offered}");
}

#[test]
fn every_subcommand_has_a_manual_page_that_renders() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("man");
    // It may not exist.
    let _ = std::fs::remove_dir_all(&folder);
    printed(Command::new(toolchain::fake_apiserver()).arg("man").arg(&folder));
    let Some(mut mandoc) = or_skip(program("mandoc")) else {
        return;
    };
    let pages = std::fs::read_dir(&folder).unwrap();
    let mut pages: Vec<PathBuf> = pages.map(|page| page.unwrap().path()).collect();
    pages.sort();
    let named = |name: &str| pages.iter().any(|page| page.ends_with(name));
    for name in [
        "fake-apiserver.1",
        "fake-apiserver-serve.1",
        "fake-apiserver-ctl-fail.1",
    ] {
        assert!(named(name), "{name} is not among {pages:?}");
    }
    // Exit code 0: at most warnings, such as that of mandoc for a page without a date.
    let rendered = printed(mandoc.args(["-T", "utf8", "-W", "error"]).args(&pages));
    // Overstruck letters are bold.
    let plain: String = rendered.split('\u{8}').collect();
    assert!(plain.len() > 50_000, "{} bytes", plain.len());
    let page = printed(Command::new(toolchain::fake_apiserver()).arg("man"));
    assert!(page.contains(".SH SUBCOMMANDS"), "{page}");
}

/// Runs `doctor` in a clean environment. Returns its exit code, and its findings by check.
fn doctor(arguments: &[&str], variables: &[(&str, &str)]) -> (Option<i32>, Value) {
    let mut command = Command::new(toolchain::fake_apiserver());
    for inherited in ["KUBECONFIG", "HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY"] {
        command.env_remove(inherited).env_remove(inherited.to_lowercase());
    }
    command
        .env_remove("FAKE_APISERVER_CONTROL")
        .env("HOME", env!("CARGO_TARGET_TMPDIR"));
    command.envs(variables.iter().copied());
    let Output { status, stdout, .. } = command
        .args(["doctor", "--format", "json"])
        .args(arguments)
        .output()
        .unwrap();
    let found: Value = serde_json::from_slice(&stdout).unwrap();
    let by_check = found["checks"].as_array().unwrap().iter();
    let by_check = by_check.map(|finding| (finding["check"].as_str().unwrap().to_owned(), finding.clone()));
    (status.code(), by_check.collect::<serde_json::Map<_, _>>().into())
}

#[test]
fn doctor_sees_the_server_that_the_environment_leads_to() {
    let server = Server::start("serve", &["--control-token", "known"]);
    let line = server.expect("its address", |line| line.contains("control API at "));
    let control = line.split("control API at ").nth(1).unwrap();
    let (control, token) = (control.split(';').next().unwrap(), "known");
    let kubeconfig = server.kubeconfig().to_str().unwrap();
    let good = [
        ("KUBECONFIG", kubeconfig),
        ("FAKE_APISERVER_CONTROL", control),
        ("FAKE_APISERVER_CONTROL_TOKEN", token),
    ];
    let (code, found) = doctor(&[], &good);
    assert_eq!(code, Some(0), "{found:#}");
    assert_eq!(
        (&found["kubeconfig"]["level"], &found["control"]["level"]),
        (&"ok".into(), &"ok".into())
    );
    let port = server.address().port().to_string();
    let (code, found) = doctor(&["--port", &port], &good);
    assert_eq!((code, &found["port"]["level"]), (Some(1), &"fail".into()));
    let bad = [good[0], good[1], ("FAKE_APISERVER_CONTROL_TOKEN", "another")];
    let (code, found) = doctor(&[], &bad);
    assert_eq!((code, &found["control"]["level"]), (Some(1), &"fail".into()));
    assert_eq!(found["kubeconfig"]["level"], "ok");
}

#[test]
fn doctor_names_a_dead_server_and_a_proxy() {
    let (code, found) = doctor(&[], &[("KUBECONFIG", "/no/such/kubeconfig")]);
    assert_eq!((code, &found["kubeconfig"]["level"]), (Some(1), &"fail".into()));
    // Bound and closed again: nothing listens there.
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("dead-kubeconfig");
    let text = format!(
        "current-context: a\ncontexts: [{{name: a, context: {{cluster: c}}}}]\nclusters: [{{name: c, cluster: {{server: \"http://{free}\"}}}}]\n"
    );
    std::fs::write(&file, text).unwrap();
    let variables = [
        ("KUBECONFIG", file.to_str().unwrap()),
        ("HTTPS_PROXY", "http://user:secret@proxy:3128"),
    ];
    let (code, found) = doctor(&[], &variables);
    assert_eq!((code, &found["kubeconfig"]["level"]), (Some(1), &"fail".into()));
    assert_eq!(found["proxy"]["level"], "warn");
    assert!(!found.to_string().contains("secret"), "{found:#}");
    let spared = [variables[1], ("NO_PROXY", "127.0.0.1")];
    let (code, found) = doctor(&[], &spared);
    assert_eq!((code, &found["proxy"]["level"]), (Some(0), &"ok".into()));
}
