//! A minimal server with scripted responses, so that a test sets every byte of a response.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use fake_apiserver::api::Header;
use fake_apiserver::fault::Ending;
use fake_apiserver::net::Core;
use fake_apiserver::record::{ConnId, Record, RunEnd, StreamId};
use fake_apiserver::server::{Input, Output};
use http::{HeaderName, HeaderValue};

/// Server that sends the same response to every request and records its inputs.
#[derive(Default)]
pub(crate) struct Scripted {
    pub(crate) pieces: Vec<Out>,
    /// Headers of every response.
    pub(crate) headers: Vec<Header>,
    pub(crate) refuses: bool,
    pub(crate) refused_until: Duration,
    pub(crate) outputs: VecDeque<Output>,
    pub(crate) inputs: Arc<Mutex<Vec<String>>>,
}

#[derive(Clone, Copy)]
pub(crate) enum Out {
    Head(Option<u64>),
    /// Response head with this status.
    HeadOf(u16),
    Data(&'static [u8]),
    Goaway,
    End(Ending),
    /// Closes the connection.
    Close,
}

impl Core for Scripted {
    fn accepts(&mut self, _: Duration) -> bool {
        !self.refuses
    }

    fn refused_until(&self) -> Duration {
        self.refused_until
    }

    fn handle(&mut self, _: Duration, input: Input) {
        let line = match input {
            Input::Connected { conn, .. } => format!("connected {}", conn.0),
            Input::Disconnected { conn, by } => format!("disconnected {} by {by:?}", conn.0),
            Input::Flushed(stream) => format!("taken {}", stream.0),
            Input::Abandoned(stream) => format!("abandoned {}", stream.0),
            Input::CutOff(stream) => format!("cut off {}", stream.0),
            Input::Request {
                stream,
                conn,
                request,
            } => {
                assert_ne!(request.path, "/panic", "as asked");
                for piece in &self.pieces {
                    self.outputs.push_back(piece.output(stream, conn, &self.headers));
                }
                format!(
                    "request {} on {}: {}?{}",
                    stream.0,
                    conn.0,
                    request.path,
                    request.query.as_str()
                )
            }
            Input::Authenticated { conn, user } => {
                format!("{} is {} of {:?}", conn.0, user.name, user.groups)
            }
            Input::Report(_)
            | Input::ClientExited { .. }
            | Input::ClientRestarted(_)
            | Input::StopRequested
            | Input::LeftOpen(_)
            | Input::Control(_)
            | Input::HookAnswered { .. }
            | Input::Upstream { .. }
            | Input::UpstreamWritten { .. } => {
                unreachable!("no test reports here")
            }
            Input::Tick => return,
        };
        self.inputs.lock().unwrap().push(line);
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn poll_timeout(&self) -> Option<Duration> {
        None
    }

    fn finished(&self) -> Option<&RunEnd> {
        None
    }

    fn records(&self) -> &[Record] {
        &[]
    }

    fn into_records(self: Box<Self>) -> Vec<Record> {
        Vec::new()
    }
}

impl Out {
    fn output(self, stream: StreamId, conn: ConnId, headers: &[Header]) -> Output {
        match self {
            Self::Head(_) | Self::HeadOf(_) => {
                let (status, length) = match self {
                    Self::HeadOf(status) => (status, None),
                    Self::Head(length) => (200, length),
                    Self::Data(_) | Self::Goaway | Self::End(_) | Self::Close => {
                        unreachable!("only heads are handled here")
                    }
                };
                let mut headers = headers.to_vec();
                headers.push((HeaderName::from_static("x-probe"), HeaderValue::from_static("1")));
                Output::Head {
                    stream,
                    status,
                    headers,
                    length,
                }
            }
            Self::Data(text) => Output::Data {
                stream,
                bytes: Bytes::from_static(text),
            },
            Self::Goaway => Output::Goaway { stream },
            Self::End(how) => Output::End { stream, how },
            Self::Close => Output::Close { conn },
        }
    }
}
