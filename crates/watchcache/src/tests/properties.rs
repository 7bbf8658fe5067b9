//! Random histories: every answer equals what a naive replay of the history gives.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const KEYS: [&str; 6] = ["a/1", "a/2", "a-b/1", "ab/1", "b/1", "c"];
const TAGS: [&str; 3] = ["", "x", "y"];

#[derive(Debug, Clone)]
enum Step {
    Put(usize, usize),
    Delete(usize),
    Other,
    Freeze,
    Thaw,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..KEYS.len(), 0..TAGS.len()).prop_map(|(key, tag)| Step::Put(key, tag)),
        3 => (0..KEYS.len()).prop_map(Step::Delete),
        1 => Just(Step::Other),
        1 => Just(Step::Freeze),
        1 => Just(Step::Thaw),
    ]
}

/// Key to revision and tag.
type State = BTreeMap<&'static str, (u64, &'static str)>;

/// Plays a history on top of `state`; returns the state after every revision.
fn play(world: &mut World, mut state: State, history: &[Step]) -> BTreeMap<u64, State> {
    let mut states = BTreeMap::from([(world.storage.revision(), state.clone())]);
    for step in history {
        match step {
            Step::Put(key, tag) => {
                let note = world.put(KEYS[*key], TAGS[*tag]);
                state.insert(KEYS[*key], (note.revision, TAGS[*tag]));
            }
            Step::Delete(key) => {
                let known = state.remove(KEYS[*key]).is_some();
                assert_eq!(world.delete(KEYS[*key]), known);
            }
            Step::Other => drop(world.put_into(world.others, "o", "")),
            Step::Freeze => world.operate(WatchCacheOp::Freeze),
            Step::Thaw => world.operate(WatchCacheOp::Thaw),
        }
        states.insert(world.storage.revision(), state.clone());
    }
    states
}

fn expected(state: &State, namespace: Option<&str>, tag: &str) -> Vec<String> {
    let selected = state.iter().filter(|(key, (_, other))| {
        let known = key.split_once('/').map(|(namespace, _)| namespace);
        (namespace.is_none() || namespace == known) && (tag.is_empty() || tag == *other)
    });
    selected
        .map(|(key, (revision, _))| format!("{key}@{revision}"))
        .collect()
}

fn shown(page: &Page<Note>) -> Vec<String> {
    let notes = page.items.iter();
    notes
        .map(|note| format!("{}@{}", note.key, note.revision))
        .collect()
}

/// The objects of a client that listed and then watched.
fn followed(list: Vec<String>, sent: &[String]) -> Vec<String> {
    let split = |text: &str| {
        let (key, revision) = text.split_once('@').unwrap();
        (key.to_owned(), revision.to_owned())
    };
    let mut objects: BTreeMap<String, String> = list.iter().map(|text| split(text)).collect();
    for event in sent {
        let (word, object) = event.split_once(' ').unwrap();
        let (key, revision) = split(object);
        let known = match word {
            "DELETED" => objects.remove(&key),
            _ => objects.insert(key, revision),
        };
        assert_eq!(known.is_some(), word != "ADDED", "{event}");
    }
    let objects = objects.into_iter();
    objects
        .map(|(key, revision)| format!("{key}@{revision}"))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_list_at_any_revision_equals_the_replay(
        history in proptest::collection::vec(step(), 0..40),
        namespace in proptest::option::of(prop_oneof![Just("a"), Just("a-b"), Just("ab")]),
        tag in 0..TAGS.len(),
        limit in 1..4_usize,
    ) {
        let (mut world, view) = (World::empty(&Settings::default()), Tagged(TAGS[tag]));
        let states = play(&mut world, State::new(), &history);
        world.operate(WatchCacheOp::Thaw);
        for (revision, state) in &states {
            let options = ListOptions { namespace: namespace.map(str::to_owned), ..exactly(*revision) };
            let expected = expected(state, namespace, TAGS[tag]);
            prop_assert_eq!(&shown(&world.page(&options, &view)), &expected);

            let options = ListOptions { limit: Some(limit), ..options };
            let mut page = world.page(&options, &view);
            let mut pages = shown(&page);
            while page.continue_token.is_some() {
                page = world.page(&next(&options, page.continue_token.take()), &view);
                prop_assert_eq!(page.revision, *revision);
                pages.extend(shown(&page));
            }
            prop_assert_eq!(pages, expected, "in pages of {}", limit);
        }
    }

    #[test]
    fn a_watch_from_any_revision_leads_to_the_newest_list(
        history in proptest::collection::vec(step(), 0..40),
        later in proptest::collection::vec(step(), 0..20),
        tag in 0..TAGS.len(),
    ) {
        let (mut world, view) = (World::empty(&Settings::default()), Tagged(TAGS[tag]));
        let states = play(&mut world, State::new(), &history);
        let last = states.values().next_back().cloned().unwrap_or_default();
        let mut watches: Vec<_> = states
            .iter()
            .map(|(revision, state)| (world.watch(&from(*revision), &view), expected(state, None, TAGS[tag])))
            .collect();
        watches.push((world.watch(&WatchOptions::default(), &view), Vec::new()));
        let mut sent: Vec<_> = watches.iter_mut().map(|(watch, _)| world.drain(watch, &view)).collect();
        play(&mut world, last, &later);
        world.operate(WatchCacheOp::Thaw);
        let newest = shown(&world.page(&ListOptions::default(), &view));
        for ((watch, list), sent) in watches.iter_mut().zip(&mut sent) {
            sent.extend(world.drain(watch, &view));
            prop_assert_eq!(&followed(list.clone(), sent), &newest);
        }
    }
}
