//! Scenario files and manifests.

use std::path::Path;

use fake_apiserver::manifests;
use fake_apiserver::scenario::{Style, parse};

/// Real files.
pub const SEEDS: &[&[u8]] = &[
    include_bytes!("../../../scenarios/page/expired-token-on-page-2-restarts-the-list.yaml"),
    include_bytes!("../../../scenarios/watch/clean-eof-resumes-from-the-last-event.yaml"),
    include_bytes!("../../../scenarios/conn/cut-mid-line-resumes-from-the-last-whole-event.yaml"),
    b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: &d {k: v}\n---\napiVersion: v1\nkind: List\nitems: []\n",
    b"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\"}}",
];

/// Parses the text as both; errors must be renderable.
pub fn body(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Err(errors) = parse("fuzzed", Path::new("fuzzed.yaml"), &text) {
        let _ = errors.render(Style::Plain);
    }
    drop(manifests::read(&text));
}
