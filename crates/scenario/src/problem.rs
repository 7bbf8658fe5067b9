//! An error in a file: code, position and hint.

use crate::span::Span;

/// Error code. Its word is stable, so that it can be searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Code {
    /// The file cannot be read.
    Unreadable,
    /// The file is empty.
    EmptyFile,
    /// The path does not yield an id in kebab-case.
    BadId,
    /// Not YAML.
    NotYaml,
    /// YAML outside the supported subset: anchors, aliases, tags, merge keys, several documents.
    NotInSubset,
    /// A key occurs twice in a map.
    DuplicateKey,
    /// A key is not known in this map.
    UnknownKey,
    /// A required key is missing.
    MissingKey,
    /// A value of the wrong type, e.g. a list in place of a map.
    WrongType,
    /// A word that is not allowed here.
    NotOneOf,
    /// A number is too small or too large.
    OutOfRange,
    /// A text has the wrong form.
    BadForm,
    /// Keys exclude each other, or require each other.
    Conflict,
    /// A requirement id that is not in the catalogue.
    UnknownRequirement,
    /// An invariant id that is not in the catalogue.
    UnknownInvariant,
    /// A kind or resource that the fake does not serve.
    UnknownKind,
    /// `$name`, `before:` or `after:` refers to an undefined name.
    UndefinedName,
    /// A name is used before it is bound.
    TooEarly,
    /// A name is bound twice.
    DuplicateName,
    /// A name lacks the requested value, e.g. the continue token of a write.
    NoSuchValue,
    /// An object does not exist at that point, or never.
    UnknownObject,
    /// A step that can never be met.
    NeverMet,
    /// An action does not fit the step's trigger.
    Misplaced,
    /// An action has no effect because the response has ended.
    Unreachable,
    /// A duplicate entry.
    Repeated,
    /// An empty value where one is required.
    Empty,
}

impl Code {
    /// All codes.
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

    /// Returns the code as a word.
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

    /// Returns true if the error follows from other lines, so that it may disappear when they are fixed.
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

/// An error as found: its position is a byte range, not yet a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) code: Code,
    pub(crate) span: Span,
    pub(crate) message: String,
    pub(crate) label: String,
    pub(crate) hint: Option<String>,
    /// The parser continued as if the hint had been followed, so no further errors follow from this one.
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
