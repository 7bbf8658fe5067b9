//! Guarantees of the store: tables, and random event sequences against a reference implementation.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::{FutureExt, StreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use proptest::prelude::*;
use rstest::rstest;

use super::*;

/// `ns/name#uid@version`.
fn object(text: &str) -> ConfigMap {
    let (rest, version) = text.split_once('@').unwrap();
    let (rest, uid) = rest.split_once('#').unwrap();
    let (namespace, name) = rest.split_once('/').unwrap();
    let mut object = ConfigMap::default();
    object.metadata.namespace = (!namespace.is_empty()).then(|| namespace.to_owned());
    object.metadata.name = Some(name.to_owned());
    object.metadata.uid = Some(uid.to_owned());
    object.metadata.resource_version = Some(version.to_owned());
    object
}

fn text(object: &ConfigMap) -> String {
    let meta = &object.metadata;
    let field = |field: &Option<String>| field.clone().unwrap_or_default();
    format!(
        "{}/{}#{}@{}",
        field(&meta.namespace),
        field(&meta.name),
        field(&meta.uid),
        field(&meta.resource_version)
    )
}

/// `[` Init, `]` InitDone, `.x` InitApply, `+x` Apply, `-x` Delete.
fn event(word: &str) -> Event<ConfigMap> {
    match word.split_at(1) {
        ("[", _) => Event::Init,
        ("]", _) => Event::InitDone,
        (".", name) => Event::InitApply(object(name)),
        ("+", name) => Event::Apply(object(name)),
        ("-", name) => Event::Delete(object(name)),
        _ => unreachable!("no event: {word}"),
    }
}

fn delta_text(delta: &Delta<ConfigMap>) -> String {
    match delta {
        Delta::Added(object) => format!("+{}", text(object)),
        Delta::Modified { old, new } => format!("{}>{}", text(old), text(new)),
        Delta::Deleted { last, inferred } => format!("-{}{}", text(last), if *inferred { "?" } else { "" }),
    }
}

fn apply(writer: &mut Writer<ConfigMap>, words: &str) -> String {
    let deltas = words
        .split_whitespace()
        .flat_map(|word| writer.apply(event(word)));
    deltas
        .map(|delta| delta_text(&delta))
        .collect::<Vec<_>>()
        .join(" ")
}

fn state(store: &Store<ConfigMap>) -> String {
    store
        .state()
        .iter()
        .map(|object| text(object))
        .collect::<Vec<_>>()
        .join(" ")
}

const LISTED: &str = "[ .n/a#1@5 .n/b#2@6 ]";

#[rstest]
#[case::a_first_set_comes_at_once("", LISTED, "+n/a#1@5 +n/b#2@6", "n/a#1@5 n/b#2@6")]
#[case::an_incomplete_set_is_not_published("", "[ .n/a#1@5", "", "")]
#[case::an_unfinished_relist_changes_nothing(LISTED, "[ .n/c#3@7", "", "n/a#1@5 n/b#2@6")]
#[case::objects_missing_from_a_relist_are_deleted(LISTED, "[ .n/b#2@6 ]", "-n/a#1@5?", "n/b#2@6")]
#[case::unchanged_objects_of_a_relist_give_no_delta(LISTED, "[ .n/a#1@5 .n/b#2@6 ]", "", "n/a#1@5 n/b#2@6")]
#[case::changed_objects_of_a_relist_are_modified(
    LISTED,
    "[ .n/a#1@5 .n/b#2@9 ]",
    "n/b#2@6>n/b#2@9",
    "n/a#1@5 n/b#2@9"
)]
#[case::an_abandoned_relist_leaves_no_marks(
    LISTED,
    "[ .n/a#1@5 .n/c#3@7 [ .n/b#2@6 ]",
    "-n/a#1@5?",
    "n/b#2@6"
)]
#[case::a_page_read_twice_may_revert_a_change(
    LISTED,
    "[ .n/a#1@5 .n/b#2@9 .n/b#2@6 ]",
    "",
    "n/a#1@5 n/b#2@6"
)]
#[case::another_uid_is_another_object(LISTED, "+n/a#9@8", "-n/a#1@5? +n/a#9@8", "n/a#9@8 n/b#2@6")]
#[case::another_uid_in_a_relist(LISTED, "[ .n/a#9@8 .n/b#2@6 ]", "-n/a#1@5? +n/a#9@8", "n/a#9@8 n/b#2@6")]
#[case::a_delete_carries_the_last_state(LISTED, "-n/a#1@8", "-n/a#1@8", "n/b#2@6")]
#[case::a_delete_of_an_unknown_object(LISTED, "-n/c#3@8", "", "n/a#1@5 n/b#2@6")]
#[case::a_late_delete_of_an_earlier_object(
    LISTED,
    "+n/a#9@8 -n/a#1@7",
    "-n/a#1@5? +n/a#9@8",
    "n/a#9@8 n/b#2@6"
)]
#[case::names_and_namespaces_do_not_mix(
    "[ .a/b-c#1@1 .a-b/c#2@2 .a/b#3@3 ./a#4@4 ]",
    "-a/b#3@9",
    "-a/b#3@9",
    "/a#4@4 a/b-c#1@1 a-b/c#2@2"
)]
fn events_become_deltas(#[case] before: &str, #[case] then: &str, #[case] deltas: &str, #[case] after: &str) {
    let (store, mut writer) = store();
    apply(&mut writer, before);
    assert_eq!(apply(&mut writer, then), deltas);
    assert_eq!(state(&store), after);
    assert_eq!(store.len(), store.state().len());
}

#[test]
fn unchanged_objects_of_a_relist_keep_their_arc() {
    let (store, mut writer) = store();
    apply(&mut writer, LISTED);
    let before = store.get(&ObjectRef::new("a").within("n")).unwrap();
    apply(&mut writer, LISTED);
    let after = store.get(&ObjectRef::new("a").within("n")).unwrap();
    assert!(Arc::ptr_eq(&before, &after));
}

#[test]
fn an_index_follows_the_set() {
    let (store, mut writer) = store();
    apply(&mut writer, "[ .n/a#1@5 ]");
    let by_version = store.index(|object| object.metadata.resource_version.iter().cloned().collect());
    let names = |version: &str| -> Vec<String> {
        let found = by_version.get(version);
        found.iter().map(|object| text(object)).collect()
    };
    assert_eq!(names("5"), ["n/a#1@5"]);
    apply(&mut writer, "+n/b#2@5 +n/a#1@6");
    assert_eq!(names("5"), ["n/b#2@5"]);
    assert_eq!(names("6"), ["n/a#1@6"]);
    apply(&mut writer, "[ ]");
    assert!(names("5").is_empty() && names("6").is_empty());
}

#[test]
fn a_cluster_scoped_object_is_found_by_a_reference_with_a_namespace() {
    let (store, mut writer) = store();
    apply(&mut writer, "[ ./a#1@5 ]");
    assert!(store.get(&ObjectRef::new("a").within("n")).is_some());
    assert!(store.get(&ObjectRef::new("b").within("n")).is_none());
}

#[test]
fn labels_select() {
    let (store, mut writer) = store();
    let mut labelled = object("n/a#1@5");
    labelled.metadata.labels = Some([("app".to_owned(), "web".to_owned())].into());
    writer.apply(Event::Apply(labelled));
    apply(&mut writer, "+n/b#2@6");
    let selector = kube_core::Selector::from(kube_core::Expression::Equal("app".into(), "web".into()));
    assert_eq!(store.state_filter_selector(&selector).len(), 1);
    let absent = kube_core::Selector::from(kube_core::Expression::DoesNotExist("app".into()));
    assert_eq!(store.state_filter_selector(&absent).len(), 1);
}

#[test]
fn the_first_complete_set_wakes_every_waiter() {
    let (store, mut writer) = store();
    let woken: Vec<Arc<Flag>> = (0..3).map(|_| Arc::default()).collect();
    let mut waiters: Vec<_> = (0..3).map(|_| Box::pin(store.wait_until_ready())).collect();
    for (waiter, flag) in waiters.iter_mut().zip(&woken) {
        let waker = std::task::Waker::from(Arc::clone(flag));
        assert!(
            waiter
                .poll_unpin(&mut std::task::Context::from_waker(&waker))
                .is_pending()
        );
    }
    apply(&mut writer, "[ .n/a#1@5");
    assert!(!store.is_ready() && woken.iter().all(|flag| !flag.is_set()));
    apply(&mut writer, "]");
    assert!(store.is_ready() && woken.iter().all(|flag| flag.is_set()));
    for waiter in waiters {
        assert_eq!(waiter.now_or_never(), Some(Ok(())));
    }
    drop(writer);
    assert_eq!(store.wait_until_ready().now_or_never(), Some(Ok(())));
}

#[test]
fn waiters_get_an_error_if_the_writer_is_dropped_early() {
    let (store, mut writer) = store();
    apply(&mut writer, "[ .n/a#1@5");
    drop(writer);
    assert_eq!(store.wait_until_ready().now_or_never(), Some(Err(WriterDropped)));
    assert!(!store.is_ready());
}

#[rstest]
#[case::it_starts_with_the_current_objects(LISTED, "", "+n/a#1@5 +n/b#2@6")]
#[case::an_undelivered_object_is_added_in_its_current_state(LISTED, "+n/a#1@8", "+n/a#1@8 +n/b#2@6")]
#[case::an_object_added_and_deleted_is_not_delivered("[ ]", "+n/a#1@5 -n/a#1@6 +n/b#2@7", "+n/b#2@7")]
fn a_subscriber_receives_missed_changes(#[case] before: &str, #[case] then: &str, #[case] expected: &str) {
    let (_store, mut writer) = store();
    apply(&mut writer, before);
    let subscriber = writer.subscribe();
    apply(&mut writer, then);
    drop(writer);
    assert_eq!(rest(subscriber), expected);
}

#[rstest]
#[case::two_changes_are_one("+n/a#1@7 +n/a#1@8", "n/a#1@5>n/a#1@8")]
#[case::a_change_and_the_end("+n/a#1@7 -n/a#1@8", "-n/a#1@8")]
#[case::recreated("-n/a#1@8 +n/a#9@9", "-n/a#1@8 +n/a#9@9")]
#[case::recreated_and_changed("-n/a#1@8 +n/a#9@9 +n/a#9@10", "-n/a#1@8 +n/a#9@10")]
#[case::recreated_and_deleted("-n/a#1@8 +n/a#9@9 -n/a#9@10", "-n/a#1@8")]
#[case::deleted_between_two_watches("[ .n/b#2@6 ]", "-n/a#1@5?")]
#[case::the_first_change_is_delivered_first("+n/b#2@7 +n/a#1@8 +n/b#2@9", "n/b#2@6>n/b#2@9 n/a#1@5>n/a#1@8")]
fn missed_changes_are_merged(#[case] then: &str, #[case] expected: &str) {
    let (_store, mut writer) = store();
    apply(&mut writer, LISTED);
    let mut subscriber = writer.subscribe();
    while subscriber.next().now_or_never().is_some() {}
    apply(&mut writer, then);
    drop(writer);
    assert_eq!(rest(subscriber), expected);
}

/// Between the two deltas of a recreated object.
#[rstest]
#[case::it_is_added_in_its_current_state("+n/a#9@10", "+n/a#9@10")]
#[case::it_is_not_added_once_it_is_deleted("-n/a#9@10", "")]
#[case::it_may_be_recreated_again("-n/a#9@10 +n/a#7@11", "+n/a#7@11")]
fn a_recreated_object_changes_before_it_is_delivered(#[case] then: &str, #[case] expected: &str) {
    let (_store, mut writer) = store();
    apply(&mut writer, LISTED);
    let mut subscriber = writer.subscribe();
    while subscriber.next().now_or_never().is_some() {}
    apply(&mut writer, "-n/a#1@8 +n/a#9@9");
    let first = subscriber.next().now_or_never().flatten();
    assert_eq!(first.as_ref().map(delta_text).as_deref(), Some("-n/a#1@8"));
    apply(&mut writer, then);
    drop(writer);
    assert_eq!(rest(subscriber), expected);
}

#[test]
fn a_pending_subscriber_is_woken() {
    let (_store, mut writer) = store();
    let mut subscriber = writer.subscribe();
    let flag = Arc::new(Flag::default());
    let waker = std::task::Waker::from(Arc::clone(&flag));
    let mut context = std::task::Context::from_waker(&waker);
    assert!(subscriber.poll_next_unpin(&mut context).is_pending());
    // kube-runtime's handle receives a key, finds no object for it, and sleeps forever.
    apply(&mut writer, "+n/a#1@5 -n/a#1@6");
    assert!(flag.is_set());
    assert!(subscriber.poll_next_unpin(&mut context).is_pending());
    flag.0.store(false, Ordering::SeqCst);
    apply(&mut writer, "+n/b#2@7");
    assert!(flag.is_set());
}

#[test]
fn a_subscriber_after_the_writers_end_gets_the_objects_and_the_end() {
    let (store, mut writer) = store();
    apply(&mut writer, LISTED);
    drop(writer);
    assert_eq!(rest(store.subscribe()), "+n/a#1@5 +n/b#2@6");
}

fn rest(subscriber: Subscriber<ConfigMap>) -> String {
    let deltas: Vec<_> = subscriber.collect().now_or_never().expect("it is over");
    deltas.iter().map(delta_text).collect::<Vec<_>>().join(" ")
}

#[derive(Default)]
struct Flag(AtomicBool);

impl Flag {
    fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

impl std::task::Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// A step of a sequence: an event, or a subscriber that polls.
#[derive(Debug, Clone)]
enum Step {
    Event(u8, u8, u8),
    Look,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let event = (0..7_u8, 0..4_u8, 0..3_u8).prop_map(|(what, name, uid)| Step::Event(what, name, uid));
    prop::collection::vec(prop_oneof![8 => event, 1 => Just(Step::Look)], 0..60)
}

fn fold(set: &mut BTreeMap<String, String>, delta: &Delta<ConfigMap>) {
    let name = delta.object().metadata.name.clone().unwrap();
    match delta {
        Delta::Added(new) => assert_eq!(set.insert(name, text(new)), None, "it was there already"),
        Delta::Modified { old, new } => assert_eq!(set.insert(name, text(new)), Some(text(old))),
        Delta::Deleted { last, .. } => {
            let was = set.remove(&name).expect("it was there");
            assert_eq!(object(&was).metadata.uid, last.metadata.uid);
        }
    }
}

proptest! {
    /// Reference implementation: builds a second set, which replaces the first when complete, as kube-runtime does.
    #[test]
    fn a_store_equals_the_reference_and_deltas_fold_to_it(steps in steps()) {
        let (store, mut writer) = store();
        let mut subscriber = writer.subscribe();
        let (mut published, mut relist) = (BTreeMap::new(), None::<BTreeMap<String, ConfigMap>>);
        let (mut from_deltas, mut from_subscriber) = (BTreeMap::new(), BTreeMap::new());
        for (version, step) in steps.into_iter().enumerate() {
            match step {
                Step::Look => {
                    while let Some(Some(delta)) = subscriber.next().now_or_never() {
                        fold(&mut from_subscriber, &delta);
                    }
                    prop_assert_eq!(&from_subscriber, &from_deltas);
                }
                Step::Event(what, name, uid) => {
                    // Few versions, so that relists repeat some.
                    let version = version % 5;
                    let named = object(&format!("n/{name}#{uid}@{version}"));
                    let key = named.metadata.name.clone().unwrap();
                    let event = match (what, &mut relist) {
                        (0, _) => { relist = Some(BTreeMap::new()); Event::Init }
                        (1 | 2, Some(relist)) => { relist.insert(key, named.clone()); Event::InitApply(named) }
                        (3 | 4, Some(_)) => { published = relist.take().unwrap(); Event::InitDone }
                        // Between Init and InitDone a watcher emits only InitApply.
                        (_, Some(_)) => continue,
                        (1..=3, None) => { published.insert(key, named.clone()); Event::Apply(named) }
                        (_, None) => {
                            if published.get(&key).is_some_and(|is| is.metadata.uid == named.metadata.uid) {
                                published.remove(&key);
                            }
                            Event::Delete(named)
                        }
                    };
                    for delta in writer.apply(event) {
                        fold(&mut from_deltas, &delta);
                    }
                }
            }
            let expected: Vec<String> = published.values().map(text).collect();
            prop_assert_eq!(state(&store), expected.join(" "));
            prop_assert_eq!(from_deltas.values().cloned().collect::<Vec<_>>(), expected);
        }
    }
}
