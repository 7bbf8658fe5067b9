//! Events a second, over the last complete seconds.

use std::time::Duration;

/// Seconds over which a rate is averaged.
const RATE_SECONDS: u64 = 4;

/// Events in each of the last seconds.
#[derive(Default)]
pub(super) struct Rate {
    /// Second of the newest count.
    second: u64,
    counts: [u32; RATE_SECONDS as usize + 1],
}

impl Rate {
    pub(super) fn count(&mut self, at: Duration) {
        self.advance(at.as_secs());
        self.counts[(self.second % self.counts.len() as u64) as usize] += 1;
    }

    fn advance(&mut self, second: u64) {
        let slots = self.counts.len() as u64;
        for passed in self.second + 1..=second.min(self.second + slots) {
            self.counts[(passed % slots) as usize] = 0;
        }
        self.second = self.second.max(second);
    }

    /// Sum over the last complete seconds.
    pub(super) fn sum(&self, now: Duration) -> u64 {
        let slots = self.counts.len() as u64;
        let second = now.as_secs();
        (second.saturating_sub(RATE_SECONDS)..second)
            .filter(|past| *past <= self.second && past + slots > self.second)
            .map(|past| u64::from(self.counts[(past % slots) as usize]))
            .sum()
    }
}

/// Returns the average of a sum over these seconds, rounded up.
pub(super) fn per_second(sum: u64) -> u64 {
    sum.div_ceil(RATE_SECONDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_that_of_the_last_seconds() {
        let mut rate = Rate::default();
        for second in [10, 10, 11, 11, 11, 11, 13, 13, 14] {
            rate.count(Duration::from_secs(second));
        }
        assert_eq!(rate.sum(Duration::from_secs(14)), 8);
        assert_eq!(rate.sum(Duration::from_secs(17)), 3);
        assert_eq!(rate.sum(Duration::from_secs(60)), 0);
    }
}
