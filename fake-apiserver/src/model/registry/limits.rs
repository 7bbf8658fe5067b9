//! LimitRanges: default requests and limits of containers, and the minimum and maximum of pods, containers and claims.
//!
//! Without a LimitRange in the namespace it must cost nothing.
//!
//! Source: kubernetes `plugin/pkg/admission/limitranger/admission.go`.

use std::collections::{BTreeMap, BTreeSet};

use apimachinery::status::Status;
use apimachinery::write::Subresource;
use builtin_kinds::fields::list;
use builtin_kinds::types;
use scenario::AdmissionPlugin;
use serde_json::{Map, Value};

use super::Writer;

/// Annotation that lists the defaults set in a pod.
const ANNOTATION: &str = "kubernetes.io/limit-ranger";

/// Lists of containers, each with its name in texts.
const CONTAINERS: [(&str, &str); 2] = [("containers", "container"), ("initContainers", "init container")];

/// Quantities by resource.
pub(super) type Amounts = BTreeMap<String, String>;

impl Writer<'_> {
    /// Sets default requests and limits of the containers of a pod.
    pub(super) fn complete_by_limits(&self, pod: &mut Value) {
        if !self.has(AdmissionPlugin::LimitRanger) {
            return;
        }
        for limits in self.limit_ranges() {
            complete(pod, &limits);
        }
    }

    /// Checks minimum, maximum and ratio.
    ///
    /// # Errors
    ///
    /// 403 for an object outside of its limits.
    pub(super) fn keep_to_limits(
        &self,
        object: &Value,
        name: &str,
        part: Option<Subresource>,
    ) -> Result<(), Status> {
        let check = match (&*self.kind.group, &*self.kind.plural, part) {
            ("", "pods", None | Some(Subresource::Resize)) => pod_errors,
            ("", "persistentvolumeclaims", None) => claim_errors,
            (_, _, _) => return Ok(()),
        };
        if !self.has(AdmissionPlugin::LimitRanger) {
            return Ok(());
        }
        for limits in self.limit_ranges() {
            let mut errors = Vec::new();
            for limit in list(&limits, "limits") {
                check(limit, &object["spec"], &mut errors);
            }
            let mut seen = BTreeSet::new();
            errors.retain(|error| seen.insert(error.clone()));
            let why = match errors.as_slice() {
                [] => continue,
                [one] => one.clone(),
                several => format!("[{}]", several.join(", ")),
            };
            return Err(Status::forbidden(&self.kind, name, &why, Vec::new()));
        }
        Ok(())
    }

    /// Returns the specs of the LimitRanges of the namespace.
    fn limit_ranges(&self) -> Vec<Value> {
        let objects = self.in_namespace("", "limitranges");
        let specs = objects.iter().map(|limits| limits.json()["spec"].take());
        specs.collect()
    }
}

fn complete(pod: &mut Value, limits: &Value) {
    let mut defaults = Map::new();
    for limit in list(limits, "limits")
        .iter()
        .filter(|limit| limit["type"] == "Container")
    {
        for (from, to) in [("default", "limits"), ("defaultRequest", "requests")] {
            for (resource, amount) in limit[from].as_object().into_iter().flatten() {
                defaults.entry(to).or_insert_with(|| Value::Object(Map::new()))[resource] = amount.clone();
            }
        }
    }
    let mut messages = Vec::new();
    for (field, word) in CONTAINERS {
        for container in pod["spec"][field].as_array_mut().into_iter().flatten() {
            let name = container["name"].as_str().unwrap_or_default().to_owned();
            for (to, what) in [("requests", "request"), ("limits", "limit")] {
                let mut set = Vec::new();
                for (resource, amount) in defaults.get(to).and_then(Value::as_object).into_iter().flatten() {
                    let there = &mut container["resources"][to][resource];
                    if there.is_null() {
                        *there = amount.clone();
                        set.push(resource.as_str());
                    }
                }
                set.sort_unstable();
                if !set.is_empty() {
                    messages.push(format!("{} {what} for {word} {name}", set.join(", ")));
                }
            }
        }
    }
    if !messages.is_empty() {
        let annotation = format!("LimitRanger plugin set: {}", messages.join("; "));
        pod["metadata"]["annotations"][ANNOTATION] = annotation.into();
    }
}

fn claim_errors(limit: &Value, spec: &Value, errors: &mut Vec<String>) {
    if limit["type"] != "PersistentVolumeClaim" {
        return;
    }
    let requests = amounts(&spec["resources"]["requests"]);
    let checked = Checked {
        kind: "PersistentVolumeClaim",
        requests,
        limits: Amounts::new(),
    };
    errors.extend(bounds(limit, "min").filter_map(|(resource, least)| checked.too_little(resource, least)));
    errors.extend(bounds(limit, "max").filter_map(|(resource, most)| checked.wants_too_much(resource, most)));
}

fn pod_errors(limit: &Value, spec: &Value, errors: &mut Vec<String>) {
    let mut check = |checked: &Checked| {
        errors
            .extend(bounds(limit, "min").filter_map(|(resource, least)| checked.too_little(resource, least)));
        errors.extend(bounds(limit, "max").filter_map(|(resource, most)| checked.too_much(resource, most)));
        let ratios = bounds(limit, "maxLimitRequestRatio");
        errors.extend(ratios.filter_map(|(resource, most)| checked.too_far_apart(resource, most)));
    };
    match limit["type"].as_str() {
        Some("Container") => {
            for container in CONTAINERS.iter().flat_map(|(field, _)| list(spec, field)) {
                let resources = &container["resources"];
                check(&Checked {
                    kind: "Container",
                    requests: amounts(&resources["requests"]),
                    limits: amounts(&resources["limits"]),
                });
            }
        }
        Some("Pod") => check(&Checked {
            kind: "Pod",
            requests: together(spec, "requests"),
            limits: together(spec, "limits"),
        }),
        Some(_) | None => {}
    }
}

/// Requests and limits of a container, pod or claim.
struct Checked {
    kind: &'static str,
    requests: Amounts,
    limits: Amounts,
}

impl Checked {
    fn too_little(&self, resource: &str, least: &str) -> Option<String> {
        let begin = format!("minimum {resource} usage per {} is {least}", self.kind);
        let Some(request) = self.requests.get(resource) else {
            return Some(format!("{begin}.  No request is specified"));
        };
        let less = |amount: &&String| types::amount(amount) < types::amount(least);
        let request = Some(request).filter(less).map(|request| ("request", request));
        let limit = || {
            self.limits
                .get(resource)
                .filter(less)
                .map(|limit| ("limit", limit))
        };
        let (what, amount) = request.or_else(limit)?;
        Some(format!("{begin}, but {what} is {amount}"))
    }

    fn too_much(&self, resource: &str, most: &str) -> Option<String> {
        let begin = format!("maximum {resource} usage per {} is {most}", self.kind);
        let Some(limit) = self.limits.get(resource) else {
            return Some(format!("{begin}.  No limit is specified"));
        };
        let more = |amount: &&String| types::amount(amount) > types::amount(most);
        let limit = Some(limit).filter(more).map(|limit| ("limit", limit));
        let request = || {
            self.requests
                .get(resource)
                .filter(more)
                .map(|request| ("request", request))
        };
        let (what, amount) = limit.or_else(request)?;
        Some(format!("{begin}, but {what} is {amount}"))
    }

    /// Returns the error of a request above the maximum, or of a missing one.
    fn wants_too_much(&self, resource: &str, most: &str) -> Option<String> {
        let begin = format!("maximum {resource} usage per {} is {most}", self.kind);
        let Some(request) = self.requests.get(resource) else {
            return Some(format!("{begin}.  No request is specified"));
        };
        let more = types::amount(request) > types::amount(most);
        more.then(|| format!("{begin}, but request is {request}"))
    }

    #[expect(clippy::cast_precision_loss, reason = "a ratio is shown with six digits")]
    fn too_far_apart(&self, resource: &str, most: &str) -> Option<String> {
        let begin = format!(
            "{resource} max limit to request ratio per {} is {most}",
            self.kind
        );
        let amount = |amounts: &Amounts| amounts.get(resource).map_or(0, |amount| types::amount(amount));
        let (request, limit) = (amount(&self.requests), amount(&self.limits));
        if request == 0 {
            return Some(format!("{begin}, but no request is specified or request is 0"));
        }
        if limit == 0 {
            return Some(format!("{begin}, but no limit is specified or limit is 0"));
        }
        let ratio = limit as f64 / request as f64;
        let far = ratio > types::amount(most) as f64 / types::amount("1") as f64;
        far.then(|| format!("{begin}, but provided ratio is {ratio:.6}"))
    }
}

/// Returns the resources of a whole pod: the sum of its containers, or the largest init container including running sidecars;
/// resources of the pod itself take precedence.
pub(super) fn together(spec: &Value, field: &str) -> Amounts {
    let of = |container: &Value| amounts(&container["resources"][field]);
    let mut all = Amounts::new();
    for container in list(spec, "containers") {
        add(&mut all, &of(container));
    }
    let (mut lasting, mut most) = (Amounts::new(), Amounts::new());
    for container in list(spec, "initContainers") {
        let mut now = of(container);
        if container["restartPolicy"] == "Always" {
            add(&mut all, &now);
            add(&mut lasting, &now);
            now.clone_from(&lasting);
        } else {
            add(&mut now, &lasting);
        }
        raise(&mut most, now);
    }
    raise(&mut all, most);
    let own = amounts(&spec["resources"][field]);
    all.extend(
        own.into_iter()
            .filter(|(resource, _)| matches!(resource.as_str(), "cpu" | "memory")),
    );
    all
}

pub(super) fn add(all: &mut Amounts, more: &Amounts) {
    for (resource, amount) in more {
        let total = all
            .get(resource)
            .map_or_else(|| amount.clone(), |known| types::sum([known.as_str(), amount]));
        all.insert(resource.clone(), total);
    }
}

fn raise(all: &mut Amounts, others: Amounts) {
    for (resource, amount) in others {
        if all
            .get(&resource)
            .is_none_or(|known| types::amount(known) < types::amount(&amount))
        {
            all.insert(resource, amount);
        }
    }
}

pub(super) fn amounts(map: &Value) -> Amounts {
    let members = map.as_object().into_iter().flatten();
    let texts =
        members.filter_map(|(resource, amount)| Some((resource.clone(), amount.as_str()?.to_owned())));
    texts.collect()
}

fn bounds<'a>(limit: &'a Value, field: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let members = limit[field].as_object().into_iter().flatten();
    members.filter_map(|(resource, amount)| Some((resource.as_str(), amount.as_str()?)))
}
