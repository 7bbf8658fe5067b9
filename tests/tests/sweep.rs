//! The sweep finds and shrinks mistakes of clients, and reports no correct client.
//!
//! `cargo xtask sweep` runs more seeds.

use std::collections::BTreeSet;
use std::time::Duration;

use adapter_watcher::WatcherClient;
use conformance::client::Client;
use conformance::drive::sim::Link;
use rstest::rstest;
use sweep::coverage::Rare;
use sweep::play::Difference;
use sweep::result::{Mismatch, Sweep};
use sweep::run::{Plan, Shard, run};
use sweep::{Profile, links, parity, play};
use tests::reference::{Mistake, Reference};

/// Number of seeds per profile for our watcher.
const SEEDS: u64 = 200;

/// Number of short seeds that are run over sockets too: these take real time.
const SHORT_SEEDS: u64 = 12;

/// Number of seeds that are run over both links.
const LINK_SEEDS: u64 = 100;

static RIGHT: Reference = Reference { mistake: None };
static RELISTS_FROM_ZERO: Reference = Reference {
    mistake: Some(Mistake::RelistsFromZero),
};

fn plan<'a>(client: &'a dyn Client, profile: Profile, seeds: u64) -> Plan<'a> {
    Plan {
        client,
        name: client.name(),
        control: None,
        profile,
        link: Link::InProcess,
        first: 0,
        seeds,
        shard: Shard::WHOLE,
        jobs: std::thread::available_parallelism().map_or(1, usize::from),
        digest: false,
        shrink_plays_max: 0,
        shrunk_max: 0,
        folder: "scenarios/found",
    }
}

fn swept(plan: &Plan<'_>) -> Sweep {
    run(plan, &|| true, &|_| {})
}

/// Neither judge reports a correct client, whatever fails and whichever contents are false.
#[rstest]
#[case::watcher_honest(&WatcherClient, Profile::Honest, SEEDS)]
#[case::watcher_lies(&WatcherClient, Profile::Lies, SEEDS)]
fn a_right_client_is_never_flagged(
    #[case] client: &dyn Client,
    #[case] profile: Profile,
    #[case] seeds: u64,
) {
    let sweep = swept(&plan(client, profile, seeds));
    assert_eq!((sweep.played, sweep.flagged), (seeds, 0), "{:#?}", sweep.causes);
}

/// Seeds of little virtual time have the same verdict over sockets. `cargo xtask sweep live` compares more.
#[rstest]
#[case::honest(Profile::Honest, &WatcherClient)]
#[case::lies(Profile::Lies, &WatcherClient)]
#[case::mistake(Profile::Honest, &RELISTS_FROM_ZERO)]
fn verdicts_are_the_same_over_sockets(#[case] profile: Profile, #[case] client: &dyn Client) {
    let parity = parity::run(&short(profile, client, client), &|_| {});
    assert_eq!(
        (parity.compared, parity.differences),
        (SHORT_SEEDS, Vec::new()),
        "{:#?}",
        parity.flagged
    );
    let is_right = client.name() == WatcherClient.name();
    assert_eq!(parity.flagged.is_empty(), is_right, "{:#?}", parity.flagged);
}

/// A client that is wrong over sockets only is found, and so is one that is wrong in `sim` only.
#[rstest]
#[case(&RIGHT, &RELISTS_FROM_ZERO)]
#[case(&RELISTS_FROM_ZERO, &RIGHT)]
fn a_different_verdict_over_sockets_is_found(#[case] sim: &dyn Client, #[case] live: &dyn Client) {
    let parity = parity::run(&short(Profile::Honest, sim, live), &|_| {});
    let differs = |difference: &Difference| difference.one.is_some() != difference.other.is_some();
    assert!(
        !parity.differences.is_empty() && parity.differences.iter().all(differs),
        "{:#?}",
        parity.differences
    );
}

/// Verdicts do not depend on the HTTP libraries, and few traces do: `cargo xtask sweep links` compares more.
#[rstest]
#[case::honest(Profile::Honest, &WatcherClient)]
#[case::lies(Profile::Lies, &WatcherClient)]
#[case::mistake(Profile::Honest, &RELISTS_FROM_ZERO)]
fn verdicts_are_the_same_in_process(#[case] profile: Profile, #[case] client: &dyn Client) {
    let compared = links::run(&both(profile, client, client), &|_| {});
    assert_eq!(compared.differences, Vec::new());
    let is_right = client.name() == WatcherClient.name();
    assert_eq!(compared.flagged == 0, is_right, "{compared:#?}");
    assert!(
        compared.same_traces * 10 >= compared.compared * 9,
        "{compared:#?}"
    );
}

/// A client that is wrong in process only is found, and so is one that is wrong over pipes only.
#[rstest]
#[case(&RIGHT, &RELISTS_FROM_ZERO)]
#[case(&RELISTS_FROM_ZERO, &RIGHT)]
fn a_different_verdict_in_process_is_found(#[case] piped: &dyn Client, #[case] in_process: &dyn Client) {
    let compared = links::run(&both(Profile::Honest, piped, in_process), &|_| {});
    let differs = |difference: &Difference| difference.one.is_some() != difference.other.is_some();
    assert!(
        !compared.differences.is_empty() && compared.differences.iter().all(differs),
        "{compared:#?}"
    );
}

fn both<'a>(profile: Profile, client: &'a dyn Client, client_in_process: &'a dyn Client) -> links::Plan<'a> {
    links::Plan {
        client,
        client_in_process,
        profile,
        first: 0,
        seeds: LINK_SEEDS,
        jobs: std::thread::available_parallelism().map_or(1, usize::from),
    }
}

fn short<'a>(
    profile: Profile,
    client: &'a dyn Client,
    client_over_sockets: &'a dyn Client,
) -> parity::Plan<'a> {
    parity::Plan {
        client,
        client_over_sockets,
        profile,
        first: 0,
        seeds: SHORT_SEEDS,
        longest: Duration::from_secs(2),
        jobs: 8,
    }
}

/// Each of these mistakes is found within 60 seeds and shrunk to a few objects and steps that still fail for the same reason,
/// while the correct client passes them.
#[rstest]
#[case(Mistake::ResumesFromItem, Profile::Honest)]
#[case(Mistake::IgnoresDeleted, Profile::Honest)]
#[case(Mistake::RelistsFromZero, Profile::Honest)]
#[case(Mistake::ReadsPastError, Profile::Honest)]
#[case(Mistake::DropsDeletesOnRelist, Profile::Lies)]
fn a_mistake_is_found_and_shrunk(#[case] mistake: Mistake, #[case] profile: Profile) {
    let wrong = Reference {
        mistake: Some(mistake),
    };
    let sweep = swept(&Plan {
        control: Some(&RIGHT),
        shrink_plays_max: 250,
        shrunk_max: 1,
        ..plan(&wrong, profile, 60)
    });
    let group = sweep.causes.values().find(|group| group.file.is_some());
    let group = group.expect("a mistake fails some seed");
    let text = group.scenario.as_deref().unwrap_or_default();
    assert_eq!(group.control_fails, Some(false), "{text}");

    let path = std::path::Path::new("scenarios/found/shrunk.yaml");
    let scenario = fake_apiserver::scenario::parse("found/shrunk", path, text);
    let scenario = std::sync::Arc::new(scenario.unwrap_or_else(|_| panic!("{text}")));
    assert!(scenario.objects.len() + scenario.steps.len() <= 7, "{text}");
    let seed = text.split("--seed ").nth(1).and_then(|rest| rest.lines().next());
    let seed = seed.and_then(|seed| seed.trim().parse().ok()).unwrap_or(0);
    assert!(
        !play::play(Link::InProcess, &scenario, &wrong, seed)
            .found
            .is_empty(),
        "{text}"
    );
    assert!(
        play::play(Link::InProcess, &scenario, &RIGHT, seed)
            .found
            .is_empty(),
        "{text}"
    );
}

/// Equal seeds give equal bytes, on one thread and on several.
#[test]
fn equal_seeds_give_equal_results() {
    let wrong = Reference {
        mistake: Some(Mistake::RelistsFromZero),
    };
    let plan = Plan {
        digest: true,
        shrink_plays_max: 60,
        shrunk_max: 2,
        ..plan(&wrong, Profile::Honest, 30)
    };
    let texts =
        [1, 3].map(|jobs| serde_json::to_string(&swept(&Plan { jobs, ..plan })).expect("a result is JSON"));
    assert!(
        texts[0] == texts[1] && texts[0].contains("scenario: v1"),
        "{}",
        texts[0]
    );
}

/// Merged shards equal the whole, in any order; a single shard does not, and a duplicate is an error.
#[test]
fn shards_add_up_to_the_whole() {
    let wrong = Reference {
        mistake: Some(Mistake::RelistsFromZero),
    };
    let plan = Plan {
        digest: true,
        ..plan(&wrong, Profile::Honest, 61)
    };
    let shards: Vec<Sweep> = [2, 0, 1]
        .map(|index| {
            swept(&Plan {
                shard: Shard { index, of: 3 },
                ..plan
            })
        })
        .into();
    assert_eq!(Sweep::merge(shards.clone()), Ok(swept(&plan)));
    let part = Sweep::merge(shards[..2].to_vec()).map(|part| part.missing());
    assert_eq!(part, Ok(vec![1]));
    let twice = vec![shards[0].clone(), shards[0].clone()];
    assert_eq!(Sweep::merge(twice), Err(Mismatch::Twice(2)));
}

/// An interrupted sweep has run the first seeds of its share, and no others.
#[test]
fn a_limit_skips_the_last_seeds() {
    let stopped = run(&plan(&WatcherClient, Profile::Honest, 1_000), &|| false, &|_| {});
    assert_eq!((stopped.played, stopped.done), (0, BTreeSet::from([0])));
}

/// Counts match the generator: the coverage tables are filled.
#[test]
fn coverage_is_counted() {
    let sweep = swept(&plan(&WatcherClient, Profile::Lies, 200));
    let coverage = &sweep.coverage;
    for (table, row, column) in [
        (&coverage.inputs, "listing", "last page"),
        (&coverage.inputs, "watching", "change"),
        (&coverage.inputs, "initial watch", "end marker"),
        (&coverage.decisions, "LIST rv=unset limit", "last page"),
        (&coverage.decisions, "WATCH rv=exact", "opened"),
        (&coverage.faults, "apply", "watching"),
        (&coverage.triggers, "compact", "watch"),
    ] {
        assert!(
            sweep::coverage::times(table, row, column) > 0,
            "{row} {column} {table:#?}"
        );
    }
}

/// Each rare cell is reached by the seed that is named for it, and by no other cell's.
#[test]
fn rare_cells_are_reached_by_their_seeds() {
    let all = sweep::coverage::rare();
    let reaches = |cell: &Rare, seed: u64| {
        let name = (cell.table, cell.row, cell.column);
        sweep::coverage::find(name, cell.profile, &WatcherClient, seed..seed + 1).is_some()
    };
    for (cell, next) in all.iter().zip(all.iter().cycle().skip(1)) {
        assert!(reaches(cell, cell.seed), "{cell:?}");
        assert!(!reaches(cell, next.seed), "{cell:?} {next:?}");
    }
}
