//! adapters/audit.yaml: broken requirements of the recorded results that the evidence does not show. It must not know results.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::Registry;

/// Path of the list in the repository.
pub const AUDIT: &str = "adapters/audit.yaml";

/// Review of the requirements that were counted as broken.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Audit {
    /// Names of the clients whose broken requirements were all reviewed.
    pub clients: Vec<String>,
    /// Requirements that are not shown to be broken.
    pub cells: Vec<AuditedCell>,
}

/// A requirement that the evidence does not show to be broken by some clients.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditedCell {
    /// Id, e.g. `PAGE-06`.
    pub requirement: String,
    /// Names of the clients.
    pub clients: Vec<String>,
    /// Why it is counted nevertheless.
    pub finding: Finding,
    /// Reason, in one sentence.
    pub reason: String,
}

/// Why a requirement counts as broken although the evidence does not show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// The behaviour is acceptable, or an artefact of the measurement.
    Unfounded,
    /// The scenario fails because of another requirement that it covers.
    Along,
}

impl Finding {
    /// Returns its mark on the page.
    pub fn mark(self) -> char {
        match self {
            Self::Unfounded => '†',
            Self::Along => '‡',
        }
    }
}

impl Audit {
    /// Reads the list.
    ///
    /// # Errors
    ///
    /// The file is missing or has mistakes.
    pub fn read(root: &Path, registry: &Registry) -> Result<Self, String> {
        let text = std::fs::read_to_string(root.join(AUDIT));
        Self::parse(&text.map_err(|error| format!("{AUDIT}: {error}"))?, registry)
    }

    /// Parses the list.
    ///
    /// # Errors
    ///
    /// It has mistakes: a client that the registry or `clients` does not have, or a cell that is listed twice.
    pub fn parse(text: &str, registry: &Registry) -> Result<Self, String> {
        let audit: Self = serde_saphyr::from_str(text).map_err(|error| format!("{AUDIT}: {error}"))?;
        registry
            .chosen(&audit.clients)
            .map_err(|unknown| format!("{AUDIT}: {unknown}"))?;
        let mut listed = BTreeMap::new();
        for cell in &audit.cells {
            for client in &cell.clients {
                let requirement = &cell.requirement;
                if !audit.clients.contains(client) {
                    return Err(format!("{AUDIT}: {requirement}: {client} is not among `clients`"));
                }
                if listed.insert((client, requirement), ()).is_some() {
                    return Err(format!("{AUDIT}: {requirement} of {client} is listed twice"));
                }
            }
        }
        Ok(audit)
    }

    /// Returns the cells of a client, by requirement.
    pub fn of(&self, client: &str) -> BTreeMap<&str, &AuditedCell> {
        self.cells
            .iter()
            .filter(|cell| cell.clients.iter().any(|name| name == client))
            .map(|cell| (cell.requirement.as_str(), cell))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Audit, String> {
        let registry = "{ecosystems: {go: {}}, clients: [{name: x, title: X, ecosystem: go, run: [x]}, \
                        {name: y, title: Y, ecosystem: go, run: [y]}]}";
        Audit::parse(text, &serde_saphyr::from_str(registry).unwrap())
    }

    #[test]
    fn cells_are_found_by_client() {
        let text = "{clients: [x], cells: [{requirement: A-01, clients: [x], finding: along, reason: r}]}";
        let audit = parsed(text).unwrap();
        assert_eq!(audit.of("x")["A-01"].finding.mark(), '‡');
        assert!(audit.of("y").is_empty());
    }

    #[test]
    fn unknown_clients_and_repeated_cells_are_errors() {
        let refusal = |text: &str| parsed(text).unwrap_err();
        let cell = "{requirement: A-01, clients: [y], finding: unfounded, reason: r}";
        assert_eq!(
            refusal("{clients: [z], cells: []}"),
            "adapters/audit.yaml: there is no client z; there are: x, y"
        );
        assert_eq!(
            refusal(&format!("{{clients: [x], cells: [{cell}]}}")),
            "adapters/audit.yaml: A-01: y is not among `clients`"
        );
        assert_eq!(
            refusal(&format!("{{clients: [x, y], cells: [{cell}, {cell}]}}")),
            "adapters/audit.yaml: A-01 of y is listed twice"
        );
    }
}
