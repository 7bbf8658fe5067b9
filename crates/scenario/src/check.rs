//! Validates a tree against the schema and collects all errors: unknown and missing keys, wrong types, words that are
//! not allowed, numbers out of range.
//!
//! Supports only the JSON Schema keywords that the scenario schema uses; independent of the language itself. Invalid
//! nodes are removed from the tree (or repaired, if the intention is clear), so that the rest can still be validated.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::problem::{Code, Problem};
use super::tree::{Kind, Node};
use super::words::{nearest, suggest};

/// Validates `node`, called `what`, against `schema` and repairs it. Returns false if nothing usable is left.
pub(crate) fn check(node: &mut Node, schema: &Value, what: &str, problems: &mut Vec<Problem>) -> bool {
    let nothing = Map::new();
    Checker {
        root: schema,
        nothing: &nothing,
        problems,
    }
    .value(node, schema, what)
}

struct Checker<'s, 'p> {
    root: &'s Value,
    nothing: &'s Map<String, Value>,
    problems: &'p mut Vec<Problem>,
}

impl<'s> Checker<'s, '_> {
    /// Returns true if `node`, called `what`, conforms to `schema`.
    fn value(&mut self, node: &mut Node, schema: &'s Value, what: &str) -> bool {
        let schema = self.resolve(schema);
        if let Some(words) = self.words(schema) {
            return self.word(node, &words, what);
        }
        let branches = branches(schema);
        if !branches.is_empty() {
            // If both a number and a word are allowed, an invalid word may be an invalid number: name both.
            let number_or_word = branches
                .iter()
                .any(|branch| branch.get("type").is_some_and(|t| t == "integer"));
            let word = node.text().unwrap_or_default();
            let chosen = self.choose(node, branches).filter(|branch| {
                let known = self
                    .words(branch)
                    .is_none_or(|words| words.contains(&word) || nearest(word, words).is_some());
                !number_or_word || known
            });
            return match chosen {
                Some(branch) => self.value(node, branch, what),
                None => {
                    let wanted: Vec<String> = branches.iter().map(|branch| self.describe(branch)).collect();
                    self.wrong_type(node, &wanted.join(" or "), what)
                }
            };
        }
        if !self.admits(schema, node) {
            let wanted = self.describe(schema);
            return self.wrong_type(node, &wanted, what);
        }
        match &mut node.kind {
            Kind::Mapping(_) => self.mapping(node, schema, what),
            Kind::Sequence(items) => {
                let Some(of_items) = schema.get("items") else {
                    return true;
                };
                let name = format!("an item of {what}");
                items.retain_mut(|item| self.value(item, of_items, &name));
                true
            }
            Kind::Scalar { .. } => self.range(node, schema, what),
        }
    }

    fn mapping(&mut self, node: &mut Node, schema: &'s Value, what: &str) -> bool {
        let span = node.span;
        let Kind::Mapping(entries) = &mut node.kind else {
            return true;
        };
        let properties = schema
            .get("properties")
            .and_then(Value::as_object)
            .unwrap_or(self.nothing);
        let others = schema.get("additionalProperties");
        let closed = others == Some(&Value::Bool(false));
        let given: BTreeSet<String> = entries
            .iter()
            .filter_map(|(key, _)| key.text().map(str::to_owned))
            .collect();

        for (key, _) in entries.iter_mut().filter(|_| closed) {
            let word = key.text().unwrap_or_default().to_owned();
            if properties.contains_key(&word) {
                continue;
            }
            let free = properties
                .keys()
                .map(String::as_str)
                .filter(|known| !given.contains(*known));
            let meant = nearest(&word, free.clone()).map(str::to_owned);
            let mut problem = Problem::new(Code::UnknownKey, key.span, format!("{what} has no key `{word}`"))
                .label("unknown key")
                .hint(suggest(&word, free));
            if let Some(meant) = meant.filter(|meant| !entries_rename_clash(&given, meant)) {
                problem.repaired = true;
                key.kind = Kind::Scalar {
                    text: meant,
                    plain: true,
                };
            }
            self.problems.push(problem);
        }

        // Two misspelt keys may have been repaired to the same one; the first wins.
        let mut seen: BTreeSet<String> = BTreeSet::new();
        entries.retain_mut(|(key, value)| {
            let word = key.text().unwrap_or_default().to_owned();
            if !seen.insert(word.clone()) {
                return false;
            }
            match (properties.get(&word), others) {
                (Some(schema), _) | (None, Some(schema @ Value::Object(_))) => {
                    self.value(value, schema, &format!("`{word}`"))
                }
                (None, Some(Value::Bool(false))) => false,
                (None, _) => true,
            }
        });

        let required = schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str);
        let missing: Vec<&str> = required
            .filter(|key| !given.contains(*key) && !seen.contains(*key))
            .collect();
        for key in &missing {
            let hint = properties
                .get(*key)
                .and_then(|p| self.described(p))
                .map(|text| format!("`{key}`: {text}"));
            self.problems.push(
                Problem::new(Code::MissingKey, span, format!("{what} lacks the key `{key}`"))
                    .label(format!("`{key}` belongs here"))
                    .maybe_hint(hint),
            );
        }
        // The root is kept despite missing keys, so that its other keys are validated.
        missing.is_empty() || std::ptr::eq(schema, self.root)
    }

    fn word(&mut self, node: &mut Node, words: &[&'s str], what: &str) -> bool {
        let Some(text) = node.text().map(str::to_owned) else {
            return self.wrong_type(node, &listed(words), what);
        };
        if words.contains(&text.as_str()) {
            return true;
        }
        let meant = nearest(&text, words.iter().copied()).map(str::to_owned);
        let mut problem = Problem::new(Code::NotOneOf, node.span, format!("{what} cannot be `{text}`"))
            .label(if words.len() == 1 {
                "not the word for it"
            } else {
                "not one of the words for it"
            })
            .hint(suggest(&text, words.iter().copied()));
        if let Some(meant) = meant {
            problem.repaired = true;
            node.kind = Kind::Scalar {
                text: meant,
                plain: true,
            };
            self.problems.push(problem);
            return true;
        }
        self.problems.push(problem);
        false
    }

    fn range(&mut self, node: &Node, schema: &Value, what: &str) -> bool {
        let Some(number) = integer(node).filter(|_| schema.get("type").is_some_and(|t| t == "integer"))
        else {
            return true;
        };
        let bound = |key: &str| {
            schema
                .get(key)
                .and_then(Value::as_number)
                .and_then(|n| n.as_f64())
                .map(|n| n as i128)
        };
        let least = bound("minimum").unwrap_or(i128::from(i64::MIN));
        let most = bound("maximum").unwrap_or(i128::from(i64::MAX));
        if (least..=most).contains(&number) {
            return true;
        }
        let limits = match (bound("minimum"), bound("maximum")) {
            (Some(least), Some(most)) => format!("from {least} to {most}"),
            (Some(least), None) => format!("{least} or more"),
            (None, Some(most)) => format!("{most} or less"),
            (None, None) => String::from("a number of 64 bits"),
        };
        self.problems.push(
            Problem::new(Code::OutOfRange, node.span, format!("{what} cannot be {number}"))
                .label("out of range")
                .hint(format!("it must be {limits}")),
        );
        false
    }

    fn wrong_type(&mut self, node: &Node, wanted: &str, what: &str) -> bool {
        let found = match &node.kind {
            Kind::Mapping(_) => String::from("a map"),
            Kind::Sequence(_) => String::from("a list"),
            Kind::Scalar { .. } if node.is_null() => String::from("nothing"),
            Kind::Scalar { text, plain: true } => format!("`{}`", shortened(text)),
            Kind::Scalar { text, plain: false } => format!("the text \"{}\"", shortened(text)),
        };
        let hint = match node.plain() {
            Some("yes" | "on" | "True" | "TRUE" | "Yes" | "On") if wanted == BOOLEAN => {
                Some(String::from("write `true`"))
            }
            Some("no" | "off" | "False" | "FALSE" | "No" | "Off") if wanted == BOOLEAN => {
                Some(String::from("write `false`"))
            }
            Some(_) if node.is_null() => {
                Some(format!("give it a value, or leave the key out; it is {wanted}"))
            }
            Some(_) | None => None,
        };
        let span = match &node.kind {
            Kind::Scalar { .. } => node.span,
            // For a list or map, marking the first character suffices.
            Kind::Mapping(_) | Kind::Sequence(_) => super::span::Span {
                start: node.span.start,
                end: node.span.start + 1,
            },
        };
        self.problems.push(
            Problem::new(
                Code::WrongType,
                span,
                format!("{what} must be {wanted}, but is {found}"),
            )
            .label(format!("{wanted} belongs here"))
            .maybe_hint(hint),
        );
        false
    }

    /// Returns the branch that a node is meant for: the one that accepts its type and knows most of its keys.
    fn choose(&self, node: &Node, branches: &'s [Value]) -> Option<&'s Value> {
        let score = |branch: &Value| {
            let branch = self.resolve_any(branch);
            let properties = branch.get("properties").and_then(Value::as_object);
            match (&node.kind, properties) {
                (Kind::Mapping(entries), Some(properties)) => entries
                    .iter()
                    .filter(|(key, _)| key.text().is_some_and(|text| properties.contains_key(text)))
                    .count(),
                (Kind::Mapping(_), None) | (Kind::Scalar { .. } | Kind::Sequence(_), _) => {
                    // A scalar prefers a branch that lists it as a word.
                    let words = self.words(branch);
                    usize::from(
                        words.is_some_and(|words| node.text().is_some_and(|text| words.contains(&text))),
                    )
                }
            }
        };
        let mut best: Option<(usize, &'s Value)> = None;
        for branch in branches.iter().filter(|branch| self.admits(branch, node)) {
            let score = score(branch);
            if best.is_none_or(|(most, _)| score > most) {
                best = Some((score, branch));
            }
        }
        best.map(|(_, branch)| branch)
    }

    /// Returns true if the type of `node` fits `schema`.
    fn admits(&self, schema: &Value, node: &Node) -> bool {
        let schema = self.resolve_any(schema);
        if self.words(schema).is_some() {
            return node.text().is_some() && !node.is_null()
                || self
                    .words(schema)
                    .is_some_and(|w| node.text().is_some_and(|t| w.contains(&t)));
        }
        if let Some(branches) = self.branches_any(schema) {
            return branches.iter().any(|branch| self.admits(branch, node));
        }
        match schema.get("type") {
            None => true,
            Some(Value::Array(types)) => types
                .iter()
                .filter_map(Value::as_str)
                .any(|kind| fits(kind, node)),
            Some(kind) => kind.as_str().is_some_and(|kind| fits(kind, node)),
        }
    }

    fn describe(&self, schema: &Value) -> String {
        let schema = self.resolve_any(schema);
        if let Some(words) = self.words(schema) {
            return listed(&words);
        }
        if schema.get("pattern").is_some() {
            return String::from("a time such as `5s`");
        }
        if let Some(branches) = self.branches_any(schema) {
            let wanted: Vec<String> = branches.iter().map(|branch| self.describe(branch)).collect();
            return wanted.join(" or ");
        }
        match schema.get("type") {
            Some(Value::Array(_)) => String::from("text"),
            Some(Value::String(kind)) => match kind.as_str() {
                "string" => String::from("text"),
                "integer" => String::from("a whole number"),
                "boolean" => String::from(BOOLEAN),
                "array" => String::from("a list"),
                "object" => String::from("a map"),
                _ => String::from("nothing"),
            },
            Some(_) | None => String::from("anything"),
        }
    }

    fn described(&self, schema: &'s Value) -> Option<&'s str> {
        let own = schema.get("description").and_then(Value::as_str);
        own.or_else(|| self.resolve(schema).get("description").and_then(Value::as_str))
    }

    /// Returns the words that a schema allows, if it allows nothing else.
    fn words<'v>(&self, schema: &'v Value) -> Option<Vec<&'v str>> {
        if let Some(words) = schema.get("enum").and_then(Value::as_array) {
            return Some(words.iter().filter_map(Value::as_str).collect());
        }
        if let Some(word) = schema.get("const").and_then(Value::as_str) {
            return Some(vec![word]);
        }
        let branches = schema.get("oneOf").and_then(Value::as_array)?;
        let words: Option<Vec<Vec<&str>>> = branches
            .iter()
            .map(|branch| branch.get("$ref").is_none().then(|| self.words(branch)).flatten())
            .collect();
        words.map(|words| words.concat())
    }

    fn resolve(&self, schema: &'s Value) -> &'s Value {
        resolve(self.root, schema)
    }

    fn resolve_any<'v>(&self, schema: &'v Value) -> &'v Value
    where
        's: 'v,
    {
        resolve(self.root, schema)
    }

    fn branches_any<'v>(&self, schema: &'v Value) -> Option<&'v [Value]> {
        let branches = branches(schema);
        (!branches.is_empty()).then_some(branches)
    }
}

const BOOLEAN: &str = "`true` or `false`";

fn entries_rename_clash(given: &BTreeSet<String>, meant: &str) -> bool {
    given.contains(meant)
}

/// Resolves references, including an `allOf` that adds a description to a reference.
fn resolve<'v>(root: &'v Value, mut schema: &'v Value) -> &'v Value {
    loop {
        if let Some([only]) = schema.get("allOf").and_then(Value::as_array).map(Vec::as_slice) {
            schema = only;
        }
        let Some(pointer) = schema
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|r| r.strip_prefix('#'))
        else {
            return schema;
        };
        match root.pointer(pointer) {
            Some(target) => schema = target,
            None => return schema,
        }
    }
}

fn branches(schema: &Value) -> &[Value] {
    schema
        .get("anyOf")
        .or_else(|| schema.get("oneOf"))
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// A text accepts any scalar as written; other types are strict.
fn fits(kind: &str, node: &Node) -> bool {
    match kind {
        "string" => node.text().is_some() && !node.is_null(),
        "integer" => integer(node).is_some(),
        "number" => node.plain().is_some_and(|text| text.parse::<f64>().is_ok()),
        "boolean" => matches!(node.plain(), Some("true" | "false")),
        "null" => node.is_null(),
        "array" => matches!(node.kind, Kind::Sequence(_)),
        "object" => matches!(node.kind, Kind::Mapping(_)),
        _ => false,
    }
}

fn integer(node: &Node) -> Option<i128> {
    node.plain()
        .filter(|text| !text.starts_with('+'))
        .and_then(|text| text.parse().ok())
}

fn listed(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.as_slice() {
        [] => String::from("nothing"),
        [one] => one.clone(),
        [.., _] if quoted.len() > 8 => format!("one of {}, …", quoted[..8].join(", ")),
        [head @ .., last] => format!("{} or {last}", head.join(", ")),
    }
}

fn shortened(text: &str) -> String {
    if text.chars().count() > 40 {
        text.chars().take(40).chain(std::iter::once('…')).collect()
    } else {
        text.to_owned()
    }
}
