//! Results compared with their limits.

use serde_json::json;

/// A limit with its direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Line {
    AtLeast(f64),
    AtMost(f64),
}

/// What a row is judged by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Judged {
    /// The ratio of ours to the other.
    Ratio { must: Line, moonshot: Line },
    /// Our value.
    Value { must: Line, moonshot: Line },
    /// Nothing: for information only.
    Not,
}

/// A row of the table.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) work: String,
    pub(crate) unit: &'static str,
    pub(crate) ours: f64,
    /// Name and value of the comparison.
    pub(crate) other: Option<(&'static str, f64)>,
    pub(crate) judged: Judged,
}

impl Row {
    pub(crate) fn ratio(&self) -> Option<f64> {
        self.other.map(|(_, value)| self.ours / value)
    }

    fn lines(&self) -> Option<(f64, Line, Line)> {
        match self.judged {
            Judged::Ratio { must, moonshot } => Some((self.ratio()?, must, moonshot)),
            Judged::Value { must, moonshot } => Some((self.ours, must, moonshot)),
            Judged::Not => None,
        }
    }

    /// Returns which limit was met; `None`: not judged.
    fn met(&self) -> Option<Met> {
        let (value, must, moonshot) = self.lines()?;
        Some(if moonshot.holds(value) {
            Met::Moonshot
        } else if must.holds(value) {
            Met::Must
        } else {
            Met::No
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Met {
    Moonshot,
    Must,
    No,
}

impl Met {
    fn word(self) -> &'static str {
        match self {
            Self::Moonshot => "moonshot",
            Self::Must => "must",
            Self::No => "NO",
        }
    }
}

impl Line {
    fn holds(self, value: f64) -> bool {
        match self {
            Self::AtLeast(line) => value >= line,
            Self::AtMost(line) => value <= line,
        }
    }

    fn text(self) -> String {
        match self {
            Self::AtLeast(line) => format!(">= {}", number(line)),
            Self::AtMost(line) => format!("<= {}", number(line)),
        }
    }
}

/// All rows.
pub(crate) struct Table {
    judges: bool,
    rows: Vec<Row>,
    /// Measurements that were skipped, with reasons.
    skipped: Vec<String>,
}

/// Results of a group of rows.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    pub(crate) rows: Vec<Row>,
    pub(crate) skipped: Vec<String>,
}

impl From<Vec<Row>> for Measured {
    fn from(rows: Vec<Row>) -> Self {
        Self {
            rows,
            skipped: Vec::new(),
        }
    }
}

impl Table {
    /// Creates an empty table. `judges`: whether the sizes are those of the limits.
    pub(crate) fn new(judges: bool) -> Self {
        Self {
            judges,
            rows: Vec::new(),
            skipped: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, measured: Measured) {
        self.rows.extend(measured.rows);
        self.skipped.extend(measured.skipped);
    }

    pub(crate) fn all_met(&self) -> bool {
        !self.judges || self.rows.iter().all(|row| row.met() != Some(Met::No))
    }

    pub(crate) fn human(&self) -> String {
        let header = [
            "row",
            "work",
            "ours",
            "floor or peer",
            "ratio",
            "must",
            "moonshot",
            "met",
        ];
        let mut lines = vec![header.map(str::to_owned)];
        for row in &self.rows {
            let judged = row.lines().filter(|_| self.judges);
            let line = |line: Option<Line>| line.map(Line::text).unwrap_or_default();
            lines.push([
                row.name.to_owned(),
                row.work.clone(),
                format!("{} {}", number(row.ours), row.unit),
                row.other
                    .map(|(what, value)| format!("{} {what}", number(value)))
                    .unwrap_or_default(),
                row.ratio().map(number).unwrap_or_default(),
                line(judged.map(|(_, must, _)| must)),
                line(judged.map(|(_, _, moonshot)| moonshot)),
                row.met()
                    .filter(|_| self.judges)
                    .map(|met| met.word().to_owned())
                    .unwrap_or_default(),
            ]);
        }
        let widths: Vec<usize> = (0..header.len())
            .map(|column| {
                lines
                    .iter()
                    .map(|line| line[column].chars().count())
                    .max()
                    .unwrap_or(0)
            })
            .collect();
        let mut text: Vec<String> = lines
            .iter()
            .map(|line| {
                let cells = line
                    .iter()
                    .zip(&widths)
                    .map(|(cell, width)| format!("{cell:<width$}"));
                cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
            })
            .collect();
        text.extend(self.skipped.iter().map(|why| format!("skipped: {why}")));
        text.join("\n")
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        let line = |line: Option<Line>| line.map(Line::text);
        let rows: Vec<serde_json::Value> = self
            .rows
            .iter()
            .map(|row| {
                let judged = row.lines().filter(|_| self.judges);
                json!({
                    "row": row.name,
                    "work": row.work,
                    "unit": row.unit,
                    "ours": row.ours,
                    "other": row.other.map(|(what, value)| json!({ "what": what, "value": value })),
                    "ratio": row.ratio(),
                    "must": line(judged.map(|(_, must, _)| must)),
                    "moonshot": line(judged.map(|(_, _, moonshot)| moonshot)),
                    "met": row.met().filter(|_| self.judges).map(Met::word),
                })
            })
            .collect();
        json!({ "rows": rows, "skipped": self.skipped })
    }
}

/// Formats a number with three significant digits.
fn number(value: f64) -> String {
    match value.abs() {
        big if big >= 1e6 => format!("{:.2}M", value / 1e6),
        big if big >= 1e4 => format!("{:.0}k", value / 1e3),
        big if big >= 1e3 => format!("{:.1}k", value / 1e3),
        middle if middle >= 100.0 => format!("{value:.0}"),
        middle if middle >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Returns the median; the mean of the two middle values for an even number.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    }
}

#[cfg(test)]
mod tests {
    use super::{Judged, Line, Measured, Row, Table, median};

    fn row(ours: f64) -> Row {
        Row {
            name: "S1",
            work: "paced".to_owned(),
            unit: "/s",
            ours,
            other: Some(("writer", 100.0)),
            judged: Judged::Ratio {
                must: Line::AtLeast(0.6),
                moonshot: Line::AtLeast(0.75),
            },
        }
    }

    #[test]
    fn a_row_below_its_must_is_not_met() {
        for (ours, word, met) in [
            (59.0, "NO", false),
            (60.0, "must", true),
            (75.0, "moonshot", true),
        ] {
            let mut table = Table::new(true);
            table.add(Measured::from(vec![row(ours)]));
            assert_eq!(
                (table.all_met(), table.json()["rows"][0]["met"].as_str()),
                (met, Some(word))
            );
            let mut smoke = Table::new(false);
            smoke.add(Measured::from(vec![row(ours)]));
            assert!(smoke.all_met(), "small sizes are not judged");
        }
    }

    #[test]
    fn the_median_of_an_even_number_is_the_mean_of_the_middle_two() {
        assert_eq!((median(vec![3.0, 1.0, 2.0]), median(vec![4.0, 1.0])), (2.0, 2.5));
    }
}
