//! Matchers of requests, for rules, waits and expectations.
//!
//! A matcher is the `when` and `from` of a rule of the control API, as JSON. Whether a request meets them is decided in
//! `fake_apiserver::scenario`; this file must not decide it a second time.

use std::fmt;
use std::marker::PhantomData;

use std::path::Path;
use std::time::Duration;

#[cfg(feature = "kube")]
use apimachinery::kind::qualified;
use fake_apiserver::scenario::{LoadErrors, Wait, parse_wait};
#[cfg(feature = "kube")]
use kube_client::Resource;
use serde_json::{Map, Value, json};

use crate::resource::resolved;
use crate::status::time;

/// Matches requests of one kind. Made by [`List::of`] and its siblings; every further condition must hold as well.
///
/// Resources are written as kubectl writes them: the plural, and the group after a dot where it is not clear without
/// (`pods`, `deployments`, `ingresses.networking.k8s.io`, `widgets.example.com`). A name that is neither served nor that of
/// a custom resource that may come is a mistake, which is reported when the matcher is used.
///
/// ```
/// use fake_apiserver_testing::{Update, Watch};
///
/// let watches = Watch::of("pods").in_namespace("kube-system").query("resourceVersion", "1001");
/// let renewals = Update::of("leases").named("my-controller");
/// assert_eq!(watches.to_string(), "WATCH pods in kube-system with resourceVersion=1001");
/// assert_eq!(renewals.to_string(), "UPDATE leases/my-controller");
/// ```
pub struct Matcher<K> {
    pub(crate) pattern: Pattern,
    kind: PhantomData<fn() -> K>,
}

/// Pattern of a matcher, without its type.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pattern {
    /// Name of the kind: `LIST`.
    pub(crate) word: &'static str,
    /// Key of `when`: `list`, `page`, `watch` or `request`.
    pub(crate) when: &'static str,
    /// Only the n-th such request.
    pub(crate) nth: Option<u32>,
    /// Conditions on the query, by parameter.
    pub(crate) query: Vec<(String, Condition)>,
    /// Conditions of `from` in the control API; `resource` as the user wrote it.
    pub(crate) from: Map<String, Value>,
}

/// A condition on a query parameter.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Condition {
    Is(String),
    Present,
    Absent,
}

/// Kinds of requests as types. The traits are what a kind allows.
pub mod kind {
    /// A kind of requests: lists, watches, gets, creates.
    pub trait RequestKind {}
    /// A kind whose requests can be counted: all but later pages, which belong to their list.
    pub trait Counted: RequestKind {}
    /// A kind whose requests have the name of an object in their path.
    pub trait Named: RequestKind {}
    /// A kind whose requests may be for a subresource.
    pub trait WithSubresource: RequestKind {}
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident $word:literal $when:literal $verb:expr, [$($is:ident),*];)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name {}

        impl $name {
            /// Matches these requests for a resource: `pods`, `deployments.apps`.
            pub fn of(resource: impl Into<String>) -> Matcher<Self> {
                let mut matcher = Self::any();
                matcher.pattern.from.insert("resource".to_owned(), Value::String(resource.into()));
                matcher
            }

            /// Matches these requests for the resource of a type: of `k8s-openapi`, or a derived `CustomResource`.
            #[cfg(feature = "kube")]
            pub fn of_type<R: Resource<DynamicType = ()>>() -> Matcher<Self> {
                Self::of(qualified(&R::plural(&()), &R::group(&())))
            }

            /// Matches these requests for every resource.
            pub fn any() -> Matcher<Self> {
                let verb: Option<&str> = $verb;
                let from = verb.map(|verb| ("verb".to_owned(), json!(verb)));
                Matcher {
                    pattern: Pattern {
                        word: $word,
                        when: $when,
                        nth: None,
                        query: Vec::new(),
                        from: from.into_iter().collect(),
                    },
                    kind: PhantomData,
                }
            }
        }

        impl kind::RequestKind for $name {}
        $(impl kind::$is for $name {})*
    )*};
}

kinds! {
    /// LIST: a collection read without a continue token. Pages behind the first are [`Page`].
    List "LIST" "list" None, [Counted];
    /// A later page of a LIST: a collection read with a continue token.
    Page "PAGE" "page" None, [];
    /// WATCH of a collection, streaming lists (`sendInitialEvents=true`) included.
    Watch "WATCH" "watch" None, [Counted];
    /// GET of one object.
    Get "GET" "request" Some("get"), [Counted, Named, WithSubresource];
    /// POST: creates an object, or one of a subresource (`pods/eviction`).
    Create "CREATE" "request" Some("create"), [Counted, WithSubresource];
    /// PUT: replaces an object.
    Update "UPDATE" "request" Some("update"), [Counted, Named, WithSubresource];
    /// PATCH of an object, server-side apply included.
    Patch "PATCH" "request" Some("patch"), [Counted, Named, WithSubresource];
    /// DELETE of one object.
    Delete "DELETE" "request" Some("delete"), [Counted, Named, WithSubresource];
    /// DELETE of a collection.
    DeleteCollection "DELETECOLLECTION" "request" Some("deletecollection"), [Counted];
    /// All requests: reads, writes, discovery.
    Requests "REQUEST" "request" None, [Counted];
}

impl<K: kind::RequestKind> Matcher<K> {
    /// Only in this namespace. Requests for all namespaces are not in any.
    #[must_use]
    pub fn in_namespace(self, namespace: impl Into<String>) -> Self {
        self.from("namespace", namespace)
    }

    /// Only with this value of a query parameter: `resourceVersion`, `limit`, `labelSelector`, … An empty value counts as
    /// absent.
    #[must_use]
    pub fn query(self, parameter: &str, value: impl Into<String>) -> Self {
        self.condition(parameter, Condition::Is(value.into()))
    }

    /// Only with this query parameter, whatever its value.
    #[must_use]
    pub fn with_query(self, parameter: &str) -> Self {
        self.condition(parameter, Condition::Present)
    }

    /// Only without this query parameter.
    #[must_use]
    pub fn without_query(self, parameter: &str) -> Self {
        self.condition(parameter, Condition::Absent)
    }

    /// Only from clients with this text in their User-Agent ([`FakeApiserver::client_named`](crate::FakeApiserver::client_named)).
    #[must_use]
    pub fn user_agent(self, part: impl Into<String>) -> Self {
        self.from("user_agent", part)
    }

    /// Only those sent to the secondary ([`Builder::secondary`](crate::Builder::secondary)).
    #[must_use]
    pub fn at_secondary(self) -> Self {
        self.from("replica", "secondary")
    }

    fn condition(mut self, parameter: &str, condition: Condition) -> Self {
        self.pattern.query.retain(|(known, _)| known != parameter);
        self.pattern.query.push((parameter.to_owned(), condition));
        self
    }

    fn from(mut self, key: &str, value: impl Into<String>) -> Self {
        self.pattern
            .from
            .insert(key.to_owned(), Value::String(value.into()));
        self
    }
}

impl<K: kind::Counted> Matcher<K> {
    /// Only the n-th of them, from 1: in a rule, counted from when the rule is added; elsewhere, from the start of the
    /// server.
    #[must_use]
    pub fn nth(mut self, n: u32) -> Self {
        self.pattern.nth = Some(n);
        self
    }
}

impl<K: kind::Named> Matcher<K> {
    /// Only for the object of this name.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        self.from("name", name)
    }
}

impl<K: kind::WithSubresource> Matcher<K> {
    /// Only for this subresource: `status`, `scale`. Without it, requests for the object and for its subresources match.
    #[must_use]
    pub fn subresource(self, subresource: impl Into<String>) -> Self {
        self.from("subresource", subresource)
    }
}

impl<K> Clone for Matcher<K> {
    fn clone(&self) -> Self {
        Self {
            pattern: self.pattern.clone(),
            kind: PhantomData,
        }
    }
}

impl<K> fmt::Debug for Matcher<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Matcher").field(&self.pattern.to_string()).finish()
    }
}

impl<K> fmt::Display for Matcher<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pattern.fmt(f)
    }
}

impl Pattern {
    /// `when` as the control API takes it.
    pub(crate) fn when_json(&self) -> Value {
        let nth = self.nth.map_or_else(|| json!("next"), |nth| json!(nth));
        // The server counts a list's first page as 1.
        let nth = if self.when == "page" { json!(2) } else { nth };
        let mut when = Map::new();
        when.insert(self.when.to_owned(), nth);
        if !self.query.is_empty() {
            let query = self.query.iter();
            let query = query.map(|(parameter, condition)| (parameter.clone(), condition.json()));
            when.insert("query".to_owned(), Value::Object(query.collect()));
        }
        Value::Object(when)
    }

    /// Returns its resource in the server's spelling; `None`: every resource.
    ///
    /// # Errors
    /// No such resource is served.
    pub(crate) fn resource(&self, served: &[String]) -> Result<Option<String>, String> {
        let written = self.from.get("resource").and_then(Value::as_str);
        written.map(|written| resolved(written, served)).transpose()
    }

    /// Returns the matcher as a wait, which decides whether a request matches.
    ///
    /// # Errors
    /// The mistakes of the matcher.
    pub(crate) fn wait(&self, served: &[String], patience: Duration) -> Result<Wait, String> {
        self.parsed(served, patience, "when", self.when_json())
    }

    /// Returns a wait for an event on the watches it matches.
    ///
    /// # Errors
    /// The mistakes of the matcher or type.
    pub(crate) fn event_wait(
        &self,
        served: &[String],
        patience: Duration,
        kind: &str,
        name: &str,
    ) -> Result<Wait, String> {
        self.open_watches()?;
        let mut sent = json!({ "type": kind });
        if !name.is_empty() {
            sent["name"] = json!(name);
        }
        self.parsed(served, patience, "sent", sent)
    }

    /// Checks that it can select open watches.
    ///
    /// # Errors
    /// It has conditions that apply only to an arriving request.
    pub(crate) fn open_watches(&self) -> Result<(), String> {
        if self.nth.is_none() && self.query.is_empty() {
            Ok(())
        } else {
            Err(format!(
                "{self}: open watches cannot be selected by number or query"
            ))
        }
    }

    fn parsed(&self, served: &[String], patience: Duration, key: &str, what: Value) -> Result<Wait, String> {
        let mut from = self.from.clone();
        let resource = self.resource(served)?;
        from.extend(resource.map(|resource| ("resource".to_owned(), Value::String(resource))));
        let wait = json!({ key: what, "from": from, "since": 0, "timeout": time(patience) });
        let wait = parse_wait(Path::new("matcher"), &format!("{wait:#}"));
        wait.map_err(|mistakes| format!("{self}: {}", words(&mistakes)))
    }

    /// Returns its conditions one by one, each as a matcher and as the text of its failure; a request matches if all
    /// do.
    pub(crate) fn conditions(&self) -> Vec<(String, Self)> {
        let bare = Self {
            word: "REQUEST",
            when: "request",
            nth: None,
            query: Vec::new(),
            from: Map::new(),
        };
        let mut conditions = Vec::new();
        let mut kind = bare.clone();
        kind.when = self.when;
        kind.from.extend(
            self.from
                .get("verb")
                .map(|verb| ("verb".to_owned(), verb.clone())),
        );
        conditions.push((format!("not {}", self.word), kind));
        for (key, value) in self.from.iter().filter(|(key, _)| *key != "verb") {
            let mut one = bare.clone();
            one.from.insert(key.clone(), value.clone());
            let value = value.as_str().unwrap_or_default();
            let words = match key.as_str() {
                "resource" => format!("not for {value}"),
                "namespace" => format!("not in namespace {value}"),
                "user_agent" => format!("not from {value}"),
                "replica" => "not at the secondary".to_owned(),
                "name" => format!("not named {value}"),
                _ => format!("not for {key} {value}"),
            };
            conditions.push((words, one));
        }
        for (parameter, condition) in &self.query {
            let mut one = bare.clone();
            one.query.push((parameter.clone(), condition.clone()));
            let words = match condition {
                Condition::Is(value) => format!("{parameter} is not {value}"),
                Condition::Present => format!("no {parameter}"),
                Condition::Absent => format!("has {parameter}"),
            };
            conditions.push((words, one));
        }
        conditions
    }
}

/// `WATCH pods in default with resourceVersion=1001`.
impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |key: &str| self.from.get(key).and_then(Value::as_str);
        f.write_str(self.word)?;
        if let Some(resource) = text("resource") {
            write!(f, " {resource}")?;
        }
        if let Some(name) = text("name") {
            let slash = if text("resource").is_some() { "/" } else { " " };
            write!(f, "{slash}{name}")?;
        }
        if let Some(subresource) = text("subresource") {
            write!(f, " ({subresource})")?;
        }
        if let Some(namespace) = text("namespace") {
            write!(f, " in {namespace}")?;
        }
        if let Some(agent) = text("user_agent") {
            write!(f, " from {agent}")?;
        }
        if text("replica").is_some() {
            f.write_str(" at the secondary")?;
        }
        for (index, (parameter, condition)) in self.query.iter().enumerate() {
            let joint = if index == 0 { " with" } else { "," };
            write!(f, "{joint} ")?;
            match condition {
                Condition::Is(value) => write!(f, "{parameter}={value}")?,
                Condition::Present => write!(f, "any {parameter}")?,
                Condition::Absent => write!(f, "no {parameter}")?,
            }
        }
        match self.nth {
            Some(nth) => write!(f, " number {nth}"),
            None => Ok(()),
        }
    }
}

/// Formats mistakes without positions, which would be those of generated text.
pub(crate) fn words(mistakes: &LoadErrors) -> String {
    let mistakes = mistakes.errors().iter().map(|mistake| match &mistake.hint {
        Some(hint) => format!("{} ({hint})", mistake.message),
        None => mistake.message.clone(),
    });
    mistakes.collect::<Vec<_>>().join("; ")
}

impl Condition {
    /// Returns the condition in the scenario language.
    fn json(&self) -> Value {
        match self {
            // A bare string may be a keyword of the language.
            Self::Is(value) => json!({ "is": value }),
            Self::Present => json!("present"),
            Self::Absent => json!("absent"),
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::Deployment;
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    #[test]
    fn a_matcher_reads_as_a_request_does() {
        let words = [
            List::of("pods").nth(2).to_string(),
            Page::any().to_string(),
            Get::any().named("a").to_string(),
            Patch::of_type::<Deployment>()
                .named("a")
                .subresource("status")
                .to_string(),
            List::of_type::<ConfigMap>().to_string(),
            Requests::any().user_agent("kubectl").at_secondary().to_string(),
            List::of("pods")
                .query("limit", "2")
                .without_query("continue")
                .with_query("labelSelector")
                .to_string(),
        ];
        insta::assert_snapshot!(words.join("\n"), @r"
        LIST pods number 2
        PAGE
        GET a
        PATCH deployments.apps/a (status)
        LIST configmaps
        REQUEST from kubectl at the secondary
        LIST pods with limit=2, no continue, any labelSelector
        ");
    }

    #[test]
    fn a_matcher_is_a_when_and_a_from() {
        let pattern = Update::of("leases")
            .named("l")
            .query("dryRun", "All")
            .nth(3)
            .pattern;
        assert_eq!(
            pattern.when_json(),
            json!({"request": 3, "query": {"dryRun": {"is": "All"}}})
        );
        assert_eq!(
            Value::Object(pattern.from),
            json!({"verb": "update", "resource": "leases", "name": "l"})
        );
    }
}
