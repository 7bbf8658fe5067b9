//! What is wrong with a scenario file, all of it at once, in words its author can act on.
//!
//! It must not know how a mistake was found; it only says where it stands and what to do next.

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

/// Mistakes of a file that are told; of more, only the number.
const TOLD_MAX: usize = 50;

/// Characters of a message or a path: they may repeat what the file says.
const SENTENCE_MAX: usize = 400;

/// Characters of a hint: it may list every word of a place.
const HINT_MAX: usize = 1_000;

/// Characters of a message, where each error is one line.
const LINE_MAX: usize = 200;

/// One mistake of a scenario file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadError {
    /// Its kind.
    pub code: Code,
    /// What is wrong, one sentence.
    pub message: String,
    /// Where.
    pub at: Place,
    /// What the caret points at.
    pub label: String,
    /// What to do next.
    pub hint: Option<String>,
    span: Span,
}

/// Everything that is wrong with one scenario file, in the order of its lines. Never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadErrors {
    path: PathBuf,
    text: String,
    errors: Vec<LoadError>,
    count: usize,
}

/// How errors are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Without colours: for pipes, files and tests.
    Plain,
    /// With colours: for a terminal.
    Colour,
}

impl Style {
    /// Colours if standard error is a terminal and `NO_COLOR` is not set (<https://no-color.org>).
    pub fn for_stderr() -> Self {
        Self::on(std::io::stderr().is_terminal())
    }

    /// The same for standard output.
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
            .take(TOLD_MAX)
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

    /// How many mistakes there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The first 50 errors, in the order of the file's lines. Control characters are escaped, and what repeats a long text
    /// of the file is cut.
    pub fn errors(&self) -> &[LoadError] {
        &self.errors
    }

    /// The file they are in.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Draws each of [`errors`](Self::errors) with its line, a caret and a hint, and ends with who is at fault and what to do.
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
            "{count} in {}, and nothing was run: the file is at fault, not the client. \
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

/// One line an error, `path:line:column: error[code]: message (hint)`, for editors and logs.
impl fmt::Display for LoadErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for error in &self.errors {
            writeln!(f, "{}", self.line(error))?;
        }
        f.write_str(&self.verdict())
    }
}

impl std::error::Error for LoadErrors {}

/// A text that may repeat what the file says: escaped, and cut.
fn sentence(text: &str) -> String {
    cut(&printable(text), SENTENCE_MAX)
}

/// At most so many characters.
fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// One error as miette draws it.
#[derive(Debug)]
struct Drawn<'e> {
    error: &'e LoadError,
    /// Nothing, where there is no text.
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
        // A caret under a whole block says nothing: only the first line of the span is marked.
        let marked = self.excerpt.as_ref()?.marked;
        let label = LabeledSpan::new_with_span(Some(self.error.label.clone()), marked);
        Some(Box::new(std::iter::once(label)))
    }
}
