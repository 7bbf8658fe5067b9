//! What can go wrong, told apart by who can mend it.

use std::fmt;
use std::path::Path;

/// What stopped a probe from being played.
#[derive(Debug)]
pub enum Error {
    /// A probe asks for something impossible: its author mends it.
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

    /// The fault of the server.
    pub fn server(why: impl Into<String>) -> Self {
        Error::Server(why.into())
    }

    /// The fault of the caller.
    pub fn caller(why: impl Into<String>) -> Self {
        Error::Caller(why.into())
    }

    /// A file that could not be read or written.
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
