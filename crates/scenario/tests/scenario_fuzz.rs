//! Reading any file returns a scenario or errors that can be rendered; it never panics.

use std::path::Path;

use proptest::prelude::*;
use scenario::{Style, parse};

/// Real files, to be mutated.
const FILES: &[&str] = &[
    include_str!("../../../scenarios/page/expired-token-on-page-2-restarts-the-list.yaml"),
    include_str!("../../../scenarios/watch/clean-eof-resumes-from-the-last-event.yaml"),
    include_str!("../../../scenarios/conn/cut-mid-line-resumes-from-the-last-whole-event.yaml"),
    include_str!("../../../tests/corpus/v1/scenarios/language/every-key.yaml"),
];

/// Fragments likely to break a parser.
const PIECES: &[&str] = &[
    ": ",
    "- ",
    "{",
    "}",
    "[",
    "]",
    "\n",
    "\n  ",
    "\t",
    "&a ",
    "*a",
    "!!str ",
    "<<: ",
    "---\n",
    "|\n",
    ">-\n",
    "\"",
    "'",
    "#",
    "%",
    "$",
    "$start",
    "$x.continue",
    "null",
    "~",
    "true",
    "-1",
    "99999999999999999999999",
    "1e400",
    ".nan",
    "é",
    "\u{1f600}",
    "\u{2028}",
    "\0",
    "\r",
    "any",
    "absent",
    "repeat: 100000",
    "{i}",
    "page: 2",
    "for: 1s",
    "as: x",
    "\u{feff}",
];

fn survives(text: &str) {
    if let Err(errors) = parse("group/claim", Path::new("claim.yaml"), text) {
        assert!(!errors.errors().is_empty());
        assert!(
            errors
                .errors()
                .iter()
                .all(|error| error.at.line > 0 && error.at.column > 0)
        );
        assert!(!errors.render(Style::Plain).is_empty());
        assert!(!errors.to_string().is_empty());
    }
}

/// Moves a byte offset back to a character boundary.
fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len()))
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_files(
        file in 0..FILES.len(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..24, prop::sample::select(PIECES)), 1..6),
    ) {
        let mut text = FILES[file].to_owned();
        for (index, removed, piece) in edits {
            let start = boundary(&text, index.index(text.len() + 1));
            let end = boundary(&text, start + removed).max(start);
            text.replace_range(start..end, piece);
        }
        survives(&text);
    }

    #[test]
    fn lines_dropped_doubled_and_swapped(file in 0..FILES.len(), picks in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..3), 1..8)) {
        let mut lines: Vec<&str> = FILES[file].lines().collect();
        for (a, b, what) in picks {
            let (a, b) = (a.index(lines.len()), b.index(lines.len()));
            match what {
                0 => { lines.swap(a, b); }
                1 => { lines.insert(a, lines[b]); }
                _ => if lines.len() > 1 { lines.remove(a); }
            }
        }
        survives(&lines.join("\n"));
    }

    #[test]
    fn any_text(text in "\\PC{0,80}") {
        survives(&text);
    }

    #[test]
    fn cut_anywhere(file in 0..FILES.len(), at in any::<prop::sample::Index>()) {
        let text = FILES[file];
        survives(&text[..boundary(text, at.index(text.len() + 1))]);
    }
}

#[test]
fn deeply_nested() {
    survives(&"[".repeat(10_000));
    survives(&"{a: ".repeat(100_000));
    let block = |i| format!("{}- \n", " ".repeat(i));
    survives(&(0..1_000).map(block).collect::<String>());
    survives(&"- ".repeat(10_000));
    survives(&format!("{}a{}", "{a: ".repeat(200), "}".repeat(200)));
}
