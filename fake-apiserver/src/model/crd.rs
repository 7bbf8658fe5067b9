//! Custom resources: what a `CustomResourceDefinition` says, and the rows of the catalog that come of it.
//!
//! It must not know who asks: requests for custom resources are answered like all others, by the columns of their row.

use serde_json::Value;

/// What a definition says of one version of a custom resource, beside the columns every kind has.
#[derive(Debug)]
pub struct Definition {
    /// The columns of its tables, after the name.
    pub columns: Vec<PrinterColumn>,
    /// `openAPIV3Schema`, as it was sent; null where there is none.
    pub schema: Value,
}

/// One of `additionalPrinterColumns`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrinterColumn {
    /// `name`.
    pub name: String,
    /// `type`.
    pub kind: String,
    /// `format`; empty: none.
    pub format: String,
    /// `description`; empty: none.
    pub description: String,
    /// `priority`.
    pub priority: i32,
    /// `jsonPath`.
    pub json_path: String,
}
