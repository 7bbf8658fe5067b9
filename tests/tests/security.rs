//! `SECURITY.md` matches the code: the limits it states are those of the code, and the tests it names exist.
//!
//! A limit is a value before a link whose text is a constant or a field with a default, and whose target is its file.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use tests::repository;

/// Returns the rows of the table of promises: promise, limits, tests.
fn promises(text: &str) -> Vec<[&str; 3]> {
    let (_, below) = text.split_once("| promise |").unwrap();
    let rows = below.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split(" |").map(str::trim).collect();
        let [promise, limits, tests, ..] = cells.as_slice() else {
            panic!("three cells: {row}")
        };
        [*promise, *limits, *tests]
    })
    .collect()
}

/// Returns the links of a cell: the text before each, its name, and the content of its file.
fn links(cell: &str) -> Vec<(&str, &str, String)> {
    let links = cell.split_inclusive(".rs)").filter(|link| !link.is_empty());
    links
        .map(|link| {
            let (before, link) = link.split_once("[`").unwrap();
            let (name, file) = link.split_once("`](").unwrap();
            let file = repository::root().join(file.trim_end_matches(')'));
            let code = std::fs::read_to_string(&file).unwrap_or_else(|_| panic!("{}", file.display()));
            (before.trim_start_matches(',').trim(), name, code)
        })
        .collect()
}

/// Returns a constant, or a field of a default value, in base units: bytes, seconds.
fn value(code: &str, name: &str) -> Option<u64> {
    let constant = format!("const {name}: ");
    let expression = match code.split_once(&constant) {
        Some((_, below)) => below.split_once("= ")?.1.split_once(';')?.0,
        None => {
            let (_, defaults) = code.split_once("impl Default for ListenerLimits")?;
            defaults.split_once(&format!("{name}: "))?.1.split_once(",\n")?.0
        }
    };
    let expression = expression
        .trim_start_matches("Duration::from_secs(")
        .trim_end_matches(')');
    let factors = expression.split(" * ").map(number);
    factors.product()
}

fn number(text: &str) -> Option<u64> {
    match text.split_once(" << ") {
        Some((number, shift)) => Some(number.parse::<u64>().ok()? << shift.parse::<u32>().ok()?),
        None if text == "MIB" => Some(1 << 20),
        None => text.replace('_', "").parse().ok(),
    }
}

/// Parses the value at the end of a text: `history 64 MiB`.
fn stated(text: &str) -> Option<u64> {
    let words: Vec<&str> = text.split(' ').collect();
    let (number, unit) = match words.as_slice() {
        [.., number, "MiB"] => (number, 1 << 20),
        [.., number, "KiB"] => (number, 1 << 10),
        [.., number, "s"] | [.., number] => (number, 1),
        [] => return None,
    };
    Some(number.replace(',', "").parse::<u64>().ok()? * unit)
}

fn security() -> String {
    std::fs::read_to_string(repository::root().join("SECURITY.md")).unwrap()
}

#[test]
fn every_stated_limit_is_that_of_the_code() {
    let text = security();
    let mut compared = 0;
    for [promise, limits, _] in promises(&text) {
        for (before, name, code) in links(limits) {
            let (stated, value) = (stated(before), value(&code, name));
            assert!(stated.is_some(), "{promise} No value before {name}: {before:?}");
            assert_eq!(stated, value, "{promise} {name}");
            compared += 1;
        }
    }
    assert!(compared > 10, "only {compared} limits are stated");
}

#[test]
fn every_promise_names_tests_that_exist() {
    let text = security();
    for [promise, _, tests] in promises(&text) {
        let links = links(tests);
        assert!(!links.is_empty(), "no test holds this: {promise}");
        for (_, name, code) in links {
            let (before, _) = code
                .split_once(&format!("fn {name}("))
                .unwrap_or_else(|| panic!("{promise} No test {name}"));
            // Attributes and their comments precede a function.
            let attributes = before
                .rsplit_once("\n\n")
                .map_or(before, |(_, attributes)| attributes);
            let is_test = ["#[test]", "#[rstest]", "#[case", "#[tokio::test"]
                .iter()
                .any(|attribute| attributes.contains(attribute));
            assert!(is_test, "{promise} {name} is no test");
        }
    }
}

#[test]
fn a_limit_that_differs_is_seen() {
    let code = "pub(super) const A_MAX: usize = 64 * MIB;\nconst B: u64 = 4 << 10;\nconst C: usize = 16_384;";
    assert_eq!(value(code, "A_MAX"), stated("a 64 MiB"));
    assert_eq!(value(code, "B"), stated("b 4 KiB"));
    assert_eq!(value(code, "C"), stated("c 16,384"));
    assert_ne!(value(code, "A_MAX"), stated("a 65 MiB"));
    assert_eq!(value(code, "D"), None);
    assert_eq!(links("").len(), 0);
}
