//! What a server decides about an object beyond the defaults of its fields: addresses, labels set by the server, the class of a
//! pod. It depends on what is stored already, or on the identity of the object.
//!
//! Left out is what only a whole cluster makes good: the volume with a service account's token, and finalizers that no
//! controller here would ever take away (`kubernetes.io/pvc-protection`).
//!
//! Source: kubernetes `plugin/pkg/admission/{serviceaccount,defaulttolerationseconds}`, the strategies in
//! `pkg/registry`, and the recordings.

use std::collections::HashSet;
use std::net::Ipv4Addr;

use apimachinery::status::Status;
use apimachinery::time::timestamp;
use builtin_kinds::error_list::ErrorList;
use builtin_kinds::{quality, types};
use scenario::AdmissionPlugin;
use serde_json::{Value, json};

use super::{Writer, remove};

/// Where services get their addresses from: the range of kubeadm, 10.96.0.0/12.
const SERVICE_ADDRESSES: (Ipv4Addr, u32) = (Ipv4Addr::new(10, 96, 0, 0), 1 << 20);
/// And their node ports.
const NODE_PORTS: (u32, u32) = (30_000, 2_768);

impl Writer<'_> {
    /// Completes a new object. False: nothing about it is for the server to decide.
    ///
    /// # Errors
    /// 403 for a pod with a class or an account that is not there, or that contradicts its class; 422 for a service that
    /// asks for what another one has.
    pub(super) fn admit_new(&self, object: &mut Value, name: &str, uid: &str) -> Result<bool, Status> {
        let protects = self.has(AdmissionPlugin::StorageObjectInUseProtection);
        match types::of(&self.kind).map(|known| known.name) {
            Some("core/v1.Pod") => self.admit_pod(object, name)?,
            // Only the store of the whole object allocates.
            Some("core/v1.Service") if self.created_through.is_some() => {}
            Some("core/v1.Service") => self.allocate(object, &Value::Null, uid, name)?,
            Some("core/v1.PersistentVolumeClaim") => {
                self.complete_claim(object);
                self.protect(object, "kubernetes.io/pvc-protection");
            }
            Some("core/v1.PersistentVolume") if protects => {
                self.protect(object, "kubernetes.io/pv-protection");
            }
            Some("storage/v1.VolumeAttributesClass") if protects => {
                self.protect(object, "kubernetes.io/vac-protection");
            }
            Some("core/v1.Node") if self.has(AdmissionPlugin::TaintNodesByCondition) => taint(object),
            Some("networking/v1.Ingress") => self.complete_ingress(object),
            Some("batch/v1.Job") => label_job(object, name, uid),
            Some("apps/v1.DaemonSet") => {
                object["metadata"]["annotations"][TEMPLATE_GENERATION] = "1".into();
            }
            Some(_) | None => return Ok(false),
        }
        Ok(true)
    }

    /// Keeps what the server gave an object, where an update does not say otherwise.
    ///
    /// # Errors
    /// 422 for a service that asks for what another one has.
    pub(super) fn admit_update(&self, current: &Value, object: &mut Value) -> Result<bool, Status> {
        match types::of(&self.kind).map(|known| known.name) {
            Some("core/v1.Service") => {
                drop_what_goes_with_the_type(&current["spec"], &mut object["spec"]);
                keep_addresses(current, object);
                if text(object, "/spec/type") != "LoadBalancer" {
                    object["status"]["loadBalancer"] = json!({});
                }
                let [uid, name] =
                    ["uid", "name"].map(|field| text(&current["metadata"], &format!("/{field}")));
                self.allocate(object, current, &uid, &name)?;
            }
            Some("apps/v1.DaemonSet") => count_template(current, object),
            Some("core/v1.Pod") => {
                for field in ["priority", "preemptionPolicy"] {
                    if let (None, Some(value)) = (object["spec"].get(field), current["spec"].get(field)) {
                        object["spec"][field] = value.clone();
                    }
                }
                if self.has(AdmissionPlugin::DefaultTolerationSeconds) {
                    tolerate_for_a_while(&mut object["spec"]);
                }
                shorten_grace(&mut object["spec"]);
            }
            Some(_) | None => return Ok(false),
        }
        Ok(true)
    }

    /// Whether the server has this admission plugin.
    pub(super) fn has(&self, plugin: AdmissionPlugin) -> bool {
        self.model.plugins.has(plugin)
    }

    /// Adds a finalizer of StorageObjectInUseProtection.
    fn protect(&self, object: &mut Value, finalizer: &str) {
        if !self.has(AdmissionPlugin::StorageObjectInUseProtection) {
            return;
        }
        let finalizers = &mut object["metadata"]["finalizers"];
        match finalizers.as_array_mut() {
            Some(finalizers) if finalizers.iter().any(|name| name == finalizer) => {}
            Some(finalizers) => finalizers.push(finalizer.into()),
            None => *finalizers = json!([finalizer]),
        }
    }

    fn admit_pod(&self, pod: &mut Value, name: &str) -> Result<(), Status> {
        self.complete_by_limits(pod);
        if self.has(AdmissionPlugin::ServiceAccount) {
            let account = match text(pod, "/spec/serviceAccountName").as_str() {
                "" => "default".to_owned(),
                account => account.to_owned(),
            };
            self.knows_account(&account, name)?;
            pod["spec"]["serviceAccountName"] = account.as_str().into();
            pod["spec"]["serviceAccount"] = account.into();
        }
        if self.has(AdmissionPlugin::Priority) {
            self.prioritize(pod, name)?;
        }
        pod["status"]["qosClass"] = quality::of(pod).into();
        let spec = &mut pod["spec"];
        if self.has(AdmissionPlugin::DefaultTolerationSeconds) {
            tolerate_for_a_while(spec);
        }
        shorten_grace(spec);
        if spec["schedulingGates"]
            .as_array()
            .is_some_and(|gates| !gates.is_empty())
        {
            pod["status"]["conditions"] = json!([{
                "type": "PodScheduled",
                "status": "False",
                "lastTransitionTime": timestamp(self.time()),
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
            }]);
        }
        match self.has(AdmissionPlugin::RuntimeClass) {
            true => self.fit_to_runtime(pod, name),
            false => Ok(()),
        }
    }

    /// Only the default account is taken to be there, as where a controller makes it.
    fn knows_account(&self, account: &str, name: &str) -> Result<(), Status> {
        if account == "default" || !self.model.namespaces_enforced {
            return Ok(());
        }
        let namespace = self.collection.namespace.as_deref();
        let known = self.model.catalog.find("", "serviceaccounts").is_none_or(|kind| {
            let accounts = self.model.objects(kind);
            accounts.contains_key(kind.key(namespace, account).as_str())
        });
        if known {
            return Ok(());
        }
        let at = namespace.unwrap_or_default();
        let why = format!(
            "error looking up service account {at}/{account}: serviceaccount \"{account}\" not found"
        );
        Err(Status::forbidden(&self.kind, name, &why, Vec::new()))
    }

    /// Gives a service, which replaces `old`, the addresses and ports it has none of. Which ones, its uid decides.
    fn allocate(&self, service: &mut Value, old: &Value, uid: &str, name: &str) -> Result<(), Status> {
        let kind = text(service, "/spec/type");
        if kind == "ExternalName" {
            return Ok(());
        }
        let seed = uid.bytes().fold(0_u32, |hash, byte| {
            hash.wrapping_mul(31).wrapping_add(u32::from(byte))
        });
        let selects = service
            .pointer("/spec/selector")
            .is_some_and(|selector| selector != &json!({}));
        let headless = text(service, "/spec/clusterIP") == "None";
        let ports_wanted = kind == "NodePort"
            || kind == "LoadBalancer"
                && service.pointer("/spec/allocateLoadBalancerNodePorts") != Some(&json!(false));
        let others: Vec<Value> = self
            .model
            .objects(&self.kind)
            .values()
            .filter(|other| other.uid != uid)
            .map(|other| other.json())
            .collect();
        match allocation_errors(service, old, &others).into_causes().as_slice() {
            [] => {}
            errors => return Err(Status::invalid_object(&self.kind, name, errors)),
        }
        let taken = |address: &Value| {
            others
                .iter()
                .any(|other| other.pointer("/spec/clusterIP") == Some(address))
        };
        let spec = &mut service["spec"];
        if spec.get("clusterIP").is_none() {
            let (first, size) = SERVICE_ADDRESSES;
            // The first few addresses are kept for services that ask for one.
            let address = (0..size)
                .map(|turn| 256 + (seed.wrapping_add(turn)) % (size - 512))
                .map(|offset| Value::from(Ipv4Addr::from(u32::from(first) + offset).to_string()))
                .find(|address| !taken(address));
            spec["clusterIP"] = address.unwrap_or_default();
        }
        if spec.get("clusterIPs").is_none() {
            spec["clusterIPs"] = json!([spec["clusterIP"]]);
        }
        // Nothing is known of who answers for a headless service without a selector.
        let (families, policy) = if headless && !selects {
            (json!(["IPv4", "IPv6"]), "RequireDualStack")
        } else {
            (json!(["IPv4"]), "SingleStack")
        };
        if spec.get("ipFamilies").is_none() {
            spec["ipFamilies"] = families;
        }
        if spec.get("ipFamilyPolicy").is_none() {
            spec["ipFamilyPolicy"] = policy.into();
        }
        if ports_wanted {
            let mut used: HashSet<i64> = others.iter().flat_map(node_ports).collect();
            let (first, size) = NODE_PORTS;
            // What was taken stays so: the search goes on where it ended.
            let mut ports = (0..size).map(|turn| i64::from(first + seed.wrapping_add(turn) % size));
            let mut free = |used: &HashSet<i64>| {
                ports
                    .find(|port| !used.contains(port))
                    .map_or(Value::Null, Value::from)
            };
            for port in spec["ports"].as_array_mut().into_iter().flatten() {
                if port.get("nodePort").is_none() {
                    port["nodePort"] = free(&used);
                }
                used.extend(port["nodePort"].as_i64());
            }
            // The port of the health check that a load balancer sends to each node.
            let asked = kind == "LoadBalancer" && spec["externalTrafficPolicy"] == "Local";
            if asked && spec.get("healthCheckNodePort").is_none() {
                spec["healthCheckNodePort"] = free(&used);
            }
        }
        Ok(())
    }
}

/// Returns the errors of the node ports and the cluster IP that a service requests in addition to those of `old`: already
/// allocated by `others`, or out of range.
fn allocation_errors(service: &Value, old: &Value, others: &[Value]) -> ErrorList {
    let mut found = ErrorList::default();
    let (address, before) = (&service["spec"]["clusterIP"], &old["spec"]["clusterIP"]);
    let text = address.as_str().unwrap_or_default();
    let has = |other: &Value| other["spec"]["clusterIP"] == *address;
    if !matches!(text, "" | "None") && address != before && others.iter().any(has) {
        let why = format!("failed to allocate IP {text}: provided IP is already allocated");
        found.invalid("spec.clusterIPs", &json!([text]), &why);
    }
    let (first, size) = NODE_PORTS;
    let (first, last) = (i64::from(first), i64::from(first + size) - 1);
    let own: HashSet<i64> = node_ports(old).collect();
    let given: HashSet<i64> = others.iter().flat_map(node_ports).collect();
    let ports = service["spec"]["ports"].as_array().into_iter().flatten();
    for (nth, port) in ports.enumerate() {
        let at = format!("spec.ports[{nth}].nodePort");
        let number = port["nodePort"].as_i64().unwrap_or(0);
        if number == 0 || own.contains(&number) {
            continue;
        }
        if !(first..=last).contains(&number) {
            let why = format!(
                "provided port is not in the valid range. The range of valid ports is {first}-{last}"
            );
            found.invalid(&at, &number.into(), &why);
        } else if given.contains(&number) {
            found.invalid(&at, &number.into(), "provided port is already allocated");
        }
    }
    found
}

/// The ports of nodes that a service has.
fn node_ports(service: &Value) -> impl Iterator<Item = i64> {
    let ports = service["spec"]["ports"].as_array().into_iter().flatten();
    ports.filter_map(|port| port["nodePort"].as_i64())
}

const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

fn count_template(current: &Value, object: &mut Value) {
    let counted = current
        .pointer("/metadata/annotations")
        .and_then(|annotations| annotations.get(TEMPLATE_GENERATION));
    let counted = counted
        .and_then(Value::as_str)
        .and_then(|count| count.parse::<u64>().ok());
    if let Some(counted) = counted {
        let changed = current.pointer("/spec/template") != object.pointer("/spec/template");
        let count = (counted + u64::from(changed)).to_string();
        object["metadata"]["annotations"][TEMPLATE_GENERATION] = count.into();
    }
}

/// A service of another type loses what only the old one had, unless the update says something else about it.
fn drop_what_goes_with_the_type(old: &Value, new: &mut Value) {
    let is = |spec: &Value, kinds: &[&str]| spec["type"].as_str().is_some_and(|kind| kinds.contains(&kind));
    let ported = |spec: &Value| is(spec, &["NodePort", "LoadBalancer"]);
    let outside = |spec: &Value| {
        ported(spec)
            || is(spec, &["ClusterIP"]) && spec["externalIPs"].as_array().is_some_and(|ips| !ips.is_empty())
    };
    let node_ports = |spec: &Value| -> Vec<Value> {
        let ports = spec["ports"].as_array().into_iter().flatten();
        ports.filter_map(|port| port.get("nodePort").cloned()).collect()
    };
    let mut fields: Vec<&str> = Vec::new();
    if is(new, &["ExternalName"]) && !is(old, &["ExternalName"]) {
        fields.extend(["ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"]);
        if new["clusterIP"] == old["clusterIP"] && new["clusterIPs"] == old["clusterIPs"] {
            fields.extend(["clusterIP", "clusterIPs"]);
        }
    }
    if ported(old) && !ported(new) && node_ports(old) == node_ports(new) {
        for port in new["ports"].as_array_mut().into_iter().flatten() {
            remove(port, "nodePort");
        }
    }
    if is(old, &["LoadBalancer"]) && !is(new, &["LoadBalancer"]) {
        fields.extend([
            "allocateLoadBalancerNodePorts",
            "loadBalancerClass",
            "healthCheckNodePort",
        ]);
    }
    if outside(old) && !outside(new) {
        fields.push("externalTrafficPolicy");
    }
    for field in fields {
        if new.get(field).is_some() && new.get(field) == old.get(field) {
            remove(new, field);
        }
    }
}

/// An update may leave out what the server gave, as long as the service is of a type that has it.
fn keep_addresses(current: &Value, object: &mut Value) {
    let kind = text(object, "/spec/type");
    if kind == "ExternalName" || text(current, "/spec/type") == "ExternalName" {
        return;
    }
    let (old, new) = (&current["spec"], &mut object["spec"]);
    for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        if let (None, Some(value)) = (new.get(field), old.get(field)) {
            new[field] = value.clone();
        }
    }
    // A client that knows one of the two fields changes both.
    if new["clusterIP"] != old["clusterIP"] && new["clusterIPs"] == old["clusterIPs"] {
        new["clusterIPs"] = json!([new["clusterIP"]]);
    }
    if kind != "NodePort" && kind != "LoadBalancer" {
        return;
    }
    for port in new["ports"].as_array_mut().into_iter().flatten() {
        let before = old["ports"].as_array().into_iter().flatten();
        let same = before
            .filter(|old| old["port"] == port["port"] && old["protocol"] == port["protocol"])
            .find_map(|old| old.get("nodePort"));
        if let (None, Some(node_port)) = (port.get("nodePort"), same) {
            port["nodePort"] = node_port.clone();
        }
    }
}

/// A job finds its pods by its own uid.
fn label_job(job: &mut Value, name: &str, uid: &str) {
    if job.pointer("/spec/manualSelector") == Some(&true.into()) {
        return;
    }
    let shared = job.pointer("/metadata/labels") == job.pointer("/spec/template/metadata/labels");
    let labelled = job.pointer("/metadata/labels").is_some();
    let labels = &mut job["spec"]["template"]["metadata"]["labels"];
    for (label, value) in [
        ("batch.kubernetes.io/controller-uid", uid),
        ("batch.kubernetes.io/job-name", name),
        ("controller-uid", uid),
        ("job-name", name),
    ] {
        labels[label] = value.into();
    }
    if shared && labelled {
        job["metadata"]["labels"] = job["spec"]["template"]["metadata"]["labels"].clone();
    }
    job["spec"]["selector"]["matchLabels"]["batch.kubernetes.io/controller-uid"] = uid.into();
}

/// A grace period that is negative is as short as can be.
fn shorten_grace(spec: &mut Value) {
    let grace = spec["terminationGracePeriodSeconds"].as_i64();
    if grace.is_some_and(|seconds| seconds < 0) {
        spec["terminationGracePeriodSeconds"] = 1.into();
    }
}

/// A new node takes no pods until a controller finds it ready.
fn taint(node: &mut Value) {
    let taint = json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"});
    let taints = &mut node["spec"]["taints"];
    let is_same = |known: &Value| known["key"] == taint["key"] && known["effect"] == taint["effect"];
    match taints.as_array_mut() {
        Some(taints) if taints.iter().any(is_same) => {}
        Some(taints) => taints.push(taint),
        None => *taints = json!([taint]),
    }
}

/// A pod stays for five minutes on a node that is not ready, unless it has other tolerations.
fn tolerate_for_a_while(spec: &mut Value) {
    let tolerated = spec["tolerations"].as_array().cloned().unwrap_or_default();
    let mut all = tolerated.clone();
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let covers = |toleration: &Value| {
            let matches = |field: &str, wanted: &str| {
                let value = toleration[field].as_str().unwrap_or_default();
                value.is_empty() || value == wanted
            };
            matches("key", key) && matches("effect", "NoExecute")
        };
        if !tolerated.iter().any(covers) {
            all.push(
                json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}),
            );
        }
    }
    spec["tolerations"] = all.into();
}

fn text(object: &Value, pointer: &str) -> String {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}
