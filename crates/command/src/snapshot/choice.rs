//! Which resources of a cluster a snapshot has. No I/O.

use std::collections::BTreeSet;

use apimachinery::kind::qualified;
use apimachinery::path::collection_path;
use fake_apiserver::model::catalog::is_builtin_group;
use fake_apiserver::scenario::nearest;
use serde::Deserialize;

use super::format::LeftOut;

/// Group and plural of the definitions of custom resources.
pub(crate) const DEFINITIONS: (&str, &str) = ("apiextensions.k8s.io", "customresourcedefinitions");

/// Resources that change all the time, or are of use only to the cluster that they are in.
const NEVER_BY_DEFAULT: [(&str, &str, &str); 4] = [
    ("", "events", "they are about what has happened"),
    ("events.k8s.io", "events", "they are about what has happened"),
    (
        "coordination.k8s.io",
        "leases",
        "they are held by processes of the cluster",
    ),
    (
        "coordination.k8s.io",
        "leasecandidates",
        "they are held by processes of the cluster",
    ),
];

/// A resource of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Resource {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    pub(crate) kind: String,
    pub(crate) namespaced: bool,
    /// Other names: singular, short names, kind in lower case.
    names: Vec<String>,
    verbs: Vec<String>,
}

/// Resources of a group and version, as in discovery.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Discovered {
    #[serde(default)]
    resources: Vec<DiscoveredResource>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct DiscoveredResource {
    name: String,
    #[serde(default)]
    singular_name: String,
    #[serde(default)]
    short_names: Vec<String>,
    kind: String,
    #[serde(default)]
    namespaced: bool,
    #[serde(default)]
    verbs: Vec<String>,
}

/// Resources of a cluster, in the order of discovery; each in its preferred version.
#[derive(Debug, Default)]
pub(crate) struct Known(Vec<Resource>);

/// What is read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Choice {
    /// In order; definitions first, if there are any.
    pub(crate) resources: Vec<Resource>,
    /// Names of definitions to keep; `None`: all.
    pub(crate) definitions: Option<BTreeSet<String>>,
    pub(crate) left_out: Vec<LeftOut>,
}

impl Resource {
    /// Plural and group: `deployments.apps`.
    pub(crate) fn full_name(&self) -> String {
        qualified(&self.plural, &self.group)
    }

    pub(crate) fn api_version(&self) -> String {
        match self.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// Path of the collection, of one namespace if it has one.
    pub(crate) fn path(&self, namespace: Option<&str>) -> String {
        let namespace = namespace.filter(|_| self.namespaced);
        collection_path(&self.group, &self.version, namespace, &self.plural)
    }

    pub(crate) fn is(&self, (group, plural): (&str, &str)) -> bool {
        self.group == group && self.plural == plural
    }

    /// Whether it needs a definition.
    pub(crate) fn is_custom(&self) -> bool {
        !is_builtin_group(&self.group)
    }

    /// Returns why no server can begin with its objects, if none can.
    fn unusable(&self) -> Option<&'static str> {
        let allows = |verb: &str| self.verbs.iter().any(|known| known == verb);
        if !allows("list") {
            Some("it cannot be listed")
        } else if !allows("create") {
            Some("its objects are computed, and cannot be created")
        } else if self.plural == "secrets" && !self.group.is_empty() {
            Some("its name is that of Secrets, which never leave a cluster")
        } else {
            None
        }
    }

    fn is_named(&self, wanted: &str) -> bool {
        let (name, group) = wanted
            .split_once('.')
            .map_or((wanted, None), |(name, group)| (name, Some(group)));
        let in_group = group.is_none_or(|group| {
            group == self.group || format!("{}.{}", self.version, self.group).trim_end_matches('.') == group
        });
        in_group && (self.plural == name || self.names.iter().any(|known| known == name))
    }
}

impl Known {
    /// Adds the resources of a group and version, unless an earlier version of the group has them.
    pub(crate) fn add(&mut self, group: &str, version: &str, discovered: Discovered) {
        for found in discovered.resources {
            if found.name.contains('/') || self.0.iter().any(|known| known.is((group, &found.name))) {
                continue;
            }
            let mut names = found.short_names;
            names.push(found.singular_name);
            names.push(found.kind.to_lowercase());
            self.0.push(Resource {
                group: group.to_owned(),
                version: version.to_owned(),
                plural: found.name,
                kind: found.kind,
                namespaced: found.namespaced,
                names,
                verbs: found.verbs,
            });
        }
    }

    /// Chooses the resources of these names; without names all that a server can begin with. `namespace`: only those in
    /// namespaces, and namespaces, unless they are named.
    ///
    /// # Errors
    /// The names that there are not, or that no snapshot can have; in words.
    pub(crate) fn choose(&self, names: &[String], namespace: Option<&str>) -> Result<Choice, String> {
        let mut choice = match names {
            [] => self.all(namespace),
            names => self.named(names)?,
        };
        let customs: Vec<&Resource> = choice.resources.iter().filter(|one| one.is_custom()).collect();
        let has_definitions = choice.resources.iter().any(|one| one.is(DEFINITIONS));
        if !customs.is_empty() && !has_definitions {
            choice.definitions = Some(customs.iter().map(|one| one.full_name()).collect());
            choice
                .resources
                .extend(self.0.iter().find(|one| one.is(DEFINITIONS)).cloned());
        }
        // Definitions decide which objects are served, so they come first.
        choice.resources.sort_by_key(|one| !one.is(DEFINITIONS));
        Ok(choice)
    }

    fn all(&self, namespace: Option<&str>) -> Choice {
        let mut choice = Choice::default();
        for resource in &self.0 {
            if namespace.is_some() && !resource.namespaced && !resource.is(("", "namespaces")) {
                continue;
            }
            let never = NEVER_BY_DEFAULT
                .iter()
                .find(|(group, plural, _)| resource.is((group, plural)));
            let is_list = resource.verbs.iter().any(|verb| verb == "list");
            match never.map(|(.., why)| *why).or(resource.unusable()) {
                // Reviews and bindings are no objects.
                Some(_) if !is_list => {}
                Some(why) => choice.left_out.push(LeftOut {
                    resource: resource.full_name(),
                    why: why.to_owned(),
                }),
                None => choice.resources.push(resource.clone()),
            }
        }
        choice
    }

    fn named(&self, names: &[String]) -> Result<Choice, String> {
        let mut choice = Choice::default();
        let mut mistakes = Vec::new();
        for name in names {
            let Some(resource) = self.0.iter().find(|known| known.is_named(name)) else {
                let known: Vec<String> = self.0.iter().map(Resource::full_name).collect();
                let hint = match nearest(name, known.iter().map(String::as_str)) {
                    Some(nearest) => format!("did you mean {nearest:?}?"),
                    None => "kubectl api-resources lists those that there are".to_owned(),
                };
                mistakes.push(format!(
                    "--resource {name}: the server has no such resource; {hint}"
                ));
                continue;
            };
            match resource.unusable() {
                Some(why) => mistakes.push(format!("--resource {name}: {why}; leave it out")),
                None if choice.resources.contains(resource) => {}
                None => choice.resources.push(resource.clone()),
            }
        }
        match mistakes.is_empty() {
            true => Ok(choice),
            false => Err(mistakes.join("\n")),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn known() -> Known {
        let verbs = ["list", "create"];
        let core = json!({ "resources": [
            { "name": "pods", "singularName": "pod", "shortNames": ["po"], "kind": "Pod", "namespaced": true, "verbs": verbs },
            { "name": "pods/log", "kind": "Pod", "namespaced": true, "verbs": ["get"] },
            { "name": "namespaces", "kind": "Namespace", "verbs": verbs },
            { "name": "nodes", "kind": "Node", "verbs": verbs },
            { "name": "events", "kind": "Event", "namespaced": true, "verbs": verbs },
            { "name": "bindings", "kind": "Binding", "namespaced": true, "verbs": ["create"] },
            { "name": "componentstatuses", "kind": "ComponentStatus", "verbs": ["list"] },
        ] });
        let apps = json!({ "resources": [{ "name": "deployments", "kind": "Deployment", "namespaced": true, "verbs": verbs }] });
        let definitions = json!({ "resources": [{ "name": DEFINITIONS.1, "kind": "CustomResourceDefinition", "verbs": verbs }] });
        let widgets = json!({ "resources": [
            { "name": "widgets", "kind": "Widget", "namespaced": true, "verbs": verbs },
            { "name": "secrets", "kind": "Secret", "namespaced": true, "verbs": verbs },
        ] });
        let mut known = Known::default();
        for (group, version, resources) in [
            ("", "v1", core),
            ("apps", "v1", apps.clone()),
            ("apps", "v1beta1", apps),
            (DEFINITIONS.0, "v1", definitions),
            ("example.com", "v2", widgets),
        ] {
            known.add(
                group,
                version,
                serde_json::from_value(resources).expect("a document of discovery"),
            );
        }
        known
    }

    fn chosen(names: &[&str], namespace: Option<&str>) -> Result<Vec<String>, String> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let choice = known().choose(&names, namespace)?;
        Ok(choice.resources.iter().map(Resource::full_name).collect())
    }

    #[test]
    fn everything_that_can_be_created_is_read_definitions_first() {
        let choice = known().choose(&[], None).expect("all");
        let names: Vec<String> = choice.resources.iter().map(Resource::full_name).collect();
        let definitions = format!("{}.{}", DEFINITIONS.1, DEFINITIONS.0);
        assert_eq!(
            names,
            [
                &definitions,
                "pods",
                "namespaces",
                "nodes",
                "deployments.apps",
                "widgets.example.com"
            ]
        );
        let left_out: Vec<&str> = choice.left_out.iter().map(|one| one.resource.as_str()).collect();
        assert_eq!(left_out, ["events", "componentstatuses", "secrets.example.com"]);
        assert_eq!(choice.definitions, None);
        assert_eq!(
            choice.resources[4].path(Some("a")),
            "/apis/apps/v1/namespaces/a/deployments"
        );
    }

    #[test]
    fn a_namespace_has_what_is_in_it() {
        assert_eq!(
            chosen(&[], Some("a")),
            Ok([
                "customresourcedefinitions.apiextensions.k8s.io",
                "pods",
                "namespaces",
                "deployments.apps",
                "widgets.example.com"
            ]
            .map(str::to_owned)
            .to_vec())
        );
    }

    #[test]
    fn names_are_those_of_kubectl() {
        let choice = known()
            .choose(
                &[
                    "po".to_owned(),
                    "deployment.apps".to_owned(),
                    "widgets.v2.example.com".to_owned(),
                ],
                None,
            )
            .expect("they are there");
        assert_eq!(
            choice.definitions,
            Some(BTreeSet::from(["widgets.example.com".to_owned()]))
        );
        assert_eq!(
            chosen(&["pods", "pod", "events"], None),
            Ok(vec!["pods".to_owned(), "events".to_owned()])
        );
        let refused =
            chosen(&["deploymnets.apps", "componentstatuses", "zzz"], None).expect_err("none of them");
        assert_eq!(refused.lines().count(), 3, "{refused}");
        assert!(
            refused.contains("did you mean \"deployments.apps\"?"),
            "{refused}"
        );
        assert!(
            refused.contains("componentstatuses: its objects are computed"),
            "{refused}"
        );
    }
}
