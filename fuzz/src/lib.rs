//! What is fuzzed, once for libFuzzer (`cargo +nightly fuzz run requests`) and once for any compiler: without libFuzzer
//! a target is a program that tries so many variations of its seeds (`cargo xtask fuzz requests`).
//!
//! A body takes any bytes and must return. Nothing here says what the answer is to be, but where two readers read the same
//! bytes, that they agree.

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

/// The program of a target.
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
