//! Accepted names of a definition, and its conditions `NamesAccepted` and `Established`.
//!
//! Source: apiextensions `controller/status/naming_controller.go` and `controller/establish`.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::structural::texts;

/// Returns whether a condition is true.
pub(super) fn is_true(definition: &Value, condition: &str) -> bool {
    find(definition, condition).is_some_and(|condition| condition["status"] == "True")
}

/// Returns why the names are not accepted; `None`: they are.
pub(super) fn refusal(definition: &Value) -> Option<&str> {
    let accepted = find(definition, "NamesAccepted")?;
    (accepted["status"] != "True").then(|| accepted["message"].as_str().unwrap_or_default())
}

fn find<'a>(definition: &'a Value, wanted: &str) -> Option<&'a Value> {
    let conditions = definition["status"]["conditions"].as_array()?;
    conditions.iter().find(|condition| condition["type"] == wanted)
}

/// Sets a condition; `lastTransitionTime` changes only with its status.
pub fn set(definition: &mut Value, mut condition: Value, now: &str) {
    let status = &mut definition["status"];
    if !status["conditions"].is_array() {
        status["conditions"] = json!([]);
    }
    let Some(conditions) = status["conditions"].as_array_mut() else {
        return;
    };
    let old = conditions.iter_mut().find(|old| old["type"] == condition["type"]);
    let unchanged = old.as_ref().filter(|old| old["status"] == condition["status"]);
    let since = unchanged.map_or_else(|| now.into(), |old| old["lastTransitionTime"].clone());
    let mut ordered = Map::new();
    for field in ["type", "status", "lastTransitionTime", "reason", "message"] {
        let value = if field == "lastTransitionTime" {
            since.clone()
        } else {
            condition[field].take()
        };
        ordered.insert(field.to_owned(), value);
    }
    match old {
        Some(old) => *old = Value::Object(ordered),
        None => conditions.push(Value::Object(ordered)),
    }
}

/// Names accepted for other definitions of the group.
#[derive(Debug, Default)]
pub struct Taken {
    resources: BTreeSet<String>,
    kinds: BTreeSet<String>,
}

impl Taken {
    /// Returns the names accepted for these definitions.
    pub fn by<'a>(definitions: impl Iterator<Item = &'a Value>) -> Self {
        let mut taken = Self::default();
        for definition in definitions {
            let names = &definition["status"]["acceptedNames"];
            let text = |name: &str| {
                names[name]
                    .as_str()
                    .filter(|text| !text.is_empty())
                    .map(str::to_owned)
            };
            taken.resources.extend(text("plural"));
            taken.resources.extend(text("singular"));
            taken.resources.extend(texts(&names["shortNames"]));
            taken.kinds.extend(text("kind"));
            taken.kinds.extend(text("listKind"));
        }
        taken
    }
}

/// Accepts the names of `definition` that are not in use, and sets the condition `NamesAccepted`.
pub fn accept(definition: &mut Value, taken: &Taken, now: &str) {
    let wanted = definition["spec"]["names"].clone();
    let mut accepted = definition["status"]["acceptedNames"].clone();
    let mut conflict = None;
    let in_use = |name: &str| format!("\"{name}\" is already in use");
    for (field, reason, names) in [
        ("plural", "PluralConflict", &taken.resources),
        ("singular", "SingularConflict", &taken.resources),
        ("shortNames", "ShortNamesConflict", &taken.resources),
        ("kind", "KindConflict", &taken.kinds),
        ("listKind", "ListKindConflict", &taken.kinds),
    ] {
        let listed = |names: &Value| match names.as_str() {
            Some(name) => vec![name.to_owned()],
            None => texts(names),
        };
        let requested = listed(&wanted[field]);
        let own: BTreeSet<String> = listed(&accepted[field]).into_iter().collect();
        let clashes: Vec<String> = requested
            .iter()
            .filter(|name| !own.contains(name.as_str()) && names.contains(*name))
            .map(|name| in_use(name))
            .collect();
        match clashes.as_slice() {
            [] => accepted[field] = wanted[field].clone(),
            [clash] => conflict = Some((reason, clash.clone())),
            several => conflict = Some((reason, format!("[{}]", several.join(", ")))),
        }
    }
    accepted["categories"] = wanted["categories"].clone();
    definition["status"]["acceptedNames"] = super::wire::names(&accepted);
    let is_accepted = conflict.is_none();
    let (reason, message) = conflict.unwrap_or(("NoConflicts", "no conflicts found".to_owned()));
    let status = if is_accepted { "True" } else { "False" };
    let condition =
        json!({ "type": "NamesAccepted", "status": status, "reason": reason, "message": message });
    set(definition, condition, now);
    let established = match find(definition, "Established") {
        Some(condition) if condition["status"] == "True" => return,
        _ if is_accepted => ("Installing", ESTABLISHING),
        Some(_) => return,
        None => ("NotAccepted", "not all names are accepted"),
    };
    let (reason, message) = established;
    let condition = json!({ "type": "Established", "status": "False", "reason": reason, "message": message });
    set(definition, condition, now);
}

const ESTABLISHING: &str = "the initial names have been accepted";

/// Sets the condition `Established` of a definition whose names are accepted.
pub fn establish(definition: &mut Value, now: &str) {
    if is_true(definition, "NamesAccepted") && !is_true(definition, "Established") {
        let condition = json!({
            "type": "Established",
            "status": "True",
            "reason": "InitialNamesAccepted",
            "message": ESTABLISHING,
        });
        set(definition, condition, now);
    }
}
