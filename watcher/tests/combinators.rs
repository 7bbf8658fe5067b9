//! Random programs over chains of stream combinators (`modify`, `backoff`, and `atomic` or an object stream at the end)
//! against a reference model, in virtual time.
//!
//! A program is drawn from a seed, which is printed before it runs, and shrunk if it fails. Each wrong implementation
//! is found by the same programs. `cargo test -p watcher --test combinators -- --ignored` runs 100,000.

mod seeds;

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use fastrand::Rng;
use futures::channel::mpsc;
use futures::future::ready as ready_now;
use futures::{FutureExt, Stream, StreamExt, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use watcher::ext::{AtomicEvent, Backoff};
use watcher::{Error, Event, WatchStreamExt};

/// Most items of a source.
const ITEMS_MAX: usize = 24;
/// Most stages of a chain.
const STAGES_MAX: usize = 4;
/// Time between two looks at a stream.
const TICK: Duration = Duration::from_millis(1);
/// Ticks after which a stream that has not ended hangs.
const TICKS_MAX: u64 = 2_000;

/// A source, and what it passes through.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Program {
    stages: Vec<Stage>,
    last: Last,
    /// Ticks after the item before, and the item.
    items: Vec<(u64, Item)>,
    /// Ticks after the last item at which the source ends.
    end_after: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Stage {
    Modify,
    /// Delays in ticks; after the last one, whether the backoff ends, or repeats it.
    Backoff(Vec<u64>, bool),
}

/// End of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    Events,
    Atomic,
    Applied,
    Touched,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Item {
    Init,
    InitApply(u8),
    InitDone,
    Apply(u8),
    Delete(u8),
    Failure,
}

fn program(seed: u64) -> Program {
    let mut rng = Rng::with_seed(seed);
    let stages = (0..rng.usize(0..=STAGES_MAX)).map(|_| stage(&mut rng)).collect();
    let last = match rng.u8(0..6) {
        0 => Last::Events,
        1 => Last::Applied,
        2 => Last::Touched,
        _ => Last::Atomic,
    };
    let items = (0..rng.usize(0..=ITEMS_MAX))
        .map(|_| (gap(&mut rng), item(&mut rng)))
        .collect();
    Program {
        stages,
        last,
        items,
        end_after: gap(&mut rng),
    }
}

fn stage(rng: &mut Rng) -> Stage {
    if rng.bool() {
        return Stage::Modify;
    }
    let delays = (0..rng.usize(1..5)).map(|_| rng.u64(1..12)).collect();
    Stage::Backoff(delays, rng.u8(0..4) == 0)
}

/// Returns zero often: items that are there before anyone waits for them.
fn gap(rng: &mut Rng) -> u64 {
    if rng.bool() { 0 } else { rng.u64(0..10) }
}

fn item(rng: &mut Rng) -> Item {
    let name = rng.u8(0..4);
    match rng.u8(0..16) {
        0..2 => Item::Init,
        2..5 => Item::InitApply(name),
        5..7 => Item::InitDone,
        7..9 => Item::Apply(name),
        9 => Item::Delete(name),
        _ => Item::Failure,
    }
}

/// What a stream passes, as the model compares it. An object is its name, and the marks of the stages that modified it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Out {
    Init,
    InitApply(String),
    InitDone,
    Apply(String),
    Delete(String),
    Restarted(Vec<String>),
    Object(String),
    Failure,
    /// The stream ended, and stays ended.
    End,
    /// The stream ended, and went on.
    After,
}

/// Outputs with the ticks at which they came.
type Outputs = Vec<(u64, Out)>;

/// Returns what the chain has to pass.
///
/// An item comes at its own time, or when the pauses of all stages are over, whichever is last: a stage that pauses does
/// not poll the stages before it.
fn expected(program: &Program) -> Outputs {
    let mut model = Model {
        tries: vec![0; program.stages.len()],
        counts: vec![0; program.stages.len()],
        ready_at: vec![0; program.stages.len()],
        relist: Vec::new(),
    };
    let mut outputs = Vec::new();
    let (mut arrives, mut now) = (0, 0);
    for (after, item) in &program.items {
        arrives += after;
        now = model.next_poll(0, now).max(arrives);
        outputs.extend(model.passes(program, *item).map(|out| (now, out)));
        if *item == Item::Failure
            && let Some(over) = model.fails(program, now)
        {
            // The stages after the one that is over still pause.
            outputs.push((model.next_poll(over + 1, now), Out::End));
            return outputs;
        }
    }
    arrives += program.end_after;
    outputs.push((model.next_poll(0, now).max(arrives), Out::End));
    outputs
}

struct Model {
    /// Delays of each stage since the last progress.
    tries: Vec<usize>,
    /// Calls of each stage's function.
    counts: Vec<usize>,
    /// End of each stage's pause.
    ready_at: Vec<u64>,
    relist: Vec<String>,
}

impl Model {
    /// Returns when the stages from this one on have no pause.
    fn next_poll(&self, stage: usize, now: u64) -> u64 {
        self.ready_at[stage..].iter().copied().fold(now, u64::max)
    }

    /// Starts the pauses after a failure. Returns the last stage whose backoff is over.
    fn fails(&mut self, program: &Program, now: u64) -> Option<usize> {
        let mut over = None;
        for (number, stage) in program.stages.iter().enumerate() {
            let Stage::Backoff(delays, ends) = stage else {
                continue;
            };
            let tried = self.tries[number];
            self.tries[number] += 1;
            if *ends && tried >= delays.len() {
                over = Some(number);
            } else {
                self.ready_at[number] = now + delays[tried.min(delays.len() - 1)];
            }
        }
        over
    }

    fn passes(&mut self, program: &Program, item: Item) -> Option<Out> {
        let object = match item {
            Item::InitApply(name) | Item::Apply(name) | Item::Delete(name) => self.marked(program, name),
            Item::Init | Item::InitDone | Item::Failure => String::new(),
        };
        if matches!(item, Item::InitDone | Item::Apply(_) | Item::Delete(_)) {
            self.tries.fill(0);
        }
        match (program.last, item) {
            (_, Item::Failure) => Some(Out::Failure),
            (Last::Events, Item::Init) => Some(Out::Init),
            (Last::Events, Item::InitApply(_)) => Some(Out::InitApply(object)),
            (Last::Events, Item::InitDone) => Some(Out::InitDone),
            (Last::Events | Last::Atomic, Item::Apply(_)) => Some(Out::Apply(object)),
            (Last::Events | Last::Atomic, Item::Delete(_)) => Some(Out::Delete(object)),
            (Last::Atomic, Item::Init) => {
                self.relist.clear();
                None
            }
            (Last::Atomic, Item::InitApply(_)) => {
                self.relist.push(object);
                None
            }
            (Last::Atomic, Item::InitDone) => Some(Out::Restarted(std::mem::take(&mut self.relist))),
            (Last::Applied | Last::Touched, Item::InitApply(_) | Item::Apply(_))
            | (Last::Touched, Item::Delete(_)) => Some(Out::Object(object)),
            (Last::Applied | Last::Touched, Item::Init | Item::InitDone)
            | (Last::Applied, Item::Delete(_)) => None,
        }
    }

    /// Returns an object after all stages: each function is called once per object.
    fn marked(&mut self, program: &Program, name: u8) -> String {
        let mut object = name.to_string();
        for (number, stage) in program.stages.iter().enumerate() {
            if *stage == Stage::Modify {
                self.counts[number] += 1;
                object += &mark(number, self.counts[number]);
            }
        }
        object
    }
}

fn mark(stage: usize, calls: usize) -> String {
    format!(" {stage}:{calls}")
}

/// What a wrong implementation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mistake {
    BackoffIsResetByInit,
    BackoffIsNeverReset,
    BackoffOutlivesItsDelays,
    BackoffWaitsTwice,
    BackoffSkipsFirstDelay,
    BackoffDropsErrors,
    ModifySkipsDeletes,
    ModifySkipsRelists,
    ModifyIsCalledTwice,
    AtomicKeepsAbandoned,
    AtomicDropsErrors,
    AtomicClearsOnErrors,
    AtomicSkipsEmptyRelists,
    StreamGoesOnAfterItsEnd,
}

const MISTAKES: [Mistake; 14] = [
    Mistake::BackoffIsResetByInit,
    Mistake::BackoffIsNeverReset,
    Mistake::BackoffOutlivesItsDelays,
    Mistake::BackoffWaitsTwice,
    Mistake::BackoffSkipsFirstDelay,
    Mistake::BackoffDropsErrors,
    Mistake::ModifySkipsDeletes,
    Mistake::ModifySkipsRelists,
    Mistake::ModifyIsCalledTwice,
    Mistake::AtomicKeepsAbandoned,
    Mistake::AtomicDropsErrors,
    Mistake::AtomicClearsOnErrors,
    Mistake::AtomicSkipsEmptyRelists,
    Mistake::StreamGoesOnAfterItsEnd,
];

/// A backoff with given delays.
struct Script {
    delays: Vec<u64>,
    ends: bool,
    tried: Arc<AtomicUsize>,
    mistake: Option<Mistake>,
}

impl Iterator for Script {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let tried = self.tried.fetch_add(1, Ordering::Relaxed);
        if self.ends && tried >= self.delays.len() && self.mistake != Some(Mistake::BackoffOutlivesItsDelays)
        {
            return None;
        }
        let skipped = usize::from(self.mistake == Some(Mistake::BackoffSkipsFirstDelay));
        let delay = TICK * u32::try_from(self.delays[(tried + skipped).min(self.delays.len() - 1)]).ok()?;
        Some(if self.mistake == Some(Mistake::BackoffWaitsTwice) {
            delay * 2
        } else {
            delay
        })
    }
}

impl Backoff for Script {
    fn reset(&mut self) {
        if self.mistake != Some(Mistake::BackoffIsNeverReset) {
            self.tried.store(0, Ordering::Relaxed);
        }
    }
}

type Events = Pin<Box<dyn Stream<Item = Result<Event<ConfigMap>, Error>>>>;
type Passed = Pin<Box<dyn Stream<Item = Out>>>;

/// Builds the chain of a program, of the crate's combinators, or with a mistake.
fn built(program: &Program, source: Events, mistake: Option<Mistake>) -> Passed {
    let mut events = source;
    for (number, stage) in program.stages.iter().enumerate() {
        events = match stage {
            Stage::Modify => modified(events, number, mistake),
            Stage::Backoff(delays, ends) => paused(events, delays.clone(), *ends, mistake),
        };
    }
    match program.last {
        Last::Events => Box::pin(events.map(event)),
        Last::Atomic => atomic(events, mistake),
        Last::Applied => Box::pin(events.applied_objects().map(bare)),
        Last::Touched => Box::pin(events.touched_objects().map(bare)),
    }
}

fn modified(events: Events, number: usize, mistake: Option<Mistake>) -> Events {
    let mut calls = 0;
    let mut change = move |object: &mut ConfigMap| {
        calls += 1;
        object
            .metadata
            .name
            .get_or_insert_default()
            .push_str(&mark(number, calls));
    };
    match mistake {
        Some(wrong @ (Mistake::ModifySkipsDeletes | Mistake::ModifySkipsRelists)) => {
            Box::pin(events.map(move |event| {
                event.map(|event| match (wrong, event) {
                    (Mistake::ModifySkipsDeletes, event @ Event::Delete(_))
                    | (Mistake::ModifySkipsRelists, event @ Event::InitApply(_)) => event,
                    (_, event) => event.modify(&mut change),
                })
            }))
        }
        Some(Mistake::ModifyIsCalledTwice) => Box::pin(events.modify(move |object| {
            change(object);
            change(object);
        })),
        _ => Box::pin(events.modify(change)),
    }
}

fn paused(events: Events, delays: Vec<u64>, ends: bool, mistake: Option<Mistake>) -> Events {
    let tried = Arc::new(AtomicUsize::new(0));
    let script = Script {
        delays,
        ends,
        tried: Arc::clone(&tried),
        mistake,
    };
    match mistake {
        Some(Mistake::BackoffIsResetByInit) => Box::pin(
            events
                .inspect(move |event| {
                    if matches!(event, Ok(Event::Init)) {
                        tried.store(0, Ordering::Relaxed);
                    }
                })
                .backoff(script),
        ),
        Some(Mistake::BackoffDropsErrors) => {
            Box::pin(events.backoff(script).filter(|event| ready_now(event.is_ok())))
        }
        Some(Mistake::StreamGoesOnAfterItsEnd) => {
            let first = Some(Box::pin(events.backoff(script)) as Events);
            let then = Box::pin(stream::once(async { Ok(Event::Init) }));
            Box::pin(Reopened { first, then })
        }
        _ => Box::pin(events.backoff(script)),
    }
}

/// A stream that ends, and then goes on as another.
struct Reopened {
    first: Option<Events>,
    then: Events,
}

impl Stream for Reopened {
    type Item = Result<Event<ConfigMap>, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(first) = &mut self.first else {
            return self.then.poll_next_unpin(cx);
        };
        let item = ready!(first.poll_next_unpin(cx));
        if item.is_none() {
            self.first = None;
        }
        Poll::Ready(item)
    }
}

fn atomic(events: Events, mistake: Option<Mistake>) -> Passed {
    let outs = |events: Events| Box::pin(events.atomic().map(whole)) as Passed;
    match mistake {
        Some(Mistake::AtomicKeepsAbandoned) => outs(Box::pin(
            events.filter(|event| ready_now(!matches!(event, Ok(Event::Init)))),
        )),
        Some(Mistake::AtomicClearsOnErrors) => outs(Box::pin(events.flat_map(|event| {
            let clears = event.is_err().then_some(Ok(Event::Init));
            stream::iter(std::iter::once(event).chain(clears))
        }))),
        Some(Mistake::AtomicDropsErrors) => {
            Box::pin(outs(events).filter(|out| ready_now(*out != Out::Failure)))
        }
        Some(Mistake::AtomicSkipsEmptyRelists) => {
            Box::pin(outs(events).filter(|out| ready_now(*out != Out::Restarted(Vec::new()))))
        }
        _ => outs(events),
    }
}

fn event(event: Result<Event<ConfigMap>, Error>) -> Out {
    match event {
        Ok(Event::Init) => Out::Init,
        Ok(Event::InitApply(object)) => Out::InitApply(name(object)),
        Ok(Event::InitDone) => Out::InitDone,
        Ok(Event::Apply(object)) => Out::Apply(name(object)),
        Ok(Event::Delete(object)) => Out::Delete(name(object)),
        Err(_) => Out::Failure,
    }
}

fn whole(event: Result<AtomicEvent<ConfigMap>, Error>) -> Out {
    match event {
        Ok(AtomicEvent::Applied(object)) => Out::Apply(name(object)),
        Ok(AtomicEvent::Deleted(object)) => Out::Delete(name(object)),
        Ok(AtomicEvent::Restarted(objects)) => Out::Restarted(objects.into_iter().map(name).collect()),
        Err(_) => Out::Failure,
    }
}

fn bare(object: Result<ConfigMap, Error>) -> Out {
    object.map_or(Out::Failure, |object| Out::Object(name(object)))
}

fn name(object: ConfigMap) -> String {
    object.metadata.name.unwrap_or_default()
}

fn emitted(item: Item) -> Result<Event<ConfigMap>, Error> {
    let object = |name: u8| {
        let mut object = ConfigMap::default();
        object.metadata.name = Some(name.to_string());
        object
    };
    Ok(match item {
        Item::Init => Event::Init,
        Item::InitApply(name) => Event::InitApply(object(name)),
        Item::InitDone => Event::InitDone,
        Item::Apply(name) => Event::Apply(object(name)),
        Item::Delete(name) => Event::Delete(object(name)),
        Item::Failure => return Err(Error::EndlessList { pages: 1 }),
    })
}

/// Runs a program in virtual time: nothing waits, the clock is advanced tick by tick.
fn outputs(program: &Program, mistake: Option<Mistake>) -> Outputs {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without I/O asks the system for nothing");
    runtime.block_on(async {
        let (sender, receiver) = mpsc::unbounded();
        let mut sender = Some(sender);
        let mut passed = built(program, Box::pin(receiver), mistake);
        let mut outputs = Vec::new();
        let mut due = 0;
        let mut items = Vec::new();
        for (after, item) in &program.items {
            due += after;
            items.push((due, *item));
        }
        let end = due + program.end_after;
        let mut items = items.into_iter().peekable();
        for tick in 0..TICKS_MAX {
            while let Some((_, item)) = items.next_if(|(due, _)| *due <= tick) {
                if let Some(sender) = &sender {
                    // A chain that is over may have dropped its source.
                    let _closed = sender.unbounded_send(emitted(item));
                }
            }
            if tick >= end {
                sender = None;
            }
            while let Some(next) = passed.next().now_or_never() {
                let Some(out) = next else {
                    outputs.push((tick, Out::End));
                    let goes_on = !matches!(passed.next().now_or_never(), Some(None));
                    outputs.extend(goes_on.then_some((tick, Out::After)));
                    return outputs;
                };
                outputs.push((tick, out));
            }
            tokio::time::advance(TICK).await;
        }
        outputs
    })
}

fn run(program: &Program, mistake: Option<Mistake>) -> Result<(), String> {
    let (is, expected) = (outputs(program, mistake), expected(program));
    if is == expected {
        return Ok(());
    }
    let first = is.iter().zip(&expected).position(|(is, expected)| is != expected);
    let first = first.unwrap_or(is.len().min(expected.len()));
    Err(format!(
        "output {first}: {:?}, and not {:?}",
        is.get(first),
        expected.get(first)
    ))
}

/// Leaves stages and items out for as long as the program fails.
fn shrunk(mut program: Program, fails: impl Fn(&Program) -> bool) -> Program {
    loop {
        let stages = (0..program.stages.len()).map(|index| {
            let mut smaller = program.clone();
            smaller.stages.remove(index);
            smaller
        });
        let items = (0..program.items.len()).map(|index| {
            let mut smaller = program.clone();
            smaller.items.remove(index);
            smaller
        });
        match stages.chain(items).find(|smaller| fails(smaller)) {
            Some(smaller) => program = smaller,
            None => return program,
        }
    }
}

fn try_all(first: u64, cases: u64) {
    let run = |program: &Program| run(program, None);
    let small = |program| shrunk(program, |program| run(program).is_err());
    seeds::try_all(first, cases, program, run, small);
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

/// Each is found within 500 programs, and shrunk to a few stages and items that the crate passes.
#[test]
fn every_mistake_is_found() {
    for mistake in MISTAKES {
        let fails = |program: &Program| run(program, Some(mistake)).is_err();
        let found = (0..500).map(program).find(|program| fails(program));
        let found = found.unwrap_or_else(|| panic!("{mistake:?} was not found"));
        let small = shrunk(found, fails);
        assert!(
            small.stages.len() <= 1 && small.items.len() <= 5,
            "{mistake:?}: {small:#?}"
        );
        assert_eq!(run(&small, None), Ok(()), "{mistake:?}: {small:#?}");
    }
}
