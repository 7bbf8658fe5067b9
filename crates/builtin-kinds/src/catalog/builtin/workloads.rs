//! Workloads: apps, batch, autoscaling and policy.

use apimachinery::kind::{ApiResource, NameRule, UnknownField};

use super::{CORE, REPLICAS, count};

pub(super) static ROWS: &[ApiResource] = &[
    ApiResource {
        group: "apps",
        plural: "controllerrevisions",
        singular: "controllerrevision",
        kind: "ControllerRevision",
        list_kind: "ControllerRevisionList",
        fields: &["data", "revision"],
        zero: r#","data":null,"revision":0"#,
        ..CORE
    },
    ApiResource {
        group: "apps",
        plural: "daemonsets",
        singular: "daemonset",
        kind: "DaemonSet",
        list_kind: "DaemonSetList",
        short_names: &["ds"],
        categories: &["all"],
        status: true,
        generation: true,
        zero: concat!(
            r#","spec":{"selector":null,"template":{"metadata":{0},"spec":{"containers":null}},"#,
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
        group: "apps",
        plural: "deployments",
        singular: "deployment",
        kind: "Deployment",
        list_kind: "DeploymentList",
        short_names: &["deploy"],
        categories: &["all"],
        status: true,
        scale: Some(REPLICAS),
        generation: true,
        zero: concat!(
            r#","spec":{"replicas":0,"selector":null,"template":{"metadata":{0},"#,
            r#""spec":{"containers":null}},"strategy":{}},"status":{}"#,
        ),
        first_status: Some("{}"),
        ..CORE
    },
    ApiResource {
        group: "apps",
        plural: "replicasets",
        singular: "replicaset",
        kind: "ReplicaSet",
        list_kind: "ReplicaSetList",
        short_names: &["rs"],
        categories: &["all"],
        status: true,
        scale: Some(REPLICAS),
        generation: true,
        zero: concat!(
            r#","spec":{"replicas":0,"selector":null,"template":{"metadata":{0},"#,
            r#""spec":{"containers":null}}},"status":{"replicas":0}"#,
        ),
        first_status: Some(r#"{"replicas":0}"#),
        ..CORE
    },
    ApiResource {
        group: "apps",
        plural: "statefulsets",
        singular: "statefulset",
        kind: "StatefulSet",
        list_kind: "StatefulSetList",
        short_names: &["sts"],
        categories: &["all"],
        status: true,
        scale: Some(REPLICAS),
        generation: true,
        zero: concat!(
            r#","spec":{"replicas":0,"selector":null,"template":{"metadata":{0},"#,
            r#""spec":{"containers":null}},"serviceName":"","updateStrategy":{}},"#,
            r#""status":{"replicas":0,"availableReplicas":0}"#,
        ),
        names: NameRule::Label,
        first_status: Some(r#"{"replicas":0,"availableReplicas":0}"#),
        ..CORE
    },
    ApiResource {
        group: "batch",
        plural: "cronjobs",
        singular: "cronjob",
        kind: "CronJob",
        list_kind: "CronJobList",
        short_names: &["cj"],
        categories: &["all"],
        status: true,
        generation: true,
        zero: concat!(
            r#","spec":{"schedule":"","jobTemplate":{"metadata":{0},"#,
            r#""spec":{"template":{"metadata":{0},"spec":{"containers":null}}}}},"status":{}"#,
        ),
        names: NameRule::Short,
        first_status: Some("{}"),
        ..CORE
    },
    ApiResource {
        group: "batch",
        plural: "jobs",
        singular: "job",
        kind: "Job",
        list_kind: "JobList",
        categories: &["all"],
        status: true,
        generation: true,
        orphans: true,
        zero: r#","spec":{"template":{"metadata":{0},"spec":{"containers":null}}},"status":{}"#,
        selectable: &[count("status.successful", "/status/succeeded")],
        unknown_field: UnknownField::NotSupportedForKind,
        first_status: Some("{}"),
        ..CORE
    },
    ApiResource {
        group: "autoscaling",
        version: "v2",
        plural: "horizontalpodautoscalers",
        singular: "horizontalpodautoscaler",
        kind: "HorizontalPodAutoscaler",
        list_kind: "HorizontalPodAutoscalerList",
        short_names: &["hpa"],
        categories: &["all"],
        status: true,
        zero: concat!(
            r#","spec":{"scaleTargetRef":{"kind":"","name":""},"maxReplicas":0},"#,
            r#""status":{"desiredReplicas":0,"currentMetrics":null}"#,
        ),
        first_status: Some(r#"{"desiredReplicas":0,"currentMetrics":null}"#),
        ..CORE
    },
    ApiResource {
        group: "autoscaling",
        plural: "horizontalpodautoscalers",
        singular: "horizontalpodautoscaler",
        kind: "HorizontalPodAutoscaler",
        list_kind: "HorizontalPodAutoscalerList",
        short_names: &["hpa"],
        categories: &["all"],
        shows: Some(("autoscaling", "v2")),
        status: true,
        zero: concat!(
            r#","spec":{"scaleTargetRef":{"kind":"","name":""},"maxReplicas":0},"#,
            r#""status":{"currentReplicas":0,"desiredReplicas":0}"#,
        ),
        first_status: Some(r#"{"currentReplicas":0,"desiredReplicas":0}"#),
        ..CORE
    },
    ApiResource {
        group: "policy",
        plural: "poddisruptionbudgets",
        singular: "poddisruptionbudget",
        kind: "PodDisruptionBudget",
        list_kind: "PodDisruptionBudgetList",
        short_names: &["pdb"],
        status: true,
        generation: true,
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
