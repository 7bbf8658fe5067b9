//! Fuzzed: what a server sends to a watcher. The body is `fuzz::lists`.
#![cfg_attr(fuzzing, no_main)]

fuzz::target!(fuzz::lists::body, fuzz::lists::SEEDS);
