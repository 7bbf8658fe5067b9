//! The file of known failures that `run` and `conformance` take.

use std::path::Path;

use conformance::baseline::Baseline;

use crate::Failure;

/// Reads the file; without one nothing is known.
///
/// # Errors
///
/// There is no such file, or it has mistakes.
pub(crate) fn read(path: Option<&Path>) -> Result<Baseline, Failure> {
    match path {
        Some(path) if !path.is_file() => Err(Failure::Usage(format!("{} is not a file", path.display()))),
        Some(path) => Baseline::read(path).map_err(|error| Failure::Usage(error.to_string())),
        None => Ok(Baseline::default()),
    }
}
