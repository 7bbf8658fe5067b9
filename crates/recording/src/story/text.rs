//! The text of the scenario, with comments on what is not known.

use std::fmt::Write as _;
use std::time::Duration;

use apimachinery::Version;
use apimachinery::kind::qualified;
use scenario::ServerSettings;
use scenario::raw::{
    ActionKey, At, Client, Expectations, File, First, FirstSet, LanguageVersion, Mode, PageSize, Semantic,
    Server, ServerVersion, Target, Transport,
};
use trace::fault::Ending;
use trace::record::Verb;

use super::exchange::{Exchange, Kind};
use super::{Draft, Options, Story};
use crate::file::Origin;
use crate::steps::{BOOKMARK_INTERVAL, at, time};

/// Longest line of a comment.
const COLUMNS: usize = 118;

/// Least time that a scenario goes on after its last step, for the client to do what it did.
const SETTLE: Duration = Duration::from_secs(8);

/// `limit` of a client that sets none.
const DEFAULT_LIMIT: &str = "500";

impl Story<'_> {
    /// Returns the scenario.
    pub(super) fn draft(mut self, options: &Options) -> Draft {
        let unknown = self.unknown(options);
        let mut text = String::new();
        comment(&mut text, &self.source(options));
        if !unknown.is_empty() {
            comment(&mut text, "What the recording does not have:");
            for line in &unknown {
                comment(&mut text, &format!("* {line}"));
            }
        }
        let file = self.file(options);
        // Writing to a String cannot fail.
        let _ = write!(text, "{file}");
        Draft { text, unknown }
    }

    fn file(&self, options: &Options) -> File {
        let violation = self.chosen.violation.as_ref();
        let requirements = violation.map(|violation| &violation.found.requirements);
        let collection = &self.chosen.collection;
        let namespace = match collection.namespace.as_str() {
            "" => "all",
            namespace => namespace,
        };
        let target = Target {
            resource: at(qualified(&collection.plural, &collection.group)),
            namespace: self.kind.namespaced.then(|| namespace.to_owned().into()),
        };
        File {
            scenario: at(LanguageVersion::V1),
            title: at(self.title()),
            why: violation.and_then(|violation| at(violation.found.sentence.as_str())),
            covers: requirements.filter(|ids| !ids.is_empty()).map(|ids| {
                ids.iter()
                    .map(|id| At::from(id.to_string()))
                    .collect::<Vec<_>>()
                    .into()
            }),
            target: at(First(target)),
            server: Some(self.server()).filter(|server| *server != Server::default()),
            client: Some(self.client()).filter(|client| *client != Client::default()),
            objects: self.steps.file_objects(),
            steps: self.steps.file_steps(),
            expect: violation.map(|violation| {
                // The client needs the time to do it again.
                let left = Duration::from_millis(violation.at_ms).saturating_sub(self.steps.ended_at());
                let left = Duration::from_secs(left.as_secs() + SETTLE.as_secs());
                Expectations {
                    settle: at(time(left.min(options.longest_wait.max(SETTLE)))),
                    ..Expectations::default()
                }
            }),
            ..File::default()
        }
    }

    fn source(&self, options: &Options) -> String {
        let header = self.recording.header.as_ref();
        let by = header.map(|header| {
            let scenario = header
                .scenario
                .as_ref()
                .map(|id| format!(" {id}"))
                .unwrap_or_default();
            let kubernetes = match header.kubernetes.as_str() {
                "" => String::new(),
                version => format!(", Kubernetes {version}"),
            };
            format!(" ({} {}{scenario}{kubernetes})", header.program, header.command)
        });
        let client = self
            .chosen
            .agent
            .as_ref()
            .map(|agent| format!(", client {agent}"));
        let around = self.chosen.violation.as_ref().map(|violation| {
            format!(
                ", up to {} at {}",
                violation.found.check,
                trace::record::line::time(Duration::from_millis(violation.at_ms))
            )
        });
        format!(
            "Made of {}{}: {}{}{}.",
            options.source,
            by.unwrap_or_default(),
            self.chosen.collection,
            client.unwrap_or_default(),
            around.unwrap_or_default()
        )
    }

    fn title(&self) -> String {
        match &self.chosen.violation {
            Some(violation) => format!(
                "The client keeps {} after what was recorded",
                violation.found.check
            ),
            None => format!("What was recorded of {}", self.chosen.collection),
        }
    }

    /// Returns what the recording does not have.
    fn unknown(&mut self, options: &Options) -> Vec<String> {
        let mut unknown = std::mem::take(&mut self.unknown);
        let header = self.recording.header.as_ref();
        let has_content = header.is_some_and(|header| header.content);
        let is_secret = self.chosen.collection.plural == "secrets";
        if !has_content || is_secret {
            unknown.insert(
                "content of objects: each has its name, and an annotation with the recorded version"
                    .to_owned(),
            );
        }
        if let Some(header) = header.filter(|header| !header.redacted.is_empty()) {
            unknown.insert(format!("redacted fields: {}", header.redacted.join(", ")));
        }
        if self.own_writes > 0 {
            unknown.insert(format!(
                "the client's own writes ({}): the client makes them again",
                self.own_writes
            ));
        }
        if self.left_out > 0 {
            unknown.insert(format!("{} objects that never changed: left out", self.left_out));
        }
        if self.steps.shortened > 0 {
            let longest = time(options.longest_wait).0;
            unknown.insert(format!(
                "{} waits longer than {longest}: shortened (--longest-wait)",
                self.steps.shortened
            ));
        }
        if self.raw_lines > 0 {
            unknown.insert(format!(
                "the bytes of {} lines that are no events (--record-content keeps them)",
                self.raw_lines
            ));
        }
        if self.recording.missing > 0 {
            unknown.insert(format!(
                "{} records, before the first or in between",
                self.recording.missing
            ));
        }
        if let Some(bytes) = self.recording.cut {
            unknown.insert(format!(
                "the rest of the last line, which ends after {bytes} bytes"
            ));
        }
        if self.kind.is_custom {
            unknown.insert("the definition of the resource: this one accepts every object".to_owned());
        }
        if self.origin == Origin::Upstream {
            unknown
                .insert("writes to other resources: versions count the writes of this scenario".to_owned());
        }
        unknown.extend(self.recording.blind.iter().cloned());
        unknown.into_iter().collect()
    }

    /// Settings that make versions those of the recording, and that the steps need.
    fn server(&self) -> Server {
        let before = self.base.saturating_sub(self.steps.objects() as u64);
        let endings: Vec<Ending> = self.steps.actions().filter_map(ActionKey::ending).collect();
        let is_http2 = |ending: &Ending| matches!(ending, Ending::RstStream(_) | Ending::Goaway(_));
        let has_goaway = self.steps.actions().any(|action| action.word() == "goaway");
        let transport = if has_goaway || endings.iter().any(is_http2) {
            Some(Transport::TlsH2)
        } else {
            endings
                .contains(&Ending::NoCloseNotify)
                .then_some(Transport::TlsHttp1)
        };
        let header = self.recording.header.as_ref();
        let minor = header.and_then(|header| {
            let release = header.kubernetes.trim_start_matches('v');
            let minor: Vec<&str> = release.split('.').take(2).collect();
            minor.join(".").parse::<Version>().ok()
        });
        Server {
            version: minor
                .filter(|minor| *minor != Version::NEWEST)
                .map(|minor| ServerVersion(minor).into()),
            revision: Some(before)
                .filter(|before| *before > 0 && *before != ServerSettings::default().revision)
                .map(At::from),
            bookmark_interval: self.steps.has_bookmarks.then(|| time(BOOKMARK_INTERVAL).into()),
            transport: transport.map(At::from),
            replicas: self
                .steps
                .actions()
                .any(|action| action.replica().is_some())
                .then(|| 2.into()),
            ..Server::default()
        }
    }

    /// Settings of the client that its requests show.
    fn client(&self) -> Client {
        let collection = &self.chosen.collection;
        let selector = |text: &String| Some(text.clone()).filter(|text| !text.is_empty()).map(At::from);
        let first = |kind| self.exchanges.iter().find(|exchange| exchange.kind == kind);
        let (list, watch) = (first(Kind::List), first(Kind::Watch));
        let limit = list.map(|list| list.read.param("limit"));
        let page_size = match limit {
            None | Some(Some(DEFAULT_LIMIT)) => None,
            Some(Some(limit)) => limit.parse::<u32>().ok().map(|limit| limit.to_string()),
            Some(None) => Some("none".to_owned()),
        };
        let is_any = list.is_some_and(|list| list.read.param("resourceVersion") == Some("0"));
        let is_streaming = watch.is_some_and(|watch| watch.read.verb == Verb::WatchList);
        let bookmarks = watch.map(|watch| watch.read.param("allowWatchBookmarks"));
        let has_none = bookmarks.is_some_and(|asked| !matches!(asked, Some("true" | "1")));
        let is_metadata = |exchange: &Exchange<'_>| {
            exchange
                .accept
                .is_some_and(|accept| accept.contains("as=PartialObjectMetadata"))
        };
        Client {
            mode: list
                .or(watch)
                .is_some_and(is_metadata)
                .then(|| Mode::Metadata.into()),
            labels: selector(&collection.labels),
            fields: selector(&collection.fields),
            list_semantic: is_any.then(|| Semantic::Any.into()),
            initial_list: is_streaming.then(|| FirstSet::StreamingList.into()),
            page_size: page_size.map(|size| PageSize(size).into()),
            bookmarks: has_none.then(|| false.into()),
            ..Client::default()
        }
    }
}

/// Adds lines of a comment. What a client or an audit log wrote begins no line.
fn comment(text: &mut String, words: &str) {
    let words = trace::record::line::printable(words);
    let mut line = String::from("#");
    for word in words.split(' ') {
        if line.chars().count() + 1 + word.chars().count() > COLUMNS && line != "#" {
            text.push_str(&line);
            text.push('\n');
            line = "#  ".to_owned();
        }
        line.push(' ');
        line.push_str(word);
    }
    text.push_str(&line);
    text.push('\n');
}
