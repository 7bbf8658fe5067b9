//! Writes of rules to the upstream: the request of each, and what its response means. It must not know when it is sent.
//!
//! An object is applied as by `kubectl apply --server-side --force-conflicts`: one request, whether the object exists or not.
//!
//! Source: "Server-Side Apply"; RFC 7386 (merge patch).

use apimachinery::object::SERVER_OWNED;
use apimachinery::path::object_path;
use builtin_kinds::catalog::Catalog;
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method};
use scenario::{Manifest, ObjectName, StoreAction};
use serde_json::{Value, json};
use trace::record::{StoreWrite, WriteOp};

use super::{Identity, Metadata, Outbound};

/// Field manager of the proxy.
const MANAGER: &str = "fake-apiserver";

/// A write.
#[derive(Debug, Clone)]
pub(crate) struct Write {
    of: ObjectName,
    how: How,
    /// The request; `Err`: why there is none.
    pub(crate) request: Result<Box<Outbound>, String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    Applied,
    Relabeled,
    Deleted,
}

/// What a response means.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Written {
    /// What was done.
    pub(crate) how: &'static str,
    /// Version of the object afterwards; `None` if it was deleted.
    pub(crate) wrote: Option<StoreWrite>,
    /// The object, if it is a CustomResourceDefinition.
    pub(crate) definition: Option<Value>,
}

impl Write {
    /// Returns the writes of an action, in order; none if it is no write.
    pub(crate) fn all(action: &StoreAction, catalog: &Catalog) -> Vec<Self> {
        match action {
            StoreAction::Apply(manifests) => manifests.iter().map(Self::apply).collect(),
            StoreAction::Delete { objects, .. } => {
                let deletes = objects.iter();
                deletes.map(|object| Self::delete(object, catalog)).collect()
            }
            StoreAction::Relabel { object, labels, .. } => vec![Self::relabel(object, labels, catalog)],
            StoreAction::Compact
            | StoreAction::ClearWatchCache(_)
            | StoreAction::FreezeWatchCache(_)
            | StoreAction::LagWatchCache { .. }
            | StoreAction::ThawWatchCache(_)
            | StoreAction::Restore { .. }
            | StoreAction::Restart(_)
            | StoreAction::JumpClock { .. } => Vec::new(),
        }
    }

    fn apply(manifest: &Manifest) -> Self {
        let mut object = manifest.json.clone();
        if let Some(metadata) = object["metadata"].as_object_mut() {
            // Apply rejects what the server sets, and an object that was read has it.
            metadata.retain(|field, _| {
                let named = field == "name" || field == "namespace";
                named || field != "managedFields" && !SERVER_OWNED.contains(&field.as_str())
            });
        }
        let version = manifest.json["apiVersion"].as_str().unwrap_or_default();
        let version = version.rsplit('/').next().unwrap_or_default().to_owned();
        let query = format!("?fieldManager={MANAGER}&force=true");
        let body = Some(("application/apply-patch+yaml", object));
        Self::new(
            &manifest.object_name(),
            How::Applied,
            Ok(version),
            Method::PATCH,
            &query,
            body,
        )
    }

    fn relabel(object: &ObjectName, labels: &[(String, Option<String>)], catalog: &Catalog) -> Self {
        let labels: serde_json::Map<String, Value> = { labels.iter() }
            .map(|(label, value)| (label.clone(), json!(value)))
            .collect();
        let patch = json!({ "metadata": { "labels": labels } });
        let query = format!("?fieldManager={MANAGER}");
        let body = Some(("application/merge-patch+json", patch));
        let version = version_of(object, catalog);
        Self::new(object, How::Relabeled, version, Method::PATCH, &query, body)
    }

    fn delete(object: &ObjectName, catalog: &Catalog) -> Self {
        let version = version_of(object, catalog);
        Self::new(object, How::Deleted, version, Method::DELETE, "", None)
    }

    fn new(
        of: &ObjectName,
        how: How,
        version: Result<String, String>,
        method: Method,
        query: &str,
        body: Option<(&'static str, Value)>,
    ) -> Self {
        let request = version.map(|version| {
            let path = object_path(&of.group, &version, of.namespace.as_deref(), &of.plural, &of.name);
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
            let agent = concat!("fake-apiserver/", env!("CARGO_PKG_VERSION"));
            headers.insert(USER_AGENT, HeaderValue::from_static(agent));
            let mut bytes = Bytes::new();
            if let Some((content_type, body)) = body {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
                bytes = body.to_string().into();
            }
            Box::new(Outbound {
                method,
                target: format!("{path}{query}"),
                headers,
                body: bytes,
                identity: Identity::Lent,
            })
        });
        Self {
            of: of.clone(),
            how,
            request,
        }
    }

    /// Returns resource and object, for the trace: `deployments.apps shop/web`.
    pub(crate) fn object(&self) -> String {
        format!("{} {}", self.of.resource(), self.of.key())
    }

    /// Returns what is to be done.
    pub(crate) fn aim(&self) -> &'static str {
        match self.how {
            How::Applied => "applied",
            How::Relabeled => "relabeled",
            How::Deleted => "deleted",
        }
    }

    /// Reads the response.
    ///
    /// # Errors
    /// The reason of the upstream.
    pub(crate) fn read(&self, status: u16, body: &[u8]) -> Result<Written, String> {
        let document: Value = serde_json::from_slice(body).unwrap_or_default();
        if !(200..300).contains(&status) {
            return Err(match document["message"].as_str() {
                Some(message) => format!("{status}: {message}"),
                None => format!("the upstream answered with status {status}, without a reason"),
            });
        }
        let (how, op) = match (self.how, status) {
            (How::Applied, 201) => ("created", WriteOp::Create),
            (How::Applied, _) => ("configured", WriteOp::Update),
            (How::Relabeled, _) => ("relabeled", WriteOp::Update),
            // The response has a Status, or the object as it was.
            (How::Deleted, _) => {
                return Ok(Written {
                    how: "deleted",
                    ..Written::default()
                });
            }
        };
        let metadata: Option<Metadata> = serde_json::from_value(document["metadata"].clone()).ok();
        let object = metadata.map(Metadata::object_ref);
        let object = object.filter(|object| !object.resource_version.is_empty());
        let defines = self.of.resource() == "customresourcedefinitions.apiextensions.k8s.io";
        Ok(Written {
            how,
            wrote: object.map(|object| StoreWrite {
                resource: self.of.plural.clone(),
                object,
                op,
                selected: false,
                by: None,
                content: None,
            }),
            definition: defines.then_some(document),
        })
    }
}

fn version_of(object: &ObjectName, catalog: &Catalog) -> Result<String, String> {
    match catalog.find(&object.group, &object.plural) {
        Some(kind) => Ok(kind.version.to_string()),
        None => Err(
            "its version is not known: its CustomResourceDefinition was not there at the start".to_owned(),
        ),
    }
}
