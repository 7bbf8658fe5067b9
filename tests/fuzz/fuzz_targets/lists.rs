//! Fuzz target: LIST bodies read by the watcher. See `fuzz::lists`.
#![cfg_attr(fuzzing, no_main)]

fuzz::target!(fuzz::lists::body, fuzz::lists::SEEDS);
