//! Authorization of requests: everything is allowed, or the rights granted by roles and bindings.
//!
//! Members of `system:masters` are authorized to do everything. Roles are evaluated in `builtin_kinds::rbac`.
//!
//! Source: "Authorization", "Using RBAC Authorization"; apiserver `authorization/authorizerfactory`.

use std::sync::Arc;

use apimachinery::status::Status;
use builtin_kinds::rbac::{self, Decision, Policy, PolicyRule, Rules};

use super::attributes::{self, Attributes};
use super::{ADMINS, HttpRequest, User};

/// Authorization mode, as `--authorization-mode` of kube-apiserver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Authorization {
    /// Everything is allowed.
    AlwaysAllow,
    /// Roles and bindings decide.
    Rbac,
}

/// Authorizer of requests.
#[derive(Debug, Clone)]
pub(crate) enum Authorizer {
    /// [`Authorization::AlwaysAllow`].
    AlwaysAllow,
    /// [`Authorization::Rbac`], with the current roles and bindings.
    Roles(Arc<Policy>),
}

impl Authorizer {
    /// Checks that `user` is authorized to send this request.
    ///
    /// # Errors
    ///
    /// 403.
    pub(crate) fn check(&self, user: &User, request: &HttpRequest) -> Result<(), Status> {
        if self.allows_everything(user) {
            return Ok(());
        }
        self.require(user, &attributes::of(request))
    }

    /// Checks that `user` is authorized to do this.
    ///
    /// # Errors
    ///
    /// 403.
    pub(crate) fn require(&self, user: &User, attributes: &Attributes) -> Result<(), Status> {
        let decision = self.decide(user, attributes);
        match decision.allowed {
            true => Ok(()),
            false => Err(attributes::refusal(attributes, user, &decision.reason)),
        }
    }

    /// Decides whether `user` is authorized to do this.
    pub(crate) fn decide(&self, user: &User, attributes: &Attributes) -> Decision {
        match self {
            Self::Roles(policy) if !self.allows_everything(user) => policy.decide(subject(user), attributes),
            Self::AlwaysAllow | Self::Roles(_) => Decision {
                allowed: true,
                reason: String::new(),
            },
        }
    }

    /// Returns the reason if everything is allowed to everybody; `None` otherwise.
    pub(crate) fn open(&self) -> Option<&'static str> {
        match self {
            Self::AlwaysAllow => {
                Some("there is no authorization (mode AlwaysAllow): everybody may do everything")
            }
            Self::Roles(_) => None,
        }
    }

    /// Returns the rules that apply to `user` in this namespace.
    pub(crate) fn rules(&self, user: &User, namespace: &str) -> Rules {
        match self {
            Self::AlwaysAllow => Rules {
                rules: vec![PolicyRule::everything(), PolicyRule::every_path()],
                error: String::new(),
            },
            Self::Roles(policy) => policy.rules(subject(user), namespace),
        }
    }

    /// Returns the policy that limits which rights `user` may grant; `None`: all of them.
    pub(crate) fn limits(&self, user: &User) -> Option<&Policy> {
        match self {
            Self::Roles(policy) if !self.allows_everything(user) => Some(policy),
            Self::AlwaysAllow | Self::Roles(_) => None,
        }
    }

    fn allows_everything(&self, user: &User) -> bool {
        matches!(self, Self::AlwaysAllow) || user.is_in(ADMINS)
    }
}

/// Returns the user as the subject of bindings.
pub(crate) fn subject(user: &User) -> rbac::User<'_> {
    rbac::User {
        name: &user.name,
        groups: &user.groups,
    }
}
