//! Objects in a file, as kubectl takes them: YAML or JSON, one document or several, lists taken apart.
//!
//! It must not know which kinds there are.

use serde_json::Value;

/// The objects in `text`, in order.
///
/// # Errors
/// In words: no YAML, or a document that is no object.
pub fn read(text: &str) -> Result<Vec<Value>, String> {
    // JSON is YAML, but large files of it are read faster as what they are.
    let documents: Vec<Value> = if text.trim_start().starts_with('{') {
        serde_json::Deserializer::from_str(text)
            .into_iter()
            .collect::<Result<_, _>>()
            .map_err(|error| error.to_string())?
    } else {
        serde_saphyr::from_multiple(text).map_err(|error| error.to_string())?
    };
    let mut objects = Vec::new();
    for document in documents {
        match document {
            Value::Null => {}
            Value::Object(mut object) if is_list(&object) => match object.remove("items") {
                Some(Value::Array(items)) => objects.extend(items),
                Some(_) | None => return Err("a list has no items".to_owned()),
            },
            Value::Object(object) => objects.push(Value::Object(object)),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                return Err("a document is no object".to_owned());
            }
        }
    }
    Ok(objects)
}

fn is_list(object: &serde_json::Map<String, Value>) -> bool {
    object.get("kind").and_then(Value::as_str) == Some("List")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::two_documents("kind: A\n---\nkind: B\n", "A B")]
    #[case::an_empty_document("---\nkind: A\n---\n", "A")]
    #[case::json(r#"{"kind":"A"} {"kind":"B"}"#, "A B")]
    #[case::a_list("kind: List\nitems: [{kind: A}, {kind: B}]\n", "A B")]
    #[case::nothing("", "")]
    fn objects_are_read_in_order(#[case] text: &str, #[case] kinds: &str) {
        let objects = read(text).unwrap();
        let read: Vec<&str> = objects
            .iter()
            .filter_map(|object| object["kind"].as_str())
            .collect();
        assert_eq!(read.join(" "), kinds);
    }

    #[rstest]
    #[case("- a\n")]
    #[case("kind: List\n")]
    #[case("{")]
    #[case("a: [\n")]
    fn what_is_no_object_is_refused(#[case] text: &str) {
        assert!(read(text).is_err());
    }
}
