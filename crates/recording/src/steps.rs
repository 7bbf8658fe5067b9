//! Steps of the scenario that is being written: triggers, actions, the waits between them, and names of versions.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

use crate::yaml;

/// Shorter waits are left out: no client reacts to the difference.
const SHORTEST_WAIT: Duration = Duration::from_secs(1);

/// Time between bookmarks of the scenario's server, if one has to come.
pub(crate) const BOOKMARK_INTERVAL: Duration = Duration::from_secs(5);

/// Time in which one comes.
const BOOKMARK_WAIT: Duration = Duration::from_secs(7);

/// When a step runs.
#[derive(Debug, Clone, PartialEq, Eq)]
enum When {
    /// A request, as in a scenario file: `{watch: 2}`.
    Request(String),
    /// After the step before it.
    Wait(Duration),
}

/// An action, and the version that it writes.
#[derive(Debug, Clone, PartialEq)]
enum Act {
    Plain(String),
    Apply { manifest: Value, name: Option<String> },
    Delete { key: String, name: Option<String> },
}

#[derive(Debug)]
struct Step {
    when: When,
    at: Duration,
    acts: Vec<Act>,
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
    objects: Vec<(Value, Option<String>)>,
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
        self.objects.push((manifest, None));
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
    pub(crate) fn request(&mut self, trigger: String, at: Duration) {
        self.steps.push(Step {
            when: When::Request(trigger),
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
    pub(crate) fn at_request(&mut self, action: String) {
        if let Some(step) = self.steps.last_mut() {
            step.acts.push(Act::Plain(action));
        }
    }

    /// Adds an action at a time. `waits`: the wait before it matters. `at_request`: it is part of what a request meets.
    pub(crate) fn act(&mut self, action: String, at: Duration, waits: bool, at_request: bool) {
        self.step_for(at, waits, at_request);
        self.at_request(action);
    }

    pub(crate) fn apply(&mut self, manifest: Value, version: &str, at: Duration, at_request: bool) {
        self.write(Act::Apply { manifest, name: None }, version, at, at_request);
    }

    pub(crate) fn delete(&mut self, key: String, version: &str, at: Duration, at_request: bool) {
        self.write(Act::Delete { key, name: None }, version, at, at_request);
    }

    fn write(&mut self, act: Act, version: &str, at: Duration, at_request: bool) {
        self.step_for(at, false, at_request);
        let nth = self.steps.len().saturating_sub(1);
        if let Some(step) = self.steps.last_mut() {
            self.written
                .insert(version.to_owned(), Written::By(nth, step.acts.len()));
            step.acts.push(act);
        }
    }

    /// Returns how the version of a write is written: a name, if a step before the current one or the objects have it.
    pub(crate) fn version(&mut self, version: &str) -> Option<String> {
        let name = format!("v{version}");
        let last = self.steps.len().saturating_sub(1);
        let slot = match *self.written.get(version)? {
            Written::Initially(nth) => &mut self.objects[nth].1,
            Written::By(step, _) if step == last && self.is_at_request() => return None,
            Written::By(step, act) => match &mut self.steps[step].acts[act] {
                Act::Apply { name, .. } | Act::Delete { name, .. } => name,
                Act::Plain(_) => return None,
            },
        };
        *slot = Some(name.clone());
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

    /// Writes the objects.
    pub(crate) fn write_objects(&self, text: &mut String) {
        if self.objects.is_empty() {
            return;
        }
        text.push_str("objects:\n");
        for (manifest, name) in &self.objects {
            let mut entry = short(manifest);
            if let Some(name) = name {
                entry["as"] = json!(name);
            }
            // Writing to a String cannot fail.
            let _ = writeln!(text, "  - {}", yaml::flow(&entry));
        }
    }

    /// Writes the steps: a request without actions only where something follows that has to wait for it.
    pub(crate) fn write_steps(&self, text: &mut String) {
        let needed = |nth: usize| {
            let step = &self.steps[nth];
            let next = self.steps.get(nth + 1);
            let is_waited_for =
                next.is_some_and(|next| matches!(next.when, When::Wait(_)) && !next.acts.is_empty());
            !step.acts.is_empty() || matches!(step.when, When::Request(_)) && is_waited_for
        };
        let kept: Vec<&Step> = (0..self.steps.len())
            .filter(|nth| needed(*nth))
            .map(|nth| &self.steps[nth])
            .collect();
        if kept.is_empty() {
            return;
        }
        text.push_str("steps:\n");
        for step in kept {
            if let Some(comment) = &step.comment {
                let _ = writeln!(text, "  # {comment}");
            }
            let when = match &step.when {
                When::Request(trigger) => Some(format!("when: {trigger}")),
                When::Wait(wait) if wait.is_zero() => None,
                When::Wait(wait) => Some(format!("when: {{after: {}}}", millis(*wait))),
            };
            let acts: Vec<String> = step.acts.iter().map(action).collect();
            match (when, acts.as_slice()) {
                (Some(when), []) => {
                    let _ = writeln!(text, "  - {when}");
                }
                (Some(when), [act]) => {
                    let _ = writeln!(text, "  - {when}\n    do: {act}");
                }
                (None, [act]) => {
                    let _ = writeln!(text, "  - do: {act}");
                }
                (when, acts) => {
                    let start = when.map_or("  - do:".to_owned(), |when| format!("  - {when}\n    do:"));
                    let _ = writeln!(text, "{start}");
                    for act in acts {
                        let _ = writeln!(text, "      - {act}");
                    }
                }
            }
        }
    }
}

fn action(act: &Act) -> String {
    let (mut map, name) = match act {
        Act::Plain(action) => return action.clone(),
        Act::Apply { manifest, name } => (json!({ "apply": short(manifest) }), name),
        Act::Delete { key, name } => (json!({ "delete": key }), name),
    };
    if let Some(name) = name {
        map["as"] = json!(name);
    }
    yaml::flow(&map)
}

/// Returns the short form of a plain ConfigMap; of anything else the manifest.
fn short(manifest: &Value) -> Value {
    let known = ["apiVersion", "kind", "metadata", "data"];
    let metadata = manifest["metadata"].as_object();
    let in_metadata = ["name", "namespace", "labels", "annotations", "finalizers"];
    let is_plain = manifest["kind"] == "ConfigMap"
        && manifest["apiVersion"] == "v1"
        && manifest
            .as_object()
            .is_some_and(|fields| fields.keys().all(|field| known.contains(&field.as_str())))
        && metadata.is_some_and(|fields| fields.keys().all(|field| in_metadata.contains(&field.as_str())));
    let Some(metadata) = metadata.filter(|_| is_plain) else {
        return manifest.clone();
    };
    let mut map = Value::Object(metadata.clone());
    if let Some(data) = manifest.get("data").filter(|data| data.is_object()) {
        map["data"] = data.clone();
    }
    json!({ "configmap": map })
}

/// Returns a time in the format of scenario files.
pub(crate) fn millis(time: Duration) -> String {
    let ms = time.as_millis().max(1);
    match ms % 1000 {
        0 => format!("{}s", ms / 1000),
        _ => format!("{ms}ms"),
    }
}

/// Returns a time for people.
fn span(time: Duration) -> String {
    trace::record::line::span(time.as_secs() * 1000)
}
