//! Tables of actions in the manual, made of the schema. It must not read files.

use fake_apiserver::scenario::action_sections;
use serde_json::Value;

/// End of a table.
const END: &str = "<!-- end -->";

/// Returns the manual with current tables of actions: the lines between `<!-- actions: SECTION -->` and `<!-- end -->`.
/// `schema`: that of scenario files.
///
/// # Errors
/// A section has no such lines.
pub(super) fn with_action_tables(manual: &str, schema: &Value) -> Result<String, String> {
    let mut manual = manual.to_owned();
    for (section, keys) in action_sections() {
        let begin = format!("<!-- actions: {section} -->\n");
        let missing = || format!("there is no `{}` with `{END}` after it", begin.trim_end());
        let start = manual.find(&begin).ok_or_else(missing)? + begin.len();
        let length = manual[start..].find(END).ok_or_else(missing)?;
        manual.replace_range(start..start + length, &table(schema, keys));
    }
    Ok(manual)
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
    use crate::schema::manual;

    #[test]
    fn the_tables_of_actions_are_current() {
        let (found, current) = manual().unwrap();
        assert!(
            found == current,
            "docs/scenario-language.md is stale: run `cargo xtask schema` and commit it"
        );
    }

    #[test]
    fn a_section_that_is_gone_is_named() {
        let missing = with_action_tables("# Manual", &Value::Null).unwrap_err();
        assert!(missing.contains("<!-- actions: "), "{missing}");
    }
}
