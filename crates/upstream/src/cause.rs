//! Causes of failed requests in words, without credentials: kube-client's errors quote the output of exec plugins.

use std::error::Error;

use fake_apiserver::upstream::{Failure, innermost};
use kube_client::client::AuthError;

/// Returns why there is no response.
pub(crate) fn failure(error: &(dyn Error + 'static)) -> Failure {
    match of_credentials(error) {
        Some(why) => Failure::NoCredentials(why),
        None => Failure::Unreachable(innermost(error)),
    }
}

/// Returns why there are no credentials, if that is the cause.
pub(crate) fn of_credentials(error: &(dyn Error + 'static)) -> Option<String> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<AuthError>() {
            return Some(words(error));
        }
        next = error.source();
    }
    None
}

fn words(error: &AuthError) -> String {
    match error {
        AuthError::AuthExecStart(error) => format!("its exec plugin does not start: {error}"),
        // The output may have a token.
        AuthError::AuthExecRun { out, .. } => format!("its exec plugin failed with {}", out.status),
        AuthError::ReadTokenFile(error, path) => format!("its token file {}: {error}", path.display()),
        AuthError::MissingCommand => "its exec plugin has no command".to_owned(),
        AuthError::InvalidBearerToken(_) | AuthError::InvalidBasicAuth(_) => {
            "the token or password is not a valid header value".to_owned()
        }
        AuthError::UnrefreshableTokenResponse
        | AuthError::ExecPluginFailed
        | AuthError::MalformedTokenExpirationDate(_)
        | AuthError::AuthExecParse(_)
        | AuthError::AuthExecSerialize(_)
        | AuthError::AuthExec(_)
        | AuthError::ParseTokenKey(_)
        | AuthError::ExecMissingClusterInfo
        | AuthError::NoValidNativeRootCA(_) => {
            "its exec plugin or auth provider returned nothing that can be used".to_owned()
        }
    }
}
