//! Nothing: the package only pins the crates whose tests are the suite `kube-rs`.
