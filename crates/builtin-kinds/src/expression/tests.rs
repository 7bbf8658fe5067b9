//! Results and errors of expressions, as recorded from a real server (oracle, Kubernetes 1.36).

use rstest::rstest;
use serde_json::json;

use super::*;

mod limits;

/// Returns the result with `self` as this object, or the error.
fn evaluated(source: &str) -> String {
    let object = json!({
        "n": 3, "d": 1.5, "s": "kube", "l": ["b", "a", "c"], "m": { "z": "1", "a": "2" }, "o": { "t": true },
        "many": vec![1; 3000],
    });
    let expression = match Expression::parse(source) {
        Ok(expression) => expression,
        Err(error) => return error,
    };
    match expression.evaluate(&[("self", untyped(&object))], &mut Budget::new(OBJECT_COST_MAX)) {
        Ok(Evaluated::Bool(truth)) => truth.to_string(),
        Ok(Evaluated::Text(text)) => text,
        Ok(Evaluated::Other) => "other".to_owned(),
        Err(failure) => failure.to_string(),
    }
}

#[rstest]
#[case("self.n > 2 && self.d < 2.0", "true")]
#[case("has(self.x) || self.s.startsWith('ku')", "true")]
#[case("self.x > 1", "no such key: x")]
#[case("self.l[7] == 'a'", "index out of bounds: 7")]
#[case("self.n / 0 == 1", "division by zero")]
#[case("self.n % 0 == 1", "modulus by zero")]
#[case("self.n > self.s", "no such overload")]
#[case("self.l.map(x, x + x).join(',')", "bb,aa,cc")]
#[case("self.m.map(k, k).join(',')", "a,z")]
#[case(
    "self.m.all(k, self.m[k] != '') && 'z' in self.m && size(self.m) == 2",
    "true"
)]
#[case("self.m == {'a': '2', 'z': '1'} && {'a': '2', 'z': '1'} == self.m", "true")]
#[case("self.m != {'a': '2'}", "true")]
#[case(
    "self.l == ['b', 'a', 'c'] && ['b'] + ['a'] == self.l.filter(x, x != 'c')",
    "true"
)]
#[case("self.l.isSorted()", "false")]
#[case("[1, 2, 3].sum() == 6 && [1, 3, 2].max() == 3 && [2, 1].min() == 1", "true")]
#[case(
    "self.l.indexOf('a') == 1 && ['a', 'a'].lastIndexOf('a') == 1 && self.l.indexOf('x') == -1",
    "true"
)]
#[case("self.s.find('[a-z]') + self.s.findAll('[ub]').join('')", "kub")]
#[case("'%s has %d'.format([self.s, self.n])", "kube has 3")]
#[case("self.s.replace('k', 'c')", "cube")]
#[case(
    "quantity('1Gi').isGreaterThan(quantity('1G')) && quantity('1500m').compareTo(quantity('1.5')) == 0",
    "true"
)]
#[case(
    "quantity('1k').add(quantity('1')).asInteger() == 1001 && !isQuantity('x')",
    "true"
)]
#[case(
    "url('https://a.b:80/c?d=1').getHostname() + url('https://a.b:80/c?d=1').getPort()",
    "a.b80"
)]
#[case(
    "isURL('/x') && !isURL('x') && url('http://h/p?a=1&a=2').getQuery()['a'] == ['1', '2']",
    "true"
)]
#[case(
    "cidr('10.0.0.0/8').containsIP('10.1.2.3') && !cidr('10.0.0.0/8').containsIP(ip('11.0.0.1'))",
    "true"
)]
#[case(
    "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && string(cidr('10.1.2.3/8').masked()) == '10.0.0.0/8'",
    "true"
)]
#[case(
    "ip('::1').family() == 6 && ip('::1').isLoopback() && isIP('1.2.3.4') && !isIP('1.2.3')",
    "true"
)]
#[case(
    "duration('90s') > duration('1m') && timestamp('2020-01-01T00:00:00Z').getFullYear() == 2020",
    "true"
)]
#[case(
    "optional.of(self.n).hasValue() && !optional.none().hasValue() && self.?x.orValue(4) == 4",
    "true"
)]
#[case("self.l.all(i, v, v != '' && i < 3) && !self.l.all(i, v, i < 2)", "true")]
#[case(
    "self.m.exists(k, v, k == 'z' && v == '1') && !self.m.exists(k, v, v == '3')",
    "true"
)]
#[case(
    "self.l.existsOne(i, v, v == 'a' && i == 1) && !self.l.existsOne(i, v, i > 0)",
    "true"
)]
#[case("self.l.transformList(i, v, v + string(i)).join(',')", "b0,a1,c2")]
#[case("self.m.transformList(k, v, v == '1', k + v).join(',')", "z1")]
#[case("string(self.m.transformMap(k, v, v + '!')['z'])", "1!")]
#[case("string(self.l.transformMap(i, v, i > 0, v).size())", "2")]
#[case("self.l.transformMap(i, v, v)[1]", "a")]
#[case("self.l.transformMapEntry(i, v, {v: i})['c'] == 2", "true")]
#[case("string(lists.range(4).slice(1, 3).size())", "2")]
#[case("['b', 'a', 'b'].distinct().sort().join('')", "ab")]
#[case("[[1], [2, 3]].flatten().size() == 3", "true")]
#[case("['bb', 'a'].sortBy(e, e.size())[0]", "a")]
#[case(
    "self.l.all(i, v, self.l.exists(j, w, i == j && v == w)) && {'x': [1, 2]}.all(k, v, v.all(i, n, n == i + 1))",
    "true"
)]
#[case("self.l.exists(i, v, v.nope == 1)", "no such key: nope")]
#[case(
    "self.l.all(i, 'v', true)",
    "ERROR: <input>:1:15: Syntax error: argument must be a simple name\n | self.l.all(i, 'v', true)\n | ..............^"
)]
#[case(
    "self.many.all(a, b, self.many.all(c, d, b == d))",
    "operation cancelled: actual cost limit exceeded"
)]
#[case(
    "sets.contains(self.l, ['a', 'b']) && !sets.contains(self.l, ['x']) && sets.contains([], [])",
    "true"
)]
#[case(
    "sets.equivalent(self.l, ['a', 'b', 'c', 'a']) && !sets.equivalent(['a'], self.l)",
    "true"
)]
#[case("sets.intersects([1], [2, 1]) && !sets.intersects([1], [])", "true")]
#[case(
    "sets.equivalent(self.many, self.many)",
    "operation cancelled: actual cost limit exceeded"
)]
#[case(
    "semver('1.2.3').isLessThan(semver('1.10.0')) && semver('1.0.0').isGreaterThan(semver('1.0.0-rc.1'))",
    "true"
)]
#[case(
    "semver('1.0.0-alpha.2').compareTo(semver('1.0.0-alpha.10')) == -1 && semver('1.2.3+a').compareTo(semver('1.2.3+b')) == 0",
    "true"
)]
#[case(
    "semver('v01.2', true) == semver('1.2.0') && semver('1.2.3').minor() == 2",
    "true"
)]
#[case(
    "isSemver('1.2.3') && !isSemver('1.2') && isSemver('1.2', true) && !isSemver('v1', false)",
    "true"
)]
#[case("semver('1.2').major() == 1", "No Major.Minor.Patch elements found")]
#[case(
    "semver('1.02.3').major() == 1",
    "Minor number must not contain leading zeroes \"02\""
)]
#[case(
    "semver('1.2.x').major() == 1",
    "Invalid character(s) found in patch number \"x\""
)]
#[case("semver('1.2.3-').major() == 1", "Prerelease is empty")]
#[case(
    "semver('1.2-rc', true).major() == 1",
    "short version cannot contain PreRelease/Build meta data"
)]
#[case(
    "!format.dns1123Label().validate('a-b').hasValue() && format.dns1123Label().validate('A').hasValue()",
    "true"
)]
#[case("format.dns1123Label().validate('a.b').value()[0]", "must not contain dots")]
#[case("!format.dns1123LabelPrefix().validate('a-').hasValue()", "true")]
#[case(
    "format.named('uuid').value().validate('x').value()[0]",
    "does not match the UUID format"
)]
#[case("format.named('nope').hasValue()", "false")]
#[case(
    "format.byte().validate('%').value() == ['invalid base64'] && format.date().validate('2020').value() == ['invalid date']",
    "true"
)]
#[case(
    "!format.qualifiedName().validate('a.b/c').hasValue() && !format.labelValue().validate('').hasValue()",
    "true"
)]
#[case(
    "self.many.all(a, self.many.all(b, a == b))",
    "operation cancelled: actual cost limit exceeded"
)]
#[case("true || self.many.all(a, self.many.all(b, a == b))", "true")]
#[case(
    "[self.s + self.s + self.s + self.s].map(a, [a + a].map(b, [b + b].map(c, [c + c + c + c + c + c + c + c + c].map(d, [d + d + d + d + d + d + d + d + d].map(e, \
     [e + e + e + e + e + e + e + e + e].map(f, f + f + f + f + f + f + f + f + f + f + f + f)))))).size() == 1",
    "true"
)]
#[case(
    "self.s.replace('', self.s).replace('', self.s).replace('', self.s).replace('', self.s).replace('', self.s).replace('', self.s)\
     .replace('', self.s).replace('', self.s).replace('', self.s).replace('', self.s).size() == 1",
    "operation cancelled: actual cost limit exceeded"
)]
fn an_expression_comes_to(#[case] source: &str, #[case] expected: &str) {
    assert_eq!(evaluated(source), expected);
}

/// `self` as an object with some fields.
fn declared() -> Type {
    let text_list = Type::List(Arc::new(Type::Text));
    Type::Object(Arc::new(
        [
            ("x", Type::Int),
            ("s", Type::Text),
            ("l", text_list),
            ("m", Type::Map(Arc::new(Type::Text))),
        ]
        .map(|(name, kind)| (name.to_owned(), kind))
        .into(),
    ))
}

use super::check::Type;

#[rstest]
#[case("self.z == 100", "1:5: undefined field 'z'")]
#[case("y > 3", "1:1: undeclared reference to 'y' (in container '')")]
#[case(
    "self.x > 'a'",
    "1:8: found no matching overload for '_>_' applied to '(int, string)'"
)]
#[case(
    "math.abs(self.x) > 1",
    "1:1: undeclared reference to 'math' (in container '')|1:9: undeclared reference to 'abs' (in container '')"
)]
#[case("foo(self.x)", "1:4: undeclared reference to 'foo' (in container '')")]
#[case("self.s.nope()", "1:12: undeclared reference to 'nope' (in container '')")]
#[case(
    "self.l.all(a, a.b == 1)",
    "1:16: type 'string' does not support field selection"
)]
#[case("self.x.y == 1", "1:7: type 'int' does not support field selection")]
#[case(
    "self.m.a == 1",
    "1:10: found no matching overload for '_==_' applied to '(string, int)'"
)]
#[case(
    "self.s + 1 == 2",
    "1:8: found no matching overload for '_+_' applied to '(string, int)'"
)]
#[case("self.x == 1 && self.q == 2", "1:20: undefined field 'q'")]
#[case("has(self.z)", "1:4: undefined field 'z'")]
#[case("self.s.matches('[')", "1:16: invalid matches argument")]
#[case("self.l.exists(e, z)", "1:18: undeclared reference to 'z' (in container '')")]
#[case(
    "self.s == 1 || self.x == 'a'",
    "1:8: found no matching overload for '_==_' applied to '(string, int)'|1:23: found no matching overload for '_==_' \
     applied to '(int, string)'"
)]
#[case(
    "self.l.all(a, a.size() > 1) && self.m.all(k, self.m[k] == 'x') && self.x in [1, 2]",
    ""
)]
#[case(
    "self.l.map(a, a.size()).sum() + self.x > 1 && self.l.filter(a, a != '').size() > 0",
    ""
)]
#[case("oldSelf.hasValue() ? oldSelf.value().x == self.x : true", "")]
#[case(
    "self.x > ",
    "1:10: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
)]
#[case("self.l.all(x y)", "1:14: Syntax error: extraneous input 'y' expecting ')'")]
#[case(
    "self.x = = 3",
    "1:8: Syntax error: token recognition error at: '= '|1:10: Syntax error: token recognition error at: '= '|1:12: Syntax error: extraneous input '3' expecting <EOF>"
)]
fn an_error_has_its_position(#[case] source: &str, #[case] expected: &str) {
    let old = Type::Optional(Arc::new(declared()));
    let checked = Expression::parse(source)
        .and_then(|expression| expression.check(&[("self", declared()), ("oldSelf", old)]));
    let told = checked.err().unwrap_or_default();
    let heads: Vec<&str> = told
        .lines()
        .filter_map(|line| line.strip_prefix("ERROR: <input>:"))
        .collect();
    assert_eq!(heads.join("|"), expected, "{told}");
}

#[test]
fn a_problem_shows_its_line() {
    let expression = Expression::parse("self.x == 1 &&\nself.z == 2").unwrap();
    let told = expression.check(&[("self", declared())]).unwrap_err();
    assert_eq!(
        told,
        "ERROR: <input>:2:5: undefined field 'z'\n | self.z == 2\n | ....^"
    );
}

proptest::proptest! {
    /// No expression ends the process or runs without end.
    #[test]
    fn any_text_has_an_answer(pieces in proptest::collection::vec(proptest::sample::select(PIECES), 0..24)) {
        evaluated(&pieces.concat());
    }
}

const PIECES: &[&str] = &[
    "self",
    ".",
    "n",
    "l",
    "m",
    "s",
    "many",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "'a'",
    "1",
    "0",
    "-",
    "+",
    "*",
    "/",
    "%",
    "==",
    "<",
    "&&",
    "||",
    "!",
    "?",
    ":",
    ",",
    ".all(x, ",
    ".map(y, ",
    ".exists(z, ",
    "has(",
    "x",
    "y",
    " in ",
    ".size()",
    ".format(",
    ".replace('', ",
    ".matches(",
    "duration(",
    "timestamp(",
    "quantity(",
    "9223372036854775807",
    "1.5",
    "b'x'",
    "null",
    "true",
    ".?q",
    "[?0]",
    ".orValue(",
    "optional.of(",
    ".substring(",
    ".charAt(",
    ".split(",
    ".getHours(",
    "'Mars/Base'",
    "\\",
    "\"",
    "\n",
];

#[test]
fn a_deep_text_is_refused_or_evaluated() {
    let nested = |levels: usize| format!("{}true{}", "(".repeat(levels), ")".repeat(levels));
    assert_eq!(evaluated(&nested(20)), "true");
    let deep = format!("{}self.n == 3", "!!".repeat(20));
    assert_eq!(evaluated(&format!("{deep} || {deep}")), "true");
    assert_eq!(evaluated(&format!("{}1 == 100", "1 + ".repeat(99))), "true");
    assert!(Expression::parse(&format!("{}1 == 1", "1 + ".repeat(7000))).is_err());
    assert!(Expression::parse(&format!("{}1 == 1", "1 + ".repeat(90_000))).is_err());
    assert!(Expression::parse(&format!("{}true", "true && ".repeat(3000))).is_ok());
    assert!(Expression::parse(&nested(5000)).is_err());
    let broken =
        "optional.of(+}quantity({1timestamp(.format(.map(y, {.map(y, .format(s?.matches(.exists(z, (,[?0]";
    assert!(Expression::parse(broken).is_err());
}
