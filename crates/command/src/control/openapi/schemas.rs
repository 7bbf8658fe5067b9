//! Schemas of the responses of the control API, and of the bodies that are not of the scenario language.

use serde_json::{Value, json};

use super::reference;

/// Schemas of responses, by name.
pub(super) fn answers() -> serde_json::Map<String, Value> {
    let schemas = [
        ("State", state()),
        ("ServerUrl", server()),
        ("Memory", memory()),
        ("Stream", stream()),
        ("Watches", watches()),
        ("Watch", watch()),
        ("ObjectQuery", object_query()),
        ("History", history()),
        ("ObjectVersion", object_version()),
        ("SentEvent", sent_event()),
        ("ActiveRule", active_rule()),
        ("Injected", injected()),
        ("WaitResult", wait_result()),
        ("Verdict", verdict()),
        ("ClientVerdict", client()),
        ("Violation", violation()),
        ("Error", error()),
        ("Mistake", mistake()),
    ];
    { schemas.into_iter() }
        .map(|(name, schema)| (name.to_owned(), schema))
        .collect()
}

fn described(schema: &str, description: &str) -> Value {
    let mut reference = reference(schema);
    reference["description"] = description.into();
    reference
}

/// An object with these properties, of which the first `required` ones are always there.
fn object(description: &str, required: usize, properties: &[(&str, Value)]) -> Value {
    let names: Vec<&str> = properties.iter().map(|(name, _)| *name).collect();
    let properties: serde_json::Map<String, Value> = { properties.iter() }
        .map(|(name, schema)| ((*name).to_owned(), schema.clone()))
        .collect();
    json!({
        "type": "object",
        "description": description,
        "required": names[..required],
        "properties": properties,
    })
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn number(description: &str) -> Value {
    json!({"type": "integer", "description": description})
}

fn list_of(schema: &Value, description: &str) -> Value {
    json!({"type": "array", "items": schema, "description": description})
}

fn state() -> Value {
    let servers = list_of(&reference("ServerUrl"), "Replicas and their URLs.");
    object(
        "State of the server.",
        8,
        &[
            ("version", text("Version of fake-apiserver.")),
            ("kubernetes", text("Version of Kubernetes.")),
            ("servers", servers),
            ("kubeconfig", text("Path of the kubeconfig.")),
            ("resourceVersion", text("Latest resourceVersion.")),
            ("nextRecord", number("Number of the next record of the trace.")),
            ("rules", number("Number of active rules.")),
            ("openStreams", number("Number of open responses.")),
            ("memory", described("Memory", "Memory in use.")),
            (
                "what",
                text("What is served: the id of a scenario, or the number of objects."),
            ),
            (
                "origin",
                json!({"enum": ["model", "upstream"], "description": "What answers the requests."}),
            ),
        ],
    )
}

fn server() -> Value {
    let replica = json!({"enum": ["primary", "secondary"], "description": "Replica."});
    object(
        "URL of a replica.",
        2,
        &[("replica", replica), ("url", text("URL of the Kubernetes API."))],
    )
}

fn memory() -> Value {
    object(
        "Bytes used in addition to the objects, and the limit.",
        7,
        &[
            ("history", number("Previous versions of objects.")),
            ("events", number("Watch events that are not sent yet.")),
            ("trace", number("Records.")),
            ("answers", number("Responses that are not sent yet.")),
            ("queries", number("Requests.")),
            ("judge", number("State of the judge.")),
            ("budget", number("Limit of all together.")),
        ],
    )
}

fn stream() -> Value {
    let replica = json!({"enum": ["primary", "secondary"], "description": "Replica."});
    let verb =
        json!({"enum": ["LIST", "WATCH", "WATCH-LIST", "OTHER"], "description": "Type of the request."});
    object(
        "An open response.",
        7,
        &[
            ("stream", number("Number of the request.")),
            ("connection", number("Number of the connection.")),
            ("replica", replica),
            ("verb", verb),
            ("method", text("HTTP method.")),
            ("target", text("Path and query, as sent.")),
            ("openMs", number("Age in milliseconds.")),
            ("userAgent", text("User-Agent header.")),
        ],
    )
}

fn watches() -> Value {
    let names = |what: &str| list_of(&json!({"type": "string"}), what);
    object(
        "The open watches. Counts are of those that the parameters select.",
        9,
        &[
            (
                "nowMs",
                number("Time since the start of the server, in milliseconds."),
            ),
            ("open", number("Number of open watches.")),
            ("matched", number("Of these, the selected ones.")),
            (
                "behind",
                number("Of the selected ones, those behind for more than a second."),
            ),
            ("stalled", number("Of the selected ones, those that are stalled.")),
            ("eventsPerSecond", number("Events sent to the selected ones.")),
            ("clients", names("Names of clients with open watches.")),
            ("resources", names("Resources with open watches.")),
            ("watches", list_of(&reference("Watch"), "The selected watches.")),
        ],
    )
}

fn watch() -> Value {
    let replica = json!({"enum": ["primary", "secondary"], "description": "Replica."});
    let state = json!({
        "enum": ["waiting", "open", "stalled"],
        "description": "`waiting`: without a response head. `stalled`: nothing is sent any more.",
    });
    object(
        "An open watch.",
        10,
        &[
            ("stream", number("Number of the request.")),
            ("connection", number("Number of the connection.")),
            ("replica", replica),
            ("client", text("User-Agent header.")),
            ("resource", text("Resource: `pods`, `deployments.apps`.")),
            ("state", state),
            ("resourceVersion", text("Last version sent, or requested.")),
            ("events", number("Events sent, bookmarks and errors included.")),
            ("eventsPerSecond", number("Events sent in a second.")),
            ("openMs", number("Age in milliseconds.")),
            ("namespace", text("Namespace of the path.")),
            (
                "selective",
                json!({"type": "boolean", "description": "Whether it has a selector."}),
            ),
            (
                "behind",
                json!({"type": "integer", "minimum": 0, "description":
                    "Changes of the collection after that version. Absent: not known, because of a selector."}),
            ),
            ("behindMs", number("Age of the oldest of them, in milliseconds.")),
            (
                "lastEventMs",
                number("Time since the last event, in milliseconds."),
            ),
            (
                "lastBookmarkMs",
                number("Time since the last bookmark, in milliseconds."),
            ),
        ],
    )
}

fn object_query() -> Value {
    object(
        "An object.",
        2,
        &[
            ("resource", text("Resource: `pods`, `deployments.apps`.")),
            ("object", text("`namespace/name`, or `name` without a namespace.")),
        ],
    )
}

fn history() -> Value {
    object(
        "What the trace has of an object.",
        4,
        &[
            ("resource", text("Resource.")),
            ("object", text("Object.")),
            ("leftOut", number("Older versions that are left out.")),
            (
                "versions",
                list_of(&reference("ObjectVersion"), "Versions, in order."),
            ),
        ],
    )
}

fn object_version() -> Value {
    object(
        "A version of an object.",
        5,
        &[
            ("resourceVersion", text("Version.")),
            (
                "atMs",
                number("Time of the write, or of the first event, in milliseconds."),
            ),
            ("sent", number("Watch events with this version.")),
            (
                "scripted",
                number("Of these, those that a script or rule changed."),
            ),
            ("events", list_of(&reference("SentEvent"), "The first of them.")),
            (
                "write",
                json!({"enum": ["create", "update", "delete"], "description": "Absent: the write is not in the trace."}),
            ),
            ("by", number("Number of the request that wrote it.")),
            ("lastSentMs", number("Time of the last event, in milliseconds.")),
        ],
    )
}

fn sent_event() -> Value {
    object(
        "A watch event that was sent.",
        4,
        &[
            ("stream", number("Number of the watch.")),
            ("client", text("User-Agent header.")),
            ("event", text("Type and object.")),
            ("atMs", number("Time in milliseconds.")),
            (
                "scripted",
                json!({"type": "boolean", "description": "Whether a script or rule changed it."}),
            ),
        ],
    )
}

fn active_rule() -> Value {
    object(
        "An active rule.",
        4,
        &[
            ("id", number("Number of the rule.")),
            ("waitsFor", text("Condition as text.")),
            ("does", text("Action as text.")),
            ("met", number("Requests that matched.")),
            ("name", text("Name, as in the trace.")),
            ("left", number("Matches left. Absent for a rule with `for`.")),
        ],
    )
}

fn injected() -> Value {
    object(
        "An added rule, or one without `when` whose actions ran immediately.",
        1,
        &[
            (
                "nextRecord",
                number("Number of the next record of the trace: `since` of a wait that must not miss any."),
            ),
            (
                "rule",
                described(
                    "ActiveRule",
                    "The active rule; absent if its actions ran immediately.",
                ),
            ),
            ("done", text("Actions that ran immediately.")),
            (
                "streams",
                list_of(
                    &json!({"type": "integer"}),
                    "Open responses that the actions ran on.",
                ),
            ),
            (
                "writes",
                list_of(
                    &json!({"type": "string"}),
                    "Objects that were written to the cluster of a proxy, and what was done; absent without.",
                ),
            ),
        ],
    )
}

fn wait_result() -> Value {
    object(
        "Record that a wait matched.",
        3,
        &[
            ("record", json!({"type": "object", "description": "The record."})),
            ("line", text("The record as printed in the log of the server.")),
            ("nextRecord", number("Number of the next record.")),
            ("stream", number("Number of the response that it belongs to.")),
        ],
    )
}

fn verdict() -> Value {
    let outcome = json!({
        "enum": ["pass", "mismatch", "nothing"],
        "description": "`nothing`: no client listed or watched.",
    });
    let names = json!({"type": "string"});
    object(
        "What the requests of all clients prove so far.",
        4,
        &[
            ("outcome", outcome),
            ("clients", list_of(&reference("ClientVerdict"), "By client.")),
            ("judged", list_of(&names, "Invariants that are checked.")),
            ("notJudged", text("Invariants that are not checked, and why.")),
        ],
    )
}

fn client() -> Value {
    let counts = json!({
        "type": "object",
        "additionalProperties": {"type": "integer"},
        "description": "Number of violations by invariant.",
    });
    object(
        "Verdict on one User-Agent.",
        7,
        &[
            ("client", text("User-Agent.")),
            (
                "loops",
                number("List/watch loops that read one collection at the same time, at least."),
            ),
            ("connections", number("Connections used for lists and watches.")),
            ("requests", number("Requests.")),
            ("reads", number("Lists and watches.")),
            ("violations", counts),
            (
                "contradictions",
                list_of(&reference("Violation"), "The first violations in full."),
            ),
        ],
    )
}

fn violation() -> Value {
    let numbers = json!({"type": "integer"});
    object(
        "A violated invariant, with the request that proves it.",
        9,
        &[
            ("client", text("User-Agent.")),
            ("reading", text("Collection: `pods in default`.")),
            ("check", text("Invariant: `INV-04`.")),
            ("sentence", text("What happened, in one sentence.")),
            ("proof", text("Request that proves it.")),
            ("expected", text("What was expected, in a few words.")),
            ("actual", text("What happened, in a few words.")),
            (
                "evidence",
                list_of(&numbers, "Numbers of the records that prove it."),
            ),
            (
                "atMs",
                number("Time since the start of the server, in milliseconds."),
            ),
            ("port", number("Port of a client without User-Agent.")),
        ],
    )
}

fn error() -> Value {
    object(
        "A rejected request.",
        1,
        &[
            ("error", text("What is wrong.")),
            ("hint", text("What to do next.")),
            (
                "mistakes",
                list_of(&reference("Mistake"), "Mistakes of a rule or a wait."),
            ),
        ],
    )
}

fn mistake() -> Value {
    object(
        "A mistake, with its position.",
        2,
        &[
            ("code", text("Code of the mistake.")),
            ("message", text("What is wrong.")),
            ("line", number("Line.")),
            ("column", number("Column.")),
            (
                "hint",
                json!({"type": ["string", "null"], "description": "What to do next."}),
            ),
        ],
    )
}
