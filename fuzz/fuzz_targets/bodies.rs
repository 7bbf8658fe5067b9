//! Fuzzed: what a client writes. The body is `fuzz::bodies`.
#![cfg_attr(fuzzing, no_main)]

fuzz::target!(fuzz::bodies::body, fuzz::bodies::SEEDS);
