//! `fake-apiserver snapshot` of a `serve`, and `serve --from` of it: what stays, what is left out, attacks on its promises, and
//! mistakes of its user.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod attacks;
mod cluster;
mod loading;
mod pages;
mod real;
mod round_trip;
#[path = "../proxy/running.rs"]
#[expect(dead_code, reason = "the tests of the proxy use all of it")]
mod running;
mod taking;
