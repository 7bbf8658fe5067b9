//! Finds the mistakes of an adapter's author: one trial for each thing that an adapter promises, and in words which line is
//! missing or wrong.
//!
//! It judges the adapter, and no client: that is what scenarios are for.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fake_apiserver::record::{Record, Verb, What};
use fake_apiserver::report::Report;
use fake_apiserver::scenario::{self, ServerSettings, SharedScenario};

use super::child::{StartError, with_last_line};
use super::fit;
use super::message::{Capability, Command, Contract, Hello, Options, PROTOCOL, Recovers, Resource, Start};
use super::outcome::Outcome;
use super::play::{Attempt, Plan, Test, introduced, play, play_as, started_beside_a_server, stopped};
use super::session::Session;

/// Something that an adapter promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trial {
    /// It refuses a contract and a command that do not exist.
    Unknown,
    /// It lists and watches, and stops.
    Follow,
    /// It shows relists.
    Relist,
    /// It obeys `pause` and `resume`.
    Pause,
    /// It passes an option on.
    Option(Capability),
    /// It plays one watch.
    Watch,
    /// It plays one list.
    List,
}

/// Capabilities whose option shows in a request: the client's settings in a scenario, and what the request has.
const SHOWN: [(Capability, &str, Shown); 8] = [
    (
        Capability::Selectors,
        "labels: check=adapter",
        Shown::Query("labelSelector", "check=adapter"),
    ),
    (
        Capability::FieldSelectors,
        "fields: metadata.name=a",
        Shown::Query("fieldSelector", "metadata.name=a"),
    ),
    (Capability::PageSize, "page_size: 2", Shown::Query("limit", "2")),
    (
        Capability::ResourceVersion,
        "list_semantic: any",
        Shown::Query("resourceVersion", "0"),
    ),
    (
        Capability::StreamingList,
        "initial_list: streaming_list",
        Shown::Query("sendInitialEvents", "true"),
    ),
    (
        Capability::MetadataOnly,
        "mode: metadata",
        Shown::Accept("PartialObjectMetadata"),
    ),
    (
        Capability::Timeout,
        "timeout: 77s",
        Shown::Query("timeoutSeconds", "77"),
    ),
    (
        Capability::Bookmarks,
        "bookmarks: true",
        Shown::Query("allowWatchBookmarks", "true"),
    ),
];

/// What a request has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    Query(&'static str, &'static str),
    Accept(&'static str),
}

impl Trial {
    /// The trials of what an adapter declares.
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
            let shown = SHOWN.iter().map(|(capability, ..)| *capability);
            all.extend(shown.filter(|capability| has(*capability)).map(Self::Option));
        }
        all.extend(hello.contracts.contains(&Contract::Watch).then_some(Self::Watch));
        all.extend(hello.contracts.contains(&Contract::List).then_some(Self::List));
        all
    }

    /// Does the adapter offer the resource that is listed and watched in trials, `configmaps`?
    pub fn covers(hello: &Hello) -> bool {
        hello
            .resources
            .as_ref()
            .is_none_or(|resources| resources.iter().any(|one| one == "configmaps"))
    }

    /// What is tried, in a few words.
    pub fn words(self) -> String {
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

    /// Tries it, in `home`, a directory that is created and removed. Gives what is wrong, if anything.
    ///
    /// # Errors
    /// The command cannot be started, or the system refuses a directory or a pipe.
    pub async fn run(self, plan: &Plan, hello: &Hello, home: &Path) -> Result<Option<String>, StartError> {
        match self {
            Self::Unknown => unknown(plan, home).await,
            Self::Follow => {
                let attempt = informer(plan, hello, home, "", FOLLOWED).await?;
                Ok(attempt.and_then(|attempt| at_fault(&attempt).or_else(|| followed(&attempt, hello))))
            }
            Self::Relist => {
                let attempt = informer(plan, hello, home, "", RELISTED).await?;
                Ok(attempt.and_then(|attempt| at_fault(&attempt).or_else(|| relisted(&attempt))))
            }
            Self::Pause => {
                let attempt = informer(plan, hello, home, "consumer_delay: 300ms", "").await?;
                Ok(attempt.and_then(|attempt| at_fault(&attempt).or_else(|| paused(&attempt))))
            }
            Self::Option(capability) => {
                let Some((_, settings, shown)) = SHOWN.into_iter().find(|(known, ..)| *known == capability)
                else {
                    return Ok(None);
                };
                // Some libraries drop the version where they ask for pages.
                let whole =
                    capability == Capability::ResourceVersion && hello.caps.contains(&Capability::PageSize);
                let settings = if whole {
                    "list_semantic: any, page_size: none"
                } else {
                    settings
                };
                let attempt = informer(plan, hello, home, settings, "").await?;
                Ok(attempt
                    .and_then(|attempt| at_fault(&attempt).or_else(|| missing(&attempt, capability, shown))))
            }
            Self::Watch | Self::List => {
                let contract = if self == Self::Watch {
                    Contract::Watch
                } else {
                    Contract::List
                };
                once(plan, contract, hello.recovers, home).await
            }
        }
    }
}

/// Writes after the first set.
const FOLLOWED: &str = "steps:\n  - when: {watch: 1}\n  - apply: {configmap: {name: c}}\n  - apply: {configmap: {name: b, data: {k: v}}}\n  - delete: a\n";

/// The watch ends with 410 when a change was lost.
const RELISTED: &str = "steps:\n  - when: {watch: 1}\n    do: {drop_events: 1}\n  - delete: a\n  - do:\n      - error: {code: 410, reason: Expired}\n      - eof\n";

/// The scenario of a trial; its objects are `a` and `b`.
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
        parsed.unwrap_or_else(|errors| panic!("proven invariant: a test parses every trial: {errors:?}")),
    )
}

/// Plays a scenario. `None`: it is about a resource that the adapter does not offer.
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
    play(plan, &test, home).await.map(Some)
}

/// What the protocol, or the system around the adapter, shows to be wrong.
fn at_fault(attempt: &Attempt) -> Option<String> {
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

fn asked(attempt: &Attempt) -> bool {
    attempt
        .records
        .iter()
        .any(|record| matches!(record.what, What::Request { .. }))
}

/// What is wrong with the events of the plainest scenario.
fn followed(attempt: &Attempt, hello: &Hello) -> Option<String> {
    if attempt.outcome == Outcome::Pass {
        return None;
    }
    let has = |word: &str| reports(attempt).any(|(_, report)| report.word() == word);
    let shows_lists = hello.caps.contains(&Capability::InitEvents);
    Some(if !asked(attempt) {
        "the client sent no request after `start`: load the kubeconfig in KUBECONFIG, and start the library"
            .to_owned()
    } else if let Some((_, Report::Error { message, .. })) =
        reports(attempt).find(|(_, report)| report.word() == "error")
    {
        format!("the library reported an error where the server has no fault: {message}")
    } else if has("ended") {
        "the adapter printed `end` while the server went on: an informer ends at `stop`".to_owned()
    } else if !has("init_apply") {
        "no event about the objects of the first list: print `add`, `apply` or `init-apply` for each, and flush".to_owned()
    } else if !has("init_done") && shows_lists {
        "no `init-done` after the first list".to_owned()
    } else if !has("init_done") {
        "no `synced` after the first set: print it when the library reports its cache as ready".to_owned()
    } else if !has("apply") {
        "no event about a change: print `apply`, or `add` and `update`, for each".to_owned()
    } else if !has("delete") {
        "no `delete` for a deleted object".to_owned()
    } else {
        format!("the events are not those of the server: {}", attempt.why)
    })
}

fn relisted(attempt: &Attempt) -> Option<String> {
    let lists = reports(attempt)
        .filter(|(_, report)| **report == Report::Init)
        .count();
    let requests = attempt
        .records
        .iter()
        .filter(|record| matches!(&record.what, What::Request { verb: Verb::List, .. }));
    (lists < 2 && requests.count() >= 2).then(|| {
        "the client listed again after HTTP 410, and the adapter printed no second `init`: print it for every list, or remove the capability `init-events`"
            .to_owned()
    })
}

fn paused(attempt: &Attempt) -> Option<String> {
    let times: Vec<Duration> = reports(attempt)
        .filter(|(_, report)| report.object().is_some())
        .map(|(record, _)| record.at)
        .collect();
    if times.len() < 2 {
        return Some(
            "no events were printed after `resume` with `events`: go on for that number of events".to_owned(),
        );
    }
    // The delay is 300 ms; less than half of it is no delay.
    let hurried = times
        .windows(2)
        .any(|pair| pair[1].saturating_sub(pair[0]) < Duration::from_millis(150));
    hurried.then(|| {
        "an event was printed in a pause: with `paused` in `start` begin in a pause, and after `resume` with `events` print only that number of events about objects"
            .to_owned()
    })
}

fn missing(attempt: &Attempt, capability: Capability, shown: Shown) -> Option<String> {
    let arrived = attempt.records.iter().any(|record| {
        let What::Request { query, accept, .. } = &record.what else {
            return false;
        };
        match shown {
            Shown::Query(name, value) => query.iter().any(|(key, sent)| key == name && sent == value),
            Shown::Accept(part) => accept.as_ref().is_some_and(|accept| accept.contains(part)),
        }
    });
    let word = match shown {
        Shown::Query(name, value) => format!("{name}={value}"),
        Shown::Accept(part) => format!("{part} in Accept"),
    };
    (!arrived).then(|| {
        format!(
            "no request had {word}: pass the option on to the library, or remove `{}` from `caps`",
            capability.word()
        )
    })
}

/// What is started in a contract other than `informer`.
fn start_of(contract: &str, options: Options) -> Start {
    Start {
        protocol: PROTOCOL,
        contract: contract.to_owned(),
        resource: Resource {
            group: String::new(),
            version: "v1".to_owned(),
            plural: "configmaps".to_owned(),
            kind: "ConfigMap".to_owned(),
        },
        namespace: Some("default".to_owned()),
        options,
        paused: false,
    }
}

async fn unknown(plan: &Plan, home: &Path) -> Result<Option<String>, StartError> {
    let (_listening, mut child) = started_beside_a_server(plan, home).await?;
    let mailbox = child.mailbox().clone();
    if introduced(&mut child, plan.limits).await.is_none() {
        return Ok(mailbox.with(|session| session.fault().map(str::to_owned)));
    }
    let contract = format!("none-{:x}", plan.seed ^ 0x5eed);
    child
        .send(&Command::Start(Box::new(start_of(&contract, Options::default()))))
        .await;
    let refused = |times: usize| move |session: &Session| session.refusals() >= times;
    if !child.until(plan.limits.answer, refused(1)).await {
        let fault = mailbox.with(|session| session.fault().map(str::to_owned));
        child.end(Duration::ZERO).await;
        return Ok(Some(fault.unwrap_or_else(|| {
            "a contract that does not exist was not answered: print {\"ev\":\"unsupported\",\"what\":\"contract\"} for contracts that `hello` does not list".to_owned()
        })));
    }
    child.send_line(r#"{"cmd":"none"}"#).await;
    if !child.until(plan.limits.answer, refused(2)).await {
        let fault = mailbox.with(|session| session.fault().map(str::to_owned));
        child.end(Duration::ZERO).await;
        return Ok(Some(fault.unwrap_or_else(|| {
            "an unknown `cmd` was not answered: print {\"ev\":\"unsupported\",\"what\":\"cmd\"}, and go on reading commands until `stop`".to_owned()
        })));
    }
    Ok(stopped(&mut child, plan.limits).await.err())
}

/// One watch or one list.
async fn once(
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
    let start = start_of(contract.word(), options);
    let test = Test {
        scenario: scenario_of("", rest),
        reference: Duration::ZERO,
    };
    let scenario = test.scenario.clone();
    let attempt = play_as(plan, &test, home, move |_| Ok((start, scenario))).await?;
    let words: Vec<&str> = reports(&attempt).map(|(_, report)| report.word()).collect();
    let expected: &[&str] = match contract {
        // The library opens the watch again: it does not end.
        Contract::Watch if recovers == Recovers::Library => &["apply", "apply", "apply"],
        Contract::Watch => &["apply", "apply", "apply", "ended"],
        Contract::List | Contract::Informer => &["init", "init_apply", "init_apply", "init_done", "ended"],
    };
    Ok(at_fault(&attempt).or_else(|| {
        (words != expected).then(|| {
            format!(
                "expected {} and got {}",
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
    fn every_trial_has_a_scenario() {
        for rest in ["", FOLLOWED, RELISTED] {
            scenario_of("", rest);
        }
        for (_, settings, _) in SHOWN {
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
