//! The JSONPath of printer columns: fields, indices, slices, unions, wildcards, descents and filters.
//!
//! It must not know what the values are printed as.
//!
//! Source: client-go `util/jsonpath`, as `additionalPrinterColumns` may use it ("JSONPath support" in the kubectl
//! reference).

use serde_json::Value;

/// A path, read.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct JsonPath {
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

impl JsonPath {
    /// Reads a path; `None` for what is none.
    pub(super) fn parse(text: &str) -> Option<Self> {
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
                steps.push(bracketed(rest[1..end].trim())?);
                rest = &rest[end + 1..];
            } else {
                rest = field(rest, &mut steps)?;
            }
        }
        Some(Self { steps })
    }

    /// All values the path leads to; none where a key is missing.
    pub(super) fn find<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        self.steps.iter().fold(vec![value], |found, step| {
            found.into_iter().flat_map(|value| step.of(value)).collect()
        })
    }
}

impl Step {
    fn of<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        match self {
            Self::Field(name) => value.get(name).into_iter().collect(),
            Self::All => children(value),
            Self::Descent => descendants(value),
            Self::Union(paths) => paths.iter().flat_map(|path| path.find(value)).collect(),
            Self::Slice { start, end, stride } => {
                let Value::Array(items) = value else {
                    return Vec::new();
                };
                let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
                let place = |index: i64| if index < 0 { index + length } else { index };
                let first = usize::try_from(place(start.unwrap_or(0))).unwrap_or(0);
                let last = usize::try_from(place(end.unwrap_or(length)).min(length)).unwrap_or(0);
                let range = items.get(first..last.max(first)).unwrap_or_default();
                range.iter().step_by(*stride).collect()
            }
            Self::Filter {
                left,
                operator,
                right,
            } => {
                let Value::Array(items) = value else {
                    return Vec::new();
                };
                let holds = |item: &&Value| operator.holds(left.of(item), right.of(item));
                items.iter().filter(holds).collect()
            }
        }
    }
}

impl Operand {
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if text.starts_with(['@', '$']) {
            return JsonPath::parse(text).map(Self::Path);
        }
        if let Some(quoted) = unquoted(text) {
            return Some(Self::Literal(quoted.into()));
        }
        serde_json::from_str(text).ok().map(Self::Literal)
    }

    fn of<'a>(&'a self, item: &'a Value) -> Option<&'a Value> {
        match self {
            Self::Path(path) => path.find(item).into_iter().next(),
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
        // What cannot be compared does not match, whatever is asked.
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

/// A field's name, up to the next step; a backslash takes the meaning from what follows.
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

/// Where the bracket that opens `text` is closed.
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

fn bracketed(text: &str) -> Option<Step> {
    if text == "*" {
        return Some(Step::All);
    }
    if let Some(filter) = text.strip_prefix("?(").and_then(|text| text.strip_suffix(')')) {
        return filter_of(filter);
    }
    if let Some(name) = unquoted(text) {
        return Some(Step::Field(name.to_owned()));
    }
    if text.contains(',') {
        let paths = text.split(',').map(|part| {
            let step = bracketed(part.trim())?;
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

fn filter_of(text: &str) -> Option<Step> {
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
                left: Operand::parse(left)?,
                operator,
                right: Operand::parse(right)?,
            });
        }
    }
    Some(Step::Filter {
        left: Operand::parse(text)?,
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

fn children(value: &Value) -> Vec<&Value> {
    match value {
        Value::Object(fields) => fields.values().collect(),
        Value::Array(items) => items.iter().collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

fn descendants(value: &Value) -> Vec<&Value> {
    let below = children(value).into_iter().flat_map(descendants);
    std::iter::once(value).chain(below).collect()
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
    fn what_is_no_path_is_none(#[case] text: &str) {
        assert_eq!(JsonPath::parse(text), None);
    }
}
