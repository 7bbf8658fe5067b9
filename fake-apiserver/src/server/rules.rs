//! Rules: unordered steps, added and removed while the server runs. The first rule that matches a request applies.
//!
//! `scenario::rule` decides whether a rule matches, `act.rs` runs its actions. This file has the active rules and their counts.

use std::collections::BTreeMap;
use std::time::Duration;

use scenario::matching::words_for_request;
use scenario::rule::{Seen, kind_meets, query_meets};
use scenario::{Action, RequestKind, RequestTrigger, Rule, RuleTrigger, StoreAction, Times};
use serde::Serialize;
use trace::record::{Replica, StreamId, Verb, What};

use super::Server;
use super::act::{On, words};
use crate::apiserver::{ApiServer, Asked};

/// Most active rules: each is matched against every request.
const RULES_MAX: usize = 1_000;

/// Active rules, by number.
#[derive(Debug, Default)]
pub(super) struct Rules {
    standing: BTreeMap<u64, Standing>,
    made: u64,
}

#[derive(Debug)]
struct Standing {
    rule: Rule,
    /// Matching requests, whatever their ordinal.
    meant: u32,
    met: u32,
    first_met: Option<Duration>,
}

/// View of a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleView {
    /// Number.
    pub id: u64,
    /// Name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Description of its trigger.
    pub waits_for: String,
    /// Description of its actions.
    pub does: String,
    /// Number of times it applied.
    pub met: u32,
    /// Number of times it will still apply; absent for a rule with a duration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<u32>,
}

/// Result of adding a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Ruled {
    /// The rule is active.
    Standing(RuleView),
    /// The rule applied at once.
    Done {
        /// Responses it applied to.
        streams: Vec<StreamId>,
        /// Description of its actions.
        does: String,
        /// Numbers of its writes to an upstream: the outcome of each is an
        /// [`UpstreamWrite`](trace::record::What::UpstreamWrite) of the trace.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        writes: Vec<u64>,
    },
}

/// Error of adding a rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleRefused {
    /// It could never match.
    #[error("no {resource} is served; there are: {known}")]
    Unserved {
        /// Requested resource.
        resource: String,
        /// Served resources.
        known: String,
    },
    /// Too many rules.
    #[error("there are {RULES_MAX} rules already; remove one first")]
    TooMany,
    /// It applies to open watches, and none matches.
    #[error("no open watch matches: {does} needs one")]
    NoWatch {
        /// Description of its actions.
        does: String,
    },
    /// An object to delete or relabel does not exist.
    #[error("there is no {object} in {resource}")]
    NoObject {
        /// Object: `name` or `namespace/name`.
        object: String,
        /// Resource: `configmaps`, `deployments.apps`.
        resource: String,
    },
    /// It has an action that only the model can do, and an upstream answers.
    #[error("{why}: {instead}")]
    NotUpstream {
        /// Why an upstream cannot do it.
        why: &'static str,
        /// What to do instead.
        instead: &'static str,
    },
    /// It names the secondary replica, which does not exist.
    #[error("there is no secondary replica: start `serve` with --secondary")]
    NoSecondary,
}

impl Server {
    /// Adds a rule. One with a trigger is active from now on; one without applies at once to every matching open watch.
    ///
    /// # Errors
    /// It can never match, or there are too many rules.
    pub fn add_rule(&mut self, now: Duration, rule: Rule) -> Result<Ruled, RuleRefused> {
        self.served(&rule)?;
        self.add_rule_ahead(now, rule)
    }

    /// Takes a rule as [`Server::add_rule`] does, also one for a resource whose CustomResourceDefinition does not exist yet.
    ///
    /// # Errors
    /// There are too many rules, or one that is done at once has nothing to be done to.
    pub fn add_rule_ahead(&mut self, now: Duration, rule: Rule) -> Result<Ruled, RuleRefused> {
        self.can_do(&rule)?;
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

    /// Checks that what answers the requests can do the actions of a rule.
    ///
    /// # Errors
    /// It has an action that only the model can do, and an upstream answers.
    pub fn can_do(&self, rule: &Rule) -> Result<(), RuleRefused> {
        if !self.api.forwards() {
            return Ok(());
        }
        let may_write = self.api.may_write_upstream();
        let mut checked = rule
            .actions
            .iter()
            .filter(|action| !(may_write && action.is_write()));
        match checked.find_map(Action::needs_model) {
            Some((why, instead)) => Err(RuleRefused::NotUpstream { why, instead }),
            None => Ok(()),
        }
    }

    /// Removes a rule. `None`: no rule has that number.
    pub fn remove_rule(&mut self, id: u64) -> Option<RuleView> {
        self.rules.standing.remove(&id).map(|standing| standing.view(id))
    }

    /// Returns the active rules, in the order in which they were added.
    pub fn rules(&self) -> Vec<RuleView> {
        let standing = self.rules.standing.iter();
        standing.map(|(id, standing)| standing.view(*id)).collect()
    }

    /// Applies the first rule that matches a request.
    pub(super) fn obey_rules(&mut self, now: Duration, stream: StreamId) {
        self.rules.standing.retain(|_, standing| !standing.is_over(now));
        if self.rules.standing.is_empty() {
            return;
        }
        let Some(asked) = self.api.asked(stream).filter(|asked| !asked.only_probes) else {
            return;
        };
        let (agent, query) = (asked.user_agent(), asked.request.query.pairs());
        let seen = seen(&self.api, stream, asked, agent.as_deref());
        let Some((id, standing)) = self.rules.standing.iter_mut().find_map(|(id, standing)| {
            standing
                .is_met(now, &seen, asked.verb, query)
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
        let acts_on_watches = rule.actions.iter().any(|action| action.acts_on_response());
        if acts_on_watches && streams.is_empty() {
            return Err(RuleRefused::NoWatch { does });
        }
        if !self.api.forwards() {
            self.written_objects_are_there(&rule.actions)?;
        }
        let before = self.api.upstream_writes();
        let streams = if acts_on_watches { streams } else { Vec::new() };
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
        let writes = (before + 1..=self.api.upstream_writes()).collect();
        Ok(Ruled::Done {
            streams,
            does,
            writes,
        })
    }

    /// Rejects deletes and labels of missing objects, unless the same rule may create them.
    fn written_objects_are_there(&self, actions: &[Action]) -> Result<(), RuleRefused> {
        for action in actions {
            let objects = match action {
                Action::Store(StoreAction::Apply(_) | StoreAction::Restore { .. }) => return Ok(()),
                Action::Store(StoreAction::Delete { objects, .. }) => objects.as_slice(),
                Action::Store(StoreAction::Relabel { object, .. }) => std::slice::from_ref(object),
                Action::Store(_)
                | Action::Shape(_)
                | Action::Rule(_)
                | Action::Stream(_)
                | Action::Refuse(_) => &[],
            };
            if let Some(missing) = objects.iter().find(|object| !self.api.has(object)) {
                return Err(RuleRefused::NoObject {
                    object: missing.key(),
                    resource: missing.resource(),
                });
            }
        }
        Ok(())
    }

    fn served(&self, rule: &Rule) -> Result<(), RuleRefused> {
        if rule.from.replica == Some(Replica::Secondary) && !self.api.has_secondary() {
            return Err(RuleRefused::NoSecondary);
        }
        let Some((group, plural)) = &rule.from.resource else {
            return Ok(());
        };
        // Which resources an upstream serves is not known here.
        if self.api.forwards() || self.api.catalog().find(group, plural).is_some() {
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

/// Returns the properties of a request that rules match.
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

    /// Counts the request if it matches. Returns whether the rule applies to it.
    fn is_met(&mut self, now: Duration, seen: &Seen<'_>, verb: Verb, query: &[(String, String)]) -> bool {
        let Some(trigger) = self.trigger() else {
            return false;
        };
        let (kind, nth) = (trigger.kind, trigger.nth);
        let meant = kind_meets(kind, verb, query)
            && query_meets(&trigger.query, verb, query)
            && self.rule.from.means(seen);
        if !meant {
            return false;
        }
        self.meant += 1;
        // An ordinal selects the first request of a rule for several; that of a page counts lists, which rules do not.
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
