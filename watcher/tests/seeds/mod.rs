//! Random programs by seed: printed before they run, and shrunk if one fails.

use std::fmt::Debug;

/// Runs the programs of `cases` seeds.
///
/// # Panics
/// A program fails: with its seed, the reason, and the smallest program that `shrunk` leaves of it.
#[expect(clippy::print_stdout, reason = "seeds are printed before anything runs")]
pub(crate) fn try_all<P: Debug>(
    first: u64,
    cases: u64,
    program: impl Fn(u64) -> P,
    run: impl Fn(&P) -> Result<(), String>,
    shrunk: impl Fn(P) -> P,
) {
    println!("seeds {first} to {}", first + cases - 1);
    for seed in first..first + cases {
        let program = program(seed);
        if run(&program).is_err() {
            let program = shrunk(program);
            let why = run(&program).err();
            panic!("seed {seed}: {}\n{program:#?}", why.unwrap_or_default());
        }
    }
}
