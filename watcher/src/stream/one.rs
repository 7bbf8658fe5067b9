//! Reduces the events of a watcher to one named object. Independent of the object's type.

use kube_core::Resource;

use crate::error::Error;
use crate::event::Event;
use crate::object::identity;

/// Which object is followed, and whether it was seen.
#[derive(Debug)]
pub(super) struct One {
    name: String,
    /// Namespace of the followed object, once it was seen.
    namespace: Option<Option<String>>,
    /// Whether it was part of the current snapshot.
    is_seen: bool,
}

impl One {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            namespace: None,
            is_seen: false,
        }
    }

    /// Maps an event to the state of the object; `None` for events that do not affect it, an error if another object
    /// has its name.
    pub(super) fn take<K: Resource>(&mut self, event: Event<K>) -> Option<Result<Option<K>, Error>> {
        match event {
            Event::Init => {
                self.namespace = None;
                self.is_seen = false;
                None
            }
            Event::InitApply(object) => {
                let admitted = self.admit(&object, "")?;
                self.is_seen |= admitted.is_ok();
                Some(admitted.map(|()| Some(object)))
            }
            Event::InitDone => (!self.is_seen).then_some(Ok(None)),
            Event::Apply(object) => Some(self.admit(&object, "MODIFIED")?.map(|()| Some(object))),
            Event::Delete(object) => {
                let admitted = self.admit(&object, "DELETED")?;
                if admitted.is_ok() {
                    self.namespace = None;
                }
                Some(admitted.map(|()| None))
            }
        }
    }

    /// Checks the identity; `None` for an object of another name, from a server that ignores field selectors.
    fn admit<K: Resource>(&mut self, object: &K, event_type: &str) -> Option<Result<(), Error>> {
        let meta = object.meta();
        if meta.name.as_deref() != Some(&*self.name) {
            return None;
        }
        let followed = self.namespace.get_or_insert_with(|| meta.namespace.clone());
        Some(if *followed == meta.namespace {
            Ok(())
        } else {
            Err(Error::SeveralObjects {
                other: Box::new(identity(object).to_id(event_type)),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use rstest::rstest;

    use super::*;

    fn object(key: &str) -> ConfigMap {
        let (namespace, name) = key.split_once('/').unwrap();
        let mut object = ConfigMap::default();
        object.metadata.namespace = Some(namespace.to_owned());
        object.metadata.name = Some(name.to_owned());
        object
    }

    /// `[` Init, `.x` InitApply, `]` InitDone, `+x` Apply, `-x` Delete.
    fn event(word: &str) -> Event<ConfigMap> {
        match word.split_at(1) {
            ("[", _) => Event::Init,
            ("]", _) => Event::InitDone,
            (".", key) => Event::InitApply(object(key)),
            ("+", key) => Event::Apply(object(key)),
            ("-", key) => Event::Delete(object(key)),
            _ => unreachable!("no event: {word}"),
        }
    }

    #[rstest]
    #[case::absent("[ ]", "none")]
    #[case::present("[ .n/a ] +n/a -n/a", "n n none")]
    #[case::of_other_names("[ .n/b ] +n/b +n/a -n/b", "none n")]
    #[case::deleted_between_two_watches("[ .n/a ] [ ]", "n none")]
    #[case::in_two_namespaces("[ .m/a .n/a ] -n/a +m/a", "m !n !n m")]
    #[case::in_the_other_after_its_deletion("[ .m/a .n/a ] -m/a +n/a", "m !n none n")]
    #[case::in_the_other_after_a_relist("[ .m/a ] [ .n/a ]", "m n")]
    fn events_become_states(#[case] events: &str, #[case] expected: &str) {
        let mut one = One::new("a");
        let received: Vec<String> = events
            .split_whitespace()
            .filter_map(|word| one.take(event(word)))
            .map(|received| match received {
                Ok(Some(object)) => object.metadata.namespace.unwrap(),
                Ok(None) => "none".to_owned(),
                Err(error) => format!("!{}", error.object().unwrap().namespace),
            })
            .collect();
        assert_eq!(received.join(" "), expected);
    }
}
