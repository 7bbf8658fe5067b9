//! Plays one probe against one server and records the results. It decides nothing about right or wrong; it is the only place
//! here that waits.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::base64url;
use crate::error::Error;
use crate::fixture;
use crate::members::{Members, Part};
use crate::probe::{Control, Fixture, Meanwhile, Probe, Request, Step, User, Watch};
use crate::transport::{Call, Chunk, Head, ReadResponse, Transport};
use crate::webhook::{Called, Webhooks};

/// Results in order, with texts as on the wire.
pub(crate) enum Item {
    Asked {
        method: String,
        path: String,
        user: &'static str,
        headers: Vec<String>,
        body: Option<String>,
        repeat: u32,
    },
    Answered {
        head: Head,
        body: Vec<u8>,
        broken: Option<String>,
        took: Duration,
    },
    Opened {
        head: Head,
        took: Duration,
    },
    Line {
        text: String,
        after: Duration,
    },
    Ended {
        how: String,
        after: Duration,
    },
    Did(String),
    /// A webhook was called meanwhile.
    Called(Called),
}

#[derive(Default)]
pub(crate) struct Played {
    pub(crate) captures: BTreeMap<String, String>,
    pub(crate) items: Vec<Item>,
    /// What stands for texts that differ from run to run.
    pub(crate) hidden: Vec<(String, &'static str)>,
}

pub(crate) struct Player<'a, T> {
    server: &'a mut T,
    captures: BTreeMap<String, String>,
    items: Vec<Item>,
    webhooks: Option<Webhooks>,
    /// Names for bodies that no transcript explains.
    unshown: BTreeMap<&'static str, String>,
}

/// Short names for paths in all probes.
const NAMES: [(&str, &str); 3] = [
    ("cm", "/api/v1/namespaces/probe/configmaps"),
    ("allcm", "/api/v1/configmaps"),
    ("wd", "/apis/probe.example.com/v1/namespaces/probe/widgets"),
];

pub(crate) async fn play<T: Transport>(probe: &Probe, server: &mut T) -> Result<Played, Error> {
    let mut captures = BTreeMap::new();
    if probe.fixture == Fixture::F {
        if !server.fixture_is_there() {
            fixture::reset(server).await?;
        }
        captures.insert("L".into(), fixture::resource_version(server).await?);
    }
    let mut player = Player {
        server,
        captures,
        items: Vec::new(),
        webhooks: None,
        unshown: BTreeMap::new(),
    };
    if !probe.webhooks.is_empty() {
        let webhooks = Webhooks::serve(&probe.webhooks).await?;
        player.unshown.extend(webhooks.names());
        player.webhooks = Some(webhooks);
    }
    for step in &probe.before {
        player.step(step).await?;
    }
    player.items.clear();
    player
        .webhooks
        .iter()
        .for_each(|webhooks| drop(webhooks.take_calls()));
    for step in &probe.play {
        player.step(step).await?;
    }
    Ok(Played {
        hidden: player.hidden(),
        captures: player.captures,
        items: player.items,
    }
    .used())
}

/// Continues a story with more steps.
pub(crate) async fn go_on<T: Transport>(
    played: &mut Played,
    steps: &[Step],
    server: &mut T,
) -> Result<(), Error> {
    let mut player = Player {
        server,
        captures: std::mem::take(&mut played.captures),
        items: std::mem::take(&mut played.items),
        webhooks: None,
        unshown: BTreeMap::new(),
    };
    let mut done = Ok(());
    for step in steps {
        done = player.step(step).await;
        if done.is_err() {
            break;
        }
    }
    let Player { captures, items, .. } = player;
    (played.captures, played.items) = (captures, items);
    done
}

impl Played {
    /// Removes unused names.
    pub(crate) fn used(self) -> Self {
        let Self {
            captures,
            items,
            hidden,
        } = self;
        // An unused name would change the order of resourceVersions.
        let used = |name: &str| {
            let forms = ["}", "+", "-"].map(|end| format!("{{{name}{end}"));
            items.iter().any(|item| match item {
                Item::Asked {
                    path, headers, body, ..
                } => [Some(path), body.as_ref()]
                    .into_iter()
                    .flatten()
                    .chain(headers)
                    .any(|text| forms.iter().any(|form| text.contains(form))),
                Item::Answered { .. }
                | Item::Opened { .. }
                | Item::Line { .. }
                | Item::Ended { .. }
                | Item::Did(_)
                | Item::Called(_) => false,
            })
        };
        let captures = captures
            .iter()
            .filter(|(name, _)| used(name))
            .map(|(a, b)| (a.clone(), b.clone()))
            .collect();
        Self {
            captures,
            items,
            hidden,
        }
    }
}

impl<T: Transport> Player<'_, T> {
    async fn step(&mut self, step: &Step) -> Result<(), Error> {
        match step {
            Step::Request(request) => self.request(request).await,
            Step::Watch(watch) => self.watch(watch).await,
            Step::Websocket(watch) => self.websocket(watch).await,
            Step::Control(control) => self.control(*control).await,
            Step::WaitMs(ms) => {
                self.server.settle(Duration::from_millis(*ms)).await;
                Ok(())
            }
        }
    }

    async fn request(&mut self, request: &Request) -> Result<(), Error> {
        let mut answered = None;
        for turn in 0..request.repeat.max(1) {
            self.captures.insert("turn".into(), turn.to_string());
            let body = self.body(request)?;
            let path = self.expand(&request.path)?;
            let mut headers = self.expand_headers(&request.headers)?;
            if request.method == "PATCH" {
                headers
                    .entry("content-type".into())
                    .or_insert(Some("application/merge-patch+json".into()));
            }
            let call = Call {
                method: request.method.clone(),
                path,
                user: request.user,
                headers,
                body,
            };
            let began = self.server.now();
            let answer = self.server.send(&call).await?;
            answered = Some((answer, self.server.now() - began));
        }
        self.captures.remove("turn");
        self.asked(
            &request.method,
            &request.path,
            request.user,
            &request.headers,
            request.body.as_deref().or(request.body_base64.as_deref()),
            request.repeat,
        );
        let calls = self.webhooks.as_ref().map(Webhooks::take_calls);
        self.items.extend(calls.into_iter().flatten().map(Item::Called));
        if let Some((answer, took)) = answered {
            for (name, pointer) in &request.capture {
                let found = capture(&answer, pointer);
                if let Some(name) = name.strip_suffix('?') {
                    self.captures
                        .insert(name.to_owned(), found.unwrap_or_else(|| "none".to_owned()));
                    continue;
                }
                let value = found.ok_or_else(|| {
                    let body = String::from_utf8_lossy(&answer.body)
                        .chars()
                        .take(300)
                        .collect::<String>();
                    Error::server(format!(
                        "{} {}: nothing at {pointer} to capture in: {body}",
                        request.method, request.path
                    ))
                })?;
                self.captures.insert(name.clone(), value);
            }
            let ReadResponse { head, body, broken } = answer;
            self.items.push(Item::Answered {
                head,
                body,
                broken,
                took,
            });
        }
        Ok(())
    }

    /// Returns the body of a request.
    fn body(&self, request: &Request) -> Result<Option<Vec<u8>>, Error> {
        if let Some(text) = &request.body_base64 {
            let decoded = base64url::decode(text);
            let wrong = || Error::author(format!("{}: body_base64 is no base64", request.path));
            return decoded.map(Some).ok_or_else(wrong);
        }
        let text = request.body.as_deref();
        Ok(text.map(|body| self.expand_body(body).into_bytes()))
    }

    async fn watch(&mut self, watch: &Watch) -> Result<(), Error> {
        let opened = self.opened(watch, BTreeMap::new(), 200).await?;
        let mut actions = watch.meanwhile.iter().peekable();
        if watch.until.is_some() {
            for Meanwhile { request, .. } in actions.by_ref() {
                self.request(request).await?;
            }
        }
        let Some((mut stream, opened)) = opened else {
            return Ok(());
        };
        let mut members = self.is_compressed().then(Members::default);
        let end = self.server.now() + Duration::from_millis(watch.read_ms);
        let deaf_until = opened + Duration::from_millis(watch.stall_ms);
        let mut buffer: Vec<u8> = Vec::new();
        let mut lines = 0;
        let how = loop {
            let due = actions
                .peek()
                .map_or(end, |action| opened + Duration::from_millis(action.at_ms));
            let until = due.min(end);
            let chunk = if self.server.now() < deaf_until {
                self.server.sleep_until(until.min(deaf_until)).await;
                if until > deaf_until {
                    continue;
                }
                Chunk::TimeUp
            } else {
                self.server.next(&mut stream, until).await
            };
            match chunk {
                Chunk::End => break "the server, cleanly".to_owned(),
                Chunk::Broken(why) => break format!("broken off: {why}"),
                Chunk::Bytes(bytes) => {
                    let seen = match &mut members {
                        None => {
                            buffer.extend_from_slice(&bytes);
                            self.take_lines(&mut buffer, opened)
                        }
                        Some(members) => {
                            let parts = members.take(&bytes).map_err(Error::server)?;
                            self.take_parts(parts, &mut buffer, opened)
                        }
                    };
                    lines += seen;
                    if watch.lines.is_some_and(|limit| lines >= limit) || self.stops(watch, seen) {
                        break "the reader, who had seen enough".to_owned();
                    }
                }
                Chunk::TimeUp => match actions.next_if(|_| due < end) {
                    Some(Meanwhile { request, .. }) => self.request(request).await?,
                    None => break "the reader, whose time was over".to_owned(),
                },
            }
        };
        self.server.close(stream);
        if !buffer.is_empty() {
            let rest = String::from_utf8_lossy(&buffer).into_owned();
            self.items.push(Item::Line {
                text: format!("{rest} (no newline)"),
                after: self.server.now() - opened,
            });
        }
        self.items.push(Item::Ended {
            how,
            after: self.server.now() - opened,
        });
        Ok(())
    }

    /// Returns whether one of the last `seen` lines contains the text at which the reader stops.
    fn stops(&self, watch: &Watch, seen: usize) -> bool {
        watch.until.as_ref().is_some_and(|text| {
            self.items.iter().rev().take(seen).any(|item| match item {
                Item::Line { text: line, .. } => line.contains(text),
                Item::Asked { .. }
                | Item::Answered { .. }
                | Item::Opened { .. }
                | Item::Ended { .. }
                | Item::Did(_)
                | Item::Called(_) => false,
            })
        })
    }

    /// Opens a stream, and records when its head was received; a response with another status is read to its end.
    async fn opened(
        &mut self,
        watch: &Watch,
        mut headers: BTreeMap<String, Option<String>>,
        status: u16,
    ) -> Result<Option<(T::Stream, Duration)>, Error> {
        headers.extend(self.expand_headers(&watch.headers)?);
        let call = Call {
            user: watch.user,
            headers,
            ..Call::new("GET", &self.expand(&watch.path)?, None)
        };
        let asked = self.server.now();
        let (head, stream) = self.server.open(&call).await?;
        let opened = self.server.now();
        self.asked("GET", &watch.path, watch.user, &watch.headers, None, 1);
        if head.status == status {
            let took = opened - asked;
            self.items.push(Item::Opened { head, took });
            return Ok(Some((stream, opened)));
        }
        let (body, broken) = self.server.read_to_end(stream).await;
        self.items.push(Item::Answered {
            head,
            body,
            broken,
            took: opened - asked,
        });
        Ok(None)
    }

    /// Returns whether the response that was just opened is compressed.
    fn is_compressed(&self) -> bool {
        match self.items.last() {
            Some(Item::Opened { head, .. }) => head
                .headers
                .iter()
                .any(|(name, value)| name == "content-encoding" && value == "gzip"),
            _ => false,
        }
    }

    fn take_parts(&mut self, parts: Vec<Part>, buffer: &mut Vec<u8>, opened: Duration) -> usize {
        let mut count = 0;
        for part in parts {
            match part {
                Part::Text(text) => {
                    buffer.extend_from_slice(&text);
                    count += self.take_lines(buffer, opened);
                }
                Part::End { is_flushed } => {
                    let how = if is_flushed { "flushed and ended" } else { "ended" };
                    self.items.push(Item::Line {
                        text: format!("(the gzip member is {how})"),
                        after: self.server.now() - opened,
                    });
                }
            }
        }
        count
    }

    fn take_lines(&mut self, buffer: &mut Vec<u8>, opened: Duration) -> usize {
        let mut count = 0;
        while let Some(at) = buffer.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = buffer.drain(..=at).collect();
            let text = String::from_utf8_lossy(&line[..at]).into_owned();
            self.items.push(Item::Line {
                text,
                after: self.server.now() - opened,
            });
            count += 1;
        }
        count
    }

    /// Does the same as `watch` for WebSocket messages. Only frames of a server are supported: unmasked ones.
    async fn websocket(&mut self, watch: &Watch) -> Result<(), Error> {
        let headers: BTreeMap<String, Option<String>> = BTreeMap::from([
            ("connection".into(), Some("Upgrade".into())),
            ("upgrade".into(), Some("websocket".into())),
            ("sec-websocket-version".into(), Some("13".into())),
            (
                "sec-websocket-key".into(),
                Some("dGhlIHNhbXBsZSBub25jZQ==".into()),
            ),
        ]);
        let Some((mut stream, _)) = self.opened(watch, headers, 101).await? else {
            return Ok(());
        };
        self.server.upgrade(&mut stream).await?;
        let opened = self.server.now();
        let end = opened + Duration::from_millis(watch.read_ms);
        let mut actions = watch.meanwhile.iter().peekable();
        let mut buffer = Vec::new();
        let how = loop {
            let due = actions
                .peek()
                .map_or(end, |action| opened + Duration::from_millis(action.at_ms));
            match self.server.next(&mut stream, due.min(end)).await {
                Chunk::End => break "the server, by closing the connection".to_owned(),
                Chunk::Broken(why) => break format!("broken off: {why}"),
                Chunk::Bytes(bytes) => {
                    buffer.extend_from_slice(&bytes);
                    while let Some((text, used)) = websocket_frame(&buffer) {
                        buffer.drain(..used);
                        self.items.push(Item::Line {
                            text,
                            after: self.server.now() - opened,
                        });
                    }
                }
                Chunk::TimeUp => match actions.next_if(|_| due < end) {
                    Some(Meanwhile { request, .. }) => self.request(request).await?,
                    None => break "the reader, whose time was over".to_owned(),
                },
            }
        };
        self.server.close(stream);
        self.items.push(Item::Ended {
            how,
            after: self.server.now() - opened,
        });
        Ok(())
    }

    async fn control(&mut self, control: Control) -> Result<(), Error> {
        self.server.control(control).await?;
        let did = match control {
            Control::Compact => "the store is compacted at its current revision",
            Control::RestartApiserver => "the API server is restarted",
        };
        self.items.push(Item::Did(did.to_owned()));
        Ok(())
    }

    /// Addresses and certificates of the webhooks, with what stands for them in transcripts.
    fn hidden(&self) -> Vec<(String, &'static str)> {
        let named = self.unshown.iter();
        named
            .map(|(name, value)| {
                let shown = match *name {
                    "hook" => "<webhook>",
                    "plainhook" => "<plain webhook>",
                    _ => "<authority's certificate>",
                };
                (value.trim_start_matches("https://").to_owned(), shown)
            })
            .collect()
    }

    fn asked(
        &mut self,
        method: &str,
        path: &str,
        user: User,
        headers: &BTreeMap<String, Option<String>>,
        body: Option<&str>,
        repeat: u32,
    ) {
        let user = match user {
            User::Admin => "",
            User::Limited => " (as the user without rights)",
            User::BadToken => " (with a token nobody knows)",
            User::Anonymous => " (without a token)",
        };
        let headers = headers
            .iter()
            .map(|(name, value)| match value {
                Some(value) => format!("{}: {value}", name.to_ascii_lowercase()),
                None => format!("no {}", name.to_ascii_lowercase()),
            })
            .collect();
        self.items.push(Item::Asked {
            method: method.to_owned(),
            path: self.expand_names(path),
            user,
            headers,
            body: body.map(str::to_owned),
            repeat,
        });
    }

    /// Expands only the short names: captured ones remain readable as `{L}`.
    fn expand_names(&self, text: &str) -> String {
        NAMES.iter().fold(text.to_owned(), |text, (name, value)| {
            text.replace(&format!("{{{name}}}"), value)
        })
    }

    fn expand(&self, text: &str) -> Result<String, Error> {
        let (out, unknown) = self.substitute(text);
        match unknown {
            Some(name) => Err(Error::author(format!("{text}: {{{name}}} was never captured"))),
            None => Ok(out),
        }
    }

    /// In a body most braces are JSON, so unknown names are kept.
    fn expand_body(&self, text: &str) -> String {
        self.substitute(text).0
    }

    fn expand_headers(
        &self,
        headers: &BTreeMap<String, Option<String>>,
    ) -> Result<BTreeMap<String, Option<String>>, Error> {
        headers
            .iter()
            .map(|(name, value)| {
                let value = value.as_deref().map(|value| self.expand(value)).transpose()?;
                Ok((name.to_ascii_lowercase(), value))
            })
            .collect()
    }

    /// Replaces `{name}`, `{name+5}`, `{name-1}` and `{x*1000}`; also returns the first unknown name.
    fn substitute(&self, text: &str) -> (String, Option<String>) {
        let mut out = String::with_capacity(text.len());
        let mut unknown = None;
        let mut rest = text;
        while let Some(at) = rest.find('{') {
            out.push_str(&rest[..at]);
            rest = &rest[at..];
            let name_length = rest[1..]
                .bytes()
                .take_while(|b| b.is_ascii_alphanumeric() || b"_+*-".contains(b))
                .count();
            let name = &rest[1..=name_length];
            let closed = rest.as_bytes().get(name_length + 1) == Some(&b'}');
            match (closed && !name.is_empty()).then(|| self.value(name)) {
                Some(Some(value)) => {
                    out.push_str(&value);
                    rest = &rest[name_length + 2..];
                }
                Some(None) => {
                    unknown.get_or_insert_with(|| name.to_owned());
                    out.push('{');
                    rest = &rest[1..];
                }
                None => {
                    out.push('{');
                    rest = &rest[1..];
                }
            }
        }
        out.push_str(rest);
        (out, unknown)
    }

    fn value(&self, name: &str) -> Option<String> {
        if let Some((_, value)) = NAMES.iter().find(|(known, _)| *known == name) {
            return Some((*value).to_owned());
        }
        if let Some(value) = self.unshown.get(name) {
            return Some(value.clone());
        }
        if let Some((unit, times)) = name.split_once('*') {
            return Some(unit.repeat(times.parse().ok()?));
        }
        if let Some((name, plus)) = name.split_once('+') {
            let value: u64 = self.captures.get(name)?.parse().ok()?;
            return Some((value + plus.parse::<u64>().ok()?).to_string());
        }
        if let Some((name, minus)) = name.split_once('-') {
            let value: u64 = self.captures.get(name)?.parse().ok()?;
            return Some(value.saturating_sub(minus.parse().ok()?).to_string());
        }
        self.captures.get(name).cloned()
    }
}

fn capture(answer: &ReadResponse, pointer: &str) -> Option<String> {
    if let Some(name) = pointer.strip_prefix("header:") {
        return answer.head.header(name).map(str::to_owned);
    }
    let value: serde_json::Value = serde_json::from_slice(&answer.body).ok()?;
    let found = value.pointer(pointer)?;
    Some(found.as_str().map_or_else(|| found.to_string(), str::to_owned))
}

/// Returns the first frame of a buffer and its length, if it is complete.
fn websocket_frame(bytes: &[u8]) -> Option<(String, usize)> {
    let (first, second) = (*bytes.first()?, *bytes.get(1)?);
    let (length, start) = match second & 0x7f {
        126 => (
            usize::from(u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?)),
            4,
        ),
        127 => (
            usize::try_from(u64::from_be_bytes(bytes.get(2..10)?.try_into().ok()?)).ok()?,
            10,
        ),
        short => (usize::from(short), 2),
    };
    let payload = bytes.get(start..start + length)?;
    let last = if first & 0x80 == 0 { "part of a " } else { "" };
    let text = match first & 0x0f {
        1 => format!(
            "{last}text message: {}",
            String::from_utf8_lossy(payload).replace('\n', "\\n")
        ),
        2 => format!(
            "{last}binary message: {}",
            String::from_utf8_lossy(payload).replace('\n', "\\n")
        ),
        8 => match payload {
            [high, low, reason @ ..] => {
                let code = u16::from_be_bytes([*high, *low]);
                format!("close {code} {}", String::from_utf8_lossy(reason))
                    .trim_end()
                    .to_owned()
            }
            _ => "close".to_owned(),
        },
        9 => "ping".to_owned(),
        other => format!("frame with opcode {other}, {length} bytes"),
    };
    Some((text, start + length))
}
