//! Control of a running server by YAML or JSON: rules, and waits for records of its trace.
//!
//! The control API offers the same over HTTP.

use std::path::Path;
use std::time::Duration;

use scenario::{LoadErrors, Wait, Waiting, parse_rule, parse_wait};
use trace::record::line::{line, span};
use trace::record::{Record, What};

use super::Edge;
use crate::server::{RuleRefused, Ruled};

/// Error of a rule or a wait.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SteerError {
    /// The text is invalid.
    #[error(transparent)]
    Mistakes(LoadErrors),
    /// The rule was rejected.
    #[error(transparent)]
    Refused(RuleRefused),
    /// The wait timed out.
    #[error(transparent)]
    TimedOut(TimedOut),
    /// The server is gone, or it is not a [`Server`](crate::server::Server).
    #[error("the server is stopping")]
    Stopped,
}

/// A wait that timed out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("waited {} for {awaited}; {nearest}", span(*.timeout_ms))]
pub struct TimedOut {
    /// Timeout, in milliseconds.
    pub timeout_ms: u64,
    /// Description of what it waited for.
    pub awaited: String,
    /// Description of the nearest match.
    pub nearest: String,
}

impl Edge {
    /// Adds a rule: YAML or JSON as for `POST /v1/rules`. A rule without `when` applies at once.
    ///
    /// # Errors
    /// The text is invalid, the rule can never match, or the server is stopping.
    pub fn rule(&self, text: &str) -> Result<Ruled, SteerError> {
        let served = self.steer(|server, _| server.catalog().clone());
        let served = served.ok_or(SteerError::Stopped)?;
        let rule = parse_rule(Path::new("rule"), text, &served).map_err(SteerError::Mistakes)?;
        self.steer(|server, now| server.add_rule(now, rule))
            .ok_or(SteerError::Stopped)?
            .map_err(SteerError::Refused)
    }

    /// Waits for the condition in `text` (YAML or JSON as for `POST /v1/wait`), and returns the record that meets it.
    ///
    /// # Errors
    /// The text is invalid, or its timeout (default 30 s) has passed.
    pub async fn wait_for(&self, text: &str) -> Result<Record, SteerError> {
        let wait = parse_wait(Path::new("wait"), text).map_err(SteerError::Mistakes)?;
        self.wait(wait).await.map_err(SteerError::TimedOut)
    }

    /// Waits until a record meets the condition, and returns it.
    ///
    /// # Errors
    /// The timeout has passed.
    pub async fn wait(&self, wait: Wait) -> Result<Record, TimedOut> {
        let timeout_ms = wait.timeout_ms;
        let next = self.steer(|server, _| server.next_record()).unwrap_or_default();
        let mut waiting = Waiting::new(wait, next);
        let awaited = waiting.words();
        let mut last_request = None;
        let met = tokio::time::timeout(Duration::from_millis(timeout_ms), async {
            let mut at = 0;
            loop {
                let stirred = self.stirred();
                let met = self.read_records(at, |records| {
                    for record in records {
                        at = record.seq + 1;
                        if matches!(record.what, What::Request { .. }) {
                            last_request = Some(line(record));
                        }
                        if waiting.is_met(record) {
                            return Some(record.clone());
                        }
                    }
                    None
                });
                if let Some(met) = met {
                    return met;
                }
                stirred.await;
            }
        })
        .await;
        met.map_err(|_| TimedOut {
            timeout_ms,
            awaited,
            nearest: match last_request {
                Some(request) => format!("the last request was: {request}"),
                None => "no request came at all".to_owned(),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use scenario::ServerSettings;

    use super::*;
    use crate::net::{ServeOptions, Standalone};

    const DEFINITION: &str = "{apply: {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, \
        metadata: {name: gadgets.tools.example.com}, spec: {group: tools.example.com, scope: Namespaced, \
        names: {plural: gadgets, kind: Gadget}, versions: [{name: v1, served: true, storage: true, \
        schema: {openAPIV3Schema: {type: object}}}]}}}";
    const GADGET: &str = "{apply: {apiVersion: tools.example.com/v1, kind: Gadget, metadata: {name: a}}}";

    #[tokio::test]
    async fn rules_write_what_the_server_serves() {
        let settings = ServerSettings::default();
        let server = Standalone::bare(settings, ServeOptions::default()).await.unwrap();
        for unknown in [GADGET, "{apply: {widget: {name: a}}}"] {
            let refused = server.rule(unknown).unwrap_err().to_string();
            assert!(refused.contains("error[unknown-kind]"), "{refused}");
        }
        for legal in [DEFINITION, GADGET] {
            assert!(matches!(server.rule(legal), Ok(Ruled::Done { .. })), "{legal}");
        }
        let outcome = server
            .edge()
            .read_records(0, |records| records.iter().map(line).collect::<Vec<_>>());
        assert!(
            outcome
                .iter()
                .any(|line| line.contains("gadgets") && line.contains('a')),
            "{outcome:?}"
        );
    }

    #[tokio::test]
    async fn rules_name_objects_of_the_running_server() {
        let settings = ServerSettings::default();
        let server = Standalone::bare(settings, ServeOptions::default()).await.unwrap();
        for legal in [
            "{when: {list: next}, do: {edit_page: {without: a}}}",
            "{when: {watch: next}, do: {event: {type: ADDED, object: a}}}",
        ] {
            assert!(matches!(server.rule(legal), Ok(Ruled::Standing(_))), "{legal}");
        }
    }

    #[tokio::test]
    async fn a_wait_that_times_out_is_an_error() {
        let server = Standalone::bare(ServerSettings::default(), ServeOptions::default())
            .await
            .unwrap();
        let late = server.wait("{when: {list: next}, timeout: 10ms}").await;
        assert!(
            matches!(&late, Err(SteerError::TimedOut(late)) if late.timeout_ms == 10),
            "{late:?}"
        );
        let late = late.unwrap_err().to_string();
        assert!(
            late.contains("LIST") && late.ends_with("no request came at all"),
            "{late}"
        );
        assert!(matches!(server.wait("{}").await, Err(SteerError::Mistakes(_))));
    }
}
