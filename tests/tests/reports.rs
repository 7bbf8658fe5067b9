//! Report files of a run, and the comparison of two: reads what the command writes.

use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;
use tests::programs::{path, program};

/// A scenario of a MUST requirement that takes our watcher less than a second.
const SHORT: &str = "watch/clean-eof-resumes-from-the-last-event";

fn printed(output: &Output) -> String {
    [&output.stdout, &output.stderr]
        .map(|bytes| String::from_utf8_lossy(bytes))
        .join("")
}

fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    drop(std::fs::remove_dir_all(&folder));
    std::fs::create_dir_all(&folder).expect("the target folder can be written");
    folder
}

fn read(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

fn json(file: &Path) -> Value {
    serde_json::from_str(&read(file)).expect("a report is JSON")
}

fn run(arguments: &[&str]) -> Output {
    let output = program("fake-apiserver").args(arguments).output();
    output.expect("it was just built")
}

/// Compares two runs; returns the exit code and the output.
fn diff(a: &Path, b: &Path) -> (Option<i32>, String) {
    let output = program("fake-apiserver").arg("diff").args([a, b]).output();
    let output = output.expect("it was just built");
    (output.status.code(), printed(&output))
}

#[test]
fn a_run_leaves_every_report() {
    let folder = folder("reports");
    let file = |name: &str| folder.join(name);
    let evidence = file("evidence");
    std::fs::write(file("step"), "before\n").unwrap();
    let mut command = program("fake-apiserver");
    command.args([
        "conformance",
        SHORT,
        "--format",
        "json",
        "--keep",
        "always",
        "--github",
    ]);
    for (flag, name) in [
        ("--evidence", "evidence"),
        ("--html", "report.html"),
        ("--junit", "junit.xml"),
        ("--sarif", "results.sarif"),
        ("--badge", "badge.json"),
        ("--summary", "summary.md"),
    ] {
        command.arg(flag).arg(file(name));
    }
    command
        .env("GITHUB_STEP_SUMMARY", file("step"))
        .arg("--")
        .arg(path("adapter-watcher"));
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", printed(&output));

    let lines = String::from_utf8(output.stdout).unwrap();
    assert_eq!(read(&evidence.join("results.ndjson")), lines);
    let test: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!(test["digest"].as_str().map(str::len), Some(64));
    assert_eq!(json(&file("badge.json"))["color"], "brightgreen");
    let sarif = json(&file("results.sarif"));
    assert_eq!(
        (&sarif["version"], &sarif["runs"][0]["results"]),
        (&"2.1.0".into(), &Value::Array(Vec::new()))
    );
    let summary = read(&file("summary.md"));
    assert!(summary.contains("1 tests: 1 pass."), "{summary}");
    assert_eq!(read(&file("step")), format!("before\n{summary}"));
    assert!(read(&file("junit.xml")).contains("<testcase"));

    // The page of the command equals that generated from the evidence, and contains the trace.
    let again = file("again.html");
    let output = run(&[
        "report",
        evidence.to_str().unwrap(),
        "--html",
        again.to_str().unwrap(),
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
    let page = read(&again);
    assert_eq!(page, read(&file("report.html")));
    assert!(page.contains(&format!("id=\"watcher/{SHORT}@0\"")));

    // The same run twice; then with another outcome, of the same test and of another one.
    let a = evidence.join("results.ndjson");
    let (code, text) = diff(&evidence, &a);
    assert_eq!(
        (code, text.contains("1 test came out the same")),
        (Some(0), true),
        "{text}"
    );
    let (b, c) = (file("b.ndjson"), file("c.ndjson"));
    let worse = lines.replace("\"outcome\":\"pass\"", "\"outcome\":\"fail\"");
    std::fs::write(&b, &worse).unwrap();
    let (code, text) = diff(&a, &b);
    assert_eq!(
        (code, text.contains("The client got worse: 1")),
        (Some(1), true),
        "{text}"
    );
    let (code, text) = diff(&b, &a);
    assert_eq!(
        (code, text.contains("The client got better: 1")),
        (Some(0), true),
        "{text}"
    );
    std::fs::write(&c, worse.replace(test["digest"].as_str().unwrap(), "other")).unwrap();
    let (code, text) = diff(&a, &c);
    assert_eq!(
        (code, text.contains("The test changed: 1")),
        (Some(4), true),
        "{text}"
    );
    // Without results, the evidence alone is judged and compared.
    std::fs::remove_file(&a).unwrap();
    let (code, text) = diff(&evidence, &b);
    assert_eq!(
        (code, text.contains("The client got worse: 1")),
        (Some(1), true),
        "{text}"
    );
    let output = run(&[
        "diff",
        "--format",
        "json",
        b.to_str().unwrap(),
        c.to_str().unwrap(),
    ]);
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(value["differences"][0]["cause"], "test-changed");
}

#[test]
fn what_cannot_be_read_is_named() {
    let empty = folder("reports-of-nothing");
    let name = empty.to_str().unwrap();
    let html = empty.join("x.html");
    let html = html.to_str().unwrap();
    let no_results = empty.join("text");
    std::fs::write(&no_results, "no results\n").unwrap();
    let text = no_results.to_str().unwrap();
    for (arguments, code, message) in [
        (vec!["report", name, "--html", html], 4, "neither evidence nor"),
        (vec!["report", "/nowhere", "--html", html], 2, "/nowhere"),
        (vec!["diff", name, name], 4, "neither evidence nor"),
        (vec!["diff", text, text], 2, "line 1: not a line of"),
        (vec!["diff", "/nowhere", text], 2, "/nowhere"),
        (
            vec!["conformance", SHORT, "--html", html, "--", "true"],
            2,
            "--evidence",
        ),
    ] {
        let output = run(&arguments);
        assert_eq!(output.status.code(), Some(code), "{}", printed(&output));
        assert!(printed(&output).contains(message), "{}", printed(&output));
    }
    assert!(!Path::new(html).exists());
}

/// The files that results point at are those of the repository in which the command runs.
#[test]
fn results_point_at_files_of_the_clients_repository() {
    const FAILED: &str = "bookmark/older-bookmark-does-not-rewind";
    let repository = folder("reports-places");
    let kube_runtime = path("adapter-kube-runtime");
    let script = format!("exec {}\n", kube_runtime.display());
    std::fs::create_dir_all(repository.join("tests")).unwrap();
    std::fs::write(repository.join("tests/adapter.sh"), script).unwrap();
    let known = format!("# Known.\n- {{scenario: {FAILED}, outcome: warn, reason: r, issue: none public}}\n");
    std::fs::write(repository.join("known.yaml"), known).unwrap();
    let place = |arguments: &[&str], adapter: &[&str], workspace: &Path| {
        let mut command = program("fake-apiserver");
        command
            .args([
                "conformance",
                FAILED,
                "--strict",
                "--github",
                "--sarif",
                "out.sarif",
            ])
            .args(arguments)
            .arg("--")
            .args(adapter);
        command
            .current_dir(&repository)
            .env("GITHUB_WORKSPACE", workspace);
        let output = command.env_remove("GITHUB_STEP_SUMMARY").output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        let annotated = errors.lines().find_map(|line| line.strip_prefix("::error "));
        let annotated = annotated.map(|line| line.split_once(" title").map_or(line, |(place, _)| place));
        let sarif = json(&repository.join("out.sarif"));
        std::fs::remove_file(repository.join("out.sarif")).unwrap();
        let place = &sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
        let uri = place["artifactLocation"]["uri"].as_str().unwrap().to_owned();
        let annotated = annotated.map(|place| place.split(",title=").next().unwrap_or_default().to_owned());
        (annotated, format!("{uri}:{}", place["region"]["startLine"]))
    };
    let script = ["sh", "tests/adapter.sh"];
    let (annotated, sarif) = place(&[], &script, &repository);
    assert_eq!(annotated.as_deref(), Some("file=tests/adapter.sh,line=1"));
    assert_eq!(sarif, "tests/adapter.sh:1");
    let (annotated, sarif) = place(&["--known-failures", "known.yaml"], &script, &repository);
    assert_eq!((annotated, sarif.as_str()), (None, "known.yaml:2"));
    let (annotated, _) = place(&["--source", "known.yaml"], &script, repository.parent().unwrap());
    assert_eq!(
        annotated.as_deref(),
        Some("file=reports-places/known.yaml,line=1")
    );
    // A program is no file that anybody reads.
    let (annotated, sarif) = place(&[], &[kube_runtime.to_str().unwrap()], &repository);
    assert!(annotated.is_some_and(|place| place.starts_with("title=")));
    assert!(sarif.starts_with("scenarios/bookmark/"), "{sarif}");
}

#[test]
fn a_built_in_scenario_is_printed() {
    let output = run(&["show", SHORT]);
    let file = tests::repository::root().join(format!("scenarios/{SHORT}.yaml"));
    assert_eq!(String::from_utf8_lossy(&output.stdout), read(&file));
    let output = run(&["show", "watch/clean-eof-resumes-from-the-last-even"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), read(&file));
    let output = run(&["show", "watch/clean-eof-resume-from-the-last-event"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        printed(&output).contains(&format!("did you mean {SHORT}?")),
        "{}",
        printed(&output)
    );
}

/// Every way in which the command writes a file that its user named.
#[test]
fn no_report_overwrites_a_file_or_is_written_through_a_link() {
    let folder = folder("reports-taken");
    let file = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    std::fs::write(file("kept"), "mine").unwrap();
    std::os::unix::fs::symlink(file("kept"), file("link")).unwrap();
    let evidence = file("evidence");
    for taken in [file("kept"), file("link")] {
        let mut commands = vec![
            vec!["serve", "--verdict-file", &taken],
            vec![
                "play",
                "scenarios/page/expired-token-on-page-2-restarts-the-list.yaml",
                "--verdict-file",
                &taken,
            ],
            vec!["report", "/nowhere", "--html", &taken],
        ];
        for report in ["--junit", "--sarif", "--badge", "--summary", "--html"] {
            commands.push(vec![
                "conformance",
                SHORT,
                "--evidence",
                &evidence,
                report,
                &taken,
                "--",
                "true",
            ]);
        }
        for arguments in commands {
            let output = run(&arguments);
            assert_eq!(
                output.status.code(),
                Some(2),
                "{arguments:?}: {}",
                printed(&output)
            );
            let words = "exists, and is never overwritten: remove it, or name a new file";
            assert!(
                printed(&output).contains(words),
                "{arguments:?}: {}",
                printed(&output)
            );
        }
        assert_eq!(read(Path::new(&taken)), "mine");
    }
    let missing = file("missing/verdict.json");
    let output = run(&["serve", "--verdict-file", &missing]);
    assert_eq!(output.status.code(), Some(2), "{}", printed(&output));
    assert!(
        printed(&output).contains("its directory does not exist"),
        "{}",
        printed(&output)
    );
}

/// The limit on the size of a file stands for a full disk: a write fails after a part of the file.
#[test]
fn a_file_that_cannot_be_written_whole_is_not_written() {
    let folder = folder("reports-full");
    let (evidence, page) = (folder.join("evidence"), folder.join("page.html"));
    let mut kept = program("fake-apiserver");
    kept.args(["conformance", SHORT, "--keep", "always", "--evidence"])
        .arg(&evidence);
    let output = kept.arg("--").arg(path("adapter-watcher")).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", printed(&output));

    let script = "trap '' XFSZ; ulimit -f 8; exec \"$@\"";
    let mut full = std::process::Command::new("sh");
    full.args(["-c", script, "sh"]).arg(path("fake-apiserver"));
    let output = full
        .arg("report")
        .arg(&evidence)
        .arg("--html")
        .arg(&page)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(70), "{}", printed(&output));
    assert!(printed(&output).contains("cannot write"), "{}", printed(&output));
    let left: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["evidence"], "nothing half written is left");
}

/// Evidence may come from a stranger.
#[test]
fn evidence_is_read_from_regular_files_only() {
    let folder = folder("reports-hostile");
    let html = folder.join("page.html");
    let files = ["attempt.json", "records.ndjson", "scenario.yaml", "stderr.log"];
    for hostile in ["link", "pipe", "device", "large"] {
        let attempt = folder.join(hostile);
        std::fs::create_dir(&attempt).unwrap();
        for name in files {
            std::fs::write(attempt.join(name), "").unwrap();
        }
        let records = attempt.join("records.ndjson");
        std::fs::remove_file(&records).unwrap();
        let words = match hostile {
            "link" => {
                std::os::unix::fs::symlink("/etc/passwd", &records).unwrap();
                "is a symbolic link"
            }
            "device" => {
                std::os::unix::fs::symlink("/dev/zero", &records).unwrap();
                "is a symbolic link"
            }
            "pipe" => {
                let made = std::process::Command::new("mkfifo").arg(&records).status();
                assert!(made.unwrap().success());
                "is not a regular file"
            }
            _ => {
                // Sparse: it takes no room on the disk.
                std::fs::File::create(&records).unwrap().set_len(1 << 40).unwrap();
                "is larger than"
            }
        };
        let attempt = attempt.to_str().unwrap();
        for arguments in [
            vec!["recheck", attempt],
            vec!["report", attempt, "--html", html.to_str().unwrap()],
        ] {
            let output = run(&arguments);
            assert_eq!(
                output.status.code(),
                Some(2),
                "{arguments:?}: {}",
                printed(&output)
            );
            assert!(
                printed(&output).contains(words),
                "{arguments:?}: {}",
                printed(&output)
            );
        }
    }
}
