//! Converts a scenario to another resource: the same writes and faults, on objects of another kind.
//!
//! The content of objects is kept in an annotation, so that all changes remain changes. Expectations must not change: a
//! scenario that depends on its kind is rejected, with the reason.

use fake_apiserver::model::catalog::{ApiResource, Catalog, KindRef};
use fake_apiserver::scenario::{
    Action, Content, Manifest, ObjectName, PageEdit, Scenario, Target, Trigger, Version,
};
use serde_json::{Map, Value};

use super::sample;
use crate::Failure;

/// Annotation with the content of an object of the scenario's own kind.
const CONTENT: &str = "fake-apiserver.io/content";

/// Below the limit of 262144 bytes for all annotations of an object.
const CONTENT_BYTES_MAX: usize = 200 << 10;

/// New target; `None` keeps a part of the old one.
#[derive(Debug, Clone, Default)]
pub(super) struct Retarget {
    pub(super) resource: Option<KindRef>,
    pub(super) namespace: Option<String>,
}

/// Returns the kind of `--resource`: `pods`, `deployments.apps`.
///
/// # Errors
///
/// The fake does not serve it, or no valid object of it is known.
pub(super) fn resource(text: &str) -> Result<KindRef, String> {
    let catalog = Catalog::of_scenarios(Version::default());
    let mut served = catalog.kinds().iter();
    let kind = served
        .find(|kind| kind.qualified() == text && kind.is_stored())
        .ok_or("unknown resource; expected a name such as pods or deployments.apps")?;
    match sample::object(kind) {
        Some(_) => Ok(kind.clone()),
        None => Err(format!("expected one of {}", sample::known().join(", "))),
    }
}

/// Returns the error of a `--resource` that cannot be used.
pub(super) fn unusable(name: &str, why: &str) -> Failure {
    Failure::Usage(format!("--resource {name}: {why}"))
}

impl Retarget {
    /// Converts a scenario.
    ///
    /// # Errors
    ///
    /// The reason why it depends on its own target.
    pub(super) fn apply(&self, scenario: &Scenario) -> Result<Scenario, String> {
        let from = &scenario.target;
        let moving = Moving {
            from,
            to: self.target(from)?,
            // With the same resource in another namespace objects are kept.
            kind: self
                .resource
                .as_ref()
                .filter(|kind| !names(kind, &from.group, &from.plural)),
        };
        moving.fits(scenario)?;
        let mut moved = scenario.clone();
        for manifest in &mut moved.objects {
            moving.manifest(manifest)?;
        }
        for step in &mut moved.steps {
            for action in &mut step.actions {
                moving.action(action)?;
            }
            if let Trigger::Emitted(event) = &mut step.when {
                event.name.iter_mut().for_each(|name| moving.key(name));
            }
        }
        let expect = &mut moved.expect;
        let forbidden = expect.never_emitted.iter_mut().map(|never| &mut never.event);
        let expected = expect.events.iter_mut().map(|expected| &mut expected.event);
        for event in expected.chain(forbidden) {
            event.name.iter_mut().for_each(|name| moving.key(name));
        }
        expect
            .cache
            .iter_mut()
            .flatten()
            .for_each(|name| moving.key(name));
        moved.target = moving.to;
        Ok(moved)
    }

    fn target(&self, from: &Target) -> Result<Target, String> {
        let mut to = from.clone();
        let namespaced = self.resource.as_ref().is_none_or(|kind| kind.namespaced);
        if let Some(kind) = &self.resource {
            to.group = kind.group.to_string();
            to.version = kind.version.to_string();
            to.plural = kind.plural.to_string();
            to.kind = kind.kind.to_string();
        }
        to.namespace = match (&from.namespace, &self.namespace) {
            (Some(_), _) if !namespaced => None,
            (Some(_), Some(other)) => Some(other.clone()),
            (Some(own), None) => Some(own.clone()),
            (None, None) => None,
            (None, Some(_)) => return Err("it is about no single namespace".to_owned()),
        };
        if from.namespace.is_none() && self.resource.is_some() {
            return Err("it is about all namespaces, or about what has none".to_owned());
        }
        Ok(to)
    }
}

/// A scenario during conversion.
struct Moving<'s> {
    from: &'s Target,
    to: Target,
    /// New kind; `None`: the old one.
    kind: Option<&'s KindRef>,
}

impl Moving<'_> {
    /// Checks that nothing in the scenario depends on its kind or namespace.
    fn fits(&self, scenario: &Scenario) -> Result<(), String> {
        let Some(kind) = self.kind else { return Ok(()) };
        let is_other = |fields: &&String| fields.contains("spec.") || fields.contains("status.");
        if let Some(fields) = scenario.client.fields.as_ref().filter(is_other) {
            return Err(format!(
                "its field selector `{fields}` is one of {}",
                self.from.plural
            ));
        }
        let actions = scenario.steps.iter().flat_map(|step| &step.actions);
        if let Some(beside) = actions
            .flat_map(Action::manifests)
            .chain(&scenario.objects)
            .find(|manifest| names(kind, &manifest.group, &manifest.plural))
        {
            return Err(format!(
                "it writes {} beside its own objects, as line {} does",
                kind.plural, beside.at.line
            ));
        }
        Ok(())
    }

    fn action(&self, action: &mut Action) -> Result<(), String> {
        let word = action.word();
        action.contents_mut().into_iter().try_for_each(|content| {
            match content {
                Content::Written(manifest) => self.manifest(manifest)?,
                Content::Named(object) => self.name(object)?,
                Content::Sent { object, is_bookmark } => *object = self.sent(object, is_bookmark)?,
                Content::Page(edit) => self.page(edit)?,
                Content::Verbatim(text) => self.is_free(&text, word)?,
            }
            Ok(())
        })
    }

    /// Checks that a text that is sent unchanged contains no object of the scenario's kind.
    fn is_free(&self, text: &str, word: &str) -> Result<(), String> {
        if self.kind.is_some() && text.contains(&self.from.kind) {
            return Err(format!("a `{word}` sends a {} as it is written", self.from.kind));
        }
        Ok(())
    }

    fn page(&self, edit: &mut PageEdit) -> Result<(), String> {
        edit.without.iter_mut().for_each(|name| self.key(name));
        for added in &mut edit.add {
            *added = self.sent(added, false)?;
        }
        if let (Some(kind), Some(list)) = (self.kind, &mut edit.kind)
            && *list == format!("{}List", self.from.kind)
        {
            *list = kind.list_kind.to_string();
        }
        Ok(())
    }

    fn manifest(&self, manifest: &mut Manifest) -> Result<(), String> {
        if (manifest.group.as_str(), manifest.plural.as_str()) != (&self.from.group, &self.from.plural) {
            return Ok(());
        }
        self.place(&mut manifest.namespace)?;
        manifest.group.clone_from(&self.to.group);
        manifest.plural.clone_from(&self.to.plural);
        manifest.json = self.object(&manifest.json, manifest.namespace.as_deref())?;
        Ok(())
    }

    fn name(&self, object: &mut ObjectName) -> Result<(), String> {
        if (object.group.as_str(), object.plural.as_str()) != (&self.from.group, &self.from.plural) {
            return Ok(());
        }
        self.place(&mut object.namespace)?;
        object.group.clone_from(&self.to.group);
        object.plural.clone_from(&self.to.plural);
        Ok(())
    }

    /// Converts the namespace of an object.
    fn place(&self, namespace: &mut Option<String>) -> Result<(), String> {
        if *namespace == self.from.namespace {
            namespace.clone_from(&self.to.namespace);
        } else if *namespace == self.to.namespace || self.to.namespace.is_none() && self.kind.is_some() {
            return Err("it writes the same objects elsewhere too".to_owned());
        }
        Ok(())
    }

    /// Converts `name` or `namespace/name`.
    fn key(&self, key: &mut String) {
        let own = self.from.namespace.as_deref().and_then(|own| {
            let (namespace, name) = key.split_once('/')?;
            (namespace == own).then_some(name)
        });
        if let Some(name) = own {
            *key = match &self.to.namespace {
                Some(namespace) => format!("{namespace}/{name}"),
                None => name.to_owned(),
            };
        }
    }

    /// Converts an object on the wire if it is of the scenario's kind; returns others unchanged.
    fn sent(&self, object: &Value, is_bare: bool) -> Result<Value, String> {
        if object.get("kind").and_then(Value::as_str) != Some(&self.from.kind) {
            return Ok(object.clone());
        }
        let metadata = object.get("metadata");
        let has = |key: &str| {
            metadata
                .and_then(|metadata| metadata.get(key))
                .and_then(Value::as_str)
        };
        if !is_bare && has("name").is_some() {
            let namespace = has("namespace").map(str::to_owned);
            let is_own = namespace == self.from.namespace;
            let namespace = if is_own { &self.to.namespace } else { &namespace };
            return self.object(object, namespace.as_deref());
        }
        let mut bare = object.clone();
        if let Some(kind) = self.kind {
            bare["kind"] = (*kind.kind).into();
            bare["apiVersion"] = kind.api_version().into();
        }
        Ok(bare)
    }

    /// Returns an object of the new kind with the metadata of `own`, and the rest of it in an annotation.
    fn object(&self, own: &Value, namespace: Option<&str>) -> Result<Value, String> {
        let mut metadata = own
            .get("metadata")
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        metadata.remove("namespace");
        if let Some(namespace) = namespace {
            metadata.insert("namespace".to_owned(), namespace.into());
        }
        let Some(kind) = self.kind else {
            let mut moved = own.clone();
            moved["metadata"] = Value::Object(metadata);
            return Ok(moved);
        };
        let mut rest: Map<String, Value> = own.as_object().cloned().unwrap_or_default();
        rest.retain(|key, _| !matches!(key.as_str(), "apiVersion" | "kind" | "metadata"));
        if !rest.is_empty() {
            let content = Value::Object(rest).to_string();
            if content.len() > CONTENT_BYTES_MAX {
                return Err(format!(
                    "it writes a {} larger than annotations may be",
                    self.from.kind
                ));
            }
            let mut annotations = match metadata.remove("annotations") {
                Some(Value::Object(annotations)) => annotations,
                Some(_) | None => Map::new(),
            };
            annotations.insert(CONTENT.to_owned(), content.into());
            metadata.insert("annotations".to_owned(), annotations.into());
        }
        let mut moved = sample::object(kind).ok_or("no valid object of that kind is known")?;
        moved["metadata"] = Value::Object(metadata);
        Ok(moved)
    }
}

fn names(kind: &ApiResource, group: &str, plural: &str) -> bool {
    kind.group == group && kind.plural == plural
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use fake_apiserver::scenario::{SentObject, StreamAction, parse};
    use rstest::rstest;

    use super::*;

    fn moved(resource_name: &str, namespace: Option<&str>, part: &str) -> Result<Scenario, String> {
        let text = format!("scenario: v1\ntitle: t\nwhy: w\ncovers: [PAGE-01]\n{part}\n");
        let scenario = parse("group/claim", Path::new("claim.yaml"), &text).unwrap();
        let to = Retarget {
            resource: Some(resource(resource_name)?),
            namespace: namespace.map(str::to_owned),
        };
        to.apply(&scenario)
    }

    const WORLD: &str = "\
objects: [{configmap: {name: a, labels: {app: x}, data: {v: \"1\"}}}, secret: {name: s}]
steps:
  - apply: {configmap: {name: b, data: {v: \"2\"}}}
  - {when: {emitted: {apply: default/b}}, do: {delete: a}}
  - {when: {watch: next}, do: {event: {type: BOOKMARK, object: {kind: ConfigMap, apiVersion: v1, metadata: {}}, rv: \"9\"}}}
expect: {cache: [default/b]}";

    #[test]
    fn objects_become_others_with_the_same_changes() {
        let moved = moved("deployments.apps", Some("shop"), WORLD).unwrap();
        let target = &moved.target;
        assert_eq!(
            (
                target.group.as_str(),
                target.plural.as_str(),
                target.kind.as_str(),
                target.namespace.as_deref()
            ),
            ("apps", "deployments", "Deployment", Some("shop"))
        );
        let a = &moved.objects[0];
        assert_eq!(
            (a.plural.as_str(), a.namespace.as_deref()),
            ("deployments", Some("shop"))
        );
        assert_eq!(a.json["metadata"]["labels"]["app"], "x");
        assert_eq!(a.json["metadata"]["namespace"], "shop");
        assert_eq!(
            a.json["metadata"]["annotations"][CONTENT],
            "{\"data\":{\"v\":\"1\"}}"
        );
        assert!(a.json["spec"]["template"].is_object());
        assert_eq!(moved.objects[1].plural, "secrets");
        let Trigger::Emitted(event) = &moved.steps[1].when else {
            panic!("{:?}", moved.steps[1].when)
        };
        assert_eq!(event.name.as_deref(), Some("shop/b"));
        assert_eq!(moved.expect.cache, Some(vec!["shop/b".to_owned()]));
        let Action::Stream(StreamAction::SendEvent {
            object: SentObject::Given(object),
            ..
        }) = &moved.steps[2].actions[0]
        else {
            panic!("{:?}", moved.steps[2].actions)
        };
        assert_eq!(object["kind"], "Deployment");
        assert_eq!(object["apiVersion"], "apps/v1");
    }

    #[test]
    fn what_has_no_namespace_takes_none() {
        let moved = moved("nodes", None, WORLD).unwrap();
        assert_eq!(moved.target.namespace, None);
        assert_eq!(moved.objects[0].json["metadata"].get("namespace"), None);
        assert_eq!(moved.expect.cache, Some(vec!["b".to_owned()]));
    }

    #[rstest]
    #[case::written_beside("secrets", WORLD, "it writes secrets beside its own objects")]
    #[case::as_written(
        "pods",
        "steps: [{when: {watch: 1}, do: {send: '{\"type\":\"ADDED\",\"object\":{\"kind\":\"ConfigMap\"}}'}}]",
        "a `send` sends a ConfigMap as it is written"
    )]
    #[case::all_namespaces(
        "pods",
        "target: {resource: configmaps, namespace: all}",
        "it is about all namespaces"
    )]
    #[case::own_fields(
        "configmaps",
        "target: pods\nclient: {fields: spec.nodeName=n}",
        "its field selector"
    )]
    #[case::too_large(
        "pods",
        "objects: [{configmap: {name: a, filler: 300000}}]",
        "larger than annotations may be"
    )]
    #[case::unknown("unicorns", WORLD, "unknown resource")]
    fn what_depends_on_its_kind_stays(#[case] resource: &str, #[case] part: &str, #[case] why: &str) {
        let message = moved(resource, None, part).err().unwrap_or_default();
        assert!(message.contains(why), "{message:?}");
    }
}
