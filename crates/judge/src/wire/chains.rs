//! Paged lists that may be under way: which continue tokens were given, and to how many of them (INV-22).
//!
//! Loops that list at one version are given the same token, and each may send it once more than it was refused: a retry
//! is no misuse.

use std::collections::VecDeque;

use super::position::{Version, hash};

/// Tokens remembered; of more, the oldest are forgotten.
const TOKENS_MAX: usize = 64;

/// The first page of a list, as far as later ones must agree with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct List {
    /// All parameters but those that belong to one page, hashed.
    parameters: u64,
    /// The same without `limit`.
    selection: u64,
    /// Versions of its pages that a watch may start from.
    pub(super) versions: Vec<Version>,
    /// A page that was asked for with another `limit` than the first.
    pub(super) other_limit: Option<u64>,
}

/// What a page request shows.
#[derive(Debug)]
pub(super) enum Page {
    /// It goes on with a list, or with one that nobody remembers.
    Of(Option<List>),
    /// No list explains it.
    Misused,
}

/// Tokens of lists under way.
#[derive(Debug)]
pub(super) struct Chains {
    tokens: VecDeque<Token>,
    /// Tokens were forgotten, or an answer whose content nobody knows may have held one.
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
    /// A list that begins with this request.
    pub(super) fn of(path: &str, query: &[(String, String)]) -> Self {
        let with = |left_out: &[&str]| {
            let mut parameters: Vec<&(String, String)> = query
                .iter()
                .filter(|(name, value)| !value.is_empty() && !left_out.contains(&name.as_str()))
                .collect();
            parameters.sort_unstable();
            hash(&format!("{path}{parameters:?}"))
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
    /// `forgot`: tokens may have been given that nobody remembers.
    pub(super) fn new(forgot: bool) -> Self {
        Self {
            tokens: VecDeque::new(),
            forgot,
        }
    }

    /// A page gave a token.
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

    /// A request brought a token back.
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
        // Lists with another `limit` come by the same token: the one that goes on is the one that agrees with the request.
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

    /// Tokens remembered.
    pub(super) fn held(&self) -> usize {
        self.tokens.len()
    }

    /// A token was refused for good.
    pub(super) fn refuse(&mut self, token: &str) {
        let token = Version::of(token);
        let mut holders = self.tokens.iter_mut();
        if let Some(known) = holders.find(|known| known.token == token && known.refused < known.given) {
            known.refused += 1;
        }
    }
}
