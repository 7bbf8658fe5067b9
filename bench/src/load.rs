//! Requests on many concurrent connections, from one thread: as many as a server handles.

use std::io::{self, Read as _, Write as _};
use std::time::Duration;

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use crate::dechunk::Dechunk;
use crate::http::{Framing, head};
use crate::link::{Link, Place};
use crate::swarm::now;

/// How connections are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// Kept alive: sequential requests.
    Kept,
    /// One request per connection.
    Once,
}

struct Asker {
    socket: Link<TcpStream>,
    answer: Vec<u8>,
    head: Option<(Framing, usize)>,
    body: Dechunk,
}

/// Sends `count` requests over `connections` at a time, written by `next`; returns the duration.
pub(crate) fn run(
    place: impl Into<Place>,
    connections: usize,
    count: u64,
    usage: Use,
    mut next: impl FnMut(u64, &mut Vec<u8>),
) -> io::Result<Duration> {
    let place = place.into();
    let mut poll = Poll::new()?;
    let mut events = Events::with_capacity(1024);
    let mut buffer = vec![0; 64 * 1024];
    let mut request = Vec::new();
    let mut asked = 0;
    let mut askers = Vec::with_capacity(connections);
    if usage == Use::Kept {
        for number in 0..connections {
            askers.push(open(&poll, &place, number)?);
        }
    }
    let began = now();
    let mut ask = |asker: &mut Asker| -> io::Result<bool> {
        if asked == count {
            return Ok(false);
        }
        request.clear();
        next(asked, &mut request);
        asked += 1;
        asker.answer.clear();
        asker.head = None;
        asker.body = Dechunk::default();
        // A request fits into the empty send buffer of a socket.
        asker.socket.write_all(&request)?;
        asker.socket.flush()?;
        Ok(true)
    };
    let mut busy = 0;
    for number in 0..connections {
        if usage == Use::Once {
            askers.push(open(&poll, &place, number)?);
        }
        busy += usize::from(ask(&mut askers[number])?);
    }
    while busy > 0 {
        poll.poll(&mut events, Some(Duration::from_secs(30)))?;
        if events.is_empty() {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "no answer came any more"));
        }
        for event in &events {
            let number = event.token().0;
            let asker = &mut askers[number];
            let mut done = false;
            loop {
                match asker.socket.read(&mut buffer) {
                    Ok(0) if usage == Use::Once => {
                        done = true;
                        break;
                    }
                    Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                    Ok(read) => done |= asker.take(&buffer[..read])?,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error),
                }
                if done && usage == Use::Kept {
                    break;
                }
            }
            if !done {
                continue;
            }
            if usage == Use::Once {
                *asker = open(&poll, &place, number)?;
            }
            if !ask(asker)? {
                busy -= 1;
            }
        }
    }
    Ok(began.elapsed())
}

fn open(poll: &Poll, place: &Place, number: usize) -> io::Result<Asker> {
    let mut socket = place.open()?.nonblocking()?;
    poll.registry()
        .register(socket.socket(), Token(number), Interest::READABLE)?;
    Ok(Asker {
        socket,
        answer: Vec::new(),
        head: None,
        body: Dechunk::default(),
    })
}

impl Asker {
    /// Processes bytes; returns true when the response is complete.
    fn take(&mut self, bytes: &[u8]) -> io::Result<bool> {
        let mut content = bytes;
        if self.head.is_none() {
            self.answer.extend_from_slice(bytes);
            let Some(head) = head(&self.answer)? else {
                return Ok(false);
            };
            if !(200..300).contains(&head.status) {
                return Err(io::Error::other(
                    String::from_utf8_lossy(&self.answer).into_owned(),
                ));
            }
            self.head = Some((head.framing, self.answer.len() - head.end));
            content = &bytes[bytes.len() - (self.answer.len() - head.end).min(bytes.len())..];
        } else if let Some((_, received)) = &mut self.head {
            *received += bytes.len();
        }
        Ok(match self.head {
            Some((Framing::Length(length), received)) => received as u64 >= length,
            Some((Framing::Chunked, _)) => {
                self.body.take(content);
                self.body.over
            }
            None => false,
        })
    }
}
