//! Generates a draft from a seed, which is the only source of randomness.

use std::collections::BTreeSet;

use fake_apiserver::scenario::Version;
use fake_apiserver::scenario::raw::{
    ActionKey, ActionKeys, At, Backoff, Client, Duration, Emitted, Entries, First, FirstSet, JumpClock, Lag,
    Mode, Name, Nth, Object, OneOrMany, OrNothing, PageSize, ProbeAfter, Relabel, ReplicaWord, Restart,
    Semantic, Server, ServerVersion, ShortBody, ShortObject, StepKeys, Target, Text, Transport, Turned, When,
    WordOr,
};
use fastrand::Rng;

use super::names::{self, Trigger};
use super::{Draft, Profile, at, expired, rarity};

/// Maximum number of steps.
const STEPS_MAX: usize = 7;
/// Maximum number of initial objects.
const OBJECTS_MAX: usize = 6;
/// Few names, so that writes to the same object are likely.
const NAMES: [&str; 6] = ["o1", "o2", "o3", "o4", "o5", "o6"];
/// Texts that have broken clients.
const TEXTS: [&str; 8] = [
    "\u{e4}",
    "e\u{301}",
    "\u{20ac}\u{1f600}",
    "a\u{2028}b\u{85}c",
    "\"\\/",
    "\n\t\r\n",
    "\0\u{7f}\u{feff}",
    "{\"type\":\"ERROR\"}",
];

pub(super) fn draft(seed: u64, profile: Profile) -> Draft {
    let mut rng = Rng::with_seed(seed);
    let may_restore = profile == Profile::Honest && rarely(&mut rng, 7);
    let (client, page_size) = client(&mut rng);
    let (target, kind) = target(&mut rng, &client);
    let server = server(&mut rng);
    let lies_to_the_end = profile == Profile::Lies && rarely(&mut rng, 5);
    let transport = server.transport.as_ref().map(|transport| transport.value);
    let mut drawing = Drawing {
        rng,
        profile,
        may_restore,
        kind,
        streaming: client.initial_list.is_some(),
        is_http2: transport == Some(Transport::TlsH2),
        has_tls: transport.is_some(),
        page_size,
        has_replicas: server.replicas.is_some(),
        names: BTreeSet::new(),
        most: 0,
        bound: Vec::new(),
        frozen: false,
        after_optional: false,
        restored: false,
    };
    let count = drawing.rng.usize(0..=OBJECTS_MAX);
    let objects = (0..count).map(|_| drawing.initial_object()).collect();
    let mut steps = Vec::new();
    // False contents need a step.
    let least = usize::from(profile == Profile::Lies);
    for _ in 0..drawing.rng.usize(least..=STEPS_MAX) {
        if rarely(&mut drawing.rng, 8) {
            steps.push(drawing.expiry());
        }
        steps.push(drawing.step(steps.len()));
    }
    Draft {
        seed,
        profile,
        server,
        target,
        client,
        objects,
        steps,
        lies_to_the_end,
    }
}

pub(super) fn pick<T: Copy>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.usize(0..of.len())]
}

/// Returns true with probability 1/`times`.
pub(super) fn rarely(rng: &mut Rng, times: u32) -> bool {
    rng.u32(0..times) == 0
}

/// Returns the value of a key, which is left out if it is the default.
fn unless<T: PartialEq>(default: T, value: T) -> Option<At<T>> {
    (value != default).then(|| value.into())
}

/// Returns a duration in seconds, of those with this probability.
fn seconds(rng: &mut Rng, times: u32, of: &[u64]) -> Option<At<Duration>> {
    rarely(rng, times).then(|| Duration::ms(pick(rng, of) * 1_000).into())
}

fn server(rng: &mut Rng) -> Server {
    let version = match rng.u32(0..4) {
        0 => pick(rng, &[Version::V1_34, Version::V1_35, Version::V1_36]),
        _ => Version::V1_37,
    };
    let revision = pick(rng, &[1_000, 1_000, 1, 9_007_199_254_740_993]);
    let watch_cache_capacity = pick(rng, &[1, 2, 5, 100, 100]);
    let bookmark_interval_s = pick(rng, &[1, 10, 60, 60]);
    let streaming_lists = rarely(rng, 10).then(|| rng.bool());
    let transport = match rng.u32(0..8) {
        0 if rng.bool() => Transport::TlsHttp1,
        0 => Transport::TlsH2,
        _ => Transport::Http1,
    };
    let streams_max = rarely(rng, 4).then(|| pick(rng, &[1, 2]));
    Server {
        version: unless(ServerVersion(Version::NEWEST), ServerVersion(version)),
        revision: unless(1_000, revision),
        watch_cache_capacity: unless(100, watch_cache_capacity),
        bookmark_interval: unless(Duration::ms(60_000), Duration::ms(bookmark_interval_s * 1_000)),
        streaming_lists: streaming_lists.map(At::from),
        transport: unless(Transport::Http1, transport),
        max_concurrent_streams: streams_max
            .filter(|_| transport == Transport::TlsH2)
            .map(At::from),
        replicas: rarely(rng, 4).then(|| 2.into()),
    }
}

/// Returns the client and its page size, 0 for none.
fn client(rng: &mut Rng) -> (Client, u64) {
    let object = rarely(rng, 6).then(|| pick(rng, &NAMES));
    let is_metadata = rarely(rng, 8);
    let labels = rarely(rng, 4).then(|| pick(rng, &["app=x", "app", "!app", "app!=x", "app in (x,y)"]));
    let fields = (object.is_none() && rarely(rng, 8)).then(|| {
        pick(
            rng,
            &[
                "metadata.name=o1",
                "metadata.name!=o1",
                "metadata.namespace=default",
            ],
        )
    });
    let is_any = rarely(rng, 4);
    let is_streaming = rarely(rng, 3);
    let page_size = pick(rng, &[0, 1, 2, 3, 500, 500]);
    let bookmarks = !rarely(rng, 5);
    let timeout = seconds(rng, 4, &[8, 30, 120]);
    // Never the instant of a watch timeout: the trace does not show whether an event of that instant was read.
    let idle_timeout = seconds(rng, 6, &[6, 31, 121]);
    let list_timeout = seconds(rng, 8, &[6, 31]);
    let staleness_probe_after = seconds(rng, 8, &[10, 120, 3_600]);
    let delays = rarely(rng, 8).then(|| pick(rng, &[(2_000, 4_000), (5_000, 60_000)]));
    // A factor of 1 would exceed the budget of INV-16 by configuration.
    let factor = rarely(rng, 12).then(|| pick(rng, &[3, 10]));
    let slow_event = rarely(rng, 4).then(|| rng.u32(1..4));
    let consumer_delay = match rng.u32(0..10) {
        0 => pick(rng, &[1, 20]),
        1 => pick(rng, &[1_000, 7_000, 35_000, 70_000]),
        _ => 0,
    };
    let backoff = Backoff {
        initial: delays.map(|(initial, _)| Duration::ms(initial).into()),
        max: delays.map(|(_, max)| Duration::ms(max).into()),
        factor: factor.map(At::from),
        ..Backoff::default()
    };
    let client = Client {
        mode: (is_metadata && object.is_none()).then(|| Mode::Metadata.into()),
        object: object.and_then(at),
        labels: labels.and_then(at),
        fields: fields.and_then(at),
        timeout,
        list_semantic: is_any.then(|| Semantic::Any.into()),
        initial_list: is_streaming.then(|| FirstSet::StreamingList.into()),
        page_size: match page_size {
            0 => at(PageSize("none".to_owned())),
            size => unless(PageSize("500".to_owned()), PageSize(size.to_string())),
        },
        bookmarks: unless(true, bookmarks),
        idle_timeout,
        list_timeout,
        staleness_probe_after: staleness_probe_after.map(|after| ProbeAfter(after.value).into()),
        backoff: (backoff != Backoff::default()).then(|| backoff.into()),
        consumer_delay: unless(Duration::ms(0), Duration::ms(consumer_delay)),
        consumer_delay_event: slow_event.filter(|_| consumer_delay > 0).and_then(at),
        gzip: rarely(rng, 8).then(|| true.into()),
        ..Client::default()
    };
    (client, page_size)
}

/// Returns the target, and the kind of its objects.
fn target(rng: &mut Rng, client: &Client) -> (Target, &'static str) {
    let (resource, kind) = match rng.u32(0..10) {
        0 => ("pods", "pod"),
        1 => ("secrets", "secret"),
        2 => ("widgets.probe.example.com", "widget"),
        _ => ("configmaps", "configmap"),
    };
    let is_wide = client.object.is_none() && rarely(rng, 4);
    let target = Target {
        resource: at(resource),
        namespace: is_wide.then(|| "all".to_owned().into()),
    };
    (target, kind)
}

/// A draft in progress, with the state of the store at this point.
pub(super) struct Drawing {
    pub(super) rng: Rng,
    pub(super) profile: Profile,
    may_restore: bool,
    /// Kind of the target's objects.
    pub(super) kind: &'static str,
    streaming: bool,
    pub(super) is_http2: bool,
    pub(super) has_tls: bool,
    page_size: u64,
    has_replicas: bool,
    /// Names of existing objects.
    names: BTreeSet<String>,
    /// Maximum number of objects at the same time.
    most: usize,
    /// Names of versions.
    bound: Vec<u32>,
    frozen: bool,
    /// The previous step is skipped when the next one is met.
    after_optional: bool,
    restored: bool,
}

/// Returns a trigger without conditions.
fn when(trigger: Trigger) -> When {
    let none = When::default();
    let nth = |word: &str| at(Nth(word.to_owned()));
    match trigger {
        Trigger::FirstList => When {
            list: nth("1"),
            ..none
        },
        Trigger::NextList => When {
            list: nth("next"),
            ..none
        },
        Trigger::NextWatch => When {
            watch: nth("next"),
            ..none
        },
        Trigger::NextRequest => When {
            request: nth("next"),
            ..none
        },
        Trigger::SecondPage => When {
            page: at(2_u64),
            ..none
        },
        Trigger::Synced => When {
            synced: at(()),
            ..none
        },
        Trigger::Now | Trigger::After | Trigger::Emitted | Trigger::Quiet => none,
    }
}

/// Returns the trigger that is met as soon as a request of this kind arrives.
pub(super) fn next(trigger: Trigger) -> Option<At<WordOr<When>>> {
    at(WordOr(when(trigger)))
}

pub(super) fn after(ms: u64) -> Option<At<WordOr<When>>> {
    at(WordOr(When {
        after: at(Duration::ms(ms)),
        ..When::default()
    }))
}

pub(super) fn quiet(ms: u64) -> Option<At<WordOr<When>>> {
    at(WordOr(When {
        quiet: at(Duration::ms(ms)),
        ..When::default()
    }))
}

fn emitted(word: &str) -> Option<At<WordOr<When>>> {
    let mut event = Emitted::default();
    match word {
        "init_done" => event.init_done = at(()),
        "apply" => event.apply = at(OrNothing(None)),
        "delete" => event.delete = at(OrNothing(None)),
        "error" => event.error = at(()),
        _ => event.init_apply = at(OrNothing(None)),
    }
    at(WordOr(When {
        emitted: at(WordOr(event)),
        ..When::default()
    }))
}

impl Drawing {
    fn step(&mut self, index: usize) -> StepKeys {
        let mut step = StepKeys {
            when: self.when(index),
            ..StepKeys::default()
        };
        if self.after_optional && step.when.is_none() {
            // Time for the optional step.
            step.when = after(5_000);
        }
        let trigger = Trigger::of(&step);
        self.after_optional = !trigger.is_certain();
        let mut actions = Vec::new();
        if trigger.is_certain() {
            for _ in 0..self.rng.usize(0..3) {
                actions.push(self.write());
            }
        }
        if actions.is_empty() || self.rng.bool() {
            // Actions on a response precede writes made while it is open.
            let at = if self.rng.bool() { 0 } else { actions.len() };
            for answer in self.answers(trigger) {
                actions.insert(at, answer);
            }
        }
        let is_once = actions.iter().any(names::happens_once);
        let waits = matches!(
            trigger,
            Trigger::NextWatch | Trigger::NextRequest | Trigger::NextList
        );
        match self.rng.u32(0..8) {
            0 if waits && !is_once => step.times = at(self.rng.u32(2..6)),
            1 if waits && !is_once => {
                step.lasts = at(Duration::ms(pick(&mut self.rng, &[1_000, 30_000, 400_000])));
            }
            _ => {}
        }
        // Optional steps have no names, and their writes may not happen.
        step.optional = (!trigger.is_certain()).then(|| true.into());
        step.items_mut()
            .extend(actions.into_iter().map(|action| WordOr(action).into()));
        step
    }

    /// Expires the next watch: later steps meet a relist, which is rare otherwise.
    fn expiry(&mut self) -> StepKeys {
        self.after_optional = false;
        expired(pick(&mut self.rng, &["Expired", "Gone"]))
    }

    /// Returns the rarer of two triggers.
    fn when(&mut self, index: usize) -> Option<At<WordOr<When>>> {
        let one = self.draw_when(index);
        let other = self.draw_when(index);
        let trigger = |when: &Option<At<WordOr<When>>>| {
            let when = when.as_ref();
            when.map_or(Trigger::Now, |when| Trigger::of_when(&when.value.0))
        };
        let is_rarer = rarity::of_trigger(trigger(&other)) < rarity::of_trigger(trigger(&one));
        if rarely(&mut self.rng, 3) && is_rarer {
            other
        } else {
            one
        }
    }

    fn draw_when(&mut self, index: usize) -> Option<At<WordOr<When>>> {
        let has_pages = self.page_size > 0 && self.most > self.page_size as usize;
        let rng = &mut self.rng;
        match rng.u32(0..26) {
            24 | 25 if self.profile == Profile::Honest && !self.may_restore && !self.frozen => {
                next(Trigger::Synced)
            }
            0..9 => None,
            9..13 => after(pick(rng, &[1, 100, 1_000, 70_000, 400_000])),
            13 if index == 0 && !self.streaming => next(Trigger::FirstList),
            19 if has_pages => next(Trigger::SecondPage),
            14..20 => next(Trigger::NextWatch),
            20 => next(Trigger::NextList),
            21 => emitted(pick(
                rng,
                &["init_done", "apply", "delete", "error", "init_apply"],
            )),
            22 => quiet(pick(rng, &[10, 2_000, 30_000])),
            _ => next(Trigger::NextRequest),
        }
    }

    /// Returns an object in the store before the client starts.
    fn initial_object(&mut self) -> At<Object> {
        let (mut object, binds) = self.object();
        object.binds = binds.map(|name| name.into());
        object.into()
    }

    /// Returns an object to write, and the name of its version.
    fn object(&mut self) -> (ShortObject, Option<String>) {
        let (object, key) = self.named_state();
        let binds = rarely(&mut self.rng, 3).then_some(self.bound.len() as u32);
        self.bound.extend(binds);
        self.names.insert(key);
        self.most = self.most.max(self.names.len());
        (object, binds.map(version_name))
    }

    /// Returns a state of an object that was never sent.
    pub(super) fn state(&mut self) -> ShortObject {
        self.named_state().0
    }

    /// Returns a state, and the object's `name` or `namespace/name`.
    fn named_state(&mut self) -> (ShortObject, String) {
        let rng = &mut self.rng;
        let namespace = rarely(rng, 4).then_some("kube-system");
        let name = pick(rng, &NAMES);
        let value = rng.u32(1..1_000_000);
        let text = if rarely(rng, 4) { pick(rng, &TEXTS) } else { "" };
        let app = pick(rng, &[None, Some("x"), Some("y")]);
        // Characters of three bytes.
        let filler = "€".repeat(if rarely(rng, 10) { 2_000 } else { 0 });
        let annotations = [
            ("v", value.to_string()),
            ("t", text.to_owned()),
            ("filler", filler),
        ];
        let annotations = annotations.into_iter().filter(|(_, text)| !text.is_empty());
        let body = ShortBody {
            name: at(name),
            namespace: namespace.and_then(at),
            annotations: Some(Entries(
                annotations
                    .map(|(key, text)| (key.to_owned().into(), Text(text)))
                    .collect(),
            )),
            labels: app.map(|app| Entries(vec![("app".to_owned().into(), app.into())])),
            ..ShortBody::default()
        };
        let key = namespace.map_or(name.to_owned(), |namespace| format!("{namespace}/{name}"));
        (ShortObject::new(self.kind, body), key)
    }

    fn write(&mut self) -> ActionKeys {
        let rng = &mut self.rng;
        // Objects that exist after a restore are not tracked.
        let known: Vec<&String> = self.names.iter().filter(|_| !self.restored).collect();
        let replica = (self.has_replicas && rng.bool())
            .then(|| pick(rng, &[ReplicaWord::Primary, ReplicaWord::Secondary]).into());
        let turned = |replica: Option<At<ReplicaWord>>| {
            At::from(OrNothing(replica.map(|replica| Turned {
                replica: Some(replica),
            })))
        };
        let key = match rng.u32(0..21) {
            0..3 if !known.is_empty() => {
                let name = known[rng.usize(0..known.len())].clone();
                self.names.remove(&name);
                let name = Name {
                    name: at(name),
                    ..Name::default()
                };
                ActionKey::Delete(OneOrMany(vec![First(name)]).into())
            }
            3..5 if !known.is_empty() => {
                let name = known[rng.usize(0..known.len())].clone();
                let app = OrNothing(pick(rng, &[None, Some("x"), Some("y")]).map(Text::from));
                let relabel = Relabel {
                    name: at(name),
                    labels: at(Entries(vec![("app".to_owned().into(), app)])),
                    ..Relabel::default()
                };
                ActionKey::Relabel(relabel.into())
            }
            5 => {
                let body = ShortBody {
                    name: at(format!("s-{}", rng.u32(0..100))),
                    ..ShortBody::default()
                };
                apply(ShortObject::new("service", body))
            }
            6 => ActionKey::Compact(().into()),
            7 => ActionKey::ClearWatchCache(turned(replica)),
            8 if self.has_replicas || rarely(rng, 2) => {
                let by = at(Duration::ms(pick(rng, &[10, 1_000, 10_000])));
                ActionKey::LagWatchCache(First(Lag { by, replica }).into())
            }
            9 if rarely(rng, 2) => ActionKey::ThawWatchCache(turned(replica)),
            10 if rarely(rng, 3) => {
                self.frozen = true;
                ActionKey::FreezeWatchCache(turned(replica))
            }
            11 if rarely(rng, 3) => {
                let body = ShortBody {
                    name: at("m-{i}"),
                    ..ShortBody::default()
                };
                apply(ShortObject {
                    repeat: at(pick(rng, &[3_u64, 10, 30])),
                    ..ShortObject::new(self.kind, body)
                })
            }
            12 | 13 if self.may_restore && !self.bound.is_empty() => {
                self.restored = true;
                let name = version_name(pick(rng, &self.bound));
                ActionKey::Restore(Text(format!("${name}")).into())
            }
            18 => {
                let down = pick(rng, &[0, 100, 3_000, 30_000]);
                let filling = pick(rng, &[0, 0, 1_000, 10_000]);
                let time = |ms: u64| unless(Duration::ms(0), Duration::ms(ms));
                let restart = Restart {
                    down: time(down),
                    filling: time(filling),
                    replica,
                };
                let restart = Some(restart).filter(|restart| *restart != Restart::default());
                ActionKey::Restart(OrNothing(restart).into())
            }
            19 if rarely(rng, 2) => {
                let seconds: i64 = pick(rng, &[-86_400, -3_600, -1, 1, 3_600, 31_536_000]);
                let by = at(Duration::ms(seconds.unsigned_abs() * 1_000));
                let jump = match seconds < 0 {
                    true => JumpClock {
                        back: by,
                        forward: None,
                    },
                    false => JumpClock {
                        forward: by,
                        back: None,
                    },
                };
                ActionKey::JumpClock(jump.into())
            }
            _ => {
                let (object, binds) = self.object();
                return ActionKeys {
                    name: binds.map(At::from),
                    ..apply(object).into()
                };
            }
        };
        key.into()
    }
}

fn apply(object: ShortObject) -> ActionKey {
    ActionKey::Apply(OneOrMany(vec![object.into()]).into())
}

/// Returns the name of a version.
fn version_name(number: u32) -> String {
    format!("v{number}")
}
