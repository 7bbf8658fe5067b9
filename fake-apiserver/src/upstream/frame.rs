//! Meaning of a line of a watch: its event type, and the identity of its object. Content is not kept.

use std::sync::Arc;

use apimachinery::ObjectRef;
use apimachinery::encode::encode_json;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};
use trace::record::FrameType;

use super::{Marker, Metadata};
use crate::model::WatchFrame;
use crate::model::watch::INITIAL_EVENTS_END;

#[derive(Deserialize)]
struct Line {
    #[serde(rename = "type")]
    kind: String,
    object: Object,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Object {
    api_version: Option<String>,
    kind: Option<String>,
    metadata: Option<Metadata>,
    rows: Option<Vec<Row>>,
    code: Option<u16>,
    reason: Option<String>,
}

#[derive(Deserialize)]
struct Row {
    #[serde(default)]
    object: RowObject,
}

#[derive(Default, Deserialize)]
struct RowObject {
    metadata: Option<Metadata>,
}

/// Kind of the objects of a watch, as its lines name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) api_version: String,
    pub(crate) kind: String,
}

/// Returns the frame of a line, and the kind of its object; a line that is no event is a raw frame.
pub(crate) fn read(line: Bytes) -> (WatchFrame, Option<Named>) {
    let raw = |line| WatchFrame {
        kind: FrameType::Raw,
        object: None,
        line,
    };
    let Ok(Line { kind, object }) = serde_json::from_slice::<Line>(&line) else {
        return (raw(line), None);
    };
    let named = object
        .api_version
        .zip(object.kind)
        .map(|(api_version, kind)| Named { api_version, kind });
    // The object of a row has the metadata; the metadata of a table, the version of a bookmark.
    let row = object.rows.and_then(|rows| rows.into_iter().next());
    let of_row = row.and_then(|row| row.object.metadata);
    let mut metadata = of_row.or(object.metadata).unwrap_or_default();
    let kind = match kind.as_str() {
        "ADDED" => FrameType::Added,
        "MODIFIED" => FrameType::Modified,
        "DELETED" => FrameType::Deleted,
        "BOOKMARK" => FrameType::Bookmark {
            initial_events_end: metadata
                .annotations
                .take()
                .and_then(|Marker { initial_events_end }| initial_events_end),
        },
        "ERROR" => {
            let frame = WatchFrame {
                kind: FrameType::Error {
                    code: object.code.unwrap_or_default(),
                    reason: object.reason.unwrap_or_default(),
                },
                object: None,
                line,
            };
            return (frame, None);
        }
        _ => return (raw(line), None),
    };
    let frame = WatchFrame {
        kind,
        object: Some(Arc::new(metadata.object_ref())),
        line,
    };
    (frame, named)
}

/// Returns a bookmark of objects of this kind.
pub(crate) fn bookmark(named: &Named, version: &str, initial_events_end: Option<&str>) -> WatchFrame {
    let mut metadata = json!({ "resourceVersion": version, "creationTimestamp": null });
    if let Some(value) = initial_events_end {
        metadata["annotations"] = json!({ INITIAL_EVENTS_END: value });
    }
    let object = json!({ "kind": named.kind, "apiVersion": named.api_version, "metadata": metadata });
    let mut line = encode_json(&json!({ "type": "BOOKMARK", "object": object }));
    line.push(b'\n');
    WatchFrame {
        kind: FrameType::Bookmark {
            initial_events_end: initial_events_end.map(str::to_owned),
        },
        object: Some(Arc::new(ObjectRef {
            key: String::new(),
            uid: String::new(),
            resource_version: version.to_owned(),
        })),
        line: Bytes::from(line),
    }
}

/// Returns the bookmark with another value of the end marker, or without it.
pub(crate) fn remarked(frame: WatchFrame, initial_events_end: Option<String>) -> WatchFrame {
    let Ok(mut event) = serde_json::from_slice::<Value>(&frame.line) else {
        return frame;
    };
    if let Some(metadata) = event["object"]["metadata"].as_object_mut() {
        let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
        if let Some(annotations) = annotations.as_object_mut() {
            match &initial_events_end {
                Some(value) => {
                    annotations.insert(INITIAL_EVENTS_END.to_owned(), json!(value));
                }
                None => {
                    annotations.shift_remove(INITIAL_EVENTS_END);
                }
            }
        }
    }
    let mut line = encode_json(&event);
    line.push(b'\n');
    WatchFrame {
        kind: FrameType::Bookmark { initial_events_end },
        line: Bytes::from(line),
        ..frame
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::added(
        r#"{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"7"}}}"#,
        FrameType::Added,
        "n/a u 7"
    )]
    #[case::cluster_scoped_with_null(
        r#"{"type":"DELETED","object":{"kind":"Node","apiVersion":"v1","metadata":{"name":"a","namespace":null,"uid":"u","resourceVersion":"7","annotations":null}}}"#,
        FrameType::Deleted,
        "a u 7"
    )]
    #[case::bookmark(
        r#"{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"true"}}}}"#,
        FrameType::Bookmark { initial_events_end: Some("true".to_owned()) },
        "  7"
    )]
    #[case::table(
        r#"{"type":"MODIFIED","object":{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":""},"rows":[{"cells":["a"],"object":{"metadata":{"name":"a","uid":"u","resourceVersion":"7"}}}]}}"#,
        FrameType::Modified,
        "a u 7"
    )]
    #[case::error(
        r#"{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"code":410,"reason":"Expired"}}"#,
        FrameType::Error { code: 410, reason: "Expired".to_owned() },
        "-"
    )]
    #[case::unknown_type(r#"{"type":"RENAMED","object":{}}"#, FrameType::Raw, "-")]
    #[case::no_json("<html>", FrameType::Raw, "-")]
    fn a_line_has_the_identity_of_its_object(
        #[case] line: &str,
        #[case] kind: FrameType,
        #[case] object: &str,
    ) {
        let (frame, _) = read(Bytes::from(line.to_owned()));
        assert_eq!(frame.kind, kind);
        let shown = frame.object.map_or("-".to_owned(), |of| {
            format!("{} {} {}", of.key, of.uid, of.resource_version)
        });
        assert_eq!(shown, object);
    }

    #[test]
    fn the_end_marker_is_changed_and_removed() {
        let named = Named {
            api_version: "v1".to_owned(),
            kind: "Pod".to_owned(),
        };
        let marked = bookmark(&named, "7", Some("true"));
        let (read_again, kind) = read(marked.line.clone());
        assert_eq!((read_again, kind), (marked.clone(), Some(named)));
        for value in [Some("false".to_owned()), None] {
            let (changed, _) = read(remarked(marked.clone(), value.clone()).line);
            let expected = FrameType::Bookmark {
                initial_events_end: value,
            };
            assert_eq!(changed.kind, expected);
        }
    }
}
