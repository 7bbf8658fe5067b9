//! Errors of a scenario file: all at once, each with its position and a hint.
//!
//! Independent of how errors are found.

use std::fmt;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, Severity, SourceCode};
use trace::record::line::printable;

use super::Place;
use super::excerpt::{Excerpt, printable_path};
use super::lines::Lines;
use super::problem::{Code, Problem};
use super::span::Span;

/// Maximum number of errors listed per file; the rest is counted.
const LISTED_ERRORS_MAX: usize = 50;

/// Maximum length of a message or path, in characters: they may quote the file.
const SENTENCE_MAX: usize = 400;

/// Maximum length of a hint, in characters: it may list all words allowed.
const HINT_MAX: usize = 1_000;

/// Maximum length of a message in the one-line format, in characters.
const LINE_MAX: usize = 200;

/// An error in a scenario file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadError {
    /// Error code.
    pub code: Code,
    /// What is wrong, in one sentence.
    pub message: String,
    /// Line and column.
    pub at: Place,
    /// Label of the caret.
    pub label: String,
    /// Suggestion for the fix.
    pub hint: Option<String>,
    span: Span,
}

/// All errors of one scenario file, in the order of its lines. Never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadErrors {
    path: PathBuf,
    text: String,
    errors: Vec<LoadError>,
    count: usize,
}

/// Rendering style of errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Without colours: for pipes, files and tests.
    Plain,
    /// With colours: for a terminal.
    Colour,
}

impl Style {
    /// Returns `Colour` if standard error is a terminal and `NO_COLOR` is not set (<https://no-color.org>).
    pub fn for_stderr() -> Self {
        Self::on(std::io::stderr().is_terminal())
    }

    /// Returns `Colour` if standard output is a terminal and `NO_COLOR` is not set.
    pub fn for_stdout() -> Self {
        Self::on(std::io::stdout().is_terminal())
    }

    fn on(terminal: bool) -> Self {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        if !refused && terminal {
            Self::Colour
        } else {
            Self::Plain
        }
    }
}

impl LoadErrors {
    pub(crate) fn new(path: &Path, text: &str, mut problems: Vec<Problem>) -> Self {
        problems.sort_by_key(|problem| (problem.span, problem.code));
        problems.dedup();
        let lines = Lines::new(text);
        let count = problems.len();
        let errors = problems
            .into_iter()
            .take(LISTED_ERRORS_MAX)
            .map(|problem| LoadError {
                code: problem.code,
                message: sentence(&problem.message),
                at: lines.place(problem.span.start),
                label: sentence(&problem.label),
                hint: problem.hint.map(|hint| cut(&printable(&hint), HINT_MAX)),
                span: problem.span,
            })
            .collect();
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
            errors,
            count,
        }
    }

    /// Returns the number of errors.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the first 50 errors, in the order of the file's lines. Control characters are escaped, and long quotes
    /// of the file are truncated.
    pub fn errors(&self) -> &[LoadError] {
        &self.errors
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Renders each of [`errors`](Self::errors) with its line, a caret and a hint, followed by a summary.
    pub fn render(&self, style: Style) -> String {
        let theme = match style {
            Style::Plain => GraphicalTheme::unicode_nocolor(),
            Style::Colour => GraphicalTheme::unicode(),
        };
        let handler = GraphicalReportHandler::new_themed(theme)
            .with_width(110)
            .with_links(false);
        let lines = Lines::new(&self.text);
        let mut out = String::new();
        for error in &self.errors {
            let excerpt = (!self.text.is_empty()).then(|| Excerpt::new(&self.path, &lines, error.span));
            let drawn = Drawn { error, excerpt };
            if handler.render_report(&mut out, &drawn).is_err() {
                out.push_str(&self.line(error));
                out.push('\n');
            }
            out.push('\n');
        }
        out.push_str(&self.verdict());
        out.push('\n');
        out
    }

    fn verdict(&self) -> String {
        let count = match self.count {
            1 => String::from("1 mistake"),
            n if n > self.errors.len() => format!("{n} mistakes (the first {} are shown)", self.errors.len()),
            n => format!("{n} mistakes"),
        };
        format!(
            "{count} in {}, which was not run: the file is at fault, not the client. \
             docs/scenario-language.md explains every key.",
            printable_path(&self.path)
        )
    }

    fn line(&self, error: &LoadError) -> String {
        let hint = error.hint.as_ref();
        let hint = hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
        format!(
            "{}:{}:{}: error[{}]: {}{hint}",
            printable_path(&self.path),
            error.at.line,
            error.at.column,
            error.code.word(),
            cut(&error.message, LINE_MAX)
        )
    }
}

/// One line per error, `path:line:column: error[code]: message (hint)`, for editors and logs.
impl fmt::Display for LoadErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for error in &self.errors {
            writeln!(f, "{}", self.line(error))?;
        }
        f.write_str(&self.verdict())
    }
}

impl std::error::Error for LoadErrors {}

/// Escapes and truncates a text that may quote the file.
fn sentence(text: &str) -> String {
    cut(&printable(text), SENTENCE_MAX)
}

/// Truncates to a number of characters.
fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// An error as a miette diagnostic.
#[derive(Debug)]
struct Drawn<'e> {
    error: &'e LoadError,
    /// `None` if the file has no text.
    excerpt: Option<Excerpt>,
}

impl fmt::Display for Drawn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.error.message)
    }
}

impl std::error::Error for Drawn<'_> {}

impl Diagnostic for Drawn<'_> {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(format!("error[{}]", self.error.code.word())))
    }

    fn severity(&self) -> Option<Severity> {
        Some(Severity::Error)
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.error
            .hint
            .as_ref()
            .map(|hint| Box::new(hint) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.excerpt.as_ref().map(|excerpt| excerpt as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        // A caret under a whole block is not helpful: only the first line of the span is marked.
        let marked = self.excerpt.as_ref()?.marked;
        let label = LabeledSpan::new_with_span(Some(self.error.label.clone()), marked);
        Some(Box::new(std::iter::once(label)))
    }
}
