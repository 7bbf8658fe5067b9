//! The adapters, on streams of prepared events.

use std::time::Duration;

use futures::{FutureExt, Stream, StreamExt, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use rstest::rstest;

use super::*;
use crate::backoff::{BackoffConfig, DefaultBackoff};
use crate::{predicates, reflector};

fn object(name: &str, uid: &str, generation: i64) -> ConfigMap {
    let mut object = ConfigMap::default();
    object.metadata.name = Some(name.to_owned());
    object.metadata.uid = Some(uid.to_owned());
    object.metadata.generation = Some(generation);
    object
}

fn failure() -> Error {
    Error::EndlessList { pages: 1 }
}

fn events(events: Vec<Event<ConfigMap>>) -> impl Stream<Item = Result<Event<ConfigMap>, Error>> + Unpin {
    stream::iter(events.into_iter().map(Ok))
}

fn seen<T>(stream: impl Stream<Item = Result<T, Error>>) -> Vec<T> {
    let all: Vec<_> = stream.collect().now_or_never().expect("it is over");
    all.into_iter().map(|item| item.expect("no error")).collect()
}

fn names(stream: impl Stream<Item = Result<ConfigMap, Error>>) -> String {
    let seen = seen(stream);
    let words = seen.iter().map(|object| {
        let meta = &object.metadata;
        format!("{}{}", meta.name.as_deref().unwrap(), meta.generation.unwrap())
    });
    words.collect::<Vec<_>>().join(" ")
}

fn story() -> Vec<Event<ConfigMap>> {
    vec![
        Event::Init,
        Event::InitApply(object("a", "1", 1)),
        Event::InitDone,
        Event::Apply(object("a", "1", 1)),
        Event::Apply(object("a", "1", 2)),
        Event::Delete(object("a", "1", 2)),
        Event::Apply(object("a", "1", 2)),
        Event::Delete(object("a", "1", 2)),
        Event::Apply(object("a", "9", 2)),
    ]
}

#[test]
fn applied_and_touched() {
    assert_eq!(names(events(story()).applied_objects()), "a1 a1 a2 a2 a2");
    assert_eq!(names(events(story()).touched_objects()), "a1 a1 a2 a2 a2 a2 a2");
}

#[test]
fn a_filter_drops_repeats_but_no_deletes_or_recreated_objects() {
    let config = PredicateConfig::default();
    let touched = events(story()).touched_objects();
    // Of seven events, only the second is dropped.
    assert_eq!(
        names(touched.predicate_filter(predicates::generation, config)),
        "a1 a2 a2 a2 a2 a2"
    );
    let applied = events(story()).applied_objects();
    assert_eq!(
        names(applied.predicate_filter(predicates::generation, config)),
        "a1 a2 a2 a2"
    );
    // Bare objects do not show which were deleted in between.
    let bare = stream::iter(seen(events(story()).applied_objects()).into_iter().map(Ok));
    assert_eq!(
        names(bare.predicate_filter(predicates::generation, config)),
        "a1 a2 a2"
    );
}

#[tokio::test(start_paused = true)]
async fn a_filter_forgets_objects_after_its_ttl() {
    let (sender, receiver) = futures::channel::mpsc::unbounded();
    let config = PredicateConfig::default().ttl(Duration::from_secs(60));
    let mut filtered = receiver.map(Ok).predicate_filter(predicates::generation, config);
    sender.unbounded_send(object("a", "1", 1)).unwrap();
    assert!(filtered.next().await.is_some());
    sender.unbounded_send(object("a", "1", 1)).unwrap();
    assert!(filtered.next().now_or_never().is_none());
    tokio::time::advance(Duration::from_secs(61)).await;
    sender.unbounded_send(object("b", "2", 1)).unwrap();
    assert!(filtered.next().await.is_some());
    sender.unbounded_send(object("a", "1", 1)).unwrap();
    assert!(filtered.next().now_or_never().is_some());
}

#[rstest]
#[case::without_a_value_everything_passes(object("a", "1", 1), None, true)]
#[case::the_same_value(object("a", "1", 1), Some(1), false)]
fn a_predicate_may_have_no_value(#[case] object: ConfigMap, #[case] value: Option<u64>, #[case] twice: bool) {
    let pair = events(vec![Event::Apply(object.clone()), Event::Apply(object)]);
    let filtered = pair
        .applied_objects()
        .predicate_filter(move |_: &ConfigMap| value, PredicateConfig::default());
    assert_eq!(seen(filtered).len(), if twice { 2 } else { 1 });
}

#[test]
fn predicates_combine_and_fall_back() {
    let mut labelled = object("a", "1", 1);
    labelled.metadata.labels = Some([("app".to_owned(), "web".to_owned())].into());
    let plain = object("a", "1", 1);
    let both = predicates::generation.combine(predicates::labels);
    assert_ne!(both.hash_property(&labelled), both.hash_property(&plain));
    let none = |_: &ConfigMap| None;
    assert_eq!(none.hash_property(&plain), None);
    assert_eq!(
        none.fallback(predicates::generation).hash_property(&plain),
        predicates::generation(&plain)
    );
    assert_eq!(none.combine(none).hash_property(&plain), None);
}

#[test]
fn modify_reaches_every_object() {
    let changed = events(story()).modify(|object: &mut ConfigMap| object.metadata.generation = Some(7));
    assert_eq!(names(changed.touched_objects()), ["a7"; 7].join(" "));
}

#[test]
fn reflect_updates_the_store_and_deltas_report_changes() {
    let (store, writer) = reflector::store();
    assert_eq!(seen(events(story()).reflect(writer)).len(), story().len());
    assert_eq!(store.len(), 1);

    let (_store, writer) = reflector::store();
    let deltas = seen(events(story()).deltas(writer));
    assert_eq!(deltas.iter().filter(|delta| delta.is_deleted()).count(), 2);
    assert_eq!(deltas.len(), 7);
}

#[test]
fn atomic_relists_come_whole_or_not_at_all() {
    let received = seen(
        events(vec![
            Event::Init,
            Event::InitApply(object("a", "1", 1)),
            Event::Init,
            Event::InitApply(object("b", "2", 1)),
            Event::InitDone,
            Event::Apply(object("c", "3", 1)),
            Event::Delete(object("b", "2", 1)),
            Event::Init,
            Event::InitApply(object("d", "4", 1)),
        ])
        .atomic(),
    );
    assert_eq!(
        received,
        [
            AtomicEvent::Restarted(vec![object("b", "2", 1)]),
            AtomicEvent::Applied(object("c", "3", 1)),
            AtomicEvent::Deleted(object("b", "2", 1)),
        ]
    );
}

/// kube#1499 and similar: an `Init` before each failure resets kube-runtime's backoff, so it never grows.
#[tokio::test(start_paused = true)]
#[expect(clippy::disallowed_methods, reason = "the test reads the paused clock")]
async fn a_backoff_grows_until_there_is_progress() {
    let round = || [Ok(Event::<ConfigMap>::Init), Err(failure())];
    let failing = stream::iter((0..4).flat_map(|_| round()).chain([
        Ok(Event::InitDone),
        Err(failure()),
        Ok(Event::Init),
    ]));
    let backoff = DefaultBackoff::new(BackoffConfig::default(), 1);
    let start = tokio::time::Instant::now();
    let mut stream = std::pin::pin!(failing.backoff(backoff));
    let mut errors = Vec::new();
    while let Some(item) = stream.next().await {
        if item.is_err() {
            errors.push(start.elapsed());
        }
    }
    let gaps: Vec<Duration> = errors.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.windows(2).take(2).all(|pair| pair[1] > pair[0]), "{gaps:?}");
    let last = start.elapsed() - errors[4];
    assert!(last < Duration::from_millis(1600), "{last:?}");
}
