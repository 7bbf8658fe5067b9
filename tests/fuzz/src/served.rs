//! A server without sockets, for targets that send requests. It is replaced regularly, so that an input meets the state
//! left by others, and a panic is reproducible with few inputs.

use std::cell::RefCell;
use std::time::Duration;

use fake_apiserver::api::HttpRequest;
use fake_apiserver::record::{ConnId, StreamId};
use fake_apiserver::scenario::ServerSettings;
use fake_apiserver::server::{Input, Server};

/// Requests per server.
const REQUESTS: u64 = 500;

thread_local! {
    static SERVED: RefCell<Option<(Server, u64)>> = const { RefCell::new(None) };
}

/// Initial objects.
const OBJECTS: &[(&str, &str)] = &[
    (
        "/api/v1/namespaces/default/configmaps",
        r#"{"metadata":{"name":"a","labels":{"l":"1"}},"data":{"k":"v"}}"#,
    ),
    (
        "/api/v1/namespaces/default/pods",
        r#"{"metadata":{"name":"p","finalizers":["f/x"]},"spec":{"containers":[{"name":"c","image":"i"}]}}"#,
    ),
    (
        "/apis/apps/v1/namespaces/default/deployments",
        r#"{"metadata":{"name":"d"},"spec":{"replicas":1,"selector":{"matchLabels":{"l":"1"}},"template":{"metadata":{"labels":{"l":"1"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}"#,
    ),
];

/// Sends a request and discards the response.
pub(crate) fn ask(request: HttpRequest) {
    SERVED.with_borrow_mut(|served| {
        if served.as_ref().is_none_or(|(_, asked)| *asked >= REQUESTS) {
            let mut server = Server::standalone(ServerSettings::default(), 0);
            for (number, (path, object)) in OBJECTS.iter().enumerate() {
                let mut headers = http::HeaderMap::new();
                headers.insert("content-type", http::HeaderValue::from_static("application/json"));
                let request = HttpRequest {
                    method: http::Method::POST,
                    path: (*path).to_owned(),
                    query: Default::default(),
                    headers,
                    body: object.as_bytes().into(),
                };
                turn(&mut server, number as u64 + 1, request);
            }
            *served = Some((server, OBJECTS.len() as u64));
        }
        if let Some((server, asked)) = served {
            *asked += 1;
            turn(server, *asked, request);
        }
    });
}

fn turn(server: &mut Server, number: u64, request: HttpRequest) {
    let input = Input::Request {
        stream: StreamId(number),
        conn: ConnId(1),
        request,
    };
    // Advances time, so that waiting requests are answered.
    server.handle(Duration::from_secs(number * 10), input);
    while server.poll_output().is_some() {}
}
