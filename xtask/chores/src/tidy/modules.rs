//! Import order: which crate of the project may import which, the order of the parts of a crate, and no import cycles
//! of more than two files.
//!
//! Files are parsed with `syn`, so that comments and strings do not count; tests may import anything. A file and the
//! files below it belong together: a parent names its children, and these its items.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use syn::visit::Visit;

/// Crates in import order: each imports only crates before it.
pub(super) const ORDER: [(&str, &str); 16] = [
    ("apimachinery", "crates/apimachinery"),
    ("trace", "crates/trace"),
    ("watchcache", "crates/watchcache"),
    ("private-files", "crates/private-files"),
    ("builtin-kinds", "crates/builtin-kinds"),
    ("scenario", "crates/scenario"),
    ("fake-apiserver", "fake-apiserver"),
    ("judge", "crates/judge"),
    ("recording", "crates/recording"),
    ("fake-apiserver-testing", "crates/testing"),
    ("conformance", "crates/conformance"),
    ("report", "crates/report"),
    ("upstream", "crates/upstream"),
    ("fake-apiserver-cli", "crates/command"),
    ("sweep", "crates/sweep"),
    ("watcher", "watcher"),
];

/// Parts of crates in import order: each imports only parts of its crate before it.
const PARTS: [(&str, &[&str]); 1] = [(
    "fake-apiserver",
    &["api", "model", "upstream", "apiserver", "script", "server", "net"],
)];

/// Path of a module; empty: the root of the crate.
type Module = Vec<String>;

/// Returns violations in one crate: one line per import against the order of parts, and one per cycle.
///
/// # Errors
/// A file cannot be read or parsed.
pub(super) fn wrong(name: &str, folder: &str) -> Result<Vec<String>, String> {
    let mut sources = BTreeMap::new();
    gather(&Path::new(folder).join("src"), &mut Vec::new(), &mut sources)?;
    let edges = imports(&sources)?;
    let parts = PARTS.iter().find(|(of, _)| *of == name);
    let against = parts.map_or_else(Vec::new, |(_, parts)| against_order(&edges, parts));
    let against = against.into_iter().map(|(from, to)| {
        let (from, to) = (from.join("::"), to.join("::"));
        format!("{name}: {from} must not import {to}, which is after it in the order of parts")
    });
    let circles = found(&edges).into_iter().map(|circle| {
        let files: Vec<String> = circle.iter().map(|module| module.join("::")).collect();
        format!("{name}: import cycle: {}", files.join(", "))
    });
    Ok(against.chain(circles).collect())
}

/// Returns the imports of a part from one after it.
fn against_order<'e>(
    edges: &'e BTreeMap<Module, BTreeSet<Module>>,
    parts: &[&str],
) -> Vec<(&'e Module, &'e Module)> {
    let place = |module: &Module| {
        parts
            .iter()
            .position(|part| module.first().is_some_and(|first| first == part))
    };
    edges
        .iter()
        .flat_map(|(from, imported)| imported.iter().map(move |to| (from, to)))
        .filter(|(from, to)| place(from).zip(place(to)).is_some_and(|(from, to)| from < to))
        .collect()
}

/// Reads the sources of a crate by module, without files of tests.
fn gather(folder: &Path, at: &mut Module, sources: &mut BTreeMap<Module, String>) -> Result<(), String> {
    let in_folder = |problem: std::io::Error| format!("{}: {problem}", folder.display());
    for entry in folder.read_dir().map_err(in_folder)? {
        let path = entry.map_err(in_folder)?.path();
        let Some(stem) = path.file_stem().and_then(|stem| stem.to_str()) else {
            continue;
        };
        if stem == "tests" {
            continue;
        }
        if path.is_dir() {
            at.push(stem.to_owned());
            gather(&path, at, sources)?;
            at.pop();
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let mut module = at.clone();
            if !(at.is_empty() && matches!(stem, "lib" | "main")) {
                module.push(stem.to_owned());
            }
            let text =
                std::fs::read_to_string(&path).map_err(|problem| format!("{}: {problem}", path.display()))?;
            sources.insert(module, text);
        }
    }
    Ok(())
}

/// Returns the imports of each module, except of itself, its parents and its children.
fn imports(sources: &BTreeMap<Module, String>) -> Result<BTreeMap<Module, BTreeSet<Module>>, String> {
    let mut edges = BTreeMap::new();
    for (module, text) in sources {
        let file = syn::parse_file(text).map_err(|problem| format!("{}: {problem}", module.join("::")))?;
        let mut paths = Paths::default();
        paths.visit_file(&file);
        let targets = paths.found.iter().filter_map(|path| {
            let absolute = resolved(module, path)?;
            let known = (0..=absolute.len()).rev().map(|length| &absolute[..length]);
            let target = known.into_iter().find(|target| sources.contains_key(*target))?;
            let related = target.starts_with(module) || module.starts_with(target);
            (!related).then(|| target.to_vec())
        });
        edges.insert(module.clone(), targets.collect());
    }
    Ok(edges)
}

/// Resolves a path from the root of the crate; `None`: it leaves the crate.
fn resolved(module: &[String], path: &[String]) -> Option<Module> {
    let mut at = match path.first()?.as_str() {
        "crate" => return Some(path[1..].to_vec()),
        "self" => return Some([module, &path[1..]].concat()),
        "super" => module.to_vec(),
        _ => return None,
    };
    let ups = path.iter().take_while(|segment| *segment == "super").count();
    for _ in 0..ups {
        at.pop()?;
    }
    at.extend_from_slice(&path[ups..]);
    Some(at)
}

/// Paths in a file, without those in its tests.
#[derive(Default)]
struct Paths {
    found: Vec<Vec<String>>,
    prefix: Vec<String>,
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if item.content.is_some()
            && item
                .attrs
                .iter()
                .any(|attribute| attribute.path().is_ident("cfg"))
        {
            return;
        }
        syn::visit::visit_item_mod(self, item);
    }

    fn visit_use_path(&mut self, path: &'ast syn::UsePath) {
        self.prefix.push(path.ident.to_string());
        self.visit_use_tree(&path.tree);
        self.prefix.pop();
    }

    fn visit_use_name(&mut self, name: &'ast syn::UseName) {
        let mut path = self.prefix.clone();
        if name.ident != "self" {
            path.push(name.ident.to_string());
        }
        self.found.push(path);
    }

    fn visit_use_rename(&mut self, name: &'ast syn::UseRename) {
        let mut path = self.prefix.clone();
        path.push(name.ident.to_string());
        self.found.push(path);
    }

    fn visit_use_glob(&mut self, _glob: &'ast syn::UseGlob) {
        self.found.push(self.prefix.clone());
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments = path.segments.iter().map(|segment| segment.ident.to_string());
        self.found.push(segments.collect());
        syn::visit::visit_path(self, path);
    }
}

/// Returns cycles of more than two modules.
fn found(edges: &BTreeMap<Module, BTreeSet<Module>>) -> Vec<BTreeSet<Module>> {
    let reached: BTreeMap<&Module, BTreeSet<&Module>> = edges
        .keys()
        .map(|from| {
            let mut reached = BTreeSet::new();
            let mut next: Vec<&Module> = edges[from].iter().collect();
            while let Some(module) = next.pop() {
                if reached.insert(module) {
                    next.extend(edges.get(module).into_iter().flatten());
                }
            }
            (from, reached)
        })
        .collect();
    let circles: BTreeSet<BTreeSet<Module>> = reached
        .iter()
        .map(|(from, there)| {
            let back = there
                .iter()
                .filter(|module| reached.get(**module).is_some_and(|back| back.contains(*from)));
            back.map(|module| (*module).clone()).collect::<BTreeSet<Module>>()
        })
        .filter(|circle| circle.len() > 2)
        .collect();
    circles.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(files: &[(&str, &str)]) -> BTreeMap<Module, String> {
        let module = |name: &str| {
            name.split("::")
                .filter(|part| !part.is_empty())
                .map(str::to_owned)
                .collect()
        };
        files
            .iter()
            .map(|(name, text)| (module(name), (*text).to_owned()))
            .collect()
    }

    fn circles_of(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let edges = imports(&sources(files)).expect("Rust");
        found(&edges)
            .into_iter()
            .map(|circle| circle.iter().map(|module| module.join("::")).collect())
            .collect()
    }

    #[test]
    fn a_cycle_of_three_is_found_however_it_is_written() {
        let files = [
            ("", "mod a; mod b; mod c;"),
            ("a", "use super::{b::{self, One}, d};"),
            ("b", "fn two() -> crate::c::Two { crate::c::two() }"),
            ("c", "use crate::a::Three as Other;"),
        ];
        assert_eq!(circles_of(&files), [["a", "b", "c"]]);
    }

    #[test]
    fn an_import_against_the_order_of_parts_is_found() {
        let files = [
            ("", "mod low; mod high; mod other;"),
            ("low::part", "use crate::high::One; use crate::other::Two;"),
            ("high", "use crate::low::Three;"),
            ("other", "use crate::high::Four;"),
        ];
        let edges = imports(&sources(&files)).expect("Rust");
        let against: Vec<String> = against_order(&edges, &["low", "high"])
            .into_iter()
            .map(|(from, to)| format!("{} {}", from.join("::"), to.join("::")))
            .collect();
        assert_eq!(against, ["low::part high"]);
    }

    #[test]
    fn two_files_and_families_may_import_each_other() {
        let files = [
            ("", "mod a; mod b;"),
            ("a", "mod low; use super::b::One; use low::Two;"),
            ("a::low", "use super::Three; use crate::b::One;"),
            ("b", "use crate::a::Three;"),
        ];
        assert_eq!(circles_of(&files), Vec::<Vec<String>>::new());
    }

    #[test]
    fn tests_comments_and_strings_import_nothing() {
        let files = [
            ("", ""),
            ("a", "use super::b::One;"),
            ("b", "use super::c::One;"),
            (
                "c",
                "// use super::a::One;\nconst C: &str = \"use super::a::One;\";\n#[cfg(test)]\nmod tests { use crate::a::One; }",
            ),
        ];
        assert_eq!(circles_of(&files), Vec::<Vec<String>>::new());
    }
}
