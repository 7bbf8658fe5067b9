//! Tables of actions in the manual, generated from the schema.

use serde_json::Value;

use super::raw::ActionKeys;
use super::schema::schema;

/// Returns the manual with current tables of actions: the lines between `<!-- actions: SECTION -->` and `<!-- end -->`.
///
/// # Panics
/// If a section has no such lines.
pub fn with_action_tables(manual: &str) -> String {
    let schema = schema();
    let mut manual = manual.to_owned();
    for (section, keys) in ActionKeys::SECTIONS {
        let begin = format!("<!-- actions: {section} -->\n");
        let start = manual.find(&begin).expect("the manual has every section") + begin.len();
        let length = manual[start..]
            .find("<!-- end -->")
            .expect("a section has an end");
        manual.replace_range(start..start + length, &table(&schema, keys));
    }
    manual
}

fn table(schema: &Value, keys: &[&str]) -> String {
    let mut lines = String::from("| action | argument | does |\n|---|---|---|\n");
    for key in keys {
        let property = &schema["$defs"]["Step"]["properties"][key];
        let does = property["description"]
            .as_str()
            .unwrap_or_default()
            .replace('\n', " ");
        lines.push_str(&format!("| `{key}` | {} | {does} |\n", argument(property)));
    }
    lines
}

/// Returns the description of a value.
fn argument(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str() {
        return match name.rsplit('/').next().unwrap_or_default() {
            "Duration" => "time",
            "Ending" => "ending",
            "Object" => "object",
            "Status" => "Status",
            "Http2Error" => "CODE",
            _ => "map",
        }
        .to_owned();
    }
    if let Some(least) = schema["minimum"].as_u64() {
        return format!("number from {least}");
    }
    if schema["type"].is_array() {
        return "text".to_owned();
    }
    let either = ["allOf", "anyOf", "oneOf"].map(|key| schema[key].as_array());
    let mut words: Vec<String> = Vec::new();
    for one in either.into_iter().flatten().flatten() {
        words.push(match one["type"].as_str() {
            Some("array") => "list".to_owned(),
            Some("null") => "nothing".to_owned(),
            Some(_) | None => argument(one),
        });
    }
    words.retain(|word| !word.is_empty());
    words.join(" or ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_of_actions_are_current() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scenario-language.md");
        let manual = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            manual == with_action_tables(&manual),
            "docs/scenario-language.md is stale: run `cargo xtask schema` and commit it"
        );
    }
}
