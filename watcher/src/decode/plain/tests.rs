//! `Plain` accepts what apiservers write, and its results equal those of `serde_json`.

use std::collections::BTreeMap;
use std::fmt::Debug;

use proptest::prelude::*;
use rstest::rstest;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use super::*;

/// A type whose fields use many different `deserialize_*` methods.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Zoo {
    text: String,
    character: char,
    small: u8,
    signed: i64,
    wide: i128,
    single: f32,
    double: f64,
    flag: bool,
    nothing: (),
    maybe: Option<u16>,
    pair: (u8, String),
    phase: Option<Phase>,
    either: Option<Either>,
    list: Vec<Inner>,
    by_number: BTreeMap<u16, bool>,
    by_phase: BTreeMap<Phase, bool>,
    by_name: BTreeMap<Wrapped, Value>,
    raw: Option<Box<RawValue>>,
    inner: Inner,
    value: Value,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
enum Phase {
    Running,
    Waiting { reason: String },
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(untagged)]
enum Either {
    Number(i32),
    Text(String),
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
struct Wrapped(String);

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Inner {
    #[serde(default)]
    a: Option<i32>,
    #[serde(default)]
    b: Vec<f64>,
}

fn reading<T: DeserializeOwned + Debug>(json: &str) -> Option<String> {
    read(json, |values| T::deserialize(values)).map(|value| format!("{value:?}"))
}

fn serdes<T: DeserializeOwned + Debug>(json: &str) -> Option<String> {
    let value = serde_json::from_str::<T>(json).ok()?;
    Some(format!("{value:?}"))
}

/// Asserts that if `Plain` accepts the text, `serde_json` returns the same.
#[track_caller]
fn assert_never_read_differently<T: DeserializeOwned + Debug>(json: &str) {
    if let Some(read) = reading::<T>(json) {
        assert_eq!(Some(read), serdes::<T>(json), "{json}");
    }
}

#[rstest]
#[case::text(r#"{"text":"a \" \\ \/ \b\f\n\r\t \u00e9 \u003c é 漢 longer than sixteen bytes"}"#)]
#[case::character(r#"{"character":"é"}"#)]
#[case::integers(r#"{"small":255,"signed":-123456789012345678}"#)]
#[case::long_integers(r#"{"signed":-9223372036854775808,"wide":170141183460469231731687303715884105727}"#)]
#[case::fractions(r#"{"single":0.1,"double":-1.5e300}"#)]
#[case::whole_fractions(r#"{"single":16777217,"double":-0}"#)]
#[case::literals(r#"{"flag":true,"nothing":null,"maybe":null}"#)]
#[case::some(r#"{"flag":false,"maybe":7,"pair":[1,"x"]}"#)]
#[case::unit_variant(r#"{"phase":"Running"}"#)]
#[case::struct_variant(r#"{"phase": {"Waiting":{"reason":"x"}}}"#)]
#[case::untagged(r#"{"either":"x"}"#)]
#[case::lists(r#"{"list":[{"a":1,"b":[1.5,2]},{"b":[]}, [1,[2]]]}"#)]
#[case::names(r#"{"byPhase":{"Running":true},"byName":{"a\"b":1}}"#)]
#[case::raw(r#"{"raw": {"a" : [1.50]},"small":1}"#)]
#[case::unknown_fields(r#"{"other":{"a":[{}, "x\u0000", 1.5e-7]},"another":"y","small":2}"#)]
#[case::value(r#"{"value":{"a":[null,true,-1,1.5,18446744073709551615,1e400,"x",{}],"b":{}}}"#)]
#[case::blanks(" {\t\"small\" : 1 ,\n\"list\" : [ { } , { \"a\" : 2 } ] }\r\n")]
fn is_read_as_serde_reads_it(#[case] json: &str) {
    assert_never_read_differently::<Zoo>(json);
    assert_never_read_differently::<Value>(json);
    if serdes::<Zoo>(json).is_some() {
        assert!(reading::<Zoo>(json).is_some(), "left to serde_json");
    }
}

#[rstest]
#[case::number_as_a_name(r#"{"byNumber":{"1":true}}"#)]
#[case::surrogates(r#"{"text":"\ud83d\ude00"}"#)]
#[case::control_character("{\"text\":\"a\tb\"}")]
#[case::unknown_escape(r#"{"text":"\x41"}"#)]
#[case::escape_with_a_sign(r#"{"text":"\u+123"}"#)]
#[case::half_of_a_pair(r#"{"text":"\ud83d"}"#)]
#[case::leading_zero(r#"{"small":01}"#)]
#[case::sign_alone(r#"{"signed":-}"#)]
#[case::plus(r#"{"small":+1}"#)]
#[case::point_at_the_end(r#"{"double":1.}"#)]
#[case::too_large(r#"{"small":256}"#)]
#[case::text_for_a_number(r#"{"small":"1"}"#)]
#[case::number_for_a_text(r#"{"text":1}"#)]
#[case::comma_at_the_end(r#"{"small":1,}"#)]
#[case::comma_at_the_end_of_a_list(r#"{"list":[{},]}"#)]
#[case::no_comma(r#"{"small":1 "flag":true}"#)]
#[case::no_comma_in_a_list(r#"{"pair":[1 "x"]}"#)]
#[case::comma_first(r#"{,"small":1}"#)]
#[case::no_colon(r#"{"small" 1}"#)]
#[case::longer_list(r#"{"pair":[1,"x",2]}"#)]
#[case::word(r#"{"flag":tru}"#)]
#[case::longer_word(r#"{"flag":truely}"#)]
#[case::unknown_field_deeper(r#"{"inner":{"c":1}}"#)]
#[case::wrong_in_an_unknown_field(r#"{"other":{"a":01}}"#)]
#[case::twice(r#"{"small":1,"small":2}"#)]
#[case::two("{} {}")]
#[case::torn(r#"{"text":"a"#)]
#[case::torn_escape(r#"{"text":"a\u00"#)]
#[case::nothing("")]
#[case::mark("\u{feff}{}")]
fn falls_back_to_serde(#[case] json: &str) {
    assert_eq!(reading::<Zoo>(json), None);
    let error =
        |result: Result<Zoo, serde_json::Error>| result.map_err(|error| error.to_string()).map(|_| ());
    assert_eq!(error(from_str(json)), error(serde_json::from_str(json)));
}

#[test]
fn deep_nesting_falls_back_to_serde() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert!(reading::<Value>(&nested(usize::from(MAX_DEPTH))).is_some());
    for depth in [usize::from(MAX_DEPTH) + 1, 127, 128, 100_000] {
        assert_eq!(reading::<Value>(&nested(depth)), None, "{depth} levels");
        assert_eq!(
            from_str::<Value>(&nested(depth)).is_ok(),
            depth < 128,
            "{depth} levels"
        );
    }
}

#[test]
fn lists_of_objects_get_a_size_hint() {
    let list = |items: usize| format!("[{}]", vec![r#"{"a":1,"b":[1,2,3]}"#; items].join(","));
    for items in [0, 1, 2, 5, 9] {
        let read = read(&list(items), |values| Vec::<Inner>::deserialize(values)).unwrap();
        assert_eq!((read.len(), read.capacity()), (items, items));
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u8>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[a-z\"\\\\]{0,40}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        let names = prop_oneof![
            any::<String>(),
            "[a-z]{1,20}",
            Just("list".to_owned()),
            Just("value".to_owned())
        ];
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::btree_map(names, inner, 0..5).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

proptest! {
    #[test]
    fn any_json_is_read_as_serde_reads_it(value in any_json()) {
        for json in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
            prop_assert_eq!(reading::<Value>(&json), serdes::<Value>(&json), "{}", json);
            assert_never_read_differently::<Zoo>(&json);
        }
    }

    /// Bytes removed, duplicated, or inserted.
    #[test]
    fn broken_json_is_never_read_differently(
        value in any_json(),
        edits in proptest::collection::vec((any::<proptest::sample::Index>(), r#"[\[\]{}",:\\ 0-9a-u.\-+]{0,2}"#), 1..4),
    ) {
        let mut json: Vec<char> = value.to_string().chars().collect();
        for (place, text) in &edits {
            let place = place.index(json.len() + 1);
            json.splice(place..(place + 1).min(json.len()), text.chars());
        }
        let json: String = json.into_iter().collect();
        assert_never_read_differently::<Value>(&json);
        assert_never_read_differently::<Zoo>(&json);
        assert_never_read_differently::<IgnoredAny>(&json);
    }
}
