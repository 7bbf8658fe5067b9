//! The algorithm of server-side apply and of tracking: who owns which field after a write, and what an applied configuration
//! that lacks a field removes. An owner is compared in the version of its entry.
//!
//! ```text
//! live ──merge config──▶ merged ──prune──▶ new ──compare with live──▶ conflicts, or the fields that other owners lose
//!                                   │
//!                                   └─ what the manager applied before and not now, unless somebody else owns it
//! ```
//! It must not know how objects are converted, nor the names of managers.
//!
//! Source: structured-merge-diff `merge/update.go`; apimachinery `util/managedfields/internal/versionconverter.go`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use apimachinery::kind::{ApiResource, KindRef};
use apimachinery::status::Status;
use serde_json::Value;

use super::owners::Owner;
use super::set::Fields;
use super::types::Type;
use super::values::{self, Changes};
use super::{Ownership, Versions, schema_of, typed};

/// Reason why a write fails.
pub(super) enum Failure {
    /// Other managers own fields that change. Each with its fields.
    Conflict(Vec<(Owner, Fields)>),
    Refused(Status),
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        Self::Refused(status)
    }
}

/// Differences by API version; `None`: there is no such version. A client can write any number of versions.
type ByVersion = BTreeMap<String, Option<Changes>>;

/// An object in a version of its kind.
#[derive(Clone)]
struct Versioned<'v> {
    object: Cow<'v, Value>,
    /// `None`: that of the request.
    kind: Option<KindRef>,
}

/// Updater of one write.
pub(super) struct Updater<'u, 'a> {
    pub(super) ownership: &'u Ownership<'a>,
    pub(super) versions: &'u mut dyn Versions,
}

impl Updater<'_, '_> {
    /// Returns the fields that an update of `live` to `new` writes, and takes them and the removed ones from `owners`.
    ///
    /// # Errors
    ///
    /// The object cannot be converted to the version of an owner.
    pub(super) fn update(
        &mut self,
        live: &Value,
        new: &Value,
        owners: &mut Vec<Owner>,
    ) -> Result<Fields, Failure> {
        self.reconcile(live, owners)?;
        let changes = self.compare(live, new, owners, None, true)?;
        Ok(changes.written)
    }

    /// Returns `live` with `config`, without what the manager no longer applies. `owners` becomes that after the write.
    ///
    /// # Errors
    ///
    /// A conflict, unless `force` is set; the object cannot be converted to the version of an owner.
    pub(super) fn apply(
        &mut self,
        live: &Value,
        config: &Value,
        owners: &mut Vec<Owner>,
        force: bool,
    ) -> Result<Value, Failure> {
        self.reconcile(live, owners)?;
        let of = self.ownership.root();
        let merged = values::merge(of, live, config);
        let mut applied = self.ownership.own_apply(values::field_set(of, config));
        let place = owners
            .iter()
            .position(|owner| owner.identity() == applied.identity());
        applied.time = place.and_then(|place| owners[place].time.clone());
        let last = place.map(|place| std::mem::replace(&mut owners[place], applied.clone()));
        let place = place.unwrap_or_else(|| {
            owners.push(applied);
            owners.len() - 1
        });
        let new = match last {
            Some(last) => self.prune(merged, owners, place, &last)?,
            None => merged,
        };
        self.compare(live, &new, owners, Some(place), force)?;
        Ok(new)
    }

    /// Takes the changed and removed fields from the owners, except the one at `own`.
    fn compare(
        &mut self,
        live: &Value,
        new: &Value,
        owners: &mut Vec<Owner>,
        own: Option<usize>,
        force: bool,
    ) -> Result<Changes, Failure> {
        let changes = self.ownership.changes(self.ownership.root(), live, new);
        let mut elsewhere = ByVersion::new();
        let mut conflicts = Vec::new();
        for (place, owner) in owners.iter().enumerate() {
            if Some(place) == own {
                continue;
            }
            let changes = self.changes_for(owner, &changes, (live, new), &mut elsewhere)?;
            // A manager that forces it has no conflicts.
            let contested = changes.filter(|_| !force);
            let contested = contested.map(|changes| owner.fields.intersection(&changes.written));
            if let Some(contested) = contested.filter(|contested| !contested.is_empty()) {
                conflicts.push((owner.clone(), contested));
            }
        }
        if !conflicts.is_empty() {
            return Err(Failure::Conflict(conflicts));
        }
        let mut places = 0..;
        owners.retain_mut(|owner| {
            if places.next() == own {
                return true;
            }
            let changes = match elsewhere.get(&owner.api_version) {
                None => Some(&changes),
                Some(changes) => changes.as_ref(),
            };
            if let Some(changes) = changes {
                owner.fields.subtract(&changes.written);
                owner.fields.subtract(&changes.removed);
            }
            changes.is_some()
        });
        Ok(changes)
    }

    /// Returns the differences in the version of an owner; `None`: there is no such version. `changes`: those in the version of
    /// the request.
    fn changes_for<'c>(
        &mut self,
        owner: &Owner,
        changes: &'c Changes,
        (live, new): (&Value, &Value),
        elsewhere: &'c mut ByVersion,
    ) -> Result<Option<&'c Changes>, Status> {
        let api_version = owner.api_version.as_str();
        if self.ownership.is_own_version(api_version) {
            return Ok(Some(changes));
        }
        if !elsewhere.contains_key(api_version) {
            let what = |what: &'static str| {
                move |mut status: Status| {
                    status.message = format!("failed to convert {what} object: {}", status.message);
                    status
                }
            };
            let (live, new) = (own(live), own(new));
            let live = self.to(&live, api_version).map_err(what("old"))?;
            let new = self.to(&new, api_version).map_err(what("new"))?;
            let both = live.zip(new).map(|(live, new)| {
                let of = self.ownership.type_of(live.kind.as_ref());
                self.ownership.changes(of, &live.object, &new.object)
            });
            elsewhere.insert(api_version.to_owned(), both);
        }
        Ok(elsewhere.get(api_version).and_then(Option::as_ref))
    }

    /// Adapts the sets to the current schemas, and drops the owners of versions that are gone.
    fn reconcile(&mut self, live: &Value, owners: &mut Vec<Owner>) -> Result<(), Status> {
        // A client can write any number of owners of a version, and a conversion takes as long as the object is large.
        let mut kinds: BTreeMap<String, Option<Option<KindRef>>> = BTreeMap::new();
        for owner in owners.iter() {
            let api_version = owner.api_version.as_str();
            if !kinds.contains_key(api_version) {
                let kind = match self.ownership.is_own_version(api_version) {
                    true => Some(None),
                    false => self.to(&own(live), api_version)?.map(|live| live.kind),
                };
                kinds.insert(api_version.to_owned(), kind);
            }
        }
        owners.retain_mut(|owner| {
            let Some(kind) = kinds.get(&owner.api_version).and_then(Option::as_ref) else {
                return false;
            };
            let of = self.ownership.type_of(kind.as_ref());
            if let Some(fields) = values::reconciled(of, &owner.fields) {
                owner.fields = fields;
            }
            true
        });
        Ok(())
    }

    /// Removes from `merged` what the manager applied last and not now, unless another one owns it.
    fn prune(
        &mut self,
        merged: Value,
        owners: &[Owner],
        place: usize,
        last: &Owner,
    ) -> Result<Value, Status> {
        let applied = &owners[place];
        if last.fields.is_empty() || last.fields == applied.fields && last.api_version == applied.api_version
        {
            return Ok(merged);
        }
        let whole = own(&merged);
        let why = "merged object to last applied version";
        let converted = self.to(&whole, &last.api_version).map_err(unconverted(why))?;
        let Some(converted) = converted.map(Versioned::into_owned) else {
            return Ok(merged);
        };
        let ownership = self.ownership;
        let of = ownership.type_of(converted.kind.as_ref());
        let last_fields = values::with_listed(of, &last.fields);
        let pruned = values::remove(of, converted.object.clone().into_owned(), &last_fields);
        let pruned = Versioned {
            object: Cow::Owned(pruned),
            kind: converted.kind.clone(),
        };
        let pruned = self.with_owned(converted.clone(), pruned, owners, &last.api_version)?;
        // What nobody owns is kept too.
        let why = "pruned object to last applied version";
        let pruned = self.to(&pruned, &last.api_version).map_err(unconverted(why))?;
        let left = match pruned {
            Some(pruned) => {
                let of_pruned = values::with_listed(of, &values::field_set(of, &pruned.object));
                let mut gone = values::with_listed(of, &values::field_set(of, &converted.object));
                gone.subtract(&of_pruned);
                let gone = gone.intersection(&last_fields);
                values::remove(of, converted.object.into_owned(), &gone)
            }
            None => converted.object.into_owned(),
        };
        let left = Versioned {
            object: Cow::Owned(left),
            kind: converted.kind,
        };
        let back = self.to(&left, &ownership.api_version())?;
        Ok(back.map_or(merged, |back| back.object.into_owned()))
    }

    /// Returns `pruned` with the parts of `merged` that have an owner, in any version.
    fn with_owned<'v>(
        &mut self,
        mut merged: Versioned<'v>,
        mut pruned: Versioned<'v>,
        owners: &[Owner],
        first: &str,
    ) -> Result<Versioned<'v>, Status> {
        let mut by_version: BTreeMap<&str, Vec<Fields>> = BTreeMap::new();
        for owner in owners {
            let sets = by_version.entry(&owner.api_version).or_default();
            sets.push(owner.fields.clone());
        }
        let mut by_version: Vec<(&str, Vec<Fields>)> = by_version.into_iter().collect();
        // In this version first: the conversion to others may need what is pruned.
        by_version.sort_by_key(|(version, _)| *version != first);
        for (version, owned) in by_version {
            let unconverted = |what: &'static str| {
                move |mut status: Status| {
                    status.message = format!(
                        "failed to prune fields: failed add back owned items: failed to convert {what} object at version \
                         {version}: {}",
                        status.message
                    );
                    status
                }
            };
            let whole = self.to(&merged, version).map_err(unconverted("merged"))?;
            let part = self.to(&pruned, version).map_err(unconverted("pruned"))?;
            let (Some(whole), Some(part)) = (whole, part) else {
                continue;
            };
            let (whole, part) = (whole.into_owned(), part.into_owned());
            let of = self.ownership.type_of(whole.kind.as_ref());
            let mut gone = values::with_listed(of, &values::field_set(of, &whole.object));
            gone.subtract(&values::with_listed(of, &values::field_set(of, &part.object)));
            gone.subtract(&values::with_listed(of, &Fields::union_of(owned)));
            pruned = Versioned {
                object: Cow::Owned(values::remove(of, whole.object.clone().into_owned(), &gone)),
                kind: part.kind,
            };
            merged = whole;
        }
        Ok(pruned)
    }

    /// Returns the object in this version; `None`: there is none.
    fn to<'v>(
        &mut self,
        object: &'v Versioned<'_>,
        api_version: &str,
    ) -> Result<Option<Versioned<'v>>, Status> {
        let ownership = self.ownership;
        let from: &ApiResource = object.kind.as_deref().unwrap_or(ownership.kind);
        if from.api_version() == api_version {
            return Ok(Some(Versioned {
                object: Cow::Borrowed(&*object.object),
                kind: object.kind.clone(),
            }));
        }
        let own_version = ownership.is_own_version(api_version);
        let other = match own_version {
            true => None,
            false => match self.versions.kind(api_version) {
                Some(kind) => Some(kind),
                None => return ownership.missing(api_version).map_or(Ok(None), Err),
            },
        };
        let to: &ApiResource = other.as_deref().unwrap_or(ownership.kind);
        let converted = self.versions.convert(&object.object, from, to)?;
        let of = Type::of(schema_of(to, ownership.version));
        if to.custom {
            typed::check(of, &converted, false).map_err(|why| Status::unexplained(typed::joined(&why)))?;
        }
        Ok(Some(Versioned {
            object: Cow::Owned(converted),
            kind: other,
        }))
    }
}

impl Versioned<'_> {
    fn into_owned<'o>(self) -> Versioned<'o> {
        Versioned {
            object: Cow::Owned(self.object.into_owned()),
            kind: self.kind,
        }
    }
}

fn own(object: &Value) -> Versioned<'_> {
    Versioned {
        object: Cow::Borrowed(object),
        kind: None,
    }
}

fn unconverted(what: &'static str) -> impl FnOnce(Status) -> Status {
    move |mut status| {
        status.message = format!(
            "failed to prune fields: failed to convert {what}: {}",
            status.message
        );
        status
    }
}
