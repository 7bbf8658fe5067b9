//! Semantic versions: `semver('1.2.3').isLessThan(semver('1.10.0'))`, `semver('v1.2', true)`.
//!
//! Source: apiserver `pkg/cel/library/semverlib.go`; messages of blang/semver v4.

use std::cmp::Ordering;

use apimachinery::go_text::quote;

use super::{Function, Outcome, failed, opaque};
use crate::expression::Failure;
use crate::expression::meter::Meter;
use crate::expression::value::Value;

/// A version; builds do not count when two are compared.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Semver {
    numbers: [u64; 3],
    /// Identifiers of a version before the release.
    before: Vec<Identifier>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Identifier {
    // Numbers are below texts.
    Number(u64),
    Text(String),
}

opaque!(Semver, "kubernetes.Semver");

pub(super) fn find(name: &str, on_target: bool, args: usize) -> Option<Function> {
    Some(match (name, on_target, args) {
        ("semver", false, 1 | 2) => |meter, args| parsed(meter, args)?.map(Value::opaque).map_err(failed),
        ("isSemver", false, 1 | 2) => |meter, args| Ok(Value::Bool(parsed(meter, args)?.is_ok())),
        ("major", true, 0) => |meter, args| number_of(meter, args, 0),
        ("minor", true, 0) => |meter, args| number_of(meter, args, 1),
        ("patch", true, 0) => |meter, args| number_of(meter, args, 2),
        _ => return None,
    })
}

/// Reads a version, normalized if the second argument is true.
fn parsed(meter: &mut Meter, args: &[Value]) -> Result<Result<Semver, String>, Failure> {
    let (text, normalize) = match args {
        [Value::Text(text)] => (text, false),
        [Value::Text(text), Value::Bool(normalize)] => (text, *normalize),
        _ => return Err(Failure::Overload),
    };
    meter.traversal(args[0].size(), 1)?;
    meter.allocate(text.as_str().len().saturating_mul(4))?;
    Ok(match normalize {
        true => normalized(text.as_str()),
        false => read(text.as_str()),
    })
}

fn number_of(meter: &mut Meter, args: &[Value], nth: usize) -> Outcome {
    meter.charge(1)?;
    let version = args.first().and_then(Value::downcast::<Semver>);
    let number = version.ok_or(Failure::Overload)?.numbers[nth];
    Ok(Value::Int(i64::try_from(number).unwrap_or(i64::MAX)))
}

/// Order of two versions.
pub(super) fn ordering(meter: &mut Meter, one: &Value, other: &Value) -> Result<Ordering, Failure> {
    match (one.downcast::<Semver>(), other.downcast::<Semver>()) {
        (Some(one), Some(other)) => {
            meter.elements(one.before.len().min(other.before.len()))?;
            Ok(one.order(other))
        }
        (_, _) => Err(Failure::Overload),
    }
}

impl Semver {
    fn order(&self, other: &Self) -> Ordering {
        let numbers = self.numbers.cmp(&other.numbers);
        // A release is above what came before it.
        let releases = self.before.is_empty().cmp(&other.before.is_empty());
        numbers
            .then(releases)
            .then_with(|| self.before.cmp(&other.before))
    }
}

fn read(text: &str) -> Result<Semver, String> {
    if text.is_empty() {
        return Err("Version string empty".to_owned());
    }
    let parts: Vec<&str> = text.splitn(3, '.').collect();
    let [major, minor, rest] = parts.as_slice() else {
        return Err("No Major.Minor.Patch elements found".to_owned());
    };
    let (major, minor) = (number("Major", major)?, number("Minor", minor)?);
    let (rest, build) = match rest.split_once('+') {
        Some((rest, build)) => (rest, Some(build)),
        None => (*rest, None),
    };
    let (patch, before) = match rest.split_once('-') {
        Some((patch, before)) => (patch, Some(before)),
        None => (rest, None),
    };
    let patch = number("Patch", patch)?;
    let before = before.into_iter().flat_map(|before| before.split('.'));
    let before = before.map(identifier).collect::<Result<_, _>>()?;
    for part in build.into_iter().flat_map(|build| build.split('.')) {
        if part.is_empty() {
            return Err("Build meta data is empty".to_owned());
        }
        if !is_alphanumeric(part) {
            return Err(format!(
                "Invalid character(s) found in build meta data {}",
                quote(part)
            ));
        }
    }
    Ok(Semver {
        numbers: [major, minor, patch],
        before,
    })
}

fn number(what: &str, text: &str) -> Result<u64, String> {
    let shown = quote(text);
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        let what = what.to_ascii_lowercase();
        return Err(format!("Invalid character(s) found in {what} number {shown}"));
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err(format!("{what} number must not contain leading zeroes {shown}"));
    }
    let why = if text.is_empty() {
        "invalid syntax"
    } else {
        "value out of range"
    };
    text.parse()
        .map_err(|_| format!("strconv.ParseUint: parsing {shown}: {why}"))
}

fn identifier(text: &str) -> Result<Identifier, String> {
    if text.is_empty() {
        return Err("Prerelease is empty".to_owned());
    }
    let shown = quote(text);
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        if text.len() > 1 && text.starts_with('0') {
            return Err(format!(
                "Numeric PreRelease version must not contain leading zeroes {shown}"
            ));
        }
        let number = text.parse().map(Identifier::Number);
        return number.map_err(|_| format!("strconv.ParseUint: parsing {shown}: value out of range"));
    }
    match is_alphanumeric(text) {
        true => Ok(Identifier::Text(text.to_owned())),
        false => Err(format!("Invalid character(s) found in prerelease {shown}")),
    }
}

fn is_alphanumeric(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// Without the `v` before it and zeros before its numbers; parts that are not there are zero.
fn normalized(text: &str) -> Result<Semver, String> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let mut parts: Vec<String> = text.splitn(3, '.').map(without_zeros).collect();
    if parts.len() < 3 {
        if parts.last().is_some_and(|last| last.contains(['+', '-'])) {
            return Err("short version cannot contain PreRelease/Build meta data".to_owned());
        }
        parts.resize(3, "0".to_owned());
    }
    read(&parts.join("."))
}

fn without_zeros(part: &str) -> String {
    if part.len() < 2 {
        return part.to_owned();
    }
    let rest = part.trim_start_matches('0');
    match rest.starts_with(|first: char| first.is_ascii_digit()) {
        true => rest.to_owned(),
        false => format!("0{rest}"),
    }
}
