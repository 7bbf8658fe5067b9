//! Mutating admission policies: how they want the object of a request to be changed.
//!
//! A pure evaluator: policies, bindings and a request in, objects and refusals out. It must not know storage or HTTP, nor how
//! an object is read back after a mutation.
//!
//! Source: "Mutating Admission Policy", KEP-3962; apiserver
//! `pkg/admission/plugin/policy/mutating`, `pkg/cel/mutation`.

use apimachinery::Version;
use apimachinery::kind::{ApiResource, KindRef};
use apimachinery::object::metadata_text;
use serde_json::{Map, Value};

use super::base::{Base, Binding, Known};
use super::{Compiled, GROUP, OUT_OF_BUDGET, ParamQuery, Request, conditions_hold};
use crate::crd::patterns;
use crate::expression::{self, Budget, OBJECT_COST_MAX};
use crate::ownership::Ownership;
use crate::patch::{PatchError, by_operations};

/// All mutating policies with their bindings, in the order of their names.
#[derive(Debug, Default)]
pub struct Mutations(Vec<MutatingPolicy>);

/// A policy with its bindings.
#[derive(Debug)]
pub struct MutatingPolicy {
    base: Base,
    mutations: Vec<Mutation>,
    /// Whether it is evaluated again after something else changed the object (`reinvocationPolicy: IfNeeded`).
    reinvoked: bool,
}

#[derive(Debug)]
enum Mutation {
    /// The expression constructs the object that is merged, as by server-side apply.
    Apply(Compiled),
    /// The expression constructs the operations of a JSON Patch.
    Patch(Compiled),
}

/// A policy with one of its bindings and, if the binding has some, one of its parameters.
#[derive(Debug)]
pub struct Invocation<'a> {
    policy: &'a MutatingPolicy,
    binding: &'a Binding,
    params: Option<Value>,
}

/// Why a policy refuses a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// Message, with the names of policy and binding.
    pub message: String,
    /// Reason of the Status; its code is 403 whatever the reason.
    pub reason: &'static str,
}

impl Mutations {
    /// Reads policies and bindings.
    pub fn new(policies: &[Value], bindings: &[Value]) -> Self {
        let policies = policies.iter().map(|policy| {
            let mutations = policy["spec"]["mutations"].as_array().into_iter().flatten();
            let budget = patterns::Budget::default();
            MutatingPolicy {
                base: Base::read(policy, bindings, &budget),
                mutations: mutations
                    .map(|mutation| Mutation::read(mutation, &budget))
                    .collect(),
                reinvoked: policy["spec"]["reinvocationPolicy"] == "IfNeeded",
            }
        });
        Self(
            policies
                .filter(|policy| !policy.base.bindings.is_empty())
                .collect(),
        )
    }

    /// The policies that writes of this kind are shown to; none for the policies themselves.
    pub fn of(&self, kind: &ApiResource) -> &[MutatingPolicy] {
        match kind.group == GROUP {
            true => &[],
            false => &self.0,
        }
    }
}

impl Mutation {
    fn read(json: &Value, budget: &patterns::Budget) -> Self {
        match json["patchType"] == "JSONPatch" {
            true => Self::Patch(Compiled::new(&json["jsonPatch"]["expression"], budget)),
            false => Self::Apply(Compiled::new(&json["applyConfiguration"]["expression"], budget)),
        }
    }
}

impl MutatingPolicy {
    /// Returns the kind in whose words the policy is shown a request; `None`: it is not shown it. `equivalents`: other kinds
    /// that show the same objects.
    pub fn selects<'k>(&self, request: &Request<'_>, equivalents: &'k [KindRef]) -> Option<&'k KindRef> {
        self.base.matching.included(request, equivalents)
    }

    /// What is to be evaluated for a request, or why it cannot be. `params` finds objects.
    pub fn invocations(
        &self,
        request: &Request<'_>,
        params: &dyn Fn(&ParamQuery<'_>) -> Vec<Value>,
    ) -> (Vec<Invocation<'_>>, Vec<Denial>) {
        let (mut invocations, mut denials) = (Vec::new(), Vec::new());
        for binding in &self.base.bindings {
            if !binding.matching.matches(request) {
                continue;
            }
            let invocation = |params| Invocation {
                policy: self,
                binding,
                params,
            };
            match self.base.params(binding, params) {
                Ok(params) => invocations.extend(params.into_iter().map(invocation)),
                Err(why) => denials.extend(invocation(None).denial(why, "Forbidden")),
            }
        }
        (invocations, denials)
    }
}

impl Invocation<'_> {
    /// Identity of the invocation in a write, by the names of policy, binding and parameter.
    pub fn key(&self) -> String {
        let params = self.params.as_ref().map(|params| {
            format!(
                "{}/{}",
                metadata_text(params, "namespace"),
                metadata_text(params, "name")
            )
        });
        let (policy, binding) = (&self.policy.base.name, &self.binding.name);
        format!("{policy}/{binding}/{}", params.unwrap_or_default())
    }

    /// Whether it is evaluated again after something else changed the object.
    pub fn is_reinvoked(&self) -> bool {
        self.policy.reinvoked
    }

    /// How many mutations it has.
    pub fn mutations(&self) -> usize {
        self.policy.mutations.len()
    }

    /// Whether the match conditions hold. An error that is not a refusal leaves the object as it is.
    ///
    /// # Errors
    /// An evaluation fails, and that is a refusal.
    pub fn conditions_hold(&self, request: &Request<'_>) -> Result<bool, Denial> {
        let known = Known::new(request);
        let scope = self.policy.base.scope(&known, self.params.as_ref());
        let held = conditions_hold(&self.policy.base.conditions, |condition, budget| {
            scope.evaluate(condition, budget)
        });
        held.or_else(|why| self.denial(&why, "Invalid").map_or(Ok(false), Err))
    }

    /// The object after a mutation, which may have changed nothing; `None`: it failed, and that is ignored.
    ///
    /// # Errors
    /// The mutation fails, and that is a refusal.
    pub fn mutated(
        &self,
        nth: usize,
        request: &Request<'_>,
        version: Version,
    ) -> Result<Option<Value>, Denial> {
        let (Some(object), Some(mutation)) = (request.object, self.policy.mutations.get(nth)) else {
            return Ok(None);
        };
        let changed = match mutation {
            Mutation::Apply(expression) => self.applied(expression, object, request, version),
            Mutation::Patch(expression) => self.patched(expression, object, request),
        };
        changed
            .map(Some)
            .or_else(|why| self.denial(&why, "Invalid").map_or(Ok(None), Err))
    }

    fn applied(
        &self,
        expression: &Compiled,
        object: &Value,
        request: &Request<'_>,
        version: Version,
    ) -> Result<Value, String> {
        let value = self.value(expression, request)?;
        expression::check_constructed(&value).map_err(|why| format!("type mismatch: {why}"))?;
        let mut config = expression::to_json(&value)?;
        if !config.is_object() {
            let name = value.type_name();
            return Err(format!(
                "unsupported return type from ApplyConfiguration expression: {name}"
            ));
        }
        let kind = request.part.unwrap_or(request.kind);
        config["apiVersion"] = kind.api_version().into();
        config["kind"] = (&*kind.kind).into();
        let ownership = Ownership::new(kind, version, "", request.subresource, String::new());
        let merged = ownership.merged(object, &config);
        merged.map_err(|why| format!("error applying patch: {why}"))
    }

    fn patched(&self, expression: &Compiled, object: &Value, request: &Request<'_>) -> Result<Value, String> {
        let value = self.value(expression, request)?;
        let expression::Value::List(list) = &value else {
            return Err("type mismatch: JSONPatchType.expression should evaluate to array".to_owned());
        };
        let mut operations = Vec::new();
        for operation in list.items() {
            let made = match operation.constructed() {
                Some(made) if made.name() == "JSONPatch" => made,
                Some(_) | None => {
                    let why = "type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch";
                    return Err(why.to_owned());
                }
            };
            let mut sent = Map::new();
            for (field, value) in made.fields() {
                if &**field == "value" {
                    expression::check_constructed(value).map_err(|why| format!("type mismatch: {why}"))?;
                }
                let value = expression::to_json(value).map_err(|why| {
                    format!(
                        "JSONPath valueExpression evaluated to a type that could not marshal to JSON: {why}"
                    )
                })?;
                sent.insert((**field).to_owned(), value);
            }
            operations.push(sent);
        }
        match by_operations(object.clone(), &operations) {
            // Then the patch has no effect, and is no error.
            Err(PatchError::Test(_)) => Ok(object.clone()),
            patched => patched.map_err(|why| format!("JSON Patch: {why}")),
        }
    }

    fn value(&self, expression: &Compiled, request: &Request<'_>) -> Result<expression::Value, String> {
        let known = Known::new(request);
        let scope = self.policy.base.scope(&known, self.params.as_ref());
        let mut budget = Budget::new(OBJECT_COST_MAX);
        let value = scope.value(expression, &mut budget);
        if budget.is_exhausted() {
            return Err(OUT_OF_BUDGET.to_owned());
        }
        value.map_err(|failure| expression.resulted(&failure))
    }

    fn denial(&self, why: &str, reason: &'static str) -> Option<Denial> {
        let (policy, binding) = (&self.policy.base.name, &self.binding.name);
        self.policy.base.fails.then(|| Denial {
            message: format!("policy '{policy}' with binding '{binding}' denied request: {why}"),
            reason,
        })
    }
}
