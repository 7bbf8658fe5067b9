//! Extracts an object's identity from JSON without decoding the object: only names and versions of its metadata are
//! parsed.

use std::borrow::Cow;

use super::envelope::Head;
use super::scan::ValueEnd;
use crate::object::Identity;

/// Returns the object's identity; `None` if it has no metadata or the part parsed is not JSON.
pub(crate) fn identity(json: &str) -> Option<Identity<'_>> {
    quick(json).or_else(|| Head::read(json).map(Head::object))
}

/// Returns true if the text is exactly one JSON value, judged by brackets and strings only.
pub(crate) fn is_one_value(json: &str) -> bool {
    json.starts_with('{') && ValueEnd::default().advance(json.as_bytes()) == Some(json.len())
}

/// Fast path: type and metadata are the first fields, and no name contains an escape.
fn quick(json: &str) -> Option<Identity<'_>> {
    let mut rest = json.strip_prefix('{')?;
    loop {
        let (key, value) = key(rest)?;
        if key == "metadata" {
            return metadata(value.strip_prefix('{')?);
        }
        rest = text(value)?.1.strip_prefix(',')?;
    }
}

fn metadata(mut rest: &str) -> Option<Identity<'_>> {
    let mut identity = Identity::default();
    loop {
        let (key, value) = key(rest)?;
        let field = match key {
            "name" => Some(&mut identity.name),
            "namespace" => Some(&mut identity.namespace),
            "uid" => Some(&mut identity.uid),
            "resourceVersion" => Some(&mut identity.resource_version),
            _ => None,
        };
        rest = match field {
            Some(field) => {
                let (text, rest) = text(value)?;
                *field = Cow::Borrowed(text);
                rest
            }
            None => &value[ValueEnd::default().advance(value.as_bytes())?..],
        };
        let is_whole = [
            &identity.name,
            &identity.namespace,
            &identity.uid,
            &identity.resource_version,
        ]
        .iter()
        .all(|field| !field.is_empty());
        if is_whole {
            return Some(identity);
        }
        rest = match rest.strip_prefix(',') {
            Some(rest) => rest,
            None => return rest.starts_with('}').then_some(identity),
        };
    }
}

fn key(rest: &str) -> Option<(&str, &str)> {
    let (key, rest) = text(rest)?;
    Some((key, rest.strip_prefix(':')?))
}

/// Returns a string without escapes, and the text after it.
fn text(rest: &str) -> Option<(&str, &str)> {
    let rest = rest.strip_prefix('"')?;
    let end = memchr::memchr2(b'"', b'\\', rest.as_bytes())?;
    (rest.as_bytes()[end] == b'"').then(|| (&rest[..end], &rest[end + 1..]))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::built_in(r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"5","labels":{"name":"x"}},"spec":{}}"#, "n/a u 5")]
    #[case::custom(r#"{"apiVersion":"g/v1","kind":"W","metadata":{"annotations":{"uid":"no \"}"},"managedFields":[{"x":["}"]}],"name":"a","namespace":"n","resourceVersion":"5","uid":"u"}}"#, "n/a u 5")]
    #[case::cluster_scoped(
        r#"{"metadata":{"name":"a","uid":"u","resourceVersion":"5","generation":3}}"#,
        "/a u 5"
    )]
    #[case::metadata_last(r#"{"spec":{"metadata":{"name":"no"}},"metadata":{"name":"a"}}"#, "/a  ")]
    #[case::escapes(r#"{"metadata":{"name":"\u0061"}}"#, "/a  ")]
    #[case::pretty("{ \"metadata\": { \"name\": \"a\" } }", "/a  ")]
    fn names_are_found(#[case] json: &str, #[case] expected: &str) {
        let id = identity(json).unwrap();
        let found = format!("{}/{} {} {}", id.namespace, id.name, id.uid, id.resource_version);
        assert_eq!(found, expected);
    }

    #[rstest]
    #[case::nothing("")]
    #[case::no_metadata(r#"{"kind":"Pod"}"#)]
    #[case::null(r#"{"metadata":null}"#)]
    #[case::torn(r#"{"metadata":{"name":"a"#)]
    fn what_is_no_object_has_none(#[case] json: &str) {
        assert!(identity(json).is_none());
    }

    #[rstest]
    #[case(r#"{"a":"}"}"#, true)]
    #[case(r#"{"a":{}"#, false)]
    #[case(r#"{}{}"#, false)]
    #[case("1", false)]
    fn exactly_one_value_is_required(#[case] json: &str, #[case] expected: bool) {
        assert_eq!(is_one_value(json), expected);
    }
}
