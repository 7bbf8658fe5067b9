//! Role-based access control: what roles and bindings allow a user to do.
//!
//! A pure evaluator: objects, a user and attributes in, a decision with its reason out. It must not know requests, storage,
//! or how users are authenticated.
//!
//! Source: "Using RBAC Authorization"; kubernetes `plugin/pkg/auth/authorizer/rbac/rbac.go` and
//! `pkg/registry/rbac/validation/rule.go`.

use std::collections::BTreeMap;

use apimachinery::go_text::quote;
use apimachinery::selector::LabelSelector;
use serde_json::Value;

use crate::scale::label_selector;

mod escalation;
mod rule;

pub use escalation::missing;
pub use rule::PolicyRule;

/// API group of roles and bindings.
pub const GROUP: &str = "rbac.authorization.k8s.io";

/// Resources of the group that authorization depends on.
pub const RESOURCES: [&str; 4] = ["clusterroles", "clusterrolebindings", "roles", "rolebindings"];

/// User, with the properties that bindings refer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct User<'a> {
    /// User name.
    pub name: &'a str,
    /// Names of its groups.
    pub groups: &'a [String],
}

/// Attributes of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attributes {
    /// A request for a non-resource path.
    Path {
        /// HTTP method, in lower case.
        verb: String,
        /// Decoded path.
        path: String,
    },
    /// A request for a resource. Fields that do not apply are empty.
    Resource {
        /// `get`, `list`, `create` …
        verb: String,
        /// API group.
        group: String,
        /// Resource, e.g. `pods`.
        resource: String,
        /// Subresource, e.g. `log`.
        subresource: String,
        /// Object name.
        name: String,
        /// Namespace; empty: cluster scope, or all namespaces.
        namespace: String,
    },
}

impl Attributes {
    /// Returns the namespace; empty outside of namespaces.
    pub fn namespace(&self) -> &str {
        match self {
            Self::Path { .. } => "",
            Self::Resource { namespace, .. } => namespace,
        }
    }
}

/// Result of an evaluation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Whether it is allowed.
    pub allowed: bool,
    /// The binding that allows it, or the errors of the evaluation if it is not allowed; often empty.
    pub reason: String,
}

/// Rules of a user in a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// Rules in the order of the bindings that grant them.
    pub rules: Vec<PolicyRule>,
    /// Errors of bindings that could not be resolved; empty: none.
    pub error: String,
}

/// `roleRef` of a binding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleRef {
    /// `Role` or `ClusterRole`.
    pub kind: String,
    /// Name of the role.
    pub name: String,
}

impl RoleRef {
    /// Reads the `roleRef` of a binding.
    pub fn of(binding: &Value) -> Self {
        Self {
            kind: text(&binding["roleRef"], "kind").to_owned(),
            name: text(&binding["roleRef"], "name").to_owned(),
        }
    }
}

/// All roles and bindings of a cluster.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    cluster_roles: BTreeMap<String, Vec<PolicyRule>>,
    roles: BTreeMap<String, BTreeMap<String, Vec<PolicyRule>>>,
    cluster_bindings: BTreeMap<String, Binding>,
    bindings: BTreeMap<String, BTreeMap<String, Binding>>,
}

#[derive(Debug, Clone)]
struct Binding {
    role: RoleRef,
    subjects: Vec<Subject>,
}

#[derive(Debug, Clone)]
struct Subject {
    kind: String,
    name: String,
    namespace: String,
}

impl Policy {
    /// Reads the policy from objects, each after its resource; other resources are ignored. A later object replaces an
    /// earlier one of the same name.
    ///
    /// The rules of a role with an `aggregationRule` are those of the roles that it selects, as
    /// kube-controller-manager would write them.
    pub fn new<'a>(objects: impl Iterator<Item = (&'a str, &'a Value)>) -> Self {
        let mut policy = Self::default();
        let mut cluster_roles: BTreeMap<&str, &Value> = BTreeMap::new();
        for (resource, object) in objects {
            let (name, namespace) = (
                text(&object["metadata"], "name"),
                text(&object["metadata"], "namespace"),
            );
            match resource {
                "clusterroles" => drop(cluster_roles.insert(name, object)),
                "roles" => {
                    let roles = policy.roles.entry(namespace.to_owned()).or_default();
                    roles.insert(name.to_owned(), PolicyRule::list(&object["rules"]));
                }
                "clusterrolebindings" => {
                    let binding = Binding::read(object);
                    policy.cluster_bindings.insert(name.to_owned(), binding);
                }
                "rolebindings" => {
                    let bindings = policy.bindings.entry(namespace.to_owned()).or_default();
                    bindings.insert(name.to_owned(), Binding::read(object));
                }
                _ => {}
            }
        }
        let aggregation = Aggregation::new(&cluster_roles);
        policy.cluster_roles = cluster_roles
            .keys()
            .map(|name| ((*name).to_owned(), aggregation.rules(name)))
            .collect();
        policy
    }

    /// Decides whether the user may do this.
    pub fn decide(&self, user: User<'_>, attributes: &Attributes) -> Decision {
        let mut errors = Vec::new();
        let granted = self.grants(user, attributes.namespace()).find_map(|grant| {
            let rules = match grant.rules {
                Ok(rules) => rules,
                Err(error) => {
                    errors.push(error);
                    return None;
                }
            };
            let allows = rules.iter().any(|rule| rule.allows(attributes));
            allows.then_some(grant.source)
        });
        match granted {
            Some(source) => Decision {
                allowed: true,
                reason: format!("RBAC: allowed by {source}"),
            },
            None if errors.is_empty() => Decision {
                allowed: false,
                reason: String::new(),
            },
            None => Decision {
                allowed: false,
                reason: format!("RBAC: {}", aggregated(errors)),
            },
        }
    }

    /// Returns the rules that apply to the user in this namespace.
    pub fn rules(&self, user: User<'_>, namespace: &str) -> Rules {
        let (mut rules, mut errors) = (Vec::new(), Vec::new());
        for grant in self.grants(user, namespace) {
            match grant.rules {
                Ok(granted) => rules.extend_from_slice(granted),
                Err(error) => errors.push(error),
            }
        }
        Rules {
            rules,
            error: aggregated(errors),
        }
    }

    /// Returns the rules of the role that a binding in this namespace refers to (empty: a ClusterRoleBinding); `None` if
    /// there is no such role.
    pub fn role(&self, role: &RoleRef, namespace: &str) -> Option<&[PolicyRule]> {
        let rules = match role.kind.as_str() {
            "Role" => self.roles.get(namespace)?.get(&role.name)?,
            "ClusterRole" => self.cluster_roles.get(&role.name)?,
            _ => return None,
        };
        Some(rules)
    }

    /// Returns the bindings that apply to the user: those of the cluster, then those of the namespace, each by name. Their order
    /// on a real server is undefined.
    fn grants<'a>(&'a self, user: User<'a>, namespace: &'a str) -> impl Iterator<Item = Grant<'a>> {
        let of_cluster = self
            .cluster_bindings
            .iter()
            .map(|(name, binding)| (name, binding, ""));
        let of_namespace = self.bindings.get(namespace).filter(|_| !namespace.is_empty());
        let of_namespace = of_namespace.into_iter().flatten();
        let of_namespace = of_namespace.map(move |(name, binding)| (name, binding, namespace));
        of_cluster
            .chain(of_namespace)
            .filter_map(move |(name, binding, within)| {
                let mut subjects = binding.subjects.iter();
                let subject = subjects.find(|subject| subject.is(user, within))?;
                let rules = self.role(&binding.role, within);
                Some(Grant {
                    source: Source {
                        name,
                        binding,
                        subject,
                        namespace: within,
                    },
                    rules: rules.ok_or_else(|| unresolved(&binding.role)),
                })
            })
    }
}

/// A binding that applies to a user, with the rules it grants.
struct Grant<'a> {
    source: Source<'a>,
    rules: Result<&'a [PolicyRule], String>,
}

/// Origin of a permission, for reasons.
struct Source<'a> {
    name: &'a str,
    binding: &'a Binding,
    subject: &'a Subject,
    namespace: &'a str,
}

impl std::fmt::Display for Source<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (kind, name) = match self.namespace {
            "" => ("ClusterRoleBinding", quote(self.name)),
            namespace => ("RoleBinding", quote(&format!("{}/{namespace}", self.name))),
        };
        let RoleRef {
            kind: role_kind,
            name: role,
        } = &self.binding.role;
        let subject = match (self.subject.kind.as_str(), self.subject.namespace.as_str()) {
            (SERVICE_ACCOUNT, "") => format!("{}/{}", self.subject.name, self.namespace),
            (SERVICE_ACCOUNT, namespace) => format!("{}/{namespace}", self.subject.name),
            (_, _) => self.subject.name.clone(),
        };
        write!(
            formatter,
            "{kind} {name} of {role_kind} {} to {} {}",
            quote(role),
            self.subject.kind,
            quote(&subject)
        )
    }
}

const SERVICE_ACCOUNT: &str = "ServiceAccount";

impl Binding {
    fn read(object: &Value) -> Self {
        let subjects = object["subjects"].as_array().into_iter().flatten();
        Self {
            role: RoleRef::of(object),
            subjects: subjects
                .map(|subject| Subject {
                    kind: text(subject, "kind").to_owned(),
                    name: text(subject, "name").to_owned(),
                    namespace: text(subject, "namespace").to_owned(),
                })
                .collect(),
        }
    }
}

impl Subject {
    /// Returns whether it is this user, in a binding of this namespace.
    fn is(&self, user: User<'_>, within: &str) -> bool {
        match self.kind.as_str() {
            "User" => user.name == self.name,
            "Group" => user.groups.contains(&self.name),
            SERVICE_ACCOUNT => {
                let namespace = match self.namespace.as_str() {
                    "" => within,
                    namespace => namespace,
                };
                let account = user.name.strip_prefix("system:serviceaccount:");
                let account = account.and_then(|account| account.split_once(':'));
                !namespace.is_empty() && account == Some((namespace, self.name.as_str()))
            }
            _ => false,
        }
    }
}

/// Rules of cluster roles, including aggregated ones.
struct Aggregation<'a> {
    roles: &'a BTreeMap<&'a str, &'a Value>,
    /// Selectors of roles that aggregate others.
    selectors: BTreeMap<&'a str, Vec<LabelSelector>>,
}

impl<'a> Aggregation<'a> {
    fn new(roles: &'a BTreeMap<&'a str, &'a Value>) -> Self {
        let selectors = roles.iter().filter_map(|(name, role)| {
            let aggregation = role["aggregationRule"].as_object()?;
            let listed = aggregation.get("clusterRoleSelectors").and_then(Value::as_array);
            let read = |selector: &Value| LabelSelector::parse(&label_selector(selector)).ok();
            Some((*name, listed.into_iter().flatten().filter_map(read).collect()))
        });
        Self {
            selectors: selectors.collect(),
            roles,
        }
    }

    fn rules(&self, name: &'a str) -> Vec<PolicyRule> {
        let (mut rules, mut seen, mut rest) = (Vec::new(), Vec::new(), vec![name]);
        // A role is visited once, which also ends cycles.
        while let Some(name) = rest.pop() {
            if seen.contains(&name) {
                continue;
            }
            seen.push(name);
            let Some(selectors) = self.selectors.get(name) else {
                for rule in PolicyRule::list(&self.roles[name]["rules"]) {
                    if !rules.contains(&rule) {
                        rules.push(rule);
                    }
                }
                continue;
            };
            let selected = self.roles.iter().filter(|(_, role)| {
                let labels = &role["metadata"]["labels"];
                selectors.iter().any(|selector| selector.matches_labels(labels))
            });
            // Popped in the order of names.
            rest.extend(selected.map(|(name, _)| *name).rev());
        }
        rules
    }
}

/// Returns the error of a binding whose role does not exist.
fn unresolved(role: &RoleRef) -> String {
    match role.kind.as_str() {
        "Role" | "ClusterRole" => format!(
            "{}.{GROUP} {} not found",
            role.kind.to_ascii_lowercase(),
            quote(&role.name)
        ),
        other => format!("unsupported role reference kind: {}", quote(other)),
    }
}

/// Joins errors as `utilerrors.NewAggregate` formats them: each once.
fn aggregated(errors: Vec<String>) -> String {
    let mut once: Vec<String> = Vec::new();
    for error in errors {
        if !once.contains(&error) {
            once.push(error);
        }
    }
    match once.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        several => format!("[{}]", several.join(", ")),
    }
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests;
