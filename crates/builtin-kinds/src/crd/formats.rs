//! `format`: validation of strings.
//!
//! Formats that a real server does not check, or does not know, match every string.
//!
//! Source: kube-openapi `validation/strfmt`; RFC 3339, RFC 4122, RFC 4632, RFC 4648.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use regex::Regex;

use super::structural::Type;

/// Returns whether `text` has this format.
pub(crate) fn fits(format: &str, text: &str) -> bool {
    match format {
        "date-time" | "datetime" => DATE_TIME.is_match(text),
        "date" => DATE.is_match(text),
        "byte" => STANDARD.decode(text).is_ok(),
        "uuid" | "uuid3" | "uuid4" | "uuid5" => UUID.is_match(text),
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "ip" => text.parse::<IpAddr>().is_ok(),
        "cidr" => is_cidr(text),
        "mac" => MAC.is_match(text),
        "duration" => DURATION.is_match(text),
        "email" => EMAIL.is_match(text),
        "uri" => URI.is_match(text),
        "hostname" => HOSTNAME.is_match(text) && text.len() <= 255,
        _ => true,
    }
}

/// Returns whether a real server validates values of this type by this format, which is left out of schemas otherwise.
///
/// Source: apiextensions `apiserver/validation/formats.go`.
pub(super) fn is_known(kind: Type, format: &str) -> bool {
    match kind {
        Type::Any | Type::Text | Type::IntegerOrText => is_of_text(format),
        Type::Integer => matches!(format, "int32" | "int64"),
        Type::Number => matches!(format, "float" | "double"),
        Type::Object | Type::Array | Type::Boolean => false,
    }
}

fn is_of_text(format: &str) -> bool {
    // Names are compared without dashes.
    let name: String = format.chars().filter(|letter| *letter != '-').collect();
    matches!(
        name.as_str(),
        "bsonobjectid"
            | "uri"
            | "email"
            | "hostname"
            | "ipv4"
            | "ipv6"
            | "cidr"
            | "mac"
            | "uuid"
            | "uuid3"
            | "uuid4"
            | "uuid5"
            | "isbn"
            | "isbn10"
            | "isbn13"
            | "creditcard"
            | "ssn"
            | "hexcolor"
            | "rgbcolor"
            | "byte"
            | "password"
            | "date"
            | "duration"
            | "datetime"
            | "k8sshortname"
            | "k8slongname"
    )
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else {
        return false;
    };
    let longest = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    bits.parse::<u8>().is_ok_and(|bits| bits <= longest)
}

static DATE: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$"));
static DATE_TIME: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])[Tt]([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)([.,]\d+)?([Zz]|[+-]\d{2}:?\d{2})$",
    )
});
static UUID: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$"));
static MAC: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(?i)([0-9a-f]{2}[:-]){5}[0-9a-f]{2}$"));
static DURATION: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^-?(\d+(\.\d+)?(ns|us|µs|ms|s|m|h|d|w))+$|^0$"));
static EMAIL: LazyLock<Regex> = LazyLock::new(|| pattern(r"^[^@\s]+@[^@\s]+$"));
static URI: LazyLock<Regex> = LazyLock::new(|| pattern(r"^([A-Za-z][A-Za-z0-9+.-]*:\S+|/\S*)$"));
static HOSTNAME: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^([a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)(\.[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$",
    )
});

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the patterns of this file are legal, and a test reads them all")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("date-time", "2026-01-01T00:00:00Z", "2026-01-01")]
    #[case("date", "2026-01-01", "2026-13-01")]
    #[case("byte", "aGk=", "%%%")]
    #[case("uuid", "123e4567-e89b-12d3-a456-426614174000", "123e4567")]
    #[case("ipv4", "10.0.0.1", "::1")]
    #[case("ipv6", "::1", "10.0.0.1")]
    #[case("ip", "10.0.0.1", "x")]
    #[case("cidr", "10.0.0.0/24", "10.0.0.0/33")]
    #[case("mac", "00:11:22:33:44:55", "00:11:22")]
    #[case("duration", "1h30m", "x")]
    #[case("email", "a@b.c", "x")]
    #[case("uri", "https://a.b/c", "x")]
    #[case("hostname", "a.b", "-")]
    fn a_format_accepts_its_values_only(#[case] format: &str, #[case] fitting: &str, #[case] other: &str) {
        assert!(fits(format, fitting));
        assert!(!fits(format, other));
    }

    #[test]
    fn what_is_no_format_fits_all() {
        assert!(fits("int32", "x") && fits("password", "") && fits("", "x"));
    }
}
