//! Delays between retries. Pure: jitter comes from a seed, and nothing here reads a clock or sleeps.

use std::time::Duration;

/// Parameters of a [`DefaultBackoff`]. The defaults are those of client-go and kube.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackoffConfig {
    /// First delay, before jitter. Default 800 ms.
    pub initial: Duration,
    /// Maximum delay, before jitter. Default 30 s, so with jitter a delay never exceeds one minute.
    pub max: Duration,
    /// Factor from one delay to the next. Default 2.
    pub factor: u32,
    /// How long a watcher must be healthy before the delay returns to `initial`. Default 120 s.
    pub reset_after: Duration,
    /// Cap for `Retry-After`. Default 10 min: a typo or a hostile proxy must not stop a watcher for a day.
    pub retry_after_max: Duration,
}

impl Default for BackoffConfig {
    fn default() -> Self {
        Self {
            initial: Duration::from_millis(800),
            max: Duration::from_secs(30),
            factor: 2,
            reset_after: Duration::from_secs(120),
            retry_after_max: Duration::from_secs(600),
        }
    }
}

/// Exponential backoff with full jitter: each delay is uniform in `[d, 2d)`, where `d` doubles from 800 ms to 30 s.
///
/// The same seed gives the same delays. Source: client-go `reflector.go` backoff constants.
///
/// ```
/// use std::time::Duration;
/// use watcher::{BackoffConfig, DefaultBackoff};
///
/// let mut backoff = DefaultBackoff::new(BackoffConfig::default(), 7);
/// let first = backoff.next_delay();
/// assert!(first >= Duration::from_millis(800) && first < Duration::from_millis(1600));
/// ```
#[derive(Debug, Clone)]
pub struct DefaultBackoff {
    config: BackoffConfig,
    next: Duration,
    random: fastrand::Rng,
}

impl DefaultBackoff {
    /// Creates a backoff at its first delay, with jitter drawn from `seed`.
    pub fn new(config: BackoffConfig, seed: u64) -> Self {
        Self {
            next: config.initial,
            config,
            random: fastrand::Rng::with_seed(seed),
        }
    }

    /// Returns the delay after one more failure, and increases the next one.
    pub fn next_delay(&mut self) -> Duration {
        let base = self.next.min(self.config.max);
        self.next = base
            .saturating_mul(self.config.factor.max(1))
            .min(self.config.max);
        self.jittered(base)
    }

    /// Returns a delay of the initial size without increasing later ones: for ends that are not failures but must not
    /// cause a busy loop.
    pub fn first_delay(&mut self) -> Duration {
        self.jittered(self.config.initial)
    }

    /// Resets to the first delay.
    pub fn reset(&mut self) {
        self.next = self.config.initial;
    }

    /// Returns true if there was no failure since the start or the last reset.
    pub fn is_fresh(&self) -> bool {
        self.next == self.config.initial
    }

    /// Returns the parameters.
    pub fn config(&self) -> &BackoffConfig {
        &self.config
    }

    fn jittered(&mut self, base: Duration) -> Duration {
        base + base.mul_f64(self.random.f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_cap_and_stay_below_twice_of_it() {
        let mut backoff = DefaultBackoff::new(BackoffConfig::default(), 1);
        for base_ms in [800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000] {
            let delay = backoff.next_delay();
            let base = Duration::from_millis(base_ms);
            assert!(
                delay >= base && delay < base * 2,
                "{delay:?} is not in [{base:?}, 2×)"
            );
        }
        assert!(!backoff.is_fresh());
        backoff.reset();
        assert!(backoff.is_fresh() && backoff.next_delay() < Duration::from_millis(1600));
    }

    #[test]
    fn equal_seeds_give_equal_delays() {
        let delays = |seed| {
            let mut backoff = DefaultBackoff::new(BackoffConfig::default(), seed);
            [backoff.next_delay(), backoff.next_delay(), backoff.first_delay()]
        };
        assert_eq!(delays(3), delays(3));
        assert_ne!(delays(3), delays(4));
    }

    #[test]
    fn a_first_delay_does_not_escalate() {
        let mut backoff = DefaultBackoff::new(BackoffConfig::default(), 1);
        for _ in 0..20 {
            assert!(backoff.first_delay() < Duration::from_millis(1600));
        }
        assert!(backoff.is_fresh());
    }
}
