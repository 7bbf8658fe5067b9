//! The cache a consumer of the reported events would hold: `init` … `init_done` replaces it, `apply` and `delete`
//! change it.
//!
//! Clients that keep no cache of their own are judged by this fold of what they said.

use std::collections::BTreeMap;

use ::trace::report::Report;

use crate::trace::Reported;

/// What the folded cache holds of one object: the report that put it there.
pub type Entry<'t, 'a> = &'t Reported<'a>;

/// The fold.
#[derive(Debug, Default)]
pub struct Cache<'t, 'a> {
    live: BTreeMap<&'t str, Entry<'t, 'a>>,
    pending: Option<BTreeMap<&'t str, Entry<'t, 'a>>>,
    synced: bool,
}

impl<'t, 'a> Cache<'t, 'a> {
    /// The cache after all of `reports`.
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

    /// Takes in the next report.
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

    /// What a reader sees, by key.
    pub fn live(&self) -> &BTreeMap<&'t str, Entry<'t, 'a>> {
        &self.live
    }

    /// A relist is under way: `init` came, `init_done` did not.
    pub fn relisting(&self) -> bool {
        self.pending.is_some()
    }

    /// Was there ever an `init_done`?
    pub fn synced(&self) -> bool {
        self.synced
    }
}
