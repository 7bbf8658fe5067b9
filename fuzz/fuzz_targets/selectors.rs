//! Fuzzed: label and field selectors. The body is `fuzz::selectors`.
#![cfg_attr(fuzzing, no_main)]

fuzz::target!(fuzz::selectors::body, fuzz::selectors::SEEDS);
