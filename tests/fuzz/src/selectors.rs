//! Label and field selectors.

use apimachinery::selector::{FieldSelector, LabelSelector};

/// Selectors that users write.
pub const SEEDS: &[&[u8]] = &[
    b"app=web,tier!=front",
    b"app in (a, b),tier notin (c),!x,y",
    b"n>1,m<2",
    b"example.com/app==web",
    b"metadata.name=a,status.phase!=Running",
    b"spec.nodeName=a\\,b\\=c\\\\",
    b"",
];

/// Parses both, and reverses a field selector.
pub fn body(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    drop(LabelSelector::parse(&text));
    if let Ok(selector) = FieldSelector::parse(&text) {
        let _ = (selector.is_empty(), selector.exact_name());
    }
}
