//! Clients that do not read responses.

use e2e::attacks::{fill, unread_lists, windowless_lists};

use crate::{MIB, holds, metric, server};

const LIST: &str = "/api/v1/configmaps";

#[test]
fn long_lists_are_made_while_they_leave_in_every_style() {
    let server = server();
    fill(server.address(), 40, 250_000);
    let table = "application/json;as=Table;g=meta.k8s.io;v=v1";
    let readers = [
        unread_lists(server.address(), 8, LIST, "application/json"),
        unread_lists(server.address(), 8, LIST, "application/yaml"),
        unread_lists(
            server.address(),
            8,
            &format!("{LIST}?pretty=true"),
            "application/json",
        ),
        unread_lists(
            server.address(),
            8,
            &format!("{LIST}?includeObject=Object"),
            table,
        ),
    ];
    // As whole bodies they would take 10 MiB each, 320 together.
    holds(&server, 220 * MIB);
    assert!(metric(&server, "answers") < 64.0, "{}", server.ctl(&["status"]));
    drop(readers);
}

#[test]
fn streams_without_a_window_share_what_answers_may_take() {
    let server = server();
    fill(server.address(), 40, 250_000);
    let reader = windowless_lists(server.address(), 60, LIST);
    // As whole bodies they would take 600 MiB.
    holds(&server, 300 * MIB);
    assert!(metric(&server, "answers") < 130.0, "{}", server.ctl(&["status"]));
    drop(reader);
}
