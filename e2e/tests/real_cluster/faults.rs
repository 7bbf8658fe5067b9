//! What a proxy can inject, as steps with what its log has of each. It must not know how a step is done.

use super::followers::Lists;

/// A fault of the proxy.
pub(crate) struct Fault {
    pub(crate) name: &'static str,
    /// Whether only a list in pages meets it.
    pub(crate) paged: bool,
    /// Each is done for all clients before the next.
    pub(crate) steps: &'static [Step],
}

/// A step of a fault.
pub(crate) enum Step {
    /// `ctl` with these arguments, once a watch is open that they apply to.
    Ctl(&'static [&'static str]),
    /// The cluster is written to.
    Write,
    /// Waits for a line of the proxy's log after the last one: its side and text match this expression as a whole.
    Logged(&'static str),
    /// The same, not sooner than so many milliseconds after the last one.
    LoggedAfter(u64, &'static str),
    /// Waits for another watch, which the apiserver answers with 200.
    Opened,
}

pub(crate) use Step::{Ctl, Logged, LoggedAfter, Opened, Write};

/// All that a proxy can inject, each with what its log has of it.
pub(crate) const FAULTS: &[Fault] = &[
    Fault {
        name: "410 as an event",
        paged: false,
        steps: &[
            Ctl(&["expire"]),
            Write,
            Logged(r"server ~ #\d+ ERROR 410 Expired"),
            Opened,
        ],
    },
    Fault {
        name: "410 as the status of a watch",
        paged: false,
        steps: &[
            Ctl(&["expire", "--status"]),
            Ctl(&["cut"]),
            Write,
            Logged(r"server ~ #\d+ 410"),
            Opened,
        ],
    },
    Fault {
        name: "an expired continue token",
        paged: true,
        steps: &[
            Ctl(&[
                "apply",
                "when: {page: 2}, do: {reply: {status: 410, reason: Expired}}",
            ]),
            Ctl(&["expire"]),
            Write,
            Logged(r"client > #\d+ c\d+ LIST .*[?&]continue=.*"),
            Logged(r"server ~ #\d+ 410"),
            Opened,
        ],
    },
    Fault {
        name: "a clean end",
        paged: false,
        steps: &[
            Ctl(&["cut", "--how", "eof"]),
            Write,
            Logged(r"server < #\d+ eof"),
            Opened,
        ],
    },
    Fault {
        name: "a cut line",
        paged: false,
        steps: &[
            Ctl(&[
                "apply",
                "when: {watch: next}, do: {truncate: {after_events: 0, percent: 50, then: fin}}",
            ]),
            Ctl(&["cut"]),
            Opened,
            Write,
            Logged(r"server ~ #\d+ \d+ of \d+ bytes of (ADDED|MODIFIED|DELETED) .*"),
            Logged(r"server ~ #\d+ fin"),
            Opened,
        ],
    },
    Fault {
        name: "a reset",
        paged: false,
        steps: &[
            Ctl(&["cut", "--how", "rst"]),
            Write,
            Logged(r"server ~ #\d+ rst"),
            Opened,
        ],
    },
    Fault {
        name: "GOAWAY",
        paged: false,
        steps: &[
            Ctl(&["apply", "do: goaway"]),
            Ctl(&["cut", "--how", "eof"]),
            Write,
            Logged(r"server ~ goaway NO_ERROR \(c\d+\)"),
            Logged(r"client > connects \(c\d+\)"),
            Opened,
        ],
    },
    Fault {
        name: "refused connections",
        paged: false,
        steps: &[
            Ctl(&["refuse", "3s"]),
            Ctl(&["apply", "do: goaway"]),
            Ctl(&["cut", "--how", "rst"]),
            Write,
            Logged(r"store  \. connections refused for 3000 ms \(now \d+\)"),
            LoggedAfter(3000, r"client > connects \(c\d+\)"),
            Opened,
        ],
    },
    Fault {
        name: "a rate limit",
        paged: false,
        steps: &[
            Ctl(&["fail", "429", "--kind", "watch", "--retry-after", "1"]),
            Ctl(&["cut"]),
            Write,
            Logged(r"server ~ #\d+ 429 Retry-After: 1"),
            Opened,
        ],
    },
    Fault {
        name: "watches that lag",
        paged: false,
        steps: &[
            Ctl(&["lag", "300ms"]),
            Write,
            Logged(r"store  \. every watch cache lags by 300 ms \(now \d+\)"),
            LoggedAfter(300, r"server [<~] #\d+ ADDED .*"),
            Ctl(&["thaw"]),
        ],
    },
    Fault {
        name: "watches that stand still",
        paged: false,
        steps: &[
            Ctl(&["freeze"]),
            Write,
            Logged(r"store  \. every watch cache frozen \(now \d+\)"),
            Ctl(&["thaw"]),
            Logged(r"store  \. every watch cache thawed \(now \d+\)"),
            Logged(r"server [<~] #\d+ ADDED .*"),
        ],
    },
    Fault {
        name: "a watch without bookmarks",
        paged: false,
        steps: &[
            Ctl(&["apply", "when: {watch: next}, do: no_bookmarks"]),
            Ctl(&["cut"]),
            Write,
            Logged(r"script \. rule \d+ on #\d+: no_bookmarks"),
            Logged(r"server [<~] #\d+ 200"),
        ],
    },
    Fault {
        name: "a bookmark",
        paged: false,
        steps: &[Ctl(&["bookmark"]), Logged(r"server ~ #\d+ BOOKMARK @\d+"), Write],
    },
    Fault {
        name: "an event that is repeated",
        paged: false,
        steps: &[
            Ctl(&["apply", "when: {watch: next}, do: {repeat_event: 2}"]),
            Ctl(&["cut"]),
            Opened,
            Write,
            Logged(r"server ~ #\d+ (ADDED|MODIFIED|DELETED) .*"),
        ],
    },
];

impl Fault {
    /// Returns whether a client that lists like this meets it.
    pub(crate) fn is_for(&self, lists: Lists) -> bool {
        !self.paged || lists == Lists::Paged
    }
}
