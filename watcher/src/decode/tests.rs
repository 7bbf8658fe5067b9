//! Decoded bodies as text: one word per answer.

use k8s_openapi::api::core::v1::ConfigMap;
use proptest::prelude::*;
use rstest::rstest;

use super::*;

fn word(answer: ResponsePart<'_, ConfigMap>) -> String {
    match answer {
        ResponsePart::Changed { change, payload } => {
            let object = payload.metadata;
            let data = payload
                .data
                .unwrap_or_default()
                .into_values()
                .collect::<Vec<_>>()
                .join(",");
            format!(
                "{} {}/{}@{} {data}",
                change.word(),
                object.namespace.unwrap_or_default(),
                object.name.unwrap_or_default(),
                object.resource_version.unwrap_or_default()
            )
            .trim_end()
            .to_owned()
        }
        ResponsePart::Bookmark {
            resource_version,
            initial_events_end,
        } => {
            format!(
                "BOOKMARK {resource_version}{}",
                if initial_events_end { " end" } else { "" }
            )
        }
        ResponsePart::ErrorEvent(status) => format!("ERROR {status}"),
        ResponsePart::Undecodable { object, .. } => format!("undecodable {object}"),
        ResponsePart::Malformed(why) => format!("malformed: {why}"),
        ResponsePart::Item { payload } => format!(
            "item {}@{}",
            payload.metadata.name.unwrap_or_default(),
            payload.metadata.resource_version.unwrap_or_default()
        ),
        ResponsePart::PageEnd(meta) => format!("end {} {}", meta.resource_version, meta.continue_token),
        ResponsePart::Progress
        | ResponsePart::Refusing
        | ResponsePart::Opened
        | ResponsePart::Rejected { .. }
        | ResponsePart::TransportError(_)
        | ResponsePart::Eof => {
            unreachable!("never produced by a decoder")
        }
    }
}

fn decode_chunks<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> (Vec<String>, usize) {
    let (mut decoder, mut kinds, mut words) = (WatchDecoder::new(1 << 20), Kinds::new(), Vec::new());
    for chunk in chunks {
        let chunk = Bytes::copy_from_slice(chunk);
        decoder.push(chunk.clone());
        while decoder.next(&codec(), &mut kinds, |answer| words.push(word(answer))) {}
        assert!(
            chunk.is_empty() || chunk.is_unique(),
            "the connection reads into it again"
        );
    }
    let torn = decoder.finish(&codec(), &mut kinds, |answer| words.push(word(answer)));
    (words, torn)
}

fn decode(body: &str) -> Vec<String> {
    decode_chunks([body.as_bytes()]).0
}

const A: &str = r#"{"type":"ADDED","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"d","uid":"u","resourceVersion":"5"},"data":{"k":"v"}}}"#;
const B: &str = r#"{"object":{"metadata":{"resourceVersion":"6","name":"b"}},"type":"DELETED"}"#;
const A_WORD: &str = "ADDED d/a@5 v";
const B_WORD: &str = "DELETED /b@6";

#[rstest]
#[case::lines(format!("{A}\n{B}\n"))]
#[case::crlf(format!("{A}\r\n{B}\r\n"))]
#[case::blank_lines(format!("\n\n{A}\n \r\n\n{B}\n\n"))]
#[case::no_last_newline(format!("{A}\n{B}"))]
#[case::one_line(format!("{A}{B}\n"))]
#[case::one_line_without_newline(format!("{A} {B}"))]
#[case::spread_over_lines(format!("{}\n{B}\n", A.replace(',', ",\n")))]
#[case::spread_and_last(format!("{A}\n{}", B.replace(',', "\r\n,\r\n")))]
#[case::spread_and_shared(format!("{}{}\n", A.replace(',', ",\n"), B.replace(':', ":\n")))]
fn events_end_where_their_json_ends(#[case] body: String) {
    assert_eq!(decode(&body), [A_WORD, B_WORD]);
}

#[test]
fn an_event_over_several_lines_is_decoded_at_its_closing_brace() {
    let spread = A.replace(',', ",\n");
    let (mut decoder, mut kinds, mut words) = (WatchDecoder::new(1 << 20), Kinds::new(), Vec::new());
    for byte in spread.as_bytes() {
        assert!(words.is_empty());
        let byte = Bytes::copy_from_slice(&[*byte]);
        decoder.push(byte);
        while decoder.next(&codec(), &mut kinds, |answer| words.push(word(answer))) {}
    }
    assert_eq!(words, [A_WORD]);
}

#[rstest]
#[case::newline(r"a\nb", "a\nb")]
#[case::line_separators("a\u{2028}\u{2029}b", "a\u{2028}\u{2029}b")]
#[case::nul(r"a\u0000b", "a\0b")]
#[case::surrogates(r"\ud83d\ude00", "😀")]
#[case::quotes_and_braces(r#"}{\"]["#, r#"}{"]["#)]
fn strings_do_not_break_the_framing(#[case] escaped: &str, #[case] value: &str) {
    let body = A.replace(r#""v""#, &format!("\"{escaped}\""));
    let expected = format!("ADDED d/a@5 {value}");
    assert_eq!(decode(&format!("{body}\n{B}\n")), [expected.as_str(), B_WORD]);
    assert_eq!(
        decode(&format!("{}\n{B}\n", body.replace(",\"object", ",\n\"object"))),
        [expected.as_str(), B_WORD]
    );
}

#[rstest]
#[case::full(r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}"#, "BOOKMARK 9 end")]
#[case::not_true(
    r#"{"metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"false"}}}"#,
    "BOOKMARK 9"
)]
#[case::not_a_string(
    r#"{"metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":true}}}"#,
    "BOOKMARK 9"
)]
#[case::null_annotations(
    r#"{"metadata":{"resourceVersion":"9","annotations":null,"creationTimestamp":null}}"#,
    "BOOKMARK 9"
)]
#[case::null_required_fields(
    r#"{"kind":"Job","metadata":{"resourceVersion":"9"},"spec":{"template":{"spec":{"containers":null}}}}"#,
    "BOOKMARK 9"
)]
#[case::no_version(r#"{"metadata":{}}"#, "BOOKMARK")]
#[case::no_metadata("{}", "BOOKMARK")]
#[case::null("null", "BOOKMARK")]
fn bookmarks_are_read_leniently(#[case] object: &str, #[case] expected: &str) {
    let words = decode(&format!(r#"{{"type":"BOOKMARK","object":{object}}}"#));
    assert_eq!(
        words.iter().map(|word| word.trim_end()).collect::<Vec<_>>(),
        [expected]
    );
}

#[rstest]
#[case::status(
    r#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}"#,
    "ERROR 410 Expired"
)]
#[case::status_without_kind(r#"{"type":"ERROR","object":{"code":500}}"#, "ERROR 500")]
#[case::nothing(r#"{"type":"ERROR","object":{}}"#, "ERROR 0")]
#[case::no_object(r#"{"type":"ERROR"}"#, "ERROR 0: an ERROR event without a Status")]
#[case::a_pod(
    r#"{"type":"ERROR","object":{"kind":"Pod","metadata":{"name":"x"}}}"#,
    "ERROR 0: an ERROR event without a Status"
)]
#[case::bare_status("{\"kind\":\"Status\",\"code\":410}\n", "ERROR 410")]
#[case::bare_pretty_status("{\n  \"kind\": \"Status\",\n  \"code\": 410\n}\n", "ERROR 410")]
#[case::bare_status_without_kind(r#"{"metadata":{},"status":"Failure","code":504}"#, "ERROR 504")]
fn errors_are_recognised_in_every_form(#[case] body: &str, #[case] expected: &str) {
    assert_eq!(decode(body), [expected]);
}

#[rstest]
#[case::unknown_type(
    r#"{"type":"FOO","object":{}}"#,
    r#"malformed: a watch event of unknown type "FOO""#
)]
#[case::null_object(
    r#"{"type":"DELETED","object":null}"#,
    "malformed: a watch event without an object or its metadata"
)]
#[case::no_object(
    r#"{"type":"ADDED"}"#,
    "malformed: a watch event without an object or its metadata"
)]
#[case::no_metadata(
    r#"{"type":"ADDED","object":{"metadata":null}}"#,
    "malformed: a watch event without an object or its metadata"
)]
#[case::garbage("{\"type\": garbage\n", "malformed: it is not JSON")]
#[case::html("<html><body>bad gateway", "malformed: it is not JSON")]
#[case::a_list(r#"{"kind":"PodList","items":[]}"#, "malformed: it is a PodList")]
#[case::anything("{\"secret\":\"x\"}", "malformed: it has neither a type nor a kind")]
#[case::a_table(
    r#"{"type":"ADDED","object":{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{}}}"#,
    "malformed: it is a Table"
)]
#[case::a_status(
    r#"{"type":"ADDED","object":{"kind":"Status","apiVersion":"v1","metadata":{}}}"#,
    "malformed: it is a Status"
)]
fn non_events_are_malformed(#[case] body: &str, #[case] expected: &str) {
    assert_eq!(decode(body), [expected]);
}

#[test]
fn objects_of_another_kind_are_rejected() {
    let service = A.replace("ConfigMap", "Service");
    assert_eq!(
        decode(&format!("{A}\n{service}\n")),
        [
            A_WORD,
            "malformed: a v1 Service where a v1 ConfigMap was expected"
        ]
    );
}

#[test]
fn an_undecodable_object_keeps_its_name() {
    let poison = A.replace(r#"{"k":"v"}"#, r#""s3cr3t""#);
    assert_eq!(
        decode(&format!("{poison}\n{B}\n")),
        ["undecodable ADDED d/a@5 (uid u)", B_WORD]
    );
}

#[test]
fn a_truncated_line_before_other_events_is_detected() {
    // Each cut leaves a line whose JSON would be valid if the next lines continued it.
    for cut in 1..A.len() {
        let body = format!("{}\n{}", &A[..cut], format!("{B}\n").repeat(4));
        let words = decode(&body);
        assert!(
            words.len() == 1 && words[0].starts_with("malformed"),
            "cut at {cut}: {words:?}"
        );
    }
}

#[test]
fn an_oversized_event_is_rejected_before_it_ends() {
    let (mut decoder, mut kinds, mut words) = (WatchDecoder::new(1000), Kinds::new(), Vec::new());
    let mut push = |chunk: String| {
        decoder.push(chunk.into());
        while decoder.next(&codec(), &mut kinds, |answer| words.push(word(answer))) {}
    };
    push(format!("{A}\n{{\"type\":\""));
    for _ in 0..200 {
        push("0123456789".to_owned());
    }
    assert_eq!(words, [A_WORD, "malformed: a watch event longer than 1000 bytes"]);
}

#[test]
fn invalid_utf8_is_malformed_and_a_cut_inside_a_character_is_torn() {
    let text = A.replace(r#""v""#, "\"é\"");
    let middle = text.find('é').unwrap() + 1;
    let (words, torn) = decode_chunks([&text.as_bytes()[..middle]]);
    assert_eq!((words, torn), (vec![], middle));
    let after_another = format!("{A}{text}").into_bytes();
    let (words, torn) = decode_chunks([&after_another[..A.len() + middle]]);
    assert_eq!((words, torn), (vec![A_WORD.to_owned()], middle));
    let mut bad = text.clone().into_bytes();
    bad[middle] = b'x';
    bad.push(b'\n');
    assert_eq!(decode_chunks([&bad[..]]).0, ["malformed: it is not JSON"]);
}

#[test]
fn truncated_at_any_byte_only_complete_events_are_decoded() {
    let body = format!("{A}\n{}\n", A.replace(r#""v""#, "\"é😀\\n\""));
    for end in 0..=body.len() {
        let (words, torn) = decode_chunks([&body.as_bytes()[..end]]);
        let whole = usize::from(end >= A.len()) + usize::from(end >= body.len() - 1);
        assert_eq!(words.len(), whole, "cut at {end}: {words:?}");
        assert!(
            words.iter().all(|word| word.starts_with("ADDED")),
            "cut at {end}: {words:?}"
        );
        let is_between = end == 0 || end == A.len() || end == A.len() + 1 || end >= body.len() - 1;
        assert_eq!(torn == 0, is_between, "cut at {end}");
    }
}

fn list(body: &str) -> Vec<String> {
    list_chunks([body.as_bytes()])
}

fn list_chunks<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
    let (mut decoder, mut kinds, mut words) = (ListDecoder::new(1 << 20), Kinds::new(), Vec::new());
    for chunk in chunks {
        let chunk = Bytes::copy_from_slice(chunk);
        decoder.push(chunk.clone());
        while decoder.next(&codec(), &mut kinds, |answer| words.push(word(answer))) {}
        assert!(
            chunk.is_empty() || chunk.is_unique(),
            "the connection reads into it again"
        );
    }
    decoder.finish(&mut kinds, |answer| words.push(word(answer)));
    words
}

fn codec() -> Codec<ConfigMap> {
    Codec::typed(Prune::nothing())
}

const LIST: &str = r#"{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"10","continue":"t"},"items":ITEMS}"#;

#[rstest]
#[case::items(r#"[{"metadata":{"name":"a","resourceVersion":"5"}}]"#, &["item a@5", "end 10 t"])]
#[case::empty("[]", &["end 10 t"])]
#[case::null("null", &["end 10 t"])]
#[case::poison_keeps_the_others(
    r#"[{"metadata":{"name":"a","resourceVersion":"5"},"data":1},{"metadata":{"name":"b","resourceVersion":"6"}}]"#,
    &["undecodable a@5 (uid )", "item b@6", "end 10 t"]
)]
#[case::another_kind_inside(
    r#"[{"kind":"Secret","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"5"}}]"#,
    &["undecodable a@5 (uid )", "end 10 t"]
)]
#[case::a_null_item("[null]", &["undecodable (no name)@ (uid )", "end 10 t"])]
fn lists_are_decoded_item_by_item(#[case] items: &str, #[case] expected: &[&str]) {
    assert_eq!(list(&LIST.replace("ITEMS", items)), expected);
}

#[rstest]
#[case::no_items(r#"{"kind":"ConfigMapList","metadata":{"resourceVersion":"10"}}"#, "end 10 ")]
#[case::no_version(r#"{"kind":"ConfigMapList","items":[]}"#, "end  ")]
#[case::items_first(
    r#"{"items":[],"kind":"ConfigMapList","metadata":{"resourceVersion":"10"}}"#,
    "end 10 "
)]
#[case::status(r#"{"kind":"Status","code":403}"#, "ERROR 403")]
#[case::a_table(
    r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{},"rows":[]}"#,
    "malformed: it is a Table"
)]
#[case::an_object(
    r#"{"kind":"Pod","metadata":{"resourceVersion":"10"}}"#,
    "malformed: it is a Pod"
)]
#[case::something("{}", "malformed: it has neither a type nor a kind")]
#[case::an_array("[]", "malformed: it has neither a type nor a kind")]
#[case::html("<html>", "malformed: it is not JSON")]
#[case::torn(r#"{"kind":"ConfigMapList","items":["#, "malformed: it is not JSON")]
fn lists_are_distinguished_from_other_bodies(#[case] body: &str, #[case] expected: &str) {
    assert_eq!(list(body), [expected]);
}

fn any_event() -> impl Strategy<Value = String> {
    let object = (any::<String>(), any::<u64>(), any::<String>()).prop_map(|(name, version, value)| {
        serde_json::json!({
            "kind": "ConfigMap", "apiVersion": "v1",
            "metadata": {"name": name, "namespace": "d", "resourceVersion": version.to_string()},
            "data": {"k": value},
        })
    });
    let kind = prop_oneof![
        Just("ADDED"),
        Just("MODIFIED"),
        Just("DELETED"),
        Just("BOOKMARK"),
        Just("FOO")
    ];
    (kind, object, any::<bool>()).prop_map(|(kind, object, pretty)| {
        let event = serde_json::json!({"type": kind, "object": object});
        if pretty {
            format!("{event:#}\n")
        } else {
            format!("{event}\n")
        }
    })
}

proptest! {
    #[test]
    fn every_chunking_decodes_alike(
        events in proptest::collection::vec(any_event(), 1..6),
        cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..12),
    ) {
        let body = events.concat();
        let bytes = body.as_bytes();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let whole = decode(&body);
        let chunks = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
        prop_assert_eq!(&decode_chunks(chunks), &(whole.clone(), 0));
        prop_assert_eq!(&decode_chunks(bytes.chunks(1)), &(whole.clone(), 0));
        prop_assert_eq!(whole.len(), events.len());
    }

    #[test]
    fn no_bytes_panic(chunks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..8)) {
        decode_chunks(chunks.iter().map(Vec::as_slice));
        list_chunks(chunks.iter().map(Vec::as_slice));
    }

    #[test]
    fn a_truncated_body_decodes_to_a_prefix(
        events in proptest::collection::vec(any_event(), 1..5),
        end in any::<proptest::sample::Index>(),
    ) {
        let body = events.concat();
        let torn = &body.as_bytes()[..end.index(body.len())];
        let (received, _) = decode_chunks([torn]);
        let whole = decode(&body);
        prop_assert_eq!(&received[..], &whole[..received.len()]);
    }
}

#[cfg(feature = "client")]
mod against_serde {
    use kube_core::{DynamicObject, PartialObjectMeta};
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    use super::*;

    fn any_object() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".{0,6}".prop_map(Value::from)
        ];
        let any_json = leaf.prop_recursive(3, 20, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                proptest::collection::btree_map(".{0,4}", inner, 0..3)
                    .prop_map(|map| map.into_iter().collect()),
            ]
        });
        let types = prop_oneof![
            Just(json!({"kind": "ConfigMap", "apiVersion": "v1"})),
            Just(json!({"apiVersion": "v1", "kind": "ConfigMap"})),
            Just(json!({"kind": "ConfigMap"})),
            Just(json!({})),
        ];
        (types, ".{0,6}", any_json, any::<bool>()).prop_map(|(mut object, name, spec, metadata_last)| {
            let metadata = json!({
                "name": name, "resourceVersion": "5", "labels": {"l": name},
                "managedFields": [{"manager": "m", "fieldsV1": {"f:spec": {}}}],
            });
            if metadata_last {
                object["spec"] = spec;
                object["metadata"] = metadata;
            } else {
                object["metadata"] = metadata;
                object["spec"] = spec;
            }
            object
        })
    }

    /// The decoded value as JSON, if it decodes.
    fn ours<K: DeserializeOwned + serde::Serialize + 'static>(json: &str, prune: Prune) -> Option<Value> {
        decoded(&Codec::<K>::typed(prune), json)
    }

    fn decoded<K: serde::Serialize>(codec: &Codec<K>, json: &str) -> Option<Value> {
        Some(serde_json::to_value(codec.decode(json).ok()?).unwrap())
    }

    fn serdes<K: DeserializeOwned + serde::Serialize>(json: &str) -> Option<Value> {
        let object = serde_json::from_str::<K>(json).ok()?;
        Some(serde_json::to_value(object).unwrap())
    }

    proptest! {
        #[test]
        fn objects_decode_as_serde_decodes_them(object in any_object()) {
            let json = object.to_string();
            prop_assert_eq!(ours::<DynamicObject>(&json, Prune::nothing()), serdes::<DynamicObject>(&json));
            prop_assert_eq!(ours::<ConfigMap>(&json, Prune::nothing()), serdes::<ConfigMap>(&json));
        }

        #[test]
        fn pruning_equals_decoding_and_clearing(object in any_object()) {
            let json = object.to_string();
            let mut cleared = object;
            cleared["metadata"].as_object_mut().unwrap().shift_remove("managedFields");
            let cleared = cleared.to_string();
            let prune = || Prune::nothing().field("metadata.managedFields");
            prop_assert_eq!(ours::<DynamicObject>(&json, prune()), serdes::<DynamicObject>(&cleared));
            prop_assert_eq!(ours::<ConfigMap>(&json, prune()), serdes::<ConfigMap>(&cleared));
        }

        #[test]
        fn metadata_is_the_same_with_and_without_the_rest(object in any_object()) {
            let json = object.to_string();
            let prune = Prune::nothing().all_but(&["apiVersion", "kind", "metadata"]);
            let expected = serdes::<PartialObjectMeta<ConfigMap>>(&json);
            prop_assert_eq!(&ours::<PartialObjectMeta<ConfigMap>>(&json, prune), &expected);
            let codec = Codec::<PartialObjectMeta<ConfigMap>>::metadata(Prune::nothing());
            prop_assert_eq!(decoded(&codec, &json), expected);
        }
    }
}
