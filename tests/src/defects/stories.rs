//! The stories by name: the claim of each, and how to run it for both libraries.

use conformance::client::Client;

use super::{one_client, tasks};

/// A claim about a watch library that no trace of requests can decide.
pub(super) struct Story {
    /// Name in the list of defects.
    pub(super) name: &'static str,
    /// Behaviour of a correct library.
    pub(super) claim: &'static str,
    pub(super) check: Check,
}

/// How to run a story. The error describes the failure.
pub(super) enum Check {
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
        claim: "the error for an undecodable object names the object",
        check: Check::OfClients(one_client::an_error_names_its_object),
    },
    Story {
        name: "a cut is a cut",
        claim: "a cut connection is reported the same way inside a character and between two",
        check: Check::OfClients(one_client::a_cut_is_a_cut),
    },
    Story {
        name: "a day of Retry-After",
        claim: "with kube's own retries on, a Retry-After of one day does not stop the watcher for a day",
        check: Check::OfClients(one_client::a_day_of_retry_after),
    },
    Story {
        name: "no object is logged",
        claim: "no log line at any level has an object's content when a list cannot be decoded",
        check: Check::OfClients(one_client::no_object_is_logged),
    },
    Story {
        name: "one name in two namespaces",
        claim: "following one name in all namespaces: a second object of that name is an error, not a deletion of the first",
        check: Check::OfClients(one_client::one_name_in_two_namespaces),
    },
    Story {
        name: "a failing neighbour",
        claim: "in a controller, a failing watch does not delay a working one",
        check: Check::OfEach {
            kube_runtime: one_client::a_failing_neighbour_of_kube_runtime,
            ours: one_client::a_failing_neighbour_of_ours,
        },
    },
    Story {
        name: "three that wait",
        claim: "every task that waits for a store is woken when the store is ready",
        check: Check::OfEach {
            kube_runtime: tasks::theirs::three_that_wait,
            ours: tasks::ours::three_that_wait,
        },
    },
    Story {
        name: "a short life",
        claim: "a late subscriber whose object is gone still receives the next one",
        check: Check::OfEach {
            kube_runtime: tasks::theirs::a_short_life,
            ours: tasks::ours::a_short_life,
        },
    },
    Story {
        name: "a death in a gap",
        claim: "a subscriber to deletes receives the deletion that a relist shows",
        check: Check::OfEach {
            kube_runtime: tasks::theirs::a_death_in_a_gap,
            ours: tasks::ours::a_death_in_a_gap,
        },
    },
];
