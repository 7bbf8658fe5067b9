//! Checks of `check-adapter`: one for each contract and capability that an adapter declares. A failed check describes the line
//! that is missing or wrong.
//!
//! They judge the adapter; scenarios judge the client.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fake_apiserver::record::{Record, Verb, What};
use fake_apiserver::report::Report;
use fake_apiserver::scenario::{self, ServerSettings, SharedScenario};

use super::attempt::{self, Attempt, Plan, Test, read_hello, run_as, start_with_idle_server, stop};
use super::child::{StartError, with_last_line};
use super::fit;
use super::message::{Capability, Command, Contract, Hello, Options, Recovers, Start};
use super::outcome::Outcome;
use super::session::Session;

/// A check of something that an adapter declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// An unknown contract and an unknown command are answered with `unsupported`.
    Unknown,
    /// Events of list and watch, and `stop`.
    Follow,
    /// A relist is visible.
    Relist,
    /// `pause` and `resume` are obeyed.
    Pause,
    /// An option reaches the library.
    Option(Capability),
    /// Events of one watch.
    Watch,
    /// Events of one list.
    List,
}

/// Capabilities whose option is visible in a request: the `client:` settings of a scenario, and the expected part of a request.
const VISIBLE: [(Capability, &str, Visible); 8] = [
    (
        Capability::Selectors,
        "labels: check=adapter",
        Visible::Query("labelSelector", "check=adapter"),
    ),
    (
        Capability::FieldSelectors,
        "fields: metadata.name=a",
        Visible::Query("fieldSelector", "metadata.name=a"),
    ),
    (Capability::PageSize, "page_size: 2", Visible::Query("limit", "2")),
    (
        Capability::ResourceVersion,
        "list_semantic: any",
        Visible::Query("resourceVersion", "0"),
    ),
    (
        Capability::StreamingList,
        "initial_list: streaming_list",
        Visible::Query("sendInitialEvents", "true"),
    ),
    (
        Capability::MetadataOnly,
        "mode: metadata",
        Visible::Accept("PartialObjectMetadata"),
    ),
    (
        Capability::Timeout,
        "timeout: 77s",
        Visible::Query("timeoutSeconds", "77"),
    ),
    (
        Capability::Bookmarks,
        "bookmarks: true",
        Visible::Query("allowWatchBookmarks", "true"),
    ),
];

/// Part of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Visible {
    Query(&'static str, &'static str),
    Accept(&'static str),
}

impl Check {
    /// Returns the checks for what an adapter declares.
    pub fn all(hello: &Hello) -> Vec<Self> {
        let mut all = vec![Self::Unknown];
        if !Self::covers(hello) {
            return all;
        }
        let has = |capability: Capability| hello.caps.contains(&capability);
        if hello.contracts.contains(&Contract::Informer) {
            all.push(Self::Follow);
            all.extend(has(Capability::InitEvents).then_some(Self::Relist));
            all.extend(has(Capability::Pause).then_some(Self::Pause));
            let shown = VISIBLE.iter().map(|(capability, ..)| *capability);
            all.extend(shown.filter(|capability| has(*capability)).map(Self::Option));
        }
        all.extend(hello.contracts.contains(&Contract::Watch).then_some(Self::Watch));
        all.extend(hello.contracts.contains(&Contract::List).then_some(Self::List));
        all
    }

    /// Returns true if the adapter supports `configmaps`, the resource of all checks.
    pub fn covers(hello: &Hello) -> bool {
        hello
            .resources
            .as_ref()
            .is_none_or(|resources| resources.iter().any(|one| one == "configmaps"))
    }

    /// Returns the title in the output of `check-adapter`.
    pub fn title(self) -> String {
        match self {
            Self::Unknown => "unknown contract and command are answered with `unsupported`".to_owned(),
            Self::Follow => "contract `informer`: events of list, watch and stop".to_owned(),
            Self::Relist => "capability `init-events`: a relist is visible".to_owned(),
            Self::Pause => "capability `pause`: nothing is printed in a pause".to_owned(),
            Self::Option(capability) => format!(
                "capability `{}`: the option arrives at the server",
                capability.word()
            ),
            Self::Watch => "contract `watch`: events, then `end`".to_owned(),
            Self::List => "contract `list`: the whole list, then `end`".to_owned(),
        }
    }

    /// Runs the check, in `home`, a directory that is created and removed. Returns what is wrong, if anything.
    ///
    /// # Errors
    /// The command cannot be started, or a directory or pipe cannot be created.
    pub async fn run(self, plan: &Plan, hello: &Hello, home: &Path) -> Result<Option<String>, StartError> {
        match self {
            Self::Unknown => unknown(plan, home).await,
            Self::Follow => {
                let attempt = informer(plan, hello, home, "", FOLLOW_STEPS).await?;
                Ok(attempt
                    .and_then(|attempt| protocol_fault(&attempt).or_else(|| follow_fault(&attempt, hello))))
            }
            Self::Relist => {
                let attempt = informer(plan, hello, home, "", RELIST_STEPS).await?;
                Ok(attempt.and_then(|attempt| protocol_fault(&attempt).or_else(|| relist_fault(&attempt))))
            }
            Self::Pause => {
                let attempt = informer(plan, hello, home, "consumer_delay: 300ms", "").await?;
                Ok(attempt.and_then(|attempt| protocol_fault(&attempt).or_else(|| pause_fault(&attempt))))
            }
            Self::Option(capability) => {
                let Some((_, settings, shown)) = VISIBLE.into_iter().find(|(known, ..)| *known == capability)
                else {
                    return Ok(None);
                };
                // Some libraries omit the resourceVersion if they page.
                let whole =
                    capability == Capability::ResourceVersion && hello.caps.contains(&Capability::PageSize);
                let settings = if whole {
                    "list_semantic: any, page_size: none"
                } else {
                    settings
                };
                let attempt = informer(plan, hello, home, settings, "").await?;
                Ok(attempt.and_then(|attempt| {
                    protocol_fault(&attempt).or_else(|| option_fault(&attempt, capability, shown))
                }))
            }
            Self::Watch | Self::List => {
                let contract = if self == Self::Watch {
                    Contract::Watch
                } else {
                    Contract::List
                };
                run_once(plan, contract, hello.recovers, home).await
            }
        }
    }
}

/// Writes after the initial list.
const FOLLOW_STEPS: &str = "steps:\n  - when: {watch: 1}\n  - apply: {configmap: {name: c}}\n  - apply: {configmap: {name: b, data: {k: v}}}\n  - delete: a\n";

/// One event is dropped; then the watch fails with 410.
const RELIST_STEPS: &str = "steps:\n  - when: {watch: 1}\n    do: {drop_events: 1}\n  - delete: a\n  - do:\n      - error: {code: 410, reason: Expired}\n      - eof\n";

/// Returns the scenario of a check; its objects are `a` and `b`.
fn scenario_of(settings: &str, rest: &str) -> SharedScenario {
    let client = if settings.is_empty() {
        String::new()
    } else {
        format!("client: {{{settings}}}\n")
    };
    let text = format!(
        "scenario: v1\ntitle: t\nwhy: w\ncovers: [LIST-01]\n{client}objects:\n  - configmap: {{name: a, labels: {{check: adapter}}}}\n  - configmap: {{name: b, labels: {{check: adapter}}}}\n{rest}"
    );
    let parsed = scenario::parse("check/adapter", Path::new("check-adapter.yaml"), &text);
    Arc::new(
        parsed.unwrap_or_else(|errors| panic!("proven invariant: a test parses every scenario: {errors:?}")),
    )
}

/// Runs a scenario. Returns `None` if the adapter does not support it.
async fn informer(
    plan: &Plan,
    hello: &Hello,
    home: &Path,
    settings: &str,
    rest: &str,
) -> Result<Option<Attempt>, StartError> {
    let scenario = scenario_of(settings, rest);
    if fit::start(&scenario, hello).is_err() {
        return Ok(None);
    }
    let test = Test {
        scenario,
        reference: Duration::ZERO,
    };
    attempt::run(plan, &test, home).await.map(Some)
}

/// Returns the violation of the protocol, the crash or the failure of the harness, if any.
fn protocol_fault(attempt: &Attempt) -> Option<String> {
    match attempt.outcome {
        Outcome::AdapterError => Some(with_last_line(attempt.why.clone(), &attempt.errors)),
        Outcome::HarnessError | Outcome::Crash => Some(attempt.why.clone()),
        Outcome::Pass
        | Outcome::Warn
        | Outcome::Fail
        | Outcome::Hang
        | Outcome::Unsupported
        | Outcome::NotPlayed => attempt.stray.clone(),
    }
}

fn reports(attempt: &Attempt) -> impl Iterator<Item = (&Record, &Report)> {
    attempt.records.iter().filter_map(|record| {
        let What::Reported(report) = &record.what else {
            return None;
        };
        Some((record, report))
    })
}

fn sent_request(attempt: &Attempt) -> bool {
    attempt
        .records
        .iter()
        .any(|record| matches!(record.what, What::Request { .. }))
}

/// Returns what is wrong with the events of list and watch.
fn follow_fault(attempt: &Attempt, hello: &Hello) -> Option<String> {
    if attempt.outcome == Outcome::Pass {
        return None;
    }
    let has = |word: &str| reports(attempt).any(|(_, report)| report.word() == word);
    let shows_lists = hello.caps.contains(&Capability::InitEvents);
    Some(if !sent_request(attempt) {
        "the client sent no request after `start`: load the kubeconfig in KUBECONFIG, and start the library"
            .to_owned()
    } else if let Some((_, Report::Error { message, .. })) =
        reports(attempt).find(|(_, report)| report.word() == "error")
    {
        format!("the library reported an error although the server injected no fault: {message}")
    } else if has("ended") {
        "the adapter printed `end` before `stop`: an informer runs until `stop`".to_owned()
    } else if !has("init_apply") {
        "no event about the objects of the first list: print `add`, `apply` or `init-apply` for each, and flush".to_owned()
    } else if !has("init_done") && shows_lists {
        "no `init-done` after the first list".to_owned()
    } else if !has("init_done") {
        "no `synced` after the initial list: print it when the library reports its cache as ready".to_owned()
    } else if !has("apply") {
        "no event about a change: print `apply`, or `add` and `update`, for each".to_owned()
    } else if !has("delete") {
        "no `delete` for a deleted object".to_owned()
    } else {
        format!("the events are not those of the server: {}", attempt.why)
    })
}

fn relist_fault(attempt: &Attempt) -> Option<String> {
    let lists = reports(attempt)
        .filter(|(_, report)| **report == Report::Init)
        .count();
    let requests = attempt
        .records
        .iter()
        .filter(|record| matches!(&record.what, What::Request { verb: Verb::List, .. }));
    (lists < 2 && requests.count() >= 2).then(|| {
        "the client relisted after HTTP 410, and the adapter printed no second `init`: print it for every list, or remove the capability `init-events`"
            .to_owned()
    })
}

fn pause_fault(attempt: &Attempt) -> Option<String> {
    let times: Vec<Duration> = reports(attempt)
        .filter(|(_, report)| report.object().is_some())
        .map(|(record, _)| record.at)
        .collect();
    if times.len() < 2 {
        return Some(
            "no events were printed after `resume` with `events`: print that number of events, then pause"
                .to_owned(),
        );
    }
    // The delay is 300 ms; less than half of it counts as none.
    let too_fast = times
        .windows(2)
        .any(|pair| pair[1].saturating_sub(pair[0]) < Duration::from_millis(150));
    too_fast.then(|| {
        "an event was printed in a pause: start paused if `start` has `paused`, and after `resume` with `events` print only that number of events about objects"
            .to_owned()
    })
}

fn option_fault(attempt: &Attempt, capability: Capability, shown: Visible) -> Option<String> {
    let arrived = attempt.records.iter().any(|record| {
        let What::Request { query, accept, .. } = &record.what else {
            return false;
        };
        match shown {
            Visible::Query(name, value) => query.iter().any(|(key, sent)| key == name && sent == value),
            Visible::Accept(part) => accept.as_ref().is_some_and(|accept| accept.contains(part)),
        }
    });
    let word = match shown {
        Visible::Query(name, value) => format!("{name}={value}"),
        Visible::Accept(part) => format!("{part} in Accept"),
    };
    (!arrived).then(|| {
        format!(
            "no request had {word}: pass the option to the library, or remove `{}` from `caps`",
            capability.word()
        )
    })
}

async fn unknown(plan: &Plan, home: &Path) -> Result<Option<String>, StartError> {
    let (_listening, mut child) = start_with_idle_server(plan, home).await?;
    let mailbox = child.mailbox().clone();
    if read_hello(&mut child, plan.limits).await.is_none() {
        return Ok(mailbox.with(|session| session.fault().map(str::to_owned)));
    }
    let contract = format!("none-{:x}", plan.seed ^ 0x5eed);
    child
        .send(&Command::Start(Box::new(Start::on_config_maps(
            &contract,
            Options::default(),
        ))))
        .await;
    let refused = |times: usize| move |session: &Session| session.refusals() >= times;
    if !child.until(plan.limits.answer, refused(1)).await {
        let fault = mailbox.with(|session| session.fault().map(str::to_owned));
        child.end(Duration::ZERO).await;
        return Ok(Some(fault.unwrap_or_else(|| {
            "an unknown contract was not answered: print {\"ev\":\"unsupported\",\"what\":\"contract\"} for contracts that `hello` does not list".to_owned()
        })));
    }
    child.send_line(r#"{"cmd":"none"}"#).await;
    if !child.until(plan.limits.answer, refused(2)).await {
        let fault = mailbox.with(|session| session.fault().map(str::to_owned));
        child.end(Duration::ZERO).await;
        return Ok(Some(fault.unwrap_or_else(|| {
            "an unknown `cmd` was not answered: print {\"ev\":\"unsupported\",\"what\":\"cmd\"}, and continue to read commands until `stop`".to_owned()
        })));
    }
    Ok(stop(&mut child, plan.limits).await.err())
}

/// Checks the events of one watch or one list.
async fn run_once(
    plan: &Plan,
    contract: Contract,
    recovers: Recovers,
    home: &Path,
) -> Result<Option<String>, StartError> {
    let rest = match contract {
        Contract::Watch => "steps:\n  - when: {watch: 1}\n  - apply: {configmap: {name: c}}\n  - do: eof\n",
        Contract::List | Contract::Informer => "",
    };
    let options = Options {
        resource_version: (contract == Contract::Watch)
            .then(|| ServerSettings::default().revision.to_string()),
        ..Options::default()
    };
    let start = Start::on_config_maps(contract.word(), options);
    let test = Test {
        scenario: scenario_of("", rest),
        reference: Duration::ZERO,
    };
    let scenario = test.scenario.clone();
    let attempt = run_as(plan, &test, home, move |_| Ok((start, scenario))).await?;
    let words: Vec<&str> = reports(&attempt).map(|(_, report)| report.word()).collect();
    let expected: &[&str] = match contract {
        // The library restarts the watch, so there is no `end`.
        Contract::Watch if recovers == Recovers::Library => &["apply", "apply", "apply"],
        Contract::Watch => &["apply", "apply", "apply", "ended"],
        Contract::List | Contract::Informer => &["init", "init_apply", "init_apply", "init_done", "ended"],
    };
    Ok(protocol_fault(&attempt).or_else(|| {
        (words != expected).then(|| {
            format!(
                "expected {}, got {}",
                expected.join(", "),
                if words.is_empty() {
                    "nothing".to_owned()
                } else {
                    words.join(", ")
                }
            )
        })
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_of_a_check_is_valid() {
        for rest in ["", FOLLOW_STEPS, RELIST_STEPS] {
            scenario_of("", rest);
        }
        for (_, settings, _) in VISIBLE {
            scenario_of(settings, "");
        }
        scenario_of("consumer_delay: 300ms", "");
        scenario_of("list_semantic: any, page_size: none", "");
        scenario_of(
            "",
            "steps:\n  - when: {watch: 1}\n  - apply: {configmap: {name: c}}\n  - do: eof\n",
        );
    }
}
