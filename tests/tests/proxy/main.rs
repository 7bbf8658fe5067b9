//! `fake-apiserver proxy` before `fake-apiserver serve`: right clients, each fault, attacks on its promises, and mistakes of its
//! user.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod attacks;
mod clients;
mod in_cluster;
mod mistakes;
mod recordings;
mod running;
mod story;
mod writes;
