//! Watch caches of the proxy: how far each lets events of the upstream pass. Without an action, at once.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::model::WatchCacheOp;

/// How a watch cache follows the upstream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::apiserver) enum Mode {
    /// At once.
    #[default]
    Live,
    /// Not since this time.
    Frozen(Duration),
    /// This much later.
    Lagging(Duration),
}

impl Mode {
    /// Returns when an event that came at `arrived` is delivered; `None`: not before the cache is changed.
    pub(super) fn due(self, arrived: Duration) -> Option<Duration> {
        match self {
            Self::Live => Some(Duration::ZERO),
            Self::Frozen(_) => None,
            Self::Lagging(by) => Some(arrived + by),
        }
    }

    /// Returns the time whose state the cache shows at `now`; `None`: the present.
    pub(super) fn as_of(self, now: Duration) -> Option<Duration> {
        match self {
            Self::Live => None,
            Self::Frozen(since) => Some(since),
            Self::Lagging(by) => Some(now.saturating_sub(by)),
        }
    }
}

/// Modes by resource.
#[derive(Debug, Default)]
pub(super) struct Caches {
    all: Mode,
    of: BTreeMap<(String, String), Mode>,
}

impl Caches {
    /// Returns the mode of a resource: group and plural.
    pub(super) fn mode(&self, resource: &(String, String)) -> Mode {
        self.of.get(resource).copied().unwrap_or(self.all)
    }

    /// Changes the cache of a resource; `None`: of every resource.
    pub(super) fn turn(&mut self, now: Duration, turn: WatchCacheOp, resource: Option<(&str, &str)>) {
        let mode = match turn {
            WatchCacheOp::Freeze => Mode::Frozen(now),
            WatchCacheOp::Lag(by) => Mode::Lagging(by),
            WatchCacheOp::Thaw | WatchCacheOp::Clear => Mode::Live,
        };
        match resource {
            Some((group, plural)) => {
                self.of.insert((group.to_owned(), plural.to_owned()), mode);
            }
            None => {
                self.of.clear();
                self.all = mode;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_resource_is_stale_and_the_others_are_not() {
        let mut caches = Caches::default();
        let (pods, nodes) = (
            (String::new(), "pods".to_owned()),
            (String::new(), "nodes".to_owned()),
        );
        let second = Duration::from_secs(1);
        caches.turn(second, WatchCacheOp::Freeze, Some(("", "pods")));
        assert_eq!(caches.mode(&pods).due(second), None);
        assert_eq!(caches.mode(&pods).as_of(second * 9), Some(second));
        assert_eq!(caches.mode(&nodes), Mode::Live);
        caches.turn(second, WatchCacheOp::Lag(second), None);
        assert_eq!(caches.mode(&pods).due(second), Some(second * 2));
        assert_eq!(caches.mode(&pods).as_of(second * 9), Some(second * 8));
        caches.turn(second, WatchCacheOp::Thaw, None);
        assert_eq!(caches.mode(&pods), Mode::Live);
    }
}
