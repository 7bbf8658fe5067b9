//! Admission plugins of kube-apiserver that a server has or has not. It must not know what they do.
//!
//! Source: kubernetes `pkg/kubeapiserver/options/plugins.go`.

use serde::Deserialize;
use serde::de::value::{Error, StrDeserializer};

/// An admission plugin with an effect. Its name is that of the variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum AdmissionPlugin {
    /// Sets the class of an Ingress.
    DefaultIngressClass,
    /// Sets the class of a claim.
    DefaultStorageClass,
    /// Adds two tolerations to a pod.
    DefaultTolerationSeconds,
    /// Sets and checks resources by LimitRanges.
    LimitRanger,
    /// Evaluates mutating policies.
    MutatingAdmissionPolicy,
    /// Calls mutating webhooks.
    MutatingAdmissionWebhook,
    /// Rejects new objects in a namespace that does not exist or terminates.
    NamespaceLifecycle,
    /// Checks a resized pod against its node.
    PodResizeValidator,
    /// Sets the priority of a pod by its class.
    Priority,
    /// Counts objects and resources by ResourceQuotas.
    ResourceQuota,
    /// Sets overhead and scheduling of a pod by its RuntimeClass.
    RuntimeClass,
    /// Sets and checks the account of a pod.
    ServiceAccount,
    /// Adds finalizers to claims, volumes and their classes.
    StorageObjectInUseProtection,
    /// Adds the taint `not-ready` to new nodes.
    TaintNodesByCondition,
    /// Evaluates validating policies.
    ValidatingAdmissionPolicy,
    /// Calls validating webhooks.
    ValidatingAdmissionWebhook,
}

impl AdmissionPlugin {
    /// Returns the plugin of this name; `None`: it has no effect here, or is none.
    pub fn named(name: &str) -> Option<Self> {
        Self::deserialize(StrDeserializer::<Error>::new(name)).ok()
    }
}

/// The admission plugins of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdmissionPlugins(u32);

impl AdmissionPlugins {
    /// Returns those that kube-apiserver has by default.
    pub fn of_kube_apiserver() -> Self {
        Self(u32::MAX)
    }

    /// Whether it is among them.
    pub fn has(self, plugin: AdmissionPlugin) -> bool {
        self.0 & 1 << plugin as u32 != 0
    }

    /// Returns these without the plugin.
    #[must_use]
    pub fn without(self, plugin: AdmissionPlugin) -> Self {
        Self(self.0 & !(1 << plugin as u32))
    }
}

/// Those of kube-apiserver, without the ones whose effects only a controller removes.
impl Default for AdmissionPlugins {
    fn default() -> Self {
        Self::of_kube_apiserver()
            .without(AdmissionPlugin::StorageObjectInUseProtection)
            .without(AdmissionPlugin::TaintNodesByCondition)
    }
}
