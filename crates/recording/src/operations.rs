//! Changes of store and watch caches as the trace describes them in words, and the actions that make them.
//!
//! The words are those of `What::Turned`. A file of records may have others: an action has numbers and known words of them alone.

use trace::record::Replica;

/// Words for the replicas.
const REPLICAS: [&str; 2] = [Replica::Primary.word(), Replica::Secondary.word()];

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

/// Returns the operation that a description is of; `None`: something that no action makes, or that has no effect.
pub(crate) fn of(how: &str) -> Option<Operation> {
    if how.starts_with("compacted up to") || how.starts_with("etcd compacted up to") {
        return Some(operation("compact", (false, true, false)));
    }
    if how == "watch caches restarted" {
        return Some(operation("clear_watch_cache", (true, true, false)));
    }
    if let Some(ms) = how.strip_prefix("connections refused for ").and_then(millis) {
        return Some(operation(&format!("{{refuse: {ms}ms}}"), (false, false, false)));
    }
    if let Some(jump) = how.strip_prefix("clock set ") {
        let (key, by) = jump.split_once(" by ")?;
        let key = ["forward", "back"].into_iter().find(|known| *known == key)?;
        let action = format!("{{jump_clock: {{{key}: {}ms}}}}", millis(by)?);
        return Some(operation(&action, (false, false, false)));
    }
    restart(how).or_else(|| cache(how))
}

fn restart(how: &str) -> Option<Operation> {
    let (before, after) = how.split_once("apiserver restarted")?;
    let mut keys = Vec::new();
    if let Some(ms) = between(after, ", down for ", " ms") {
        keys.push(format!("down: {ms}ms"));
    }
    if let Some(ms) = between(after, ", watch caches filled ", " ms later") {
        keys.push(format!("filling: {ms}ms"));
    }
    if !before.is_empty() {
        let replica = REPLICAS
            .into_iter()
            .find(|replica| *replica == before.trim_end())?;
        keys.push(format!("replica: {replica}"));
    }
    let action = match keys.is_empty() {
        true => "restart".to_owned(),
        false => format!("{{restart: {{{}}}}}", keys.join(", ")),
    };
    Some(operation(&action, (true, true, false)))
}

fn cache(how: &str) -> Option<Operation> {
    let rest = how
        .strip_prefix("every watch cache")
        .or_else(|| how.strip_prefix("watch cache of "))?;
    let replica = REPLICAS
        .into_iter()
        .find(|replica| rest.contains(&format!("of replica {replica}")));
    let with = |word: &str| match replica {
        Some(replica) => format!("{{{word}: {{replica: {replica}}}}}"),
        None => word.to_owned(),
    };
    if rest.ends_with(" cleared") {
        Some(operation(&with("clear_watch_cache"), (true, true, false)))
    } else if rest.ends_with(" frozen") {
        Some(operation(&with("freeze_watch_cache"), (false, false, true)))
    } else if rest.ends_with(" thawed") {
        Some(operation(&with("thaw_watch_cache"), (false, false, false)))
    } else {
        let (_, after) = rest.split_once(" lags by ")?;
        let ms = millis(after)?;
        let replica = replica
            .map(|replica| format!(", replica: {replica}"))
            .unwrap_or_default();
        let action = format!("{{lag_watch_cache: {{by: {ms}ms{replica}}}}}");
        Some(operation(&action, (false, false, true)))
    }
}

fn operation(action: &str, (ends_watches, expires, stales): (bool, bool, bool)) -> Operation {
    Operation {
        action: action.to_owned(),
        ends_watches,
        expires,
        stales,
    }
}

/// Reads `300 ms`.
fn millis(text: &str) -> Option<u64> {
    text.strip_suffix(" ms")?.parse().ok()
}

/// Returns the number between two texts.
fn between(text: &str, before: &str, after: &str) -> Option<u64> {
    let (_, rest) = text.split_once(before)?;
    let (number, _) = rest.split_once(after)?;
    number.parse().ok()
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
    #[case("watch cache of pods thawed", "thaw_watch_cache")]
    #[case("connections refused for 300 ms", "{refuse: 300ms}")]
    #[case("apiserver restarted", "restart")]
    #[case(
        "primary apiserver restarted, down for 3000 ms, watch caches filled 20 ms later",
        "{restart: {down: 3000ms, filling: 20ms, replica: primary}}"
    )]
    #[case("clock set back by 9 ms", "{jump_clock: {back: 9ms}}")]
    fn words_are_actions(#[case] how: &str, #[case] action: &str) {
        assert_eq!(of(how).expect("an operation").action, action);
    }

    #[rstest]
    #[case("no event sent: the request is refused")]
    #[case("write refused: the apiserver restarted")]
    #[case("x}}\n  - do: compact # apiserver restarted")]
    #[case("every watch cache lags by 1ms}}\n  - do: compact # ms")]
    #[case("no response of the upstream: connections refused for 9 ms")]
    #[case("clock set back by 9 hours")]
    fn other_words_are_none(#[case] how: &str) {
        assert_eq!(of(how), None);
    }
}
