//! Integration tests of the fake apiserver and its clients: every scenario in `sim`, parity with `live`, determinism,
//! and mutant clients which prove that each check can fail.
//!
//! The library contains the [`mod@reference`] client (small, slow, correct, with optional mistakes), the known
//! [`defects`] of kube-runtime, and helpers shared by tests.

pub mod attacks;
pub mod crowd;
pub mod defects;
pub mod exchange;
pub mod kubeconfig;
pub mod oracle;
pub mod parallel;
pub mod programs;
pub mod reference;
pub mod repository;
pub mod story;
