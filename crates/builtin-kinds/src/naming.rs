//! Object names: their formats, and names generated from a prefix.
//!
//! Source: apimachinery `api/validation`, apiserver `storage/names/generate.go`.

use std::net::IpAddr;

use apimachinery::Version;
use apimachinery::kind::NameRule;
use apimachinery::names::{self, LABEL_MAX, SUBDOMAIN_MAX};
use serde_json::Value;

/// Alphabet of generated names: no vowels, so that no word can occur.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// Length of the generated suffix.
const SUFFIX_LENGTH: usize = 5;

/// Maximum length of the prefix, so that the name remains a label.
const PREFIX_MAX: usize = 63 - SUFFIX_LENGTH;

/// Returns a name that begins with `prefix`; `seed` becomes the seed of the next one.
pub fn generate(prefix: &str, seed: &mut u64) -> String {
    let mut name: String = prefix.chars().take(PREFIX_MAX).collect();
    for _ in 0..SUFFIX_LENGTH {
        // splitmix64: good from any seed, including small ones.
        *seed = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = (*seed ^ (*seed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let letter = (bits ^ (bits >> 31)) % ALPHABET.len() as u64;
        name.push(char::from(ALPHABET[letter as usize]));
    }
    name
}

/// Returns the errors of the name of an object, in the texts of kube-apiserver.
pub(crate) fn problems(rule: NameRule, version: Version, name: &str, object: &Value) -> Vec<String> {
    match rule {
        NameRule::Subdomain => subdomain(name),
        NameRule::Label => label(name),
        NameRule::ServiceName if version >= Version::V1_36 => label(name),
        NameRule::ServiceName => dns1035_label(name),
        NameRule::Short => {
            let mut why = subdomain(name);
            why.extend(too_long(name, SHORT_MAX));
            why
        }
        NameRule::PathSegment => path_segment(name),
        NameRule::IpAddress => ip_address(name),
        NameRule::OfSigner => of_signer(name, object["spec"]["signerName"].as_str().unwrap_or_default()),
    }
}

/// Returns the errors of the name of a ClusterTrustBundle (kubernetes `pkg/apis/core/validation/names.go`).
fn of_signer(name: &str, signer: &str) -> Vec<String> {
    if signer.is_empty() {
        return match name.contains(':') {
            true => vec!["ClusterTrustBundle without signer name must not have \":\" in its name".to_owned()],
            false => subdomain(name),
        };
    }
    let prefix = signer.replace('/', ":") + ":";
    match name.strip_prefix(&prefix) {
        Some(rest) => subdomain(rest),
        None => vec![format!(
            "ClusterTrustBundle for signerName {signer} must be named with prefix {prefix}"
        )],
    }
}

/// A CronJob appends `-` and ten digits, and the names of its jobs are labels.
const SHORT_MAX: usize = 63 - 11;

fn too_long(name: &str, longest: usize) -> Option<String> {
    (name.len() > longest).then(|| format!("must be no more than {longest} characters"))
}

/// Returns the errors of a DNS subdomain (RFC 1123).
pub(crate) fn subdomain(name: &str) -> Vec<String> {
    let mut why: Vec<String> = too_long(name, SUBDOMAIN_MAX).into_iter().collect();
    if !names::has_subdomain_form(name) {
        why.push(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
             start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
             '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                .to_owned(),
        );
    }
    why
}

/// Returns the errors of a DNS label (RFC 1123).
pub(crate) fn label(name: &str) -> Vec<String> {
    let mut why: Vec<String> = too_long(name, LABEL_MAX).into_iter().collect();
    if names::has_label_form(name) {
        return why;
    }
    why.push(if names::has_subdomain_form(name) {
        "must not contain dots".to_owned()
    } else {
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end \
         with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
         '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
            .to_owned()
    });
    why
}

/// Returns the errors of a DNS label that begins with a letter (RFC 1035).
pub(crate) fn dns1035_label(name: &str) -> Vec<String> {
    let mut why: Vec<String> = too_long(name, LABEL_MAX).into_iter().collect();
    if !names::has_dns1035_label_form(name) {
        why.push(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
             character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
             validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
                .to_owned(),
        );
    }
    why
}

/// Returns the errors of a path segment.
pub(crate) fn path_segment(name: &str) -> Vec<String> {
    if matches!(name, "." | "..") {
        return vec![format!("may not be '{name}'")];
    }
    path_segment_prefix(name)
}

/// Returns the errors of the beginning of a path segment.
pub(crate) fn path_segment_prefix(prefix: &str) -> Vec<String> {
    let forbidden = ["/", "%"]
        .into_iter()
        .filter(|forbidden| prefix.contains(forbidden));
    forbidden
        .map(|forbidden| format!("may not contain '{forbidden}'"))
        .collect()
}

fn ip_address(name: &str) -> Vec<String> {
    let canonical = name.parse::<IpAddr>().map(|address| address.to_string());
    match canonical {
        Err(_) => vec!["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)".to_owned()],
        Ok(canonical) if canonical != name => vec![format!("must be in canonical form (\"{canonical}\")")],
        Ok(_) => Vec::new(),
    }
}
