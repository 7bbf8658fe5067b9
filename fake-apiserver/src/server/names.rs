//! Names of a scenario file and their values: bound when their step is met.

use std::borrow::Cow;
use std::collections::BTreeMap;

use scenario::matching::Names;
use scenario::{ClientView, Expected, Ref};
use trace::record::What;

/// Value of a name.
#[derive(Debug, Clone, Default)]
pub(super) struct Binding {
    pub(super) resource_version: String,
    pub(super) continue_token: Option<String>,
}

/// Bound names.
#[derive(Debug, Default)]
pub(super) struct Bindings(BTreeMap<String, Binding>);

impl Bindings {
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
            Expected::Ref(reference) => self.value(reference).map(str::to_owned),
            Expected::Not(_) | Expected::Absent | Expected::Present => None,
        }
    }

    /// Returns the version bound to a name.
    pub(super) fn version(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|binding| binding.resource_version.as_str())
    }

    fn value(&self, reference: &Ref) -> Option<&str> {
        match reference {
            Ref::Start => self.version(START),
            Ref::ResourceVersion(name) => self.version(name),
            Ref::Continue(name) => self.0.get(name)?.continue_token.as_deref(),
        }
    }
}

/// Name of the version at which the client under test starts.
pub(super) const START: &str = "start";

/// Values of names in conditions on requests.
pub(super) struct OfRequests<'a>(pub(super) &'a Bindings, pub(super) &'a ClientView);

impl Names for OfRequests<'_> {
    fn value(&self, reference: &Ref) -> Option<Cow<'_, str>> {
        self.0.value(reference).map(Cow::Borrowed)
    }

    fn stands_for(&self, expected: &str, value: &str) -> bool {
        self.1.resumes_at(expected, value, u64::MAX)
    }
}

/// Values of names in conditions on reports.
pub(super) struct OfReports<'a>(pub(super) &'a Bindings, pub(super) &'a ClientView);

impl Names for OfReports<'_> {
    fn value(&self, reference: &Ref) -> Option<Cow<'_, str>> {
        self.0.value(reference).map(Cow::Borrowed)
    }

    fn stands_for(&self, expected: &str, value: &str) -> bool {
        self.1.rewrote(expected, value)
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
