//! Changes of store and watch caches, and the actions that make them.

use trace::record::{CacheTurn, Replica, Turn};

/// What an action does to open watches and to old versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Operation {
    /// The action, as in a scenario file.
    pub(crate) action: String,
    /// Whether it ends watches by itself.
    pub(crate) ends_watches: bool,
    /// Whether it makes old versions 410.
    pub(crate) expires: bool,
    /// Whether it makes reads stale.
    pub(crate) stales: bool,
}

/// Returns the operation that makes a change; `None`: no action makes it, or it has no effect.
pub(crate) fn of(turn: &Turn) -> Option<Operation> {
    let keys = |keys: &[String]| keys.join(", ");
    let of_replica =
        |replica: &Option<Replica>| replica.map(|replica| format!("replica: {}", replica.word()));
    let made = match turn {
        Turn::Compacted { .. } => operation("compact", (false, true, false)),
        Turn::CachesRestarted => operation("clear_watch_cache", (true, true, false)),
        Turn::Cache { now, replica, .. } => {
            let at = of_replica(replica);
            let with = |word: &str| match &at {
                Some(at) => format!("{{{word}: {{{at}}}}}"),
                None => word.to_owned(),
            };
            match now {
                CacheTurn::Cleared => operation(&with("clear_watch_cache"), (true, true, false)),
                CacheTurn::Frozen => operation(&with("freeze_watch_cache"), (false, false, true)),
                CacheTurn::Thawed => operation(&with("thaw_watch_cache"), (false, false, false)),
                CacheTurn::LagsBy(ms) => {
                    let by: Vec<String> = [format!("by: {ms}ms")].into_iter().chain(at).collect();
                    let action = format!("{{lag_watch_cache: {{{}}}}}", keys(&by));
                    operation(&action, (false, false, true))
                }
            }
        }
        Turn::Refused { ms } => operation(&format!("{{refuse: {ms}ms}}"), (false, false, false)),
        Turn::Restarted {
            replica,
            down_ms,
            filling_ms,
        } => {
            let some = |key: &str, ms: &u64| (*ms > 0).then(|| format!("{key}: {ms}ms"));
            let after = [
                some("down", down_ms),
                some("filling", filling_ms),
                of_replica(replica),
            ];
            let after: Vec<String> = after.into_iter().flatten().collect();
            let action = match after.as_slice() {
                [] => "restart".to_owned(),
                after => format!("{{restart: {{{}}}}}", keys(after)),
            };
            operation(&action, (true, true, false))
        }
        Turn::ClockSet { by_ms } => {
            let way = if *by_ms < 0 { "back" } else { "forward" };
            let action = format!("{{jump_clock: {{{way}: {}ms}}}}", by_ms.unsigned_abs());
            operation(&action, (false, false, false))
        }
        Turn::Other(_) => return None,
    };
    Some(made)
}

fn operation(action: &str, (ends_watches, expires, stales): (bool, bool, bool)) -> Operation {
    Operation {
        action: action.to_owned(),
        ends_watches,
        expires,
        stales,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("compacted up to 1007", "compact")]
    #[case("watch cache of configmaps cleared", "clear_watch_cache")]
    #[case(
        "every watch cache of replica primary frozen",
        "{freeze_watch_cache: {replica: primary}}"
    )]
    #[case("watch cache of pods lags by 5000 ms", "{lag_watch_cache: {by: 5000ms}}")]
    #[case(
        "every watch cache of replica secondary lags by 5 ms",
        "{lag_watch_cache: {by: 5ms, replica: secondary}}"
    )]
    #[case("watch cache of pods thawed", "thaw_watch_cache")]
    #[case("connections refused for 300 ms", "{refuse: 300ms}")]
    #[case("apiserver restarted", "restart")]
    #[case(
        "primary apiserver restarted, down for 3000 ms, watch caches filled 20 ms later",
        "{restart: {down: 3000ms, filling: 20ms, replica: primary}}"
    )]
    #[case("clock set back by 9 ms", "{jump_clock: {back: 9ms}}")]
    fn changes_are_actions(#[case] how: &str, #[case] action: &str) {
        let turn = Turn::from(how.to_owned());
        assert_eq!(of(&turn).expect("an operation").action, action);
    }

    #[test]
    fn another_text_is_no_action() {
        let text = "x}}\n  - do: compact # apiserver restarted".to_owned();
        assert_eq!(of(&Turn::from(text)), None);
    }
}
