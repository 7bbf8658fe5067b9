//! YAML encoder equal to that of kube-apiserver: keys sorted, long lines folded, strings quoted only if they would be parsed
//! as another type.
//!
//! It must not know the content. A library parses YAML; encoding is separate because libraries differ in folding and quoting.
//!
//! Source: `sigs.k8s.io/yaml` over `go.yaml.in/yaml/v2` (`encode.go`, `resolve.go`, `sorter.go`, `emitterc.go`).

use serde_json::{Map, Value};

mod plain;
mod scalar;

use scalar::Scalar;

/// Column after which a line is folded at its next space.
const WIDTH: usize = 80;

/// Maximum length of a key on one line with its value.
const KEY_MAX: usize = 128;

/// Encodes the document, with its newline.
pub(super) fn encode(value: &Value) -> Vec<u8> {
    let mut emitter = Emitter::default();
    emitter.value(value, ValuePosition::Root);
    emitter.out.push('\n');
    emitter.out.into_bytes()
}

/// Returns the bytes before and after the items of a list that is encoded while it is sent: `key` is that of its empty array.
pub(super) fn frame((envelope, key): (Map<String, Value>, &str)) -> (Vec<u8>, Vec<u8>) {
    let is_before = |other: &str| plain::key_order(other, key).is_lt();
    let (before, after): (Map<_, _>, Map<_, _>) = envelope
        .into_iter()
        .filter(|(other, _)| other != key)
        .partition(|(other, _)| is_before(other));
    let fields = |fields: Map<_, _>| match fields.is_empty() {
        true => Vec::new(),
        false => encode(&Value::Object(fields)),
    };
    let head = [fields(before), format!("{key}:").into_bytes()].concat();
    (head, [b"\n".to_vec(), fields(after)].concat())
}

/// Encodes an item of such a list, with the newline before it.
pub(super) fn item(value: &Value) -> Vec<u8> {
    let mut emitter = Emitter::default();
    emitter.new_line(0);
    emitter.put("-");
    emitter.value(value, ValuePosition::Item(0));
    emitter.out.into_bytes()
}

/// Position of a value on its line.
#[derive(Debug, Clone, Copy)]
enum ValuePosition {
    Root,
    /// After the key of a mapping with this indentation.
    Key(usize),
    /// After the dash of a sequence with this indentation.
    Item(usize),
}

#[derive(Debug, Default)]
struct Emitter {
    out: String,
    column: usize,
}

impl Emitter {
    fn value(&mut self, value: &Value, place: ValuePosition) {
        match value {
            Value::Object(fields) if !fields.is_empty() => self.mapping(fields, place),
            Value::Array(items) if !items.is_empty() => self.sequence(items, place),
            Value::Object(_) => self.after(place, "{}"),
            Value::Array(_) => self.after(place, "[]"),
            Value::Null => self.after(place, "null"),
            Value::Bool(flag) => self.after(place, if *flag { "true" } else { "false" }),
            Value::Number(number) => self.after(place, &number.to_string()),
            Value::String(text) => {
                self.space_after(place);
                let indent = match place {
                    ValuePosition::Root => 0,
                    ValuePosition::Key(indent) | ValuePosition::Item(indent) => indent + 2,
                };
                self.scalar(text, indent, false);
            }
        }
    }

    fn mapping(&mut self, fields: &Map<String, Value>, place: ValuePosition) {
        let (indent, mut on_new_line) = match place {
            ValuePosition::Root => (0, false),
            ValuePosition::Key(indent) => (indent + 2, true),
            ValuePosition::Item(indent) => {
                self.put(" ");
                (indent + 2, false)
            }
        };
        let mut keys: Vec<&String> = fields.keys().collect();
        keys.sort_by(|a, b| plain::key_order(a, b));
        for key in keys {
            if on_new_line {
                self.new_line(indent);
            }
            on_new_line = true;
            if key.chars().count() > KEY_MAX || key.contains('\n') {
                self.put("? ");
                self.scalar(key, indent + 2, false);
                self.new_line(indent);
                self.put(":");
            } else {
                self.scalar(key, indent + 2, true);
                self.put(":");
            }
            self.value(&fields[key], ValuePosition::Key(indent));
        }
    }

    fn sequence(&mut self, items: &[Value], place: ValuePosition) {
        let (indent, mut on_new_line) = match place {
            ValuePosition::Root => (0, false),
            // A sequence below a key is not indented.
            ValuePosition::Key(indent) => (indent, true),
            ValuePosition::Item(indent) => {
                self.put(" ");
                (indent + 2, false)
            }
        };
        for item in items {
            if on_new_line {
                self.new_line(indent);
            }
            on_new_line = true;
            self.put("-");
            self.value(item, ValuePosition::Item(indent));
        }
    }

    fn scalar(&mut self, text: &str, indent: usize, is_key: bool) {
        match Scalar::of(text, is_key) {
            Scalar::Plain => self.plain(text, indent, is_key),
            Scalar::SingleQuoted => self.single_quoted(text, indent, is_key),
            Scalar::DoubleQuoted => self.double_quoted(text, indent, is_key),
            Scalar::Literal => self.literal(text, indent),
        }
    }

    fn plain(&mut self, text: &str, indent: usize, is_key: bool) {
        let mut spaces = false;
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            let folds = character == ' ' && !is_key && !spaces && self.column > WIDTH;
            if folds && characters.peek().is_some_and(|next| *next != ' ') {
                self.new_line(indent);
            } else {
                self.put_char(character);
            }
            spaces = character == ' ';
        }
    }

    fn single_quoted(&mut self, text: &str, indent: usize, is_key: bool) {
        self.put("'");
        let (mut spaces, mut breaks) = (false, false);
        let mut characters = text.chars().enumerate().peekable();
        while let Some((at, character)) = characters.next() {
            let next = characters.peek().map(|(_, next)| *next);
            match character {
                ' ' => {
                    let folds = !is_key && !spaces && self.column > WIDTH && at > 0;
                    if folds && next.is_some_and(|next| next != ' ') {
                        self.new_line(indent);
                    } else {
                        self.put(" ");
                    }
                    spaces = true;
                }
                '\n' => {
                    if !breaks {
                        self.break_line();
                    }
                    self.break_line();
                    breaks = true;
                }
                _ => {
                    if breaks {
                        self.indent(indent);
                    }
                    if character == '\'' {
                        self.put("'");
                    }
                    self.put_char(character);
                    (spaces, breaks) = (false, false);
                }
            }
        }
        if breaks {
            self.indent(indent);
        }
        self.put("'");
    }

    fn double_quoted(&mut self, text: &str, indent: usize, is_key: bool) {
        self.put("\"");
        let mut spaces = false;
        let mut characters = text.chars().enumerate().peekable();
        while let Some((at, character)) = characters.next() {
            let next = characters.peek().map(|(_, next)| *next);
            if character == ' ' {
                if !is_key && !spaces && self.column > WIDTH && at > 0 && next.is_some() {
                    self.new_line(indent);
                    if next == Some(' ') {
                        self.put("\\");
                    }
                } else {
                    self.put(" ");
                }
                spaces = true;
            } else {
                match scalar::escape(character) {
                    Some(escaped) => self.put(&escaped),
                    None => self.put_char(character),
                }
                spaces = false;
            }
        }
        self.put("\"");
    }

    fn literal(&mut self, text: &str, indent: usize) {
        self.put("|");
        if text.starts_with([' ', '\n', '\r']) {
            self.put("2");
        }
        let end = text.trim_end_matches('\n');
        match text.len() - end.len() {
            0 => self.put("-"),
            1 if !end.is_empty() => {}
            _ => self.put("+"),
        }
        for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
            self.break_line();
            if !line.is_empty() {
                self.indent(indent);
                self.put(line);
            }
        }
    }

    fn after(&mut self, place: ValuePosition, text: &str) {
        self.space_after(place);
        self.put(text);
    }

    fn space_after(&mut self, place: ValuePosition) {
        match place {
            ValuePosition::Root => {}
            ValuePosition::Key(_) | ValuePosition::Item(_) => self.put(" "),
        }
    }

    fn new_line(&mut self, indent: usize) {
        self.break_line();
        self.indent(indent);
    }

    fn break_line(&mut self) {
        self.out.push('\n');
        self.column = 0;
    }

    fn indent(&mut self, indent: usize) {
        self.put(&" ".repeat(indent));
    }

    fn put(&mut self, text: &str) {
        self.out.push_str(text);
        self.column += text.chars().count();
    }

    fn put_char(&mut self, character: char) {
        self.out.push(character);
        self.column += 1;
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::empty(json!(""), "a: \"\"\n")]
    #[case::number(json!("1"), "a: \"1\"\n")]
    #[case::octal(json!("0o17"), "a: \"0o17\"\n")]
    #[case::word(json!("yes"), "a: \"yes\"\n")]
    #[case::null(json!("~"), "a: \"~\"\n")]
    #[case::date(json!("2026-01-02"), "a: \"2026-01-02\"\n")]
    #[case::clock(json!("12:30:45"), "a: \"12:30:45\"\n")]
    #[case::version(json!("1.2.3"), "a: 1.2.3\n")]
    #[case::colon(json!("a: b"), "a: 'a: b'\n")]
    #[case::quote(json!("'"), "a: ''''\n")]
    #[case::hash(json!("a #b"), "a: 'a #b'\n")]
    #[case::tab(json!("a\tb"), "a: \"a\\tb\"\n")]
    #[case::lines(json!("a\nb\n"), "a: |\n  a\n  b\n")]
    #[case::lines_without_end(json!("a\nb"), "a: |-\n  a\n  b\n")]
    #[case::lines_with_more(json!("a\n\n"), "a: |+\n  a\n\n")]
    #[case::lines_indented(json!(" a\nb"), "a: |2-\n   a\n  b\n")]
    #[case::lines_with_trailing_space(json!("a \nb"), "a: \"a \\nb\"\n")]
    #[case::unicode(json!("ü"), "a: ü\n")]
    #[case::dash(json!("- a"), "a: '- a'\n")]
    #[case::empty_map(json!({}), "a: {}\n")]
    #[case::list(json!([1, [2, {}], { "b": [] }]), "a:\n- 1\n- - 2\n  - {}\n- b: []\n")]
    #[case::map(json!({ "b": { "c": true } }), "a:\n  b:\n    c: true\n")]
    fn values_are_written_as_the_server_does(#[case] value: Value, #[case] expected: &str) {
        let written = String::from_utf8(encode(&json!({ "a": value }))).expect("UTF-8");
        assert_eq!(written, expected);
    }

    /// Recorded: the data of a ConfigMap in YAML.
    #[test]
    fn texts_are_encoded_as_recorded() {
        let sent = serde_json::from_str(include_str!("yaml/recorded.json")).expect("JSON");
        let written = String::from_utf8(encode(&sent)).expect("UTF-8");
        let recorded = include_str!("yaml/recorded.yaml");
        for (written, recorded) in written.lines().zip(recorded.lines()) {
            assert_eq!(written, recorded);
        }
        assert_eq!(written, recorded);
    }

    #[test]
    fn keys_are_sorted_with_their_numbers_and_quoted() {
        let written = encode(&json!({ "a10": 1, "a2": 1, "true": 1, "f:x": 1, ".": 1, "B": 1 }));
        let expected = ".: 1\nB: 1\na2: 1\na10: 1\nf:x: 1\n\"true\": 1\n";
        assert_eq!(String::from_utf8(written).expect("UTF-8"), expected);
    }

    #[test]
    fn long_lines_are_folded_after_column_80() {
        let text = "only the following media types are accepted: application/json;stream=watch, \
                    application/vnd.kubernetes.protobuf;stream=watch";
        let written = String::from_utf8(encode(&json!({ "message": text }))).expect("UTF-8");
        let expected = "message: 'only the following media types are accepted: application/json;stream=watch,\n  \
                        application/vnd.kubernetes.protobuf;stream=watch'\n";
        assert_eq!(written, expected);
    }
}
