//! Client of a control API, one request at a time.

use std::io;

use bytes::Bytes;
use http::header::{AUTHORIZATION, HOST};
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

use super::refusal;
use crate::Failure;

/// URL and token of a control API.
#[derive(Debug)]
pub(crate) struct Client {
    authority: String,
    token: String,
}

impl Client {
    /// Returns a client; `None` if `url` is not valid.
    pub(crate) fn to(url: &str, token: &str) -> Option<Self> {
        let authority = url.strip_prefix("http://")?.trim_end_matches('/');
        authority.rsplit_once(':')?.1.parse::<u16>().ok()?;
        Some(Self {
            authority: authority.to_owned(),
            token: token.to_owned(),
        })
    }

    pub(super) fn token(&self) -> &str {
        &self.token
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Value, Failure> {
        self.json(Method::GET, path, "").await
    }

    pub(super) async fn post(&self, path: &str, body: &str) -> Result<Value, Failure> {
        self.json(Method::POST, path, body).await
    }

    pub(super) async fn delete(&self, path: &str) -> Result<Value, Failure> {
        self.json(Method::DELETE, path, "").await
    }

    /// Passes on the response as it is received.
    pub(super) async fn stream(
        &self,
        path: &str,
        mut hand_on: impl FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let answer = self.send(Method::GET, path, "").await?;
        if !answer.status().is_success() {
            return self.read(answer).await.map(|_| ());
        }
        let mut body = answer.into_body();
        while let Some(frame) = body.frame().await {
            // A server that exits ends the stream.
            let Ok(frame) = frame else { break };
            if let Some(bytes) = frame.data_ref() {
                hand_on(bytes)?;
            }
        }
        Ok(())
    }

    async fn json(&self, method: Method, path: &str, body: &str) -> Result<Value, Failure> {
        let answer = self.send(method, path, body).await?;
        self.read(answer).await
    }

    async fn send(&self, method: Method, path: &str, body: &str) -> Result<Response<Incoming>, Failure> {
        let lost = |error: &dyn std::fmt::Display| {
            Failure::NoServer(format!(
                "cannot reach the control API at http://{}: {error}",
                self.authority
            ))
        };
        let socket = TcpStream::connect(&self.authority)
            .await
            .map_err(|error| lost(&error))?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(socket))
            .await
            .map_err(|error| lost(&error))?;
        tokio::spawn(connection);
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, &self.authority)
            .header(AUTHORIZATION, format!("Bearer {}", self.token))
            .body(Full::new(Bytes::from(body.to_owned())))
            .map_err(|error| Failure::Usage(error.to_string()))?;
        sender.send_request(request).await.map_err(|error| lost(&error))
    }

    async fn read(&self, answer: Response<Incoming>) -> Result<Value, Failure> {
        let status = answer.status().as_u16();
        let broke = |error: hyper::Error| {
            Failure::System("the response ended early".to_owned(), io::Error::other(error))
        };
        let bytes = answer.into_body().collect().await.map_err(broke)?.to_bytes();
        let body: Value = serde_json::from_slice(&bytes).map_err(|error| {
            Failure::System("the response is not JSON".to_owned(), io::Error::other(error))
        })?;
        match status {
            200..=299 => Ok(body),
            400 => Err(Failure::Usage(refusal(&body))),
            _ => Err(Failure::Refused(refusal(&body))),
        }
    }
}
