//! The recipes of `docs/ci.md` and the action in `deploy/action/`, run as far as possible without the services: every
//! command, in the shell and with the variables of the service.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rstest::rstest;
use serde_json::Value;
use tests::programs::path;
use tests::repository;

/// Replaces the scenarios of a recipe: takes our watcher less than a second.
const SHORT: &str = "watch/clean-eof-resumes-from-the-last-event";
/// An adapter with a mistake, and a scenario that it fails.
const MUTANT: &str = "ResumesFromItem";
const FAILED: &str = "list/first-watch-starts-at-the-lists-version";

/// A repository of an adapter's author: an adapter and a file of known failures.
struct Author {
    folder: PathBuf,
}

impl Author {
    fn new(name: &str, adapter: &str) -> Self {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("ci-{name}"));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("the target folder can be written");
        std::os::unix::fs::symlink(path(adapter), folder.join("adapter")).expect("the folder is new");
        std::fs::write(folder.join("known-failures.yaml"), "[]\n").expect("the folder can be written");
        Self { folder }
    }

    /// Returns the repository of a client with a mistake.
    fn of_mutant(mistake: &str) -> Self {
        let author = Self::new(mistake, "adapter-reference");
        let adapter = author.folder.join("adapter");
        std::fs::rename(&adapter, author.folder.join("reference")).expect("the folder was just made");
        let script = format!("#!/bin/sh\nexec \"$(dirname \"$0\")/reference\" {mistake}\n");
        std::fs::write(&adapter, script).expect("the folder can be written");
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&adapter, executable).expect("it was just written");
        author
    }

    /// Runs `script` in `shell`, with the program in place of its installation.
    fn run(&self, shell: &[&str], script: &str, variables: &[(String, String)]) -> Output {
        let program = path("fake-apiserver");
        let programs = program.parent().expect("a file is in a folder");
        let searched = std::env::var("PATH").expect("Cargo runs with a PATH");
        Command::new(shell[0])
            .args(&shell[1..])
            .args(["-c", script])
            .current_dir(&self.folder)
            .env("PATH", format!("{}:{searched}", programs.display()))
            .env("NO_COLOR", "1")
            .envs(variables.iter().cloned())
            .output()
            .expect("there is a shell")
    }

    fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.folder.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
    }
}

fn text(path: &str) -> String {
    std::fs::read_to_string(repository::root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns the first code block of `language` after the heading.
fn block(heading: &str, language: &str) -> String {
    let page = text("docs/ci.md");
    let (_, below) = page
        .split_once(&format!("\n## {heading}\n"))
        .unwrap_or_else(|| panic!("no heading {heading}"));
    let (_, code) = below
        .split_once(&format!("```{language}\n"))
        .unwrap_or_else(|| panic!("no {language} below {heading}"));
    code.split_once("```").expect("a code block ends").0.to_owned()
}

fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}"))
}

/// Replaces the groups that a recipe selects by one scenario.
fn shortened(script: &str, scenario: &str) -> String {
    assert!(script.contains("gone/ watch/"), "{script}");
    script.replace("gone/ watch/", scenario)
}

/// Returns the name of a scenario's test case in JUnit.
fn name_of(scenario: &str) -> &str {
    scenario.rsplit('/').next().unwrap_or(scenario)
}

fn succeeded(output: &Output) {
    assert!(
        output.status.success(),
        "{}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn any_service() {
    let author = Author::new("shell", "adapter-watcher");
    let script = shortened(&block("Any other service", "sh"), SHORT);
    succeeded(&author.run(&["sh"], &script, &[]));
    assert!(author.read("results.xml").contains(name_of(SHORT)));
}

#[test]
fn gitlab() {
    let job = &yaml(&block("GitLab", "yaml"))["conformance"];
    let all = job["parallel"].as_u64().expect("the recipe shards");
    let script = job["script"].as_array().expect("the recipe has a script");
    let script: Vec<&str> = script.iter().map(|line| line.as_str().expect("text")).collect();
    let script = shortened(&script.join("\n"), SHORT);
    // The scenario is in one shard; no test is selected in the others.
    let mut codes: Vec<Option<i32>> = (1..=all)
        .map(|part| {
            let author = Author::new(&format!("gitlab-{part}"), "adapter-watcher");
            let variables = [("CI_NODE_INDEX", part), ("CI_NODE_TOTAL", all)];
            let variables = variables.map(|(name, value)| (name.to_owned(), value.to_string()));
            let output = author.run(&["bash", "-e"], &script, &variables);
            if output.status.success() {
                let kept = job.pointer("/artifacts/reports/junit").and_then(Value::as_str);
                assert!(
                    author
                        .read(kept.expect("the recipe keeps JUnit"))
                        .contains(name_of(SHORT))
                );
            }
            output.status.code()
        })
        .collect();
    codes.sort_unstable();
    assert_eq!(codes, [Some(0), Some(4)]);
}

/// Evaluates the expressions of a step of the action.
fn evaluated(text: &str, inputs: &Value) -> String {
    let mut done = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${{ ") {
        let (expression, behind) = after.split_once(" }}").expect("an expression ends");
        done.push_str(before);
        match expression.strip_prefix("inputs.") {
            Some(input) => done.push_str(
                inputs[input]
                    .as_str()
                    .unwrap_or_else(|| panic!("no input {input}")),
            ),
            None => assert!(
                ["runner.os", "runner.arch", "github.action_ref || github.sha"].contains(&expression),
                "{expression}"
            ),
        }
        rest = behind;
    }
    done + rest
}

/// Runs the steps of the action like a workflow with these `with` inputs. Stops at the first failure.
fn act(author: &Author, with: &Value) -> Output {
    let action = yaml(&text("deploy/action/action.yml"));
    let inputs: serde_json::Map<String, Value> = action["inputs"]
        .as_object()
        .expect("the action has inputs")
        .iter()
        .map(|(name, input)| (name.clone(), with.get(name).unwrap_or(&input["default"]).clone()))
        .collect();
    for name in with.as_object().expect("`with` is a map").keys() {
        assert!(inputs.contains_key(name), "the action has no input {name}");
    }
    let inputs = Value::Object(inputs);
    let mut last = None;
    for step in action["runs"]["steps"]
        .as_array()
        .expect("a composite action has steps")
    {
        let Some(script) = step["run"].as_str() else {
            let used = step["uses"].as_str().expect("a step runs or uses something");
            let (name, commit) = used.split_once('@').expect("a version is named");
            assert!(
                ["actions/cache", "actions/upload-artifact"].contains(&name),
                "{used}"
            );
            // A tag can be moved to other code.
            let is_commit = commit.len() == 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
            assert!(is_commit, "{used}");
            let with = step["with"].as_object().expect("it is used with something");
            with.values().filter_map(Value::as_str).for_each(|value| {
                evaluated(value, &inputs);
            });
            continue;
        };
        assert_eq!(
            step["shell"], "bash",
            "a step of a composite action names its shell"
        );
        let mut variables: Vec<(String, String)> = step["env"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, value)| {
                let value = value.as_str().expect("text");
                (name.clone(), evaluated(value, &inputs))
            })
            .collect();
        let action = repository::root().join("deploy/action");
        variables.push(("GITHUB_ACTION_PATH".to_owned(), action.display().to_string()));
        let summary = author.folder.join("summary.md").display().to_string();
        variables.push(("GITHUB_STEP_SUMMARY".to_owned(), summary));
        let shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail"];
        let output = author.run(&shell, &evaluated(script, &inputs), &variables);
        if !output.status.success() {
            return output;
        }
        last = Some(output);
    }
    last.expect("the action runs something")
}

/// Returns `with` of the step in `docs/ci.md` that uses the action.
fn used_with(scenario: &str) -> Value {
    let workflow = yaml(&block("GitHub Actions", "yaml"));
    let steps = workflow
        .pointer("/jobs/conformance/steps")
        .and_then(Value::as_array);
    let step = steps
        .into_iter()
        .flatten()
        .find(|step| {
            step["uses"]
                .as_str()
                .is_some_and(|used| used.contains("/action@"))
        })
        .expect("the workflow uses the action");
    let mut with = step["with"].clone();
    assert_eq!(with["scenarios"], "gone/ watch/");
    with["scenarios"] = scenario.into();
    with
}

#[rstest]
#[case::passes(Author::new("passes", "adapter-watcher"), SHORT, Some(0), "1 pass")]
#[case::fails(Author::of_mutant(MUTANT), FAILED, Some(1), "exit 1")]
fn github(#[case] author: Author, #[case] scenario: &str, #[case] code: Option<i32>, #[case] message: &str) {
    let output = act(&author, &used_with(scenario));
    let printed = String::from_utf8_lossy(&output.stdout);
    assert_eq!(
        output.status.code(),
        code,
        "{printed}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(printed.contains(message), "{printed}");
    assert!(
        printed.contains("requirements of edition 2026.1 kept"),
        "{printed}"
    );
    assert!(
        author
            .read("fake-apiserver-results/results.xml")
            .contains(name_of(scenario))
    );
    assert!(
        author
            .read("fake-apiserver-results/report.html")
            .contains(scenario)
    );
    assert!(author.read("summary.md").contains(scenario) || code == Some(0));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(errors.contains("::error"), code != Some(0), "{errors}");
    let evidence = author.folder.join("fake-apiserver-results/evidence");
    assert_eq!(
        has_attempts(&evidence),
        code != Some(0),
        "evidence of failed tests alone"
    );
}

/// A workflow may pass on what a pull request says, such as the name of its branch.
#[test]
fn inputs_of_the_action_are_words_and_nothing_in_them_is_run() {
    let author = Author::new("hostile", "adapter-watcher");
    let mut with = used_with(&format!(
        "{SHORT} $(touch$IFS''ran) `touch${{IFS}}ran` ;touch${{IFS}}ran"
    ));
    with["arguments"] = "--jobs '2' $(touch${IFS}ran) --seed 7&&touch${IFS}ran".into();
    with["edition"] = "$(touch ran)".into();
    let output = act(&author, &with);
    assert_eq!(output.status.code(), Some(2), "they are no arguments that exist");
    assert!(!author.folder.join("ran").exists());
    // Quotes and spaces are those of a shell.
    let mut with = used_with(&format!("'{SHORT}'  \"{SHORT}\""));
    with["arguments"] = "--jobs '2'  --seed \"7\"".into();
    let output = act(&author, &with);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
}

/// Returns whether there is a folder of an attempt. A list of results always exists.
fn has_attempts(folder: &Path) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| entry.path().is_dir())
}

#[test]
fn the_page_has_the_inputs_of_the_action() {
    let action = yaml(&text("deploy/action/action.yml"));
    let rows: String = action["inputs"]
        .as_object()
        .expect("the action has inputs")
        .iter()
        .map(|(name, input)| {
            let default = match input["default"].as_str() {
                None => " required |".to_owned(),
                Some("") => " |".to_owned(),
                Some(default) => format!(" `{default}` |"),
            };
            let description = input["description"].as_str().expect("an input is described");
            format!("| `{name}` |{default} {description} |\n")
        })
        .collect();
    let page = text("docs/ci.md");
    assert!(page.contains(&rows), "docs/ci.md should have:\n{rows}");
}
