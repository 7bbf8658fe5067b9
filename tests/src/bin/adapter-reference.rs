//! The reference client as an adapter process, correct or with the mistake named by its argument.
//!
//! Proves that the judge of adapters can fail: `tests/tests/mutants_as_adapters.rs`.

use std::process::ExitCode;

use conformance::adapter::serve::{OF_A_STREAM, Recovers, serve};
use tests::reference::{Mistake, Reference};

fn main() -> ExitCode {
    let mistake = match std::env::args().nth(1) {
        None => None,
        Some(name) => match Mistake::named(&name) {
            Some(mistake) => Some(mistake),
            None => {
                eprintln!("adapter-reference: there is no mistake {name}");
                return ExitCode::from(2);
            }
        },
    };
    serve(&Reference { mistake }, &OF_A_STREAM, Recovers::Library)
}
