//! Fuzzed: scenarios and manifests. The body is `fuzz::files`.
#![cfg_attr(fuzzing, no_main)]

fuzz::target!(fuzz::files::body, fuzz::files::SEEDS);
