//! Creates: checks and names of new objects.
//!
//! Source: apiserver `registry/rest/create.go` and `registry/generic/registry/store.go`.

use apimachinery::kind::{ApiResource, Deletion};
use apimachinery::status::Status;
use apimachinery::write::Subresource;
use builtin_kinds::crd::Definition;
use builtin_kinds::rbac::Attributes;
use builtin_kinds::{admission_policy, advice, crd, naming, ownership, types, unevaluated, validation};
use bytes::Bytes;
use serde_json::{Value, json};

use super::{AFTER_MUTATION, Writer, is_terminating, remove, text};
use crate::model::write::{self, Outcome};

/// Maximum number of generated names that are tried.
const ATTEMPTS: usize = 8;

impl Writer<'_> {
    pub(super) fn create(&mut self, object: Value, seed: u64) -> Result<(u16, Bytes), Status> {
        let kind = self.stored_kind();
        let (sent, prefix) = (text(&object, "name"), text(&object, "generateName"));
        self.takes_content(sent)?;
        if !kind.allows("create") {
            let why = "create not allowed while custom resource definition is terminating";
            return Err(Status::forbidden(&kind, sent, why, Vec::new()));
        }
        let generated = sent.is_empty() && !prefix.is_empty();
        let mut seed = seed;
        let mut next = || {
            if generated {
                naming::generate(prefix, &mut seed)
            } else {
                sent.to_owned()
            }
        };
        let mut name = next();
        for _ in 1..ATTEMPTS {
            if !generated || self.find(&name).is_none() {
                break;
            }
            name = next();
        }
        let (object, uid) = self.prepared(&name, object)?;
        // Admission may have changed it.
        let name = text(&object, "name").to_owned();
        self.charge(&object, None, &name, None)?;
        match self.find(&name) {
            Some(_) if generated => return Err(Status::no_name_left(&kind, &name)),
            Some(current) => {
                let mut status = Status::already_exists(&kind, &name);
                if is_terminating(&current.json()) {
                    status.message = format!("object is being deleted: {}", status.message);
                }
                return Err(status);
            }
            None => {}
        }
        self.store_new(&name, object, uid)
    }

    /// Creates an object, whose manager is the writer.
    pub(super) fn create_as(&mut self, name: &str, object: Value) -> Result<(u16, Bytes), Status> {
        let (object, uid) = self.prepared(name, object)?;
        self.charge(&object, None, name, None)?;
        self.store_new(name, object, uid)
    }

    /// Creates an object that has its managed fields.
    pub(super) fn create_owned(&mut self, name: &str, object: Value) -> Result<(u16, Bytes), Status> {
        let (object, uid) = self.admitted(name, object, false)?;
        self.charge(&object, None, name, None)?;
        self.store_new(name, object, uid)
    }

    /// Returns the object to be stored and its uid; its manager is the writer. The object is in the form of its kind.
    fn prepared(&mut self, name: &str, mut object: Value) -> Result<(Value, String), Status> {
        let sent_owners = ownership::take(&mut object);
        let filled = self.filled(&mut object);
        if filled {
            object = self.conformed(object);
        }
        if self.kind.defines {
            object = crd::prepared(object, None);
        }
        self.note_new(&mut object, sent_owners.as_ref())?;
        self.admitted(name, object, !filled)
    }

    /// Applies admission and validates the result. `complete`: the object has all defaults.
    fn admitted(&mut self, name: &str, mut object: Value, complete: bool) -> Result<(Value, String), Status> {
        let kind = self.stored_kind();
        let uid = write::uid(self.nonce, &self.key(name));
        let before = self.mutating().then(|| object.clone());
        self.mutate_new(&mut object, name, &uid)?;
        self.drop_repeated_owners(&mut object, AFTER_MUTATION);
        let renamed = text(&object, "name").to_owned();
        let name = if renamed.is_empty() {
            name
        } else {
            renamed.as_str()
        };
        let complete = complete && before.is_none_or(|before| before == object);
        self.check_escalation(&object, None, name)?;
        match kind.first_status {
            None => {}
            Some("") => remove(&mut object, "status"),
            Some(first) => {
                object["status"] = serde_json::from_str(first).expect("the catalog's statuses are JSON");
            }
        }
        if kind.deletion == Deletion::WhenEmpty {
            object["spec"] = json!({ "finalizers": ["kubernetes"] });
            object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name.into();
        }
        let admitted = self.admit_new(&mut object, name, &uid)?;
        self.settles_later |= settles_later(&kind, &object);
        let decided = admitted || kind.first_status.is_some() || kind.deletion == Deletion::WhenEmpty;
        if decided || !complete || kind.defines {
            object = self.completed(object);
        }
        if kind.defines {
            object = crd::prepared(object, None);
        }
        let object = self.identified(object, name, &uid);
        self.check_new(&object, name)?;
        self.warnings
            .extend(advice::of_new(&kind, &object, self.model.version));
        self.check_may_create(name)?;
        self.admit_by_policies((Some(&object), None), name, None)?;
        self.validate_new_by_hooks(&object, name)?;
        self.keep_to_limits(&object, name, None)?;
        Ok((object, uid))
    }

    /// Checks that the user may create the object, if the request was authorized for another verb. Invalid objects are rejected
    /// before.
    fn check_may_create(&self, name: &str) -> Result<(), Status> {
        let Some(requester) = self.requester.filter(|_| self.upserts) else {
            return Ok(());
        };
        let kind = &self.collection.kind;
        let namespace = match kind.deletion {
            // A namespace is in itself.
            Deletion::WhenEmpty => Some(name),
            Deletion::AtOnce | Deletion::AfterGrace => self.collection.namespace.as_deref(),
        };
        let attributes = Attributes::Resource {
            verb: "create".to_owned(),
            group: kind.group.to_string(),
            resource: kind.plural.to_string(),
            subresource: self.created_through.map_or("", Subresource::name).to_owned(),
            name: name.to_owned(),
            namespace: namespace.unwrap_or_default().to_owned(),
        };
        requester.authorizer.require(requester.user, &attributes)
    }

    fn store_new(&mut self, name: &str, mut object: Value, uid: String) -> Result<(u16, Bytes), Status> {
        let (kind, key) = (&self.kind, self.key(name));
        self.warnings.extend(unevaluated::warnings(kind));
        if let Some(definition) = Definition::of(kind) {
            if self.upserts || self.mutated {
                // An applied object is read back as any other.
                self.has_unread |= !definition.receive(&mut object).is_empty();
            }
            self.settles_later |= self.has_unread && definition.storage.is_none();
            // So is the status, which was removed with its defaults.
            self.settles_later |= kind.first_status.is_some() && definition.fill_status(&mut object);
            definition.store(&mut object);
        }
        types::drop_empty(kind, &mut object);
        let said = self.dry_run.then(|| text(&object, "resourceVersion").to_owned());
        let mut outcome = write::replace(kind, &key, None, object, self.time(), uid);
        if self.dry_run
            && let Outcome::Put(created) = &mut outcome
        {
            // A dry run assigns no version, and the response has that of the request.
            match said.filter(|version| !version.is_empty()) {
                Some(version) => created["metadata"]["resourceVersion"] = version.into(),
                None => remove(&mut created["metadata"], "resourceVersion"),
            }
        }
        self.check_size(&outcome)?;
        Ok((201, self.commit(key, None, outcome)?))
    }

    /// Checks that a new object is valid and has no resourceVersion.
    fn check_new(&self, object: &Value, name: &str) -> Result<(), Status> {
        let (kind, version) = (&self.kind, self.model.version);
        let mut errors = validation::validate_create(kind, object, name, version);
        errors.extend(self.kind_error(object));
        errors.extend(crd::validate_create(kind, object, version));
        errors.extend(admission_policy::validate(kind, object));
        let found = crd::evaluate_rules(kind, object, None, &errors);
        errors.extend(found.causes);
        if !errors.is_empty() {
            return Err(self.invalid(object, name, &errors));
        }
        match text(object, "resourceVersion").parse::<u64>() {
            Ok(version) if version != 0 && !self.dry_run && !self.upserts => {
                Err(Status::version_of_new_object())
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

/// Whether the strategy of the kind leaves out of a new object what is then defaulted whenever it is read: the phase of a claim,
/// and the labels of a job, which are those of its template.
fn settles_later(kind: &ApiResource, object: &Value) -> bool {
    match (&*kind.group, &*kind.plural) {
        ("", "persistentvolumeclaims") => true,
        ("batch", "jobs") => {
            object["metadata"]["labels"].is_null()
                && object["spec"]["template"]["metadata"]["labels"].is_object()
        }
        (_, _) => false,
    }
}
