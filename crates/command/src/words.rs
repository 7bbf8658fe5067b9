//! Shell quoting, and durations in the format of scenario files.

use std::time::Duration;

use fake_apiserver::scenario::duration;

/// Quotes a word for a shell.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Parses a duration in the format of scenario files: `250ms`, `5s`, `2m`, `1h`.
///
/// # Errors
///
/// The text is not a duration.
pub(crate) fn span(text: &str) -> Result<Duration, String> {
    duration(text).ok_or_else(|| "expected a whole number and a unit (ms, s, m or h), such as 5s".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_those_of_scenario_files() {
        assert_eq!(span("1h"), Ok(Duration::from_secs(3_600)));
        assert!(span("5").is_err_and(|error| error.contains("ms, s, m or h")));
    }
}
