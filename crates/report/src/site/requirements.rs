//! All requirements by group, with the numbers of clients that break and keep each.

use fake_apiserver::scenario::catalogue::{self, Requirement};
use maud::{Markup, html};

use super::Page;
use super::layout::{Draft, wide};
use crate::published::{Published, Shown};

pub(super) fn page(published: &Published) -> Page {
    let draft = Draft::new(
        "requirements.html".to_owned(),
        "Requirements on clients that list and watch",
    );
    let all: Vec<&Requirement> = catalogue::requirements().iter().collect();
    draft.page(
        false,
        &html! {
            h1 { "Requirements" }
            p.lead {
                "A MUST has a source, or a consequence that weighs (lost, stuck, overload), and is broken by the client’s own requests "
                "or by what a kube-apiserver, a network or a common proxy sends. Each requirement has a page with its source and the "
                "scenarios that test it."
            }
            @for family in all.chunk_by(|one, other| one.family == other.family) {
                @if let Some(first) = family.first() {
                    h2 id=(first.family) { (first.family) }
                    (wide(&format!("Requirements of {}", first.family), &table(published, &draft, family)))
                }
            }
        },
    )
}

fn table(published: &Published, draft: &Draft, family: &[&Requirement]) -> Markup {
    html! {
        table.counts {
            thead {
                tr {
                    th scope="col" { "requirement" }
                    th scope="col" { "level" }
                    th scope="col" { "consequence" }
                    th scope="col" { "feature" }
                    th.number scope="col" { "broken" }
                    th.number scope="col" { "not shown broken" }
                    th.number scope="col" { "not shown" }
                    th scope="col" { "text" }
                }
            }
            tbody {
                @for one in family {
                    @let number = |wanted: Option<Shown>| {
                        published.clients.iter().filter(|client| published.shown(client, one) == wanted).count()
                    };
                    @let broken = number(Some(Shown::Broken));
                    tr {
                        td { (draft.requirement(&one.id)) }
                        td { (one.level.word()) }
                        td { (one.consequence.word()) }
                        td { @if published.is_core(one) { "core" } @else { "optional" } }
                        td.number.(if broken > 0 { "fail" } else { "none" }) { (broken) }
                        td.number { (number(Some(Shown::Kept)) + number(Some(Shown::BrokenByHardening))) }
                        td.number { (number(None)) }
                        td.claim { (one.text) }
                    }
                }
            }
        }
    }
}
