//! Validates a file and converts it to a [`Scenario`], or collects all semantic errors.
//!
//! The structure was checked before: keys and types are correct here.

mod actions;
mod answers;
mod client;
mod definitions;
mod events;
mod expect;
mod fit;
mod names;
mod objects;
mod reach;
mod rules;
mod sent;
mod steps;
mod world;

use std::path::Path;

use apimachinery::kind::KindRef;

use self::names::Names;
use self::reach::Reach;
pub(crate) use self::rules::{validate_rule, validate_wait};
use self::world::World;
use super::kinds::Kinds;
use super::lines::Lines;
use super::problem::{Code, Problem};
use super::read::At;
use super::span::Span;
use super::words::{duration_ms, is_kebab_case, suggest};
use super::{Covered, Place, Scenario, ServerSettings, Target, Transport, catalogue, raw};

/// Converts `file` to a scenario. If `problems` is not empty, the scenario must not be used.
pub(crate) fn validate(id: &str, path: &Path, text: &str, file: raw::File) -> (Scenario, Vec<Problem>) {
    let mut v = Validator {
        lines: Lines::new(text),
        problems: Vec::new(),
        names: Names::default(),
        transport: Transport::default(),
        has_replicas: false,
        kinds: Kinds::default(),
        optional: None,
    };
    v.id(id);
    match file.scenario.map(|version| version.value) {
        // There is only one version; another one would select its rules here.
        Some(raw::LanguageVersion::V1) | None => {}
    }
    let title = v.prose(file.title.as_ref(), "title");
    let why = v.prose(file.why.as_ref(), "why");
    let covers = v.covers(file.covers.as_ref());
    let refs = v.refs(file.refs.unwrap_or_default());
    let tags = v.tags(file.tags.unwrap_or_default());
    v.definitions(file.objects.as_deref().unwrap_or_default());
    let (target, kind) = v.target(file.target);
    let server = file.server.map(|server| v.server(&server)).unwrap_or_default();
    let client = file
        .client
        .map(|client| v.client(&client, &kind))
        .unwrap_or_default();

    v.names.collect(&file.objects, &file.steps, &file.expect);
    let mut world = World::new(&target, kind.namespaced);
    let mut objects = Vec::new();
    for object in file.objects.unwrap_or_default() {
        objects.extend(v.manifests(&mut world, object));
    }
    let mut reach = Reach::new(&client, world.count_of_target());
    let mut steps = Vec::new();
    for step in file.steps.unwrap_or_default() {
        steps.push(v.step(&mut world, &mut reach, &covers, step));
    }
    v.last_step_is_required();
    v.names.steps_are_over();
    let expect = v.expect(&world, &covers, file.expect.unwrap_or_default());
    let scenario = Scenario {
        id: id.to_owned(),
        path: path.to_owned(),
        title,
        why,
        covers,
        provoked_by: file.provoked_by.map(|provoker| provoker.value),
        tags,
        refs,
        target,
        server,
        client,
        objects,
        steps,
        expect,
    };
    if v.problems.iter().any(|problem| problem.code == Code::UnknownKind) {
        // The kind of the objects determines everything else about them.
        v.problems
            .retain(|problem| !problem.code.depends_on_other_lines());
    }
    (scenario, v.problems)
}

/// State shared by the parts of validation: position and errors found.
struct Validator<'t> {
    lines: Lines<'t>,
    problems: Vec<Problem>,
    names: Names,
    /// The server's transport: some keys require TLS or HTTP/2.
    transport: Transport,
    /// Whether the server has two replicas.
    has_replicas: bool,
    /// Available kinds, including those defined by the file.
    kinds: Kinds,
    /// Position of `optional` in the current step.
    optional: Option<Span>,
}

impl Validator<'_> {
    fn place(&self, span: Span) -> Place {
        self.lines.place(span.start)
    }

    fn problem(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    fn id(&mut self, id: &str) {
        if id.split('/').all(is_kebab_case) {
            return;
        }
        self.problem(
            Problem::new(
                Code::BadId,
                Span::default(),
                format!("`{id}` cannot be a scenario's id"),
            )
            .label("the id is the file's path below the scenarios folder")
            .hint("name the file `<group>/<claim>.yaml`, both of lower-case words joined by `-`"),
        );
    }

    fn prose(&mut self, text: Option<&At<String>>, key: &str) -> String {
        let Some(text) = text else { return String::new() };
        if text.value.trim().is_empty() {
            self.problem(
                Problem::new(Code::Empty, text.span, format!("`{key}` is empty"))
                    .label("a sentence belongs here"),
            );
        }
        text.value.trim().to_owned()
    }

    fn covers(&mut self, covers: Option<&At<Vec<At<String>>>>) -> Vec<Covered> {
        let Some(covers) = covers else { return Vec::new() };
        if covers.value.is_empty() {
            self.problem(
                Problem::new(Code::Empty, covers.span, "`covers` names no requirement")
                    .label("an id such as `PAGE-05` belongs here")
                    .hint("requirements/catalogue.yaml lists them; a scenario that covers none cannot fail anybody"),
            );
        }
        let mut covered: Vec<Covered> = Vec::new();
        for id in &covers.value {
            if catalogue::requirement(&id.value).is_none() {
                let known = catalogue::requirements()
                    .iter()
                    .map(|requirement| requirement.id.as_str());
                let hint = match super::words::nearest(&id.value, known) {
                    Some(meant) => {
                        format!("did you mean `{meant}`? requirements/catalogue.yaml lists them all")
                    }
                    None => String::from("requirements/catalogue.yaml lists them all"),
                };
                self.problem(
                    Problem::new(
                        Code::UnknownRequirement,
                        id.span,
                        format!("there is no requirement `{}`", id.value),
                    )
                    .label("unknown id")
                    .hint(hint),
                );
            } else if covered.iter().any(|earlier| earlier.id == id.value) {
                self.repeated(id.span, &format!("`{}` is covered twice", id.value));
            }
            covered.push(Covered {
                id: id.value.clone(),
                at: self.place(id.span),
            });
        }
        covered
    }

    fn repeated(&mut self, span: Span, message: &str) {
        self.problem(
            Problem::new(Code::Repeated, span, message)
                .label("the second time")
                .hint("leave one of them out"),
        );
    }

    fn tags(&mut self, tags: Vec<At<String>>) -> Vec<String> {
        for tag in &tags {
            if !is_kebab_case(&tag.value) {
                self.problem(
                    Problem::new(
                        Code::BadForm,
                        tag.span,
                        format!("`{}` cannot be a tag", tag.value),
                    )
                    .label("not in kebab-case")
                    .hint("lower-case words joined by `-`"),
                );
            }
        }
        tags.into_iter().map(|tag| tag.value).collect()
    }

    fn refs(&mut self, refs: Vec<At<String>>) -> Vec<String> {
        for reference in &refs {
            let text = &reference.value;
            let url = text.starts_with("https://") || text.starts_with("http://");
            let issue = text.split_once('#').is_some_and(|(repo, number)| {
                repo.split('/').count() == 2
                    && !number.is_empty()
                    && number.bytes().all(|b| b.is_ascii_digit())
            });
            if (!url && !issue) || text.contains(char::is_whitespace) {
                self.problem(
                    Problem::new(Code::BadForm, reference.span, format!("`{text}` is no reference"))
                        .label("a URL or an issue belongs here")
                        .hint("write `https://…` or `owner/repo#number`"),
                );
            }
        }
        refs.into_iter().map(|reference| reference.value).collect()
    }

    fn target(&mut self, target: Option<At<super::read::First<raw::Target>>>) -> (Target, KindRef) {
        let target = target.map(|target| target.value.0);
        let resource = target.as_ref().and_then(|target| target.resource.as_ref());
        let info = match resource {
            None => None,
            Some(resource) => self.resource(resource),
        };
        let info = info.unwrap_or_else(|| self.kinds.all()[0].clone());
        let namespace = match target.as_ref().and_then(|target| target.namespace.as_ref()) {
            Some(namespace) if !info.namespaced => {
                self.problem(
                    Problem::new(
                        Code::Conflict,
                        namespace.span,
                        format!("{} live in no namespace", info.plural),
                    )
                    .label("does not belong here")
                    .hint("leave `namespace` out"),
                );
                None
            }
            Some(namespace) if namespace.value == "all" => None,
            Some(namespace) => Some(self.namespace(namespace)),
            None if info.namespaced => Some(String::from("default")),
            None => None,
        };
        let target = Target {
            group: info.group.to_string(),
            version: info.version.to_string(),
            plural: info.plural.to_string(),
            kind: info.kind.to_string(),
            namespace,
        };
        (target, info)
    }

    /// Returns the kind of a resource name.
    fn resource(&mut self, resource: &At<String>) -> Option<KindRef> {
        let known = self.kinds.by_resource(&resource.value);
        if known.is_none() {
            let resources: Vec<String> = self.kinds.all().iter().map(|kind| kind.qualified()).collect();
            let mut hint = suggest(&resource.value, resources.iter().map(String::as_str));
            if resource.value.contains('.') {
                hint.push_str(" (a custom resource needs its CustomResourceDefinition under `objects:`)");
            }
            self.problem(
                Problem::new(
                    Code::UnknownKind,
                    resource.span,
                    format!("the fake serves no `{}`", resource.value),
                )
                .label("unknown resource")
                .hint(hint),
            );
        }
        known
    }

    fn namespace(&mut self, namespace: &At<String>) -> String {
        if !apimachinery::names::is_label(&namespace.value) {
            self.problem(
                Problem::new(
                    Code::BadForm,
                    namespace.span,
                    format!("`{}` cannot be a namespace", namespace.value),
                )
                .label("not a DNS label")
                .hint("lower-case letters, digits and `-`, at most 63 of them"),
            );
        }
        namespace.value.clone()
    }

    fn server(&mut self, server: &raw::Server) -> ServerSettings {
        let default = ServerSettings::default();
        self.transport(server);
        self.has_replicas = server
            .replicas
            .as_ref()
            .is_some_and(|replicas| replicas.value > 1);
        ServerSettings {
            version: server
                .version
                .as_ref()
                .map_or(default.version, |version| version.value.0),
            epoch_seconds: default.epoch_seconds,
            revision: server
                .revision
                .as_ref()
                .map_or(default.revision, |revision| revision.value),
            watch_cache_capacity: server
                .watch_cache_capacity
                .as_ref()
                .map_or(default.watch_cache_capacity, |capacity| {
                    usize::try_from(capacity.value).unwrap_or(usize::MAX)
                }),
            bookmark_interval_ms: self
                .positive_ms(server.bookmark_interval.as_ref())
                .unwrap_or(default.bookmark_interval_ms),
            progress_notify: default.progress_notify,
            admission: default.admission,
            streaming_lists: server.streaming_lists.as_ref().map(|streams| streams.value),
            rejected_streams_count: default.rejected_streams_count,
            transport: self.transport,
            max_concurrent_streams: self.streams(server).unwrap_or(default.max_concurrent_streams),
            replicas: server
                .replicas
                .as_ref()
                .and_then(|replicas| u32::try_from(replicas.value).ok())
                .unwrap_or(default.replicas),
        }
    }

    fn transport(&mut self, server: &raw::Server) {
        self.transport = server
            .transport
            .as_ref()
            .map_or(Transport::default(), |transport| match transport.value {
                raw::Transport::Http1 => Transport::Http1,
                raw::Transport::TlsHttp1 => Transport::TlsHttp1,
                raw::Transport::TlsH2 => Transport::TlsHttp2,
            });
    }

    fn streams(&mut self, server: &raw::Server) -> Option<u32> {
        let streams = server.max_concurrent_streams.as_ref()?;
        self.needs_http2("max_concurrent_streams", streams.span);
        u32::try_from(streams.value).ok()
    }

    /// Reports an error unless the transport is HTTP/2.
    fn needs_http2(&mut self, word: &str, span: Span) {
        if self.transport != Transport::TlsHttp2 {
            self.problem(
                Problem::new(
                    Code::Misplaced,
                    span,
                    format!("`{word}` is a word of HTTP/2, and this server speaks HTTP/1.1"),
                )
                .label("nobody would see it")
                .hint("`server: {transport: tls_h2}`"),
            );
        }
    }

    /// Reports an error unless the transport uses TLS.
    fn needs_tls(&mut self, word: &str, span: Span) {
        if !self.transport.is_tls() {
            self.problem(
                Problem::new(
                    Code::Misplaced,
                    span,
                    format!("`{word}` is about TLS, and this server speaks without"),
                )
                .label("the same as `fin` here")
                .hint("`server: {transport: tls_http1}`, or `tls_h2`"),
            );
        }
    }

    /// Converts a duration to milliseconds.
    fn ms(&mut self, duration: Option<&At<raw::Duration>>) -> Option<u64> {
        let duration = duration?;
        // At most a year: durations are added up, and no scenario is longer.
        let ms = duration_ms(&duration.value.0).filter(|ms| *ms <= 366 * 24 * 3_600_000);
        if ms.is_none() {
            self.problem(
                Problem::new(
                    Code::BadForm,
                    duration.span,
                    format!("`{}` is not a time", duration.value.0),
                )
                .label("a time belongs here")
                .hint("a whole number and `ms`, `s`, `m` or `h`, at most a year: `250ms`, `5s`"),
            );
        }
        ms
    }

    /// Converts a positive duration to milliseconds.
    fn positive_ms(&mut self, duration: Option<&At<raw::Duration>>) -> Option<u64> {
        let ms = self.ms(duration)?;
        if let (0, Some(duration)) = (ms, duration) {
            self.problem(
                Problem::new(Code::OutOfRange, duration.span, "this time cannot be 0")
                    .label("no time at all")
                    .hint("leave the key out, or give it a time such as `100ms`"),
            );
        }
        Some(ms)
    }
}
