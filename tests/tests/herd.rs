//! RETRY-02, which no single run can show: watchers that lose their server together do not reconnect together.

use std::time::Duration;

use adapter_watcher::WatcherClient;
use conformance::client::Client;
use conformance::drive;
use fake_apiserver::record::{Verb, What};
use tests::reference::Reference;
use tests::{parallel, repository};

const WATCHERS: u64 = 50;
/// The request examined: late enough for delays to have grown.
const NTH: usize = 3;
/// Requests within this time count as simultaneous.
const AT_ONCE: Duration = Duration::from_millis(100);

#[test]
fn our_watchers_spread() {
    assert_eq!(herd(&WatcherClient), None);
}

/// The reference client has no jitter: if it were not detected, the test would prove nothing.
#[test]
fn watchers_without_jitter_are_detected() {
    assert!(herd(&Reference { mistake: None }).is_some());
}

/// Returns the failure, if any, of many clients with different seeds, judged by the times of their n-th LIST to a
/// server that is down.
fn herd(client: &dyn Client) -> Option<String> {
    let scenario = repository::scenario("retry/failing-lists-are-retried-ever-more-slowly");
    let seeds: Vec<u64> = (0..WATCHERS).collect();
    let mut times = parallel::map(&seeds, |seed| {
        let run = drive::sim(&scenario, client, *seed);
        let mut lists = run.records.iter().filter(|record| {
            let What::Request { verb, .. } = &record.what else {
                return false;
            };
            *verb == Verb::List
        });
        lists.nth(NTH).expect("it goes on asking").at
    });
    times.sort();
    let mean = times.iter().sum::<Duration>() / times.len() as u32;
    let spread = *times.last()? - *times.first()?;
    let most_at_once = times
        .iter()
        .map(|first| {
            times
                .iter()
                .filter(|time| *time >= first && **time - *first < AT_ONCE)
                .count()
        })
        .max()?;
    if spread < mean.mul_f64(0.3) {
        return Some(format!("all within {spread:?} around {mean:?}"));
    }
    (most_at_once * 2 > times.len()).then(|| format!("{most_at_once} within {AT_ONCE:?}"))
}
