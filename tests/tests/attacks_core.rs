//! Single requests that once stopped a server or took all its time, named by finding. Run in-process, at the sizes of
//! the findings: if a cost is superlinear again, a test does not terminate.

use fake_apiserver::api::BODY_BYTES_MAX;
use http::HeaderValue;
use rstest::rstest;
use tests::attacks::paths::HOSTILE;
use tests::attacks::{Received, World, attack, get};

fn answered(name: &str) -> Received {
    let attack = attack(name);
    let mut world = World::prepared_for(attack, attack.size);
    world.send((attack.request)(attack.size))
}

/// S1: paths authorized as discovery are served as discovery.
#[test]
fn s1_no_path_leads_past_authorization() {
    let mut world = World::default();
    let secret = "TOP-SECRET";
    let body = format!("{{\"metadata\":{{\"name\":\"s\"}},\"stringData\":{{\"k\":\"{secret}\"}}}}");
    let mut request = get("/api/v1/namespaces/default/secrets");
    request.method = http::Method::POST;
    request
        .headers
        .insert("content-type", "application/json".parse().expect("a header"));
    request.body = body.into();
    assert_eq!(world.send(request).status, 201);
    for path in HOSTILE {
        let answer = world.send_limited(get(path));
        assert!(matches!(answer.status, 403 | 404), "{path}: {}", answer.text());
        assert!(
            !answer.text().contains("VE9QLVNFQ1JFVA"),
            "{path} shows the secret"
        );
    }
}

/// S2: each of these stopped the process.
#[rstest]
#[case::protobuf("protobuf schema within schemas", 400)]
#[case::json("JSON within lists", 400)]
#[case::yaml("YAML within lists", 400)]
#[case::copied_into_its_leaf("object copied into its own leaf", 422)]
#[case::copied_into_itself("object copied into itself", 422)]
#[case::defaults("items that are given defaults", 500)]
#[case::column("column of filters within filters", 200)]
fn s2_depth_and_growth_are_refused(#[case] name: &str, #[case] status: u16) {
    let answer = answered(name);
    let excerpt: String = answer.text().chars().take(300).collect();
    assert_eq!(answer.status, status, "{excerpt}");
}

/// S2: a body is read only up to its limit.
#[test]
fn s2_a_body_beyond_the_limit_is_too_large() {
    let mut world = World::default();
    let mut request = get("/api/v1/namespaces/default/configmaps");
    request.method = http::Method::POST;
    request.body = vec![b' '; BODY_BYTES_MAX + 1].into();
    let answer = world.send(request);
    assert_eq!((BODY_BYTES_MAX, answer.status), (3_145_728, 413));
    assert!(
        answer
            .text()
            .contains("Request entity too large: limit is 3145728")
    );
}

/// S5: the cost of these was quadratic or worse.
#[rstest]
#[case("containers of a pod", 201)]
#[case("init containers beside containers", 201)]
#[case("volumes and mounts of a pod", 201)]
#[case("ports of a service", 201)]
#[case("taints of a node", 201)]
#[case("faults of one object", 422)]
#[case("inserts before a long list", 200)]
#[case("patterns of a definition", 201)]
#[case("versions of a definition", 201)]
#[case("column of descents", 200)]
#[case("clauses of Accept", 200)]
#[case("items merged by their key", 200)]
#[case("items applied and dropped", 200)]
#[case("managers of an object", 201)]
#[case("finalizers that stay", 200)]
#[case("nulls of a strategic merge patch", 200)]
#[case("sysctls of a pod", 201)]
#[case("conditions of a pod", 200)]
#[case("items of a list that is a map", 201)]
#[case("rule for each item", 422)]
#[case("rule with bytes that double", 422)]
#[case("rule with lists that double", 422)]
#[case("rule with membership in loops", 422)]
#[case("rule with texts that grow", 422)]
#[case("rule with texts that are searched", 422)]
#[case("definition with large patterns", 201)]
fn s5_costs_are_linear(#[case] name: &str, #[case] status: u16) {
    let answer = answered(name);
    let excerpt: String = answer.text().chars().take(300).collect();
    assert_eq!(answer.status, status, "{excerpt}");
    assert!(
        answer.body.len() <= 4 * BODY_BYTES_MAX,
        "{} bytes",
        answer.body.len()
    );
}

/// S14: clients reject responses with too many headers.
#[test]
fn s14_warnings_are_few() {
    let answer = answered("fields nobody knows");
    let warnings: Vec<&HeaderValue> = answer
        .headers
        .iter()
        .filter(|(name, _)| name == "Warning")
        .map(|(_, text)| text)
        .collect();
    assert_eq!((answer.status, warnings.len()), (201, 100));
    assert!(warnings.iter().map(|text| text.len()).sum::<usize>() < 8192);
}
