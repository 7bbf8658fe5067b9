//! Generates a draft from a seed, which is the only source of randomness.

use std::collections::BTreeSet;

use fastrand::Rng;

use super::rarity;
use super::{
    Action, Client, Draft, Ending, Object, Profile, ResponseFault, Server, Step, Target, Times, When, Write,
};

/// Maximum number of steps.
const STEPS_MAX: usize = 7;
/// Maximum number of initial objects.
const OBJECTS_MAX: usize = 6;
/// Few names, so that writes to the same object are likely.
const NAMES: [&str; 6] = ["o1", "o2", "o3", "o4", "o5", "o6"];
/// Texts that have broken clients, as between double quotes in YAML.
const TEXTS: [&str; 8] = [
    "\\u00e4",
    "e\\u0301",
    "\\u20ac\\U0001F600",
    "a\\u2028b\\u0085c",
    "\\\"\\\\/",
    "\\n\\t\\r\\n",
    "\\0\\u007f\\ufeff",
    "{\\\"type\\\":\\\"ERROR\\\"}",
];

pub(super) fn draft(seed: u64, profile: Profile) -> Draft {
    let mut rng = Rng::with_seed(seed);
    let may_restore = profile == Profile::Honest && rarely(&mut rng, 7);
    let client = client(&mut rng);
    let target = target(&mut rng, &client);
    let server = server(&mut rng);
    let lies_to_the_end = profile == Profile::Lies && rarely(&mut rng, 5);
    let mut drawing = Drawing {
        rng,
        profile,
        may_restore,
        target,
        streaming: client.streaming,
        is_http2: server.is_http2(),
        has_tls: server.transport != "http1",
        page_size: client.page_size,
        has_replicas: server.has_replicas,
        names: BTreeSet::new(),
        most: 0,
        bound: Vec::new(),
        frozen: false,
        after_optional: false,
        restored: false,
    };
    let count = drawing.rng.usize(0..=OBJECTS_MAX);
    let objects = (0..count).map(|_| drawing.object()).collect();
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

fn server(rng: &mut Rng) -> Server {
    Server {
        version: match rng.u32(0..4) {
            0 => pick(rng, &["1.34", "1.35", "1.36"]),
            _ => "1.37",
        },
        revision: pick(rng, &[1_000, 1_000, 1, 9_007_199_254_740_993]),
        watch_cache_capacity: pick(rng, &[1, 2, 5, 100, 100]),
        bookmark_interval_s: pick(rng, &[1, 10, 60, 60]),
        streaming_lists: rarely(rng, 10).then(|| rng.bool()),
        transport: match rng.u32(0..8) {
            0 if rng.bool() => "tls_http1",
            0 => "tls_h2",
            _ => "http1",
        },
        streams_max: rarely(rng, 4).then(|| pick(rng, &[1, 2])),
        has_replicas: rarely(rng, 4),
    }
}

fn client(rng: &mut Rng) -> Client {
    let object = rarely(rng, 6).then(|| pick(rng, &NAMES));
    Client {
        metadata: rarely(rng, 8),
        object,
        labels: rarely(rng, 4).then(|| pick(rng, &["app=x", "app", "!app", "app!=x", "app in (x,y)"])),
        fields: (object.is_none() && rarely(rng, 8)).then(|| {
            pick(
                rng,
                &[
                    "metadata.name=o1",
                    "metadata.name!=o1",
                    "metadata.namespace=default",
                ],
            )
        }),
        any: rarely(rng, 4),
        streaming: rarely(rng, 3),
        page_size: pick(rng, &[0, 1, 2, 3, 500, 500]),
        bookmarks: !rarely(rng, 5),
        timeout_s: rarely(rng, 4).then(|| pick(rng, &[8, 30, 120])),
        // Never the instant of a watch timeout: the trace does not show whether an event of that instant was read.
        idle_timeout_s: rarely(rng, 6).then(|| pick(rng, &[6, 31, 121])),
        list_timeout_s: rarely(rng, 8).then(|| pick(rng, &[6, 31])),
        staleness_probe_after_s: rarely(rng, 8).then(|| pick(rng, &[10, 120, 3_600])),
        backoff_ms: rarely(rng, 8).then(|| pick(rng, &[(2_000, 4_000), (5_000, 60_000)])),
        // A factor of 1 would exceed the budget of INV-16 by configuration.
        backoff_factor: rarely(rng, 12).then(|| pick(rng, &[3, 10])),
        consumer_delay_event: rarely(rng, 4).then(|| rng.u32(1..4)),
        consumer_delay_ms: match rng.u32(0..10) {
            0 => pick(rng, &[1, 20]),
            1 => pick(rng, &[1_000, 7_000, 35_000, 70_000]),
            _ => 0,
        },
        gzip: rarely(rng, 8),
    }
}

fn target(rng: &mut Rng, client: &Client) -> Target {
    let (resource, kind) = match rng.u32(0..10) {
        0 => ("pods", "pod"),
        1 => ("secrets", "secret"),
        2 => ("widgets.probe.example.com", "widget"),
        _ => ("configmaps", "configmap"),
    };
    Target {
        resource,
        kind,
        is_wide: client.object.is_none() && rarely(rng, 4),
    }
}

/// A draft in progress, with the state of the store at this point.
pub(super) struct Drawing {
    pub(super) rng: Rng,
    pub(super) profile: Profile,
    may_restore: bool,
    pub(super) target: Target,
    streaming: bool,
    pub(super) is_http2: bool,
    pub(super) has_tls: bool,
    page_size: u32,
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

impl Drawing {
    fn step(&mut self, index: usize) -> Step {
        let mut when = self.when(index);
        if self.after_optional && matches!(when, When::Now) {
            // Time for the optional step.
            when = When::After(5_000);
        }
        self.after_optional = !when.is_certain();
        let mut actions = Vec::new();
        if when.is_certain() {
            for _ in 0..self.rng.usize(0..3) {
                actions.push(Action::Write(self.write()));
            }
        }
        if actions.is_empty() || self.rng.bool() {
            // Actions on a response precede writes made while it is open.
            let at = if self.rng.bool() { 0 } else { actions.len() };
            for answer in self.answers(when) {
                actions.insert(at, answer);
            }
        }
        let is_once = actions.iter().any(Action::happens_once);
        let waits = matches!(when, When::NextWatch | When::NextRequest | When::NextList);
        let times = match self.rng.u32(0..8) {
            0 if waits && !is_once => Times::Count(self.rng.u32(2..6)),
            1 if waits && !is_once => Times::For(pick(&mut self.rng, &[1_000, 30_000, 400_000])),
            _ => Times::Count(1),
        };
        // Optional steps have no names, and their writes may not happen.
        let is_optional = !when.is_certain();
        Step {
            when,
            is_optional,
            times,
            actions,
        }
    }

    /// Expires the next watch: later steps meet a relist, which is rare otherwise.
    fn expiry(&mut self) -> Step {
        self.after_optional = false;
        let code = pick(
            &mut self.rng,
            &["code: 410, reason: Expired", "code: 410, reason: Gone"],
        );
        Step {
            when: When::NextWatch,
            is_optional: false,
            times: Times::Count(1),
            actions: vec![
                Action::ResponseFault(ResponseFault::Error(code)),
                Action::ResponseFault(ResponseFault::End(Ending::Eof)),
            ],
        }
    }

    /// Returns the rarer of two triggers.
    fn when(&mut self, index: usize) -> When {
        let one = self.draw_when(index);
        let other = self.draw_when(index);
        if rarely(&mut self.rng, 3) && rarity::of_trigger(other) < rarity::of_trigger(one) {
            other
        } else {
            one
        }
    }

    fn draw_when(&mut self, index: usize) -> When {
        let has_pages = self.page_size > 0 && self.most > self.page_size as usize;
        let rng = &mut self.rng;
        match rng.u32(0..26) {
            24 | 25 if self.profile == Profile::Honest && !self.may_restore && !self.frozen => When::Synced,
            0..9 => When::Now,
            9..13 => When::After(pick(rng, &[1, 100, 1_000, 70_000, 400_000])),
            13 if index == 0 && !self.streaming => When::FirstList,
            19 if has_pages => When::SecondPage,
            14..20 => When::NextWatch,
            20 => When::NextList,
            21 => When::Emitted(pick(
                rng,
                &["init_done", "apply", "delete", "error", "init_apply"],
            )),
            22 => When::Quiet(pick(rng, &[10, 2_000, 30_000])),
            _ => When::NextRequest,
        }
    }

    /// Returns an object to write.
    fn object(&mut self) -> Object {
        let mut object = self.state();
        object.binds = rarely(&mut self.rng, 3).then_some(self.bound.len() as u32);
        self.bound.extend(object.binds);
        self.names.insert(object.key());
        self.most = self.most.max(self.names.len());
        object
    }

    /// Returns a state of an object that was never sent.
    pub(super) fn state(&mut self) -> Object {
        let rng = &mut self.rng;
        Object {
            kind: self.target.kind,
            namespace: rarely(rng, 4).then_some("kube-system"),
            name: pick(rng, &NAMES).to_owned(),
            value: rng.u32(1..1_000_000),
            text: if rarely(rng, 4) { pick(rng, &TEXTS) } else { "" },
            app: pick(rng, &[None, Some("x"), Some("y")]),
            filler: if rarely(rng, 10) { 6_000 } else { 0 },
            binds: None,
        }
    }

    fn write(&mut self) -> Write {
        let rng = &mut self.rng;
        // Objects that exist after a restore are not tracked.
        let known: Vec<&String> = self.names.iter().filter(|_| !self.restored).collect();
        let at = (self.has_replicas && rng.bool()).then(|| pick(rng, &["primary", "secondary"]));
        match rng.u32(0..21) {
            0..3 if !known.is_empty() => {
                let name = known[rng.usize(0..known.len())].clone();
                self.names.remove(&name);
                Write::Delete(name)
            }
            3..5 if !known.is_empty() => {
                let name = known[rng.usize(0..known.len())].clone();
                Write::Relabel(name, pick(rng, &[None, Some("x"), Some("y")]))
            }
            5 => Write::Apply(Object {
                kind: "service",
                namespace: None,
                name: format!("s-{}", rng.u32(0..100)),
                value: 0,
                text: "",
                app: None,
                filler: 0,
                binds: None,
            }),
            6 => Write::Compact,
            7 => Write::ClearWatchCache(at),
            8 if self.has_replicas || rarely(rng, 2) => Write::Lag(pick(rng, &[10, 1_000, 10_000]), at),
            9 if rarely(rng, 2) => Write::Thaw(at),
            10 if rarely(rng, 3) => {
                self.frozen = true;
                Write::Freeze(at)
            }
            11 if rarely(rng, 3) => Write::ApplyMany(self.target.kind, pick(rng, &[3, 10, 30])),
            12 | 13 if self.may_restore && !self.bound.is_empty() => {
                self.restored = true;
                Write::Restore(pick(rng, &self.bound))
            }
            18 => Write::Restart(
                pick(rng, &[0, 100, 3_000, 30_000]),
                pick(rng, &[0, 0, 1_000, 10_000]),
                at,
            ),
            19 if rarely(rng, 2) => Write::JumpClock(pick(rng, &[-86_400, -3_600, -1, 1, 3_600, 31_536_000])),
            _ => Write::Apply(self.object()),
        }
    }
}
