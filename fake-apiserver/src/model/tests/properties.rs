//! Random histories: every response equals that of a naive replay of the history.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// One operation on a store.
#[derive(Debug, Clone)]
enum Happening {
    Put {
        namespace: usize,
        name: usize,
        app: usize,
        data: usize,
    },
    Delete {
        namespace: usize,
        name: usize,
    },
    OtherResource,
    Freeze,
    Thaw,
}

const NAMESPACES: [&str; 4] = ["a", "a-b", "ab", "b"];
const NAMES: [&str; 4] = ["n", "n-1", "n.1", "z"];
const APPS: [Option<&str>; 3] = [None, Some("x"), Some("y")];

fn happening() -> impl Strategy<Value = Happening> {
    let (namespace, name) = (0..NAMESPACES.len(), 0..NAMES.len());
    prop_oneof![
        6 => (namespace.clone(), name.clone(), 0..APPS.len(), 0..3_usize)
            .prop_map(|(namespace, name, app, data)| Happening::Put { namespace, name, app, data }),
        3 => (namespace, name).prop_map(|(namespace, name)| Happening::Delete { namespace, name }),
        1 => Just(Happening::OtherResource),
        1 => Just(Happening::Freeze),
        1 => Just(Happening::Thaw),
    ]
}

/// Selection of a request, and the same without selectors.
#[derive(Debug, Clone)]
struct Asked {
    namespace: Option<usize>,
    label: usize,
    field: usize,
}

const LABELS: [&str; 8] = [
    "",
    "app",
    "!app",
    "app=x",
    "app!=x",
    "app in (x,y)",
    "app notin (x)",
    "app,app!=y",
];
const FIELDS: [&str; 4] = [
    "",
    "metadata.name=n-1",
    "metadata.name!=n",
    "metadata.namespace==a-b",
];

impl Asked {
    fn any() -> impl Strategy<Value = Self> {
        (
            proptest::option::of(0..NAMESPACES.len()),
            0..LABELS.len(),
            0..FIELDS.len(),
        )
            .prop_map(|(namespace, label, field)| Self {
                namespace,
                label,
                field,
            })
    }

    fn target(&self) -> String {
        let path = match self.namespace {
            Some(namespace) => format!("/api/v1/namespaces/{}/configmaps", NAMESPACES[namespace]),
            None => ALL_CM.to_owned(),
        };
        let encode = |text: &str| text.replace('=', "%3D").replace(',', "%2C").replace(' ', "+");
        format!(
            "{path}?labelSelector={}&fieldSelector={}",
            encode(LABELS[self.label]),
            encode(FIELDS[self.field])
        )
    }

    /// Selects without the model's own selectors.
    fn selects(&self, key: &str, app: Option<&str>) -> bool {
        let (namespace, name) = key.split_once('/').unwrap();
        let by_label = match self.label {
            0 => true,
            1 => app.is_some(),
            2 => app.is_none(),
            3 => app == Some("x"),
            4 | 6 => app != Some("x"),
            5 => app.is_some(),
            _ => app == Some("x"),
        };
        let by_field = match self.field {
            0 => true,
            1 => name == "n-1",
            2 => name != "n",
            _ => namespace == "a-b",
        };
        by_label && by_field && self.namespace.is_none_or(|asked| NAMESPACES[asked] == namespace)
    }
}

/// Key to revision and label of the existing objects.
type State = BTreeMap<String, (u64, Option<&'static str>)>;

/// Plays a history; returns the state after every revision.
fn play(world: &mut World, history: &[Happening]) -> BTreeMap<u64, State> {
    let mut state = State::new();
    let mut states = BTreeMap::from([(world.model.revision(), state.clone())]);
    for happening in history {
        match happening {
            Happening::Put {
                namespace,
                name,
                app,
                data,
            } => {
                let labels = APPS[*app].map_or(json!({}), |app| json!({ "app": app }));
                let object = json!({ "metadata": { "labels": labels }, "data": { "n": data.to_string() } });
                let written = world.apply(
                    "",
                    "configmaps",
                    Some(NAMESPACES[*namespace]),
                    NAMES[*name],
                    object,
                );
                state.insert(written.key, (written.revision, APPS[*app]));
            }
            Happening::Delete { namespace, name } => {
                let object = ObjectName {
                    group: String::new(),
                    plural: "configmaps".to_owned(),
                    namespace: Some(NAMESPACES[*namespace].to_owned()),
                    name: NAMES[*name].to_owned(),
                };
                let there = state.remove(&object.key()).is_some();
                assert_eq!(world.model.delete(world.now, &object).is_ok(), there);
            }
            Happening::OtherResource => {
                world.apply(
                    "",
                    "namespaces",
                    None,
                    &format!("n-{}", world.model.revision()),
                    json!({}),
                );
            }
            Happening::Freeze => world.turn(WatchCacheOp::Freeze),
            Happening::Thaw => world.turn(WatchCacheOp::Thaw),
        }
        states.insert(world.model.revision(), state.clone());
    }
    states
}

/// Returns the expected list of `state`: `key@revision`.
fn expected(asked: &Asked, state: &State) -> Vec<String> {
    let selected = state.iter().filter(|(key, (_, app))| asked.selects(key, *app));
    selected
        .map(|(key, (revision, _))| format!("{key}@{revision}"))
        .collect()
}

fn shown(page: &Page) -> Vec<String> {
    page.items
        .iter()
        .map(|item| format!("{}@{}", item.key, item.revision))
        .collect()
}

/// Returns the cache after a list and the lines of a watch.
fn follow(list: Vec<String>, lines: &[String]) -> Vec<String> {
    let split = |entry: &str| {
        let (key, revision) = entry.split_once('@').unwrap();
        (key.to_owned(), revision.to_owned())
    };
    let mut cache: BTreeMap<String, String> = list.iter().map(|entry| split(entry)).collect();
    for line in lines {
        let (word, object) = line.split_once(' ').unwrap();
        let (key, revision) = split(object);
        let known = match word {
            "DELETED" => cache.remove(&key),
            "ADDED" | "MODIFIED" => cache.insert(key, revision),
            other => panic!("{other} in a plain watch"),
        };
        assert_eq!(
            known.is_some(),
            word != "ADDED",
            "{line} comes to what is there, ADDED to what is not"
        );
    }
    cache
        .into_iter()
        .map(|(key, revision)| format!("{key}@{revision}"))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_list_at_any_revision_equals_the_replay_of_the_history(
        history in proptest::collection::vec(happening(), 0..40),
        asked in Asked::any(),
        limit in 1..5_usize,
    ) {
        let mut world = World::empty(&ServerSettings::default());
        let states = play(&mut world, &history);
        world.turn(WatchCacheOp::Thaw);
        for (revision, state) in &states {
            let exact = format!("{}&resourceVersion={revision}&resourceVersionMatch=Exact", asked.target());
            let whole = world.page(&exact);
            prop_assert_eq!(whole.resource_version, *revision);
            prop_assert_eq!(shown(&whole), expected(&asked, state));

            let mut page = world.page(&format!("{exact}&limit={limit}"));
            let mut pages = shown(&page);
            while let Some(token) = page.continue_token {
                page = world.page(&format!("{}&limit={limit}&continue={token}", asked.target()));
                prop_assert_eq!(page.resource_version, *revision);
                pages.extend(shown(&page));
            }
            prop_assert_eq!(pages, expected(&asked, state), "in pages of {}", limit);
        }
    }

    #[test]
    fn list_and_watch_from_any_revision_reach_the_newest_state(
        history in proptest::collection::vec(happening(), 0..40),
        later in proptest::collection::vec(happening(), 0..20),
        asked in Asked::any(),
    ) {
        let mut world = World::empty(&ServerSettings::default());
        let states = play(&mut world, &history);
        let mut watches: Vec<_> = states
            .keys()
            .map(|revision| (*revision, world.watch(&format!("{}&watch=1&resourceVersion={revision}", asked.target()))))
            .collect();
        let mut streaming = world.watch(&format!("{}&watch=1&resourceVersion=0", asked.target()));
        let mut said: Vec<Vec<String>> =
            watches.iter_mut().map(|(_, watch)| world.drain(watch)).collect();
        let mut streamed = world.drain(&mut streaming);
        play_on(&mut world, &later);
        world.turn(WatchCacheOp::Thaw);
        let newest = shown(&world.page(&asked.target()));
        for ((revision, watch), said) in watches.iter_mut().zip(&mut said) {
            said.extend(world.drain(watch));
            let revisions: Vec<u64> =
                said.iter().map(|line| line.split_once('@').unwrap().1.parse().unwrap()).collect();
            prop_assert!(revisions.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", said);
            prop_assert_eq!(&follow(expected(&asked, &states[revision]), said), &newest, "from {}", revision);
        }
        streamed.extend(world.drain(&mut streaming));
        prop_assert_eq!(follow(Vec::new(), &streamed), newest, "streamed");
    }

    #[test]
    fn tokens_survive_encoding_and_decoding(revision in 1..u64::try_from(i64::MAX).unwrap(), key in "[a-z0-9-]{1,9}(/[a-z0-9.<>&-]{1,9}x)?", cached: bool) {
        use apimachinery::continue_token::ContinueToken;
        let token = ContinueToken::after(revision, &key, cached);
        let read = ContinueToken::decode(&token.encode()).unwrap();
        prop_assert_eq!(read.start_key(), format!("{key}\0"));
        prop_assert_eq!(&read, &token);
    }
}

/// Continues a history, including deletes of objects that do not exist.
fn play_on(world: &mut World, history: &[Happening]) {
    for happening in history {
        match happening {
            Happening::Delete { namespace, name } => {
                let object = ObjectName {
                    group: String::new(),
                    plural: "configmaps".to_owned(),
                    namespace: Some(NAMESPACES[*namespace].to_owned()),
                    name: NAMES[*name].to_owned(),
                };
                let _ = world.model.delete(world.now, &object);
            }
            Happening::Put { .. } | Happening::OtherResource | Happening::Freeze | Happening::Thaw => {
                drop(play(world, std::slice::from_ref(happening)));
            }
        }
    }
}
