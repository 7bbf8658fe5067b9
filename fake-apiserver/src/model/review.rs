//! Reviews of access, users and tokens, and token requests. They are answered and never stored.
//!
//! It must not know authentication or authorization: it calls the [`Reviewer`].
//!
//! Source: kubernetes `pkg/registry/authorization` and `pkg/registry/authentication`.

use std::time::Duration;

use apimachinery::encode::encode_json;
use apimachinery::kind::Review;
use apimachinery::object::Stored;
use apimachinery::options::Representation;
use apimachinery::status::Status;
use apimachinery::time::timestamp;
use builtin_kinds::ownership::Ownership;
use builtin_kinds::rbac::{PolicyRule, Rules};
use builtin_kinds::{ownership, types, validation};
use bytes::Bytes;
use serde_json::{Value, json};

use super::Model;
use crate::api::ReviewRequest;
use crate::api::access::{Attributes, Authorizer, User};

/// Authentication and authorization for reviews.
pub(crate) struct Reviewer<'a> {
    /// User of the request.
    pub(crate) requester: &'a User,
    /// Authorizer for the reviewed access.
    pub(crate) authorizer: &'a Authorizer,
    /// Authenticates a token for these audiences; without audiences, for those of the server.
    pub(crate) authenticate: &'a dyn Fn(&str, &[&str]) -> Known,
    /// Signs claims as a token.
    pub(crate) sign: &'a dyn Fn(&Value) -> String,
    /// Random value that makes the requested token unique.
    pub(crate) chance: u64,
}

/// User and audiences of a token, or the error.
pub(crate) type Known = Result<(User, Vec<String>), String>;

impl Model {
    /// Answers a review.
    ///
    /// # Errors
    ///
    /// 400 and 422 for an incomplete review; 404 and 409 for a token of an account that does not exist or differs.
    pub(crate) fn review(
        &self,
        now: Duration,
        request: ReviewRequest,
        reviewer: &Reviewer<'_>,
    ) -> Result<Bytes, Status> {
        let kind = request.collection.kind.clone();
        let time = timestamp(self.epoch + now);
        let form = request.form;
        let mut answer = match request.review {
            Review::Requester => json!({
                "metadata": { "creationTimestamp": time },
                "status": { "userInfo": user_info(reviewer.requester) },
            }),
            Review::OwnRules => {
                let namespace = text(&request.object["spec"], "namespace");
                if namespace.is_empty() {
                    return Err(Status::bad_request("no namespace on request"));
                }
                let rules = reviewer.authorizer.rules(reviewer.requester, namespace);
                json!({ "metadata": {}, "spec": {}, "status": rules_status(&rules) })
            }
            Review::Token => {
                let mut object = self.noted(request, time);
                object["status"] = token_status(&object["spec"], reviewer)?;
                object
            }
            Review::NewToken => {
                let (place, name) = (request.collection.clone(), request.name.clone());
                let mut request = request;
                Self::complete_token_request(&mut request.object);
                let object = self.noted(request, time);
                self.token_answer(now, &place, &name, object, (reviewer.chance, reviewer.sign))?
            }
            Review::OwnAccess => {
                self.access_answer(request, time, reviewer.authorizer, |_| reviewer.requester.clone())?
            }
            Review::Access | Review::LocalAccess => {
                self.access_answer(request, time, reviewer.authorizer, user_of)?
            }
        };
        answer["kind"] = (*kind.kind).into();
        answer["apiVersion"] = kind.api_version().into();
        let answer = types::conform(&kind, &answer)
            .expect("what was read as its kind fits it, and so does what is written here")
            .unwrap_or(answer);
        let mut body = match form {
            Representation::Full => encode_json(&answer),
            Representation::Metadata(_) | Representation::Table(_) => {
                let stored = Stored::as_is(&kind, String::new(), 0, answer);
                stored.encoded(form).to_vec()
            }
        };
        body.push(b'\n');
        Ok(body.into())
    }

    /// Answers a review of access; `whom` returns the reviewed user by the spec.
    fn access_answer(
        &self,
        request: ReviewRequest,
        time: String,
        authorizer: &Authorizer,
        whom: impl FnOnce(&Value) -> User,
    ) -> Result<Value, Status> {
        let (review, kind) = (request.review, request.collection.kind.clone());
        let mut object = self.noted(request, time);
        let errors = validation::validate_review(review, &object, self.version);
        if !errors.is_empty() {
            return Err(Status::invalid_review(&kind, &errors));
        }
        let spec = &object["spec"];
        let decision = authorizer.decide(&whom(spec), &attributes(spec));
        object["status"] = json!({ "allowed": decision.allowed });
        let reason = authorizer.open().unwrap_or(&decision.reason);
        if !reason.is_empty() {
            object["status"]["reason"] = reason.into();
        }
        Ok(object)
    }

    /// Returns the received object with namespace and managed fields.
    fn noted(&self, request: ReviewRequest, time: String) -> Value {
        let ReviewRequest {
            collection,
            mut object,
            manager,
            review,
            ..
        } = request;
        ownership::without(&mut object);
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.shift_remove("namespace");
        }
        if let Some(namespace) = collection.namespace {
            object["metadata"]["namespace"] = namespace.into();
        }
        let nothing = types::zero(&collection.kind);
        let nothing = nothing.cloned().unwrap_or_else(ownership::nothing);
        let part = if review == Review::NewToken { "token" } else { "" };
        Ownership::new(&collection.kind, self.version, &manager, part, time)
            .note_update(&nothing, &mut object);
        object
    }
}

fn user_info(user: &User) -> Value {
    json!({ "username": user.name, "uid": user.uid, "groups": user.groups, "extra": user.extra })
}

fn rules_status(rules: &Rules) -> Value {
    let of_resource = |rule: &PolicyRule| {
        let mut shown =
            json!({ "verbs": rule.verbs, "apiGroups": rule.api_groups, "resources": rule.resources });
        if !rule.resource_names.is_empty() {
            shown["resourceNames"] = rule.resource_names.clone().into();
        }
        shown
    };
    let of_path =
        |rule: &PolicyRule| json!({ "verbs": rule.verbs, "nonResourceURLs": rule.non_resource_urls });
    let rules_of = |is_about: fn(&PolicyRule) -> bool, shown: &dyn Fn(&PolicyRule) -> Value| {
        let rules = rules.rules.iter().filter(|rule| is_about(rule));
        rules.map(shown).collect::<Vec<Value>>()
    };
    let mut status = json!({
        "resourceRules": rules_of(|rule| !rule.resources.is_empty(), &of_resource),
        "nonResourceRules": rules_of(|rule| !rule.non_resource_urls.is_empty(), &of_path),
        "incomplete": false,
    });
    if !rules.error.is_empty() {
        status["evaluationError"] = rules.error.as_str().into();
    }
    status
}

fn token_status(spec: &Value, reviewer: &Reviewer<'_>) -> Result<Value, Status> {
    let token = text(spec, "token");
    if token.is_empty() {
        return Err(Status::bad_request(
            "token is required for TokenReview in authentication",
        ));
    }
    let audiences: Vec<&str> = texts(&spec["audiences"]).collect();
    Ok(match (reviewer.authenticate)(token, &audiences) {
        Ok((user, audiences)) => {
            json!({ "authenticated": true, "user": user_info(&user), "audiences": audiences })
        }
        Err(error) => json!({ "user": {}, "error": error }),
    })
}

/// Returns the reviewed user.
fn user_of(spec: &Value) -> User {
    let extra = spec["extra"].as_object().into_iter().flatten();
    User {
        name: text(spec, "user").to_owned(),
        uid: text(spec, "uid").to_owned(),
        groups: texts(&spec["groups"]).map(str::to_owned).collect(),
        extra: extra
            .map(|(key, values)| (key.clone(), texts(values).map(str::to_owned).collect()))
            .collect(),
    }
}

/// Returns the reviewed access.
fn attributes(spec: &Value) -> Attributes {
    let of_path = &spec["nonResourceAttributes"];
    if of_path.is_object() {
        return Attributes::Path {
            verb: text(of_path, "verb").to_owned(),
            path: text(of_path, "path").to_owned(),
        };
    }
    let of = |field| text(&spec["resourceAttributes"], field).to_owned();
    Attributes::Resource {
        verb: of("verb"),
        group: of("group"),
        resource: of("resource"),
        subresource: of("subresource"),
        name: of("name"),
        namespace: of("namespace"),
    }
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

fn texts(values: &Value) -> impl Iterator<Item = &str> {
    values.as_array().into_iter().flatten().filter_map(Value::as_str)
}
