//! Snapshots: the objects of a real cluster in files, written by `fake-apiserver snapshot` and served by `serve --from`.

#[cfg(feature = "proxy")]
mod choice;
mod format;
#[cfg(feature = "proxy")]
mod listing;
mod load;
#[cfg(feature = "proxy")]
mod take;
#[cfg(feature = "proxy")]
mod target;

pub(crate) use load::{Wanted, load};
#[cfg(feature = "proxy")]
pub(crate) use take::{SnapshotArguments, run};
