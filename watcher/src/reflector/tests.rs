//! What the store's promises mean, in tables, and in random stories against the plainest store there is.

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

fn told(delta: &Delta<ConfigMap>) -> String {
    match delta {
        Delta::Added(object) => format!("+{}", text(object)),
        Delta::Modified { old, new } => format!("{}>{}", text(old), text(new)),
        Delta::Deleted { last, inferred } => format!("-{}{}", text(last), if *inferred { "?" } else { "" }),
    }
}

fn tell(writer: &mut Writer<ConfigMap>, words: &str) -> String {
    let deltas = words
        .split_whitespace()
        .flat_map(|word| writer.apply(event(word)));
    deltas.map(|delta| told(&delta)).collect::<Vec<_>>().join(" ")
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
#[case::half_a_set_is_none("", "[ .n/a#1@5", "", "")]
#[case::an_unfinished_relist_changes_nothing(LISTED, "[ .n/c#3@7", "", "n/a#1@5 n/b#2@6")]
#[case::what_a_relist_does_without_is_gone(LISTED, "[ .n/b#2@6 ]", "-n/a#1@5?", "n/b#2@6")]
#[case::what_a_relist_repeats_is_no_news(LISTED, "[ .n/a#1@5 .n/b#2@6 ]", "", "n/a#1@5 n/b#2@6")]
#[case::what_a_relist_changes_is_told(LISTED, "[ .n/a#1@5 .n/b#2@9 ]", "n/b#2@6>n/b#2@9", "n/a#1@5 n/b#2@9")]
#[case::an_abandoned_relist_leaves_no_marks(
    LISTED,
    "[ .n/a#1@5 .n/c#3@7 [ .n/b#2@6 ]",
    "-n/a#1@5?",
    "n/b#2@6"
)]
#[case::a_page_read_twice_may_change_its_mind(
    LISTED,
    "[ .n/a#1@5 .n/b#2@9 .n/b#2@6 ]",
    "",
    "n/a#1@5 n/b#2@6"
)]
#[case::another_uid_is_another_object(LISTED, "+n/a#9@8", "-n/a#1@5? +n/a#9@8", "n/a#9@8 n/b#2@6")]
#[case::another_uid_in_a_relist(LISTED, "[ .n/a#9@8 .n/b#2@6 ]", "-n/a#1@5? +n/a#9@8", "n/a#9@8 n/b#2@6")]
#[case::a_delete_tells_the_last_state(LISTED, "-n/a#1@8", "-n/a#1@8", "n/b#2@6")]
#[case::a_delete_of_what_is_not_there(LISTED, "-n/c#3@8", "", "n/a#1@5 n/b#2@6")]
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
    tell(&mut writer, before);
    assert_eq!(tell(&mut writer, then), deltas);
    assert_eq!(state(&store), after);
    assert_eq!(store.len(), store.state().len());
}

#[test]
fn an_object_a_relist_repeats_stays_the_same() {
    let (store, mut writer) = store();
    tell(&mut writer, LISTED);
    let before = store.get(&ObjectRef::new("a").within("n")).unwrap();
    tell(&mut writer, LISTED);
    let after = store.get(&ObjectRef::new("a").within("n")).unwrap();
    assert!(Arc::ptr_eq(&before, &after));
}

#[test]
fn an_index_follows_the_set() {
    let (store, mut writer) = store();
    tell(&mut writer, "[ .n/a#1@5 ]");
    let by_version = store.index(|object| object.metadata.resource_version.iter().cloned().collect());
    let names = |version: &str| -> Vec<String> {
        let found = by_version.get(version);
        found.iter().map(|object| text(object)).collect()
    };
    assert_eq!(names("5"), ["n/a#1@5"]);
    tell(&mut writer, "+n/b#2@5 +n/a#1@6");
    assert_eq!(names("5"), ["n/b#2@5"]);
    assert_eq!(names("6"), ["n/a#1@6"]);
    tell(&mut writer, "[ ]");
    assert!(names("5").is_empty() && names("6").is_empty());
}

#[test]
fn a_cluster_scoped_object_is_found_by_a_reference_with_a_namespace() {
    let (store, mut writer) = store();
    tell(&mut writer, "[ ./a#1@5 ]");
    assert!(store.get(&ObjectRef::new("a").within("n")).is_some());
    assert!(store.get(&ObjectRef::new("b").within("n")).is_none());
}

#[test]
fn labels_select() {
    let (store, mut writer) = store();
    let mut labelled = object("n/a#1@5");
    labelled.metadata.labels = Some([("app".to_owned(), "web".to_owned())].into());
    writer.apply(Event::Apply(labelled));
    tell(&mut writer, "+n/b#2@6");
    let selector = kube_core::Selector::from(kube_core::Expression::Equal("app".into(), "web".into()));
    assert_eq!(store.state_filter_selector(&selector).len(), 1);
    let absent = kube_core::Selector::from(kube_core::Expression::DoesNotExist("app".into()));
    assert_eq!(store.state_filter_selector(&absent).len(), 1);
}

#[test]
fn readiness_comes_with_the_first_whole_set_and_wakes_every_waiter() {
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
    tell(&mut writer, "[ .n/a#1@5");
    assert!(!store.is_ready() && woken.iter().all(|flag| !flag.is_set()));
    tell(&mut writer, "]");
    assert!(store.is_ready() && woken.iter().all(|flag| flag.is_set()));
    for waiter in waiters {
        assert_eq!(waiter.now_or_never(), Some(Ok(())));
    }
    drop(writer);
    assert_eq!(store.wait_until_ready().now_or_never(), Some(Ok(())));
}

#[test]
fn a_writer_that_is_dropped_too_early_is_told() {
    let (store, mut writer) = store();
    tell(&mut writer, "[ .n/a#1@5");
    drop(writer);
    assert_eq!(store.wait_until_ready().now_or_never(), Some(Err(WriterDropped)));
    assert!(!store.is_ready());
}

#[rstest]
#[case::it_starts_with_the_set(LISTED, "", "+n/a#1@5 +n/b#2@6")]
#[case::what_was_never_told_is_told_as_it_is(LISTED, "+n/a#1@8", "+n/a#1@8 +n/b#2@6")]
#[case::what_came_and_went_is_not_told("[ ]", "+n/a#1@5 -n/a#1@6 +n/b#2@7", "+n/b#2@7")]
fn a_subscriber_is_told_what_it_missed(#[case] before: &str, #[case] then: &str, #[case] expected: &str) {
    let (_store, mut writer) = store();
    tell(&mut writer, before);
    let subscriber = writer.subscribe();
    tell(&mut writer, then);
    drop(writer);
    assert_eq!(rest(subscriber), expected);
}

#[rstest]
#[case::two_changes_are_one("+n/a#1@7 +n/a#1@8", "n/a#1@5>n/a#1@8")]
#[case::a_change_and_the_end("+n/a#1@7 -n/a#1@8", "-n/a#1@8")]
#[case::made_again("-n/a#1@8 +n/a#9@9", "-n/a#1@8 +n/a#9@9")]
#[case::made_again_and_changed("-n/a#1@8 +n/a#9@9 +n/a#9@10", "-n/a#1@8 +n/a#9@10")]
#[case::made_again_and_gone("-n/a#1@8 +n/a#9@9 -n/a#9@10", "-n/a#1@8")]
#[case::gone_in_a_gap("[ .n/b#2@6 ]", "-n/a#1@5?")]
#[case::the_first_to_change_is_the_first_told(
    "+n/b#2@7 +n/a#1@8 +n/b#2@9",
    "n/b#2@6>n/b#2@9 n/a#1@5>n/a#1@8"
)]
fn changes_a_subscriber_missed_are_folded(#[case] then: &str, #[case] expected: &str) {
    let (_store, mut writer) = store();
    tell(&mut writer, LISTED);
    let mut subscriber = writer.subscribe();
    while subscriber.next().now_or_never().is_some() {}
    tell(&mut writer, then);
    drop(writer);
    assert_eq!(rest(subscriber), expected);
}

#[test]
fn a_subscriber_that_sleeps_is_woken() {
    let (_store, mut writer) = store();
    let mut subscriber = writer.subscribe();
    let flag = Arc::new(Flag::default());
    let waker = std::task::Waker::from(Arc::clone(&flag));
    let mut context = std::task::Context::from_waker(&waker);
    assert!(subscriber.poll_next_unpin(&mut context).is_pending());
    // kube-runtime's handle is told of a name, finds nothing under it, and sleeps for ever.
    tell(&mut writer, "+n/a#1@5 -n/a#1@6");
    assert!(flag.is_set());
    assert!(subscriber.poll_next_unpin(&mut context).is_pending());
    flag.0.store(false, Ordering::SeqCst);
    tell(&mut writer, "+n/b#2@7");
    assert!(flag.is_set());
}

#[test]
fn a_subscriber_that_comes_too_late_gets_the_set_and_the_end() {
    let (store, mut writer) = store();
    tell(&mut writer, LISTED);
    drop(writer);
    assert_eq!(rest(store.subscribe()), "+n/a#1@5 +n/b#2@6");
}

fn rest(subscriber: Subscriber<ConfigMap>) -> String {
    let deltas: Vec<_> = subscriber.collect().now_or_never().expect("it is over");
    deltas.iter().map(told).collect::<Vec<_>>().join(" ")
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

/// A step of a story: an event, or a subscriber that looks.
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
    /// Two sets, the old one replaced by the new one when that is whole: what kube-runtime does.
    #[test]
    fn a_store_is_what_two_sets_would_be_and_deltas_fold_to_it(steps in steps()) {
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
                        // Between Init and InitDone a watcher tells nothing else.
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
