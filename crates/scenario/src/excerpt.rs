//! The lines around an error, as displayed: limited in width and free of control characters.
//!
//! Independent of the error itself.

use std::path::Path;

use miette::{MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};

use trace::record::line::printable;

use super::lines::Lines;
use super::span::Span;

/// Maximum number of characters displayed per line.
const WIDTH: usize = 160;

/// Number of characters displayed before the marked position if the line is cut.
const BEFORE: usize = 40;

/// Three lines of a file.
#[derive(Debug)]
pub(super) struct Excerpt {
    name: String,
    text: String,
    /// Number of lines of the file before the excerpt.
    lines_before: usize,
    /// The marked range, in bytes of `text`.
    pub(super) marked: SourceSpan,
    /// Column of the mark in the file, from 0.
    column: usize,
}

impl Excerpt {
    /// Creates an excerpt around the start of `span`, whose first line is marked.
    pub(super) fn new(path: &Path, lines: &Lines<'_>, span: Span) -> Self {
        let place = lines.place(span.start);
        let (at, column) = (place.line as usize, place.column as usize - 1);
        let first = at.saturating_sub(1).max(1);
        let mut text = String::new();
        let mut marked = SourceSpan::new(0.into(), 0);
        for number in first..=at + 1 {
            let Some(line) = lines.line(number) else { break };
            if number > first {
                text.push('\n');
            }
            if number == at {
                let from = span.start - lines.start(at);
                let to = span
                    .end
                    .saturating_sub(lines.start(at))
                    .clamp(from, line.len().max(from));
                let under = line.get(from..to).unwrap_or_default().trim_end().chars().count();
                marked = draw_marked(&mut text, line, column, under);
            } else {
                draw(&mut text, line, 0);
            }
        }
        Self {
            name: printable_path(path),
            text,
            lines_before: first - 1,
            marked,
            column,
        }
    }
}

/// Appends the marked line; returns the range in `text` of the `under` characters from `column` on.
fn draw_marked(text: &mut String, line: &str, column: usize, under: usize) -> SourceSpan {
    let is_long = line.chars().nth(WIDTH).is_some();
    let skipped = if is_long { column.saturating_sub(BEFORE) } else { 0 };
    let line_start = text.len();
    draw(text, line, skipped);
    let drawn = &text[line_start..];
    let cut_mark = usize::from(skipped > 0);
    let offset = |characters: usize| {
        let found = drawn.char_indices().nth(characters);
        line_start + found.map_or(drawn.len(), |(offset, _)| offset)
    };
    let start = offset(column - skipped + cut_mark);
    let end = offset(column - skipped + cut_mark + under);
    SourceSpan::new(start.into(), end - start)
}

/// Appends a line without its first `skipped` characters, truncated if too long.
fn draw(text: &mut String, line: &str, skipped: usize) {
    if skipped > 0 {
        text.push('…');
    }
    let mut rest = line.chars().skip(skipped);
    text.extend(rest.by_ref().take(WIDTH).map(visible));
    if rest.next().is_some() {
        text.push('…');
    }
}

/// Replaces a control character by its Unicode picture, so that columns stay unchanged.
fn visible(c: char) -> char {
    match c {
        '\t' => c,
        '\0'..='\x1f' => char::from_u32(0x2400 + u32::from(c)).unwrap_or(char::REPLACEMENT_CHARACTER),
        '\x7f' => '␡',
        c if trace::record::line::is_unprintable(c) => char::REPLACEMENT_CHARACTER,
        c => c,
    }
}

impl SourceCode for Excerpt {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let inner = self.text.read_span(span, before, after)?;
        // miette reads the position in the heading without context lines.
        let column = if before == 0 && after == 0 {
            self.column
        } else {
            inner.column()
        };
        Ok(Box::new(MietteSpanContents::new_named(
            self.name.clone(),
            inner.data(),
            *inner.span(),
            inner.line() + self.lines_before,
            column,
            inner.line_count(),
        )))
    }
}

/// Returns a path with control characters escaped.
pub(super) fn printable_path(path: &Path) -> String {
    printable(&path.display().to_string()).into_owned()
}
