//! One mistake of a file: what it is, where, and what to do.

use crate::span::Span;

/// The kind of a mistake. The word for it is stable: it may be searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Code {
    /// The file cannot be read from disk.
    Unreadable,
    /// The file is empty.
    EmptyFile,
    /// The file's path gives no id in kebab-case.
    BadId,
    /// Not YAML.
    NotYaml,
    /// YAML, but more of it than this language takes: anchors, aliases, tags, merge keys, several documents.
    NotInSubset,
    /// A key twice in one map.
    DuplicateKey,
    /// A key this map does not have.
    UnknownKey,
    /// A key this map must have.
    MissingKey,
    /// A list where a map belongs, a word where a number belongs, and so on.
    WrongType,
    /// A word that is not one of those allowed here.
    NotOneOf,
    /// A number too small or too large.
    OutOfRange,
    /// A text that does not have the form it must have.
    BadForm,
    /// Keys that exclude each other, or lack each other.
    Conflict,
    /// A requirement id that is not in the catalogue.
    UnknownRequirement,
    /// An invariant id that is not in the catalogue.
    UnknownInvariant,
    /// A kind or resource the fake does not serve.
    UnknownKind,
    /// `$name`, `before:` or `after:` with a name nothing has.
    UndefinedName,
    /// A name used before it has a value.
    TooEarly,
    /// A name given twice.
    DuplicateName,
    /// A name that has no such value, e.g. the continue token of a write.
    NoSuchValue,
    /// An object that is not there at that moment, or never.
    UnknownObject,
    /// A step that can never be met.
    NeverMet,
    /// An action that makes no sense for what the step waits for.
    Misplaced,
    /// An action that has no effect, because the answer is over.
    Unreachable,
    /// The same thing said twice.
    Repeated,
    /// Nothing where something must be.
    Empty,
}

impl Code {
    /// All of them.
    pub const ALL: &'static [Self] = &[
        Self::Unreadable,
        Self::EmptyFile,
        Self::BadId,
        Self::NotYaml,
        Self::NotInSubset,
        Self::DuplicateKey,
        Self::UnknownKey,
        Self::MissingKey,
        Self::WrongType,
        Self::NotOneOf,
        Self::OutOfRange,
        Self::BadForm,
        Self::Conflict,
        Self::UnknownRequirement,
        Self::UnknownInvariant,
        Self::UnknownKind,
        Self::UndefinedName,
        Self::TooEarly,
        Self::DuplicateName,
        Self::NoSuchValue,
        Self::UnknownObject,
        Self::NeverMet,
        Self::Misplaced,
        Self::Unreachable,
        Self::Repeated,
        Self::Empty,
    ];

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Unreadable => "unreadable",
            Self::EmptyFile => "empty-file",
            Self::BadId => "bad-id",
            Self::NotYaml => "not-yaml",
            Self::NotInSubset => "not-in-subset",
            Self::DuplicateKey => "duplicate-key",
            Self::UnknownKey => "unknown-key",
            Self::MissingKey => "missing-key",
            Self::WrongType => "wrong-type",
            Self::NotOneOf => "not-one-of",
            Self::OutOfRange => "out-of-range",
            Self::BadForm => "bad-form",
            Self::Conflict => "conflict",
            Self::UnknownRequirement => "unknown-requirement",
            Self::UnknownInvariant => "unknown-invariant",
            Self::UnknownKind => "unknown-kind",
            Self::UndefinedName => "undefined-name",
            Self::TooEarly => "too-early",
            Self::DuplicateName => "duplicate-name",
            Self::NoSuchValue => "no-such-value",
            Self::UnknownObject => "unknown-object",
            Self::NeverMet => "never-met",
            Self::Misplaced => "misplaced",
            Self::Unreachable => "unreachable",
            Self::Repeated => "repeated",
            Self::Empty => "empty",
        }
    }

    /// Follows from what other lines say, so it may vanish when they are mended.
    pub(crate) fn depends_on_other_lines(self) -> bool {
        matches!(
            self,
            Self::UndefinedName
                | Self::TooEarly
                | Self::NoSuchValue
                | Self::UnknownObject
                | Self::NeverMet
                | Self::Unreachable
                | Self::Empty
        )
    }
}

/// A mistake as it is found: where it is in bytes, not yet in lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) code: Code,
    pub(crate) span: Span,
    pub(crate) message: String,
    pub(crate) label: String,
    pub(crate) hint: Option<String>,
    /// The reader went on as if the hint had been followed, so nothing else is wrong because of it.
    pub(crate) repaired: bool,
}

impl Problem {
    pub(crate) fn new(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self {
            code,
            span,
            message: message.into(),
            label: String::from("here"),
            hint: None,
            repaired: false,
        }
    }

    pub(crate) fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn maybe_hint(mut self, hint: Option<String>) -> Self {
        self.hint = hint;
        self
    }
}
