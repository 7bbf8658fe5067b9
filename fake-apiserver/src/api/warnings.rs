//! `Warning` headers, whose number and length clients limit.
//!
//! Source: apiserver `endpoints/filters/warning.go`.

use std::collections::HashSet;

use http::HeaderValue;
use http::header::WARNING;

use super::Header;

/// Length of all warnings of a response above which each is truncated, and the maximum length then.
const WARNINGS_MAX: usize = 4096;
const WARNING_CUT: usize = 256;

/// Returns the `Warning` headers of a response, without duplicates and within the limits.
pub fn warnings(texts: &[String]) -> Vec<Header> {
    let mut known = HashSet::new();
    let texts: Vec<&str> = texts
        .iter()
        .map(String::as_str)
        .filter(|text| !text.is_empty() && known.insert(*text))
        .collect();
    let length = |text: &str| text.chars().count();
    let whole: usize = texts.iter().map(|text| length(text)).sum();
    if whole <= WARNINGS_MAX {
        return texts.into_iter().filter_map(warning).collect();
    }
    let mut written = 0;
    let cut = texts.into_iter().map(|text| {
        let end = text.char_indices().nth(WARNING_CUT);
        &text[..end.map_or(text.len(), |(at, _)| at)]
    });
    let fitting = cut.take_while(|text| {
        let fits = written < WARNINGS_MAX;
        written += length(text);
        fits
    });
    fitting.filter_map(warning).collect()
}

/// Returns a `Warning` header (RFC 7234); `None`: the text has control characters.
pub fn warning(text: &str) -> Option<Header> {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    let value = HeaderValue::try_from(format!("299 - \"{text}\"")).ok()?;
    Some((WARNING, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_limited_in_length_and_number() {
        let texts: Vec<String> = (0..100).map(|nth| format!("{nth}{}", "x".repeat(1000))).collect();
        let few = warnings(&texts[..2]);
        let whole = texts[..2].iter().filter_map(|text| warning(text));
        assert_eq!(few, whole.collect::<Vec<_>>());
        let many = warnings(&texts);
        assert_eq!(many.len(), 16);
        assert!(
            many.iter()
                .all(|(_, text)| text.len() == "299 - \"\"".len() + WARNING_CUT)
        );
        assert_eq!(
            warnings(&["a".to_owned(), String::new(), "a".to_owned()]).len(),
            1
        );
    }
}
