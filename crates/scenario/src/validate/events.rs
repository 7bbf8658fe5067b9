//! Validates reported events in triggers and expectations.

use super::Validator;
use super::world::World;
use crate::problem::{Code, Problem};
use crate::raw::Emitted;
use crate::read::{At, Nothing, OrNothing, Text};
use crate::span::Span;
use crate::words::nearest;
use crate::{EmittedKind, EmittedMatch};

impl Validator<'_> {
    /// Validates a reported event. `unknown`: the code to report if its object was never written.
    pub(super) fn emitted(
        &mut self,
        world: &World,
        emitted: &Emitted,
        span: Span,
        unknown: Code,
    ) -> Option<EmittedMatch> {
        let Emitted {
            init,
            init_apply,
            init_done,
            apply,
            delete,
            error,
            nth,
            rv,
            code,
            message,
        } = emitted;
        let plain = |at: &Option<At<Nothing>>, kind| at.as_ref().map(|at| (kind, at.span, None));
        let named = |at: &Option<At<OrNothing<Text>>>, kind| {
            at.as_ref()
                .map(|at| (kind, at.span, at.value.0.as_ref().map(|text| text.0.clone())))
        };
        let kinds: Vec<(EmittedKind, Span, Option<String>)> = [
            plain(init, EmittedKind::Init),
            named(init_apply, EmittedKind::InitApply),
            plain(init_done, EmittedKind::InitDone),
            named(apply, EmittedKind::Apply),
            named(delete, EmittedKind::Delete),
            plain(error, EmittedKind::Error),
        ]
        .into_iter()
        .flatten()
        .collect();
        let [(kind, at, name)] = kinds.as_slice() else {
            self.problem(
                Problem::new(Code::Conflict, span, "an event is of one kind")
                    .label("one kind belongs here")
                    .hint("one of `init`, `init_apply`, `init_done`, `apply`, `delete`, `error`"),
            );
            return None;
        };
        let name = name.clone().filter(|name| name != "any");
        if let Some(name) = &name {
            self.known_name(world, name, *at, unknown);
        }
        let resource_version = rv.as_ref().map(|rv| self.condition(rv));
        if let Some(rv) = rv.as_ref().filter(|_| {
            matches!(
                kind,
                EmittedKind::Init | EmittedKind::InitDone | EmittedKind::Error
            )
        }) {
            self.problem(
                Problem::new(
                    Code::Misplaced,
                    rv.span,
                    format!("`{}` is about no object, so it has no version", kind.word()),
                )
                .label("does not belong here"),
            );
        }
        let of_error = [
            code.as_ref().map(|code| ("code", code.span)),
            message.as_ref().map(|message| ("message", message.span)),
        ];
        for (key, span) in of_error
            .into_iter()
            .flatten()
            .filter(|_| *kind != EmittedKind::Error)
        {
            self.problem(
                Problem::new(Code::Misplaced, span, format!("`{}` has no {key}", kind.word()))
                    .label("does not belong here")
                    .hint("only an `error` has one"),
            );
        }
        let nth = nth
            .as_ref()
            .map_or(1, |nth| u32::try_from(nth.value).unwrap_or(u32::MAX));
        Some(EmittedMatch {
            kind: *kind,
            name,
            resource_version,
            code: code.as_ref().and_then(|code| u16::try_from(code.value).ok()),
            message: message.as_ref().map(|message| message.value.0.clone()),
            nth,
            at: self.place(span),
        })
    }

    /// Reports an error if `name` never was an object of the target.
    pub(super) fn known_name(&mut self, world: &World, name: &str, span: Span, code: Code) {
        if world.knows(name) {
            return;
        }
        let hint = match nearest(name, world.names_of_target()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => String::from("write it under `objects:` or with `apply:` in an earlier step"),
        };
        let message = if code == Code::NeverMet {
            format!("this never comes: no object `{name}` is written before it")
        } else {
            format!("no object `{name}` is ever written")
        };
        self.problem(
            Problem::new(code, span, message)
                .label("unknown object")
                .hint(hint),
        );
    }
}
