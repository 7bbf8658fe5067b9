//! OpenAPI v2 (Swagger): the same paths and schemas in one document, for tools that do not support version 3.
//!
//! Source: OpenAPI Specification 2.0; kube-openapi `builder` for the conversion from 3.0.

mod protobuf;

use apimachinery::Version;
use apimachinery::encode::encode_json;
use builtin_kinds::catalog::Catalog;
use http::HeaderValue;
use http::header::{ETAG, IF_NONE_MATCH};
use serde_json::{Map, Value, json};

use super::custom::{self, Draft};
use super::{bare, contents, customs, hash, quoted, schemas_of, tag, takes_json, whole};
use crate::api::{Answer, HttpRequest, JSON, VARY_ACCEPT};

/// Returns `/openapi/v2`: in protobuf if the client accepts it, else in JSON.
pub(super) fn answer(request: &HttpRequest, catalog: &Catalog, version: Version) -> Answer {
    let accept = request.header(http::header::ACCEPT).unwrap_or_default();
    let in_protobuf = accept.contains(protobuf::ASKED_FOR);
    if !in_protobuf && !takes_json(request) {
        return bare(406, vec![VARY_ACCEPT]);
    }
    let documents = contents(catalog, version);
    let tags = documents
        .iter()
        .map(|(name, paths)| tag(name, paths, catalog, version));
    let form = in_protobuf.then(|| "protobuf".to_owned());
    let tags: Vec<String> = tags.chain(form).collect();
    let tag = quoted(&hash(tags.concat().as_bytes()));
    let known = request.headers.get(IF_NONE_MATCH) == Some(&tag);
    let headers = vec![(ETAG, tag), VARY_ACCEPT];
    if known {
        return bare(304, headers);
    }
    let mut paths = Map::new();
    let mut definitions = Map::new();
    for (name, texts) in &documents {
        for (path, text) in texts {
            let item = serde_json::from_str(text).unwrap_or_default();
            paths.insert(path.clone(), path_item(item));
        }
        for (name, text) in schemas_of(name, texts, catalog, version) {
            let schema = || schema(serde_json::from_str(&text).unwrap_or_default());
            definitions.entry(name).or_insert_with(schema);
        }
        for kind in customs(name, catalog) {
            let own = custom::schema(kind, version, Draft::Version2);
            definitions.insert(custom::name(kind), schema(own));
        }
    }
    paths.sort_keys();
    definitions.sort_keys();
    let document = json!({
        "swagger": "2.0",
        "info": { "title": "Kubernetes", "version": format!("1.{}", version.minor()) },
        "paths": paths,
        "definitions": definitions,
        "securityDefinitions": { "BearerToken": {
            "description": "Bearer Token authentication", "type": "apiKey", "name": "authorization", "in": "header",
        }},
        "security": [{ "BearerToken": [] }],
    });
    if in_protobuf {
        return whole(
            HeaderValue::from_static(protobuf::CONTENT_TYPE),
            protobuf::encode(&document),
            headers,
        );
    }
    whole(JSON, encode_json(&document), headers)
}

fn path_item(item: Value) -> Value {
    let Value::Object(item) = item else {
        return item;
    };
    let parts = item.into_iter().map(|(name, value)| {
        let value = if let Value::Array(parameters) = value {
            parameters.into_iter().map(parameter).collect()
        } else {
            operation(value)
        };
        (name, value)
    });
    Value::Object(parts.collect())
}

fn operation(operation: Value) -> Value {
    let Value::Object(mut operation) = operation else {
        return operation;
    };
    let mut produces: Vec<Value> = Vec::new();
    let mut parameters: Vec<Value> = match operation.remove("parameters") {
        Some(Value::Array(parameters)) => parameters.into_iter().map(parameter).collect(),
        Some(_) | None => Vec::new(),
    };
    if let Some(mut body) = operation.remove("requestBody") {
        let (types, schema) = content(&mut body);
        let required = body.get("required").cloned();
        let mut parameter = json!({ "name": "body", "in": "body", "schema": schema });
        if let Some(required) = required {
            parameter["required"] = required;
        }
        parameters.insert(0, parameter);
        operation.insert("consumes".to_owned(), types.into());
    }
    if !parameters.is_empty() {
        operation.insert("parameters".to_owned(), parameters.into());
    }
    if let Some(Value::Object(responses)) = operation.get_mut("responses") {
        for response in responses.values_mut() {
            let (types, schema) = content(response);
            if !schema.is_null() {
                response["schema"] = schema;
                produces = types;
            }
        }
    }
    if !produces.is_empty() {
        operation.insert("produces".to_owned(), produces.into());
    }
    Value::Object(operation)
}

/// Removes `content`; returns its media types, and the schema they share.
fn content(of: &mut Value) -> (Vec<Value>, Value) {
    let content = of.as_object_mut().and_then(|of| of.remove("content"));
    let Some(Value::Object(content)) = content else {
        return (Vec::new(), Value::Null);
    };
    let types = content.keys().map(|name| name.as_str().into()).collect();
    let first = content.into_iter().next();
    let schema = first.and_then(|(_, mut media)| media.get_mut("schema").map(Value::take));
    (types, schema.map(self::schema).unwrap_or_default())
}

/// Converts a parameter: in version 2 its type is next to its name.
fn parameter(parameter: Value) -> Value {
    let Value::Object(mut parameter) = parameter else {
        return parameter;
    };
    if let Some(Value::Object(schema)) = parameter.remove("schema") {
        parameter.extend(schema);
    }
    Value::Object(parameter)
}

/// Converts a schema: version 2 has neither `nullable` nor alternatives, published defaults are removed, and a reference has
/// no siblings.
fn schema(schema: Value) -> Value {
    let Value::Object(mut schema) = schema else {
        return schema;
    };
    if let Some(Value::Array(parts)) = schema.remove("allOf")
        && let Some(Value::Object(part)) = parts.into_iter().next()
    {
        schema.extend(part);
    }
    for (name, stands_for) in [("oneOf", "string"), ("anyOf", "")] {
        if schema.remove(name).is_some() && !stands_for.is_empty() {
            schema.insert("type".to_owned(), stands_for.into());
        }
    }
    for name in ["default", "nullable", "not"] {
        schema.remove(name);
    }
    for (name, value) in &mut schema {
        match (name.as_str(), value) {
            ("$ref", Value::String(reference)) => {
                *reference = reference.replace("#/components/schemas/", "#/definitions/");
            }
            ("properties", Value::Object(properties)) => {
                for property in properties.values_mut() {
                    *property = self::schema(property.take());
                }
            }
            ("items" | "additionalProperties", value) => *value = self::schema(value.take()),
            _ => {}
        }
    }
    Value::Object(schema)
}
