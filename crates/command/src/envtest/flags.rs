//! Parser of the command lines of substituted programs, compatible with their libraries: pflag (kube-apiserver) and Go's
//! `flag` (etcd), including error messages. clap has other messages, and reports errors in another order.
//!
//! It must not know the effects of flags.
//!
//! Source: `github.com/spf13/pflag` `flag.go`; Go `flag/flag.go`; the tables are those of `--help` of kube-apiserver 1.37.2
//! and etcd 3.6.8.

use std::collections::BTreeMap;

/// A flag and the type of its value: empty for a boolean.
pub(crate) type Flag = (&'static str, &'static str);

/// Library of a program for its command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// `github.com/spf13/pflag`: `--flag`, `-f`, flags after arguments, `_` for `-`.
    Pflag,
    /// Go's `flag`: `-flag` or `--flag`, up to the first argument.
    GoFlag,
}

/// A parsed command line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Parsed {
    /// Start with these flags.
    Run(Given),
    /// `--help`.
    Help,
    /// `--version`.
    Version,
}

/// Flags with their values in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Given {
    values: BTreeMap<String, Vec<String>>,
    /// Arguments that are not flags.
    pub(crate) arguments: Vec<String>,
}

impl Given {
    /// Returns the last value of a flag that is not a list.
    pub(crate) fn last(&self, name: &str) -> Option<&str> {
        self.values.get(name)?.last().map(String::as_str)
    }

    /// Returns the elements of a flag that is a list, separated by commas or repeated.
    pub(crate) fn list(&self, name: &str) -> Vec<&str> {
        let values = self.values.get(name).into_iter().flatten();
        let elements = values.flat_map(|value| value.split(','));
        elements
            .map(str::trim)
            .filter(|element| !element.is_empty())
            .collect()
    }

    /// Returns a boolean; its value was checked by the parser.
    pub(crate) fn is_set(&self, name: &str, default: bool) -> bool {
        self.last(name).and_then(boolean).unwrap_or(default)
    }
}

/// Parses a table of flags: one line each, with the name and, unless it is a boolean, the type.
pub(crate) fn table(text: &'static str) -> Vec<Flag> {
    let lines = text.lines().filter(|line| !line.is_empty());
    lines
        .map(|line| line.split_once(' ').unwrap_or((line, "")))
        .collect()
}

/// Parses a command line without the name of the program.
///
/// # Errors
///
/// The error message of the library.
pub(crate) fn parse(dialect: Dialect, table: &[Flag], line: &[String]) -> Result<Parsed, String> {
    let mut given = Given::default();
    let mut rest = line.iter();
    while let Some(argument) = rest.next() {
        if argument == "--" {
            given.arguments.extend(rest.cloned());
            break;
        }
        if !argument.starts_with('-') || argument == "-" {
            given.arguments.push(argument.clone());
            if dialect == Dialect::GoFlag {
                given.arguments.extend(rest.cloned());
                break;
            }
            continue;
        }
        let word = match (dialect, argument.strip_prefix("--")) {
            (_, Some(word)) => word,
            (Dialect::GoFlag, None) => &argument[1..],
            (Dialect::Pflag, None) => match shorthand(&argument[1..], argument, &mut rest)? {
                None => return Ok(Parsed::Help),
                Some(level) => {
                    set(dialect, ("v", "Level"), "v", &level, &mut given)?;
                    continue;
                }
            },
        };
        if word.is_empty() || word.starts_with(['-', '=']) {
            return Err(format!("bad flag syntax: {argument}"));
        }
        let (written, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (word, None),
        };
        // k8s.io/component-base, WordSepNormalizeFunc.
        let name = match dialect {
            Dialect::Pflag => written.replace('_', "-"),
            Dialect::GoFlag => written.to_owned(),
        };
        let Some(flag) = table.iter().find(|(known, _)| *known == name) else {
            return match (dialect, name.as_str()) {
                (_, "help") | (Dialect::GoFlag, "h") => Ok(Parsed::Help),
                (_, "version") => Ok(Parsed::Version),
                (Dialect::Pflag, _) => Err(format!("unknown flag: --{written}")),
                (Dialect::GoFlag, _) => Err(format!("flag provided but not defined: -{written}")),
            };
        };
        let value = match (value, flag.1) {
            (Some(value), _) => value,
            (None, "") => "true".to_owned(),
            (None, _) => match (rest.next(), dialect) {
                (Some(value), _) => value.clone(),
                (None, Dialect::Pflag) => return Err(format!("flag needs an argument: --{written}")),
                (None, Dialect::GoFlag) => return Err(format!("flag needs an argument: -{written}")),
            },
        };
        set(dialect, *flag, &name, &value, &mut given)?;
    }
    Ok(Parsed::Run(given))
}

/// Parses the only shorthands of kube-apiserver: `-h` (returns `None`), and `-v` with its level.
fn shorthand<'a>(
    letters: &str,
    argument: &str,
    rest: &mut impl Iterator<Item = &'a String>,
) -> Result<Option<String>, String> {
    match letters.chars().next() {
        Some('h') => Ok(None),
        Some('v') => {
            let level = letters[1..].strip_prefix('=').unwrap_or(&letters[1..]);
            if !level.is_empty() {
                return Ok(Some(level.to_owned()));
            }
            let next = rest.next().cloned();
            next.map(Some)
                .ok_or_else(|| format!("flag needs an argument: 'v' in {argument}"))
        }
        letter => Err(format!(
            "unknown shorthand flag: '{}' in {argument}",
            letter.unwrap_or('-')
        )),
    }
}

fn set(
    dialect: Dialect,
    (name, kind): Flag,
    written: &str,
    value: &str,
    given: &mut Given,
) -> Result<(), String> {
    let wrong = match kind {
        "" => boolean(value).is_none().then_some("strconv.ParseBool"),
        "int" => value.parse::<i64>().is_err().then_some("strconv.ParseInt"),
        "Level" => value.parse::<u32>().is_err().then_some("strconv.ParseUint"),
        _ => None,
    };
    let Some(parser) = wrong else {
        let values = given.values.entry(written.to_owned()).or_default();
        values.push(value.to_owned());
        return Ok(());
    };
    Err(match (dialect, kind) {
        (Dialect::GoFlag, _) => format!("invalid boolean value \"{value}\" for -{name}: parse error"),
        (Dialect::Pflag, "Level") => {
            format!(
                "invalid argument \"{value}\" for \"-v, --v\" flag: {parser}: parsing \"{value}\": invalid syntax"
            )
        }
        (Dialect::Pflag, _) => {
            format!(
                "invalid argument \"{value}\" for \"--{name}\" flag: {parser}: parsing \"{value}\": invalid syntax"
            )
        }
    })
}

/// Parses a boolean as `strconv.ParseBool` does.
fn boolean(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const TABLE: [Flag; 5] = [
        ("secure-port", "int"),
        ("cert-dir", "string"),
        ("allow-privileged", ""),
        ("authorization-mode", "strings"),
        ("v", "Level"),
    ];

    fn read(dialect: Dialect, line: &str) -> Result<Parsed, String> {
        let line: Vec<String> = line.split(' ').map(str::to_owned).collect();
        parse(dialect, &TABLE, &line)
    }

    /// Recorded from kube-apiserver 1.36.3 and etcd 3.6.8.
    #[rstest]
    #[case("--foo", "unknown flag: --foo")]
    #[case("--Foo_bar=x", "unknown flag: --Foo_bar")]
    #[case("--insecure-port=0", "unknown flag: --insecure-port")]
    #[case("-x", "unknown shorthand flag: 'x' in -x")]
    #[case("--=x", "bad flag syntax: --=x")]
    #[case("--secure-port", "flag needs an argument: --secure-port")]
    #[case(
        "--secure_port=x",
        "invalid argument \"x\" for \"--secure-port\" flag: strconv.ParseInt: parsing \"x\": invalid syntax"
    )]
    #[case(
        "--allow-privileged=zz",
        "invalid argument \"zz\" for \"--allow-privileged\" flag: strconv.ParseBool: parsing \"zz\": invalid syntax"
    )]
    #[case(
        "-v=zz",
        "invalid argument \"zz\" for \"-v, --v\" flag: strconv.ParseUint: parsing \"zz\": invalid syntax"
    )]
    fn mistakes_are_reported_in_the_words_of_pflag(#[case] line: &str, #[case] expected: &str) {
        assert_eq!(read(Dialect::Pflag, line), Err(expected.to_owned()));
    }

    #[rstest]
    #[case("--foo", "flag provided but not defined: -foo")]
    #[case("-cert-dir", "flag needs an argument: -cert-dir")]
    #[case(
        "--allow-privileged=zz",
        "invalid boolean value \"zz\" for -allow-privileged: parse error"
    )]
    fn mistakes_are_reported_in_the_words_of_go(#[case] line: &str, #[case] expected: &str) {
        assert_eq!(read(Dialect::GoFlag, line), Err(expected.to_owned()));
    }

    #[rstest]
    #[case::equals("--secure-port=1 --cert-dir=/a --allow-privileged=true -v=2")]
    #[case::next("--secure-port 1 --cert-dir /a --allow-privileged -v 2")]
    #[case::underscores("--secure_port 1 --cert_dir=/a --allow_privileged=1 --v=2")]
    #[case::the_last_wins("--secure-port=7 --secure-port=1 --cert-dir=/a --allow-privileged -v2")]
    fn flags_are_read_in_every_form(#[case] line: &str) {
        let Ok(Parsed::Run(given)) = read(Dialect::Pflag, line) else {
            panic!("{line}");
        };
        assert_eq!(given.last("secure-port"), Some("1"));
        assert_eq!(given.last("cert-dir"), Some("/a"));
        assert_eq!(given.last("v"), Some("2"));
        assert!(given.is_set("allow-privileged", false) && given.arguments.is_empty());
    }

    #[test]
    fn lists_are_joined_and_arguments_kept() {
        let line = "--authorization-mode=RBAC,Node extra --authorization-mode Webhook";
        let Ok(Parsed::Run(given)) = read(Dialect::Pflag, line) else {
            panic!("{line}");
        };
        assert_eq!(given.list("authorization-mode"), ["RBAC", "Node", "Webhook"]);
        assert_eq!(given.arguments, ["extra"]);
        assert_eq!(read(Dialect::Pflag, "extra -h"), Ok(Parsed::Help));
        let Ok(Parsed::Run(given)) = read(Dialect::GoFlag, "extra --foo") else {
            panic!("Go's flag stops at the first argument");
        };
        assert_eq!(given.arguments, ["extra", "--foo"]);
    }
}
