//! Explanation by several loops: which loops may exist, and where each may resume.
//!
//! A loop starts with a snapshot: a list, a streaming list, or a watch without a version. It is idle at the
//! snapshot's version until a watch starts from there, and idle again where that watch ended; a readable 410 ends it,
//! because it must relist. A watch that starts where an idle loop may be is explained. The ledger therefore does not
//! assign requests to loops, but only checks whether some loop may have sent them; if ambiguous, it keeps every loop
//! that may remain.
//!
//! Independent of the records kept, of texts, and of how requests of a single loop are judged.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use ::trace::fault::Ending;
use ::trace::record::{ConnId, Frame, FrameType, Side, StreamId, Verb};

use super::asked::{Asked, Suspicion};
use super::chains::{Chains, List, Page};
use super::dead::DeadVersions;
use super::open::{Answered, Open};
use super::position::{Position, Version};
use super::rate::Rate;
use crate::invariants::{resumes_from, starts_live};
use crate::trace::{Moment, readable};

/// Maximum time until an abandoned watch is recorded as closed (CLOSE-01); after it the loop that resumed is known.
pub(super) const CLOSING: Duration = Duration::from_millis(2_050);

/// Minimum lifetime of a watch; shorter ones ended immediately.
const AT_ONCE: Duration = Duration::from_secs(1);

/// Maximum number of resume points of idle loops; the oldest are dropped.
const IDLE_MAX: usize = 256;

/// Maximum number of remembered claims about lists.
const REMEMBERED_MAX: usize = 64;

/// Maximum number of watches per connection that may not have been read to their end.
const SETTLED_MAX: usize = 16;

/// Invariants that an unexplained watch may break.
const RESUMPTION: &[&str] = &["INV-01", "INV-02", "INV-03", "INV-04", "INV-17"];

/// The loops of one name that read one collection.
#[derive(Debug)]
pub(super) struct Ledger {
    idle: VecDeque<(Position, u64)>,
    open: BTreeMap<StreamId, Open>,
    /// Watches not explained by an idle loop: a loop whose watch is about to close may have sent them.
    waiting: BTreeSet<(Version, u64)>,
    deadlines: VecDeque<(Duration, Version, u64)>,
    /// Possible resume points of dropped loops.
    forgotten: Option<Position>,
    /// Open watches that their readers have no reason to leave.
    watching: usize,
    /// Watches that ended cleanly, but whose last bytes may be lost with their connection before they are read.
    settled: BTreeMap<ConnId, VecDeque<Position>>,
    chains: Chains,
    rate: Rate,
    dead: DeadVersions,
    /// Claims against the loop that started with the list of a version.
    claims: VecDeque<(Version, &'static [&'static str], u64)>,
    /// A loop started with `resourceVersion=0`, or may have.
    begins_from_zero: bool,
    has_set: bool,
    /// A page was scripted. A client that trusted it may be unable to read unmodified data, e.g. of another kind.
    is_misled: bool,
    /// The newest version sent to any loop.
    newest: Option<Version>,
    /// A watch failed since the last successful list.
    watch_failed: bool,
    news: Vec<Suspicion>,
}

impl Ledger {
    /// Creates a ledger. `alone`: the client was started by the harness, so no other client shares its name.
    /// `forgotten`: possible resume points of loops that were dropped.
    pub(super) fn new(alone: bool, forgotten: Option<Position>) -> Self {
        Self {
            idle: VecDeque::new(),
            open: BTreeMap::new(),
            waiting: BTreeSet::new(),
            deadlines: VecDeque::new(),
            chains: Chains::new(forgotten.is_some()),
            forgotten,
            watching: 0,
            settled: BTreeMap::new(),
            rate: Rate::new(alone),
            dead: DeadVersions::default(),
            claims: VecDeque::new(),
            begins_from_zero: false,
            has_set: false,
            is_misled: false,
            newest: None,
            watch_failed: false,
            news: Vec::new(),
        }
    }

    /// Processes a list or watch request. `elsewhere`: whether the client may know this version from another source
    /// than this collection, or under another name; `list_of`: the list of a continue token that a loop of another name was sent.
    pub(super) fn ask(
        &mut self,
        asked: Asked<'_>,
        elsewhere: impl FnOnce(Version) -> bool,
        list_of: impl FnOnce(&str) -> Option<List>,
    ) {
        self.rate.ask(asked.conn, asked.at.at, asked.at.seq);
        let value = |name: &str| {
            let found = asked.query.iter().find(|(key, _)| key == name);
            found
                .map(|(_, value)| value.as_str())
                .filter(|value| !value.is_empty())
        };
        let version = value("resourceVersion");
        let from = version.filter(|version| *version != "0").map(Version::of);
        let token = value("continue");
        let mut open = Open {
            conn: asked.conn,
            asked: asked.at,
            heard: asked.at.at,
            late: None,
            doubtful: None,
            verb: asked.verb,
            revision: asked.revision,
            from,
            read: Position::OneOf(from.into_iter().collect()),
            kept: Position::OneOf(from.into_iter().collect()),
            started: from.is_some() && asked.verb == Verb::Watch,
            explained: true,
            unmodified: !self.is_misled,
            expired: false,
            is_readable: true,
            troubled: false,
            status: None,
            answered: Answered::Nothing,
            list: None,
            set: None,
            list_forgotten: false,
            token: token.map(str::to_owned),
            from_zero: version == Some("0"),
            rewinds: false,
        };
        match (asked.verb, token, from) {
            (Verb::List, Some(token), _) => {
                match self.chains.ask(token, asked.path, asked.query, asked.at.seq) {
                    Page::Of(Some(list)) => open.list = Some(list),
                    Page::Of(None) => open.list_forgotten = true,
                    Page::Misused => match list_of(token) {
                        Some(list) => open.list = Some(list),
                        None => self.suspect(&["INV-22"], Some(asked.at.seq)),
                    },
                }
            }
            (Verb::List, None, _) => {
                open.rewinds = open.from_zero && self.is_one_that_must_list();
                open.list = Some(List::of(asked.path, asked.query));
                self.begin(open.from_zero);
            }
            (Verb::WatchList, _, Some(version)) if self.begins_at(version) => self.begin(false),
            (_, _, Some(version)) => open.explained = self.resume(version, asked.at, elsewhere),
            (_, _, None) => self.begin(open.from_zero),
        }
        self.watching += usize::from(open.is_live_watch());
        self.open.insert(asked.stream, open);
    }

    /// Processes a response head.
    pub(super) fn head(&mut self, stream: StreamId, status: u16, retry_after: Option<&str>, now: Duration) {
        let Some(open) = self.open.get_mut(&stream) else {
            return;
        };
        let was_live = open.is_live_watch();
        open.status = Some(status);
        open.expired |= status == 410 && open.is_prompt(now);
        open.troubled |= status == 410;
        open.hear(now);
        self.watching -= usize::from(was_live && !open.is_live_watch());
        let seconds = retry_after.and_then(|after| after.trim().parse().ok());
        if let Some(seconds) = seconds
            && matches!(status, 429 | 503)
        {
            self.rate
                .refuse(stream, open.conn, now, Duration::from_secs(seconds));
        }
        let asked = (open.verb == Verb::List && status == 410).then_some((open.from, open.asked.seq));
        self.list_at(asked);
    }

    /// Records a list at a version that was rejected with 410, or returned that version again.
    fn list_at(&mut self, asked: Option<(Option<Version>, u64)>) {
        if let Some((Some(version), seq)) = asked
            && self.dead.list(version)
        {
            self.suspect(&["INV-04"], Some(seq));
        }
    }

    /// Processes a complete page.
    pub(super) fn page(&mut self, stream: StreamId, version: &str, token: &str, scripted: bool) {
        self.see(Version::of(version));
        self.is_misled |= scripted;
        let Some(open) = self.open.get_mut(&stream) else {
            return;
        };
        open.answered = Answered::Page;
        if open.status.is_some_and(|status| status != 200) {
            return;
        }
        let Some(list) = &mut open.list else {
            if token.is_empty() && open.list_forgotten {
                self.release(Position::Anywhere);
            }
            return;
        };
        list.add(version);
        if !token.is_empty() {
            let list = list.clone();
            self.chains.give(token, &list);
            return;
        }
        let Some(list) = open.list.take() else { return };
        let rewinds = open.rewinds.then_some(open.asked.seq);
        let mut position = Position::OneOf(Vec::new());
        list.versions.iter().for_each(|version| position.add(*version));
        open.set = list.versions.first().copied();
        if let Some(version) = list.versions.first() {
            for (checks, seq) in [
                (&["INV-05"] as &'static [_], rewinds),
                (&["INV-22"], list.other_limit),
            ] {
                if let Some(seq) = seq {
                    self.claim(*version, checks, seq);
                }
            }
        }
        self.has_set = true;
        self.release(position);
    }

    /// Processes another body. `offered`: token of an Expired Status. `whole`: all of its bytes were sent.
    pub(super) fn body(&mut self, stream: StreamId, offered: Option<&str>, whole: bool) {
        let Some(open) = self.open.get_mut(&stream) else {
            return;
        };
        open.answered = if whole { Answered::Other } else { Answered::Torn };
        if open.verb != Verb::List {
            return;
        }
        if let Some(token) = offered {
            let list = open.list.clone();
            match list {
                Some(list) => self.chains.give(token, &list),
                None => self.chains.forgot = true,
            }
        } else if whole && open.status.is_some_and(|status| status < 300) {
            // It may have been a snapshot; its content is unknown.
            self.chains.forgot = true;
            self.has_set = true;
            self.release(Position::Anywhere);
        }
    }

    /// Processes a line of a watch.
    pub(super) fn frame(&mut self, stream: StreamId, frame: &Frame, now: Duration) {
        let is_misled = self.is_misled;
        let Some(open) = self.open.get_mut(&stream).filter(|open| !open.is_refused()) else {
            return;
        };
        let version = resumes_from(frame).map(Version::of);
        let is_created_since = frame.kind == FrameType::Added
            && version.is_some_and(Version::is_number)
            && open.revision.is_some_and(|began| Some(began) < version);
        open.started |= starts_live(open.verb, frame) || (open.verb == Verb::Watch && is_created_since);
        let sound = !frame.scripted && readable(frame) && version.is_some();
        // Lines after an unreadable one may not have been read.
        if let FrameType::Error { code: 410, .. } = &frame.kind {
            let was_live = open.is_live_watch();
            let is_whole = frame.sent == frame.bytes;
            open.expired |= is_whole && open.is_readable && open.is_prompt(now) && !open.may_be_rejected(now);
            self.watching -= usize::from(was_live && !open.is_live_watch());
        }
        open.hear(now);
        open.is_readable &= readable(frame);
        if !sound || is_misled {
            open.doubtful = Some(now);
        }
        open.unmodified &= sound;
        open.troubled |= !sound;
        let Some(version) = version.filter(|_| open.started) else {
            return;
        };
        open.read.add(version);
        if open.unmodified {
            open.kept = Position::at(version);
        } else {
            open.kept.add(version);
        }
        self.has_set |= open.verb == Verb::WatchList;
        self.see(version);
    }

    /// Processes the end of a response.
    pub(super) fn end(&mut self, stream: StreamId, how: Ending, by: Side, now: Duration) {
        let Some(open) = self.remove(stream) else {
            return;
        };
        let lossy = by == Side::Server && how.may_lose_bytes();
        let clean = by == Side::Server && matches!(how, Ending::Eof | Ending::Fin | Ending::NoCloseNotify);
        if lossy {
            self.rate.lose(stream);
        }
        let is_back = by == Side::Server && how == Ending::Eof && open.set.is_some() && open.set == open.from;
        self.list_at(is_back.then_some((open.from, open.asked.seq)));
        self.close(open, by, lossy, clean, now);
    }

    /// Processes a closed connection.
    pub(super) fn disconnect(&mut self, conn: ConnId, by: Side, now: Duration) {
        let cut: Vec<StreamId> = self
            .open
            .iter()
            .filter(|(_, open)| open.conn == conn)
            .map(|(stream, _)| *stream)
            .collect();
        for stream in cut {
            if let Some(open) = self.remove(stream) {
                self.rate.lose(stream);
                self.close(open, by, by == Side::Server, false, now);
            }
        }
        let settled = self.settled.remove(&conn).unwrap_or_default();
        if by == Side::Server {
            for read in settled {
                self.release(read);
            }
        }
        if by == Side::Client {
            self.rate.leave(conn);
        }
    }

    /// Advances the time without a record.
    pub(super) fn pass_time(&mut self, now: Duration) {
        while let Some((until, version, seq)) = self.deadlines.front().copied()
            && until <= now
        {
            self.deadlines.pop_front();
            if self.waiting.remove(&(version, seq)) {
                self.suspect(RESUMPTION, Some(seq));
            }
        }
        if self.rate.is_waiting() {
            let mut watches = self.open.values().filter(|open| open.is_live_watch());
            let alone = watches.next().map(|open| open.asked.at);
            for seq in self.rate.early(alone, now) {
                self.suspect(&["INV-16"], Some(seq));
            }
        }
    }

    /// Returns when the passing of time may prove a violation.
    pub(super) fn due(&self, now: Duration) -> Option<Duration> {
        let closing = self.deadlines.front().map(|(until, ..)| *until);
        let patience = self.rate.is_waiting().then(|| now + Rate::patience());
        closing.into_iter().chain(patience).min()
    }

    /// Records that the clients were stopped: none reconnects.
    pub(super) fn stop(&mut self) {
        for seq in self.rate.conclude() {
            self.suspect(&["INV-16"], Some(seq));
        }
    }

    /// Returns and clears the suspicions found since the last call.
    pub(super) fn news(&mut self) -> Vec<Suspicion> {
        std::mem::take(&mut self.news)
    }

    /// Returns true if some loop received a complete list.
    pub(super) fn has_snapshot(&self) -> bool {
        self.has_set
    }

    /// Returns true if a loop may be at this version.
    pub(super) fn knows(&self, version: Version) -> bool {
        self.remembers(version) || self.open.values().any(|open| open.read.allows(version))
    }

    /// Returns true if a loop that is idle or forgotten may be at this version.
    fn remembers(&self, version: Version) -> bool {
        let mut idle = self
            .idle
            .iter()
            .map(|(position, _)| position)
            .chain(&self.forgotten);
        idle.any(|position| position.allows(version))
    }

    /// Returns true if a client may have been sent this version, whatever its name.
    pub(super) fn has_sent(&self, version: Version) -> bool {
        let mut open = self.open.values().filter(|open| open.explained);
        self.remembers(version) || open.any(|open| open.read.allows(version))
    }

    /// Returns the list that a continue token belongs to.
    pub(super) fn list_of(&self, token: &str) -> Option<List> {
        self.chains.list_of(token)
    }

    /// Returns the possible resume points of all loops, for when they are dropped.
    pub(super) fn everywhere(&self) -> Position {
        Position::up_to(self.newest)
    }

    /// Returns the minimum number of loops that existed at the same time.
    pub(super) fn loops(&self) -> usize {
        self.rate.loops.max(self.watching)
    }

    /// Returns the approximate memory use, in records: a few entries of the collections count as one record.
    pub(super) fn held(&self) -> usize {
        let settled: usize = self.settled.values().map(VecDeque::len).sum();
        let places = self.idle.len() + self.waiting.len() + self.deadlines.len() + settled;
        self.open.len() + (places + self.rate.held()) / 2 + self.dead.len() + self.chains.held()
    }

    /// Returns true if a list or watch is in progress.
    pub(super) fn is_busy(&self) -> bool {
        !self.open.is_empty()
    }

    fn remove(&mut self, stream: StreamId) -> Option<Open> {
        let open = self.open.remove(&stream)?;
        self.watching -= usize::from(open.is_live_watch());
        Some(open)
    }

    fn suspect(&mut self, checks: &'static [&'static str], seq: Option<u64>) {
        self.news.push(Suspicion { checks, seq });
    }

    fn see(&mut self, version: Version) {
        self.newest = self.newest.max(Some(version));
    }

    fn claim(&mut self, version: Version, checks: &'static [&'static str], seq: u64) {
        if self.claims.len() == REMEMBERED_MAX {
            self.claims.pop_front();
        }
        self.claims.push_back((version, checks, seq));
    }

    /// Records that a loop starts, or starts again.
    fn begin(&mut self, from_zero: bool) {
        self.begins_from_zero |= from_zero;
        if self.open.values().any(|open| !open.expired) {
            self.rate.see(2);
        }
    }

    /// Returns true if a streaming list not older than a version can start a loop. Like a LIST at a version it reads
    /// a new snapshot, also after a 410: loops here must have received the version.
    fn begins_at(&self, version: Version) -> bool {
        self.has_set && self.everywhere().allows(version)
    }

    /// Returns true if there was only one loop and it must relist. Loops of one program start in the same way, so a
    /// request with `resourceVersion=0` is not from another loop.
    fn is_one_that_must_list(&self) -> bool {
        self.has_set
            && !self.begins_from_zero
            && self.rate.loops == 1
            && self.idle.is_empty()
            && self.waiting.is_empty()
            && self.forgotten.is_none()
            && self.open.values().all(|open| open.expired)
            && (self.dead.len() > 0 || !self.open.is_empty())
    }

    /// Processes a watch from a version. Returns whether some loop may have sent it.
    fn resume(&mut self, version: Version, asked: Moment, elsewhere: impl FnOnce(Version) -> bool) -> bool {
        let mut there = self.idle.iter().filter(|(position, _)| position.allows(version));
        let only = matches!(
            (there.next(), there.next()),
            (Some((Position::OneOf(_), 1)), None)
        );
        if only {
            let claims = self.claims.iter().filter(|(of, ..)| *of == version);
            let claims: Vec<_> = claims.map(|(_, checks, seq)| (*checks, *seq)).collect();
            for (checks, seq) in claims {
                self.suspect(checks, Some(seq));
            }
        }
        self.claims.retain(|(of, ..)| *of != version);
        if self.take(version) {
            if self.watching > 0 {
                // Some of them may be about to close.
                self.rate.see(2);
            }
            return true;
        }
        let forgotten = self
            .forgotten
            .as_ref()
            .is_some_and(|forgotten| forgotten.allows(version));
        if forgotten || elsewhere(version) {
            return true;
        }
        if self.watching > 0 {
            self.waiting.insert((version, asked.seq));
            self.deadlines.push_back((asked.at + CLOSING, version, asked.seq));
        } else {
            self.suspect(RESUMPTION, Some(asked.seq));
        }
        false
    }

    /// Removes a loop that may be at a version from the idle ones. Of several, removes the one whose possible
    /// versions are a subset of the others'; if there is none, keeps all that may remain.
    fn take(&mut self, version: Version) -> bool {
        let there = |index: &usize| self.idle[*index].0.allows(version);
        let there: Vec<usize> = (0..self.idle.len()).filter(there).collect();
        let Some(narrow) = there
            .iter()
            .copied()
            .min_by_key(|index| match &self.idle[*index].0 {
                Position::OneOf(versions) => versions.len(),
                Position::Between(..) | Position::Anywhere => usize::MAX,
            })
        else {
            return false;
        };
        let position = &self.idle[narrow].0;
        let certain = there.iter().all(|index| position.is_within(&self.idle[*index].0));
        if certain {
            self.idle[narrow].1 -= 1;
            if self.idle[narrow].1 == 0 {
                self.idle.remove(narrow);
            }
        }
        true
    }

    /// Makes a loop idle, so that it may resume; or explains a waiting watch, which it sent while its last one was
    /// closing.
    fn release(&mut self, position: Position) {
        if position.is_nowhere() {
            return;
        }
        let explained = match &position {
            Position::OneOf(versions) => versions.iter().find_map(|version| {
                let mut of = self.waiting.range((*version, 0)..=(*version, u64::MAX));
                of.next().copied()
            }),
            Position::Between(first, last) => {
                let mut of = self.waiting.range((*first, 0)..=(*last, u64::MAX));
                of.next().copied()
            }
            Position::Anywhere => self.waiting.first().copied(),
        };
        if let Some(explained) = explained {
            self.waiting.remove(&explained);
            return;
        }
        match self.idle.iter_mut().find(|(known, _)| *known == position) {
            Some((_, count)) => *count += 1,
            None => self.idle.push_back((position, 1)),
        }
        if self.idle.len() > IDLE_MAX
            && let Some((oldest, _)) = self.idle.pop_front()
        {
            let newest = match self.forgotten.take() {
                Some(forgotten) => forgotten.latest().max(oldest.latest()),
                None => oldest.latest(),
            };
            self.forgotten = Some(Position::up_to(newest));
        }
    }

    fn close(&mut self, open: Open, by: Side, lossy: bool, clean: bool, now: Duration) {
        self.count(&open, by, now);
        if open.verb == Verb::List {
            if open.status == Some(410)
                && !lossy
                && let Some(token) = &open.token
            {
                self.chains.refuse(token);
            }
            return;
        }
        if open.verb == Verb::WatchList && open.status.is_none_or(|status| status >= 300) {
            // It may fall back to a list, from zero if loops start like that.
            self.begins_from_zero = true;
        }
        if open.expired && !lossy && open.answered != Answered::Torn {
            if let Some(version) = open.from {
                self.dead.expire(version);
            }
            return;
        }
        // If its reader left at this instant, over HTTP/2, there is no record of that.
        let may_be_left = open.late == Some(now);
        if clean && !may_be_left {
            if open.read != open.kept {
                let settled = self.settled.entry(open.conn).or_default();
                if settled.len() == SETTLED_MAX {
                    settled.pop_front();
                }
                settled.push_back(open.read);
            }
            self.release(open.kept);
        } else {
            self.release(open.read);
        }
    }

    /// Returns true if the request failed. Requests ended by the client and successful lists do not count; but a list
    /// between failing watches belongs to the failure.
    fn count(&mut self, open: &Open, by: Side, now: Duration) {
        let refused = open.status.is_none_or(|status| status >= 300);
        let failed = if open.verb == Verb::List {
            let answered = !refused && matches!(open.answered, Answered::Page | Answered::Other);
            match (answered, open.token.is_some()) {
                (true, true) => false,
                (true, false) => std::mem::take(&mut self.watch_failed),
                (false, _) => true,
            }
        } else {
            let at_once = now.saturating_sub(open.asked.at) < AT_ONCE;
            let failed = refused || (at_once && (by == Side::Server || open.troubled));
            self.watch_failed |= failed;
            failed
        };
        if failed && self.rate.fail(open.asked.at, now) {
            self.suspect(&["INV-16"], None);
        }
        if open.is_live_watch() && now.saturating_sub(open.asked.at) > CLOSING {
            self.rate.see(self.watching + 1);
        }
    }
}
