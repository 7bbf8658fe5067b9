//! Baseline for responses: plain hyper with prepared bytes; for a POST the minimum work of any store: parse the
//! object, assign a version, serialize it, keep it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::LocalSet;

/// Size of a piece of a long body, in bytes.
const PIECE: usize = 64 * 1024;

type Body = UnsyncBoxBody<Bytes, Infallible>;

#[derive(Default)]
struct Store {
    version: u64,
    objects: BTreeMap<String, Bytes>,
}

/// Serves until killed. `GET /SIZE` returns that many bytes, `POST` stores an object.
pub(crate) fn serve() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    LocalSet::new().block_on(&runtime, async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        print_address(listener.local_addr()?)?;
        let store = Rc::new(RefCell::new(Store::default()));
        let piece = Bytes::from(vec![b'x'; PIECE]);
        loop {
            let (socket, _) = listener.accept().await?;
            socket.set_nodelay(true)?;
            let (store, piece) = (Rc::clone(&store), piece.clone());
            let service = service_fn(move |request| answer(Rc::clone(&store), piece.clone(), request));
            tokio::task::spawn_local(async move {
                // A client that disconnects is not an error.
                let _ = http1::Builder::new()
                    .serve_connection(TokioIo::new(socket), service)
                    .await;
            });
        }
    })
}

async fn answer(
    store: Rc<RefCell<Store>>,
    piece: Bytes,
    request: Request<Incoming>,
) -> Result<Response<Body>, hyper::Error> {
    if request.method() == Method::POST {
        let body = request.into_body().collect().await?.to_bytes();
        return Ok(keep(&mut store.borrow_mut(), &body));
    }
    let size: usize = request.uri().path().trim_start_matches('/').parse().unwrap_or(0);
    let body = if size <= PIECE {
        Full::new(piece.slice(..size)).boxed_unsync()
    } else {
        let whole = (0..size / PIECE).map(move |_| piece.clone());
        let pieces = whole.map(|piece| Ok(Frame::data(piece)));
        StreamBody::new(Pieces(pieces)).boxed_unsync()
    };
    let mut response = Response::new(body);
    response.headers_mut().insert(
        http::header::CONTENT_TYPE,
        http::HeaderValue::from_static("application/json"),
    );
    Ok(response)
}

fn keep(store: &mut Store, body: &[u8]) -> Response<Body> {
    let mut object: Value = serde_json::from_slice(body).unwrap_or_default();
    store.version += 1;
    object["metadata"]["resourceVersion"] = store.version.to_string().into();
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let bytes = Bytes::from(object.to_string());
    store.objects.insert(name, bytes.clone());
    let mut response = Response::new(Full::new(bytes).boxed_unsync());
    *response.status_mut() = http::StatusCode::CREATED;
    response
}

/// Body frames from an iterator that is always ready.
struct Pieces<I>(I);

impl<I: Iterator + Unpin> futures::Stream for Pieces<I> {
    type Item = I::Item;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        _cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<I::Item>> {
        std::task::Poll::Ready(self.0.next())
    }
}

/// Prints the address for the parent process.
pub(crate) fn print_address(address: SocketAddr) -> io::Result<()> {
    print(&format!("listening on {address}"))
}

/// Prints a line for the parent process.
pub(crate) fn print(line: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{line}")?;
    stdout.flush()
}
