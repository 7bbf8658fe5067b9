//! Which request reads the next snapshot: a value that failures advance.
//!
//! A server may refuse one kind of request for as long as it runs and answer another: streaming lists while its watch
//! caches lag, lists at a resourceVersion that it lost, lists without one while etcd is away. So no kind is repeated for
//! ever: after a few failures the next one is due, and after the last the first again.

/// How the next snapshot is requested, as far as that deviates from the configuration. The default does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Form {
    /// LIST in place of the preferred streaming list, or the reverse.
    pub(super) is_other: bool,
    /// Without the resourceVersion that [`ListSemantic::Any`](crate::ListSemantic::Any) sends.
    pub(super) is_unpinned: bool,
    /// Consecutive failures of this form.
    failures: u32,
    /// All forms failed before: none is left out on account of a response that rules it out.
    is_repeated: bool,
}

/// Deviations that are possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Deviations {
    /// There is a choice of LIST and streaming list.
    pub(super) other: bool,
    /// There is a resourceVersion to omit.
    pub(super) unpinned: bool,
}

impl Form {
    /// Returns the form after another failure: this one, up to `max` failures.
    pub(super) fn after_failure(self, max: u32, possible: Deviations) -> Self {
        let failures = self.failures + 1;
        if failures < max {
            Self { failures, ..self }
        } else {
            self.next(possible)
        }
    }

    /// Returns the next form, each combination in turn: the kind of request changes first, then the resourceVersion.
    pub(super) fn next(self, possible: Deviations) -> Self {
        let is_other = possible.other && !self.is_other;
        let is_unpinned = if is_other {
            self.is_unpinned
        } else {
            possible.unpinned && !self.is_unpinned
        };
        Self {
            is_other,
            is_unpinned,
            failures: 0,
            is_repeated: self.is_repeated || !(is_other || is_unpinned),
        }
    }

    /// Returns the form after a response that rules out the resourceVersion.
    pub(super) fn unpinned(self, possible: Deviations) -> Self {
        if self.is_repeated {
            self.next(possible)
        } else {
            Self {
                is_unpinned: true,
                ..Self::default()
            }
        }
    }

    /// Returns the preferred request, with the same resourceVersion or none.
    pub(super) fn preferred(self) -> Self {
        Self {
            is_other: false,
            failures: 0,
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::a_list(false, false, &["", "", ""])]
    #[case::a_list_at_a_version(false, true, &["", "unpinned", "", "unpinned"])]
    #[case::a_streaming_list(true, false, &["", "other", "", "other"])]
    #[case::a_streaming_list_at_a_version(
        true, true, &["", "other", "unpinned", "other unpinned", "", "other"]
    )]
    fn every_form_has_its_turn(#[case] other: bool, #[case] unpinned: bool, #[case] expected: &[&str]) {
        let possible = Deviations { other, unpinned };
        let mut form = Form::default();
        for expected in expected {
            for failure in 0..3 {
                let words = [(form.is_other, "other"), (form.is_unpinned, "unpinned")];
                let words = words.into_iter().filter(|(is, _)| *is).map(|(_, word)| word);
                assert_eq!(
                    words.collect::<Vec<_>>().join(" "),
                    *expected,
                    "failure {failure}"
                );
                form = form.after_failure(3, possible);
            }
        }
    }
}
