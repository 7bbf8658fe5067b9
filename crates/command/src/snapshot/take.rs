//! `fake-apiserver snapshot`: reads lists of a real apiserver and writes them, page by page, to a file or folder.
//!
//! What is chosen (`choice`), which page is next (`listing`) and where it is written (`target`) are decided elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use apimachinery::time::timestamp;
use clap::Args;
use fake_apiserver::content::{Kept, empty_secret};
use fake_apiserver::net::Upstream as _;
use fake_apiserver::record::line::printable;
use fake_apiserver::upstream::{self as wire, Identity, Outbound};
use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method};
use http_body_util::BodyExt as _;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use upstream::{Cluster, Lending, ProbeError};

use super::choice::{Choice, DEFINITIONS, Discovered, Known, Resource};
use super::format::{End, Header, LeftOut, Listed};
use super::listing::{Answer, Failing, Listing, Step};
use super::target::Target;
use crate::cluster::{unanswered, unusable};
use crate::stop::INTERRUPTED;
use crate::words::quoted;
use crate::{Failure, output, recorder, serve, stage};

/// Longest response, in bytes: a page that is longer is requested with fewer objects.
const PAGE_BYTES_MAX: usize = 32 << 20;

/// Fields without which no server can begin with an object.
const NEEDED: [&str; 5] = [
    "apiVersion",
    "kind",
    "metadata",
    "metadata.name",
    "metadata.namespace",
];

/// Read the objects of a real cluster into files, for `serve --from`.
///
/// Lists the chosen resources in pages, all at one version, and only reads. The definitions of custom resources are included.
/// Values of Secrets are never written: their keys stay. Files are JSON, an object a line, new, and readable by this user only.
///
/// Without --resource it reads everything that the cluster serves and that can be created again: no events, no leases. What the
/// kubeconfig's user may not list is left out, and named.
///
/// Example: fake-apiserver snapshot --kubeconfig ~/.kube/config --context staging -o staging
#[derive(Debug, Args)]
pub(crate) struct SnapshotArguments {
    /// Kubeconfig of the cluster.
    #[arg(long, value_name = "FILE")]
    kubeconfig: PathBuf,
    /// Context of the kubeconfig [default: its current one].
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// Read this resource, e.g. pods or deployments.apps (repeatable).
    #[arg(long, value_name = "RESOURCE")]
    resource: Vec<String>,
    /// Read the objects of this namespace only.
    ///
    /// Without --resource, no objects that are in no namespace but itself and definitions.
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    /// Leave this field of objects out, e.g. metadata.annotations (repeatable).
    ///
    /// A path of names; arrays on the way are entered: spec.template.spec.containers.env. ConfigMaps, environment variables and
    /// annotations may hold what nobody else should read.
    #[arg(long, value_name = "FIELD")]
    redact: Vec<String>,
    /// New folder to write to, or new file if it ends in .json.
    #[arg(short, long, value_name = "DIR|FILE")]
    output: PathBuf,
}

/// Takes a snapshot.
///
/// # Errors
/// The kubeconfig cannot be used, the cluster does not answer, nothing can be read, or a system error. No incomplete file stays.
pub(crate) fn run(arguments: &SnapshotArguments) -> Result<(), Failure> {
    if let Some(needed) = arguments
        .redact
        .iter()
        .find(|field| NEEDED.contains(&field.as_str()))
    {
        return Err(Failure::Usage(format!(
            "--redact {needed}: no server can begin with an object without it"
        )));
    }
    let kept = recorder::kept(&arguments.redact)?;
    Target::check(&arguments.output)?;
    stage::block_on(async |stop| {
        tokio::select! {
            done = take(arguments, &kept) => done,
            () = stop.requested() => Err(Failure::Silent(INTERRUPTED)),
        }
    })
}

async fn take(arguments: &SnapshotArguments, kept: &Kept) -> Result<(), Failure> {
    let context = arguments.context.as_deref();
    let cluster = upstream::load(&arguments.kubeconfig, context, &Lending::Oneself).await;
    let cluster = cluster.map_err(unusable)?;
    let kubernetes = cluster.probe().await.map_err(|error| unanswered(&error))?;
    let mut requests = Requests {
        cluster,
        progress: io::stderr().is_terminal(),
    };
    let (known, mut left_out) = requests.discover().await?;
    let namespace = arguments.namespace.as_deref();
    let mut choice = known
        .choose(&arguments.resource, namespace)
        .map_err(Failure::Usage)?;
    if !arguments.resource.is_empty() {
        // What was not asked for is not missed.
        left_out.clear();
    }
    left_out.append(&mut choice.left_out);
    let mut taking = Unfinished(Some(Target::create(&arguments.output)?));
    let mut reading = Reading {
        requests: &mut requests,
        target: taking.target(),
        kept,
        redacted: &arguments.redact,
        kubernetes: kubernetes.unwrap_or_default(),
        namespace,
        version: None,
        definitions: None,
        listed: Vec::new(),
        left_out,
        objects: 0,
    };
    let done = reading.all(&choice).await;
    reading.requests.clear_progress();
    done?;
    let (listed, left_out) = (reading.listed, reading.left_out);
    let version = reading.version.unwrap_or_default();
    let end = End::new(listed, left_out);
    let target = taking.target();
    target.head(&end)?;
    target.finish()?;
    taking.0 = None;
    conclude(&arguments.output, &version, &end);
    Ok(())
}

/// A target that is removed unless it is complete.
struct Unfinished(Option<Target>);

impl Unfinished {
    fn target(&mut self) -> &mut Target {
        self.0.as_mut().expect("it is taken when it is complete")
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(target) = self.0.take() {
            target.remove();
        }
    }
}

fn conclude(path: &Path, version: &str, end: &End) {
    for left in &end.left_out {
        output::log(&printable(&format!("left out: {} ({})", left.resource, left.why)));
    }
    for listed in &end.resources {
        if let Some(newer) = &listed.resource_version {
            output::log(&printable(&format!(
                "{} is of version {newer}: the server no longer has {version} of it",
                listed.resource
            )));
        }
    }
    let path = quoted(&path.display().to_string());
    let counted = |count: u64, what| match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    };
    output::log(&printable(&format!(
        "wrote {path}: {} of {} at version {version}; values of Secrets are not in it; serve it: fake-apiserver serve --from {path}",
        counted(end.objects, "object"),
        counted(end.resources.len() as u64, "resource")
    )));
}

/// Requests to the cluster, one after the other.
struct Requests {
    cluster: Cluster,
    /// Whether standard error is a terminal.
    progress: bool,
}

/// A response.
struct Response {
    code: u16,
    after: Option<Duration>,
    body: Vec<u8>,
}

/// Why there is no response of use.
enum NoResponse {
    TooLarge,
    Lost(String),
    NoApiserver(String),
    NoCredentials(String),
}

/// What errors and pages of lists have in common.
#[derive(Deserialize)]
struct StatusBody {
    #[serde(default)]
    message: String,
}

#[derive(Deserialize)]
struct Page<'a> {
    #[serde(default)]
    metadata: PageMetadata,
    #[serde(borrow, default)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageMetadata {
    #[serde(default)]
    resource_version: String,
    #[serde(default, rename = "continue")]
    token: String,
}

#[derive(Deserialize)]
struct Groups {
    groups: Vec<Group>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Group {
    name: String,
    versions: Vec<GroupVersion>,
    preferred_version: Option<GroupVersion>,
}

#[derive(Deserialize, PartialEq, Eq, Clone)]
struct GroupVersion {
    version: String,
}

impl Requests {
    async fn get(&self, target: &str) -> Result<Response, NoResponse> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(
            USER_AGENT,
            HeaderValue::from_static(concat!(
                "fake-apiserver/",
                env!("CARGO_PKG_VERSION"),
                " (snapshot)"
            )),
        );
        let request = Outbound {
            method: Method::GET,
            target: target.to_owned(),
            headers,
            body: bytes::Bytes::new(),
            identity: Identity::Lent,
        };
        let response = self
            .cluster
            .send(request)
            .await
            .map_err(|failure| match failure {
                wire::Failure::NoCredentials(why) => NoResponse::NoCredentials(why),
                wire::Failure::Unreachable(why) | wire::Failure::Broken(why) => NoResponse::Lost(why),
            })?;
        let (head, mut pieces) = response.into_parts();
        let text = |name| {
            head.headers
                .get(name)
                .and_then(|value: &HeaderValue| value.to_str().ok())
        };
        let content_type = text(CONTENT_TYPE).unwrap_or("no content type");
        if head.status.is_success() && !content_type.starts_with("application/json") {
            return Err(NoResponse::NoApiserver(format!(
                "{} and {content_type}",
                head.status
            )));
        }
        let after = text(RETRY_AFTER)
            .and_then(|value| value.parse().ok())
            .map(Duration::from_secs);
        let mut body = Vec::new();
        while let Some(frame) = pieces.frame().await {
            let frame = frame.map_err(|error| NoResponse::Lost(error.to_string()))?;
            let Ok(piece) = frame.into_data() else { continue };
            if body.len() + piece.len() > PAGE_BYTES_MAX {
                return Err(NoResponse::TooLarge);
            }
            body.extend_from_slice(&piece);
        }
        Ok(Response {
            code: head.status.as_u16(),
            after,
            body,
        })
    }

    /// Reads a document of discovery; the error is a reason to leave it out.
    async fn document<T: DeserializeOwned>(&self, target: &str) -> Result<Result<T, String>, Failure> {
        let response = match self.get(target).await {
            Ok(response) => response,
            Err(NoResponse::TooLarge) => return Ok(Err("its discovery is too large".to_owned())),
            Err(NoResponse::Lost(why)) => return Err(self.unreachable(why)),
            Err(NoResponse::NoApiserver(answer)) => return Err(self.no_apiserver(answer)),
            Err(NoResponse::NoCredentials(why)) => return Err(no_credentials(why)),
        };
        match response.code {
            200 => Ok(serde_json::from_slice(&response.body)
                .map_err(|_| "its discovery is no JSON of an apiserver".to_owned())),
            401 => Err(self.expired()),
            403 => Ok(Err("its discovery is forbidden".to_owned())),
            code => Ok(Err(format!("its discovery fails with {code}"))),
        }
    }

    /// Reads which resources there are, and which cannot be known.
    async fn discover(&mut self) -> Result<(Known, Vec<LeftOut>), Failure> {
        let (mut known, mut left_out) = (Known::default(), Vec::new());
        let needed = |why: String| Failure::Refused(format!("the cluster cannot be read: {why}"));
        let core = self.document::<Discovered>("/api/v1").await?.map_err(needed)?;
        known.add("", "v1", core);
        let groups = self.document::<Groups>("/apis").await?.map_err(needed)?;
        for group in groups.groups {
            self.show_progress(|| format!("discovering {}", group.name));
            let mut versions = group.versions;
            versions.sort_by_key(|version| Some(version) != group.preferred_version.as_ref());
            for GroupVersion { version } in versions {
                let path = format!("/apis/{}/{version}", group.name);
                match self.document::<Discovered>(&path).await? {
                    Ok(discovered) => known.add(&group.name, &version, discovered),
                    Err(why) => left_out.push(LeftOut {
                        resource: format!("{}/{version}", group.name),
                        why,
                    }),
                }
            }
        }
        Ok((known, left_out))
    }

    fn show_progress(&self, line: impl FnOnce() -> String) {
        if self.progress {
            output::log_raw(&format!("\r\x1b[K{} …", printable(&line())));
        }
    }

    fn clear_progress(&self) {
        if self.progress {
            output::log_raw("\r\x1b[K");
        }
    }

    fn unreachable(&self, why: String) -> Failure {
        unanswered(&self.cluster.unreachable(why))
    }

    fn expired(&self) -> Failure {
        unanswered(&self.cluster.expired())
    }

    fn no_apiserver(&self, answer: String) -> Failure {
        Failure::NoServer(format!(
            "{} answered a request with {answer}: something in front of the apiserver answers; check the server of the kubeconfig",
            self.cluster.server()
        ))
    }
}

fn no_credentials(why: String) -> Failure {
    unanswered(&ProbeError::NoCredentials { why })
}

/// A snapshot in progress.
struct Reading<'a> {
    requests: &'a mut Requests,
    target: &'a mut Target,
    kept: &'a Kept,
    redacted: &'a [String],
    kubernetes: String,
    namespace: Option<&'a str>,
    /// Version of the first list.
    version: Option<String>,
    /// Definitions that there are; `None`: they cannot be read.
    definitions: Option<BTreeSet<String>>,
    listed: Vec<Listed>,
    left_out: Vec<LeftOut>,
    objects: u64,
}

impl Reading<'_> {
    async fn all(&mut self, choice: &Choice) -> Result<(), Failure> {
        for resource in &choice.resources {
            let name = resource.full_name();
            let is_defined = || self.definitions.as_ref().map(|known| known.contains(&name));
            let missing = match is_defined() {
                _ if !resource.is_custom() => None,
                Some(true) => None,
                Some(false) => {
                    Some("it has no definition: another server answers for it, with its own versions")
                }
                None => Some("its definition cannot be read"),
            };
            if let Some(why) = missing {
                self.leave_out(name, why.to_owned());
                continue;
            }
            let only = choice.definitions.as_ref().filter(|_| resource.is(DEFINITIONS));
            if let Some(why) = self.resource(resource, only).await? {
                self.leave_out(name, why);
            }
        }
        if self.version.is_some() {
            return Ok(());
        }
        let why: BTreeMap<&str, usize> = self.left_out.iter().fold(BTreeMap::new(), |mut counts, left| {
            *counts.entry(left.why.as_str()).or_default() += 1;
            counts
        });
        let why: Vec<String> = why
            .iter()
            .map(|(why, count)| format!("{count} × {why}"))
            .collect();
        Err(Failure::Refused(format!(
            "nothing can be read ({}): give the kubeconfig's user the right to list, or choose another context",
            why.join(", ")
        )))
    }

    fn leave_out(&mut self, resource: String, why: String) {
        self.left_out.push(LeftOut { resource, why });
    }

    /// Reads a resource. Returns why it is left out, if it is. `only`: names of objects to keep.
    async fn resource(
        &mut self,
        resource: &Resource,
        only: Option<&BTreeSet<String>>,
    ) -> Result<Option<String>, Failure> {
        let name = resource.full_name();
        let of_namespace = self.namespace.filter(|_| resource.is(("", "namespaces")));
        let selector = of_namespace.map(|namespace| format!("metadata.name={namespace}"));
        let path = resource.path(self.namespace);
        let mut listing = Listing::new(&path, selector.as_deref(), self.version.clone());
        let mark = self.target.begin(&name)?;
        let is_first = self.version.is_none();
        let (mut count, mut names) = (0, BTreeSet::new());
        loop {
            self.requests
                .show_progress(|| format!("{} objects, reading {name}", self.objects + count));
            let (body, refused) = match self.page(&listing.target()).await? {
                Ok(body) => (body, None),
                Err(answer) => (Vec::new(), Some(answer)),
            };
            let (answer, items) = refused.map_or_else(|| read(&body), |answer| (answer, Vec::new()));
            let step = listing.step(answer);
            let is_last = matches!(step, Step::Done(_));
            match step {
                Step::Next(version) | Step::Done(version) => {
                    if self.version.is_none() {
                        self.begin(&version)?;
                    }
                    count += self.write(resource, items, only, &mut names)?;
                    if is_last {
                        self.objects += count;
                        self.listed.push(Listed {
                            resource: name,
                            api_version: resource.api_version(),
                            kind: resource.kind.clone(),
                            objects: count,
                            all: self.namespace.is_none() && only.is_none(),
                            resource_version: Some(version)
                                .filter(|version| Some(version) != self.version.as_ref()),
                        });
                        if resource.is(DEFINITIONS) {
                            self.definitions = Some(names);
                        }
                        return Ok(None);
                    }
                }
                Step::Again(after) => wait(after).await,
                Step::Restart | Step::LeaveOut(_) => {
                    count = 0;
                    names.clear();
                    if is_first {
                        self.version = None;
                        self.target.start_over()?;
                    } else {
                        self.target.go_back(mark)?;
                    }
                    if let Step::LeaveOut(why) = step {
                        return Ok(Some(why));
                    }
                }
                Step::Fail(failing) => return Err(self.failed(&name, failing)),
            }
        }
    }

    /// Requests a page. Returns its body, or what came back instead.
    async fn page(&self, target: &str) -> Result<Result<Vec<u8>, Answer>, Failure> {
        let response = match self.requests.get(target).await {
            Ok(response) => response,
            Err(NoResponse::TooLarge) => return Ok(Err(Answer::TooLarge)),
            Err(NoResponse::Lost(why)) => return Ok(Err(Answer::Lost(why))),
            Err(NoResponse::NoApiserver(answer)) => return Err(self.requests.no_apiserver(answer)),
            Err(NoResponse::NoCredentials(why)) => return Err(no_credentials(why)),
        };
        if response.code == 200 {
            return Ok(Ok(response.body));
        }
        let status = serde_json::from_slice(&response.body);
        Ok(Err(Answer::Status {
            code: response.code,
            message: status
                .map(|status: StatusBody| status.message)
                .unwrap_or_default(),
            after: response.after,
        }))
    }

    /// Writes the header, with the version of the first list.
    fn begin(&mut self, version: &str) -> Result<(), Failure> {
        self.version = Some(version.to_owned());
        let taken_at = timestamp(serve::wall_clock());
        let redacted = self.redacted.to_vec();
        let header = Header::new(self.kubernetes.clone(), version.to_owned(), taken_at, redacted);
        self.target.head(&header)
    }

    /// Writes the objects of a page, and returns their number.
    fn write(
        &mut self,
        resource: &Resource,
        items: Vec<&RawValue>,
        only: Option<&BTreeSet<String>>,
        names: &mut BTreeSet<String>,
    ) -> Result<u64, Failure> {
        let mut count = 0;
        for item in items {
            let Ok(Value::Object(item)) = serde_json::from_str(item.get()) else {
                continue;
            };
            let mut object = typed(resource, item);
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            if only.is_some_and(|only| !only.contains(name)) {
                continue;
            }
            if resource.is(DEFINITIONS) {
                names.insert(name.to_owned());
            }
            if resource.is(("", "secrets")) {
                empty_secret(&mut object);
            }
            self.kept.redact(&mut object);
            self.target.object(&object)?;
            count += 1;
        }
        Ok(count)
    }

    fn failed(&self, name: &str, failing: Failing) -> Failure {
        match failing {
            Failing::Expired => self.requests.expired(),
            Failing::Lost(why) => self.requests.unreachable(why),
            Failing::NeverOneVersion => Failure::NoServer(format!(
                "the pages of {name} expire before all are read (410): read fewer objects by --resource or --namespace, or try \
                 again when the cluster is less busy"
            )),
            Failing::TooLarge => Failure::NoServer(format!(
                "{name} has an object of more than {} MiB: leave the resource out by --resource of the others",
                PAGE_BYTES_MAX >> 20
            )),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the edge waits as decided")]
async fn wait(time: Duration) {
    tokio::time::sleep(time).await;
}

/// Reads the body of a page, and returns its items.
fn read(body: &[u8]) -> (Answer, Vec<&RawValue>) {
    match serde_json::from_slice::<Page<'_>>(body) {
        Ok(page) => {
            let answer = Answer::Page {
                version: page.metadata.resource_version,
                token: page.metadata.token,
            };
            (answer, page.items.unwrap_or_default())
        }
        Err(error) => (
            Answer::Lost(format!("a list that is no JSON: {error}")),
            Vec::new(),
        ),
    }
}

/// Returns an item of a list with its type, which items of built-in kinds do not have.
fn typed(resource: &Resource, item: Map<String, Value>) -> Value {
    if item.contains_key("kind") && item.contains_key("apiVersion") {
        return Value::Object(item);
    }
    let mut object = Map::new();
    object.insert("kind".to_owned(), resource.kind.as_str().into());
    object.insert("apiVersion".to_owned(), resource.api_version().into());
    object.extend(item);
    Value::Object(object)
}
