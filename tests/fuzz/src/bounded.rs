//! A bounded run on any compiler: the seeds and deterministic mutations of them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

/// Default number of mutations.
const TRIES: u64 = 20_000;

/// Largest number of changes per mutation.
const CHANGES_MAX: u64 = 6;

/// Largest input: what is found in a megabyte is found in a kilobyte.
const LENGTH_MAX: usize = 4096;

/// Fragments likely to break a parser.
const PIECES: &[&[u8]] = &[
    b"%", b"%00", b"%2F", b"%ff", b"%zz", b"/", b"//", b"..", b"?", b"&", b"=", b"==", b"!=", b"!", b",", b"(", b")",
    b" in ", b" notin ", b"watch=1", b"limit=-1", b"limit=9223372036854775808", b"resourceVersion=0", b"continue=",
    b"\\", b"\"", b"{", b"}", b"[", b"]", b":", b"null", b"true", b"-0", b"1e999", b"18446744073709551616", b"\0",
    b"\n", b"\r\n", b"\t", b"\xff", b"\xc3", "\u{2028}".as_bytes(), "ü".as_bytes(), b"k8s\0", b"\x08", b"~1", b"~0",
    b"\"metadata\":", b"\"$patch\":\"delete\"", b"&a *a", b"---\n",
];

/// Runs the seeds and mutations of them. Exit code 1: a panic, and its input is printed; 2: a wrong command line.
pub fn run(name: &str, body: fn(&[u8]), seeds: &[&[u8]]) -> ExitCode {
    let tries = match std::env::args().nth(1).map(|text| text.parse()) {
        None => TRIES,
        Some(Ok(tries)) => tries,
        Some(Err(error)) => {
            eprintln!("{name}: the number of mutations: {error}");
            return ExitCode::from(2);
        }
    };
    let mut chance = Xorshift(0x9E37_79B9_7F4A_7C15);
    for number in 0..seeds.len() as u64 + tries {
        let input = match seeds.get(number as usize) {
            Some(seed) => seed.to_vec(),
            None => chance.variation(seeds),
        };
        // A body that panicked is not run again.
        if catch_unwind(AssertUnwindSafe(|| body(&input))).is_err() {
            eprintln!("{name}: input {number} panics: \"{}\"", input.escape_ascii());
            return ExitCode::FAILURE;
        }
    }
    println!("{name}: {} seeds and {tries} mutations, no panic", seeds.len());
    ExitCode::SUCCESS
}

/// xorshift64*: the same sequence in every run.
struct Xorshift(u64);

impl Xorshift {
    fn below(&mut self, bound: u64) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % bound.max(1)) as usize
    }

    fn variation(&mut self, seeds: &[&[u8]]) -> Vec<u8> {
        let mut input = seeds[self.below(seeds.len() as u64)].to_vec();
        for _ in 0..=self.below(CHANGES_MAX) {
            let at = self.below(input.len() as u64 + 1);
            match self.below(7) {
                0 => {
                    let piece = PIECES[self.below(PIECES.len() as u64)];
                    input.splice(at..at, piece.iter().copied());
                }
                1 => input.truncate(at),
                2 => {
                    let end = (at + self.below(8)).min(input.len());
                    input.drain(at..end);
                }
                3 => {
                    let other = seeds[self.below(seeds.len() as u64)];
                    let from = self.below(other.len() as u64 + 1);
                    input.splice(at..at, other[from..].iter().copied());
                }
                4 => {
                    let end = (at + self.below(64)).min(input.len());
                    let again = input[at..end].to_vec();
                    input.splice(at..at, again);
                }
                5 => input.insert(at, self.below(256) as u8),
                _ => {
                    if let Some(byte) = input.get_mut(at) {
                        *byte ^= 1 << self.below(8);
                    }
                }
            }
        }
        input.truncate(LENGTH_MAX);
        input
    }
}
