//! Fuzz target: path, query and headers of a request. See `fuzz::requests`.
#![cfg_attr(fuzzing, no_main)]

fuzz::target!(fuzz::requests::body, fuzz::requests::SEEDS);
