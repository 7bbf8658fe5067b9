//! Fuzz targets for libFuzzer (`cargo +nightly fuzz run requests`) and for any compiler: without libFuzzer a target is
//! a program that runs a number of mutations of its seeds (`cargo xtask fuzz requests`).
//!
//! A body takes any bytes and must return. It asserts no results, except that two parsers of the same bytes agree.

pub mod bodies;
pub mod bounded;
mod chunks;
pub mod files;
pub mod lists;
pub mod requests;
pub mod selectors;
mod served;
pub mod tokens;
pub mod watches;

/// Defines the program of a target.
#[macro_export]
macro_rules! target {
    ($body:path, $seeds:path) => {
        #[cfg(fuzzing)]
        libfuzzer_sys::fuzz_target!(|bytes: &[u8]| $body(bytes));

        #[cfg(not(fuzzing))]
        fn main() -> std::process::ExitCode {
            $crate::bounded::run(env!("CARGO_BIN_NAME"), $body, $seeds)
        }
    };
}
