//! The cache of a consumer of the reported events: `init` … `init_done` replaces it, `apply` and `delete` change it.
//!
//! Used for all clients, since not every client has a cache.

use std::collections::BTreeMap;

use ::trace::report::Report;

use crate::trace::Reported;

/// Content of the cache for one object: the report that set it.
pub type Entry<'t, 'a> = &'t Reported<'a>;

/// The cache.
#[derive(Debug, Default)]
pub struct Cache<'t, 'a> {
    live: BTreeMap<&'t str, Entry<'t, 'a>>,
    pending: Option<BTreeMap<&'t str, Entry<'t, 'a>>>,
    synced: bool,
}

impl<'t, 'a> Cache<'t, 'a> {
    /// Returns the cache after `reports`.
    pub fn after(reports: impl IntoIterator<Item = &'t Reported<'a>>) -> Self
    where
        'a: 't,
    {
        let mut cache = Self::default();
        for reported in reports {
            cache.take(reported);
        }
        cache
    }

    /// Applies the next report.
    pub fn take(&mut self, reported: &'t Reported<'a>) {
        let key = reported.key.as_str();
        match reported.report {
            Report::Init => self.pending = Some(BTreeMap::new()),
            Report::InitApply(_) => {
                self.pending.get_or_insert_default().insert(key, reported);
            }
            Report::InitDone => {
                self.live = self.pending.take().unwrap_or_default();
                self.synced = true;
            }
            Report::Apply(_) => {
                self.live.insert(key, reported);
            }
            Report::Delete(_) => {
                self.live.remove(key);
            }
            Report::Error { .. } | Report::Ended | Report::Crashed { .. } => {}
        }
    }

    /// Returns the objects visible to readers, by key.
    pub fn live(&self) -> &BTreeMap<&'t str, Entry<'t, 'a>> {
        &self.live
    }

    /// Returns true during a relist: after `init`, before `init_done`.
    pub fn relisting(&self) -> bool {
        self.pending.is_some()
    }

    /// Returns true after the first `init_done`.
    pub fn synced(&self) -> bool {
        self.synced
    }
}
