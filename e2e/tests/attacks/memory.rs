//! Memory that requests make the server use: history, events, and the trace.

use e2e::attacks::{fill, long_selector, neighbour, rewrite, unread_lists, write};

use crate::{MIB, holds, metric, server};

#[test]
fn versions_of_a_large_object_leave_history_and_watch_cache() {
    let server = server();
    fill(server.address(), 1, 900_000);
    rewrite(server.address(), 250);
    // The versions alone would take 225 MiB, and those in the trace as much again.
    holds(&server, 220 * MIB);
    assert!(metric(&server, "history") < 66.0, "{}", server.ctl(&["status"]));
    assert!(metric(&server, "events") < 66.0, "{}", server.ctl(&["status"]));
    let old = neighbour(
        server.address(),
        "/api/v1/configmaps?watch=1&resourceVersion=5&timeoutSeconds=1",
    );
    assert!(
        old.text.contains("Expired"),
        "{}",
        &old.text[..old.text.len().min(500)]
    );
}

#[test]
fn the_trace_carries_no_content() {
    let server = server();
    let secret = r#"{"metadata":{"name":"s"},"stringData":{"p":"c2VjcmV0IG9mIHRoZSB0ZXN0"}}"#;
    let target = "/api/v1/namespaces/default/secrets";
    assert_eq!(
        write(server.address(), "POST", target, "application/json", secret).status,
        201
    );
    let config = r#"{"metadata":{"name":"c"},"data":{"p":"nobody else reads this"}}"#;
    let target = "/api/v1/namespaces/default/configmaps";
    assert_eq!(
        write(server.address(), "POST", target, "application/json", config).status,
        201
    );
    let trace = server.ctl(&["trace", "--format", "json"]);
    assert!(trace.contains("default/s"), "the write is recorded");
    for content in ["c2VjcmV0", "YzJWamNtVjB", "nobody else reads this"] {
        assert!(!trace.contains(content), "the trace has {content}");
    }
}

#[test]
fn long_request_heads_are_recorded_in_part() {
    let server = server();
    let long = "x".repeat(100_000);
    for _ in 0..200 {
        neighbour(server.address(), &format!("/api/v1/pods?labelSelector={long}"));
    }
    assert!(metric(&server, "trace") < 4.0, "{}", server.ctl(&["status"]));
}

#[test]
fn watches_of_long_selectors_are_taken_until_they_are_too_many() {
    let server = server();
    let target = long_selector();
    assert_eq!(
        neighbour(server.address(), &format!("{target}&timeoutSeconds=-1")).status,
        200
    );
    let open = unread_lists(server.address(), 600, &target, "application/json");
    let refused = neighbour(server.address(), &target);
    assert_eq!(refused.status, 429, "{}", refused.text);
    holds(&server, 512 * MIB);
    drop(open);
}
