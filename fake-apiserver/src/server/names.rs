//! Names of a scenario file and their values: bound when their step is met.

use std::collections::BTreeMap;

use scenario::{Expected, Ref};
use trace::record::What;

/// Value of a name.
#[derive(Debug, Clone, Default)]
pub(super) struct Binding {
    pub(super) resource_version: String,
    pub(super) continue_token: Option<String>,
}

/// Bound names.
#[derive(Debug, Default)]
pub(super) struct Names(BTreeMap<String, Binding>);

impl Names {
    /// Binds a name. Returns the record to append.
    pub(super) fn bind(&mut self, name: &str, binding: Binding) -> What {
        let bound = What::Bound {
            name: name.to_owned(),
            value: binding.resource_version.clone(),
            continue_token: binding.continue_token.clone(),
        };
        self.0.insert(name.to_owned(), binding);
        bound
    }

    /// Resolves a value; `None`: the name is not bound, or the value is no literal or reference.
    pub(super) fn expand(&self, wanted: &Expected) -> Option<String> {
        match wanted {
            Expected::Is(text) => Some(text.clone()),
            Expected::Ref(Ref::Start) => self.version("start"),
            Expected::Ref(Ref::ResourceVersion(name)) => self.version(name),
            Expected::Ref(Ref::Continue(name)) => {
                let binding = self.0.get(name);
                binding.and_then(|binding| binding.continue_token.clone())
            }
            Expected::Not(_) | Expected::Absent | Expected::Present => None,
        }
    }

    fn version(&self, name: &str) -> Option<String> {
        self.0.get(name).map(|binding| binding.resource_version.clone())
    }
}

/// Returns the binding for the name of a step whose response is this record.
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
