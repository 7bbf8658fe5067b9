//! What the names of a scenario file stand for: bound when their step was met, looked up when a value is wanted.
//!
//! It must not know where the values come from beyond the record that carries them.

use std::collections::BTreeMap;
use std::time::Duration;

use scenario::{Expected, Ref};
use trace::record::What;

use super::Server;

/// What a name of the scenario file stands for.
#[derive(Debug, Clone, Default)]
pub(super) struct Binding {
    pub(super) resource_version: String,
    pub(super) continue_token: Option<String>,
}

impl Server {
    pub(super) fn bind(&mut self, now: Duration, name: &str, binding: Binding) {
        self.log.push(
            now,
            What::Bound {
                name: name.to_owned(),
                value: binding.resource_version.clone(),
                continue_token: binding.continue_token.clone(),
            },
        );
        self.bindings.insert(name.to_owned(), binding);
    }
}

pub(super) fn expand(bindings: &BTreeMap<String, Binding>, wanted: &Expected) -> Option<String> {
    match wanted {
        Expected::Is(text) => Some(text.clone()),
        Expected::Ref(Ref::Start) => bindings
            .get("start")
            .map(|binding| binding.resource_version.clone()),
        Expected::Ref(Ref::ResourceVersion(name)) => {
            bindings.get(name).map(|binding| binding.resource_version.clone())
        }
        Expected::Ref(Ref::Continue(name)) => bindings
            .get(name)
            .and_then(|binding| binding.continue_token.clone()),
        Expected::Not(_) | Expected::Absent | Expected::Present => None,
    }
}

pub(super) fn binding_of(what: &What) -> Option<Binding> {
    if let What::Page {
        resource_version,
        continue_token,
        ..
    } = what
    {
        let continue_token = Some(continue_token.clone()).filter(|token| !token.is_empty());
        return Some(Binding {
            resource_version: resource_version.clone(),
            continue_token,
        });
    }
    let What::Body { continue_token, .. } = what else {
        return None;
    };
    Some(Binding {
        resource_version: String::new(),
        continue_token: continue_token.clone(),
    })
}
