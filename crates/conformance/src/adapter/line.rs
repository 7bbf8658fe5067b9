//! Strict parser for one line of an adapter's standard output. A misspelt key is an error with a suggestion: an ignored key
//! would change what is tested without notice.

use std::borrow::Cow;

use serde_json::Value;

use super::message::{Event, schema};

/// A parsed line.
#[derive(Debug, Clone, PartialEq)]
pub enum Line {
    /// A message.
    Event(Box<Event>),
    /// Text that is not a message, such as a log line of the library.
    Stray(String),
    /// Malformed message, with the reason.
    Invalid(String),
}

/// Maximum length of a quoted line, in characters.
const QUOTED_MAX: usize = 120;

/// Parses a line without its newline.
pub fn read(line: &[u8]) -> Line {
    let text = String::from_utf8_lossy(line);
    let text = text.trim();
    if !text.starts_with('{') {
        return Line::Stray(text.to_owned());
    }
    match event(text) {
        Ok(event) if std::str::from_utf8(line).is_ok() => Line::Event(Box::new(event)),
        Ok(_) => Line::Invalid(format!("the line is not UTF-8: {}", quoted(text))),
        Err(why) => Line::Invalid(format!("{why}: {}", quoted(text))),
    }
}

fn event(text: &str) -> Result<Event, String> {
    let value: Value =
        serde_json::from_str(text).map_err(|error| format!("the line is not JSON ({error})"))?;
    let word = match value.get("ev") {
        Some(Value::String(word)) => word.clone(),
        Some(_) => return Err("`ev` is not a string".to_owned()),
        None => return Err("the line has no `ev`".to_owned()),
    };
    let variants = schema()["$defs"]["Event"]["oneOf"].as_array();
    let word_of = |variant: &Value| variant["properties"]["ev"]["const"].as_str().map(str::to_owned);
    let words: Vec<String> = variants.into_iter().flatten().filter_map(word_of).collect();
    let variant = variants
        .into_iter()
        .flatten()
        .find(|variant| word_of(variant).as_ref() == Some(&word))
        .ok_or_else(|| format!("`{word}` is not an event{}", suggestion(&word, &words)))?;
    known_keys(&value, variant, "")?;
    serde_json::from_value(value).map_err(|error| format!("`{word}` is not as specified ({error})"))
}

/// Checks recursively that every key of `value` is in its schema.
fn known_keys(value: &Value, of: &Value, path: &str) -> Result<(), String> {
    let of = resolved(of);
    if let (Some(items), Some(values)) = (of.get("items"), value.as_array()) {
        return values
            .iter()
            .enumerate()
            .try_for_each(|(nth, value)| known_keys(value, items, &format!("{path}[{nth}]")));
    }
    let (Some(properties), Some(object)) = (of["properties"].as_object(), value.as_object()) else {
        return Ok(());
    };
    let keys: Vec<String> = properties.keys().cloned().collect();
    for (key, value) in object {
        let path = if path.is_empty() {
            key.clone()
        } else {
            format!("{path}.{key}")
        };
        let Some(property) = properties.get(key) else {
            return Err(format!("`{path}` is an unknown key{}", suggestion(key, &keys)));
        };
        known_keys(value, property, &path)?;
    }
    Ok(())
}

/// Resolves references of a schema. For an optional value, returns the schema that is not null.
fn resolved(of: &Value) -> Cow<'_, Value> {
    let inner = [&of["allOf"], &of["anyOf"]]
        .into_iter()
        .filter_map(Value::as_array)
        .flatten()
        .find(|part| part.get("$ref").is_some());
    let reference = of["$ref"]
        .as_str()
        .or_else(|| inner.and_then(|part| part["$ref"].as_str()));
    match reference.and_then(|reference| reference.rsplit('/').next()) {
        Some(name) => Cow::Borrowed(&schema()["$defs"][name]),
        None => Cow::Borrowed(of),
    }
}

/// Returns `; did you mean …?` for a similar word, otherwise the list of all words.
fn suggestion(word: &str, words: &[String]) -> String {
    let near = words
        .iter()
        .map(|known| (strsim::damerau_levenshtein(word, known), known))
        .min()
        .filter(|(distance, known)| *distance <= 2.max(known.len() / 3));
    match near {
        Some((_, known)) => format!("; did you mean `{known}`?"),
        None => format!("; expected one of {}", words.join(", ")),
    }
}

fn quoted(text: &str) -> String {
    let mut quoted: String = text.chars().take(QUOTED_MAX).collect();
    if quoted.len() < text.len() {
        quoted.push('…');
    }
    quoted
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::adapter::message::{self, Command, Contract, Hello, Options, Start};

    #[rstest]
    #[case::not_json("{ev: init}", "the line is not JSON")]
    #[case::no_ev(r#"{"event":"init"}"#, "the line has no `ev`")]
    #[case::misspelt(
        r#"{"ev":"init-aply","name":"a"}"#,
        "`init-aply` is not an event; did you mean `init-apply`?"
    )]
    #[case::unknown_key(
        r#"{"ev":"apply","nmae":"a"}"#,
        "`nmae` is an unknown key; did you mean `name`?"
    )]
    #[case::far(
        r#"{"ev":"apply","kubernetes":1}"#,
        "`kubernetes` is an unknown key; expected one of"
    )]
    #[case::of_a_unit(r#"{"ev":"synced","rv":"1"}"#, "`rv` is an unknown key")]
    #[case::nested(
        r#"{"ev":"hello","protocol":1,"client":{"name":"x","lang":"go","versoin":"1"},"contracts":["informer"],"recovers":"library"}"#,
        "`client.versoin` is an unknown key; did you mean `version`?"
    )]
    #[case::in_items(
        r#"{"ev":"dump","id":1,"items":[{"name":"a"},{"nam":"b"}]}"#,
        "`items[1].nam` is an unknown key"
    )]
    #[case::a_number(r#"{"ev":"apply","name":"a","rv":5}"#, "`apply` is not as specified")]
    #[case::a_capability(
        r#"{"ev":"hello","protocol":1,"client":{"name":"x","lang":"go","version":"1"},"contracts":["informer"],"caps":["paging"],"recovers":"library"}"#,
        "unknown variant `paging`"
    )]
    fn a_malformed_line_is_an_error_with_a_reason(#[case] line: &str, #[case] why: &str) {
        let Line::Invalid(reason) = read(line.as_bytes()) else {
            panic!("{line} was accepted");
        };
        assert!(reason.contains(why), "{reason}");
    }

    #[test]
    fn objects_may_have_any_content() {
        let line =
            json!({"ev": "apply", "obj": {"metadata": {"name": "a"}, "anything": {"at": "all"}}}).to_string();
        assert!(matches!(read(line.as_bytes()), Line::Event(_)));
    }

    #[test]
    fn other_text_is_stray() {
        assert_eq!(read(b"WARN: slow\r"), Line::Stray("WARN: slow".to_owned()));
        assert!(matches!(
            read(b"{\"ev\":\"error\",\"message\":\"\xff\"}"),
            Line::Invalid(_)
        ));
    }

    #[test]
    fn the_checked_in_schema_is_the_generated_one() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schema/adapter.v1.json");
        let checked_in = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            checked_in == message::json_schema(),
            "schema/adapter.v1.json is stale: run `cargo xtask schema` and commit it"
        );
    }

    /// Every example in docs/adapter-protocol.md is a valid message.
    #[test]
    fn the_examples_of_the_page_are_messages() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/adapter-protocol.md");
        let page = std::fs::read_to_string(path).unwrap();
        let mut seen = std::collections::BTreeSet::new();
        for line in page.lines().filter(|line| line.starts_with("{\"")) {
            let value: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
            if let Some(word) = value["cmd"].as_str() {
                serde_json::from_str::<Command>(line).unwrap_or_else(|error| panic!("{line}: {error}"));
                seen.insert(word.to_owned());
            } else {
                let Line::Event(_) = read(line.as_bytes()) else {
                    panic!("{line}: {:?}", read(line.as_bytes()));
                };
                seen.insert(value["ev"].as_str().unwrap_or_default().to_owned());
            }
        }
        for name in ["Command", "Event"] {
            for variant in schema()["$defs"][name]["oneOf"].as_array().unwrap() {
                let tag = ["cmd", "ev"]
                    .iter()
                    .find_map(|tag| variant["properties"][tag]["const"].as_str());
                assert!(seen.contains(tag.unwrap_or_default()), "no example of {tag:?}");
            }
        }
    }

    #[test]
    fn messages_round_trip() {
        let start = Command::Start(Box::new(Start {
            protocol: message::PROTOCOL,
            contract: Contract::Informer.word().to_owned(),
            resource: message::Resource {
                group: String::new(),
                version: "v1".to_owned(),
                plural: "configmaps".to_owned(),
                kind: "ConfigMap".to_owned(),
            },
            namespace: None,
            options: Options {
                page_size: Some(2),
                ..Options::default()
            },
            paused: false,
        }));
        let line = serde_json::to_string(&start).unwrap();
        assert_eq!(
            line,
            r#"{"cmd":"start","protocol":1,"contract":"informer","resource":{"group":"","version":"v1","plural":"configmaps","kind":"ConfigMap"},"options":{"pageSize":2}}"#
        );
        let hello = r#"{"ev":"hello","protocol":1,"client":{"name":"x","lang":"go","version":"1"},"contracts":["informer"],"caps":["page-size"],"recovers":"library"}"#;
        let Line::Event(event) = read(hello.as_bytes()) else {
            panic!("{:?}", read(hello.as_bytes()));
        };
        assert!(matches!(*event, Event::Hello(Hello { protocol: 1, .. })));
        assert_eq!(serde_json::to_string(&event).unwrap(), hello);
    }
}
