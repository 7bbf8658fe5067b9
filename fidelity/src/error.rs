//! Errors by who can fix them.

use std::fmt;
use std::path::Path;

/// Reason why a probe was not played.
#[derive(Debug)]
pub enum Error {
    /// The probe is invalid: its author fixes it.
    Author(String),
    /// The server could not be reached or broke HTTP.
    Server(String),
    /// A file or argument of the caller.
    Caller(String),
}

impl Error {
    pub(crate) fn author(why: impl Into<String>) -> Self {
        Error::Author(why.into())
    }

    /// Returns an error of the server.
    pub fn server(why: impl Into<String>) -> Self {
        Error::Server(why.into())
    }

    /// Returns an error of the caller.
    pub fn caller(why: impl Into<String>) -> Self {
        Error::Caller(why.into())
    }

    /// Returns the error for a file that cannot be read or written.
    pub fn file(path: &Path, source: &std::io::Error) -> Self {
        Error::Caller(format!("{}: {source}", path.display()))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Author(why) => write!(f, "the probe is at fault: {why}"),
            Error::Server(why) => write!(f, "the server is at fault: {why}"),
            Error::Caller(why) => write!(f, "the call is at fault: {why}"),
        }
    }
}

impl std::error::Error for Error {}
