//! The lists and watches of the loop, each with its whole response.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use scenario::matching::Read;
use scenario::raw::{ActionKey, Nth, Truncate, When};
use trace::fault::Ending;
use trace::record::{
    ConnId, ExchangeRecord, Frame, FrameType, Group, ObjectRef, Record, Side, StreamId, What,
};

use crate::chosen::Chosen;
use crate::steps::at;
use crate::store::number;

/// Which request it is, as a trigger counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    List,
    Page(u32),
    Watch,
}

/// Head of a response.
#[derive(Debug, Clone)]
pub(super) struct Head {
    pub(super) at: Duration,
    pub(super) status: u16,
    pub(super) retry_after: Option<String>,
    pub(super) scripted: bool,
}

/// A page of a list.
#[derive(Debug, Clone)]
pub(super) struct Page<'r> {
    pub(super) version: &'r str,
    pub(super) continue_token: &'r str,
    pub(super) remaining: Option<i64>,
    pub(super) items: &'r [ObjectRef],
    pub(super) scripted: bool,
}

/// A body that is no list.
#[derive(Debug, Clone)]
pub(super) struct Body<'r> {
    pub(super) reason: Option<&'r str>,
    pub(super) message: Option<&'r str>,
    pub(super) has_token: bool,
}

/// A request and its response.
#[derive(Debug, Clone)]
pub(super) struct Exchange<'r> {
    pub(super) kind: Kind,
    pub(super) trigger: When,
    pub(super) seq: u64,
    pub(super) at: Duration,
    pub(super) conn: ConnId,
    pub(super) read: Read<'r>,
    pub(super) accept: Option<&'r str>,
    pub(super) head: Option<Head>,
    pub(super) page: Option<Page<'r>>,
    pub(super) body: Option<Body<'r>>,
    pub(super) torn: Option<u64>,
    pub(super) frames: Vec<(u64, &'r Frame)>,
    pub(super) withheld: Vec<&'r ObjectRef>,
    pub(super) end: Option<(Duration, Ending, Side)>,
}

/// Rules that the event of a write meets.
#[derive(Debug, Default)]
pub(super) struct Rules {
    pub(super) actions: Vec<ActionKey>,
    /// The frames that these rules make.
    pub(super) causes: Vec<u64>,
}

impl Exchange<'_> {
    /// Whether its last frame was cut, which is an action by itself.
    pub(super) fn is_cut(&self) -> bool {
        self.frames.last().is_some_and(|(_, frame)| !frame.whole())
    }

    /// Returns the action that cuts a frame after `events` whole ones, and ends the response.
    pub(super) fn cut(&self, events: usize, frame: &Frame) -> ActionKey {
        let percent = (frame.sent * 100 / frame.bytes.max(1)).min(99);
        let how = self.end.map_or(Ending::Stall, |(_, how, _)| how);
        let truncate = Truncate {
            after_bytes: None,
            after_events: at(events as u64),
            percent: at(percent),
            then: Some(how.into()),
        };
        ActionKey::Truncate(truncate.into())
    }

    /// Whether it sends the event of a write, or another one, after the record `seq`; or would have sent it.
    pub(super) fn sends_after(&self, seq: u64, object: &ObjectRef) -> bool {
        let last = self.frames.last();
        self.withheld.contains(&object) || last.is_some_and(|(sent, _)| *sent > seq)
    }

    /// Returns the rules that make the events of a write what they are on this watch.
    pub(super) fn rules_for(&self, object: &ObjectRef) -> Rules {
        let mut rules = Rules::default();
        if self.withheld.contains(&object) {
            rules.actions.push(ActionKey::DropEvents(1.into()));
        }
        let is_of_it = |frame: &Frame| frame.object.as_deref() == Some(object) && frame.kind.is_change();
        let of_it: Vec<&(u64, &Frame)> = self.frames.iter().filter(|(_, frame)| is_of_it(frame)).collect();
        if let Some((seq, frame)) = of_it.iter().find(|(_, frame)| !frame.whole()) {
            rules.actions.push(self.cut(0, frame));
            rules.causes.push(*seq);
        }
        let moved: Vec<u64> = of_it
            .iter()
            .filter(|(_, frame)| frame.scripted && frame.whole())
            .map(|(seq, _)| *seq)
            .collect();
        if of_it.len() > 1 && !moved.is_empty() {
            rules
                .actions
                .push(ActionKey::RepeatEvent((of_it.len() as u64).into()));
            rules.causes.extend(moved);
        } else if let Some(first) = moved.first() {
            rules.reorder(self, *first);
        }
        rules
    }

    /// Number of the store's events that are due at its start and were dropped.
    pub(super) fn dropped_at_start(&self, newest: u64) -> usize {
        let is_older = |object: &&&ObjectRef| number(&object.resource_version) <= newest;
        self.withheld.iter().filter(is_older).count()
    }

    /// The first frame that was cut although its object is older than the watch.
    pub(super) fn cut_at_start(&self, newest: u64) -> Option<(u64, ActionKey)> {
        let at = self.frames.iter().position(|(_, frame)| !frame.whole())?;
        let (seq, frame) = self.frames[at];
        let version = number(frame.resource_version()?);
        let is_older = frame.kind.is_change() && !frame.scripted && version <= newest;
        is_older.then(|| (seq, self.cut(at, frame)))
    }
}

impl Rules {
    /// Events that were sent in reverse order: the one that comes first in the store is sent last.
    fn reorder(&mut self, exchange: &Exchange<'_>, last: u64) {
        let version = |frame: &Frame| number(frame.resource_version().unwrap_or_default());
        let upto = exchange
            .frames
            .iter()
            .position(|(seq, _)| *seq == last)
            .unwrap_or_default();
        let mut run = vec![last];
        for pair in exchange.frames[..=upto].windows(2).rev() {
            let [(seq, before), (_, after)] = pair else { break };
            if !before.scripted || !before.kind.is_change() || version(before) <= version(after) {
                break;
            }
            run.push(*seq);
        }
        if run.len() > 1 {
            self.actions
                .push(ActionKey::ReorderEvents((run.len() as u64).into()));
            self.causes.extend(run);
        }
    }
}

/// All of them, by stream.
#[derive(Debug)]
pub(super) struct Exchanges<'r> {
    all: BTreeMap<StreamId, Exchange<'r>>,
    newest_watch: Option<StreamId>,
}

impl<'r> Exchanges<'r> {
    pub(super) fn read(records: &'r [Record], chosen: &Chosen) -> Self {
        let own: BTreeSet<StreamId> = chosen.streams.iter().copied().collect();
        let mut all = BTreeMap::<StreamId, Exchange<'r>>::new();
        let mut counts = Counts::default();
        for record in records.iter().filter(|record| record.seq <= chosen.to) {
            let Some(stream) = record.what.stream().filter(|stream| own.contains(stream)) else {
                continue;
            };
            if let What::Request {
                conn,
                verb,
                query,
                accept,
                ..
            } = &record.what
            {
                let read = Read { verb: *verb, query };
                let (kind, trigger) = counts.count(read);
                let exchange = Exchange {
                    kind,
                    trigger,
                    seq: record.seq,
                    at: record.at,
                    conn: *conn,
                    read,
                    accept: accept.as_deref(),
                    head: None,
                    page: None,
                    body: None,
                    torn: None,
                    frames: Vec::new(),
                    withheld: Vec::new(),
                    end: None,
                };
                all.insert(stream, exchange);
            } else if let Some(exchange) = all.get_mut(&stream) {
                exchange.take(record);
            }
        }
        Self {
            all,
            newest_watch: None,
        }
    }

    pub(super) fn has(&self, stream: StreamId) -> bool {
        self.all.contains_key(&stream)
    }

    /// Returns the exchange of a stream of the loop; call only for one that [`Exchanges::has`].
    pub(super) fn of(&self, stream: StreamId) -> &Exchange<'r> {
        self.all
            .get(&stream)
            .expect("only streams of the loop are passed on")
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Exchange<'r>> {
        self.all.values()
    }

    /// A request arrives.
    pub(super) fn arrive(&mut self, stream: StreamId) {
        if self.of(stream).kind == Kind::Watch {
            self.newest_watch = Some(stream);
        }
    }

    pub(super) fn newest_watch(&self) -> Option<StreamId> {
        self.newest_watch
    }

    /// `seq` of the first request.
    pub(super) fn first(&self) -> Option<u64> {
        self.all.values().next().map(|exchange| exchange.seq)
    }

    /// Whether a list came in several pages.
    pub(super) fn is_paged(&self) -> bool {
        self.iter().any(|exchange| {
            exchange
                .page
                .as_ref()
                .is_some_and(|page| !page.continue_token.is_empty())
        })
    }

    /// Returns the items of the list that begins with this request, if it is complete and nothing but the server's.
    pub(super) fn list_from(&self, stream: StreamId) -> Option<Vec<&'r ObjectRef>> {
        let mut items = Vec::new();
        let pages = self.all.range(stream..).map(|(_, exchange)| exchange);
        for (nth, exchange) in pages.enumerate() {
            if (nth == 0) != (exchange.kind == Kind::List) || exchange.kind == Kind::Watch {
                return None;
            }
            let page = exchange.page.as_ref().filter(|page| !page.scripted)?;
            items.extend(page.items);
            if page.continue_token.is_empty() {
                return Some(items);
            }
        }
        None
    }

    fn lists(&self) -> impl DoubleEndedIterator<Item = Vec<&'r ObjectRef>> {
        let starts = self
            .all
            .iter()
            .filter(|(_, exchange)| exchange.kind == Kind::List);
        starts.filter_map(|(stream, _)| self.list_from(*stream))
    }

    /// Returns the items of the first complete list.
    pub(super) fn first_list(&self) -> Option<Vec<&'r ObjectRef>> {
        self.lists().next()
    }

    /// Returns the items of the last complete list.
    pub(super) fn last_list(&self) -> Option<Vec<&'r ObjectRef>> {
        self.lists().next_back()
    }

    /// Version of the first list, or of the end of the initial events of a watch.
    pub(super) fn first_version(&self) -> Option<&'r str> {
        self.iter().find_map(|exchange| {
            let page = exchange.page.as_ref().filter(|page| !page.scripted);
            let marker = exchange.marker().filter(|frame| !frame.scripted);
            page.map(|page| page.version)
                .or_else(|| marker?.resource_version())
        })
    }
}

/// Numbers of requests, as triggers count them.
#[derive(Default)]
struct Counts<'r> {
    lists: u32,
    pages: u32,
    watches: u32,
    token: Option<&'r str>,
}

impl<'r> Counts<'r> {
    fn count(&mut self, read: Read<'r>) -> (Kind, When) {
        let nth = |number: u32| at(Nth(number.to_string()));
        if read.is_watch() {
            self.watches += 1;
            let when = When {
                watch: nth(self.watches),
                ..When::default()
            };
            return (Kind::Watch, when);
        }
        let Some(token) = read.param("continue") else {
            (self.lists, self.pages, self.token) = (self.lists + 1, 1, None);
            let when = When {
                list: nth(self.lists),
                ..When::default()
            };
            return (Kind::List, when);
        };
        // A request that repeats a token is for the same page.
        if self.token != Some(token) {
            self.pages += 1;
            self.token = Some(token);
        }
        let when = When {
            list: nth(self.lists.max(1)),
            page: at(self.pages.max(2)),
            ..When::default()
        };
        (Kind::Page(self.pages), when)
    }
}

impl<'r> Exchange<'r> {
    /// The bookmark that ends the initial events.
    pub(super) fn marker(&self) -> Option<&'r Frame> {
        let is_marker = |frame: &Frame| {
            matches!(
                &frame.kind,
                FrameType::Bookmark {
                    initial_events_end: Some(_)
                }
            )
        };
        self.frames
            .iter()
            .map(|(_, frame)| *frame)
            .find(|frame| is_marker(frame))
    }

    /// Adds a record of the response.
    fn take(&mut self, record: &'r Record) {
        let Group::Exchange(part) = record.what.group() else {
            return;
        };
        match part {
            ExchangeRecord::Head {
                status,
                retry_after,
                scripted,
                ..
            } => {
                self.head = Some(Head {
                    at: record.at,
                    status: *status,
                    retry_after: retry_after.clone(),
                    scripted: *scripted,
                });
            }
            ExchangeRecord::Page {
                resource_version,
                continue_token,
                remaining,
                items,
                scripted,
                ..
            } => {
                self.page = Some(Page {
                    version: resource_version,
                    continue_token,
                    remaining: *remaining,
                    items,
                    scripted: *scripted,
                });
            }
            ExchangeRecord::Body {
                reason,
                message,
                continue_token,
                ..
            } => {
                self.body = Some(Body {
                    reason: reason.as_deref(),
                    message: message.as_deref(),
                    has_token: continue_token.is_some(),
                });
            }
            ExchangeRecord::Torn { sent, .. } => self.torn = Some(*sent),
            ExchangeRecord::Frame { frame, .. } => self.frames.push((record.seq, frame)),
            ExchangeRecord::Withheld { object, .. } => self.withheld.push(object),
            ExchangeRecord::End { how, by, .. } => self.end = Some((record.at, *how, *by)),
            ExchangeRecord::Request { .. } | ExchangeRecord::Sent { .. } | ExchangeRecord::Webhook { .. } => {
            }
        }
    }
}
