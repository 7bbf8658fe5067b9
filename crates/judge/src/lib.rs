//! Computes verdicts from scenario and trace: expectations of the scenario ([`check`]), invariants ([`invariants`]),
//! and what the wire alone proves about clients without reports ([`wire`]).
//!
//! Pure: the same trace always gives the same verdict. Independent of sockets, clocks and clients.

pub mod cache;
pub mod check;
mod decision;
pub mod effect;
pub mod history;
pub mod invariants;
pub mod trace;
pub mod transcript;
pub mod verdict;
pub mod wire;
pub mod words;

pub use decision::{judge, judge_wire};
