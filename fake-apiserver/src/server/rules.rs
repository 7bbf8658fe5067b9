//! Rules: steps without order, made and taken away while the server runs. The first rule that means a request is met by it.
//!
//! What a rule means is decided in `scenario::rule`, what its actions do in `act.rs`. This file knows which rules there
//! are, and how often each was met.

use std::collections::BTreeMap;
use std::time::Duration;

use scenario::matching::words_for_request;
use scenario::rule::{Seen, kind_meets, query_meets};
use scenario::{Action, RequestKind, RequestTrigger, Rule, RuleTrigger, Times, TruthAction};
use serde::Serialize;
use trace::record::{Replica, StreamId, Verb, What};

use super::Server;
use super::act::{On, words};
use crate::api;
use crate::apiserver::{ApiServer, Asked};

/// Most rules at one time: each is asked about every request.
const RULES_MAX: usize = 1_000;

/// The rules of a server, by number.
#[derive(Debug, Default)]
pub(super) struct Rules {
    standing: BTreeMap<u64, Standing>,
    made: u64,
}

#[derive(Debug)]
struct Standing {
    rule: Rule,
    /// Requests it meant, whatever their ordinal.
    meant: u32,
    met: u32,
    first_met: Option<Duration>,
}

/// A rule as it is told of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleView {
    /// Its number.
    pub id: u64,
    /// Its word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it waits for, in words.
    pub waits_for: String,
    /// What it does, in words.
    pub does: String,
    /// How often it was met.
    pub met: u32,
    /// How often it will still be met; absent where time decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<u32>,
}

/// What came of a new rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Ruled {
    /// It waits.
    Standing(RuleView),
    /// It was done at once.
    Done {
        /// The answers it was done to.
        streams: Vec<StreamId>,
        /// What was done, in words.
        does: String,
    },
}

/// Why a rule is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleRefused {
    /// It could never mean anything.
    #[error("no {resource} is served; there are: {known}")]
    Unserved {
        /// What was asked for.
        resource: String,
        /// The resources there are.
        known: String,
    },
    /// There are too many.
    #[error("there are {RULES_MAX} rules already; remove one first")]
    TooMany,
    /// It was to be done to watches, and none is open that it means.
    #[error("no open watch is meant: {does} needs one")]
    NoWatch {
        /// What was to be done.
        does: String,
    },
    /// An object was to be deleted or relabelled that is not there.
    #[error("there is no {object} in {resource}")]
    NoObject {
        /// The object: `name` or `namespace/name`.
        object: String,
        /// Its resource: `configmaps`, `deployments.apps`.
        resource: String,
    },
    /// The rule names the secondary replica, and there is none.
    #[error("there is no secondary replica: start `serve` with --secondary")]
    NoTwin,
}

impl Server {
    /// Takes a rule: one that waits stands from now on; one that does not is done at once, to every open watch it means.
    ///
    /// # Errors
    /// It can mean nothing that is served here, or there are too many.
    pub fn add_rule(&mut self, now: Duration, rule: Rule) -> Result<Ruled, RuleRefused> {
        self.served(&rule)?;
        let does = words(&rule.actions);
        let RuleTrigger::Request(_) = rule.when else {
            return self.do_now(now, &rule, does);
        };
        if self.rules.standing.len() >= RULES_MAX {
            return Err(RuleRefused::TooMany);
        }
        self.rules.made += 1;
        let id = self.rules.made;
        tracing::debug!(id, "rule made");
        let standing = Standing {
            rule,
            meant: 0,
            met: 0,
            first_met: None,
        };
        let view = standing.view(id);
        self.rules.standing.insert(id, standing);
        Ok(Ruled::Standing(view))
    }

    /// Takes a rule away. `None`: there is none of that number.
    pub fn remove_rule(&mut self, id: u64) -> Option<RuleView> {
        self.rules.standing.remove(&id).map(|standing| standing.view(id))
    }

    /// The rules that stand, in the order in which they were made.
    pub fn rules(&self) -> Vec<RuleView> {
        let standing = self.rules.standing.iter();
        standing.map(|(id, standing)| standing.view(*id)).collect()
    }

    /// Runs the first rule that a request meets, if it meets one.
    pub(super) fn obey_rules(&mut self, now: Duration, stream: StreamId) {
        self.rules.standing.retain(|_, standing| !standing.is_over(now));
        if self.rules.standing.is_empty() {
            return;
        }
        let Some(asked) = self.api.asked(stream).filter(|asked| !asked.only_probes) else {
            return;
        };
        let (agent, query) = (asked.user_agent(), api::query_pairs(&asked.request.query));
        let seen = seen(&self.api, stream, asked, agent.as_deref());
        let Some((id, standing)) = self.rules.standing.iter_mut().find_map(|(id, standing)| {
            standing
                .is_met(now, &seen, asked.verb, &query)
                .then_some((*id, standing))
        }) else {
            return;
        };
        let rule = standing.rule.clone();
        if standing.is_over(now) {
            self.rules.standing.remove(&id);
        }
        let word = rule.name.clone().unwrap_or_else(|| id.to_string());
        self.ruled(now, word, Some(stream), words(&rule.actions));
        let (target, replica) = (rule.from.resource.clone(), rule.from.replica);
        self.act(now, &rule.actions, &On::Request(stream), target.as_ref(), replica);
    }

    fn do_now(&mut self, now: Duration, rule: &Rule, does: String) -> Result<Ruled, RuleRefused> {
        let streams: Vec<StreamId> = self
            .api
            .watches()
            .filter(|(stream, asked)| {
                let agent = asked.user_agent();
                rule.from
                    .means(&seen(&self.api, *stream, asked, agent.as_deref()))
            })
            .map(|(stream, _)| stream)
            .collect();
        let concerns_watches = rule.actions.iter().any(|action| action.concerns_answer());
        if concerns_watches && streams.is_empty() {
            return Err(RuleRefused::NoWatch { does });
        }
        self.written_objects_are_there(&rule.actions)?;
        let streams = if concerns_watches { streams } else { Vec::new() };
        let word = rule.name.clone().unwrap_or_else(|| "at once".to_owned());
        self.ruled(now, word, None, does.clone());
        let (target, replica) = (rule.from.resource.clone(), rule.from.replica);
        self.act(
            now,
            &rule.actions,
            &On::These(streams.clone()),
            target.as_ref(),
            replica,
        );
        Ok(Ruled::Done { streams, does })
    }

    /// Refuses to delete or relabel what is not there, unless the same rule may make it.
    fn written_objects_are_there(&self, actions: &[Action]) -> Result<(), RuleRefused> {
        for action in actions {
            let objects = match action {
                Action::Truth(TruthAction::Apply(_) | TruthAction::Restore { .. }) => return Ok(()),
                Action::Truth(TruthAction::Delete { objects, .. }) => objects.as_slice(),
                Action::Truth(TruthAction::Relabel { object, .. }) => std::slice::from_ref(object),
                Action::Truth(_)
                | Action::Shape(_)
                | Action::Rule(_)
                | Action::Say(_)
                | Action::Refuse(_) => &[],
            };
            if let Some(missing) = objects.iter().find(|object| !self.api.has(object)) {
                let dot = if missing.group.is_empty() { "" } else { "." };
                return Err(RuleRefused::NoObject {
                    object: missing.key(),
                    resource: format!("{}{dot}{}", missing.plural, missing.group),
                });
            }
        }
        Ok(())
    }

    fn served(&self, rule: &Rule) -> Result<(), RuleRefused> {
        if rule.from.replica == Some(Replica::Secondary) && !self.api.has_secondary() {
            return Err(RuleRefused::NoTwin);
        }
        let Some((group, plural)) = &rule.from.resource else {
            return Ok(());
        };
        if self.api.catalog().find(group, plural).is_some() {
            return Ok(());
        }
        let known: Vec<String> = self
            .api
            .catalog()
            .kinds()
            .iter()
            .map(|kind| kind.qualified())
            .collect();
        Err(RuleRefused::Unserved {
            resource: if group.is_empty() {
                plural.clone()
            } else {
                format!("{plural}.{group}")
            },
            known: known.join(", "),
        })
    }

    fn ruled(&mut self, now: Duration, rule: String, stream: Option<StreamId>, how: String) {
        self.api.record(now, What::Rule { rule, stream, how });
    }
}

/// What a rule may know of a request.
fn seen<'r>(api: &ApiServer, stream: StreamId, asked: &'r Asked, user_agent: Option<&'r str>) -> Seen<'r> {
    Seen {
        stream,
        conn: asked.conn,
        replica: api.replica_of(asked.conn),
        user_agent,
        method: asked.request.method.as_str(),
        path: &asked.request.path,
    }
}

impl Standing {
    fn trigger(&self) -> Option<&RequestTrigger> {
        match &self.rule.when {
            RuleTrigger::Request(trigger) => Some(trigger),
            RuleTrigger::Now => None,
        }
    }

    /// Counts the request if it is meant. True: it meets the rule.
    fn is_met(&mut self, now: Duration, seen: &Seen<'_>, verb: Verb, query: &[(String, String)]) -> bool {
        let Some(trigger) = self.trigger() else {
            return false;
        };
        let (kind, nth) = (trigger.kind, trigger.nth);
        let meant =
            kind_meets(kind, verb, query) && query_meets(&trigger.query, query) && self.rule.from.means(seen);
        if !meant {
            return false;
        }
        self.meant += 1;
        // An ordinal names the first request of a rule that takes several; that of a page names its list, which a rule
        // does not count.
        let ordinal_meets = self.met > 0
            || matches!(kind, RequestKind::Page { .. })
            || nth.is_none_or(|nth| nth == self.meant);
        if ordinal_meets {
            self.met += 1;
            self.first_met.get_or_insert(now);
        }
        ordinal_meets
    }

    fn is_over(&self, now: Duration) -> bool {
        match self.rule.times {
            Times::Count(times) => self.met >= times,
            Times::For(ms) => self
                .first_met
                .is_some_and(|first| now >= first + Duration::from_millis(ms)),
        }
    }

    fn view(&self, id: u64) -> RuleView {
        RuleView {
            id,
            name: self.rule.name.clone(),
            waits_for: self.trigger().map(words_for_request).unwrap_or_default(),
            does: words(&self.rule.actions),
            met: self.met,
            left: match self.rule.times {
                Times::Count(times) => Some(times - self.met.min(times)),
                Times::For(_) => None,
            },
        }
    }
}
