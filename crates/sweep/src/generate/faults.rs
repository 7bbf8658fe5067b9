//! Actions on responses: failures, and in the profile *lies* false contents.

use super::draw::{Drawing, pick, rarely};
use super::rarity;
use super::{Action, Cut, Ending, Lie, Profile, Reply, ResponseFault, When};

/// Never the timeout of a LIST: the trace does not show whether bytes of that instant were read.
const DELAYS_MS: [u32; 4] = [1, 500, 4_000, 64_000];

impl Drawing {
    /// Returns the actions on a response, in reverse; of two candidates, the rarer.
    pub(super) fn answers(&mut self, when: When) -> Vec<Action> {
        let one = self.draw_answers(when);
        if self.rng.bool() {
            return one;
        }
        let other = self.draw_answers(when);
        if rarity::of(when, &other) < rarity::of(when, &one) {
            other
        } else {
            one
        }
    }

    fn draw_answers(&mut self, when: When) -> Vec<Action> {
        let (is_list, is_request, is_watch) = (when.is_list(), when.is_request(), when.is_watch());
        if self.profile == Profile::Lies
            && !rarely(&mut self.rng, 5)
            && let Some(lie) = self.lie(is_request, is_list, is_watch)
        {
            return vec![Action::Lie(lie)];
        }
        let answer = self.answer(when, is_request, is_list, is_watch);
        let mut actions = vec![Action::ResponseFault(answer)];
        let goes_on = matches!(
            answer,
            ResponseFault::Error(_)
                | ResponseFault::Bookmark
                | ResponseFault::Repeat(_)
                | ResponseFault::Truncate(..)
                | ResponseFault::End(_)
                | ResponseFault::NoBookmarks
                | ResponseFault::EditPage(_)
        );
        if goes_on && rarely(&mut self.rng, 3) {
            actions.push(Action::ResponseFault(self.pace(is_request)));
        }
        actions
    }

    /// Returns how the body is written.
    fn pace(&mut self, is_request: bool) -> ResponseFault {
        let rng = &mut self.rng;
        match rng.u32(0..4) {
            0 if is_request => ResponseFault::Delay(pick(rng, &DELAYS_MS)),
            1 if is_request => ResponseFault::Gzip,
            2 => ResponseFault::SplitUtf8,
            _ => ResponseFault::Drip(rng.u32(1..400), pick(rng, &[1, 10, 200])),
        }
    }

    /// Returns an ending after which the client may or may not have all bytes.
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

    /// Returns a response that fits the request, or an action on the newest watch.
    fn answer(&mut self, when: When, is_request: bool, is_list: bool, is_watch: bool) -> ResponseFault {
        match self.rng.u32(0..20) {
            0..3 if is_request => self.refusal(when),
            3 if is_request => ResponseFault::Delay(pick(&mut self.rng, &DELAYS_MS)),
            4 if is_request => ResponseFault::NoAnswer(self.torn()),
            5 if is_request => ResponseFault::Gzip,
            6 | 7 if is_watch => ResponseFault::Error(pick(
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
            8 if is_watch => ResponseFault::Bookmark,
            9 if is_watch => ResponseFault::Repeat(self.rng.u32(2..4)),
            10 if is_watch => ResponseFault::NoBookmarks,
            11 if is_watch => ResponseFault::Coalesce(self.rng.u32(2..5)),
            12 if is_watch => {
                let cut = Cut::Events(self.rng.u32(0..3), self.rng.u32(0..100));
                ResponseFault::Truncate(cut, self.ending())
            }
            13 => ResponseFault::Truncate(Cut::Bytes(self.rng.u32(0..600)), self.torn()),
            14 => ResponseFault::Drip(self.rng.u32(1..400), pick(&mut self.rng, &[1, 10, 200])),
            15 => ResponseFault::SplitUtf8,
            16 if is_watch && rarely(&mut self.rng, 2) => {
                ResponseFault::EndMarker(pick(&mut self.rng, &["\"false\"", "\"TRUE\"", "absent"]))
            }
            17 if rarely(&mut self.rng, 2) => {
                ResponseFault::RefuseConnections(pick(&mut self.rng, &[10, 3_000, 30_000]))
            }
            18 if self.is_http2 => ResponseFault::Goaway,
            _ if is_list && self.rng.bool() => ResponseFault::EditPage(pick(
                &mut self.rng,
                &["remaining: 7", "remaining: 0", "continue: go-on"],
            )),
            _ if is_watch => ResponseFault::End(self.ending()),
            _ => ResponseFault::End(self.torn()),
        }
    }

    fn refusal(&mut self, when: When) -> ResponseFault {
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
                    "900",
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
        ResponseFault::Refuse(Reply {
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
                Lie::Event(kind, self.state(), version)
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
                    "reply: {status: 500, unmodified: true}",
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
}
