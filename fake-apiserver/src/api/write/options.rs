//! Query parameters of writes.

use apimachinery::go_text;
use apimachinery::status::{Cause, Status};
use apimachinery::write::FieldValidation;
use serde_json::{Value, json};

use crate::api::HttpRequest;
use crate::api::options::truthy;

/// Maximum bytes of a field manager (apimachinery `FieldManagerMaxLength`).
pub(super) const MANAGER_BYTES_MAX: usize = 128;

/// Query parameters of a write.
pub(super) struct Options<'r> {
    pub(super) query: &'r [(String, String)],
}

impl<'r> Options<'r> {
    pub(super) fn read(request: &'r HttpRequest) -> Self {
        Self {
            query: request.query.pairs(),
        }
    }

    pub(super) fn first(&self, name: &str) -> Option<&str> {
        self.query
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    fn all(&self, name: &str) -> Vec<String> {
        let of_name = self.query.iter().filter(|(key, _)| key == name);
        of_name.map(|(_, value)| value.clone()).collect()
    }

    pub(super) fn dry_run(&self) -> bool {
        !self.all("dryRun").is_empty()
    }

    pub(super) fn validation(&self) -> Option<FieldValidation> {
        match self.first("fieldValidation").unwrap_or_default() {
            "" | "Warn" => Some(FieldValidation::Warn),
            "Ignore" => Some(FieldValidation::Ignore),
            "Strict" => Some(FieldValidation::Strict),
            _ => None,
        }
    }

    pub(super) fn faults(&self) -> Vec<Cause> {
        let mut faults = manager_faults(self.first("fieldManager").unwrap_or_default());
        faults.extend(dry_run_faults(&self.all("dryRun")));
        if self.validation().is_none() {
            faults.push(Cause {
                reason: "FieldValueNotSupported".to_owned(),
                message: format!(
                    "Unsupported value: {}: supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"",
                    go_text::quote(self.first("fieldValidation").unwrap_or_default())
                ),
                field: "fieldValidation".to_owned(),
            });
        }
        faults
    }

    pub(super) fn check(&self, kind: &str) -> Result<FieldValidation, Status> {
        let faults = self.faults();
        match self.validation() {
            Some(validation) if faults.is_empty() => Ok(validation),
            Some(_) | None => Err(Status::invalid_options(kind, &faults)),
        }
    }

    /// Returns the options of a deletion in the form of their body.
    pub(super) fn as_delete_options(&self) -> Result<Value, Status> {
        let mut body = json!({ "dryRun": self.all("dryRun") });
        for name in ["propagationPolicy", "orphanDependents", "gracePeriodSeconds"] {
            let Some(value) = self.first(name) else { continue };
            body[name] = match name {
                "propagationPolicy" => value.into(),
                "orphanDependents" => truthy(value).into(),
                _ => go_text::parse_int(value).map_err(Status::bad_request)?.into(),
            };
        }
        for name in ["uid", "resourceVersion"] {
            if let Some(value) = self.first(name) {
                body["preconditions"][name] = value.into();
            }
        }
        Ok(body)
    }
}

/// Validates `fieldManager`: its length, and that all characters are printable.
fn manager_faults(manager: &str) -> Vec<Cause> {
    let fault = |reason: &str, message: String| Cause {
        reason: reason.to_owned(),
        message,
        field: "fieldManager".to_owned(),
    };
    let too_long = (manager.len() > MANAGER_BYTES_MAX).then(|| {
        let message = format!("Too long: may not be more than {MANAGER_BYTES_MAX} bytes");
        fault("FieldValueTooLong", message)
    });
    let unprintable = manager
        .char_indices()
        .filter(|(_, character)| !go_text::is_printable(*character));
    let unprintable = unprintable.map(|(at, character)| {
        let message = format!(
            "Invalid value: {}: invalid character U+{:04X} (at position {at})",
            go_text::quote(manager),
            u32::from(character)
        );
        fault("FieldValueInvalid", message)
    });
    too_long.into_iter().chain(unprintable).collect()
}

/// Validates `dryRun`: only `All` is supported.
pub(super) fn dry_run_faults(values: &[String]) -> Vec<Cause> {
    if values.iter().all(|value| value == "All") {
        return Vec::new();
    }
    let quoted: Vec<String> = values.iter().map(|value| go_text::quote(value)).collect();
    let shown = quoted.join(",");
    vec![Cause {
        reason: "FieldValueNotSupported".to_owned(),
        message: format!("Unsupported value: [{shown}]: supported values: \"All\""),
        field: "dryRun".to_owned(),
    }]
}
