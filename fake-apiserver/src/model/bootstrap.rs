//! Objects that kube-apiserver creates when it starts, except namespaces: the service `kubernetes`, default roles and
//! bindings, priority classes, flow schemas, API services and others.
//!
//! They are data (`data/bootstrap.txt`), recorded from kube-apiserver by `cargo xtask oracle bootstrap`. Each line is an
//! object: the first and the last minor version that creates it so, and its bytes, with `@uid`, `@version`, `@time`,
//! `@micros` and `@date` for values that differ between servers. The bytes are used unchanged, because building some 200 objects would delay
//! the start. It must not know individual objects.

use std::borrow::Cow;
use std::time::Duration;

use apimachinery::kind::KindRef;
use apimachinery::object::Stored;
use apimachinery::time::timestamp;
use builtin_kinds::catalog::Catalog;

use super::{Model, Written, write};

/// The recorded objects.
const RECORDED: &str = include_str!("../../data/bootstrap.txt");

impl Model {
    /// Creates the objects that kube-apiserver of this version creates when it starts. Must be called at time zero. Existing
    /// objects are kept. Returns the writes.
    pub fn bootstrap(&mut self) -> Vec<Written> {
        self.bootstrapped = true;
        let mut written = Vec::new();
        for json in recorded(self.version.minor()) {
            written.extend(self.create_recorded(json));
        }
        written
    }

    fn create_recorded(&mut self, json: &str) -> Option<Written> {
        let recorded = Recorded::read(&self.catalog, json)?;
        let kind = recorded.kind.clone();
        if self.objects(&kind).contains_key(recorded.key.as_str()) {
            return None;
        }
        let uid = write::uid(self.writes, &recorded.key);
        let epoch = self.epoch;
        Some(self.create(Duration::ZERO, &kind, |revision| {
            recorded.created(epoch, uid, revision)
        }))
    }
}

/// Returns the objects of a minor version.
pub(super) fn recorded(minor: u8) -> impl Iterator<Item = &'static str> {
    RECORDED.lines().filter_map(move |line| {
        let mut parts = line.splitn(3, ' ');
        let mut number = || parts.next()?.parse::<u8>().ok();
        let minors = number()?..=number()?;
        let json = parts.next()?;
        minors.contains(&minor).then_some(json)
    })
}

/// A recorded object.
pub(super) struct Recorded<'a> {
    pub(super) kind: KindRef,
    pub(super) key: String,
    labels: serde_json::Map<String, serde_json::Value>,
    json: &'a str,
}

impl<'a> Recorded<'a> {
    /// Reads a recorded object; `None` if its kind is not served.
    pub(super) fn read(catalog: &Catalog, json: &'a str) -> Option<Self> {
        let head: Head<'_> = serde_json::from_str(json).expect("a test reads every line of the recording");
        let kind = catalog.find_kind(&head.api_version, &head.kind)?.clone();
        let key = kind.key(head.metadata.namespace.as_deref(), &head.metadata.name);
        Some(Self {
            kind,
            key,
            labels: head.metadata.labels,
            json,
        })
    }

    /// Returns the object as created at `epoch`.
    pub(super) fn created(self, epoch: Duration, uid: String, revision: u64) -> Stored {
        let full = filled(self.json, &uid, revision, epoch);
        Stored::recorded(&self.kind, self.key, uid, revision, &self.labels, full)
    }
}

/// Fields of an object that are read before it is decoded.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head<'a> {
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    api_version: Cow<'a, str>,
    #[serde(borrow)]
    metadata: Metadata<'a>,
}

#[derive(serde::Deserialize)]
struct Metadata<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    namespace: Option<Cow<'a, str>>,
    #[serde(default)]
    labels: serde_json::Map<String, serde_json::Value>,
}

/// Returns the bytes of an object created at `epoch`.
fn filled(json: &str, uid: &str, revision: u64, epoch: Duration) -> Vec<u8> {
    let time = timestamp(epoch);
    let revision = revision.to_string();
    let mut bytes = Vec::with_capacity(json.len() + 2 * uid.len() + 8 * time.len());
    let mut rest = json;
    while let Some((before, after)) = rest.split_once('@') {
        bytes.extend_from_slice(before.as_bytes());
        let name = after.find(|letter: char| !letter.is_ascii_lowercase());
        let (name, behind) = after.split_at(name.unwrap_or(after.len()));
        match name {
            "uid" => bytes.extend_from_slice(uid.as_bytes()),
            "version" => bytes.extend_from_slice(revision.as_bytes()),
            "time" => bytes.extend_from_slice(time.as_bytes()),
            "micros" => {
                bytes.extend_from_slice(time.trim_end_matches('Z').as_bytes());
                bytes.extend_from_slice(b".000000Z");
            }
            "date" => bytes.extend(time.bytes().take_while(|byte| *byte != b'T')),
            _ => {
                bytes.push(b'@');
                bytes.extend_from_slice(name.as_bytes());
            }
        }
        rest = behind;
    }
    bytes.extend_from_slice(rest.as_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use apimachinery::Version;
    use apimachinery::options::Representation;
    use rstest::rstest;
    use scenario::ServerSettings;

    use super::*;

    fn started(version: Version) -> (Model, Vec<Written>) {
        let mut model = Model::standalone(&ServerSettings {
            version,
            epoch_seconds: 1_835_438_400,
            ..ServerSettings::default()
        });
        let written = model.bootstrap();
        (model, written)
    }

    #[rstest]
    fn recorded_objects_equal_written_ones(
        #[values(Version::V1_34, Version::V1_35, Version::NEWEST, Version::V1_37)] version: Version,
    ) {
        let (model, written) = started(version);
        assert_eq!(
            written.len(),
            recorded(version.minor()).count(),
            "every kind is served"
        );
        let revision = ServerSettings::default().revision;
        assert_eq!(model.revision(), revision + written.len() as u64);
        for Written { stored, .. } in &written {
            let built = Stored::new(&stored.kind, stored.key.clone(), stored.revision, stored.json());
            let text =
                |stored: &Stored| String::from_utf8_lossy(&stored.encoded(Representation::Full)).into_owned();
            assert_eq!(text(stored), text(&built));
            assert_eq!(
                stored.labels().collect::<Vec<_>>(),
                built.labels().collect::<Vec<_>>(),
                "{}",
                stored.key
            );
            let metadata = &stored.json()["metadata"];
            assert_eq!(metadata["uid"], *stored.uid);
            assert_eq!(metadata["resourceVersion"], *stored.revision.to_string());
            assert_eq!(metadata["creationTimestamp"], "2028-02-29T12:00:00Z");
            assert!(!text(stored).contains("\"@"), "{}", text(stored));
        }
    }

    #[rstest]
    fn expected_bootstrap_objects_exist(
        #[values(Version::V1_34, Version::V1_35, Version::NEWEST, Version::V1_37)] version: Version,
    ) {
        let (_, written) = started(version);
        let there: BTreeSet<(&str, &str)> = written
            .iter()
            .map(|written| (&*written.stored.kind.plural, written.key.as_str()))
            .collect();
        for wanted in [
            ("services", "default/kubernetes"),
            ("endpoints", "default/kubernetes"),
            ("endpointslices", "default/kubernetes"),
            ("servicecidrs", "kubernetes"),
            ("ipaddresses", "10.96.0.1"),
            ("clusterroles", "cluster-admin"),
            ("clusterrolebindings", "cluster-admin"),
            ("roles", "kube-system/extension-apiserver-authentication-reader"),
            ("priorityclasses", "system-node-critical"),
            ("flowschemas", "catch-all"),
            ("prioritylevelconfigurations", "exempt"),
            ("apiservices", "v1.apps"),
        ] {
            assert!(there.contains(&wanted), "{wanted:?}");
        }
    }

    #[test]
    fn bootstrap_keeps_existing_objects() {
        let (mut model, _) = started(Version::NEWEST);
        let revision = model.revision();
        assert!(model.bootstrap().is_empty());
        assert_eq!(model.revision(), revision);
    }

    #[test]
    fn only_placeholders_are_replaced() {
        let filled = filled(
            r#"["@uid","@version","@time","@micros","@date","@other","a@b"]"#,
            "u",
            7,
            Duration::from_secs(1_835_438_400),
        );
        assert_eq!(
            String::from_utf8_lossy(&filled),
            r#"["u","7","2028-02-29T12:00:00Z","2028-02-29T12:00:00.000000Z","2028-02-29","@other","a@b"]"#
        );
    }
}
