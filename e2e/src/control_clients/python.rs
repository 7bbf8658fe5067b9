//! Python: a `TypedDict` per schema, whose keys are those of the wire, and two base classes with the operations, the second with
//! coroutines.

use std::fmt::Write as _;

use super::{Api, Kind, Model, NOTICE, Operation, Returned, sentence, snake_case};

pub(super) fn write(api: &Api) -> String {
    let mut out = format!("\"\"\"Types and operations of the control API.\n\n{NOTICE}\n\"\"\"\n");
    out.push_str(
        "\nfrom __future__ import annotations\n\n\
         from collections.abc import Mapping\n\
         from typing import Any, Literal, TypedDict\n\n\
         Json = dict[str, Any]\n\
         \"\"\"JSON of the scenario language, or a record of the trace.\"\"\"\n",
    );
    // A base class stands before its subclasses.
    for model in api.models.iter().rev() {
        out.push_str(&typed(model));
    }
    for calls in [Calls::Blocking, Calls::Awaited] {
        out.push_str(&class(api, calls));
    }
    out
}

/// How an operation returns its result.
#[derive(Clone, Copy)]
enum Calls {
    Blocking,
    Awaited,
}

impl Calls {
    /// Returns what precedes `def`, and what precedes a call.
    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Blocking => ("", ""),
            Self::Awaited => ("async ", "await "),
        }
    }
}

fn class(api: &Api, calls: Calls) -> String {
    let (prefix, _) = calls.words();
    let (name, about) = match calls {
        Calls::Blocking => ("Operations", "a method each"),
        Calls::Awaited => ("AsyncOperations", "a coroutine each"),
    };
    let mut out = format!(
        "\n\nclass {name}:\n    \"\"\"The operations of the control API, {about}.\"\"\"\n\n    \
         {prefix}def _send(self, method: str, path: str, body: Mapping[str, Any] | str | None = None) -> Any:\n        \
         raise NotImplementedError\n\n    \
         {prefix}def _lines(self, path: str) -> list[Json]:\n        \
         raise NotImplementedError\n",
    );
    for operation in &api.operations {
        out.push_str(&method(operation, calls));
    }
    out
}

fn typed(model: &Model) -> String {
    let name = &model.name;
    let field = |out: &mut String, field: &super::Field| {
        let _ = write!(
            out,
            "    {}: {}\n    \"\"\"{}\"\"\"\n",
            field.name,
            kind(&field.kind),
            field.description
        );
    };
    if model.sent {
        // Its keys are words of the language: `from`, `for`.
        let mut out = format!("\n\n{name} = TypedDict(\n    \"{name}\",\n    {{\n");
        for field in &model.fields {
            let _ = writeln!(
                out,
                "        # {}\n        \"{}\": {},",
                field.description,
                field.name,
                quoted(&field.kind)
            );
        }
        let _ = write!(
            out,
            "    }},\n    total=False,\n)\n\"\"\"{}\"\"\"\n",
            model.description
        );
        return out;
    }
    let (required, optional): (Vec<_>, Vec<_>) = model.fields.iter().partition(|field| field.required);
    let mut out = String::new();
    let (base, of) = match optional.is_empty() {
        true => (name.clone(), "TypedDict".to_owned()),
        false => (format!("_{name}"), "TypedDict".to_owned()),
    };
    let _ = write!(
        out,
        "\n\nclass {base}({of}):\n    \"\"\"{}\"\"\"\n\n",
        model.description
    );
    for one in required {
        field(&mut out, one);
    }
    if !optional.is_empty() {
        let _ = write!(
            out,
            "\n\nclass {name}({base}, total=False):\n    \"\"\"{}\"\"\"\n\n",
            model.description
        );
        for one in optional {
            field(&mut out, one);
        }
    }
    out
}

fn kind(of: &Kind) -> String {
    match of {
        Kind::Text => "str".to_owned(),
        Kind::Word(words) => {
            let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
            format!("Literal[{}]", words.join(", "))
        }
        Kind::Number => "int".to_owned(),
        Kind::Model(name) => name.clone(),
        Kind::List(of) => format!("list[{}]", kind(of)),
        Kind::Counts => "dict[str, int]".to_owned(),
        Kind::Open => "Json".to_owned(),
        Kind::Any => "Any".to_owned(),
    }
}

/// A type that is evaluated when the module is imported, which 3.10 can.
fn quoted(of: &Kind) -> String {
    match matches!(of, Kind::Open) {
        true => "Mapping[str, Any]".to_owned(),
        false => kind(of),
    }
}

fn method(operation: &Operation, calls: Calls) -> String {
    let (prefix, awaited) = calls.words();
    let mut arguments = String::new();
    let mut path = format!("\"{}\"", operation.path);
    if operation.path.contains("{id}") {
        arguments.push_str(", id: int");
        path = format!("f{path}");
    }
    for name in &operation.query {
        let _ = write!(arguments, ", {name}: int = 0");
        path = format!("f\"{}?{name}={{{name}}}\"", operation.path);
    }
    let mut sent = format!("\"{}\", {path}", operation.method);
    match &operation.body {
        Some(body) => {
            let name = body.to_lowercase();
            let _ = write!(arguments, ", {name}: {body} | Mapping[str, Any] | str");
            let _ = write!(sent, ", {name}");
        }
        None if operation.method == "POST" => sent.push_str(", \"\""),
        None => {}
    }
    let (returned, body) = match &operation.answer {
        Returned::Model(name) => (
            name.clone(),
            format!("answer: {name} = {awaited}self._send({sent})\n        return answer"),
        ),
        Returned::List { key, of } => (
            format!("list[{of}]"),
            format!("answer: list[{of}] = ({awaited}self._send({sent}))[\"{key}\"]\n        return answer"),
        ),
        Returned::One { key, of } => (
            of.clone(),
            format!("answer: {of} = ({awaited}self._send({sent}))[\"{key}\"][0]\n        return answer"),
        ),
        Returned::Lines => (
            "list[Json]".to_owned(),
            format!("return {awaited}self._lines({path})"),
        ),
    };
    format!(
        "\n    {prefix}def {}(self{arguments}) -> {returned}:\n        \"\"\"{}\"\"\"\n        {body}\n",
        snake_case(&operation.id),
        sentence(&operation.summary)
    )
}
