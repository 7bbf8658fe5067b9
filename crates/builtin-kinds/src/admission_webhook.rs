//! Webhooks that take part in admission: which of them a write is shown to, in which words, and what their answers mean.
//!
//! Pure functions: configurations and a request in, a review or a verdict out. It must not know storage, HTTP or time.
//!
//! Source: "Dynamic Admission Control"; apiserver `pkg/admission/plugin/webhook/{generic,mutating,validating,request,errors}`.

use std::time::Duration;

use apimachinery::go_text;
use apimachinery::kind::{ApiResource, KindRef};
use apimachinery::status::{Cause, Details, Status};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use crate::admission_policy::{Compiled, GROUP, Matching, Request, conditions_hold};
use crate::crd::patterns;
use crate::expression;
use crate::types::base64_error;
use crate::webhook::{self, ClientConfig, Outcome, Review};

/// Operations of a JSON Patch, which may be invalid.
pub type Patch = Vec<Map<String, Value>>;

/// Fields of `AdmissionRequest` after `uid`, in their order.
const REQUEST_FIELDS: [&str; 14] = [
    "kind",
    "resource",
    "subResource",
    "requestKind",
    "requestResource",
    "requestSubResource",
    "name",
    "namespace",
    "operation",
    "userInfo",
    "object",
    "oldObject",
    "dryRun",
    "options",
];

/// Timeout of a webhook that names none.
const TIMEOUT: Duration = Duration::from_secs(10);

/// All webhooks of one kind of configuration, in the order in which they are called.
#[derive(Debug, Default)]
pub struct Hooks(Vec<Hook>);

/// A webhook.
#[derive(Debug)]
pub struct Hook {
    /// Its name, as in errors.
    pub name: String,
    /// Name of its configuration.
    pub configuration: String,
    /// Whether it may change objects.
    pub mutating: bool,
    /// Where it is.
    pub client: ClientConfig,
    /// How long a call may take.
    pub timeout: Duration,
    /// Whether it is called again after another one changed the object (`reinvocationPolicy: IfNeeded`).
    pub reinvoked: bool,
    /// Whether a call that fails is a refusal (`failurePolicy: Fail`).
    fails: bool,
    matching: Matching,
    conditions: Vec<Compiled>,
    side_effects: bool,
    /// Version of the reviews it is sent.
    version: &'static str,
}

/// What a webhook made of a review.
#[derive(Debug, Default)]
pub struct Verdict {
    /// Texts of `Warning` headers.
    pub warnings: Vec<String>,
    /// How it wants the object to be changed; empty: not at all.
    pub patch: Patch,
}

/// A write that a webhook does not let pass, with its warnings.
#[derive(Debug)]
pub struct Refusal {
    /// Why.
    pub status: Status,
    /// Texts of `Warning` headers.
    pub warnings: Vec<String>,
}

impl Hooks {
    /// Reads configurations, which are in the order of their names. `mutating`: of which kind they are.
    pub fn new(configurations: &[Value], mutating: bool) -> Self {
        let hooks = configurations.iter().flat_map(|configuration| {
            let name = text(&configuration["metadata"]["name"]);
            let hooks = configuration["webhooks"].as_array().into_iter().flatten();
            hooks.map(move |hook| Hook::read(hook, name, mutating))
        });
        Self(hooks.collect())
    }

    /// The webhooks that writes of this kind are shown to; none for the configurations themselves.
    pub fn of(&self, kind: &ApiResource) -> &[Hook] {
        match kind.group == GROUP {
            true => &[],
            false => &self.0,
        }
    }
}

impl Hook {
    fn read(json: &Value, configuration: &str, mutating: bool) -> Self {
        let list = |field: &str| json[field].as_array().into_iter().flatten();
        let budget = patterns::Budget::default();
        let versions = list("admissionReviewVersions").filter_map(Value::as_str);
        let known =
            versions.filter_map(|version| ["v1", "v1beta1"].into_iter().find(|known| *known == version));
        Self {
            name: text(&json["name"]).to_owned(),
            configuration: configuration.to_owned(),
            mutating,
            client: ClientConfig::read(&json["clientConfig"]),
            timeout: json["timeoutSeconds"]
                .as_u64()
                .map_or(TIMEOUT, Duration::from_secs),
            reinvoked: json["reinvocationPolicy"] == "IfNeeded",
            fails: json["failurePolicy"] != "Ignore",
            matching: Matching::of_webhook(json),
            conditions: list("matchConditions")
                .map(|condition| Compiled::new(&condition["expression"], &budget))
                .collect(),
            side_effects: !matches!(text(&json["sideEffects"]), "None" | "NoneOnDryRun"),
            version: { known }.next().unwrap_or("v1"),
        }
    }

    /// Returns the kind in whose words the webhook is shown a request; `None`: it is not shown it. `equivalents`: other kinds
    /// that show the same objects.
    pub fn selects<'k>(&self, request: &Request<'_>, equivalents: &'k [KindRef]) -> Option<&'k KindRef> {
        self.matching.selected(request, equivalents)
    }

    /// Whether the match conditions hold for a request, which is in the words that the webhook is shown.
    ///
    /// # Errors
    /// 403 for an evaluation that fails, if the failure of the webhook is one.
    pub fn conditions_hold(&self, request: &Request<'_>) -> Result<bool, Status> {
        if self.conditions.is_empty() {
            return Ok(true);
        }
        let value = |json: Option<&Value>| expression::untyped(json.unwrap_or(&Value::Null));
        let mut known = vec![
            ("object", value(request.object)),
            ("oldObject", value(request.old)),
            ("request", expression::untyped(&request.as_json())),
        ];
        known.extend(request.authorizer().map(|value| ("authorizer", value)));
        let held = conditions_hold(&self.conditions, |condition, budget| {
            condition.evaluate(&known, budget)
        });
        match held {
            Err(_) if !self.fails => Ok(false),
            Err(why) => Err(Status::forbidden(request.kind, request.name, &why, Vec::new())),
            Ok(hold) => Ok(hold),
        }
    }

    /// Whether the webhook may be called for a dry run.
    ///
    /// # Errors
    /// 400: it has side effects.
    pub fn check_dry_run(&self, dry_run: bool) -> Result<(), Status> {
        if dry_run && self.side_effects {
            let name = go_text::quote(&self.name);
            return Err(Status::bad_request(format!(
                "admission webhook {name} does not support dry run"
            )));
        }
        Ok(())
    }

    /// The `AdmissionReview` of a request.
    pub fn review(&self, request: &Request<'_>, uid: &str) -> Value {
        let mut sent = request.as_json();
        if request.kind.group.is_empty() && request.kind.plural == "namespaces" {
            sent["namespace"] = request.name.into();
        }
        sent["object"] = request.object.cloned().unwrap_or_default();
        sent["oldObject"] = request.old.cloned().unwrap_or_default();
        let mut ordered = Map::from_iter([("uid".to_owned(), uid.into())]);
        for field in REQUEST_FIELDS {
            let mut value = sent[field].take();
            if field == "userInfo"
                && let Some(user) = value.as_object_mut()
            {
                user.retain(|_, value| !is_empty(value));
            }
            let shown = matches!(field, "object" | "oldObject" | "dryRun") || !is_empty(&value);
            if shown {
                ordered.insert(field.to_owned(), value);
            }
        }
        json!({
            "kind": "AdmissionReview",
            "apiVersion": format!("admission.k8s.io/{}", self.version),
            "request": ordered,
        })
    }

    /// Reads the result of a call to `url` with the review of this uid.
    ///
    /// # Errors
    /// The refusal of the webhook; 500 if the call failed and that counts.
    pub fn verdict(&self, uid: &str, url: &str, outcome: &Outcome) -> Result<Verdict, Refusal> {
        let failed = |why: String| match self.fails {
            true => Err(Refusal::of(Status::internal_error(&format!(
                "failed calling webhook {}: {why}",
                go_text::quote(&self.name)
            )))),
            false => {
                tracing::warn!(webhook = self.name, why, "a webhook failed and is ignored");
                Ok(Verdict::default())
            }
        };
        let expected = Review {
            kind: "AdmissionReview",
            group: "admission.k8s.io",
            version: self.version,
        };
        let read = webhook::response(url, outcome, &expected);
        let review = match read.and_then(|review| mistyped(&review["response"]).map_or(Ok(review), Err)) {
            Ok(review) => review,
            Err(why) => return failed(format!("failed to call webhook: {why}")),
        };
        let (response, patch) = match self.checked(uid, &review) {
            Ok(checked) => checked,
            Err(why) => return failed(format!("received invalid webhook response: {why}")),
        };
        let warnings = response["warnings"].as_array().into_iter().flatten();
        let warnings = warnings.filter_map(Value::as_str).map(str::to_owned).collect();
        if response["allowed"] != true {
            return Err(Refusal {
                status: self.denial(&response["status"]),
                warnings,
            });
        }
        let patch = match patch.map_or_else(|| Ok(Patch::default()), |bytes| operations(&bytes)) {
            Ok(patch) => patch,
            Err(why) => return failed(format!("received undecodable patch in webhook response: {why}")),
        };
        let patch_type = response["patchType"].as_str().unwrap_or_default();
        if !patch.is_empty() && self.version == "v1" && patch_type != "JSONPatch" {
            let patch_type = go_text::quote(patch_type);
            return failed(format!("unsupported patch type {patch_type}"));
        }
        Ok(Verdict { warnings, patch })
    }

    /// Returns `response` and the bytes of its patch.
    fn checked<'a>(&self, uid: &str, review: &'a Value) -> Result<(&'a Value, Option<Vec<u8>>), String> {
        let response = &review["response"];
        if !response.is_object() {
            return Err("webhook response was absent".to_owned());
        }
        let is_v1 = self.version == "v1";
        let answered = text(&response["uid"]);
        if is_v1 && answered != uid {
            let [uid, answered] = [uid, answered].map(go_text::quote);
            return Err(format!("expected response.uid={uid}, got {answered}"));
        }
        let (group, version) = text(&review["apiVersion"])
            .split_once('/')
            .unwrap_or(("", text(&review["apiVersion"])));
        let got = format!("{group}/{version}, Kind={}", text(&review["kind"]));
        let expected = "admission.k8s.io/v1, Kind=AdmissionReview";
        if is_v1 && got != expected {
            return Err(format!("expected webhook response of {expected}, got {got}"));
        }
        let patch = response["patch"].as_str().filter(|patch| !patch.is_empty());
        let patch_type = response["patchType"].as_str();
        match (self.mutating, patch, patch_type) {
            (_, _, _) if !is_v1 => {}
            (false, Some(_), _) => return Err("validating webhook may not return response.patch".to_owned()),
            (false, None, Some(_)) => {
                return Err("validating webhook may not return response.patchType".to_owned());
            }
            (true, Some(_), None) => {
                return Err("webhook returned response.patch but not response.patchType".to_owned());
            }
            (true, None, Some(_)) => {
                return Err("webhook returned response.patchType but not response.patch".to_owned());
            }
            (true, Some(_), Some("")) => {
                return Err("webhook returned invalid response.patchType of \"\"".to_owned());
            }
            (true, Some(_), Some(_)) | (_, None, None) => {}
        }
        let patch = patch
            .filter(|_| self.mutating)
            .map(|patch| STANDARD.decode(patch));
        // What is not base64 was found with the types.
        Ok((response, patch.and_then(Result::ok)))
    }

    /// The Status of a denial, of which the webhook may have sent some.
    fn denial(&self, sent: &Value) -> Status {
        let denied = format!(
            "admission webhook {} denied the request",
            go_text::quote(&self.name)
        );
        let code = sent["code"].as_u64().and_then(|code| u16::try_from(code).ok());
        let (reason, message) = (text(&sent["reason"]), text(&sent["message"]));
        Status {
            code: code.filter(|code| (400..600).contains(code)).unwrap_or(400),
            reason: reason.to_owned(),
            message: match (message, reason) {
                ("", "") => format!("{denied} without explanation"),
                ("", reason) => format!("{denied}: {reason}"),
                (message, _) => format!("{denied}: {message}"),
            },
            details: sent["details"]
                .is_object()
                .then(|| Box::new(details(&sent["details"]))),
            ..Status::default()
        }
    }

    /// The patched object.
    ///
    /// # Errors
    /// 500: an operation fails, or there is no object to change.
    pub fn patched(&self, object: Option<&Value>, patch: &Patch) -> Result<Value, Status> {
        let Some(object) = object else {
            return Err(Status::internal_error(&format!(
                "admission webhook {} attempted to modify the object, which is not supported for this operation",
                go_text::quote(&self.name)
            )));
        };
        crate::patch::by_operations(object.clone(), patch)
            .map_err(|why| Status::internal_error(&why.to_string()))
    }
}

impl Refusal {
    fn of(status: Status) -> Self {
        Self {
            status,
            warnings: Vec::new(),
        }
    }
}

/// Reads a patch.
fn operations(bytes: &[u8]) -> Result<Patch, String> {
    let json: Value = serde_json::from_slice(bytes).map_err(|error| go_text::json_error(bytes, &error))?;
    let wrong = |json: &Value, expected: &str| {
        let found = go_text::json_kind(json);
        format!("json: cannot unmarshal {found} into Go value of type jsonpatch.{expected}")
    };
    if json.is_null() {
        return Ok(Patch::default());
    }
    let operations = json.as_array().ok_or_else(|| wrong(&json, "Patch"))?;
    let read = operations.iter().map(|operation| {
        let fields = operation.as_object().cloned();
        fields.ok_or_else(|| wrong(operation, "Operation"))
    });
    read.collect()
}

/// Returns Go's error for the first field of a response whose value has the wrong type.
fn mistyped(response: &Value) -> Option<String> {
    let fields = response.as_object()?;
    fields.iter().find_map(|(field, value)| {
        let (fits, go_type) = match field.as_str() {
            "uid" => (value.is_string(), "types.UID"),
            "allowed" => (value.is_boolean(), "bool"),
            "status" => (value.is_object(), "v1.Status"),
            "patch" => (value.is_string(), "[]uint8"),
            "patchType" => (value.is_string(), "v1.PatchType"),
            "auditAnnotations" => (value.is_object(), "map[string]string"),
            "warnings" => (value.is_array(), "[]string"),
            _ => return None,
        };
        if value.is_null() {
            return None;
        }
        if !fits {
            let found = go_text::json_kind(value);
            return Some(format!(
                "json: cannot unmarshal {found} into Go struct field AdmissionResponse.response.{field} of type {go_type}"
            ));
        }
        (field == "patch").then(|| base64_error(text(value))).flatten()
    })
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

fn details(sent: &Value) -> Details {
    let own = |field: &str| text(&sent[field]).to_owned();
    let causes = sent["causes"].as_array().into_iter().flatten();
    let seconds = sent["retryAfterSeconds"].as_u64().unwrap_or_default();
    Details {
        name: own("name"),
        group: own("group"),
        kind: own("kind"),
        uid: own("uid"),
        causes: causes
            .map(|cause| Cause {
                reason: text(&cause["reason"]).to_owned(),
                message: text(&cause["message"]).to_owned(),
                field: text(&cause["field"]).to_owned(),
            })
            .collect(),
        retry_after_seconds: u32::try_from(seconds).unwrap_or(u32::MAX),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests;
