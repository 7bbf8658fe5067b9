//! Results compared with their limits, as text and as JSON.

use serde_json::{Value, json};

use crate::rows::{Against, Group, Line, Row};
use crate::sample::Taken;

/// A pair of measurements: ours, and the comparison.
pub(crate) type Pair = (Taken, Taken);

/// A measured row.
#[derive(Debug)]
struct Measured {
    row: Row,
    against: Against,
    ours: f64,
    other: f64,
    /// Ratio of each pair, sorted.
    ratios: Vec<f64>,
    /// CPU time of theirs divided by ours for each pair, sorted: hardly affected by other load.
    cpu: Vec<f64>,
}

/// All rows.
#[derive(Debug)]
pub(crate) struct Table {
    judges: bool,
    rows: Vec<Measured>,
}

impl Table {
    /// Creates an empty table. `judges`: whether the sizes are those of the limits.
    pub(crate) fn new(judges: bool) -> Self {
        Self {
            judges,
            rows: Vec::new(),
        }
    }

    /// Adds the rows of a group from its pairs. `counts`: number of objects of ours, and of the comparison.
    pub(crate) fn add(&mut self, group: &Group, pairs: &[Pair], counts: (u64, u64)) {
        for &row in group.rows {
            let of = |pair: &Pair| (row.figure.of(&pair.0, counts.0), row.figure.of(&pair.1, counts.1));
            let sorted = |value: fn(Row, (f64, f64)) -> f64| {
                let mut values: Vec<f64> = pairs.iter().map(|pair| value(row, of(pair))).collect();
                values.sort_by(f64::total_cmp);
                values
            };
            self.rows.push(Measured {
                row,
                against: group.against,
                ours: median(&sorted(|_, (ours, _)| ours)),
                other: median(&sorted(|_, (_, other)| other)),
                ratios: sorted(|row, (ours, other)| row.figure.ratio(ours, other)),
                cpu: {
                    let mut cpu: Vec<f64> = pairs.iter().map(|(ours, other)| other.cpu / ours.cpu).collect();
                    cpu.sort_by(f64::total_cmp);
                    cpu
                },
            });
        }
    }

    /// Returns true if every "must" is met.
    pub(crate) fn all_met(&self) -> bool {
        !self.judges || self.rows.iter().all(|row| row.met() != Some(Met::No))
    }

    pub(crate) fn human(&self) -> String {
        let header = [
            "row", "work", "ours", "theirs", "ratio", "range", "CPU", "must", "aim", "met",
        ];
        let mut lines = vec![header.map(str::to_owned)];
        for measured in &self.rows {
            let row = measured.row;
            let other = match measured.against {
                Against::Theirs => String::new(),
                Against::OursAt(count) => format!(" (ours at {count})"),
            };
            let lines_of = row.lines.filter(|_| self.judges);
            lines.push([
                row.name.to_owned(),
                row.work.to_owned(),
                format!("{} {}", number(measured.ours), row.figure.unit()),
                format!("{} {}{other}", number(measured.other), row.figure.unit()),
                number(measured.ratio()),
                format!(
                    "{}-{}",
                    number(measured.ratios.first().copied().unwrap_or(f64::NAN)),
                    number(measured.ratios.last().copied().unwrap_or(f64::NAN))
                ),
                match measured.against {
                    Against::Theirs => number(median(&measured.cpu)),
                    Against::OursAt(_) => String::new(),
                },
                lines_of.map(|(must, _)| text(must)).unwrap_or_default(),
                lines_of.map(|(_, aim)| text(aim)).unwrap_or_default(),
                measured
                    .met()
                    .filter(|_| self.judges)
                    .map(|met| met.word().to_owned())
                    .unwrap_or_default(),
            ]);
        }
        let widths: Vec<usize> = (0..header.len())
            .map(|column| lines.iter().map(|line| line[column].len()).max().unwrap_or(0))
            .collect();
        let line = |cells: &[String; 10]| {
            let padded = cells
                .iter()
                .zip(&widths)
                .map(|(cell, width)| format!("{cell:<width$}"));
            padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        lines.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    pub(crate) fn json(&self) -> Value {
        let rows: Vec<Value> = self
            .rows
            .iter()
            .map(|measured| {
                let row = measured.row;
                json!({
                    "row": row.name,
                    "work": row.work,
                    "unit": row.figure.unit(),
                    "ours": measured.ours,
                    "theirs": (measured.against == Against::Theirs).then_some(measured.other),
                    "ours_small": (measured.against != Against::Theirs).then_some(measured.other),
                    "ratio": measured.ratio(),
                    "ratios": measured.ratios,
                    "cpu_ratio": median(&measured.cpu),
                    "must": row.lines.map(|(must, _)| text(must)),
                    "aim": row.lines.map(|(_, aim)| text(aim)),
                    "met": measured.met().filter(|_| self.judges).map(|met| met != Met::No),
                    "aim_met": measured.met().filter(|_| self.judges).map(|met| met == Met::Aim),
                })
            })
            .collect();
        json!({ "rows": rows })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Met {
    No,
    Must,
    Aim,
}

impl Met {
    fn word(self) -> &'static str {
        match self {
            Self::No => "NO",
            Self::Must => "must",
            Self::Aim => "aim",
        }
    }
}

impl Measured {
    fn ratio(&self) -> f64 {
        median(&self.ratios)
    }

    /// Returns which limit was met; `None`: there is none.
    fn met(&self) -> Option<Met> {
        let (must, aim) = self.row.lines?;
        let value = if self.row.is_own { self.ours } else { self.ratio() };
        Some(if aim.holds(value) {
            Met::Aim
        } else if must.holds(value) {
            Met::Must
        } else {
            Met::No
        })
    }
}

/// Returns the median of sorted values.
fn median(values: &[f64]) -> f64 {
    match values.len() {
        0 => f64::NAN,
        length if length % 2 == 1 => values[length / 2],
        length => f64::midpoint(values[length / 2 - 1], values[length / 2]),
    }
}

fn text(line: Line) -> String {
    match line {
        Line::AtLeast(value) => format!(">= {}", number(value)),
        Line::AtMost(value) => format!("<= {}", number(value)),
    }
}

/// Formats a number with three significant digits.
fn number(value: f64) -> String {
    let size = value.abs();
    if size >= 1e4 {
        format!("{:.1}k", value / 1e3)
    } else if size >= 100.0 {
        format!("{value:.0}")
    } else if size >= 10.0 {
        format!("{value:.1}")
    } else if size >= 0.095 || size == 0.0 {
        format!("{value:.2}")
    } else if size >= 0.0095 {
        format!("{value:.3}")
    } else {
        format!("{value:.5}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::GROUPS;

    fn taken(wall: f64) -> Taken {
        Taken {
            wall,
            ..Taken::default()
        }
    }

    #[test]
    fn a_row_is_judged_by_the_median_of_its_pairs() {
        let mut table = Table::new(true);
        // Twice as fast in most pairs, and once slower because the machine was busy.
        let pairs = [
            (taken(1.0), taken(2.0)),
            (taken(9.0), taken(2.0)),
            (taken(1.0), taken(2.2)),
        ];
        table.add(&GROUPS[0], &pairs, (10, 10));
        assert!(table.all_met());
        assert_eq!(table.json()["rows"][0]["ratio"], 2.0);
        let mut slow = Table::new(true);
        slow.add(&GROUPS[0], &[(taken(2.0), taken(2.0))], (10, 10));
        assert!(!slow.all_met());
        assert_eq!(slow.json()["rows"][0]["met"], false);
    }
}
