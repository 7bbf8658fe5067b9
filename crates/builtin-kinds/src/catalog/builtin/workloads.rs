//! Workloads: apps, batch, autoscaling and policy.

use std::borrow::Cow::Borrowed;

use apimachinery::Version;
use apimachinery::kind::{ApiResource, Generation, NameRule, Names::Literal, SelectableFields, UnknownField};

use super::{CORE, REPLICAS, count};

/// HorizontalPodAutoscaler of autoscaling/v2.
const AUTOSCALER: ApiResource = ApiResource {
    group: Borrowed("autoscaling"),
    version: Borrowed("v2"),
    plural: Borrowed("horizontalpodautoscalers"),
    singular: Borrowed("horizontalpodautoscaler"),
    kind: Borrowed("HorizontalPodAutoscaler"),
    list_kind: Borrowed("HorizontalPodAutoscalerList"),
    short_names: Literal(&["hpa"]),
    categories: Literal(&["all"]),
    status: true,
    zero: concat!(
        r#","spec":{"scaleTargetRef":{"kind":"","name":""},"maxReplicas":0},"#,
        r#""status":{"desiredReplicas":0,"currentMetrics":null}"#,
    ),
    first_status: Some(r#"{"desiredReplicas":0,"currentMetrics":null}"#),
    ..CORE
};

/// HorizontalPodAutoscaler of autoscaling/v1.
const AUTOSCALER_V1: ApiResource = ApiResource {
    version: CORE.version,
    shows: Some((Borrowed("autoscaling"), Borrowed("v2"))),
    zero: concat!(
        r#","spec":{"scaleTargetRef":{"kind":"","name":""},"maxReplicas":0},"#,
        r#""status":{"currentReplicas":0,"desiredReplicas":0}"#,
    ),
    first_status: Some(r#"{"currentReplicas":0,"desiredReplicas":0}"#),
    ..AUTOSCALER
};

pub(super) static ROWS: &[ApiResource] = &[
    ApiResource {
        group: Borrowed("apps"),
        plural: Borrowed("controllerrevisions"),
        singular: Borrowed("controllerrevision"),
        kind: Borrowed("ControllerRevision"),
        list_kind: Borrowed("ControllerRevisionList"),
        fields: &["data", "revision"],
        zero: r#","data":null,"revision":0"#,
        ..CORE
    },
    ApiResource {
        group: Borrowed("apps"),
        plural: Borrowed("daemonsets"),
        singular: Borrowed("daemonset"),
        kind: Borrowed("DaemonSet"),
        list_kind: Borrowed("DaemonSetList"),
        short_names: Literal(&["ds"]),
        categories: Literal(&["all"]),
        status: true,
        generation: Generation::Spec,
        zero: concat!(
            r#","spec":{"selector":null,"template":{"metadata":{},"spec":{"containers":null}},"#,
            r#""updateStrategy":{}},"status":{"currentNumberScheduled":0,"numberMisscheduled":0,"#,
            r#""desiredNumberScheduled":0,"numberReady":0}"#,
        ),
        zero_annotations: &[("deprecated.daemonset.template.generation", "0")],
        first_status: Some(concat!(
            r#"{"currentNumberScheduled":0,"numberMisscheduled":0,"desiredNumberScheduled":0,"#,
            r#""numberReady":0}"#,
        )),
        ..CORE
    },
    ApiResource {
        group: Borrowed("apps"),
        plural: Borrowed("deployments"),
        singular: Borrowed("deployment"),
        kind: Borrowed("Deployment"),
        list_kind: Borrowed("DeploymentList"),
        short_names: Literal(&["deploy"]),
        categories: Literal(&["all"]),
        status: true,
        scale: Some(REPLICAS),
        generation: Generation::SpecAndAnnotations,
        zero: concat!(
            r#","spec":{"replicas":0,"selector":null,"template":{"metadata":{},"#,
            r#""spec":{"containers":null}},"strategy":{}},"status":{}"#,
        ),
        first_status: Some("{}"),
        ..CORE
    },
    ApiResource {
        group: Borrowed("apps"),
        plural: Borrowed("replicasets"),
        singular: Borrowed("replicaset"),
        kind: Borrowed("ReplicaSet"),
        list_kind: Borrowed("ReplicaSetList"),
        short_names: Literal(&["rs"]),
        categories: Literal(&["all"]),
        status: true,
        scale: Some(REPLICAS),
        generation: Generation::Spec,
        zero: concat!(
            r#","spec":{"replicas":0,"selector":null,"template":{"metadata":{},"#,
            r#""spec":{"containers":null}}},"status":{"replicas":0}"#,
        ),
        first_status: Some(r#"{"replicas":0}"#),
        ..CORE
    },
    ApiResource {
        group: Borrowed("apps"),
        plural: Borrowed("statefulsets"),
        singular: Borrowed("statefulset"),
        kind: Borrowed("StatefulSet"),
        list_kind: Borrowed("StatefulSetList"),
        short_names: Literal(&["sts"]),
        categories: Literal(&["all"]),
        status: true,
        scale: Some(REPLICAS),
        generation: Generation::Spec,
        zero: concat!(
            r#","spec":{"replicas":0,"selector":null,"template":{"metadata":{},"#,
            r#""spec":{"containers":null}},"serviceName":"","updateStrategy":{}},"#,
            r#""status":{"replicas":0,"availableReplicas":0}"#,
        ),
        names: NameRule::Label,
        first_status: Some(r#"{"replicas":0,"availableReplicas":0}"#),
        ..CORE
    },
    ApiResource {
        group: Borrowed("batch"),
        plural: Borrowed("cronjobs"),
        singular: Borrowed("cronjob"),
        kind: Borrowed("CronJob"),
        list_kind: Borrowed("CronJobList"),
        short_names: Literal(&["cj"]),
        categories: Literal(&["all"]),
        status: true,
        generation: Generation::Spec,
        zero: concat!(
            r#","spec":{"schedule":"","jobTemplate":{"metadata":{},"#,
            r#""spec":{"template":{"metadata":{},"spec":{"containers":null}}}}},"status":{}"#,
        ),
        names: NameRule::Short,
        first_status: Some("{}"),
        ..CORE
    },
    ApiResource {
        group: Borrowed("batch"),
        plural: Borrowed("jobs"),
        singular: Borrowed("job"),
        kind: Borrowed("Job"),
        list_kind: Borrowed("JobList"),
        categories: Literal(&["all"]),
        status: true,
        generation: Generation::Spec,
        orphans: true,
        zero: r#","spec":{"template":{"metadata":{},"spec":{"containers":null}}},"status":{}"#,
        selectable: SelectableFields::Literal(&[count("status.successful", "/status/succeeded")]),
        unknown_field: UnknownField::NotSupportedForKind,
        first_status: Some("{}"),
        ..CORE
    },
    ApiResource {
        until: Some(Version::V1_37),
        ..AUTOSCALER
    },
    ApiResource {
        since: Version::V1_37,
        generation: Generation::Spec,
        ..AUTOSCALER
    },
    ApiResource {
        until: Some(Version::V1_37),
        ..AUTOSCALER_V1
    },
    ApiResource {
        since: Version::V1_37,
        generation: Generation::Spec,
        ..AUTOSCALER_V1
    },
    ApiResource {
        group: Borrowed("policy"),
        plural: Borrowed("poddisruptionbudgets"),
        singular: Borrowed("poddisruptionbudget"),
        kind: Borrowed("PodDisruptionBudget"),
        list_kind: Borrowed("PodDisruptionBudgetList"),
        short_names: Literal(&["pdb"]),
        status: true,
        generation: Generation::Spec,
        zero: concat!(
            r#","spec":{},"status":{"disruptionsAllowed":0,"currentHealthy":0,"desiredHealthy":0,"#,
            r#""expectedPods":0}"#,
        ),
        unconditional_update: false,
        names: NameRule::PathSegment,
        first_status: Some(
            r#"{"disruptionsAllowed":0,"currentHealthy":0,"desiredHealthy":0,"expectedPods":0}"#,
        ),
        ..CORE
    },
];
