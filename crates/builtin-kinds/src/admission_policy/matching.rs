//! Which requests a policy, a binding or a webhook is about. It must not know expressions.
//!
//! Source: apiserver `pkg/admission/plugin/policy/matching`.

use apimachinery::kind::{ApiResource, KindRef};
use apimachinery::selector::LabelSelector;
use serde_json::Value;

use super::Request;
use crate::scale::label_selector;

/// `MatchResources`.
#[derive(Debug)]
pub(crate) struct Matching {
    /// Empty: all resources.
    rules: Vec<Rule>,
    excluded: Vec<Rule>,
    exact: bool,
    objects: LabelSelector,
    namespaces: LabelSelector,
}

#[derive(Debug)]
struct Rule {
    groups: Vec<String>,
    versions: Vec<String>,
    operations: Vec<String>,
    /// With subresources as `pods/status`.
    resources: Vec<String>,
    names: Vec<String>,
    /// `*`, `Namespaced` or `Cluster`.
    scope: String,
}

impl Matching {
    pub(super) fn read(json: &Value) -> Self {
        Self::with_rules(json, "resourceRules")
    }

    /// That of a webhook, whose rules have another name.
    pub(crate) fn of_webhook(json: &Value) -> Self {
        Self::with_rules(json, "rules")
    }

    fn with_rules(json: &Value, of: &str) -> Self {
        let rules = |field: &str| {
            let listed = json[field].as_array().into_iter().flatten();
            listed.map(Rule::read).collect()
        };
        // A selector that cannot be read was refused when it was written.
        let selector = |field: &str| LabelSelector::parse(&label_selector(&json[field])).unwrap_or_default();
        Self {
            rules: rules(of),
            excluded: rules("excludeResourceRules"),
            exact: json["matchPolicy"] == "Exact",
            objects: selector("objectSelector"),
            namespaces: selector("namespaceSelector"),
        }
    }

    pub(super) fn matches(&self, request: &Request<'_>) -> bool {
        let any = |rules: &[Rule]| {
            rules
                .iter()
                .any(|rule| rule.matches(request, request.kind, self.exact))
        };
        (self.rules.is_empty() || any(&self.rules)) && !any(&self.excluded) && self.matches_labels(request)
    }

    /// The kind that a rule names: that of the request, or else one of `equivalents`, unless only the former counts.
    pub(crate) fn selected<'k>(
        &self,
        request: &Request<'_>,
        equivalents: &'k [KindRef],
    ) -> Option<&'k KindRef> {
        let names = |rule: &Rule, kind: &KindRef| rule.matches(request, kind, true);
        let own = equivalents.iter().find(|kind| ***kind == *request.request_kind);
        let own = own.filter(|own| self.rules.iter().any(|rule| names(rule, own)));
        let other = || {
            let named = |rule: &Rule| equivalents.iter().find(|kind| names(rule, kind));
            self.rules.iter().find_map(named)
        };
        let selected = own.or_else(|| if self.exact { None } else { other() });
        selected.filter(|_| self.matches_labels(request))
    }

    /// As [`Matching::selected`], without what is excluded.
    pub(super) fn included<'k>(
        &self,
        request: &Request<'_>,
        equivalents: &'k [KindRef],
    ) -> Option<&'k KindRef> {
        let excluded = { self.excluded.iter() }.any(|rule| rule.matches(request, request.kind, self.exact));
        self.selected(request, equivalents).filter(|_| !excluded)
    }

    fn matches_labels(&self, request: &Request<'_>) -> bool {
        let labels = |object: &Value| self.objects.matches_labels(&object["metadata"]["labels"]);
        // A namespace is in itself.
        let itself = request.kind.group.is_empty() && request.kind.plural == "namespaces";
        let namespace = match itself {
            true => request.object.or(request.old),
            false => request.namespace_object,
        };
        let in_namespace = namespace
            .is_none_or(|namespace| self.namespaces.matches_labels(&namespace["metadata"]["labels"]));
        in_namespace && [request.object, request.old].into_iter().flatten().any(labels)
    }
}

impl Rule {
    fn read(json: &Value) -> Self {
        let texts = |field: &str| -> Vec<String> {
            let listed = json[field].as_array().into_iter().flatten();
            listed.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        Self {
            groups: texts("apiGroups"),
            versions: texts("apiVersions"),
            operations: texts("operations"),
            resources: texts("resources"),
            names: texts("resourceNames"),
            scope: json["scope"].as_str().unwrap_or("*").to_owned(),
        }
    }

    /// `exact`: another version of the same resource is another resource.
    fn matches(&self, request: &Request<'_>, kind: &ApiResource, exact: bool) -> bool {
        let has = |known: &[String], asked: &str| known.iter().any(|known| known == "*" || known == asked);
        let scope = match self.scope.as_str() {
            "Namespaced" => kind.namespaced,
            "Cluster" => !kind.namespaced,
            _ => true,
        };
        has(&self.groups, &kind.group)
            && (!exact || has(&self.versions, &kind.version))
            && has(&self.operations, request.operation)
            && self.has_resource(&kind.plural, request.subresource)
            && (self.names.is_empty() || self.names.iter().any(|name| name == request.name))
            && scope
    }

    fn has_resource(&self, plural: &str, subresource: &str) -> bool {
        self.resources.iter().any(|known| {
            let (of, part) = known.split_once('/').unwrap_or((known, ""));
            (of == "*" || of == plural) && (part == "*" || part == subresource)
        })
    }
}
