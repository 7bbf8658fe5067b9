//! Which events a client without an adapter has received, by the bytes sent to it.

use std::sync::Arc;
use std::time::Duration;

use trace::record::Frame;

use super::*;

const STREAM: StreamId = StreamId(1);

fn record(what: What) -> Record {
    Record {
        seq: 0,
        at: Duration::ZERO,
        what,
    }
}

fn object(name: &str, version: u64) -> ObjectRef {
    ObjectRef {
        key: format!("default/{name}"),
        uid: String::new(),
        resource_version: version.to_string(),
    }
}

fn page(version: u64, continue_token: &str, items: Vec<ObjectRef>) -> What {
    What::Page {
        stream: STREAM,
        resource_version: version.to_string(),
        continue_token: continue_token.to_owned(),
        remaining: None,
        items,
        scripted: false,
    }
}

fn event(kind: FrameType, object: ObjectRef, scripted: bool) -> What {
    What::Frame {
        stream: STREAM,
        frame: Frame {
            kind,
            object: Some(Arc::new(object)),
            bytes: 10,
            sent: 10,
            scripted,
        },
    }
}

/// Names and versions of the events that count as reported.
fn applied(assumed: &mut Assumed, verb: Verb, query: &[(String, String)], sent: Vec<What>) -> Vec<String> {
    let records: Vec<Record> = sent.into_iter().map(record).collect();
    let reports = assumed.after(STREAM, Read { verb, query }, &records);
    let applied = reports.into_iter().filter_map(|report| {
        let Report::Apply(object) = report else {
            return None;
        };
        Some(format!("{}@{}", object.name, object.resource_version?))
    });
    applied.collect()
}

#[test]
fn a_change_that_a_later_list_has_first_counts_as_an_event() {
    let mut assumed = Assumed::default();
    let first = vec![page(5, "", vec![object("a", 3), object("b", 5)])];
    assert!(applied(&mut assumed, Verb::List, &[], first).is_empty());
    let watched = vec![event(FrameType::Modified, object("b", 6), false)];
    assert_eq!(applied(&mut assumed, Verb::Watch, &[], watched), ["b@6"]);
    let pages = [
        page(8, "more", vec![object("a", 7)]),
        page(8, "", vec![object("b", 6), object("c", 8)]),
    ];
    let again: Vec<_> = pages
        .into_iter()
        .flat_map(|page| applied(&mut assumed, Verb::List, &[], vec![page]))
        .collect();
    assert_eq!(again, ["a@7", "c@8"]);
    let same = vec![page(8, "", vec![object("a", 7), object("c", 8)])];
    assert!(applied(&mut assumed, Verb::List, &[], same).is_empty());
}

#[test]
fn so_does_one_that_a_later_watch_without_a_version_starts_with() {
    let mut assumed = Assumed::default();
    let head = || What::Head {
        stream: STREAM,
        status: 200,
        retry_after: None,
        scripted: false,
    };
    let initial = |version| event(FrameType::Added, object("a", version), false);
    let first = applied(&mut assumed, Verb::Watch, &[], vec![head(), initial(3)]);
    assert!(first.is_empty());
    let second = applied(&mut assumed, Verb::Watch, &[], vec![head(), initial(4)]);
    assert_eq!(second, ["a@4"]);
    let change = event(FrameType::Modified, object("a", 5), false);
    let with_change = applied(
        &mut Assumed::default(),
        Verb::Watch,
        &[],
        vec![head(), initial(4), change],
    );
    assert_eq!(with_change, ["a@5"], "sent together with the state");
}

#[test]
fn neither_a_torn_list_nor_a_scripted_version_counts() {
    let mut assumed = Assumed::default();
    let first = vec![page(5, "", vec![object("a", 5)])];
    assert!(applied(&mut assumed, Verb::List, &[], first).is_empty());
    let odd = vec![event(FrameType::Modified, object("a", 9_000), true)];
    applied(&mut assumed, Verb::Watch, &[], odd);
    let torn = What::Torn {
        stream: STREAM,
        sent: 1,
        bytes: 2,
    };
    let list = || page(6, "", vec![object("a", 6)]);
    assert!(applied(&mut assumed, Verb::List, &[], vec![list(), torn]).is_empty());
    assert_eq!(applied(&mut assumed, Verb::List, &[], vec![list()]), ["a@6"]);
}
