//! Tokens of service accounts: their claims, and the user of a token.
//!
//! It must not know how they are signed.
//!
//! Source: kubernetes `pkg/registry/core/serviceaccount/storage/token.go` and `pkg/serviceaccount/claims.go`; KEP-1205,
//! KEP-4193.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use apimachinery::go_text;
use apimachinery::kind::ApiResource;
use apimachinery::object::{Stored, metadata_text};
use apimachinery::options::Collection;
use apimachinery::status::Status;
use apimachinery::time::timestamp;
use builtin_kinds::error_list::ErrorList;
use serde_json::{Map, Value, json};

use super::review::Known;
use super::{Model, write};
use crate::api::access::{API_AUDIENCE, CREDENTIAL_ID, User, service_account_groups};

/// Claim with the Kubernetes-specific content of a token.
const PRIVATE: &str = "kubernetes.io";

/// Objects that a token can be bound to, by kind; the token is invalid once the object is deleted.
const BOUND: [(&str, &str, &str); 3] = [
    ("Pod", "pods", "pod"),
    ("Secret", "secrets", "secret"),
    ("Node", "nodes", "node"),
];

/// Lifetime of a token in seconds: default, minimum and maximum.
const LIFETIME: i64 = 3_600;
const LIFETIME_MIN: i64 = 600;
const LIFETIME_MAX: i64 = 1 << 32;

impl Model {
    /// Sets the defaults of a token request.
    pub(super) fn complete_token_request(request: &mut Value) {
        let lifetime = &mut request["spec"]["expirationSeconds"];
        if lifetime.is_null() {
            *lifetime = LIFETIME.into();
        }
    }

    /// Answers a token request; `nth` makes the token unique.
    ///
    /// # Errors
    ///
    /// 404 for a service account or bound object that does not exist, 409 for one with another uid, 400 and 422 for an
    /// invalid request.
    pub(super) fn token_answer(
        &self,
        now: Duration,
        place: &Collection,
        name: &str,
        mut request: Value,
        (nth, sign): (u64, &dyn Fn(&Value) -> String),
    ) -> Result<Value, Status> {
        let namespace = place.namespace.as_deref().unwrap_or_default();
        match self.named("namespaces", None, namespace) {
            Err(missing) if self.namespaces_enforced => return Err(missing),
            Ok(found) if found.is_terminating() => {
                let accounts = self.kind("", "serviceaccounts")?;
                return Err(Status::namespace_terminating(&accounts, name, namespace));
            }
            Ok(_) | Err(_) => {}
        }
        let account = self.named("serviceaccounts", Some(namespace), name)?;
        check_request(&place.kind, &account, &request)?;
        let time = self.epoch + now;
        let lifetime = request["spec"]["expirationSeconds"].as_i64().unwrap_or(LIFETIME);
        let end = time + Duration::from_secs(lifetime.unsigned_abs());
        let mut about = self.bound(&account, namespace, &request["spec"]["boundObjectRef"])?;
        about.insert("namespace".to_owned(), namespace.into());
        about.insert(
            "serviceaccount".to_owned(),
            json!({ "name": name, "uid": account.uid }),
        );
        about.sort_keys();
        let audiences = &mut request["spec"]["audiences"];
        if audiences.as_array().is_none_or(Vec::is_empty) {
            *audiences = json!([API_AUDIENCE]);
        }
        let claims = json!({
            "aud": audiences,
            "exp": end.as_secs(),
            "iat": time.as_secs(),
            "iss": API_AUDIENCE,
            "jti": write::uid(nth, &account.key),
            PRIVATE: about,
            "nbf": time.as_secs(),
            "sub": format!("system:serviceaccount:{namespace}:{name}"),
        });
        request["status"] = json!({ "token": sign(&claims), "expirationTimestamp": timestamp(end) });
        let metadata = &mut request["metadata"];
        metadata["name"] = name.into();
        metadata["uid"] = account.uid.as_str().into();
        metadata["creationTimestamp"] = timestamp(time).into();
        Ok(request)
    }

    /// Returns the claims of a token bound to this object.
    fn bound(&self, account: &Stored, namespace: &str, to: &Value) -> Result<Map<String, Value>, Status> {
        let mut about = Map::new();
        if to.is_null() {
            return Ok(about);
        }
        let text = |field: &str| to[field].as_str().unwrap_or_default();
        let (kind, name, uid) = (text("kind"), text("name"), text("uid"));
        let known = BOUND
            .iter()
            .find(|(known, ..)| *known == kind && text("apiVersion") == "v1");
        let Some(&(_, plural, claim)) = known else {
            let (group, version) = text("apiVersion")
                .split_once('/')
                .unwrap_or(("", text("apiVersion")));
            return Err(Status::bad_request(format!(
                "cannot bind token to object of type {group}/{version}, Kind={kind}"
            )));
        };
        if name.is_empty() {
            return Err(Status::bad_request("Name parameter required."));
        }
        let object = self.named(plural, Some(namespace), name)?;
        if kind == "Pod" {
            let spec = &object.json()["spec"];
            if spec["serviceAccountName"].as_str().unwrap_or("default") != account.name() {
                return Err(Status::bad_request(format!(
                    "cannot bind token for serviceaccount \"{}\" to pod running with different serviceaccount name.",
                    account.name()
                )));
            }
            if let Some(node) = spec["nodeName"].as_str().filter(|node| !node.is_empty()) {
                let uid = self.named("nodes", None, node).ok().map(|node| node.uid.clone());
                about.insert("node".to_owned(), claimed(node, uid.as_deref()));
            }
        }
        if !(uid.is_empty() || uid == object.uid) {
            let why = format!(
                "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have \
                 been deleted and then recreated"
            );
            return Err(Status::precondition_failed(&object.kind, name, &why));
        }
        about.insert(claim.to_owned(), claimed(name, Some(&object.uid)));
        Ok(about)
    }

    /// Returns the user of a token with these claims, and which of `audiences` it is for; without audiences, those of the
    /// server.
    pub(crate) fn account_of(&self, now: Duration, claims: &Value, audiences: &[&str]) -> Known {
        let meant = || {
            claims["aud"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
        };
        let wanted = if audiences.is_empty() {
            &[API_AUDIENCE]
        } else {
            audiences
        };
        let known: HashSet<&str> = meant().collect();
        let audiences: Vec<String> = wanted
            .iter()
            .filter(|wanted| known.contains(**wanted))
            .map(|audience| (*audience).to_owned())
            .collect();
        if audiences.is_empty() {
            let meant: Vec<&str> = meant().collect();
            return Err(format!(
                "token audiences {} is invalid for the target audiences {}",
                quoted(&meant),
                quoted(wanted)
            ));
        }
        if claims["exp"].as_u64().unwrap_or(0) <= (self.epoch + now).as_secs() {
            return Err("service account token has expired".to_owned());
        }
        let about = &claims[PRIVATE];
        let text = |place: &str, field: &str| about[place][field].as_str().unwrap_or_default();
        let namespace = about["namespace"].as_str().unwrap_or_default();
        let (name, uid) = (text("serviceaccount", "name"), text("serviceaccount", "uid"));
        let account = self
            .named("serviceaccounts", Some(namespace), name)
            .map_err(|status| status.message)?;
        if account.uid != uid {
            return Err(format!(
                "service account UID ({}) does not match claim ({uid})",
                account.uid
            ));
        }
        let mut extra = BTreeMap::new();
        let jti = claims["jti"].as_str().unwrap_or_default();
        extra.insert(CREDENTIAL_ID.to_owned(), vec![format!("JTI={jti}")]);
        // The node of a pod is in the claims, and need not exist.
        let pod = !about["pod"].is_null();
        for (_, plural, claim) in BOUND.iter().filter(|(.., claim)| !about[*claim].is_null()) {
            let (name, uid) = (text(claim, "name"), text(claim, "uid"));
            if !(pod && *claim == "node") {
                let object = self.named(plural, Some(namespace), name);
                if !object.is_ok_and(|object| object.uid == uid) {
                    return Err("service account token has been invalidated".to_owned());
                }
            }
            for (field, value) in [("name", name), ("uid", uid)] {
                if *claim != "secret" && !value.is_empty() {
                    let key = format!("authentication.kubernetes.io/{claim}-{field}");
                    extra.insert(key, vec![value.to_owned()]);
                }
            }
        }
        let user = User {
            name: claims["sub"].as_str().unwrap_or_default().to_owned(),
            uid: uid.to_owned(),
            groups: service_account_groups(namespace),
            extra,
        };
        Ok((user, audiences))
    }

    /// Returns the object of this core resource and name.
    pub(super) fn named(
        &self,
        plural: &str,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Arc<Stored>, Status> {
        let kind = self
            .catalog
            .find("", plural)
            .expect("every server has the core resources");
        let found = self.objects(kind).get(kind.key(namespace, name).as_str());
        found.cloned().ok_or_else(|| Status::not_found(kind, name))
    }
}

/// Checks that the request is for this service account and valid.
fn check_request(kind: &ApiResource, account: &Stored, request: &Value) -> Result<(), Status> {
    let (name, uid) = (metadata_text(request, "name"), metadata_text(request, "uid"));
    let invalid = |of: &str, field: &str, value: &Value, why: &str| {
        let mut found = ErrorList::default();
        found.invalid(field, value, why);
        Err(Status::invalid_object(kind, of, &found.into_causes()))
    };
    if !(name.is_empty() || name == account.name()) {
        let why = "must match the service account name if specified";
        return invalid(account.name(), "metadata.name", &name.into(), why);
    }
    if !(uid.is_empty() || uid == account.uid) {
        let why = format!(
            "the UID in the token request ({uid}) does not match the UID of the service account ({})",
            account.uid
        );
        return Err(Status::precondition_failed(kind, account.name(), &why));
    }
    let lifetime = &request["spec"]["expirationSeconds"];
    let why = match lifetime.as_i64() {
        Some(seconds) if seconds < LIFETIME_MIN => "may not specify a duration less than 10 minutes",
        Some(seconds) if seconds > LIFETIME_MAX => "may not specify a duration larger than 2^32 seconds",
        Some(_) | None => return Ok(()),
    };
    invalid("", "spec.expirationSeconds", lifetime, why)
}

fn claimed(name: &str, uid: Option<&str>) -> Value {
    match uid {
        Some(uid) => json!({ "name": name, "uid": uid }),
        None => json!({ "name": name }),
    }
}

/// Formats a list of strings as Go's `%q` does.
fn quoted(texts: &[&str]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| go_text::quote(text)).collect();
    format!("[{}]", texts.join(" "))
}
