//! Malicious files: huge, looping, unreadable, full of terminal control sequences. Their error output is bounded and
//! printable.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::{Path, PathBuf};
use std::process::Command;

use rstest::rstest;
use scenario::{Code, LoadErrors, ScenarioFile, Style, find, parse};

const HEAD: &str = "scenario: v1\ntitle: A claim\nwhy: A reason\ncovers: [PAGE-05]\n";

/// Returns an empty folder for one test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    // It may not exist.
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn mistakes_of(text: &str) -> LoadErrors {
    parse("group/claim", Path::new("claim.yaml"), text).unwrap_err()
}

fn of_file(path: &Path) -> LoadErrors {
    ScenarioFile::named(path).load().unwrap_err()
}

#[rstest]
#[case::keys_on_one_line(format!(
    "{HEAD}client: {{{}}}\n",
    (0..2000).map(|i| format!("key{i}: 1")).collect::<Vec<_>>().join(", ")
), 2000)]
#[case::a_key_without_end(format!("{HEAD}{}: 1\n", "k".repeat(500_000)), 1)]
#[case::a_word_without_end(format!("{HEAD}client: {{mode: {}}}\n", "w".repeat(500_000)), 1)]
#[case::a_reference_without_end(format!("{HEAD}refs: [\"{}\"]\n", "r".repeat(500_000)), 1)]
#[case::a_line_without_end_after(format!("{HEAD}clinet: {{}}\n# {}\n", "#".repeat(500_000)), 1)]
fn error_output_is_bounded(#[case] text: String, #[case] count: usize) {
    let errors = mistakes_of(&text);
    assert_eq!(errors.count(), count);
    assert!(errors.errors().len() <= 50);
    for rendered in [errors.render(Style::Plain), errors.to_string()] {
        assert!(rendered.len() < 120_000, "{} bytes", rendered.len());
        let widest = rendered.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(1_300), "{widest:?} columns");
    }
    if count > 50 {
        assert!(
            errors
                .to_string()
                .contains("2000 mistakes (the first 50 are shown)")
        );
    }
}

#[rstest]
#[case::in_the_line("client: {colour: \"\\e\", x\u{1b}[31m: 1}\n")]
#[case::in_a_comment("clinet: {} # \u{1b}[2J\n")]
#[case::in_the_next_line("clinet: {}\n# \u{1b}]0;title\u{7}\u{9b}31m\u{202e}\n")]
fn terminal_control_sequences_are_never_printed(#[case] text: &str) {
    let errors = mistakes_of(&format!("{HEAD}{text}"));
    let rendered = errors.render(Style::Plain) + &errors.to_string();
    let obeyed = |c: char| c != '\n' && (c.is_control() || c == '\u{202e}');
    assert!(!rendered.contains(obeyed), "{rendered:?}");
}

#[test]
fn the_caret_in_a_long_line_points_at_the_error() {
    let text = format!("{HEAD}client: {{labels: \"{}\", colour: red}}\n", "é".repeat(300));
    let rendered = mistakes_of(&text).render(Style::Plain);
    assert!(rendered.contains("claim.yaml:5:322"), "{rendered}");
    let lines: Vec<&str> = rendered.lines().collect();
    let at = lines
        .iter()
        .position(|line| line.contains("colour: red"))
        .unwrap();
    let column = lines[at]
        .chars()
        .take(lines[at].chars().count())
        .collect::<String>();
    let column = column.split("colour").next().unwrap().chars().count();
    let marks = lines[at + 1].split('─').next().unwrap().chars().count();
    assert_eq!(marks, column, "{rendered}");
}

#[test]
fn invalid_utf8_has_a_position() {
    let file = folder("no-utf8").join("claim.yaml");
    std::fs::write(&file, b"scenario: v1\ntitle: \xff\n").unwrap();
    let errors = of_file(&file);
    let first = &errors.errors()[0];
    assert_eq!(
        (first.code, first.at.line, first.at.column),
        (Code::Unreadable, 2, 8)
    );
    assert_eq!(first.message, "the file is not UTF-8: byte 0xff at offset 20");
}

#[test]
fn only_regular_files_are_opened() {
    let fifo = folder("fifo").join("claim.yaml");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    for path in [
        fifo.as_path(),
        Path::new("/dev/zero"),
        Path::new("/dev/null"),
        fifo.parent().unwrap(),
    ] {
        let errors = of_file(path);
        assert_eq!(errors.errors()[0].code, Code::Unreadable);
        assert!(errors.to_string().contains("not a regular file"), "{errors}");
    }
}

#[test]
fn a_file_that_is_too_large_is_not_read() {
    let file = folder("too-large").join("claim.yaml");
    std::fs::File::create(&file).unwrap().set_len(50 << 30).unwrap();
    let errors = of_file(&file);
    assert_eq!(errors.errors()[0].code, Code::OutOfRange);
    assert!(
        errors.to_string().contains("the file has 53687091200 bytes"),
        "{errors}"
    );
}

#[test]
fn a_folder_that_links_to_itself_is_entered_once() {
    let folder = folder("looping");
    std::fs::create_dir(folder.join("group")).unwrap();
    for name in ["a.yaml", "b.yml", "b.snap", "notes.txt"] {
        std::fs::write(folder.join("group").join(name), HEAD).unwrap();
    }
    std::os::unix::fs::symlink("..", folder.join("group/up")).unwrap();
    std::os::unix::fs::symlink(".", folder.join("here")).unwrap();
    let (files, errors) = find(std::slice::from_ref(&folder));
    assert!(errors.is_empty(), "{errors:?}");
    let found: Vec<(&Path, &Path)> = files
        .iter()
        .map(|file| (file.path.strip_prefix(&folder).unwrap(), file.root.as_path()))
        .collect();
    assert_eq!(
        found,
        [
            (Path::new("group/a.yaml"), folder.as_path()),
            (Path::new("group/b.yml"), folder.as_path())
        ]
    );
    assert_eq!(files[0].load().unwrap().id, "group/a");
}

#[test]
fn a_folder_without_scenarios_is_an_error() {
    let folder = folder("nothing-in-here");
    let (files, errors) = find(&[folder.clone(), folder.join("not-there.yaml")]);
    // Missing files are reported when they are read.
    assert_eq!((files.len(), errors.len()), (1, 1));
    let rendered = errors[0].to_string();
    assert!(
        rendered.contains(&format!("there is no scenario in {}", folder.display())),
        "{rendered}"
    );
    assert_eq!(files[0].load().unwrap_err().errors()[0].code, Code::Unreadable);
}

#[test]
fn many_steps_are_parsed() {
    use std::fmt::Write as _;

    let mut text = format!("{HEAD}objects: [{{configmap: {{name: a}}}}]\nsteps:\n");
    for i in 0..5_000 {
        writeln!(
            text,
            "  - {{as: s{i}, apply: {{configmap: {{name: a, data: {{k: \"{i}\"}}}}}}}}"
        )
        .unwrap();
    }
    let scenario = parse("group/claim", Path::new("claim.yaml"), &text).unwrap();
    assert_eq!(scenario.steps.len(), 5_000);
    assert_eq!(scenario.steps[4_999].at.line, 5_006);
}

#[rstest]
#[case::of_actions("steps:\n  - do: [{as: x}]\n", "`refuse`")]
#[case::of_keys("client: {colour: red}\n", "`timeout`")]
fn a_list_of_allowed_words_is_never_truncated(#[case] text: &str, #[case] last: &str) {
    let errors = mistakes_of(&format!("{HEAD}{text}"));
    let line = errors.to_string();
    for rendered in [errors.render(Style::Plain), line] {
        assert!(rendered.contains(last) && !rendered.contains('…'), "{rendered}");
    }
}

#[rstest]
#[case::in_an_object(
    "objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: ",
    "}]",
    99,
    100
)]
#[case::in_a_spec("objects: [{pod: {name: a, spec: ", "}}]", 99, 100)]
#[case::in_a_write(
    "steps:\n  - {do: [{apply: [{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: ",
    "}]}]}",
    99,
    100
)]
#[case::in_a_lie("steps:\n  - {do: [{event: {type: ADDED, object: {spec: ", "}}}]}", 110, 115)]
fn an_object_is_as_deep_as_a_server_takes_it(
    #[case] before: &str,
    #[case] after: &str,
    #[case] legal: usize,
    #[case] too_deep: usize,
) {
    let file = |levels: usize| {
        format!(
            "{HEAD}{before}{}1{}{after}\n",
            "{a: ".repeat(levels),
            "}".repeat(levels)
        )
    };
    let parsed = parse("group/claim", Path::new("claim.yaml"), &file(legal));
    assert!(parsed.is_ok(), "{}", parsed.unwrap_err());
    let errors = mistakes_of(&file(too_deep));
    let reported: Vec<(Code, u32)> = errors
        .errors()
        .iter()
        .map(|error| (error.code, error.at.line))
        .collect();
    let line = 5 + u32::try_from(before.matches('\n').count()).unwrap();
    assert_eq!(reported, [(Code::OutOfRange, line)], "{errors}");
}
