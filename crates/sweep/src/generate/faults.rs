//! Actions on responses: failures, and in the profile *lies* false contents.

use std::ops::Range;

use fake_apiserver::fault::{Ending, Http2Error};
use fake_apiserver::scenario::raw::{
    ActionKey, ActionKeys, At, Bookmark, Condition, Drip, Duration, EditPage, Entries, First, ItemsWord,
    Json, Loose, OneOrMany, OrNothing, RawLine, Reply, SentEvent, ShortBody, ShortObject, StatusKeys, Text,
    Truncate,
};
use serde_json::json;

use super::draw::{Drawing, pick, rarely};
use super::names::Trigger;
use super::{Profile, at, rarity};

/// Never the timeout of a LIST: the trace does not show whether bytes of that instant were read.
const DELAYS_MS: [u64; 4] = [1, 500, 4_000, 64_000];

/// Header `Retry-After`: in seconds, as a date, and as neither.
const RETRY_AFTER: [&str; 8] = [
    "0",
    "1",
    "7",
    "30",
    "900",
    "soon",
    "-1",
    "Wed, 21 Oct 2015 07:28:00 GMT",
];

impl Drawing {
    /// Returns the actions on a response, in reverse; of two candidates, the rarer.
    pub(super) fn answers(&mut self, trigger: Trigger) -> Vec<ActionKeys> {
        let one = self.draw_answers(trigger);
        if self.rng.bool() {
            return one;
        }
        let other = self.draw_answers(trigger);
        if rarity::of(trigger, &other) < rarity::of(trigger, &one) {
            other
        } else {
            one
        }
    }

    fn draw_answers(&mut self, trigger: Trigger) -> Vec<ActionKeys> {
        if self.profile == Profile::Lies
            && !rarely(&mut self.rng, 5)
            && let Some(lie) = self.lie(trigger)
        {
            return vec![lie.into()];
        }
        let answer = self.answer(trigger);
        let goes_on = matches!(
            answer.word(),
            "error" | "bookmark" | "repeat_event" | "truncate" | "end" | "no_bookmarks" | "edit_page"
        );
        let mut actions = vec![answer.into()];
        if goes_on && rarely(&mut self.rng, 3) {
            actions.push(self.pace(trigger).into());
        }
        actions
    }

    /// Returns how the body is written.
    fn pace(&mut self, trigger: Trigger) -> ActionKey {
        match self.rng.u32(0..4) {
            0 if trigger.is_request() => self.delay(),
            1 if trigger.is_request() => ActionKey::Gzip(().into()),
            2 => ActionKey::SplitUtf8(().into()),
            _ => self.drip(),
        }
    }

    fn count(&mut self, range: Range<u32>) -> At<u64> {
        u64::from(self.rng.u32(range)).into()
    }

    fn delay(&mut self) -> ActionKey {
        ActionKey::Delay(Duration::ms(pick(&mut self.rng, &DELAYS_MS)).into())
    }

    fn drip(&mut self) -> ActionKey {
        let drip = Drip {
            bytes: at(self.rng.u32(1..400)),
            every: at(Duration::ms(pick(&mut self.rng, &[1, 10, 200]))),
        };
        ActionKey::Drip(drip.into())
    }

    /// Returns an ending after which the client may or may not have all bytes.
    fn torn(&mut self) -> Ending {
        let rng = &mut self.rng;
        match rng.u32(0..8) {
            0 if self.has_tls => Ending::NoCloseNotify,
            1..4 if self.is_http2 => Ending::RstStream(pick(
                rng,
                &[
                    Http2Error::NoError,
                    Http2Error::InternalError,
                    Http2Error::RefusedStream,
                    Http2Error::Cancel,
                    Http2Error::EnhanceYourCalm,
                ],
            )),
            4 if self.is_http2 => {
                Ending::Goaway(pick(rng, &[Http2Error::NoError, Http2Error::InternalError]))
            }
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

    /// Returns a response that fits the request, or an action on the newest watch.
    fn answer(&mut self, trigger: Trigger) -> ActionKey {
        let (is_list, is_request, is_watch) = (trigger.is_list(), trigger.is_request(), trigger.is_watch());
        match self.rng.u32(0..20) {
            0..3 if is_request => self.refusal(trigger),
            3 if is_request => self.delay(),
            4 if is_request => ActionKey::NoAnswer(self.torn().into()),
            5 if is_request => ActionKey::Gzip(().into()),
            6 | 7 if is_watch => {
                let (code, reason) = pick(
                    &mut self.rng,
                    &[
                        (410_u64, "Expired"),
                        (410, "Gone"),
                        (500, "InternalError"),
                        (504, "Timeout"),
                        (429, "TooManyRequests"),
                        (403, "Forbidden"),
                    ],
                );
                let status = StatusKeys {
                    code: at(code),
                    reason: at(reason),
                    causes: (code == 504).then(too_large),
                    retry_after_seconds: (code == 429).then(|| 7.into()),
                    ..StatusKeys::default()
                };
                ActionKey::Error(status.into())
            }
            8 if is_watch => ActionKey::Bookmark(OrNothing(None).into()),
            9 if is_watch => ActionKey::RepeatEvent(self.count(2..4)),
            10 if is_watch => ActionKey::NoBookmarks(().into()),
            11 if is_watch => ActionKey::Coalesce(self.count(2..5)),
            12 if is_watch => {
                let truncate = Truncate {
                    after_events: at(self.rng.u32(0..3)),
                    percent: at(self.rng.u32(0..100)),
                    then: Some(self.ending().into()),
                    after_bytes: None,
                };
                ActionKey::Truncate(truncate.into())
            }
            13 => {
                let truncate = Truncate {
                    after_bytes: at(self.rng.u32(0..600)),
                    then: Some(self.torn().into()),
                    ..Truncate::default()
                };
                ActionKey::Truncate(truncate.into())
            }
            14 => self.drip(),
            15 => ActionKey::SplitUtf8(().into()),
            16 if is_watch && rarely(&mut self.rng, 2) => {
                let value = pick(&mut self.rng, &["false", "TRUE", "absent"]);
                ActionKey::EndMarker(Text::from(value).into())
            }
            17 if rarely(&mut self.rng, 2) => {
                ActionKey::Refuse(Duration::ms(pick(&mut self.rng, &[10, 3_000, 30_000])).into())
            }
            18 if self.is_http2 => ActionKey::Goaway(().into()),
            _ if is_list && self.rng.bool() => {
                let edit = match pick(&mut self.rng, &[0, 1, 2]) {
                    0 => EditPage {
                        remaining: at(7),
                        ..EditPage::default()
                    },
                    1 => EditPage {
                        remaining: at(0),
                        ..EditPage::default()
                    },
                    _ => EditPage {
                        continue_token: value("go-on"),
                        ..EditPage::default()
                    },
                };
                ActionKey::EditPage(edit.into())
            }
            _ if is_watch => ActionKey::End(self.ending().into()),
            _ => ActionKey::End(self.torn().into()),
        }
    }

    fn refusal(&mut self, trigger: Trigger) -> ActionKey {
        let rng = &mut self.rng;
        let status = pick(
            rng,
            &[
                429_u64, 429, 500, 502, 503, 504, 410, 400, 401, 403, 404, 406, 408, 409, 422,
            ],
        );
        let retry_after = matches!(status, 429 | 500 | 503 | 504) && rng.bool();
        let mut reply = Reply {
            status: at(status),
            retry_after: retry_after.then(|| pick(rng, &RETRY_AFTER).into()),
            ..Reply::default()
        };
        match (status, rng.u32(0..6)) {
            (410, kind) => {
                reply.reason = at("Expired");
                let is_inconsistent = kind == 0 && trigger == Trigger::SecondPage;
                reply.inconsistent_token = is_inconsistent.then(|| true.into());
            }
            (504, 0 | 1) => {
                reply.reason = at("Timeout");
                reply.causes = Some(too_large());
                reply.retry_after_seconds = at(1_u64);
            }
            (_, 2) => {
                reply.body = at("<html>Bad Gateway</html>");
                let html = ("Content-Type".to_owned().into(), "text/html".into());
                reply.headers = Some(Entries(vec![html]));
            }
            (_, 3) => reply.body = at(""),
            (_, 4) => reply.json = at(Json(json!({}))),
            (_, _) => {}
        }
        ActionKey::Reply(reply.into())
    }

    fn lie(&mut self, trigger: Trigger) -> Option<ActionKey> {
        let is_watch = trigger.is_watch();
        Some(match self.rng.u32(0..8) {
            0 if is_watch => ActionKey::DropEvents(self.count(1..4)),
            1 if is_watch => ActionKey::ReorderEvents(self.count(2..5)),
            2 if is_watch => {
                let lines = [
                    line("{"),
                    line(""),
                    line("null"),
                    RawLine {
                        bytes: at("\u{ff}\u{fe}"),
                        ..RawLine::default()
                    },
                    line(r#"{"type":"WEIRD","object":{}}"#),
                    line(r#"{"type":"ADDED","object":{"metadata":{}}}"#),
                    RawLine {
                        newline: at(false),
                        ..line(r#"{"type":"MODI"#)
                    },
                ];
                let line = lines[self.rng.usize(0..lines.len())].clone();
                ActionKey::Send(OneOrMany(vec![First(line)]).into())
            }
            3 | 4 if is_watch => {
                let kind = pick(&mut self.rng, &["ADDED", "MODIFIED", "DELETED"]);
                let version = pick(
                    &mut self.rng,
                    &[None, Some("5"), Some("absent"), Some("99999999"), Some("v1:+/")],
                );
                let event = SentEvent {
                    kind: at(kind),
                    object: at(Loose::Short(Box::new(self.state()))),
                    rv: version.and_then(value),
                };
                ActionKey::Event(event.into())
            }
            5 if is_watch => {
                let bookmark = Bookmark {
                    rv: value(pick(&mut self.rng, &["5", "99999999", "absent", "v1:+/"])),
                    ..Bookmark::default()
                };
                ActionKey::Bookmark(OrNothing(Some(bookmark)).into())
            }
            6 if trigger.is_request() => {
                let kind = pick(&mut self.rng, &[0, 1, 2, 3]);
                let mut reply = Reply {
                    status: at(if kind == 3 { 500_u64 } else { 200 }),
                    ..Reply::default()
                };
                match kind {
                    0 => reply.body = at(""),
                    1 => reply.body = at("not JSON"),
                    2 => reply.json = at(Json(json!({ "kind": "List", "items": [] }))),
                    _ => reply.unmodified = at(true),
                }
                ActionKey::Reply(reply.into())
            }
            _ if trigger.is_list() => {
                let mut edit = EditPage::default();
                match self.rng.u32(0..7) {
                    0 => edit.rv = value("absent"),
                    1 => edit.rv = value("5"),
                    2 => edit.rv = value("v1:a+b/c="),
                    3 => edit.without = at(OneOrMany(vec![At::from(Text::from("*"))])),
                    4 => edit.kind = at("NodeList"),
                    5 => edit.items = at(ItemsWord::Null),
                    _ => {
                        let body = ShortBody {
                            name: at("ghost"),
                            ..ShortBody::default()
                        };
                        let ghost = Loose::Short(Box::new(ShortObject::new(self.kind, body)));
                        edit.add = at(OneOrMany(vec![ghost.into()]));
                    }
                }
                ActionKey::EditPage(edit.into())
            }
            _ => return None,
        })
    }
}

/// Returns a version or token.
fn value(text: &str) -> Option<At<First<Condition>>> {
    at(First(Condition {
        bare: at(text),
        ..Condition::default()
    }))
}

fn line(text: &str) -> RawLine {
    RawLine {
        text: Some(text.into()),
        ..RawLine::default()
    }
}

/// Returns the cause of a version that is newer than the server's.
fn too_large() -> At<OneOrMany<Text>> {
    OneOrMany(vec!["ResourceVersionTooLarge".into()]).into()
}
