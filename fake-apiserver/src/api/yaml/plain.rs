//! Strings that need quotes because they would be parsed as another type, and the order of keys.
//!
//! Source: `resolve.go`, `encode.go` (`isBase60Float`) and `sorter.go` of `go.yaml.in/yaml/v2`.

use std::cmp::Ordering;

/// Returns whether an unquoted `text` would be parsed as null, a boolean, a number, a date or a merge key.
pub(super) fn means_something_else(text: &str) -> bool {
    let Some(first) = text.chars().next() else {
        return true;
    };
    if is_word(text) {
        return true;
    }
    match first {
        '.' => text.parse::<f64>().is_ok() && !text.contains(char::is_alphabetic) || is_float(text),
        '+' | '-' | '0'..='9' => is_timestamp(text) || is_number(&text.replace('_', "")) || is_base_60(text),
        _ => false,
    }
}

/// Compares keys: numbers inside keys by value, letters after all other characters.
pub(super) fn key_order(a: &str, b: &str) -> Ordering {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let Some(at) = a.iter().zip(&b).position(|(a, b)| a != b) else {
        return a.len().cmp(&b.len());
    };
    match (a[at].is_alphabetic(), b[at].is_alphabetic()) {
        (true, true) => return a[at].cmp(&b[at]),
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    // A zero after another digit is part of its number.
    let begun = (a[at] == '0' || b[at] == '0')
        && a[..at]
            .iter()
            .rev()
            .take_while(|digit| digit.is_ascii_digit())
            .any(|digit| *digit != '0');
    let number = |text: &[char]| {
        let digits = text[at..].iter().take_while(|digit| digit.is_ascii_digit());
        digits.fold((i64::from(begun), at), |(number, end), digit| {
            let digit = i64::from(digit.to_digit(10).unwrap_or_default());
            (number.wrapping_mul(10).wrapping_add(digit), end + 1)
        })
    };
    number(&a).cmp(&number(&b)).then(a[at].cmp(&b[at]))
}

fn is_word(text: &str) -> bool {
    matches!(
        text,
        "~" | "null"
            | "Null"
            | "NULL"
            | "y"
            | "Y"
            | "yes"
            | "Yes"
            | "YES"
            | "true"
            | "True"
            | "TRUE"
            | "on"
            | "On"
            | "ON"
            | "n"
            | "N"
            | "no"
            | "No"
            | "NO"
            | "false"
            | "False"
            | "FALSE"
            | "off"
            | "Off"
            | "OFF"
            | ".nan"
            | ".NaN"
            | ".NAN"
            | ".inf"
            | ".Inf"
            | ".INF"
            | "+.inf"
            | "+.Inf"
            | "+.INF"
            | "-.inf"
            | "-.Inf"
            | "-.INF"
    )
}

fn is_number(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let radix = |prefixes: [&str; 2], radix: u32| {
        prefixes
            .iter()
            .find_map(|prefix| unsigned.strip_prefix(prefix))
            .is_some_and(|digits| u64::from_str_radix(digits, radix).is_ok() && !digits.starts_with('+'))
    };
    let all_digits = !unsigned.is_empty() && unsigned.bytes().all(|byte| byte.is_ascii_digit());
    let integer = all_digits && unsigned.len() < 20 && (!unsigned.starts_with('0') || is_octal(unsigned));
    integer || radix(["0x", "0X"], 16) || radix(["0o", "0O"], 8) || radix(["0b", "0B"], 2) || is_float(text)
}

fn is_octal(digits: &str) -> bool {
    digits.bytes().all(|digit| (b'0'..=b'7').contains(&digit))
}

/// `^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`
fn is_float(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (number, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, Some(exponent)),
        None => (unsigned, None),
    };
    let exponent_fits =
        exponent.is_none_or(|exponent| digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)));
    let number_fits = match number.split_once('.') {
        None => digits(number),
        Some(("", fraction)) => digits(fraction),
        Some((whole, fraction)) => digits(whole) && (fraction.is_empty() || digits(fraction)),
    };
    // A number that overflows is a string.
    exponent_fits && number_fits && text.parse::<f64>().is_ok_and(f64::is_finite)
}

/// `12:30:45` is a number in YAML 1.1.
fn is_base_60(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let mut parts = unsigned.split(':');
    let head = parts.next().unwrap_or_default();
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.last_mut() else {
        return false;
    };
    if let Some((whole, fraction)) = last.split_once('.') {
        if !fraction.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_') {
            return false;
        }
        *last = whole;
    }
    let sixtieth = |part: &&str| match part.as_bytes() {
        [digit] => digit.is_ascii_digit(),
        [b'0'..=b'5', digit] => digit.is_ascii_digit(),
        _ => false,
    };
    head.starts_with(|first: char| first.is_ascii_digit())
        && head.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_')
        && parts.iter().all(sixtieth)
}

/// `2006-1-2`, alone or with a time.
fn is_timestamp(text: &str) -> bool {
    let (date, time) = match text.find(['T', 't', ' ']) {
        None => (text, None),
        Some(at) => (&text[..at], Some((&text[at..=at], &text[at + 1..]))),
    };
    let number =
        |text: &str, digits: std::ops::RangeInclusive<usize>, limits: std::ops::RangeInclusive<u32>| {
            digits.contains(&text.len())
                && text.bytes().all(|byte| byte.is_ascii_digit())
                && text.parse().is_ok_and(|number| limits.contains(&number))
        };
    let mut parts = date.split('-');
    let (year, month, day) = (parts.next(), parts.next(), parts.next());
    let is_date = parts.next().is_none()
        && year.is_some_and(|year| number(year, 4..=4, 0..=9999))
        && month.is_some_and(|month| number(month, 1..=2, 1..=12))
        && day.is_some_and(|day| number(day, 1..=2, 1..=31));
    let Some((separator, time)) = time.filter(|_| is_date) else {
        return is_date;
    };
    let zone = match (separator, time.find(['Z', '+', '-'])) {
        (" ", None) => "",
        ("T" | "t", Some(at)) => &time[at..],
        _ => return false,
    };
    let zone_fits = match zone.as_bytes() {
        [] | [b'Z'] => true,
        [b'+' | b'-', rest @ ..] => rest.len() == 5 && rest[2] == b':',
        _ => false,
    };
    let clock = &time[..time.len() - zone.len()];
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let mut parts = clock.split(':');
    let (hour, minute, second) = (parts.next(), parts.next(), parts.next());
    zone_fits
        && fraction.bytes().all(|byte| byte.is_ascii_digit())
        && parts.next().is_none()
        && hour.is_some_and(|hour| number(hour, 1..=2, 0..=23))
        && minute.is_some_and(|minute| number(minute, 1..=2, 0..=59))
        && second.is_some_and(|second| number(second, 1..=2, 0..=59))
}
