//! An object as a real server writes it after it has read it into its struct: fields in order, unknown ones gone, empty
//! ones left out or there, as the struct says; and Go's words for what does not fit.
//!
//! Source: Go `encoding/json` and sigs.k8s.io/json; apimachinery `api/resource/quantity.go`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::{Field, Shape, Struct, Type, of, types};
use crate::api::go_text;
use crate::model::catalog::Kind;
use crate::scenario::Version;

/// The object in the form of its struct; `None` for a custom resource, which stays as it is.
///
/// # Errors
/// Go's words for the first value that does not fit: `json: cannot unmarshal string into Go struct field …`.
pub(crate) fn conform(kind: &Kind, object: &Value, version: Version) -> Result<Option<Value>, String> {
    of(kind)
        .map(|known| Reader::of(known, version, Words::Json).object(object))
        .transpose()
}

/// Does the object fit its kind? A real server makes the outcome of a strategic merge patch an object without a detour
/// over text, and has other words for what does not fit.
///
/// # Errors
/// Those words: `cannot convert int64 to string`.
pub(crate) fn restorable(kind: &Kind, object: &Value) -> Result<(), String> {
    match of(kind) {
        Some(known) => Reader::of(known, Version::default(), Words::Unstructured)
            .object(object)
            .map(drop),
        None => Ok(()),
    }
}

/// Is this text a quantity?
fn is_quantity(text: &str) -> bool {
    let rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    let digits = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let number = &rest[..rest.len() - digits.len()];
    number.chars().any(|c| c.is_ascii_digit())
        && number.matches('.').count() <= 1
        && (SUFFIXES.contains(&digits) || is_exponent(digits))
}

const SUFFIXES: [&str; 17] = [
    "", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "K",
];

fn is_exponent(text: &str) -> bool {
    let Some(digits) = text.strip_prefix(['e', 'E']) else {
        return false;
    };
    let digits = digits.strip_prefix(['+', '-']).unwrap_or(digits);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Where the reader is, for its words.
struct Reader {
    version: Version,
    /// The struct whose field is read.
    holder: &'static Struct,
    /// The names of the fields down to it.
    path: Vec<&'static str>,
    words: Words,
}

/// Whose words are used for what does not fit.
#[derive(Clone, Copy)]
enum Words {
    /// `encoding/json`.
    Json,
    /// apimachinery `runtime/converter.go`.
    Unstructured,
}

impl Reader {
    fn of(known: &'static Struct, version: Version, words: Words) -> Self {
        Self {
            version,
            holder: known,
            path: Vec::new(),
            words,
        }
    }

    fn object(&mut self, object: &Value) -> Result<Value, String> {
        match object {
            Value::Object(fields) => self.fields(self.holder, fields).map(Value::Object),
            other
            @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
                Ok(other.clone())
            }
        }
    }

    fn fields(
        &mut self,
        known: &'static Struct,
        fields: &Map<String, Value>,
    ) -> Result<Map<String, Value>, String> {
        let holder = std::mem::replace(&mut self.holder, known);
        let mut out = Map::with_capacity(fields.len());
        for field in &known.fields {
            self.path.push(field.name);
            let value = match fields.get(field.name) {
                Some(value) => self.value(&field.holds, value)?,
                None => self.zero(&field.holds),
            };
            self.path.pop();
            if !self.is_left_out(field, &value) {
                out.insert(field.name.to_owned(), value);
            }
        }
        self.holder = holder;
        Ok(out)
    }

    fn value(&mut self, of: &Type, value: &Value) -> Result<Value, String> {
        match (&of.shape, value) {
            (Shape::Any, value) => Ok(value.clone()),
            (_, Value::Null) => Ok(self.zero(of)),
            (Shape::Pointer(target), value) => self.value(target, value),
            (Shape::Text, value @ Value::String(_))
            | (Shape::Duration, value @ Value::String(_))
            | (Shape::Bool, value @ Value::Bool(_))
            | (Shape::IntOrString, value @ Value::String(_))
            | (Shape::Float, value @ Value::Number(_)) => Ok(value.clone()),
            (Shape::Int32 | Shape::IntOrString, value) if fits::<i32>(value) => Ok(value.clone()),
            (Shape::Int64, value) if fits::<i64>(value) => Ok(value.clone()),
            (Shape::Time | Shape::MicroTime, Value::String(text)) => time(text),
            (Shape::Bytes, Value::String(text)) => bytes(text),
            (Shape::Quantity, value) => quantity(value),
            (Shape::Struct(index), Value::Object(fields)) => {
                Ok(Value::Object(self.fields(&types().structs[*index], fields)?))
            }
            (Shape::List(items), Value::Array(values)) => {
                let values: Result<_, _> = values.iter().map(|value| self.value(items, value)).collect();
                Ok(Value::Array(values?))
            }
            (Shape::Map(values), Value::Object(entries)) => {
                let mut out = Map::with_capacity(entries.len());
                for (key, value) in entries {
                    out.insert(key.clone(), self.value(values, value)?);
                }
                // Go writes maps sorted.
                out.sort_keys();
                Ok(Value::Object(out))
            }
            (_, value) => Err(self.misfit(of, value)),
        }
    }

    fn misfit(&self, of: &Type, value: &Value) -> String {
        match self.words {
            Words::Json => self.json_misfit(of, value),
            Words::Unstructured => unstructured_misfit(of, value),
        }
    }

    fn json_misfit(&self, of: &Type, value: &Value) -> String {
        // A number that is one, but not of this type, is shown.
        let shown = match (&of.shape, value) {
            (Shape::Int32 | Shape::Int64 | Shape::IntOrString, Value::Number(number)) => format!(" {number}"),
            (_, _) => String::new(),
        };
        let what = format!("{}{shown}", go_text::json_kind(value));
        format!(
            "json: cannot unmarshal {what} into Go struct field {}.{} of type {}",
            self.holder.bare(),
            self.path.join("."),
            of.go
        )
    }

    /// What Go has where nothing is said.
    fn zero(&self, of: &Type) -> Value {
        match &of.shape {
            Shape::Text => "".into(),
            Shape::Bool => false.into(),
            Shape::Int32 | Shape::Int64 | Shape::Float | Shape::IntOrString => 0.into(),
            Shape::Quantity => "0".into(),
            Shape::Duration => "0s".into(),
            Shape::Bytes
            | Shape::Time
            | Shape::MicroTime
            | Shape::Any
            | Shape::Pointer(_)
            | Shape::List(_)
            | Shape::Map(_) => Value::Null,
            Shape::Struct(index) => {
                let mut out = Map::new();
                for field in &types().structs[*index].fields {
                    let value = self.zero(&field.holds);
                    if !self.is_left_out(field, &value) {
                        out.insert(field.name.to_owned(), value);
                    }
                }
                Value::Object(out)
            }
        }
    }

    fn is_left_out(&self, field: &Field, value: &Value) -> bool {
        let empty = match (&field.holds.shape, value) {
            (Shape::Pointer(_) | Shape::List(_) | Shape::Map(_) | Shape::Bytes | Shape::Any, Value::Null) => {
                true
            }
            (Shape::List(_), Value::Array(items)) => items.is_empty(),
            (Shape::Map(_), Value::Object(entries)) => entries.is_empty(),
            (Shape::Text | Shape::Bytes, Value::String(text)) => text.is_empty(),
            (Shape::Bool, value) => *value == false,
            (Shape::Int32 | Shape::Int64, value) => *value == 0,
            (Shape::Float, value) => value.as_f64() == Some(0.0),
            (_, _) => false,
        };
        let zero = field.omit_zero && self.version != Version::V1_33 && value.is_null();
        field.omit_empty && empty || zero
    }
}

fn unstructured_misfit(of: &Type, value: &Value) -> String {
    let what = match value {
        Value::Null => "interface",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    };
    match &of.shape {
        Shape::List(_) | Shape::Bytes => format!("cannot restore slice from {what}"),
        Shape::Map(_) => format!("cannot restore map from {what}"),
        Shape::Struct(_) => format!("cannot restore struct from: {what}"),
        // Numbers and flags are converted among themselves, and text to neither.
        Shape::Int32 | Shape::Int64 | Shape::Float | Shape::Bool if value.is_string() => {
            format!("unrecognized type: {}", of.go)
        }
        Shape::Text
        | Shape::Bool
        | Shape::Int32
        | Shape::Int64
        | Shape::Float
        | Shape::Time
        | Shape::MicroTime
        | Shape::Duration
        | Shape::Quantity
        | Shape::IntOrString
        | Shape::Any
        | Shape::Pointer(_) => format!("cannot convert {what} to {}", of.go),
    }
}

fn fits<T: TryFrom<i64>>(value: &Value) -> bool {
    value.as_i64().is_some_and(|number| T::try_from(number).is_ok())
}

fn bytes(text: &str) -> Result<Value, String> {
    // Line breaks are passed over.
    let compact: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    match STANDARD.decode(&compact) {
        Ok(_) if compact.len() == text.len() => Ok(text.into()),
        Ok(_) => Ok(compact.into()),
        Err(_) => Err(format!(
            "illegal base64 data at input byte {}",
            illegal_byte(&compact)
        )),
    }
}

/// Where Go finds fault with what is no base64: at the first foreign character, or where the last group begins.
fn illegal_byte(text: &str) -> usize {
    let foreign = |byte: u8| !(byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='));
    let whole = text.trim_end_matches('=').len() / 4 * 4;
    text.bytes().position(foreign).unwrap_or(whole)
}

/// RFC 3339, as far as a typing error would break it.
fn time(text: &str) -> Result<Value, String> {
    let bytes = text.as_bytes();
    let digits = |from: usize, to: usize| {
        bytes
            .get(from..to)
            .is_some_and(|part| part.iter().all(u8::is_ascii_digit))
    };
    let layout = "2006-01-02T15:04:05Z07:00";
    let cannot = |at: usize, element: &str| {
        let rest = text.get(at..).unwrap_or_default();
        format!("parsing time \"{text}\" as \"{layout}\": cannot parse \"{rest}\" as \"{element}\"")
    };
    for (from, to, element) in [
        (0, 4, "2006"),
        (4, 5, "-"),
        (5, 7, "01"),
        (7, 8, "-"),
        (8, 10, "02"),
        (10, 11, "T"),
        (11, 13, "15"),
        (13, 14, ":"),
        (14, 16, "04"),
        (16, 17, ":"),
        (17, 19, "05"),
    ] {
        let found = if element.len() == 1 {
            bytes.get(from..to) == Some(element.as_bytes())
        } else {
            digits(from, to)
        };
        if !found {
            return Err(cannot(from, element));
        }
    }
    let zone = text[19..].trim_start_matches(|c: char| c == '.' || c.is_ascii_digit());
    if zone == "Z" || zone.len() == 6 && zone.starts_with(['+', '-']) {
        Ok(text.into())
    } else {
        let at = text.len() - zone.len();
        Err(cannot(at, "Z07:00"))
    }
}

/// A quantity as the server writes it: a number as text, otherwise as it came.
fn quantity(value: &Value) -> Result<Value, String> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => String::new(),
    };
    if is_quantity(&text) {
        Ok(canonical_quantity(&text).into())
    } else {
        Err(
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
                .to_owned(),
        )
    }
}

/// How much a quantity is, for comparing; 0 where there is none.
pub(crate) fn amount(text: &str) -> f64 {
    let (number, suffix) = text.split_at(text.find(char::is_alphabetic).unwrap_or(text.len()));
    let number: f64 = number.parse().unwrap_or_default();
    let thousands = |base: f64, letters: &str| {
        let power = suffix.chars().next().and_then(|letter| letters.find(letter));
        power.map(|power| base.powi(i32::try_from(power).unwrap_or_default() + 1))
    };
    let binary = suffix.ends_with('i');
    let unit = match suffix {
        "" => Some(1.0),
        "n" => Some(1e-9),
        "u" => Some(1e-6),
        "m" => Some(1e-3),
        _ if is_exponent(suffix) => return text.parse().unwrap_or_default(),
        _ if binary => thousands(1024.0, "KMGTPE"),
        _ => thousands(1000.0, "kMGTPE"),
    };
    number * unit.unwrap_or_default()
}

/// The largest suffix that leaves a whole number, as `Quantity.CanonicalizeBytes` has it.
fn canonical_quantity(text: &str) -> String {
    let digits_end = text
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '+' | '-')))
        .unwrap_or(text.len());
    let (number, suffix) = text.split_at(digits_end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let Ok(mut mantissa) = format!("{whole}{fraction}").parse::<i128>() else {
        return text.to_owned();
    };
    let mut exponent = -i32::try_from(fraction.len()).unwrap_or(0);
    if let Some(power) = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]
        .iter()
        .position(|known| *known == suffix)
    {
        return binary_quantity(text, mantissa, fraction, power + 1);
    }
    exponent += match suffix {
        "n" => -9,
        "u" => -6,
        "m" => -3,
        "k" => 3,
        "M" => 6,
        "G" => 9,
        "T" => 12,
        "P" => 15,
        "E" => 18,
        "" => 0,
        // Written with an exponent, it stays so.
        _ => return text.to_owned(),
    };
    if mantissa == 0 {
        return "0".to_owned();
    }
    // Nothing is finer than nano; what is, is rounded up.
    while exponent < -9 {
        mantissa = mantissa / 10 + i128::from(mantissa % 10 > 0);
        exponent += 1;
    }
    while mantissa % 10 == 0 {
        mantissa /= 10;
        exponent += 1;
    }
    while exponent.rem_euclid(3) != 0 {
        mantissa *= 10;
        exponent -= 1;
    }
    while exponent > 18 {
        mantissa *= 1000;
        exponent -= 3;
    }
    let suffix = match exponent {
        -9 => "n",
        -6 => "u",
        -3 => "m",
        3 => "k",
        6 => "M",
        9 => "G",
        12 => "T",
        15 => "P",
        18 => "E",
        _ => "",
    };
    format!("{mantissa}{suffix}")
}

fn binary_quantity(text: &str, mantissa: i128, fraction: &str, power: usize) -> String {
    let power = u32::try_from(power).unwrap_or(0);
    let scale = 10_i128.pow(u32::try_from(fraction.len().min(18)).unwrap_or(0));
    let Some(bytes) = mantissa.checked_mul(1024_i128.pow(power)) else {
        return text.to_owned();
    };
    if bytes % scale != 0 {
        return text.to_owned();
    }
    let mut bytes = bytes / scale;
    if bytes == 0 {
        return "0".to_owned();
    }
    let mut power = 0;
    while bytes % 1024 == 0 && power < 6 {
        bytes /= 1024;
        power += 1;
    }
    // Small numbers without a binary factor are written as decimal ones.
    format!("{bytes}{}", ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"][power])
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::model::catalog::Catalog;

    fn deployment(spec: &Value) -> Result<Value, String> {
        let kind = Catalog::builtin(Version::V1_36)
            .find("apps", "deployments")
            .unwrap();
        conform(kind, &json!({ "metadata": {}, "spec": spec }), Version::V1_36).map(Option::unwrap)
    }

    #[rstest]
    #[case(json!({"replicas": "x"}), "string into Go struct field DeploymentSpec.spec.replicas of type int32")]
    #[case(json!({"replicas": 1.5}), "number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32")]
    #[case(json!({"replicas": 99_999_999_999_i64}), "number 99999999999 into Go struct field DeploymentSpec.spec.replicas of type int32")]
    #[case(json!({"paused": "yes"}), "string into Go struct field DeploymentSpec.spec.paused of type bool")]
    #[case(json!({"selector": "a"}), "string into Go struct field DeploymentSpec.spec.selector of type v1.LabelSelector")]
    #[case(json!({"strategy": {"rollingUpdate": {"maxSurge": true}}}), "bool into Go struct field RollingUpdateDeployment.spec.strategy.rollingUpdate.maxSurge of type int32")]
    #[case(json!({"template": {"spec": {"containers": {"name": "x"}}}}), "object into Go struct field PodSpec.spec.template.spec.containers of type []v1.Container")]
    #[case(json!({"template": {"spec": {"containers": ["a"]}}}), "string into Go struct field PodSpec.spec.template.spec.containers of type v1.Container")]
    #[case(json!({"template": {"spec": {"containers": [{"name": 1}]}}}), "number into Go struct field Container.spec.template.spec.containers.name of type string")]
    #[case(json!({"template": {"spec": {"containers": [{"imagePullPolicy": 1}]}}}), "number into Go struct field Container.spec.template.spec.containers.imagePullPolicy of type v1.PullPolicy")]
    #[case(json!({"template": {"spec": {"nodeSelector": {"a": 1}}}}), "number into Go struct field PodSpec.spec.template.spec.nodeSelector of type string")]
    #[case(json!({"template": {"spec": {"nodeSelector": ["a"]}}}), "array into Go struct field PodSpec.spec.template.spec.nodeSelector of type map[string]string")]
    #[case(json!({"template": {"spec": {"containers": [{"resources": {"limits": "x"}}]}}}), "string into Go struct field ResourceRequirements.spec.template.spec.containers.resources.limits of type v1.ResourceList")]
    fn what_does_not_fit_is_said_as_go_says_it(#[case] spec: Value, #[case] words: &str) {
        assert_eq!(
            deployment(&spec).unwrap_err(),
            format!("json: cannot unmarshal {words}")
        );
    }

    #[test]
    fn fields_come_in_the_order_of_the_struct_and_empty_ones_as_it_says() {
        let spec = json!({"template": {"spec": {"restartPolicy": "", "containers": [{"image": "i", "name": "c", "env": []}]}}, "replicas": 0});
        let object = deployment(&spec).unwrap();
        assert_eq!(
            object.to_string(),
            r#"{"metadata":{},"spec":{"replicas":0,"selector":null,"template":{"metadata":{},"spec":{"containers":[{"name":"c","image":"i","resources":{}}]}},"strategy":{}},"status":{}}"#
        );
    }

    #[rstest]
    #[case("1000m", "1")]
    #[case("0.5", "500m")]
    #[case("1500m", "1500m")]
    #[case("1024Ki", "1Mi")]
    #[case("1.5Gi", "1536Mi")]
    #[case("100Mi", "100Mi")]
    #[case("1000k", "1M")]
    #[case("0", "0")]
    #[case("1e3", "1e3")]
    #[case("10", "10")]
    fn quantities_have_one_form(#[case] sent: &str, #[case] kept: &str) {
        assert_eq!(quantity(&sent.into()), Ok(kept.into()));
    }

    #[rstest]
    #[case("not base64", 3)]
    #[case("abc", 0)]
    fn base64_is_blamed_where_go_blames_it(#[case] text: &str, #[case] at: usize) {
        assert_eq!(
            bytes(text),
            Err(format!("illegal base64 data at input byte {at}"))
        );
    }
}
