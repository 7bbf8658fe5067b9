//! Which scenarios are played: ids or their beginnings as paths for `fake-apiserver run`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fake_apiserver::scenario::{self, ScenarioFile};

/// Folder of the scenarios in the repository.
const FOLDER: &str = "scenarios";

/// Scenarios to play.
#[derive(Debug)]
pub(crate) struct Selection {
    /// Files and folders, below the repository.
    pub(crate) paths: Vec<PathBuf>,
    /// Ids of the scenarios in them.
    pub(crate) ids: BTreeSet<String>,
    /// Whether these are all scenarios.
    pub(crate) is_all: bool,
}

/// Returns the ids of all scenarios.
///
/// # Errors
///
/// There are none.
pub(crate) fn ids(root: &Path) -> Result<BTreeSet<String>, String> {
    let folder = root.join(FOLDER);
    let (files, _) = scenario::find(std::slice::from_ref(&folder));
    let id = |file: &ScenarioFile| {
        let below = file.path.strip_prefix(&file.root).ok()?;
        Some(below.with_extension("").to_str()?.to_owned())
    };
    let ids: BTreeSet<String> = files.iter().filter_map(id).collect();
    match ids.is_empty() {
        true => Err(format!("{} has no scenarios", folder.display())),
        false => Ok(ids),
    }
}

impl Selection {
    /// Selects scenarios whose ids begin with one of the prefixes; all without prefixes. Whole groups are selected as folders,
    /// in which `run` skips scenarios that take minutes.
    ///
    /// # Errors
    ///
    /// No id begins with a prefix.
    pub(crate) fn of(all: &BTreeSet<String>, prefixes: &[String]) -> Result<Self, String> {
        if prefixes.is_empty() {
            return Ok(Self {
                paths: vec![PathBuf::from(FOLDER)],
                ids: all.clone(),
                is_all: true,
            });
        }
        let mut selection = Self {
            paths: Vec::new(),
            ids: BTreeSet::new(),
            is_all: false,
        };
        let groups: BTreeSet<&str> = all.iter().filter_map(|id| id.split('/').next()).collect();
        for prefix in prefixes {
            let of: Vec<&String> = all.iter().filter(|id| id.starts_with(prefix.as_str())).collect();
            if of.is_empty() {
                let candidates = groups.iter().copied().chain(all.iter().map(String::as_str));
                let hint = match scenario::nearest(prefix, candidates) {
                    Some(near) => format!("; did you mean {near}?"),
                    None => String::new(),
                };
                return Err(format!("no scenario begins with {prefix}{hint}"));
            }
            let folder = prefix.trim_end_matches('/');
            if groups.contains(folder) {
                selection.paths.push(Path::new(FOLDER).join(folder));
                let of_group = |id: &&&String| id.split('/').next() == Some(folder);
                selection
                    .ids
                    .extend(of.iter().filter(of_group).map(|id| (*id).clone()));
            } else {
                let file = |id: &&String| Path::new(FOLDER).join(format!("{id}.yaml"));
                selection.paths.extend(of.iter().map(file));
                selection.ids.extend(of.into_iter().cloned());
            }
        }
        Ok(selection)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selected(prefixes: &[&str]) -> Result<(Vec<String>, Vec<String>), String> {
        let all = ["conn/reset", "conn/torn", "contract-list/a", "gone/expired"];
        let all = all.iter().map(|id| (*id).to_owned()).collect();
        let prefixes: Vec<String> = prefixes.iter().map(|prefix| (*prefix).to_owned()).collect();
        let selection = Selection::of(&all, &prefixes)?;
        let paths = selection.paths.iter().map(|path| path.display().to_string());
        Ok((paths.collect(), selection.ids.into_iter().collect()))
    }

    #[test]
    fn groups_are_folders_and_other_prefixes_files() {
        let (paths, ids) = selected(&["conn", "gone/e"]).unwrap();
        assert_eq!(paths, ["scenarios/conn", "scenarios/gone/expired.yaml"]);
        assert_eq!(ids, ["conn/reset", "conn/torn", "gone/expired"]);
        let (paths, ids) = selected(&[]).unwrap();
        assert_eq!(
            (paths.as_slice(), ids.len()),
            (["scenarios".to_owned()].as_slice(), 4)
        );
    }

    #[test]
    fn an_unknown_prefix_has_a_similar_id() {
        assert_eq!(
            selected(&["gonne"]).unwrap_err(),
            "no scenario begins with gonne; did you mean gone?"
        );
        assert_eq!(
            selected(&["gone/expierd"]).unwrap_err(),
            "no scenario begins with gone/expierd; did you mean gone/expired?"
        );
    }

    #[test]
    fn the_scenarios_of_this_repository_have_ids() {
        assert!(ids(&crate::clients::root()).unwrap().len() > 100);
    }
}
