//! From a seed to a draft. All randomness is the seed's.

use std::collections::BTreeSet;

use fastrand::Rng;

use super::{Action, Answer, Client, Cut, Draft, Ending, Kind, Lie, Object, Server, Step, Target, Times};
use super::{Reply, When, Write};

/// Steps of a scenario.
const STEPS_MAX: usize = 7;
/// Objects before the start.
const OBJECTS_MAX: usize = 6;
/// Names are few, so that they meet.
const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

pub(super) fn draft(seed: u64) -> Draft {
    let mut rng = Rng::with_seed(seed);
    let kind = match rng.u32(0..10) {
        0..6 => Kind::Honest,
        6 => Kind::Restored,
        _ => Kind::Lying,
    };
    let client = client(&mut rng);
    let target = target(&mut rng, &client);
    let server = server(&mut rng);
    let mut drawing = Drawing {
        rng,
        kind,
        target,
        streaming: client.streaming,
        is_http2: server.is_http2(),
        has_tls: server.transport != "http1",
        page_size: client.page_size,
        names: BTreeSet::new(),
        most: 0,
        bound: Vec::new(),
        frozen: false,
        after_optional: false,
        restored: false,
        wrote_after_restore: false,
    };
    let count = drawing.rng.usize(0..=OBJECTS_MAX);
    let objects = (0..count).map(|_| drawing.object()).collect();
    let mut steps: Vec<Step> = (0..drawing.rng.usize(0..=STEPS_MAX))
        .map(|index| drawing.step(index))
        .collect();
    drawing.conclude(&mut steps);
    Draft {
        seed,
        kind,
        server,
        target,
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
        version: match rng.u32(0..4) {
            0 => pick(rng, &["1.33", "1.34", "1.35"]),
            _ => "1.36",
        },
        revision: pick(rng, &[1_000, 1_000, 1, 9_007_199_254_740_993]),
        watch_cache_capacity: pick(rng, &[1, 2, 5, 100, 100]),
        bookmark_interval_s: pick(rng, &[1, 10, 60, 60]),
        streaming_lists: rarely(rng, 10).then(|| rng.bool()),
        transport: match rng.u32(0..8) {
            0 => "tls_http1",
            1 => "tls_h2",
            _ => "http1",
        },
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
                    "metadata.name=a",
                    "metadata.name!=a",
                    "metadata.namespace=default",
                ],
            )
        }),
        any: rarely(rng, 4),
        streaming: rarely(rng, 3),
        page_size: pick(rng, &[0, 1, 2, 3, 500, 500]),
        bookmarks: !rarely(rng, 5),
        timeout_s: rarely(rng, 4).then(|| pick(rng, &[8, 30, 120])),
        idle_timeout_s: rarely(rng, 6).then(|| pick(rng, &[5, 30, 120])),
        list_timeout_s: rarely(rng, 8).then(|| pick(rng, &[5, 30])),
        staleness_probe_after_s: rarely(rng, 8).then(|| pick(rng, &[10, 120, 3_600])),
        backoff_ms: rarely(rng, 8).then(|| pick(rng, &[(2_000, 4_000), (5_000, 60_000)])),
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

struct Drawing {
    rng: Rng,
    kind: Kind,
    target: Target,
    streaming: bool,
    is_http2: bool,
    has_tls: bool,
    page_size: u32,
    /// What exists.
    names: BTreeSet<String>,
    /// The most that were there at once.
    most: usize,
    /// Names of versions.
    bound: Vec<u32>,
    frozen: bool,
    /// The step before is skipped when the next one is met.
    after_optional: bool,
    restored: bool,
    /// Versions may be told that mean something else than before.
    wrote_after_restore: bool,
}

impl Drawing {
    fn step(&mut self, index: usize) -> Step {
        let mut when = self.when(index);
        if self.after_optional && matches!(when, When::Now) {
            // Time for what is optional.
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
            // What shapes an answer comes before what is written while it is open.
            let at = if self.rng.bool() { 0 } else { actions.len() };
            for answer in self.answers(when) {
                actions.insert(at, answer);
            }
        }
        // Names are followed from step to step, and a name is bound once: such a step is met once.
        let is_once = actions.iter().any(|action| {
            matches!(
                action,
                Action::Write(
                    Write::Delete(_)
                        | Write::Relabel(..)
                        | Write::Restore(_)
                        | Write::Apply(Object { binds: Some(_), .. })
                )
            )
        });
        let waits = matches!(when, When::NextWatch | When::NextRequest | When::NextList);
        let times = match self.rng.u32(0..8) {
            0 if waits && !is_once => Times::Count(self.rng.u32(2..6)),
            1 if waits && !is_once => Times::For(pick(&mut self.rng, &[1_000, 30_000, 400_000])),
            _ => Times::Count(1),
        };
        // What is optional has no names, and what is written there may not be.
        let is_optional = !when.is_certain();
        Step {
            when,
            is_optional,
            times,
            actions,
        }
    }

    fn when(&mut self, index: usize) -> When {
        let rng = &mut self.rng;
        match rng.u32(0..26) {
            24 | 25 if self.kind == Kind::Honest && !self.frozen => When::Synced,
            0..9 => When::Now,
            9..13 => When::After(pick(rng, &[1, 100, 1_000, 70_000, 400_000])),
            13 if index == 0 && !self.streaming => When::FirstList,
            14..20 => When::NextWatch,
            20 if self.page_size > 0 && self.most > self.page_size as usize => When::SecondPage,
            20 => When::NextList,
            21 => When::Emitted(pick(
                rng,
                &["init_done", "apply", "delete", "error", "init_apply"],
            )),
            22 => When::Quiet(pick(rng, &[10, 2_000, 30_000])),
            _ => When::NextRequest,
        }
    }

    /// An object that is written.
    fn object(&mut self) -> Object {
        let mut object = self.state();
        object.binds = rarely(&mut self.rng, 3).then_some(self.bound.len() as u32);
        self.bound.extend(object.binds);
        self.names.insert(object.key());
        self.most = self.most.max(self.names.len());
        object
    }

    /// A state of an object, of which nobody has heard.
    fn state(&mut self) -> Object {
        let rng = &mut self.rng;
        Object {
            kind: self.target.kind,
            namespace: rarely(rng, 4).then_some("kube-system"),
            name: pick(rng, &NAMES).to_owned(),
            value: rng.u32(0..1_000_000),
            app: pick(rng, &[None, Some("x"), Some("y")]),
            filler: if rarely(rng, 10) { 6_000 } else { 0 },
            binds: None,
        }
    }

    fn write(&mut self) -> Write {
        let write = self.any_write();
        self.wrote_after_restore |= self.restored && !matches!(write, Write::Restore(_));
        write
    }

    fn any_write(&mut self) -> Write {
        let rng = &mut self.rng;
        // What exists after a restore, nobody follows here.
        let known: Vec<&String> = self.names.iter().filter(|_| !self.restored).collect();
        match rng.u32(0..18) {
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
                app: None,
                filler: 0,
                binds: None,
            }),
            6 => Write::Compact,
            7 => Write::ClearWatchCache,
            8 if rarely(rng, 2) => Write::Lag(pick(rng, &[10, 1_000, 10_000])),
            9 if rarely(rng, 2) => Write::Thaw,
            10 if rarely(rng, 3) => {
                self.frozen = true;
                Write::Freeze
            }
            11 if rarely(rng, 3) => Write::ApplyMany(self.target.kind, pick(rng, &[3, 10, 30])),
            12 | 13 if self.kind == Kind::Restored && !self.bound.is_empty() => {
                self.restored = true;
                Write::Restore(pick(rng, &self.bound))
            }
            _ => Write::Apply(self.object()),
        }
    }

    /// What is done to an answer, backwards.
    fn answers(&mut self, when: When) -> Vec<Action> {
        let is_list = matches!(when, When::FirstList | When::NextList | When::SecondPage);
        let is_request = is_list || matches!(when, When::NextWatch | When::NextRequest);
        let is_watch = !is_list && when != When::NextRequest;
        if self.kind == Kind::Lying
            && self.rng.bool()
            && let Some(lie) = self.lie(is_request, is_list, is_watch)
        {
            return vec![Action::Lie(lie)];
        }
        let answer = self.answer(when, is_request, is_list, is_watch);
        let mut actions = vec![Action::Answer(answer)];
        let goes_on = matches!(
            answer,
            Answer::Error(_)
                | Answer::Bookmark
                | Answer::Repeat(_)
                | Answer::Truncate(..)
                | Answer::End(_)
                | Answer::NoBookmarks
                | Answer::EditPage(_)
        );
        if goes_on && rarely(&mut self.rng, 3) {
            actions.push(Action::Answer(self.pace(is_request)));
        }
        actions
    }

    /// How an answer is written.
    fn pace(&mut self, is_request: bool) -> Answer {
        let rng = &mut self.rng;
        match rng.u32(0..4) {
            0 if is_request => Answer::Delay(pick(rng, &[1, 500, 5_000, 64_000])),
            1 if is_request => Answer::Gzip,
            2 => Answer::SplitUtf8,
            _ => Answer::Drip(rng.u32(1..400), pick(rng, &[1, 10, 200])),
        }
    }

    /// A body is torn so: what came may or may not be all.
    fn torn(&mut self) -> Ending {
        let rng = &mut self.rng;
        match rng.u32(0..8) {
            0 if self.has_tls => Ending::NoCloseNotify,
            1..4 if self.is_http2 => Ending::RstStream(pick(
                rng,
                &[
                    "NO_ERROR",
                    "INTERNAL_ERROR",
                    "REFUSED_STREAM",
                    "CANCEL",
                    "ENHANCE_YOUR_CALM",
                ],
            )),
            4 if self.is_http2 => Ending::Goaway(pick(rng, &["NO_ERROR", "INTERNAL_ERROR"])),
            _ => pick(rng, &[Ending::Fin, Ending::Rst, Ending::Stall]),
        }
    }

    fn ending(&mut self) -> Ending {
        if rarely(&mut self.rng, 4) {
            Ending::Eof
        } else {
            self.torn()
        }
    }

    /// Something every such request can be answered with, or what the newest watch takes.
    fn answer(&mut self, when: When, is_request: bool, is_list: bool, is_watch: bool) -> Answer {
        match self.rng.u32(0..20) {
            0..3 if is_request => self.refusal(when),
            3 if is_request => Answer::Delay(pick(&mut self.rng, &[1, 500, 5_000, 64_000])),
            4 if is_request => Answer::NoAnswer(self.torn()),
            5 if is_request => Answer::Gzip,
            6 | 7 if is_watch => Answer::Error(pick(
                &mut self.rng,
                &[
                    "code: 410, reason: Expired",
                    "code: 410, reason: Gone",
                    "code: 500, reason: InternalError",
                    "code: 504, reason: Timeout, causes: ResourceVersionTooLarge",
                    "code: 429, reason: TooManyRequests, retry_after_seconds: 7",
                    "code: 403, reason: Forbidden",
                ],
            )),
            8 if is_watch => Answer::Bookmark,
            9 if is_watch => Answer::Repeat(self.rng.u32(2..4)),
            10 if is_watch => Answer::NoBookmarks,
            11 if is_watch => Answer::Coalesce(self.rng.u32(2..5)),
            12 if is_watch => {
                let cut = Cut::Events(self.rng.u32(0..3), self.rng.u32(0..100));
                Answer::Truncate(cut, self.ending())
            }
            13 => Answer::Truncate(Cut::Bytes(self.rng.u32(0..600)), self.torn()),
            14 => Answer::Drip(self.rng.u32(1..400), pick(&mut self.rng, &[1, 10, 200])),
            15 => Answer::SplitUtf8,
            16 if is_watch && rarely(&mut self.rng, 2) => {
                Answer::EndMarker(pick(&mut self.rng, &["\"false\"", "\"TRUE\"", "absent"]))
            }
            17 if rarely(&mut self.rng, 2) => {
                Answer::RefuseConnections(pick(&mut self.rng, &[10, 3_000, 30_000]))
            }
            18 if self.is_http2 => Answer::Goaway,
            _ if is_list && self.rng.bool() => Answer::EditPage(pick(
                &mut self.rng,
                &["remaining: 7", "remaining: 0", "continue: go-on"],
            )),
            _ if is_watch => Answer::End(self.ending()),
            _ => Answer::End(self.torn()),
        }
    }

    fn refusal(&mut self, when: When) -> Answer {
        let rng = &mut self.rng;
        let status = pick(
            rng,
            &[
                429, 429, 500, 502, 503, 504, 410, 400, 401, 403, 404, 406, 408, 409, 422,
            ],
        );
        let retry_after = matches!(status, 429 | 500 | 503 | 504) && rng.bool();
        let retry_after = retry_after.then(|| {
            pick(
                rng,
                &[
                    "0",
                    "1",
                    "7",
                    "30",
                    "3600",
                    "soon",
                    "-1",
                    "Wed, 21 Oct 2015 07:28:00 GMT",
                ],
            )
        });
        let rest = match (status, rng.u32(0..6)) {
            (410, 0) if when == When::SecondPage => "reason: Expired, inconsistent_token: true",
            (410, _) => "reason: Expired",
            (504, 0 | 1) => "reason: Timeout, causes: ResourceVersionTooLarge, retry_after_seconds: 1",
            (_, 2) => "body: \"<html>Bad Gateway</html>\", headers: {Content-Type: text/html}",
            (_, 3) => "body: \"\"",
            (_, 4) => "json: {}",
            (_, _) => "",
        };
        Answer::Refuse(Reply {
            status,
            retry_after,
            rest,
        })
    }

    fn lie(&mut self, is_request: bool, is_list: bool, is_watch: bool) -> Option<Lie> {
        let lie = match self.rng.u32(0..8) {
            0 if is_watch => Lie::Drop(self.rng.u32(1..4)),
            1 if is_watch => Lie::Reorder(self.rng.u32(2..5)),
            2 if is_watch => Lie::Unreadable(pick(
                &mut self.rng,
                &[
                    "send: \"{\"",
                    "send: \"\"",
                    "send: \"null\"",
                    "send: {bytes: \"\\xff\\xfe\"}",
                    "send: '{\"type\":\"WEIRD\",\"object\":{}}'",
                    "send: '{\"type\":\"ADDED\",\"object\":{\"metadata\":{}}}'",
                    "send: {text: '{\"type\":\"MODI', newline: false}",
                ],
            )),
            3 | 4 if is_watch => {
                let kind = pick(&mut self.rng, &["ADDED", "MODIFIED", "DELETED"]);
                let version = pick(
                    &mut self.rng,
                    &[
                        None,
                        Some("\"5\""),
                        Some("absent"),
                        Some("\"99999999\""),
                        Some("\"v1:+/\""),
                    ],
                );
                Lie::Event(kind, self.state().to_string(), version)
            }
            5 if is_watch => Lie::Bookmark(pick(
                &mut self.rng,
                &["\"5\"", "\"99999999\"", "absent", "\"v1:+/\""],
            )),
            6 if is_request => Lie::Unreadable(pick(
                &mut self.rng,
                &[
                    "reply: {status: 200, body: \"\"}",
                    "reply: {status: 200, body: \"not JSON\"}",
                    "reply: {status: 200, json: {kind: List, items: []}}",
                    "reply: {status: 500, truth: true}",
                ],
            )),
            _ if is_list => Lie::Page(match self.rng.u32(0..7) {
                0 => "rv: absent".to_owned(),
                1 => "rv: \"5\"".to_owned(),
                2 => "rv: \"v1:a+b/c=\"".to_owned(),
                3 => "without: \"*\"".to_owned(),
                4 => "kind: NodeList".to_owned(),
                5 => "items: \"null\"".to_owned(),
                _ => format!("add: {{{}: {{name: ghost}}}}", self.target.kind),
            }),
            _ => return None,
        };
        Some(lie)
    }

    /// Steps after which the truth is read again: what was told wrong is not told again, and the next watch is expired.
    fn conclude(&mut self, steps: &mut Vec<Step>) {
        let ends_optional = steps.last().is_some_and(|last| last.is_optional);
        let mut step = |when, actions| {
            steps.push(Step {
                when,
                is_optional: false,
                times: Times::Count(1),
                actions,
            });
        };
        // What is optional needs something behind it.
        if ends_optional {
            step(When::After(1_000), vec![Action::Write(Write::Compact)]);
        }
        if self.frozen {
            step(When::After(1_000), vec![Action::Write(Write::Thaw)]);
        }
        if self.kind == Kind::Lying || self.wrote_after_restore {
            step(When::After(1_000), vec![Action::Write(Write::ClearWatchCache)]);
            let expired = Answer::Error("code: 410, reason: Expired");
            step(
                When::NextWatch,
                vec![Action::Answer(expired), Action::Answer(Answer::End(Ending::Eof))],
            );
        }
    }
}
