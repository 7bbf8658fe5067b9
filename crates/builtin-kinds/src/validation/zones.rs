//! Names of time zones, and the error texts for unknown ones. Offsets are not needed.
//!
//! Source: kubernetes `pkg/apis/batch/validation/validation.go` (`validateTimeZone`); the names are those of the IANA time
//! zone database in Go's `lib/time/zoneinfo.zip`.

const NAMES: &str = include_str!("../../data/zones.txt");

/// Returns the errors of the name of a time zone.
pub(super) fn errors(name: &str) -> Vec<String> {
    if name.is_empty() {
        return vec!["timeZone must be nil or non-empty string".to_owned()];
    }
    let mut errors = Vec::new();
    let well_formed = name.split('/').all(is_part);
    if well_formed && name.eq_ignore_ascii_case("local") {
        let why = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        errors.push(why.to_owned());
    }
    let known = well_formed && (name == "Local" || NAMES.lines().any(|line| line == name));
    if !known {
        errors.push(format!("unknown time zone {name}"));
    }
    errors
}

fn is_part(part: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || ".-_+".contains(c);
    !matches!(part, "" | "." | "..")
        && part.len() <= 14
        && !part.starts_with('-')
        && part.chars().all(allowed)
}
