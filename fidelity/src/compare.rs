//! Side-by-side diff of two transcripts. JSON lines are unfolded first, so that a difference is shown by key.

use std::fmt::Write;

const WIDTH: usize = 78;
/// Equal lines shown around a difference.
const CONTEXT: usize = 2;

/// Returns the differing parts, the recorded text on the left.
pub fn side_by_side(recorded: &str, played: &str) -> String {
    let left = unfold(recorded);
    let right = unfold(played);
    let rows = align(&left, &right);
    let mut near = vec![false; rows.len()];
    for (index, row) in rows.iter().enumerate() {
        if row.0 != row.1 {
            let from = index.saturating_sub(CONTEXT);
            let until = (index + CONTEXT + 1).min(rows.len());
            near[from..until].fill(true);
        }
    }
    let mut out = format!("{:WIDTH$}   {}\n", "RECORDED", "PLAYED");
    let mut skipped = false;
    for ((left, right), near) in rows.iter().zip(near) {
        if !near {
            skipped = true;
            continue;
        }
        if std::mem::take(&mut skipped) {
            out.push_str("…\n");
        }
        let mark = if left == right { ' ' } else { '|' };
        let _ = writeln!(
            out,
            "{} {mark} {}",
            fit(left.unwrap_or("")),
            right.unwrap_or("").trim_end()
        );
    }
    out
}

fn fit(text: &str) -> String {
    let length = text.chars().count();
    if length <= WIDTH {
        return format!("{text}{}", " ".repeat(WIDTH - length));
    }
    let cut: String = text.chars().take(WIDTH - 1).collect();
    format!("{cut}…")
}

/// Splits JSON lines at braces, brackets and commas.
fn unfold(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    for line in text.lines() {
        let Some(start) = line
            .find('{')
            .filter(|_| line.len() > WIDTH && !line.starts_with(['>', '<', '#', '=']))
        else {
            out.push(line.to_owned());
            continue;
        };
        if start > 0 {
            out.push(line[..start].to_owned());
        }
        let mut depth = 0_usize;
        let mut current = String::new();
        let mut in_string = false;
        let mut escaped = false;
        for c in line[start..].chars() {
            if in_string {
                current.push(c);
                in_string = escaped || c != '"';
                escaped = c == '\\' && !escaped;
                continue;
            }
            match c {
                '"' => {
                    in_string = true;
                    current.push(c);
                }
                '{' | '[' => {
                    current.push(c);
                    out.push(std::mem::take(&mut current));
                    depth += 1;
                    current = "  ".repeat(depth);
                }
                '}' | ']' => {
                    if !current.trim().is_empty() {
                        out.push(std::mem::take(&mut current));
                    }
                    depth = depth.saturating_sub(1);
                    current = format!("{}{c}", "  ".repeat(depth));
                }
                ',' => {
                    current.push(c);
                    out.push(std::mem::take(&mut current));
                    current = "  ".repeat(depth);
                }
                other => current.push(other),
            }
        }
        out.push(current);
    }
    out
}

/// Aligns lines by their longest common subsequence.
fn align<'a>(left: &'a [String], right: &'a [String]) -> Vec<(Option<&'a str>, Option<&'a str>)> {
    let common_start = left.iter().zip(right).take_while(|(a, b)| a == b).count();
    let (left_rest, right_rest) = (&left[common_start..], &right[common_start..]);
    let common_end = left_rest
        .iter()
        .rev()
        .zip(right_rest.iter().rev())
        .take_while(|(a, b)| a == b)
        .count();
    let a = &left_rest[..left_rest.len() - common_end];
    let b = &right_rest[..right_rest.len() - common_end];

    let mut rows: Vec<(Option<&str>, Option<&str>)> = left[..common_start]
        .iter()
        .map(|line| (Some(line.as_str()), Some(line.as_str())))
        .collect();
    // Limits the size of the table, and the time.
    if a.len().saturating_mul(b.len()) > 4_000_000 {
        rows.extend(a.iter().map(|line| (Some(line.as_str()), None)));
        rows.extend(b.iter().map(|line| (None, Some(line.as_str()))));
    } else {
        let mut table = vec![vec![0_u32; b.len() + 1]; a.len() + 1];
        for i in (0..a.len()).rev() {
            for j in (0..b.len()).rev() {
                table[i][j] = if a[i] == b[j] {
                    table[i + 1][j + 1] + 1
                } else {
                    table[i + 1][j].max(table[i][j + 1])
                };
            }
        }
        let (mut i, mut j) = (0, 0);
        while i < a.len() || j < b.len() {
            let both = i < a.len() && j < b.len();
            if both && (a[i] == b[j] || table[i + 1][j + 1] == table[i][j]) {
                rows.push((Some(&a[i]), Some(&b[j])));
                (i, j) = (i + 1, j + 1);
            } else if j == b.len() || (i < a.len() && table[i + 1][j] >= table[i][j + 1]) {
                rows.push((Some(&a[i]), None));
                i += 1;
            } else {
                rows.push((None, Some(&b[j])));
                j += 1;
            }
        }
    }
    rows.extend(
        left_rest[left_rest.len() - common_end..]
            .iter()
            .map(|line| (Some(line.as_str()), Some(line.as_str()))),
    );
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_differences_are_shown() {
        let out = side_by_side("a\nb\nc\nd\ne\nf\n", "a\nb\nc\nX\ne\nf\n");
        assert!(
            out.contains("d") && out.contains("| X") && !out.contains("a "),
            "{out}"
        );
    }

    #[test]
    fn an_extra_line_is_aligned_with_nothing() {
        let out = side_by_side("a\nc\n", "a\nb\nc\n");
        assert!(out.lines().any(|line| line.trim_start() == "| b"), "{out}");
    }
}
