//! Paged lists in progress: which continue tokens were sent, and to how many of them (INV-22).
//!
//! Loops that list at one version receive the same token, and each may send it once more than it was rejected: a
//! retry is allowed.

use std::collections::VecDeque;

use super::position::{Version, hash};

/// Maximum number of tokens; the oldest are dropped.
const TOKENS_MAX: usize = 64;

/// The first page of a list, as far as later pages must agree with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct List {
    /// Hash of all parameters except those of a single page.
    parameters: u64,
    /// The same without `limit`.
    selection: u64,
    /// Versions of its pages that a watch may start from.
    pub(super) versions: Vec<Version>,
    /// A page that was requested with another `limit` than the first.
    pub(super) other_limit: Option<u64>,
}

/// Result of a page request.
#[derive(Debug)]
pub(super) enum Page {
    /// It continues a list; `None`: one that was forgotten.
    Of(Option<List>),
    /// No list explains it.
    Misused,
}

/// Tokens of lists in progress.
#[derive(Debug)]
pub(super) struct Chains {
    tokens: VecDeque<Token>,
    /// Tokens were dropped, or a response of unknown content may have contained one.
    pub(super) forgot: bool,
}

#[derive(Debug)]
struct Token {
    token: Version,
    list: List,
    given: u64,
    refused: u64,
}

impl List {
    /// Creates the list that starts with this request.
    pub(super) fn of(path: &str, query: &[(String, String)]) -> Self {
        let with = |left_out: &[&str]| {
            let mut parameters: Vec<&(String, String)> = query
                .iter()
                .filter(|(name, value)| !value.is_empty() && !left_out.contains(&name.as_str()))
                .collect();
            parameters.sort_unstable();
            hash(&[path, &format!("{parameters:?}")])
        };
        Self {
            parameters: with(&["continue", "resourceVersion", "resourceVersionMatch"]),
            selection: with(&["continue", "resourceVersion", "resourceVersionMatch", "limit"]),
            versions: Vec::new(),
            other_limit: None,
        }
    }

    /// Adds a page: a watch may start from the first page's version, or from a lower one.
    pub(super) fn add(&mut self, version: &str) {
        if version.is_empty() {
            return;
        }
        let version = Version::of(version);
        match self.versions.first() {
            None => self.versions.push(version),
            Some(first) if version.is_number() && version < *first => self.versions.push(version),
            Some(_) => {}
        }
    }
}

impl Chains {
    /// Creates an empty set of tokens. `forgot`: tokens may have been sent before.
    pub(super) fn new(forgot: bool) -> Self {
        Self {
            tokens: VecDeque::new(),
            forgot,
        }
    }

    /// Records a token sent with a page.
    pub(super) fn give(&mut self, token: &str, list: &List) {
        let token = Version::of(token);
        let known = self
            .tokens
            .iter_mut()
            .find(|known| known.token == token && known.list == *list);
        if let Some(known) = known {
            known.given += 1;
            return;
        }
        if self.tokens.len() == TOKENS_MAX {
            self.tokens.pop_front();
            self.forgot = true;
        }
        self.tokens.push_back(Token {
            token,
            list: list.clone(),
            given: 1,
            refused: 0,
        });
    }

    /// Processes a request with a token.
    pub(super) fn ask(&self, token: &str, path: &str, query: &[(String, String)], seq: u64) -> Page {
        let token = Version::of(token);
        let mut holders = self
            .tokens
            .iter()
            .filter(|known| known.token == token && known.refused < known.given)
            .peekable();
        if holders.peek().is_none() {
            return if self.forgot {
                Page::Of(None)
            } else {
                Page::Misused
            };
        }
        let asked = List::of(path, query);
        let alike: Vec<&List> = holders
            .map(|known| &known.list)
            .filter(|list| list.selection == asked.selection)
            .collect();
        // Lists with another `limit` may have received the same token: the request continues the list that it agrees
        // with.
        let same = alike.iter().find(|list| list.parameters == asked.parameters);
        let Some(goes_on) = same.or(alike.first()) else {
            return if self.forgot {
                Page::Of(None)
            } else {
                Page::Misused
            };
        };
        let mut list = (*goes_on).clone();
        if same.is_none() && !self.forgot {
            list.other_limit = Some(seq);
        }
        Page::Of(Some(list))
    }

    /// Returns the list that a token belongs to.
    pub(super) fn list_of(&self, token: &str) -> Option<List> {
        let token = Version::of(token);
        let known = self.tokens.iter().find(|known| known.token == token)?;
        Some(known.list.clone())
    }

    /// Returns the number of tokens.
    pub(super) fn held(&self) -> usize {
        self.tokens.len()
    }

    /// Records that a token was rejected permanently.
    pub(super) fn refuse(&mut self, token: &str) {
        let token = Version::of(token);
        let mut holders = self.tokens.iter_mut();
        if let Some(known) = holders.find(|known| known.token == token && known.refused < known.given) {
            known.refused += 1;
        }
    }
}
