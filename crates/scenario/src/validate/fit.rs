//! Validates that actions fit the step's trigger and the preceding actions.

use apimachinery::encode::encode_json;
use trace::fault::Cut;

use super::Validator;
use crate::action::Part;
use crate::problem::{Code, Problem};
use crate::span::Span;
use crate::{Action, ReplyBody, RuleAction, ShapeAction};

/// The response that the actions of a step act on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResponseKind {
    /// A LIST or a page.
    List,
    /// A WATCH.
    Watch,
    /// A request of any kind.
    Any,
    /// No request: the newest open watch.
    OpenWatch,
}

/// The action that determines the whole response.
#[derive(Debug, Clone, Copy)]
struct Replied {
    word: &'static str,
    span: Span,
    is_silent: bool,
}

/// State of the response when an action runs.
#[derive(Debug, Default)]
pub(super) struct Progress {
    replied: Option<Replied>,
    begun: Option<Span>,
    truncated: Option<Span>,
    /// Length of the body, if a reply specifies it and it is not compressed.
    body: Option<usize>,
    compressed: bool,
    ended: Option<Span>,
}

impl Validator<'_> {
    /// Checks that the action fits the step's trigger and the preceding actions.
    pub(super) fn fits(
        &mut self,
        word: &'static str,
        span: Span,
        action: &Action,
        answer: ResponseKind,
        progress: &mut Progress,
    ) {
        if let Some(part) = action.part() {
            if let Some((message, hint)) = misplaced(part, answer) {
                self.problem(
                    Problem::new(
                        Code::Misplaced,
                        span,
                        format!("`{word}` makes no sense here: {message}"),
                    )
                    .label("does not fit what the step waits for")
                    .hint(hint),
                );
            } else {
                if let Some((message, hint)) = self.unreachable(part, progress) {
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
                progress.change(part, word, span);
            }
        }
        self.cut_inside(action, span, progress);
    }

    /// Returns why a part of the response can no longer be changed, and what to do instead.
    fn unreachable(&self, part: Part, progress: &Progress) -> Option<(String, &'static str)> {
        let line = |span: Span| self.place(span).line;
        let settles = |replied: &Replied| match part {
            Part::Whole { .. } | Part::Page | Part::Coding | Part::Events | Part::Cut { by_events: true } => {
                true
            }
            Part::Start | Part::Body | Part::Cut { by_events: false } | Part::End => replied.is_silent,
        };
        if let Some(ended) = progress.ended {
            let message = format!("the answer is over since `end` in line {}", line(ended));
            return Some((message, "put it before the end, or into a later step"));
        }
        if let Some(Replied { word, span, .. }) = progress.replied.filter(settles) {
            let message = format!("`{word}` in line {} settles the whole answer", line(span));
            return Some((message, "take one of the two"));
        }
        let is_first = matches!(part, Part::Whole { .. } | Part::Start | Part::Coding);
        if let Some(begun) = progress.begun.filter(|_| is_first) {
            let message = format!("the answer has begun in line {}", line(begun));
            return Some((message, "put it first"));
        }
        let ends = matches!(part, Part::End | Part::Cut { .. });
        progress.truncated.filter(|_| ends).map(|truncated| {
            let message = format!(
                "`truncate` in line {} already ends this response",
                line(truncated)
            );
            (message, "take one of the two")
        })
    }

    /// Checks that a cut is within the body of a preceding action.
    fn cut_inside(&mut self, action: &Action, span: Span, progress: &mut Progress) {
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

/// Returns why an action on this part makes no sense for the response, and what to do instead.
fn misplaced(part: Part, answer: ResponseKind) -> Option<(&'static str, &'static str)> {
    let on_events = matches!(part, Part::Events | Part::Cut { by_events: true });
    match answer {
        ResponseKind::List if on_events => Some((
            "a LIST has no stream of events",
            "wait for a `watch`, or change the page with `edit_page`",
        )),
        ResponseKind::Any if on_events => Some((
            "a request of any kind may have no stream of events",
            "wait for a `watch`",
        )),
        ResponseKind::Watch if part == Part::Page => Some((
            "a WATCH has no page",
            "wait for a `list` or a `page`, or send events of your own",
        )),
        ResponseKind::Any if part == Part::Page => Some((
            "a request of any kind may have no page",
            "wait for a `list` or a `page`",
        )),
        ResponseKind::List | ResponseKind::Watch
            if matches!(
                part,
                Part::Whole {
                    after_write: true,
                    ..
                }
            ) =>
        {
            Some((
                "a LIST or WATCH writes nothing",
                "wait for a `request`, or take `no_answer`, or `reply` without `after_write`",
            ))
        }
        ResponseKind::OpenWatch
            if matches!(part, Part::Whole { .. } | Part::Page | Part::Start | Part::Coding) =>
        {
            Some((
                "there is no request to answer",
                "wait for one: `when: {list: next}`, `when: {watch: next}`",
            ))
        }
        ResponseKind::List | ResponseKind::Watch | ResponseKind::Any | ResponseKind::OpenWatch => None,
    }
}

impl Progress {
    fn change(&mut self, part: Part, word: &'static str, span: Span) {
        match part {
            Part::Whole { is_silent, .. } => {
                self.replied = Some(Replied {
                    word,
                    span,
                    is_silent,
                });
            }
            Part::End => self.ended = Some(span),
            Part::Cut { .. } => self.truncated = Some(span),
            Part::Page | Part::Events => self.begun = Some(span),
            Part::Start | Part::Coding | Part::Body => {}
        }
    }
}
