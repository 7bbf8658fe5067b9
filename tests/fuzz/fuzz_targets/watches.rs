//! Fuzz target: WATCH streams read by the watcher. See `fuzz::watches`.
#![cfg_attr(fuzzing, no_main)]

fuzz::target!(fuzz::watches::body, fuzz::watches::SEEDS);
