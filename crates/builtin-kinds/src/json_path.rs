//! JSONPath of printer columns: fields, indices, slices, unions, wildcards, recursive descent and filters.
//!
//! It must not know how values are printed.
//!
//! Source: client-go `util/jsonpath`, as far as `additionalPrinterColumns` can use it ("JSONPath support" in the kubectl
//! reference).

use std::collections::HashSet;
use std::marker::PhantomData;
use std::ops::ControlFlow;

use serde_json::Value;

/// A parsed path.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct JsonPath {
    steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq)]
enum Step {
    /// `.name`, `['name']`
    Field(String),
    /// `[1]`, `[1:3]`, `[-1]`, `[::2]`
    Slice {
        start: Option<i64>,
        end: Option<i64>,
        stride: usize,
    },
    /// `.*`, `[*]`
    All,
    /// `..`
    Descent,
    /// `[0,2]`, `['a','b']`
    Union(Vec<JsonPath>),
    /// `[?(@.type=="Ready")]`
    Filter {
        left: Operand,
        operator: Operator,
        right: Operand,
    },
}

#[derive(Debug, Clone, PartialEq)]
enum Operand {
    Path(JsonPath),
    Literal(Value),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Exists,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Maximum steps of a path; paths in filters and unions count separately.
const STEPS_MAX: usize = 100;

/// Maximum nesting of filters and unions.
const NESTING_MAX: usize = 2;

impl JsonPath {
    /// Parses a path; `None` if it is invalid or exceeds the limits on steps and nesting.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Self::nested(text, NESTING_MAX)
    }

    fn nested(text: &str, nesting: usize) -> Option<Self> {
        let text = text.trim();
        let mut rest = text.strip_prefix(['$', '@']).unwrap_or(text);
        let mut steps = Vec::new();
        while !rest.is_empty() {
            if let Some(below) = rest.strip_prefix("..") {
                steps.push(Step::Descent);
                rest = below;
                if !rest.starts_with('[') {
                    rest = field(rest, &mut steps)?;
                }
            } else if let Some(below) = rest.strip_prefix('.') {
                rest = if below.is_empty() || below.starts_with('[') {
                    below
                } else {
                    field(below, &mut steps)?
                };
            } else if rest.starts_with('[') {
                let end = closing(rest)?;
                steps.push(bracketed(rest[1..end].trim(), nesting)?);
                rest = &rest[end + 1..];
            } else {
                rest = field(rest, &mut steps)?;
            }
            if steps.len() > STEPS_MAX {
                return None;
            }
        }
        Some(Self { steps })
    }

    /// Returns the first value that matches; `None` if a key is missing.
    pub(crate) fn first<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        let mut found = None;
        // The walk stops at the first match.
        let _ = Search::of(self).walk(value, 0, &mut |value| {
            found = Some(value);
            ControlFlow::Break(())
        });
        found
    }

    #[cfg(test)]
    fn find<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        let mut found = Vec::new();
        let _ = Search::of(self).walk(value, 0, &mut |value| {
            found.push(value);
            ControlFlow::Continue(())
        });
        found
    }
}

/// Walk along a path. Each pair of step and value is tried once, because the second try has the same results: the cost of a
/// path is bounded by its steps times the size of the value.
struct Search<'p, 'a> {
    steps: &'p [Step],
    /// Steps and addresses of values that were tried: below a descent a value can be reached on several ways.
    tried: HashSet<(usize, *const Value)>,
    descends: bool,
    of: PhantomData<&'a Value>,
}

impl<'p, 'a> Search<'p, 'a> {
    fn of(path: &'p JsonPath) -> Self {
        Self {
            steps: &path.steps,
            tried: HashSet::new(),
            descends: path.steps.iter().filter(|step| **step == Step::Descent).count() > 1,
            of: PhantomData,
        }
    }

    /// Calls `found` for each value that matches the steps from `step` on, in order.
    fn walk(
        &mut self,
        value: &'a Value,
        at: usize,
        found: &mut dyn FnMut(&'a Value) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Some(step) = self.steps.get(at) else {
            return found(value);
        };
        if self.descends && !self.tried.insert((at, std::ptr::from_ref(value))) {
            return ControlFlow::Continue(());
        }
        match step {
            Step::Field(name) => match value.get(name) {
                Some(value) => self.walk(value, at + 1, found),
                None => ControlFlow::Continue(()),
            },
            Step::All => self.each(children(value), at, found),
            Step::Descent => self.descend(value, at, found),
            Step::Union(paths) => {
                for path in paths {
                    let mut search = Search::of(path);
                    let mut next = |value| self.walk(value, at + 1, found);
                    search.walk(value, 0, &mut next)?;
                }
                ControlFlow::Continue(())
            }
            Step::Slice { start, end, stride } => {
                let Value::Array(items) = value else {
                    return ControlFlow::Continue(());
                };
                let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
                let place = |index: i64| if index < 0 { index + length } else { index };
                let first = usize::try_from(place(start.unwrap_or(0))).unwrap_or(0);
                let last = usize::try_from(place(end.unwrap_or(length)).min(length)).unwrap_or(0);
                let range = items.get(first..last.max(first)).unwrap_or_default();
                self.each(range.iter().step_by(*stride), at, found)
            }
            Step::Filter {
                left,
                operator,
                right,
            } => {
                let Value::Array(items) = value else {
                    return ControlFlow::Continue(());
                };
                let holds = |item: &&Value| operator.holds(left.of(item), right.of(item));
                self.each(items.iter().filter(holds), at, found)
            }
        }
    }

    fn each(
        &mut self,
        values: impl Iterator<Item = &'a Value>,
        at: usize,
        found: &mut dyn FnMut(&'a Value) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        for value in values {
            self.walk(value, at + 1, found)?;
        }
        ControlFlow::Continue(())
    }

    /// Visits the value and all its descendants.
    fn descend(
        &mut self,
        value: &'a Value,
        at: usize,
        found: &mut dyn FnMut(&'a Value) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.walk(value, at + 1, found)?;
        for child in children(value) {
            if self.descends && !self.tried.insert((at, std::ptr::from_ref(child))) {
                continue;
            }
            self.descend(child, at, found)?;
        }
        ControlFlow::Continue(())
    }
}

impl Operand {
    fn parse(text: &str, nesting: usize) -> Option<Self> {
        let text = text.trim();
        if text.starts_with(['@', '$']) {
            return JsonPath::nested(text, nesting).map(Self::Path);
        }
        if let Some(quoted) = unquoted(text) {
            return Some(Self::Literal(quoted.into()));
        }
        serde_json::from_str(text).ok().map(Self::Literal)
    }

    fn of<'a>(&'a self, item: &'a Value) -> Option<&'a Value> {
        match self {
            Self::Path(path) => path.first(item),
            Self::Literal(value) => Some(value),
        }
    }
}

impl Operator {
    fn holds(self, left: Option<&Value>, right: Option<&Value>) -> bool {
        let Some(left) = left else {
            return false;
        };
        if self == Self::Exists {
            return true;
        }
        let Some(right) = right else {
            return false;
        };
        let order = match (left, right) {
            (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
            (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
            (left, right) => left
                .as_f64()
                .zip(right.as_f64())
                .and_then(|(left, right)| left.partial_cmp(&right)),
        };
        // Values that cannot be compared do not match, with any operator.
        order.is_some_and(|order| match self {
            Self::Exists => true,
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
        })
    }
}

/// Parses the name of a field, up to the next step; a backslash escapes the next character.
fn field<'a>(text: &'a str, steps: &mut Vec<Step>) -> Option<&'a str> {
    let mut name = String::new();
    let mut characters = text.char_indices();
    let mut end = text.len();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => name.push(characters.next()?.1),
            '.' | '[' => {
                end = at;
                break;
            }
            _ => name.push(character),
        }
    }
    match name.as_str() {
        "" => return None,
        "*" => steps.push(Step::All),
        _ => steps.push(Step::Field(name)),
    }
    Some(&text[end..])
}

/// Returns the offset of the bracket that closes the one at the start of `text`.
fn closing(text: &str) -> Option<usize> {
    let (mut depth, mut quote) = (0, None);
    for (at, character) in text.char_indices() {
        match (quote, character) {
            (Some(open), _) if open == character => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(character),
            (None, '[') => depth += 1,
            (None, ']') => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            (None, _) => {}
        }
    }
    None
}

fn bracketed(text: &str, nesting: usize) -> Option<Step> {
    if text == "*" {
        return Some(Step::All);
    }
    if let Some(filter) = text.strip_prefix("?(").and_then(|text| text.strip_suffix(')')) {
        return filter_of(filter, nesting.checked_sub(1)?);
    }
    if let Some(name) = unquoted(text) {
        return Some(Step::Field(name.to_owned()));
    }
    if text.contains(',') {
        let nesting = nesting.checked_sub(1)?;
        let paths = text.split(',').map(|part| {
            let step = bracketed(part.trim(), nesting)?;
            Some(JsonPath { steps: vec![step] })
        });
        return paths.collect::<Option<Vec<_>>>().map(Step::Union);
    }
    let number = |text: &str| match text.trim() {
        "" => Some(None),
        text => text.parse::<i64>().ok().map(Some),
    };
    match text.split(':').collect::<Vec<_>>().as_slice() {
        [index] => {
            let index = number(index)??;
            Some(Step::Slice {
                start: Some(index),
                end: (index != -1).then_some(index + 1),
                stride: 1,
            })
        }
        [start, end] => Some(Step::Slice {
            start: number(start)?,
            end: number(end)?,
            stride: 1,
        }),
        [start, end, stride] => Some(Step::Slice {
            start: number(start)?,
            end: number(end)?,
            stride: usize::try_from(number(stride)?.unwrap_or(1))
                .ok()
                .filter(|stride| *stride > 0)?,
        }),
        _ => None,
    }
}

fn filter_of(text: &str, nesting: usize) -> Option<Step> {
    const OPERATORS: [(&str, Operator); 6] = [
        ("==", Operator::Equal),
        ("!=", Operator::NotEqual),
        ("<=", Operator::LessOrEqual),
        (">=", Operator::GreaterOrEqual),
        ("<", Operator::Less),
        (">", Operator::Greater),
    ];
    for (sign, operator) in OPERATORS {
        if let Some((left, right)) = text.split_once(sign) {
            return Some(Step::Filter {
                left: Operand::parse(left, nesting)?,
                operator,
                right: Operand::parse(right, nesting)?,
            });
        }
    }
    Some(Step::Filter {
        left: Operand::parse(text, nesting)?,
        operator: Operator::Exists,
        right: Operand::Literal(Value::Null),
    })
}

fn unquoted(text: &str) -> Option<&str> {
    ['\'', '"'].into_iter().find_map(|quote| {
        let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
        (!inner.contains(quote)).then_some(inner)
    })
}

fn children(value: &Value) -> impl Iterator<Item = &Value> {
    let (fields, items) = match value {
        Value::Object(fields) => (Some(fields.values()), None),
        Value::Array(items) => (None, Some(items.iter())),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => (None, None),
    };
    let fields = fields.into_iter().flatten();
    fields.chain(items.into_iter().flatten())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::field(".spec.size", json!([3]))]
    #[case::no_dot("spec.size", json!([3]))]
    #[case::missing(".spec.none.size", json!([]))]
    #[case::escaped_dot(r".metadata.labels.example\.com/a", json!(["x"]))]
    #[case::quoted(".metadata.labels['example.com/a']", json!(["x"]))]
    #[case::index(".list[1]", json!([2]))]
    #[case::last(".list[-1]", json!([3]))]
    #[case::beyond(".list[7]", json!([]))]
    #[case::slice(".list[0:2]", json!([1, 2]))]
    #[case::stride(".list[0:3:2]", json!([1, 3]))]
    #[case::union(".list[0,2]", json!([1, 3]))]
    #[case::all(".list[*]", json!([1, 2, 3]))]
    #[case::filter(r#".status.conditions[?(@.type=="Ready")].status"#, json!(["True"]))]
    #[case::filter_spaced(".status.conditions[?(@.type == 'Known')].status", json!(["False"]))]
    #[case::filter_number(".status.conditions[?(@.n>1)].type", json!(["Known"]))]
    #[case::filter_exists(".status.conditions[?(@.n)].type", json!(["Known"]))]
    #[case::descent("..type", json!(["Ready", "Known"]))]
    fn a_path_finds_values(#[case] path: &str, #[case] expected: Value) {
        let object = json!({
            "metadata": { "labels": { "example.com/a": "x" } },
            "spec": { "size": 3 },
            "list": [1, 2, 3],
            "status": { "conditions": [
                { "type": "Ready", "status": "True" },
                { "type": "Known", "status": "False", "n": 2 },
            ] },
        });
        let path = JsonPath::parse(path).expect("a path");
        assert_eq!(json!(path.find(&object)), expected);
    }

    #[rstest]
    #[case("[")]
    #[case(".a[x]")]
    #[case(".a[?(b)]")]
    #[case(".a\\")]
    fn invalid_paths_are_rejected(#[case] text: &str) {
        assert_eq!(JsonPath::parse(text), None);
    }

    #[test]
    fn deeply_nested_paths_are_invalid() {
        assert_eq!(JsonPath::parse(&format!(".a{}", "[?(@".repeat(10_000))), None);
        let closed = format!(".a{}{}", "[?(@".repeat(5), ")]".repeat(5));
        assert_eq!(JsonPath::parse(&closed), None);
        assert_eq!(JsonPath::parse(&".a".repeat(STEPS_MAX + 1)), None);
        assert!(JsonPath::parse(&".a".repeat(STEPS_MAX)).is_some());
    }

    /// Without the set of tried values, the ways through ten descents multiply.
    #[test]
    fn descents_try_each_value_once() {
        let deep = (0..60).fold(json!({}), |below, _| json!({ "a": below, "b": 1 }));
        let path = JsonPath::parse(&format!("{}.none", "..*".repeat(10))).expect("a path");
        assert_eq!(path.first(&deep), None);
    }
}
