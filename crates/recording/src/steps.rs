//! Steps of the scenario that is being written: triggers, actions, the waits between them, and names of versions.

use std::collections::BTreeMap;
use std::time::Duration;

use scenario::raw::{
    self, ActionKey, ActionKeys, At, Entries, First, Json, Name, Object, OneOrMany, ShortBody, ShortObject,
    StepKeys, Text, WordOr,
};
use serde_json::Value;

/// Shorter waits are left out: no client reacts to the difference.
const SHORTEST_WAIT: Duration = Duration::from_secs(1);

/// Time between bookmarks of the scenario's server, if one has to come.
pub(crate) const BOOKMARK_INTERVAL: Duration = Duration::from_secs(5);

/// Time in which one comes.
const BOOKMARK_WAIT: Duration = Duration::from_secs(7);

/// When a step runs.
#[derive(Debug, Clone, PartialEq)]
enum When {
    /// A request.
    Request(Box<raw::When>),
    /// After the step before it.
    Wait(Duration),
}

#[derive(Debug)]
struct Step {
    when: When,
    at: Duration,
    acts: Vec<ActionKeys>,
    comment: Option<String>,
}

/// Where a version is written.
#[derive(Debug, Clone, Copy)]
enum Written {
    Initially(usize),
    By(usize, usize),
}

/// Objects and steps.
#[derive(Debug)]
pub(crate) struct Steps {
    objects: Vec<Object>,
    steps: Vec<Step>,
    written: BTreeMap<String, Written>,
    longest_wait: Duration,
    /// Whether the next action waits for a bookmark of the server.
    awaits_bookmark: bool,
    /// Whether any does.
    pub(crate) has_bookmarks: bool,
    /// Waits that were shortened.
    pub(crate) shortened: usize,
}

impl Steps {
    pub(crate) fn new(longest_wait: Duration) -> Self {
        Self {
            objects: Vec::new(),
            steps: Vec::new(),
            written: BTreeMap::new(),
            longest_wait,
            awaits_bookmark: false,
            has_bookmarks: false,
            shortened: 0,
        }
    }

    /// Adds an object that exists before the client starts.
    pub(crate) fn object(&mut self, manifest: Value, version: &str) {
        self.written
            .insert(version.to_owned(), Written::Initially(self.objects.len()));
        self.objects.push(object(manifest));
    }

    /// The server of the scenario is to send a bookmark before the next action.
    pub(crate) fn await_bookmark(&mut self) {
        (self.awaits_bookmark, self.has_bookmarks) = (true, true);
    }

    /// Time of the last step.
    pub(crate) fn ended_at(&self) -> Duration {
        self.steps.last().map(|step| step.at).unwrap_or_default()
    }

    pub(crate) fn objects(&self) -> usize {
        self.objects.len()
    }

    /// A request arrives.
    pub(crate) fn request(&mut self, trigger: raw::When, at: Duration) {
        self.steps.push(Step {
            when: When::Request(Box::new(trigger)),
            at,
            acts: Vec::new(),
            comment: None,
        });
    }

    /// Whether the current step waits for a request.
    pub(crate) fn is_at_request(&self) -> bool {
        matches!(self.steps.last().map(|step| &step.when), Some(When::Request(_)))
    }

    /// Adds an action to the step of the request that has just arrived.
    pub(crate) fn at_request(&mut self, action: ActionKey) {
        if let Some(step) = self.steps.last_mut() {
            step.acts.push(action.into());
        }
    }

    /// Adds an action at a time. `waits`: the wait before it matters. `at_request`: it is part of what a request meets.
    pub(crate) fn act(&mut self, action: ActionKey, at: Duration, waits: bool, at_request: bool) {
        self.step_for(at, waits, at_request);
        self.at_request(action);
    }

    pub(crate) fn apply(&mut self, manifest: Value, version: &str, at: Duration, at_request: bool) {
        let apply = ActionKey::Apply(OneOrMany(vec![object(manifest).into()]).into());
        self.write(apply, version, at, at_request);
    }

    pub(crate) fn delete(&mut self, key: String, version: &str, at: Duration, at_request: bool) {
        let name = Name {
            name: Some(key.into()),
            ..Name::default()
        };
        let delete = ActionKey::Delete(OneOrMany(vec![First(name)]).into());
        self.write(delete, version, at, at_request);
    }

    fn write(&mut self, act: ActionKey, version: &str, at: Duration, at_request: bool) {
        self.step_for(at, false, at_request);
        let nth = self.steps.len().saturating_sub(1);
        if let Some(step) = self.steps.last_mut() {
            self.written
                .insert(version.to_owned(), Written::By(nth, step.acts.len()));
            step.acts.push(act.into());
        }
    }

    /// Returns how the version of a write is written: a name, if a step before the current one or the objects have it.
    pub(crate) fn version(&mut self, version: &str) -> Option<String> {
        let name = format!("v{version}");
        let last = self.steps.len().saturating_sub(1);
        let slot = match *self.written.get(version)? {
            // A whole manifest has no place for a name.
            Written::Initially(nth) => &mut self.objects[nth].short_mut()?.binds,
            Written::By(step, _) if step == last && self.is_at_request() => return None,
            Written::By(step, act) => &mut self.steps[step].acts[act].name,
        };
        *slot = Some(name.clone().into());
        Some(format!("${name}"))
    }

    /// Begins another step unless the action belongs to the current one.
    fn step_for(&mut self, at: Duration, waits: bool, at_request: bool) {
        let awaits_bookmark = !at_request && std::mem::take(&mut self.awaits_bookmark);
        let current = self.steps.last_mut();
        let waited = current
            .as_ref()
            .map_or(Duration::ZERO, |step| at.saturating_sub(step.at));
        let is_wait = awaits_bookmark || waits && waited >= SHORTEST_WAIT;
        let fits = match current.as_ref().map(|step| &step.when) {
            Some(When::Request(_)) => at_request,
            Some(When::Wait(_)) => !is_wait,
            None => false,
        };
        if let Some(step) = current.filter(|_| fits) {
            step.at = at;
            return;
        }
        let mut comment = None;
        let wait = match is_wait {
            true if awaits_bookmark => waited.clamp(BOOKMARK_WAIT, self.longest_wait.max(BOOKMARK_WAIT)),
            true if waited > self.longest_wait => {
                self.shortened += 1;
                comment = Some(format!("{} in the recording", span(waited)));
                self.longest_wait
            }
            true => waited,
            false => Duration::ZERO,
        };
        self.steps.push(Step {
            when: When::Wait(wait),
            at,
            acts: Vec::new(),
            comment,
        });
    }

    /// Returns the objects of the file.
    pub(crate) fn file_objects(&self) -> Option<Vec<At<Object>>> {
        let objects: Vec<_> = self.objects.iter().cloned().map(At::from).collect();
        (!objects.is_empty()).then_some(objects)
    }

    /// Returns the actions.
    pub(crate) fn actions(&self) -> impl Iterator<Item = &ActionKey> {
        let acts = self.steps.iter().flat_map(|step| &step.acts);
        acts.filter_map(ActionKeys::key)
    }

    /// Returns the steps of the file: a request without actions only where something follows that has to wait for it.
    pub(crate) fn file_steps(&self) -> Option<Vec<At<WordOr<raw::Step>>>> {
        let needed = |nth: usize| {
            let step = &self.steps[nth];
            let next = self.steps.get(nth + 1);
            let is_waited_for =
                next.is_some_and(|next| matches!(next.when, When::Wait(_)) && !next.acts.is_empty());
            !step.acts.is_empty() || matches!(step.when, When::Request(_)) && is_waited_for
        };
        let kept = (0..self.steps.len()).filter(|nth| needed(*nth));
        let steps: Vec<_> = kept.map(|nth| self.steps[nth].keys().into()).collect();
        (!steps.is_empty()).then_some(steps)
    }
}

impl Step {
    fn keys(&self) -> StepKeys {
        let when = match &self.when {
            When::Request(trigger) => Some((**trigger).clone()),
            When::Wait(wait) if wait.is_zero() => None,
            When::Wait(wait) => Some(raw::When {
                after: at(time(*wait)),
                ..raw::When::default()
            }),
        };
        let acts: Vec<_> = self.acts.iter().map(|act| WordOr(act.clone()).into()).collect();
        StepKeys {
            when: when.map(|when| WordOr(when).into()),
            actions: (!acts.is_empty()).then(|| OneOrMany(acts).into()),
            comment: self.comment.clone(),
            ..StepKeys::default()
        }
    }
}

/// Returns a key with its value.
pub(crate) fn at<T>(value: impl Into<T>) -> Option<At<T>> {
    Some(value.into().into())
}

/// Returns the short form of a plain ConfigMap; of anything else the manifest.
fn object(manifest: Value) -> Object {
    match short(&manifest) {
        Some(body) => Object::Short(Box::new(ShortObject::new("configmap", body))),
        None => Object::Whole(Json(manifest)),
    }
}

fn short(manifest: &Value) -> Option<ShortBody> {
    let has_only = |value: &Value, known: &[&str]| {
        let mut fields = value.as_object().into_iter().flat_map(|fields| fields.keys());
        fields.all(|field| known.contains(&field.as_str()))
    };
    let metadata = &manifest["metadata"];
    let is_plain = manifest["kind"] == "ConfigMap"
        && manifest["apiVersion"] == "v1"
        && has_only(manifest, &["apiVersion", "kind", "metadata", "data"])
        && has_only(metadata, &["name", "namespace", "labels", "annotations"]);
    if !is_plain {
        return None;
    }
    let text = |value: &Value| value.as_str().map(str::to_owned);
    // A map of texts; of another value, the whole object is written as it is.
    let texts = |value: Option<&Value>| {
        let Some(value) = value else { return Some(None) };
        let entries = value.as_object()?.iter();
        let entries = entries.map(|(key, value)| Some((key.clone().into(), Text(text(value)?))));
        Some(Some(Entries(entries.collect::<Option<Vec<_>>>()?)))
    };
    Some(ShortBody {
        name: Some(text(&metadata["name"])?.into()),
        namespace: metadata.get("namespace").and_then(text).map(At::from),
        labels: texts(metadata.get("labels"))?,
        annotations: texts(metadata.get("annotations"))?,
        data: texts(manifest.get("data"))?.map(At::from),
        ..ShortBody::default()
    })
}

/// Returns a time in the format of scenario files, of at least a millisecond.
pub(crate) fn time(time: Duration) -> raw::Duration {
    raw::Duration::ms(u64::try_from(time.as_millis().max(1)).unwrap_or(u64::MAX))
}

/// Returns a time for people.
fn span(time: Duration) -> String {
    trace::record::line::span(time.as_secs() * 1000)
}
