//! `.github/ISSUE_TEMPLATE/contest.yml`: the form by which the maintainers of a client say that a failure is wrong. A pure
//! function of the clients of adapters/adapters.yaml. How an objection is decided, docs/contest.md says.

use std::fmt::Write as _;

use e2e::adapters::Registry;

/// Path of the form.
pub(crate) const PAGE: &str = ".github/ISSUE_TEMPLATE/contest.yml";

const HEAD: &str = "\
# Written by `cargo xtask conformance --page`.
name: Contest a failure
description: A client is charged with what it does not do, or with what no server sends
title: \"Contest: \"
labels: [contest]
body:
  - type: markdown
    attributes:
      value: >-
        CONFORMANCE.md names the scenario and the requirement of each failure. docs/contest.md has the rules by which an objection is decided.
        Do not describe a vulnerability of a client here: report it to its maintainers in private.
  - type: dropdown
    id: client
    attributes:
      label: Client
      options:
";

// No line break after the quote: `\` would take the indentation of the first line, too.
const REST: &str = "    validations:
      required: true
  - type: input
    id: scenario
    attributes:
      label: Scenario
      placeholder: gone/http-410-at-watch-start-forces-a-relist
    validations:
      required: true
  - type: input
    id: requirement
    attributes:
      label: Requirement
      description: From requirements/catalogue.yaml; empty if the scenario as a whole is wrong.
      placeholder: GONE-02
  - type: dropdown
    id: reason
    attributes:
      label: What is wrong
      options:
        - The evidence does not contradict the text of the requirement
        - No kube-apiserver, network or common proxy sends this input
        - The requirement is too strict, or its source says something else
        - The adapter uses the library in a way that its documentation does not describe
        - The failure does not happen again, or is fixed in a release
        - Something else
    validations:
      required: true
  - type: textarea
    id: why
    attributes:
      label: Why
      description: The line of the trace, of the library's source or of a specification that shows it.
    validations:
      required: true
  - type: checkboxes
    id: maintainer
    attributes:
      label: Who you are
      options:
        - label: I maintain this client
";

/// Makes the form.
pub(crate) fn form(registry: &Registry) -> String {
    let mut form = HEAD.to_owned();
    for client in &registry.clients {
        // A JSON string is a YAML string.
        let _ = writeln!(
            form,
            "        - {}",
            serde_json::Value::from(client.title.as_str())
        );
    }
    form.push_str("        - \"another one\"\n");
    form.push_str(REST);
    form
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn the_form_is_yaml_with_a_list_of_questions() {
        let registry = Registry {
            ecosystems: BTreeMap::new(),
            clients: Vec::new(),
            left_out: Vec::new(),
        };
        let form = form(&registry);
        let form: serde_json::Value = serde_saphyr::from_str(&form).unwrap();
        let ids = form["body"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|item| item["id"].as_str());
        let ids: Vec<&str> = ids.collect();
        assert_eq!(
            ids,
            ["client", "scenario", "requirement", "reason", "why", "maintainer"]
        );
        assert_eq!(form["body"][1]["validations"]["required"], true);
    }
}
