//! Every checked-in scenario file parses.

use std::path::{Path, PathBuf};

use fake_apiserver::scenario::{Style, load};

#[test]
fn every_scenario_file_parses() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../scenarios"));
    let files = yaml_below(root);
    assert!(!files.is_empty(), "no scenario below {}", root.display());
    let mut broken = String::new();
    for file in files {
        if let Err(errors) = load(&file, root) {
            broken.push_str(&errors.render(Style::Plain));
        }
    }
    assert!(broken.is_empty(), "{broken}");
}

fn yaml_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(yaml_below(&path));
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            files.push(path);
        }
    }
    files.sort();
    files
}
