//! Normalises transcripts, so that those of two runs are comparable: resourceVersions become ordinals, uids are numbered in
//! order of appearance, times and hashes lose their value. All other bytes are kept, including the order of keys. Pure text
//! in, text out; it must not know a server.

use std::collections::{BTreeMap, BTreeSet};

use crate::base64url;

/// Numbers outside of these limits are constants in probes, and kept.
const SMALLEST_REAL: u64 = 2;
const LARGEST_REAL: u64 = 900_000_000;

#[derive(Default)]
pub(crate) struct Normaliser {
    versions: BTreeSet<u64>,
    ordinals: BTreeMap<u64, usize>,
    uids: BTreeMap<String, usize>,
    authority: String,
    /// Further texts that differ from run to run, with what stands for each.
    pub(crate) hidden: Vec<(String, &'static str)>,
    pub(crate) keep_managed_fields: bool,
    pub(crate) hide_retry_after: bool,
    pub(crate) causes_once: bool,
}

impl Normaliser {
    pub(crate) fn new(authority: &str) -> Self {
        Normaliser {
            authority: authority.to_owned(),
            ..Normaliser::default()
        }
    }

    /// First pass over all texts of the transcript, because an ordinal depends on all of them.
    pub(crate) fn collect(&mut self, text: &str) {
        let mut found = Vec::new();
        rewrite_json(text, false, &mut |key, value| {
            match (key, value) {
                ("resourceVersion", Scalar::String(text)) => found.extend(text.parse::<u64>().ok()),
                ("continue", Scalar::String(text)) => {
                    found.extend(decode_token(text).and_then(|token| token.revision));
                }
                ("message", Scalar::String(text)) => {
                    rewrite_message(text, &mut |number| {
                        found.push(number);
                        String::new()
                    });
                }
                _ => {}
            }
            None
        });
        for number in found {
            self.collect_version(number);
        }
    }

    pub(crate) fn collect_version(&mut self, number: u64) {
        if (SMALLEST_REAL..LARGEST_REAL).contains(&number) {
            self.versions.insert(number);
        }
    }

    pub(crate) fn seal(&mut self) {
        self.ordinals = self
            .versions
            .iter()
            .enumerate()
            .map(|(index, version)| (*version, index + 1))
            .collect();
    }

    pub(crate) fn version(&self, number: u64) -> String {
        match self.ordinals.get(&number) {
            Some(ordinal) => format!("r{ordinal}"),
            None => number.to_string(),
        }
    }

    /// Second pass.
    pub(crate) fn rewrite(&mut self, text: &str) -> String {
        let drop_managed_fields = !self.keep_managed_fields;
        let mut out = rewrite_json(text, drop_managed_fields, &mut |key, value| {
            self.scalar(key, value)
        });
        out = self.without_addresses(&out);
        if self.causes_once {
            out = once(&out, "\"causes\":[");
        }
        collapse_runs(&self.patterns(&out))
    }

    /// For texts that are not JSON: headers, paths, plain bodies.
    pub(crate) fn rewrite_plain(&mut self, text: &str) -> String {
        let text = self.without_addresses(text);
        collapse_runs(&self.patterns(&text))
    }

    fn without_addresses(&self, text: &str) -> String {
        let own = (self.authority.clone(), "<authority>");
        let all = std::iter::once(&own).chain(&self.hidden);
        all.filter(|(known, _)| !known.is_empty())
            .fold(text.to_owned(), |text, (known, shown)| text.replace(known, shown))
    }

    fn scalar(&mut self, key: &str, value: Scalar<'_>) -> Option<String> {
        let text = match value {
            Scalar::String(text) => text,
            Scalar::Other if key == "retryAfterSeconds" && self.hide_retry_after => {
                return Some("<seconds>".to_owned());
            }
            Scalar::Other => return None,
        };
        match key {
            "resourceVersion" => text.parse().ok().map(|number| quote(&self.version(number))),
            "continue" => {
                let token = decode_token(text)?;
                let revision = token
                    .revision
                    .map_or(token.revision_text.clone(), |number| self.version(number));
                Some(quote(&format!(
                    "<v={} rv={revision} start={}{}>",
                    token.version, token.start, token.oddity
                )))
            }
            "message" => {
                let mut changed = false;
                let new = rewrite_message(text, &mut |number| {
                    changed = true;
                    self.version(number)
                });
                changed.then(|| quote(&new))
            }
            "goVersion" | "buildDate" | "gitCommit" | "platform" => Some(quote(&format!("<{key}>"))),
            "cells" if is_age(text) => Some(quote("<age>")),
            "cells" => without_age_in_brackets(text).map(|text| quote(&text)),
            // The manager of the server's own writes is the name of its program.
            "manager" if text.starts_with("oracle-") => Some(quote("kube-apiserver")),
            "name" if is_generated_name(text) => Some(quote("g-<5 letters of the alphabet>")),
            _ => None,
        }
    }

    /// Replaces uids, times and long hexadecimal numbers.
    fn patterns(&mut self, text: &str) -> String {
        let bytes = text.as_bytes();
        let mut out = String::with_capacity(text.len());
        let mut at = 0;
        let mut copied = 0;
        while at < bytes.len() {
            let starts_word = at == 0 || !bytes[at - 1].is_ascii_alphanumeric();
            let found = if !starts_word || !bytes[at].is_ascii_hexdigit() {
                None
            } else if is_uuid(&bytes[at..]) {
                let uid = &text[at..at + 36];
                let next = self.uids.len() + 1;
                let number = *self.uids.entry(uid.to_owned()).or_insert(next);
                Some((36, format!("<uid{number}>")))
            } else if let Some(length) = time_length(&bytes[at..]) {
                Some((length, "<time>".to_owned()))
            } else {
                let length = bytes[at..]
                    .iter()
                    .take_while(|byte| byte.is_ascii_hexdigit())
                    .count();
                let mixed = bytes[at..at + length].iter().any(u8::is_ascii_digit);
                let ends_word = bytes
                    .get(at + length)
                    .is_none_or(|byte| !byte.is_ascii_alphanumeric());
                (length >= 32 && mixed && ends_word).then(|| (length, format!("<{length} hex digits>")))
            };
            match found {
                Some((length, replacement)) => {
                    out.push_str(&text[copied..at]);
                    out.push_str(&replacement);
                    at += length;
                    copied = at;
                }
                None => at += 1,
            }
        }
        out.push_str(&text[copied..]);
        out
    }
}

/// Removes duplicate objects from the list that begins with `list`.
fn once(text: &str, list: &str) -> String {
    let Some(start) = text.find(list).map(|place| place + list.len()) else {
        return text.to_owned();
    };
    let mut kept: Vec<&str> = Vec::new();
    let mut rest = &text[start..];
    while rest.starts_with('{') {
        let mut objects = serde_json::Deserializer::from_str(rest).into_iter::<serde::de::IgnoredAny>();
        let Some(Ok(_)) = objects.next() else { break };
        let (object, after) = rest.split_at(objects.byte_offset());
        if !kept.contains(&object) {
            kept.push(object);
        }
        rest = after.strip_prefix(',').unwrap_or(after);
    }
    format!("{}{}{rest}", &text[..start], kept.join(","))
}

struct Token {
    version: String,
    revision: Option<u64>,
    revision_text: String,
    start: String,
    oddity: &'static str,
}

fn decode_token(text: &str) -> Option<Token> {
    let decoded = base64url::decode(text.trim_end_matches('='))?;
    let json = String::from_utf8(decoded).ok()?;
    let value: serde_json::Value = serde_json::from_str(&json).ok()?;
    let object = value.as_object()?;
    let start = object.get("start")?.as_str()?;
    let usual = object.keys().map(String::as_str).eq(["v", "rv", "start"]);
    let oddity = match (usual, text.ends_with('=')) {
        (true, false) => "",
        (true, true) => " padded",
        (false, _) => " with other fields",
    };
    Some(Token {
        version: object.get("v")?.as_str()?.to_owned(),
        revision: object.get("rv").and_then(serde_json::Value::as_u64),
        revision_text: object.get("rv").map(ToString::to_string).unwrap_or_default(),
        start: start.replace('\u{0}', "\\u0000"),
        oddity,
    })
}

/// Replaces resourceVersions in the three messages that contain them.
fn rewrite_message(text: &str, version: &mut dyn FnMut(u64) -> String) -> String {
    for prefix in ["too old resource version: ", "Too large resource version: "] {
        let Some(start) = text.find(prefix) else { continue };
        let (head, tail) = text.split_at(start + prefix.len());
        let mut out = head.to_owned();
        let mut rest = tail;
        while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
            let length = rest[at..].bytes().take_while(u8::is_ascii_digit).count();
            out.push_str(&rest[..at]);
            let digits = &rest[at..at + length];
            out.push_str(&digits.parse().map_or(digits.to_owned(), &mut *version));
            rest = &rest[at + length..];
        }
        out.push_str(rest);
        return out;
    }
    text.to_owned()
}

#[derive(Clone, Copy)]
enum Scalar<'a> {
    /// Text between the quotes, with its escapes.
    String(&'a str),
    Other,
}

/// For text with its escapes.
fn quote(text: &str) -> String {
    format!("\"{text}\"")
}

/// Copies JSON byte for byte, without validating it, except for scalars for which `replace` returns another text. `replace`
/// receives the key of the scalar; in an array that is the key of the array.
fn rewrite_json(
    text: &str,
    drop_managed_fields: bool,
    replace: &mut dyn FnMut(&str, Scalar<'_>) -> Option<String>,
) -> String {
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len());
    // One entry per open brace or bracket: whether it is an object, and its key.
    let mut open: Vec<(bool, String)> = Vec::new();
    let mut key = String::new();
    let mut expect_key = false;
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        match byte {
            b'{' | b'[' => {
                open.push((byte == b'{', key.clone()));
                expect_key = byte == b'{';
                out.push(char::from(byte));
                at += 1;
            }
            b'}' | b']' => {
                if let Some((_, outer)) = open.pop() {
                    key = outer;
                }
                expect_key = false;
                out.push(char::from(byte));
                at += 1;
            }
            b',' => {
                match open.last() {
                    Some((true, _)) => expect_key = true,
                    Some((false, outer)) => key.clone_from(outer),
                    None => {}
                }
                out.push(',');
                at += 1;
            }
            b'"' => {
                let end = string_end(bytes, at);
                let inner = &text[at + 1..end.saturating_sub(1).max(at + 1)];
                if expect_key {
                    expect_key = false;
                    if drop_managed_fields && inner == "managedFields" {
                        at = skip_member(bytes, end);
                        if bytes.get(at) == Some(&b',') {
                            at += 1;
                            while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
                                at += 1;
                            }
                        } else {
                            out.truncate(out.trim_end().trim_end_matches(',').len());
                        }
                        expect_key = true;
                        continue;
                    }
                    key = inner.to_owned();
                    out.push_str(&text[at..end]);
                } else {
                    match replace(&key, Scalar::String(inner)) {
                        Some(new) => out.push_str(&new),
                        None => out.push_str(&text[at..end]),
                    }
                }
                at = end;
            }
            b'0'..=b'9' | b'-' | b't' | b'f' | b'n' if !open.is_empty() && !expect_key => {
                let end = scalar_end(bytes, at);
                match replace(&key, Scalar::Other) {
                    Some(new) => out.push_str(&new),
                    None => out.push_str(&text[at..end]),
                }
                at = end;
            }
            _ => {
                let next = next_boundary(text, at);
                out.push_str(&text[at..next]);
                at = next;
            }
        }
    }
    out
}

fn next_boundary(text: &str, at: usize) -> usize {
    (at + 1..=text.len())
        .find(|index| text.is_char_boundary(*index))
        .unwrap_or(text.len())
}

/// Returns the index after the closing quote of the string that opens at `start`.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn scalar_end(bytes: &[u8], start: usize) -> usize {
    bytes[start..]
        .iter()
        .position(|byte| matches!(byte, b',' | b'}' | b']') || byte.is_ascii_whitespace())
        .map_or(bytes.len(), |length| (start + length).max(start + 1))
}

/// Returns the index after the value of a member, given the index after its key.
fn skip_member(bytes: &[u8], after_key: usize) -> usize {
    let mut depth = 0_usize;
    let mut at = after_key;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                at = string_end(bytes, at);
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 0 => break,
            b'}' | b']' => depth -= 1,
            b',' if depth == 0 => break,
            _ => {}
        }
        at += 1;
    }
    // White space before a closing brace belongs to the brace.
    while at > after_key && bytes[at - 1].is_ascii_whitespace() {
        at -= 1;
    }
    at
}

fn is_uuid(bytes: &[u8]) -> bool {
    bytes.len() >= 36
        && bytes[..36].iter().enumerate().all(|(index, byte)| match index {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
        && bytes.get(36).is_none_or(|byte| !byte.is_ascii_alphanumeric())
}

/// Returns the length of an RFC 3339 time, with or without a fraction.
fn time_length(bytes: &[u8]) -> Option<usize> {
    let shape = b"0000-00-00T00:00:00";
    if bytes.len() <= shape.len() {
        return None;
    }
    let fits = shape.iter().zip(bytes).all(|(want, have)| match want {
        b'0' => have.is_ascii_digit(),
        other => other == have,
    });
    if !fits {
        return None;
    }
    let mut at = shape.len();
    if bytes[at] == b'.' {
        at += 1 + bytes[at + 1..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
    }
    (bytes.get(at) == Some(&b'Z')).then_some(at + 1)
}

/// Returns whether the text is an age in a table, in any unit: `5s`, `3m12s`, `2y1d`. That of a time in the future
/// (`<invalid>`) is not: only probes of such times have it, on any day.
fn is_age(text: &str) -> bool {
    let mut digits = 0;
    let mut groups = 0;
    for c in text.chars() {
        match c {
            '0'..='9' => digits += 1,
            's' | 'm' | 'h' | 'd' | 'y' if digits > 0 => {
                digits = 0;
                groups += 1;
            }
            _ => return false,
        }
    }
    digits == 0 && groups > 0
}

/// Removes the age from the restarts of a pod: `2 (27y ago)`.
fn without_age_in_brackets(text: &str) -> Option<String> {
    let (restarts, age) = text.strip_suffix(" ago)")?.split_once(" (")?;
    is_age(age).then(|| format!("{restarts} (<age> ago)"))
}

fn is_generated_name(text: &str) -> bool {
    text.strip_prefix("g-").is_some_and(|rest| {
        rest.len() == 5 && rest.chars().all(|c| "bcdfghjklmnpqrstvwxz2456789".contains(c))
    })
}

/// Replaces a hundred or more repetitions of a character by a count.
fn collapse_runs(text: &str) -> String {
    const LONG: usize = 100;
    let mut out = String::with_capacity(text.len().min(1 << 20));
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        let mut count = 1;
        while characters.next_if_eq(&c).is_some() {
            count += 1;
        }
        if count >= LONG {
            out.push_str(&format!("{c}<{count} times>"));
        } else {
            out.extend(std::iter::repeat_n(c, count));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normalise(texts: &[&str]) -> Vec<String> {
        let mut normaliser = Normaliser::new("127.0.0.1:6443");
        texts.iter().for_each(|text| normaliser.collect(text));
        normaliser.seal();
        texts.iter().map(|text| normaliser.rewrite(text)).collect()
    }

    #[test]
    fn resource_versions_become_ordinals_of_the_transcript() {
        let out = normalise(&[
            r#"{"metadata":{"resourceVersion":"210"},"items":[{"metadata":{"name":"a","resourceVersion":"207"}}]}"#,
            r#"{"message":"too old resource version: 1 (207)","code":410}"#,
        ]);
        assert_eq!(
            out,
            [
                r#"{"metadata":{"resourceVersion":"r2"},"items":[{"metadata":{"name":"a","resourceVersion":"r1"}}]}"#,
                r#"{"message":"too old resource version: 1 (r1)","code":410}"#,
            ]
        );
    }

    #[test]
    fn managed_fields_are_removed_everywhere() {
        let out = normalise(&[
            r#"{"metadata":{"name":"a","managedFields":[{"a":"}"}]},"data":{}}"#,
            r#"{"metadata":{"managedFields":[{}],"name":"a"}}"#,
            r#"{"metadata":{"managedFields":[{}]}}"#,
        ]);
        assert_eq!(
            out,
            [
                r#"{"metadata":{"name":"a"},"data":{}}"#,
                r#"{"metadata":{"name":"a"}}"#,
                r#"{"metadata":{}}"#
            ]
        );
    }

    #[test]
    fn removing_managed_fields_keeps_indentation() {
        let out = normalise(&[
            "{\n  \"a\": {\n    \"name\": \"x\",\n    \"managedFields\": [\n      {}\n    ]\n  }\n}",
        ]);
        assert_eq!(out, ["{\n  \"a\": {\n    \"name\": \"x\"\n  }\n}"]);
    }

    #[test]
    fn uids_times_and_hosts_are_removed() {
        let out = normalise(&[
            r#"{"uid":"7d1b2c3d-0000-4000-8000-000000000001","t":"2026-01-02T03:04:05Z","h":"127.0.0.1:6443"}"#,
        ]);
        assert_eq!(out, [r#"{"uid":"<uid1>","t":"<time>","h":"<authority>"}"#]);
    }

    #[test]
    fn ages_in_tables_are_removed_in_every_unit() {
        let row = |age: &str, restarts: &str| format!(r#"{{"cells":["a",3,"{age}","{restarts}"]}}"#);
        for age in [
            "5s", "3m12s", "179m", "7h59m", "47h", "7d23h", "325d", "2y1d", "27y",
        ] {
            let out = normalise(&[&row(age, &format!("2 ({age} ago)"))]);
            assert_eq!(out, [row("<age>", "2 (<age> ago)")], "{age}");
        }
        for other in ["<unknown>", r"\u003cinvalid\u003e", "y", "12", "2x", "1/2"] {
            let kept = row(other, &format!("2 ({other} ago)"));
            assert_eq!(normalise(&[&kept]), [kept], "{other}");
        }
    }

    #[test]
    fn continue_tokens_are_decoded() {
        // {"v":"meta.k8s.io/v1","rv":210,"start":"/cm-2\u0000"}
        let token = "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MjEwLCJzdGFydCI6Ii9jbS0yXHUwMDAwIn0";
        let out = normalise(&[&format!(r#"{{"continue":"{token}"}}"#)]);
        assert_eq!(
            out,
            [r#"{"continue":"<v=meta.k8s.io/v1 rv=r1 start=/cm-2\u0000>"}"#]
        );
    }
}
