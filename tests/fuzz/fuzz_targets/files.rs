//! Fuzz target: scenarios and manifests. See `fuzz::files`.
#![cfg_attr(fuzzing, no_main)]

fuzz::target!(fuzz::files::body, fuzz::files::SEEDS);
