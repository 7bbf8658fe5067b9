//! One request and its answer, from the bytes of HTTP to [`Answer`]s. Knows no state of the machine.

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
use crate::machine::{Answer, RequestId};
use crate::request::Request;
use crate::status::Status;

/// Where requests go, and what for.
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

/// A request on its way, or its answer.
pub(super) struct Link {
    id: RequestId,
    max_event_bytes: usize,
    stage: Stage,
}

enum Stage {
    Asking {
        is_watch: bool,
        head: Task<Result<http::Response<Body>, kube_client::Error>>,
    },
    Refused {
        http: u16,
        retry_after: Option<Duration>,
        /// What could be read of it.
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

/// What [`Link::poll_read`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Read {
    /// It told what had come before.
    Told,
    /// Bytes came.
    Bytes,
    /// The answer is over.
    Over,
}

/// More of an error page is not read.
const ERROR_BODY_BYTES_MAX: usize = 64 << 10;
/// Nor is it waited for longer: the code is known, and it is what matters.
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
            stage: Stage::Asking { is_watch, head },
        }
    }

    pub(super) fn id(&self) -> RequestId {
        self.id
    }

    /// Tells what is next: one event or item, or that bytes came.
    pub(super) fn poll_read<K>(
        &mut self,
        cx: &mut Context<'_>,
        codec: &Codec<K>,
        kinds: &mut Kinds,
        mut tell: impl FnMut(Answer<'_, K>),
    ) -> Poll<Read> {
        match &mut self.stage {
            Stage::Asking { is_watch, head } => {
                let response = match ready!(head.poll(cx)) {
                    Ok(response) => response,
                    Err(error) => {
                        tell(Answer::TransportError(TransportError::new(error)));
                        return Poll::Ready(Read::Over);
                    }
                };
                if !response.status().is_success() {
                    tell(Answer::Refusing);
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
                    tell(Answer::Malformed(Malformed::Encoded(encoding)));
                    return Poll::Ready(Read::Over);
                }
                let body = response.into_body();
                if *is_watch {
                    tell(Answer::Opened);
                    self.stage = Stage::Watch {
                        body,
                        decoder: WatchDecoder::new(self.max_event_bytes),
                    };
                } else {
                    tell(Answer::Progress);
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
                tell(Answer::Rejected {
                    http: *http,
                    status: Status::from_body(*http, &body),
                    retry_after: *retry_after,
                });
                Poll::Ready(Read::Over)
            }
            Stage::List { body, decoder } => {
                if decoder.next(codec, kinds, &mut tell) {
                    return Poll::Ready(Read::Told);
                }
                match ready!(poll_data(body, cx)) {
                    Some(Ok(data)) => {
                        tell(Answer::Progress);
                        decoder.push(data);
                        return Poll::Ready(Read::Bytes);
                    }
                    Some(Err(error)) => tell(Answer::TransportError(TransportError::new(error))),
                    None => std::mem::replace(decoder, ListDecoder::new(0)).finish(kinds, tell),
                }
                Poll::Ready(Read::Over)
            }
            Stage::Watch { body, decoder } => {
                if decoder.next(codec, kinds, &mut tell) {
                    return Poll::Ready(Read::Told);
                }
                match ready!(poll_data(body, cx)) {
                    Some(Ok(data)) => {
                        tell(Answer::Progress);
                        decoder.push(data);
                        return Poll::Ready(Read::Bytes);
                    }
                    Some(Err(error)) => {
                        finish(decoder, codec, kinds, &mut tell);
                        tell(Answer::TransportError(TransportError::new(error)));
                    }
                    None => {
                        finish(decoder, codec, kinds, &mut tell);
                        tell(Answer::Eof);
                    }
                }
                Poll::Ready(Read::Over)
            }
        }
    }
}

/// A last event without its newline is whole; a torn one never was (INV-19).
fn finish<K>(
    decoder: &mut WatchDecoder,
    codec: &Codec<K>,
    kinds: &mut Kinds,
    tell: &mut impl FnMut(Answer<'_, K>),
) {
    let torn = decoder.finish(codec, kinds, tell);
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
                // Trailers say nothing here.
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
        // Full objects are accepted from servers that know no better.
        (true, true) => "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
        (true, false) => "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
    };
    let mut request = http::Request::get(uri).header(ACCEPT, accept);
    if is_watch {
        // From 1.37 on servers may gzip a watch, one member per event, of which decompressing layers read the first
        // only (kube#2079). Lists are left to such a layer, where the client has one.
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
        tracing::debug!("the body of a refusal did not come");
    }
    read
}

/// Seconds. A date is no reason to wait longer than the backoff does: the two clocks need not agree.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}
