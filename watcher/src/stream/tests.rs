//! The stream over a real `kube_client::Client` with a scripted service, under paused time.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::task::Poll;

use bytes::Bytes;
use futures::StreamExt;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::client::Body;
use kube_client::{Api, Client};
use rstest::rstest;

use super::*;

/// The response to the next request.
#[derive(Clone)]
enum Reply {
    /// Status, `Retry-After`, body.
    Whole(u16, Option<&'static str>, String),
    /// 200, chunks, then silence.
    Hold(Vec<String>),
    /// Status, `Retry-After`, start of a body, then silence.
    Stall(u16, &'static str, String),
    /// 200, chunks, then a broken connection.
    Cut(Vec<String>),
    /// No response head.
    Never,
}

fn ok(body: impl Into<String>) -> Reply {
    Reply::Whole(200, None, body.into())
}

fn list(rv: &str, items: &[&str]) -> Reply {
    page(rv, "", items)
}

fn page(rv: &str, token: &str, items: &[&str]) -> Reply {
    let items: Vec<String> = items.iter().map(|item| object(item)).collect();
    ok(format!(
        r#"{{"kind":"ConfigMapList","apiVersion":"v1","metadata":{{"resourceVersion":"{rv}","continue":"{token}"}},"items":[{}]}}"#,
        items.join(",")
    ))
}

/// `name@rv`
fn object(item: &str) -> String {
    let (name, rv) = item.split_once('@').unwrap();
    format!(r#"{{"metadata":{{"name":"{name}","namespace":"d","uid":"u-{name}","resourceVersion":"{rv}"}}}}"#)
}

fn event(kind: &str, item: &str) -> String {
    format!("{{\"type\":\"{kind}\",\"object\":{}}}\n", object(item))
}

/// Requests: time and query.
#[derive(Default)]
struct Log(Mutex<Vec<(Duration, String)>>);

fn client(replies: Vec<Reply>, log: Arc<Log>) -> Client {
    let replies = Arc::new(Mutex::new(VecDeque::from(replies)));
    #[expect(clippy::disallowed_methods, reason = "paused time")]
    let started = Instant::now();
    let service = tower::service_fn(move |request: Request<Body>| {
        #[expect(clippy::disallowed_methods, reason = "paused time")]
        let at = Instant::now().duration_since(started);
        log.0
            .lock()
            .unwrap()
            .push((at, request.uri().query().unwrap_or_default().to_owned()));
        // The last reply is repeated.
        let mut replies = replies.lock().unwrap();
        let reply = if replies.len() > 1 {
            replies.pop_front()
        } else {
            replies.front().cloned()
        };
        async move { Ok::<_, Infallible>(respond(reply.unwrap()).await) }
    });
    Client::new(service, "d")
}

async fn respond(reply: Reply) -> Response<StreamBody<futures::stream::BoxStream<'static, FrameResult>>> {
    let chunks = |chunks: Vec<String>| {
        futures::stream::iter(
            chunks
                .into_iter()
                .map(|chunk| Ok(Frame::data(Bytes::from(chunk)))),
        )
    };
    let (status, retry_after, body) = match reply {
        Reply::Whole(status, retry_after, body) => (status, retry_after, chunks(vec![body]).boxed()),
        Reply::Hold(body) => (200, None, chunks(body).chain(futures::stream::pending()).boxed()),
        Reply::Stall(status, retry_after, body) => {
            let silent = chunks(vec![body]).chain(futures::stream::pending());
            (status, Some(retry_after), silent.boxed())
        }
        Reply::Cut(body) => {
            let cut = futures::stream::once(async { Err(std::io::Error::other("cut")) });
            (200, None, chunks(body).chain(cut).boxed())
        }
        Reply::Never => futures::future::pending().await,
    };
    let mut response = Response::builder().status(status);
    if let Some(retry_after) = retry_after {
        response = response.header("retry-after", retry_after);
    }
    response.body(StreamBody::new(body)).unwrap()
}

type FrameResult = Result<Frame<Bytes>, std::io::Error>;

struct Run {
    sent: Vec<(Duration, String)>,
    received: Vec<String>,
}

/// Runs a watcher for a number of virtual seconds.
async fn run(replies: Vec<Reply>, config: Config, seconds: u64) -> Run {
    let log = Arc::new(Log::default());
    let api: Api<ConfigMap> = Api::namespaced(client(replies, log.clone()), "d");
    let mut events = Box::pin(watcher(api, config.seed(1)));
    let mut received = Vec::new();
    let until = tokio::time::timeout(Duration::from_secs(seconds), async {
        while let Some(event) = events.next().await {
            received.push(match event {
                Ok(event) => event.to_string(),
                Err(error) => format!("! {error}"),
            });
        }
    });
    assert!(until.await.is_err(), "a watcher never ends");
    drop(events);
    let sent = std::mem::take(&mut *log.0.lock().unwrap());
    Run { sent, received }
}

impl Run {
    /// Returns the requests in short form: `L`, `L(token)`, `W(rv)`, `S`.
    fn requests(&self) -> Vec<String> {
        self.sent
            .iter()
            .map(|(_, query)| {
                let get = |name: &str| {
                    query
                        .split('&')
                        .find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
                        .unwrap_or_default()
                };
                match (
                    query.contains("sendInitialEvents"),
                    query.contains("watch=true"),
                    get("continue"),
                ) {
                    (true, ..) => "S".to_owned(),
                    (false, true, _) => format!("W({})", get("resourceVersion")),
                    (false, false, "") => "L".to_owned(),
                    (false, false, token) => format!("L({token})"),
                }
            })
            .collect()
    }
}

#[tokio::test(start_paused = true)]
async fn pages_then_a_watch_that_resumes_after_its_last_event() {
    let run = run(
        vec![
            page("10", "t1", &["a@5"]),
            page("10", "", &["b@6"]),
            ok(event("MODIFIED", "a@11") + &event("DELETED", "b@12")),
            Reply::Hold(vec![]),
        ],
        Config::default(),
        60,
    )
    .await;
    assert_eq!(run.requests(), ["L", "L(t1)", "W(10)", "W(12)"]);
    assert_eq!(
        run.received,
        [
            "Init",
            "InitApply(a)",
            "InitApply(b)",
            "InitDone",
            "Apply(a)",
            "Delete(b)"
        ],
    );
}

#[tokio::test(start_paused = true)]
async fn a_truncated_event_is_not_emitted_and_is_received_again() {
    let torn = event("MODIFIED", "a@12");
    let run = run(
        vec![
            list("10", &["a@5"]),
            Reply::Cut(vec![event("MODIFIED", "a@11"), torn[..torn.len() / 2].to_owned()]),
            Reply::Hold(vec![torn]),
        ],
        Config::default(),
        60,
    )
    .await;
    assert_eq!(run.requests(), ["L", "W(10)", "W(11)"]);
    assert_eq!(
        run.received,
        ["Init", "InitApply(a)", "InitDone", "Apply(a)", "Apply(a)"]
    );
}

#[rstest]
#[case::json(r#"{"kind":"Status","status":"Failure","reason":"Expired","code":410}"#)]
#[case::text("gone")]
#[case::empty("")]
#[case::other_json(r#"{"error":"gone"}"#)]
#[tokio::test(start_paused = true)]
async fn http_410_at_the_start_of_a_watch_causes_a_relist(#[case] body: &str) {
    let run = run(
        vec![
            list("10", &["a@5"]),
            Reply::Whole(410, None, body.to_owned()),
            list("50", &["b@6"]),
            Reply::Hold(vec![]),
        ],
        Config::default(),
        60,
    )
    .await;
    assert_eq!(run.requests(), ["L", "W(10)", "L", "W(50)"]);
    assert_eq!(
        run.received,
        [
            "Init",
            "InitApply(a)",
            "InitDone",
            "Init",
            "InitApply(b)",
            "InitDone"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_waited_for() {
    let run = run(
        vec![
            Reply::Whole(429, Some("7"), String::new()),
            list("10", &[]),
            Reply::Whole(503, Some("9"), "<html>".to_owned()),
            Reply::Hold(vec![]),
        ],
        Config::default(),
        60,
    )
    .await;
    assert_eq!(run.requests(), ["L", "L", "W(10)", "W(10)"]);
    assert!(run.sent[1].0 - run.sent[0].0 >= Duration::from_secs(7));
    assert!(run.sent[3].0 - run.sent[2].0 >= Duration::from_secs(9));
}

#[tokio::test(start_paused = true)]
async fn a_list_without_response_times_out() {
    let run = run(
        vec![Reply::Never, list("10", &[]), Reply::Hold(vec![])],
        Config::default(),
        120,
    )
    .await;
    assert_eq!(run.requests(), ["L", "L", "W(10)"]);
    assert_eq!(run.received[0], "! LIST was given up after 65s of silence");
}

#[tokio::test(start_paused = true)]
async fn a_stalled_list_body_times_out() {
    let run = run(
        vec![
            Reply::Hold(vec![r#"{"kind":"#.to_owned()]),
            list("10", &[]),
            Reply::Hold(vec![]),
        ],
        Config::default(),
        120,
    )
    .await;
    assert_eq!(run.requests(), ["L", "L", "W(10)"]);
}

#[tokio::test(start_paused = true)]
async fn a_silent_watch_times_out_and_resumes() {
    let run = run(
        vec![list("10", &[]), Reply::Hold(vec![])],
        Config::default().timeout(20),
        100,
    )
    .await;
    assert_eq!(run.requests(), ["L", "W(10)", "W(10)", "W(10)"]);
    // 20 s, the margin of 15 s, and an initial delay.
    let gap = run.sent[2].0 - run.sent[1].0;
    assert!(
        gap > Duration::from_millis(35_800) && gap < Duration::from_millis(36_700),
        "{gap:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn watches_that_end_immediately_back_off_and_relist() {
    let run = run(vec![list("10", &[]), ok("")], Config::default(), 60).await;
    let requests = run.requests();
    assert!(requests.len() < 12, "{requests:?}");
    assert_eq!(requests[..5], ["L", "W(10)", "W(10)", "W(10)", "L"]);
}

#[tokio::test(start_paused = true)]
async fn a_rejected_streaming_list_falls_back() {
    let run = run(
        vec![
            Reply::Whole(422, None, "{}".to_owned()),
            list("10", &["a@5"]),
            Reply::Hold(vec![]),
        ],
        Config::default().streaming_lists(),
        60,
    )
    .await;
    assert_eq!(run.requests(), ["S", "L", "W(10)"]);
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_continues_as_a_watch() {
    let marker = r#"{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"20","annotations":{"k8s.io/initial-events-end":"true"}}}}"#;
    let run = run(
        vec![Reply::Hold(vec![
            event("ADDED", "a@5"),
            event("ADDED", "b@6"),
            event("DELETED", "a@7"),
            format!("{marker}\n"),
            event("MODIFIED", "b@21"),
        ])],
        Config::default().streaming_lists(),
        30,
    )
    .await;
    assert_eq!(run.requests(), ["S"]);
    assert_eq!(run.received, ["Init", "InitApply(b)", "InitDone", "Apply(b)"]);
}

#[tokio::test(start_paused = true)]
async fn a_refused_connection_does_not_relist() {
    let log = Arc::new(Log::default());
    let counted = log.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        counted.0.lock().unwrap().push((
            Duration::ZERO,
            request.uri().query().unwrap_or_default().to_owned(),
        ));
        let is_watch = request.uri().query().unwrap_or_default().contains("watch=true");
        async move {
            if is_watch {
                return Err(std::io::Error::from(std::io::ErrorKind::ConnectionRefused));
            }
            Ok(respond(list("10", &[])).await)
        }
    });
    let api: Api<ConfigMap> = Api::namespaced(Client::new(service, "d"), "d");
    let events = watcher(api, Config::default().seed(1)).for_each(async |_| ());
    let _ = tokio::time::timeout(Duration::from_secs(60), events).await;
    let sent = log.0.lock().unwrap();
    assert_eq!(
        sent.iter()
            .filter(|(_, query)| !query.contains("watch=true"))
            .count(),
        1
    );
    assert!((4..10).contains(&sent.len()), "{}", sent.len());
}

#[tokio::test(start_paused = true)]
async fn the_next_page_is_requested_while_this_one_is_consumed() {
    let log = Arc::new(Log::default());
    let replies = vec![
        page("10", "t1", &["a@1", "b@2", "c@3"]),
        list("10", &["d@4"]),
        Reply::Hold(vec![]),
    ];
    let api: Api<ConfigMap> = Api::namespaced(client(replies, log.clone()), "d");
    let mut events = Box::pin(watcher(api, Config::default().seed(1)));
    for _ in 0..3 {
        // The consumer has not seen the whole first page yet.
        events.next().await.unwrap().unwrap();
        tokio::time::advance(Duration::from_millis(10)).await;
    }
    assert!(
        log.0.lock().unwrap().len() >= 2,
        "a slow consumer lets the continue token age"
    );
}

#[tokio::test(start_paused = true)]
async fn an_absent_object_is_none() {
    let replies = vec![
        list("10", &[]),
        Reply::Hold(vec![
            event("ADDED", "a@11"),
            event("ADDED", "other@12"),
            event("DELETED", "a@13"),
        ]),
    ];
    let api: Api<ConfigMap> = Api::namespaced(client(replies, Arc::default()), "d");
    let received: Vec<bool> = watch_object(api, "a")
        .take(3)
        .map(|object| object.unwrap().is_some())
        .collect()
        .await;
    assert_eq!(received, [false, true, false]);
}

#[tokio::test(start_paused = true)]
async fn dropping_the_stream_drops_the_request() {
    let dropped = Arc::new(Mutex::new(false));
    struct OnDrop(Arc<Mutex<bool>>);
    impl Drop for OnDrop {
        fn drop(&mut self) {
            *self.0.lock().unwrap() = true;
        }
    }
    let guard = Mutex::new(Some(OnDrop(dropped.clone())));
    let service = tower::service_fn(move |_: Request<Body>| {
        let guard = guard.lock().unwrap().take();
        let body = futures::stream::poll_fn(move |_| -> Poll<Option<FrameResult>> {
            let _held = &guard;
            Poll::Pending
        });
        async move { Ok::<_, Infallible>(Response::new(StreamBody::new(body))) }
    });
    let api: Api<ConfigMap> = Api::namespaced(Client::new(service, "d"), "d");
    let mut events = Box::pin(watcher(api, Config::default().seed(1)));
    let _ = tokio::time::timeout(Duration::from_secs(1), events.next()).await;
    assert!(!*dropped.lock().unwrap());
    drop(events);
    assert!(*dropped.lock().unwrap());
}

#[test]
fn the_stream_is_send_and_static() {
    fn check<S: Stream + Send + 'static>(_: impl FnOnce(Api<ConfigMap>) -> S) {}
    check(|api| watcher(api, Config::default()));
    check(|api| metadata_watcher(api, Config::default()));
    check(|api| watch_object(api, "a"));
}

#[rstest]
#[case::shorter_than_the_wait_for_the_body(Duration::from_secs(2))]
#[case::longer(Duration::from_secs(20))]
#[tokio::test(start_paused = true)]
async fn retry_after_survives_a_body_that_stalls(#[case] idle: Duration) {
    let run = run(
        vec![
            list("10", &[]),
            Reply::Stall(503, "60", r#"{"kind":"Sta"#.to_owned()),
            Reply::Hold(vec![]),
        ],
        Config::default().idle_timeout(idle),
        66,
    )
    .await;
    assert_eq!(run.requests()[..3], ["L", "W(10)", "W(10)"]);
    assert!(run.sent[2].0 - run.sent[1].0 >= Duration::from_secs(60));
}

/// Consumes events, taking `busy` for each, until the given time is over.
async fn consume(replies: Vec<Reply>, config: Config, busy: Duration, seconds: u64) -> Run {
    let log = Arc::new(Log::default());
    let api: Api<ConfigMap> = Api::namespaced(client(replies, log.clone()), "d");
    let mut events = Box::pin(watcher(api, config.seed(1)));
    let mut received = Vec::new();
    let consumed = async {
        while let Some(event) = events.next().await {
            received.push(match event {
                Ok(event) => event.to_string(),
                Err(error) => format!("! {error}"),
            });
            tokio::time::advance(busy).await;
        }
    };
    assert!(
        tokio::time::timeout(Duration::from_secs(seconds), consumed)
            .await
            .is_err()
    );
    let sent = std::mem::take(&mut *log.0.lock().unwrap());
    Run { sent, received }
}

#[tokio::test(start_paused = true)]
async fn a_consumer_slower_than_every_timeout_gets_no_error() {
    let run = consume(
        vec![
            page("10", "t1", &["a@1", "b@2", "c@3"]),
            list("10", &["d@4"]),
            Reply::Hold(vec![event("MODIFIED", "a@11"), event("MODIFIED", "b@12")]),
        ],
        Config::default().idle_timeout(Duration::from_secs(10)),
        Duration::from_secs(100),
        805,
    )
    .await;
    assert_eq!(run.requests(), ["L", "L(t1)", "W(10)"]);
    assert_eq!(
        run.received,
        [
            "Init",
            "InitApply(a)",
            "InitApply(b)",
            "InitApply(c)",
            "InitApply(d)",
            "InitDone",
            "Apply(a)",
            "Apply(b)"
        ]
    );
}

#[tokio::test(start_paused = true)]
#[expect(clippy::disallowed_methods, reason = "paused time")]
async fn a_request_is_sent_while_the_consumer_is_busy() {
    let sent = Arc::new(Mutex::new(Vec::new()));
    let log = sent.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let log = log.clone();
        async move {
            // Sending takes a few polls, e.g. for a connection and a token.
            tokio::time::sleep(Duration::from_millis(5)).await;
            let query = request.uri().query().unwrap_or_default();
            let is_first = !query.contains("continue=");
            log.lock().unwrap().push(query.to_owned());
            let reply = if is_first {
                page("10", "t1", &["a@1", "b@2"])
            } else {
                Reply::Never
            };
            Ok::<_, Infallible>(respond(reply).await)
        }
    });
    let api: Api<ConfigMap> = Api::namespaced(Client::new(service, "d"), "d");
    let mut events = Box::pin(watcher(api, Config::default().seed(1)));
    for _ in 0..2 {
        events.next().await.unwrap().unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    events.next().await.unwrap().unwrap();
    // The whole page was received or read, and the stream is not polled again.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let sent = sent.lock().unwrap();
    assert_eq!(sent.len(), 2, "{sent:?}");
}
