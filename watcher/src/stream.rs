//! The only place that waits: carries out what the [`machine`](crate::machine) wants over a `kube_client::Client`, and
//! tells it what came. Decides nothing that the machine could decide.

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

/// Follows a collection for ever: snapshots, changes, and recovery from whatever ends a watch.
///
/// Takes the collection and its options; gives the events in the server's order, and each error it recovers from. The
/// stream never ends. Dropping it drops the request that is on its way. It must be polled inside a tokio runtime with
/// time enabled; it does nothing while it is not polled.
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

/// Like [`watcher()`], but asks the server for metadata only.
///
/// A server that cannot do that sends whole objects, of which all but the metadata is dropped.
pub fn metadata_watcher<K>(api: Api<K>, config: Config) -> Watcher<PartialObjectMeta<K>>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let (target, codec) = (Target::new(&api, true), Codec::metadata(config.prune.clone()));
    Watcher::new(api.into_client(), target, config, codec, object::identity)
}

/// Like [`watcher()`], but objects are decoded when they are used: see [`Lazy`].
pub fn lazy_watcher<K>(api: Api<K>, config: Config) -> Watcher<Lazy<K>>
where
    K: Resource + DeserializeOwned + Send + 'static,
{
    let codec = lazy::codec(config.prune.clone());
    let target = Target::new(&api, K::metadata_api());
    Watcher::new(api.into_client(), target, config, codec, Lazy::identity)
}

/// Like [`lazy_watcher()`], of objects whose text is kept compressed, each against the first one: a store of them takes a
/// small part of their JSON, and decoding one takes a little longer.
#[cfg(feature = "compress")]
pub fn packed_watcher<K>(api: Api<K>, config: Config) -> Watcher<Lazy<K>>
where
    K: Resource + DeserializeOwned + Send + 'static,
{
    let codec = lazy::packed_codec(config.prune.clone());
    let target = Target::new(&api, K::metadata_api());
    Watcher::new(api.into_client(), target, config, codec, Lazy::identity)
}

/// Like [`watcher()`], and keeps a store by what it tells. What a relist names again unchanged, by uid and
/// resourceVersion, is not decoded again: it is the object that the store has.
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
            // What is decoded has room to grow in every list and string; a copy, which is to stay, has none.
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
    // Some servers send whole objects all the same.
    Codec::typed(if metadata_only {
        prune.all_but(&["apiVersion", "kind", "metadata"])
    } else {
        prune
    })
}

/// Follows one object: `Some` whenever it is there or changed, `None` when it is known not to be.
///
/// Takes the collection and the object's name. Where an `Api` of all namespaces finds the name in several of them, the
/// first is followed until it is gone, and each event of another is [`Error::SeveralObjects`]: use a namespaced one.
/// Objects of other names, from a server that ignores field selectors, are dropped.
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
        let told = match event {
            Ok(event) => one.take(event),
            Err(error) => Some(Err(error)),
        };
        futures::future::ready(told)
    })
}

/// The stream of [`watcher()`]: a machine, its one request, and what is not yet told.
#[must_use = "streams do nothing unless polled"]
pub struct Watcher<K> {
    client: kube_client::Client,
    target: Target,
    config: Config,
    machine: Machine<K>,
    codec: Codec<K>,
    kinds: Kinds,
    link: Option<Link>,
    told: VecDeque<Result<Event<K>, Error>>,
    timer: Option<Pin<Box<Sleep>>>,
    started: Option<Instant>,
    /// When bytes last came.
    heard: Option<Instant>,
    /// When the consumer was given an event, until it polls again. Nothing is heard meanwhile.
    taken: Option<Duration>,
    progress: Progress,
}

/// A consumer that takes so long for an event is slow: what it is told next is read ahead, so that neither a token nor a
/// version ages with it (kube's `watcher` lets them). For one that keeps up nothing is held but what came in one read.
const SLOW: Duration = Duration::from_millis(1);
/// Events that may wait for a slow consumer before nothing more is read: more than a page, so that the next page is on
/// its way while this one is consumed.
const TOLD_MAX: usize = 1024;
/// Reads that may bring no event before the task yields, so that a flood of bookmarks starves nobody.
const READS_MAX: u32 = 64;

impl<K> Unpin for Watcher<K> {}

impl<K> Watcher<K> {
    /// A view of how far this watcher has come, to keep while the stream is polled elsewhere.
    pub fn progress(&self) -> Progress {
        self.progress.clone()
    }

    /// Says how far the consumer was told.
    fn tell_progress(&self) {
        // While something is still to be told, the machine is ahead of the consumer.
        if self.told.is_empty()
            && self.progress.is_watched()
            && let (Some(version), Some(heard)) = (self.machine.synced(), self.heard)
        {
            self.progress.set(version.as_str(), heard);
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
            told: VecDeque::new(),
            timer: None,
            started: None,
            heard: None,
            taken: None,
            progress: Progress::default(),
        }
    }

    /// Time since the stream was first polled.
    fn now(&mut self) -> Duration {
        #[expect(
            clippy::disallowed_methods,
            reason = "this is the edge that gives the machine its time"
        )]
        let now = Instant::now();
        now.duration_since(*self.started.get_or_insert(now))
    }

    fn carry_out(&mut self) {
        while let Some(output) = self.machine.poll_output() {
            match output {
                Output::Request { id, request } => {
                    let query = request.query(&self.config);
                    tracing::debug!(request = id.0, path = self.target.path(), query, "asking");
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
                Output::Event(event) => self.told.push_back(Ok(event)),
                Output::Error(error) => {
                    tracing::debug!(%error, "reported");
                    self.told.push_back(Err(error));
                }
                Output::Wait { until, then } => tracing::debug!(?until, then, "waiting"),
            }
        }
    }

    /// Reads what is there of the current answer; `Pending` when there is nothing, or no request.
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

    /// Ready when the machine's time has come.
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
        // Deadlines move with every chunk, and mostly later: the timer is reset only when it fires.
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
        this.tell_progress();
        let mut now = this.now();
        let mut told_max = 1;
        if let Some(taken) = this.taken.take() {
            let busy = now.saturating_sub(taken);
            this.machine.handle(now, Input::Unattended(busy));
            if busy >= SLOW {
                told_max = TOLD_MAX;
            }
        }
        let mut reads = 0;
        while reads < READS_MAX {
            if this.told.is_empty()
                && told_max == 1
                && let Some(event) = this.machine.poll_only_event()
            {
                this.taken = Some(now);
                return Poll::Ready(Some(Ok(event)));
            }
            this.carry_out();
            if this.told.len() >= told_max {
                break;
            }
            match this.poll_link(now, cx) {
                Poll::Ready(Read::Told) => continue,
                Poll::Ready(Read::Bytes | Read::Over) => {
                    reads += 1;
                    now = this.now();
                    this.heard = this.started.and_then(|started| started.checked_add(now));
                    continue;
                }
                Poll::Pending => {}
            }
            // Only a side that has nothing to say can be silent for too long.
            if this.poll_timer(now, cx).is_ready() {
                now = this.now();
                this.machine.handle(now, Input::Timeout);
                reads += 1;
                continue;
            }
            if this.told.is_empty() {
                this.tell_progress();
                return Poll::Pending;
            }
            break;
        }
        if let Some(told) = this.told.pop_front() {
            this.taken = Some(now);
            return Poll::Ready(Some(told));
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

#[cfg(test)]
mod tests;
