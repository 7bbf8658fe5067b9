//! TokenReview, SubjectAccessReview and the like, answered by the same authenticator and authorizer as requests.

use std::time::Duration;

use apimachinery::kind::Review;
use trace::record::StreamId;

use super::ApiServer;
use crate::api;
use crate::api::access::{API_AUDIENCE, User};
use crate::api::{Answer, ReviewRequest};
use crate::model::review::{Known, Reviewer};

/// Error of an unknown or revoked token.
const NOBODY: &str = "invalid bearer token";

impl ApiServer {
    /// Answers a review that `user` asked for.
    pub(super) fn decide_review(
        &mut self,
        now: Duration,
        stream: StreamId,
        request: ReviewRequest,
        user: &User,
    ) {
        let chance = self.draw();
        let Some(open) = self.open.get(&stream) else {
            return;
        };
        let (asked, kind) = (&open.asked.request, request.collection.kind.clone());
        // kubectl prints no reason of an allowed request, but prints every warning.
        let about_rights = matches!(
            request.review,
            Review::OwnAccess | Review::Access | Review::LocalAccess | Review::OwnRules
        );
        let authorizer = self.authorizer();
        let reason = authorizer.open().filter(|_| about_rights);
        let mut warnings = request.warnings.clone();
        warnings.extend(reason.map(str::to_owned));
        let warnings = api::warnings(&warnings);
        let reviewer = Reviewer {
            requester: user,
            authorizer: &authorizer,
            authenticate: &|token, audiences| self.user_of_token(token, audiences),
            sign: &|claims| self.issuer.sign(claims),
            chance,
        };
        let answered = self.model.review(now, request, &reviewer);
        let answered = answered.and_then(|body| api::object_fits(asked, &kind).map(|()| body));
        let mut answer = answered.map_or_else(Answer::from, |body| Answer::json(201, body));
        answer.headers.extend(warnings);
        self.answer(stream, answer);
    }

    /// Returns the user of a token and the accepted audiences, or why the token is rejected.
    pub(super) fn user_of_token(&self, token: &str, audiences: &[&str]) -> Known {
        let user = self
            .access
            .as_ref()
            .and_then(|access| access.user_of(token))
            .map(|user| User::clone(user));
        let user = user.or_else(|| self.access_settings.user_of(token));
        // Without audiences the token must be issued for the server.
        let meant = audiences.is_empty() || audiences.contains(&API_AUDIENCE);
        match user.filter(|_| meant) {
            Some(user) => Ok((user, vec![API_AUDIENCE.to_owned()])),
            None => match self.issuer.verified(token) {
                None => Err(NOBODY.to_owned()),
                Some(claims) => self
                    .model
                    .account_of(self.now, &claims, audiences)
                    .map_err(|why| format!("[{NOBODY}, {why}]")),
            },
        }
    }
}
