//! A measurement, in a separate process: one client does one task and reports its cost.

use std::io;
use std::pin::pin;
use std::time::Instant;

use clap::ValueEnum;
use futures::{Stream, StreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube_client::{Api, Client};
use kube_core::metadata::PartialObjectMeta;
use kube_core::{ApiResource, DynamicObject, ResourceExt as _};
use kube_runtime::{WatchStreamExt as _, reflector as their_reflector, watcher as theirs};
use serde::{Deserialize, Serialize};
use watcher::{InitialListStrategy, reflector};

use crate::process;

/// Whose watcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Side {
    Ours,
    Theirs,
}

/// Type of the objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Objects {
    Pods,
    ConfigMaps,
    Dynamic,
    Metadata,
    /// Ours drops `managedFields` during decoding, theirs clears them afterwards.
    PrunedPods,
    PrunedDynamic,
    /// Only ours is pruned: theirs does no work for fields that are not cleared.
    PrunedMetadata,
    /// Ours are lazy, theirs are decoded.
    LazyPods,
    /// Ours are lazy and compressed, theirs are decoded.
    PackedPods,
}

/// What the consumer does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Use {
    /// Receives events of a watch and drops them.
    Watch,
    /// Receives a LIST and drops the objects.
    List,
    /// Receives a LIST and keeps all objects.
    Keep,
    /// Receives a LIST into a store.
    Store,
    /// Fills the store twice; the second time is measured.
    Relist,
}

/// How the snapshot is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Reading {
    Pages,
    OnePage,
    Streaming,
}

/// Parameters of a measurement.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Sample {
    #[arg(long, value_enum)]
    pub(crate) side: Side,
    #[arg(long, value_enum)]
    pub(crate) objects: Objects,
    #[arg(long, value_enum)]
    pub(crate) usage: Use,
    #[arg(long, value_enum)]
    pub(crate) reading: Reading,
    /// Number of objects or events.
    #[arg(long)]
    pub(crate) count: u64,
    /// URL of the collection.
    #[arg(long)]
    pub(crate) url: String,
}

/// Result of a measurement, in bytes and seconds.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Taken {
    pub(crate) wall: f64,
    pub(crate) cpu: f64,
    /// Time from the start to the first object.
    pub(crate) first: f64,
    /// Resident memory before the work.
    pub(crate) base: u64,
    /// Resident memory after it, including objects kept.
    pub(crate) kept: u64,
    pub(crate) peak: u64,
}

/// An event of either watcher.
enum Received<K> {
    Init,
    Listed(K),
    Done,
    Changed(K),
}

impl<K> From<theirs::Event<K>> for Received<K> {
    fn from(event: theirs::Event<K>) -> Self {
        match event {
            theirs::Event::Init => Self::Init,
            theirs::Event::InitApply(object) => Self::Listed(object),
            theirs::Event::InitDone => Self::Done,
            theirs::Event::Apply(object) | theirs::Event::Delete(object) => Self::Changed(object),
        }
    }
}

impl<K> From<watcher::Event<K>> for Received<K> {
    fn from(event: watcher::Event<K>) -> Self {
        match event {
            watcher::Event::Init => Self::Init,
            watcher::Event::InitApply(object) => Self::Listed(object),
            watcher::Event::InitDone => Self::Done,
            watcher::Event::Apply(object) | watcher::Event::Delete(object) => Self::Changed(object),
        }
    }
}

/// Runs and measures the task.
pub(crate) fn take(sample: &Sample) -> io::Result<Taken> {
    process::pin(process::CLIENT);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let uri = sample.url.parse().map_err(io::Error::other)?;
        let client = Client::try_from(kube_client::Config::new(uri)).map_err(io::Error::other)?;
        match sample.side {
            Side::Ours => ours(sample, client).await,
            Side::Theirs => kube_runtimes(sample, client).await,
        }
    })
}

fn dynamic(client: Client) -> Api<DynamicObject> {
    Api::all_with(client, &ApiResource::erase::<Pod>(&()))
}

async fn ours(sample: &Sample, client: Client) -> io::Result<Taken> {
    let mut config = watcher::Config::default();
    match sample.reading {
        Reading::Pages => {}
        Reading::OnePage => config.page_size = None,
        Reading::Streaming => config.initial_list_strategy = InitialListStrategy::StreamingList,
    }
    match sample.objects {
        Objects::PrunedPods | Objects::PrunedDynamic | Objects::PrunedMetadata => {
            config = config.drop_managed_fields();
        }
        Objects::Pods
        | Objects::ConfigMaps
        | Objects::Dynamic
        | Objects::Metadata
        | Objects::LazyPods
        | Objects::PackedPods => {}
    }
    let stores = matches!(sample.usage, Use::Store | Use::Relist);
    match sample.objects {
        Objects::Pods | Objects::PrunedPods if stores => {
            let (store, writer) = reflector::store();
            let stream = watcher::store_watcher(Api::<Pod>::all(client), config, writer);
            stored(sample, stream, || store.len()).await
        }
        Objects::Pods | Objects::PrunedPods => {
            follow(sample, watcher::watcher(Api::<Pod>::all(client), config)).await
        }
        Objects::ConfigMaps => follow(sample, watcher::watcher(Api::<ConfigMap>::all(client), config)).await,
        Objects::Dynamic | Objects::PrunedDynamic => {
            follow(sample, watcher::watcher(dynamic(client), config)).await
        }
        Objects::Metadata | Objects::PrunedMetadata => {
            follow(sample, watcher::metadata_watcher(Api::<Pod>::all(client), config)).await
        }
        Objects::LazyPods if stores => {
            let (store, writer) = reflector::store();
            let stream = watcher::lazy_watcher(Api::<Pod>::all(client), config);
            let stream = watcher::WatchStreamExt::reflect(stream, writer);
            stored(sample, stream, || store.len()).await
        }
        Objects::LazyPods => follow(sample, watcher::lazy_watcher(Api::<Pod>::all(client), config)).await,
        Objects::PackedPods if stores => {
            let (store, writer) = reflector::store();
            let stream = watcher::packed_watcher(Api::<Pod>::all(client), config);
            let stream = watcher::WatchStreamExt::reflect(stream, writer);
            stored(sample, stream, || store.len()).await
        }
        Objects::PackedPods => {
            let stream = watcher::packed_watcher(Api::<Pod>::all(client), config);
            follow(sample, stream).await
        }
    }
}

async fn kube_runtimes(sample: &Sample, client: Client) -> io::Result<Taken> {
    let mut config = theirs::Config::default();
    match sample.reading {
        Reading::Pages => {}
        Reading::OnePage => config.page_size = None,
        Reading::Streaming => config = config.streaming_lists(),
    }
    let stores = matches!(sample.usage, Use::Store | Use::Relist);
    match sample.objects {
        // Their store contains decoded objects, whatever ours contains.
        Objects::Pods | Objects::PrunedPods | Objects::LazyPods | Objects::PackedPods if stores => {
            let (store, writer) = their_reflector::store();
            let stream = their_reflector::reflector(writer, theirs::watcher(Api::<Pod>::all(client), config));
            stored(sample, stream, || store.len()).await
        }
        Objects::Pods | Objects::LazyPods | Objects::PackedPods => {
            follow(sample, theirs::watcher(Api::<Pod>::all(client), config)).await
        }
        Objects::ConfigMaps => follow(sample, theirs::watcher(Api::<ConfigMap>::all(client), config)).await,
        Objects::Dynamic => follow(sample, theirs::watcher(dynamic(client), config)).await,
        Objects::Metadata | Objects::PrunedMetadata => {
            follow(
                sample,
                theirs::watcher(Api::<PartialObjectMeta<Pod>>::all(client), config),
            )
            .await
        }
        Objects::PrunedPods => {
            let stream = theirs::watcher(Api::<Pod>::all(client), config);
            let cleared = stream.modify(|pod| pod.managed_fields_mut().clear());
            follow(sample, cleared).await
        }
        Objects::PrunedDynamic => {
            let stream = theirs::watcher(dynamic(client), config);
            let cleared = stream.modify(|object| object.managed_fields_mut().clear());
            follow(sample, cleared).await
        }
    }
}

/// Measures a stream of objects that are dropped, or kept in the order of arrival.
async fn follow<S, E, K, X>(sample: &Sample, stream: S) -> io::Result<Taken>
where
    S: Stream<Item = Result<E, X>>,
    E: Into<Received<K>>,
    X: std::error::Error + Send + Sync + 'static,
{
    let mut kept = Vec::new();
    let keeps = sample.usage == Use::Keep;
    let taken = measure(sample, stream, |object| {
        if keeps {
            kept.push(object);
        }
    })
    .await?;
    if keeps {
        expect(sample, kept.len())?;
        // The process is about to exit: freeing gigabytes takes longer than filling them.
        std::mem::forget(kept);
    }
    Ok(taken)
}

/// Measures a stream that fills a store.
async fn stored<S, E, K, X>(sample: &Sample, stream: S, len: impl Fn() -> usize) -> io::Result<Taken>
where
    S: Stream<Item = Result<E, X>>,
    E: Into<Received<K>>,
    X: std::error::Error + Send + Sync + 'static,
{
    let taken = measure(sample, stream, drop).await?;
    expect(sample, len())?;
    Ok(taken)
}

/// Checks that the expected number of objects was measured.
fn expect(sample: &Sample, found: usize) -> io::Result<()> {
    if u64::try_from(found).ok() == Some(sample.count) {
        return Ok(());
    }
    Err(io::Error::other(format!("{found} objects, not {}", sample.count)))
}

/// Start of a measurement.
struct Start {
    at: Instant,
    cpu: f64,
    base: u64,
}

impl Start {
    fn now() -> io::Result<Self> {
        Ok(Self {
            base: process::resident()?,
            cpu: process::cpu().as_secs_f64(),
            at: now(),
        })
    }

    fn taken(&self, first: Option<Instant>) -> io::Result<Taken> {
        let wall = now().duration_since(self.at).as_secs_f64();
        Ok(Taken {
            wall,
            cpu: process::cpu().as_secs_f64() - self.cpu,
            first: first.map_or(wall, |first| first.duration_since(self.at).as_secs_f64()),
            base: self.base,
            kept: process::resident()?,
            peak: process::peak()?,
        })
    }
}

async fn measure<S, E, K, X>(sample: &Sample, stream: S, mut take: impl FnMut(K)) -> io::Result<Taken>
where
    S: Stream<Item = Result<E, X>>,
    E: Into<Received<K>>,
    X: std::error::Error + Send + Sync + 'static,
{
    let mut stream = pin!(stream);
    let mut start = Start::now()?;
    let (mut first, mut listed, mut changed, mut lists) = (None, 0, 0, 0);
    while let Some(item) = stream.next().await {
        let item = match item {
            Ok(item) => item.into(),
            // A relist starts with an expired version.
            Err(_) if sample.usage == Use::Relist && lists > 0 => continue,
            Err(error) => return Err(io::Error::other(error)),
        };
        match item {
            Received::Init => listed = 0,
            Received::Listed(object) => {
                take(object);
                listed += 1;
                first.get_or_insert_with(now);
            }
            Received::Done => {
                lists += 1;
                match sample.usage {
                    Use::Watch => start = Start::now()?,
                    Use::Relist if lists == 1 => {
                        process::forget_peak()?;
                        start = Start::now()?;
                    }
                    Use::List | Use::Keep | Use::Store | Use::Relist => {
                        expect(sample, listed)?;
                        return start.taken(first);
                    }
                }
            }
            Received::Changed(object) => {
                take(object);
                changed += 1;
                if changed == sample.count {
                    return start.taken(first);
                }
            }
        }
    }
    Err(io::Error::other("the watcher ended"))
}

#[expect(clippy::disallowed_methods, reason = "the benchmark measures time")]
fn now() -> Instant {
    Instant::now()
}
