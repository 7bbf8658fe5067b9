//! Names of triggers and actions, by which faults are counted and the rarer one is drawn.

use fake_apiserver::fault::Ending;
use fake_apiserver::scenario::raw::{ActionKey, ActionKeys, EditPage, Nth, Reply, StepKeys, When};

/// The trigger of a step, without arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// None.
    Now,
    /// A time.
    After,
    /// The first LIST. Only for the first step of a client that lists.
    FirstList,
    /// The next WATCH.
    NextWatch,
    /// The next request.
    NextRequest,
    /// The next LIST: a client with working watches sends none.
    NextList,
    /// The second page of the latest LIST.
    SecondPage,
    /// An event reported by the client.
    Emitted,
    /// The client has recovered.
    Synced,
    /// A time without requests and events.
    Quiet,
}

impl Trigger {
    /// Returns the trigger of a step.
    pub fn of(step: &StepKeys) -> Self {
        step.when
            .as_ref()
            .map_or(Self::Now, |when| Self::of_when(&when.value.0))
    }

    /// Returns the trigger of these keys.
    pub fn of_when(when: &When) -> Self {
        let is_first = |nth: &Nth| nth.0 == "1";
        match &when.list {
            Some(nth) if is_first(&nth.value) => Self::FirstList,
            Some(_) => Self::NextList,
            None if when.watch.is_some() => Self::NextWatch,
            None if when.request.is_some() => Self::NextRequest,
            None if when.page.is_some() => Self::SecondPage,
            None if when.emitted.is_some() => Self::Emitted,
            None if when.synced.is_some() => Self::Synced,
            None if when.quiet.is_some() => Self::Quiet,
            None => Self::After,
        }
    }

    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Now => "now",
            Self::After => "after",
            Self::FirstList => "first list",
            Self::NextWatch => "watch",
            Self::NextRequest => "request",
            Self::NextList => "list",
            Self::SecondPage => "page",
            Self::Emitted => "emitted",
            Self::Synced => "synced",
            Self::Quiet => "quiet",
        }
    }

    /// Returns true if the trigger depends on the client's progress.
    pub fn waits(self) -> bool {
        !matches!(self, Self::Now | Self::After)
    }

    /// Returns true if a request meets it.
    pub fn is_request(self) -> bool {
        self.is_list() || matches!(self, Self::NextWatch | Self::NextRequest)
    }

    /// Returns true if a LIST meets it.
    pub fn is_list(self) -> bool {
        matches!(self, Self::FirstList | Self::NextList | Self::SecondPage)
    }

    /// Returns true if the actions of such a step act on a watch.
    pub fn is_watch(self) -> bool {
        !self.is_list() && self != Self::NextRequest
    }

    /// Returns true if every correct client meets it.
    pub fn is_certain(self) -> bool {
        !matches!(
            self,
            Self::NextList | Self::SecondPage | Self::Emitted | Self::Quiet
        )
    }
}

/// All names of actions.
pub const NAMES: [&str; 56] = [
    "apply",
    "apply many",
    "delete",
    "relabel",
    "compact",
    "clear_watch_cache",
    "freeze_watch_cache",
    "lag_watch_cache",
    "thaw_watch_cache",
    "one replica's watch cache",
    "restore",
    "restart",
    "restart of one replica",
    "jump_clock",
    "reply 4xx",
    "reply 410",
    "reply 429",
    "reply 5xx",
    "reply with Retry-After",
    "error 410",
    "other error",
    "bookmark",
    "no_bookmarks",
    "end_marker",
    "repeat_event",
    "delay",
    "drip",
    "split_utf8",
    "coalesce",
    "gzip",
    "truncate eof",
    "truncate fin",
    "truncate rst",
    "truncate stall",
    "truncate no_close_notify",
    "truncate rst_stream",
    "truncate goaway",
    "end eof",
    "end fin",
    "end rst",
    "end stall",
    "end no_close_notify",
    "end rst_stream",
    "end goaway",
    "no_answer",
    "goaway",
    "refuse",
    "edit_page",
    "lie: drop_events",
    "lie: reorder_events",
    "lie: unreadable line",
    "lie: unreadable answer",
    "lie: event",
    "lie: event with a wrong version",
    "lie: bookmark",
    "lie: page",
];

/// Returns the name of an action, one of [`NAMES`] if it is drawn.
pub fn name(action: &ActionKeys) -> &'static str {
    let Some(key) = action.key() else { return "nothing" };
    if let Some(lie) = lie(key) {
        return lie;
    }
    if key.replica().is_some() {
        return match key.word() {
            "restart" => "restart of one replica",
            _ => "one replica's watch cache",
        };
    }
    if let ActionKey::Apply(objects) = key {
        let is_repeated = objects
            .value
            .0
            .iter()
            .any(|object| object.value.short().is_some_and(|object| object.repeat.is_some()));
        return if is_repeated { "apply many" } else { "apply" };
    }
    if let ActionKey::Reply(reply) = key {
        return reply_name(&reply.value);
    }
    if let ActionKey::Error(status) = key {
        let code = status.value.code.as_ref().map(|code| code.value);
        return if code == Some(410) {
            "error 410"
        } else {
            "other error"
        };
    }
    if let "truncate" | "end" = key.word()
        && let Some(ending) = key.ending()
    {
        return with_ending(key.word(), ending);
    }
    key.word()
}

/// Returns the name of false or unreadable contents; `None`: the action has none.
pub fn lie(key: &ActionKey) -> Option<&'static str> {
    if let ActionKey::Event(event) = key {
        return Some(match event.value.rv {
            None => "lie: event",
            Some(_) => "lie: event with a wrong version",
        });
    }
    if let ActionKey::Bookmark(bookmark) = key {
        let of = bookmark.value.0.as_ref();
        return of
            .is_some_and(|bookmark| bookmark.rv.is_some())
            .then_some("lie: bookmark");
    }
    if let ActionKey::EditPage(edit) = key {
        // Another number of remaining items, or another token, is as good.
        let harmless = EditPage {
            remaining: edit.value.remaining.clone(),
            continue_token: edit.value.continue_token.clone(),
            ..EditPage::default()
        };
        return (edit.value != harmless).then_some("lie: page");
    }
    if let ActionKey::Reply(reply) = key {
        let is_success = reply
            .value
            .status
            .as_ref()
            .is_some_and(|status| status.value == 200);
        return (is_success || reply.value.unmodified.is_some()).then_some("lie: unreadable answer");
    }
    match key.word() {
        "drop_events" => Some("lie: drop_events"),
        "reorder_events" => Some("lie: reorder_events"),
        "send" => Some("lie: unreadable line"),
        _ => None,
    }
}

fn reply_name(reply: &Reply) -> &'static str {
    let status = reply.status.as_ref().map_or(0, |status| status.value);
    match status {
        _ if reply.retry_after.is_some() => "reply with Retry-After",
        410 => "reply 410",
        429 => "reply 429",
        500.. => "reply 5xx",
        ..=499 => "reply 4xx",
    }
}

/// Returns the name of an action that ends a response like this.
fn with_ending(action: &'static str, how: Ending) -> &'static str {
    let how = how.word();
    // Without the code of a reset or GOAWAY.
    let word = how.split(' ').next();
    let mut names = NAMES.into_iter();
    let found = names.find(|name| {
        let (of, ending) = name.split_once(' ').unwrap_or_default();
        of == action && Some(ending) == word
    });
    found.unwrap_or(action)
}

/// Returns true if an action is on the store or its watch caches, and not on a response.
pub fn is_write(key: &ActionKey) -> bool {
    key.section() == "store"
}

/// Returns true if a step with this action must be met only once, because it binds a name or changes which objects
/// exist.
pub fn happens_once(action: &ActionKeys) -> bool {
    let word = action.key().map(ActionKey::word);
    action.name.is_some() || matches!(word, Some("delete" | "relabel" | "restore"))
}

/// Returns true if the step depends on the client's progress.
pub fn waits(step: &StepKeys) -> bool {
    // Actions on a response wait for an open watch, unless a request meets the step.
    Trigger::of(step).waits() || !step.items().filter_map(ActionKeys::key).all(is_write)
}
