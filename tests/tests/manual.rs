//! The defaults in docs/scenario-language.md and in the JSON Schema are those of the code. Independent of scenarios.

use std::time::Duration;

use fake_apiserver::scenario::{ClientSettings, ServerSettings, json_schema};
use fake_apiserver::server::Limits;
use tests::repository;

/// Formats a duration as in scenario files.
fn time(time: Duration) -> String {
    match (time.as_millis(), time.as_secs()) {
        (millis, seconds) if millis % 1000 != 0 || seconds == 0 => format!("{millis}ms"),
        (_, seconds) if seconds % 60 == 0 && seconds > 60 => format!("{}m", seconds / 60),
        (_, seconds) => format!("{seconds}s"),
    }
}

/// Returns the column `default` of the manual's table row for `key`.
fn stated(manual: &str, key: &str) -> String {
    let row = manual
        .lines()
        .find(|line| line.starts_with(&format!("| `{key}` |")))
        .unwrap_or_else(|| panic!("the manual has no row for {key}"));
    row.split(" | ").nth(2).unwrap_or_default().to_owned()
}

#[test]
fn the_manual_states_the_defaults() {
    let manual = std::fs::read_to_string(repository::root().join("docs/scenario-language.md")).unwrap();
    let (sim, live) = (Limits::sim(), Limits::live());
    let server = ServerSettings::default();
    let client = ClientSettings::default();
    let watcher = watcher::Config::default();
    let the_clients = |default: Duration| format!("the client's ({})", time(default));
    for (key, default) in [
        ("version", format!("1.{}", server.version.minor())),
        ("revision", server.revision.to_string()),
        ("watch_cache_capacity", server.watch_cache_capacity.to_string()),
        (
            "bookmark_interval",
            time(Duration::from_millis(server.bookmark_interval_ms)),
        ),
        (
            "max_concurrent_streams",
            server.max_concurrent_streams.to_string(),
        ),
        ("replicas", server.replicas.to_string()),
        ("page_size", client.page_size.unwrap().to_string()),
        ("bookmarks", client.bookmarks.to_string()),
        ("gzip", client.gzip.to_string()),
        (
            "consumer_delay",
            time(Duration::from_millis(client.consumer_delay_ms)),
        ),
        ("list_timeout", the_clients(watcher.list_timeout)),
        (
            "staleness_probe_after",
            the_clients(watcher.staleness_probe_after.unwrap()),
        ),
        (
            "within",
            format!("{} in sim, {} in live", time(sim.step), time(live.step)),
        ),
    ] {
        assert_eq!(stated(&manual, key), default, "{key}");
    }
    let converged = format!("| `within` | time | {} |", time(sim.convergence));
    assert!(manual.contains(&converged), "{converged}");
    let step = format!("Default {} in sim, {} in live.", time(sim.step), time(live.step));
    assert!(json_schema().contains(&step), "{step}");
}
