//! Validating admission policies: what they find wrong with a request. Mutating ones are in [`mutating`].
//!
//! A pure evaluator: policies, bindings and a request in, a refusal and warnings out. It must not know storage or HTTP.
//!
//! Audit annotations are checked and never evaluated: there is no audit log.
//!
//! Source: "Validating Admission Policy"; apiserver `pkg/admission/plugin/policy/validating`.

use std::sync::Arc;

use apimachinery::kind::ApiResource;
use serde_json::{Value, json};

use crate::crd::patterns;
use crate::expression::{
    self, Authorizer, Budget, CONDITIONS_COST_MAX, Evaluated, Expression, Failure, Meter, OBJECT_COST_MAX,
};
use crate::rbac;

mod base;
mod check;
mod matching;
pub mod mutating;
#[cfg(test)]
mod tests;
mod variables;

use base::{Base, Binding, Known, Scope};
pub use check::validate;
pub(crate) use matching::Matching;

/// API group of policies and bindings. They are never held against policies themselves.
pub const GROUP: &str = "admissionregistration.k8s.io";

/// A request that is to be admitted.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// `CREATE`, `UPDATE` or `DELETE`.
    pub operation: &'static str,
    /// Kind in whose words the objects are shown.
    pub kind: &'a ApiResource,
    /// Kind of the request; another one where the objects were converted.
    pub request_kind: &'a ApiResource,
    /// Kind of the objects, if it is that of a subresource: `Scale`.
    pub part: Option<&'a ApiResource>,
    /// `status`, or empty.
    pub subresource: &'a str,
    /// Name of the object.
    pub name: &'a str,
    /// Namespace of the request.
    pub namespace: Option<&'a str>,
    /// Is nothing to be stored?
    pub dry_run: bool,
    /// `userInfo`.
    pub user: &'a Value,
    /// `options`: `CreateOptions` and the like.
    pub options: &'a Value,
    /// The object as it is to be stored; `None` for a deletion.
    pub object: Option<&'a Value>,
    /// The object as it is stored; `None` for a creation.
    pub old: Option<&'a Value>,
    /// The Namespace itself.
    pub namespace_object: Option<&'a Value>,
    /// Authorizer of the user.
    pub authorizer: Option<&'a Authorizer>,
}

/// Which objects a policy takes as parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParamQuery<'a> {
    /// `apiVersion` of the kind.
    pub api_version: &'a str,
    /// `kind`.
    pub kind: &'a str,
    /// Name; empty: those that `selector` selects.
    pub name: &'a str,
    /// Namespace; `None`: that of the request.
    pub namespace: Option<&'a str>,
    /// Label selector.
    pub selector: &'a Value,
}

/// What policies say of a request.
#[derive(Debug, Default)]
pub struct Verdict {
    /// Why it is refused.
    pub refusal: Option<Refusal>,
    /// Warnings.
    pub warnings: Vec<String>,
}

/// A refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Message, with the names of policy and binding.
    pub message: String,
    /// Reason of the Status.
    pub reason: String,
    /// HTTP status.
    pub code: u16,
}

/// All policies with their bindings.
#[derive(Debug, Default)]
pub struct Policies(Vec<Policy>);

#[derive(Debug)]
struct Policy {
    base: Base,
    validations: Vec<Validation>,
}

#[derive(Debug)]
struct Validation {
    expression: Compiled,
    message: String,
    message_expression: Option<Compiled>,
    reason: String,
}

/// An expression with its text.
#[derive(Debug)]
pub(crate) struct Compiled {
    text: String,
    expression: Option<Expression>,
}

/// Error of an evaluation for which too little of the budget is left.
pub(crate) const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

impl Compiled {
    pub(crate) fn new(text: &Value, budget: &patterns::Budget) -> Self {
        let text = text.as_str().unwrap_or_default();
        Self {
            expression: Expression::parse_within(text, budget).ok(),
            text: text.to_owned(),
        }
    }

    /// As [`Expression::evaluate`].
    pub(crate) fn evaluate(
        &self,
        variables: &[(&str, expression::Value)],
        budget: &mut Budget,
    ) -> Result<Evaluated, Failure> {
        self.parsed()?.evaluate(variables, budget)
    }

    /// As [`Expression::value`].
    fn value(
        &self,
        variables: &[(&str, expression::Value)],
        budget: &mut Budget,
    ) -> Result<expression::Value, Failure> {
        self.parsed()?.value(variables, budget)
    }

    /// As [`Expression::value`], with the meter of the evaluation.
    fn metered(
        &self,
        variables: &[(&str, expression::Value)],
        meter: &mut Meter,
    ) -> Result<expression::Value, Failure> {
        self.parsed()?.metered(variables, meter)
    }

    /// Words for an evaluation that failed.
    fn resulted(&self, failure: &Failure) -> String {
        format!("expression '{}' resulted in error: {failure}", self.text)
    }

    fn parsed(&self) -> Result<&Expression, Failure> {
        let expression = self.expression.as_ref();
        expression.ok_or_else(|| Failure::Error("the expression does not compile".to_owned()))
    }
}

/// Whether match conditions hold: one that is false decides, whatever fails before it.
///
/// Source: apiserver `pkg/admission/plugin/webhook/matchconditions`.
///
/// # Errors
/// None is false, and the evaluation of these fails: their words; or the budget is exhausted.
pub(crate) fn conditions_hold(
    conditions: &[Compiled],
    mut evaluate: impl FnMut(&Compiled, &mut Budget) -> Result<Evaluated, Failure>,
) -> Result<bool, String> {
    let mut errors = Vec::new();
    let mut budget = Budget::new(CONDITIONS_COST_MAX);
    for condition in conditions {
        let answer = evaluate(condition, &mut budget);
        if budget.is_exhausted() {
            return Err(OUT_OF_BUDGET.to_owned());
        }
        match answer {
            Ok(Evaluated::Bool(false)) => return Ok(false),
            Ok(Evaluated::Bool(true) | Evaluated::Text(_) | Evaluated::Other) => {}
            Err(failure) => errors.push(condition.resulted(&failure)),
        }
    }
    match errors.as_slice() {
        [] => Ok(true),
        [error] => Err(error.clone()),
        errors => Err(format!("[{}]", errors.join(", "))),
    }
}

/// Decision of a validation that failed, or could not be evaluated (`PolicyDecision`).
struct Decision {
    message: String,
    reason: String,
}

impl Policies {
    /// Reads policies and bindings, in the order of their names.
    pub fn new(policies: &[Value], bindings: &[Value]) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let read = policies.iter().map(|policy| {
            let validations = policy["spec"]["validations"].as_array().into_iter().flatten();
            let budget = patterns::Budget::default();
            Policy {
                base: Base::read(policy, bindings, &budget),
                validations: validations
                    .map(|validation| Validation {
                        expression: Compiled::new(&validation["expression"], &budget),
                        message: text(&validation["message"]),
                        message_expression: validation["messageExpression"]
                            .is_string()
                            .then(|| Compiled::new(&validation["messageExpression"], &budget)),
                        reason: text(&validation["reason"]),
                    })
                    .collect(),
            }
        });
        Self(read.filter(|policy| !policy.base.bindings.is_empty()).collect())
    }

    /// Are there none that apply to anything?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Judges a request. `params` finds objects.
    pub fn judge(&self, request: &Request<'_>, params: &dyn Fn(&ParamQuery<'_>) -> Vec<Value>) -> Verdict {
        let mut verdict = Verdict::default();
        if request.kind.group == GROUP {
            return verdict;
        }
        let known = Known::new(request);
        for policy in &self.0 {
            if !policy.base.matching.matches(request) {
                continue;
            }
            for binding in &policy.base.bindings {
                if binding.matching.matches(request) {
                    policy.judge(binding, &known, params, &mut verdict);
                }
            }
        }
        verdict
    }
}

impl Policy {
    fn judge(
        &self,
        binding: &Binding,
        known: &Known<'_>,
        find: &dyn Fn(&ParamQuery<'_>) -> Vec<Value>,
        verdict: &mut Verdict,
    ) {
        let all = match self.base.params(binding, find) {
            Ok(all) => all,
            Err(why) => {
                let decision = self.base.fails.then(|| Decision::invalid(why.to_owned()));
                return self.apply(binding, decision, verdict);
            }
        };
        for params in &all {
            let scope = self.base.scope(known, params.as_ref());
            let of_messages = self.base.message_scope(known, params.as_ref());
            let decisions = self.decisions(&scope, &of_messages);
            self.apply(binding, decisions, verdict);
        }
    }

    /// What the validations find, unless a condition does not hold.
    fn decisions(&self, scope: &Scope, of_messages: &Scope) -> Vec<Decision> {
        let mut budget = Budget::new(CONDITIONS_COST_MAX);
        for condition in &self.base.conditions {
            let answer = scope.evaluate(condition, &mut budget);
            if budget.is_exhausted() {
                return self.ended().into_iter().collect();
            }
            match answer {
                Ok(Evaluated::Bool(true)) => {}
                Ok(Evaluated::Bool(false) | Evaluated::Text(_) | Evaluated::Other) => return Vec::new(),
                Err(failure) => return self.failed(condition, &failure).into_iter().collect(),
            }
        }
        let mut budget = Budget::new(OBJECT_COST_MAX);
        let mut answers = Vec::new();
        for validation in &self.validations {
            let answer = scope.evaluate(&validation.expression, &mut budget);
            if budget.is_exhausted() {
                return self.ended().into_iter().collect();
            }
            answers.push((validation, answer));
        }
        // The messages take what the validations left.
        let found = answers
            .into_iter()
            .filter_map(|(validation, answer)| match answer {
                Ok(Evaluated::Bool(true)) => None,
                Ok(Evaluated::Bool(false) | Evaluated::Text(_) | Evaluated::Other) => {
                    Some(validation.decision(of_messages, &mut budget))
                }
                Err(failure) => self.failed(&validation.expression, &failure),
            });
        found.collect()
    }

    /// The decision when the budget is exhausted.
    fn ended(&self) -> Option<Decision> {
        self.base
            .fails
            .then(|| Decision::invalid(OUT_OF_BUDGET.to_owned()))
    }

    fn failed(&self, expression: &Compiled, failure: &Failure) -> Option<Decision> {
        let fails = self.base.fails;
        fails.then(|| Decision::invalid(expression.resulted(failure)))
    }

    fn apply(&self, binding: &Binding, decisions: impl IntoIterator<Item = Decision>, verdict: &mut Verdict) {
        for decision in decisions {
            let (policy, bound) = (&self.base.name, &binding.name);
            if binding.has("Warn") {
                verdict.warnings.push(format!(
                    "Validation failed for ValidatingAdmissionPolicy '{policy}' with binding '{bound}': {}",
                    decision.message
                ));
            }
            if binding.has("Deny") && verdict.refusal.is_none() {
                let message = format!(
                    "ValidatingAdmissionPolicy '{policy}' with binding '{bound}' denied request: {}",
                    decision.message
                );
                verdict.refusal = Some(Refusal {
                    message,
                    code: match decision.reason.as_str() {
                        "Forbidden" => 403,
                        "Unauthorized" => 401,
                        "RequestEntityTooLarge" => 413,
                        _ => 422,
                    },
                    reason: decision.reason,
                });
            }
        }
    }
}

impl Decision {
    fn invalid(message: String) -> Self {
        Self {
            message,
            reason: "Invalid".to_owned(),
        }
    }
}

impl Validation {
    fn decision(&self, scope: &Scope, budget: &mut Budget) -> Decision {
        let evaluated = self
            .message_expression
            .as_ref()
            .map(|message| scope.evaluate(message, budget));
        if budget.is_exhausted() {
            return Decision::invalid(format!("failed messageExpression: {OUT_OF_BUDGET}"));
        }
        let evaluated = match evaluated {
            Some(Ok(Evaluated::Text(text))) => text.trim().to_owned(),
            Some(Ok(Evaluated::Bool(_) | Evaluated::Other) | Err(_)) | None => String::new(),
        };
        let message = match (evaluated.as_str(), self.message.trim()) {
            ("", "") => format!("failed expression: {}", self.expression.text.trim()),
            ("", message) => message.to_owned(),
            (_, _) => evaluated,
        };
        Decision {
            message,
            reason: match self.reason.as_str() {
                "" => "Invalid".to_owned(),
                reason => reason.to_owned(),
            },
        }
    }
}

impl Request<'_> {
    /// The variable `authorizer`.
    pub(crate) fn authorizer(&self) -> Option<expression::Value> {
        let own = |text: &str| text.to_owned();
        let attributes = rbac::Attributes::Resource {
            verb: String::new(),
            group: own(&self.kind.group),
            resource: own(&self.kind.plural),
            subresource: own(self.subresource),
            name: own(self.name),
            namespace: own(self.namespace.unwrap_or_default()),
        };
        Some(self.authorizer?.for_request(attributes))
    }

    /// The attribute `request` (`AdmissionRequest`).
    pub(crate) fn as_json(&self) -> Value {
        let gvk = |of: &ApiResource| json!({ "group": of.group, "version": of.version, "kind": of.kind });
        let gvr =
            |of: &ApiResource| json!({ "group": of.group, "version": of.version, "resource": of.plural });
        json!({
            "kind": gvk(self.part.unwrap_or(self.kind)),
            "resource": gvr(self.kind),
            "subResource": self.subresource,
            "requestKind": gvk(self.part.unwrap_or(self.request_kind)),
            "requestResource": gvr(self.request_kind),
            "requestSubResource": self.subresource,
            "name": self.name,
            "namespace": self.namespace.unwrap_or_default(),
            "operation": self.operation,
            "userInfo": self.user,
            "dryRun": self.dry_run,
            "options": self.options,
        })
    }
}

/// Fields of `request`, with those of its parts.
fn request_type() -> crate::expression::check::Type {
    use crate::expression::check::Type;
    let object = |fields: &[(&str, Type)]| {
        let fields = fields
            .iter()
            .map(|(name, kind)| ((*name).to_owned(), kind.clone()));
        Type::Object(Arc::new(fields.collect()))
    };
    let texts = |names: &[&'static str]| -> Vec<(&'static str, Type)> {
        names.iter().map(|name| (*name, Type::Text)).collect()
    };
    let kind = object(&texts(&["group", "version", "kind"]));
    let resource = object(&texts(&["group", "version", "resource"]));
    let list = Type::List(Arc::new(Type::Text));
    let user = object(&[
        ("username", Type::Text),
        ("uid", Type::Text),
        ("groups", list.clone()),
        ("extra", Type::Map(Arc::new(list))),
    ]);
    let mut fields = texts(&[
        "subResource",
        "requestSubResource",
        "name",
        "namespace",
        "operation",
    ]);
    fields.extend([
        ("kind", kind.clone()),
        ("resource", resource.clone()),
        ("requestKind", kind),
        ("requestResource", resource),
        ("userInfo", user),
        ("dryRun", Type::Bool),
        ("options", Type::Dyn),
    ]);
    object(&fields)
}
