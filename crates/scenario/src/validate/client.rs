//! Validates the client configuration.

use apimachinery::kind::ApiResource;
use apimachinery::selector::{FieldSelector, LabelSelector};

use super::Validator;
use crate::problem::{Code, Problem};
use crate::read::At;
use crate::words::suggest;
use crate::{BackoffSettings, ClientMode, ClientSettings, Contract, InitialList, ListSemantic, raw};

impl Validator<'_> {
    pub(super) fn client(&mut self, client: &raw::Client, kind: &ApiResource) -> ClientSettings {
        let default = ClientSettings::default();
        let mode = match client.mode.as_ref().map(|mode| mode.value) {
            Some(raw::Mode::Watcher) => ClientMode::Watcher,
            Some(raw::Mode::Metadata) => ClientMode::Metadata,
            Some(raw::Mode::Object) => ClientMode::Object,
            None if client.object.is_some() => ClientMode::Object,
            None => ClientMode::Watcher,
        };
        match (&client.object, &client.mode) {
            (Some(object), Some(_)) if mode != ClientMode::Object => self.problem(
                Problem::new(
                    Code::Conflict,
                    object.span,
                    "only mode `object` watches one object",
                )
                .label("does not belong here")
                .hint("leave `object` out, or write `mode: object`"),
            ),
            (None, Some(mode_at)) if mode == ClientMode::Object => self.problem(
                Problem::new(
                    Code::MissingKey,
                    mode_at.span,
                    "mode `object` needs the object's name",
                )
                .label("which one?")
                .hint("add `object: <name>`"),
            ),
            (Some(_) | None, Some(_) | None) => {}
        }
        if let Some(object) = &client.object {
            self.object_name(&object.value, object.span);
        }
        self.selectable(client.fields.as_ref(), kind);
        ClientSettings {
            contract: self.contract(client, mode),
            resource_version: client
                .resource_version
                .as_ref()
                .map(|version| version.value.clone()),
            mode,
            object: client.object.as_ref().map(|object| object.value.clone()),
            labels: self.selector(client.labels.as_ref(), "label", |text| {
                LabelSelector::parse(text).err()
            }),
            fields: self.selector(client.fields.as_ref(), "field", |text| {
                FieldSelector::parse(text).err()
            }),
            timeout_s: self.timeout_s(client.timeout.as_ref()),
            list_semantic: client
                .list_semantic
                .as_ref()
                .map_or(default.list_semantic, |semantic| match semantic.value {
                    raw::Semantic::MostRecent => ListSemantic::MostRecent,
                    raw::Semantic::Any => ListSemantic::Any,
                }),
            initial_list: client
                .initial_list
                .as_ref()
                .map_or(default.initial_list, |first| match first.value {
                    raw::FirstSet::ListWatch => InitialList::ListWatch,
                    raw::FirstSet::StreamingList => InitialList::StreamingList,
                }),
            page_size: match &client.page_size {
                None => default.page_size,
                Some(size) => size.value.0.parse().ok(),
            },
            bookmarks: client
                .bookmarks
                .as_ref()
                .map_or(default.bookmarks, |bookmarks| bookmarks.value),
            idle_timeout_ms: self.positive_ms(client.idle_timeout.as_ref()),
            list_timeout_ms: self.positive_ms(client.list_timeout.as_ref()),
            staleness_probe_after_ms: self.probe_after_ms(client.staleness_probe_after.as_ref()),
            backoff: self.backoff(client.backoff.as_ref()),
            consumer_delay_ms: self
                .ms(client.consumer_delay.as_ref())
                .unwrap_or(default.consumer_delay_ms),
            consumer_delay_event: self.slow_event(client),
            gzip: client.gzip.as_ref().map_or(default.gzip, |gzip| gzip.value),
        }
    }

    fn contract(&mut self, client: &raw::Client, mode: ClientMode) -> Contract {
        let contract = match client.contract.as_ref().map(|contract| contract.value) {
            None | Some(raw::Contract::Informer) => Contract::Informer,
            Some(raw::Contract::Watch) => Contract::Watch,
            Some(raw::Contract::List) => Contract::List,
        };
        match (&client.resource_version, &client.contract, contract) {
            (Some(version), _, Contract::Informer | Contract::List) => self.problem(
                Problem::new(
                    Code::Conflict,
                    version.span,
                    "only the contract `watch` starts at a resourceVersion",
                )
                .label("does not belong here")
                .hint("leave it out, or write `contract: watch`"),
            ),
            (None, Some(at), Contract::Watch) => self.problem(
                Problem::new(
                    Code::MissingKey,
                    at.span,
                    "a watch needs a resourceVersion to start at",
                )
                .label("from which version?")
                .hint("add `resource_version: \"1002\"`"),
            ),
            (Some(_) | None, Some(_) | None, _) => {}
        }
        if let (Some(at), Contract::Watch | Contract::List, ClientMode::Metadata | ClientMode::Object) =
            (&client.mode, contract, mode)
        {
            self.problem(
                Problem::new(Code::Conflict, at.span, "only an informer has modes")
                    .label("does not belong here")
                    .hint("leave it out"),
            );
        }
        contract
    }

    fn selector(
        &mut self,
        selector: Option<&At<String>>,
        kind: &str,
        fault: impl Fn(&str) -> Option<String>,
    ) -> Option<String> {
        let selector = selector?;
        if let Some(fault) = fault(&selector.value) {
            self.problem(
                Problem::new(
                    Code::BadForm,
                    selector.span,
                    format!("this {kind} selector does not parse: {fault}"),
                )
                .label(format!("not a {kind} selector"))
                .hint(match kind {
                    "label" => "e.g. `app=x,tier in (a,b),!gone`",
                    _ => "e.g. `metadata.name=a`",
                }),
            );
        }
        Some(selector.value.clone())
    }

    fn slow_event(&mut self, client: &raw::Client) -> Option<u32> {
        let event = client.consumer_delay_event.as_ref()?;
        if client.consumer_delay.is_none() {
            self.problem(
                Problem::new(
                    Code::Conflict,
                    event.span,
                    "`consumer_delay_event` without `consumer_delay` delays nothing",
                )
                .label("for how long?")
                .hint("add `consumer_delay: 30s`"),
            );
        }
        u32::try_from(event.value).ok()
    }

    /// Validates a field selector: each kind supports only some fields; others fail with 400.
    fn selectable(&mut self, fields: Option<&At<String>>, kind: &ApiResource) {
        let Some(fields) = fields else { return };
        let refusal = FieldSelector::parse(&fields.value).map(|parsed| parsed.check(kind).err());
        if let Ok(Some(refusal)) = refusal {
            let labels = kind.selectable.iter().map(|field| field.label);
            let known: Vec<&str> = ["metadata.name", "metadata.namespace"]
                .into_iter()
                .chain(labels)
                .collect();
            self.problem(
                Problem::new(
                    Code::NotOneOf,
                    fields.span,
                    format!("{} cannot be selected so: {refusal}", kind.plural),
                )
                .label("every request would be refused")
                .hint(suggest("", known)),
            );
        }
    }

    fn timeout_s(&mut self, timeout: Option<&At<raw::Duration>>) -> Option<u32> {
        let ms = self.positive_ms(timeout)?;
        let seconds = u32::try_from(ms / 1000).ok().filter(|_| ms % 1000 == 0);
        if let (None, Some(timeout)) = (seconds, timeout) {
            self.problem(
                Problem::new(
                    Code::BadForm,
                    timeout.span,
                    "`timeoutSeconds` counts whole seconds",
                )
                .label("not whole seconds")
                .hint("e.g. `timeout: 290s`"),
            );
        }
        seconds
    }

    fn probe_after_ms(&mut self, time: Option<&At<raw::ProbeAfter>>) -> Option<Option<u64>> {
        let time = time?;
        if time.value.0.0 == "none" {
            return Some(None);
        }
        let time = At {
            value: time.value.0.clone(),
            span: time.span,
        };
        self.positive_ms(Some(&time)).map(Some)
    }

    fn backoff(&mut self, backoff: Option<&At<raw::Backoff>>) -> BackoffSettings {
        let Some(At { value: backoff, .. }) = backoff else {
            return BackoffSettings::default();
        };
        BackoffSettings {
            initial_ms: self.positive_ms(backoff.initial.as_ref()),
            max_ms: self.positive_ms(backoff.max.as_ref()),
            factor: backoff.factor.as_ref().map(|factor| factor.value),
            reset_after_ms: self.positive_ms(backoff.reset_after.as_ref()),
            retry_after_max_ms: self.positive_ms(backoff.retry_after_max.as_ref()),
        }
    }
}
