//! Fuzz target: label and field selectors. See `fuzz::selectors`.
#![cfg_attr(fuzzing, no_main)]

fuzz::target!(fuzz::selectors::body, fuzz::selectors::SEEDS);
