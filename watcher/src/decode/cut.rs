//! Removes fields from an object's text before it is decoded: counting brackets is several times faster than decoding
//! a field that is then dropped. Knows no types, and returns `None` for any JSON not formatted as apiservers write
//! it.

use super::scan::ValueEnd;
use crate::prune::{Node, Prune};

impl Prune {
    /// Returns the text without the pruned fields, if they can be located without parsing.
    pub(crate) fn cut<'a>(&self, json: &'a str, kept: &'a mut String) -> Option<&'a str> {
        cut(json, self.root(), kept)
    }
}

/// Returns the object's text without the fields of `root`. `None` if there is whitespace between fields, if field
/// names contain escapes, or if the scanned part is not a single object: the caller must use a slower parser.
///
/// Text after the last pruned field is not scanned. The decoder that runs next must check that it is the rest of one
/// object and that no field occurs twice.
///
/// The result is stored in `kept`, a buffer to be reused: allocating several KB per object makes glibc consolidate
/// the small chunks freed by the previous object each time.
pub(super) fn cut<'a>(json: &'a str, root: &Node, kept: &'a mut String) -> Option<&'a str> {
    kept.clear();
    let mut scissors = Scissors {
        json,
        at: 0,
        kept,
        kept_to: 0,
        sought: root.dropped_once(),
    };
    scissors.value(Some(root))?;
    if (scissors.at != json.len() && scissors.sought != Some(0)) || !json.starts_with('{') {
        return None;
    }
    if scissors.kept_to == 0 {
        return Some(json);
    }
    let rest = &json[scissors.kept_to..];
    kept.push_str(rest);
    Some(kept)
}

struct Scissors<'a, 'k> {
    json: &'a str,
    /// Offset of the next byte.
    at: usize,
    /// The retained text up to `kept_to`.
    kept: &'k mut String,
    kept_to: usize,
    /// Number of fields still to be removed, if known.
    sought: Option<usize>,
}

impl<'a> Scissors<'a, '_> {
    fn next(&self) -> Option<u8> {
        self.json.as_bytes().get(self.at).copied()
    }

    fn pass(&mut self, byte: u8) -> Option<()> {
        (self.next()? == byte).then(|| self.at += 1)
    }

    /// Skips a value; removes nothing below it if `node` is `None`.
    fn value(&mut self, node: Option<&Node>) -> Option<()> {
        match (self.next()?, node.filter(|node| !node.is_leaf())) {
            (b'{', Some(node)) => self.fields(node),
            (b'[', Some(node)) => self.items(node),
            (blank, Some(_)) if blank.is_ascii_whitespace() => None,
            (b'"', _) => self.string().map(|_| ()),
            _ => {
                self.at += ValueEnd::default().advance(&self.json.as_bytes()[self.at..])?;
                Some(())
            }
        }
    }

    fn fields(&mut self, node: &Node) -> Option<()> {
        self.pass(b'{')?;
        if self.pass(b'}').is_some() {
            return Some(());
        }
        let mut is_any_kept = false;
        loop {
            let start = self.at;
            let name = self.string().filter(|name| !name.contains('\\'))?;
            self.pass(b':')?;
            let is_kept = node.keeps(name);
            self.value(node.below(name).filter(|_| is_kept))?;
            if is_kept && self.sought == Some(0) {
                return Some(());
            }
            let is_last = match self.next()? {
                b',' => false,
                b'}' => true,
                _ => return None,
            };
            self.at += 1;
            if is_kept {
                is_any_kept = true;
            } else if !is_last {
                self.leave_out(start, self.at);
            } else if is_any_kept {
                // Includes the preceding comma, which may have been kept already.
                self.leave_out(start, self.at - 1);
                self.kept.pop();
            } else {
                self.leave_out(start, self.at - 1);
            }
            if is_last || self.sought == Some(0) {
                return Some(());
            }
        }
    }

    fn items(&mut self, node: &Node) -> Option<()> {
        self.pass(b'[')?;
        if self.pass(b']').is_some() {
            return Some(());
        }
        loop {
            self.value(node.items())?;
            if self.pass(b',').is_none() {
                return self.pass(b']');
            }
        }
    }

    /// Returns a string as written, without its quotes.
    fn string(&mut self) -> Option<&'a str> {
        self.pass(b'"')?;
        let start = self.at;
        loop {
            self.at += memchr::memchr2(b'"', b'\\', &self.json.as_bytes()[self.at..])?;
            if self.next()? == b'"' {
                self.at += 1;
                return self.json.get(start..self.at - 1);
            }
            self.at += 2;
            if self.at > self.json.len() {
                return None;
            }
        }
    }

    fn leave_out(&mut self, start: usize, end: usize) {
        self.kept.push_str(&self.json[self.kept_to..start]);
        self.kept_to = end;
        self.sought = self.sought.map(|sought| sought - 1);
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::first(r#"{"x":1,"a":2}"#, Some(r#"{"a":2}"#))]
    #[case::middle(r#"{"a":1,"x":{"x":["}"]},"b":2}"#, Some(r#"{"a":1,"b":2}"#))]
    #[case::last(r#"{"a":1,"x":"\"}"}"#, Some(r#"{"a":1}"#))]
    #[case::last_two(r#"{"a":1,"x":1,"x":2}"#, Some(r#"{"a":1}"#))]
    #[case::all(r#"{"x":1,"x":2}"#, Some("{}"))]
    #[case::none(r#"{"a":{"x":1},"é":[]}"#, Some(r#"{"a":{"x":1},"é":[]}"#))]
    #[case::below(r#"{"m":{"a":1,"y":[1,2]},"y":3}"#, Some(r#"{"m":{"a":1},"y":3}"#))]
    #[case::items(r#"{"l":[{"z":1},{"a":1,"z":2},3]}"#, Some(r#"{"l":[{},{"a":1},3]}"#))]
    #[case::empty("{}", Some("{}"))]
    #[case::blank_before_a_value(r#"{"x": 1,"a": 2}"#, Some(r#"{"a": 2}"#))]
    #[case::blank_before_a_name(r#"{"x":1, "a":2}"#, None)]
    #[case::blank_before_fields(r#"{"m": {"y":1}}"#, None)]
    #[case::escaped_name(r#"{"\u0078":1}"#, None)]
    #[case::torn(r#"{"a":1,"x":{"#, None)]
    #[case::torn_behind_a_backslash(r#"{"a\"#, None)]
    #[case::two("{}{}", None)]
    #[case::no_object("[]", None)]
    fn fields_are_cut_out(#[case] json: &str, #[case] expected: Option<&str>) {
        let prune = Prune::nothing().field("x").field("m.y").field("l[].z");
        assert_eq!(cut(json, prune.root(), &mut String::new()), expected);
    }

    #[rstest]
    #[case::first(r#"{"x":1,"a":2}"#, Some(r#"{"a":2}"#))]
    #[case::last(r#"{"a":1,"x":2}"#, Some(r#"{"a":1}"#))]
    #[case::alone(r#"{"x":1}"#, Some("{}"))]
    #[case::with_one_below(r#"{"m":{"a":1,"y":2},"x":1,"b": 2}"#, Some(r#"{"m":{"a":1},"b": 2}"#))]
    #[case::one_is_missing(r#"{"x":1,"a":2}{}"#, None)]
    #[case::text_after_the_last_field_is_not_scanned(r#"{"x":1,"m":{"y":2}, torn"#, Some(r#"{"m":{}, torn"#))]
    fn nothing_is_looked_at_behind_the_last_cut(#[case] json: &str, #[case] expected: Option<&str>) {
        let prune = Prune::nothing().field("x").field("m.y");
        assert_eq!(cut(json, prune.root(), &mut String::new()), expected);
    }
}
