//! Objects that kube-apiserver creates when it starts, except namespaces: the service `kubernetes`, default roles and
//! bindings, priority classes, flow schemas, API services and others.
//!
//! They are data (`data/bootstrap.txt`), recorded from kube-apiserver by `cargo xtask oracle bootstrap`. Each line is an
//! object: the first and the last minor version that creates it so, its identity and labels, and its bytes, with `@uid`,
//! `@version`, `@time`, `@micros` and `@date` for values that differ between servers. The bytes are used unchanged, and are
//! not parsed, because some 200 objects would delay the start. It must not know individual objects.

use std::ops::RangeInclusive;
use std::time::Duration;

use apimachinery::kind::KindRef;
use apimachinery::object::Stored;
use apimachinery::time::timestamp;
use builtin_kinds::catalog::Catalog;

use super::{Model, Written, write};

/// The recorded objects.
const RECORDED: &str = include_str!("../../data/bootstrap.txt");

/// A column without a value.
const NONE: &str = "-";

impl Model {
    /// Creates the objects that kube-apiserver of this version creates when it starts. Must be called at time zero. Existing
    /// objects are kept. Returns the writes.
    pub fn bootstrap(&mut self) -> Vec<Written> {
        self.bootstrapped = true;
        let mut written = Vec::new();
        for recorded in recorded(self.version.minor()) {
            written.extend(self.create_recorded(&recorded));
        }
        written
    }

    fn create_recorded(&mut self, recorded: &Recorded) -> Option<Written> {
        let kind = recorded.kind(&self.catalog)?.clone();
        let key = recorded.key(&kind);
        if self.objects(&kind).contains_key(key.as_str()) {
            return None;
        }
        let uid = write::uid(self.writes, &key);
        let epoch = self.epoch;
        Some(self.create(Duration::ZERO, &kind, |revision| {
            recorded.created(&kind, key, epoch, uid, revision)
        }))
    }
}

/// Returns the objects of a minor version.
pub(super) fn recorded(minor: u8) -> impl Iterator<Item = Recorded> {
    RECORDED.lines().filter_map(move |line| {
        let (minors, recorded) = Recorded::read(line)?;
        minors.contains(&minor).then_some(recorded)
    })
}

/// A recorded object.
pub(super) struct Recorded {
    pub(super) api_version: &'static str,
    pub(super) kind: &'static str,
    namespace: Option<&'static str>,
    name: &'static str,
    labels: &'static str,
    pub(super) json: &'static str,
}

impl Recorded {
    /// Reads a line; `None` if it has less than an object.
    fn read(line: &'static str) -> Option<(RangeInclusive<u8>, Self)> {
        let mut columns = line.splitn(8, ' ');
        let mut column = || columns.next();
        let minors = column()?.parse().ok()?..=column()?.parse().ok()?;
        let recorded = Self {
            api_version: column()?,
            kind: column()?,
            namespace: column().filter(|namespace| *namespace != NONE),
            name: column()?,
            labels: column().filter(|labels| *labels != NONE).unwrap_or_default(),
            json: column()?,
        };
        Some((minors, recorded))
    }

    /// Returns its kind; `None` if it is not served.
    pub(super) fn kind<'a>(&self, catalog: &'a Catalog) -> Option<&'a KindRef> {
        catalog.find_kind(self.api_version, self.kind)
    }

    pub(super) fn key(&self, kind: &KindRef) -> String {
        kind.key(self.namespace, self.name)
    }

    /// Returns the object as created at `epoch`.
    pub(super) fn created(
        &self,
        kind: &KindRef,
        key: String,
        epoch: Duration,
        uid: String,
        revision: u64,
    ) -> Stored {
        let full = filled(self.json, &uid, revision, epoch);
        let labels = self.labels.split(',').filter_map(|label| label.split_once('='));
        Stored::recorded(kind, key, uid, revision, labels, full)
    }
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
        for (Written { stored, .. }, recorded) in written.iter().zip(recorded(version.minor())) {
            let json = stored.json();
            assert_eq!(json["apiVersion"], recorded.api_version);
            assert_eq!(json["kind"], recorded.kind);
            assert_eq!(json["metadata"]["namespace"].as_str(), recorded.namespace);
            assert_eq!(json["metadata"]["name"], recorded.name);
        }
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
