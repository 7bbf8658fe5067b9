//! Formats of strings and numbers, and the error texts for them.
//!
//! Source: apimachinery `util/validation/validation.go`; kubernetes `pkg/apis/core/validation`.

use std::net::IpAddr;

use apimachinery::Version;
use apimachinery::names::has_word_form;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{schedule, zones};
use crate::error_list::ErrorList;
use crate::naming::{dns1035_label, label, path_segment, subdomain};

/// Formats, by their names in the table (`is`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Format {
    /// Map of labels.
    Labels,
    /// Map of annotations.
    Annotations,
    Label,
    Subdomain,
    PathSegment,
    QualifiedName,
    /// Name of a container port.
    PortName,
    /// Port number; 0: unset.
    PortNumber,
    /// Port number or name.
    Port,
    /// Name of an environment variable.
    Variable,
    ConfigKey,
    NotNegative,
    /// Non-negative integer, with the error text of generations.
    NoNegativeInteger,
    AboveZero,
    PositiveInt32,
    /// Permission bits of a file.
    FileMode,
    /// Relative path without `..`.
    LocalPath,
    /// User or group id.
    Id,
    Weight,
    CountOrPercent,
    Ip,
    UnusualIp,
    Cidr,
    /// Subdomain, possibly with a wildcard.
    Host,
    /// Schedule of a CronJob.
    Schedule,
    /// Time zone of a CronJob.
    TimeZone,
}

impl Format {
    /// Returns whether an empty string is a value of the format. For other formats it means that the field is not set.
    pub(super) fn takes_empty(self) -> bool {
        self == Self::TimeZone
    }
}

const NOT_NEGATIVE: &str = "must be greater than or equal to 0";
const A_PORT: &str = "must be between 1 and 65535, inclusive";
const AN_IP: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
const A_PERCENTAGE: &str = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or \
                            '93%', regex used for validation is '[0-9]+%')";
const A_NAME_PART: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with \
                           an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for \
                           validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

/// Validates a value.
pub(super) fn check(format: Format, value: &Value, path: &str, version: Version, errors: &mut ErrorList) {
    let text = value.as_str().unwrap_or_default();
    let number = value.as_i64().unwrap_or_default();
    let unless =
        |fits: bool, why: &str| -> Vec<String> { (!fits).then(|| why.to_owned()).into_iter().collect() };
    let why = match format {
        Format::Labels => return labels(value.as_object(), path, version, errors),
        Format::Annotations => return annotations(value.as_object(), path, version, errors),
        Format::Label => label(text),
        Format::Subdomain => subdomain(text),
        Format::PathSegment => path_segment(text),
        Format::QualifiedName => qualified_name(text, version),
        Format::PortName => port_name(text),
        Format::PortNumber => unless(is_port(value), A_PORT),
        Format::Port if value.is_string() => port_name(text),
        Format::Port => unless(is_port(value), A_PORT),
        Format::Variable => unless(
            text.chars().all(|c| (' '..='~').contains(&c) && c != '='),
            "a valid environment variable name must consist only of printable ASCII characters other than '='",
        ),
        Format::ConfigKey => config_key(text),
        Format::NotNegative => unless(number >= 0, NOT_NEGATIVE),
        Format::NoNegativeInteger => unless(number >= 0, "must be a non-negative integer"),
        Format::AboveZero => {
            let why = if path.ends_with("maxSkew") || path.ends_with("minDomains") {
                "must be greater than zero"
            } else {
                "must be greater than 0"
            };
            unless(number > 0, why)
        }
        Format::PositiveInt32 => unless(
            (1..=i64::from(i32::MAX)).contains(&number),
            "must be between 1 and 2147483647, inclusive",
        ),
        Format::FileMode => unless(
            (0..=0o777).contains(&number),
            "must be a number between 0 and 0777 (octal), both inclusive",
        ),
        Format::LocalPath if text.starts_with('/') => vec!["must be a relative path".to_owned()],
        Format::LocalPath => unless(!text.split('/').any(|part| part == ".."), "must not contain '..'"),
        Format::Id => unless(
            (0..=i64::from(i32::MAX)).contains(&number),
            "must be between 0 and 2147483647, inclusive",
        ),
        Format::Weight => unless((1..=100).contains(&number), "must be in the range 1-100"),
        Format::CountOrPercent => count_or_percent(value),
        Format::Ip => unless(text.parse::<IpAddr>().is_ok(), AN_IP),
        Format::UnusualIp => unless(
            !text.parse::<IpAddr>().is_ok_and(|address| address.is_loopback()),
            "may not be in the loopback range (127.0.0.0/8, ::1/128)",
        ),
        Format::Cidr => unless(
            cidr(text).is_some(),
            "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)",
        ),
        Format::Host => host(text),
        Format::Schedule => schedule::error(text).into_iter().collect(),
        Format::TimeZone => zones::errors(text),
    };
    for why in why {
        errors.invalid(path, value, &why);
    }
}

/// Validates a map of labels.
pub(super) fn labels(
    labels: Option<&Map<String, Value>>,
    path: &str,
    version: Version,
    errors: &mut ErrorList,
) {
    for (key, value) in labels.into_iter().flatten() {
        for why in qualified_name(key, version) {
            errors.invalid(path, &key.as_str().into(), &why);
        }
        for why in label_value(value.as_str().unwrap_or_default(), version) {
            errors.invalid(path, value, &why);
        }
    }
}

/// Maximum size of all annotations of an object in bytes.
const ANNOTATIONS_MAX: usize = 256 * 1024;

/// Validates a map of annotations.
pub(super) fn annotations(
    annotations: Option<&Map<String, Value>>,
    path: &str,
    version: Version,
    errors: &mut ErrorList,
) {
    let mut total = 0;
    for (key, value) in annotations.into_iter().flatten() {
        // Upper-case letters are allowed in keys.
        for why in qualified_name(&key.to_ascii_lowercase(), version) {
            errors.invalid(path, &key.as_str().into(), &why);
        }
        total += key.len() + value.as_str().unwrap_or_default().len();
    }
    if total > ANNOTATIONS_MAX {
        errors.too_long(path, ANNOTATIONS_MAX);
    }
}

fn too_long(text: &str, longest: usize, version: Version) -> Option<String> {
    let unit = if version >= Version::V1_35 {
        "bytes"
    } else {
        "characters"
    };
    (text.len() > longest).then(|| format!("must be no more than {longest} {unit}"))
}

/// Returns the errors of a label key: a name, optionally with a DNS prefix.
pub(crate) fn qualified_name(text: &str, version: Version) -> Vec<String> {
    let mut why = Vec::new();
    let parts: Vec<&str> = text.split('/').collect();
    let name = match parts.as_slice() {
        [name] => name,
        [prefix, name] => {
            if prefix.is_empty() {
                why.push("prefix part must be non-empty".to_owned());
            } else {
                why.extend(
                    subdomain(prefix)
                        .into_iter()
                        .map(|why| format!("prefix part {why}")),
                );
            }
            name
        }
        _ => {
            let what = if version >= Version::V1_35 {
                "a valid label key"
            } else {
                "a qualified name"
            };
            let rest = A_NAME_PART.trim_start_matches("name part");
            return vec![format!(
                "{what}{rest} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        why.push("name part must be non-empty".to_owned());
    } else {
        why.extend(too_long(name, 63, version).map(|why| format!("name part {why}")));
    }
    if !has_word_form(name) {
        why.push(A_NAME_PART.to_owned());
    }
    why
}

/// Returns the errors of a label value.
pub(crate) fn label_value(text: &str, version: Version) -> Vec<String> {
    let mut why: Vec<String> = too_long(text, 63, version).into_iter().collect();
    if !text.is_empty() && !has_word_form(text) {
        why.push(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
             start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
             validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
                .to_owned(),
        );
    }
    why
}

/// Returns whether the value is a port number.
pub(super) fn is_port(value: &Value) -> bool {
    value.as_i64().is_some_and(|port| (1..=65535).contains(&port))
}

/// Returns the errors of a port name.
pub(super) fn port_name(text: &str) -> Vec<String> {
    let mut why = Vec::new();
    if text.len() > 15 {
        why.push("must be no more than 15 characters");
    }
    if !text
        .bytes()
        .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    {
        why.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
    }
    if !text.bytes().any(|byte| byte.is_ascii_lowercase()) {
        why.push("must contain at least one letter (a-z)");
    }
    if text.contains("--") {
        why.push("must not contain consecutive hyphens");
    }
    if text.starts_with('-') || text.ends_with('-') {
        why.push("must not begin or end with a hyphen");
    }
    why.into_iter().map(str::to_owned).collect()
}

/// Returns the errors of a key of a ConfigMap or Secret.
pub(super) fn config_key(text: &str) -> Vec<String> {
    let mut why = Vec::new();
    if text.len() > 253 {
        why.push("must be no more than 253 characters".to_owned());
    }
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    if text.is_empty() || !text.bytes().all(legal) {
        why.push(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or \
             'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
                .to_owned(),
        );
    }
    match text {
        "." | ".." => why.push(format!("must not be '{text}'")),
        text if text.starts_with("..") => why.push("must not start with '..'".to_owned()),
        _ => {}
    }
    why
}

fn count_or_percent(value: &Value) -> Vec<String> {
    let why = match value.as_str() {
        None if value.as_i64().is_some_and(|count| count < 0) => NOT_NEGATIVE,
        None => return Vec::new(),
        Some(text) => match percent(text) {
            None => A_PERCENTAGE,
            Some(percent) if percent > 100 => "must not be greater than 100%",
            Some(_) => return Vec::new(),
        },
    };
    vec![why.to_owned()]
}

/// Returns the number before `%`.
pub(super) fn percent(text: &str) -> Option<u64> {
    let digits = text.strip_suffix('%')?;
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| plain)
}

/// Parses a CIDR into its address and prefix length.
pub(super) fn cidr(text: &str) -> Option<(IpAddr, u8)> {
    let (address, length) = text.split_once('/')?;
    let address: IpAddr = address.parse().ok()?;
    let longest = if address.is_ipv4() { 32 } else { 128 };
    let length = length.parse().ok().filter(|length| *length <= longest)?;
    Some((address, length))
}

fn host(text: &str) -> Vec<String> {
    if text.parse::<IpAddr>().is_ok() {
        let mut why = vec!["must be a DNS name, not an IP address".to_owned()];
        why.extend(subdomain(text));
        return why;
    }
    if !text.contains('*') {
        return subdomain(text);
    }
    let fits = text
        .strip_prefix("*.")
        .is_some_and(|rest| subdomain(rest).is_empty());
    if fits {
        return Vec::new();
    }
    vec![
        "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of \
         lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', \
         regex used for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
            .to_owned(),
    ]
}

/// Returns the errors of a service name.
pub(super) fn service_name(text: &str, version: Version) -> Vec<String> {
    if version >= Version::V1_36 {
        label(text)
    } else {
        dns1035_label(text)
    }
}
