//! One row a rule: what leaves when, what is recorded, how it ends.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a test looks at nothing but what it is about"
)]

use std::io::Read as _;

use apimachinery::ObjectRef;
use flate2::bufread::GzDecoder;
use http::header::CONTENT_ENCODING;
use rstest::rstest;
use trace::fault::Cut;
use trace::record::FrameType;

use super::*;

const STREAM: StreamId = StreamId(1);

fn line(text: &str) -> WatchFrame {
    let object = ObjectRef {
        key: format!("default/{text}"),
        uid: String::new(),
        resource_version: "1".to_owned(),
    };
    WatchFrame {
        kind: FrameType::Added,
        object: Some(object.into()),
        line: Bytes::from(format!("{text}\n")),
    }
}

fn bookmark(initial_events_end: Option<&str>) -> WatchFrame {
    let kind = FrameType::Bookmark {
        initial_events_end: initial_events_end.map(str::to_owned),
    };
    WatchFrame {
        kind,
        ..line("bookmark")
    }
}

fn watch() -> Exchange {
    let mut exchange = Exchange::new(STREAM);
    exchange.set_head(Head {
        status: 200,
        headers: Vec::new(),
        scripted: false,
    });
    exchange
}

fn list(body: &'static str) -> Exchange {
    let mut exchange = watch();
    let record = What::Body {
        stream: STREAM,
        bytes: body.len() as u64,
        reason: None,
        message: None,
        continue_token: None,
    };
    exchange.set_body(Bytes::from_static(body.as_bytes()), record);
    exchange
}

/// Lets everything out that time allows, and writes down what left: `0:head`, `0:"a\n"`, `5:rst`.
fn play(exchange: &mut Exchange) -> (Vec<String>, Vec<String>) {
    let (mut log, mut outputs, mut said) = (Log::default(), VecDeque::new(), Vec::new());
    let mut now = Some(Duration::ZERO);
    for _ in 0..100 {
        let Some(at) = now else { break };
        let mut joined = Joined::default();
        now = exchange.flush(at, (&mut log, &mut outputs, &mut joined));
        let ms = at.as_millis();
        said.extend(outputs.drain(..).map(|output| match output {
            Output::Head {
                length: Some(length), ..
            } => format!("{ms}:head {length}"),
            Output::Head { length: None, .. } => format!("{ms}:head"),
            Output::Data { bytes, .. } => format!("{ms}:{}", bytes.escape_ascii()),
            Output::FlushBarrier { .. } => format!("{ms}:fence"),
            Output::Goaway { .. } => format!("{ms}:goaway"),
            Output::Close { .. } => format!("{ms}:close"),
            Output::End { how, .. } => format!("{ms}:{}", how.word()),
            Output::Call { call, .. } => format!("{ms}:call {}", call.url),
            Output::Upstream { .. } | Output::UpstreamWrite { .. } => format!("{ms}:upstream"),
        }));
    }
    let records = log
        .records
        .iter()
        .filter_map(|record| match &record.what {
            What::Frame { frame, .. } => Some(format!("{}/{}", frame.sent, frame.bytes)),
            What::Torn { sent, bytes, .. } => Some(format!("torn {sent}/{bytes}")),
            What::Body { .. } => Some("body".to_owned()),
            _ => None,
        })
        .collect();
    (said, records)
}

#[rstest]
#[case::whole(None, &["0:head", r"0:aaaa\n", r"0:bbbb\n"], &["5/5", "5/5"])]
#[case::in_the_first_line(
    Some(Cut::AfterEvents { events: 0, percent: 40 }), &["0:head", "0:aa", "0:rst"], &["2/5"])]
#[case::in_the_second_line(
    Some(Cut::AfterEvents { events: 1, percent: 40 }), &["0:head", r"0:aaaa\n", "0:bb", "0:rst"], &["5/5", "2/5"])]
#[case::between_lines(
    Some(Cut::AfterEvents { events: 1, percent: 0 }), &["0:head", r"0:aaaa\n", "0:rst"], &["5/5"])]
#[case::before_any_line(Some(Cut::AfterEvents { events: 0, percent: 0 }), &["0:head", "0:rst"], &[])]
#[case::after_bytes_of_two_lines(
    Some(Cut::AfterBytes(7)), &["0:head", r"0:aaaa\n", "0:bb", "0:rst"], &["5/5", "2/5"])]
#[case::after_more_bytes_than_there_are(
    Some(Cut::AfterBytes(70)), &["0:head", r"0:aaaa\n", r"0:bbbb\n"], &["5/5", "5/5"])]
fn a_watch_is_cut_at_the_given_byte(
    #[case] cut: Option<Cut>,
    #[case] said: &[&str],
    #[case] recorded: &[&str],
) {
    let mut exchange = watch();
    if let Some(cut) = cut {
        exchange.obey(&RuleAction::Truncate {
            cut,
            ending: Ending::Rst,
        });
    }
    exchange.push_line(line("aaaa"), false);
    exchange.push_line(line("bbbb"), false);
    let (out, records) = play(&mut exchange);
    assert_eq!(out, said);
    assert_eq!(records, recorded);
}

#[test]
fn a_watch_ends_some_time_after_its_head() {
    let mut exchange = watch();
    exchange.delay_until(Duration::from_millis(5));
    exchange.obey(&RuleAction::EndAfter {
        ms: 30,
        ending: Ending::Fin,
    });
    exchange.push_line(line("aaaa"), false);
    let (out, records) = play(&mut exchange);
    assert_eq!(out, ["5:head", r"5:aaaa\n", "35:fin"]);
    assert_eq!(records, ["5/5"]);
}

#[test]
fn a_slow_list_is_torn_when_its_time_is_over() {
    let mut exchange = list("abcdefgh");
    exchange.set_pace(Pace::Drip {
        bytes: 2,
        every_ms: 10,
    });
    exchange.obey(&RuleAction::EndAfter {
        ms: 15,
        ending: Ending::Rst,
    });
    let (out, records) = play(&mut exchange);
    assert_eq!(out, ["0:head", "0:ab", "10:cd", "15:rst"]);
    assert_eq!(records, ["torn 4/8"]);
}

#[test]
fn equal_lines_are_equal_bytes() {
    let (one, two) = (line("aaaa"), line("bbbb"));
    let mut joined = Joined::allowed();
    let mut sent = |scripted: bool| {
        let (mut exchange, mut log, mut outputs) = (watch(), Log::default(), VecDeque::new());
        exchange.push_line(one.clone(), false);
        exchange.push_line(two.clone(), scripted);
        exchange.flush(Duration::ZERO, (&mut log, &mut outputs, &mut joined));
        let data = outputs.into_iter().filter_map(|output| match output {
            Output::Data { bytes, .. } => Some(bytes),
            _ => None,
        });
        data.collect::<Vec<Bytes>>()
    };
    let (first, second) = (sent(false), sent(false));
    assert_eq!(first, ["aaaa\nbbbb\n"]);
    assert_eq!(first[0].as_ptr(), second[0].as_ptr());
    assert_eq!(sent(true), ["aaaa\n", "bbbb\n"], "a lie leaves by itself");
}

#[rstest]
#[case::whole(None, None, &["0:head 4", "0:body", "0:eof"], &["body"])]
#[case::cut_in_bytes(
    Some(Cut::AfterBytes(1)), None, &["0:head", "0:b", "0:fin"], &["torn 1/4"])]
#[case::cut_in_percent(
    Some(Cut::AfterEvents { events: 0, percent: 50 }), None, &["0:head", "0:bo", "0:fin"], &["torn 2/4"])]
#[case::dripped(
    None,
    Some(Pace::Drip { bytes: 3, every_ms: 5 }),
    &["0:head", "0:bod", "5:y", "10:eof"],
    &["body"])]
fn a_body_is_announced_only_if_it_comes_whole(
    #[case] cut: Option<Cut>,
    #[case] pace: Option<Pace>,
    #[case] said: &[&str],
    #[case] recorded: &[&str],
) {
    let mut exchange = list("body");
    if let Some(pace) = pace {
        exchange.set_pace(pace);
    }
    if let Some(cut) = cut {
        exchange.obey(&RuleAction::Truncate {
            cut,
            ending: Ending::Fin,
        });
    }
    let (out, records) = play(&mut exchange);
    assert_eq!(out, said);
    assert_eq!(records, recorded);
}

#[test]
fn every_write_ends_inside_a_character_once() {
    let mut exchange = watch();
    exchange.set_pace(Pace::SplitUtf8);
    exchange.push_line(line("xéy€"), false);
    let (out, records) = play(&mut exchange);
    assert_eq!(out, ["0:head", r"0:x\xc3", r"1:\xa9y\xe2", r"2:\x82\xac\n"]);
    assert_eq!(records, ["8/8"]);
}

#[test]
fn lines_are_held_until_there_are_enough_for_one_write() {
    let mut exchange = watch();
    exchange.set_pace(Pace::Coalesce { events: 2 });
    exchange.push_line(line("a"), false);
    assert_eq!(play(&mut exchange).0, ["0:head"]);
    exchange.push_line(line("b"), false);
    assert_eq!(play(&mut exchange).0, [r"0:a\nb\n"]);
    exchange.push_line(line("c"), false);
    exchange.end(Ending::Eof);
    assert_eq!(
        play(&mut exchange).0,
        [r"0:c\n", "0:eof"],
        "the end lets go of what is held"
    );
}

#[test]
fn nothing_leaves_before_its_delay() {
    let mut exchange = list("body");
    exchange.delay_until(Duration::from_millis(30));
    assert_eq!(play(&mut exchange).0, ["30:head 4", "30:body", "30:eof"]);
}

#[test]
fn without_an_answer_there_is_no_head() {
    let mut exchange = list("body");
    exchange.refuse_to_answer(Ending::Rst);
    assert_eq!(play(&mut exchange).0, ["0:rst"]);
}

#[test]
fn nothing_is_sent_after_an_answer_is_refused() {
    let mut exchange = watch();
    exchange.push_line(line("before"), false);
    exchange.refuse_to_answer(Ending::Rst);
    exchange.push_line(line("behind"), true);
    exchange.end(Ending::Eof);
    let (out, records) = play(&mut exchange);
    assert_eq!(out, ["0:rst"]);
    assert!(records.is_empty());
}

#[test]
fn a_refusal_behind_the_head_ends_without_the_rest() {
    let mut exchange = watch();
    assert_eq!(play(&mut exchange).0, ["0:head"]);
    exchange.push_line(line("queued"), false);
    exchange.refuse_to_answer(Ending::Fin);
    assert_eq!(play(&mut exchange).0, ["0:fin"]);
}

#[test]
fn an_end_without_a_body_drops_what_was_queued() {
    let mut exchange = list("body");
    exchange.end_without_body(Ending::Stall);
    let (out, records) = play(&mut exchange);
    assert_eq!(out, ["0:head", "0:stall"]);
    assert!(records.is_empty());
    assert!(exchange.is_over());
}

/// `a`, `b` and `c` come; what is sent of them, `*` where the server lied.
#[rstest]
#[case::unmodified(&[], "a b c")]
#[case::dropped(&[RuleAction::DropEvents(2)], "-a -b c")]
#[case::repeated(&[RuleAction::RepeatEvent(3)], "a a* a* b c")]
#[case::reordered(&[RuleAction::ReorderEvents(2)], "b* a* c")]
#[case::too_few_to_reorder(&[RuleAction::ReorderEvents(4)], "c* b* a*")]
#[case::dropped_then_repeated(&[RuleAction::DropEvents(1), RuleAction::RepeatEvent(2)], "-a b b* c")]
fn rules_hold_for_the_events_to_come(#[case] rules: &[RuleAction], #[case] expected: &str) {
    let mut exchange = watch();
    rules.iter().for_each(|rule| exchange.obey(rule));
    let decided: Vec<Fate> = ["a", "b", "c"]
        .into_iter()
        .flat_map(|text| exchange.rules.decide(line(text)))
        .collect();
    // The watch ends.
    let fates: Vec<String> = decided
        .into_iter()
        .chain(exchange.rules.let_go())
        .map(|fate| match fate {
            Fate::Send { frame, scripted } => {
                format!(
                    "{}{}",
                    frame.line.trim_ascii_end().escape_ascii(),
                    if scripted { "*" } else { "" }
                )
            }
            Fate::Withhold(frame) => format!("-{}", frame.line.trim_ascii_end().escape_ascii()),
            Fate::Remark { .. } => "remarked".to_owned(),
        })
        .collect();
    assert_eq!(fates.join(" "), expected);
}

#[rstest]
#[case::left_alone(None, Some("true"), "sent")]
#[case::another_value(Some(RuleAction::EndMarker(Some("false".to_owned()))), Some("true"), "remarked")]
#[case::plain_ones_are_not_the_marker(Some(RuleAction::EndMarker(None)), None, "sent")]
#[case::none_at_all(Some(RuleAction::NoBookmarks), None, "")]
#[case::not_even_the_marker(Some(RuleAction::NoBookmarks), Some("true"), "")]
fn bookmarks_obey_separate_rules(
    #[case] rule: Option<RuleAction>,
    #[case] initial_events_end: Option<&str>,
    #[case] expected: &str,
) {
    let mut exchange = watch();
    exchange.obey(&RuleAction::DropEvents(1));
    rule.iter().for_each(|rule| exchange.obey(rule));
    let fates: Vec<&str> = exchange
        .rules
        .decide(bookmark(initial_events_end))
        .iter()
        .map(|fate| match fate {
            Fate::Send { .. } => "sent",
            Fate::Withhold(_) => "withheld",
            Fate::Remark { .. } => "remarked",
        })
        .collect();
    assert_eq!(
        fates.join(" "),
        expected,
        "a bookmark is no event: it is not dropped as one"
    );
}

#[rstest]
#[case::scripted(Exchange::compress, Vec::new(), &["a", "b", "c", "d"])]
#[case::compressed_already(Exchange::compress, crate::api::gzip_headers().to_vec(), &[])]
#[case::by_flushes(Exchange::compress_flushes, Vec::new(), &["ab", "cd"])]
fn a_compressed_watch_is_a_sequence_of_gzip_members(
    #[case] compress: fn(&mut Exchange),
    #[case] headers: Vec<Header>,
    #[case] members: &[&str],
) {
    let mut exchange = Exchange::new(STREAM);
    compress(&mut exchange);
    exchange.set_head(Head {
        status: 200,
        headers,
        scripted: false,
    });
    let (mut log, mut outputs, mut joined) = (Log::default(), VecDeque::new(), Joined::default());
    let mut flush = |exchange: &mut Exchange| {
        exchange.flush(Duration::ZERO, (&mut log, &mut outputs, &mut joined));
    };
    exchange.push_line(line("a"), false);
    exchange.push_line(line("b"), false);
    exchange.flush_member();
    flush(&mut exchange);
    // Sent before it is known that the member ends with it.
    exchange.push_line(line("c"), false);
    flush(&mut exchange);
    exchange.push_line(line("d"), false);
    flush(&mut exchange);
    exchange.flush_member();
    flush(&mut exchange);
    let mut body = Vec::new();
    for output in outputs {
        match output {
            Output::Head { headers, .. } => {
                let encodings = headers.iter().filter(|(name, _)| *name == CONTENT_ENCODING);
                assert_eq!(encodings.count(), 1);
            }
            Output::Data { bytes, .. } => body.extend(bytes),
            _ => {}
        }
    }
    let texts = |names: &str| {
        names
            .chars()
            .map(|name| line(&name.to_string()).line)
            .collect::<Vec<_>>()
            .concat()
    };
    if members.is_empty() {
        return assert_eq!(body, texts("abcd"));
    }
    let mut rest = body.as_slice();
    for member in members {
        let mut decoder = GzDecoder::new(rest);
        let mut text = Vec::new();
        decoder.read_to_end(&mut text).unwrap();
        assert_eq!(text, texts(member));
        rest = decoder.into_inner();
    }
    assert_eq!(rest, b"");
    const SYNC_FLUSH: [u8; 5] = [0, 0, 0, 0xff, 0xff];
    let flushes = body
        .windows(SYNC_FLUSH.len())
        .filter(|bytes| *bytes == SYNC_FLUSH);
    assert!(flushes.count() >= 4, "every line can be read at once");
}
