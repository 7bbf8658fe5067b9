//! What a request meets: the writes that happened before it, and how its response differs from the usual one.

use std::collections::BTreeMap;
use std::time::Duration;

use apimachinery::continue_token::ContinueToken;
use scenario::raw::{ActionKey, At, EditPage, Json, Loose, OneOrMany, Text, Truncate};
use serde_json::Value;
use trace::fault::Ending;
use trace::record::{Side, StreamId, Verb};

use super::exchange::{Exchange, Kind, Page};
use super::{Story, condition, words};
use crate::file::Origin;
use crate::steps::{at, time};
use crate::store::{Object, number};

/// A shorter time until the response is no delay.
const SHORTEST_DELAY: Duration = Duration::from_millis(500);

impl<'r> Story<'r> {
    pub(super) fn on_request(&mut self, stream: StreamId) {
        self.exchanges.arrive(stream);
        let exchange = self.exchanges.of(stream).clone();
        self.steps.request(exchange.trigger.clone(), exchange.at);
        self.pending = Some(stream);
        self.catch_up(stream, &exchange);
        match (&exchange.head, exchange.end) {
            (None, Some((at, how, Side::Server))) => {
                if self.ended_at != Some(at) {
                    self.steps.at_request(ActionKey::NoAnswer(how.into()));
                }
                return;
            }
            (None, Some((at, _, Side::Client))) if at.saturating_sub(exchange.at) >= SHORTEST_DELAY => {
                self.steps.at_request(ActionKey::NoAnswer(Ending::Stall.into()));
                return;
            }
            (None, _) => return,
            (Some(head), _) => {
                let delay = head.at.saturating_sub(exchange.at);
                // A stale cache makes reads wait by itself.
                if delay >= SHORTEST_DELAY && !(self.is_stale && self.origin == Origin::Model) {
                    self.steps.at_request(ActionKey::Delay(time(delay).into()));
                }
                if self.is_replied(head.status, head.scripted) {
                    let body = self.contents.take(stream, |_| true).filter(|_| head.scripted);
                    let reply = words::reply(&exchange, head.status, head.retry_after.as_deref(), body);
                    self.steps.at_request(reply);
                    self.over.insert(stream);
                    return;
                }
            }
        }
        match exchange.kind {
            Kind::Watch => self.watch_begins(&exchange),
            Kind::List | Kind::Page(_) => self.list_is_sent(stream, &exchange),
        }
    }

    /// Whether a status is one that the scenario has to send.
    fn is_replied(&mut self, status: u16, scripted: bool) -> bool {
        let is_of_request = matches!(status, 400 | 404 | 405 | 406 | 415 | 422);
        match self.origin {
            _ if scripted => true,
            _ if status < 300 || is_of_request => false,
            Origin::Model => status == 410 && !self.is_expired,
            Origin::Upstream | Origin::AuditLog => true,
        }
    }

    /// Makes the writes that a later list of an upstream shows.
    fn catch_up(&mut self, stream: StreamId, exchange: &Exchange<'r>) {
        if self.origin == Origin::Model || exchange.kind != Kind::List {
            return;
        }
        let Some(items) = self.exchanges.list_from(stream) else {
            return;
        };
        let version = exchange
            .page
            .as_ref()
            .map(|page| page.version)
            .unwrap_or_default();
        let listed: BTreeMap<String, Object> = items
            .into_iter()
            .map(|item| (item.key.clone(), self.object(item)))
            .collect();
        let changes = self.store.changes_to(&listed, version);
        if !changes.is_empty() {
            self.unknown.insert(
                "when others wrote while no watch was open: these writes are made just before the next list"
                    .to_owned(),
            );
        }
        for change in changes {
            self.make(change, exchange.at, true);
        }
        self.store.saw(version);
    }

    fn watch_begins(&mut self, exchange: &Exchange<'r>) {
        let dropped = exchange.dropped_at_start(self.store.newest);
        if dropped > 0 {
            self.steps
                .at_request(ActionKey::DropEvents((dropped as u64).into()));
        }
        if exchange.read.verb == Verb::WatchList && self.origin == Origin::Model {
            match exchange.marker() {
                None if lasted(exchange) => self.steps.at_request(ActionKey::NoBookmarks(().into())),
                Some(frame) if frame.scripted => {
                    let kind = &frame.kind;
                    if let trace::record::FrameType::Bookmark {
                        initial_events_end: Some(value),
                    } = kind
                        && value != "true"
                    {
                        self.steps
                            .at_request(ActionKey::EndMarker(Text::from(value.as_str()).into()));
                        let seq = exchange.frames.iter().find(|(_, of)| std::ptr::eq(*of, frame));
                        self.caused.extend(seq.map(|(seq, _)| *seq));
                    }
                }
                None | Some(_) => {}
            }
        }
        if self.origin == Origin::Model
            && let Some((seq, action)) = exchange.cut_at_start(self.store.newest)
        {
            self.steps.at_request(action);
            self.caused.insert(seq);
        }
    }

    fn list_is_sent(&mut self, stream: StreamId, exchange: &Exchange<'r>) {
        if let Some(page) = exchange.page.as_ref().filter(|page| page.scripted) {
            let edit = self.edit(stream, exchange, page);
            self.steps.at_request(edit);
        }
        let Some((_, how, Side::Server)) = exchange.end else {
            return;
        };
        let is_whole = exchange.page.is_some() || exchange.body.is_some();
        match exchange.torn {
            Some(bytes) => {
                let truncate = Truncate {
                    after_bytes: at(bytes),
                    then: Some(how.into()),
                    ..Truncate::default()
                };
                self.steps.at_request(ActionKey::Truncate(truncate.into()));
            }
            None if !is_whole && self.origin != Origin::AuditLog => {
                self.steps.at_request(words::ending(how));
            }
            None if how != Ending::Eof => {
                self.unknown
                    .insert("how a connection ended after a whole list".to_owned());
            }
            None => {}
        }
    }

    /// Returns the change of a page that the script of the recorded server made.
    fn edit(&mut self, stream: StreamId, exchange: &Exchange<'r>, page: &Page<'r>) -> ActionKey {
        let mut edit = EditPage::default();
        if number(page.version) != self.store.newest {
            edit.rv = Some(self.condition(page.version));
        }
        let is_real = ContinueToken::decode(page.continue_token).is_ok();
        if !page.continue_token.is_empty() && !is_real {
            edit.continue_token = Some(condition(page.continue_token));
        }
        edit.remaining = page.remaining.map(At::from);
        let is_item = |key: &str| page.items.iter().any(|item| item.key == key);
        let is_one_page = exchange.kind == Kind::List && page.continue_token.is_empty();
        let missing = self.store.objects().keys().filter(|key| !is_item(key));
        let missing: Vec<&str> = missing.map(|key| crate::manifest::parts(key).1).collect();
        if page.items.is_empty() && !self.store.objects().is_empty() {
            edit.without = at(OneOrMany(vec![At::from(Text::from("*"))]));
        } else if is_one_page && !missing.is_empty() {
            let names = missing.into_iter().map(|name| At::from(Text::from(name)));
            edit.without = at(OneOrMany(names.collect()));
        }
        let mut added = Vec::new();
        for item in page.items {
            let stored = self.store.get(&item.key);
            if stored.is_some_and(|stored| stored.version == item.resource_version) {
                continue;
            }
            let name = crate::manifest::parts(&item.key).1;
            let sent = self
                .contents
                .take(stream, |sent| sent["metadata"]["name"] == name);
            let object = sent.unwrap_or_else(|| {
                let mut object = self.kind.manifest(&item.key, &item.resource_version, None);
                object["metadata"]["resourceVersion"] = Value::String(item.resource_version.clone());
                object
            });
            added.push(At::from(Loose::Whole(Json(object))));
        }
        if !added.is_empty() {
            edit.add = at(OneOrMany(added));
        }
        if edit == EditPage::default() {
            self.unknown
                .insert("what a scripted page changed beside items and versions".to_owned());
            edit.rv = Some(self.condition(page.version));
        }
        ActionKey::EditPage(edit.into())
    }
}

/// Whether a streaming list was open long enough for its marker.
fn lasted(exchange: &Exchange<'_>) -> bool {
    let Some(head) = &exchange.head else { return false };
    let is_cut = exchange.is_cut();
    let ended = exchange.end.map(|(at, ..)| at);
    !is_cut && ended.is_none_or(|at| at.saturating_sub(head.at) >= Duration::from_secs(1))
}
