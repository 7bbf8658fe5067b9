//! Fuzzed: continue tokens. The body is `fuzz::tokens`.
#![cfg_attr(fuzzing, no_main)]

fuzz::target!(fuzz::tokens::body, fuzz::tokens::SEEDS);
