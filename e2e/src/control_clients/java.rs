//! Java: a record per schema of a response and a base class with the operations. Rules and waits are texts.

use std::fmt::Write as _;

use super::{Api, Field, Kind, Model, NOTICE, Operation, Returned, sentence};

pub(super) fn write(api: &Api) -> String {
    let mut out = format!(
        "// {NOTICE}\npackage io.github.fakeapiserver;\n\n\
         import com.fasterxml.jackson.databind.JsonNode;\n\
         import java.util.List;\n\
         import java.util.Map;\n\n\
         /**\n * The operations of the control API, a method each. Rules and waits are texts in YAML or JSON, as docs/control-api.md \
         describes\n * them.\n */\n\
         abstract sealed class Operations permits Control {{\n    \
         abstract JsonNode send(String method, String path, String body);\n\n    \
         abstract List<JsonNode> lines(String path);\n\n    \
         abstract <T> T read(JsonNode json, Class<T> type);\n\n    \
         abstract <T> List<T> readList(JsonNode json, Class<T> type);\n"
    );
    for operation in &api.operations {
        out.push_str(&method(operation));
    }
    for model in api.models.iter().filter(|model| !model.sent) {
        out.push_str(&record(model));
    }
    out.push_str("}\n");
    out
}

fn record(model: &Model) -> String {
    let mut out = format!("\n    /**\n     * {}\n     *\n", model.description);
    let mut components = Vec::new();
    for field in &model.fields {
        let absent = match (&field.kind, field.required) {
            (_, true) | (Kind::List(_), _) => "",
            (_, false) => " May be null.",
        };
        let _ = writeln!(
            out,
            "     * @param {} {}{absent}",
            field.name,
            field.description.replace('`', "")
        );
        components.push(format!("            {} {}", kind(field), field.name));
    }
    let defaults: Vec<String> = { model.fields.iter() }
        .filter(|field| matches!(field.kind, Kind::List(_)))
        .map(|field| {
            let name = &field.name;
            format!("            {name} = {name} == null ? List.of() : List.copyOf({name});\n")
        })
        .collect();
    let (name, components) = (&model.name, components.join(",\n"));
    let _ = write!(out, "     */\n    public record {name}(\n{components}) {{");
    if !defaults.is_empty() {
        let _ = write!(
            out,
            "\n        /** Lists are never null. */\n        public {name} {{\n{}        }}\n    ",
            defaults.concat()
        );
    }
    out.push_str("}\n");
    out
}

fn kind(field: &Field) -> String {
    match (&field.kind, field.required) {
        (Kind::Number, true) => "long".to_owned(),
        (of, _) => boxed(of),
    }
}

fn boxed(of: &Kind) -> String {
    match of {
        Kind::Text | Kind::Word(_) => "String".to_owned(),
        Kind::Number => "Long".to_owned(),
        Kind::Model(name) => name.clone(),
        Kind::List(of) => format!("List<{}>", boxed(of)),
        Kind::Counts => "Map<String, Long>".to_owned(),
        Kind::Open | Kind::Any => "JsonNode".to_owned(),
    }
}

fn method(operation: &Operation) -> String {
    let mut arguments = Vec::new();
    let mut path = format!("\"{}\"", operation.path);
    if let Some(before) = operation.path.strip_suffix("{id}") {
        arguments.push("long id".to_owned());
        path = format!("\"{before}\" + id");
    }
    for name in &operation.query {
        arguments.push(format!("long {name}"));
        path = format!("\"{}?{name}=\" + {name}", operation.path);
    }
    let body = match &operation.body {
        Some(body) => {
            let name = body.to_lowercase();
            arguments.push(format!("String {name}"));
            name
        }
        None => "\"\"".to_owned(),
    };
    let sent = format!("send(\"{}\", {path}, {body})", operation.method);
    let (returned, body) = match &operation.answer {
        Returned::Model(name) => (name.clone(), format!("read({sent}, {name}.class)")),
        Returned::List { key, of } => (
            format!("List<{of}>"),
            format!("readList({sent}.path(\"{key}\"), {of}.class)"),
        ),
        Returned::One { key, of } => (
            of.clone(),
            format!("read({sent}.path(\"{key}\").path(0), {of}.class)"),
        ),
        Returned::Lines => ("List<JsonNode>".to_owned(), format!("lines({path})")),
    };
    format!(
        "\n    /** {} */\n    public {returned} {}({}) {{\n        return {body};\n    }}\n",
        sentence(&operation.summary).replace("`when`", "{@code when}"),
        operation.id,
        arguments.join(", ")
    )
}
