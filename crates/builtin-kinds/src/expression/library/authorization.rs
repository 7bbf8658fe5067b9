//! Authorization checks: `authorizer.group('apps').resource('deployments').check('create').allowed()`.
//!
//! Whether something is allowed is decided by a function that the caller gives.
//!
//! Source: apiserver `pkg/cel/library/authz.go`.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use super::{Function, Outcome, failed, opaque};
use crate::expression::Failure;
use crate::expression::meter::Meter;
use crate::expression::value::{Opaque, Value};
use crate::naming::{label, subdomain};
use crate::rbac::{self, Attributes};

/// Decides what a user, by name and groups, is authorized to do.
type Decide = dyn Fn(&str, &[String], &Attributes) -> rbac::Decision + Send + Sync;

/// The value `authorizer`: a user, and a function that decides.
#[derive(Clone)]
pub struct Authorizer {
    decide: Arc<Decide>,
    name: String,
    groups: Vec<String>,
    /// The object of the request (`authorizer.requestResource`).
    requested: Option<Arc<Attributes>>,
}

impl Authorizer {
    /// Returns the authorizer of a user.
    pub fn new(
        name: &str,
        groups: &[String],
        decide: impl Fn(&str, &[String], &Attributes) -> rbac::Decision + Send + Sync + 'static,
    ) -> Self {
        Self {
            decide: Arc::new(decide),
            name: name.to_owned(),
            groups: groups.to_vec(),
            requested: None,
        }
    }

    /// Returns the value for a request of this object.
    pub(crate) fn for_request(&self, attributes: Attributes) -> Value {
        Value::opaque(Self {
            requested: Some(Arc::new(attributes)),
            ..self.clone()
        })
    }
}

impl fmt::Debug for Authorizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authorizer")
            .field("name", &self.name)
            .field("groups", &self.groups)
            .finish_non_exhaustive()
    }
}

impl PartialEq for Authorizer {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.decide, &other.decide) && (&self.name, &self.groups) == (&other.name, &other.groups)
    }
}

impl Opaque for Authorizer {
    fn type_name(&self) -> &str {
        "kubernetes.authorization.Authorizer"
    }

    fn equals(&self, other: &dyn Opaque) -> bool {
        other
            .as_any()
            .downcast_ref::<Self>()
            .is_some_and(|other| self == other)
    }

    /// `authorizer.requestResource`, which is a separate variable on a real server.
    fn field(&self, name: &str, _meter: &mut Meter) -> Option<Result<Value, Failure>> {
        let requested = self.requested.as_ref().filter(|_| name == "requestResource")?;
        Some(Ok(Value::opaque(Check {
            authorizer: self.clone(),
            attributes: (**requested).clone(),
        })))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// What is checked: a resource or a path.
#[derive(Debug, Clone, PartialEq)]
struct Check {
    authorizer: Authorizer,
    attributes: Attributes,
}

#[derive(Debug, Clone, PartialEq)]
struct PathCheck(Check);

#[derive(Debug, Clone, PartialEq)]
struct GroupCheck {
    authorizer: Authorizer,
    group: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Decision(rbac::Decision);

opaque!(Check, "kubernetes.authorization.ResourceCheck");
opaque!(PathCheck, "kubernetes.authorization.PathCheck");
opaque!(GroupCheck, "kubernetes.authorization.GroupCheck");
opaque!(Decision, "kubernetes.authorization.Decision");

/// Cost of a check: an expression has two (`CallCost`).
const CHECK_COST: u64 = 350_000;

/// Cost of a selector beside that of its text.
const SELECTOR_COST: u64 = 10;

/// Cost of each requirement of a selector, of which one has at least two characters.
const REQUIREMENT_COST: u64 = 50;

pub(super) fn find(name: &str, on_target: bool, args: usize) -> Option<Function> {
    Some(match (name, on_target, args) {
        ("path", true, 1) => path,
        ("group", true, 1) => group,
        ("serviceAccount", true, 2) => service_account,
        ("resource", true, 1) => resource,
        ("subresource", true, 1) => |meter, args| {
            changed(meter, args, |attributes, value| {
                if let Attributes::Resource { subresource, .. } = attributes {
                    value.clone_into(subresource);
                }
            })
        },
        ("namespace", true, 1) => |meter, args| {
            changed(meter, args, |attributes, value| {
                if let Attributes::Resource { namespace, .. } = attributes {
                    value.clone_into(namespace);
                }
            })
        },
        ("name", true, 1) => |meter, args| {
            changed(meter, args, |attributes, value| {
                if let Attributes::Resource { name, .. } = attributes {
                    value.clone_into(name);
                }
            })
        },
        ("fieldSelector" | "labelSelector", true, 1) => selected,
        ("check", true, 1) => check,
        ("allowed", true, 0) => |meter, args| Ok(Value::Bool(decision(meter, args)?.0.allowed)),
        // Roles that cannot be resolved are a reason, not an error.
        ("errored", true, 0) => |meter, args| decision(meter, args).map(|_| Value::Bool(false)),
        ("error", true, 0) => |meter, args| decision(meter, args).map(|_| Value::text("")),
        ("reason", true, 0) => |meter, args| Ok(Value::text(decision(meter, args)?.0.reason.as_str())),
        _ => return None,
    })
}

/// The target and a text, after the charge of a builder.
fn with_text<'a, T: Opaque>(meter: &mut Meter, args: &'a [Value]) -> Result<(&'a T, &'a str), Failure> {
    meter.charge(1)?;
    let [target, Value::Text(text)] = args else {
        return Err(Failure::Overload);
    };
    meter.allocate(text.as_str().len())?;
    let target = target.downcast().ok_or(Failure::Overload)?;
    Ok((target, text.as_str()))
}

fn path(meter: &mut Meter, args: &[Value]) -> Outcome {
    let (authorizer, path) = with_text::<Authorizer>(meter, args)?;
    if path.trim().is_empty() {
        return Err(failed("path must not be empty"));
    }
    Ok(Value::opaque(PathCheck(Check {
        authorizer: authorizer.clone(),
        attributes: Attributes::Path {
            verb: String::new(),
            path: path.to_owned(),
        },
    })))
}

fn group(meter: &mut Meter, args: &[Value]) -> Outcome {
    let (authorizer, group) = with_text::<Authorizer>(meter, args)?;
    Ok(Value::opaque(GroupCheck {
        authorizer: authorizer.clone(),
        group: group.to_owned(),
    }))
}

fn service_account(meter: &mut Meter, args: &[Value]) -> Outcome {
    meter.charge(1)?;
    let [authorizer, Value::Text(namespace), Value::Text(name)] = args else {
        return Err(Failure::Overload);
    };
    let authorizer = authorizer.downcast::<Authorizer>().ok_or(Failure::Overload)?;
    let (namespace, name) = (namespace.as_str(), name.as_str());
    meter.allocate(namespace.len().saturating_add(name.len()).saturating_mul(8))?;
    if !subdomain(name).is_empty() {
        return Err(failed("Invalid service account name"));
    }
    if !label(namespace).is_empty() {
        return Err(failed("Invalid service account namespace"));
    }
    Ok(Value::opaque(Authorizer {
        name: format!("system:serviceaccount:{namespace}:{name}"),
        groups: vec![
            "system:serviceaccounts".to_owned(),
            format!("system:serviceaccounts:{namespace}"),
        ],
        ..authorizer.clone()
    }))
}

fn resource(meter: &mut Meter, args: &[Value]) -> Outcome {
    let (group, resource) = with_text::<GroupCheck>(meter, args)?;
    if resource.trim().is_empty() {
        return Err(failed("resource must not be empty"));
    }
    Ok(Value::opaque(Check {
        authorizer: group.authorizer.clone(),
        attributes: Attributes::Resource {
            verb: String::new(),
            group: group.group.clone(),
            resource: resource.to_owned(),
            subresource: String::new(),
            name: String::new(),
            namespace: String::new(),
        },
    }))
}

fn changed(meter: &mut Meter, args: &[Value], change: fn(&mut Attributes, &str)) -> Outcome {
    let (check, value) = with_text::<Check>(meter, args)?;
    let mut check = check.clone();
    change(&mut check.attributes, value);
    Ok(Value::opaque(check))
}

/// Roles know no selectors: they do not change a decision.
fn selected(meter: &mut Meter, args: &[Value]) -> Outcome {
    let size = args.get(1).map_or(0, Value::size);
    meter.charge(SELECTOR_COST + size.div_ceil(10) + size.div_ceil(2).saturating_mul(REQUIREMENT_COST))?;
    match args {
        [check, Value::Text(_)] if check.downcast::<Check>().is_some() => Ok(check.clone()),
        _ => Err(Failure::Overload),
    }
}

fn check(meter: &mut Meter, args: &[Value]) -> Outcome {
    meter.charge(CHECK_COST)?;
    let [target, Value::Text(sent)] = args else {
        return Err(Failure::Overload);
    };
    let path = target.downcast().map(|PathCheck(check)| check);
    let check = target.downcast::<Check>().or(path).ok_or(Failure::Overload)?;
    let mut attributes = check.attributes.clone();
    match &mut attributes {
        Attributes::Resource { verb, .. } | Attributes::Path { verb, .. } => sent.as_str().clone_into(verb),
    }
    let Authorizer {
        decide, name, groups, ..
    } = &check.authorizer;
    Ok(Value::opaque(Decision(decide(name, groups, &attributes))))
}

fn decision<'a>(meter: &mut Meter, args: &'a [Value]) -> Result<&'a Decision, Failure> {
    meter.charge(1)?;
    let decision = args.first().and_then(Value::downcast);
    decision.ok_or(Failure::Overload)
}
