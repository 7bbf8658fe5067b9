//! A terminal session as an animated SVG: what a program printed, line by line, at the times at which it did. A pure function of bytes
//! and times; it must not start programs.

use std::fmt::Write as _;
use std::time::Duration;

/// Columns of the terminal.
const COLUMNS: usize = 112;

/// Width of a character, and height of a line, in pixels.
const CELL: (f64, f64) = (7.8, 18.0);

/// Space around the text, in pixels; the bar above it has the height of two lines.
const MARGIN: f64 = 16.0;

/// A printed line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Time since the command was started.
    pub at: Duration,
    /// What was printed, with colours as escape sequences.
    pub text: String,
}

/// Text in one colour.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Span {
    class: Option<&'static str>,
    text: String,
}

/// Returns the lines that a terminal shows of `printed`, whose parts came at these times. A line that is erased, as progress is, is not
/// shown.
pub fn lines(printed: &[(Duration, Vec<u8>)]) -> Vec<Line> {
    let mut all = Vec::new();
    let mut line = Vec::new();
    for (at, bytes) in printed {
        for byte in bytes {
            if *byte == b'\n' {
                let text = String::from_utf8_lossy(&line).into_owned();
                all.push(Line {
                    at: *at,
                    text: shown(&text).to_owned(),
                });
                line.clear();
            } else {
                line.push(*byte);
            }
        }
    }
    all
}

/// Returns what is left of a line after it was erased.
fn shown(line: &str) -> &str {
    let line = line.trim_end_matches('\r');
    line.rsplit("\r\u{1b}[K").next().unwrap_or(line)
}

/// Beginnings of lines whose numbers differ from run to run.
const EVIDENCE: [&str; 2] = ["  why ", "  proof "];

/// Returns the text of a session without what differs from run to run: times, the numbers of evidence, and the rest of escape
/// sequences.
pub fn steady(lines: &[Line]) -> String {
    let mut text = String::new();
    for line in lines {
        let plain: String = spans(&line.text).into_iter().map(|span| span.text).collect();
        let is_evidence = EVIDENCE.iter().any(|begin| plain.starts_with(begin));
        text.push_str(&without_times(&plain, is_evidence));
        text.push('\n');
    }
    text
}

/// Replaces the digits of decimal numbers, and of whole ones if `all`: `4.67 s` is `#.# s`.
fn without_times(text: &str, all: bool) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(|letter: char| letter.is_ascii_digit()) {
        let number = &rest[at..];
        let end = number.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
        let (number, after) = number.split_at(end.unwrap_or(number.len()));
        kept.push_str(&rest[..at]);
        kept.push_str(match number.contains('.') {
            true => "#.#",
            false if all => "#",
            false => number,
        });
        rest = after;
    }
    kept + rest
}

/// Returns a session as an SVG. `command`: what was typed. Lines appear at their times, at most `longest` after each other; all of them
/// at once where the reader wants no motion.
pub fn svg(title: &str, command: &str, lines: &[Line], longest: Duration) -> String {
    let mut rows: Vec<(Duration, Vec<Span>)> = Vec::new();
    let prompt = Span {
        class: Some("dim"),
        text: "$ ".to_owned(),
    };
    let typed = Span {
        class: None,
        text: command.to_owned(),
    };
    for row in wrapped(vec![prompt, typed]) {
        rows.push((Duration::ZERO, row));
    }
    let (mut shown_at, mut before) = (Duration::from_millis(800), Duration::ZERO);
    for line in lines {
        shown_at += line.at.saturating_sub(before).min(longest);
        before = line.at;
        for row in wrapped(spans(&line.text)) {
            rows.push((shown_at, row));
        }
    }
    let width = CELL.0 * COLUMNS as f64 + 2.0 * MARGIN;
    let height = CELL.1 * (rows.len() + 2) as f64 + MARGIN;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" \
         role=\"img\" aria-label=\"{}\">\n<style>\
         text{{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#e6e6e6;white-space:pre}}\
         .red{{fill:#ff7b72}}.green{{fill:#56d364}}.dim{{fill:#9a9a9a}}\
         .l{{opacity:0;animation:s .01s linear forwards}}@keyframes s{{to{{opacity:1}}}}\
         @media (prefers-reduced-motion:reduce){{.l{{animation:none;opacity:1}}}}\
         </style>\n<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#1b1b1f\"/>\n",
        escaped(title)
    );
    for (number, color) in ["#ff5f57", "#febc2e", "#28c840"].into_iter().enumerate() {
        let x = MARGIN + 6.0 + 20.0 * number as f64;
        // Writing to a String cannot fail.
        let _ = writeln!(text, "<circle cx=\"{x}\" cy=\"18\" r=\"6\" fill=\"{color}\"/>");
    }
    for (number, (at, row)) in rows.iter().enumerate() {
        let y = CELL.1 * (number + 3) as f64 - 4.0;
        let delay = at.as_secs_f64();
        let _ = write!(
            text,
            "<text class=\"l\" x=\"{MARGIN}\" y=\"{y:.0}\" style=\"animation-delay:{delay:.2}s\">"
        );
        for span in row {
            let _ = match span.class {
                Some(class) => write!(text, "<tspan class=\"{class}\">{}</tspan>", escaped(&span.text)),
                None => write!(text, "{}", escaped(&span.text)),
            };
        }
        text.push_str("</text>\n");
    }
    text + "</svg>\n"
}

/// Splits a line at its colours. Other escape sequences are dropped.
fn spans(line: &str) -> Vec<Span> {
    let mut spans = Vec::new();
    let mut class = None;
    let mut parts = line.split("\u{1b}[");
    let mut push = |class, text: &str| {
        if !text.is_empty() {
            spans.push(Span {
                class,
                text: text.to_owned(),
            });
        }
    };
    push(class, parts.next().unwrap_or_default());
    for part in parts {
        let end = part.find(|letter: char| letter.is_ascii_alphabetic());
        let (sequence, text) = part.split_at(end.map_or(part.len(), |end| end + 1));
        class = match sequence {
            "31m" => Some("red"),
            "32m" => Some("green"),
            "2m" => Some("dim"),
            "0m" | "39m" | "22m" | "m" => None,
            _ => class,
        };
        push(class, text);
    }
    spans
}

/// Breaks a row where the terminal ends.
fn wrapped(spans: Vec<Span>) -> Vec<Vec<Span>> {
    let mut rows = vec![Vec::new()];
    let mut left = COLUMNS;
    for Span { class, text } in spans {
        let mut rest = text.as_str();
        while !rest.is_empty() {
            if left == 0 {
                rows.push(Vec::new());
                left = COLUMNS;
            }
            let end = rest.char_indices().nth(left).map_or(rest.len(), |(at, _)| at);
            let (head, tail) = rest.split_at(end);
            left -= head.chars().count();
            rest = tail;
            if let Some(row) = rows.last_mut() {
                let text = head.to_owned();
                row.push(Span { class, text });
            }
        }
    }
    rows
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_erased_and_colours_are_kept() {
        let printed = b"\r\x1b[K0 of 2 played, now a \r\x1b[K\x1b[31mX\x1b[39m a   0.29 s\r\nok\r\n".to_vec();
        let lines = lines(&[(Duration::ZERO, printed)]);
        assert_eq!(steady(&lines), "X a   #.# s\nok\n");
        let drawn = svg("A \"run\"", "run <a>", &lines, Duration::from_secs(1));
        assert!(
            drawn.contains("<tspan class=\"red\">X</tspan> a   0.29 s"),
            "{drawn}"
        );
        assert!(
            drawn.contains("run &lt;a>") && drawn.contains("A &quot;run&quot;"),
            "{drawn}"
        );
    }

    #[test]
    fn long_lines_are_broken_where_the_terminal_ends() {
        let long = "ä".repeat(COLUMNS + 1);
        let rows = wrapped(spans(&long));
        assert_eq!(rows.iter().map(Vec::len).collect::<Vec<_>>(), [1, 1]);
    }

    #[test]
    fn lines_appear_in_their_order_after_a_bounded_time() {
        let line = |ms, text: &str| Line {
            at: Duration::from_millis(ms),
            text: text.to_owned(),
        };
        let drawn = svg(
            "",
            "",
            &[line(100, "a"), line(90_000, "b")],
            Duration::from_secs(1),
        );
        assert!(
            drawn.contains("0.90s\">a<") && drawn.contains("1.90s\">b<"),
            "{drawn}"
        );
    }
}
