//! Resolves `$name`: where names are bound, their values, and from when on they are available.

use std::collections::BTreeMap;

use super::Validator;
use crate::problem::{Code, Problem};
use crate::raw::Condition;
use crate::read::{At, First, Text, WordOr};
use crate::span::Span;
use crate::words::{is_name, nearest, suggest};
use crate::{Expected, Ref, raw};

/// What a name is bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Named {
    /// A write or a bookmark: has a resourceVersion.
    Version,
    /// A LIST or a page: has a resourceVersion and a continue token.
    List,
    /// A WATCH or a step with another trigger: marks a moment only.
    Moment,
}

/// The names of a file.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// All names of the file, to distinguish "too early" from "undefined".
    all: Vec<String>,
    /// Names that are bound at the current position.
    bound: BTreeMap<String, (Named, Span)>,
    /// Names of steps, for `before:` and `after:`.
    steps: Vec<String>,
    steps_are_over: bool,
}

impl Names {
    /// Collects all names of the file before validation.
    pub(super) fn collect(
        &mut self,
        objects: &Option<Vec<At<raw::Object>>>,
        steps: &Option<Vec<At<WordOr<raw::Step>>>>,
        expect: &Option<raw::Expectations>,
    ) {
        fn of_object(object: &raw::Object) -> Option<&At<String>> {
            object.short()?.binds.as_ref()
        }
        fn of_action(action: &raw::ActionKeys) -> Vec<&At<String>> {
            let applied = action.keys.iter().filter_map(raw::ActionKey::applied);
            let objects = applied.flat_map(|objects| &objects.value.0);
            action
                .name
                .iter()
                .chain(objects.filter_map(|object| of_object(&object.value)))
                .collect()
        }
        let mut all: Vec<&At<String>> = Vec::new();
        all.extend(
            objects
                .iter()
                .flatten()
                .filter_map(|object| of_object(&object.value)),
        );
        for step in steps.iter().flatten() {
            all.extend(of_action(&step.value.0.1));
            let actions = step.value.0.0.actions.iter().flat_map(|actions| &actions.value.0);
            actions.for_each(|action| all.extend(of_action(&action.value.0)));
        }
        let expected = expect.iter().flat_map(|expect| expect.requests.iter().flatten());
        all.extend(expected.filter_map(|request| request.value.0.0.name.as_ref()));
        self.all = all.into_iter().map(|name| name.value.clone()).collect();
    }

    /// Marks the end of the steps: later references are evaluated at the end of the run.
    pub(super) fn steps_are_over(&mut self) {
        self.steps_are_over = true;
    }
}

impl Validator<'_> {
    /// Binds `name`.
    pub(super) fn bind(&mut self, name: &At<String>, named: Named) -> String {
        let word = &name.value;
        if self.optional.is_some() {
            self.problem(
                Problem::new(
                    Code::Misplaced,
                    name.span,
                    "an optional step may be skipped: what it does has no name",
                )
                .label("might never have a value")
                .hint("leave `as` out, or name a step that is always met"),
            );
        }
        if !is_name(word) || matches!(word.as_str(), "start" | "any" | "absent" | "present") {
            self.problem(
                Problem::new(Code::BadForm, name.span, format!("`{word}` cannot be a name"))
                    .label("not a name")
                    .hint("a letter, then letters, digits, `_` and `-`; `start` is reserved, and the `$` stands only where the name is used"),
            );
        } else if let Some((_, first)) = self.names.bound.get(word) {
            let line = self.place(*first).line;
            self.problem(
                Problem::new(
                    Code::DuplicateName,
                    name.span,
                    format!("`{word}` is already the name of something in line {line}"),
                )
                .label("the second time")
                .hint("a name means one thing: choose another"),
            );
        }
        self.names.bound.entry(word.clone()).or_insert((named, name.span));
        word.clone()
    }

    /// Adds the name of a step, for `before:` and `after:`; [`Self::bind`] adds `$name`.
    pub(super) fn name_step(&mut self, name: &str) {
        self.names.steps.push(name.to_owned());
    }

    /// Returns the step that `before:` or `after:` refers to.
    pub(super) fn step_named(&mut self, name: Option<&At<String>>) -> Option<String> {
        let name = name?;
        let word = name.value.strip_prefix('$').unwrap_or(&name.value);
        if word != name.value {
            self.problem(
                Problem::new(
                    Code::BadForm,
                    name.span,
                    format!("write the bare name of a step, not `{}`", name.value),
                )
                .label("no `$` here")
                .hint(format!("write `{word}`")),
            );
        } else if !self.names.steps.iter().any(|step| step == word) {
            let steps = self.names.steps.clone();
            self.problem(
                Problem::new(
                    Code::UndefinedName,
                    name.span,
                    format!("no step is named `{word}`"),
                )
                .label("unknown step")
                .hint(match steps.is_empty() {
                    true => format!("give a step the name: `as: {word}`"),
                    false => suggest(word, steps.iter().map(String::as_str)),
                }),
            );
        }
        Some(word.to_owned())
    }

    /// Parses a reference: `$name`, `$name.rv`, `$name.continue`, `$start`.
    pub(super) fn reference(&mut self, text: &str, span: Span) -> Ref {
        let body = text.strip_prefix('$').unwrap_or(text);
        let (name, field) = body
            .split_once('.')
            .map_or((body, None), |(name, field)| (name, Some(field)));
        if name == "start" && field.is_none_or(|field| field == "rv") {
            return Ref::Start;
        }
        let reference = match field {
            None | Some("rv") => Ref::ResourceVersion(name.to_owned()),
            Some("continue") => Ref::Continue(name.to_owned()),
            Some(other) => {
                self.problem(
                    Problem::new(Code::NoSuchValue, span, format!("`${name}` has no `{other}`"))
                        .label("unknown value")
                        .hint(suggest(other, ["rv", "continue"])),
                );
                return Ref::ResourceVersion(name.to_owned());
            }
        };
        match self.names.bound.get(name).copied() {
            None => self.not_bound(name, span),
            Some((Named::Moment, first)) => {
                let line = self.place(first).line;
                self.problem(
                    Problem::new(
                        Code::NoSuchValue,
                        span,
                        format!("`{name}` (line {line}) is a moment, not a version"),
                    )
                    .label("has no value")
                    .hint("a LIST, a page, a write or a bookmark has a version; name one of those"),
                );
            }
            Some((Named::Version, first)) if matches!(reference, Ref::Continue(_)) => {
                let line = self.place(first).line;
                self.problem(
                    Problem::new(
                        Code::NoSuchValue,
                        span,
                        format!("`{name}` (line {line}) is a write: it has no continue token"),
                    )
                    .label("has no such value")
                    .hint("only a step that waits for a LIST or a page has one"),
                );
            }
            Some((Named::Version | Named::List, _)) => {}
        }
        reference
    }

    fn not_bound(&mut self, name: &str, span: Span) {
        let problem = if self.names.all.iter().any(|known| known == name) {
            let hint = match self.names.steps_are_over {
                true => "a request's own name stands for it only in the requests expected after it",
                false => {
                    "use it in a later step: a LIST has no version before it is answered, a write none before it is done"
                }
            };
            Problem::new(Code::TooEarly, span, format!("`${name}` has no value yet"))
                .label("too early")
                .hint(hint)
        } else {
            let known: Vec<&str> = self
                .names
                .all
                .iter()
                .map(String::as_str)
                .chain(["start"])
                .collect();
            let hint = match nearest(name, known.iter().copied()) {
                Some(meant) => format!("did you mean `${meant}`?"),
                None => format!("name what it should stand for: `as: {name}`"),
            };
            Problem::new(Code::UndefinedName, span, format!("nothing is named `{name}`"))
                .label("undefined")
                .hint(hint)
        };
        self.problem(problem);
    }

    /// Converts a condition on a value.
    pub(super) fn condition(&mut self, condition: &At<First<Condition>>) -> Expected {
        let First(Condition { bare, is, not }) = &condition.value;
        match (bare, is, not) {
            (Some(bare), _, _) => self.expected(bare),
            (None, Some(is), None) => Expected::Is(is.value.0.clone()),
            (None, None, Some(not)) => Expected::Not(Box::new(self.expected(not))),
            (None, Some(_), Some(_)) | (None, None, None) => {
                self.problem(
                    Problem::new(
                        Code::Conflict,
                        condition.span,
                        "a condition is either `is` or `not`",
                    )
                    .label("one of the two belongs here"),
                );
                Expected::Present
            }
        }
    }

    /// Converts a value to write: a text, `$name` or `absent`.
    pub(super) fn written(&mut self, condition: &At<First<Condition>>) -> Expected {
        let expected = self.condition(condition);
        if matches!(expected, Expected::Not(_) | Expected::Present) {
            self.problem(
                Problem::new(
                    Code::Misplaced,
                    condition.span,
                    "this is written, not compared: it must be one value",
                )
                .label("not a value")
                .hint("write a text, `$name` or `absent`"),
            );
        }
        expected
    }

    fn expected(&mut self, text: &At<Text>) -> Expected {
        match text.value.0.as_str() {
            "absent" => Expected::Absent,
            "present" => Expected::Present,
            reference if reference.starts_with('$') => Expected::Ref(self.reference(reference, text.span)),
            literal => Expected::Is(literal.to_owned()),
        }
    }

    /// Parses the `$name` of `restore:`.
    pub(super) fn only_reference(&mut self, text: &At<Text>) -> Ref {
        if !text.value.0.starts_with('$') {
            self.problem(
                Problem::new(
                    Code::BadForm,
                    text.span,
                    format!("`{}` is not a name's value", text.value.0),
                )
                .label("`$name` belongs here")
                .hint("name the write to go back to with `as:`, or go back to `$start`"),
            );
            return Ref::Start;
        }
        let reference = self.reference(&text.value.0, text.span);
        if matches!(reference, Ref::Continue(_)) {
            self.problem(
                Problem::new(
                    Code::NoSuchValue,
                    text.span,
                    "a continue token is no version to go back to",
                )
                .label("not a version"),
            );
        }
        reference
    }
}
