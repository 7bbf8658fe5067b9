//! The I/O driver: sends the requests of the [`machine`](crate::machine) with a `kube_client::Client` and passes it
//! the responses. The only module that waits; leaves every decision to the machine.

mod link;
mod one;

use std::collections::VecDeque;
use std::fmt::Debug;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::{Stream, StreamExt};
use kube_client::Api;
use kube_core::Resource;
use kube_core::metadata::PartialObjectMeta;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, Sleep};

use self::link::{Link, Read, Target};
use self::one::One;
use crate::config::Config;
use crate::decode::{self, Codec, Kinds};
use crate::error::Error;
use crate::event::Event;
use crate::lazy::{self, Lazy};
use crate::machine::{Identify, Input, Machine, Output};
use crate::object;
use crate::progress::Progress;
use crate::reflector::Writer;

/// Watches a collection: snapshots, changes, and recovery from failed watches.
///
/// Returns the events in the server's order, and each error it recovers from. The stream never ends. Dropping it
/// cancels the current request. It must be polled inside a tokio runtime with time enabled, and makes no progress
/// while it is not polled.
pub fn watcher<K>(api: Api<K>, config: Config) -> Watcher<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let (target, codec) = (
        Target::new(&api, K::metadata_api()),
        codec(&config, K::metadata_api()),
    );
    Watcher::new(api.into_client(), target, config, codec, object::identity)
}

/// Like [`watcher()`], but requests only metadata.
///
/// If the server returns full objects instead, everything but the metadata is dropped.
pub fn metadata_watcher<K>(api: Api<K>, config: Config) -> Watcher<PartialObjectMeta<K>>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let (target, codec) = (Target::new(&api, true), Codec::metadata(config.prune.clone()));
    Watcher::new(api.into_client(), target, config, codec, object::identity)
}

/// Like [`watcher()`], but objects are decoded on access: see [`Lazy`].
pub fn lazy_watcher<K>(api: Api<K>, config: Config) -> Watcher<Lazy<K>>
where
    K: Resource + DeserializeOwned + Send + 'static,
{
    let codec = lazy::codec(config.prune.clone());
    let target = Target::new(&api, K::metadata_api());
    Watcher::new(api.into_client(), target, config, codec, Lazy::identity)
}

/// Like [`lazy_watcher()`], but the text of each object is compressed against that of the first one: a store takes a
/// small part of the JSON's size, and decoding takes slightly longer.
#[cfg(feature = "compress")]
pub fn packed_watcher<K>(api: Api<K>, config: Config) -> Watcher<Lazy<K>>
where
    K: Resource + DeserializeOwned + Send + 'static,
{
    let codec = lazy::packed_codec(config.prune.clone());
    let target = Target::new(&api, K::metadata_api());
    Watcher::new(api.into_client(), target, config, codec, Lazy::identity)
}

/// Like [`watcher()`], but also applies the events to a store. Objects of a relist that are unchanged, by uid and
/// resourceVersion, are not decoded again: the event contains the object of the store.
pub fn store_watcher<K>(
    api: Api<K>,
    config: Config,
    mut writer: Writer<K>,
) -> impl Stream<Item = Result<Event<Arc<K>>, Error>> + Send + 'static
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    let target = Target::new(&api, K::metadata_api());
    let (decode, store) = (codec::<K>(&config, K::metadata_api()), writer.as_reader());
    let shared = Codec::new(move |json| {
        let known = decode::identity(json).and_then(|id| store.same(&id));
        match known {
            Some(object) => Ok(object),
            // Decoded lists and strings have spare capacity; a clone, which is kept, has none.
            None => decode.decode(json).map(|object| Arc::new(object.clone())),
        }
    });
    let watcher = Watcher::new(api.into_client(), target, config, shared, |object: &Arc<K>| {
        object::identity(&**object)
    });
    writer.follow(watcher.progress());
    watcher.inspect(move |event| {
        if let Ok(event) = event {
            writer.apply_shared(event.clone());
        }
    })
}

fn codec<K: DeserializeOwned + 'static>(config: &Config, metadata_only: bool) -> Codec<K> {
    let prune = config.prune.clone();
    // Some servers send full objects anyway.
    Codec::typed(if metadata_only {
        prune.all_but(&["apiVersion", "kind", "metadata"])
    } else {
        prune
    })
}

/// Watches one object: `Some` whenever it was added or changed, `None` when it is known not to exist.
///
/// If an `Api` of all namespaces finds the name in several of them, the first is followed until it is deleted, and
/// each event of another is [`Error::SeveralObjects`]: use a namespaced `Api`. Objects of other names, from a server
/// that ignores field selectors, are dropped.
pub fn watch_object<K>(
    api: Api<K>,
    name: &str,
) -> impl Stream<Item = Result<Option<K>, Error>> + Send + 'static
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    watch_object_with(api, name, Config::default())
}

/// Like [`watch_object`], with options; their field selector is replaced.
pub fn watch_object_with<K>(
    api: Api<K>,
    name: &str,
    config: Config,
) -> impl Stream<Item = Result<Option<K>, Error>> + Send + 'static
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let mut one = One::new(name);
    watcher(api, config.fields(&format!("metadata.name={name}"))).filter_map(move |event| {
        let state = match event {
            Ok(event) => one.take(event),
            Err(error) => Some(Err(error)),
        };
        futures::future::ready(state)
    })
}

/// Stream returned by [`watcher()`]: the machine, its current request, and the events not yet delivered.
#[must_use = "streams do nothing unless polled"]
pub struct Watcher<K> {
    client: kube_client::Client,
    target: Target,
    config: Config,
    machine: Machine<K>,
    codec: Codec<K>,
    kinds: Kinds,
    link: Option<Link>,
    pending: VecDeque<Result<Event<K>, Error>>,
    timer: Option<Pin<Box<Sleep>>>,
    started: Option<Instant>,
    /// When bytes last arrived.
    last_received: Option<Instant>,
    /// When the consumer received an event, until it polls again. No bytes are read in between.
    yielded_at: Option<Duration>,
    progress: Progress,
}

/// Minimum processing time per event for a consumer to count as slow: for a slow consumer the stream reads ahead, so
/// that continue tokens and versions do not expire meanwhile (with kube's `watcher` they can). For a fast one only
/// the events of one read are buffered.
const SLOW: Duration = Duration::from_millis(1);
/// Maximum number of events buffered for a slow consumer: more than a page, so that the next page is requested while
/// this one is processed.
const MAX_PENDING: usize = 1024;
/// Maximum number of reads without an event before the task yields, so that a flood of bookmarks does not starve
/// other tasks.
const MAX_READS: u32 = 64;

impl<K> Unpin for Watcher<K> {}

impl<K> Watcher<K> {
    /// Returns a handle to the progress of this watcher, for use while the stream is polled elsewhere.
    pub fn progress(&self) -> Progress {
        self.progress.clone()
    }

    /// Publishes the point up to which the consumer has received all events.
    fn publish_progress(&self) {
        // While events are pending, the machine is ahead of the consumer.
        if self.pending.is_empty()
            && self.progress.is_watched()
            && let (Some(version), Some(last_received)) = (self.machine.synced(), self.last_received)
        {
            self.progress.set(version.as_str(), last_received);
        }
    }
}

impl<K> Debug for Watcher<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watcher")
            .field("synced", &self.machine.synced())
            .finish_non_exhaustive()
    }
}

impl<K> Watcher<K> {
    fn new(
        client: kube_client::Client,
        target: Target,
        config: Config,
        codec: Codec<K>,
        identify: Identify<K>,
    ) -> Self {
        let seed = config.seed.unwrap_or_else(|| fastrand::u64(..));
        Self {
            client,
            target,
            machine: Machine::new(config.clone(), seed, identify),
            config,
            codec,
            kinds: Kinds::new(),
            link: None,
            pending: VecDeque::new(),
            timer: None,
            started: None,
            last_received: None,
            yielded_at: None,
            progress: Progress::default(),
        }
    }

    /// Returns the time since the stream was first polled.
    fn now(&mut self) -> Duration {
        #[expect(
            clippy::disallowed_methods,
            reason = "the driver passes the time to the machine"
        )]
        let now = Instant::now();
        now.duration_since(*self.started.get_or_insert(now))
    }

    fn carry_out(&mut self) {
        while let Some(output) = self.machine.poll_output() {
            match output {
                Output::Request { id, request } => {
                    let query = request.query(&self.config);
                    tracing::debug!(
                        request = id.0,
                        path = self.target.path(),
                        query,
                        "sending request"
                    );
                    self.link = Some(Link::open(
                        &self.client,
                        &self.target,
                        &self.config,
                        id,
                        &request,
                        &query,
                    ));
                }
                Output::Cancel(id) => {
                    if self.link.as_ref().is_some_and(|link| link.id() == id) {
                        self.link = None;
                    }
                }
                Output::Event(event) => self.pending.push_back(Ok(event)),
                Output::Error(error) => {
                    tracing::debug!(%error, "reporting error");
                    self.pending.push_back(Err(error));
                }
                Output::Wait { until, then } => tracing::debug!(?until, then, "backing off"),
            }
        }
    }

    /// Reads available parts of the current response; `Pending` if there are none, or no request.
    fn poll_link(&mut self, now: Duration, cx: &mut Context<'_>) -> Poll<Read> {
        let Some(link) = &mut self.link else {
            return Poll::Pending;
        };
        let request = link.id();
        let machine = &mut self.machine;
        let read = link.poll_read(cx, &self.codec, &mut self.kinds, |answer| {
            machine.handle(now, Input::Answer { request, answer });
        });
        if read == Poll::Ready(Read::Over) {
            self.link = None;
        }
        read
    }

    /// Ready when the machine's timeout is due.
    fn poll_timer(&mut self, now: Duration, cx: &mut Context<'_>) -> Poll<()> {
        let (Some(due), Some(started)) = (self.machine.poll_timeout(), self.started) else {
            return Poll::Pending;
        };
        if due <= now {
            return Poll::Ready(());
        }
        let Some(at) = started.checked_add(due) else {
            return Poll::Pending;
        };
        let timer = self
            .timer
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(at)));
        // Deadlines move with every chunk, mostly later: the timer is reset only when it fires.
        if timer.deadline() > at {
            timer.as_mut().reset(at);
        }
        while timer.as_mut().poll(cx).is_ready() {
            if timer.deadline() >= at {
                return Poll::Ready(());
            }
            timer.as_mut().reset(at);
        }
        Poll::Pending
    }
}

impl<K> Stream for Watcher<K> {
    type Item = Result<Event<K>, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        this.publish_progress();
        let mut now = this.now();
        let mut max_pending = 1;
        if let Some(yielded_at) = this.yielded_at.take() {
            let busy = now.saturating_sub(yielded_at);
            this.machine.handle(now, Input::Unattended(busy));
            if busy >= SLOW {
                max_pending = MAX_PENDING;
            }
        }
        let mut reads = 0;
        while reads < MAX_READS {
            if this.pending.is_empty()
                && max_pending == 1
                && let Some(event) = this.machine.poll_only_event()
            {
                this.yielded_at = Some(now);
                return Poll::Ready(Some(Ok(event)));
            }
            this.carry_out();
            if this.pending.len() >= max_pending {
                break;
            }
            match this.poll_link(now, cx) {
                Poll::Ready(Read::Emitted) => continue,
                Poll::Ready(Read::Bytes | Read::Over) => {
                    reads += 1;
                    now = this.now();
                    this.last_received = this.started.and_then(|started| started.checked_add(now));
                    continue;
                }
                Poll::Pending => {}
            }
            // Checked only when no bytes are available: otherwise the peer is not silent.
            if this.poll_timer(now, cx).is_ready() {
                now = this.now();
                this.machine.handle(now, Input::Timeout);
                reads += 1;
                continue;
            }
            if this.pending.is_empty() {
                this.publish_progress();
                return Poll::Pending;
            }
            break;
        }
        if let Some(pending) = this.pending.pop_front() {
            this.yielded_at = Some(now);
            return Poll::Ready(Some(pending));
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

#[cfg(test)]
mod tests;
