//! Lines of watch streams, and those that one write needs, each encoded once for all watches.

use std::sync::{Arc, OnceLock};

use apimachinery::ObjectRef;
use apimachinery::object::Stored;
use apimachinery::options::{MetaVersion, Representation};
use bytes::Bytes;
use watchcache::Change;

/// Lines and keys cached next to a write.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    object_ref: OnceLock<Arc<ObjectRef>>,
    lines: [OnceLock<Bytes>; 6],
}

impl Lines {
    /// Returns the object key in the version of the write, the same for every watch. `object` is the written one.
    pub(super) fn object_ref(&self, object: &Stored) -> &Arc<ObjectRef> {
        self.object_ref.get_or_init(|| Arc::new(object.object_ref()))
    }

    /// Returns the line that sends `shown` for `change`; `None` for a representation that differs from watch to watch.
    pub(super) fn line(&self, change: Change, form: Representation, shown: &Stored) -> Option<Bytes> {
        let column = match form {
            Representation::Full => 0,
            Representation::Metadata(MetaVersion::V1) => 1,
            Representation::Metadata(MetaVersion::V1beta1) | Representation::Table(_) => return None,
        };
        let made = self.lines[change as usize * 2 + column]
            .get_or_init(|| line(change.word(), &shown.encoded(form)));
        Some(made.clone())
    }
}

/// Returns one line of a watch stream.
pub(super) fn line(word: &str, object: &[u8]) -> Bytes {
    let mut line = Vec::with_capacity(object.len() + word.len() + 24);
    line.extend_from_slice(b"{\"type\":\"");
    line.extend_from_slice(word.as_bytes());
    line.extend_from_slice(b"\",\"object\":");
    line.extend_from_slice(object);
    line.extend_from_slice(b"}\n");
    line.into()
}
