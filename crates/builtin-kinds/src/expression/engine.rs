//! Compiled patterns. It must not know expressions, nor what a search may cost.
//!
//! Most searches compute the states that they need of a deterministic automaton. One that would need too many gives up; then all
//! states of the pattern are visited at each byte.

use std::sync::{Mutex, PoisonError};

use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson::pikevm::PikeVM;
use regex_automata::nfa::thompson::{self, NFA};
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input};

use crate::crd::patterns;

/// Bytes for the states that are computed while a pattern is searched.
const CACHE_BYTES: usize = 512 << 10;

/// How often these may be forgotten, and bytes that are searched with each of them, until a search is one of all states.
const FORGOTTEN_MAX: usize = 2;
const BYTES_PER_STATE: usize = 10;

/// A pattern that may be compiled.
#[derive(Debug)]
pub(super) enum Compiled {
    Ready(Box<Machine>),
    TooLarge,
    /// With the error of Go.
    Illegal(String),
}

/// A pattern as compiled.
#[derive(Debug)]
pub(super) struct Machine {
    states: usize,
    lazy: DFA,
    /// The states of `lazy` that were computed.
    cache: Mutex<Option<Cache>>,
    all: PikeVM,
}

impl Machine {
    /// Compiles a pattern; `None`: it is larger than `size` bytes.
    pub(super) fn new(pattern: &str, size: usize) -> Option<Self> {
        let nfa = NFA::compiler()
            .syntax(syntax::Config::new().nest_limit(patterns::NESTING_MAX))
            .configure(thompson::Config::new().nfa_size_limit(Some(size)))
            .build(pattern)
            .ok()?;
        let lazy = DFA::config()
            .cache_capacity(CACHE_BYTES)
            .skip_cache_capacity_check(true)
            .minimum_cache_clear_count(Some(FORGOTTEN_MAX))
            .minimum_bytes_per_state(Some(BYTES_PER_STATE));
        Some(Self {
            states: nfa.states().len(),
            lazy: DFA::builder().configure(lazy).build_from_nfa(nfa.clone()).ok()?,
            cache: Mutex::default(),
            all: PikeVM::new_from_nfa(nfa).ok()?,
        })
    }

    /// Number of states of the pattern.
    pub(super) fn states(&self) -> usize {
        self.states
    }

    /// Whether the pattern is in a text; `None`: the search gave up.
    pub(super) fn is_in(&self, text: &str) -> Option<bool> {
        let input = Input::new(text).earliest(true).anchored(Anchored::No);
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let cache = cache.get_or_insert_with(|| self.lazy.create_cache());
        let found = self.lazy.try_search_fwd(cache, &input);
        if found.is_err() {
            cache.reset(&self.lazy);
        }
        found.ok().map(|found| found.is_some())
    }

    /// Whether the pattern is in a text, by a search that does not give up.
    pub(super) fn is_in_by_all_states(&self, text: &str) -> bool {
        self.all.is_match(&mut self.all.create_cache(), text)
    }

    /// All parts of a text that match, by searches that do not give up.
    pub(super) fn find<'t>(&self, text: &'t str) -> impl Iterator<Item = &'t str> {
        let (mut cache, mut from) = (self.all.create_cache(), 0);
        let mut last_end = None;
        std::iter::from_fn(move || {
            loop {
                let input = Input::new(text).range(from..text.len());
                let found = self.all.find_iter(&mut cache, input).next()?;
                let (start, end) = (found.start(), found.end());
                let next = text[end..].chars().next().map_or(1, char::len_utf8);
                from = if start == end { end + next } else { end };
                let is_repeated = start == end && last_end == Some(end);
                last_end = Some(end);
                if from > text.len() + 1 {
                    return None;
                }
                if !is_repeated {
                    return text.get(start..end);
                }
            }
        })
    }
}
