//! Randomness of the system: the only place of the command that reads it.

use std::io;

use crate::Failure;

/// Returns random bytes of the system.
///
/// # Errors
///
/// A system error.
pub(crate) fn bytes<const LENGTH: usize>() -> Result<[u8; LENGTH], Failure> {
    let mut bytes = [0; LENGTH];
    getrandom::fill(&mut bytes)
        .map_err(|error| Failure::System("cannot read random bytes".to_owned(), io::Error::other(error)))?;
    Ok(bytes)
}

/// Returns 32 random hexadecimal digits: a token, a file name.
///
/// # Errors
///
/// A system error.
pub(crate) fn word() -> Result<String, Failure> {
    let bytes: [u8; 16] = self::bytes()?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
