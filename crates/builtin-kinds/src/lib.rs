//! The built-in kinds of Kubernetes: catalog, types, defaults, validation, printer columns and conversion; definitions of
//! custom resources; patches and server-side apply.
//!
//! Pure functions over JSON and over tables in `data/`. It must not know storage, LIST or WATCH, or HTTP.

pub mod admission_policy;
pub mod admission_webhook;
pub mod advice;
pub mod age;
pub mod catalog;
pub mod columns;
pub mod convert;
pub mod crd;
pub mod defaults;
pub mod error_list;
pub mod expression;
pub mod field_validation;
pub mod fields;
pub mod json_path;
pub mod naming;
pub mod ownership;
pub mod patch;
pub mod published;
pub mod quality;
pub mod rbac;
pub mod scale;
pub mod schema;
pub mod size;
pub mod types;
pub mod unevaluated;
pub mod validation;
pub mod webhook;
