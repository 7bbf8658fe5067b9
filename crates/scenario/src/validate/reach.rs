//! Counts the requests consumed by earlier steps, to find steps that can never be met.
//!
//! Counts only requests that must have been sent: a client may send more, never fewer.

use crate::problem::{Code, Problem};
use crate::span::Span;
use crate::{ClientSettings, RequestKind, Times};

/// Minimum of requests sent when a step is armed.
#[derive(Debug, Clone)]
pub(super) struct Reach {
    /// Number of LIST attempts, and the line of the step that consumed the last one.
    lists: (u64, u32),
    /// Page reached by the last attempt.
    page: u64,
    watches: (u64, u32),
    requests: (u64, u32),
    page_size: Option<u32>,
    /// Maximum number of the target's objects that existed at the same time.
    objects: usize,
    /// The script writes list responses, so the number of pages is unknown.
    scripted_lists: bool,
}

/// A request that a step waits for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Awaited {
    pub(super) kind: RequestKind,
    pub(super) nth: Option<u64>,
    pub(super) times: Times,
    pub(super) span: Span,
    pub(super) line: u32,
}

impl Reach {
    pub(super) fn new(client: &ClientSettings, objects: usize) -> Self {
        Self {
            lists: (0, 0),
            page: 1,
            watches: (0, 0),
            requests: (0, 0),
            page_size: client.page_size,
            objects,
            scripted_lists: false,
        }
    }

    /// Records the current number of the target's objects.
    pub(super) fn objects(&mut self, now: usize) {
        self.objects = self.objects.max(now);
    }

    /// Records that the script writes list responses or restores the store.
    pub(super) fn scripts_lists(&mut self) {
        self.scripted_lists = true;
    }

    /// Consumes a request; returns an error if it can never be sent.
    pub(super) fn wait(&mut self, awaited: Awaited) -> Option<Problem> {
        let Awaited {
            kind,
            nth,
            times,
            line,
            ..
        } = awaited;
        let more = match times {
            Times::Count(times) => u64::from(times),
            Times::For(_) => 1,
        };
        let problem = match kind {
            RequestKind::List => used_up("LIST", nth, self.lists, awaited),
            RequestKind::Watch => used_up("WATCH", nth, self.watches, awaited),
            RequestKind::Any => used_up("request", nth, self.requests, awaited),
            RequestKind::Page { page } => self.page_problem(u64::from(page), nth, awaited),
        };
        let reached = |before: u64| nth.unwrap_or(before + 1).max(before) + more - 1;
        match kind {
            RequestKind::List => {
                let now = reached(self.lists.0);
                self.requests.0 += now.saturating_sub(self.lists.0);
                (self.lists, self.page) = ((now, line), 1);
            }
            RequestKind::Watch => {
                let now = reached(self.watches.0);
                self.requests.0 += now.saturating_sub(self.watches.0);
                self.watches = (now, line);
            }
            RequestKind::Page { page } => {
                let now = nth.unwrap_or(self.lists.0).max(self.lists.0).max(1);
                self.requests.0 += 1 + now.saturating_sub(self.lists.0);
                self.lists = (now, line);
                self.page = u64::from(page);
            }
            RequestKind::Any => self.requests.0 = reached(self.requests.0),
        }
        self.requests.1 = line;
        problem
    }

    fn page_problem(&self, page: u64, nth: Option<u64>, awaited: Awaited) -> Option<Problem> {
        let never =
            |message: String| Problem::new(Code::NeverMet, awaited.span, message).label("never comes");
        if let Some(nth) = nth {
            let (lists, line) = self.lists;
            if nth < lists || (nth == lists && page <= self.page) {
                return Some(
                    never(format!(
                        "page {page} of LIST {nth} is over: line {line} waited for it, or for what comes after"
                    ))
                    .hint("put this step before that one, or wait for a later page"),
                );
            }
        }
        if self.scripted_lists {
            return None;
        }
        let Some(size) = self.page_size else {
            return Some(
                never(String::from(
                    "the client does not page: no list has a second page",
                ))
                .hint("give `client: {page_size: …}` a number"),
            );
        };
        let enough = u64::from(size) * (page - 1);
        (u64::try_from(self.objects).unwrap_or(u64::MAX) <= enough).then(|| {
            let objects = self.objects;
            never(format!("no list has a page {page}: with {size} a page it takes more than {enough} objects, and there are {objects}"))
                .hint("add objects (`repeat:`), or make `client: {page_size: …}` smaller")
        })
    }
}

fn used_up(word: &str, nth: Option<u64>, (seen, line): (u64, u32), awaited: Awaited) -> Option<Problem> {
    let nth = nth.filter(|nth| *nth <= seen)?;
    Some(
        Problem::new(
            Code::NeverMet,
            awaited.span,
            format!("{word} {nth} is over when this step is armed: line {line} waited for {word} {seen}"),
        )
        .label("never comes again")
        .hint(format!(
            "write `next`, or a number above {seen}; steps are met from top to bottom"
        )),
    )
}
