//! Foreign text on a page: cut, and without characters that could change what is around it. It must not know HTML.

use fake_apiserver::record::line::printable;

/// Returns foreign text on one line of at most `max` characters, without control or bidirectional characters that could
/// move, hide or reorder the text around it.
pub(crate) fn cut(text: &str, max: usize) -> String {
    let mut kept: String = text.chars().take(max).collect();
    if kept.len() < text.len() {
        kept.push('…');
    }
    printable(&kept).into_owned()
}

/// `3 tests`, `1 test`.
pub(crate) fn count(number: usize, of: &str) -> String {
    format!("{number} {of}{}", if number == 1 { "" } else { "s" })
}
