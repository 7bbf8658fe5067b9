//! `run --upstream`: the server of a scenario is a proxy for a real cluster, and only what is certain there is judged.
//!
//! The scenario's expectations are about its own server: objects, versions and who else writes are not those of the cluster. What
//! no client may do, whatever the server has, is an invariant.

use std::collections::BTreeMap;

use apimachinery::path::object_path;
use fake_apiserver::model::catalog::Catalog;
use fake_apiserver::net::Edge;
use fake_apiserver::record::What;
use fake_apiserver::record::line::printable;
use fake_apiserver::scenario::{Content, ObjectName, Scenario, SharedScenario, Version};
use fake_apiserver::server::{Limits, Ruled};
use serde_json::{Value, json};

use super::{Run, Skipped, retarget};
use crate::stage::Stage;
use crate::{Failure, output};

/// Checks the options of the cluster.
///
/// # Errors
///
/// `--upstream` without a cluster, a cluster without `--upstream`, or writes of several scenarios at a time.
pub(super) fn check(run: &Run) -> Result<(), Failure> {
    match run.upstream {
        true if run.may_write() && run.jobs.get() > 1 => Err(Failure::Usage(
            "scenarios with --allow-writes write to one namespace, one after the other: remove --jobs"
                .to_owned(),
        )),
        true => run.cluster.check(),
        false if run.cluster.names_one() => Err(Failure::Usage(
            "--kubeconfig and --in-cluster name the cluster of --upstream: add --upstream".to_owned(),
        )),
        false => Ok(()),
    }
}

/// Connects to the cluster of `--upstream`, if it is given.
///
/// # Errors
///
/// It cannot be used, or does not answer.
pub(super) async fn connect(run: &Run) -> Result<(), Failure> {
    if run.upstream {
        let connected = run.cluster.connect().await?;
        run.connected.set(connected).expect("a run connects once");
    }
    Ok(())
}

/// Finds the kind of `--resource` in the cluster, if the fake does not serve it.
///
/// # Errors
///
/// The cluster does not serve it either, or does not answer.
pub(super) async fn find_resource(run: &Run) -> Result<(), Failure> {
    if let (Some(name), None, Some(connected)) = (&run.resource, run.kind.get(), run.connected.get()) {
        let found = connected.custom_resource(name).await;
        run.takes(found.map_err(|why| retarget::unusable(name, &why))?);
    }
    Ok(())
}

/// Returns the proxy that plays a scenario; `None`: without `--upstream`.
///
/// # Errors
///
/// A system error.
pub(super) fn staged(run: &Run, scenario: &SharedScenario, limits: Limits) -> Result<Option<Stage>, Failure> {
    let Some(connected) = run.connected.get() else {
        return Ok(None);
    };
    let mut stage = connected.stage(run.seed)?;
    stage.what.clone_from(&scenario.id);
    stage.server = stage.server.with_steps(scenario.clone(), limits);
    if let Some(kept) = run.recording.kept()? {
        stage.server = stage.server.keeping_content(kept);
    }
    if let Some(namespace) = &scenario.target.namespace {
        stage.namespace = Some(namespace.clone());
    }
    Ok(Some(stage))
}

/// Objects that a scenario writes: as the trace has them, and their names.
#[derive(Debug, Default)]
pub(super) struct Written(BTreeMap<String, ObjectName>);

impl Written {
    /// Returns the objects of a scenario; none without `--allow-writes`.
    pub(super) fn of(run: &Run, scenario: &Scenario) -> Self {
        let mut named = Vec::new();
        if run.may_write() {
            let mut scenario = scenario.clone();
            let actions = scenario.steps.iter_mut().flat_map(|step| &mut step.actions);
            let contents = actions.flat_map(|action| action.contents_mut());
            let contents = contents.chain(scenario.objects.iter_mut().map(Content::Written));
            named.extend(contents.filter_map(|content| match content {
                Content::Written(manifest) => Some(manifest.object_name()),
                Content::Named(name) => Some(name.clone()),
                Content::Sent { .. } | Content::Page(_) | Content::Verbatim(_) => None,
            }));
        }
        Self(named.into_iter().map(|name| (words(&name), name)).collect())
    }

    /// Checks that the cluster has none of them: what is there is not the scenario's to change.
    ///
    /// # Errors
    ///
    /// One exists, or that cannot be found out.
    pub(super) async fn are_new(&self, run: &Run) -> Result<(), Skipped> {
        let Some(connected) = run.connected.get() else {
            return Ok(());
        };
        let catalog = Catalog::of_scenarios(Version::default());
        for (object, name) in &self.0 {
            let of_run = run.kind.get().filter(|kind| kind.qualified() == name.resource());
            let kind = catalog.find(&name.group, &name.plural).or(of_run);
            let kind =
                kind.ok_or_else(|| Skipped::NotJudged(format!("the version of {object} is not known")))?;
            let namespace = name.namespace.as_deref();
            let path = object_path(&name.group, &kind.version, namespace, &name.plural, &name.name);
            match connected.has(&path).await {
                Ok(false) => {}
                Ok(true) => {
                    return Err(Skipped::NotJudged(format!(
                        "the cluster has {object}, which the scenario would change: choose an empty namespace by --namespace"
                    )));
                }
                Err(why) => return Err(Skipped::NotJudged(why)),
            }
        }
        Ok(())
    }

    /// Waits until the initial objects are written.
    ///
    /// # Errors
    ///
    /// One cannot be written, with the reason of the cluster.
    pub(super) async fn begin(&self, scenario: &Scenario, edge: &Edge) -> Result<(), Skipped> {
        if self.0.is_empty() {
            return Ok(());
        }
        let writes = (1..=scenario.objects.len() as u64).collect();
        let records = edge.upstream_writes(0, writes).await.unwrap_or_default();
        for record in records {
            if let What::UpstreamWrite {
                object,
                failure: Some(why),
                ..
            } = record.what
            {
                return Err(Skipped::NotJudged(format!("{object} cannot be written: {why}")));
            }
        }
        Ok(())
    }

    /// Deletes those that are still there.
    pub(super) async fn delete(&self, edge: &Edge) {
        let mut left: BTreeMap<String, &ObjectName> = BTreeMap::new();
        edge.read_records(0, |records| {
            for record in records {
                if let What::UpstreamWrite {
                    object,
                    how,
                    failure: None,
                    ..
                } = &record.what
                    && let Some(name) = self.0.get(object)
                {
                    match how.as_str() {
                        "deleted" => left.remove(object),
                        _ => left.insert(object.clone(), name),
                    };
                }
            }
        });
        if left.is_empty() {
            return;
        }
        let objects: Vec<Value> = { left.values() }
            .map(
                |name| json!({ "name": name.name, "namespace": name.namespace, "resource": name.resource() }),
            )
            .collect();
        let next = edge.steer(|server, _| server.next_record()).unwrap_or_default();
        let ruled = edge.rule(&json!({ "do": { "delete": objects } }).to_string());
        let deleted = match ruled {
            Ok(Ruled::Done { writes, .. }) => edge.upstream_writes(next, writes).await.unwrap_or_default(),
            Ok(Ruled::Standing(_)) | Err(_) => Vec::new(),
        };
        for record in deleted {
            if let What::UpstreamWrite {
                object,
                failure: None,
                ..
            } = record.what
            {
                left.remove(&object);
            }
        }
        for object in left.keys() {
            output::log(&format!("warning: {} is left in the cluster", printable(object)));
        }
    }
}

/// Returns an object as the trace has it.
fn words(name: &ObjectName) -> String {
    format!("{} {}", name.resource(), name.key())
}
