//! The live view of a running server in a browser: what it shows while clients list and watch, and what its buttons do.

use std::path::Path;

use e2e::server::Server;
use e2e::toolchain;

#[test]
fn the_live_view_is_used_in_a_browser() {
    let Some(mut browser) = toolchain::or_skip(toolchain::browser("live.mjs")) else {
        return;
    };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("live");
    drop(std::fs::remove_dir_all(&folder));
    std::fs::create_dir_all(&folder).expect("the target folder can be written");
    let server = Server::start("serve", &["--ui", "--quiet"]);
    let line = server.expect("the live view", |line| line.starts_with("live view at "));
    let page = line.trim_start_matches("live view at ");
    let url = format!("http://{}", server.address());
    let output = browser.arg(page).arg(url).arg(&folder).output();
    let output = output.expect("node was found");
    let text = [&output.stdout, &output.stderr]
        .map(|bytes| String::from_utf8_lossy(bytes))
        .join("");
    assert!(output.status.success(), "{text}");
    assert_eq!(text.matches("ok ").count(), 11, "{text}");
}
