//! Parser of CronJob schedules: five fields, or a descriptor; with the error texts for invalid ones.
//!
//! Source: github.com/robfig/cron `parser.go`, which kube-apiserver uses.

use apimachinery::go_text;

/// Minimum, maximum and names of the values of each field.
const FIELDS: [(u32, u32, &[&str]); 5] = [
    (0, 59, &[]),
    (0, 23, &[]),
    (1, 31, &[]),
    (
        1,
        12,
        &[
            "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
        ],
    ),
    (0, 6, &["sun", "mon", "tue", "wed", "thu", "fri", "sat"]),
];

const DESCRIPTORS: [&str; 7] = [
    "@yearly",
    "@annually",
    "@monthly",
    "@weekly",
    "@daily",
    "@midnight",
    "@hourly",
];

/// Returns the error of an invalid schedule.
pub(super) fn error(text: &str) -> Option<String> {
    if let Some(duration) = text.strip_prefix("@every ") {
        let why = go_text::check_duration(duration).err()?;
        return Some(format!("failed to parse duration {text}: {why}"));
    }
    if text.starts_with('@') {
        return (!DESCRIPTORS.contains(&text)).then(|| format!("unrecognized descriptor: {text}"));
    }
    let fields: Vec<&str> = text.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        return Some(format!(
            "expected exactly 5 fields, found {}: [{}]",
            fields.len(),
            fields.join(" ")
        ));
    }
    fields.iter().zip(FIELDS).find_map(|(field, bounds)| {
        field
            .split(',')
            .find_map(|range| range_error(range, bounds).err())
    })
}

fn range_error(text: &str, (lowest, highest, words): (u32, u32, &[&str])) -> Result<(), String> {
    let parts: Vec<&str> = text.split('/').collect();
    let ends: Vec<&str> = parts[0].split('-').collect();
    let is_star = matches!(ends[0], "*" | "?");
    let (start, mut end) = match ends.as_slice() {
        _ if is_star => (lowest, highest),
        [one] => {
            let number = number(one, words)?;
            (number, number)
        }
        [first, last] => (number(first, words)?, number(last, words)?),
        _ => return Err(format!("too many hyphens: {text}")),
    };
    let step = match parts.as_slice() {
        [_] => 1,
        [_, step] => {
            if ends.len() == 1 {
                end = highest;
            }
            number(step, &[])?
        }
        _ => return Err(format!("too many slashes: {text}")),
    };
    if start < lowest {
        Err(format!(
            "beginning of range ({start}) below minimum ({lowest}): {text}"
        ))
    } else if end > highest {
        Err(format!("end of range ({end}) above maximum ({highest}): {text}"))
    } else if start > end {
        Err(format!(
            "beginning of range ({start}) beyond end of range ({end}): {text}"
        ))
    } else if step == 0 {
        Err(format!("step of range should be a positive number: {text}"))
    } else {
        Ok(())
    }
}

fn number(text: &str, words: &[&str]) -> Result<u32, String> {
    let lower = text.to_ascii_lowercase();
    if let Some(index) = words.iter().position(|word| *word == lower) {
        // Months count from one.
        return Ok(u32::try_from(index + usize::from(words.len() == 12)).unwrap_or_default());
    }
    match go_text::parse_int(text) {
        Ok(number) if number < 0 => Err(format!("negative number ({number}) not allowed: {text}")),
        Ok(number) => Ok(u32::try_from(number).unwrap_or(u32::MAX)),
        Err(why) => Err(format!(
            "failed to parse int from {text}: {}",
            why.replace("strconv.ParseInt", "strconv.Atoi")
        )),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("*/5 0-6,12 1 jan-MAR mon", None)]
    #[case("@daily", None)]
    #[case("@every 1h30m", None)]
    #[case("foo", Some("expected exactly 5 fields, found 1: [foo]"))]
    #[case("61 * * * *", Some("end of range (61) above maximum (59): 61"))]
    #[case("* * 0 * *", Some("beginning of range (0) below minimum (1): 0"))]
    #[case("5-2 * * * *", Some("beginning of range (5) beyond end of range (2): 5-2"))]
    #[case("*/0 * * * *", Some("step of range should be a positive number: */0"))]
    #[case(
        "a * * * *",
        Some("failed to parse int from a: strconv.Atoi: parsing \"a\": invalid syntax")
    )]
    #[case("@never", Some("unrecognized descriptor: @never"))]
    fn schedules_are_parsed_as_by_cron(#[case] text: &str, #[case] why: Option<&str>) {
        assert_eq!(error(text).as_deref(), why);
    }
}
