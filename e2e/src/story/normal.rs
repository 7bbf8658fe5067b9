//! Normalises the output of kubectl: replaces values that differ between runs. Pure text in, text out.

use std::sync::LazyLock;

use regex::Regex;

/// An age as apimachinery's `util/duration` prints it, or client-go prints one in the future (`<invalid>`: clocks differ).
/// Minutes alone have one digit, as the age of an object of this run: longer ones are durations from manifests (`60m`) or CPU
/// quantities (`100m`). `<unknown>` does not depend on the clock: the object has no such time.
macro_rules! age {
    () => {
        r"(?:<invalid>|\d+y(?:\d+d)?|\d+d(?:\d+h)?|\d+h(?:\d+m)?|(?:\d+m)?\d+(?:\.\d+)?m?s|[2-9]m)"
    };
}

/// An age that is the whole content of a cell or field.
const AGE_IN_A_CELL: &str = concat!(r"(?m)(^|  )", age!(), r"(?: ago)?(  |$)");

/// Patterns and their replacements, applied in this order.
const RULES: [(&str, &str); 26] = [
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<uid>"),
    (r"https?://(127\.0\.0\.1|localhost):\d+", "<server>"),
    (r"(127\.0\.0\.1|localhost):\d+", "<server>"),
    (r"eyJ[\w.-]+", "<token>"),
    (r#"(resourceVersion\\?"?: ?\\?")\d+"#, "$1<version>"),
    // The order of managers depends on time, to the second.
    (r#"(\\"managedFields\\":)\[.*?\],(\\"name\\":)"#, "$1<owners>,$2"),
    (r"(Resource Version: +)\d+", "$1<version>"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "<time>"),
    (
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)? [+-]\d{4}( UTC)?",
        "<time>",
    ),
    (r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "<time>"),
    (r"(?m)^([EIW])\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ ", "$1 <time> "),
    // Temporary folders of `diff` and `edit`.
    (r"\S*/(LIVE|MERGED)-\d+", "$1"),
    (r"\S*/kubectl-edit-[\w.-]+", "<file>"),
    // Port of the server, and the port range of its options.
    (r"(?i)\b(targetPort: +)(\d{5}|6443)\b", "$1<port>"),
    (r"\b10(\.\d+){3}/\d+", "<range>"),
    // Cluster IP of a service.
    (r"\b10(\.\d+){3}\b", "<ip>"),
    (r"\b3[0-2]\d{3}\b", "<port>"),
    // Suffix of a generated name.
    (r"-[bcdfghjklmnpqrstvwxz2456789]{5}\b", "-<random>"),
    // For repeated events kubectl prints the last and the first time; for restarts the time of the last one.
    (
        concat!(age!(), r" \(x(\d+) over ", age!(), r"\)"),
        "<age> (x$1 over <age>)",
    ),
    (concat!(r"\(", age!(), r" ago\)"), "(<age> ago)"),
    // Other ages are alone in their cell. Applied twice, because adjacent cells share the space between them.
    (AGE_IN_A_CELL, "$1<age>$2"),
    (AGE_IN_A_CELL, "$1<age>$2"),
    // Column widths depend on the widest cell, which can be an age. Indentation is kept.
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

/// Returns the normalised text, which ends with a newline unless it is empty.
pub(super) fn text(printed: &str) -> String {
    // The fake warns about objects that it does not evaluate; a real server sends no such line.
    let kept = printed.split_inclusive('\n');
    let mut text: String = kept
        .filter(|line| !line.contains("Warning: fake-apiserver: "))
        .collect();
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
    #[case::made_minutes_ago("a  2m\nb  2m5s\n", "a  <age>\nb  <age>\n")]
    #[case::hours("a  3h\nb  7h59m\nc  47h\n", "a  <age>\nb  <age>\nc  <age>\n")]
    #[case::days("a  2d\nb  7d23h\nc  729d\n", "a  <age>\nb  <age>\nc  <age>\n")]
    #[case::years("a  2y\nb  2y1d\nc  27y  27y\n", "a  <age>\nb  <age>\nc  <age>  <age>\n")]
    #[case::not_yet("a   <invalid>   <invalid>\n", "a  <age>  <age>\n")]
    #[case::no_time("a  <unknown>\n", "a  <unknown>\n")]
    #[case::repeated("2d3h (x3 over 2y1d)   Normal", "<age> (x3 over <age>)  Normal\n")]
    #[case::repeated_from_now_on("<invalid> (x3 over <invalid>)", "<age> (x3 over <age>)\n")]
    #[case::restarts("a   2 (325d ago)   5s", "a  2 (<age> ago)  <age>\n")]
    #[case::restart_to_come("a   2 (<invalid> ago)", "a  2 (<age> ago)\n")]
    #[case::since("Started:   2y1d ago", "Started:  <age>\n")]
    #[case::durations_asked_for("jane   5s   60m", "jane  <age>  60m\n")]
    #[case::quantities("cpu:   100m\nmemory:   3M", "cpu:  100m\nmemory:  3M\n")]
    #[case::indentation("spec:\n    a:     b\n", "spec:\n    a:  b\n")]
    #[case::versions("  resourceVersion: \"12\"", "  resourceVersion: \"<version>\"\n")]
    #[case::quoted_versions(
        r#"{\"resourceVersion\":\"12\"}"#,
        "{\\\"resourceVersion\\\":\\\"<version>\\\"}\n"
    )]
    #[case::durations_of_an_object("  delay=5s timeout=1s", "  delay=5s timeout=1s\n")]
    #[case::generated("pod/a-b8xkz created", "pod/a-<random> created\n")]
    #[case::port_of_the_server("TargetPort:        6443/TCP", "TargetPort:  <port>/TCP\n")]
    #[case::range_of_services("kubernetes   10.0.0.0/24", "kubernetes  <range>\n")]
    #[case::words("pod/a-first created", "pod/a-first created\n")]
    #[case::addresses("dial https://127.0.0.1:4711/api", "dial <server>/api\n")]
    #[case::nothing("", "")]
    fn what_no_two_runs_share_is_left_out(#[case] printed: &str, #[case] expected: &str) {
        assert_eq!(text(printed), expected);
    }
}
