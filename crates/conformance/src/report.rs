//! Reports: pure functions of scenario, trace and verdict. Nothing here decides anything.

pub mod json;
pub mod markdown;
pub mod requirements;
pub mod terminal;

pub use judge::transcript;
