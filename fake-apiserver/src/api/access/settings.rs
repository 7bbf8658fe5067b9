//! Authentication settings that are flags of kube-apiserver. It must not read files.
//!
//! Source: "Authenticating" (static token file, anonymous requests).

use subtle::Choice;

use super::{AUTHENTICATED, User, same};

/// Authentication of a server with [`Access`](super::Access), beside its tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessSettings {
    /// Bearer tokens and their users (`--token-auth-file`), without [`AUTHENTICATED`].
    pub tokens: Vec<(String, User)>,
    /// Accept requests without credentials, as `system:anonymous` (`--anonymous-auth`).
    pub anonymous: bool,
}

impl Default for AccessSettings {
    /// No token file, anonymous requests.
    fn default() -> Self {
        Self {
            tokens: Vec::new(),
            anonymous: true,
        }
    }
}

impl AccessSettings {
    /// Returns the user of a token. Every token is compared, so that the time taken does not depend on which one matches.
    pub(crate) fn user_of(&self, sent: &str) -> Option<User> {
        let mut found = None;
        for (token, user) in &self.tokens {
            let equal: Choice = same(sent, token);
            if equal.into() {
                found = found.or(Some(user));
            }
        }
        let mut user = found?.clone();
        if !user.is_in(AUTHENTICATED) {
            user.groups.push(AUTHENTICATED.to_owned());
        }
        Some(user)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_of_the_file_has_its_user_and_is_authenticated() {
        let user = User {
            name: "jane".to_owned(),
            groups: vec!["dev".to_owned()],
            ..User::default()
        };
        let settings = AccessSettings {
            tokens: vec![("secret".to_owned(), user), (String::new(), User::default())],
            ..AccessSettings::default()
        };
        let jane = settings.user_of("secret").unwrap();
        assert_eq!(jane.groups, ["dev", AUTHENTICATED]);
        assert_eq!(settings.user_of("secre"), None);
        assert_eq!(settings.user_of(""), None, "an empty token is nobody's");
    }
}
