//! Go: a struct per schema and a method of `Control` per operation.

use std::fmt::Write as _;

use super::{Api, Field, Kind, Model, NOTICE, Operation, Returned, sentence};

pub(super) fn write(api: &Api) -> String {
    let mut out = format!(
        "// {NOTICE}\n\npackage fakeapiserver\n\nimport (\n\t\"context\"\n\t\"encoding/json\"\n\t\"fmt\"\n)\n"
    );
    for model in &api.models {
        out.push_str(&declared(model));
    }
    for operation in &api.operations {
        out.push_str(&method(operation));
    }
    out
}

/// `openMs` as `OpenMs`, `lose_answer` as `LoseAnswer`, and `id` as `ID`.
pub(super) fn exported(name: &str) -> String {
    if matches!(name, "id" | "url") {
        return name.to_uppercase();
    }
    let word = |word: &str| {
        let mut letters = word.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        first.into_iter().chain(letters).collect::<String>()
    };
    name.split('_').map(word).collect()
}

fn declared(model: &Model) -> String {
    let mut out = format!(
        "\n// {}: {}\ntype {} struct {{\n",
        model.name, model.description, model.name
    );
    for field in &model.fields {
        let empty = match field.required || field.zero_counts {
            true => "",
            false => ",omitempty",
        };
        let _ = write!(
            out,
            "\t// {}\n\t{} {} `json:\"{}{empty}\"`\n",
            field.description,
            exported(&field.name),
            kind(field),
            field.name
        );
    }
    out.push_str("}\n");
    out
}

fn kind(field: &Field) -> String {
    // A rule that was carried out at once has none.
    let pointer = matches!(field.kind, Kind::Model(_)) && !field.required;
    format!("{}{}", if pointer { "*" } else { "" }, plain(&field.kind))
}

fn plain(of: &Kind) -> String {
    match of {
        Kind::Text | Kind::Word(_) => "string".to_owned(),
        Kind::Number => "uint64".to_owned(),
        Kind::Model(name) => name.clone(),
        Kind::List(of) => format!("[]{}", plain(of)),
        Kind::Counts => "map[string]uint64".to_owned(),
        Kind::Open => "map[string]any".to_owned(),
        Kind::Any => "any".to_owned(),
    }
}

fn method(operation: &Operation) -> String {
    let mut arguments = String::new();
    let mut path = format!("\"{}\"", operation.path);
    if operation.path.contains("{id}") {
        arguments.push_str(", id uint64");
        path = format!("fmt.Sprintf(\"{}\", id)", operation.path.replace("{id}", "%d"));
    }
    for name in &operation.query {
        let _ = write!(arguments, ", {name} uint64");
        path = format!("fmt.Sprintf(\"{}?{name}=%d\", {name})", operation.path);
    }
    let body = match &operation.body {
        Some(body) => {
            let name = body.to_lowercase();
            let _ = write!(arguments, ", {name} {body}");
            name
        }
        None => "nil".to_owned(),
    };
    let sent = format!("ctx, c, \"{}\", {path}, {body}", operation.method);
    let (returned, body) = match &operation.answer {
        Returned::Model(name) => (name.clone(), format!("\treturn send[{name}]({sent})\n")),
        Returned::List { key, of } => (
            format!("[]{of}"),
            format!("\tanswer, err := send[map[string][]{of}]({sent})\n\treturn answer[\"{key}\"], err\n"),
        ),
        Returned::One { key, of } => (
            of.clone(),
            format!(
                "\tanswer, err := send[map[string][1]{of}]({sent})\n\treturn answer[\"{key}\"][0], err\n"
            ),
        ),
        Returned::Lines => (
            "[]json.RawMessage".to_owned(),
            format!("\treturn c.lines(ctx, {path})\n"),
        ),
    };
    let name = exported(&operation.id);
    format!(
        "\n// {name}: {}\nfunc (c *Control) {name}(ctx context.Context{arguments}) ({returned}, error) {{\n{body}}}\n",
        sentence(&operation.summary)
    )
}
