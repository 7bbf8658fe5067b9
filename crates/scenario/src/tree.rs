//! Parses a scenario file to a tree whose nodes have positions.
//!
//! A strict subset of YAML 1.2: one document, no anchors, aliases, tags, merge keys or duplicate keys, plain keys.
//! Independent of the scenario language, so that it is equally strict everywhere.

use std::collections::BTreeSet;

use apimachinery::depth::DEPTH_MAX;
use serde_json::{Map, Number, Value};
use serde_saphyr::granit_parser::{Event, Parser, ScalarStyle, Span as YamlSpan};

use super::problem::{Code, Problem};
use super::span::Span;

/// Maximum nesting of maps and lists: that of the deepest object, and the levels around it.
const LEVELS_MAX: usize = DEPTH_MAX + 20;

/// A node with its position.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    /// Position.
    pub(crate) span: Span,
    /// Value.
    pub(crate) kind: Kind,
}

/// Value of a node.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    /// Text; `plain`: written without quotes, so it may be a number, a boolean or null.
    Scalar {
        /// The unescaped text.
        text: String,
        /// Written without quotes.
        plain: bool,
    },
    /// A list.
    Sequence(Vec<Node>),
    /// A map, in the order of the file. Keys are scalars.
    Mapping(Vec<(Node, Node)>),
}

impl Node {
    /// Returns the text of a scalar.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Scalar { text, .. } => Some(text),
            Kind::Sequence(_) | Kind::Mapping(_) => None,
        }
    }

    /// Returns the text of a scalar written without quotes.
    pub(crate) fn plain(&self) -> Option<&str> {
        match &self.kind {
            Kind::Scalar { text, plain: true } => Some(text),
            Kind::Scalar { .. } | Kind::Sequence(_) | Kind::Mapping(_) => None,
        }
    }

    /// Returns true for a null.
    pub(crate) fn is_null(&self) -> bool {
        matches!(self.plain(), Some("" | "~" | "null"))
    }

    /// Returns the value under `key`, if this is a map that has it.
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        match &self.kind {
            Kind::Mapping(entries) => entries
                .iter()
                .find(|(k, _)| k.text() == Some(key))
                .map(|(_, v)| v),
            Kind::Scalar { .. } | Kind::Sequence(_) => None,
        }
    }

    /// Converts to JSON; plain scalars follow the core schema of YAML 1.2 (so `yes` is text).
    pub(crate) fn to_json(&self) -> Value {
        match &self.kind {
            Kind::Scalar { text, plain: true } => plain_to_json(text),
            Kind::Scalar { text, plain: false } => Value::String(text.clone()),
            Kind::Sequence(items) => Value::Array(items.iter().map(Node::to_json).collect()),
            Kind::Mapping(entries) => {
                let mut map = Map::new();
                for (key, value) in entries {
                    map.insert(key.text().unwrap_or_default().to_owned(), value.to_json());
                }
                Value::Object(map)
            }
        }
    }
}

pub(crate) fn plain_to_json(text: &str) -> Value {
    match text {
        "" | "~" | "null" => return Value::Null,
        "true" => return Value::Bool(true),
        "false" => return Value::Bool(false),
        _ => {}
    }
    if let Ok(number) = text.parse::<i64>() {
        return Value::from(number);
    }
    if let Ok(number) = text.parse::<u64>() {
        return Value::from(number);
    }
    let numeric = text.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '+' || c == '.')
        && text.contains(|c: char| c.is_ascii_digit());
    let float = text
        .parse::<f64>()
        .ok()
        .filter(|_| numeric)
        .and_then(Number::from_f64);
    float.map_or_else(|| Value::String(text.to_owned()), Value::Number)
}

/// Parses `text`; returns the tree and all syntactic errors. `None` if there is no tree (a syntax error ends parsing,
/// and an empty file has none).
pub(crate) fn read(text: &str) -> (Option<Node>, Vec<Problem>) {
    let mut builder = Builder {
        text,
        problems: Vec::new(),
        stack: Vec::new(),
        root: None,
        documents: 0,
    };
    // An alias without an anchor is rejected like any other, and does not end parsing.
    let options = serde_saphyr::granit_parser::options! { emit_unresolved_aliases: true };
    for next in Parser::new_from_str_with_options(text, options) {
        match next {
            Ok((event, span)) => {
                builder.take(event, &span);
                if let Some(problem) = builder.too_deep() {
                    builder.problems.push(problem);
                    return (None, builder.problems);
                }
            }
            Err(error) => {
                let start = error.marker().byte_offset().unwrap_or(0).min(text.len());
                let span = Span { start, end: start };
                let message = format!("this is not YAML: {}", error.info());
                builder.problems.push(
                    Problem::new(Code::NotYaml, span, message)
                        .label("reading stopped here")
                        .hint("fix this first: the rest of the file was not checked"),
                );
                return (None, builder.problems);
            }
        }
    }
    if builder.root.as_ref().is_none_or(Node::is_null) && builder.problems.is_empty() {
        let empty = Problem::new(Code::EmptyFile, Span::default(), "the file is empty")
            .label("nothing here")
            .hint(
                "start with `scenario: v1` and `title:`; docs/scenario-language.md shows three whole files",
            );
        return (None, vec![empty]);
    }
    (builder.root, builder.problems)
}

/// A collection that is not closed yet.
enum Open {
    Sequence {
        start: usize,
        items: Vec<Node>,
    },
    Mapping {
        start: usize,
        entries: Vec<(Node, Node)>,
        /// The keys so far.
        words: BTreeSet<String>,
        key: Option<Node>,
    },
}

struct Builder<'t> {
    text: &'t str,
    problems: Vec<Problem>,
    stack: Vec<Open>,
    root: Option<Node>,
    documents: usize,
}

impl Builder<'_> {
    fn take(&mut self, event: Event<'_>, at: &YamlSpan) {
        let range = at.byte_range().unwrap_or(0..0);
        let span = Span {
            start: range.start.min(self.text.len()),
            end: range.end.min(self.text.len()),
        };
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents == 2 {
                    self.refuse(
                        span,
                        "a second document begins here",
                        "one file, one scenario: move it to a separate file",
                    );
                }
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.refuse_properties(span, anchor, tag.is_some());
                let kind = Kind::Scalar {
                    text: text.into_owned(),
                    plain: style == ScalarStyle::Plain,
                };
                self.push(Node { span, kind });
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.refuse_properties(span, anchor, tag.is_some());
                self.stack.push(Open::Sequence {
                    start: span.start,
                    items: Vec::new(),
                });
            }
            Event::MappingStart(_, anchor, tag) => {
                self.refuse_properties(span, anchor, tag.is_some());
                self.stack.push(Open::Mapping {
                    start: span.start,
                    entries: Vec::new(),
                    words: BTreeSet::new(),
                    key: None,
                });
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(span),
            Event::Alias(_) | Event::UnresolvedAlias(_) => {
                self.refuse(
                    span,
                    "aliases (`*name`) are not read",
                    "write the value out again",
                );
                self.push_nothing(span);
            }
            // The parser's enum is non-exhaustive; its other events (stream and document marks) carry no data.
            Event::StreamStart | Event::StreamEnd | Event::DocumentEnd | Event::Anchor(..) | _ => {}
        }
    }

    /// Limits nesting: nodes are dropped recursively, so deeper maps and lists are not read.
    fn too_deep(&self) -> Option<Problem> {
        let (Open::Sequence { start, .. } | Open::Mapping { start, .. }) = self.stack.get(LEVELS_MAX)?;
        let span = Span {
            start: *start,
            end: start + 1,
        };
        let message = format!("maps and lists are nested more than {LEVELS_MAX} levels deep");
        Some(
            Problem::new(Code::OutOfRange, span, message)
                .label("reading stopped here")
                .hint(format!("an object has at most {DEPTH_MAX} levels")),
        )
    }

    fn refuse_properties(&mut self, span: Span, anchor: usize, tagged: bool) {
        if anchor != 0 {
            self.refuse(
                span,
                "anchors (`&name`) are not read",
                "write the value out where it is needed; `repeat:` makes many objects",
            );
        }
        if tagged {
            self.refuse(
                span,
                "tags (`!name`) are not read",
                "leave the tag out; quote a text that looks like a number",
            );
        }
    }

    fn refuse(&mut self, span: Span, message: &str, hint: &str) {
        self.problems.push(
            Problem::new(Code::NotInSubset, span, message)
                .label("not in this language")
                .hint(hint),
        );
    }

    fn close(&mut self, end: Span) {
        let Some(open) = self.stack.pop() else { return };
        let (start, kind, last) = match open {
            Open::Sequence { start, items } => {
                let last = items.last().map(|node| node.span.end);
                (start, Kind::Sequence(items), last)
            }
            Open::Mapping { start, entries, .. } => {
                let last = entries
                    .last()
                    .map(|(key, value)| value.span.end.max(key.span.end));
                (start, Kind::Mapping(entries), last)
            }
        };
        // A block collection is closed by the token after it, so its end is that of its last child.
        let closing = self
            .text
            .get(end.start..end.end)
            .is_some_and(|t| t == "]" || t == "}");
        let end = if closing { end.end } else { last.unwrap_or(end.end) };
        self.push(Node {
            span: Span {
                start,
                end: end.max(start),
            },
            kind,
        });
    }

    /// Pushes a placeholder for a rejected node, so that no further errors follow from it.
    fn push_nothing(&mut self, span: Span) {
        match self.stack.last_mut() {
            Some(Open::Mapping { key, .. }) => {
                if key.take().is_none() {
                    *key = Some(Node {
                        span,
                        kind: Kind::Scalar {
                            text: String::new(),
                            plain: true,
                        },
                    });
                }
            }
            Some(Open::Sequence { .. }) | None => {}
        }
    }

    fn push(&mut self, node: Node) {
        match self.stack.last_mut() {
            Some(Open::Sequence { items, .. }) => items.push(node),
            Some(Open::Mapping {
                entries, words, key, ..
            }) => match key.take() {
                None => *key = Some(node),
                Some(name) => match key_problem(&name, words) {
                    Some(problem) => self.problems.push(problem),
                    None => {
                        words.extend(name.text().map(str::to_owned));
                        entries.push((name, node));
                    }
                },
            },
            None if self.root.is_none() && self.documents <= 1 => self.root = Some(node),
            None => {}
        }
    }
}

fn key_problem(key: &Node, before: &BTreeSet<String>) -> Option<Problem> {
    let Some(text) = key.text() else {
        return Some(
            Problem::new(
                Code::NotInSubset,
                key.span,
                "a key must be a plain word, not a list or a map",
            )
            .label("this is a key"),
        );
    };
    if text == "<<" {
        return Some(
            Problem::new(Code::NotInSubset, key.span, "merge keys (`<<`) are not read")
                .label("not in this language")
                .hint("write the keys out"),
        );
    }
    before.contains(text).then(|| {
        Problem::new(
            Code::DuplicateKey,
            key.span,
            format!("`{text}` is given twice in the same map"),
        )
        .label("the second time")
        .hint("keep one of the two")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn plain_scalars_follow_the_core_schema() {
        let (tree, problems) = read("{a: yes, b: true, c: 012x, d: 5, e: ~, f: 1.5, g: '5', h: inf, i: on}");
        assert!(problems.is_empty());
        assert_eq!(
            tree.unwrap().to_json(),
            json!({"a": "yes", "b": true, "c": "012x", "d": 5, "e": null, "f": 1.5, "g": "5", "h": "inf", "i": "on"})
        );
    }

    #[test]
    fn spans_match_the_text() {
        let text = "a:\n  - {b: é}\n  - c\nd: x\n";
        let (tree, _) = read(text);
        let tree = tree.unwrap();
        let list = tree.get("a").unwrap();
        assert_eq!(&text[list.span.start..list.span.end], "- {b: é}\n  - c");
        assert_eq!(&text[tree.get("d").unwrap().span.start..][..1], "x");
    }
}
