//! Costs of expressions: those of a real server, and the limits that no expression passes.

use rstest::rstest;
use serde_json::json;

use super::*;

/// Strings, lists and patterns that cost much.
fn object() -> serde_json::Value {
    json!({
        "text": "x".repeat(1_000_000),
        "wide": "é".repeat(300_000),
        "half": "ab".repeat(50_000),
        "items": (0..3000).map(|nth| format!("item{nth}")).collect::<Vec<_>>(),
        "numbers": (0..200_000).collect::<Vec<_>>(),
        "long": (0..20).map(|nth| format!("{}{nth}", "y".repeat(50_000))).collect::<Vec<_>>(),
        "patterns": (0..1000).map(|nth| format!("[a-z]{{1,50}}{nth}")).collect::<Vec<_>>(),
    })
}

/// Evaluates an expression with `self` as the object.
fn metered(source: &str) -> (Result<Value, Failure>, Meter) {
    let expression = Expression::parse(source).unwrap();
    let mut meter = Meter::default();
    let outcome = expression.metered(&[("self", untyped(&object()))], &mut meter);
    (outcome, meter)
}

/// `start` in so many loops, each of which maps its only element to `body`.
fn nested(start: &str, body: &str, times: usize) -> String {
    let loops = format!(".map(a, {body})").repeat(times);
    format!("{start}{loops}")
}

#[rstest]
#[case::bytes_double(&nested("[b'0123456789abcdef']", "a + a", 30))]
#[case::strings_double(&nested("['0123456789abcdef']", "a + a", 30))]
#[case::lists_double(&nested("[[1]]", "a + a", 30))]
#[case::a_value_has_itself_twice(&format!("{0} == {0}", nested("[1]", "[a, a]", 40)))]
#[case::a_list_of_lists_is_written(&format!("'%s'.format([{}])", nested("[1]", "[a, a]", 40)))]
#[case::a_list_of_lists_is_summed(&format!("{}.isSorted()", nested("[1]", "[a, a]", 40)))]
#[case::a_list_of_lists_is_flattened(&format!("{}.flatten(100)", nested("[1]", "[a, a]", 40)))]
#[case::ranges(&["lists.range(1000000)"; 40].join(" + "))]
#[case::ranges_within_a_call(&["lists.range(900000)"; 40].join(" + "))]
#[case::membership_in_loops("self.items.all(x, self.items.all(y, x in self.items))")]
#[case::membership_of_long_texts("self.numbers.all(n, self.long[0] in self.long)")]
#[case::loops_in_loops("self.numbers.all(x, self.numbers.all(y, x != y || x == y))")]
#[case::two_variables_in_loops("self.items.all(i, x, self.items.all(j, y, i != j || x == y))")]
#[case::texts_that_grow("self.items.map(x, self.text + x)")]
#[case::texts_that_are_compared("self.items.all(x, self.text == self.text)")]
#[case::texts_that_are_written("self.items.all(x, '%s'.format([self.text]) != '')")]
#[case::texts_that_are_quoted("self.items.all(x, strings.quote(self.text) != '')")]
#[case::precisions("self.items.all(x, '%.100000f'.format([1.5]) != '')")]
#[case::a_precision("'%.2000000000f'.format([1.5]) == ''")]
#[case::a_width("'%.2000000000e'.format([1.5]) == ''")]
#[case::literal_patterns("self.items.all(x, self.text.matches('(x+x+)+y') || true)")]
#[case::patterns("self.patterns.all(p, 'a'.matches(p) || true)")]
#[case::patterns_in_a_long_text("self.patterns.all(p, self.text.matches(p) || true)")]
#[case::a_pattern_of_many_states("self.items.all(x, self.half.matches('[ab]*a[ab]{900}c') || true)")]
#[case::matches_that_are_found("self.items.all(x, self.text.findAll('x').size() > 0)")]
#[case::parts("self.items.all(x, self.text.split('').size() > 0)")]
#[case::replacements("self.items.map(x, self.text.replace('x', 'xxxxxxxxxxxxxxxxxxxx'))")]
#[case::replacements_between("self.text.replace('', self.text) == ''")]
#[case::joined("self.items.all(x, self.long.join(self.text) != '')")]
#[case::characters("self.items.all(x, self.wide.charAt(299999) != '')")]
#[case::searches("self.items.all(x, self.text.indexOf('xxxxxxxxy') < 0)")]
#[case::searches_of_long_parts("self.items.all(x, self.text.contains(self.text))")]
#[case::sorted("self.items.sort().size() == 3000")]
#[case::sorted_by_key("self.items.sortBy(x, x).size() == 3000")]
#[case::distinct("self.items.distinct().size() == 3000")]
#[case::sets("sets.equivalent(self.items, self.items)")]
#[case::maps("self.numbers.transformMap(i, x, {'a': x, 'b': [x]}).size() > 0")]
#[case::entries("self.numbers.transformMapEntry(i, x, {string(i): x}).size() > 0")]
#[case::optionals("self.numbers.map(x, optional.of([x])).map(o, o.orValue([])).size() > 0")]
#[case::quantities("self.numbers.all(x, quantity('1').add(quantity('2')).isGreaterThan(quantity('1')))")]
#[case::versions("self.items.all(x, semver('1.2.3-' + self.text).major() == 1)")]
#[case::urls("self.items.all(x, isURL(self.text) || true)")]
#[case::addresses("self.numbers.all(x, cidr('10.0.0.0/8').containsIP('10.0.0.1'))")]
#[case::formats("self.items.all(x, format.uri().validate(self.text).hasValue())")]
#[case::zones("self.numbers.all(x, timestamp('2020-01-01T00:00:00Z').getHours('Europe/Berlin') > 0)")]
#[case::constants(&format!("self.numbers.all(x, {}true)", "true && ".repeat(1000)))]
#[case::sums("self.items.all(x, self.numbers.sum() > 0)")]
fn the_limit_ends_it(#[case] source: &str) {
    let (outcome, meter) = metered(source);
    assert_eq!(outcome.unwrap_err(), Failure::Cost, "{meter:?}");
    assert_eq!(
        Failure::Cost.to_string(),
        "operation cancelled: actual cost limit exceeded"
    );
    // What was charged was done but for the last operation, so that this many units are the time and the memory it took.
    assert!(meter.work <= 4_000_000, "{meter:?}");
}

#[rstest]
#[case("self.items.map(x, self.text).size() == 3000")]
#[case("self.items.filter(x, x in ['item1', 'item2']).size() == 2")]
#[case("self.items.all(x, x.matches('^item[0-9]+$') && x.startsWith('item') && x.size() < 10)")]
#[case("self.text.split('').size() == 1000000 || true")]
#[case("lists.range(900000).size() == 900000")]
#[case("self.text.matches('^x+$') && self.text.replace('x', 'y').size() == 1000000")]
#[case("self.items.transformMap(i, x, x).size() == 3000")]
fn usual_rules_are_within_the_limit(#[case] source: &str) {
    let (outcome, meter) = metered(source);
    // Splitting a million characters takes more than an evaluation may.
    if source.contains("split") {
        assert_eq!(outcome.unwrap_err(), Failure::Cost);
        return;
    }
    assert!(matches!(outcome, Ok(Value::Bool(true))), "{outcome:?} {meter:?}");
}

/// Nothing ignores that the limit is exceeded, as it may ignore other errors.
#[rstest]
#[case("true || self.numbers.all(x, self.numbers.all(y, x == y || true))", false)]
#[case("self.numbers.all(x, self.numbers.all(y, x == y || true)) || true", true)]
#[case(
    "[1].exists(i, self.numbers.all(x, self.numbers.all(y, x == y || true))) || true",
    true
)]
#[case(
    "optional.of(self.numbers.all(x, self.numbers.all(y, x == y || true))).orValue(true)",
    true
)]
fn no_operator_ignores_the_limit(#[case] source: &str, #[case] exceeded: bool) {
    assert_eq!(
        metered(source).0.is_err_and(|failure| failure == Failure::Cost),
        exceeded
    );
}

/// Results and costs of cel-go 0.29.2 in the environment of Kubernetes 1.37, with the fields of `self` as variables.
#[test]
fn expressions_cost_what_a_server_charges() {
    let recorded: serde_json::Value = serde_json::from_str(include_str!("costs.json")).unwrap();
    let fields = recorded["self"].as_object().unwrap();
    let mut variables: Vec<(&str, Value)> = fields
        .iter()
        .map(|(name, value)| (name.as_str(), untyped(value)))
        .collect();
    variables.push(("self", untyped(&recorded["self"])));
    variables.push(("bt", Value::Bytes(b"bytes".as_slice().into())));
    let mut differing = Vec::new();
    for row in recorded["expressions"].as_array().unwrap() {
        let (source, result) = (row[0].as_str().unwrap(), row[1].as_str().unwrap());
        let expression = Expression::parse(source).unwrap();
        let mut meter = Meter::default();
        let outcome = expression.metered(&variables, &mut meter);
        let own = match &outcome {
            Ok(Value::Bool(truth)) => truth.to_string(),
            Ok(Value::Text(text)) => text.as_str().to_owned(),
            Ok(_) => "other".to_owned(),
            Err(failure) => failure.to_string(),
        };
        // An evaluation that fails ends before some operands are charged.
        let same_cost = outcome.is_err() || row[2] == meter.cost;
        if own != result || !same_cost {
            differing.push(format!(
                "{source}: {own}, {} units instead of {result}, {}",
                meter.cost, row[2]
            ));
        }
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

#[test]
fn a_budget_ends_before_the_next_evaluation() {
    let expression = Expression::parse("self.items.all(x, x.matches('^item[0-9]+$'))").unwrap();
    let variables = [("self", untyped(&object()))];
    let mut budget = Budget::new(OBJECT_COST_MAX);
    let mut evaluations = 0;
    while !budget.is_exhausted() {
        assert_eq!(
            expression.evaluate(&variables, &mut budget),
            Ok(Evaluated::Bool(true))
        );
        evaluations += 1;
    }
    assert!((50..2000).contains(&evaluations), "{evaluations}");
}

/// Patterns that take long to compile are compiled as long as the budget of their definition lasts.
#[test]
fn patterns_are_compiled_within_a_budget() {
    let budget = crate::crd::patterns::Budget::default();
    let ends = |nth: usize| {
        let source = format!(r"'a'.matches(r'\pL{{1,20}}{nth}') || true");
        let expression = Expression::parse_within(&source, &budget).unwrap();
        expression.evaluate(&[], &mut Budget::new(OBJECT_COST_MAX))
    };
    assert_eq!(ends(0), Ok(Evaluated::Bool(true)));
    let first = (1..200).find(|nth| ends(*nth) == Err(Failure::Cost));
    assert!(first.is_some());
}

#[test]
fn problems_are_reported_up_to_a_hundred() {
    let source = (0..2000)
        .map(|nth| format!("v{nth}"))
        .collect::<Vec<_>>()
        .join(" && ");
    let told = Expression::parse(&source).unwrap().check(&[]).unwrap_err();
    assert_eq!(told.matches("ERROR: ").count(), 100);
    assert!(told.ends_with("\n1900 more errors were truncated"));
}
