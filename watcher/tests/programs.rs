//! Random programs over a store, its indexes and subscribers, and a predicate filter, against a reference model: maps.
//!
//! A program is drawn from a seed, which is printed before it runs, and shrunk if it fails. Each wrong implementation
//! is found by the same programs. `cargo test -p watcher --test programs -- --ignored` runs 100,000.

mod seeds;

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;

use fastrand::Rng;
use futures::channel::mpsc;
use futures::{FutureExt, Stream, StreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use watcher::ext::PredicateConfig;
use watcher::reflector::{self, Delta, Index, Store, Subscriber, Writer};
use watcher::{Error, Event, WatchStreamExt, predicates};

/// Most steps of a program.
const STEPS_MAX: usize = 40;
/// Most subscribers of a program.
const SUBSCRIBERS_MAX: usize = 4;
/// Values of the label that indexes and the predicate read; empty: no label.
const LABELS: [&str; 3] = ["", "x", "y"];

/// A step of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Init,
    InitApply(State),
    InitDone,
    Apply(State),
    Delete(State),
    Subscribe,
    /// A subscriber takes at most this many deltas.
    Take(usize, usize),
    Unsubscribe(usize),
    /// Another index over the objects of then.
    Index,
}

/// A state of an object. Few values, so that states are repeated, and uids come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    name: u8,
    uid: u8,
    version: u8,
}

fn program(seed: u64) -> Vec<Step> {
    let mut rng = Rng::with_seed(seed);
    let steps = rng.usize(0..=STEPS_MAX);
    (0..steps).map(|_| step(&mut rng)).collect()
}

fn step(rng: &mut Rng) -> Step {
    let state = State {
        name: rng.u8(0..4),
        uid: rng.u8(0..3),
        version: rng.u8(1..6),
    };
    match rng.u8(0..20) {
        0 | 1 => Step::Init,
        2..6 => Step::InitApply(state),
        6 | 7 => Step::InitDone,
        8..12 => Step::Apply(state),
        12..14 => Step::Delete(state),
        14 => Step::Subscribe,
        15..18 => Step::Take(rng.usize(0..SUBSCRIBERS_MAX), rng.usize(1..5)),
        18 => Step::Unsubscribe(rng.usize(0..SUBSCRIBERS_MAX)),
        _ => Step::Index,
    }
}

fn object(state: State) -> ConfigMap {
    let mut object = ConfigMap::default();
    // Some names have no namespace.
    object.metadata.namespace = state.name.is_multiple_of(2).then(|| "n".to_owned());
    object.metadata.name = Some(state.name.to_string());
    object.metadata.uid = Some(state.uid.to_string());
    object.metadata.resource_version = Some(state.version.to_string());
    // A version is one content.
    let label = LABELS[usize::from(state.uid * 2 + state.version) % LABELS.len()];
    object.metadata.labels = (!label.is_empty()).then(|| [("app".to_owned(), label.to_owned())].into());
    object
}

/// A state as the model compares it: name, uid, version, label.
type Seen = (String, String, String, String);

fn seen(object: &ConfigMap) -> Seen {
    let of = |field: &Option<String>| field.clone().unwrap_or_default();
    let meta = &object.metadata;
    (
        of(&meta.name),
        of(&meta.uid),
        of(&meta.resource_version),
        label(object),
    )
}

fn label(object: &ConfigMap) -> String {
    let labels = object.metadata.labels.as_ref();
    labels
        .and_then(|labels| labels.get("app").cloned())
        .unwrap_or_default()
}

/// A change as the model compares it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    Added(Seen),
    Modified(Seen, Seen),
    /// The flag: whether it was inferred.
    Deleted(Seen, bool),
}

fn change(delta: &Delta<ConfigMap>) -> Change {
    match delta {
        Delta::Added(new) => Change::Added(seen(new)),
        Delta::Modified { old, new } => Change::Modified(seen(old), seen(new)),
        Delta::Deleted { last, inferred } => Change::Deleted(seen(last), *inferred),
    }
}

/// An implementation under test.
trait World {
    /// Applies an event; returns the changes.
    fn apply(&mut self, event: Event<ConfigMap>) -> Vec<Change>;
    /// Returns what a predicate filter over labels passes of an event.
    fn passes(&mut self, event: Event<ConfigMap>) -> Vec<Seen>;
    fn objects(&self) -> Vec<Seen>;
    fn index(&mut self);
    /// Returns the objects that each index has under this label.
    fn indexed(&self, label: &str) -> Vec<Vec<Seen>>;
    fn subscribe(&mut self);
    fn unsubscribe(&mut self, subscriber: usize);
    /// Returns the next change of a subscriber, if there is one.
    fn take(&mut self, subscriber: usize) -> Option<Change>;
}

/// The crate.
struct Real {
    store: Store<ConfigMap>,
    writer: Writer<ConfigMap>,
    indexes: Vec<Index<ConfigMap>>,
    subscribers: Vec<Option<Subscriber<ConfigMap>>>,
    events: mpsc::UnboundedSender<Result<Event<ConfigMap>, Error>>,
    filtered: Pin<Box<dyn Stream<Item = Result<ConfigMap, Error>>>>,
}

impl Real {
    fn new() -> Self {
        let (store, writer) = reflector::store();
        let (events, source) = mpsc::unbounded();
        let filtered = source
            .touched_objects()
            .predicate_filter(predicates::labels, PredicateConfig::default());
        Self {
            store,
            writer,
            indexes: Vec::new(),
            subscribers: Vec::new(),
            events,
            filtered: Box::pin(filtered),
        }
    }
}

impl World for Real {
    fn apply(&mut self, event: Event<ConfigMap>) -> Vec<Change> {
        self.writer.apply(event).iter().map(change).collect()
    }

    fn passes(&mut self, event: Event<ConfigMap>) -> Vec<Seen> {
        self.events
            .unbounded_send(Ok(event))
            .expect("the filter is there");
        let mut passed = Vec::new();
        while let Some(Some(Ok(object))) = self.filtered.next().now_or_never() {
            passed.push(seen(&object));
        }
        passed
    }

    fn objects(&self) -> Vec<Seen> {
        self.store.state().iter().map(|object| seen(object)).collect()
    }

    fn index(&mut self) {
        self.indexes.push(self.store.index(|object| vec![label(object)]));
    }

    fn indexed(&self, label: &str) -> Vec<Vec<Seen>> {
        let of = |index: &Index<ConfigMap>| index.get(label).iter().map(|object| seen(object)).collect();
        self.indexes.iter().map(of).collect()
    }

    fn subscribe(&mut self) {
        self.subscribers.push(Some(self.store.subscribe()));
    }

    fn unsubscribe(&mut self, subscriber: usize) {
        self.subscribers[subscriber] = None;
    }

    fn take(&mut self, subscriber: usize) -> Option<Change> {
        let subscriber = self.subscribers[subscriber].as_mut()?;
        let delta = subscriber.next().now_or_never().flatten()?;
        Some(change(&delta))
    }
}

/// What has to be.
#[derive(Default)]
struct Model {
    objects: BTreeMap<String, Seen>,
    relist: Option<BTreeMap<String, Seen>>,
    /// Last label by name and uid.
    labels: BTreeMap<(String, String), String>,
    indexes: usize,
    /// Objects of each subscriber, from its changes; `None`: it unsubscribed.
    subscribers: Vec<Option<BTreeMap<String, Seen>>>,
}

impl Model {
    /// Returns the event of a step, if the model allows it now.
    fn event(&self, step: Step) -> Option<Event<ConfigMap>> {
        // Between Init and InitDone a watcher emits only InitApply, or Init.
        match (step, &self.relist) {
            (Step::Init, _) => Some(Event::Init),
            (Step::InitApply(state), Some(_)) => Some(Event::InitApply(object(state))),
            (Step::InitDone, Some(_)) => Some(Event::InitDone),
            (Step::Apply(state), None) => Some(Event::Apply(object(state))),
            (Step::Delete(state), None) => Some(Event::Delete(object(state))),
            _ => None,
        }
    }

    fn apply(&mut self, event: &Event<ConfigMap>) -> Vec<Change> {
        match event {
            Event::Init => self.relist = Some(BTreeMap::new()),
            Event::InitApply(object) => {
                let new = seen(object);
                let relist = self.relist.as_mut().expect("a relist is under way");
                relist.insert(new.0.clone(), new);
            }
            Event::InitDone => {
                let relist = self.relist.take().expect("a relist is under way");
                let old = std::mem::replace(&mut self.objects, relist.clone());
                let mut changes = Vec::new();
                for (name, last) in &old {
                    if relist.get(name).is_none_or(|new| new.1 != last.1) {
                        changes.push(Change::Deleted(last.clone(), true));
                    }
                }
                for (name, new) in relist {
                    changes.extend(arrival(old.get(&name).filter(|old| old.1 == new.1), new));
                }
                return changes;
            }
            Event::Apply(object) => {
                let new = seen(object);
                let old = self.objects.insert(new.0.clone(), new.clone());
                let replaced = old.as_ref().filter(|old| old.1 != new.1);
                let replaced = replaced.map(|old| Change::Deleted(old.clone(), true));
                // An event is a change, even if it repeats a version; only relists leave unchanged objects out.
                let arrived = match old.as_ref().filter(|old| old.1 == new.1) {
                    Some(old) => Change::Modified(old.clone(), new),
                    None => Change::Added(new),
                };
                return replaced.into_iter().chain([arrived]).collect();
            }
            Event::Delete(object) => {
                let last = seen(object);
                // A late delete of an earlier object of this name deletes nothing.
                if self.objects.get(&last.0).is_some_and(|is| is.1 == last.1) {
                    self.objects.remove(&last.0);
                    return vec![Change::Deleted(last, false)];
                }
            }
        }
        Vec::new()
    }

    fn passes(&mut self, event: &Event<ConfigMap>) -> Vec<Seen> {
        match event {
            Event::Init | Event::InitDone => Vec::new(),
            Event::InitApply(object) | Event::Apply(object) => {
                let new = seen(object);
                let last = self.labels.insert((new.0.clone(), new.1.clone()), new.3.clone());
                if last.is_some_and(|last| last == new.3) {
                    return Vec::new();
                }
                vec![new]
            }
            Event::Delete(object) => {
                let last = seen(object);
                self.labels.remove(&(last.0.clone(), last.1.clone()));
                vec![last]
            }
        }
    }

    /// Applies a change to what a subscriber has. Returns why it cannot be.
    fn took(&mut self, subscriber: usize, change: &Change) -> Result<(), String> {
        let objects = self.subscribers[subscriber].as_mut().expect("it is subscribed");
        let (name, was) = match change {
            Change::Added(new) => (new.0.clone(), objects.insert(new.0.clone(), new.clone())),
            Change::Modified(_, new) => (new.0.clone(), objects.insert(new.0.clone(), new.clone())),
            Change::Deleted(last, _) => (last.0.clone(), objects.remove(&last.0)),
        };
        let fits = match (change, &was) {
            (Change::Added(new), None) => self.objects.get(&name) == Some(new),
            (Change::Modified(old, new), Some(was)) => old == was && self.objects.get(&name) == Some(new),
            (Change::Deleted(last, _), Some(was)) => last.1 == was.1,
            _ => false,
        };
        if fits {
            return Ok(());
        }
        Err(format!("subscriber {subscriber} had {was:?} and got {change:?}"))
    }
}

/// Returns the change of an object that is there now; `old`: the same object before.
fn arrival(old: Option<&Seen>, new: Seen) -> Option<Change> {
    match old {
        None => Some(Change::Added(new)),
        Some(old) if old.2 == new.2 => None,
        Some(old) => Some(Change::Modified(old.clone(), new)),
    }
}

/// Runs a program. Returns the first difference from the model.
fn run(world: &mut dyn World, program: &[Step]) -> Result<(), String> {
    let mut model = Model::default();
    for (number, step) in program.iter().enumerate() {
        one(world, &mut model, *step).map_err(|why| format!("step {number}, {step:?}: {why}"))?;
    }
    for subscriber in 0..model.subscribers.len() {
        take(world, &mut model, subscriber, usize::MAX)?;
    }
    Ok(())
}

fn one(world: &mut dyn World, model: &mut Model, step: Step) -> Result<(), String> {
    match step {
        Step::Subscribe if model.subscribers.len() < SUBSCRIBERS_MAX => {
            world.subscribe();
            model.subscribers.push(Some(BTreeMap::new()));
        }
        Step::Take(subscriber, most) if subscriber < model.subscribers.len() => {
            take(world, model, subscriber, most)?;
        }
        Step::Unsubscribe(subscriber) if subscriber < model.subscribers.len() => {
            world.unsubscribe(subscriber);
            model.subscribers[subscriber] = None;
        }
        Step::Index if model.indexes < 2 => {
            world.index();
            model.indexes += 1;
        }
        Step::Init
        | Step::InitApply(_)
        | Step::InitDone
        | Step::Apply(_)
        | Step::Delete(_)
        | Step::Subscribe
        | Step::Take(..)
        | Step::Unsubscribe(_)
        | Step::Index => {
            if let Some(event) = model.event(step) {
                same("passed", &world.passes(event.clone()), &model.passes(&event))?;
                let (mut changes, mut expected) = (world.apply(event.clone()), model.apply(&event));
                changes.sort();
                expected.sort();
                same("changes", &changes, &expected)?;
            }
        }
    }
    let objects: BTreeSet<Seen> = world.objects().into_iter().collect();
    same("objects", &objects, &model.objects.values().cloned().collect())?;
    for label in LABELS {
        let expected: BTreeSet<Seen> = model
            .objects
            .values()
            .filter(|is| is.3 == label)
            .cloned()
            .collect();
        for indexed in world.indexed(label) {
            let count = indexed.len();
            same("indexed", &indexed.into_iter().collect(), &expected)?;
            same("number of indexed", &count, &expected.len())?;
        }
    }
    Ok(())
}

fn take(world: &mut dyn World, model: &mut Model, subscriber: usize, most: usize) -> Result<(), String> {
    if model.subscribers[subscriber].is_none() {
        return same("changes after the end", &world.take(subscriber), &None);
    }
    for _ in 0..most {
        match world.take(subscriber) {
            Some(change) => model.took(subscriber, &change)?,
            // It has seen everything.
            None => {
                return same(
                    "subscriber",
                    &model.subscribers[subscriber],
                    &Some(model.objects.clone()),
                );
            }
        }
    }
    Ok(())
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, is: &T, expected: &T) -> Result<(), String> {
    if is == expected {
        return Ok(());
    }
    Err(format!("{what}: {is:?}, and not {expected:?}"))
}

/// Leaves steps out for as long as the program fails.
fn shrunk(mut program: Vec<Step>, fails: impl Fn(&[Step]) -> bool) -> Vec<Step> {
    let mut index = program.len();
    while index > 0 {
        index -= 1;
        let mut smaller = program.clone();
        smaller.remove(index);
        if fails(&smaller) {
            program = smaller;
            index = program.len();
        }
    }
    program
}

fn try_all(first: u64, cases: u64) {
    let run = |program: &[Step]| run(&mut Real::new(), program);
    let small = |program| shrunk(program, |program| run(program).is_err());
    seeds::try_all(first, cases, program, |program: &Vec<Step>| run(program), small);
}

#[test]
fn programs_equal_the_model() {
    try_all(0, 2_000);
}

#[test]
#[ignore = "long"]
fn a_hundred_thousand_programs_equal_the_model() {
    try_all(1_000_000, 100_000);
}

/// What a wrong implementation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mistake {
    IndexKeepsRemoved,
    IndexKeepsOldValue,
    SubscriberMissesLast,
    SubscriberGetsNothingOfARelist,
    SubscriberIsNeverDropped,
    FilterNeverForgets,
    FilterIgnoresUid,
    RelistDropsFirstDelete,
    RelistKeepsAbandoned,
    RelistKeepsOldObjects,
    DeleteIgnoresUid,
    ModifiedLosesOld,
}

const MISTAKES: [Mistake; 12] = [
    Mistake::IndexKeepsRemoved,
    Mistake::IndexKeepsOldValue,
    Mistake::SubscriberMissesLast,
    Mistake::SubscriberGetsNothingOfARelist,
    Mistake::SubscriberIsNeverDropped,
    Mistake::FilterNeverForgets,
    Mistake::FilterIgnoresUid,
    Mistake::RelistDropsFirstDelete,
    Mistake::RelistKeepsAbandoned,
    Mistake::RelistKeepsOldObjects,
    Mistake::DeleteIgnoresUid,
    Mistake::ModifiedLosesOld,
];

/// The crate with a mistake.
struct Wrong {
    real: Real,
    mistake: Mistake,
    /// Objects that a wrong index still has, by label.
    kept: BTreeSet<Seen>,
    /// The change that a subscriber has not delivered.
    held: BTreeMap<usize, Change>,
    relisting: bool,
    /// Objects of an abandoned relist, or of before it.
    extra: BTreeMap<String, Seen>,
    labels: BTreeMap<(String, String), String>,
    taken: BTreeSet<usize>,
    relisted: bool,
}

impl Wrong {
    fn new(mistake: Mistake) -> Self {
        Self {
            real: Real::new(),
            mistake,
            kept: BTreeSet::new(),
            held: BTreeMap::new(),
            relisting: false,
            extra: BTreeMap::new(),
            labels: BTreeMap::new(),
            taken: BTreeSet::new(),
            relisted: false,
        }
    }

    fn is(&self, mistake: Mistake) -> bool {
        self.mistake == mistake
    }
}

impl World for Wrong {
    fn apply(&mut self, event: Event<ConfigMap>) -> Vec<Change> {
        let is_done = matches!(event, Event::InitDone);
        match &event {
            Event::Init => {
                if self.is(Mistake::RelistKeepsAbandoned) && self.relisting {
                    // The marks of the first attempt stay.
                    return Vec::new();
                }
                self.relisting = true;
            }
            Event::Delete(object) if self.is(Mistake::DeleteIgnoresUid) => {
                let deleted = seen(object);
                let known = self.real.store.find(|is| seen(is).0 == deleted.0);
                if let Some(known) = known {
                    return self.real.apply(Event::Delete(ConfigMap::clone(&known)));
                }
            }
            Event::InitApply(_) | Event::InitDone | Event::Apply(_) | Event::Delete(_) => {}
        }
        self.relisting &= !is_done;
        self.relisted = is_done;
        let before: BTreeMap<String, Seen> = self
            .real
            .objects()
            .into_iter()
            .map(|is| (is.0.clone(), is))
            .collect();
        let mut changes = self.real.apply(event);
        for change in &changes {
            match change {
                Change::Deleted(last, _) if self.is(Mistake::IndexKeepsRemoved) => {
                    self.kept.extend(before.get(&last.0).cloned());
                }
                Change::Modified(old, new) if self.is(Mistake::IndexKeepsOldValue) && old.3 != new.3 => {
                    self.kept.insert(old.clone());
                }
                Change::Added(_) | Change::Modified(..) | Change::Deleted(..) => {}
            }
        }
        if is_done && self.is(Mistake::RelistKeepsOldObjects) {
            let now: BTreeSet<String> = self.real.objects().into_iter().map(|is| is.0).collect();
            self.extra = before
                .into_iter()
                .filter(|(name, _)| !now.contains(name))
                .collect();
        }
        if is_done && self.is(Mistake::RelistDropsFirstDelete) {
            let first = changes
                .iter()
                .position(|change| matches!(change, Change::Deleted(..)));
            first.map(|first| changes.remove(first));
        }
        if self.is(Mistake::ModifiedLosesOld) {
            for change in &mut changes {
                if let Change::Modified(old, new) = change {
                    *old = new.clone();
                }
            }
        }
        changes
    }

    fn passes(&mut self, event: Event<ConfigMap>) -> Vec<Seen> {
        let known_to_the_wrong = |object: &ConfigMap, mistake: Mistake| {
            let (name, uid, _, label) = seen(object);
            let uid = if mistake == Mistake::FilterIgnoresUid {
                String::new()
            } else {
                uid
            };
            ((name, uid), label)
        };
        if !(self.is(Mistake::FilterNeverForgets) || self.is(Mistake::FilterIgnoresUid)) {
            return self.real.passes(event);
        }
        match &event {
            Event::Init | Event::InitDone => Vec::new(),
            Event::InitApply(object) | Event::Apply(object) => {
                let (key, label) = known_to_the_wrong(object, self.mistake);
                let last = self.labels.insert(key, label.clone());
                if last.is_some_and(|last| last == label) {
                    return Vec::new();
                }
                vec![seen(object)]
            }
            Event::Delete(object) => {
                if self.is(Mistake::FilterIgnoresUid) {
                    self.labels.remove(&known_to_the_wrong(object, self.mistake).0);
                }
                vec![seen(object)]
            }
        }
    }

    fn objects(&self) -> Vec<Seen> {
        let mut objects = self.real.objects();
        objects.extend(self.extra.values().cloned());
        objects
    }

    fn index(&mut self) {
        self.real.index();
    }

    fn indexed(&self, label: &str) -> Vec<Vec<Seen>> {
        let mut indexed = self.real.indexed(label);
        for objects in &mut indexed {
            objects.extend(self.kept.iter().filter(|is| is.3 == label).cloned());
        }
        indexed
    }

    fn subscribe(&mut self) {
        self.real.subscribe();
    }

    fn unsubscribe(&mut self, subscriber: usize) {
        if !self.is(Mistake::SubscriberIsNeverDropped) {
            self.real.unsubscribe(subscriber);
        }
    }

    fn take(&mut self, subscriber: usize) -> Option<Change> {
        if self.is(Mistake::SubscriberMissesLast) {
            let next = self.real.take(subscriber)?;
            if let Some(held) = self.held.insert(subscriber, next) {
                return Some(held);
            }
            let second = self.real.take(subscriber)?;
            return self.held.insert(subscriber, second);
        }
        if self.is(Mistake::SubscriberGetsNothingOfARelist)
            && self.relisted
            && self.taken.contains(&subscriber)
        {
            while self.real.take(subscriber).is_some() {}
            return None;
        }
        self.taken.insert(subscriber);
        self.real.take(subscriber)
    }
}

/// Each is found within 1,000 programs, and shrunk to a few steps that the crate passes.
#[test]
fn every_mistake_is_found() {
    for mistake in MISTAKES {
        let fails = |program: &[Step]| run(&mut Wrong::new(mistake), program).is_err();
        let found = (0..1_000).map(program).find(|program| fails(program));
        let found = found.unwrap_or_else(|| panic!("{mistake:?} was not found"));
        let small = shrunk(found, fails);
        assert!(small.len() <= 7, "{mistake:?}: {small:#?}");
        assert_eq!(run(&mut Real::new(), &small), Ok(()), "{mistake:?}: {small:#?}");
    }
}
