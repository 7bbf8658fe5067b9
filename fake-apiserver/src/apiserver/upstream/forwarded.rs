//! A request that the upstream answers: how much of its response has come, and the events that wait for their time.
//!
//! It knows neither rules nor the queue of the response.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use apimachinery::ObjectRef;
use apimachinery::path::{ResourcePath, decoded_path};
use http::HeaderMap;
use trace::fault::Ending;
use trace::record::Verb;

use super::caches::Mode;
use super::older::{Copied, ListKey};
use crate::apiserver::Asked;
use crate::model::WatchFrame;
use crate::upstream::document::Document;
use crate::upstream::frame::Named;
use crate::upstream::lines::Lines;

/// Bytes of events that a watch holds back before the upstream has to wait; fewer if many responses are open.
const HELD_BYTES_MAX: usize = 256 * 1024;

/// A request that the upstream answers.
#[derive(Debug)]
pub(in crate::apiserver) struct Forwarded {
    pub(super) verb: Verb,
    /// Group and plural.
    pub(super) resource: (String, String),
    /// Of a list.
    pub(super) key: Option<ListKey>,
    pub(super) stage: Stage,
    /// Length of the body, if its head has one.
    pub(super) length: Option<u64>,
    /// A part of the response was asked for and has not come.
    pub(super) pulling: bool,
    /// Events that have come, with the time at which each did.
    pub(super) held: VecDeque<(Duration, WatchFrame)>,
    pub(super) held_bytes: usize,
    /// End that a rule decided before there was a head.
    pub(super) ending: Option<Ending>,
    /// Kind of its events, and the version up to which they were sent.
    pub(super) named: Option<Arc<Named>>,
    pub(super) shown: Option<Arc<ObjectRef>>,
}

/// How much of the response has come.
#[derive(Debug)]
pub(super) enum Stage {
    /// Nothing.
    Sent,
    /// The head of a watch.
    Watch(Lines),
    /// The head of a list; with the bytes, if they may be sent again.
    List(Box<Document>, Option<Copied>),
    /// The head of anything else.
    Other(Box<Document>, u16),
    /// The head of another protocol, whose bytes the edge carries.
    Tunnel,
    /// All of a watch.
    Complete,
}

impl Forwarded {
    /// `headers`: those of the request for the upstream, with the credentials of its user.
    pub(super) fn new(asked: &Asked, headers: &HeaderMap) -> Self {
        let path = decoded_path(&asked.request.path);
        let place = ResourcePath::read(&path);
        let resource = place.map(|place| (place.group.to_owned(), place.resource.to_owned()));
        Self {
            verb: asked.verb,
            resource: resource.unwrap_or_default(),
            key: (asked.verb == Verb::List).then(|| ListKey::of(&asked.request, headers)),
            stage: Stage::Sent,
            length: None,
            pulling: true,
            held: VecDeque::new(),
            held_bytes: 0,
            ending: None,
            named: None,
            shown: None,
        }
    }

    /// Whether it is a watch, as far as is known yet.
    pub(in crate::apiserver) fn is_watch(&self) -> bool {
        let reads_events = matches!(self.verb, Verb::Watch | Verb::WatchList);
        reads_events && matches!(self.stage, Stage::Sent | Stage::Watch(_) | Stage::Complete)
    }

    /// Whether all bytes have come that the head announced: a client that has them reads no further, and leaves.
    pub(super) fn has_all(&self) -> bool {
        match &self.stage {
            Stage::List(document, _) | Stage::Other(document, _) => self.length == Some(document.bytes()),
            Stage::Sent | Stage::Watch(_) | Stage::Tunnel | Stage::Complete => false,
        }
    }

    /// Ends the response once its head has come. Returns false if it has.
    pub(in crate::apiserver) fn end_after_head(&mut self, ending: Ending) -> bool {
        let waits = matches!(self.stage, Stage::Sent);
        if waits {
            self.ending.get_or_insert(ending);
        }
        waits
    }

    /// Returns the next event that is due, if its cache is in this mode.
    pub(in crate::apiserver) fn next(&mut self, now: Duration, mode: Mode) -> Option<WatchFrame> {
        self.due(mode).filter(|due| *due <= now)?;
        let (_, frame) = self.held.pop_front()?;
        self.held_bytes -= frame.line.len().min(self.held_bytes);
        if let Some(object) = &frame.object {
            self.shown = Some(object.clone());
        }
        Some(frame)
    }

    /// Returns when the next event is due; `None`: there is none, or its cache is frozen.
    pub(in crate::apiserver) fn due(&self, mode: Mode) -> Option<Duration> {
        let (arrived, _) = self.held.front()?;
        mode.due(*arrived)
    }

    /// Whether all of a watch was delivered.
    pub(in crate::apiserver) fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Complete) && self.held.is_empty()
    }

    /// Whether the next part is to be asked for, with `room` for bytes of the response, and `share` for events that are held
    /// back. Then it counts as asked for.
    pub(in crate::apiserver) fn pulls(&mut self, room: usize, share: usize) -> bool {
        let comes = matches!(self.stage, Stage::Watch(_) | Stage::List(..) | Stage::Other(..));
        let pulls = comes && !self.pulling && room > 0 && self.held_bytes < share.min(HELD_BYTES_MAX);
        self.pulling |= pulls;
        pulls
    }
}
