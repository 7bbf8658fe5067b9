//! The recording of docs/images/run.svg: a real run of the command on a terminal, which a test compares with the picture.

use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use e2e::terminal::{lines, steady, svg};
use tests::programs::path;

/// What is typed: a controller on kube-runtime that also gives up when it is forbidden to list.
const TYPED: &str = "fake-apiserver run --library kube-runtime@5 conn/a-reset-watch-resumes-where-it-was \
    gone/http-410-at-watch-start-forces-a-relist auth/a-forbidden-list-is-surfaced-and-retried -- ./my-controller";

/// Longest pause between two lines of the picture.
const PAUSE: Duration = Duration::from_secs(2);

#[test]
fn the_picture_shows_what_a_run_prints() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("terminal");
    std::fs::create_dir_all(&folder).expect("the folder of tests can be written");
    let controller = format!(
        "#!/bin/sh\nexec {} without-backoff\n",
        env!("CARGO_BIN_EXE_kube-runtime")
    );
    std::fs::write(folder.join("my-controller"), controller).expect("the folder of tests can be written");
    let program = path("fake-apiserver");
    let programs = program
        .parent()
        .expect("a program is in a folder")
        .display()
        .to_string();
    // `script` gives it a terminal, so that its output is what a person sees.
    let script = format!("chmod +x my-controller; stty cols 300; PATH={programs}:$PATH; {TYPED}");
    let mut session = Command::new("script");
    session.args(["-q", "-e", "-c", &script, "/dev/null"]);
    session
        .current_dir(&folder)
        .env_remove("NO_COLOR")
        .stdin(Stdio::null());
    #[expect(
        clippy::disallowed_methods,
        reason = "a recording has the times at which lines were printed"
    )]
    let began = std::time::Instant::now();
    let mut session = session
        .stdout(Stdio::piped())
        .spawn()
        .expect("`script` is part of Debian");
    let mut output = session.stdout.take().expect("it is piped");
    let (mut printed, mut buffer) = (Vec::new(), [0; 4096]);
    while let Ok(read @ 1..) = output.read(&mut buffer) {
        printed.push((began.elapsed(), buffer[..read].to_vec()));
    }
    let ended = session.wait().expect("it was started");
    let shown = lines(&printed);
    assert_eq!(ended.code(), Some(1), "{}", steady(&shown));
    let title = "A run of three scenarios: one passes, one failure is the library's, one is the controller's";
    let drawn = svg(title, TYPED, &shown, PAUSE);
    let picture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/images/run.svg");
    let renews = std::env::var("INSTA_UPDATE").is_ok_and(|word| word == "always");
    if renews {
        std::fs::write(&picture, &drawn).expect("the picture can be written");
    }
    let committed = std::fs::read_to_string(&picture).unwrap_or_default();
    assert_eq!(
        words(&committed),
        words(&drawn),
        "the program prints something else than docs/images/run.svg shows; renew it with INSTA_UPDATE=always"
    );
}

/// Returns the text of a picture, without times.
fn words(picture: &str) -> String {
    let mut text = String::new();
    for line in picture.lines().filter(|line| line.starts_with("<text")) {
        let mut rest = line;
        while let Some((before, after)) = rest.split_once('<') {
            text.push_str(before);
            rest = after.split_once('>').map_or("", |(_, after)| after);
        }
        text.push('\n');
    }
    let lines: Vec<_> = text
        .lines()
        .map(|line| e2e::terminal::Line {
            at: Duration::ZERO,
            text: line.to_owned(),
        })
        .collect();
    steady(&lines)
}
