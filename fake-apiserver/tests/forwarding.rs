//! A server that forwards: requests go out as values, and what comes back meets the same rules, faults and trace as an answer of
//! the model.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use fake_apiserver::api::{Header, HttpRequest};
use fake_apiserver::fault::Ending;
use fake_apiserver::record::line::line;
use fake_apiserver::record::{ConnId, StreamId};
use fake_apiserver::scenario::parse_rule;
use fake_apiserver::server::{Input, Output, RuleRefused, Ruled, Server};
use fake_apiserver::upstream::{Failure, Identity, Inbound, Lends, Order, Outbound, Settings};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use rstest::rstest;

const TOKEN: &str = "token-of-the-proxy";
const CREDENTIALS: &str = "credentials-of-the-client";

/// A server, its time, and what it did for each request.
struct Proxy {
    server: Server,
    now: Duration,
    requests: u64,
}

/// What a response consists of so far.
#[derive(Debug, Default)]
struct Response {
    status: u16,
    headers: Vec<Header>,
    length: Option<u64>,
    body: Vec<u8>,
    end: Option<Ending>,
    sent: Option<Outbound>,
    pulls: usize,
}

impl Response {
    fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("text")
    }

    fn types(&self) -> Vec<&str> {
        let lines = self.text().lines();
        lines
            .map(|line| line.split('"').nth(3).expect("an event"))
            .collect()
    }
}

impl Proxy {
    fn new() -> Self {
        Self::lending(false)
    }

    fn lending(may_write: bool) -> Self {
        let settings = Settings {
            token: TOKEN.to_owned(),
            lends: Lends::ForToken,
            may_write,
        };
        Self {
            server: Server::forwarding(settings, 7),
            now: Duration::ZERO,
            requests: 0,
        }
    }

    fn rule(&mut self, text: &str) -> Result<Ruled, RuleRefused> {
        let rule = parse_rule(Path::new("rule"), text, self.server.catalog()).expect("the rule is valid");
        self.server.add_rule(self.now, rule)
    }

    /// Adds a rule that is done at once, or that stands.
    fn obey(&mut self, text: &str) {
        self.rule(text)
            .unwrap_or_else(|refused| panic!("{text}: {refused}"));
        self.tick(0);
    }

    fn ask(&mut self, method: Method, target: &str, headers: &[(&str, &str)]) -> StreamId {
        self.requests += 1;
        let stream = StreamId(self.requests);
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let request = HttpRequest {
            method,
            path: path.to_owned(),
            query: query.into(),
            headers: { headers.iter() }
                .map(|(name, value)| {
                    let name = HeaderName::try_from(*name).expect("a name");
                    (name, HeaderValue::try_from(*value).expect("a value"))
                })
                .collect(),
            body: Bytes::new(),
        };
        let conn = ConnId(1);
        self.input(Input::Request {
            stream,
            conn,
            request,
        });
        stream
    }

    fn get(&mut self, target: &str) -> StreamId {
        let authorization = format!("Bearer {TOKEN}");
        self.ask(Method::GET, target, &[("authorization", &authorization)])
    }

    fn watch(&mut self, plural: &str) -> StreamId {
        let stream = self.get(&format!(
            "/api/v1/{plural}?watch=1&resourceVersion=5&allowWatchBookmarks=true"
        ));
        self.head(stream, 200, "application/json");
        stream
    }

    /// A list whose answer has this version.
    fn list(&mut self, query: &str, version: u64) -> StreamId {
        let stream = self.get(&format!("/api/v1/pods{query}"));
        self.head(stream, 200, "application/json");
        self.data(stream, &list(version, &[]));
        self.part(stream, Inbound::End);
        stream
    }

    fn head(&mut self, stream: StreamId, status: u16, content_type: &'static str) {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static(content_type));
        self.part(stream, Inbound::Head { status, headers });
    }

    fn data(&mut self, stream: StreamId, text: &str) {
        self.part(stream, Inbound::Data(Bytes::from(text.to_owned())));
    }

    fn part(&mut self, stream: StreamId, part: Inbound) {
        self.input(Input::Upstream { stream, part });
    }

    fn tick(&mut self, ms: u64) {
        self.now += Duration::from_millis(ms);
        self.input(Input::Tick);
    }

    fn input(&mut self, input: Input) {
        self.server.handle(self.now, input);
    }

    /// Takes what the response consists of since the last call; other responses lose theirs.
    fn take(&mut self, of: StreamId) -> Response {
        let mut response = Response::default();
        while let Some(output) = self.server.poll_output() {
            match output {
                Output::Head {
                    stream,
                    status,
                    headers,
                    length,
                } if stream == of => {
                    response = Response {
                        status,
                        headers,
                        length,
                        ..response
                    };
                }
                Output::Data { stream, bytes } if stream == of => response.body.extend_from_slice(&bytes),
                Output::End { stream, how } if stream == of => response.end = Some(how),
                Output::Upstream { stream, order } if stream == of => match order {
                    Order::Send(request) => response.sent = Some(*request),
                    Order::Pull => response.pulls += 1,
                },
                Output::FlushBarrier { stream } => self.server.handle(self.now, Input::Flushed(stream)),
                Output::Head { .. }
                | Output::Data { .. }
                | Output::End { .. }
                | Output::Upstream { .. }
                | Output::UpstreamWrite { .. }
                | Output::Goaway { .. }
                | Output::Close { .. }
                | Output::Call { .. } => {}
            }
        }
        response
    }

    /// Takes the writes that were sent since the last call.
    fn writes(&mut self) -> Vec<(u64, Outbound)> {
        let mut writes = Vec::new();
        while let Some(output) = self.server.poll_output() {
            if let Output::UpstreamWrite { write, request } = output {
                writes.push((write, *request));
            }
        }
        writes
    }

    fn trace(&self) -> String {
        let lines: Vec<String> = self.server.records().iter().map(line).collect();
        lines.join("\n")
    }
}

fn object(name: &str, version: u64) -> String {
    format!(
        r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"{name}","namespace":"n","uid":"u-{name}","resourceVersion":"{version}"}},"spec":{{"secret":"content"}}}}"#
    )
}

fn event(kind: &str, name: &str, version: u64) -> String {
    format!("{{\"type\":\"{kind}\",\"object\":{}}}\n", object(name, version))
}

fn bookmark(version: u64) -> String {
    format!(
        "{{\"type\":\"BOOKMARK\",\"object\":{{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{{\"resourceVersion\":\"{version}\"}}}}}}\n"
    )
}

fn list(version: u64, names: &[&str]) -> String {
    let items: Vec<String> = names.iter().map(|name| object(name, version)).collect();
    format!(
        r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"{version}"}},"items":[{}]}}"#,
        items.join(",")
    )
}

#[test]
fn a_list_passes_as_it_is_and_is_recorded_by_its_metadata() {
    let mut proxy = Proxy::new();
    let stream = proxy.get("/api/v1/pods?limit=2");
    let asked = proxy.take(stream);
    let sent = asked.sent.expect("it goes out");
    assert_eq!(
        (sent.target.as_str(), sent.identity),
        ("/api/v1/pods?limit=2", Identity::Lent)
    );
    assert_eq!(asked.pulls, 0, "the head comes without being asked for");

    proxy.head(stream, 200, "application/json");
    assert_eq!(proxy.take(stream).pulls, 1);
    let text = list(7, &["a", "b"]);
    let (begin, rest) = text.split_at(90);
    proxy.data(stream, begin);
    let first = proxy.take(stream);
    assert_eq!(
        (first.text(), first.pulls),
        (begin, 1),
        "it is sent on while it arrives"
    );
    proxy.data(stream, rest);
    proxy.part(stream, Inbound::End);
    let last = proxy.take(stream);
    assert_eq!((last.text(), last.end), (rest, Some(Ending::Eof)));
    assert!(proxy.trace().contains("items=2"), "{}", proxy.trace());
    assert_eq!(proxy.server.revision(), 7);
}

#[test]
fn a_line_of_a_watch_leaves_when_it_is_complete() {
    let mut proxy = Proxy::new();
    let stream = proxy.watch("pods");
    let line = event("ADDED", "a", 6);
    let (begin, rest) = line.split_at(30);
    proxy.data(stream, begin);
    assert_eq!(proxy.take(stream).text(), "");
    proxy.data(stream, &format!("{rest}{}", &event("MODIFIED", "a", 7)[..9]));
    assert_eq!(proxy.take(stream).text(), line);
    proxy.part(stream, Inbound::End);
    let last = proxy.take(stream);
    assert_eq!(
        (last.text(), last.end),
        (&event("MODIFIED", "a", 7)[..9], Some(Ending::Eof))
    );
}

#[test]
fn a_client_that_does_not_read_stops_the_upstream() {
    let mut proxy = Proxy::new();
    let stream = proxy.get("/api/v1/pods");
    proxy.head(stream, 200, "application/json");
    let chunk = "x".repeat(64 * 1024);
    let mut chunks = 0;
    // No barrier is confirmed.
    loop {
        let mut pulled = false;
        while let Some(output) = proxy.server.poll_output() {
            pulled |= matches!(
                output,
                Output::Upstream {
                    order: Order::Pull,
                    ..
                }
            );
        }
        if !pulled {
            break;
        }
        chunks += 1;
        assert!(chunks < 100, "nothing bounds what is held");
        proxy.data(stream, &chunk);
    }
    assert!(chunks > 1, "a client that reads gets more than one chunk");
}

#[test]
fn credentials_and_content_are_in_no_record() {
    let mut proxy = Proxy::new();
    let own = format!("Bearer {CREDENTIALS}");
    let stream = proxy.ask(
        Method::GET,
        "/api/v1/secrets",
        &[("authorization", &own), ("cookie", CREDENTIALS)],
    );
    let sent = proxy.take(stream).sent.expect("it goes out");
    assert_eq!(sent.identity, Identity::Own);
    assert_eq!(sent.headers["authorization"], own);
    proxy.head(stream, 200, "application/json");
    proxy.data(stream, &list(7, &["a"]));
    proxy.part(stream, Inbound::End);
    let other = proxy.get("/api/v1/pods");
    assert!(
        !proxy
            .take(other)
            .sent
            .expect("it goes out")
            .headers
            .contains_key("authorization")
    );
    let records = format!("{:?}\n{}", proxy.server.records(), proxy.trace());
    for secret in [TOKEN, CREDENTIALS, "content"] {
        assert!(!records.contains(secret), "{secret} in {records}");
    }
}

#[rstest]
#[case::status("{when: {watch: next}, do: {reply: {status: 410, reason: Expired}}}", 410)]
#[case::continue_token("{when: {page: 2}, do: {reply: {status: 410, reason: Expired}}}", 410)]
#[case::rate("{when: {request: next}, do: {reply: {status: 429, retry_after: '1'}}}", 429)]
fn a_reply_needs_no_upstream(#[case] rule: &str, #[case] status: u16) {
    let mut proxy = Proxy::new();
    proxy.obey(rule);
    let query = if rule.contains("page") {
        "?limit=1&continue=abc"
    } else {
        "?watch=1&resourceVersion=5"
    };
    let stream = proxy.get(&format!("/api/v1/pods{query}"));
    let response = proxy.take(stream);
    assert_eq!((response.status, response.sent), (status, None));
    let again = proxy.get(&format!("/api/v1/pods{query}"));
    assert!(proxy.take(again).sent.is_some(), "the rule is over");
}

/// The upstream stores the write, and the client does not learn it.
#[rstest]
#[case::lost("{lose_answer: rst}", 0, Some(Ending::Rst))]
#[case::timed_out(
    "{reply: {status: 504, reason: Timeout, after_write: true}}",
    504,
    Some(Ending::Eof)
)]
fn the_answer_to_a_write_is_lost(#[case] action: &str, #[case] status: u16, #[case] end: Option<Ending>) {
    let mut proxy = Proxy::new();
    proxy.obey(&format!("{{when: {{request: next}}, do: {action}}}"));
    let authorization = format!("Bearer {TOKEN}");
    let target = "/api/v1/namespaces/default/pods";
    let stream = proxy.ask(Method::POST, target, &[("authorization", &authorization)]);
    assert!(proxy.take(stream).sent.is_some(), "it goes out");
    proxy.head(stream, 201, "application/json");
    proxy.data(stream, &object("a", 7));
    assert_eq!(
        proxy.take(stream).status,
        0,
        "nothing is sent before all of it has come"
    );
    proxy.part(stream, Inbound::End);
    let response = proxy.take(stream);
    assert_eq!((response.status, response.end), (status, end));
    assert!(!response.text().contains("Pod"), "{}", response.text());
    assert!(proxy.trace().contains("create pods/n/a@7"), "{}", proxy.trace());
}

#[rstest]
#[case::expired("{do: [{error: {code: 410, reason: Expired}}, {end: eof}]}", &["ERROR"], Some(Ending::Eof))]
#[case::cut("{do: {end: fin}}", &[], Some(Ending::Fin))]
#[case::reset("{do: {end: rst}}", &[], Some(Ending::Rst))]
#[case::stall("{do: {end: stall}}", &[], Some(Ending::Stall))]
#[case::bookmark("{do: bookmark}", &["BOOKMARK"], None)]
fn an_open_watch_is_deviated_from(#[case] rule: &str, #[case] types: &[&str], #[case] end: Option<Ending>) {
    let mut proxy = Proxy::new();
    let stream = proxy.watch("pods");
    proxy.data(stream, &event("ADDED", "a", 6));
    assert_eq!(proxy.take(stream).types(), ["ADDED"]);
    proxy.obey(rule);
    let response = proxy.take(stream);
    assert_eq!((response.types(), response.end), (types.to_vec(), end));
    proxy.data(stream, &event("MODIFIED", "a", 7));
    assert_eq!(
        proxy.take(stream).types().len(),
        usize::from(end.is_none()),
        "what follows the end is dropped"
    );
}

/// The time is that of the proxy, from the head that the upstream sent.
#[test]
fn a_watch_ends_some_time_after_its_head() {
    let mut proxy = Proxy::new();
    proxy.obey("{when: {watch: next}, do: {end_after: {time: 30s, then: fin}}}");
    let stream = proxy.watch("pods");
    proxy.data(stream, &event("ADDED", "a", 6));
    assert_eq!(proxy.take(stream).types(), ["ADDED"]);
    assert_eq!(proxy.server.poll_timeout(), Some(Duration::from_secs(30)));
    proxy.tick(30_000);
    assert_eq!(proxy.take(stream).end, Some(Ending::Fin));
    proxy.data(stream, &event("MODIFIED", "a", 7));
    assert_eq!(
        proxy.take(stream).types(),
        [""; 0],
        "what follows the end is dropped"
    );
}

#[rstest]
#[case::repeated("{repeat_event: 2}", &["ADDED", "ADDED", "BOOKMARK", "DELETED"])]
#[case::dropped("{drop_events: 1}", &["BOOKMARK", "DELETED"])]
#[case::no_bookmarks("no_bookmarks", &["ADDED", "DELETED"])]
#[case::unchanged("{end_marker: absent}", &["ADDED", "BOOKMARK", "DELETED"])]
fn events_of_a_new_watch_are_deviated_from(#[case] action: &str, #[case] types: &[&str]) {
    let mut proxy = Proxy::new();
    proxy.obey(&format!("{{when: {{watch: next}}, do: {action}}}"));
    let stream = proxy.watch("pods");
    proxy.data(
        stream,
        &(event("ADDED", "a", 6) + &bookmark(7) + &event("DELETED", "a", 8)),
    );
    assert_eq!(proxy.take(stream).types(), types);
}

#[test]
fn an_end_before_the_head_waits_for_it() {
    let mut proxy = Proxy::new();
    proxy.obey("{when: {watch: next}, do: [{error: {code: 410, reason: Expired}}, {end: eof}]}");
    let stream = proxy.get("/api/v1/pods?watch=1&resourceVersion=5");
    let asked = proxy.take(stream);
    assert!(asked.sent.is_some() && asked.status == 0);
    proxy.head(stream, 200, "application/json");
    let response = proxy.take(stream);
    assert_eq!(
        (response.status, response.types(), response.end),
        (200, vec!["ERROR"], Some(Ending::Eof))
    );

    // The upstream rejects the watch: its Status is all that the client gets.
    proxy.obey("{when: {watch: next}, do: {error: {code: 410, reason: Expired}}}");
    let stream = proxy.get("/api/v1/pods?watch=1&resourceVersion=5");
    proxy.head(stream, 403, "application/json");
    proxy.data(stream, r#"{"kind":"Status","reason":"Forbidden","code":403}"#);
    proxy.part(stream, Inbound::End);
    let response = proxy.take(stream);
    assert_eq!(
        (response.status, response.text()),
        (403, r#"{"kind":"Status","reason":"Forbidden","code":403}"#)
    );
}

#[test]
fn a_frozen_cache_delivers_nothing_until_it_thaws() {
    let mut proxy = Proxy::new();
    let (pods, nodes) = (proxy.watch("pods"), proxy.watch("nodes"));
    proxy.obey("{from: {resource: pods}, do: freeze_watch_cache}");
    proxy.data(pods, &event("ADDED", "a", 6));
    proxy.data(nodes, &event("ADDED", "b", 6));
    assert_eq!(proxy.take(pods).types().len(), 0);
    proxy.data(nodes, &event("MODIFIED", "b", 7));
    assert_eq!(
        proxy.take(nodes).types(),
        ["MODIFIED"],
        "another resource is not frozen"
    );
    proxy.obey("{do: thaw_watch_cache}");
    assert_eq!(proxy.take(pods).types(), ["ADDED"]);
}

#[test]
fn a_frozen_watch_that_ends_takes_its_events_with_it() {
    let mut proxy = Proxy::new();
    let stream = proxy.watch("pods");
    proxy.obey("{do: freeze_watch_cache}");
    proxy.data(stream, &event("ADDED", "a", 6));
    proxy.part(stream, Inbound::End);
    let response = proxy.take(stream);
    assert_eq!((response.types().len(), response.end), (0, Some(Ending::Eof)));
}

#[test]
fn a_lagging_cache_delivers_later_and_in_order() {
    let mut proxy = Proxy::new();
    let stream = proxy.watch("pods");
    proxy.obey("{do: {lag_watch_cache: 2s}}");
    proxy.data(stream, &event("ADDED", "a", 6));
    proxy.tick(500);
    proxy.data(stream, &bookmark(7));
    assert_eq!(proxy.take(stream).types().len(), 0);
    assert_eq!(proxy.server.poll_timeout(), Some(Duration::from_millis(2000)));
    proxy.tick(1500);
    assert_eq!(proxy.take(stream).types(), ["ADDED"]);
    assert_eq!(proxy.server.poll_timeout(), Some(Duration::from_millis(2500)));
    proxy.tick(500);
    assert_eq!(proxy.take(stream).types(), ["BOOKMARK"]);
}

#[test]
fn a_stale_list_is_an_older_answer_of_the_upstream() {
    let mut proxy = Proxy::new();
    proxy.list("?limit=500&resourceVersion=0", 6);
    proxy.tick(1000);
    proxy.obey("{do: freeze_watch_cache}");
    proxy.tick(1000);
    proxy.list("", 9);
    let stale = proxy.get("/api/v1/pods?limit=500&resourceVersion=0");
    let response = proxy.take(stale);
    assert_eq!(response.sent, None);
    assert_eq!(
        (response.text(), response.end),
        (list(6, &[]).as_str(), Some(Ending::Eof))
    );

    for (target, why) in [
        ("/api/v1/pods", "the latest state"),
        ("/api/v1/pods?resourceVersion=8", "a version"),
        (
            "/api/v1/pods?resourceVersion=0&labelSelector=a",
            "another selection",
        ),
        ("/api/v1/nodes?resourceVersion=0", "another resource"),
    ] {
        let stream = proxy.get(target);
        assert!(proxy.take(stream).sent.is_some(), "{why} is the upstream's");
    }
    assert!(
        proxy.trace().contains("no older answer of this list is known"),
        "{}",
        proxy.trace()
    );

    let own = format!("Bearer {CREDENTIALS}");
    let other = proxy.ask(
        Method::GET,
        "/api/v1/pods?resourceVersion=0",
        &[("authorization", &own)],
    );
    assert!(
        proxy.take(other).sent.is_some(),
        "another user gets no answer of this one"
    );

    proxy.obey("{do: thaw_watch_cache}");
    let fresh = proxy.get("/api/v1/pods?resourceVersion=0");
    assert!(proxy.take(fresh).sent.is_some());
}

#[rstest]
#[case::html(Inbound::Head { status: 200, headers: html() }, "instead of JSON")]
#[case::unreachable(Inbound::Failed(Failure::Unreachable("Connection refused".to_owned())), "Connection refused; check that the cluster is up")]
#[case::no_credentials(Inbound::Failed(Failure::NoCredentials("its exec plugin failed".to_owned())), "log in again")]
fn what_is_no_answer_of_an_apiserver_is_explained(#[case] part: Inbound, #[case] expected: &str) {
    let mut proxy = Proxy::new();
    let stream = proxy.get("/api/v1/pods");
    proxy.part(stream, part);
    let response = proxy.take(stream);
    assert_eq!((response.status, response.end), (503, Some(Ending::Eof)));
    assert!(response.text().contains(expected), "{}", response.text());
    assert!(
        response.text().contains(r#""kind":"Status""#),
        "{}",
        response.text()
    );
}

fn html() -> HeaderMap {
    HeaderMap::from_iter([(
        HeaderName::from_static("content-type"),
        HeaderValue::from_static("text/html; charset=utf-8"),
    )])
}

#[test]
fn a_list_that_breaks_off_does_not_end_as_a_complete_one() {
    let mut proxy = Proxy::new();
    let stream = proxy.get("/api/v1/pods");
    proxy.head(stream, 200, "application/json");
    proxy.data(stream, "{\"items\":[");
    proxy.part(stream, Inbound::Failed(Failure::Broken("EOF".to_owned())));
    let response = proxy.take(stream);
    assert!(!matches!(response.end, None | Some(Ending::Eof)), "{response:?}");
    assert!(
        proxy
            .trace()
            .contains("the response of the upstream ended early: EOF"),
        "{}",
        proxy.trace()
    );
}

#[test]
fn other_responses_keep_status_headers_and_length() {
    let mut proxy = Proxy::new();
    let stream = proxy.get("/api/v1/namespaces/n/pods/p/log");
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("content-type", "text/plain"),
        ("content-length", "5"),
        ("connection", "x-hop"),
        ("x-hop", "1"),
        ("date", "Thu, 01 Jan 1970 00:00:00 GMT"),
        ("warning", "299 - \"old\""),
    ] {
        headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    proxy.part(stream, Inbound::Head { status: 200, headers });
    proxy.data(stream, "hello");
    proxy.part(stream, Inbound::End);
    let response = proxy.take(stream);
    let mut names: Vec<&str> = response.headers.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["content-type", "date", "warning"]);
    assert_eq!((response.length, response.text()), (Some(5), "hello"));
}

#[test]
fn a_write_is_recorded_with_its_version() {
    let mut proxy = Proxy::new();
    let authorization = format!("Bearer {TOKEN}");
    let path = "/api/v1/namespaces/n/pods";
    let stream = proxy.ask(Method::POST, path, &[("authorization", &authorization)]);
    proxy.head(stream, 201, "application/json");
    proxy.data(stream, &object("a", 8));
    proxy.part(stream, Inbound::End);
    assert!(
        proxy.trace().contains("create n/a@8") || proxy.trace().contains("n/a@8"),
        "{}",
        proxy.trace()
    );
    assert_eq!(proxy.server.revision(), 8);
}

#[rstest]
#[case("compact", "ctl expire")]
#[case("{restore: $start}", "serve")]
#[case("{apply: {configmap: {name: c}}}", "kubectl")]
#[case("{delete: [{name: s, resource: secrets}]}", "kubectl")]
#[case("{jump_clock: {forward: 1h}}", "serve")]
#[case("clear_watch_cache", "ctl cut")]
#[case("{restart: {filling: 1s}}", "filling")]
fn what_only_the_model_can_do_is_refused_with_an_alternative(#[case] action: &str, #[case] instead: &str) {
    let mut proxy = Proxy::new();
    for rule in [
        format!("{{do: {action}}}"),
        format!("{{when: {{list: next}}, do: {action}}}"),
    ] {
        let rule = parse_rule(Path::new("rule"), &rule, proxy.server.catalog()).expect("the rule is valid");
        let refused = proxy.server.add_rule(proxy.now, rule).expect_err(action);
        assert!(
            matches!(refused, RuleRefused::NotUpstream { .. }),
            "{action}: {refused}"
        );
        assert!(refused.to_string().contains(instead), "{action}: {refused}");
        assert_eq!(proxy.server.rules(), []);
    }
}

/// Returns a head that announces the length of the body.
fn head_of(body: &str) -> Inbound {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    headers.insert("content-length", HeaderValue::from(body.len()));
    Inbound::Head { status: 200, headers }
}

#[test]
fn a_list_is_complete_with_the_bytes_that_its_head_announced() {
    let mut proxy = Proxy::new();
    let stream = proxy.get("/api/v1/pods");
    let body = list(9, &["a"]);
    proxy.part(stream, head_of(&body));
    proxy.data(stream, &body);
    assert_eq!(proxy.take(stream).end, Some(Ending::Eof), "{}", proxy.trace());
    // A client that has all bytes may leave before the upstream's end is seen.
    proxy.part(stream, Inbound::End);
    proxy.input(Input::Abandoned(stream));
    assert!(proxy.trace().contains("rv=9 items=1"), "{}", proxy.trace());
    assert!(!proxy.trace().contains("closed"), "{}", proxy.trace());
}

#[test]
fn a_slow_list_is_recorded_with_its_last_byte() {
    let mut proxy = Proxy::new();
    proxy.obey("{when: {list: next}, do: {drip: {bytes: 64, every: 1ms}}}");
    let stream = proxy.get("/api/v1/pods");
    let body = list(9, &["a"]);
    proxy.part(stream, head_of(&body));
    proxy.data(stream, &body);
    let mut sent = 0;
    while sent < body.len() {
        sent += proxy.take(stream).body.len();
        if sent < body.len() {
            assert!(!proxy.trace().contains("rv=9"), "{}", proxy.trace());
            proxy.tick(1);
        }
    }
    // The client has all bytes, and leaves.
    proxy.input(Input::Abandoned(stream));
    assert!(proxy.trace().contains("rv=9 items=1"), "{}", proxy.trace());
}

#[test]
fn writes_go_out_one_after_the_other_and_their_outcomes_are_in_the_trace() {
    let mut proxy = Proxy::lending(true);
    let rule = "{do: [{apply: {apiVersion: v1, kind: ConfigMap, metadata: {name: b, uid: x}}}, \
                {relabel: {name: a, labels: {x: null}}}, {delete: c}]}";
    let ruled = proxy.rule(rule).expect("it may write");
    assert!(
        matches!(&ruled, Ruled::Done { writes, .. } if *writes == [1, 2, 3]),
        "{ruled:?}"
    );
    proxy.tick(0);
    let mut sent = Vec::new();
    for (number, status, body) in [
        (
            1,
            201,
            r#"{"metadata":{"name":"b","namespace":"default","uid":"u","resourceVersion":"7"}}"#,
        ),
        (2, 403, r#"{"kind":"Status","message":"not you"}"#),
        (3, 502, "<html>"),
    ] {
        let mut writes = proxy.writes();
        assert_eq!(writes.len(), 1, "one at a time: {writes:?}");
        let (write, request) = writes.remove(0);
        assert_eq!((write, request.identity), (number, Identity::Lent));
        let body_sent = String::from_utf8_lossy(&request.body).into_owned();
        sent.push(format!("{} {} {body_sent}", request.method, request.target));
        // An outcome of another write is none of this.
        let outcome = Err(Failure::Unreachable("another".to_owned()));
        proxy.input(Input::UpstreamWritten { write: 9, outcome });
        let outcome = Ok((status, Bytes::from_static(body.as_bytes())));
        proxy.input(Input::UpstreamWritten { write, outcome });
    }
    assert!(
        sent[0].starts_with(
            "PATCH /api/v1/namespaces/default/configmaps/b?fieldManager=fake-apiserver&force=true {"
        ),
        "{sent:?}"
    );
    assert!(!sent[0].contains("uid"), "the server sets it: {sent:?}");
    assert_eq!(
        sent[1],
        r#"PATCH /api/v1/namespaces/default/configmaps/a?fieldManager=fake-apiserver {"metadata":{"labels":{"x":null}}}"#
    );
    assert_eq!(sent[2], "DELETE /api/v1/namespaces/default/configmaps/c ");
    assert!(proxy.writes().is_empty());
    let trace = proxy.trace();
    for part in [
        "write 1 to the upstream: configmaps default/b created",
        "write 2 to the upstream: configmaps default/a not relabeled: 403: not you",
        "write 3 to the upstream: configmaps default/c not deleted: the upstream answered with status 502, without a reason",
    ] {
        assert!(trace.contains(part), "{part}: {trace}");
    }
    assert_eq!(trace.matches("to the upstream").count(), 3, "{trace}");
}

#[rstest]
#[case::page("{when: {list: next}, do: {edit_page: {without: ['*']}}}")]
#[case::body("{when: {list: next}, do: {reply: {status: 200, unmodified: true}}}")]
#[case::object("{do: {event: {type: DELETED, object: a}}}")]
fn what_needs_the_objects_is_refused(#[case] rule: &str) {
    let mut proxy = Proxy::new();
    let Ok(parsed) = parse_rule(Path::new("rule"), rule, proxy.server.catalog()) else {
        panic!(
            "{rule} is no rule: {:?}",
            parse_rule(Path::new("rule"), rule, proxy.server.catalog())
        );
    };
    let refused = proxy.server.add_rule(proxy.now, parsed).expect_err(rule);
    assert!(
        matches!(refused, RuleRefused::NotUpstream { .. }),
        "{rule}: {refused}"
    );
}

#[test]
fn a_reset_removes_what_was_done() {
    let mut proxy = Proxy::new();
    let stream = proxy.watch("pods");
    proxy.obey("{do: freeze_watch_cache}");
    proxy.data(stream, &event("ADDED", "a", 6));
    proxy.take(stream);
    proxy.server.reset(proxy.now);
    proxy.tick(0);
    assert_eq!(proxy.take(stream).types(), ["ADDED"]);
}
