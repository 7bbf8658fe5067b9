//! What users may do. Members of `system:masters` everything; the others what a real cluster grants to everybody from its
//! first day on. Objects of the group `rbac.authorization.k8s.io` grant nothing here.
//!
//! Source: "Using RBAC Authorization", default roles; kubernetes `plugin/pkg/auth/authorizer/rbac`.

use apimachinery::status::Status;

use super::{ADMINS, AUTHENTICATED, Attributes, HttpRequest, SERVICE_ACCOUNTS, UNAUTHENTICATED, User};

/// Who decides what may be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Authorizer {
    /// No authorization: everything is allowed.
    AlwaysAllow,
    /// The roles below.
    Roles,
}

/// A right: these verbs, with these resources or with these paths. `*` is any; a path may end in it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PolicyRule {
    pub(crate) verbs: &'static [&'static str],
    pub(crate) api_groups: &'static [&'static str],
    pub(crate) resources: &'static [&'static str],
    /// Empty: it is about resources.
    pub(crate) non_resource_urls: &'static [&'static str],
}

/// Rights that the members of any of these groups have.
struct Grant {
    groups: &'static [&'static str],
    rules: &'static [PolicyRule],
}

const fn resources(
    verbs: &'static [&'static str],
    api_groups: &'static [&'static str],
    resources: &'static [&'static str],
) -> PolicyRule {
    PolicyRule {
        verbs,
        api_groups,
        resources,
        non_resource_urls: &[],
    }
}

const fn paths(verbs: &'static [&'static str], non_resource_urls: &'static [&'static str]) -> PolicyRule {
    PolicyRule {
        verbs,
        api_groups: &[],
        resources: &[],
        non_resource_urls,
    }
}

static EVERYTHING: &[PolicyRule] = &[resources(&["*"], &["*"], &["*"]), paths(&["*"], &["*"])];

/// The roles of a fresh cluster that concern people, each for whom it is bound to.
static GRANTS: &[Grant] = &[
    // system:basic-user
    Grant {
        groups: &[AUTHENTICATED],
        rules: &[
            resources(
                &["create"],
                &["authorization.k8s.io"],
                &["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
            ),
            resources(&["create"], &["authentication.k8s.io"], &["selfsubjectreviews"]),
        ],
    },
    // system:service-account-issuer-discovery
    Grant {
        groups: &[SERVICE_ACCOUNTS],
        rules: &[paths(
            &["get"],
            &[
                "/.well-known/openid-configuration",
                "/.well-known/openid-configuration/",
                "/openid/v1/jwks",
                "/openid/v1/jwks/",
            ],
        )],
    },
    // system:discovery
    Grant {
        groups: &[AUTHENTICATED],
        rules: &[paths(
            &["get"],
            &[
                "/api",
                "/api/*",
                "/apis",
                "/apis/*",
                "/healthz",
                "/livez",
                "/openapi",
                "/openapi/*",
                "/readyz",
                "/version",
                "/version/",
            ],
        )],
    },
    // system:public-info-viewer
    Grant {
        groups: &[AUTHENTICATED, UNAUTHENTICATED],
        rules: &[paths(
            &["get"],
            &["/healthz", "/livez", "/readyz", "/version", "/version/"],
        )],
    },
    // cluster-admin
    Grant {
        groups: &[ADMINS],
        rules: EVERYTHING,
    },
];

impl Authorizer {
    /// May `user` ask this?
    ///
    /// # Errors
    /// 403.
    pub(crate) fn check(self, user: &User, request: &HttpRequest) -> Result<(), Status> {
        if self.allows_everything(user) {
            return Ok(());
        }
        let attributes = Attributes::of(request);
        if self.allows(user, &attributes) {
            return Ok(());
        }
        Err(attributes.refusal(user))
    }

    /// May `user` do this?
    pub(crate) fn allows(self, user: &User, attributes: &Attributes) -> bool {
        self.allows_everything(user) || self.rules(user).any(|rule| rule.covers(attributes))
    }

    /// Why everything is allowed, where nobody was granted anything.
    pub(crate) fn reason(self) -> Option<&'static str> {
        match self {
            Self::AlwaysAllow => Some(
                "there is no authorization: this server was started without a token, and everybody may do everything",
            ),
            Self::Roles => None,
        }
    }

    /// What `user` may do.
    pub(crate) fn rules(self, user: &User) -> impl Iterator<Item = &'static PolicyRule> {
        let everything = match self {
            Self::AlwaysAllow => EVERYTHING,
            Self::Roles => &[],
        };
        let granted = GRANTS
            .iter()
            .filter(move |grant| self == Self::Roles && grant.groups.iter().any(|group| user.is_in(group)))
            .flat_map(|grant| grant.rules);
        everything.iter().chain(granted)
    }

    fn allows_everything(self, user: &User) -> bool {
        self == Self::AlwaysAllow || user.is_in(ADMINS)
    }
}

impl PolicyRule {
    fn covers(&self, attributes: &Attributes) -> bool {
        let names =
            |known: &[&str], asked: &str| known.iter().any(|name| matches!(*name, "*") || *name == asked);
        match attributes {
            Attributes::Path { verb, path } => {
                names(self.verbs, verb) && self.non_resource_urls.iter().any(|known| leads_to(known, path))
            }
            Attributes::Resource {
                verb,
                group,
                resource,
                subresource,
                ..
            } => {
                let resource = match subresource.as_str() {
                    "" => resource.clone(),
                    part => format!("{resource}/{part}"),
                };
                names(self.verbs, verb) && names(self.api_groups, group) && names(self.resources, &resource)
            }
        }
    }
}

fn leads_to(known: &str, path: &str) -> bool {
    match known.strip_suffix('*') {
        Some(prefix) => path.starts_with(prefix),
        None => path == known,
    }
}
