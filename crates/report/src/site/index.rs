//! The first page: how it is measured, and the matrix of the clients by consequence, by feature and by group.

use std::collections::BTreeSet;

use conformance::adapter::outcome::Outcome;
use fake_apiserver::scenario::catalogue::{self, Requirement};
use maud::{Markup, html};

use super::Page;
use super::layout::{Draft, wide};
use crate::published::{CONSEQUENCES, Client, Published, Shown};

pub(super) fn page(published: &Published, suite: &str) -> Page {
    let draft = Draft::new("index.html".to_owned(), "Conformance of Kubernetes watch clients");
    let (own, others): (Vec<&Client>, Vec<&Client>) = published.clients.iter().partition(|one| one.is_own);
    let (older, current): (Vec<&Client>, Vec<&Client>) = others.into_iter().partition(|one| one.is_older);
    draft.page(
        false,
        &html! {
            h1 { "Conformance of Kubernetes watch clients" }
            p.lead {
                "Each client runs behind an adapter that reports what the library delivers and never repairs. A client is charged "
                "with a requirement only if a failed expectation, or a violated invariant, contradicts the requirement’s text, on "
                "input that a kube-apiserver, a network or a common proxy sends. Each failure has a page with the contradiction, "
                "the scenario, and the command that shows it again."
            }
            p {
                "A failure that is wrong is a bug of this suite: " code { "docs/contest.md" } " of its repository describes how an objection is "
                "decided, and " code { "docs/withdrawn.md" } " lists what was withdrawn."
            }
            dl.facts {
                dt { "requirements" } dd { (catalogue::requirements().len()) }
                dt { "scenarios" } dd { (published.scenarios.len()) }
                dt { "suite" } dd { code { (suite) } }
            }
            h2 #clients { "Clients" }
            p {
                "Defects that were shown, by their worst consequence: " em { "lost" } " (an object or event is missed for ever), "
                em { "stuck" } " (or dead), " em { "overload" } " (of the server), " em { "leak" } ", " em { "stale" }
                " (until the next relist), " em { "waste" } ", " em { "hidden" } " (the user is not told)."
            }
            (wide("Clients by consequence", &clients(published, &draft, &current)))
            p.small {
                em { "Core" } " requirements have a scenario that leaves the client’s settings at their defaults, so that every "
                "informer is judged on them; " em { "optional" } " ones need a feature that not every library has. "
                em { "Not shown broken" } " is less than kept: no scenario that was played contradicts it. " em { "Hardening" }
                " counts requirements that are broken only on input of aggregated or old servers, or of nobody known: shown, not scored."
            }
            @for client in own { (own_row(published, &draft, client)) }
            @if !older.is_empty() {
                h2 #older { "Older versions" }
                (wide("Older versions by consequence", &clients(published, &draft, &older)))
            }
            h2 #groups { "By group: broken of judged" }
            (wide("Clients by group of requirements", &groups(published, &draft)))
            h2 #outcomes { "Scenarios by outcome" }
            (wide("Clients by outcome", &outcomes(published, &draft)))
        },
    )
}

/// Returns what a client shows of each requirement that it is judged on.
pub(super) fn standing<'r>(published: &Published, client: &Client) -> Vec<(&'r Requirement, Shown)> {
    let all = catalogue::requirements().iter();
    all.filter_map(|one| Some((one, published.shown(client, one)?)))
        .collect()
}

fn clients(published: &Published, draft: &Draft, clients: &[&Client]) -> Markup {
    html! {
        table.counts {
            thead {
                tr {
                    th scope="col" { "client" }
                    th scope="col" { "version" }
                    @for one in CONSEQUENCES { th.number scope="col" { (one.word()) } }
                    th.number scope="col" { "core: broken" }
                    th.number scope="col" { "not shown broken" }
                    th.number scope="col" { "not shown" }
                    th.number scope="col" { "optional: broken" }
                    th.number scope="col" { "not shown broken" }
                    th.number scope="col" { "not shown" }
                    th.number scope="col" { "hardening" }
                }
            }
            tbody { @for client in clients { (row(published, draft, client)) } }
        }
    }
}

fn row(published: &Published, draft: &Draft, client: &Client) -> Markup {
    let standing = standing(published, client);
    let broken = |of: &dyn Fn(&Requirement) -> bool| {
        let broken = standing
            .iter()
            .filter(|(one, shown)| *shown == Shown::Broken && of(one));
        broken.count()
    };
    html! {
        tr {
            th scope="row" { (draft.client(&client.name, &client.title)) }
            td { (client.version) }
            @for consequence in CONSEQUENCES { (number(broken(&|one| one.consequence == consequence), "fail")) }
            @for is_core in [true, false] {
                @let of = published.split(client, is_core);
                (number(of.broken, "fail")) (number(of.kept, "")) (number(of.not_shown, ""))
            }
            (number(standing.iter().filter(|(_, shown)| *shown == Shown::BrokenByHardening).count(), "warn"))
        }
    }
}

fn own_row(published: &Published, draft: &Draft, client: &Client) -> Markup {
    let standing = standing(published, client);
    let broken = standing.iter().filter(|(_, shown)| *shown != Shown::Kept).count();
    html! {
        p {
            (draft.client(&client.name, &client.title)) " stands apart, because it and the suite have the same authors: of the "
            (standing.len()) " requirements that it is judged on by an adapter it breaks " (broken) "."
        }
    }
}

fn groups(published: &Published, draft: &Draft) -> Markup {
    let families: BTreeSet<&str> = catalogue::requirements()
        .iter()
        .map(|one| one.family.as_str())
        .collect();
    html! {
        table.counts {
            thead {
                tr {
                    th scope="col" { "client" }
                    @for family in &families {
                        th.number scope="col" { a href=(format!("requirements.html#{family}")) { (family) } }
                    }
                }
            }
            tbody {
                @for client in &published.clients {
                    @let standing = standing(published, client);
                    tr {
                        th scope="row" { (draft.client(&client.name, &client.title)) }
                        @for family in &families {
                            @let of = standing.iter().filter(|(one, _)| one.family == *family).collect::<Vec<_>>();
                            @let broken = of.iter().filter(|(_, shown)| *shown == Shown::Broken).count();
                            td.number.(if broken > 0 { "fail" } else { "none" }) {
                                @if of.is_empty() { "–" } @else { (broken) "/" (of.len()) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn outcomes(published: &Published, draft: &Draft) -> Markup {
    html! {
        table.counts {
            thead {
                tr {
                    th scope="col" { "client" }
                    th scope="col" { "recovers" }
                    @for outcome in Outcome::ALL { th.number scope="col" { (outcome.word()) } }
                    th.number scope="col" { "left out" }
                }
            }
            tbody {
                @for client in &published.clients {
                    tr {
                        th scope="row" { (draft.client(&client.name, &client.title)) }
                        td { (client.recovers) }
                        @for outcome in Outcome::ALL { (number(client.count(outcome), outcome.word())) }
                        (number(client.tests.values().filter(|test| test.left_out.is_some()).count(), ""))
                    }
                }
            }
        }
    }
}

/// Returns a cell with a number, in the colour of `class` unless it is 0.
fn number(number: usize, class: &str) -> Markup {
    html! { td.number.(if number == 0 { "none" } else { class }) { (number) } }
}
