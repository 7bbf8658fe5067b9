//! HTML reports of real runs in a browser; and the bundled scripts equal a new build of their sources.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use e2e::toolchain;

/// Scenarios that take seconds: kube-runtime fails all but the last.
const SCENARIOS: [&str; 4] = [
    "bookmark/older-bookmark-does-not-rewind",
    "list/relist-never-asks-for-version-zero",
    "page/version-on-the-first-page-only-is-enough",
    "page/token-comes-back-verbatim",
];

fn printed(output: &Output) -> String {
    [&output.stdout, &output.stderr]
        .map(|bytes| String::from_utf8_lossy(bytes))
        .join("")
}

/// Returns an empty folder for this test, in the target folder.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report").join(name);
    drop(std::fs::remove_dir_all(&folder));
    std::fs::create_dir_all(&folder).expect("the target folder can be written");
    folder
}

fn fake_apiserver() -> Command {
    Command::new(toolchain::fake_apiserver())
}

/// Runs the scenarios with an adapter of this workspace, and keeps all evidence.
fn evidence(adapter: &str, folder: &Path) {
    let output = fake_apiserver()
        .args(["conformance", "--jobs", "8", "--keep", "always", "--evidence"])
        .arg(folder)
        .args(SCENARIOS)
        .arg("--")
        .arg(tests::programs::path(adapter))
        .output()
        .expect("it was just built");
    assert!(
        matches!(output.status.code(), Some(0 | 1)),
        "{}",
        printed(&output)
    );
}

#[test]
fn a_report_is_read_in_a_browser() {
    let Some(mut browser) = toolchain::or_skip(toolchain::browser("report.mjs")) else {
        return;
    };
    let folder = folder("browser");
    let (one, two) = (folder.join("kube-runtime"), folder.join("watcher"));
    evidence("adapter-kube-runtime", &one);
    evidence("adapter-watcher", &two);
    let draw = |name: &str, runs: &[&PathBuf]| {
        let html = folder.join(name);
        let mut report = fake_apiserver();
        report.arg("report").args(runs).arg("--html").arg(&html);
        let output = report.output().unwrap();
        assert!(output.status.success(), "{}", printed(&output));
        html
    };
    let html = draw("report.html", &[&one, &two]);
    let wide = draw("wide.html", &[&one, &two].repeat(6));
    let output = browser.arg(&html).arg(&wide).arg(&folder).output().unwrap();
    let text = printed(&output);
    assert!(output.status.success(), "{text}");
    assert_eq!(text.matches("ok ").count(), 13, "{text}");
}

#[test]
fn the_scripts_are_what_their_sources_make() {
    let Some(bundles) = toolchain::or_skip(toolchain::report_bundle()) else {
        return;
    };
    for script in ["page.js", "live.js"] {
        let bundle = bundles.join(script);
        let kept = toolchain::repository()
            .join("crates/report/page/dist")
            .join(script);
        assert!(
            std::fs::read(&bundle).unwrap() == std::fs::read(&kept).unwrap(),
            "{} differs from the output of `npm ci && npm run build`: copy {} over it",
            kept.display(),
            bundle.display()
        );
    }
}
