//! Table of the served kinds; each difference between kinds is a column.
//!
//! The rows of a stock apiserver are in the files below; rows of custom resources come from their definitions (`crd`). Other
//! code reads the properties of a row and does not need to know the kind.

mod builtin;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use apimachinery::Version;
pub use apimachinery::kind::{ApiResource, KindRef};

/// Groups of a stock apiserver, in the order of `/apis`, each with its versions, the preferred one first.
const GROUPS: &[(&str, &[&str])] = &[
    ("apiregistration.k8s.io", &["v1"]),
    ("apps", &["v1"]),
    ("events.k8s.io", &["v1"]),
    ("authentication.k8s.io", &["v1"]),
    ("authorization.k8s.io", &["v1"]),
    ("autoscaling", &["v2", "v1"]),
    ("batch", &["v1"]),
    ("certificates.k8s.io", &["v1"]),
    ("networking.k8s.io", &["v1"]),
    ("policy", &["v1"]),
    ("rbac.authorization.k8s.io", &["v1"]),
    ("storage.k8s.io", &["v1"]),
    ("admissionregistration.k8s.io", &["v1"]),
    ("apiextensions.k8s.io", &["v1"]),
    ("scheduling.k8s.io", &["v1"]),
    ("coordination.k8s.io", &["v1"]),
    ("node.k8s.io", &["v1"]),
    ("discovery.k8s.io", &["v1"]),
    ("resource.k8s.io", &["v1"]),
    ("flowcontrol.apiserver.k8s.io", &["v1"]),
    ("storagemigration.k8s.io", &["v1"]),
];

/// Returns the kind of `scale` subresources.
pub fn scale() -> KindRef {
    (&builtin::SCALE).into()
}

/// Returns the kind of requests for a token of a service account.
pub fn token_request() -> KindRef {
    (&builtin::TOKEN_REQUEST).into()
}

/// Returns the kind of requests to bind a pod to a node.
pub fn binding() -> KindRef {
    builtin_core("bindings")
}

/// Returns the kind of requests to evict a pod.
pub fn eviction() -> KindRef {
    (&builtin::EVICTION).into()
}

/// Returns the kind of pods.
pub fn pod() -> KindRef {
    builtin_core("pods")
}

fn builtin_core(plural: &str) -> KindRef {
    builtin::rows()
        .find(|kind| kind.group.is_empty() && kind.plural == plural)
        .expect("the core group has the rows that are named here")
        .into()
}

/// Returns whether some version of Kubernetes has the group built in.
pub fn is_builtin_group(group: &str) -> bool {
    builtin::rows().any(|kind| kind.group == group)
}

/// API group and its served versions, the preferred one first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group<'a> {
    /// Name of the group.
    pub name: &'a str,
    /// Served versions.
    pub versions: Vec<&'a str>,
}

/// The served kinds: built-in ones and custom resources.
#[derive(Debug, Clone)]
pub struct Catalog {
    kinds: Vec<KindRef>,
    /// Their places by plural: each request searches several times.
    by_plural: Vec<u32>,
}

impl Catalog {
    /// Returns the kinds of a stock apiserver of this minor version.
    pub fn builtin(version: Version) -> Self {
        let kinds = builtin::rows()
            .filter(|kind| kind.since <= version && kind.until.is_none_or(|until| version < until));
        Self::new(kinds.map(KindRef::from).collect())
    }

    fn new(kinds: Vec<KindRef>) -> Self {
        let mut by_plural: Vec<u32> = (0..).take(kinds.len()).collect();
        by_plural.sort_by_key(|place| &kinds[*place as usize].plural);
        Self { kinds, by_plural }
    }

    /// Returns the kinds of this plural, in the order of all.
    fn of_plural(&self, plural: &str) -> impl Iterator<Item = &KindRef> {
        let kind = |place: &u32| &self.kinds[*place as usize];
        let first = self
            .by_plural
            .partition_point(|place| *kind(place).plural < *plural);
        let rest = self.by_plural[first..].iter().map(kind);
        rest.take_while(move |kind| kind.plural == plural)
    }

    /// Returns the kinds in scenarios: the same, and `widgets.probe.example.com`, which need no definition there.
    pub fn of_scenarios(version: Version) -> Self {
        let mut kinds = Self::builtin(version).kinds;
        kinds.push((&builtin::WIDGET).into());
        Self::new(kinds)
    }

    /// Returns the kind of this group and plural, in the stored version.
    pub fn find(&self, group: &str, plural: &str) -> Option<&KindRef> {
        self.of_plural(plural).find(|kind| {
            let shows = kind.shows.as_ref();
            kind.group == group && shows.is_none_or(|(of, _)| of != group)
        })
    }

    /// Returns the kind of this group, version and plural.
    pub fn find_version(&self, group: &str, version: &str, plural: &str) -> Option<&KindRef> {
        let mut kinds = self.of_plural(plural);
        kinds.find(|kind| kind.group == group && kind.version == version)
    }

    /// Returns the kind by `apiVersion` and `kind` of an object.
    pub fn find_kind(&self, api_version: &str, kind: &str) -> Option<&KindRef> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let mut kinds = self.kinds.iter();
        kinds.find(|known| known.kind == kind && known.group == group && known.version == version)
    }

    /// Returns whether this is a built-in group.
    pub fn has_builtin_group(&self, group: &str) -> bool {
        group.is_empty() || self.kinds.iter().any(|kind| kind.group == group && !kind.custom)
    }

    /// Returns all kinds, built-in ones first.
    pub fn kinds(&self) -> &[KindRef] {
        &self.kinds
    }

    /// Returns all groups except the core group, in the order of `/apis`.
    pub fn groups(&self) -> Vec<Group<'_>> {
        let serves = |name: &str, version: &str| {
            let mut kinds = self.kinds.iter();
            kinds.any(|kind| kind.group == name && kind.version == version)
        };
        let mut groups: Vec<Group<'_>> = GROUPS
            .iter()
            .map(|&(name, versions)| Group {
                name,
                versions: versions
                    .iter()
                    .copied()
                    .filter(|version| serves(name, version))
                    .collect(),
            })
            .filter(|group| !group.versions.is_empty())
            .collect();
        let known = groups.len();
        let mut custom: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for kind in self.kinds.iter().filter(|kind| kind.custom) {
            custom.entry(&kind.group).or_default().insert(&kind.version);
        }
        for (name, versions) in custom {
            let versions = versions.into_iter();
            match groups[..known].iter_mut().find(|group| group.name == name) {
                Some(group) => {
                    let more: Vec<_> = versions
                        .filter(|version| !group.versions.contains(version))
                        .collect();
                    group.versions.extend(more);
                }
                None => groups.push(Group {
                    name,
                    versions: versions.collect(),
                }),
            }
        }
        for group in &mut groups[known..] {
            group.versions.sort_by(|one, other| by_age(one, other));
        }
        groups
    }

    /// Replaces the served versions of a custom resource; without versions it is no longer served.
    ///
    /// A row that is equal to one that was served does not replace it, so that it keeps the rules that were compiled.
    pub fn define(&mut self, group: &str, plural: &str, versions: &[KindRef]) {
        let defined = |kind: &mut KindRef| kind.custom && kind.group == group && kind.plural == plural;
        let mut kinds = std::mem::take(&mut self.kinds);
        let before: Vec<KindRef> = kinds.extract_if(.., defined).collect();
        let served = versions.iter().map(|version| {
            let same = before.iter().find(|kind| *kind == version);
            same.unwrap_or(version).clone()
        });
        kinds.extend(served);
        *self = Self::new(kinds);
    }
}

/// Compares versions: stable before beta before alpha, the newest first; others after them by name.
///
/// Source: apimachinery `version/helpers.go`, `CompareKubeAwareVersionStrings`.
pub(crate) fn by_age(one: &str, other: &str) -> Ordering {
    match (age(one), age(other)) {
        (Some(one), Some(other)) => other.cmp(&one),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => one.cmp(other),
    }
}

/// Parses stage, major and minor of `v1`, `v2beta3`; `None` for other names.
fn age(version: &str) -> Option<(u8, u64, u64)> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let rest = version.strip_prefix('v')?;
    let (major, rest) = rest.split_at(digits(rest));
    let major = major.parse().ok()?;
    let (stage, minor) = match rest {
        "" => return Some((2, major, 0)),
        _ => match (rest.strip_prefix("beta"), rest.strip_prefix("alpha")) {
            (Some(minor), _) => (1, minor),
            (None, Some(minor)) => (0, minor),
            (None, None) => return None,
        },
    };
    let minor = (digits(minor) == minor.len()).then(|| minor.parse().ok())??;
    Some((stage, major, minor))
}
