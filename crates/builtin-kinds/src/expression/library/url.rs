//! URLs: `url('https://example.com:80/path?q=1').getHostname()`.
//!
//! As Go's `url.ParseRequestURI` reads them: absolute, or a path from the root.

use std::collections::BTreeMap;

use super::{Function, Outcome, failed, opaque};
use crate::expression::Failure;
use crate::expression::meter::Meter;
use crate::expression::value::Value;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Url {
    scheme: String,
    /// With its port.
    host: String,
    path: String,
    query: String,
}

opaque!(Url, "kubernetes.URL");

pub(super) fn find(name: &str, on_target: bool, args: usize) -> Option<Function> {
    Some(match (name, on_target, args) {
        ("url", false, 1) => url,
        ("isURL", false, 1) => is_url,
        ("getScheme", true, 0) => |meter, args| part(meter, args, |url| url.scheme.clone()),
        ("getHost", true, 0) => |meter, args| part(meter, args, |url| url.host.clone()),
        ("getHostname", true, 0) => |meter, args| part(meter, args, |url| port_of(&url.host).0.to_owned()),
        ("getPort", true, 0) => |meter, args| part(meter, args, |url| port_of(&url.host).1.to_owned()),
        ("getEscapedPath", true, 0) => |meter, args| part(meter, args, |url| url.path.clone()),
        ("getQuery", true, 0) => query,
        _ => return None,
    })
}

pub(super) fn read(text: &str) -> Option<Url> {
    let readable = !text.is_empty() && text.bytes().all(|byte| byte > b' ' && byte != 0x7f);
    let (text, query) = text.split_once('?').unwrap_or((text, ""));
    let url = match text.split_once(':') {
        Some((scheme, rest)) if is_scheme(scheme) => {
            let (host, path) = match rest.strip_prefix("//") {
                Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
                None => ("", rest),
            };
            let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
            let port = port_of(host).1;
            let legal = port.bytes().all(|byte| byte.is_ascii_digit()) && escapes_are_whole(path);
            let rooted = !host.is_empty() || path.starts_with('/');
            (legal && rooted).then(|| Url {
                scheme: scheme.to_ascii_lowercase(),
                host: host.to_owned(),
                path: path.to_owned(),
                query: query.to_owned(),
            })
        }
        _ => (text.starts_with('/') && escapes_are_whole(text)).then(|| Url {
            scheme: String::new(),
            host: String::new(),
            path: text.to_owned(),
            query: query.to_owned(),
        }),
    };
    url.filter(|_| readable)
}

/// Returns whether the text is a URL with scheme and host.
pub(crate) fn is_absolute(text: &str) -> bool {
    read(text).is_some_and(|url| !url.scheme.is_empty() && !url.host.is_empty())
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

fn escapes_are_whole(text: &str) -> bool {
    text.split('%').skip(1).all(|part| {
        let digits = part.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    })
}

/// Host name without brackets, and port.
fn port_of(host: &str) -> (&str, &str) {
    if let Some((name, rest)) = host.strip_prefix('[').and_then(|host| host.split_once(']')) {
        return (name, rest.strip_prefix(':').unwrap_or(rest));
    }
    host.rsplit_once(':').unwrap_or((host, ""))
}

fn url(meter: &mut Meter, args: &[Value]) -> Outcome {
    let [value @ Value::Text(text)] = args else {
        return Err(Failure::Overload);
    };
    meter.traversal(value.size(), 1)?;
    meter.allocate(text.as_str().len().saturating_mul(2))?;
    let url = read(text.as_str()).map(Value::opaque);
    url.ok_or_else(|| {
        failed(format!(
            "URL parse error during conversion from string: parse {:?}: invalid URI for request",
            text.as_str()
        ))
    })
}

fn is_url(meter: &mut Meter, args: &[Value]) -> Outcome {
    let [Value::Text(text)] = args else {
        return Err(Failure::Overload);
    };
    meter.charge(1)?;
    meter.allocate(text.as_str().len().saturating_mul(2))?;
    Ok(Value::Bool(read(text.as_str()).is_some()))
}

/// The URL that is the target, and the charge of one of its parts.
fn own<'a>(meter: &mut Meter, args: &'a [Value]) -> Result<&'a Url, Failure> {
    meter.charge(1)?;
    let url = args
        .first()
        .and_then(Value::downcast::<Url>)
        .ok_or(Failure::Overload)?;
    meter.allocate(url.host.len() + url.path.len())?;
    Ok(url)
}

fn part(meter: &mut Meter, args: &[Value], part: fn(&Url) -> String) -> Outcome {
    Ok(Value::text(part(own(meter, args)?)))
}

fn query(meter: &mut Meter, args: &[Value]) -> Outcome {
    let url = own(meter, args)?;
    // Each pair is at least one byte with its separator.
    meter.elements(url.query.len().saturating_mul(4))?;
    let mut values: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for (key, value) in apimachinery::path::query_pairs(&url.query) {
        values.entry(key).or_default().push(Value::text(value));
    }
    let values = values.into_iter().map(|(key, values)| (key, Value::list(values)));
    Ok(Value::fields(values))
}
