//! Failures and summary as terminal output. Width and colour are arguments; the caller knows its terminal.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use judge::verdict::Contradiction;
use owo_colors::OwoColorize;

use crate::suite::{Counts, Judged, Standing};

/// Output style.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    /// Use colours.
    pub colour: bool,
    /// Width of the terminal in columns.
    pub columns: usize,
}

/// Minimum width, in columns, to print expected and actual side by side.
const SIDE_BY_SIDE: usize = 110;
/// Contradictions printed in full per scenario.
const SHOWN: usize = 3;

/// Returns the block of a failed scenario: claim, expected and actual, reason, place, and the command that runs it
/// again.
pub fn failure(judged: &Judged, style: Style) -> String {
    let mut text = String::new();
    let paint = Paint(style.colour);
    let _infallible = writeln!(
        text,
        "{} {}   {} {}   {}",
        paint.red("✘ FAIL"),
        paint.bold(&judged.scenario.id),
        judged.client,
        judged.version,
        judged.verdict.outcome.word()
    );
    let _infallible = writeln!(text, "  claim  {}", judged.scenario.title);
    for contradiction in judged.verdict.contradictions.iter().take(SHOWN) {
        text.push_str(&one(judged, contradiction, style));
    }
    let more = judged.verdict.contradictions.len().saturating_sub(SHOWN);
    if more > 0 {
        let _infallible = writeln!(text, "  also   {more} more; see --show");
    }
    let _infallible = writeln!(text, "  rerun  {}", rerun(judged));
    let _infallible = writeln!(text, "  look   {} --show {}", command(judged), argument(judged));
    text
}

fn one(judged: &Judged, contradiction: &Contradiction, style: Style) -> String {
    let paint = Paint(style.colour);
    let mut text = String::new();
    let place = match contradiction.place {
        Some(place) => format!(
            "{}:{}:{}",
            judged.scenario.path.display(),
            place.line,
            place.column
        ),
        None => judged.scenario.path.display().to_string(),
    };
    let requirements = contradiction.requirements.join(" ");
    let _infallible = writeln!(
        text,
        "  {} {requirements}   {place}",
        paint.bold(&contradiction.check.to_string())
    );
    if style.columns >= SIDE_BY_SIDE {
        let width = (style.columns - 12) / 2;
        let left = wrap(&contradiction.expected, width);
        let right = wrap(&contradiction.actual, width);
        let _infallible = writeln!(text, "    {:<width$}   actual", "expected");
        for row in 0..left.len().max(right.len()) {
            let cell = |side: &[String]| side.get(row).cloned().unwrap_or_default();
            let padded = format!("{:<width$}", cell(&left));
            let _infallible = writeln!(
                text,
                "    {}   {}",
                paint.green(&padded),
                paint.red(&cell(&right))
            );
        }
    } else {
        let width = style.columns.saturating_sub(13).max(20);
        for (word, side, good) in [
            ("expected", &contradiction.expected, true),
            ("actual", &contradiction.actual, false),
        ] {
            for (row, line) in wrap(side, width).iter().enumerate() {
                let word = if row == 0 { word } else { "" };
                let line = if good { paint.green(line) } else { paint.red(line) };
                let _infallible = writeln!(text, "    {word:<8} {line}");
            }
        }
    }
    for (row, line) in wrap(&contradiction.sentence, style.columns.saturating_sub(9).max(20))
        .iter()
        .enumerate()
    {
        let word = if row == 0 { "why" } else { "" };
        let _infallible = writeln!(text, "  {word:<6} {line}");
    }
    text
}

/// Returns the line for a known or stale failure.
pub fn remark(judged: &Judged) -> Option<String> {
    match judged.standing {
        Standing::Passed | Standing::Failed => None,
        Standing::Known => None,
        Standing::Stale => Some(format!(
            "stale: {} is listed in known-failures.yaml as {} but came out as {}; remove or correct the entry ({})",
            judged.scenario.id,
            judged
                .known
                .as_ref()
                .map(|known| known.outcome.word())
                .unwrap_or_default(),
            judged.verdict.outcome.word(),
            judged
                .known
                .as_ref()
                .map(|known| format!("line {}", known.line))
                .unwrap_or_default(),
        )),
    }
}

/// Returns the summary: a table of groups, and the total.
pub fn summary(results: &[Judged], style: Style) -> String {
    let paint = Paint(style.colour);
    let mut groups: BTreeMap<&str, Counts> = BTreeMap::new();
    let mut sum = Counts::default();
    for judged in results {
        let group = judged.scenario.id.split('/').next().unwrap_or_default();
        groups.entry(group).or_default().add(judged);
        sum.add(judged);
    }
    let width = groups.keys().map(|group| group.len()).max().unwrap_or(0).max(5);
    let mut text = String::new();
    let _infallible = writeln!(text, "{:<width$}  passed  failed  known  stale", "group");
    for (group, counts) in &groups {
        let _infallible = writeln!(text, "{group:<width$}  {}", row(counts, paint));
    }
    if groups.len() > 1 {
        let _infallible = writeln!(text, "{:<width$}  {}", "all", row(&sum, paint));
    }
    text
}

fn row(counts: &Counts, paint: Paint) -> String {
    let number = |number: usize, width: usize, bad: bool| {
        let text = format!(
            "{:>width$}",
            if number == 0 {
                "·".to_owned()
            } else {
                number.to_string()
            }
        );
        if bad && number > 0 { paint.red(&text) } else { text }
    };
    format!(
        "{}  {}  {}  {}",
        number(counts.passed, 6, false),
        number(counts.failed, 6, true),
        number(counts.known, 5, false),
        number(counts.stale, 5, true)
    )
}

/// Returns the command that runs this scenario again.
pub fn rerun(judged: &Judged) -> String {
    format!("{} {}", command(judged), argument(judged))
}

/// Returns the id of a scenario of this repository, otherwise its path as given, quoted for a shell.
fn argument(judged: &Judged) -> Cow<'_, str> {
    let scenario = &judged.scenario;
    let path = scenario.path.strip_prefix(".").unwrap_or(&scenario.path);
    if path == Path::new("scenarios").join(format!("{}.yaml", scenario.id)) {
        return Cow::Borrowed(&scenario.id);
    }
    let path = scenario.path.to_string_lossy();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+,:@%".contains(c);
    if path.chars().all(is_plain) {
        path
    } else {
        Cow::Owned(format!("'{}'", path.replace('\'', r"'\''")))
    }
}

fn command(judged: &Judged) -> String {
    format!(
        "cargo xtask scenarios --client {} --driver {} --seed {}",
        judged.client,
        judged.driver.word(),
        judged.seed
    )
}

/// Wraps at spaces; splits a word longer than the width.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split_whitespace() {
        let mut word: Vec<char> = word.chars().collect();
        loop {
            let line = lines
                .last_mut()
                .expect("proven invariant: it starts with one line and only grows");
            let used = line.chars().count();
            let gap = usize::from(used > 0);
            if used + gap + word.len() <= width {
                if gap == 1 {
                    line.push(' ');
                }
                line.extend(&word);
                break;
            }
            if used > 0 {
                lines.push(String::new());
                continue;
            }
            line.extend(word.drain(..width));
            lines.push(String::new());
        }
    }
    lines
}

#[derive(Clone, Copy)]
struct Paint(bool);

impl Paint {
    fn red(self, text: &str) -> String {
        if self.0 {
            text.red().to_string()
        } else {
            text.to_owned()
        }
    }

    fn green(self, text: &str) -> String {
        if self.0 {
            text.green().to_string()
        } else {
            text.to_owned()
        }
    }

    fn bold(self, text: &str) -> String {
        if self.0 {
            text.bold().to_string()
        } else {
            text.to_owned()
        }
    }
}

#[cfg(test)]
mod tests;
