//! Drafts that are slightly smaller than a given one: the candidates of the shrinker, largest savings first.
//!
//! Independent of what the shrinker looks for.

use fake_apiserver::fault::Ending;
use fake_apiserver::scenario::raw::{
    ActionKey, ActionKeys, At, Client, Duration, EndingKeys, Entries, Object, OrNothing, Reply, Restart,
    Server, ShortBody, ShortObject, StepKeys, Text, Truncate, When, WordOr,
};

use super::draw;
use super::names::Trigger;
use super::{Draft, at, default_target};

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
            for (start, end) in runs(step.items().count()) {
                with(&|draft| drop(draft.steps[index].items_mut().drain(start..end)));
            }
        }
        for removal in CLIENT_KEYS {
            with(&|draft| removal(&mut draft.client));
        }
        if let Some(delay) = &self.client.consumer_delay {
            for ms in numbers(delay.value.as_ms().unwrap_or(0), 1) {
                with(&|draft| draft.client.consumer_delay = at(Duration::ms(ms)));
            }
        }
        for removal in SERVER_KEYS {
            with(&|draft| removal(&mut draft.server));
        }
        with(&|draft| draft.lies_to_the_end = false);
        with(&|draft| draft.target.namespace = None);
        with(&|draft| draft.merge_replicas());
        with(&|draft| draft.retarget());
        for (index, object) in self.objects.iter().enumerate() {
            for smaller in object.value.short().map(objects).unwrap_or_default() {
                with(&|draft| draft.objects[index] = smaller.clone().into());
            }
        }
        for (index, step) in self.steps.iter().enumerate() {
            for smaller in steps(step) {
                with(&|draft| draft.steps[index] = smaller.clone());
            }
        }
        found
    }

    fn actions_mut(&mut self) -> impl Iterator<Item = &mut ActionKey> {
        let actions = self.steps.iter_mut().flat_map(StepKeys::items_mut);
        actions.flat_map(|action| &mut action.value.0.keys)
    }

    /// Leaves one replica, with everything that happens to either.
    fn merge_replicas(&mut self) {
        self.server.replicas = None;
        self.actions_mut().for_each(everywhere);
    }

    /// Switches the target to ConfigMaps.
    fn retarget(&mut self) {
        let kind = match self
            .target
            .resource
            .as_ref()
            .map(|resource| resource.value.as_str())
        {
            Some("pods") => "pod",
            Some("secrets") => "secret",
            Some("widgets.probe.example.com") => "widget",
            Some(_) | None => return,
        };
        self.target.resource = default_target().resource;
        let retarget = |objects: &mut [At<Object>]| {
            let shorts = objects.iter_mut().filter_map(|object| object.value.short_mut());
            for short in shorts {
                let of_target = short.bodies().into_iter().find(|(of, _)| *of == kind);
                if let Some(body) = of_target.map(|(_, body)| body.value.clone()) {
                    let (repeat, binds) = (short.repeat.take(), short.binds.take());
                    *short = ShortObject {
                        repeat,
                        binds,
                        ..ShortObject::new("configmap", body)
                    };
                }
            }
        };
        retarget(&mut self.objects);
        for action in self.actions_mut() {
            if let ActionKey::Apply(objects) = action {
                retarget(&mut objects.value.0);
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
fn numbers(number: u64, least: u64) -> Vec<u64> {
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

/// Removals of the keys of a client.
const CLIENT_KEYS: [fn(&mut Client); 17] = [
    |client| client.mode = None,
    |client| client.object = None,
    |client| client.labels = None,
    |client| client.fields = None,
    |client| client.list_semantic = None,
    |client| client.initial_list = None,
    |client| client.page_size = None,
    |client| client.bookmarks = None,
    |client| client.timeout = None,
    |client| client.idle_timeout = None,
    |client| client.list_timeout = None,
    |client| client.staleness_probe_after = None,
    |client| client.backoff = None,
    |client| {
        client
            .backoff
            .iter_mut()
            .for_each(|backoff| backoff.value.factor = None)
    },
    |client| (client.consumer_delay, client.consumer_delay_event) = (None, None),
    |client| client.consumer_delay_event = None,
    |client| client.gzip = None,
];

/// Removals of the keys of a server.
const SERVER_KEYS: [fn(&mut Server); 8] = [
    |server| server.version = None,
    |server| server.revision = None,
    |server| server.watch_cache_capacity = None,
    |server| server.bookmark_interval = None,
    |server| server.streaming_lists = None,
    |server| (server.transport, server.max_concurrent_streams) = (None, None),
    |server| server.max_concurrent_streams = None,
    |server| server.replicas = None,
];

fn changed<T: Clone>(value: &T, change: impl FnOnce(&mut T)) -> T {
    let mut value = value.clone();
    change(&mut value);
    value
}

// ---- objects

fn objects(object: &ShortObject) -> Vec<ShortObject> {
    let with = |change: &dyn Fn(&mut ShortBody)| {
        changed(object, |object| {
            object.body_mut().into_iter().for_each(change);
        })
    };
    let mut found = vec![
        with(&|body| annotate(body, "filler", "")),
        with(&|body| annotate(body, "t", "")),
        with(&|body| body.namespace = None),
        with(&|body| body.labels = None),
        changed(object, |object| object.binds = None),
        with(&|body| annotate(body, "v", "")),
    ];
    let bodies = object.bodies();
    let Some((_, body)) = bodies.first() else {
        return found;
    };
    let annotation = |key: &str| {
        let mut annotations = body
            .value
            .annotations
            .iter()
            .flat_map(|annotations| &annotations.0);
        annotations
            .find(|(of, _)| of.value == key)
            .map(|(_, text)| text.0.as_str())
    };
    let value = annotation("v").and_then(|value| value.parse().ok());
    for value in numbers(value.unwrap_or(0), 1) {
        found.push(with(&|body| annotate(body, "v", &value.to_string())));
    }
    let filler: Vec<char> = annotation("filler").unwrap_or_default().chars().collect();
    for length in numbers(filler.len() as u64, 1) {
        let shorter: String = filler.iter().take(length as usize).collect();
        found.push(with(&|body| annotate(body, "filler", &shorter)));
    }
    found
}

/// Changes an annotation that exists; removes it if the text is empty.
fn annotate(body: &mut ShortBody, key: &str, text: &str) {
    let Some(Entries(annotations)) = &mut body.annotations else {
        return;
    };
    for (_, old) in annotations.iter_mut().filter(|(of, _)| of.value == key) {
        *old = Text::from(text);
    }
    annotations.retain(|(_, text)| !text.0.is_empty());
    if annotations.is_empty() {
        body.annotations = None;
    }
}

// ---- steps

fn steps(step: &StepKeys) -> Vec<StepKeys> {
    let mut found = vec![changed(step, |step| (step.times, step.lasts) = (None, None))];
    for when in triggers(step) {
        found.push(changed(step, |step| {
            step.when = when;
            step.optional = (!Trigger::of(step).is_certain()).then(|| true.into());
        }));
    }
    found.extend(smaller_parts(step, step_parts));
    for (index, action) in step.items().enumerate() {
        for smaller in actions(action) {
            found.push(changed(step, |step| {
                step.items_mut()[index] = WordOr(smaller).into()
            }));
        }
    }
    found
}

fn triggers(step: &StepKeys) -> Vec<Option<At<WordOr<When>>>> {
    match Trigger::of(step) {
        Trigger::Now => Vec::new(),
        Trigger::After | Trigger::Quiet | Trigger::Emitted | Trigger::Synced => vec![None],
        Trigger::FirstList
        | Trigger::NextWatch
        | Trigger::NextRequest
        | Trigger::NextList
        | Trigger::SecondPage => {
            let requests = [Trigger::NextWatch, Trigger::NextRequest, Trigger::NextList];
            [None].into_iter().chain(requests.map(draw::next)).collect()
        }
    }
}

fn actions(action: &ActionKeys) -> Vec<ActionKeys> {
    let unnamed = changed(action, |action| action.name = None);
    let Some(key) = action.key() else {
        return vec![unnamed];
    };
    let keys = without(key).into_iter().chain(smaller_parts(key, key_parts));
    let smaller = keys.map(|key| changed(action, |action| action.keys = vec![key]));
    [unnamed].into_iter().chain(smaller).collect()
}

/// Returns the action without some of its keys, or another one without them.
fn without(key: &ActionKey) -> Vec<ActionKey> {
    let mut found = vec![changed(key, everywhere)];
    if let ActionKey::Relabel(relabel) = key {
        found.push(ActionKey::Relabel(changed(relabel, |relabel| {
            let labels = relabel
                .value
                .labels
                .iter_mut()
                .flat_map(|labels| &mut labels.value.0);
            labels.for_each(|(_, value)| *value = OrNothing(None));
        })));
    } else if let ActionKey::Restart(restart) = key {
        let changes: [fn(&mut Restart); 2] =
            [|restart| restart.down = None, |restart| restart.filling = None];
        found.extend(changes.map(|change| {
            ActionKey::Restart(changed(restart, |restart| {
                change_restart(&mut restart.value.0, change)
            }))
        }));
    } else if let ActionKey::Event(event) = key {
        found.push(ActionKey::Event(changed(event, |event| event.value.rv = None)));
    } else if let ActionKey::Truncate(truncate) = key {
        found.extend(truncate.value.then.clone().map(ActionKey::End));
    } else if let ActionKey::Reply(reply) = key
        && super::names::lie(key).is_none()
    {
        let Reply {
            status, retry_after, ..
        } = reply.value.clone();
        let plain = Reply {
            status,
            ..Reply::default()
        };
        let without_rest = Reply {
            retry_after,
            ..plain.clone()
        };
        let without_header = changed(&reply.value, |reply| reply.retry_after = None);
        let error = changed(&reply.value, |reply| reply.status = at(500_u64));
        let smaller = [plain, without_rest, without_header, error];
        found.extend(smaller.map(|reply| ActionKey::Reply(reply.into())));
    }
    found
}

/// Removes the replica.
fn everywhere(key: &mut ActionKey) {
    if let ActionKey::ClearWatchCache(at) | ActionKey::FreezeWatchCache(at) | ActionKey::ThawWatchCache(at) =
        key
    {
        at.value.0 = None;
    } else if let ActionKey::LagWatchCache(lag) = key {
        lag.value.0.replica = None;
    } else if let ActionKey::Restart(restart) = key {
        change_restart(&mut restart.value.0, |restart| restart.replica = None);
    }
}

fn change_restart(restart: &mut Option<Restart>, change: fn(&mut Restart)) {
    restart.iter_mut().for_each(change);
    *restart = restart.take().filter(|restart| *restart != Restart::default());
}

// ---- numbers, times, endings and objects

/// A part that can be smaller.
enum Part<'a> {
    /// A number, and the least one.
    Number(&'a mut At<u64>, u64),
    /// A time of at least a millisecond.
    Time(&'a mut At<Duration>),
    Ending(&'a mut At<WordOr<EndingKeys>>),
    Object(&'a mut ShortObject),
}

impl Part<'_> {
    /// Makes it the n-th of its smaller values; returns false if there is none.
    fn shrink(self, n: usize) -> bool {
        match self {
            Self::Number(number, least) => {
                let smaller = numbers(number.value, least);
                replace(&mut number.value, smaller, n)
            }
            Self::Time(time) => {
                let ms = numbers(time.value.as_ms().unwrap_or(0), 1).into_iter();
                replace(&mut time.value, ms.map(Duration::ms), n)
            }
            Self::Ending(keys) => {
                let smaller = keys.value.0.ending().map(endings).unwrap_or_default().iter();
                replace(keys, smaller.map(|ending| (*ending).into()), n)
            }
            Self::Object(object) => {
                let smaller = objects(object);
                replace(object, smaller, n)
            }
        }
    }
}

fn replace<T>(part: &mut T, smaller: impl IntoIterator<Item = T>, n: usize) -> bool {
    let nth = smaller.into_iter().nth(n);
    nth.map(|smaller| *part = smaller).is_some()
}

/// Returns copies in which one part is smaller.
fn smaller_parts<T: Clone>(whole: &T, parts: fn(&mut T) -> Vec<Part<'_>>) -> Vec<T> {
    let mut found = Vec::new();
    for index in 0..parts(&mut whole.clone()).len() {
        for n in 0.. {
            let mut smaller = whole.clone();
            let part = parts(&mut smaller).into_iter().nth(index);
            if !part.is_some_and(|part| part.shrink(n)) {
                break;
            }
            found.push(smaller);
        }
    }
    found
}

fn step_parts(step: &mut StepKeys) -> Vec<Part<'_>> {
    let times = step.times.iter_mut().map(|times| Part::Number(times, 1));
    let when = step.when.iter_mut().map(|when| &mut when.value.0);
    let waits = when.flat_map(|when| [&mut when.after, &mut when.quiet]);
    let durations = waits.chain([&mut step.lasts]).flatten().map(Part::Time);
    times.chain(durations).collect()
}

fn key_parts(key: &mut ActionKey) -> Vec<Part<'_>> {
    if let ActionKey::Apply(objects) = key {
        let shorts = objects
            .value
            .0
            .iter_mut()
            .filter_map(|object| object.value.short_mut());
        let parts = shorts.map(|short| match &mut short.repeat {
            Some(_) => short.repeat.as_mut().map(|repeat| Part::Number(repeat, 1)),
            None => Some(Part::Object(short)),
        });
        return parts.flatten().collect();
    }
    if let ActionKey::Event(event) = key {
        let object = event.value.object.iter_mut();
        let short = object.filter_map(|object| object.value.short_mut());
        return short.map(Part::Object).collect();
    }
    if let ActionKey::RepeatEvent(number) | ActionKey::ReorderEvents(number) | ActionKey::Coalesce(number) =
        key
    {
        return vec![Part::Number(number, 2)];
    }
    if let ActionKey::DropEvents(number) = key {
        return vec![Part::Number(number, 1)];
    }
    if let ActionKey::Delay(time) | ActionKey::Refuse(time) = key {
        return vec![Part::Time(time)];
    }
    if let ActionKey::LagWatchCache(lag) = key {
        return lag.value.0.by.iter_mut().map(Part::Time).collect();
    }
    if let ActionKey::Restart(restart) = key {
        let times = restart
            .value
            .0
            .iter_mut()
            .flat_map(|restart| [&mut restart.down, &mut restart.filling]);
        return times.flatten().map(Part::Time).collect();
    }
    if let ActionKey::JumpClock(jump) = key {
        let times = [&mut jump.value.forward, &mut jump.value.back].into_iter();
        return times.flatten().map(Part::Time).collect();
    }
    if let ActionKey::Drip(drip) = key {
        let bytes = drip.value.bytes.iter_mut().map(|bytes| Part::Number(bytes, 1));
        return bytes.chain(drip.value.every.iter_mut().map(Part::Time)).collect();
    }
    if let ActionKey::Truncate(truncate) = key {
        let Truncate {
            after_bytes,
            after_events,
            percent,
            then,
        } = &mut truncate.value;
        let numbers = [after_bytes, after_events, percent].into_iter().flatten();
        let numbers = numbers.map(|number| Part::Number(number, 0));
        return numbers.chain(then.iter_mut().map(Part::Ending)).collect();
    }
    if let ActionKey::End(how) | ActionKey::NoAnswer(how) = key {
        return vec![Part::Ending(how)];
    }
    Vec::new()
}

/// Returns simpler endings.
fn endings(ending: Ending) -> &'static [Ending] {
    match ending {
        Ending::Eof => &[],
        Ending::Fin => &[Ending::Eof],
        Ending::Rst => &[Ending::Eof, Ending::Fin],
        Ending::Stall | Ending::NoCloseNotify | Ending::RstStream(_) | Ending::Goaway(_) => {
            &[Ending::Eof, Ending::Fin, Ending::Rst]
        }
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
