//! Kinds that a scenario file may use: those served by the fake, and those of the file's own
//! CustomResourceDefinitions. Defined by the model's catalog.

use std::sync::LazyLock;

use apimachinery::Version;
use apimachinery::kind::KindRef;
use builtin_kinds::catalog::Catalog;
use builtin_kinds::crd;
use serde_json::Value;

/// Calls a macro with the kinds that have a short form, by kubectl's singular names, and their documentation.
macro_rules! short_kinds {
    ($of:ident) => {
        $of! {
            /// A ConfigMap.
            configmap,
            /// A Secret; `data` is written verbatim (base64).
            secret,
            /// A Pod.
            pod,
            /// A Service.
            service,
            /// A Namespace (cluster-scoped).
            namespace,
            /// A Node (cluster-scoped).
            node,
            /// An Event (the object, of the core group).
            event,
            /// A Deployment (apps/v1).
            deployment,
            /// A Job (batch/v1).
            job,
            /// A Lease (coordination.k8s.io/v1).
            lease,
            /// A Widget, the custom resource of group probe.example.com.
            widget,
        }
    };
}

macro_rules! words {
    ($($(#[$attribute:meta])* $kind:ident,)+) => {
        &[$(stringify!($kind)),+]
    };
}

pub(crate) use short_kinds;

/// The words of the short forms.
pub(crate) const SHORT_WORDS: &[&str] = short_kinds!(words);

/// The kinds available to one file.
#[derive(Debug)]
pub(crate) struct Kinds {
    catalog: Catalog,
    /// CustomResourceDefinitions of the file, with accepted names.
    definitions: Vec<Value>,
}

impl Default for Kinds {
    fn default() -> Self {
        static CATALOG: LazyLock<Catalog> = LazyLock::new(|| Catalog::of_scenarios(Version::NEWEST));
        Self::of(&CATALOG)
    }
}

impl Kinds {
    /// Creates the kinds that a server serves.
    pub(crate) fn of(served: &Catalog) -> Self {
        Self {
            catalog: served.clone(),
            definitions: Vec::new(),
        }
    }

    /// Adds the kind of a CustomResourceDefinition.
    ///
    /// # Errors
    /// The validation errors of the definition, as the server reports them.
    pub(crate) fn define(&mut self, manifest: &Value) -> Result<(), Vec<String>> {
        let (accepted, rows) = crd::established(manifest, &self.definitions)?;
        if let Some(kind) = rows.first() {
            self.catalog.define(&kind.group, &kind.plural, &rows);
        }
        self.definitions.push(accepted);
        Ok(())
    }

    /// Returns all kinds.
    pub(crate) fn all(&self) -> &[KindRef] {
        self.catalog.kinds()
    }

    /// Returns the kind of this group and plural, in its storage version.
    pub(crate) fn find(&self, group: &str, plural: &str) -> Option<KindRef> {
        self.catalog.find(group, plural).cloned()
    }

    /// Returns the kind of a target's resource (`configmaps`, `widgets.probe.example.com`); for a custom resource in
    /// its storage version.
    pub(crate) fn by_resource(&self, resource: &str) -> Option<KindRef> {
        let is_named = |kind: &KindRef| {
            let rest = resource.strip_prefix(&*kind.plural);
            rest.is_some_and(|rest| match kind.group.is_empty() {
                true => rest.is_empty(),
                false => rest.strip_prefix('.').is_some_and(|group| group == kind.group),
            })
        };
        let mut named = self.all().iter().filter(|kind| is_named(kind));
        let first = named.clone().next();
        let stored = named.find(|kind| !kind.custom || kind.shows.is_none());
        stored.or(first).cloned()
    }

    /// Returns the kind of a manifest.
    pub(crate) fn by_api_version(&self, api_version: &str, kind: &str) -> Option<KindRef> {
        self.catalog.find_kind(api_version, kind).cloned()
    }

    /// Returns the kind of a short form.
    pub(crate) fn by_word(&self, word: &str) -> Option<KindRef> {
        let known = SHORT_WORDS.contains(&word);
        let mut kinds = self.all().iter();
        kinds.find(|kind| known && kind.singular == word).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_a_kind() {
        let kinds = Kinds::default();
        for word in SHORT_WORDS {
            assert!(kinds.by_word(word).is_some(), "{word}");
        }
    }
}
