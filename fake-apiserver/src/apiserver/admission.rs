//! Authentication and authorization of requests. No responses.

use std::borrow::Cow;

use apimachinery::status::Status;
use trace::record::ConnId;

use super::ApiServer;
use crate::api::access::{self, Authorizer, User};
use crate::api::{Answer, HttpRequest};

impl ApiServer {
    /// Authenticates and authorizes a request.
    ///
    /// # Errors
    /// 401 for an unknown user, 403 for a forbidden request, 400 for malformed impersonation headers.
    pub(super) fn admit(&self, conn: ConnId, request: &HttpRequest) -> Result<(), Answer> {
        let user = self.asker(conn, request).map_err(access::not_let_in)?;
        let checked = self.authorizer().check(&user, request);
        checked.map_err(access::refused)
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
        access::impersonated(user, request, self.authorizer(), self.settings.version)
    }

    /// Returns the authorizer.
    pub(super) fn authorizer(&self) -> Authorizer {
        match self.access {
            Some(_) if !self.access_settings.always_allow => Authorizer::Roles,
            Some(_) | None => Authorizer::AlwaysAllow,
        }
    }
}
