//! Stands where `fake_apiserver::scenario::{load, json_schema, Style}` will stand. Every file is refused, so nothing can
//! be taken for tested; delete this file and turn `pending::` into `fake_apiserver::scenario::` once the parser is in.

use std::path::{Path, PathBuf};

use fake_apiserver::scenario::Scenario;

pub(crate) struct LoadErrors(PathBuf);

#[derive(Clone, Copy)]
pub(crate) struct Style;

impl Style {
    pub(crate) fn for_stderr() -> Self {
        Self
    }
}

impl LoadErrors {
    pub(crate) fn render(&self, _style: Style) -> String {
        format!("{}: there is no parser yet", self.0.display())
    }
}

pub(crate) fn load(path: &Path, _root: &Path) -> Result<Scenario, LoadErrors> {
    Err(LoadErrors(path.to_owned()))
}

pub(crate) fn json_schema() -> String {
    "{}\n".to_owned()
}
