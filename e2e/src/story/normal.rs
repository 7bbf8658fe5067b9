//! Takes out of what kubectl prints what no two runs share. Pure text in, text out.

use std::sync::LazyLock;

use regex::Regex;

/// What is looked for, and what is written instead, in this order.
const RULES: [(&str, &str); 23] = [
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<uid>"),
    (r"https?://(127\.0\.0\.1|localhost):\d+", "<server>"),
    (r"(127\.0\.0\.1|localhost):\d+", "<server>"),
    (r"eyJ[\w.-]+", "<token>"),
    (r#"(resourceVersion\\?"?: ?\\?")\d+"#, "$1<version>"),
    // Who owns what is in the order of time, to the second.
    (r#"(\\"managedFields\\":)\[.*?\],(\\"name\\":)"#, "$1<owners>,$2"),
    (r"(Resource Version: +)\d+", "$1<version>"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "<time>"),
    (
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)? [+-]\d{4}( UTC)?",
        "<time>",
    ),
    (r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "<time>"),
    (r"(?m)^([EIW])\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ ", "$1 <time> "),
    // The folders in which `diff` and `edit` keep what they compare and what is edited.
    (r"\S*/(LIVE|MERGED)-\d+", "$1"),
    (r"\S*/kubectl-edit-[\w.-]+", "<file>"),
    // What a service is given.
    (r"\b10(\.\d+){3}\b", "<ip>"),
    (r"\b3[0-2]\d{3}\b", "<port>"),
    // What generateName ends with.
    (r"-[bcdfghjklmnpqrstvwxz2456789]{5}\b", "-<random>"),
    // Ages are alone in their cell. The oracle and the fake are both asked too soon for more than one unit.
    (r"(?m)(^|  )(\d+m)?\d+(\.\d+)?m?s( ago)?(  |$)", "$1<age>$5"),
    (r"(?m)(^|  )(\d+m)?\d+(\.\d+)?m?s( ago)?(  |$)", "$1<age>$5"),
    (r"\(\d+s ago\)", "(<age> ago)"),
    // Columns are as wide as their widest cell, which may be an age. What stands before a line's first word, stays.
    (r"(\S) {2,}", "$1  "),
    (r"(?m) +$", ""),
    (r"(?m)^-{8,}$", "--------"),
    (r"\t", "  "),
];

static COMPILED: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let compiled = RULES.map(|(pattern, instead)| {
        let pattern = Regex::new(pattern).expect("the rules are well written: a test applies them");
        (pattern, instead)
    });
    compiled.into()
});

/// The text, without what no two runs share, ending with a line's end unless it is empty.
pub(super) fn text(printed: &str) -> String {
    let mut text = printed.to_owned();
    for (pattern, instead) in &*COMPILED {
        text = pattern.replace_all(&text, *instead).into_owned();
    }
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::text;

    #[rstest]
    #[case::ages("NAME   AGE\na      5s\n", "NAME  AGE\na  <age>\n")]
    #[case::indentation("spec:\n    a:     b\n", "spec:\n    a:  b\n")]
    #[case::versions("  resourceVersion: \"12\"", "  resourceVersion: \"<version>\"\n")]
    #[case::quoted_versions(
        r#"{\"resourceVersion\":\"12\"}"#,
        "{\\\"resourceVersion\\\":\\\"<version>\\\"}\n"
    )]
    #[case::durations_of_an_object("  delay=5s timeout=1s", "  delay=5s timeout=1s\n")]
    #[case::generated("pod/a-b8xkz created", "pod/a-<random> created\n")]
    #[case::words("pod/a-first created", "pod/a-first created\n")]
    #[case::addresses("dial https://127.0.0.1:4711/api", "dial <server>/api\n")]
    #[case::nothing("", "")]
    fn what_no_two_runs_share_is_left_out(#[case] printed: &str, #[case] expected: &str) {
        assert_eq!(text(printed), expected);
    }
}
