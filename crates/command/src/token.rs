//! Bearer tokens of the served API: from a file, the environment or the command line, which all users of the machine can read
//! in the process list.

use std::path::{Path, PathBuf};

use clap::Args;
use fake_apiserver::api::Access;

use crate::{Failure, random};

/// Maximum size of a token file.
const BYTES_MAX: usize = 64 << 10;

/// Bearer tokens.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Access")]
pub(crate) struct Tokens {
    /// Bearer token that clients must send; the kubeconfig contains it.
    ///
    /// Visible in the process list: prefer --token-file or the environment. The token's user is a member of
    /// `system:masters`. Without a token there is no authentication.
    #[arg(
        long,
        value_name = "TOKEN",
        env = "FAKE_APISERVER_TOKEN",
        hide_env_values = true
    )]
    token: Option<String>,
    /// File with the bearer token; overrides --token.
    #[arg(long, value_name = "PATH")]
    token_file: Option<PathBuf>,
    /// Bearer token of the unprivileged user `limited`; requires --token.
    ///
    /// This user may read discovery and query its own permissions, and what roles and bindings grant to it.
    #[arg(
        long,
        value_name = "TOKEN",
        env = "FAKE_APISERVER_LIMITED_TOKEN",
        hide_env_values = true
    )]
    limited_token: Option<String>,
    /// File with the token of the user `limited`; overrides --limited-token.
    #[arg(long, value_name = "PATH")]
    limited_token_file: Option<PathBuf>,
}

impl Tokens {
    /// Returns the accepted tokens; `None`: no authentication.
    ///
    /// # Errors
    ///
    /// A file cannot be read, or a token cannot be sent in a header.
    pub(crate) fn access(self) -> Result<Option<Access>, Failure> {
        let token = chosen("token", self.token, self.token_file.as_deref())?;
        let limited_token = chosen(
            "limited-token",
            self.limited_token,
            self.limited_token_file.as_deref(),
        )?;
        match (token, limited_token) {
            (None, None) => Ok(None),
            (None, Some(_)) => Err(Failure::Usage(
                "--limited-token needs --token or --token-file: without them there is no authentication"
                    .to_owned(),
            )),
            (Some(token), limited_token) => Ok(Some(Access {
                token,
                limited_token,
                signing_secret: random::bytes()?,
            })),
        }
    }
}

fn chosen(flag: &str, given: Option<String>, file: Option<&Path>) -> Result<Option<String>, Failure> {
    let token = match file {
        Some(file) => {
            let text = std::fs::read_to_string(file)
                .map_err(|error| Failure::Usage(format!("--{flag}-file {}: {error}", file.display())))?;
            Some(text.trim_end_matches(['\r', '\n']).to_owned())
        }
        None => given,
    };
    let Some(token) = token else { return Ok(None) };
    let fits = !token.is_empty() && token.len() <= BYTES_MAX && token.bytes().all(|b| b.is_ascii_graphic());
    if fits {
        Ok(Some(token))
    } else {
        // Without the token itself: the message may be logged.
        Err(Failure::Usage(format!(
            "the token of --{flag} must be visible ASCII without spaces, and not empty, because it is sent in a header"
        )))
    }
}
