//! Scenario and trace in, verdict out: what a scenario expects ([`check`]), what always holds ([`invariants`]), and what the
//! wire alone proves of clients that report nothing ([`wire`]).
//!
//! Pure: the same trace gives the same verdict tomorrow. It must not know sockets, clocks, or any client.

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
