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
    schemas.insert("Rule".to_owned(), rule);
    schemas.insert("Wait".to_owned(), wait);
    schemas.insert("Refusal".to_owned(), refusal());
    schemas.insert("Standing".to_owned(), standing());
    schemas.insert("State".to_owned(), state());
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
            "/v1": {"get": operation("Version, URLs, kubeconfig and memory of the server", ok("State"))},
            "/v1/streams": {"get": operation("Open responses", plain("streams: a list"))},
            "/v1/rules": {
                "get": operation("Active rules", plain("rules: a list of Standing")),
                "post": taking("Add a rule; without `when` it is carried out at once", "Rule", &json!({
                    "201": {"description": "The rule is active: rule, nextRecord"},
                    "200": {"description": "Carried out at once: done, streams, nextRecord"},
                    "409": refused("The rule matches nothing that is served or open"),
                })),
                "delete": operation("Remove every rule", plain("removed: a list of Standing")),
            },
            "/v1/rules/{id}": {
                "parameters": id,
                "delete": operation("Remove a rule", plain("removed: a list of one Standing")),
            },
            "/v1/wait": {"post": taking("Wait for a record in the trace", "Wait", &json!({
                "200": {"description": "The record was found: record, line, stream, nextRecord"},
                "504": refused("The wait timed out; the error names the last request"),
            }))},
            "/v1/trace": {"get": {
                "summary": "The trace, one record per line",
                "parameters": [
                    {"name": "since", "in": "query", "schema": {"type": "integer", "minimum": 0}},
                    {"name": "follow", "in": "query", "schema": {"type": "boolean"}},
                    {"name": "format", "in": "query", "schema": {"enum": ["json", "text"]}},
                ],
                "responses": {"200": {"description": "NDJSON, or text"}},
            }},
            "/v1/verdict": {"get": operation("Verdict so far", plain("the verdict"))},
            "/v1/reset": {"post": operation("Remove all rules and faults, and restore the initial objects", ok("State"))},
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

fn operation(summary: &str, answer: Value) -> Value {
    json!({"summary": summary, "responses": {"200": answer, "401": refused("Without the token")}})
}

fn taking(summary: &str, schema: &str, answers: &Value) -> Value {
    let content = json!({"schema": {"$ref": format!("#/components/schemas/{schema}")}});
    let mut responses = answers.clone();
    responses["400"] = refused("Every mistake in the text, with its line and column");
    responses["401"] = refused("Without the token");
    json!({
        "summary": summary,
        "requestBody": {
            "required": true,
            "content": {"application/json": content, "application/yaml": content},
        },
        "responses": responses,
    })
}

fn ok(schema: &str) -> Value {
    json!({
        "description": schema,
        "content": {"application/json": {"schema": {"$ref": format!("#/components/schemas/{schema}")}}},
    })
}

fn plain(description: &str) -> Value {
    json!({"description": description, "content": {"application/json": {"schema": {"type": "object"}}}})
}

fn refused(description: &str) -> Value {
    json!({
        "description": description,
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Refusal"}}},
    })
}

fn refusal() -> Value {
    json!({
        "type": "object",
        "required": ["error"],
        "properties": {
            "error": {"type": "string", "description": "What is wrong."},
            "hint": {"type": "string", "description": "What to do next."},
            "mistakes": {"type": "array", "items": {
                "type": "object",
                "properties": {
                    "code": {"type": "string"},
                    "message": {"type": "string"},
                    "line": {"type": "integer"},
                    "column": {"type": "integer"},
                    "hint": {"type": ["string", "null"]},
                },
            }},
        },
    })
}

fn standing() -> Value {
    json!({
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "name": {"type": "string"},
            "waitsFor": {"type": "string", "description": "Condition as text."},
            "does": {"type": "string", "description": "Action as text."},
            "met": {"type": "integer"},
            "left": {"type": "integer", "description": "Matches left. Absent for a rule with `for`."},
        },
    })
}

fn state() -> Value {
    json!({
        "type": "object",
        "properties": {
            "version": {"type": "string"},
            "kubernetes": {"type": "string"},
            "servers": {"type": "array", "items": {
                "type": "object",
                "properties": {"replica": {"enum": ["primary", "secondary"]}, "url": {"type": "string"}},
            }},
            "kubeconfig": {"type": "string"},
            "resourceVersion": {"type": "string"},
            "nextRecord": {"type": "integer", "description": "Number of the next record of the trace."},
            "rules": {"type": "integer"},
            "openStreams": {"type": "integer"},
            "memory": {
                "type": "object",
                "description": "Bytes used in addition to the objects, and the limit.",
                "properties": {
                    "history": {"type": "integer"},
                    "events": {"type": "integer"},
                    "trace": {"type": "integer"},
                    "answers": {"type": "integer"},
                    "queries": {"type": "integer"},
                    "judge": {"type": "integer"},
                    "budget": {"type": "integer"},
                },
            },
        },
    })
}
