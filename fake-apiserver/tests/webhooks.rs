//! Webhooks that are served by the test over TLS: what they decide about writes, and what becomes of a write whose webhook
//! fails. What a single answer means is tested with the evaluator, in `builtin_kinds::admission_webhook`.

#![expect(clippy::unwrap_used, reason = "in a test a failure is what unwrap says")]

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use fake_apiserver::net::tls::{Authority, Protocols};
use fake_apiserver::net::{ServeOptions, Standalone, Webhooks};
use fake_apiserver::record::What;
use fake_apiserver::scenario::ServerSettings;
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1 as client;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rstest::rstest;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const HOOKS: &str = "/apis/admissionregistration.k8s.io/v1";
const VALIDATING: &str = "validatingwebhookconfigurations";
const MUTATING: &str = "mutatingwebhookconfigurations";

/// What a webhook does with the request of a review; the path selects one.
type Decide = fn(&str, &Value) -> Reaction;

enum Reaction {
    /// This response, with the uid of the review.
    Response(Value),
    /// This body.
    Body(Vec<u8>),
    /// This HTTP status and body.
    Status(u16, &'static str),
    /// None at all.
    Silence,
}

/// A webhook server with the reviews that it got.
struct Hook {
    url: String,
    authority_pem: String,
    seen: Arc<Mutex<Vec<Value>>>,
}

impl Hook {
    async fn serve(decide: Decide) -> Self {
        let authority = Authority::generate().unwrap();
        let acceptor = authority.acceptor(&[], Protocols::Http1).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&seen);
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (acceptor, noted) = (acceptor.clone(), Arc::clone(&noted));
                tokio::spawn(async move {
                    let Ok(socket) = acceptor.accept(socket).await else {
                        return;
                    };
                    let answer = service_fn(|request| reviewed(request, decide, &noted));
                    // The client closes it.
                    let _ = http1::Builder::new()
                        .serve_connection(TokioIo::new(socket), answer)
                        .await;
                });
            }
        });
        Self {
            url,
            authority_pem: authority.certificate_pem(),
            seen,
        }
    }

    fn client_config(&self, path: &str) -> Value {
        json!({ "url": format!("{}{path}", self.url), "caBundle": STANDARD.encode(&self.authority_pem) })
    }

    /// What it was asked, without what differs from run to run.
    fn seen(&self) -> Vec<Value> {
        self.seen.lock().unwrap().clone()
    }
}

async fn reviewed(
    request: Request<Incoming>,
    decide: Decide,
    noted: &Mutex<Vec<Value>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let review: Value = serde_json::from_slice(&body).unwrap();
    let asked = &review["request"];
    noted.lock().unwrap().push(json!({
        "path": path,
        "operation": asked["operation"],
        "name": asked["name"],
        "dryRun": asked["dryRun"],
    }));
    let (status, body) = match decide(&path, asked) {
        Reaction::Response(mut response) => {
            if response.get("uid").is_none() {
                response["uid"] = asked["uid"].clone();
            }
            let review = json!({
                "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response,
            });
            (200, review.to_string().into_bytes())
        }
        Reaction::Body(body) => (200, body),
        Reaction::Status(status, body) => (status, body.as_bytes().to_vec()),
        Reaction::Silence => {
            std::future::pending::<()>().await;
            (200, Vec::new())
        }
    };
    let response = Response::builder().status(status).body(Full::from(body)).unwrap();
    Ok(response)
}

fn allow() -> Reaction {
    Reaction::Response(json!({ "allowed": true }))
}

fn patch(operations: Value) -> Reaction {
    let patch = STANDARD.encode(operations.to_string());
    Reaction::Response(json!({ "allowed": true, "patchType": "JSONPatch", "patch": patch }))
}

/// A webhook configuration for the creations of ConfigMaps.
fn configuration(name: &str, client_config: &Value, more: &Value) -> Value {
    let mut hook = json!({
        "name": format!("{name}.example.com"),
        "clientConfig": client_config,
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}],
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
    });
    for (field, value) in more.as_object().into_iter().flatten() {
        hook[field] = value.clone();
    }
    json!({ "metadata": { "name": name }, "webhooks": [hook] })
}

fn map(name: &str) -> Value {
    json!({ "metadata": { "name": name }, "data": { "a": "1" } })
}

struct World {
    server: Standalone,
}

impl World {
    async fn start() -> Self {
        Self::calling(Webhooks::Local).await
    }

    async fn calling(webhooks: Webhooks) -> Self {
        let options = ServeOptions {
            webhooks,
            ..ServeOptions::default()
        };
        let server = Standalone::with_options(ServerSettings::default(), options)
            .await
            .unwrap();
        Self { server }
    }

    async fn ask(&self, method: Method, path: &str, body: &Value) -> (u16, Value) {
        let (code, _, body) = self.ask_for_all(method, path, body).await;
        (code, body)
    }

    /// Code, warnings and body.
    async fn ask_for_all(&self, method: Method, path: &str, body: &Value) -> (u16, Vec<String>, Value) {
        let host = self.server.url().trim_start_matches("http://");
        let socket = TcpStream::connect(host).await.unwrap();
        let (mut sender, connection) = client::handshake(TokioIo::new(socket)).await.unwrap();
        tokio::spawn(connection);
        let kind = match method {
            Method::PATCH => "application/merge-patch+json",
            _ => "application/json",
        };
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", host)
            .header("content-type", kind)
            .body(Full::<Bytes>::from(body))
            .unwrap();
        let response = sender.send_request(request).await.unwrap();
        let warnings = response.headers().get_all("warning").iter();
        let warnings = warnings.map(|value| value.to_str().unwrap().to_owned()).collect();
        let code = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (code, warnings, serde_json::from_slice(&body).unwrap())
    }

    async fn configure(&self, kind: &str, configuration: &Value) {
        let (code, answer) = self
            .ask(Method::POST, &format!("{HOOKS}/{kind}"), configuration)
            .await;
        assert_eq!(code, 201, "{answer}");
    }

    /// Creates a ConfigMap. Code, and its message or data.
    async fn create(&self, name: &str) -> (u16, Value) {
        let (code, answer) = self.ask(Method::POST, MAPS, &map(name)).await;
        let outcome = match code {
            201 => answer["data"].clone(),
            _ => answer["message"].clone(),
        };
        (code, outcome)
    }

    fn calls(&self) -> Vec<(String, String)> {
        self.server.edge().read_records(0, |records| {
            let calls = records.iter().filter_map(|record| {
                let What::Webhook { webhook, verdict, .. } = &record.what else {
                    return None;
                };
                Some((webhook.clone(), verdict.clone()))
            });
            calls.collect()
        })
    }
}

#[tokio::test]
async fn a_denial_is_the_answer() {
    let hook = Hook::serve(|_, _| {
        Reaction::Response(json!({
            "allowed": false, "status": {"code": 403, "reason": "Forbidden", "message": "not today"}, "warnings": ["careful"],
        }))
    })
    .await;
    let world = World::start().await;
    world
        .configure(
            VALIDATING,
            &configuration("deny", &hook.client_config("/deny"), &json!({})),
        )
        .await;
    let (code, warnings, answer) = world.ask_for_all(Method::POST, MAPS, &map("a")).await;
    assert_eq!(code, 403);
    assert_eq!(answer["reason"], "Forbidden");
    assert_eq!(
        answer["message"],
        "admission webhook \"deny.example.com\" denied the request: not today"
    );
    assert_eq!(warnings, ["299 - \"careful\""]);
    assert_eq!(
        world.ask(Method::GET, &format!("{MAPS}/a"), &Value::Null).await.0,
        404
    );
    let asked = json!({"path": "/deny", "operation": "CREATE", "name": "a", "dryRun": false});
    assert_eq!(hook.seen(), [asked]);
    assert_eq!(
        world.calls(),
        [("deny.example.com".to_owned(), "denied".to_owned())]
    );
}

#[tokio::test]
async fn patches_change_what_is_stored_and_the_next_webhook_sees_it() {
    let hook = Hook::serve(|path, asked| match path {
        "/first" => patch(json!([{"op": "add", "path": "/data/first", "value": "1"}])),
        _ => match asked["object"]["data"]["first"].as_str() {
            Some(_) => patch(json!([{"op": "add", "path": "/data/second", "value": "2"}])),
            None => Reaction::Response(json!({ "allowed": false })),
        },
    })
    .await;
    let world = World::start().await;
    // In the order of their names, not of their creation.
    for name in ["b-second", "a-first"] {
        let path = format!("/{}", &name[2..]);
        world
            .configure(
                MUTATING,
                &configuration(name, &hook.client_config(&path), &json!({})),
            )
            .await;
    }
    let created = world.create("a").await;
    assert_eq!(created, (201, json!({"a": "1", "first": "1", "second": "2"})));
    let (_, stored) = world.ask(Method::GET, &format!("{MAPS}/a"), &Value::Null).await;
    assert_eq!(stored["data"], created.1);
}

#[tokio::test]
async fn a_patch_that_makes_the_object_invalid_is_refused_by_validation() {
    let hook = Hook::serve(|_, _| {
        patch(json!([{"op": "add", "path": "/metadata/labels", "value": {"bad key!": "x"}}]))
    })
    .await;
    let world = World::start().await;
    world
        .configure(
            MUTATING,
            &configuration("m", &hook.client_config("/"), &json!({})),
        )
        .await;
    let (code, outcome) = world.create("a").await;
    assert_eq!(code, 422, "{outcome}");
    let outcome = outcome.as_str().unwrap();
    assert!(
        outcome.starts_with("ConfigMap \"a\" is invalid: metadata.labels"),
        "{outcome}"
    );
}

#[rstest]
#[case::after_a_change("IfNeeded", &["/early", "/late", "/early"])]
#[case::never("Never", &["/early", "/late"])]
#[tokio::test]
async fn reinvocation(#[case] policy: &str, #[case] calls: &[&str]) {
    let hook = Hook::serve(|path, asked| match (path, &asked["object"]["data"]["late"]) {
        ("/late", Value::Null) => patch(json!([{"op": "add", "path": "/data/late", "value": "1"}])),
        (_, _) => allow(),
    })
    .await;
    let world = World::start().await;
    let early = configuration(
        "early",
        &hook.client_config("/early"),
        &json!({"reinvocationPolicy": policy}),
    );
    world.configure(MUTATING, &early).await;
    world
        .configure(
            MUTATING,
            &configuration("late", &hook.client_config("/late"), &json!({})),
        )
        .await;
    assert_eq!(world.create("a").await.0, 201);
    let seen: Vec<Value> = hook.seen().iter().map(|seen| seen["path"].clone()).collect();
    assert_eq!(seen, calls);
}

const FAILED: &str = "Internal error occurred: failed calling webhook \"h.example.com\": ";

#[rstest]
#[case::no_json(|_: &str, _: &Value| Reaction::Body(b"hello".to_vec()), "failed to call webhook: couldn't get version/kind; json parse error: json: cannot unmarshal string into Go value of type struct", "200, no JSON")]
#[case::another_uid(|_: &str, _: &Value| Reaction::Response(json!({"uid": "1", "allowed": true})), "received invalid webhook response: expected response.uid=", "allowed")]
#[case::too_long(|_: &str, _: &Value| Reaction::Body(vec![b' '; 5 * 1024 * 1024]), "failed to call webhook: Post ", "the response is longer than 4194304 bytes")]
#[case::an_error(|_: &str, _: &Value| Reaction::Status(500, "boom"), "failed to call webhook: an error on the server (\"boom\") has prevented the request from succeeding", "500, no JSON")]
#[case::a_redirect(|_: &str, _: &Value| Reaction::Status(307, ""), "failed to call webhook: the server responded with the status code 307", "307, no JSON")]
#[case::no_answer(|_: &str, _: &Value| Reaction::Silence, "failed to call webhook: Post ", "context deadline exceeded")]
#[tokio::test]
async fn a_failed_call_is_an_error_or_ignored(
    #[case] decide: Decide,
    #[case] outcome: &str,
    #[case] verdict: &str,
) {
    let hook = Hook::serve(decide).await;
    let world = World::start().await;
    let failing = |policy: &str| {
        let more = json!({"failurePolicy": policy, "timeoutSeconds": 1});
        configuration("h", &hook.client_config("/"), &more)
    };
    world.configure(VALIDATING, &failing("Fail")).await;
    let (code, message) = world.create("a").await;
    assert_eq!(code, 500);
    let message = message.as_str().unwrap();
    assert!(message.starts_with(&format!("{FAILED}{outcome}")), "{message}");
    assert_eq!(world.calls(), [("h.example.com".to_owned(), verdict.to_owned())]);

    let path = format!("{HOOKS}/{VALIDATING}/h");
    assert_eq!(world.ask(Method::DELETE, &path, &Value::Null).await.0, 200);
    world.configure(VALIDATING, &failing("Ignore")).await;
    assert_eq!(world.create("a").await.0, 201);
    assert_eq!(world.calls().len(), 2);
}

#[tokio::test]
async fn a_certificate_of_another_authority_is_not_trusted() {
    let hook = Hook::serve(|_, _| allow()).await;
    let world = World::start().await;
    let mut client_config = hook.client_config("/");
    let other = Authority::generate().unwrap().certificate_pem();
    client_config["caBundle"] = STANDARD.encode(other).into();
    world
        .configure(VALIDATING, &configuration("h", &client_config, &json!({})))
        .await;
    let (code, message) = world.create("a").await;
    let url = format!("{}/?timeout=10s", hook.url);
    assert_eq!(
        (code, message.as_str().unwrap()),
        (
            500,
            format!(
                "{FAILED}failed to call webhook: Post \"{url}\": tls: failed to verify certificate: x509: certificate \
                 signed by unknown authority"
            )
            .as_str()
        )
    );
    assert_eq!(hook.seen(), [] as [Value; 0]);
}

#[rstest]
#[case::this_machine_only(
    Webhooks::Local,
    "192.0.2.1",
    "fake-apiserver calls webhooks of this machine only; --webhooks any allows others"
)]
#[case::none(Webhooks::None, "127.0.0.1", "connect: connection refused")]
#[tokio::test]
async fn addresses_that_are_not_called(#[case] webhooks: Webhooks, #[case] host: &str, #[case] why: &str) {
    let world = World::calling(webhooks).await;
    let client_config = json!({ "url": format!("https://{host}:8443/x") });
    world
        .configure(
            VALIDATING,
            &configuration("h", &client_config, &json!({"timeoutSeconds": 2})),
        )
        .await;
    let (code, message) = world.create("a").await;
    let url = format!("https://{host}:8443/x?timeout=2s");
    assert_eq!(code, 500);
    assert_eq!(
        message,
        format!("{FAILED}failed to call webhook: Post \"{url}\": dial tcp {host}:8443: {why}")
    );
}

#[tokio::test]
async fn a_service_without_endpoints_leads_nowhere() {
    let world = World::start().await;
    let client_config = json!({ "service": {"namespace": "default", "name": "s", "path": "/p"} });
    world
        .configure(VALIDATING, &configuration("h", &client_config, &json!({})))
        .await;
    let outcome = |why: &str| {
        format!("{FAILED}failed to call webhook: Post \"https://s.default.svc:443/p?timeout=10s\": {why}")
    };
    assert_eq!(world.create("a").await.1, outcome("service \"s\" not found"));
    let service = json!({ "metadata": {"name": "s"}, "spec": {"ports": [{"port": 443}]} });
    world
        .ask(Method::POST, "/api/v1/namespaces/default/services", &service)
        .await;
    assert_eq!(
        world.create("a").await.1,
        outcome("no endpoints available for service \"s\"")
    );
}

#[tokio::test]
async fn a_service_that_is_a_name_is_called_with_its_own() {
    let hook = Hook::serve(|_, _| allow()).await;
    let world = World::start().await;
    let port: u16 = hook.url.rsplit(':').next().unwrap().parse().unwrap();
    let service =
        json!({ "metadata": {"name": "s"}, "spec": {"type": "ExternalName", "externalName": "localhost"} });
    world
        .ask(Method::POST, "/api/v1/namespaces/default/services", &service)
        .await;
    let mut client_config = hook.client_config("/");
    client_config.as_object_mut().unwrap().shift_remove("url");
    client_config["service"] = json!({"namespace": "default", "name": "s", "port": port});
    world
        .configure(VALIDATING, &configuration("h", &client_config, &json!({})))
        .await;
    let (code, message) = world.create("a").await;
    let outcome = message.as_str().unwrap();
    assert_eq!(code, 500);
    // Its certificate is not for that name: the call came as far as that.
    assert!(outcome.contains("x509: certificate is valid for "), "{outcome}");
    assert!(outcome.ends_with(", not s.default.svc"), "{outcome}");
}

#[tokio::test]
async fn dry_runs_need_webhooks_without_side_effects() {
    let hook = Hook::serve(|_, _| allow()).await;
    let world = World::start().await;
    world
        .configure(
            VALIDATING,
            &configuration("none", &hook.client_config("/none"), &json!({})),
        )
        .await;
    let dry = format!("{MAPS}?dryRun=All");
    assert_eq!(world.ask(Method::POST, &dry, &map("a")).await.0, 201);
    assert_eq!(hook.seen()[0]["dryRun"], true);
    assert_eq!(
        world.ask(Method::GET, &format!("{MAPS}/a"), &Value::Null).await.0,
        404
    );
}

#[tokio::test]
async fn conditions_and_selectors_choose_what_is_asked() {
    let hook = Hook::serve(|_, _| Reaction::Response(json!({ "allowed": false }))).await;
    let world = World::start().await;
    let more = json!({
        "matchConditions": [{"name": "named", "expression": "object.metadata.name.startsWith('a')"}],
        "objectSelector": {"matchExpressions": [{"key": "free", "operator": "DoesNotExist"}]},
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}},
    });
    world
        .configure(VALIDATING, &configuration("h", &hook.client_config("/"), &more))
        .await;
    assert_eq!(world.create("a").await.0, 400);
    assert_eq!(world.create("b").await.0, 201);
    let elsewhere = "/api/v1/namespaces/kube-system/configmaps";
    assert_eq!(world.ask(Method::POST, elsewhere, &map("a")).await.0, 201);
    let labelled = json!({"metadata": {"name": "a", "labels": {"free": ""}}});
    assert_eq!(world.ask(Method::POST, MAPS, &labelled).await.0, 201);
    assert_eq!(hook.seen().len(), 1);
}

#[tokio::test]
async fn updates_and_deletions_show_the_object_before() {
    let hook = Hook::serve(|_, asked| match asked["operation"].as_str() {
        Some("UPDATE") if asked["oldObject"]["data"]["a"] == "1" => {
            patch(json!([{"op": "replace", "path": "/data/a", "value": "patched"}]))
        }
        Some("DELETE") if asked["object"].is_null() && asked["oldObject"]["data"]["a"] == "patched" => {
            Reaction::Response(json!({"allowed": false, "status": {"message": "kept"}}))
        }
        _ => allow(),
    })
    .await;
    let world = World::start().await;
    let rules = json!([{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["UPDATE", "DELETE"], "resources": ["configmaps"]}]);
    world
        .configure(
            MUTATING,
            &configuration("h", &hook.client_config("/"), &json!({"rules": rules})),
        )
        .await;
    assert_eq!(world.create("a").await.0, 201);
    let path = format!("{MAPS}/a");
    let (code, changed) = world
        .ask(Method::PATCH, &path, &json!({"data": {"b": "2"}}))
        .await;
    assert_eq!(
        (code, &changed["data"]),
        (200, &json!({"a": "patched", "b": "2"}))
    );
    let kept = "admission webhook \"h.example.com\" denied the request: kept";
    let (code, refused) = world.ask(Method::DELETE, &path, &Value::Null).await;
    assert_eq!((code, &refused["message"]), (400, &kept.into()));
    // Also a deletion of all deletes none then.
    let (_, refused) = world.ask(Method::DELETE, MAPS, &Value::Null).await;
    assert_eq!(refused["message"], kept);
    assert_eq!(world.ask(Method::GET, &path, &Value::Null).await.0, 200);
}

#[tokio::test]
async fn an_update_that_meets_another_one_while_it_waits_is_made_again() {
    let hook = Hook::serve(|_, asked| match asked["oldObject"]["data"]["a"].as_str() {
        Some("1") => Reaction::Silence,
        _ => allow(),
    })
    .await;
    let world = World::start().await;
    assert_eq!(world.create("a").await.0, 201);
    let more = json!({
        "rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["UPDATE"], "resources": ["configmaps"]}],
        "objectSelector": {"matchLabels": {"asked": "yes"}},
        "failurePolicy": "Ignore", "timeoutSeconds": 1,
    });
    world
        .configure(VALIDATING, &configuration("h", &hook.client_config("/"), &more))
        .await;
    let path = format!("{MAPS}/a");
    let slow = json!({"metadata": {"labels": {"asked": "yes"}}});
    let quick = json!({"data": {"a": "2"}});
    let slow = world.ask(Method::PATCH, &path, &slow);
    let quick = async {
        // The webhook has the first review before the other update comes.
        while hook.seen().is_empty() {
            tokio::task::yield_now().await;
        }
        world.ask(Method::PATCH, &path, &quick).await
    };
    let ((code, merged), (quick_code, _)) = tokio::join!(slow, quick);
    assert_eq!((code, quick_code), (200, 200));
    assert_eq!(merged["data"], json!({"a": "2"}));
    assert_eq!(merged["metadata"]["labels"], json!({"asked": "yes"}));
    // It was asked about the object as it was, and again about the object as it is.
    assert_eq!(hook.seen().len(), 2);
    assert_eq!(world.calls()[1].1, "allowed");
}

#[tokio::test]
async fn configurations_are_never_reviewed_themselves() {
    let hook = Hook::serve(|_, _| Reaction::Response(json!({ "allowed": false }))).await;
    let world = World::start().await;
    let all = json!([{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}]);
    for kind in [VALIDATING, MUTATING] {
        world
            .configure(
                kind,
                &configuration("h", &hook.client_config("/"), &json!({"rules": all})),
            )
            .await;
    }
    let path = format!("{HOOKS}/{VALIDATING}/h");
    assert_eq!(world.ask(Method::DELETE, &path, &Value::Null).await.0, 200);
    assert_eq!(hook.seen().len(), 0);
    assert_eq!(world.create("a").await.0, 400);
}
