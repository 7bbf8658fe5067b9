//! Custom resources that a webhook converts between versions: reads, watches and writes of the version that is not stored. The
//! webhook is the test itself: it takes the calls of the server without a socket.

#![expect(clippy::unwrap_used, reason = "the helpers of a test may fail it")]

mod support;

use std::time::Duration;

use fake_apiserver::record::{ConnId, StreamId};
use fake_apiserver::scenario::ServerSettings;
use fake_apiserver::server::{Input, Outcome, Output, Server};
use serde_json::{Value, json};
use support::request;

const V1: &str = "/apis/example.com/v1/namespaces/default/hosts";
const V2: &str = "/apis/example.com/v2/namespaces/default/hosts";

/// What the webhook makes of the objects of a review.
type Convert = fn(&Value, &str) -> Value;

struct World {
    server: Server,
    convert: Convert,
    stream: u64,
    /// Versions that were asked for, with the number of objects.
    calls: Vec<(String, usize)>,
    /// Lines of open watches.
    lines: Vec<Value>,
}

/// `v1` has `spec.hostPort`, `v2` has host and port apart.
fn by_port(object: &Value, to: &str) -> Value {
    let mut object = object.clone();
    let spec = object["spec"].take();
    object["spec"] = match (to, spec["hostPort"].as_str()) {
        ("example.com/v2", Some(both)) => {
            let (host, port) = both.split_once(':').unwrap();
            json!({ "host": host, "port": port })
        }
        ("example.com/v1", None) => {
            json!({ "hostPort": format!("{}:{}", spec["host"].as_str().unwrap(), spec["port"].as_str().unwrap()) })
        }
        (_, _) => spec,
    };
    object["apiVersion"] = to.into();
    object
}

impl World {
    fn new(convert: Convert) -> Self {
        let mut world = Self {
            server: Server::standalone(ServerSettings::default(), 7),
            convert,
            stream: 0,
            calls: Vec::new(),
            lines: Vec::new(),
        };
        let version = |name: &str, fields: &[&str], storage: bool| {
            let fields = fields
                .iter()
                .map(|field| ((*field).to_owned(), json!({"type": "string"})));
            let fields: serde_json::Map<String, Value> = fields.collect();
            json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": {"type": "object", "properties": fields}},
            }}})
        };
        let definition = json!({ "metadata": {"name": "hosts.example.com"}, "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "hosts", "kind": "Host"},
            "versions": [version("v1", &["hostPort"], true), version("v2", &["host", "port"], false)],
            "conversion": {"strategy": "Webhook", "webhook": {
                "clientConfig": {"url": "https://127.0.0.1:1/convert"}, "conversionReviewVersions": ["v1"],
            }},
        }});
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let (code, answer) = world.ask("POST", definitions, &definition);
        assert_eq!(code, 201, "{answer}");
        world
    }

    /// Code and body.
    fn ask(&mut self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        self.stream += 1;
        let stream = StreamId(self.stream);
        let request = request(method, path, body);
        let conn = ConnId(1);
        self.hand_in(
            stream,
            Input::Request {
                stream,
                conn,
                request,
            },
        )
    }

    fn hand_in(&mut self, asked: StreamId, input: Input) -> (u16, Value) {
        let (mut code, mut bytes) = (0, Vec::new());
        self.server.handle(Duration::ZERO, input);
        while let Some(output) = self.server.poll_output() {
            match output {
                Output::Head { stream, status, .. } if stream == asked => code = status,
                Output::Data { stream, bytes: more } if stream == asked => bytes.extend_from_slice(&more),
                Output::Data { bytes, .. } => self.lines.push(serde_json::from_slice(&bytes).unwrap()),
                Output::FlushBarrier { stream } => self.server.handle(Duration::ZERO, Input::Flushed(stream)),
                Output::Call { id, call } => {
                    assert_eq!(call.url, "https://127.0.0.1:1/convert?timeout=30s");
                    let review: Value = serde_json::from_slice(&call.body).unwrap();
                    let request = &review["request"];
                    let to = request["desiredAPIVersion"].as_str().unwrap();
                    let objects = request["objects"].as_array().unwrap();
                    self.calls.push((to.to_owned(), objects.len()));
                    let converted: Vec<Value> =
                        objects.iter().map(|object| (self.convert)(object, to)).collect();
                    let answer = json!({
                        "kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1",
                        "response": {"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": converted},
                    });
                    let outcome = Outcome::Answered {
                        status: 200,
                        content_type: "application/json".to_owned(),
                        body: answer.to_string().into_bytes(),
                    };
                    self.server
                        .handle(Duration::ZERO, Input::HookAnswered { id, outcome });
                }
                Output::Head { .. }
                | Output::Goaway { .. }
                | Output::Close { .. }
                | Output::Upstream { .. }
                | Output::UpstreamWrite { .. }
                | Output::End { .. } => {}
            }
        }
        (code, serde_json::from_slice(&bytes).unwrap_or_default())
    }

    fn create(&mut self, path: &str, name: &str, spec: &Value) -> (u16, Value) {
        let version = if path == V1 { "v1" } else { "v2" };
        let object = json!({
            "apiVersion": format!("example.com/{version}"), "kind": "Host", "metadata": {"name": name}, "spec": spec,
        });
        self.ask("POST", path, &object)
    }
}

#[test]
fn reads_of_the_other_version_are_converted() {
    let mut world = World::new(by_port);
    for name in ["a", "b"] {
        let (code, _) = world.create(V1, name, &json!({"hostPort": "h:1"}));
        assert_eq!(code, 201);
    }
    assert_eq!(world.calls, [], "what is stored as it was sent needs no webhook");
    let (code, one) = world.ask("GET", &format!("{V2}/a"), &Value::Null);
    assert_eq!((code, &one["spec"]), (200, &json!({"host": "h", "port": "1"})));
    assert_eq!(one["apiVersion"], "example.com/v2");
    let (_, stored) = world.ask("GET", &format!("{V1}/a"), &Value::Null);
    assert_eq!(one["metadata"]["uid"], stored["metadata"]["uid"]);
    let (code, list) = world.ask("GET", V2, &Value::Null);
    assert_eq!((code, list["items"].as_array().unwrap().len()), (200, 2));
    assert_eq!(list["items"][1]["spec"], json!({"host": "h", "port": "1"}));
    // The first was converted for the GET.
    assert_eq!(
        world.calls,
        [("example.com/v2".to_owned(), 1), ("example.com/v2".to_owned(), 1)]
    );
}

#[test]
fn writes_of_the_other_version_are_stored_in_the_stored_one() {
    let mut world = World::new(by_port);
    let (code, created) = world.create(V2, "a", &json!({"host": "h", "port": "1"}));
    assert_eq!(
        (code, &created["spec"]),
        (201, &json!({"host": "h", "port": "1"}))
    );
    let (_, stored) = world.ask("GET", &format!("{V1}/a"), &Value::Null);
    assert_eq!(stored["spec"], json!({"hostPort": "h:1"}));
    let path = format!("{V2}/a");
    let (code, changed) = world.ask("PATCH", &path, &json!({"spec": {"port": "2"}}));
    assert_eq!(
        (code, &changed["spec"]),
        (200, &json!({"host": "h", "port": "2"}))
    );
    let (_, stored) = world.ask("GET", &format!("{V1}/a"), &Value::Null);
    assert_eq!(stored["spec"], json!({"hostPort": "h:2"}));
    assert_eq!(
        stored["metadata"]["resourceVersion"],
        changed["metadata"]["resourceVersion"]
    );
    assert_eq!(stored["metadata"]["generation"], 2);
    let (code, _) = world.ask("DELETE", V2, &Value::Null);
    assert_eq!(code, 200);
    assert_eq!(world.ask("GET", &path, &Value::Null).0, 404);
}

#[test]
fn watches_of_the_other_version_wait_for_the_webhook() {
    let mut world = World::new(by_port);
    world.create(V1, "a", &json!({"hostPort": "h:1"}));
    world.ask("GET", &format!("{V2}?watch=true&resourceVersion=0"), &Value::Null);
    world.create(V1, "b", &json!({"hostPort": "h:2"}));
    world.ask("PATCH", &format!("{V1}/b"), &json!({"spec": {"hostPort": "h:3"}}));
    world.ask("DELETE", &format!("{V1}/b"), &Value::Null);
    let seen: Vec<(Value, Value)> = world
        .lines
        .iter()
        .map(|line| (line["type"].clone(), line["object"]["spec"]["port"].clone()))
        .collect();
    let expected = [("ADDED", "2"), ("MODIFIED", "3"), ("DELETED", "3")];
    assert_eq!(seen, expected.map(|(kind, port)| (kind.into(), port.into())));
}

#[test]
fn an_answer_that_is_not_as_it_must_be_is_an_error() {
    let cases: [(Convert, &str); 4] = [
        (
            |object, _| object.clone(),
            "returned invalid object at index 0: invalid groupVersion (expected example.com/v2, received example.com/v1)",
        ),
        (
            |object, to| {
                let mut object = by_port(object, to);
                object["metadata"]["name"] = "other".into();
                object
            },
            "returned invalid object: must have the same name: a != other",
        ),
        (
            |object, to| {
                let mut object = by_port(object, to);
                object["metadata"].as_object_mut().unwrap().clear();
                object
            },
            "returned invalid object: must have the same name: a != ",
        ),
        (
            |object, to| {
                let mut object = by_port(object, to);
                object["metadata"]["labels"] = json!({"a": 1});
                object
            },
            "returned invalid metadata: labels and annotations must be strings",
        ),
    ];
    for (convert, why) in cases {
        let mut world = World::new(convert);
        world.create(V1, "a", &json!({"hostPort": "h:1"}));
        let message = format!("conversion webhook for example.com/v1, Kind=Host {why}");
        for path in [format!("{V2}/a"), V2.to_owned()] {
            let (code, answer) = world.ask("GET", &path, &Value::Null);
            assert_eq!((code, &answer["message"]), (500, &message.as_str().into()));
        }
        let (code, answer) = world.ask("PATCH", &format!("{V2}/a"), &json!({"spec": {"port": "2"}}));
        assert_eq!((code, &answer["message"]), (500, &message.as_str().into()));
        // A failure is not kept.
        assert_eq!(world.calls.len(), 3);
    }
}

#[test]
fn labels_and_annotations_may_be_changed_and_nothing_else_is() {
    let mut world = World::new(|object, to| {
        let mut object = by_port(object, to);
        object["metadata"]["labels"] = json!({"converted": "yes"});
        object["metadata"]["finalizers"] = json!(["example.com/odd"]);
        object
    });
    world.create(V1, "a", &json!({"hostPort": "h:1"}));
    let (_, shown) = world.ask("GET", &format!("{V2}/a"), &Value::Null);
    assert_eq!(shown["metadata"]["labels"], json!({"converted": "yes"}));
    assert_eq!(shown["metadata"].get("finalizers"), None);
}
