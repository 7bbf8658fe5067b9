//! Options of LIST and WATCH: parsed, defaulted and validated as in kube-apiserver, without reading the store.
//!
//! Source: apimachinery `meta/internalversion/validation`; "Resource versions" and "Streaming lists" in the API concepts
//! page.

use apimachinery::go_text;
use apimachinery::status::Cause;

/// Options in a query. Of several values the first is used; unknown parameters are ignored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ListOptions {
    pub(super) label_selector: String,
    pub(super) field_selector: String,
    pub(super) watch: bool,
    pub(super) allow_watch_bookmarks: bool,
    pub(super) resource_version: String,
    pub(super) version_match: String,
    pub(super) timeout_seconds: Option<i64>,
    pub(super) limit: i64,
    pub(super) continue_token: String,
    pub(super) send_initial_events: Option<bool>,
}

impl ListOptions {
    /// Parses the options.
    ///
    /// # Errors
    ///
    /// The message of kube-apiserver for an invalid number.
    pub(super) fn read(query: &[(String, String)]) -> Result<Self, String> {
        let first = |name: &str| {
            query
                .iter()
                .find(|(key, _)| key == name)
                .map(|(_, value)| value.as_str())
        };
        let text = |name: &str| first(name).unwrap_or_default().to_owned();
        let number = |name: &str| {
            first(name)
                .filter(|value| !value.is_empty())
                .map(go_text::parse_int)
                .transpose()
        };
        Ok(Self {
            label_selector: text("labelSelector"),
            field_selector: text("fieldSelector"),
            watch: first("watch").is_some_and(truthy),
            allow_watch_bookmarks: first("allowWatchBookmarks").is_some_and(truthy),
            resource_version: text("resourceVersion"),
            version_match: text("resourceVersionMatch"),
            timeout_seconds: number("timeoutSeconds")?,
            limit: number("limit")?.unwrap_or(0),
            continue_token: text("continue"),
            send_initial_events: first("sendInitialEvents").map(truthy),
        })
    }

    /// A watch without a requested state is a streaming list if that is supported.
    pub(super) fn set_defaults(&mut self, watch_list: bool) {
        let unset = matches!(self.resource_version.as_str(), "" | "0")
            && self.version_match.is_empty()
            && self.send_initial_events.is_none();
        if self.watch && unset && watch_list {
            self.send_initial_events = Some(true);
            self.version_match = "NotOlderThan".to_owned();
        }
    }

    /// Returns the errors of options that contradict each other.
    pub(super) fn faults(&self, watch_list: bool) -> Vec<Cause> {
        if self.watch {
            self.watch_faults(watch_list)
        } else {
            self.list_faults()
        }
    }

    fn list_faults(&self) -> Vec<Cause> {
        let mut faults = Vec::new();
        let version_match = self.version_match.as_str();
        if !version_match.is_empty() {
            if self.resource_version.is_empty() {
                faults.push(forbidden(
                    "resourceVersionMatch",
                    "resourceVersionMatch is forbidden unless resourceVersion is provided",
                ));
            }
            if !self.continue_token.is_empty() {
                faults.push(forbidden(
                    "resourceVersionMatch",
                    "resourceVersionMatch is forbidden when continue is provided",
                ));
            }
            if !matches!(version_match, "Exact" | "NotOlderThan") {
                faults.push(not_supported(version_match, "\"Exact\", \"NotOlderThan\", \"\""));
            }
            if version_match == "Exact" && self.resource_version == "0" {
                faults.push(forbidden(
                    "resourceVersionMatch",
                    "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
                ));
            }
        }
        if self.send_initial_events.is_some() {
            faults.push(forbidden(
                "sendInitialEvents",
                "sendInitialEvents is forbidden for list",
            ));
        }
        faults
    }

    fn watch_faults(&self, watch_list: bool) -> Vec<Cause> {
        let mut faults = Vec::new();
        let version_match = self.version_match.as_str();
        if self.send_initial_events.is_some() {
            if version_match != "NotOlderThan" {
                faults.push(forbidden(
                    "resourceVersionMatch",
                    "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
                ));
            }
            if !watch_list {
                faults.push(forbidden(
                    "sendInitialEvents",
                    "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled",
                ));
            }
        }
        if !version_match.is_empty() {
            if self.send_initial_events.is_none() {
                faults.push(forbidden(
                    "resourceVersionMatch",
                    "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
                ));
            }
            if version_match != "NotOlderThan" {
                faults.push(not_supported(version_match, "\"NotOlderThan\""));
            }
            if !self.continue_token.is_empty() {
                faults.push(forbidden(
                    "resourceVersionMatch",
                    "resourceVersionMatch is forbidden when continue is provided",
                ));
            }
        }
        faults
    }
}

/// Returns false for an absent value, `0` and `false`; true for any other text, including an empty one.
pub(crate) fn truthy(value: &str) -> bool {
    !(value == "0" || value.eq_ignore_ascii_case("false"))
}

fn forbidden(field: &str, why: &str) -> Cause {
    Cause {
        reason: "FieldValueForbidden".to_owned(),
        message: format!("Forbidden: {why}"),
        field: field.to_owned(),
    }
}

fn not_supported(value: &str, supported: &str) -> Cause {
    Cause {
        reason: "FieldValueNotSupported".to_owned(),
        message: format!(
            "Unsupported value: {}: supported values: {supported}",
            go_text::quote(value)
        ),
        field: "resourceVersionMatch".to_owned(),
    }
}
