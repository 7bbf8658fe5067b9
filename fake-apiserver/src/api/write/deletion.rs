//! Parsing of `DeleteOptions`, from the body, or from the query if there is no body.

use apimachinery::go_text;
use apimachinery::status::{Cause, Status};
use serde_json::Value;

use super::options::{Options, dry_run_faults};
use super::{ShownOptions, bounded};
use crate::api::{HttpRequest, body};

/// Fields of `DeleteOptions` that admission shows, in their order.
const SHOWN: [&str; 4] = [
    "gracePeriodSeconds",
    "preconditions",
    "orphanDependents",
    "propagationPolicy",
];

/// `DeleteOptions`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// `gracePeriodSeconds`.
    pub grace_period_seconds: Option<i64>,
    /// `preconditions.uid`.
    pub uid: Option<String>,
    /// `preconditions.resourceVersion`.
    pub resource_version: Option<String>,
    /// `propagationPolicy`, or its equivalent by `orphanDependents`.
    pub propagation: Option<Propagation>,
    /// `orphanDependents: false`: a deletion that does not complete is accepted (202).
    pub accepted_only: bool,
}

/// `propagationPolicy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Propagation {
    /// Dependents are deleted first.
    Foreground,
    /// Dependents are deleted later.
    Background,
    /// Dependents are kept.
    Orphan,
}

impl DeleteOptions {
    /// Decodes the options of a valid body.
    pub(super) fn of(body: &Value) -> Self {
        let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let orphan = body["orphanDependents"].as_bool();
        Self {
            grace_period_seconds: body["gracePeriodSeconds"].as_i64(),
            uid: text("/preconditions/uid"),
            resource_version: text("/preconditions/resourceVersion"),
            propagation: match (body["propagationPolicy"].as_str(), orphan) {
                (Some("Foreground"), _) => Some(Propagation::Foreground),
                (Some("Background"), _) | (None, Some(false)) => Some(Propagation::Background),
                (Some("Orphan"), _) | (None, Some(true)) => Some(Propagation::Orphan),
                (Some(_), _) | (None, None) => None,
            },
            accepted_only: orphan == Some(false),
        }
    }
}

/// Checks that the options are known and do not contradict each other.
///
/// # Errors
///
/// 422.
pub(crate) fn check(body: &Value) -> Result<(), Status> {
    let mut faults = dry_run_faults(&body_dry_run(body));
    let fault = |reason: &str, message: String| Cause {
        reason: reason.to_owned(),
        message,
        field: "propagationPolicy".to_owned(),
    };
    match (
        body["propagationPolicy"].as_str(),
        body["orphanDependents"].as_bool(),
    ) {
        (Some(policy), Some(_)) => {
            let message = format!(
                "Invalid value: {}: orphanDependents and deletionPropagation cannot be both set",
                go_text::quote(policy)
            );
            faults.push(fault("FieldValueInvalid", message));
        }
        (Some("Foreground" | "Background" | "Orphan") | None, _) => {}
        (Some(other), None) => {
            let message = format!(
                "Unsupported value: {}: supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"",
                go_text::quote(other)
            );
            faults.push(fault("FieldValueNotSupported", message));
        }
    }
    match faults.is_empty() {
        true => Ok(()),
        false => Err(Status::invalid_options("DeleteOptions", &faults)),
    }
}

/// Returns the options, whether it is a dry run, and the options as admission shows them.
///
/// # Errors
///
/// 400, 413, 415, and 422 for unknown options or options that contradict each other.
pub(super) fn read(
    request: &HttpRequest,
    options: &Options,
) -> Result<(DeleteOptions, bool, ShownOptions), Status> {
    bounded(request)?;
    let body = if request.body.is_empty() {
        options.as_delete_options()?
    } else {
        body::delete_options(request)?
    };
    check(&body)?;
    let how = DeleteOptions::of(&body);
    let shown = SHOWN
        .iter()
        .filter_map(|name| Some((*name, body.get(*name)?.clone())))
        .filter(|(_, value)| !value.is_null());
    Ok((how, !body_dry_run(&body).is_empty(), shown.collect()))
}

pub(super) fn body_dry_run(body: &Value) -> Vec<String> {
    let values = body["dryRun"].as_array().into_iter().flatten();
    values
        .map(|value| value.as_str().unwrap_or_default().to_owned())
        .collect()
}
