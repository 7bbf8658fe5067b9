//! The stories by name: the claim of each, and how to run it for both libraries.

use conformance::client::Client;

use super::{one_client, tasks};

/// A claim about a watch library that no trace of requests can decide.
pub(super) struct Story {
    /// Name in the list of defects.
    pub(super) name: &'static str,
    /// Behaviour of a correct library.
    pub(super) claim: &'static str,
    pub(super) told: Told,
}

/// How to run a story. The error describes the failure.
pub(super) enum Told {
    /// For any client.
    OfClients(fn(&dyn Client) -> Result<(), String>),
    /// For each library separately.
    OfEach {
        kube_runtime: fn() -> Result<(), String>,
        ours: fn() -> Result<(), String>,
    },
}

pub(super) static STORIES: [Story; 9] = [
    Story {
        name: "an error names its object",
        claim: "an object that cannot be decoded is named by the error that tells of it",
        told: Told::OfClients(one_client::an_error_names_its_object),
    },
    Story {
        name: "a cut is a cut",
        claim: "a connection that is cut is told alike, whether the cut falls into a character or between two",
        told: Told::OfClients(one_client::a_cut_is_a_cut),
    },
    Story {
        name: "a day of Retry-After",
        claim: "with kube's own retries switched on, a server that asks for a day does not silence a watcher for one",
        told: Told::OfClients(one_client::a_day_of_retry_after),
    },
    Story {
        name: "no object is logged",
        claim: "the content of an object is in no log line, at any level, when a list cannot be decoded",
        told: Told::OfClients(one_client::no_object_is_logged),
    },
    Story {
        name: "one name in two namespaces",
        claim: "following one object in all namespaces, a program is told that two have its name, and not that the one it follows is gone",
        told: Told::OfClients(one_client::one_name_in_two_namespaces),
    },
    Story {
        name: "a failing neighbour",
        claim: "in a controller, a watch that fails does not hold back the one that works",
        told: Told::OfEach {
            kube_runtime: one_client::a_failing_neighbour_of_kube_runtime,
            ours: one_client::a_failing_neighbour_of_ours,
        },
    },
    Story {
        name: "three that wait",
        claim: "every task that waits for a store to be ready is woken when it is",
        told: Told::OfEach {
            kube_runtime: tasks::theirs::three_that_wait,
            ours: tasks::ours::three_that_wait,
        },
    },
    Story {
        name: "a short life",
        claim: "a subscriber that comes late finds an object gone, and hears of the next one all the same",
        told: Told::OfEach {
            kube_runtime: tasks::theirs::a_short_life,
            ours: tasks::ours::a_short_life,
        },
    },
    Story {
        name: "a death in a gap",
        claim: "who asks for deletes is told of the one that a relist shows",
        told: Told::OfEach {
            kube_runtime: tasks::theirs::a_death_in_a_gap,
            ours: tasks::ours::a_death_in_a_gap,
        },
    },
];
