//! OpenAPI 3.1 description of the control API, with the schemas by which bodies are validated.

use fake_apiserver::scenario::control_schemas;
use serde_json::{Value, json};

/// Returns the document.
pub(crate) fn document() -> Value {
    let (rule, wait) = control_schemas();
    let (rule, rule_parts) = parted(rule);
    let (wait, wait_parts) = parted(wait);
    let mut schemas = serde_json::Map::new();
    schemas.extend(rule_parts);
    schemas.extend(wait_parts);
    // A rule is a word or a map; the map is among the parts, as `Rule`.
    schemas.insert("RuleOrWord".to_owned(), rule);
    if let Some(rule) = schemas.get_mut("Rule") {
        rule["description"] = "A fault or another action, and the requests that it is for.".into();
    }
    schemas.insert("Wait".to_owned(), wait);
    schemas.extend(answers());
    let id = json!([{
        "name": "id", "in": "path", "required": true, "schema": {"type": "integer", "minimum": 1},
    }]);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "fake-apiserver control API",
            "version": "1",
            "description": "Controls a running fake-apiserver: rules, waits, the trace. docs/control-api.md has examples.",
        },
        "security": [{"token": []}],
        "paths": {
            "/v1": {"get": operation("state", "Version, URLs, kubeconfig and memory of the server", ok("State"))},
            "/v1/streams": {"get": operation("streams", "Open responses", list("streams", "Stream"))},
            "/v1/rules": {
                "get": operation("rules", "Active rules", list("rules", "ActiveRule")),
                "post": taking("addRule", "Add a rule; without `when` its actions run immediately", "RuleOrWord", &json!({
                    "201": answered("The rule is active", "Injected"),
                    "200": answered("The actions ran immediately", "Injected"),
                    "409": refused("The rule matches nothing that is served or open"),
                })),
                "delete": operation("removeRules", "Remove every rule", list("removed", "ActiveRule")),
            },
            "/v1/rules/{id}": {
                "parameters": id,
                "delete": operation("removeRule", "Remove a rule", one("removed", "ActiveRule")),
            },
            "/v1/wait": {"post": taking("waitFor", "Wait for a record in the trace", "Wait", &json!({
                "200": answered("The record was found", "WaitResult"),
                "504": refused("The wait timed out; the error names the last request"),
            }))},
            "/v1/trace": {"get": {
                "operationId": "trace",
                "summary": "Records of the trace, one per line",
                "parameters": [
                    {"name": "since", "in": "query", "schema": {"type": "integer", "minimum": 0}},
                    {"name": "follow", "in": "query", "schema": {"type": "boolean"}},
                    {"name": "format", "in": "query", "schema": {"enum": ["json", "text"]}},
                ],
                "responses": {
                    "200": {
                        "description": "A record per line",
                        "content": {
                            "application/x-ndjson": {"schema": {"type": "object"}},
                            "text/plain": {"schema": {"type": "string"}},
                        },
                    },
                    "401": refused("Without the token"),
                },
            }},
            "/v1/verdict": {"get": operation("verdict", "Verdict on every client so far", ok("Verdict"))},
            "/v1/reset": {"post": operation(
                "reset", "Remove all rules and faults, and restore the initial objects", ok("State"),
            )},
            "/v1/openapi.json": {"get": {
                "summary": "This document",
                "security": [],
                "responses": {"200": {"description": "OpenAPI 3.1"}},
            }},
        },
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": schemas,
        },
    })
}

/// Splits a schema from its definitions, which belong under `components`.
fn parted(schema: Value) -> (Value, serde_json::Map<String, Value>) {
    let text = schema
        .to_string()
        .replace("\"#/$defs/", "\"#/components/schemas/");
    let mut schema: Value = serde_json::from_str(&text).expect("JSON with other references is JSON");
    let parts = schema.as_object_mut().and_then(|object| {
        object.remove("$schema");
        object.remove("$defs")
    });
    match parts {
        Some(Value::Object(parts)) => (schema, parts),
        Some(_) | None => (schema, serde_json::Map::new()),
    }
}

fn operation(id: &str, summary: &str, answer: Value) -> Value {
    json!({
        "operationId": id,
        "summary": summary,
        "responses": {"200": answer, "401": refused("Without the token")},
    })
}

fn taking(id: &str, summary: &str, schema: &str, answers: &Value) -> Value {
    let content = json!({"schema": {"$ref": format!("#/components/schemas/{schema}")}});
    let mut responses = answers.clone();
    responses["400"] = refused("Every mistake in the text, with its line and column");
    responses["401"] = refused("Without the token");
    json!({
        "operationId": id,
        "summary": summary,
        "requestBody": {
            "required": true,
            "content": {"application/json": content, "application/yaml": content},
        },
        "responses": responses,
    })
}

fn ok(schema: &str) -> Value {
    answered(schema, schema)
}

fn answered(description: &str, schema: &str) -> Value {
    response(description, &reference(schema))
}

/// A response with a list under this key.
fn list(key: &str, schema: &str) -> Value {
    let items = json!({"type": "array", "items": reference(schema)});
    response(
        key,
        &json!({"type": "object", "required": [key], "properties": {key: items}}),
    )
}

/// A response with a list of one under this key.
fn one(key: &str, schema: &str) -> Value {
    let items = json!({"type": "array", "minItems": 1, "maxItems": 1, "items": reference(schema)});
    response(
        key,
        &json!({"type": "object", "required": [key], "properties": {key: items}}),
    )
}

fn refused(description: &str) -> Value {
    answered(description, "Error")
}

fn response(description: &str, schema: &Value) -> Value {
    json!({"description": description, "content": {"application/json": {"schema": schema}}})
}

fn reference(schema: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{schema}")})
}

fn described(schema: &str, description: &str) -> Value {
    let mut reference = reference(schema);
    reference["description"] = description.into();
    reference
}

/// Schemas of responses, by name.
fn answers() -> serde_json::Map<String, Value> {
    let schemas = [
        ("State", state()),
        ("ServerUrl", server()),
        ("Memory", memory()),
        ("Stream", stream()),
        ("ActiveRule", active_rule()),
        ("Injected", injected()),
        ("WaitResult", wait_result()),
        ("Verdict", verdict()),
        ("ClientVerdict", client()),
        ("Violation", violation()),
        ("Error", error()),
        ("Mistake", mistake()),
    ];
    { schemas.into_iter() }
        .map(|(name, schema)| (name.to_owned(), schema))
        .collect()
}

/// An object with these properties, of which the first `required` ones are always there.
fn object(description: &str, required: usize, properties: &[(&str, Value)]) -> Value {
    let names: Vec<&str> = properties.iter().map(|(name, _)| *name).collect();
    let properties: serde_json::Map<String, Value> = { properties.iter() }
        .map(|(name, schema)| ((*name).to_owned(), schema.clone()))
        .collect();
    json!({
        "type": "object",
        "description": description,
        "required": names[..required],
        "properties": properties,
    })
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn number(description: &str) -> Value {
    json!({"type": "integer", "description": description})
}

fn list_of(schema: &Value, description: &str) -> Value {
    json!({"type": "array", "items": schema, "description": description})
}

fn state() -> Value {
    let servers = list_of(&reference("ServerUrl"), "Replicas and their URLs.");
    object(
        "State of the server.",
        8,
        &[
            ("version", text("Version of fake-apiserver.")),
            ("kubernetes", text("Version of Kubernetes.")),
            ("servers", servers),
            ("kubeconfig", text("Path of the kubeconfig.")),
            ("resourceVersion", text("Latest resourceVersion.")),
            ("nextRecord", number("Number of the next record of the trace.")),
            ("rules", number("Number of active rules.")),
            ("openStreams", number("Number of open responses.")),
            ("memory", described("Memory", "Memory in use.")),
        ],
    )
}

fn server() -> Value {
    let replica = json!({"enum": ["primary", "secondary"], "description": "Replica."});
    object(
        "URL of a replica.",
        2,
        &[("replica", replica), ("url", text("URL of the Kubernetes API."))],
    )
}

fn memory() -> Value {
    object(
        "Bytes used in addition to the objects, and the limit.",
        7,
        &[
            ("history", number("Previous versions of objects.")),
            ("events", number("Watch events that are not sent yet.")),
            ("trace", number("Records.")),
            ("answers", number("Responses that are not sent yet.")),
            ("queries", number("Requests.")),
            ("judge", number("State of the judge.")),
            ("budget", number("Limit of all together.")),
        ],
    )
}

fn stream() -> Value {
    let replica = json!({"enum": ["primary", "secondary"], "description": "Replica."});
    let verb =
        json!({"enum": ["LIST", "WATCH", "WATCH-LIST", "OTHER"], "description": "Type of the request."});
    object(
        "An open response.",
        7,
        &[
            ("stream", number("Number of the request.")),
            ("connection", number("Number of the connection.")),
            ("replica", replica),
            ("verb", verb),
            ("method", text("HTTP method.")),
            ("target", text("Path and query, as sent.")),
            ("openMs", number("Age in milliseconds.")),
            ("userAgent", text("User-Agent header.")),
        ],
    )
}

fn active_rule() -> Value {
    object(
        "An active rule.",
        4,
        &[
            ("id", number("Number of the rule.")),
            ("waitsFor", text("Condition as text.")),
            ("does", text("Action as text.")),
            ("met", number("Requests that matched.")),
            ("name", text("Name, as in the trace.")),
            ("left", number("Matches left. Absent for a rule with `for`.")),
        ],
    )
}

fn injected() -> Value {
    object(
        "An added rule, or one without `when` whose actions ran immediately.",
        1,
        &[
            (
                "nextRecord",
                number("Number of the next record of the trace: `since` of a wait that must not miss any."),
            ),
            (
                "rule",
                described(
                    "ActiveRule",
                    "The active rule; absent if its actions ran immediately.",
                ),
            ),
            ("done", text("Actions that ran immediately.")),
            (
                "streams",
                list_of(
                    &json!({"type": "integer"}),
                    "Open responses that the actions ran on.",
                ),
            ),
        ],
    )
}

fn wait_result() -> Value {
    object(
        "Record that a wait matched.",
        3,
        &[
            ("record", json!({"type": "object", "description": "The record."})),
            ("line", text("The record as printed in the log of the server.")),
            ("nextRecord", number("Number of the next record.")),
            ("stream", number("Number of the response that it belongs to.")),
        ],
    )
}

fn verdict() -> Value {
    let outcome = json!({
        "enum": ["pass", "mismatch", "nothing"],
        "description": "`nothing`: no client listed or watched.",
    });
    let names = json!({"type": "string"});
    object(
        "What the requests of all clients prove so far.",
        4,
        &[
            ("outcome", outcome),
            ("clients", list_of(&reference("ClientVerdict"), "By client.")),
            ("judged", list_of(&names, "Invariants that are checked.")),
            ("notJudged", text("Invariants that are not checked, and why.")),
        ],
    )
}

fn client() -> Value {
    let counts = json!({
        "type": "object",
        "additionalProperties": {"type": "integer"},
        "description": "Number of violations by invariant.",
    });
    object(
        "Verdict on one User-Agent.",
        7,
        &[
            ("client", text("User-Agent.")),
            (
                "loops",
                number("List/watch loops that read one collection at the same time, at least."),
            ),
            ("connections", number("Connections used for lists and watches.")),
            ("requests", number("Requests.")),
            ("reads", number("Lists and watches.")),
            ("violations", counts),
            (
                "contradictions",
                list_of(&reference("Violation"), "The first violations in full."),
            ),
        ],
    )
}

fn violation() -> Value {
    let numbers = json!({"type": "integer"});
    object(
        "A violated invariant, with the request that proves it.",
        9,
        &[
            ("client", text("User-Agent.")),
            ("reading", text("Collection: `pods in default`.")),
            ("check", text("Invariant: `INV-04`.")),
            ("sentence", text("What happened, in one sentence.")),
            ("proof", text("Request that proves it.")),
            ("expected", text("What was expected, in a few words.")),
            ("actual", text("What happened, in a few words.")),
            (
                "evidence",
                list_of(&numbers, "Numbers of the records that prove it."),
            ),
            (
                "atMs",
                number("Time since the start of the server, in milliseconds."),
            ),
            ("port", number("Port of a client without User-Agent.")),
        ],
    )
}

fn error() -> Value {
    object(
        "A rejected request.",
        1,
        &[
            ("error", text("What is wrong.")),
            ("hint", text("What to do next.")),
            (
                "mistakes",
                list_of(&reference("Mistake"), "Mistakes of a rule or a wait."),
            ),
        ],
    )
}

fn mistake() -> Value {
    object(
        "A mistake, with its position.",
        2,
        &[
            ("code", text("Code of the mistake.")),
            ("message", text("What is wrong.")),
            ("line", number("Line.")),
            ("column", number("Column.")),
            (
                "hint",
                json!({"type": ["string", "null"], "description": "What to do next."}),
            ),
        ],
    )
}
