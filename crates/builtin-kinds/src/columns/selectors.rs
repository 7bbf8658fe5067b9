//! Label selectors and labels in table cells.
//!
//! Source: apimachinery `meta/v1/helpers.go` (`FormatLabelSelector`), `labels/selector.go`.

use serde_json::Value;

use super::{list, text};

const NONE: &str = "<none>";

/// Formats labels, sorted.
pub(super) fn labels(labels: Option<&Value>) -> String {
    match equalities(labels).join(",") {
        all if all.is_empty() => NONE.to_owned(),
        all => all,
    }
}

/// Formats a `LabelSelector`; `<none>` if it is empty or missing, `<error>` if it is invalid.
pub(super) fn shown(selector: Option<&Value>) -> String {
    match bare(selector) {
        Some(text) if text.is_empty() => NONE.to_owned(),
        Some(text) => text,
        None => "<error>".to_owned(),
    }
}

/// Formats a `LabelSelector`; empty if it selects everything or nothing, `None` if it is invalid.
pub(super) fn bare(selector: Option<&Value>) -> Option<String> {
    let Some(selector) = selector else {
        return Some(String::new());
    };
    let mut requirements: Vec<(String, String)> = equalities(selector.get("matchLabels"))
        .into_iter()
        .map(|equality| {
            (
                equality.split('=').next().unwrap_or_default().to_owned(),
                equality,
            )
        })
        .collect();
    for expression in list(selector, "/matchExpressions") {
        let key = text(expression, "/key");
        let mut values: Vec<&str> = list(expression, "/values")
            .iter()
            .filter_map(Value::as_str)
            .collect();
        values.sort_unstable();
        let values = values.join(",");
        let shown = match text(expression, "/operator") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.to_owned(),
            "DoesNotExist" => format!("!{key}"),
            _ => return None,
        };
        requirements.push((key.to_owned(), shown));
    }
    requirements.sort_by(|(a, _), (b, _)| a.cmp(b));
    let shown: Vec<String> = requirements.into_iter().map(|(_, shown)| shown).collect();
    Some(shown.join(","))
}

fn equalities(labels: Option<&Value>) -> Vec<String> {
    let labels = labels.and_then(Value::as_object).into_iter().flatten();
    let mut all: Vec<(&String, &str)> = labels
        .map(|(name, value)| (name, value.as_str().unwrap_or_default()))
        .collect();
    all.sort_unstable();
    all.into_iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::none(Value::Null, Some(""))]
    #[case::labels(json!({ "matchLabels": { "b": "2", "a": "1" } }), Some("a=1,b=2"))]
    #[case::expressions(
        json!({ "matchLabels": { "c": "1" }, "matchExpressions": [
            { "key": "d", "operator": "In", "values": ["y", "x"] },
            { "key": "a", "operator": "NotIn", "values": ["z"] },
            { "key": "b", "operator": "Exists" },
            { "key": "e", "operator": "DoesNotExist" },
        ] }),
        Some("a notin (z),b,c=1,d in (x,y),!e")
    )]
    #[case::no_operator(json!({ "matchExpressions": [{ "key": "d", "operator": "Like" }] }), None)]
    fn selectors_are_formatted_in_one_line(#[case] selector: Value, #[case] expected: Option<&str>) {
        assert_eq!(bare(Some(&selector)).as_deref(), expected);
    }
}
