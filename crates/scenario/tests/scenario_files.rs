//! Every checked-in scenario file parses.

use std::path::{Path, PathBuf};

use scenario::{Style, json_schema, load, parse};

#[test]
fn every_scenario_file_parses() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios"));
    let files = yaml_below(root);
    assert!(!files.is_empty(), "no scenario below {}", root.display());
    let mut broken = String::new();
    for file in files {
        match load(&file, root) {
            Err(errors) => broken.push_str(&errors.render(Style::Plain)),
            // The reports and the catalogue need them.
            Ok(scenario) if scenario.why.is_empty() || scenario.covers.is_empty() => {
                broken.push_str(&format!("{}: `why` or `covers` is missing\n", file.display()));
            }
            Ok(_) => {}
        }
    }
    assert!(broken.is_empty(), "{broken}");
}

#[test]
fn a_file_of_a_user_needs_neither_reason_nor_requirements() {
    let scenario = parse(
        "group/claim",
        Path::new("claim.yaml"),
        "scenario: v1\ntitle: A claim\n",
    );
    assert!(scenario.is_ok_and(|scenario| scenario.why.is_empty() && scenario.covers.is_empty()));
}

fn yaml_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder of scenarios") {
        let path = entry.expect("a file of that folder").path();
        if path.is_dir() {
            files.extend(yaml_below(&path));
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            files.push(path);
        }
    }
    files.sort();
    files
}

#[test]
fn every_key_of_the_language_parses() {
    let root = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/corpus/v1/scenarios/language"
    );
    let mut text = String::new();
    for file in yaml_below(Path::new(root)) {
        let more = std::fs::read_to_string(&file).unwrap();
        if let Err(errors) = parse("language/keys", &file, &more) {
            panic!("{}", errors.render(Style::Plain));
        }
        text.push_str(&more);
    }
    let schema: serde_json::Value = serde_json::from_str(&json_schema()).unwrap();
    let mut unused: Vec<String> = keys_of(&schema);
    unused.retain(|key| !text.contains(&format!("{key}:")) && !text.contains(&format!("- {key}\n")));
    // Keys of another mode or contract, which excludes keys used in the file; and words that stand for a key.
    unused.retain(|key| {
        !matches!(
            key.as_str(),
            "object" | "resource_version" | "init" | "init_done" | "eof" | "fin" | "rst" | "stall"
        )
    });
    assert_eq!(unused, Vec::<String>::new());
}

#[test]
fn the_manual_explains_every_key() {
    let manual = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scenario-language.md");
    let manual = std::fs::read_to_string(manual).unwrap();
    let schema: serde_json::Value = serde_json::from_str(&json_schema()).unwrap();
    let unexplained: Vec<String> = keys_of(&schema)
        .into_iter()
        .filter(|key| !manual.contains(&format!("`{key}`")))
        .collect();
    assert_eq!(unexplained, Vec::<String>::new());
}

#[test]
fn the_manuals_examples_parse() {
    let manual = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scenario-language.md");
    let manual = std::fs::read_to_string(manual).unwrap();
    let examples: Vec<&str> = manual
        .split("```yaml\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .filter(|example| example.contains("scenario: v1"))
        .collect();
    assert_eq!(examples.len(), 3);
    for example in examples {
        if let Err(errors) = parse("manual/example", Path::new("docs/scenario-language.md"), example) {
            panic!("{}", errors.render(Style::Plain));
        }
    }
}

fn keys_of(schema: &serde_json::Value) -> Vec<String> {
    let mut keys = Vec::new();
    let definitions = schema["$defs"]
        .as_object()
        .into_iter()
        .flat_map(|definitions| definitions.values());
    for definition in definitions.chain([schema]) {
        keys.extend(
            definition["properties"]
                .as_object()
                .into_iter()
                .flat_map(|map| map.keys().cloned()),
        );
    }
    keys.sort();
    keys.dedup();
    keys
}
