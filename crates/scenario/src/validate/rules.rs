//! Validates rules and waits: the parts of a step that work without a scenario.

use builtin_kinds::catalog::Catalog;
use trace::fault::Ending;
use trace::record::{ConnId, Replica, StreamId};

use super::Validator;
use super::fit::{Progress, ResponseKind};
use super::names::Names;
use super::reach::Reach;
use super::world::World;
use crate::kinds::Kinds;
use crate::lines::Lines;
use crate::problem::{Code, Problem};
use crate::raw::{ClosedWord, EventWord, FromKeys, ReplicaWord, When};
use crate::read::{At, Both, WordOr};
use crate::span::Span;
use crate::{
    Action, ClientSettings, RequestTrigger, Rule, RuleTrigger, Scenario, Sent, ServerSettings, Target,
    Transport, Trigger, Wait, Whose, raw,
};

/// Default timeout of a wait.
const WAIT_MS: u64 = 30_000;

/// Converts a rule. If there are problems, it must not be used.
pub(crate) fn validate_rule(text: &str, rule: WordOr<raw::Rule>, served: &Catalog) -> (Rule, Vec<Problem>) {
    let mut v = validator(text);
    v.kinds = Kinds::of(served);
    let WordOr(Both(keys, mut own)) = rule;
    let whole = Span {
        start: 0,
        end: text.len().min(1),
    };
    let from = v.whose(keys.from.as_ref());
    let times = v.times(keys.times.as_ref(), keys.lasts.as_ref(), "a rule");
    let mut world = v.world(&from);
    world.run();
    let (when, answer) = match &keys.when {
        Some(when) => {
            let (trigger, answer) = v.request_only(&world, when);
            (trigger.map_or(RuleTrigger::Now, RuleTrigger::Request), answer)
        }
        None => (RuleTrigger::Now, ResponseKind::OpenWatch),
    };
    if let (None, Some(many)) = (
        &keys.when,
        keys.times
            .as_ref()
            .map(|times| times.span)
            .or(keys.lasts.as_ref().map(|lasts| lasts.span)),
    ) {
        v.problem(
            Problem::new(
                Code::Misplaced,
                many,
                "only a rule that waits for requests can be met several times",
            )
            .label("does not belong here")
            .hint("add `when: {request: next}`, or leave it out"),
        );
    }
    if let Some(named) = own.name.take() {
        v.problem(
            Problem::new(
                Code::Misplaced,
                named.span,
                "a rule gives no `$name` to what it writes",
            )
            .label("does not belong here")
            .hint("a rule's own word is `name`"),
        );
    }
    let mut reach = Reach::new(&ClientSettings::default(), 0);
    let mut progress = Progress::default();
    let mut actions: Vec<Action> = Vec::new();
    let alone = own.given();
    match (keys.actions, alone.first()) {
        (Some(listed), None) => {
            for item in listed.value.0 {
                actions.extend(v.action(
                    &mut world,
                    &mut reach,
                    item.value.0,
                    item.span,
                    answer,
                    &mut progress,
                ));
            }
        }
        (None, Some(_)) => {
            actions.extend(v.action(&mut world, &mut reach, own, whole, answer, &mut progress));
        }
        (Some(_), Some((word, span))) => v.problem(
            Problem::new(Code::Conflict, *span, format!("both `{word}` and `do` are given"))
                .label("belongs into `do`")
                .hint("put the action either in the rule itself or in its `do`"),
        ),
        (None, None) => v.problem(
            Problem::new(Code::Empty, whole, "this rule does nothing")
                .label("an action belongs here")
                .hint("e.g. `when: {list: next}` and `do: {reply: {status: 503}}`"),
        ),
    }
    let rule = Rule {
        name: keys.name.map(|name| name.value),
        from,
        when,
        times,
        actions,
    };
    (rule, v.problems)
}

/// Converts a wait. If there are problems, it must not be used.
pub(crate) fn validate_wait(text: &str, keys: &raw::WaitKeys) -> (Wait, Vec<Problem>) {
    let mut v = validator(text);
    let from = v.whose(keys.from.as_ref());
    let world = v.world(&from);
    let when = keys.when.as_ref().and_then(|when| v.request_only(&world, when).0);
    let sent = keys.sent.as_ref().map(|sent| {
        let raw::SentKeys { rv, kind, name } = &sent.value;
        Sent {
            resource_version: rv.as_ref().map(|rv| rv.value.0.clone()),
            kind: kind.as_ref().map(|kind| match kind.value {
                EventWord::Added => "ADDED",
                EventWord::Modified => "MODIFIED",
                EventWord::Deleted => "DELETED",
                EventWord::Bookmark => "BOOKMARK",
                EventWord::Error => "ERROR",
            }),
            name: name.as_ref().map(|name| name.value.0.clone()),
        }
    });
    let closed = keys.closed.as_ref().map(|closed| match closed.value {
        ClosedWord::Any => None,
        ClosedWord::Eof => Some(Ending::Eof),
        ClosedWord::Fin => Some(Ending::Fin),
        ClosedWord::Rst => Some(Ending::Rst),
    });
    let spans: Vec<Span> = [
        keys.when.as_ref().map(|at| at.span),
        keys.sent.as_ref().map(|at| at.span),
        keys.closed.as_ref().map(|at| at.span),
    ]
    .into_iter()
    .flatten()
    .collect();
    match spans.as_slice() {
        [_] => {}
        [] => v.problem(
            Problem::new(
                Code::Empty,
                Span {
                    start: 0,
                    end: text.len().min(1),
                },
                "this waits for nothing",
            )
            .label("what for?")
            .hint("e.g. `when: {watch: next}`, `sent: {rv: \"1005\"}` or `closed: any`"),
        ),
        [_, second, ..] => v.problem(
            Problem::new(Code::Conflict, *second, "a wait is for one thing")
                .label("a second one")
                .hint("make two waits of it; `since` lets the second begin where the first ended"),
        ),
    }
    let timeout_ms = v.positive_ms(keys.timeout.as_ref()).unwrap_or(WAIT_MS);
    let wait = Wait {
        from,
        when,
        sent,
        closed,
        since: keys.since.as_ref().map(|since| since.value),
        timeout_ms,
    };
    (wait, v.problems)
}

fn validator(text: &str) -> Validator<'_> {
    Validator {
        lines: Lines::new(text),
        problems: Vec::new(),
        names: Names::default(),
        kinds: Kinds::default(),
        optional: None,
        // Each client negotiates its transport, so a rule may use the features of all.
        transport: Transport::TlsHttp2,
        has_replicas: true,
    }
}

/// Returns the default target of names without a resource.
fn target(from: &Whose) -> Target {
    let mut target = Scenario::empty(ServerSettings::default()).target;
    if let Some((group, plural)) = &from.resource {
        (target.group, target.plural) = (group.clone(), plural.clone());
    }
    target.namespace = from.namespace.clone();
    target
}

impl Validator<'_> {
    fn world(&self, from: &Whose) -> World {
        let target = target(from);
        let kind = self.kinds.find(&target.group, &target.plural);
        World::new(&target, kind.is_none_or(|kind| kind.namespaced))
    }

    fn whose(&mut self, from: Option<&At<FromKeys>>) -> Whose {
        let Some(At { value: from, .. }) = from else {
            return Whose::default();
        };
        Whose {
            user_agent: from.user_agent.as_ref().map(|agent| agent.value.0.clone()),
            connection: from.connection.as_ref().map(|conn| ConnId(conn.value)),
            stream: from.stream.as_ref().map(|stream| StreamId(stream.value)),
            replica: from.replica.as_ref().map(|replica| match replica.value {
                ReplicaWord::Primary => Replica::Primary,
                ReplicaWord::Secondary => Replica::Secondary,
            }),
            resource: from.resource.as_ref().map(|resource| {
                let (plural, group) = resource
                    .value
                    .split_once('.')
                    .unwrap_or((resource.value.as_str(), ""));
                (group.to_owned(), plural.to_owned())
            }),
            namespace: from.namespace.as_ref().map(|namespace| self.namespace(namespace)),
            verb: from.verb.as_ref().map(|verb| verb.value.word()),
            name: from.name.as_ref().map(|name| name.value.0.clone()),
            subresource: from.subresource.as_ref().map(|part| part.value.0.clone()),
            method: from.method.as_ref().map(|method| method.value.word()),
            path: from.path.as_ref().map(|path| path.value.0.clone()),
        }
    }

    /// Converts a trigger, which must be a request: other triggers require a script.
    fn request_only(
        &mut self,
        world: &World,
        when: &At<WordOr<When>>,
    ) -> (Option<RequestTrigger>, ResponseKind) {
        match self.trigger(world, when) {
            (Trigger::Request(request), answer) => (Some(request), answer),
            (
                Trigger::Now | Trigger::Emitted(_) | Trigger::After(_) | Trigger::Quiet(_) | Trigger::Synced,
                answer,
            ) => {
                if self.problems.is_empty() {
                    self.problem(
                        Problem::new(
                            Code::Misplaced,
                            when.span,
                            "only requests can be waited for here: what has an order belongs into a scenario",
                        )
                        .label("no request")
                        .hint("wait for `list`, `page`, `watch` or `request`"),
                    );
                }
                (None, answer)
            }
        }
    }
}
