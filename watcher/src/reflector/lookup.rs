//! Object identity as needed by a store. Independent of stores.

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube_core::{DynamicObject, Resource};

use crate::lazy::Lazy;

/// Identity of an object, compatible with kube-runtime's trait of this name. Implemented for every [`Resource`].
pub trait Lookup {
    /// Kind information known only at run time; `()` for typed objects.
    type DynamicType;

    /// Returns the kind, e.g. `Pod`.
    fn kind(dyntype: &Self::DynamicType) -> Cow<'_, str>;
    /// Returns the API group; empty for core.
    fn group(dyntype: &Self::DynamicType) -> Cow<'_, str>;
    /// Returns the API version, e.g. `v1`.
    fn version(dyntype: &Self::DynamicType) -> Cow<'_, str>;
    /// Returns `metadata.name`.
    fn name(&self) -> Option<Cow<'_, str>>;
    /// Returns `metadata.namespace`.
    fn namespace(&self) -> Option<Cow<'_, str>>;
    /// Returns `metadata.resourceVersion`.
    fn resource_version(&self) -> Option<Cow<'_, str>>;
    /// Returns `metadata.uid`.
    fn uid(&self) -> Option<Cow<'_, str>>;

    /// Returns group and version, e.g. `v1` or `apps/v1`.
    fn api_version(dyntype: &Self::DynamicType) -> Cow<'_, str> {
        let group = Self::group(dyntype);
        if group.is_empty() {
            Self::version(dyntype)
        } else {
            Cow::Owned(format!("{group}/{}", Self::version(dyntype)))
        }
    }

    /// Returns a reference to this object.
    fn to_object_ref(&self, dyntype: Self::DynamicType) -> ObjectRef<Self> {
        ObjectRef {
            dyntype,
            name: self.name().unwrap_or_default().into_owned(),
            namespace: self.namespace().map(Cow::into_owned),
        }
    }
}

impl<K: Resource> Lookup for K {
    type DynamicType = K::DynamicType;

    fn kind(dyntype: &Self::DynamicType) -> Cow<'_, str> {
        K::kind(dyntype)
    }

    fn group(dyntype: &Self::DynamicType) -> Cow<'_, str> {
        K::group(dyntype)
    }

    fn version(dyntype: &Self::DynamicType) -> Cow<'_, str> {
        K::version(dyntype)
    }

    fn name(&self) -> Option<Cow<'_, str>> {
        self.meta().name.as_deref().map(Cow::Borrowed)
    }

    fn namespace(&self) -> Option<Cow<'_, str>> {
        self.meta().namespace.as_deref().map(Cow::Borrowed)
    }

    fn resource_version(&self) -> Option<Cow<'_, str>> {
        self.meta().resource_version.as_deref().map(Cow::Borrowed)
    }

    fn uid(&self) -> Option<Cow<'_, str>> {
        self.meta().uid.as_deref().map(Cow::Borrowed)
    }
}

/// A lazy object is stored under its names only, because its kind is known only after decoding.
impl<K: Resource> Lookup for Lazy<K> {
    type DynamicType = K::DynamicType;

    fn kind(dyntype: &Self::DynamicType) -> Cow<'_, str> {
        K::kind(dyntype)
    }

    fn group(dyntype: &Self::DynamicType) -> Cow<'_, str> {
        K::group(dyntype)
    }

    fn version(dyntype: &Self::DynamicType) -> Cow<'_, str> {
        K::version(dyntype)
    }

    fn name(&self) -> Option<Cow<'_, str>> {
        Some(Cow::Borrowed(self.name()))
    }

    fn namespace(&self) -> Option<Cow<'_, str>> {
        Some(self.namespace())
            .filter(|namespace| !namespace.is_empty())
            .map(Cow::Borrowed)
    }

    fn resource_version(&self) -> Option<Cow<'_, str>> {
        Some(Cow::Borrowed(self.resource_version()))
    }

    fn uid(&self) -> Option<Cow<'_, str>> {
        Some(Cow::Borrowed(self.uid()))
    }
}

/// A typed reference to an object: its kind, namespace and name.
///
/// ```
/// use k8s_openapi::api::core::v1::{ConfigMap, Secret};
/// use watcher::reflector::ObjectRef;
///
/// let settings = ObjectRef::<ConfigMap>::new("settings").within("apps");
/// assert_eq!(settings.to_string(), "ConfigMap.v1./settings.apps");
/// assert_ne!(ObjectRef::<ConfigMap>::new("a").erase(), ObjectRef::<Secret>::new("a").erase());
/// ```
pub struct ObjectRef<K: Lookup + ?Sized> {
    /// Kind information known only at run time.
    pub dyntype: K::DynamicType,
    /// `metadata.name`.
    pub name: String,
    /// `metadata.namespace`; `None` for cluster-scoped objects.
    pub namespace: Option<String>,
}

impl<K: Lookup> ObjectRef<K>
where
    K::DynamicType: Default,
{
    /// Creates a reference without a namespace.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self::new_with(name, K::DynamicType::default())
    }

    /// Creates a reference to an object.
    #[must_use]
    pub fn from_obj(object: &K) -> Self {
        object.to_object_ref(K::DynamicType::default())
    }
}

impl<K: Lookup> ObjectRef<K> {
    /// Creates a reference to an object of this kind, without a namespace.
    #[must_use]
    pub fn new_with(name: &str, dyntype: K::DynamicType) -> Self {
        Self {
            dyntype,
            name: name.to_owned(),
            namespace: None,
        }
    }

    /// Sets the namespace.
    #[must_use]
    pub fn within(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// Creates a reference to an object of this kind.
    #[must_use]
    pub fn from_obj_with(object: &K, dyntype: K::DynamicType) -> Self {
        object.to_object_ref(dyntype)
    }

    /// Returns the owner if it is a `K`: an owner is cluster-scoped or in its object's `namespace`. `None` for an
    /// owner of another kind. Versions of one kind are considered the same kind.
    pub fn from_owner_ref(
        namespace: Option<&str>,
        owner: &OwnerReference,
        dyntype: K::DynamicType,
    ) -> Option<Self> {
        let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
        let is_one = group == K::group(&dyntype) && owner.kind == K::kind(&dyntype);
        is_one.then(|| Self {
            dyntype,
            name: owner.name.clone(),
            namespace: namespace.map(str::to_owned),
        })
    }

    /// Returns the same reference with its kind known only at run time.
    pub fn erase(self) -> ObjectRef<DynamicObject> {
        let resource = kube_core::ApiResource {
            group: K::group(&self.dyntype).into_owned(),
            version: K::version(&self.dyntype).into_owned(),
            api_version: K::api_version(&self.dyntype).into_owned(),
            kind: K::kind(&self.dyntype).into_owned(),
            // Unknown here, and not part of the identity.
            plural: String::new(),
        };
        ObjectRef {
            dyntype: resource,
            name: self.name,
            namespace: self.namespace,
        }
    }
}

/// `Kind.version.group/name.namespace`, as kube-runtime writes it.
impl<K: Lookup + ?Sized> fmt::Display for ObjectRef<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, version, group) = (
            K::kind(&self.dyntype),
            K::version(&self.dyntype),
            K::group(&self.dyntype),
        );
        write!(f, "{kind}.{version}.{group}/{}", self.name)?;
        match &self.namespace {
            Some(namespace) => write!(f, ".{namespace}"),
            None => Ok(()),
        }
    }
}

impl<K: Lookup + ?Sized> fmt::Debug for ObjectRef<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectRef({self})")
    }
}

impl<K: Lookup + ?Sized> Clone for ObjectRef<K>
where
    K::DynamicType: Clone,
{
    fn clone(&self) -> Self {
        Self {
            dyntype: self.dyntype.clone(),
            name: self.name.clone(),
            namespace: self.namespace.clone(),
        }
    }
}

impl<K: Lookup + ?Sized> PartialEq for ObjectRef<K>
where
    K::DynamicType: PartialEq,
{
    fn eq(&self, other: &Self) -> bool {
        self.dyntype == other.dyntype && self.name == other.name && self.namespace == other.namespace
    }
}

impl<K: Lookup + ?Sized> Eq for ObjectRef<K> where K::DynamicType: Eq {}

impl<K: Lookup + ?Sized> Hash for ObjectRef<K>
where
    K::DynamicType: Hash,
{
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.dyntype.hash(state);
        self.name.hash(state);
        self.namespace.hash(state);
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::Deployment;
    use k8s_openapi::api::core::v1::Pod;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("apps/v1", "Deployment", true)]
    #[case("apps/v1beta1", "Deployment", true)]
    #[case("apps/v1", "ReplicaSet", false)]
    #[case("v1", "Deployment", false)]
    fn an_owner_is_known_by_group_and_kind(
        #[case] api_version: &str,
        #[case] kind: &str,
        #[case] is_one: bool,
    ) {
        let owner = OwnerReference {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            name: "web".to_owned(),
            ..OwnerReference::default()
        };
        let found = ObjectRef::<Deployment>::from_owner_ref(Some("apps"), &owner, ());
        let expected = ObjectRef::new("web").within("apps");
        assert_eq!(found, is_one.then_some(expected));
    }

    #[test]
    fn erased_references_of_two_kinds_differ() {
        let deployment = ObjectRef::<Deployment>::new("a").within("b");
        assert_eq!(deployment.to_string(), "Deployment.v1.apps/a.b");
        assert_eq!(deployment.clone().erase().to_string(), "Deployment.v1.apps/a.b");
        assert_ne!(deployment.erase(), ObjectRef::<Pod>::new("a").within("b").erase());
    }
}
