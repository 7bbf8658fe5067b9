//! Actions that an upstream cannot do: an error when the rule that has one is added, with what to do instead.

use scenario::{Action, ReplyBody, Restart, SentObject, ShapeAction, StoreAction, StreamAction};

/// Why an action needs the model, and what to do instead.
type Undoable = (&'static str, &'static str);

/// Returns the first action that an upstream cannot do.
pub(super) fn undoable(actions: &[Action]) -> Option<Undoable> {
    actions.iter().find_map(|action| match action {
        Action::Store(action) => undoable_to_store(action),
        Action::Shape(ShapeAction::EditPage(_)) => Some((
            "a proxy sends a list on while it arrives, and cannot change it",
            "reply with a list of your own (`reply: {status: 200, json: …}`), or make a stale one: freeze_watch_cache",
        )),
        Action::Shape(ShapeAction::Reply(reply)) => match reply.body {
            ReplyBody::Unmodified => Some((
                "a proxy has no body of the upstream before it asks",
                "reply with a body of your own (`json` or `body`)",
            )),
            ReplyBody::Status(_) | ReplyBody::Json(_) | ReplyBody::Raw(_) => None,
        },
        Action::Stream(StreamAction::SendEvent {
            object: SentObject::Stored(_),
            ..
        }) => Some((
            "a proxy keeps no objects",
            "write the object into the rule, or repeat an event: repeat_event",
        )),
        Action::Stream(
            StreamAction::Send(_)
            | StreamAction::SendEvent { .. }
            | StreamAction::SendError(_)
            | StreamAction::SendBookmark { .. }
            | StreamAction::Goaway
            | StreamAction::End(_),
        )
        | Action::Shape(
            ShapeAction::Delay(_)
            | ShapeAction::Pace(_)
            | ShapeAction::Gzip
            | ShapeAction::NoAnswer(_)
            | ShapeAction::LoseAnswer(_),
        )
        | Action::Rule(_)
        | Action::Refuse(_) => None,
    })
}

fn undoable_to_store(action: &StoreAction) -> Option<Undoable> {
    match action {
        StoreAction::Apply(_) | StoreAction::Delete { .. } | StoreAction::Relabel { .. } => Some((
            "a proxy never writes to the upstream by itself",
            "write with kubectl, through the proxy or beside it",
        )),
        StoreAction::Compact => Some((
            "only the upstream's etcd can be compacted, and a proxy never changes it",
            "expire watches (`ctl expire`, `ctl expire --status`), and continue tokens: \
             `when: {page: 2}, do: {reply: {status: 410, reason: Expired}}`",
        )),
        StoreAction::Restore { .. } => Some((
            "a proxy cannot take the upstream back to an older revision",
            "replay the scenario on `fake-apiserver serve`, or make reads stale: freeze_watch_cache",
        )),
        StoreAction::JumpClock { .. } => Some((
            "the upstream's clock is not the proxy's",
            "use `fake-apiserver serve`",
        )),
        StoreAction::ClearWatchCache(_) => Some((
            "the watch caches of the upstream are its own",
            "end watches (`ctl cut`), and answer the next with 410 (`ctl expire --status`)",
        )),
        StoreAction::Restart(Restart { filling_ms: 1.., .. }) => Some((
            "the watch caches of the upstream are its own, and do not fill again",
            "restart without `filling`, and answer the next requests with 429 (`ctl fail 429`)",
        )),
        StoreAction::Restart(_)
        | StoreAction::FreezeWatchCache(_)
        | StoreAction::LagWatchCache { .. }
        | StoreAction::ThawWatchCache(_) => None,
    }
}
