//! URLs: `url('https://example.com:80/path?q=1').getHostname()`.
//!
//! As Go's `url.ParseRequestURI` reads them: absolute, or a path from the root.

use cel::Env;
use cel::common::types::{CelBool, CelList, CelString};
use cel::common::value::Val;

use super::{Declared, opaque, refused};
use crate::expression::Fields;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Url {
    scheme: String,
    /// With its port.
    host: String,
    path: String,
    query: String,
}

opaque!(Url, "kubernetes.URL", URL);

type Result<T> = std::result::Result<T, cel::ExecutionError>;

pub(super) fn declare(env: &mut Env) -> Declared {
    env.add_type(URL.to_owned())?;
    cel::add_overload!(env, fn url: (CelString) -> Result<Url>)?;
    cel::add_overload!(env, fn is_url: (CelString) -> CelBool, name = "isURL")?;
    cel::add_member_overload!(env, fn get_scheme: (Url) -> CelString)?;
    cel::add_member_overload!(env, fn get_host: (Url) -> CelString)?;
    cel::add_member_overload!(env, fn get_hostname: (Url) -> CelString)?;
    cel::add_member_overload!(env, fn get_port: (Url) -> CelString)?;
    cel::add_member_overload!(env, fn get_escaped_path: (Url) -> CelString)?;
    cel::add_member_overload!(env, fn get_query: (Url) -> Fields)
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

fn url(text: &CelString<'_>) -> Result<Url> {
    read(text.inner()).ok_or_else(|| {
        let message = format!(
            "URL parse error during conversion from string: parse {:?}: invalid URI for request",
            text.inner()
        );
        refused("url", message)
    })
}

fn is_url(text: &CelString<'_>) -> CelBool {
    read(text.inner()).is_some().into()
}

fn get_scheme(of: &Url) -> CelString<'static> {
    of.scheme.clone().into()
}

fn get_host(of: &Url) -> CelString<'static> {
    of.host.clone().into()
}

fn get_hostname(of: &Url) -> CelString<'static> {
    port_of(&of.host).0.to_owned().into()
}

fn get_port(of: &Url) -> CelString<'static> {
    port_of(&of.host).1.to_owned().into()
}

fn get_escaped_path(of: &Url) -> CelString<'static> {
    of.path.clone().into()
}

fn get_query(of: &Url) -> Fields {
    let mut values: std::collections::BTreeMap<String, Vec<Box<dyn Val>>> = Default::default();
    for (key, value) in apimachinery::path::query_pairs(&of.query) {
        let value: Box<dyn Val> = Box::new(CelString::from(value));
        values.entry(key).or_default().push(value);
    }
    Fields::new(values.into_iter().map(|(key, values)| {
        let values: Box<dyn Val> = Box::new(CelList::from(values));
        (key, values)
    }))
}
