//! An in-memory Kubernetes apiserver that **answers like kube-apiserver unless a script or rule deviates**.
//!
//! Where to start reading: [`scenario`] is a parsed file, [`model`] computes the responses of kube-apiserver, `apiserver`
//! answers requests with them without I/O, [`script`] decides the deviations, [`server`] joins these behind one method for
//! input and one for output, and `net` (feature `net`, on by default) serves it over sockets. With an
//! [`upstream`], a real apiserver replaces the model.
//!
//! This crate must not know any client. What a client under test reports comes in as a
//! [`report::Report`]; everything both sides did goes out as [`record::Record`]s, in one order.

pub mod api;
mod apiserver;
pub mod manifests;
pub mod model;
#[cfg(feature = "net")]
pub mod net;
pub mod script;
pub mod server;
pub mod upstream;

pub use ::scenario;
pub use trace::{content, fault, record, report};
