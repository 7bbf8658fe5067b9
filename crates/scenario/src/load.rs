//! Entry points of the scenario language: parse text to a [`Scenario`], or return all errors.

use std::path::Path;
use std::sync::LazyLock;

use builtin_kinds::catalog::Catalog;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::errors::LoadErrors;
use super::files::{self, LARGEST_FILE, too_large};
use super::problem::{Code, Problem};
use super::read::WordOr;
use super::span::Span;
use super::tree::{Kind, Node};
use super::{Rule, Scenario, Wait, check, raw, read, schema, tree, validate};

static SCHEMA: LazyLock<Value> = LazyLock::new(schema::schema);
static RULE_SCHEMA: LazyLock<Value> = LazyLock::new(schema::rule);
static WAIT_SCHEMA: LazyLock<Value> = LazyLock::new(schema::wait);

/// Reads the scenario at `path`. Its id is the path below `root`, without extension.
///
/// # Errors
/// All errors of the file, or why it cannot be read.
pub fn load(path: &Path, root: &Path) -> Result<Scenario, LoadErrors> {
    let relative = path.strip_prefix(root).unwrap_or(path).with_extension("");
    let id = relative
        .iter()
        .map(|part| part.to_string_lossy())
        .collect::<Vec<_>>()
        .join("/");
    parse(&id, path, &files::read(path)?)
}

/// Parses a scenario. `path` is used in messages only; nothing is read from disk.
///
/// # Errors
/// All errors of the text, except those that merely follow from others.
pub fn parse(id: &str, path: &Path, text: &str) -> Result<Scenario, LoadErrors> {
    tracing::debug!(id, bytes = text.len(), "parsing a scenario");
    let (file, problems, items) = structure::<raw::File>(path, text, &SCHEMA, "a scenario")?;
    let (scenario, found) = validate::validate(id, path, text, file);
    made(path, text, scenario, problems, found, &items)
}

/// Validates a scenario that was not read from text. All positions are the first. `path` is used in messages only.
///
/// # Errors
/// All errors, without positions: [`parse`] finds those in the text of `file`.
pub fn build(id: &str, path: &Path, file: raw::File) -> Result<Scenario, LoadErrors> {
    let (scenario, found) = validate::validate(id, path, "", file);
    made(path, "", scenario, Vec::new(), found, &[])
}

/// Parses a rule in YAML or JSON. It may write objects of the kinds in `served`. `path` is used in messages only.
///
/// # Errors
/// All errors of the text.
pub fn parse_rule(path: &Path, text: &str, served: &Catalog) -> Result<Rule, LoadErrors> {
    let (rule, problems, items) = structure::<WordOr<raw::Rule>>(path, text, &RULE_SCHEMA, "a rule")?;
    let (rule, found) = validate::validate_rule(text, rule, served);
    made(path, text, rule, problems, found, &items)
}

/// Parses a wait in YAML or JSON. `path` is used in messages only.
///
/// # Errors
/// All errors of the text.
pub fn parse_wait(path: &Path, text: &str) -> Result<Wait, LoadErrors> {
    let (wait, problems, items) = structure::<raw::WaitKeys>(path, text, &WAIT_SCHEMA, "a wait")?;
    let (wait, found) = validate::validate_wait(text, &wait);
    made(path, text, wait, problems, found, &items)
}

/// The typed value, its structural errors, and the spans that are judged independently.
type Shaped<T> = (T, Vec<Problem>, Vec<Span>);

fn structure<T: DeserializeOwned>(
    path: &Path,
    text: &str,
    schema: &Value,
    what: &str,
) -> Result<Shaped<T>, LoadErrors> {
    if text.len() > LARGEST_FILE {
        let problem = too_large(text.len() as u64, what);
        return Err(LoadErrors::new(path, text, vec![problem]));
    }
    let (tree, mut problems) = tree::read(text);
    let Some(mut tree) = tree else {
        return Err(LoadErrors::new(path, text, problems));
    };
    let items = items(&tree);
    if !check::check(&mut tree, schema, what, &mut problems) {
        return Err(LoadErrors::new(path, text, problems));
    }
    match read::from_node(&tree) {
        Ok(shaped) => Ok((shaped, problems, items)),
        Err(error) => {
            // After `check` this means that schema and types disagree; it is still reported with its position.
            let span = error.span.unwrap_or_default();
            problems.push(Problem::new(
                Code::WrongType,
                span,
                format!("this cannot be read: {}", error.message),
            ));
            Err(LoadErrors::new(path, text, problems))
        }
    }
}

fn made<T>(
    path: &Path,
    text: &str,
    made: T,
    mut problems: Vec<Problem>,
    found: Vec<Problem>,
    items: &[Span],
) -> Result<T, LoadErrors> {
    problems.extend(independent_errors(found, &problems, items));
    if problems.is_empty() {
        Ok(made)
    } else {
        Err(LoadErrors::new(path, text, problems))
    }
}

/// Removes errors from `found` that may only follow from structural errors in `earlier`.
fn independent_errors(found: Vec<Problem>, earlier: &[Problem], items: &[Span]) -> Vec<Problem> {
    let broken: Vec<Span> = earlier
        .iter()
        .filter(|problem| !problem.repaired)
        .map(|problem| problem.span)
        .collect();
    let broken_items: Vec<Span> = items
        .iter()
        .copied()
        .filter(|item| broken.iter().any(|broken| item.holds(*broken)))
        .collect();
    let in_broken_item = |span: Span| broken_items.iter().any(|item| item.holds(span));
    found
        .into_iter()
        .filter(|problem| {
            broken.is_empty() || !(problem.code.depends_on_other_lines() || in_broken_item(problem.span))
        })
        .collect()
}

/// Returns the parts of a file that are judged independently: steps, objects, expectations, other keys.
fn items(tree: &Node) -> Vec<Span> {
    let mut items = Vec::new();
    let Kind::Mapping(entries) = &tree.kind else {
        return items;
    };
    for (_, value) in entries {
        match &value.kind {
            Kind::Sequence(list) => items.extend(list.iter().map(|item| item.span)),
            Kind::Mapping(keys) => items.extend(keys.iter().map(|(_, value)| value.span)),
            Kind::Scalar { .. } => items.push(value.span),
        }
    }
    items
}
