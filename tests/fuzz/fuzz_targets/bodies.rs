//! Fuzz target: request bodies. See `fuzz::bodies`.
#![cfg_attr(fuzzing, no_main)]

fuzz::target!(fuzz::bodies::body, fuzz::bodies::SEEDS);
