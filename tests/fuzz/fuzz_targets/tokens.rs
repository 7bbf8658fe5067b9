//! Fuzz target: continue tokens. See `fuzz::tokens`.
#![cfg_attr(fuzzing, no_main)]

fuzz::target!(fuzz::tokens::body, fuzz::tokens::SEEDS);
