//! Objects in a file, as kubectl takes them: YAML or JSON, one document or several, lists taken apart.
//!
//! It must not know which kinds there are.

use serde_json::Value;

/// Why a text holds no objects.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Unreadable {
    /// In words.
    pub message: String,
    /// Line and column, from 1, where they are known.
    pub place: Option<(usize, usize)>,
}

impl Unreadable {
    fn no_objects(message: &str) -> Self {
        Self {
            message: message.to_owned(),
            place: None,
        }
    }
}

impl From<serde_json::Error> for Unreadable {
    fn from(error: serde_json::Error) -> Self {
        Self {
            message: error.to_string(),
            place: Some((error.line(), error.column())),
        }
    }
}

impl From<serde_saphyr::Error> for Unreadable {
    fn from(error: serde_saphyr::Error) -> Self {
        let place = error
            .location()
            .map(|at| (at.line() as usize, at.column() as usize));
        let text = error.without_snippet().to_string();
        Self {
            // The first line has the message.
            message: text.lines().next().unwrap_or_default().to_owned(),
            place,
        }
    }
}

/// The objects in `text`, in order.
///
/// # Errors
/// No YAML, or a document that is no object.
pub fn read(text: &str) -> Result<Vec<Value>, Unreadable> {
    // JSON is YAML, but large files of it are read faster as what they are. YAML may begin as JSON does.
    let documents: Vec<Value> = if text.trim_start().starts_with('{') {
        match serde_json::Deserializer::from_str(text).into_iter().collect() {
            Ok(documents) => documents,
            Err(error) => serde_saphyr::from_multiple(text).map_err(|_: serde_saphyr::Error| error)?,
        }
    } else {
        serde_saphyr::from_multiple(text)?
    };
    let mut objects = Vec::new();
    for document in documents {
        match document {
            Value::Null => {}
            Value::Object(mut object) if is_list(&object) => match object.remove("items") {
                Some(Value::Array(items)) => objects.extend(items),
                Some(_) | None => return Err(Unreadable::no_objects("a list has no items")),
            },
            Value::Object(object) => objects.push(Value::Object(object)),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                return Err(Unreadable::no_objects("a document is no object"));
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
    #[case::yaml_in_braces("{kind: A}\n---\n{kind: B}\n", "A B")]
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
