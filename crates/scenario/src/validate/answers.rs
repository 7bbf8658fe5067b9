//! Validates scripted responses: replies, changed pages, Statuses.

use super::Validator;
use super::world::World;
use crate::problem::{Code, Problem};
use crate::raw::{Condition, StatusKeys};
use crate::read::{At, First, OneOrMany, Text};
use crate::span::Span;
use crate::{ItemsShape, PageEdit, Reply, ReplyBody, StatusSpec, raw};

impl Validator<'_> {
    pub(super) fn reply(&mut self, world: &mut World, reply: &raw::Reply) -> Reply {
        let code = reply
            .status
            .as_ref()
            .map_or(500, |status| u16::try_from(status.value).unwrap_or(500));
        let mut headers = Vec::new();
        for (name, value) in reply.headers.iter().flat_map(|headers| &headers.0) {
            let fault = http::HeaderName::from_bytes(name.value.as_bytes()).is_err()
                || http::HeaderValue::from_str(&value.0).is_err();
            if fault {
                self.problem(
                    Problem::new(
                        Code::BadForm,
                        name.span,
                        format!("`{}: {}` cannot be a header", name.value, value.0),
                    )
                    .label("not a header"),
                );
            }
            headers.push((name.value.clone(), value.0.clone()));
        }
        let of_status: Vec<(&str, Span)> = [
            reply.code.as_ref().map(|at| ("code", at.span)),
            reply.reason.as_ref().map(|at| ("reason", at.span)),
            reply.message.as_ref().map(|at| ("message", at.span)),
            reply
                .retry_after_seconds
                .as_ref()
                .map(|at| ("retry_after_seconds", at.span)),
            reply.causes.as_ref().map(|at| ("causes", at.span)),
            reply
                .inconsistent_token
                .as_ref()
                .map(|at| ("inconsistent_token", at.span)),
        ]
        .into_iter()
        .flatten()
        .collect();
        let bodies: Vec<(&str, Span)> = [
            of_status.first().copied(),
            reply.body.as_ref().map(|at| ("body", at.span)),
            reply.json.as_ref().map(|at| ("json", at.span)),
            reply.unmodified.as_ref().map(|at| ("unmodified", at.span)),
        ]
        .into_iter()
        .flatten()
        .collect();
        if let [(first, _), (second, span), ..] = bodies.as_slice() {
            self.problem(
                Problem::new(
                    Code::Conflict,
                    *span,
                    format!("`{first}` and `{second}` both set the body"),
                )
                .label("the second body")
                .hint("a body is a Status (`reason`, `message` …), or `body`, or `json`, or `unmodified`"),
            );
        }
        if let Some(unmodified) = reply.unmodified.as_ref().filter(|unmodified| !unmodified.value) {
            self.problem(
                Problem::new(
                    Code::NotOneOf,
                    unmodified.span,
                    "`unmodified` is `true` or not given",
                )
                .label("leave it out"),
            );
        }
        let body = if let Some(body) = &reply.body {
            world.may_hold_anything(body.value.0.clone());
            ReplyBody::Raw(body.value.0.clone())
        } else if let Some(json) = &reply.json {
            world.may_hold_anything(json.value.0.to_string());
            ReplyBody::Json(json.value.0.clone())
        } else if reply.unmodified.is_some() {
            ReplyBody::Unmodified
        } else {
            ReplyBody::Status(StatusSpec {
                code: self.status_code(reply.code.as_ref(), code),
                reason: text(&reply.reason),
                message: text(&reply.message),
                retry_after_seconds: seconds(reply.retry_after_seconds.as_ref()),
                causes: causes(reply.causes.as_ref()),
                inconsistent_token: reply.inconsistent_token.as_ref().is_some_and(|token| token.value),
            })
        };
        let after_write = reply.after_write.as_ref().filter(|after| after.value);
        if let (Some(after), ReplyBody::Unmodified) = (after_write, &body) {
            self.problem(
                Problem::new(
                    Code::Conflict,
                    after.span,
                    "`unmodified` has the body that the request would get, and `after_write` carries it out",
                )
                .label("take one of the two")
                .hint("give the body: a Status (`reason`, `message` …), `body` or `json`"),
            );
        }
        Reply {
            status: code,
            headers,
            retry_after: reply.retry_after.as_ref().map(|text| text.0.clone()),
            body,
            after_write: after_write.is_some(),
        }
    }

    fn status_code(&mut self, code: Option<&At<Text>>, status: u16) -> Option<u16> {
        let Some(code) = code else { return Some(status) };
        if code.value.0 == "absent" {
            return None;
        }
        let number = code.value.0.parse().ok();
        if number.is_none() {
            self.problem(
                Problem::new(
                    Code::BadForm,
                    code.span,
                    format!("`{}` is not a code", code.value.0),
                )
                .label("a number or `absent` belongs here"),
            );
        }
        number
    }

    /// Returns the bytes of a line, from `text` or from `bytes`.
    pub(super) fn line(&mut self, world: &mut World, line: &raw::RawLine, span: Span) -> Vec<u8> {
        match (&line.text, &line.bytes) {
            (Some(text), None) => {
                world.may_hold_anything(text.0.clone());
                text.0.clone().into_bytes()
            }
            (None, Some(bytes)) => {
                world.may_hold_anything(bytes.value.0.clone());
                let byte = |character: char| u8::try_from(u32::from(character));
                bytes
                    .value
                    .0
                    .chars()
                    .map(byte)
                    .collect::<Result<_, _>>()
                    .unwrap_or_else(|_| {
                        self.problem(
                        Problem::new(Code::BadForm, bytes.span, "not every character here is a byte")
                            .label("one of them is above U+00FF")
                            .hint("`bytes` is for what no text has, e.g. \"\\xff\"; `text` is sent as UTF-8"),
                    );
                        Vec::new()
                    })
            }
            (None, None) | (Some(_), Some(_)) => {
                self.problem(
                    Problem::new(Code::Conflict, span, "a line is a `text` or `bytes`")
                        .label("one of them belongs here"),
                );
                Vec::new()
            }
        }
    }

    pub(super) fn edit_page(&mut self, world: &mut World, at: &At<raw::EditPage>) -> PageEdit {
        let edit = &at.value;
        let raw::EditPage {
            rv,
            continue_token,
            remaining,
            without,
            add,
            items,
            kind,
        } = edit;
        let mut add_values = Vec::new();
        for object in add.iter().flat_map(|add| &add.value.0) {
            add_values.push(self.loose(world, object));
        }
        let without: Vec<&At<Text>> = without.iter().flat_map(|without| &without.value.0).collect();
        for name in without.iter().filter(|name| name.value.0 != "*") {
            self.known_name(world, &name.value.0, name.span, Code::UnknownObject);
        }
        let page = PageEdit {
            resource_version: rv.as_ref().map(|rv: &At<First<Condition>>| self.written(rv)),
            continue_token: continue_token.as_ref().map(|token| self.written(token)),
            remaining: remaining.as_ref().map(|remaining| remaining.value),
            without: without.into_iter().map(|name| name.value.0.clone()).collect(),
            add: add_values,
            items: items.as_ref().map(|items| match items.value {
                raw::ItemsWord::Null => ItemsShape::Null,
                raw::ItemsWord::Missing => ItemsShape::Missing,
            }),
            kind: text(kind),
        };
        if page == PageEdit::default() {
            self.problem(
                Problem::new(Code::Empty, at.span, "`edit_page` changes nothing")
                    .label("a change belongs here"),
            );
        }
        page
    }
}

/// Converts the keys of a Status.
pub(super) fn status(keys: &StatusKeys) -> StatusSpec {
    StatusSpec {
        code: keys
            .code
            .as_ref()
            .map(|code| u16::try_from(code.value).unwrap_or(u16::MAX)),
        reason: text(&keys.reason),
        message: text(&keys.message),
        retry_after_seconds: seconds(keys.retry_after_seconds.as_ref()),
        causes: causes(keys.causes.as_ref()),
        inconsistent_token: false,
    }
}

fn text(at: &Option<At<Text>>) -> Option<String> {
    at.as_ref().map(|at| at.value.0.clone())
}

fn seconds(at: Option<&At<u64>>) -> Option<u32> {
    at.map(|at| u32::try_from(at.value).unwrap_or(u32::MAX))
}

fn causes(at: Option<&At<OneOrMany<Text>>>) -> Vec<String> {
    at.into_iter()
        .flat_map(|at| &at.value.0)
        .map(|text| text.0.clone())
        .collect()
}
