//! Which webhooks the server calls, as users name it.

use clap::ValueEnum;
use fake_apiserver::net::Webhooks;

use crate::Failure;

/// Names it where no flag does.
pub(crate) const VARIABLE: &str = "FAKE_APISERVER_WEBHOOKS";

/// Which webhooks are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Called {
    /// None: their calls fail as if nothing listened there.
    None,
    /// Those at addresses of this machine.
    Local,
    /// All: objects that clients store cause requests to other machines.
    Any,
}

impl From<Called> for Webhooks {
    fn from(called: Called) -> Self {
        match called {
            Called::None => Self::None,
            Called::Local => Self::Local,
            Called::Any => Self::Any,
        }
    }
}

/// Reads the environment; without the variable, those of this machine are called.
///
/// # Errors
/// Its value is none of the names.
pub(crate) fn from_environment() -> Result<Webhooks, Failure> {
    read(std::env::var(VARIABLE).ok().as_deref())
}

fn read(value: Option<&str>) -> Result<Webhooks, Failure> {
    match value {
        None | Some("") => Ok(Webhooks::default()),
        Some(value) => match Called::from_str(value, false) {
            Ok(called) => Ok(called.into()),
            Err(_) => Err(Failure::Usage(format!(
                "{VARIABLE} is {value:?}: it can be none, local or any"
            ))),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_names_it() {
        assert_eq!(read(None).unwrap(), Webhooks::Local);
        assert_eq!(read(Some("any")).unwrap(), Webhooks::Any);
        assert_eq!(read(Some("none")).unwrap(), Webhooks::None);
        assert!(read(Some("all")).is_err());
    }
}
