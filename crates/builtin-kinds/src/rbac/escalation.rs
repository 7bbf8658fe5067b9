//! Privilege escalation prevention: the writer of a role or binding must hold all of its permissions. It must not know the
//! request.
//!
//! Source: "Privilege escalation prevention and bootstrapping"; kubernetes `pkg/registry/rbac/validation/rule.go`
//! (`ConfirmNoEscalation`), component-helpers `auth/rbac/validation/policy_comparator.go`.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use apimachinery::go_text::quote;

use super::rule::{ALL, leads_to, quoted};
use super::{PolicyRule, Rules, User};

/// Maximum bytes of the permissions in a message: a rule of some kilobytes can contain millions of them.
const SHOWN_BYTES_MAX: usize = 256 * 1024;

/// Last line of a message that does not contain all permissions.
const MORE: &str = "…";

/// Returns the message for a user who grants permissions that its own rules do not cover; `None`: all are covered.
pub fn missing(user: User<'_>, held: &Rules, granted: &[PolicyRule]) -> Option<String> {
    let held_rules = Held::of(&held.rules);
    let mut uncovered = Uncovered::default();
    for rule in granted {
        held_rules.compare_resources(rule, &mut uncovered);
        held_rules.compare_paths(rule, &mut uncovered);
    }
    if uncovered.atoms.is_empty() {
        return None;
    }
    // A set: the lines are sorted and unique.
    let lines: BTreeSet<String> = compacted(uncovered.atoms)
        .iter()
        .map(PolicyRule::compact)
        .collect();
    let mut lines: Vec<String> = lines.into_iter().collect();
    if uncovered.bytes > SHOWN_BYTES_MAX {
        lines.push(MORE.to_owned());
    }
    let errors = match held.error.as_str() {
        "" => String::new(),
        error => format!("; resolution errors: [{error}]"),
    };
    Some(format!(
        "user {} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}{errors}",
        quote(user.name),
        quoted(user.groups),
        lines.join("\n")
    ))
}

/// Permissions that are not covered, as rules with one verb, one resource and one name each, up to a limit.
#[derive(Default)]
struct Uncovered {
    atoms: Vec<PolicyRule>,
    bytes: usize,
}

impl Uncovered {
    /// Adds a permission. Returns false above the limit.
    fn add(&mut self, atom: PolicyRule) -> bool {
        let lists = [
            &atom.verbs,
            &atom.api_groups,
            &atom.resources,
            &atom.resource_names,
            &atom.non_resource_urls,
        ];
        // Each text is quoted and separated from the next one.
        let bytes = lists.into_iter().flatten().map(|text| text.len() + 3);
        self.bytes += bytes.sum::<usize>();
        if self.bytes <= SHOWN_BYTES_MAX {
            self.atoms.push(atom);
        }
        self.bytes <= SHOWN_BYTES_MAX
    }
}

/// A set of rules of the owner, by their indices.
type RuleSet = Vec<u64>;

/// Rules of the owner, by the texts in them.
struct Held<'a> {
    verbs: Index<'a>,
    groups: Index<'a>,
    resources: Index<'a>,
    names: Index<'a>,
    /// Rules for any name.
    nameless: RuleSet,
    /// Paths, with the index of their rule.
    paths: Vec<(&'a str, usize)>,
}

/// Rules by one of their lists.
struct Index<'a> {
    by_text: HashMap<&'a str, RuleSet>,
    none: RuleSet,
}

impl<'a> Index<'a> {
    fn of(rules: &'a [PolicyRule], list: impl Fn(&'a PolicyRule) -> &'a [String]) -> Self {
        let none: RuleSet = vec![0; rules.len().div_ceil(64)];
        let mut by_text = HashMap::new();
        for (nth, rule) in rules.iter().enumerate() {
            for text in list(rule) {
                let rules = by_text.entry(text.as_str()).or_insert_with(|| none.clone());
                rules[nth / 64] |= 1 << (nth % 64);
            }
        }
        Self { by_text, none }
    }

    fn exactly(&self, text: &str) -> &RuleSet {
        self.by_text.get(text).unwrap_or(&self.none)
    }

    /// Returns the rules with this text or the wildcard.
    fn covering(&self, text: &str) -> RuleSet {
        union(self.exactly(text), self.exactly(ALL))
    }
}

fn union(one: &[u64], other: &[u64]) -> RuleSet {
    one.iter().zip(other).map(|(one, other)| one | other).collect()
}

/// Returns whether no rule is in all of the sets.
fn disjoint(sets: [&RuleSet; 4]) -> bool {
    let [one, two, three, four] = sets;
    let words = one.iter().zip(two).zip(three).zip(four);
    words
        .into_iter()
        .all(|(((one, two), three), four)| one & two & three & four == 0)
}

/// Texts of a list, divided into classes that the same rules of the owner cover.
struct Classes {
    /// Class of each text.
    of: Vec<usize>,
    covering: Vec<RuleSet>,
}

impl Classes {
    fn of(texts: &[String], covering: impl Fn(&str) -> RuleSet) -> Self {
        let mut known: HashMap<RuleSet, usize> = HashMap::new();
        let mut distinct = Vec::new();
        let mut of = Vec::with_capacity(texts.len());
        for text in texts {
            let rules = covering(text);
            let class = known.get(&rules).copied().unwrap_or(distinct.len());
            if class == distinct.len() {
                distinct.push(rules.clone());
                known.insert(rules, class);
            }
            of.push(class);
        }
        Self {
            of,
            covering: distinct,
        }
    }

    /// Returns the indices of the texts whose class is one of those.
    fn select(&self, wanted: impl Fn(&RuleSet) -> bool) -> Vec<usize> {
        let wanted: Vec<bool> = self.covering.iter().map(wanted).collect();
        (0..self.of.len()).filter(|nth| wanted[self.of[*nth]]).collect()
    }

    fn any(&self, wanted: impl Fn(&RuleSet) -> bool) -> bool {
        self.covering.iter().any(wanted)
    }
}

impl<'a> Held<'a> {
    fn of(rules: &'a [PolicyRule]) -> Self {
        let mut nameless: RuleSet = vec![0; rules.len().div_ceil(64)];
        let mut paths = Vec::new();
        for (nth, rule) in rules.iter().enumerate() {
            if rule.resource_names.is_empty() {
                nameless[nth / 64] |= 1 << (nth % 64);
            }
            paths.extend(rule.non_resource_urls.iter().map(|path| (path.as_str(), nth)));
        }
        Self {
            verbs: Index::of(rules, |rule| &rule.verbs),
            groups: Index::of(rules, |rule| &rule.api_groups),
            resources: Index::of(rules, |rule| &rule.resources),
            names: Index::of(rules, |rule| &rule.resource_names),
            nameless,
            paths,
        }
    }

    /// Adds the permissions on resources that no single rule of the owner covers.
    fn compare_resources(&self, rule: &PolicyRule, uncovered: &mut Uncovered) {
        let groups = Classes::of(&rule.api_groups, |group| self.groups.covering(group));
        let resources = Classes::of(&rule.resources, |resource| {
            let known = self.resources.covering(resource);
            match resource.split_once('/') {
                Some((_, part)) => union(&known, self.resources.exactly(&format!("*/{part}"))),
                None => known,
            }
        });
        let verbs = Classes::of(&rule.verbs, |verb| self.verbs.covering(verb));
        let names = match rule.resource_names.as_slice() {
            [] => Classes {
                of: vec![0],
                covering: vec![self.nameless.clone()],
            },
            names => Classes::of(names, |name| union(&self.nameless, self.names.exactly(name))),
        };
        let mut resources_of: HashMap<usize, Vec<usize>> = HashMap::new();
        let mut verbs_of: HashMap<[usize; 2], Vec<usize>> = HashMap::new();
        let mut names_of: HashMap<[usize; 3], Vec<usize>> = HashMap::new();
        for (nth, group) in rule.api_groups.iter().enumerate() {
            let group_class = groups.of[nth];
            let by_group = &groups.covering[group_class];
            let listed = resources_of.entry(group_class).or_insert_with(|| {
                resources.select(|by_resource| {
                    verbs.any(|by_verb| {
                        names.any(|by_name| disjoint([by_group, by_resource, by_verb, by_name]))
                    })
                })
            });
            for &resource in listed.iter() {
                let pair = [group_class, resources.of[resource]];
                let by_resource = &resources.covering[pair[1]];
                let listed = verbs_of.entry(pair).or_insert_with(|| {
                    verbs.select(|by_verb| {
                        names.any(|by_name| disjoint([by_group, by_resource, by_verb, by_name]))
                    })
                });
                for &verb in listed.iter() {
                    let class = [pair[0], pair[1], verbs.of[verb]];
                    let by_verb = &verbs.covering[class[2]];
                    let listed = names_of.entry(class).or_insert_with(|| {
                        names.select(|by_name| disjoint([by_group, by_resource, by_verb, by_name]))
                    });
                    for &name in listed.iter() {
                        let atom = PolicyRule {
                            verbs: vec![rule.verbs[verb].clone()],
                            api_groups: vec![group.clone()],
                            resources: vec![rule.resources[resource].clone()],
                            resource_names: rule.resource_names.get(name).cloned().into_iter().collect(),
                            ..PolicyRule::default()
                        };
                        if !uncovered.add(atom) {
                            return;
                        }
                    }
                }
            }
        }
    }

    /// Adds the permissions on paths that no single rule of the owner covers.
    fn compare_paths(&self, rule: &PolicyRule, uncovered: &mut Uncovered) {
        let verbs = Classes::of(&rule.verbs, |verb| self.verbs.covering(verb));
        for path in &rule.non_resource_urls {
            let mut by_path = self.verbs.none.clone();
            for (known, nth) in &self.paths {
                if leads_to(known, path) {
                    by_path[nth / 64] |= 1 << (nth % 64);
                }
            }
            let listed =
                verbs.select(|by_verb| disjoint([&by_path, by_verb, &self.nameless, &self.nameless]));
            for verb in listed {
                let atom = PolicyRule {
                    verbs: vec![rule.verbs[verb].clone()],
                    non_resource_urls: vec![path.clone()],
                    ..PolicyRule::default()
                };
                if !uncovered.add(atom) {
                    return;
                }
            }
        }
    }
}

/// Joins atoms that differ only in their verb.
fn compacted(atoms: Vec<PolicyRule>) -> Vec<PolicyRule> {
    let mut compacted = Vec::new();
    let mut simple: BTreeMap<(String, String), PolicyRule> = BTreeMap::new();
    for atom in atoms {
        match (
            atom.api_groups.as_slice(),
            atom.resources.as_slice(),
            atom.resource_names.is_empty(),
        ) {
            ([group], [resource], true) => {
                let place = (group.clone(), resource.clone());
                match simple.get_mut(&place) {
                    Some(known) => known.verbs.extend(atom.verbs),
                    None => drop(simple.insert(place, atom)),
                }
            }
            (_, _, _) => compacted.push(atom),
        }
    }
    compacted.extend(simple.into_values());
    compacted
}
