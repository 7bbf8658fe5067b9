//! Fuzzed: what a server sends to a watcher. The body is `fuzz::watches`.
#![cfg_attr(fuzzing, no_main)]

fuzz::target!(fuzz::watches::body, fuzz::watches::SEEDS);
