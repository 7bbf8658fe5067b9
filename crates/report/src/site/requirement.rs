//! One requirement: text, source, who provokes it, the scenarios that cover it, and the clients that break and keep it.

use fake_apiserver::scenario::catalogue::{Level, Requirement};
use maud::{Markup, html};

use super::Page;
use super::layout::{self, Draft, joined, wide};
use crate::published::{Published, Shown, is_scored};

pub(super) fn page(published: &Published, one: &Requirement) -> Page {
    let draft = Draft::new(
        layout::of_requirement(&one.id),
        &format!("{}: {}", one.id, one.text),
    );
    let level = match one.level {
        Level::Must => "MUST: a violation breaks users",
        Level::Should => "SHOULD: there may be reasons for a deviation",
        Level::May => "MAY: optional",
    };
    draft.page(
        false,
        &html! {
            h1 { (one.id) }
            p.lead { (one.text) }
            dl.facts {
                dt { "level" } dd { (level) }
                dt { "consequence" } dd { (one.consequence.word()) }
                dt { "provoked by" } dd { (one.provoked_by.word()) }
                dt { "feature" }
                dd {
                    @if published.is_core(one) { "core: judged with the settings that every informer has" }
                    @else { "optional: " (published.features(one).into_iter().collect::<Vec<_>>().join(", ")) }
                }
                @if !one.depends_on.is_empty() {
                    dt { "not shown without" }
                    dd { (joined(&one.depends_on.iter().map(|id| draft.requirement(id)).collect::<Vec<_>>(), ", ")) }
                }
                @if let Some((name, value)) = &one.concerns {
                    dt { "concerns" } dd { "clients that send a LIST with " code { (name) "=" (value) } }
                }
                @if let Some((path, word)) = &one.shown_by {
                    dt { "tested by" } dd { code { (path) } " (" (word) ")" }
                }
                @if let Some(why) = &one.undecided { dt { "not tested" } dd { (why) } }
            }
            h2 #source { "Source" }
            @if one.sources.is_empty() { p { "None: it is this suite’s own judgement, by its consequence." } }
            @for source in &one.sources { blockquote { (source) } }
            h2 #scenarios { "Scenarios" }
            (scenarios(published, &draft, one))
            h2 #clients { "Clients" }
            (clients(published, &draft, one))
        },
    )
}

fn scenarios(published: &Published, draft: &Draft, one: &Requirement) -> Markup {
    html! {
        @if published.covering(one).next().is_none() { p { "None." } }
        ul.dense {
            @for scenario in published.covering(one) {
                li {
                    (draft.scenario(&scenario.id)) " " (scenario.title)
                    @if !is_scored(scenario, one) { " " span.small { "(hardening)" } }
                }
            }
        }
    }
}

fn clients(published: &Published, draft: &Draft, one: &Requirement) -> Markup {
    let table = html! {
        table.counts {
            thead { tr { th scope="col" { "client" } th scope="col" { "shown" } th scope="col" { "by" } } }
            tbody {
                @for client in &published.clients {
                    @let shown = published.shown(client, one);
                    @let breaks = client.failures().filter(|(_, test)| test.broken.contains(&one.id));
                    @let by = breaks.map(|(id, _)| draft.failure(&client.name, id)).collect::<Vec<_>>();
                    tr {
                        th scope="row" { (draft.client(&client.name, &client.title)) " " span.version { (client.version) } }
                        td { (layout::shown(shown)) }
                        td { @if matches!(shown, Some(Shown::Broken | Shown::BrokenByHardening)) { (joined(&by, ", ")) } }
                    }
                }
            }
        }
    };
    wide("Clients", &table)
}
