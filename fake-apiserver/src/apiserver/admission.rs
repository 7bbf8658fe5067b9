//! Who asks, and whether they may. It knows no answers.

use std::borrow::Cow;

use apimachinery::status::Status;
use trace::record::ConnId;

use super::ApiServer;
use crate::api::access::{self, Authorizer, User};
use crate::api::{Answer, HttpRequest};

impl ApiServer {
    /// Lets a request in, or does not.
    ///
    /// # Errors
    /// 401 for who is not known, 403 for what they have no right to, 400 for an impersonation that cannot be read.
    pub(super) fn admit(&self, conn: ConnId, request: &HttpRequest) -> Result<(), Answer> {
        let user = self.asker(conn, request).map_err(access::not_let_in)?;
        let checked = self.authorizer().check(&user, request);
        checked.map_err(access::refused)
    }

    /// In whose name a request is made.
    ///
    /// # Errors
    /// 401 and, where they pretend to be another and may not, 403 or 400.
    pub(super) fn asker(&self, conn: ConnId, request: &HttpRequest) -> Result<Cow<'_, User>, Status> {
        let certified = self.users.get(&conn);
        let user = access::authenticate(self.access.as_ref(), request, certified, |token| {
            let account = self.user_of_token(token, &[]);
            account.map(|(user, _)| user).ok()
        })?;
        access::impersonated(user, request, self.authorizer(), self.settings.version)
    }

    /// Who decides what may be done.
    pub(super) fn authorizer(&self) -> Authorizer {
        match self.access {
            Some(_) => Authorizer::Roles,
            None => Authorizer::AlwaysAllow,
        }
    }
}
