//! Semantic versions: `semver('1.2.3').isLessThan(semver('1.10.0'))`, `semver('v1.2', true)`.
//!
//! Source: apiserver `pkg/cel/library/semverlib.go`; messages of blang/semver v4.

use std::cmp::Ordering;

use apimachinery::go_text::quote;
use cel::Env;
use cel::common::types::{CelBool, CelInt, CelString};

use super::{Declared, opaque, refused};

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

opaque!(Semver, "kubernetes.Semver", SEMVER);

type Result<T> = std::result::Result<T, cel::ExecutionError>;

pub(super) fn declare(env: &mut Env) -> Declared {
    env.add_type(SEMVER.to_owned())?;
    cel::add_overload!(env, fn semver: (CelString) -> Result<Semver>)?;
    cel::add_overload!(env, fn semver_normalized: (CelString, CelBool) -> Result<Semver>, name = "semver")?;
    cel::add_overload!(env, fn is_semver: (CelString) -> CelBool)?;
    cel::add_overload!(env, fn is_semver_normalized: (CelString, CelBool) -> CelBool, name = "isSemver")?;
    cel::add_member_overload!(env, fn major: (Semver) -> CelInt)?;
    cel::add_member_overload!(env, fn minor: (Semver) -> CelInt)?;
    cel::add_member_overload!(env, fn patch: (Semver) -> CelInt)?;
    cel::add_member_overload!(env, fn is_greater_than: (Semver, Semver) -> CelBool)?;
    cel::add_member_overload!(env, fn is_less_than: (Semver, Semver) -> CelBool)?;
    cel::add_member_overload!(env, fn compare_to: (Semver, Semver) -> CelInt)
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

fn read(text: &str) -> std::result::Result<Semver, String> {
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
    let before = before.map(identifier).collect::<std::result::Result<_, _>>()?;
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

fn number(what: &str, text: &str) -> std::result::Result<u64, String> {
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

fn identifier(text: &str) -> std::result::Result<Identifier, String> {
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
fn normalized(text: &str) -> std::result::Result<Semver, String> {
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

fn semver(text: &CelString<'_>) -> Result<Semver> {
    read(text.inner()).map_err(|why| refused("semver", why))
}

fn semver_normalized(text: &CelString<'_>, normalize: &CelBool) -> Result<Semver> {
    match normalize.inner() {
        true => normalized(text.inner()).map_err(|why| refused("semver", why)),
        false => semver(text),
    }
}

fn is_semver(text: &CelString<'_>) -> CelBool {
    read(text.inner()).is_ok().into()
}

fn is_semver_normalized(text: &CelString<'_>, normalize: &CelBool) -> CelBool {
    semver_normalized(text, normalize).is_ok().into()
}

fn at(of: &Semver, nth: usize) -> CelInt {
    i64::try_from(of.numbers[nth]).unwrap_or(i64::MAX).into()
}

fn major(of: &Semver) -> CelInt {
    at(of, 0)
}

fn minor(of: &Semver) -> CelInt {
    at(of, 1)
}

fn patch(of: &Semver) -> CelInt {
    at(of, 2)
}

fn is_greater_than(one: &Semver, other: &Semver) -> CelBool {
    one.order(other).is_gt().into()
}

fn is_less_than(one: &Semver, other: &Semver) -> CelBool {
    one.order(other).is_lt().into()
}

fn compare_to(one: &Semver, other: &Semver) -> CelInt {
    (one.order(other) as i64).into()
}
