//! One HTTP request and its response, from bytes to [`ResponsePart`]s. Independent of the machine's state.

mod task;

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, HeaderMap, HeaderValue, RETRY_AFTER};
use http_body::Body as _;
use http_body_util::BodyExt;
use kube_client::client::Body;
use kube_client::{Api, Client};

use self::task::Task;
use crate::config::Config;
use crate::decode::{Codec, Kinds, ListDecoder, WatchDecoder};
use crate::error::{Malformed, TransportError};
use crate::machine::{RequestId, ResponsePart};
use crate::request::Request;
use crate::status::Status;

/// Path and media type of the requests.
#[derive(Debug, Clone)]
pub(super) struct Target {
    path: String,
    metadata_only: bool,
}

impl Target {
    pub(super) fn new<K: kube_core::Resource>(api: &Api<K>, metadata_only: bool) -> Self {
        Self {
            path: api.resource_url().to_owned(),
            metadata_only,
        }
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }
}

/// A request in progress, or its response.
pub(super) struct Link {
    id: RequestId,
    max_event_bytes: usize,
    stage: Stage,
}

enum Stage {
    AwaitingHead {
        is_watch: bool,
        head: Task<Result<http::Response<Body>, kube_client::Error>>,
    },
    Refused {
        http: u16,
        retry_after: Option<Duration>,
        /// The part of the body that was read.
        body: Task<BytesMut>,
    },
    List {
        body: Body,
        decoder: ListDecoder,
    },
    Watch {
        body: Body,
        decoder: WatchDecoder,
    },
}

/// Result of [`Link::poll_read`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Read {
    /// An answer was emitted from bytes received earlier.
    Emitted,
    /// Bytes arrived.
    Bytes,
    /// The response is complete.
    Over,
}

/// Maximum number of bytes read of an error body.
const ERROR_BODY_BYTES_MAX: usize = 64 << 10;
/// Maximum wait for an error body: the status code is known, and suffices.
const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(5);

impl Link {
    pub(super) fn open(
        client: &Client,
        target: &Target,
        config: &Config,
        id: RequestId,
        request: &Request,
        query: &str,
    ) -> Self {
        let is_watch = match request {
            Request::List { .. } => false,
            Request::Watch { .. } | Request::StreamingList { .. } => true,
        };
        let built = build(target, is_watch, query);
        let client = client.clone();
        let head = Task::start(async move {
            let request = built.map_err(kube_client::Error::HttpError)?;
            client.send(request).await
        });
        Self {
            id,
            max_event_bytes: config.max_event_bytes,
            stage: Stage::AwaitingHead { is_watch, head },
        }
    }

    pub(super) fn id(&self) -> RequestId {
        self.id
    }

    /// Emits the next event or item, or reads bytes.
    pub(super) fn poll_read<K>(
        &mut self,
        cx: &mut Context<'_>,
        codec: &Codec<K>,
        kinds: &mut Kinds,
        mut emit: impl FnMut(ResponsePart<'_, K>),
    ) -> Poll<Read> {
        match &mut self.stage {
            Stage::AwaitingHead { is_watch, head } => {
                let response = match ready!(head.poll(cx)) {
                    Ok(response) => response,
                    Err(error) => {
                        emit(ResponsePart::TransportError(TransportError::new(error)));
                        return Poll::Ready(Read::Over);
                    }
                };
                if !response.status().is_success() {
                    emit(ResponsePart::Refusing);
                    self.stage = Stage::Refused {
                        http: response.status().as_u16(),
                        retry_after: retry_after(response.headers()),
                        body: Task::start(error_body(response.into_body())),
                    };
                    return Poll::Ready(Read::Bytes);
                }
                let encoding = response
                    .headers()
                    .get(CONTENT_ENCODING)
                    .filter(|encoding| *encoding != "identity");
                if let Some(encoding) = encoding {
                    let encoding = String::from_utf8_lossy(encoding.as_bytes()).into_owned();
                    emit(ResponsePart::Malformed(Malformed::Encoded(encoding)));
                    return Poll::Ready(Read::Over);
                }
                let body = response.into_body();
                if *is_watch {
                    emit(ResponsePart::Opened);
                    self.stage = Stage::Watch {
                        body,
                        decoder: WatchDecoder::new(self.max_event_bytes),
                    };
                } else {
                    emit(ResponsePart::Progress);
                    self.stage = Stage::List {
                        body,
                        decoder: ListDecoder::new(self.max_event_bytes),
                    };
                }
                Poll::Ready(Read::Bytes)
            }
            Stage::Refused {
                http,
                retry_after,
                body,
            } => {
                let body = ready!(body.poll(cx));
                emit(ResponsePart::Rejected {
                    http: *http,
                    status: Status::from_body(*http, &body),
                    retry_after: *retry_after,
                });
                Poll::Ready(Read::Over)
            }
            Stage::List { body, decoder } => {
                if decoder.next(codec, kinds, &mut emit) {
                    return Poll::Ready(Read::Emitted);
                }
                match ready!(poll_data(body, cx)) {
                    Some(Ok(data)) => {
                        emit(ResponsePart::Progress);
                        decoder.push(data);
                        return Poll::Ready(Read::Bytes);
                    }
                    Some(Err(error)) => emit(ResponsePart::TransportError(TransportError::new(error))),
                    None => std::mem::replace(decoder, ListDecoder::new(0)).finish(kinds, emit),
                }
                Poll::Ready(Read::Over)
            }
            Stage::Watch { body, decoder } => {
                if decoder.next(codec, kinds, &mut emit) {
                    return Poll::Ready(Read::Emitted);
                }
                match ready!(poll_data(body, cx)) {
                    Some(Ok(data)) => {
                        emit(ResponsePart::Progress);
                        decoder.push(data);
                        return Poll::Ready(Read::Bytes);
                    }
                    Some(Err(error)) => {
                        finish(decoder, codec, kinds, &mut emit);
                        emit(ResponsePart::TransportError(TransportError::new(error)));
                    }
                    None => {
                        finish(decoder, codec, kinds, &mut emit);
                        emit(ResponsePart::Eof);
                    }
                }
                Poll::Ready(Read::Over)
            }
        }
    }
}

/// Emits a last event that lacks only its newline; a truncated one is dropped (INV-19).
fn finish<K>(
    decoder: &mut WatchDecoder,
    codec: &Codec<K>,
    kinds: &mut Kinds,
    emit: &mut impl FnMut(ResponsePart<'_, K>),
) {
    let torn = decoder.finish(codec, kinds, emit);
    if torn > 0 {
        tracing::debug!(torn, "the watch ended inside an event");
    }
}

fn poll_data(body: &mut Body, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, kube_client::Error>>> {
    loop {
        match ready!(Pin::new(&mut *body).poll_frame(cx)) {
            None => return Poll::Ready(None),
            Some(Err(error)) => return Poll::Ready(Some(Err(error))),
            Some(Ok(frame)) => {
                // Trailers are ignored.
                if let Ok(data) = frame.into_data() {
                    return Poll::Ready(Some(Ok(data)));
                }
            }
        }
    }
}

fn build(target: &Target, is_watch: bool, query: &str) -> http::Result<http::Request<Body>> {
    let uri = if query.is_empty() {
        target.path.clone()
    } else {
        format!("{}?{query}", target.path)
    };
    let accept = match (target.metadata_only, is_watch) {
        (false, _) => "application/json",
        // Full objects are accepted from servers without support for partial ones.
        (true, true) => "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
        (true, false) => "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
    };
    let mut request = http::Request::get(uri).header(ACCEPT, accept);
    if is_watch {
        // From 1.37 servers may gzip a watch, one member per event, and decompression layers read only the first
        // member (kube#2079). LISTs are left to such a layer, if the client has one.
        request = request.header(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    }
    request.body(Body::empty())
}

async fn error_body(mut body: Body) -> BytesMut {
    let mut read = BytesMut::new();
    let reading = async {
        while let Some(Ok(frame)) = body.frame().await {
            if let Ok(data) = frame.into_data() {
                read.extend_from_slice(&data);
            }
            if read.len() > ERROR_BODY_BYTES_MAX {
                break;
            }
        }
    };
    if tokio::time::timeout(ERROR_BODY_TIMEOUT, reading).await.is_err() {
        tracing::debug!("timed out waiting for an error body");
    }
    read
}

/// Parses `Retry-After` in seconds. Dates are ignored, because the clocks may differ; the backoff applies instead.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}
