//! The live view of a running server in a browser: what it shows while clients list and watch, and what its buttons do.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use e2e::toolchain;

/// A running `serve --ui`, stopped at the end of the test.
struct Serving(Child);

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have exited already.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Starts a server. Returns its URL and that of the live view.
fn serve() -> (Serving, String, String) {
    let mut child = Command::new(toolchain::fake_apiserver())
        .args(["serve", "--ui", "--quiet"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it was just built");
    let mut log = BufReader::new(child.stderr.take().expect("it is piped"));
    let serving = Serving(child);
    let mut line = || {
        let mut line = String::new();
        assert!(
            log.read_line(&mut line).expect("the log is text") > 0,
            "it ended early"
        );
        line.trim_end().to_owned()
    };
    let first = line();
    let server = first.split(" at ").nth(1).and_then(|rest| rest.split(',').next());
    let server = server.expect("the first line has the URL").to_owned();
    let page = line();
    let page = page
        .strip_prefix("live view at ")
        .expect("the second line has it");
    let page = page.to_owned();
    // Drains the pipe, so that later output does not fill it.
    std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
    (serving, server, page)
}

#[test]
fn the_live_view_is_used_in_a_browser() {
    let Some(mut browser) = toolchain::or_skip(toolchain::browser("live.mjs")) else {
        return;
    };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("live");
    drop(std::fs::remove_dir_all(&folder));
    std::fs::create_dir_all(&folder).expect("the target folder can be written");
    let (_serving, server, page) = serve();
    let output = browser.arg(&page).arg(&server).arg(&folder).output();
    let output = output.expect("node was found");
    let text = [&output.stdout, &output.stderr]
        .map(|bytes| String::from_utf8_lossy(bytes))
        .join("");
    assert!(output.status.success(), "{text}");
    assert_eq!(text.matches("ok ").count(), 11, "{text}");
}
