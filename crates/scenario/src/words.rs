//! Parsers and helpers for values: durations, names, suggestions.
//!
//! Independent of where they are used.

use std::time::Duration;

use apimachinery::names::{is_subdomain, is_word};

/// Parses `100ms`, `5s`, `2m` or `1h` to milliseconds.
pub(crate) fn duration_ms(text: &str) -> Option<u64> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let factor = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

/// Parses a duration: an integer and `ms`, `s`, `m` or `h`. `None` if invalid, or too long for 64-bit milliseconds.
pub fn duration(text: &str) -> Option<Duration> {
    duration_ms(text).map(Duration::from_millis)
}

/// Returns true for names like `expired-mid-stream-forces-relist`.
pub(crate) fn is_kebab_case(text: &str) -> bool {
    !text.is_empty()
        && text.split('-').all(|part| {
            !part.is_empty() && part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
        })
}

/// Returns true for names valid in `as:`: letters, digits, `_` and `-`, starting with a letter.
pub(crate) fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

/// Returns the candidate most similar to `word`; `None` if none is close.
pub fn nearest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    if word.is_empty() || word.len() > 64 {
        return None;
    }
    let plain = |text: &str| text.to_ascii_lowercase().replace(['-', ' '], "_");
    let word = plain(word);
    let limit = if word.len() < 5 { 1 } else { 1 + word.len() / 4 };
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&word, &plain(candidate)), candidate))
        .filter(|(distance, candidate)| *distance <= limit && *distance < candidate.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Maximum number of words listed.
const LISTED_MAX: usize = 40;
const LISTED_OF_MANY: usize = 12;

/// Returns `did you mean …?` for the nearest candidate, or the list of candidates.
pub(crate) fn suggest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str> + Clone) -> String {
    match nearest(word, candidates.clone()) {
        Some(candidate) => format!("did you mean `{candidate}`?"),
        None => {
            let all: Vec<String> = candidates
                .into_iter()
                .map(|candidate| format!("`{candidate}`"))
                .collect();
            match all.len() {
                0 => String::from("nothing of that kind is defined in this file"),
                1 => format!("only {} is known here", all.concat()),
                many if many > LISTED_MAX => format!(
                    "it is one of {} and {} others",
                    all[..LISTED_OF_MANY].join(", "),
                    many - LISTED_OF_MANY
                ),
                _ => format!("it is one of {}", all.join(", ")),
            }
        }
    }
}

/// Validates a label key.
pub(crate) fn label_key(key: &str) -> Result<(), String> {
    let (prefix, name) = key
        .split_once('/')
        .map_or((None, key), |(prefix, name)| (Some(prefix), name));
    if prefix.is_some_and(|prefix| !is_subdomain(prefix)) || !is_word(name) {
        return Err(format!("`{key}` is not a label key"));
    }
    Ok(())
}

/// Validates a label value.
pub(crate) fn label_value(value: &str) -> Result<(), String> {
    if value.is_empty() || is_word(value) {
        Ok(())
    } else {
        Err(format!("`{value}` is not a label value"))
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("100ms", Some(100))]
    #[case("5s", Some(5_000))]
    #[case("2m", Some(120_000))]
    #[case("1h", Some(3_600_000))]
    #[case("5", None)]
    #[case("s", None)]
    #[case("5 s", None)]
    #[case("-5s", None)]
    #[case("1.5s", None)]
    #[case("99999999999999999999s", None)]
    #[case("99999999999999999h", None)]
    fn durations(#[case] text: &str, #[case] ms: Option<u64>) {
        assert_eq!(duration_ms(text), ms);
    }

    #[rstest]
    #[case("aply", Some("apply"))]
    #[case("delte", Some("delete"))]
    #[case("initialList", Some("initial_list"))]
    #[case("xyz", None)]
    fn near_misses(#[case] word: &str, #[case] meant: Option<&str>) {
        assert_eq!(nearest(word, ["apply", "delete", "initial_list"]), meant);
    }
}
