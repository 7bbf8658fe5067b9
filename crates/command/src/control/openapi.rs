//! OpenAPI 3.1 description of the control API, with the schemas by which bodies are validated.

mod schemas;

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
    schemas.extend(schemas::answers());
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
            "/v1/watches": {"get": {
                "operationId": "watches",
                "summary": "Open watches, and how far they are behind; those that are stalled or behind first",
                "parameters": [
                    {"name": "client", "in": "query", "schema": {"type": "string"}, "description": "Part of the User-Agent."},
                    {"name": "resource", "in": "query", "schema": {"type": "string"}, "description": "`pods`, `deployments.apps`."},
                    {"name": "limit", "in": "query", "schema": {"type": "integer", "minimum": 0}, "description": "Watches listed; 0: 500."},
                ],
                "responses": {"200": ok("Watches"), "401": refused("Without the token")},
            }},
            "/v1/history": {"post": taking("history", "Versions of an object, and the watches that were sent each", "ObjectQuery", &json!({
                "200": answered("The versions that the trace has", "History"),
            }))},
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
                    {"name": "format", "in": "query", "schema": {"enum": ["json", "text", "rows"]}},
                    {"name": "client", "in": "query", "schema": {"type": "string"}, "description": "Part of the User-Agent."},
                    {"name": "resource", "in": "query", "schema": {"type": "string"}, "description": "`pods`, `deployments.apps`."},
                    {"name": "last", "in": "query", "schema": {"type": "string", "pattern": "^[0-9]+$"},
                        "description": "Begin with this many of the newest records."},
                    {"name": "rate", "in": "query", "schema": {"type": "string", "pattern": "^[0-9]+$"},
                        "description": "With `rows`: records a second at most; others are left out, and counted in a line with `leftOut`."},
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
