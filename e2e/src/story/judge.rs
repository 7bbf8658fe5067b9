//! Compares two transcripts command by command: differences must be listed, and listed ones must occur. Pure text in, verdict
//! out.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use similar::{ChangeTag, TextDiff};

use super::{Chapter, Difference};

/// Maximum lines of a difference that are shown.
const SHOWN: usize = 40;

pub(super) fn judge(chapter: &Chapter, recorded: &str, played: &str) -> Result<(), String> {
    let mut wrong = String::new();
    let mut met = BTreeSet::new();
    let played = printed(&chapter.commands, played)?;
    let recorded = printed(&chapter.commands, recorded).map_err(|why| {
        format!(
            "{why}\nrecord it: cargo xtask fidelity kubectl --only {}",
            chapter.name()
        )
    })?;
    for ((command, real), fake) in chapter.commands.iter().zip(recorded).zip(played) {
        let known = || {
            let all = chapter.differences.iter();
            all.filter(|difference| difference.commands.contains(command))
        };
        let diff = TextDiff::from_lines(real, fake);
        let mut news = false;
        for change in diff.iter_all_changes() {
            let sign = match change.tag() {
                ChangeTag::Equal => continue,
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
            };
            let line = format!("{sign}{}", change.value().trim_end());
            let mut listed = false;
            for difference in known().filter(|difference| lists(difference, &line)) {
                met.extend([(difference.reason.as_str(), line.clone())]);
                met.extend([(difference.reason.as_str(), command.clone())]);
                listed = true;
            }
            news |= !listed;
        }
        if news {
            let diff = diff.unified_diff().context_radius(1).to_string();
            let shown: Vec<&str> = diff.lines().take(SHOWN).collect();
            let left = diff.lines().count() - shown.len();
            let _infallible = writeln!(wrong, "$ {command}\n{}", shown.join("\n"));
            if left > 0 {
                let _infallible = writeln!(wrong, "(and {left} more lines)");
            }
            wrong.push('\n');
        }
    }
    for difference in &chapter.differences {
        let listed = difference.commands.iter().map(String::as_str);
        for unmet in listed
            .chain(difference.lines.lines())
            .filter(|text| !met.contains(&(difference.reason.as_str(), (*text).to_owned())))
        {
            let reason = difference.reason.trim();
            let _infallible = writeln!(
                wrong,
                "differences.yaml lists a difference that does not occur; remove it:\n  {unmet}\n  ({reason})"
            );
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    let name = chapter.name();
    Err(format!(
        "kubectl prints something else for the fake than for a real server (-) in fidelity/oracle/kubectl/{name}:\n\n{wrong}\n\
         After a fix: cargo test -p e2e --test clients {name}\n\
         Intended differences are listed in fidelity/oracle/kubectl/{name}/differences.yaml, with reasons.\n"
    ))
}

fn lists(difference: &Difference, line: &str) -> bool {
    difference.lines.lines().any(|listed| listed == line)
}

/// Returns the output of each command.
fn printed<'a>(commands: &[String], transcript: &'a str) -> Result<Vec<&'a str>, String> {
    let mut texts = Vec::new();
    let mut rest = transcript;
    for (number, command) in commands.iter().enumerate() {
        rest = rest
            .strip_prefix(&format!("$ {command}\n"))
            .ok_or_else(|| format!("the transcript has no `{command}` where story.sh has it"))?;
        let end = match commands.get(number + 1) {
            Some(next) => rest
                .find(&format!("\n$ {next}\n"))
                .ok_or_else(|| format!("the transcript has no `{next}` after `{command}`"))?,
            None => rest.len().saturating_sub(1),
        };
        let (text, after) = rest.split_at(end);
        texts.push(text);
        rest = after.get(1..).unwrap_or_default();
    }
    if rest.is_empty() {
        Ok(texts)
    } else {
        Err("the transcript has more commands than story.sh".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use rstest::rstest;

    use super::super::{Chapter, Difference};

    const REAL: &str = "$ a\none\ntwo\n\n$ b\nthree\n\n";

    fn chapter(lines: &str, commands: &[&str]) -> Chapter {
        Chapter {
            folder: PathBuf::from("chapter"),
            title: String::new(),
            commands: vec!["a".to_owned(), "b".to_owned()],
            differences: vec![Difference {
                reason: "for a test".to_owned(),
                commands: commands.iter().map(|command| (*command).to_owned()).collect(),
                lines: lines.to_owned(),
            }],
        }
    }

    #[rstest]
    #[case::the_same(REAL, "", &[], None)]
    #[case::listed("$ a\none\n2\n\n$ b\nthree\n\n", "-two\n+2", &["a"], None)]
    #[case::not_listed("$ a\none\n2\n\n$ b\nthree\n\n", "-two", &["a"], Some("$ a\n"))]
    #[case::listed_elsewhere("$ a\none\n2\n\n$ b\nthree\n\n", "-two\n+2", &["b"], Some("$ a\n"))]
    #[case::no_longer(REAL, "-two\n+2", &["a"], Some("remove it:\n  -two"))]
    #[case::no_longer_there("$ a\none\n2\n\n$ b\nthree\n\n", "-two\n+2", &["a", "b"], Some("remove it:\n  b"))]
    #[case::another_story("$ a\none\n", "", &[], Some("no `b` after `a`"))]
    fn differences_equal_the_listed_ones(
        #[case] played: &str,
        #[case] lines: &str,
        #[case] commands: &[&str],
        #[case] complaint: Option<&str>,
    ) {
        let verdict = super::judge(&chapter(lines, commands), REAL, played);
        match (verdict, complaint) {
            (Ok(()), None) => {}
            (Err(mistake), Some(expected)) => assert!(mistake.contains(expected), "{mistake}"),
            (verdict, expected) => panic!("{verdict:?} and not {expected:?}"),
        }
    }
}
