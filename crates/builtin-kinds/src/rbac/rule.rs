//! Policy rules: the requests that a rule allows. It must not know roles or bindings.
//!
//! Source: kubernetes `pkg/apis/rbac/v1/evaluation_helpers.go`.

use apimachinery::go_text::quote;
use serde_json::Value;

use super::Attributes;

/// Wildcard.
pub(super) const ALL: &str = "*";

/// `PolicyRule`: verbs on resources, or on paths. `*` is any; a path may end in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PolicyRule {
    /// `verbs`.
    pub verbs: Vec<String>,
    /// `apiGroups`.
    pub api_groups: Vec<String>,
    /// `resources`, with subresources as `pods/log`.
    pub resources: Vec<String>,
    /// `resourceNames`; empty: any name.
    pub resource_names: Vec<String>,
    /// `nonResourceURLs`.
    pub non_resource_urls: Vec<String>,
}

impl PolicyRule {
    /// Parses `rules` of a role.
    pub fn list(rules: &Value) -> Vec<Self> {
        let rules = rules.as_array().into_iter().flatten();
        rules.map(Self::read).collect()
    }

    fn read(rule: &Value) -> Self {
        let texts = |field: &str| -> Vec<String> {
            let listed = rule[field].as_array().into_iter().flatten();
            listed.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        Self {
            verbs: texts("verbs"),
            api_groups: texts("apiGroups"),
            resources: texts("resources"),
            resource_names: texts("resourceNames"),
            non_resource_urls: texts("nonResourceURLs"),
        }
    }

    /// Returns the rule that allows every verb on every resource.
    pub fn everything() -> Self {
        let all = || vec![ALL.to_owned()];
        Self {
            verbs: all(),
            api_groups: all(),
            resources: all(),
            ..Self::default()
        }
    }

    /// Returns the rule that allows every verb on every non-resource path.
    pub fn every_path() -> Self {
        Self {
            verbs: vec![ALL.to_owned()],
            non_resource_urls: vec![ALL.to_owned()],
            ..Self::default()
        }
    }

    /// Returns whether this rule alone allows it.
    pub fn allows(&self, attributes: &Attributes) -> bool {
        match attributes {
            Attributes::Path { verb, path } => {
                named(&self.verbs, verb) && self.non_resource_urls.iter().any(|known| leads_to(known, path))
            }
            Attributes::Resource {
                verb,
                group,
                resource,
                subresource,
                name,
                ..
            } => {
                named(&self.verbs, verb)
                    && named(&self.api_groups, group)
                    && self.has_resource(resource, subresource)
                    && (self.resource_names.is_empty() || self.resource_names.contains(name))
            }
        }
    }

    fn has_resource(&self, resource: &str, subresource: &str) -> bool {
        self.resources.iter().any(|known| match known.split_once('/') {
            None => known == ALL || subresource.is_empty() && known == resource,
            Some((of, part)) => {
                !subresource.is_empty() && part == subresource && (of == ALL || of == resource)
            }
        })
    }

    /// Formats the rule as in the message of a rejected escalation.
    pub(super) fn compact(&self) -> String {
        let parts = [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.non_resource_urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ];
        let parts: Vec<String> = parts
            .into_iter()
            .filter(|(_, values)| !values.is_empty())
            .map(|(name, values)| format!("{name}:{}", quoted(values)))
            .collect();
        format!("{{{}}}", parts.join(", "))
    }
}

/// Formats a list of strings as Go's `%q`.
pub(super) fn quoted(texts: &[String]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| quote(text)).collect();
    format!("[{}]", quoted.join(" "))
}

pub(super) fn named(known: &[String], asked: &str) -> bool {
    known.iter().any(|name| name == ALL || name == asked)
}

/// Returns whether the path of a rule matches this one.
pub(super) fn leads_to(known: &str, path: &str) -> bool {
    known == path || known.ends_with(ALL) && path.starts_with(known.trim_end_matches(ALL))
}
