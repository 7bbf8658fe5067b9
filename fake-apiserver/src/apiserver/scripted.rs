//! Encoding of watch events that a scenario or a rule defines.

use std::sync::Arc;

use apimachinery::ObjectRef;
use apimachinery::encode::encode_json;
use apimachinery::options::Representation;
use bytes::Bytes;
use scenario::{Expected, ObjectName, RawFrame, SentObject};
use serde_json::{Value, json};
use trace::record::FrameType;

use super::ApiServer;
use super::deviate::with_newline;
use crate::model::WatchFrame;

impl ApiServer {
    /// Returns the object of a scripted event; `None` if it does not exist.
    pub(super) fn sent_object(&self, object: &SentObject, form: Representation) -> Option<Value> {
        match object {
            SentObject::Stored(name) => {
                let stored = self.model.object(name)?;
                serde_json::from_slice(&stored.encoded(form)).ok()
            }
            SentObject::Given(object) => Some(self.identified(object.clone())),
        }
    }

    /// Returns a scripted object with uid and creationTimestamp of the stored object of its name, unless they are set.
    pub(super) fn identified(&self, mut object: Value) -> Value {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let kind = self.model.catalog().find_kind(
            text("/apiVersion").unwrap_or_default(),
            text("/kind").unwrap_or_default(),
        );
        let name = kind.zip(text("/metadata/name")).map(|(kind, name)| ObjectName {
            group: kind.group.to_string(),
            plural: kind.plural.to_string(),
            namespace: text("/metadata/namespace").map(str::to_owned),
            name: name.to_owned(),
        });
        let stored = name.and_then(|name| self.model.object(&name));
        if let (Some(stored), Some(metadata)) = (stored, object["metadata"].as_object_mut())
            && !metadata.contains_key("uid")
        {
            let known = stored.json();
            for field in ["uid", "creationTimestamp"] {
                metadata
                    .entry(field)
                    .or_insert_with(|| known["metadata"][field].clone());
            }
        }
        object
    }
}

pub(super) fn raw_frame(frame: &RawFrame) -> WatchFrame {
    let mut line = frame.bytes.clone();
    if frame.newline {
        line.push(b'\n');
    }
    WatchFrame {
        kind: FrameType::Raw,
        object: None,
        line: Bytes::from(line),
    }
}

/// Encodes a scripted event. `version`: its resourceVersion, if it is not that of the object.
pub(super) fn event_frame(kind: &str, mut object: Value, version: Option<&Expected>) -> WatchFrame {
    if let (Some(version), Some(map)) = (version, object.as_object_mut()) {
        let metadata = map.entry("metadata").or_insert_with(|| json!({}));
        if let Some(metadata) = metadata.as_object_mut() {
            match version {
                Expected::Is(version) => {
                    metadata.insert("resourceVersion".to_owned(), json!(version));
                }
                Expected::Ref(_) | Expected::Not(_) | Expected::Absent | Expected::Present => {
                    metadata.shift_remove("resourceVersion");
                }
            }
        }
    }
    let frame_type = match kind {
        "ADDED" => FrameType::Added,
        "MODIFIED" => FrameType::Modified,
        "DELETED" => FrameType::Deleted,
        "BOOKMARK" => FrameType::Bookmark {
            initial_events_end: object
                .pointer("/metadata/annotations/k8s.io~1initial-events-end")
                .and_then(Value::as_str)
                .map(str::to_owned),
        },
        "ERROR" => return error_event(&object),
        _ => FrameType::Raw,
    };
    let line = with_newline(encode_json(&json!({ "type": kind, "object": object })));
    WatchFrame {
        kind: frame_type,
        object: Some(Arc::new(ObjectRef::of(&object))),
        line: Bytes::from(line),
    }
}

pub(super) fn error_event(status: &Value) -> WatchFrame {
    let code = status
        .get("code")
        .and_then(Value::as_u64)
        .and_then(|code| u16::try_from(code).ok())
        .unwrap_or(0);
    let reason = status
        .get("reason")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    let line = with_newline(encode_json(&json!({ "type": "ERROR", "object": status })));
    WatchFrame {
        kind: FrameType::Error { code, reason },
        object: None,
        line: Bytes::from(line),
    }
}
