//! One client: how it was measured, every requirement that it breaks with the reason and the failures that show it, and what was
//! not judged.

use std::collections::{BTreeMap, BTreeSet};

use conformance::adapter::outcome::Outcome;
use fake_apiserver::scenario::catalogue::Requirement;
use maud::{Markup, html};

use super::Page;
use super::index::standing;
use super::layout::{self, Draft, folded, inline, issue, joined};
use crate::published::{CONSEQUENCES, Client, Published, Shown, Test, is_scored};

pub(super) fn page(published: &Published, suite: &str, client: &Client) -> Page {
    let draft = Draft::new(
        layout::of_client(&client.name),
        &format!("{} {}", client.title, client.version),
    );
    let standing = standing(published, client);
    let of = |wanted: Shown| {
        let of = standing.iter().filter(move |(_, shown)| *shown == wanted);
        of.map(|(one, _)| *one).collect::<Vec<&Requirement>>()
    };
    let (broken, hardening) = (of(Shown::Broken), of(Shown::BrokenByHardening));
    draft.page(
        false,
        &html! {
            h1 { (inline(&client.title)) " " span.version { (client.version) } }
            @if client.is_own { p.lead { "This client and the suite have the same authors." } }
            (facts(suite, client))
            h2 #defects { "Defects" }
            @if broken.is_empty() { p { "No requirement is shown broken on input that a cluster, a network or a common proxy sends." } }
            @for consequence in CONSEQUENCES {
                @for one in broken.iter().filter(|one| one.consequence == consequence) {
                    (defect(published, &draft, client, one, false))
                }
            }
            @if !hardening.is_empty() {
                h2 #hardening { "Hardening" }
                p.small { "Broken only on input of aggregated or old servers, or of nobody known: shown, not scored." }
                @for one in hardening { (defect(published, &draft, client, one, true)) }
            }
            (uncharged(&draft, client))
            (kept(&draft, &standing))
            h2 #unjudged { "Not judged" }
            (unjudged(&draft, client))
        },
    )
}

fn facts(suite: &str, client: &Client) -> Markup {
    let evidence: Vec<_> = client
        .failures()
        .filter_map(|(_, test)| test.evidence.as_ref())
        .collect();
    let distinct = |of: &dyn Fn(&&crate::published::Evidence) -> String| {
        let all: BTreeSet<String> = evidence.iter().map(of).collect();
        all.into_iter().collect::<Vec<_>>().join("; ")
    };
    let failures = client.failures().count();
    html! {
        dl.facts {
            dt { "library" } dd { (client.lang) ", version " (client.version) }
            dt { "adapter" } dd { code { (client.adapter) } ", started as " code { (client.command) } }
            dt { "recovers" } dd { (client.recovers) }
            dt { "capabilities" } dd { (client.capabilities.join(", ")) }
            dt { "evidence" } dd { (evidence.len()) " of " (failures) " failures" }
            @if !evidence.is_empty() {
                dt { "measured" } dd { (distinct(&|one| one.day.clone())) }
                dt { "platform" } dd { (distinct(&|one| one.platform.clone())) }
                dt { "server" }
                dd { (distinct(&|one| format!("fake-apiserver {}, Kubernetes {}", one.program, one.kubernetes))) }
            }
            dt { "suite" } dd { code { (suite) } }
            @for (name, value) in &client.behaviour { dt { (name) } dd { (inline(value)) } }
        }
    }
}

/// Failures of one requirement, by reason.
fn defect(
    published: &Published,
    draft: &Draft,
    client: &Client,
    one: &Requirement,
    is_hardening: bool,
) -> Markup {
    let is_scored = |id: &str| {
        published
            .scenario(id)
            .is_some_and(|(scenario, _)| is_scored(scenario, one))
    };
    let mut reasons: BTreeMap<(&str, &str), Vec<(&str, &Test)>> = BTreeMap::new();
    for (id, test) in client
        .failures()
        .filter(|(_, test)| test.broken.contains(&one.id))
    {
        let known = test.known.as_ref();
        let reason = known.map_or("no reason is recorded", |known| known.reason.as_str());
        let of = known.map_or("", |known| known.issue.as_str());
        reasons.entry((reason, of)).or_default().push((id, test));
    }
    html! {
        div.defect.hardening[is_hardening] {
            h3 { (one.consequence.word()) ": " (draft.requirement(&one.id)) " " span.level { (one.level.word()) } }
            p { (one.text) }
            ul.dense {
                @for ((reason, of), failures) in reasons {
                    li {
                        (reason) (issue(of))
                        @if !is_hardening && !failures.iter().any(|(id, _)| is_scored(id)) {
                            " " span.small { "(hardening, not scored)" }
                        }
                        br; (links(draft, client, &failures))
                    }
                }
            }
        }
    }
}

fn links(draft: &Draft, client: &Client, failures: &[(&str, &Test)]) -> Markup {
    let link = |(id, test): &(&str, &Test)| {
        html! {
            (draft.failure(&client.name, id)) " (" (test.outcome.word())
            @if test.evidence.is_none() { ", no evidence committed" } ")"
        }
    };
    joined(&failures.iter().map(link).collect::<Vec<_>>(), ", ")
}

/// Failures that contradict no requirement.
fn uncharged(draft: &Draft, client: &Client) -> Markup {
    let failures = client.failures().filter(|(_, test)| test.broken.is_empty());
    let items: Vec<Markup> = failures
        .map(|(id, test)| {
            html! {
                (draft.failure(&client.name, id)) " (" (test.outcome.word()) ")"
                @if let Some(known) = &test.known { ": " (known.reason) (issue(&known.issue)) }
            }
        })
        .collect();
    html! {
        @if !items.is_empty() {
            h2 #uncharged { "Failures that charge no requirement" }
            ul.dense { @for item in items { li { (item) } } }
        }
    }
}

fn kept(draft: &Draft, standing: &[(&Requirement, Shown)]) -> Markup {
    let kept = standing.iter().filter(|(_, shown)| *shown == Shown::Kept);
    let items: Vec<Markup> = kept
        .map(|(one, _)| html! { (draft.requirement(&one.id)) " " (one.text) })
        .collect();
    html! {
        h2 #kept { "Not shown broken" }
        (folded("Requirements", &items))
    }
}

fn unjudged(draft: &Draft, client: &Client) -> Markup {
    let why = |id: &str, why: &str| html! { (draft.scenario(id)) ": " (why) };
    let of = |outcome: Outcome| {
        let of = client
            .tests
            .iter()
            .filter(move |(_, test)| test.outcome == outcome && test.left_out.is_none());
        of.map(|(id, test)| why(id, &test.why)).collect::<Vec<Markup>>()
    };
    let left_out = client
        .tests
        .iter()
        .filter_map(|(id, test)| Some(why(id, test.left_out.as_deref()?)));
    html! {
        (folded("Left out", &left_out.collect::<Vec<_>>()))
        (folded("Not supported by the library", &of(Outcome::Unsupported)))
        (folded("Not played", &of(Outcome::NotPlayed)))
    }
}
