//! Authentication and authorization of requests. No responses.

use std::sync::Arc;

use apimachinery::status::Status;
use trace::record::ConnId;

use super::ApiServer;
use crate::api::access::{self, ADMINS, Authorization, Authorizer, User};
use crate::api::{Answer, HttpRequest};

impl ApiServer {
    /// Authenticates and authorizes a request. Returns its user, after impersonation.
    ///
    /// # Errors
    /// 401 for an unknown user, 403 for a forbidden request, 400 for malformed impersonation headers.
    pub(super) fn admit(&self, conn: ConnId, request: &HttpRequest) -> Result<Arc<User>, Answer> {
        let user = self
            .requester(conn, request)
            .map_err(access::rejected_before_flow_control)?;
        if let Some(authorizer) = self.limits(&user) {
            authorizer.check(&user, request).map_err(access::refused)?;
        }
        Ok(user)
    }

    /// Returns the user of a request, after impersonation.
    ///
    /// # Errors
    /// 401; for impersonation 403 or 400.
    fn requester(&self, conn: ConnId, request: &HttpRequest) -> Result<Arc<User>, Status> {
        let certified = self.users.get(&conn);
        let user = access::authenticate(self.access.as_ref(), request, certified, |token| {
            let account = self.user_of_token(token, &[]);
            account.map(|(user, _)| user).ok()
        })?;
        if user.is_anonymous() && !self.access_settings.anonymous {
            return Err(Status::unauthorized());
        }
        access::impersonated(user, request, || self.authorizer(), self.settings.version)
    }

    /// Returns the authorizer that limits the user; `None`: everything is allowed, and no role is read.
    pub(super) fn limits(&self, user: &User) -> Option<Authorizer> {
        let limited = self.mode() == Authorization::Rbac && !user.is_in(ADMINS);
        limited.then(|| self.authorizer())
    }

    /// Returns the authorizer.
    pub(super) fn authorizer(&self) -> Authorizer {
        match self.mode() {
            Authorization::AlwaysAllow => Authorizer::AlwaysAllow,
            Authorization::Rbac => Authorizer::Roles(self.model.policy()),
        }
    }

    /// Authorization mode [default: RBAC with tokens, AlwaysAllow without].
    fn mode(&self) -> Authorization {
        let by_default = match self.access {
            Some(_) => Authorization::Rbac,
            None => Authorization::AlwaysAllow,
        };
        self.authorization.unwrap_or(by_default)
    }
}
