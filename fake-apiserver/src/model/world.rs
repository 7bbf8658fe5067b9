//! The cluster that a scenario runs in: the namespaces, and the objects that kube-apiserver creates when it starts.
//!
//! They are older than the first revision of the store: the trace has no write of them, and no watch an event. A server is
//! built for each of thousands of scenarios per second, so the objects are built once per process and shared; the persistent
//! maps of the storage are copied on write. The target's own resource has the scenario's objects alone, because expectations
//! about it are exact.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use apimachinery::Version;
use apimachinery::kind::KindRef;
use apimachinery::object::Stored;
use builtin_kinds::catalog::Catalog;
use builtin_kinds::rbac;
use scenario::Manifest;

use super::bootstrap;
use super::namespaces::{NAMESPACES, content};
use super::write::{self, Outcome};
use super::{Model, Objects};

/// Number of worlds kept for later servers: the Kubernetes versions, at a few revisions and start times.
const REMEMBERED_MAX: usize = 16;

/// Worlds of this process, the most recently built last.
static REMEMBERED: Mutex<Vec<Arc<World>>> = Mutex::new(Vec::new());

/// Requirements of a scenario for the cluster it runs in.
#[derive(Debug)]
pub(crate) struct Setting<'a> {
    /// Group of the target.
    pub(crate) group: &'a str,
    /// Plural of the target, whose objects are the scenario's alone.
    pub(crate) plural: &'a str,
    /// Namespaces that must exist beside those of every cluster.
    pub(crate) namespaces: BTreeSet<&'a str>,
    /// Objects of other resources that the scenario creates itself, now or later.
    pub(crate) written: Vec<&'a Manifest>,
}

impl Setting<'_> {
    /// Whether the resource is the target's.
    fn is_target(&self, group: &str, plural: &str) -> bool {
        (self.group, self.plural) == (group, plural)
    }
}

/// What the objects of a world depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Origin {
    version: Version,
    epoch: Duration,
    /// Newest revision that an object may have.
    revision: u64,
}

/// Objects of a new cluster.
#[derive(Debug)]
struct World {
    origin: Origin,
    namespaces: (KindRef, Objects),
    others: Vec<(KindRef, Objects)>,
}

impl Model {
    /// Adds the objects of a cluster, as older than the first write, and requires existing namespaces from now on. Must be
    /// called before the first write.
    pub(crate) fn preload(&mut self, setting: &Setting<'_>) {
        let world = World::shared(&self.catalog, self.origin());
        for (kind, objects) in &world.others {
            if !setting.is_target(&kind.group, &kind.plural) {
                self.preload_resource(kind, objects.clone(), setting);
            }
        }
        // Without bootstrap roles, the policy has the default ones.
        self.bootstrapped = setting.group != rbac::GROUP;
        let (kind, objects) = &world.namespaces;
        if !setting.is_target(&kind.group, &kind.plural) {
            let mut objects = objects.clone();
            for name in &setting.namespaces {
                let namespace = world.origin.namespace(kind, name);
                objects.insert(Arc::from(*name), Arc::new(namespace));
            }
            self.preload_resource(kind, objects, setting);
            self.enforce_namespaces();
        }
    }

    /// Adds the objects of a cluster to an empty store, as older than the first write; `bare`: the namespaces of every cluster
    /// only.
    pub(super) fn preload_cluster(&mut self, bare: bool) {
        let world = World::shared(&self.catalog, self.origin());
        let others = world.others.iter().filter(|_| !bare);
        for (kind, objects) in others.chain([&world.namespaces]) {
            self.storage.preload(self.resource_id(kind), objects.clone());
        }
        // Without bootstrap roles, the policy has the default ones.
        self.bootstrapped = !bare;
    }

    /// Adds the namespaces of these names that do not exist, as older than the first write.
    pub(super) fn preload_namespaces(&mut self, names: &BTreeSet<String>) {
        let kind = { self.catalog.find("", "namespaces").cloned() }.expect("every version has namespaces");
        let (origin, id) = (self.origin(), self.resource_id(&kind));
        let mut objects = self.storage.current(id).clone();
        for name in names
            .iter()
            .filter(|name| !objects.contains_key(name.as_str()))
            .collect::<Vec<_>>()
        {
            objects.insert(Arc::from(name.as_str()), Arc::new(origin.namespace(&kind, name)));
        }
        self.storage.preload(id, objects);
    }

    /// What the objects of its cluster depend on.
    fn origin(&self) -> Origin {
        Origin {
            version: self.version,
            epoch: self.epoch,
            revision: self.revision().clamp(1, World::SIZE_MAX),
        }
    }

    /// Adds objects, except those that the scenario creates itself.
    fn preload_resource(&mut self, kind: &KindRef, mut objects: Objects, setting: &Setting<'_>) {
        let written = setting.written.iter();
        for manifest in written.filter(|manifest| (&*manifest.group, &*manifest.plural) == kind.storage()) {
            objects.remove(kind.key(manifest.namespace.as_deref(), &manifest.name).as_str());
        }
        self.storage.preload(self.resource_id(kind), objects);
    }
}

impl World {
    /// Above the revisions of its objects: servers that start at or above it share worlds.
    const SIZE_MAX: u64 = 500;

    /// Returns the world of this origin, built at most once while it is remembered.
    fn shared(catalog: &Catalog, origin: Origin) -> Arc<Self> {
        let mut remembered = REMEMBERED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(world) = remembered.iter().find(|world| world.origin == origin) {
            return Arc::clone(world);
        }
        let world = Arc::new(Self::new(catalog, origin));
        if remembered.len() == REMEMBERED_MAX {
            remembered.remove(0);
        }
        remembered.push(Arc::clone(&world));
        world
    }

    fn new(catalog: &Catalog, origin: Origin) -> Self {
        let kind = catalog
            .find("", "namespaces")
            .expect("every version has namespaces");
        let namespaces = NAMESPACES.map(|name| (Arc::from(name), Arc::new(origin.namespace(kind, name))));
        let mut others: Vec<(KindRef, Objects)> = Vec::new();
        let recorded = bootstrap::recorded(origin.version.minor());
        let recorded = recorded.filter_map(|recorded| Some((recorded.kind(catalog)?, recorded)));
        for (nth, (kind, recorded)) in (NAMESPACES.len()..).zip(recorded) {
            let key = recorded.key(kind);
            let uid = uid(nth, &key);
            let object = recorded.created(kind, key, origin.epoch, uid, origin.revision_of(nth));
            let known = others.iter().position(|(kind, _)| *kind == object.kind);
            let place = known.unwrap_or_else(|| {
                others.push((object.kind.clone(), Objects::new()));
                others.len() - 1
            });
            let (_, objects) = &mut others[place];
            objects.insert(Arc::from(object.key.as_str()), Arc::new(object));
        }
        Self {
            origin,
            namespaces: (kind.clone(), Objects::from_iter(namespaces)),
            others,
        }
    }
}

impl Origin {
    /// Returns a namespace as kube-apiserver creates it.
    fn namespace(self, kind: &KindRef, name: &str) -> Stored {
        let of_cluster = NAMESPACES.iter().position(|known| *known == name);
        let nth = of_cluster.unwrap_or(NAMESPACES.len());
        let content = content(name, self.epoch);
        match write::replace(kind, name, None, content, self.epoch, uid(nth, name)) {
            Outcome::Put(json) => Stored::new(kind, name.to_owned(), self.revision_of(nth), json),
            Outcome::Same(_) | Outcome::Gone | Outcome::Released(_) => {
                unreachable!("an object that does not exist is created")
            }
        }
    }

    /// Returns the revision of an object: etcd starts at 1, so the first write is 2.
    fn revision_of(self, nth: usize) -> u64 {
        self.revision.min(2 + nth as u64)
    }
}

/// Returns the uid of an object that no write creates; writes count from 0.
fn uid(nth: usize, key: &str) -> String {
    write::uid(u64::MAX - nth as u64, key)
}

#[cfg(test)]
mod tests {
    use apimachinery::options::Representation;
    use scenario::{Place, ServerSettings};
    use serde_json::json;

    use super::*;

    fn setting<'a>(group: &'a str, plural: &'a str) -> Setting<'a> {
        Setting {
            group,
            plural,
            namespaces: BTreeSet::from(["shop"]),
            written: Vec::new(),
        }
    }

    fn preloaded(setting: &Setting<'_>, revision: u64) -> Model {
        let mut model = Model::new(&ServerSettings {
            revision,
            ..ServerSettings::default()
        });
        model.preload(setting);
        model
    }

    fn keys(model: &Model, group: &str, plural: &str) -> Vec<String> {
        let kind = model.catalog.find(group, plural).unwrap();
        let objects = model.objects(kind).values();
        objects.map(|object| object.key.clone()).collect()
    }

    #[test]
    fn worlds_have_namespaces_and_bootstrap_objects_below_the_first_revision() {
        for revision in [1, 1000, 9_007_199_254_740_993] {
            let model = preloaded(&setting("", "configmaps"), revision);
            assert_eq!(model.revision(), revision, "no write");
            assert_eq!(
                keys(&model, "", "namespaces"),
                ["default", "kube-node-lease", "kube-public", "kube-system", "shop"]
            );
            assert_eq!(keys(&model, "", "services"), ["default/kubernetes"]);
            assert!(keys(&model, "apiregistration.k8s.io", "apiservices").contains(&"v1.apps".to_owned()));
            for id in model.resource_ids() {
                for object in model.storage.current(id).values() {
                    assert!((1..=revision).contains(&object.revision), "{}", object.key);
                    let metadata = &object.json()["metadata"];
                    assert_eq!(metadata["resourceVersion"], *object.revision.to_string());
                }
            }
        }
    }

    #[test]
    fn worlds_equal_those_of_standalone_servers_but_for_identity() {
        let model = preloaded(&setting("", "configmaps"), 1000);
        let mut standalone = Model::standalone(&ServerSettings::default());
        for name in NAMESPACES.into_iter().chain(["shop"]) {
            let manifest = standalone.namespace_manifest(name);
            standalone.apply(Duration::ZERO, &manifest).unwrap();
        }
        standalone.bootstrap();
        let text = |object: &Stored| {
            let mut json = object.json();
            json["metadata"]["resourceVersion"] = json!("");
            // The lease of the apiserver has it in its spec too.
            json.to_string().replace(&object.uid, "")
        };
        for kind in standalone.catalog.kinds() {
            if kind.plural == "configmaps" {
                continue;
            }
            let texts = |model: &Model| {
                model
                    .objects(kind)
                    .values()
                    .map(|object| text(object))
                    .collect::<Vec<_>>()
            };
            assert_eq!(texts(&model), texts(&standalone), "{}", kind.plural);
        }
    }

    #[test]
    fn the_resource_of_the_target_has_the_objects_of_the_scenario_alone() {
        for (group, plural) in [
            ("", "configmaps"),
            ("", "services"),
            ("rbac.authorization.k8s.io", "clusterroles"),
            ("", "namespaces"),
        ] {
            let model = preloaded(&setting(group, plural), 1000);
            assert_eq!(keys(&model, group, plural), [""; 0]);
            assert_eq!(model.namespaces_enforced, plural != "namespaces");
        }
    }

    #[test]
    fn objects_that_the_scenario_creates_are_left_out() {
        let namespace = Manifest {
            group: String::new(),
            plural: "namespaces".to_owned(),
            namespace: None,
            name: "shop".to_owned(),
            json: json!({}),
            binds: None,
            at: Place::default(),
        };
        let mut model = preloaded(
            &Setting {
                written: vec![&namespace],
                ..setting("", "configmaps")
            },
            1000,
        );
        assert!(!keys(&model, "", "namespaces").contains(&"shop".to_owned()));
        let written = model.apply(Duration::ZERO, &namespace).unwrap();
        assert_eq!(
            (written.op, written.revision),
            (Some(trace::record::WriteOp::Create), 1001)
        );
    }

    #[test]
    fn writes_of_one_server_do_not_reach_another() {
        let mut model = preloaded(&setting("", "configmaps"), 1000);
        let other = preloaded(&setting("", "configmaps"), 1000);
        let kind = model.catalog.find("", "services").unwrap().clone();
        let service = model.objects(&kind).get("default/kubernetes").unwrap().clone();
        let deleted = write::delete(&service, model.epoch);
        model.carry_out(
            Duration::ZERO,
            &kind,
            service.key.clone(),
            Some(Arc::clone(&service)),
            deleted,
        );
        assert_eq!(keys(&model, "", "services"), [""; 0]);
        let unchanged = other.objects(&kind).get("default/kubernetes").unwrap();
        assert_eq!(
            unchanged.encoded(Representation::Full),
            service.encoded(Representation::Full)
        );
    }
}
