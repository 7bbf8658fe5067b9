//! The live view: the page at `/`, its buttons, and which requests of a browser the control API answers.
//!
//! The token is in the fragment of the URL, which a browser sends to nobody; the script sends it as a header. A cookie would be
//! sent to every port of 127.0.0.1, so also to servers of other users. What the page draws is in the crate `report`.

use bytes::Bytes;
use fake_apiserver::net::is_this_machine;
use fake_apiserver::scenario::parse_rule;
use fake_apiserver::server::Server;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use report::live::{Aim, Button, Page, page};
use serde_json::{Value, json};

use super::answer::{ControlResponse, Refusal};
use crate::ctl::words;

/// Path of rules in the control API.
const RULES: &str = "/v1/rules";

/// Headers of every response: nothing is kept, guessed, or shown to another site.
const HEADERS: [(HeaderName, &str); 6] = [
    (CACHE_CONTROL, "no-store"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
    (REFERRER_POLICY, "no-referrer"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
];

/// Returns the URL of the live view, with the token.
pub(crate) fn url(control: &str, token: &str) -> String {
    format!(
        "{control}/#token={}",
        utf8_percent_encode(token, NON_ALPHANUMERIC)
    )
}

/// Returns the page for a server, with buttons for what that server can do.
pub(super) fn of(server: &Server) -> Page {
    let can = |button: &Button| {
        let body = button.body.replace("$argument", "1s");
        let rule = parse_rule(std::path::Path::new("button"), &body, server.catalog());
        button.path != RULES || rule.is_ok_and(|rule| server.can_do(&rule).is_ok())
    };
    let mut buttons = buttons();
    buttons.retain(can);
    page(&buttons)
}

/// Returns the response with the page.
pub(super) fn answer(page: &Page) -> ControlResponse {
    let mut answer = Response::new(Full::new(Bytes::from(page.html.clone())).boxed_unsync());
    *answer.status_mut() = StatusCode::OK;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    let policy = HeaderValue::try_from(&page.policy).expect("hashes and words are visible ASCII");
    headers.insert(CONTENT_SECURITY_POLICY, policy);
    answer
}

/// Adds the headers that every response has.
pub(super) fn secured(mut answer: ControlResponse) -> ControlResponse {
    for (name, value) in HEADERS {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    answer
}

/// Checks that a request is for this machine by a name that nobody else resolves, and from no page of another origin.
///
/// # Errors
/// 421 for another Host, 403 for another Origin. `shows_page`: a link to the page may be on any other.
pub(super) fn from_here(headers: &HeaderMap, shows_page: bool) -> Result<(), Refusal> {
    let text = |name: &HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    // HTTP/1.0 needs no Host, and no browser uses it.
    let host = text(&HOST);
    if let Some(host) = host.filter(|host| !is_this_machine(host)) {
        return Err(
            Refusal::new(421, format!("the control API is not called {host:?}"))
                .hint("use localhost or 127.0.0.1"),
        );
    }
    let own = host.map(|host| format!("http://{host}"));
    let is_foreign = text(&ORIGIN).is_some_and(|origin| Some(origin) != own.as_deref());
    let site = text(&HeaderName::from_static("sec-fetch-site"));
    let is_cross = site.is_some_and(|site| !matches!(site, "same-origin" | "none"));
    if is_foreign || (is_cross && !shows_page) {
        return Err(
            Refusal::new(403, "a page of another origin may not use the control API")
                .hint("open the URL that `--ui` prints"),
        );
    }
    Ok(())
}

fn buttons() -> Vec<Button> {
    let on_watches = |verb, words, action: Value| Button {
        verb,
        words,
        aim: Aim::Watches,
        path: RULES,
        body: json!({ "do": action }).to_string(),
        argument: None,
    };
    let on_caches = |verb, words, action: &str, argument: Option<(&'static str, &'static str)>| Button {
        verb,
        words,
        aim: Aim::Caches,
        path: RULES,
        body: json!({ "do": { action: argument.map(|_| "$argument") } }).to_string(),
        argument,
    };
    vec![
        on_watches(
            "expire",
            "Sends 410 Expired as an event and ends the watch, as after a compaction. A correct client lists again.",
            words::expired_event(),
        ),
        on_watches(
            "cut",
            "Closes the connection in the middle of the response. A correct client watches again from its last version.",
            json!({ "end": words::How::Fin.word() }),
        ),
        on_watches(
            "stall",
            "Sends nothing more, and leaves the connection open. A correct client gives up after a time of its choice.",
            json!({ "end": "stall" }),
        ),
        on_watches(
            "bookmark",
            "Sends a bookmark with the latest version. A correct client resumes from there.",
            words::bookmark(None),
        ),
        on_caches(
            "freeze",
            "Stops the watch cache: watches and lists from it show the state of now, and no later write, until it is thawed.",
            "freeze_watch_cache",
            None,
        ),
        on_caches(
            "lag",
            "Delays the watch cache: watches and lists from it show what was written this long ago.",
            "lag_watch_cache",
            Some(("delay", "2s")),
        ),
        on_caches(
            "thaw",
            "Ends freeze and lag: the watch cache catches up at once.",
            "thaw_watch_cache",
            None,
        ),
        Button {
            verb: "compact",
            words: "Compacts the store: older versions and continue tokens expire. Open watches go on.",
            aim: Aim::Server,
            path: RULES,
            body: json!({ "do": "compact" }).to_string(),
            argument: None,
        },
        Button {
            verb: "reset",
            words: "Removes all rules and delays, and restores the initial objects by normal writes. Watches stay open.",
            aim: Aim::Server,
            path: "/v1/reset",
            body: String::new(),
            argument: None,
        },
    ]
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::program(&[("host", "127.0.0.1:4000")], 200)]
    #[case::without_host(&[], 200)]
    #[case::by_name(&[("host", "localhost:4000")], 200)]
    #[case::ipv6(&[("host", "[::1]:4000")], 200)]
    #[case::its_page(&[("host", "127.0.0.1:4000"), ("origin", "http://127.0.0.1:4000"), ("sec-fetch-site", "same-origin")], 200)]
    #[case::rebound(&[("host", "evil.example:4000")], 421)]
    #[case::looks_local(&[("host", "127.0.0.1.evil.example")], 421)]
    #[case::other_port(&[("host", "127.0.0.1:4000"), ("origin", "http://127.0.0.1:3000")], 403)]
    #[case::other_name(&[("host", "127.0.0.1:4000"), ("origin", "http://localhost:4000")], 403)]
    #[case::other_site(&[("host", "127.0.0.1:4000"), ("origin", "https://evil.example")], 403)]
    #[case::sandboxed(&[("host", "127.0.0.1:4000"), ("origin", "null")], 403)]
    #[case::same_site(&[("host", "127.0.0.1:4000"), ("sec-fetch-site", "same-site")], 403)]
    #[case::cross_site(&[("host", "127.0.0.1:4000"), ("sec-fetch-site", "cross-site")], 403)]
    fn requests_of_other_origins_are_refused(#[case] sent: &[(&str, &str)], #[case] status: u16) {
        let mut headers = HeaderMap::new();
        for (name, value) in sent {
            let name: HeaderName = name.parse().unwrap();
            headers.insert(name, value.parse().unwrap());
        }
        let checked = from_here(&headers, false);
        assert_eq!(
            checked.map_or_else(|refusal| refusal.into_answer().status().as_u16(), |()| 200),
            status
        );
    }

    #[test]
    fn every_button_is_a_rule() {
        let server = Server::standalone(fake_apiserver::scenario::ServerSettings::default(), 0);
        let page = of(&server);
        for verb in buttons().iter().map(|button| button.verb) {
            assert!(page.html.contains(&format!("data-verb=\"{verb}\"")), "{verb}");
        }
    }

    #[test]
    fn before_an_upstream_there_is_no_button_that_only_the_model_can_do() {
        let settings = fake_apiserver::upstream::Settings {
            token: "t".to_owned(),
            lends: fake_apiserver::upstream::Lends::Nothing,
            may_write: false,
        };
        let page = of(&Server::forwarding(settings, 0));
        let has = |verb: &str| page.html.contains(&format!("data-verb=\"{verb}\""));
        assert!(has("expire") && has("freeze") && has("reset") && !has("compact"));
    }

    #[test]
    fn a_token_is_escaped() {
        assert_eq!(
            url("http://127.0.0.1:1", "a&b#c"),
            "http://127.0.0.1:1/#token=a%26b%23c"
        );
    }
}
