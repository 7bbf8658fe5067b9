//! How long to wait after a failure. Pure: chance comes from a seed, and nobody here reads a clock or sleeps.

use std::time::Duration;

/// The numbers of a [`DefaultBackoff`]; client-go's and kube's by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackoffConfig {
    /// The first delay, before jitter. Default 800 ms.
    pub initial: Duration,
    /// No delay is longer, before jitter. Default 30 s, so a delay never exceeds one minute.
    pub max: Duration,
    /// What a delay is multiplied by for the next. Default 2.
    pub factor: u32,
    /// A watcher that was healthy for so long starts over at `initial`. Default 120 s.
    pub reset_after: Duration,
    /// No `Retry-After` holds a watcher longer than this. Default 10 min: a typo or a hostile proxy must not park it
    /// for a day.
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

/// Exponential delays with full jitter: each is uniform in `[d, 2d)`, where `d` doubles from 800 ms to 30 s.
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
    /// A backoff at its beginning, with its own source of chance.
    pub fn new(config: BackoffConfig, seed: u64) -> Self {
        Self {
            next: config.initial,
            config,
            random: fastrand::Rng::with_seed(seed),
        }
    }

    /// The delay after one more failure; the one after it is longer.
    pub fn next_delay(&mut self) -> Duration {
        let base = self.next.min(self.config.max);
        self.next = base
            .saturating_mul(self.config.factor.max(1))
            .min(self.config.max);
        self.jittered(base)
    }

    /// A delay of the first size that does not make later ones longer: for what is not a failure but must not spin.
    pub fn first_delay(&mut self) -> Duration {
        self.jittered(self.config.initial)
    }

    /// Starts over at the first delay.
    pub fn reset(&mut self) {
        self.next = self.config.initial;
    }

    /// No failure since the start or the last reset.
    pub fn is_fresh(&self) -> bool {
        self.next == self.config.initial
    }

    /// What it was made from.
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
    fn the_seed_decides() {
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
