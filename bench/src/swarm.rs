//! Many watchers in one thread. They count received bytes and record when they have received an event.

use std::io::{self, Read as _, Write as _};
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use crate::dechunk::Dechunk;
use crate::http::{PATIENCE, head};
use crate::link::{Link, Place};

/// Timeout for all watchers together.
const PATIENCE_WITH_ALL: Duration = Duration::from_secs(120);

/// A set of open watches.
pub(crate) struct Swarm {
    poll: Poll,
    events: Events,
    watchers: Vec<Watcher>,
    buffer: Vec<u8>,
}

struct Watcher {
    socket: Link<TcpStream>,
    body: Dechunk,
    /// Bytes received before the head was complete.
    head: Vec<u8>,
    headed: bool,
}

impl Swarm {
    /// Opens `count` connections, sends `request` on each and waits for all response heads.
    pub(crate) fn open(place: impl Into<Place>, request: &[u8], count: usize) -> io::Result<Self> {
        let place = place.into();
        let mut swarm = Self {
            poll: Poll::new()?,
            events: Events::with_capacity(1024),
            watchers: Vec::with_capacity(count),
            buffer: vec![0; 256 * 1024],
        };
        for number in 0..count {
            let mut socket = place.open()?;
            socket.write_all(request)?;
            socket.flush()?;
            let mut socket = socket.nonblocking()?;
            swarm
                .poll
                .registry()
                .register(socket.socket(), Token(number), Interest::READABLE)?;
            swarm.watchers.push(Watcher {
                socket,
                body: if number == 0 {
                    Dechunk::counting_lines()
                } else {
                    Dechunk::default()
                },
                head: Vec::new(),
                headed: false,
            });
        }
        let mut left = count;
        let given_up = now() + PATIENCE_WITH_ALL;
        while left > 0 {
            let turn = swarm.turn(given_up, |watcher, _| {
                left -= usize::from(watcher.headed && watcher.head.capacity() > 0);
                if watcher.headed {
                    watcher.head = Vec::new();
                }
            });
            turn.map_err(waiting_for(|| format!("the heads of {left} of {count} watches")))?;
        }
        Ok(swarm)
    }

    /// Waits until every watcher has received `content` bytes in total; returns when each had.
    pub(crate) fn reach(&mut self, content: u64) -> io::Result<Vec<Instant>> {
        let behind = |watcher: &Watcher| watcher.body.content < content;
        let mut left = self.watchers.iter().filter(|watcher| behind(watcher)).count();
        let mut arrivals = Vec::with_capacity(left);
        let given_up = now() + PATIENCE_WITH_ALL;
        while left > 0 {
            let turn = self.turn(given_up, |watcher, before| {
                if before < content && !behind(watcher) {
                    left -= 1;
                    arrivals.push(now());
                }
            });
            let missing = || format!("{left} of {} watchers that miss events", self.watchers.len());
            turn.map_err(waiting_for(missing))?;
        }
        Ok(arrivals)
    }

    /// Waits until every watcher has received this many lines in total. Only one watcher counts lines; all receive
    /// the same.
    pub(crate) fn reach_lines(&mut self, lines: u64) -> io::Result<Vec<Instant>> {
        let counted = |swarm: &Self| swarm.watchers.first().and_then(|first| first.body.lines);
        let mut arrivals = Vec::new();
        let given_up = now() + PATIENCE_WITH_ALL;
        while counted(self).is_some_and(|counted| counted < lines) {
            let turn = self.turn(given_up, |_, _| {});
            turn.map_err(waiting_for(|| {
                format!("{lines} events, of which {} came", self.lines())
            }))?;
            arrivals = vec![now()];
        }
        let content = self.watchers.first().map_or(0, |first| first.body.content);
        arrivals.extend(self.reach(content)?);
        Ok(arrivals)
    }

    /// Reads available bytes, and drops watches that ended.
    pub(crate) fn drain(&mut self) -> io::Result<()> {
        self.poll.poll(&mut self.events, Some(Duration::ZERO))?;
        for event in &self.events {
            let watcher = &mut self.watchers[event.token().0];
            loop {
                match watcher.socket.read(&mut self.buffer) {
                    Ok(0) => break,
                    Ok(read) => watcher.take(&self.buffer[..read])?,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// Returns the number of lines received by the watcher that counts them.
    pub(crate) fn lines(&self) -> u64 {
        self.watchers
            .first()
            .and_then(|first| first.body.lines)
            .unwrap_or(0)
    }

    /// Returns the number of bytes received per watcher; all receive the same.
    pub(crate) fn content(&self) -> u64 {
        self.watchers
            .iter()
            .map(|watcher| watcher.body.content)
            .max()
            .unwrap_or(0)
    }

    /// Reads available bytes. `seen` is called for each watcher that was read, with its previous content length.
    /// Fails if no more bytes can arrive, and at `given_up`.
    fn turn(&mut self, given_up: Instant, mut seen: impl FnMut(&mut Watcher, u64)) -> io::Result<()> {
        let left = given_up.saturating_duration_since(now());
        self.poll.poll(&mut self.events, Some(left.min(PATIENCE)))?;
        if self.events.is_empty() || left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        for event in &self.events {
            let watcher = &mut self.watchers[event.token().0];
            let before = watcher.body.content;
            loop {
                match watcher.socket.read(&mut self.buffer) {
                    Ok(0) => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "a watch ended")),
                    Ok(read) => watcher.take(&self.buffer[..read])?,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            seen(watcher, before);
        }
        Ok(())
    }
}

impl Watcher {
    fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.headed {
            self.body.take(bytes);
            return Ok(());
        }
        self.head.extend_from_slice(bytes);
        if let Some(head) = head(&self.head)? {
            if head.status != 200 {
                return Err(io::Error::other(format!("a watch was answered {}", head.status)));
            }
            self.headed = true;
            self.body.take(&self.head[head.end..]);
        }
        Ok(())
    }
}

/// Adds a description of what was awaited to an error.
fn waiting_for(what: impl Fn() -> String) -> impl Fn(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("waiting for {}: {error}", what()))
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
