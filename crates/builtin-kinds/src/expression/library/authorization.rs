//! Authorization checks: `authorizer.group('apps').resource('deployments').check('create').allowed()`.
//!
//! Whether something is allowed is decided by a function that the caller gives.
//!
//! Source: apiserver `pkg/cel/library/authz.go`.

use std::fmt;
use std::sync::Arc;

use cel::common::traits::Indexer;
use cel::common::types::{CelBool, CelString, Type};
use cel::common::value::{CowVal, StaticVal, Val};
use cel::{Env, ExecutionError};

use super::{Declared, opaque, refused};
use crate::expression::Object;
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
    pub(crate) fn for_request(&self, attributes: Attributes) -> Object {
        Box::new(Self {
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

static AUTHORIZER: Type = Type::new_unspecified_type("kubernetes.authorization.Authorizer");

impl Val for Authorizer {
    fn get_type(&self) -> &Type {
        &AUTHORIZER
    }

    fn cel_type() -> &'static Type {
        &AUTHORIZER
    }

    fn equals(&self, other: &dyn Val) -> bool {
        other.downcast_ref::<Self>().is_some_and(|other| self == other)
    }

    fn as_indexer<'b, 'v>(&'b self) -> Option<&'b (dyn Indexer + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> Option<&dyn std::any::Any> {
        Some(self)
    }
}

impl StaticVal for Authorizer {}

/// `authorizer.requestResource`, which is a separate variable on a real server.
impl Indexer for Authorizer {
    fn get<'b, 'v>(&'b self, index: &dyn Val) -> std::result::Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        let field = index.downcast_ref::<CelString>().map(CelString::inner);
        match (field, &self.requested) {
            (Some("requestResource"), Some(requested)) => Ok(CowVal::owned(Check {
                authorizer: self.clone(),
                attributes: (**requested).clone(),
            })),
            (field, _) => Err(ExecutionError::no_such_key(field.unwrap_or_default())),
        }
    }

    fn steal<'v>(self: Box<Self>, index: &dyn Val) -> std::result::Result<Box<dyn Val + 'v>, ExecutionError>
    where
        Self: 'v,
    {
        self.get(index).map(CowVal::into_owned)
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

opaque!(Check, "kubernetes.authorization.ResourceCheck", RESOURCE_CHECK);
opaque!(PathCheck, "kubernetes.authorization.PathCheck", PATH_CHECK);
opaque!(GroupCheck, "kubernetes.authorization.GroupCheck", GROUP_CHECK);
opaque!(Decision, "kubernetes.authorization.Decision", DECISION);

type Result<T> = std::result::Result<T, ExecutionError>;

pub(super) fn declare(env: &mut Env) -> Declared {
    for declared in [&AUTHORIZER, &RESOURCE_CHECK, &PATH_CHECK, &GROUP_CHECK, &DECISION] {
        env.add_type(declared.to_owned())?;
    }
    cel::add_member_overload!(env, fn path: (Authorizer, CelString) -> Result<PathCheck>)?;
    cel::add_member_overload!(env, fn group: (Authorizer, CelString) -> GroupCheck)?;
    cel::add_member_overload!(env, fn service_account: (Authorizer, CelString, CelString) -> Result<Authorizer>)?;
    cel::add_member_overload!(env, fn resource: (GroupCheck, CelString) -> Result<Check>)?;
    cel::add_member_overload!(env, fn subresource: (Check, CelString) -> Check)?;
    cel::add_member_overload!(env, fn namespace: (Check, CelString) -> Check)?;
    cel::add_member_overload!(env, fn name: (Check, CelString) -> Check)?;
    cel::add_member_overload!(env, fn selected: (Check, CelString) -> Check, name = "fieldSelector")?;
    cel::add_member_overload!(env, fn labelled: (Check, CelString) -> Check, name = "labelSelector")?;
    cel::add_member_overload!(env, fn check: (Check, CelString) -> Decision)?;
    cel::add_member_overload!(env, fn check_path: (PathCheck, CelString) -> Decision, name = "check")?;
    cel::add_member_overload!(env, fn allowed: (Decision) -> CelBool)?;
    cel::add_member_overload!(env, fn errored: (Decision) -> CelBool)?;
    cel::add_member_overload!(env, fn error_text: (Decision) -> CelString, name = "error")?;
    cel::add_member_overload!(env, fn reason: (Decision) -> CelString)
}

fn path(authorizer: &Authorizer, path: &CelString) -> Result<PathCheck> {
    if path.inner().trim().is_empty() {
        return Err(refused("path", "path must not be empty".to_owned()));
    }
    Ok(PathCheck(Check {
        authorizer: authorizer.clone(),
        attributes: Attributes::Path {
            verb: String::new(),
            path: path.inner().to_owned(),
        },
    }))
}

fn group(authorizer: &Authorizer, group: &CelString) -> GroupCheck {
    GroupCheck {
        authorizer: authorizer.clone(),
        group: group.inner().to_owned(),
    }
}

fn service_account(authorizer: &Authorizer, namespace: &CelString, name: &CelString) -> Result<Authorizer> {
    let (namespace, name) = (namespace.inner(), name.inner());
    if !subdomain(name).is_empty() {
        return Err(refused(
            "serviceAccount",
            "Invalid service account name".to_owned(),
        ));
    }
    if !label(namespace).is_empty() {
        return Err(refused(
            "serviceAccount",
            "Invalid service account namespace".to_owned(),
        ));
    }
    Ok(Authorizer {
        name: format!("system:serviceaccount:{namespace}:{name}"),
        groups: vec![
            "system:serviceaccounts".to_owned(),
            format!("system:serviceaccounts:{namespace}"),
        ],
        ..authorizer.clone()
    })
}

fn resource(group: &GroupCheck, resource: &CelString) -> Result<Check> {
    if resource.inner().trim().is_empty() {
        return Err(refused("resource", "resource must not be empty".to_owned()));
    }
    Ok(Check {
        authorizer: group.authorizer.clone(),
        attributes: Attributes::Resource {
            verb: String::new(),
            group: group.group.clone(),
            resource: resource.inner().to_owned(),
            subresource: String::new(),
            name: String::new(),
            namespace: String::new(),
        },
    })
}

fn subresource(check: &Check, value: &CelString) -> Check {
    let mut check = check.clone();
    if let Attributes::Resource { subresource, .. } = &mut check.attributes {
        value.inner().clone_into(subresource);
    }
    check
}

fn namespace(check: &Check, value: &CelString) -> Check {
    let mut check = check.clone();
    if let Attributes::Resource { namespace, .. } = &mut check.attributes {
        value.inner().clone_into(namespace);
    }
    check
}

fn name(check: &Check, value: &CelString) -> Check {
    let mut check = check.clone();
    if let Attributes::Resource { name, .. } = &mut check.attributes {
        value.inner().clone_into(name);
    }
    check
}

/// Roles know no selectors: they do not change a decision.
fn selected(check: &Check, _selector: &CelString) -> Check {
    check.clone()
}

fn labelled(check: &Check, _selector: &CelString) -> Check {
    check.clone()
}

fn check(check: &Check, sent: &CelString) -> Decision {
    let mut attributes = check.attributes.clone();
    let (Attributes::Path { verb, .. } | Attributes::Resource { verb, .. }) = &mut attributes;
    sent.inner().clone_into(verb);
    let Authorizer {
        decide, name, groups, ..
    } = &check.authorizer;
    Decision(decide(name, groups, &attributes))
}

fn check_path(path: &PathCheck, verb: &CelString) -> Decision {
    check(&path.0, verb)
}

fn allowed(decision: &Decision) -> CelBool {
    CelBool::from(decision.0.allowed)
}

/// Roles that cannot be resolved are a reason, not an error.
fn errored(_decision: &Decision) -> CelBool {
    CelBool::from(false)
}

fn error_text(_decision: &Decision) -> CelString<'static> {
    CelString::from(String::new())
}

fn reason(decision: &Decision) -> CelString<'static> {
    CelString::from(decision.0.reason.clone())
}
