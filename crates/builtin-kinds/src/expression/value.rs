//! Values of expressions. They share their parts: a clone is a reference, whatever the size. It must not know JSON, schemas or
//! functions.
//!
//! Source: cel-go `common/types`.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "operations name the types that they have; a new type has none"
)]

use std::any::Any;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use jiff::civil::DateTime;

use super::Failure;
use super::meter::Meter;

/// Maximum nesting of lists, maps, objects and optionals: comparison and destruction of a value recurse.
const NESTING_MAX: u16 = 600;

/// A value.
#[derive(Debug, Clone)]
pub enum Value {
    /// `null`.
    Null,
    /// `bool`.
    Bool(bool),
    /// `int`.
    Int(i64),
    /// `uint`.
    Uint(u64),
    /// `double`.
    Double(f64),
    /// `string`.
    Text(Text),
    /// `bytes`.
    Bytes(Arc<[u8]>),
    /// `list`.
    List(Arc<List>),
    /// `map`.
    Map(Arc<Map>),
    /// `google.protobuf.Timestamp`, in UTC.
    Timestamp(DateTime),
    /// `google.protobuf.Duration`, in nanoseconds.
    Duration(i64),
    /// `optional_type`.
    Optional(Option<Arc<Value>>),
    /// A type, by its name.
    Type(Arc<str>),
    /// An object that an expression constructs.
    Struct(Arc<Struct>),
    /// A value of a library of Kubernetes.
    Opaque(Arc<dyn Opaque>),
}

/// A value of a library, known to its functions.
pub trait Opaque: Debug + Send + Sync + Any {
    /// Name of the type.
    fn type_name(&self) -> &str;

    /// Whether it equals a value, which may be of another type.
    fn equals(&self, other: &dyn Opaque) -> bool;

    /// Size as the cost model sees it.
    fn size(&self) -> usize {
        1
    }

    /// The text of the value (`string(value)`); `None`: it has none.
    fn text(&self) -> Option<String> {
        None
    }

    /// Returns the value of a field; `None`: the type has no such field.
    fn field(&self, _name: &str, _meter: &mut Meter) -> Option<Result<Value, Failure>> {
        None
    }

    /// Itself, to be downcast.
    fn as_any(&self) -> &dyn Any;
}

/// A `string` and its length in characters, which is its size.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Text(Arc<TextData>);

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct TextData {
    text: Box<str>,
    chars: usize,
}

impl Text {
    /// Creates a string.
    pub fn new(text: impl Into<Box<str>>) -> Self {
        let text = text.into();
        let chars = match text.is_ascii() {
            true => text.len(),
            false => text.chars().count(),
        };
        Self(Arc::new(TextData { text, chars }))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0.text
    }

    /// Length in characters.
    pub(super) fn chars(&self) -> usize {
        self.0.chars
    }

    /// Whether all characters are ASCII, so that offsets of bytes and characters are the same.
    pub(super) fn is_ascii(&self) -> bool {
        self.0.chars == self.0.text.len()
    }
}

/// A list.
#[derive(Debug)]
pub struct List {
    items: Vec<Value>,
    nesting: u16,
}

impl List {
    /// Creates a list.
    pub fn new(items: Vec<Value>) -> Self {
        let nesting = items.iter().map(Value::nesting).max().unwrap_or_default();
        Self {
            items,
            nesting: nesting.saturating_add(1),
        }
    }

    /// The elements.
    pub fn items(&self) -> &[Value] {
        &self.items
    }

    /// Appends an element.
    pub(super) fn push(&mut self, item: Value) {
        self.nesting = self.nesting.max(item.nesting().saturating_add(1));
        self.items.push(item);
    }
}

/// A map, ordered by its keys: an expression has the same result for the same object every time.
#[derive(Debug, Default)]
pub struct Map {
    entries: BTreeMap<Key, Value>,
    nesting: u16,
}

impl Map {
    /// Creates a map.
    pub fn new(entries: BTreeMap<Key, Value>) -> Self {
        let nesting = entries.values().map(Value::nesting).max().unwrap_or_default();
        Self {
            entries,
            nesting: nesting.saturating_add(1),
        }
    }

    /// The entries.
    pub fn entries(&self) -> &BTreeMap<Key, Value> {
        &self.entries
    }

    /// Inserts an entry; false: the key exists already.
    pub(super) fn insert(&mut self, key: Key, value: Value) -> bool {
        self.nesting = self.nesting.max(value.nesting().saturating_add(1));
        self.entries.insert(key, value).is_none()
    }
}

/// A key of a map. Numbers of different types are the same key if they are equal.
#[derive(Debug, Clone)]
pub enum Key {
    /// `bool`.
    Bool(bool),
    /// `int`.
    Int(i64),
    /// `uint`.
    Uint(u64),
    /// `string`.
    Text(Text),
}

impl Key {
    /// Creates a key of text.
    pub fn text(text: impl Into<Box<str>>) -> Self {
        Self::Text(Text::new(text))
    }

    /// The key that equals a value; `None`: no key does.
    pub(super) fn equal_to(value: &Value) -> Option<Self> {
        Some(match value {
            Value::Bool(truth) => Self::Bool(*truth),
            Value::Int(number) => Self::Int(*number),
            Value::Uint(number) => Self::Uint(*number),
            Value::Double(number) => match (lossless_int(*number), lossless_uint(*number)) {
                (Some(number), _) => Self::Int(number),
                (None, Some(number)) => Self::Uint(number),
                (None, None) => return None,
            },
            Value::Text(text) => Self::Text(text.clone()),
            _ => return None,
        })
    }

    /// Charges the work of finding it.
    ///
    /// # Errors
    /// The limit is exceeded.
    pub(super) fn charge(&self, meter: &mut Meter) -> Result<(), Failure> {
        match self {
            Self::Text(text) => meter.bytes(text.as_str().len()),
            Self::Bool(_) | Self::Int(_) | Self::Uint(_) => Ok(()),
        }
    }

    /// The key as a value.
    pub(super) fn value(&self) -> Value {
        match self {
            Self::Bool(truth) => Value::Bool(*truth),
            Self::Int(number) => Value::Int(*number),
            Self::Uint(number) => Value::Uint(*number),
            Self::Text(text) => Value::Text(text.clone()),
        }
    }

    /// The key in messages.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Bool(truth) => truth.to_string(),
            Self::Int(number) => number.to_string(),
            Self::Uint(number) => number.to_string(),
            Self::Text(text) => text.as_str().to_owned(),
        }
    }

    /// Rank of the type and the number in it.
    fn rank(&self) -> (u8, i128) {
        match self {
            Self::Bool(truth) => (0, i128::from(*truth)),
            Self::Int(number) => (1, i128::from(*number)),
            Self::Uint(number) => (1, i128::from(*number)),
            Self::Text(_) => (2, 0),
        }
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Text(one), Self::Text(other)) => one.as_str().cmp(other.as_str()),
            (one, other) => one.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Key {}

/// An object that an expression constructs: the name of its type and its fields, in the order of the expression.
#[derive(Debug)]
pub struct Struct {
    name: Arc<str>,
    fields: Vec<(Arc<str>, Value)>,
    nesting: u16,
}

impl Struct {
    pub(super) fn new(name: Arc<str>, fields: Vec<(Arc<str>, Value)>) -> Self {
        let nesting = fields.iter().map(|(_, value)| value.nesting()).max();
        Self {
            name,
            fields,
            nesting: nesting.unwrap_or_default().saturating_add(1),
        }
    }

    /// Name of the type.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The fields.
    pub fn fields(&self) -> &[(Arc<str>, Value)] {
        &self.fields
    }

    /// Returns the value of a field.
    pub(super) fn field(&self, name: &str) -> Option<&Value> {
        let found = self.fields.iter().find(|(known, _)| **known == *name);
        found.map(|(_, value)| value)
    }
}

impl Value {
    /// Creates a `string`.
    pub fn text(text: impl Into<Box<str>>) -> Self {
        Self::Text(Text::new(text))
    }

    /// Creates a `list`.
    pub fn list(items: Vec<Self>) -> Self {
        Self::List(Arc::new(List::new(items)))
    }

    /// Creates a `map` with keys of text.
    pub fn fields(entries: impl IntoIterator<Item = (String, Self)>) -> Self {
        let entries = entries.into_iter().map(|(key, value)| (Key::text(key), value));
        Self::Map(Arc::new(Map::new(entries.collect())))
    }

    /// Creates an `optional`.
    pub fn optional(value: Option<Self>) -> Self {
        Self::Optional(value.map(Arc::new))
    }

    /// Returns the text, if it is a `string`.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text.as_str()),
            _ => None,
        }
    }

    /// Returns the object, if an expression constructed it.
    pub fn constructed(&self) -> Option<&Struct> {
        match self {
            Self::Struct(made) => Some(made),
            _ => None,
        }
    }

    /// Creates a value of a library.
    pub(super) fn opaque(value: impl Opaque) -> Self {
        Self::Opaque(Arc::new(value))
    }

    /// Returns a value of a library, if it is of this type.
    pub(super) fn downcast<T: Opaque>(&self) -> Option<&T> {
        match self {
            Self::Opaque(value) => value.as_any().downcast_ref(),
            _ => None,
        }
    }

    /// Checks the nesting of a value that was created.
    ///
    /// # Errors
    /// It is too deep.
    pub(super) fn within_nesting(self) -> Result<Self, Failure> {
        match self.nesting() > NESTING_MAX {
            true => Err(Failure::Cost),
            false => Ok(self),
        }
    }

    /// Depth of nested values.
    pub(super) fn nesting(&self) -> u16 {
        match self {
            Self::List(list) => list.nesting,
            Self::Map(map) => map.nesting,
            Self::Struct(made) => made.nesting,
            Self::Optional(Some(value)) => value.nesting().saturating_add(1),
            _ => 0,
        }
    }

    /// Size as the cost model sees it: characters, bytes, elements, entries; 1 for all others (`actualSize`).
    pub(super) fn size(&self) -> u64 {
        let size = match self {
            Self::Text(text) => text.chars(),
            Self::Bytes(bytes) => bytes.len(),
            Self::List(list) => list.items.len(),
            Self::Map(map) => map.entries.len(),
            Self::Optional(Some(value)) => return value.size(),
            Self::Opaque(value) => value.size(),
            _ => 1,
        };
        u64::try_from(size).unwrap_or(u64::MAX)
    }

    /// Name of its type.
    pub fn type_name(&self) -> &str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::Text(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Timestamp(_) => "google.protobuf.Timestamp",
            Self::Duration(_) => "google.protobuf.Duration",
            Self::Optional(_) => "optional_type",
            Self::Type(_) => "type",
            Self::Struct(made) => &made.name,
            Self::Opaque(value) => value.type_name(),
        }
    }

    /// Whether it is the zero value of its type (`traits.Zeroer`).
    pub(super) fn is_zero(&self) -> bool {
        match self {
            Self::Null | Self::Optional(None) => true,
            Self::Bool(truth) => !truth,
            Self::Int(number) => *number == 0,
            Self::Uint(number) => *number == 0,
            Self::Double(number) => *number == 0.0,
            Self::Text(text) => text.as_str().is_empty(),
            Self::Bytes(bytes) => bytes.is_empty(),
            Self::List(list) => list.items.is_empty(),
            Self::Map(map) => map.entries.is_empty(),
            Self::Duration(nanoseconds) => *nanoseconds == 0,
            Self::Struct(made) => made.fields.is_empty(),
            Self::Timestamp(_) | Self::Optional(Some(_)) | Self::Type(_) | Self::Opaque(_) => false,
        }
    }

    /// Whether two values are equal. Each comparison of two parts and of a few bytes is one unit of work.
    ///
    /// # Errors
    /// The limit is exceeded.
    pub(super) fn equals(&self, other: &Self, meter: &mut Meter) -> Result<bool, Failure> {
        meter.work(1)?;
        Ok(match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(one), Self::Bool(other)) => one == other,
            (Self::Text(one), Self::Text(other)) => {
                meter.bytes(one.as_str().len().min(other.as_str().len()))?;
                one.as_str() == other.as_str()
            }
            (Self::Bytes(one), Self::Bytes(other)) => {
                meter.bytes(one.len().min(other.len()))?;
                one == other
            }
            (Self::Timestamp(one), Self::Timestamp(other)) => one == other,
            (Self::Duration(one), Self::Duration(other)) => one == other,
            (Self::Type(one), Self::Type(other)) => one == other,
            (Self::List(one), Self::List(other)) => {
                let (one, other) = (one.items(), other.items());
                one.len() == other.len() && all(one.iter().zip(other), meter)?
            }
            (Self::Map(one), Self::Map(other)) => {
                let (one, other) = (one.entries(), other.entries());
                if one.len() != other.len() {
                    return Ok(false);
                }
                for (key, value) in one {
                    key.charge(meter)?;
                    match other.get(key) {
                        Some(with) if value.equals(with, meter)? => {}
                        Some(_) | None => return Ok(false),
                    }
                }
                true
            }
            (Self::Optional(one), Self::Optional(other)) => match (one, other) {
                (Some(one), Some(other)) => one.equals(other, meter)?,
                (one, other) => one.is_none() == other.is_none(),
            },
            (Self::Struct(one), Self::Struct(other)) => {
                if one.name != other.name || one.fields.len() != other.fields.len() {
                    return Ok(false);
                }
                for (name, value) in &one.fields {
                    meter.work(u64::try_from(other.fields.len()).unwrap_or(u64::MAX))?;
                    match other.field(name) {
                        Some(with) if value.equals(with, meter)? => {}
                        Some(_) | None => return Ok(false),
                    }
                }
                true
            }
            (Self::Opaque(one), Self::Opaque(other)) => one.equals(other.as_ref()),
            (one, other) => numbers(one, other).is_some_and(Ordering::is_eq),
        })
    }

    /// Order of two values; `Ok(None)`: one of them is no number.
    ///
    /// # Errors
    /// Values of these types have no order; the limit is exceeded.
    pub(super) fn compare(&self, other: &Self, meter: &mut Meter) -> Result<Option<Ordering>, Failure> {
        Ok(Some(match (self, other) {
            (Self::Bool(one), Self::Bool(other)) => one.cmp(other),
            (Self::Text(one), Self::Text(other)) => {
                meter.bytes(one.as_str().len().min(other.as_str().len()))?;
                one.as_str().cmp(other.as_str())
            }
            (Self::Bytes(one), Self::Bytes(other)) => {
                meter.bytes(one.len().min(other.len()))?;
                one.cmp(other)
            }
            (Self::Timestamp(one), Self::Timestamp(other)) => one.cmp(other),
            (Self::Duration(one), Self::Duration(other)) => one.cmp(other),
            (Self::Double(one), _) if one.is_nan() && other.is_number() => return Ok(None),
            (_, Self::Double(other)) if other.is_nan() && self.is_number() => return Ok(None),
            (one, other) => return numbers(one, other).map(Some).ok_or(Failure::Overload),
        }))
    }

    fn is_number(&self) -> bool {
        matches!(self, Self::Int(_) | Self::Uint(_) | Self::Double(_))
    }
}

fn all<'a>(
    mut pairs: impl Iterator<Item = (&'a Value, &'a Value)>,
    meter: &mut Meter,
) -> Result<bool, Failure> {
    pairs.try_fold(true, |same, (one, other)| Ok(same && one.equals(other, meter)?))
}

/// Order of two numbers of any types; `None`: one of the values is not a number.
fn numbers(one: &Value, other: &Value) -> Option<Ordering> {
    match (one, other) {
        (Value::Int(one), Value::Int(other)) => Some(one.cmp(other)),
        (Value::Uint(one), Value::Uint(other)) => Some(one.cmp(other)),
        (Value::Double(one), Value::Double(other)) => one.partial_cmp(other),
        (Value::Int(one), Value::Uint(other)) => Some(i128::from(*one).cmp(&i128::from(*other))),
        (Value::Uint(one), Value::Int(other)) => Some(i128::from(*one).cmp(&i128::from(*other))),
        (Value::Int(one), Value::Double(other)) => against(i128::from(*one), *other),
        (Value::Uint(one), Value::Double(other)) => against(i128::from(*one), *other),
        (Value::Double(one), Value::Int(other)) => against(i128::from(*other), *one).map(Ordering::reverse),
        (Value::Double(one), Value::Uint(other)) => against(i128::from(*other), *one).map(Ordering::reverse),
        (_, _) => None,
    }
}

/// Order of an integer of 64 bits and a double, exactly.
#[expect(clippy::cast_possible_truncation, reason = "larger ones were decided before")]
fn against(whole: i128, number: f64) -> Option<Ordering> {
    const BEYOND: f64 = 36_893_488_147_419_103_232.0;
    if number.is_nan() {
        return None;
    }
    if number.abs() >= BEYOND {
        return Some(if number > 0.0 {
            Ordering::Less
        } else {
            Ordering::Greater
        });
    }
    let floor = number.floor();
    let order = whole.cmp(&(floor as i128));
    Some(match order {
        Ordering::Equal if number > floor => Ordering::Less,
        order => order,
    })
}

/// The `int` that a double is; `None`: it is no `int`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "the range was checked"
)]
fn lossless_int(number: f64) -> Option<i64> {
    let fits = number.fract() == 0.0 && number >= i64::MIN as f64 && number < i64::MAX as f64;
    fits.then_some(number as i64)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "the range was checked"
)]
fn lossless_uint(number: f64) -> Option<u64> {
    let fits = number.fract() == 0.0 && number >= 0.0 && number < u64::MAX as f64;
    fits.then_some(number as u64)
}
