//! Authentication and authorization of requests. No responses.

use std::borrow::Cow;

use apimachinery::status::Status;
use trace::record::{ConnId, StreamId};

use super::ApiServer;
use crate::api::access::{self, ADMINS, Authorization, Authorizer, User};
use crate::api::{Answer, HttpRequest};

impl ApiServer {
    /// Authenticates and authorizes a request.
    ///
    /// # Errors
    /// 401 for an unknown user, 403 for a forbidden request, 400 for malformed impersonation headers.
    pub(super) fn admit(&self, conn: ConnId, request: &HttpRequest) -> Result<(), Answer> {
        let user = self.asker(conn, request).map_err(access::not_let_in)?;
        match self.limits(&user) {
            Some(authorizer) => authorizer.check(&user, request).map_err(access::refused),
            None => Ok(()),
        }
    }

    /// Returns the user of a request, after impersonation.
    ///
    /// # Errors
    /// 401; for impersonation 403 or 400.
    pub(super) fn asker(&self, conn: ConnId, request: &HttpRequest) -> Result<Cow<'_, User>, Status> {
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

    /// Returns the user of an open request and the authorizer that limits them.
    ///
    /// # Errors
    /// As [`ApiServer::asker`]: a token may have ended since the request arrived.
    pub(super) fn asker_of(&self, stream: StreamId) -> Result<Option<(User, Authorizer)>, Answer> {
        let Some(open) = self.open.get(&stream) else {
            return Ok(None);
        };
        let asker = self.asker(open.asked.conn, &open.asked.request);
        let asker = asker.map_err(access::not_let_in)?;
        let authorizer = self.limits(&asker).unwrap_or(Authorizer::AlwaysAllow);
        Ok(Some((asker.into_owned(), authorizer)))
    }

    /// Returns the authorizer that limits the user; `None`: everything is allowed, and no role is read.
    fn limits(&self, user: &User) -> Option<Authorizer> {
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
