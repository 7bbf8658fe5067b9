//! The scenarios of one watch or one list: kube-client passes them, except its known failures, and each fails a client
//! that makes the mistake it is about.

use std::collections::BTreeSet;

use adapter_kube_client::KubeClient;
use conformance::client::{Client, Start};
use conformance::coverage::{self, Compliance};
use conformance::suite::{self, Driver, Plan};
use fake_apiserver::report::{Report, ReportedObject};
use fake_apiserver::scenario::Contract;
use futures::stream::{self, BoxStream, StreamExt as _};
use tests::repository;

/// What a wrong client does differently from kube-client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mistake {
    /// Hides a 410 and watches from the newest version.
    StartsOver,
    /// Does not report the end of the watch.
    NeverEnds,
    /// Loses the second change.
    LosesAChange,
    /// Reports a bookmark as an object.
    TakesBookmarks,
    /// Reports the object of a line that was cut.
    TakesTornLines,
    /// Continues reading after an ERROR event.
    ReadsOn,
    /// Treats the first page as the whole list.
    ReadsOnePage,
    /// Reports a failed list as complete.
    CompletesFailedLists,
    /// Waits for the first object of an empty collection.
    WaitsForAnObject,
}

/// Each scenario, with a mistake that fails it and the requirement it breaks.
const CAUGHT: [(&str, Mistake, &str); 11] = [
    (
        "contract-watch/changes-come-in-order-up-to-the-end",
        Mistake::LosesAChange,
        "WATCH-03",
    ),
    (
        "contract-watch/changes-come-in-order-up-to-the-end",
        Mistake::NeverEnds,
        "WATCH-01",
    ),
    (
        "contract-watch/an-expired-version-is-shown-to-the-caller",
        Mistake::StartsOver,
        "GONE-08",
    ),
    (
        "contract-watch/a-refused-version-is-shown-to-the-caller",
        Mistake::StartsOver,
        "GONE-08",
    ),
    (
        "contract-watch/bookmarks-are-not-changes",
        Mistake::TakesBookmarks,
        "BOOKMARK-03",
    ),
    (
        "contract-watch/a-torn-event-is-not-delivered",
        Mistake::TakesTornLines,
        "CONN-01",
    ),
    (
        "contract-watch/what-follows-an-error-event-is-not-delivered",
        Mistake::ReadsOn,
        "GONE-07",
    ),
    (
        "contract-list/every-page-is-read-up-to-the-last",
        Mistake::ReadsOnePage,
        "PAGE-01",
    ),
    (
        "contract-list/an-expired-token-does-not-complete-the-list",
        Mistake::CompletesFailedLists,
        "LIST-01",
    ),
    (
        "contract-list/an-empty-collection-is-a-complete-list",
        Mistake::WaitsForAnObject,
        "LIST-09",
    ),
    (
        "contract-list/a-forbidden-list-is-shown-to-the-caller",
        Mistake::CompletesFailedLists,
        "AUTH-02",
    ),
];

/// kube-client with a mistake.
struct Wrong(Mistake);

impl Client for Wrong {
    fn name(&self) -> &'static str {
        "wrong"
    }

    fn version(&self) -> &'static str {
        "0"
    }

    fn contracts(&self) -> &'static [Contract] {
        KubeClient.contracts()
    }

    fn start(&self, kube: kube_client::Client, start: Start) -> BoxStream<'static, Report> {
        let right = KubeClient.start(kube.clone(), start.clone());
        match self.0 {
            Mistake::ReadsOn => right,
            Mistake::NeverEnds => right.chain(stream::pending()).boxed(),
            Mistake::StartsOver => {
                let mut newest = start;
                newest.settings.resource_version = None;
                let shown = right.take_while(|report| {
                    let is_gone = matches!(report, Report::Error { code: Some(410), .. });
                    std::future::ready(!is_gone)
                });
                shown.chain(KubeClient.start(kube, newest)).boxed()
            }
            Mistake::LosesAChange => {
                let numbered = right.enumerate();
                numbered
                    .filter_map(async |(number, report)| (number != 1).then_some(report))
                    .boxed()
            }
            Mistake::TakesBookmarks => {
                let taken = stream::iter([Report::Apply(object("", "1002"))]);
                taken.chain(right).boxed()
            }
            Mistake::TakesTornLines => right
                .flat_map(|report| {
                    let torn =
                        matches!(report, Report::Error { .. }).then(|| Report::Apply(object("c", "1003")));
                    stream::iter([report].into_iter().chain(torn))
                })
                .boxed(),
            Mistake::ReadsOnePage => {
                let page = right.take(3);
                page.chain(stream::iter([Report::InitDone])).boxed()
            }
            Mistake::CompletesFailedLists => right
                .map(|report| {
                    if matches!(report, Report::Error { .. }) {
                        Report::InitDone
                    } else {
                        report
                    }
                })
                .boxed(),
            Mistake::WaitsForAnObject => {
                let begun = right.take(1);
                begun.chain(stream::pending()).boxed()
            }
        }
    }
}

fn object(name: &str, version: &str) -> ReportedObject {
    ReportedObject {
        namespace: Some("default".to_owned()),
        name: name.to_owned(),
        uid: None,
        resource_version: Some(version.to_owned()),
        content: None,
    }
}

#[test]
fn each_is_failed_by_its_mistake() {
    let plan = Plan {
        driver: Driver::Sim,
        seed: 0,
        jobs: 1,
    };
    let nothing = repository::known_failures("nobody");
    for (id, mistake, requirement) in CAUGHT {
        let judged = suite::one(&repository::scenario(id), &Wrong(mistake), plan, &nothing);
        let verdict = &judged.verdict;
        assert!(!verdict.passed(), "{id} passes with {mistake:?}");
        assert!(verdict.breaks(requirement), "{id}: {verdict:?}");
        let covered = coverage::of_caching_clients(std::slice::from_ref(&judged));
        let charged = covered
            .iter()
            .any(|one| matches!(one.compliance, Compliance::Broken(_)));
        assert!(!charged, "{id}: a caching client is charged with it");
    }
}

#[test]
fn none_is_without_a_mistake() {
    let all = repository::all_contracts();
    let contracts: BTreeSet<&str> = all
        .iter()
        .filter(|scenario| scenario.client.contract != Contract::Informer)
        .map(|scenario| scenario.id.as_str())
        .collect();
    let caught: BTreeSet<&str> = CAUGHT.iter().map(|(id, ..)| *id).collect();
    assert_eq!(contracts, caught);
    for id in contracts {
        assert!(id.starts_with("contract-"), "{id} is in a group of informers");
    }
}
