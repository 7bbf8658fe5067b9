//! Changes of store and watch caches, and the actions that make them.

use scenario::raw::{
    ActionKey, At, Duration, First, JumpClock, Lag, OrNothing, ReplicaWord, Restart, Turned,
};
use trace::record::{CacheTurn, Replica, Turn};

use crate::steps::at;

/// What an action does to open watches and to old versions.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Operation {
    /// The action.
    pub(crate) action: ActionKey,
    /// Whether it ends watches by itself.
    pub(crate) ends_watches: bool,
    /// Whether it makes old versions 410.
    pub(crate) expires: bool,
    /// Whether it makes reads stale.
    pub(crate) stales: bool,
}

/// Returns the operation that makes a change; `None`: no action makes it, or it has no effect.
pub(crate) fn of(turn: &Turn) -> Option<Operation> {
    let made = match turn {
        Turn::Compacted { .. } => operation(ActionKey::Compact(().into()), (false, true, false)),
        Turn::CachesRestarted => operation(ActionKey::ClearWatchCache(turned(None)), (true, true, false)),
        Turn::Cache { now, replica, .. } => cache(*now, *replica),
        Turn::Refused { ms } => {
            let refuse = ActionKey::Refuse(Duration::ms(*ms).into());
            operation(refuse, (false, false, false))
        }
        Turn::Restarted {
            replica,
            down_ms,
            filling_ms,
        } => {
            let some = |ms: u64| Some(ms).filter(|ms| *ms > 0).map(|ms| Duration::ms(ms).into());
            let restart = Restart {
                down: some(*down_ms),
                replica: replica.map(|replica| word(replica).into()),
                filling: some(*filling_ms),
            };
            let restart = Some(restart).filter(|restart| *restart != Restart::default());
            let restart = ActionKey::Restart(OrNothing(restart).into());
            operation(restart, (true, true, false))
        }
        Turn::ClockSet { by_ms } => {
            let by = at(Duration::ms(by_ms.unsigned_abs()));
            let (forward, back) = if *by_ms < 0 { (None, by) } else { (by, None) };
            let jump = ActionKey::JumpClock(JumpClock { forward, back }.into());
            operation(jump, (false, false, false))
        }
        Turn::Other(_) => return None,
    };
    Some(made)
}

fn cache(now: CacheTurn, replica: Option<Replica>) -> Operation {
    let replica: Option<At<ReplicaWord>> = replica.map(|replica| word(replica).into());
    match now {
        CacheTurn::Cleared => operation(ActionKey::ClearWatchCache(turned(replica)), (true, true, false)),
        CacheTurn::Frozen => operation(ActionKey::FreezeWatchCache(turned(replica)), (false, false, true)),
        CacheTurn::Thawed => operation(ActionKey::ThawWatchCache(turned(replica)), (false, false, false)),
        CacheTurn::LagsBy(ms) => {
            let by = at(Duration::ms(ms));
            let lag = ActionKey::LagWatchCache(First(Lag { by, replica }).into());
            operation(lag, (false, false, true))
        }
    }
}

fn word(replica: Replica) -> ReplicaWord {
    match replica {
        Replica::Primary => ReplicaWord::Primary,
        Replica::Secondary => ReplicaWord::Secondary,
    }
}

fn turned(replica: Option<At<ReplicaWord>>) -> At<OrNothing<Turned>> {
    let turned = replica.map(|replica| Turned {
        replica: Some(replica),
    });
    OrNothing(turned).into()
}

fn operation(action: ActionKey, (ends_watches, expires, stales): (bool, bool, bool)) -> Operation {
    Operation {
        action,
        ends_watches,
        expires,
        stales,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use scenario::raw::ActionKeys;

    use super::*;

    #[rstest]
    #[case("compacted up to 1007", "compact")]
    #[case("watch cache of configmaps cleared", "clear_watch_cache")]
    #[case(
        "every watch cache of replica primary frozen",
        "{freeze_watch_cache: {replica: primary}}"
    )]
    #[case("watch cache of pods lags by 5000 ms", "{lag_watch_cache: 5s}")]
    #[case(
        "every watch cache of replica secondary lags by 5 ms",
        "{lag_watch_cache: {by: 5ms, replica: secondary}}"
    )]
    #[case("watch cache of pods thawed", "thaw_watch_cache")]
    #[case("connections refused for 300 ms", "{refuse: 300ms}")]
    #[case("apiserver restarted", "restart")]
    #[case(
        "primary apiserver restarted, down for 3000 ms, watch caches filled 20 ms later",
        "{restart: {down: 3s, filling: 20ms, replica: primary}}"
    )]
    #[case("clock set back by 9 ms", "{jump_clock: {back: 9ms}}")]
    fn changes_are_actions(#[case] how: &str, #[case] action: &str) {
        let turn = Turn::from(how.to_owned());
        let found = of(&turn).expect("an operation").action;
        assert_eq!(ActionKeys::from(found).to_string(), action);
    }

    #[test]
    fn another_text_is_no_action() {
        let text = "x}}\n  - do: compact # apiserver restarted".to_owned();
        assert_eq!(of(&Turn::from(text)), None);
    }
}
