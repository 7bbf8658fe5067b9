//! JavaScript: a base class with the operations, and types for TypeScript beside it.

use std::fmt::Write as _;

use super::{Api, Kind, Model, NOTICE, Operation, Returned, sentence};

pub(super) fn write(api: &Api) -> String {
    let mut out = format!(
        "// {NOTICE}\n\n/** The operations of the control API, a method each. */\nexport class Operations {{\n"
    );
    let methods: Vec<String> = api.operations.iter().map(method).collect();
    out.push_str(&methods.join("\n"));
    out.push_str("}\n");
    out
}

/// The types of the same.
pub(super) fn types(api: &Api) -> String {
    let mut out = format!(
        "// {NOTICE}\n\n/** JSON of the scenario language, or a record of the trace. */\nexport type Json = Record<string, unknown>;\n"
    );
    for model in &api.models {
        out.push_str(&interface(model));
    }
    out.push_str("\n/** The operations of the control API, a method each. */\nexport class Operations {\n");
    for operation in &api.operations {
        let mut arguments = Vec::new();
        if operation.path.contains("{id}") {
            arguments.push("id: number".to_owned());
        }
        arguments.extend(operation.query.iter().map(|name| format!("{name}?: number")));
        arguments.extend(
            operation
                .body
                .iter()
                .map(|body| format!("{}: {body} | string", body.to_lowercase())),
        );
        let returned = match &operation.answer {
            Returned::Model(name) | Returned::One { of: name, .. } => name.clone(),
            Returned::List { of, .. } => format!("{of}[]"),
            Returned::Lines => "Json[]".to_owned(),
        };
        let _ = write!(
            out,
            "    /** {} */\n    {}({}): Promise<{returned}>;\n",
            sentence(&operation.summary),
            operation.id,
            arguments.join(", ")
        );
    }
    out.push_str("}\n");
    out
}

fn interface(model: &Model) -> String {
    let mut out = format!(
        "\n/** {} */\nexport interface {} {{\n",
        model.description, model.name
    );
    for field in &model.fields {
        let mark = if field.required { "" } else { "?" };
        let _ = write!(
            out,
            "    /** {} */\n    {}{mark}: {};\n",
            field.description,
            field.name,
            kind(&field.kind)
        );
    }
    out.push_str("}\n");
    out
}

fn kind(of: &Kind) -> String {
    match of {
        Kind::Text => "string".to_owned(),
        Kind::Word(words) => {
            let words: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
            words.join(" | ")
        }
        Kind::Number => "number".to_owned(),
        Kind::Model(name) => name.clone(),
        Kind::List(of) => format!("{}[]", kind(of)),
        Kind::Counts => "Record<string, number>".to_owned(),
        Kind::Open => "Json".to_owned(),
        Kind::Any => "unknown".to_owned(),
    }
}

fn method(operation: &Operation) -> String {
    let mut arguments = Vec::new();
    let mut path = format!("'{}'", operation.path);
    if let Some(before) = operation.path.strip_suffix("{id}") {
        arguments.push("id".to_owned());
        path = format!("`{before}${{id}}`");
    }
    for name in &operation.query {
        arguments.push(format!("{name} = 0"));
        path = format!("`{}?{name}=${{{name}}}`", operation.path);
    }
    let mut sent = format!("'{}', {path}", operation.method);
    match &operation.body {
        Some(body) => {
            let name = body.to_lowercase();
            let _ = write!(sent, ", {name}");
            arguments.push(name);
        }
        None if operation.method == "POST" => sent.push_str(", ''"),
        None => {}
    }
    let body = match &operation.answer {
        Returned::Model(_) => format!("await this._send({sent})"),
        Returned::List { key, .. } => format!("(await this._send({sent})).{key}"),
        Returned::One { key, .. } => format!("(await this._send({sent})).{key}[0]"),
        Returned::Lines => format!("await this._lines({path})"),
    };
    format!(
        "    /** {} */\n    async {}({}) {{\n        return {body};\n    }}\n",
        sentence(&operation.summary),
        operation.id,
        arguments.join(", ")
    )
}
