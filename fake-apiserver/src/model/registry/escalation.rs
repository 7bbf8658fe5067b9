//! Escalation checks: users cannot grant rights that they do not hold. It must not know how rights are evaluated.
//!
//! Source: kubernetes `pkg/registry/rbac/{role,clusterrole,rolebinding,clusterrolebinding}/policybased/storage.go` and
//! `pkg/registry/rbac/escalation_check.go`.

use apimachinery::status::Status;
use builtin_kinds::rbac::{self, Attributes, GROUP, Policy, PolicyRule, RoleRef};
use serde_json::Value;

use super::Writer;
use crate::api::access::{Requester, subject};

impl Writer<'_> {
    /// Checks that the writer of this role or binding may grant its rights.
    ///
    /// # Errors
    ///
    /// 403, and 404 for a binding to a role that does not exist.
    pub(super) fn check_escalation(
        &self,
        object: &Value,
        old: Option<&Value>,
        name: &str,
    ) -> Result<(), Status> {
        let kind = self.stored_kind();
        let Some(requester) = self.requester.filter(|_| kind.group == GROUP) else {
            return Ok(());
        };
        let Some(policy) = requester.authorizer.limits(requester.user) else {
            return Ok(());
        };
        if old.is_some_and(|old| only_for_the_collector(object, old)) {
            return Ok(());
        }
        let refused = |why: &str| Status::forbidden(&kind, name, why, Vec::new());
        match &*kind.plural {
            "roles" | "clusterroles" => {
                if self.may("escalate", &kind.plural, name, requester) {
                    return Ok(());
                }
                let rules = PolicyRule::list(&object["rules"]);
                if let Some(why) = self.missing(policy, &rules, requester) {
                    return Err(refused(&why));
                }
                let aggregates = |object: &Value| object["aggregationRule"].is_object();
                let aggregates = aggregates(object) || old.is_some_and(aggregates);
                let all = [PolicyRule::everything(), PolicyRule::every_path()];
                if aggregates && self.missing(policy, &all, requester).is_some() {
                    return Err(refused(
                        "must have cluster-admin privileges to use the aggregationRule",
                    ));
                }
                Ok(())
            }
            "rolebindings" | "clusterrolebindings" => {
                let role = RoleRef::of(object);
                let resource = match role.kind.as_str() {
                    "Role" => "roles",
                    "ClusterRole" => "clusterroles",
                    // Validation rejects it.
                    _ => return Ok(()),
                };
                if self.may("bind", resource, &role.name, requester) {
                    return Ok(());
                }
                let Some(rules) = policy.role(&role, self.namespace()) else {
                    // kube-apiserver names the resource of the request, not that of the role.
                    return Err(Status::not_found(&kind, &role.name));
                };
                match self.missing(policy, rules, requester) {
                    Some(why) => Err(refused(&why)),
                    None => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    fn may(&self, verb: &str, resource: &str, name: &str, requester: Requester<'_>) -> bool {
        let attributes = Attributes::Resource {
            verb: verb.to_owned(),
            group: GROUP.to_owned(),
            resource: resource.to_owned(),
            subresource: String::new(),
            name: name.to_owned(),
            namespace: self.namespace().to_owned(),
        };
        requester.authorizer.decide(requester.user, &attributes).allowed
    }

    fn missing(&self, policy: &Policy, granted: &[PolicyRule], requester: Requester<'_>) -> Option<String> {
        let user = subject(requester.user);
        rbac::missing(user, &policy.rules(user, self.namespace()), granted)
    }

    fn namespace(&self) -> &str {
        self.collection.namespace.as_deref().unwrap_or_default()
    }
}

/// Returns whether an update changes only finalizers and owner references, as the garbage collector does.
fn only_for_the_collector(object: &Value, old: &Value) -> bool {
    let rest = |object: &Value| {
        let mut object = object.clone();
        if let Some(metadata) = object["metadata"].as_object_mut() {
            for field in [
                "finalizers",
                "ownerReferences",
                "managedFields",
                "resourceVersion",
            ] {
                metadata.shift_remove(field);
            }
        }
        object
    };
    rest(object) == rest(old)
}
