//! How a deletion is asked for: `DeleteOptions`, from the body, or from the query where there is no body.

use apimachinery::status::{Cause, Status};
use apimachinery::{Version, go_text};
use serde_json::Value;

use super::bounded;
use super::options::{Options, dry_run_faults};
use crate::api::{HttpRequest, body};

/// `DeleteOptions`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// `gracePeriodSeconds`.
    pub grace_period_seconds: Option<i64>,
    /// `preconditions.uid`.
    pub uid: Option<String>,
    /// `preconditions.resourceVersion`.
    pub resource_version: Option<String>,
    /// `propagationPolicy`, or what `orphanDependents` says of it.
    pub propagation: Option<Propagation>,
    /// `orphanDependents: false`: the deletion of what cannot go at once is only accepted (202).
    pub accepted_only: bool,
}

/// `propagationPolicy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Propagation {
    /// Dependents go first.
    Foreground,
    /// Dependents go later.
    Background,
    /// Dependents stay.
    Orphan,
}

impl DeleteOptions {
    /// What the body says beside the propagation.
    pub(super) fn of(body: &Value) -> Self {
        let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        Self {
            grace_period_seconds: body["gracePeriodSeconds"].as_i64(),
            uid: text("/preconditions/uid"),
            resource_version: text("/preconditions/resourceVersion"),
            ..Self::default()
        }
    }
}

/// The options, and whether it is a dry run.
///
/// # Errors
/// 400, 413, 415, and 422 for options that contradict each other or nobody knows.
pub(super) fn read(
    request: &HttpRequest,
    options: &Options,
    version: Version,
) -> Result<(DeleteOptions, bool), Status> {
    bounded(request)?;
    let body = if request.body.is_empty() {
        options.as_delete_options()?
    } else {
        body::delete_options(request)?
    };
    let mut faults = dry_run_faults(&body_dry_run(&body), version);
    let orphan = body["orphanDependents"].as_bool();
    let policy = body["propagationPolicy"].as_str();
    let propagation = match (policy, orphan) {
        (Some(policy), Some(_)) => {
            faults.push(Cause {
                reason: "FieldValueInvalid".to_owned(),
                message: format!(
                    "Invalid value: {}: orphanDependents and deletionPropagation cannot be both set",
                    go_text::quote(policy)
                ),
                field: "propagationPolicy".to_owned(),
            });
            None
        }
        (Some("Foreground"), None) => Some(Propagation::Foreground),
        (Some("Background"), None) => Some(Propagation::Background),
        (Some("Orphan"), None) | (None, Some(true)) => Some(Propagation::Orphan),
        (Some(other), None) => {
            faults.push(Cause {
                reason: "FieldValueNotSupported".to_owned(),
                message: format!(
                    "Unsupported value: {}: supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"",
                    go_text::quote(other)
                ),
                field: "propagationPolicy".to_owned(),
            });
            None
        }
        (None, Some(false)) => Some(Propagation::Background),
        (None, None) => None,
    };
    if !faults.is_empty() {
        return Err(Status::invalid_options("DeleteOptions", &faults));
    }
    let how = DeleteOptions {
        propagation,
        accepted_only: orphan == Some(false),
        ..DeleteOptions::of(&body)
    };
    Ok((how, !body_dry_run(&body).is_empty()))
}

pub(super) fn body_dry_run(body: &Value) -> Vec<String> {
    let values = body["dryRun"].as_array().into_iter().flatten();
    values
        .map(|value| value.as_str().unwrap_or_default().to_owned())
        .collect()
}
