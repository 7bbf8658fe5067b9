//! LIST of the reference client: page by page, discarded completely on failure.

use fake_apiserver::report::{Report, ReportedObject};
use fake_apiserver::scenario::ListSemantic;
use serde_json::Value;

use super::watch::now;
use super::wire::{collect, text};
use super::{Listing, Mistake, Phase, Run, newest_of};

impl Run {
    pub(super) async fn list(&mut self, mut listing: Listing) {
        let query = self.list_query(&listing);
        let body = match self.ask(query, true).await {
            Ok(body) => body,
            Err(trouble) => {
                self.surface(&trouble.body, trouble.code);
                let status: Value = serde_json::from_str(&trouble.body).unwrap_or_default();
                let offered = text(&status, "/metadata/continue");
                let is_later = listing.continue_token.is_some();
                let page =
                    usize::try_from(self.start.settings.page_size.unwrap_or(u32::MAX)).unwrap_or(usize::MAX);
                let is_late = is_later && listing.found.len() > page;
                if trouble.expired() && is_late && self.is(Mistake::StopsAtLateExpiry) {
                    let version = listing.resource_version.unwrap_or_default();
                    return self.publish(listing.found, version);
                }
                if self.is(Mistake::TrustsInconsistentTokens) && !offered.is_empty() {
                    self.phase = Phase::List(Listing {
                        continue_token: Some(offered),
                        resource_version: None,
                        ..listing
                    });
                } else if self.is(Mistake::ResendsDeadToken) {
                    self.phase = Phase::List(listing);
                } else {
                    self.abort(listing);
                }
                let is_ignored = is_later && self.is(Mistake::IgnoresRetryAfterOfPages);
                return self.back_off(trouble.retry_after.filter(|_| !is_ignored));
            }
        };
        let Some(list) = collect(body)
            .await
            .ok()
            .and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok())
            .filter(|list| self.is_our_list(list))
        else {
            self.surface("the answer is no list of this kind", None);
            self.abort(listing);
            if self.is(Mistake::SpinsOnPoison) {
                return;
            }
            return self.back_off(None);
        };
        let next = text(&list, "/metadata/continue");
        let items = list.get("items").and_then(Value::as_array).cloned();
        let items = items.unwrap_or_default();
        let is_last = next.is_empty() || (items.is_empty() && self.is(Mistake::StopsAtEmptyPage));
        if !is_last && self.is(Mistake::ReportsPageByPage) {
            self.reports.push_back(Report::Init);
            let objects = items
                .iter()
                .map(|object| Report::InitApply(self.reported(object)));
            let objects: Vec<Report> = objects.collect();
            self.reports.extend(objects);
        }
        listing.found.extend(items);
        let version = match listing.resource_version.take() {
            Some(first) if !self.is(Mistake::WatchesFromLastPage) => first,
            Some(_) | None => text(&list, "/metadata/resourceVersion"),
        };
        if is_last && version.is_empty() && !self.is(Mistake::AcceptsUnversionedLists) {
            self.surface("the list has no resourceVersion", None);
            self.abort(listing);
            return self.back_off(None);
        }
        if is_last {
            let believed = if self.seen_any && self.is(Mistake::TrustsExactLists) {
                self.resource_version.clone()
            } else {
                version
            };
            return self.publish(listing.found, believed);
        }
        if listing.continue_token.as_ref() == Some(&next) {
            self.surface("the list does not advance", None);
            self.abort(listing);
            return self.back_off(None);
        }
        if self.is(Mistake::SyncedAfterPageOne) {
            self.publish(listing.found.clone(), version.clone());
        }
        if self.is(Mistake::WatchesBeforeLastPage) {
            self.resource_version = version;
            self.phase = Phase::Open { initial: false };
            return;
        }
        self.phase = Phase::List(Listing {
            continue_token: Some(next),
            resource_version: Some(version),
            ..listing
        });
    }

    fn list_query(&self, listing: &Listing) -> Vec<(&'static str, String)> {
        let settings = &self.start.settings;
        let is_later = listing.continue_token.is_some();
        let mut query = self.selectors(is_later);
        let exactly = self.seen_any && self.is(Mistake::TrustsExactLists);
        if let Some(limit) = settings.page_size
            && listing.paged
            && !exactly
            && !(is_later && self.is(Mistake::ForgetsLimit))
        {
            query.push(("limit", limit.to_string()));
        }
        let from_cache = if self.seen_any {
            self.is(Mistake::RelistsFromZero)
        } else {
            settings.list_semantic == ListSemantic::Any
                && !(settings.page_size.is_some() && self.is(Mistake::PagesAtTheNewestVersion))
        };
        if let Some(token) = &listing.continue_token {
            query.push(("continue", token.clone()));
            if let Some(version) = &listing.resource_version
                && self.is(Mistake::PinsLaterPages)
            {
                query.push(("resourceVersion", version.clone()));
            }
        } else if exactly {
            query.push(("resourceVersion", self.resource_version.clone()));
            query.push(("resourceVersionMatch", "Exact".to_owned()));
        } else if from_cache {
            query.push(("resourceVersion", "0".to_owned()));
            if !self.is(Mistake::ListsWithoutMatch) {
                query.push(("resourceVersionMatch", "NotOlderThan".to_owned()));
            }
        }
        query
    }

    /// Aborts a list and starts again.
    fn abort(&mut self, listing: Listing) {
        if listing.continue_token.is_some() {
            self.aborted += 1;
            self.leftovers = listing.found;
        }
        self.start_over();
    }

    /// Reports a complete snapshot.
    pub(super) fn publish(&mut self, found: Vec<Value>, version: String) {
        let wanted = found.iter().filter(|object| self.is_wanted(object));
        let objects: Vec<ReportedObject> = wanted.map(|object| self.reported(object)).collect();
        if self.seen_any && self.is(Mistake::DropsDeletesOnRelist) {
            self.reports.extend(objects.into_iter().map(Report::Apply));
        } else if !(self.is(Mistake::LeaksInitialEvents) && self.streaming) {
            self.known = objects
                .iter()
                .map(|object| (object.key(), object.clone()))
                .collect();
            self.reports.push_back(Report::Init);
            self.reports.extend(objects.into_iter().map(Report::InitApply));
            self.reports.push_back(Report::InitDone);
        }
        self.reports.extend(self.late.take());
        let number = |version: &str| version.parse::<u64>().unwrap_or_default();
        if !(self.is(Mistake::KeepsHigherVersion) && number(&version) < number(&self.resource_version)) {
            self.resource_version = version;
        }
        if self.is(Mistake::ResumesFromItem)
            && let Some(newest) = newest_of(&found)
        {
            self.resource_version = newest.to_string();
        }
        self.seen_any = true;
        self.last_received = now();
        self.aborted = 0;
        self.starts = 0;
        self.phase = Phase::Open { initial: false };
    }
}
