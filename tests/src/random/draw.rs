//! From a seed to a draft. All randomness is the seed's.

use std::collections::BTreeSet;

use fastrand::Rng;

use super::{Action, Answer, Client, Cut, Draft, Ending, Object, Server, Step, When, Write};

/// Steps of a scenario.
const STEPS_MAX: usize = 7;
/// Objects before the start.
const OBJECTS_MAX: usize = 6;
/// Names are few, so that they meet.
const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

pub(super) fn draft(seed: u64) -> Draft {
    let mut rng = Rng::with_seed(seed);
    let client = client(&mut rng);
    let server = server(&mut rng);
    let mut names = BTreeSet::new();
    let count = rng.usize(0..=OBJECTS_MAX);
    let objects = (0..count).map(|_| object(&mut rng, &mut names)).collect();
    let mut drawing = Drawing {
        rng,
        streaming: client.streaming,
        names,
    };
    let steps = (0..drawing.rng.usize(0..=STEPS_MAX))
        .map(|index| drawing.step(index))
        .collect();
    Draft {
        seed,
        server,
        client,
        objects,
        steps,
    }
}

fn pick<T: Copy>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.usize(0..of.len())]
}

/// True once in so many times.
fn rarely(rng: &mut Rng, times: u32) -> bool {
    rng.u32(0..times) == 0
}

fn server(rng: &mut Rng) -> Server {
    Server {
        version: if rarely(rng, 4) {
            pick(rng, &["1.33", "1.34", "1.35"])
        } else {
            "1.36"
        },
        watch_cache_capacity: pick(rng, &[2, 5, 100, 100]),
        bookmark_interval_s: pick(rng, &[1, 10, 60, 60]),
        transport: pick(
            rng,
            &[
                "http1",
                "http1",
                "http1",
                "http1",
                "http1",
                "http1",
                "tls_http1",
                "tls_h2",
            ],
        ),
    }
}

fn client(rng: &mut Rng) -> Client {
    Client {
        metadata: rarely(rng, 8),
        object: rarely(rng, 6).then(|| pick(rng, &NAMES).to_owned()),
        labels: rarely(rng, 4).then(|| pick(rng, &["app=x", "app", "!app", "app!=x", "app in (x,y)"])),
        any: rarely(rng, 4),
        streaming: rarely(rng, 3),
        page_size: pick(rng, &[0, 1, 2, 3, 500, 500]),
        bookmarks: !rarely(rng, 5),
        timeout_s: rarely(rng, 4).then(|| pick(rng, &[1, 5, 30, 120])),
        idle_timeout_s: rarely(rng, 6).then(|| pick(rng, &[5, 30, 120])),
        consumer_delay_ms: if rarely(rng, 10) { pick(rng, &[1, 20]) } else { 0 },
        gzip: rarely(rng, 8),
    }
}

fn object(rng: &mut Rng, names: &mut BTreeSet<String>) -> Object {
    let name = pick(rng, &NAMES).to_owned();
    names.insert(name.clone());
    Object {
        name,
        value: rng.u32(0..1_000_000),
        app: pick(rng, &[None, Some("x"), Some("y")]),
        filler: if rarely(rng, 10) { 20_000 } else { 0 },
    }
}

struct Drawing {
    rng: Rng,
    streaming: bool,
    /// What exists.
    names: BTreeSet<String>,
}

impl Drawing {
    fn step(&mut self, index: usize) -> Step {
        let when = match self.rng.u32(0..10) {
            0..4 => When::Now,
            4..6 => When::After(pick(&mut self.rng, &[1, 100, 1_000, 70_000, 400_000])),
            6 if index == 0 && !self.streaming => When::FirstList,
            6..9 => When::NextWatch,
            _ => When::NextRequest,
        };
        let mut actions = Vec::new();
        for _ in 0..self.rng.usize(0..3) {
            actions.push(Action::Write(self.write()));
        }
        if actions.is_empty() || self.rng.bool() {
            let answer = self.answer(when);
            // What shapes an answer comes before what is written while it is open.
            let at = if self.rng.bool() { 0 } else { actions.len() };
            actions.insert(at, Action::Answer(answer));
        }
        let times = if matches!(when, When::NextWatch | When::NextRequest) && rarely(&mut self.rng, 4) {
            self.rng.u32(2..6)
        } else {
            1
        };
        // Names are followed from step to step: what is deleted must exist each time.
        let has_delete = actions
            .iter()
            .any(|action| matches!(action, Action::Write(Write::Delete(_) | Write::Relabel(..))));
        Step {
            when,
            times: if has_delete { 1 } else { times },
            actions,
        }
    }

    fn write(&mut self) -> Write {
        let rng = &mut self.rng;
        let known: Vec<&String> = self.names.iter().collect();
        match rng.u32(0..16) {
            0..3 if !known.is_empty() => {
                let name = known[rng.usize(0..known.len())].clone();
                self.names.remove(&name);
                Write::Delete(name)
            }
            3..5 if !known.is_empty() => {
                let name = known[rng.usize(0..known.len())].clone();
                Write::Relabel(name, pick(rng, &[None, Some("x"), Some("y")]))
            }
            5 => Write::Elsewhere(rng.u32(0..100)),
            6 => Write::Compact,
            7 => Write::ClearWatchCache,
            8 if rarely(rng, 2) => Write::Lag(pick(rng, &[10, 1_000, 10_000])),
            9 if rarely(rng, 2) => Write::Thaw,
            _ => Write::Apply(object(rng, &mut self.names)),
        }
    }

    /// Something every request can be answered with, or what the newest watch takes.
    fn answer(&mut self, when: When) -> Answer {
        let rng = &mut self.rng;
        let ending = |rng: &mut Rng| pick(rng, &[Ending::Eof, Ending::Fin, Ending::Rst, Ending::Stall]);
        let torn = |rng: &mut Rng| pick(rng, &[Ending::Fin, Ending::Rst, Ending::Stall]);
        let is_request = matches!(when, When::FirstList | When::NextWatch | When::NextRequest);
        let is_watch = matches!(when, When::NextWatch | When::Now | When::After(_));
        match rng.u32(0..16) {
            0 | 1 if is_request => {
                let status = pick(rng, &[429, 500, 502, 503, 504, 410]);
                let retry_after = matches!(status, 429 | 503) && rng.bool();
                Answer::Refuse(status, retry_after.then(|| rng.u32(1..30)))
            }
            2 if is_request => Answer::Delay(pick(rng, &[1, 500, 5_000])),
            3 if is_request => Answer::NoAnswer(torn(rng)),
            4 if is_request => Answer::Gzip,
            5 | 6 if is_watch => Answer::Error(pick(rng, &[410, 410, 500, 504])),
            7 if is_watch => Answer::Bookmark,
            8 if is_watch => Answer::Repeat(rng.u32(2..4)),
            9 if is_watch => Answer::NoBookmarks,
            10 if is_watch => Answer::Coalesce(rng.u32(2..5)),
            11 if is_watch => Answer::Truncate(Cut::Events(rng.u32(0..3), rng.u32(0..100)), ending(rng)),
            12 => Answer::Truncate(Cut::Bytes(rng.u32(0..600)), torn(rng)),
            13 => Answer::Drip(rng.u32(1..400), pick(rng, &[1, 10, 200])),
            14 => Answer::SplitUtf8,
            15 if rarely(rng, 2) => Answer::RefuseConnections(pick(rng, &[10, 3_000, 30_000])),
            _ if is_watch => Answer::End(ending(rng)),
            _ => Answer::End(torn(rng)),
        }
    }
}
