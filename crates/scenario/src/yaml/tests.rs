//! What is printed is read back as the same scenario, and looks as the files of `scenarios/` do. It must not know actions or
//! expectations one by one.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use rstest::rstest;

use super::*;
use crate::raw::{ActionKey, Json, Text};
use crate::{Scenario, build, check, parse, read, schema, tree};

/// Returns the values of a file.
fn raw(text: &str) -> File {
    let (tree, mut problems) = tree::read(text);
    let mut tree = tree.expect("YAML");
    let is_valid = check::check(&mut tree, &schema::schema(), "a scenario", &mut problems);
    assert!(is_valid && problems.is_empty(), "{problems:#?}\n{text}");
    read::from_node(&tree).expect("the schema is that of the types")
}

/// Returns the scenario as text, without positions.
fn without_places(scenario: &Scenario) -> String {
    let text = format!("{scenario:?}");
    let mut parts = text.split("Place { line: ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        text + part.split_once('}').map_or(part, |(_, rest)| rest)
    })
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder of scenarios");
    let paths = entries.map(|entry| entry.expect("a file of that folder").path());
    let mut found = Vec::new();
    for path in paths {
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            found.push(path);
        }
    }
    found
}

/// Printed, parsed and built without text, every file gives the scenario that it was.
#[rstest]
#[case("scenarios")]
#[case("tests/corpus/v1/scenarios/language")]
fn every_file_is_printed_as_it_was_read(#[case] folder: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let files = files(&root.join(folder));
    assert!(!files.is_empty());
    for path in files {
        let text = std::fs::read_to_string(&path).expect("a file of the repository");
        let file = raw(&text);
        let printed = file.to_string();
        assert_eq!(raw(&printed), file, "{}\n{printed}", path.display());
        let scenario = |text: &str| match parse("group/claim", &path, text) {
            Ok(scenario) => without_places(&scenario),
            Err(errors) => panic!("{}\n{text}", errors.render(crate::Style::Plain)),
        };
        let built = build("group/claim", &path, file).expect("it is valid");
        assert_eq!(scenario(&printed), scenario(&text), "{}", path.display());
        assert_eq!(without_places(&built), scenario(&text), "{}", path.display());
    }
}

#[test]
fn short_forms_and_flow_style_are_those_of_the_repository() {
    let text = "\
scenario: v1
title: A claim in a sentence that is so long that it is folded after the word at which the line would be longer than the rest of the file
covers: [LIST-01]
client: {page_size: none}
objects:
  - {repeat: 2, configmap: {name: \"a-{i}\", data: {v: \"1\", w: yes}}}
  - configmap: {name: b}
steps:
  - clear_watch_cache
  - when: {list: 1, page: 2}
    do: {reply: {status: 410, reason: Expired}}
  - delete: a-1
  - {when: {watch: next, query: {resourceVersion: $start}}, for: 4m, do: [{send: '{\"a\": 1}'}, eof, {truncate: {after_bytes: 1, then: rst}}]}
  - when: {emitted: {apply: b}}
    do: {relabel: {name: b, labels: {app: null}}}
expect:
  requests: [list, {watch: {resourceVersion: $start}, at: 1}]
  cache: []
";
    let file = raw(&text.replace(", at: 1", ", answered: 200"));
    insta::assert_snapshot!(file);
}

proptest! {
    /// Any text is read as it was, in a value of text and in one of any type.
    #[test]
    fn any_text_is_printed_so_that_it_is_read_again(text in any::<String>()) {
        is_read_again(&text);
    }

    #[test]
    fn text_that_looks_like_something_else_is_read_again(text in "[a-c0-9yn:#,' \\-\\[\\]{}~.\"\\\\$é\n]{0,12}") {
        is_read_again(&text);
    }
}

fn is_read_again(text: &str) {
    let json = serde_json::json!({ text: [text, { "a": text }] });
    let (tree, problems) = tree::read(&flow(&super::tree(&Json(json.clone())).expect("JSON")));
    assert_eq!(tree.map(|tree| tree.to_json()), Some(json), "{problems:?}");
    let mut file = File {
        title: Some(text.to_owned().into()),
        ..raw("scenario: v1\ntitle: t\n")
    };
    let action = ActionKeys::from(ActionKey::EndMarker(Text(text.to_owned()).into()));
    file.steps = Some(vec![read::WordOr(read::Both(Default::default(), action)).into()]);
    assert_eq!(raw(&file.to_string()), file, "{file}");
}
