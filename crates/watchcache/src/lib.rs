//! How a Kubernetes apiserver answers LIST and WATCH: one etcd with its revisions and compaction, watch caches that can lag
//! behind it, the decision which of them answers a read, paged lists, watches, bookmarks and streaming lists.
//!
//! Pure and clock-free: time comes in as an argument, and nothing waits. It must not know kinds, encoding, HTTP, scripts or
//! faults. An object is anything with a key ([`Object`]); what a request selects, and in which version it reads objects, is
//! a [`View`].
//!
//! - [`Storage`]: write with [`Storage::put`] and [`Storage::delete`], read with [`Storage::list`] and [`Storage::get`],
//!   and change what reads see with [`Storage::compact`], [`Storage::operate`] (freeze, lag, relist), [`Storage::restore`]
//!   and others.
//! - [`Decision`]: the table of `resourceVersion` × `resourceVersionMatch` × paging, as a function.
//! - [`Watch`]: an open watch. Poll it after every change, and when it asks to be woken.
//!
//! The README has the decision tables in full.
//!
//! ```
//! use std::time::Duration;
//!
//! use apimachinery::options::RequestedVersion;
//! use watchcache::{
//!     Lookup, Frame, ListOptions, Object, Poll, Read, Replica, Settings, Storage, Watch, WatchOptions,
//! };
//!
//! /// One version of a word in a dictionary.
//! #[derive(Debug, Clone)]
//! struct Word {
//!     key: String,
//!     meaning: &'static str,
//! }
//!
//! impl Object for Word {
//!     fn key(&self) -> &str {
//!         &self.key
//!     }
//!     fn at_revision(&self, _revision: u64) -> Self {
//!         self.clone()
//!     }
//!     fn weight(&self) -> usize {
//!         self.key.len() + self.meaning.len()
//!     }
//! }
//!
//! let word = |key: &str, meaning| Word { key: key.to_owned(), meaning };
//! let any = |_: &Word| true;
//! let now = Duration::ZERO;
//!
//! let mut storage: Storage<Word> = Storage::new(&Settings::default());
//! let words = storage.add_resource("words", true);
//! storage.put(now, words, |_| word("en/list", "a state"));
//! storage.put(now, words, |_| word("en/watch", "a stream of changes"));
//!
//! // LIST in pages of one. The second page shows the revision of the first, despite writes in between.
//! let read = Read { resource: words, replica: Replica::FIRST, arrived: now };
//! let one = ListOptions { limit: Some(1), ..ListOptions::default() };
//! let Lookup::Found(first) = storage.list(now, read, &one, &any) else { panic!() };
//! assert_eq!((first.revision, first.items[0].key()), (3, "en/list"));
//! assert_eq!(first.remaining, Some(1));
//! let last = storage.put(now, words, |_| word("en/relist", "what follows a 410"));
//! let next = ListOptions { continue_token: first.continue_token, ..one };
//! let Lookup::Found(second) = storage.list(now, read, &next, &any) else { panic!() };
//! assert_eq!((second.revision, second.items[0].key()), (3, "en/watch"));
//! assert_eq!(second.continue_token, None);
//!
//! // WATCH from the revision of that list: the write in between is the first event.
//! let from = WatchOptions { resource_version: RequestedVersion::At(3), ..WatchOptions::default() };
//! let mut watch = Watch::open(&storage, now, words, Replica::FIRST, &from, &any);
//! storage.delete(now, words, &last);
//! let mut seen = Vec::new();
//! while let Poll::Send(frame) = watch.poll(&storage, now, &any) {
//!     let key = frame.object().map(|object| object.key.clone());
//!     seen.push((frame.word(), key.unwrap_or_default()));
//! }
//! assert_eq!(seen, [("ADDED", "en/relist".to_owned()), ("DELETED", "en/relist".to_owned())]);
//!
//! // After compaction, revision 3 is too old for a new watch. The open one is unaffected.
//! storage.compact();
//! let mut late = Watch::open(&storage, now, words, Replica::FIRST, &from, &any);
//! let Poll::Send(Frame::Error(status)) = late.poll(&storage, now, &any) else { panic!() };
//! assert_eq!(status.message, "too old resource version: 3 (5)");
//! assert!(matches!(watch.poll(&storage, now, &any), Poll::Pending { .. }));
//! ```

mod cache;
mod decision;
mod event;
mod list;
mod object;
mod operations;
mod storage;
mod store;
mod watch;

#[cfg(test)]
mod tests;

pub use decision::{Decision, ListOptions, Source, Wanted};
pub use event::{Change, Event};
pub use list::{FRESH_WAIT, Lookup, Page, Read};
pub use object::{Object, View};
pub use operations::{RestoreError, WatchCacheOp};
pub use storage::{Replica, ResourceId, Settings, Storage};
pub use store::{Objects, range};
pub use watch::{Frame, Poll, Watch, WatchOptions};
