//! Drafts that are slightly smaller than a given one: the candidates of the shrinker, largest savings first.
//!
//! Independent of what the shrinker looks for.

use super::{
    Action, Client, Cut, Draft, Ending, Lie, Object, Reply, ResponseFault, Server, Step, Target, Times, When,
    Write,
};

impl Draft {
    /// Returns smaller drafts; some may be invalid scenarios, or [unsound](Self::unsound).
    pub fn smaller(&self) -> Vec<Self> {
        let mut found = Vec::new();
        let mut with = |change: &dyn Fn(&mut Self)| {
            let mut draft = self.clone();
            change(&mut draft);
            if draft != *self {
                found.push(draft);
            }
        };
        with(&|draft| draft.client = Client::default());
        with(&|draft| draft.server = Server::default());
        for (start, end) in runs(self.steps.len()) {
            with(&|draft| drop(draft.steps.drain(start..end)));
        }
        for (start, end) in runs(self.objects.len()) {
            with(&|draft| drop(draft.objects.drain(start..end)));
        }
        for (index, step) in self.steps.iter().enumerate() {
            for (start, end) in runs(step.actions.len()) {
                with(&|draft| drop(draft.steps[index].actions.drain(start..end)));
            }
        }
        for setting in client_settings(&self.client) {
            with(&|draft| draft.client = setting.clone());
        }
        for setting in server_settings(&self.server) {
            with(&|draft| draft.server = setting.clone());
        }
        with(&|draft| draft.lies_to_the_end = false);
        with(&|draft| draft.target.is_wide = false);
        with(&|draft| draft.merge_replicas());
        with(&|draft| draft.retarget());
        for (index, object) in self.objects.iter().enumerate() {
            for smaller in objects(object) {
                with(&|draft| draft.objects[index] = smaller.clone());
            }
        }
        for (index, step) in self.steps.iter().enumerate() {
            for smaller in steps(step) {
                with(&|draft| draft.steps[index] = smaller.clone());
            }
        }
        found
    }

    /// Leaves one replica, with everything that happens to either.
    fn merge_replicas(&mut self) {
        self.server.has_replicas = false;
        for action in self.steps.iter_mut().flat_map(|step| &mut step.actions) {
            if let Action::Write(write) = action {
                *write = write.everywhere();
            }
        }
    }

    /// Switches the target to ConfigMaps.
    fn retarget(&mut self) {
        let plain = Target::default();
        let old = self.target.kind;
        self.target = Target {
            is_wide: self.target.is_wide,
            ..plain
        };
        let objects = self.objects.iter_mut();
        let written = self.steps.iter_mut().flat_map(|step| &mut step.actions);
        let kinds = written.filter_map(|action| match action {
            Action::Write(Write::Apply(object)) => Some(&mut object.kind),
            Action::Write(Write::ApplyMany(kind, _)) => Some(kind),
            Action::Write(_) | Action::ResponseFault(_) | Action::Lie(_) => None,
        });
        for kind in objects.map(|object| &mut object.kind).chain(kinds) {
            if *kind == old {
                *kind = plain.kind;
            }
        }
    }
}

/// Returns ranges to remove: everything, halves, quarters, and single elements; the last ones first.
fn runs(length: usize) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut size = length;
    while size > 0 {
        let mut end = length;
        while end >= size {
            found.push((end - size, end));
            end -= size;
        }
        size /= 2;
    }
    found
}

/// Returns smaller numbers, the smallest first. Large ones are reduced by halves and quarters, because each try is a
/// run.
fn numbers(number: u32, least: u32) -> Vec<u32> {
    let close = if number <= 8 {
        number.saturating_sub(1)
    } else {
        number / 4 * 3
    };
    let mut found = vec![least, 1, 10, 1_000, number / 2, close];
    found.retain(|smaller| (least..number).contains(smaller));
    found.sort_unstable();
    found.dedup();
    found
}

fn client_settings(client: &Client) -> Vec<Client> {
    let plain = Client::default();
    let changes: [&dyn Fn(&mut Client); 17] = [
        &|client| client.metadata = plain.metadata,
        &|client| client.object = plain.object,
        &|client| client.labels = plain.labels,
        &|client| client.fields = plain.fields,
        &|client| client.any = plain.any,
        &|client| client.streaming = plain.streaming,
        &|client| client.page_size = plain.page_size,
        &|client| client.bookmarks = plain.bookmarks,
        &|client| client.timeout_s = plain.timeout_s,
        &|client| client.idle_timeout_s = plain.idle_timeout_s,
        &|client| client.list_timeout_s = plain.list_timeout_s,
        &|client| client.staleness_probe_after_s = plain.staleness_probe_after_s,
        &|client| client.backoff_ms = plain.backoff_ms,
        &|client| client.backoff_factor = plain.backoff_factor,
        &|client| client.consumer_delay_ms = plain.consumer_delay_ms,
        &|client| client.consumer_delay_event = plain.consumer_delay_event,
        &|client| client.gzip = plain.gzip,
    ];
    let mut found: Vec<Client> = changes.iter().map(|change| changed(client, change)).collect();
    found.extend(numbers(client.consumer_delay_ms, 0).into_iter().map(|delay| {
        changed(client, |client| {
            client.consumer_delay_ms = delay;
        })
    }));
    found
}

fn server_settings(server: &Server) -> Vec<Server> {
    let plain = Server::default();
    let changes: [&dyn Fn(&mut Server); 8] = [
        &|server| server.version = plain.version,
        &|server| server.revision = plain.revision,
        &|server| server.watch_cache_capacity = plain.watch_cache_capacity,
        &|server| server.bookmark_interval_s = plain.bookmark_interval_s,
        &|server| server.streaming_lists = plain.streaming_lists,
        &|server| server.transport = plain.transport,
        &|server| server.streams_max = plain.streams_max,
        &|server| server.has_replicas = plain.has_replicas,
    ];
    changes.iter().map(|change| changed(server, change)).collect()
}

fn changed<T: Clone>(value: &T, change: impl Fn(&mut T)) -> T {
    let mut value = value.clone();
    change(&mut value);
    value
}

fn objects(object: &Object) -> Vec<Object> {
    let changes: [&dyn Fn(&mut Object); 6] = [
        &|object| object.filler = 0,
        &|object| object.text = "",
        &|object| object.namespace = None,
        &|object| object.app = None,
        &|object| object.binds = None,
        &|object| object.value = 0,
    ];
    let mut found: Vec<Object> = changes.iter().map(|change| changed(object, change)).collect();
    found.extend(
        numbers(object.value, 0)
            .into_iter()
            .map(|value| changed(object, |object| object.value = value)),
    );
    found.extend(
        numbers(object.filler, 0)
            .into_iter()
            .map(|filler| changed(object, |object| object.filler = filler)),
    );
    found
}

fn steps(step: &Step) -> Vec<Step> {
    let mut found = Vec::new();
    let mut with = |change: &dyn Fn(&mut Step)| found.push(changed(step, change));
    with(&|step| step.times = Times::Count(1));
    match step.times {
        Times::Count(times) => {
            for times in numbers(times, 1) {
                with(&|step| step.times = Times::Count(times));
            }
        }
        Times::For(ms) => {
            for ms in numbers(ms, 1) {
                with(&|step| step.times = Times::For(ms));
            }
        }
    }
    for when in triggers(step.when) {
        with(&|step| {
            step.when = when;
            step.is_optional = !when.is_certain();
        });
    }
    for (index, action) in step.actions.iter().enumerate() {
        for smaller in actions(action) {
            with(&|step| step.actions[index] = smaller.clone());
        }
    }
    found
}

fn triggers(when: When) -> Vec<When> {
    match when {
        When::Now => Vec::new(),
        When::After(ms) => {
            let shorter = numbers(ms, 1).into_iter().map(When::After);
            std::iter::once(When::Now).chain(shorter).collect()
        }
        When::Quiet(ms) => {
            let shorter = numbers(ms, 1).into_iter().map(When::Quiet);
            std::iter::once(When::Now).chain(shorter).collect()
        }
        When::FirstList | When::NextWatch | When::NextRequest | When::NextList | When::SecondPage => {
            vec![When::Now, When::NextWatch, When::NextRequest, When::NextList]
        }
        When::Emitted(_) | When::Synced => vec![When::Now],
    }
}

fn actions(action: &Action) -> Vec<Action> {
    match action {
        Action::Write(write) => writes(write).into_iter().map(Action::Write).collect(),
        Action::ResponseFault(answer) => answers(answer).into_iter().map(Action::ResponseFault).collect(),
        Action::Lie(lie) => lies(lie).into_iter().map(Action::Lie).collect(),
    }
}

fn writes(write: &Write) -> Vec<Write> {
    match write {
        Write::Apply(object) => objects(object).into_iter().map(Write::Apply).collect(),
        Write::ApplyMany(kind, count) => numbers(*count, 1)
            .into_iter()
            .map(|count| Write::ApplyMany(kind, count))
            .collect(),
        Write::Lag(ms, at) => smaller_at(write, numbers(*ms, 1), |ms| Write::Lag(ms, *at)),
        Write::Restart(down_ms, filling_ms, at) => {
            let mut found = smaller_at(write, numbers(*down_ms, 0), |ms| {
                Write::Restart(ms, *filling_ms, *at)
            });
            let filling = numbers(*filling_ms, 0).into_iter();
            found.extend(filling.map(|ms| Write::Restart(*down_ms, ms, *at)));
            found
        }
        Write::ClearWatchCache(Some(_)) | Write::Freeze(Some(_)) | Write::Thaw(Some(_)) => {
            vec![write.everywhere()]
        }
        Write::JumpClock(seconds) => {
            let smaller = numbers(seconds.unsigned_abs(), 1).into_iter();
            smaller
                .filter_map(|smaller| i32::try_from(smaller).ok())
                .map(|smaller| Write::JumpClock(smaller * seconds.signum()))
                .collect()
        }
        Write::Relabel(name, Some(_)) => vec![Write::Relabel(name.clone(), None)],
        Write::Relabel(_, None)
        | Write::Delete(_)
        | Write::Compact
        | Write::ClearWatchCache(None)
        | Write::Freeze(None)
        | Write::Thaw(None)
        | Write::Restore(_) => Vec::new(),
    }
}

/// Returns the write at all replicas, and with smaller numbers.
fn smaller_at(write: &Write, numbers: Vec<u32>, with: impl Fn(u32) -> Write) -> Vec<Write> {
    let everywhere = write.replica().map(|_| write.everywhere());
    everywhere
        .into_iter()
        .chain(numbers.into_iter().map(with))
        .collect()
}

fn answers(answer: &ResponseFault) -> Vec<ResponseFault> {
    match *answer {
        ResponseFault::Refuse(reply) => {
            let plain = Reply {
                status: reply.status,
                retry_after: None,
                rest: "",
            };
            vec![
                ResponseFault::Refuse(plain),
                ResponseFault::Refuse(Reply { rest: "", ..reply }),
                ResponseFault::Refuse(Reply {
                    retry_after: None,
                    ..reply
                }),
                ResponseFault::Refuse(Reply { status: 500, ..reply }),
            ]
        }
        ResponseFault::Repeat(times) => numbers(times, 2).into_iter().map(ResponseFault::Repeat).collect(),
        ResponseFault::Coalesce(events) => numbers(events, 2)
            .into_iter()
            .map(ResponseFault::Coalesce)
            .collect(),
        ResponseFault::Delay(ms) => numbers(ms, 1).into_iter().map(ResponseFault::Delay).collect(),
        ResponseFault::RefuseConnections(ms) => numbers(ms, 1)
            .into_iter()
            .map(ResponseFault::RefuseConnections)
            .collect(),
        ResponseFault::Drip(bytes, ms) => {
            let smaller = numbers(bytes, 1)
                .into_iter()
                .map(|bytes| ResponseFault::Drip(bytes, ms));
            let sooner = numbers(ms, 1)
                .into_iter()
                .map(|ms| ResponseFault::Drip(bytes, ms));
            smaller.chain(sooner).collect()
        }
        ResponseFault::Truncate(cut, ending) => {
            let cuts: Vec<Cut> = match cut {
                Cut::Bytes(bytes) => numbers(bytes, 0).into_iter().map(Cut::Bytes).collect(),
                Cut::Events(events, percent) => numbers(events, 0)
                    .into_iter()
                    .map(|events| Cut::Events(events, percent))
                    .chain(
                        numbers(percent, 0)
                            .into_iter()
                            .map(|percent| Cut::Events(events, percent)),
                    )
                    .collect(),
            };
            let endings = endings(ending)
                .into_iter()
                .map(|ending| ResponseFault::Truncate(cut, ending));
            std::iter::once(ResponseFault::End(ending))
                .chain(cuts.into_iter().map(|cut| ResponseFault::Truncate(cut, ending)))
                .chain(endings)
                .collect()
        }
        ResponseFault::End(ending) => endings(ending).into_iter().map(ResponseFault::End).collect(),
        ResponseFault::NoAnswer(ending) => endings(ending)
            .into_iter()
            .filter(|ending| *ending != Ending::Eof)
            .map(ResponseFault::NoAnswer)
            .collect(),
        ResponseFault::Error(_)
        | ResponseFault::Bookmark
        | ResponseFault::NoBookmarks
        | ResponseFault::EndMarker(_)
        | ResponseFault::SplitUtf8
        | ResponseFault::Gzip
        | ResponseFault::Goaway
        | ResponseFault::EditPage(_) => Vec::new(),
    }
}

/// Returns simpler endings.
fn endings(ending: Ending) -> Vec<Ending> {
    match ending {
        Ending::Eof => Vec::new(),
        Ending::Fin => vec![Ending::Eof],
        Ending::Rst => vec![Ending::Eof, Ending::Fin],
        Ending::Stall | Ending::NoCloseNotify | Ending::RstStream(_) | Ending::Goaway(_) => {
            vec![Ending::Eof, Ending::Fin, Ending::Rst]
        }
    }
}

fn lies(lie: &Lie) -> Vec<Lie> {
    match lie {
        Lie::Drop(count) => numbers(*count, 1).into_iter().map(Lie::Drop).collect(),
        Lie::Reorder(count) => numbers(*count, 2).into_iter().map(Lie::Reorder).collect(),
        Lie::Event(kind, object, version) => {
            let smaller = objects(object)
                .into_iter()
                .map(|object| Lie::Event(kind, object, *version));
            std::iter::once(Lie::Event(kind, object.clone(), None))
                .chain(smaller)
                .collect()
        }
        Lie::Unreadable(_) | Lie::Bookmark(_) | Lie::Page(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::Profile;

    #[test]
    fn runs_cover_everything_and_each_alone() {
        assert_eq!(runs(3), [(0, 3), (2, 3), (1, 2), (0, 1)]);
        assert_eq!(runs(4), [(0, 4), (2, 4), (0, 2), (3, 4), (2, 3), (1, 2), (0, 1)]);
        assert!(runs(0).is_empty());
    }

    /// Shrinking terminates: every chain of smaller drafts is finite.
    #[test]
    fn shrinking_always_reaches_the_smallest_draft() {
        for seed in 0..20 {
            let mut draft = Draft::of(seed, Profile::Lies);
            let mut turns = 0;
            while let Some(next) = draft
                .smaller()
                .into_iter()
                .find(|next| next.size() < draft.size())
            {
                draft = next;
                turns += 1;
                assert!(turns < 1_000, "{draft}");
            }
            assert!(draft.steps.is_empty() && draft.objects.is_empty(), "{draft}");
        }
    }
}
