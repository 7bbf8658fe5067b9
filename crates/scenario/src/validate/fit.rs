//! Validates that actions fit the step's trigger and the preceding actions.

use apimachinery::encode::encode_json;
use trace::fault::Cut;

use super::Validator;
use crate::problem::{Code, Problem};
use crate::raw::ActionKeys;
use crate::span::Span;
use crate::{Action, ReplyBody, RuleAction, ShapeAction};

/// The response that the actions of a step act on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// A LIST or a page.
    List,
    /// A WATCH.
    Watch,
    /// A request of any kind.
    Any,
    /// No request: the newest open watch.
    OpenWatch,
}

/// State of the response when an action runs.
#[derive(Debug, Default)]
pub(super) struct Progress {
    replied: Option<(&'static str, Span)>,
    begun: Option<Span>,
    truncated: Option<Span>,
    /// Length of the body, if a reply specifies it and it is not compressed.
    body: Option<usize>,
    compressed: bool,
    ended: Option<Span>,
}

impl Validator<'_> {
    /// Returns true if the action fits the step's trigger and the preceding actions.
    pub(super) fn placed(
        &mut self,
        word: &'static str,
        span: Span,
        keys: &ActionKeys,
        answer: Answer,
        progress: &mut Progress,
    ) {
        let by_events = keys
            .truncate
            .as_ref()
            .is_some_and(|truncate| truncate.value.after_events.is_some());
        let on_stream = by_events
            || matches!(
                word,
                "send"
                    | "event"
                    | "error"
                    | "bookmark"
                    | "drop_events"
                    | "repeat_event"
                    | "reorder_events"
                    | "no_bookmarks"
                    | "end_marker"
                    | "coalesce"
            );
        let on_request = matches!(
            word,
            "reply" | "edit_page" | "delay" | "gzip" | "no_answer" | "lose_answer"
        );
        let after_write = word == "lose_answer"
            || word == "reply"
                && keys
                    .reply
                    .as_ref()
                    .and_then(|reply| reply.value.after_write.as_ref())
                    .is_some_and(|after| after.value);
        let on_end = matches!(
            word,
            "end" | "eof" | "fin" | "rst" | "stall" | "no_close_notify" | "rst_stream"
        );
        let on_body = matches!(word, "drip" | "split_utf8" | "truncate") || on_end;
        if !(on_stream || on_request || on_body) {
            return;
        }
        let misplaced = match answer {
            Answer::List if on_stream => Some((
                "a LIST has no stream of events",
                "wait for a `watch`, or change the page with `edit_page`",
            )),
            Answer::Any if on_stream => Some((
                "a request of any kind may have no stream of events",
                "wait for a `watch`",
            )),
            Answer::Watch if word == "edit_page" => Some((
                "a WATCH has no page",
                "wait for a `list` or a `page`, or send events of your own",
            )),
            Answer::Any if word == "edit_page" => Some((
                "a request of any kind may have no page",
                "wait for a `list` or a `page`",
            )),
            Answer::List | Answer::Watch if after_write => Some((
                "a LIST or WATCH writes nothing",
                "wait for a `request`, or take `no_answer`, or `reply` without `after_write`",
            )),
            Answer::OpenWatch if on_request => Some((
                "there is no request to answer",
                "wait for one: `when: {list: next}`, `when: {watch: next}`",
            )),
            Answer::List | Answer::Watch | Answer::Any | Answer::OpenWatch => None,
        };
        if let Some((message, hint)) = misplaced {
            self.problem(
                Problem::new(
                    Code::Misplaced,
                    span,
                    format!("`{word}` makes no sense here: {message}"),
                )
                .label("does not fit what the step waits for")
                .hint(hint),
            );
            return;
        }
        let line = |v: &Self, span: Span| v.place(span).line;
        let unreachable = if let Some(ended) = progress.ended {
            Some((
                format!("the answer is over since `end` in line {}", line(self, ended)),
                "put it before the end, or into a later step",
            ))
        } else if let Some((by, replied)) = progress
            .replied
            .filter(|(by, _)| on_stream || on_request && word != "delay" || by.ends_with("_answer"))
        {
            Some((
                format!("`{by}` in line {} settles the whole answer", line(self, replied)),
                "take one of the two",
            ))
        } else if let Some(begun) = progress.begun.filter(|_| on_request && word != "edit_page") {
            Some((
                format!("the answer has begun in line {}", line(self, begun)),
                "put it first",
            ))
        } else {
            progress
                .truncated
                .filter(|_| on_end || word == "truncate")
                .map(|truncated| {
                    (
                        format!(
                            "`truncate` in line {} already ends this response",
                            line(self, truncated)
                        ),
                        "take one of the two",
                    )
                })
        };
        if let Some((message, hint)) = unreachable {
            self.problem(
                Problem::new(
                    Code::Unreachable,
                    span,
                    format!("`{word}` comes too late: {message}"),
                )
                .label("has no effect")
                .hint(hint),
            );
        }
        if matches!(word, "reply" | "no_answer" | "lose_answer") {
            progress.replied = Some((word, span));
        } else if on_end {
            progress.ended = Some(span);
        } else if word == "truncate" {
            progress.truncated = Some(span);
        } else if (on_stream || word == "edit_page") && !by_events {
            progress.begun = Some(span);
        }
    }

    /// Checks that a cut is within the body of a preceding action.
    pub(super) fn cut_inside(&mut self, action: &Action, span: Span, progress: &mut Progress) {
        match action {
            Action::Shape(ShapeAction::Gzip) => progress.compressed = true,
            Action::Shape(ShapeAction::Reply(reply)) if !progress.compressed => {
                progress.body = match &reply.body {
                    ReplyBody::Raw(text) => Some(text.len()),
                    // A newline follows.
                    ReplyBody::Json(json) => Some(encode_json(json).len() + 1),
                    ReplyBody::Status(_) | ReplyBody::Unmodified => None,
                };
            }
            Action::Rule(RuleAction::Truncate {
                cut: Cut::AfterBytes(bytes),
                ..
            }) => {
                let Some(body) = progress
                    .body
                    .filter(|body| usize::try_from(*bytes).is_ok_and(|bytes| bytes >= *body))
                else {
                    return;
                };
                self.problem(
                    Problem::new(
                        Code::Unreachable,
                        span,
                        format!("`truncate` after {bytes} bytes cuts nothing: the body has {body}"),
                    )
                    .label("behind the end")
                    .hint("make `after_bytes` smaller, or the body longer"),
                );
            }
            Action::Store(_) | Action::Shape(_) | Action::Rule(_) | Action::Stream(_) | Action::Refuse(_) => {
            }
        }
    }
}
