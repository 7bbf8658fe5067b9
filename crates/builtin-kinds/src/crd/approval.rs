//! Approval of definitions in the groups of the Kubernetes project, by an annotation.
//!
//! Source: apiextensions `apihelpers/helpers.go` and `controller/apiapproval`.

use apimachinery::go_text;
use serde_json::{Value, json};

use super::names::set;
use crate::error_list::ErrorList;
use crate::expression::is_absolute_url;

const ANNOTATION: &str = "api-approved.kubernetes.io";
const SEE: &str = "see https://github.com/kubernetes/enhancements/pull/1111";

/// State of the annotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Approval {
    Missing,
    Bypassed,
    Invalid,
    Approved,
}

/// Checks the annotation of a definition; `old`: the definition before an update, whose state may stay as it is.
pub(super) fn check(found: &mut ErrorList, definition: &Value, old: Option<&Value>) {
    let state = state(definition);
    if !is_protected(definition) || old.is_some_and(|old| self::state(old) == state) {
        return;
    }
    let field = format!("metadata.annotations[{ANNOTATION}]");
    let why = reason(definition, state);
    match state {
        Approval::Missing => found.required(&field, &why),
        Approval::Invalid => found.invalid(&field, &annotation(definition).into(), &why),
        Approval::Bypassed | Approval::Approved => {}
    }
}

/// Sets the condition `KubernetesAPIApprovalPolicyConformant` of a definition in a protected group.
pub fn judge(definition: &mut Value, now: &str) {
    if !is_protected(definition) {
        return;
    }
    let state = state(definition);
    let (status, reason_of_state) = match state {
        Approval::Missing => ("False", "MissingAnnotation"),
        Approval::Bypassed => ("False", "UnapprovedAnnotation"),
        Approval::Invalid => ("False", "InvalidAnnotation"),
        Approval::Approved => ("True", "ApprovedAnnotation"),
    };
    let condition = json!({
        "type": "KubernetesAPIApprovalPolicyConformant",
        "status": status,
        "reason": reason_of_state,
        "message": reason(definition, state),
    });
    set(definition, condition, now);
}

fn is_protected(definition: &Value) -> bool {
    let group = definition["spec"]["group"].as_str().unwrap_or_default();
    ["k8s.io", "kubernetes.io"].iter().any(|domain| {
        let rest = group.strip_suffix(domain);
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    })
}

fn annotation(definition: &Value) -> &str {
    let value = &definition["metadata"]["annotations"][ANNOTATION];
    value.as_str().unwrap_or_default()
}

fn state(definition: &Value) -> Approval {
    match annotation(definition) {
        "" => Approval::Missing,
        text if text.starts_with("unapproved") => Approval::Bypassed,
        text if is_absolute_url(text) => Approval::Approved,
        _ => Approval::Invalid,
    }
}

fn reason(definition: &Value, state: Approval) -> String {
    let needed = format!("protected groups must have approval annotation \"{ANNOTATION}\"");
    let text = annotation(definition);
    match state {
        Approval::Missing => format!("{needed}, {SEE}"),
        Approval::Bypassed => format!("not approved: {}", go_text::quote(text)),
        Approval::Invalid => {
            format!("{needed} with either a URL or a reason starting with \"unapproved\", {SEE}")
        }
        Approval::Approved => format!("approved in {text}"),
    }
}
