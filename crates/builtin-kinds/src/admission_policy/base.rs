//! What validating and mutating policies have in common: constraints, conditions, variables, bindings and their parameters.

use std::cell::OnceCell;
use std::sync::Arc;

use serde_json::Value;

use super::variables::Variables;
use super::{Compiled, Matching, ParamQuery, Request};
use crate::crd::patterns;
use crate::expression::{self, Budget, Evaluated, Failure};

/// Why a binding without parameters refuses a request.
const NO_PARAMS: &str = "failed to configure binding: no params found for policy binding with `Deny` \
                                    parameterNotFoundAction";

/// A policy with its bindings.
#[derive(Debug)]
pub(super) struct Base {
    pub(super) name: String,
    pub(super) matching: Matching,
    pub(super) conditions: Vec<Compiled>,
    variables: Arc<[(String, Compiled)]>,
    /// Whether an error is a refusal (`failurePolicy: Fail`).
    pub(super) fails: bool,
    param_kind: Option<(String, String)>,
    pub(super) bindings: Vec<Binding>,
}

#[derive(Debug)]
pub(super) struct Binding {
    pub(super) name: String,
    pub(super) matching: Matching,
    actions: Vec<String>,
    /// `spec.paramRef`.
    params: Value,
}

impl Base {
    /// Reads a policy, whose literal patterns are compiled within a budget.
    pub(super) fn read(policy: &Value, bindings: &[Value], budget: &patterns::Budget) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (name, spec) = (text(&policy["metadata"]["name"]), &policy["spec"]);
        let list = |field: &str| spec[field].as_array().into_iter().flatten();
        Self {
            matching: Matching::read(&spec["matchConstraints"]),
            conditions: list("matchConditions")
                .map(|condition| Compiled::new(&condition["expression"], budget))
                .collect(),
            variables: list("variables")
                .map(|variable| {
                    (
                        text(&variable["name"]),
                        Compiled::new(&variable["expression"], budget),
                    )
                })
                .collect(),
            fails: spec["failurePolicy"] != "Ignore",
            param_kind: spec["paramKind"].is_object().then(|| {
                let of = &spec["paramKind"];
                (text(&of["apiVersion"]), text(&of["kind"]))
            }),
            bindings: bindings
                .iter()
                .filter(|binding| binding["spec"]["policyName"] == *name)
                .map(Binding::read)
                .collect(),
            name,
        }
    }

    /// The parameters that a binding selects, of which each is an evaluation; `None`: an evaluation without parameters.
    ///
    /// # Errors
    /// There are none, and that is an error.
    pub(super) fn params(
        &self,
        binding: &Binding,
        find: &dyn Fn(&ParamQuery<'_>) -> Vec<Value>,
    ) -> Result<Vec<Option<Value>>, &'static str> {
        let Some((api_version, kind)) = self.param_kind.as_ref().filter(|_| binding.params.is_object())
        else {
            return Ok(vec![None]);
        };
        let found = find(&ParamQuery {
            api_version,
            kind,
            name: binding.params["name"].as_str().unwrap_or_default(),
            namespace: binding.params["namespace"].as_str(),
            selector: &binding.params["selector"],
        });
        match found.is_empty() && binding.params["parameterNotFoundAction"] == "Deny" {
            true => Err(NO_PARAMS),
            false => Ok(found.into_iter().map(Some).collect()),
        }
    }

    /// The scope of the expressions for a request.
    pub(super) fn scope(&self, known: &Known<'_>, params: Option<&Value>) -> Scope {
        self.scope_with(known, params, known.request.authorizer())
    }

    /// The scope of a message, which knows no authorizer, not even by a variable.
    pub(super) fn message_scope(&self, known: &Known<'_>, params: Option<&Value>) -> Scope {
        self.scope_with(known, params, None)
    }

    fn scope_with(
        &self,
        known: &Known<'_>,
        params: Option<&Value>,
        authorizer: Option<expression::Value>,
    ) -> Scope {
        let mut known = known.values().to_vec();
        known.extend(authorizer.map(|value| ("authorizer", value)));
        if self.param_kind.is_some() {
            known.push(("params", expression::untyped(params.unwrap_or(&Value::Null))));
        }
        let shared: Arc<[(&'static str, expression::Value)]> = known.as_slice().into();
        let variables = Variables::new(Arc::clone(&self.variables), shared);
        known.push(("variables", expression::Value::Opaque(Arc::new(variables))));
        Scope { known }
    }
}

/// A request with the variables of all expressions, which are made at first use and shared by all policies.
pub(super) struct Known<'r> {
    pub(super) request: &'r Request<'r>,
    values: OnceCell<Vec<(&'static str, expression::Value)>>,
}

impl<'r> Known<'r> {
    pub(super) fn new(request: &'r Request<'r>) -> Self {
        Self {
            request,
            values: OnceCell::new(),
        }
    }

    fn values(&self) -> &[(&'static str, expression::Value)] {
        self.values.get_or_init(|| {
            let Self { request, .. } = self;
            let value = |json: Option<&Value>| expression::untyped(json.unwrap_or(&Value::Null));
            vec![
                ("object", value(request.object)),
                ("oldObject", value(request.old)),
                ("request", expression::untyped(&request.as_json())),
                ("namespaceObject", value(request.namespace_object)),
            ]
        })
    }
}

impl Binding {
    fn read(binding: &Value) -> Self {
        let spec = &binding["spec"];
        let actions = spec["validationActions"].as_array().into_iter().flatten();
        Self {
            name: binding["metadata"]["name"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            matching: Matching::read(&spec["matchResources"]),
            actions: actions.filter_map(Value::as_str).map(str::to_owned).collect(),
            params: spec["paramRef"].clone(),
        }
    }

    pub(super) fn has(&self, action: &str) -> bool {
        self.actions.iter().any(|known| known == action)
    }
}

/// The variables of a request.
pub(super) struct Scope {
    known: Vec<(&'static str, expression::Value)>,
}

impl Scope {
    pub(super) fn evaluate(&self, compiled: &Compiled, budget: &mut Budget) -> Result<Evaluated, Failure> {
        compiled.evaluate(&self.known, budget)
    }

    /// As [`Scope::evaluate`], with a result of any type.
    pub(super) fn value(
        &self,
        compiled: &Compiled,
        budget: &mut Budget,
    ) -> Result<expression::Value, Failure> {
        compiled.value(&self.known, budget)
    }
}
