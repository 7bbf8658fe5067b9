//! Fuzzed: a path, a query and headers, asked of a server. The body is `fuzz::requests`.
#![cfg_attr(fuzzing, no_main)]

fuzz::target!(fuzz::requests::body, fuzz::requests::SEEDS);
