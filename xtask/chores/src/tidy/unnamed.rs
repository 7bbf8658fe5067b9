//! Source files that no module names: they are never compiled, so mistakes in them stay unnoticed.
//!
//! Files are parsed with `syn`. Output of macros is not seen.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use syn::visit::Visit;

/// Returns the files not reached from `roots`, the first files of the targets.
///
/// # Errors
/// A file cannot be parsed.
pub(super) fn found(roots: &[PathBuf], files: &BTreeMap<PathBuf, String>) -> Result<Vec<PathBuf>, String> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<PathBuf> = roots.to_vec();
    while let Some(path) = next.pop() {
        let Some(text) = files.get(&path).filter(|_| reached.insert(path.clone())) else {
            continue;
        };
        let file = syn::parse_file(text).map_err(|problem| format!("{}: {problem}", path.display()))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let stem = path.file_stem().unwrap_or_default();
        let below = if roots.contains(&path) || stem == "mod" {
            folder.to_owned()
        } else {
            folder.join(stem)
        };
        let mut named = Named {
            folder,
            below,
            found: Vec::new(),
        };
        named.visit_file(&file);
        next.append(&mut named.found);
    }
    Ok(files
        .keys()
        .filter(|file| !reached.contains(*file))
        .cloned()
        .collect())
}

/// Files named by a file.
struct Named<'p> {
    /// Folder of the file.
    folder: &'p Path,
    /// Folder of its modules.
    below: PathBuf,
    found: Vec<PathBuf>,
}

impl<'ast> Visit<'ast> for Named<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        let name = item.ident.to_string();
        let given = item.attrs.iter().find_map(|attribute| match &attribute.meta {
            syn::Meta::NameValue(pair) if pair.path.is_ident("path") => text_of(&pair.value),
            syn::Meta::NameValue(_) | syn::Meta::Path(_) | syn::Meta::List(_) => None,
        });
        if item.content.is_some() {
            let below = self.below.join(&name);
            let outside = std::mem::replace(&mut self.below, below);
            syn::visit::visit_item_mod(self, item);
            self.below = outside;
        } else if let Some(given) = given {
            self.found.push(plain(&self.folder.join(given)));
        } else {
            self.found.push(self.below.join(format!("{name}.rs")));
            self.found.push(self.below.join(name).join("mod.rs"));
        }
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        if called.path.is_ident("include")
            && let Ok(given) = called.parse_body::<syn::LitStr>()
        {
            self.found.push(plain(&self.folder.join(given.value())));
        }
    }
}

fn text_of(value: &syn::Expr) -> Option<String> {
    let syn::Expr::Lit(literal) = value else {
        return None;
    };
    if let syn::Lit::Str(text) = &literal.lit {
        Some(text.value())
    } else {
        None
    }
}

/// Returns the path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unnamed(files: &[(&str, &str)]) -> Vec<String> {
        let files = files
            .iter()
            .map(|(path, text)| (PathBuf::from(path), (*text).to_owned()))
            .collect();
        let found = found(&[PathBuf::from("src/lib.rs")], &files).expect("Rust");
        found.iter().map(|path| path.display().to_string()).collect()
    }

    #[test]
    fn a_file_that_no_module_names_is_found() {
        let files = [
            ("src/lib.rs", "mod a; // mod b;"),
            ("src/a.rs", "mod c;"),
            ("src/a/c.rs", ""),
            ("src/b.rs", "mod d;"),
            ("src/b/d.rs", ""),
        ];
        assert_eq!(unnamed(&files), ["src/b/d.rs", "src/b.rs"]);
    }

    #[test]
    fn every_way_to_name_a_file_counts() {
        let files = [
            (
                "src/lib.rs",
                "mod a; mod inline { mod b; } #[cfg(test)] mod tests; #[path = \"../other/c.rs\"] mod c;",
            ),
            ("src/a/mod.rs", "mod d; fn text() { include!(\"e.rs\"); }"),
            ("src/a/d.rs", ""),
            ("src/a/e.rs", ""),
            ("src/inline/b.rs", ""),
            ("src/tests.rs", ""),
            ("other/c.rs", ""),
        ];
        assert_eq!(unnamed(&files), Vec::<String>::new());
    }
}
