//! Where the fake apiserver and its clients meet: every scenario in `sim`, parity with `live`, determinism, and mutant
//! clients that prove each check can fail.
//!
//! The library part is the [`mod@reference`] client (small, slow, right, and wrong on request), the known
//! [`defects`] of kube-runtime, and what tests share.

pub mod attacks;
pub mod crowd;
pub mod defects;
pub mod parallel;
pub mod programs;
pub mod reference;
pub mod repository;
pub mod story;
