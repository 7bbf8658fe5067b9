//! The decision table of the README, compared with the function.

use super::*;
use crate::{Decision, Source, Wanted};

const README: &str = include_str!("../../README.md");

/// The requests of the table: what the rows say, and the options.
fn rows() -> Vec<(String, ListOptions)> {
    use RequestedVersion::{Any, At, Newest};
    let versions = [
        ("–", Newest, None),
        ("`0`", Any, None),
        ("`0`, `NotOlderThan`", Any, Some(VersionMatch::NotOlderThan)),
        ("N", At(9), None),
        ("N, `NotOlderThan`", At(9), Some(VersionMatch::NotOlderThan)),
        ("N, `Exact`", At(9), Some(VersionMatch::Exact)),
    ];
    let mut rows = Vec::new();
    for (version, resource_version, version_match) in versions {
        for (paging, limit, single) in [
            ("–", None, false),
            ("`limit`", Some(2), false),
            ("one name", None, true),
            ("one name, `limit`", Some(2), true),
        ] {
            let options = ListOptions {
                single,
                resource_version,
                version_match,
                limit,
                ..ListOptions::default()
            };
            rows.push((format!("{version} | {paging}"), options));
        }
    }
    for (row, resource_version, revision) in [
        ("– | `continue`, `limit`", Newest, 9),
        ("– | inconsistent `continue`, `limit`", Newest, -1),
        ("`0` | `continue`, `limit`", Any, 9),
    ] {
        let token = ContinueToken {
            revision,
            start: "/a\0".to_owned(),
        };
        let options = ListOptions {
            resource_version,
            limit: Some(2),
            continue_token: Some(token),
            ..ListOptions::default()
        };
        rows.push((row.to_owned(), options));
    }
    rows
}

fn cell(decision: Decision) -> String {
    let wanted = match decision.wanted {
        Wanted::Newest => "newest",
        Wanted::Any => "any",
        Wanted::NotOlderThan(_) => "N or newer",
        Wanted::Exact(_) => "N",
        Wanted::Latest => "latest",
    };
    let source = match decision.source {
        Source::WatchCache => "cache",
        Source::Etcd => "etcd",
    };
    let paged = if decision.limit.is_some() { ", paged" } else { "" };
    format!("{wanted}, {source}{paged}")
}

#[test]
fn the_readme_has_the_decisions_on_lists() {
    let mut table = String::new();
    for (row, options) in rows() {
        let cells = [true, false].map(|cached| cell(Decision::of_list(cached, &options)));
        table += &format!("| {row} | {} |\n", cells.join(" | "));
    }
    assert!(README.contains(&table), "the table of the README is\n{table}");
}

#[test]
fn the_readme_has_the_decisions_on_gets() {
    use RequestedVersion::{Any, At, Newest};
    let mut table = String::new();
    for (row, version) in [("–", Newest), ("`0`", Any), ("N", At(9))] {
        let cells = [true, false].map(|cached| cell(Decision::of_get(cached, version)));
        table += &format!("| {row} | {} |\n", cells.join(" | "));
    }
    assert!(README.contains(&table), "the table of the README is\n{table}");
}
