//! Attacks on the promises of the proxy: it lends nobody its rights, is reached by nobody else, and keeps credentials to itself.

use rstest::rstest;

use crate::running::{Running, UPSTREAM_TOKEN};

/// What the upstream answers to its administrator only.
const SECRETS: &str = "/api/v1/secrets";

fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

#[tokio::test]
async fn a_request_without_credentials_gets_nothing() {
    let upstream = Running::upstream();
    let proxy = Running::proxy(&upstream, &["--as-me"]);
    for path in ["/version", "/healthz", "/api", SECRETS] {
        let (status, _, text) = proxy.send("GET", path, &[]).await;
        assert_eq!(status, 401, "{path}: {text}");
    }
    let (status, _, _) = proxy
        .send("GET", SECRETS, &[("authorization", &bearer(&proxy.token()))])
        .await;
    assert_eq!(status, 200, "the token is what was missing");
}

#[tokio::test]
async fn nothing_is_lent_without_being_asked_for() {
    let upstream = Running::upstream();
    let proxy = Running::proxy(&upstream, &[]);
    let (status, _, text) = proxy
        .send("GET", "/version", &[("authorization", &bearer(&proxy.token()))])
        .await;
    assert_eq!(status, 403, "{text}");
    for choice in ["your own credentials", "--as USER", "--as-me"] {
        assert!(text.contains(choice), "{choice}: {text}");
    }
    // The client's own: the upstream decides.
    for (token, expected) in [
        (UPSTREAM_TOKEN, 200),
        ("token-of-the-limited", 403),
        ("unknown", 401),
    ] {
        let (status, _, text) = proxy
            .send("GET", SECRETS, &[("authorization", &bearer(token))])
            .await;
        assert_eq!(status, expected, "{token}: {text}");
    }
}

#[tokio::test]
async fn an_impersonated_user_has_its_own_rights() {
    let upstream = Running::upstream();
    let proxy = Running::proxy(&upstream, &["--as", "mallory"]);
    let (status, _, text) = proxy
        .send("GET", SECRETS, &[("authorization", &bearer(&proxy.token()))])
        .await;
    assert_eq!(status, 403);
    assert!(
        text.contains(r#"User \"mallory\" cannot list resource \"secrets\""#),
        "{text}"
    );
    let admin = Running::proxy(&upstream, &["--as", "mallory", "--as-group", "system:masters"]);
    let (status, _, text) = admin
        .send("GET", SECRETS, &[("authorization", &bearer(&admin.token()))])
        .await;
    assert_eq!(status, 200, "{text}");
}

#[rstest]
#[case::user(&[("Impersonate-User", "admin")], 403)]
#[case::group(&[("Impersonate-Group", "system:masters")], 403)]
#[case::uid(&[("impersonate-uid", "0")], 403)]
#[case::extra(&[("Impersonate-Extra-Scopes", "all")], 403)]
#[case::front_proxy(&[("X-Remote-User", "admin"), ("X-Remote-Group", "system:masters")], 403)]
#[case::dropped_on_the_way(&[("Impersonate-User", "limited"), ("Connection", "Impersonate-User")], 400)]
#[case::dropped_token(&[("Connection", "close, authorization")], 400)]
#[case::second_token(&[("Authorization", "Bearer token-of-the-limited")], 400)]
#[tokio::test]
async fn no_header_gains_rights(#[case] headers: &[(&str, &str)], #[case] expected: u16) {
    let upstream = Running::upstream();
    for lent in [vec!["--as", "mallory"], vec!["--as-me"]] {
        let proxy = Running::proxy(&upstream, &lent);
        let token = bearer(&proxy.token());
        let all = [&[("authorization", token.as_str())], headers].concat();
        let (status, _, text) = proxy.send("GET", SECRETS, &all).await;
        assert_eq!(status, expected, "{lent:?}: {text}");
    }
}

#[rstest]
#[case::rebound("GET", &[("host", "attacker.example")], 421)]
#[case::rebound_with_port("GET", &[("host", "attacker.example:443")], 421)]
#[case::page_that_writes("POST", &[("origin", "https://attacker.example")], 403)]
#[case::page_that_deletes("DELETE", &[("sec-fetch-site", "cross-site")], 403)]
#[case::page_with_a_web_socket("GET", &[("origin", "https://attacker.example"), ("connection", "Upgrade"), ("upgrade", "websocket")], 403)]
#[tokio::test]
async fn a_web_page_gets_nothing(
    #[case] method: &str,
    #[case] headers: &[(&str, &str)],
    #[case] expected: u16,
) {
    let upstream = Running::upstream();
    let proxy = Running::proxy(&upstream, &["--as-me"]);
    // Even with the token, which no page has.
    let token = bearer(&proxy.token());
    let all = [&[("authorization", token.as_str())], headers].concat();
    let (status, _, text) = proxy
        .send(method, "/api/v1/namespaces/default/configmaps", &all)
        .await;
    assert_eq!(status, expected, "{text}");
    assert!(!text.contains("--token"), "a proxy has one already: {text}");
}

#[tokio::test]
async fn credentials_are_in_no_trace_log_or_verdict() {
    let upstream = Running::upstream();
    let proxy = Running::proxy(&upstream, &["--as-me"]);
    let (token, own) = (proxy.token(), "credentials-of-a-client");
    for authorization in [bearer(&token), bearer(own), format!("Basic {own}")] {
        let headers = [
            ("authorization", authorization.as_str()),
            ("cookie", own),
            ("proxy-authorization", own),
        ];
        proxy.send("GET", SECRETS, &headers).await;
        proxy
            .send("GET", "/api/v1/namespaces/default/secrets/none", &headers)
            .await;
    }
    let protocol = format!("base64url.bearer.authorization.k8s.io.{own}");
    let headers = [
        ("sec-websocket-protocol", protocol.as_str()),
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
    ];
    proxy
        .send("GET", "/api/v1/namespaces/default/pods/p/exec", &headers)
        .await;
    let seen = [
        proxy.steer(&["trace"]),
        proxy.steer(&["trace", "--format", "json"]),
        proxy.steer(&["status"]),
        proxy.steer(&["streams"]),
        proxy.steer(&["verdict"]),
    ];
    let ended = proxy.stop();
    let all = format!("{seen:?} {} {}", ended.verdict, ended.log);
    assert!(all.contains("/api/v1/secrets"), "{all}");
    for secret in [token.as_str(), own, UPSTREAM_TOKEN] {
        assert!(!all.contains(secret), "{secret}: {all}");
    }
}
