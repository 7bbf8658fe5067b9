//! Vocabulary of the Kubernetes API, on the side of the server: versions, resources, request options, selectors, statuses,
//! and the bytes of objects.
//!
//! It must not know storage, HTTP or scripts, nor any kind by its name.

pub mod continue_token;
pub mod depth;
pub mod encode;
pub mod go_text;
pub mod kind;
pub mod names;
pub mod object;
mod object_ref;
pub mod options;
pub mod path;
pub mod representation;
pub mod selector;
pub mod status;
mod texts;
pub mod time;
mod version;
pub mod write;

pub use object_ref::ObjectRef;
pub use version::Version;

/// Largest request body (apiserver `MaxRequestBodyBytes`, 3 MiB).
pub const BODY_BYTES_MAX: usize = 3 * 1024 * 1024;
