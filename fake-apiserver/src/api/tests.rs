//! Requests that are rejected without reading the store, one row per rule, and the parsing of others.

use apimachinery::continue_token::ContinueToken;
use apimachinery::path::query_pairs;
use rstest::rstest;

use super::reads::VERSION_WITH_CONTINUE;
use super::*;
use apimachinery::Version;

const CM: &str = "/api/v1/namespaces/probe/configmaps";
const WD: &str = "/apis/probe.example.com/v1/namespaces/probe/widgets";

fn request(method: Method, target: &str, headers: &[(&str, &str)]) -> HttpRequest {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut map = http::HeaderMap::new();
    for (name, value) in headers {
        map.insert(
            http::HeaderName::from_bytes(name.as_bytes()).unwrap(),
            value.parse().unwrap(),
        );
    }
    HttpRequest {
        method,
        path: path.to_owned(),
        query: query.into(),
        headers: map,
        body: Bytes::new(),
    }
}

fn get(target: &str) -> Result<Request, Answer> {
    parse(
        &request(Method::GET, target, &[]),
        &Catalog::of_scenarios(NEWEST),
        true,
    )
}

/// Formats an error as `code reason|message|details`, or the whole body if it is not a Status.
fn summary(answer: &Answer) -> String {
    let Ok(body) = serde_json::from_slice::<serde_json::Value>(&answer.body) else {
        return format!("{} text {}", answer.status, String::from_utf8_lossy(&answer.body));
    };
    assert_eq!(body["code"], answer.status);
    assert_eq!(
        (&body["kind"], &body["status"]),
        (&"Status".into(), &"Failure".into())
    );
    let reason = body["reason"].as_str().unwrap_or("-");
    let details = body.get("details").map_or("-".to_owned(), ToString::to_string);
    format!(
        "{} {reason}|{}|{details}",
        answer.status,
        body["message"].as_str().unwrap()
    )
}

const NEWEST: Version = Version::NEWEST;

/// Invalid options: the causes, `field: R body` (F: Forbidden, N: not supported).
#[rstest]
#[case::match_without_version("resourceVersionMatch=Exact", &["F resourceVersionMatch is forbidden unless resourceVersion is provided"])]
#[case::match_with_continue("resourceVersionMatch=Exact&continue=x", &[
    "F resourceVersionMatch is forbidden unless resourceVersion is provided",
    "F resourceVersionMatch is forbidden when continue is provided",
])]
#[case::unknown_match("resourceVersion=5&resourceVersionMatch=Foo", &[r#"N "Foo": supported values: "Exact", "NotOlderThan", """#])]
#[case::exact_any("resourceVersion=0&resourceVersionMatch=Exact", &[r#"F resourceVersionMatch "exact" is forbidden for resourceVersion "0""#])]
#[case::initial_events_of_a_list("sendInitialEvents=false", &["S sendInitialEvents is forbidden for list"])]
#[case::initial_events_without_match("watch=1&sendInitialEvents=true", &["F sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"])]
#[case::match_of_a_plain_watch("watch=1&resourceVersion=5&resourceVersionMatch=NotOlderThan", &["F resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"])]
#[case::exact_initial_events("watch=1&resourceVersion=5&resourceVersionMatch=Exact&sendInitialEvents=1", &[
    "F sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
    r#"N "Exact": supported values: "NotOlderThan""#,
])]
#[case::initial_events_with_continue("watch=1&sendInitialEvents=1&resourceVersionMatch=NotOlderThan&continue=x", &["F resourceVersionMatch is forbidden when continue is provided"])]
fn options_that_contradict_each_other_are_422(#[case] query: &str, #[case] faults: &[&str]) {
    let causes: Vec<Cause> = faults
        .iter()
        .map(|fault| match fault.split_at(2) {
            ("N ", rest) => Cause {
                reason: "FieldValueNotSupported".to_owned(),
                message: format!("Unsupported value: {rest}"),
                field: "resourceVersionMatch".to_owned(),
            },
            (who, rest) => Cause {
                reason: "FieldValueForbidden".to_owned(),
                message: format!("Forbidden: {rest}"),
                field: if who == "S " {
                    "sendInitialEvents"
                } else {
                    "resourceVersionMatch"
                }
                .to_owned(),
            },
        })
        .collect();
    let answer = get(&format!("{CM}?{query}")).unwrap_err();
    assert_eq!(answer, Status::invalid_list_options(&causes).into());
    assert_eq!(
        violations(
            &Method::GET,
            CM,
            &query_pairs(query),
            &Catalog::of_scenarios(NEWEST)
        )
        .len(),
        faults.len()
    );
}

#[test]
fn several_errors_are_one_status() {
    let answer = get(&format!("{CM}?resourceVersionMatch=Exact&continue=x")).unwrap_err();
    let one = "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided";
    let two = "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided";
    assert!(summary(&answer).starts_with(&format!(
        "422 Invalid|ListOptions.meta.k8s.io \"\" is invalid: [{one}, {two}]|{{\"group\":\"meta.k8s.io\",\
         \"kind\":\"ListOptions\",\"causes\":[{{\"reason\":\"FieldValueForbidden\",\"message\":\"Forbidden: "
    )));
}

#[test]
fn a_single_error_is_a_status_byte_for_byte() {
    let answer = get(&format!("{CM}?sendInitialEvents=")).unwrap_err();
    assert_eq!(
        String::from_utf8_lossy(&answer.body),
        "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\",\"message\":\
         \"ListOptions.meta.k8s.io \\\"\\\" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden \
         for list\",\"reason\":\"Invalid\",\"details\":{\"group\":\"meta.k8s.io\",\"kind\":\"ListOptions\",\"causes\":\
         [{\"reason\":\"FieldValueForbidden\",\"message\":\"Forbidden: sendInitialEvents is forbidden for list\",\
         \"field\":\"sendInitialEvents\"}]},\"code\":422}\n"
    );
}

#[rstest]
#[case::limit("limit=abc", "strconv.ParseInt: parsing \"abc\": invalid syntax")]
#[case::limit_out_of_range(
    "limit=99999999999999999999",
    "strconv.ParseInt: parsing \"99999999999999999999\": value out of range"
)]
#[case::timeout_seconds(
    "watch=1&timeoutSeconds=1s",
    "strconv.ParseInt: parsing \"1s\": invalid syntax"
)]
#[case::version(
    "resourceVersion=abc",
    "invalid resource version: resourceVersion: Invalid value: \"abc\": strconv.ParseUint: parsing \"abc\": invalid syntax"
)]
#[case::unknown_field(
    "fieldSelector=data.k%3D1",
    "\"data.k\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
)]
#[case::unreadable_field("fieldSelector=x", "invalid selector: 'x'; can't understand 'x'")]
#[case::label_operator(
    "labelSelector=a+b",
    "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"
)]
#[case::label_key(
    "labelSelector=-a",
    "unable to parse requirement: <nil>: Invalid value: \"-a\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)]
#[case::label_value(
    "labelSelector=a%3D-b",
    "unable to parse requirement: values[0][a]: Invalid value: \"-b\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)]
#[case::label_end("labelSelector=a,", "found '', expected: identifier after ','")]
#[case::timeout(
    "timeout=abc",
    "invalid timeout specified in the request URL - time: invalid duration \"abc\""
)]
#[case::timeout_without_unit(
    "timeout=5",
    "invalid timeout specified in the request URL - time: missing unit in duration \"5\""
)]
#[case::token_json(
    "continue=abc",
    "invalid continue token: continue key is not valid: invalid character 'i' looking for beginning of value"
)]
#[case::token_base64(
    "continue=%21",
    "invalid continue token: continue key is not valid: illegal base64 data at input byte 0"
)]
#[case::token_cut(
    "continue=a",
    "invalid continue token: continue key is not valid: illegal base64 data at input byte 0"
)]
// {"v":"foo","rv":1,"start":"a"}
#[case::token_version(
    "continue=eyJ2IjoiZm9vIiwicnYiOjEsInN0YXJ0IjoiYSJ9",
    "invalid continue token: continue key is not valid: server does not recognize this encoded version foo"
)]
// {"v":"meta.k8s.io/v1","rv":0,"start":"a"}
#[case::token_revision(
    "continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MCwic3RhcnQiOiJhIn0",
    "invalid continue token: continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)"
)]
// {"v":"meta.k8s.io/v1","rv":1,"start":""}
#[case::token_start(
    "continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiIifQ",
    "invalid continue token: continue key is not valid: encoded start key empty (version meta.k8s.io/v1)"
)]
// {"v":"meta.k8s.io/v1","rv":1,"start":"../a"}
#[case::token_escape(
    "continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiIuLi9hIn0",
    "invalid continue token: continue key is not valid: ../a"
)]
// {"v":"meta.k8s.io/v1","rv":1234,"start":"/default/cm-2\u0000"}
#[case::token_with_version(
    "resourceVersion=5&continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MTIzNCwic3RhcnQiOiIvZGVmYXVsdC9jbS0yXHUwMDAwIn0",
    VERSION_WITH_CONTINUE
)]
fn what_cannot_be_read_is_400(#[case] query: &str, #[case] message: &str) {
    let answer = get(&format!("{CM}?{query}")).unwrap_err();
    assert_eq!(summary(&answer), format!("400 BadRequest|{message}|-"));
}

#[test]
fn tokens_have_the_format_of_kube_apiserver() {
    let token = ContinueToken {
        revision: 1234,
        start: "/default/cm-2\0".to_owned(),
    };
    assert_eq!(
        token.encode(),
        "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MTIzNCwic3RhcnQiOiIvZGVmYXVsdC9jbS0yXHUwMDAwIn0"
    );
}

const NO_ROUTE: &str = "404 NotFound|the server could not find the requested resource|{}";
const NO_PAGE: &str = "404 text 404 page not found\n";
const NO_METHOD: &str =
    "405 MethodNotAllowed|the server does not allow this method on the requested resource|{}";

#[rstest]
#[case(Method::GET, "/api/v1/nope", NO_ROUTE)]
#[case(Method::GET, "/api/v9/pods", NO_ROUTE)]
#[case(Method::GET, "/apis/apps/v9/x", NO_ROUTE)]
#[case(Method::GET, "/apis/rbac.authorization.k8s.io/v1/nopes", NO_ROUTE)]
#[case(Method::GET, "/api/v1/configmaps/x", NO_ROUTE)]
#[case(Method::GET, "/api/v1/namespaces/probe/nodes", NO_ROUTE)]
#[case(Method::GET, "/api/v1/namespaces/probe/pods/p/nope", NO_ROUTE)]
#[case(Method::GET, "/apis/none.example.com", NO_PAGE)]
#[case(Method::GET, "/apis/none.example.com/v1/things", NO_PAGE)]
#[case(Method::GET, "/apis/probe.example.com/v1/nopes", NO_PAGE)]
#[case(Method::GET, "/apis/probe.example.com/v9/widgets", NO_PAGE)]
#[case(Method::GET, "/nope", NO_PAGE)]
#[case(Method::GET, &format!("{WD}/wd-1/nope"), r#"404 NotFound|widgets.probe.example.com "wd-1" not found|{"name":"wd-1","group":"probe.example.com","kind":"widgets"}"#)]
#[case(Method::POST, "/api/v1/pods", NO_METHOD)]
#[case(Method::DELETE, "/api/v1/configmaps", NO_METHOD)]
#[case(Method::HEAD, CM, NO_METHOD)]
#[case(Method::DELETE, "/apis/probe.example.com/v1/widgets", NO_PAGE)]
#[case(Method::PUT, WD, "400 BadRequest|name must be provided|-")]
#[case(Method::POST, &format!("{CM}/cm-1"), NO_METHOD)]
#[case(Method::DELETE, &format!("{WD}/wd-1/status"), "405 MethodNotAllowed|delete is not supported on resources of kind \"widgets.probe.example.com\"|{\"group\":\"probe.example.com\",\"kind\":\"widgets\"}")]
#[case(Method::DELETE, "/api/v1/namespaces", NO_METHOD)]
#[case(Method::PUT, "/api/v1/nodes", NO_METHOD)]
#[case(Method::GET, "/api/v1/namespaces/probe/finalize", NO_METHOD)]
#[case(Method::GET, "/apis/authorization.k8s.io/v1/subjectaccessreviews", NO_METHOD)]
#[case(Method::DELETE, "/api/v1/namespaces/probe/pods/p/exec", NO_METHOD)]
#[case(Method::GET, &format!("{CM}/cm-1/proxy/x"), NO_ROUTE)]
#[case(Method::PUT, &format!("{CM}/cm-1/finalize"), NO_ROUTE)]
#[case(Method::GET, &format!("{CM}?watch=1&resourceVersion=abc"), r#"500 -|resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax|-"#)]
#[case(Method::GET, &format!("{CM}/cm-1?resourceVersion=-1"), r#"500 -|resourceVersion: Invalid value: "-1": strconv.ParseUint: parsing "-1": invalid syntax|-"#)]
#[case(Method::GET, &format!("{WD}?fieldSelector=spec.a%3D1"), "400 BadRequest|field label not supported: spec.a|-")]
#[case(
    Method::GET,
    "/api/v1/watch/namespaces/probe/configmaps/cm-1?fieldSelector=metadata.name%3Dcm-2",
    "400 BadRequest|fieldSelector metadata.name doesn't match requested name|-"
)]
#[case(Method::GET, &format!("/api/v1/watch{}?sendInitialEvents=1", &CM[7..]), r#"422 Invalid|ListOptions.meta.k8s.io "" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list|{"group":"meta.k8s.io","kind":"ListOptions","causes":[{"reason":"FieldValueForbidden","message":"Forbidden: sendInitialEvents is forbidden for list","field":"sendInitialEvents"}]}"#)]
fn what_leads_nowhere_is_refused(#[case] method: Method, #[case] target: &str, #[case] expected: &str) {
    let answer = parse(
        &request(method, target, &[]),
        &Catalog::of_scenarios(NEWEST),
        true,
    )
    .unwrap_err();
    assert_eq!(summary(&answer), expected);
}

/// Results of parsing a target.
#[rstest]
#[case("/api/v1/configmaps", "list configmaps - Newest")]
#[case("/api/v1/namespaces", "list namespaces - Newest")]
#[case("/api/v1/namespaces/probe", "get namespaces - probe")]
#[case("/api/v1/namespaces/probe/status", "get namespaces - probe")]
#[case(
    "/apis/apps/v1/namespaces/probe/deployments?resourceVersion=7",
    "list deployments probe At(7)"
)]
#[case(
    "/api/v1/namespaces/pro%62e/configmaps?resourceVersion=0",
    "list configmaps probe Any"
)]
#[case(
    "/api/v1/namespaces/probe/configmaps?watch=false",
    "list configmaps probe Newest"
)]
#[case(
    "/api/v1/namespaces/probe/configmaps?watch=0&watch=1",
    "list configmaps probe Newest"
)]
#[case(
    "/api/v1/namespaces/probe/configmaps?watch=",
    "watch configmaps probe Newest Some(true)"
)]
#[case(
    "/api/v1/namespaces/probe/configmaps?watch=yes&resourceVersion=0",
    "watch configmaps probe Any Some(true)"
)]
#[case(
    "/api/v1/namespaces/probe/configmaps?watch=True&resourceVersion=7",
    "watch configmaps probe At(7) None"
)]
#[case(
    "/api/v1/watch/namespaces/probe/configmaps",
    "watch configmaps probe Newest None"
)]
#[case(
    "/api/v1/namespaces/probe/configmaps/cm-1?watch=1",
    "get configmaps probe cm-1"
)]
#[case(
    "/apis/probe.example.com/v1",
    "Discovery(Resources { group: \"probe.example.com\", version: \"v1\" })"
)]
#[case("/version", "Version")]
fn a_legal_request_is_understood(#[case] target: &str, #[case] expected: &str) {
    let place = |collection: &Collection| {
        format!(
            "{} {}",
            collection.kind.plural,
            collection.namespace.as_deref().unwrap_or("-")
        )
    };
    let understood = match get(target).unwrap() {
        Request::List(list) => format!("list {} {:?}", place(&list.collection), list.resource_version),
        Request::Watch(watch) => format!(
            "watch {} {:?} {:?}",
            place(&watch.collection),
            watch.resource_version,
            watch.send_initial_events
        ),
        Request::Get(get) => format!("get {} {}", place(&get.collection), get.name),
        Request::Write(write) => format!("{:?}", write.action),
        Request::Review(review) => format!("{:?}", review.review),
        Request::Connect(connect) => format!("{:?} {}", connect.connection, place(&connect.collection)),
        Request::Document(document) => format!("{document:?}"),
    };
    assert_eq!(understood, expected);
}

const META: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const META_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

#[rstest]
#[case::nothing("", CM, Ok(Representation::Full))]
#[case::json("application/json, */*", CM, Ok(Representation::Full))]
#[case::protobuf_first(
    "application/vnd.kubernetes.protobuf,application/json",
    CM,
    Ok(Representation::Full)
)]
#[case::metadata_list(META_LIST, CM, Ok(Representation::Metadata(MetaVersion::V1)))]
#[case::metadata_list_of_any_order(
    "application/json;v=v1;g=meta.k8s.io;as=PartialObjectMetadataList",
    CM,
    Ok(Representation::Metadata(MetaVersion::V1))
)]
#[case::metadata_protobuf_first(
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
    CM,
    Ok(Representation::Metadata(MetaVersion::V1))
)]
#[case::metadata_watch(META, &format!("{CM}?watch=1"), Ok(Representation::Metadata(MetaVersion::V1)))]
#[case::metadata_object(META, &format!("{CM}/cm-1"), Ok(Representation::Metadata(MetaVersion::V1)))]
#[case::heavier_clause(&format!("{META_LIST};q=0.5,application/json;q=0.9"), CM, Ok(Representation::Full))]
#[case::table(
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
    CM,
    Ok(Representation::Table(TableOptions { version: MetaVersion::V1, object: RowObject::Metadata }))
)]
#[case::old_table_with_objects(
    "application/json;as=Table;v=v1beta1;g=meta.k8s.io",
    &format!("{CM}?includeObject=Object"),
    Ok(Representation::Table(TableOptions { version: MetaVersion::V1beta1, object: RowObject::Full }))
)]
#[case::unknown_table_then_json(
    "application/json;as=Table;v=v2;g=meta.k8s.io,application/json",
    CM,
    Ok(Representation::Full)
)]
#[case::version_without_kind("application/json;v=v1,application/yaml", CM, Ok(Representation::Full))]
#[case::list_form_of_a_watch(META_LIST, &format!("{CM}?watch=1"), Ok(Representation::Full))]
#[case::custom_wildcard("application/*", WD, Ok(Representation::Full))]
#[case::object_form_of_a_list(
    META,
    CM,
    Err("you requested PartialObjectMetadata, but the requested object is a list (*core.ConfigMapList)")
)]
#[case::object_form_of_a_custom_list(
    META,
    WD,
    Err(
        "you requested PartialObjectMetadata, but the requested object is a list (*unstructured.UnstructuredList)"
    )
)]
#[case::list_form_of_an_object(META_LIST, &format!("{CM}/cm-1"), Err("you requested PartialObjectMetadataList, but the requested object is not a list (*core.ConfigMap)"))]
fn accept_selects_the_representation(
    #[case] accept: &str,
    #[case] target: &str,
    #[case] expected: Result<Representation, &str>,
) {
    let request = request(Method::GET, target, &[("accept", accept)]);
    let parsed = parse(&request, &Catalog::of_scenarios(NEWEST), true);
    let fitting = parsed.and_then(|parsed| {
        let fits = match &parsed {
            Request::List(list) => page_fits(&request, &list.collection.kind),
            Request::Get(get) => object_fits(&request, &get.collection.kind),
            Request::Watch(_)
            | Request::Write(_)
            | Request::Review(_)
            | Request::Connect(_)
            | Request::Document(_) => Ok(()),
        };
        fits.map(|()| parsed).map_err(Answer::from)
    });
    match (fitting, expected) {
        (Ok(Request::List(list)), Ok(form)) => assert_eq!(list.form, form),
        (Ok(Request::Watch(watch)), Ok(form)) => assert_eq!(watch.form, form),
        (Ok(Request::Get(get)), Ok(form)) => assert_eq!(get.form, form),
        (Err(answer), Err(message)) => {
            let answer = answer.in_the_style_of(&request);
            assert_eq!(summary(&answer), format!("406 NotAcceptable|{message}|-"));
            assert!(answer.body.starts_with(b"{\n  \"kind\"") && answer.body.ends_with(b"}"));
        }
        (other, _) => panic!("{other:?}"),
    }
}

const ROUTED: &str = "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, \
                      application/vnd.kubernetes.protobuf";

/// A 406 is encoded in a format that the client accepts, if possible.
#[rstest]
#[case::html("text/html", CM, ROUTED, "application/json", "{\n")]
#[case::half_a_wildcard("application/*", CM, ROUTED, "application/json", "{\"")]
#[case::html_of_a_custom_kind("text/html", WD, "only the following", "application/json", "{\n")]
#[case::protobuf(
    "application/vnd.kubernetes.protobuf",
    CM,
    "only the following media types are accepted: application/json, application/yaml",
    "application/vnd.kubernetes.protobuf",
    "k8s\0"
)]
#[case::a_watch_in_yaml("application/yaml, application/json", &format!("{CM}?watch=1"), "only the following media types are accepted: application/json;stream=watch, ", "application/yaml", "apiVersion: v1\ncode: 406\n")]
#[case::unknown_include("application/json;as=Table;v=v1;g=meta.k8s.io", &format!("{CM}?watch=1&includeObject=x"), "Unable to convert to Table as requested: includeObject: Invalid value: \"x\"", "application/json", "{\n")]
fn unsupported_formats_are_rejected(
    #[case] accept: &str,
    #[case] target: &str,
    #[case] message: &str,
    #[case] written_in: &str,
    #[case] begins: &str,
) {
    let request = request(Method::GET, target, &[("accept", accept)]);
    let refusal = parse(&request, &Catalog::of_scenarios(NEWEST), true).expect_err("a refusal");
    assert!(summary(&refusal).contains(message), "{}", summary(&refusal));
    let styled = refusal.in_the_style_of(&request);
    assert_eq!(styled.headers[0].1, written_in);
    assert!(styled.body.starts_with(begins.as_bytes()));
}

/// Above 128 KiB, if the client accepts it.
#[rstest]
#[case::long("gzip", 128 * 1024 + 1, true)]
#[case::short("gzip", 128 * 1024, false)]
#[case::among_others("deflate, gzip", 200 * 1024, true)]
#[case::with_a_weight("deflate, gzip;q=0.5", 200 * 1024, false)]
#[case::refused("gzip;q=0", 200 * 1024, false)]
#[case::any("*", 200 * 1024, false)]
#[case::not_asked_for("", 200 * 1024, false)]
fn long_bodies_are_compressed(#[case] accepted: &str, #[case] length: usize, #[case] compressed: bool) {
    let request = request(Method::GET, CM, &[("accept-encoding", accepted)]);
    let answer = ok(vec![b'1'; length].into()).in_the_style_of(&request);
    assert_eq!(answer.headers.contains(&gzip_headers()[1]), compressed);
    assert_eq!(answer.body.starts_with(&[0x1f, 0x8b, 8, 0]), compressed);
}

/// Violated rules, including those that servers ignore in places.
#[rstest]
#[case::legal("resourceVersion=7&limit=5", &[])]
#[case::legal_continuation("limit=5&continue=invented", &[])]
#[case::number("limit=many", &["strconv.ParseInt: parsing \"many\": invalid syntax"])]
#[case::version_with_continue("resourceVersion=7&continue=x", &[VERSION_WITH_CONTINUE])]
#[case::unreadable_version("watch=1&resourceVersion=null", &["resourceVersion: Invalid value: \"null\": strconv.ParseUint: parsing \"null\": invalid syntax"])]
fn violated_rules_are_named(#[case] query: &str, #[case] expected: &[&str]) {
    assert_eq!(
        violations(
            &Method::GET,
            CM,
            &query_pairs(query),
            &Catalog::of_scenarios(NEWEST)
        ),
        expected
    );
    assert_eq!(
        violations(
            &Method::POST,
            CM,
            &query_pairs(query),
            &Catalog::of_scenarios(NEWEST)
        ),
        [""; 0]
    );
    assert_eq!(
        violations(
            &Method::GET,
            "/nope",
            &query_pairs(query),
            &Catalog::of_scenarios(NEWEST)
        ),
        [""; 0]
    );
}

#[rstest]
#[case("a=1&b=%26%3D&c=x+y&d&a=2", &[("a", "1"), ("b", "&="), ("c", "x y"), ("d", ""), ("a", "2")])]
#[case("a=%zz&b=100%&c=%e2%9c%93", &[("a", "%zz"), ("b", "100%"), ("c", "✓")])]
#[case("", &[])]
fn a_query_is_decoded_in_order(#[case] query: &str, #[case] expected: &[(&str, &str)]) {
    let pairs = query_pairs(query);
    let pairs: Vec<(&str, &str)> = pairs
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    assert_eq!(pairs, expected);
}

#[rstest]
#[case::plain("probe/1", "", false)]
#[case::curl("curl/8", "", true)]
#[case::curl_declines("curl/8", "pretty=false", false)]
#[case::asked_for("probe/1", "pretty=true", true)]
#[case::without_a_value("probe/1", "pretty", false)]
fn browsers_and_curl_get_indented_json(#[case] agent: &str, #[case] query: &str, #[case] indented: bool) {
    let request = request(Method::GET, &format!("{CM}?{query}"), &[("user-agent", agent)]);
    let answer = ok("{\"a\":\"<\"}\n".into()).in_the_style_of(&request);
    let expected = if indented {
        "{\n  \"a\": \"\\u003c\"\n}"
    } else {
        "{\"a\":\"<\"}\n"
    };
    assert_eq!(answer.body, expected);
}

#[test]
fn whitespace_around_a_header_value_is_no_part_of_it() {
    let sent = header("Retry-After", " 3\t").map(|(name, value)| (name, value.as_bytes().to_vec()));
    assert_eq!(sent, Some((RETRY_AFTER, b"3".to_vec())));
    assert_eq!(header("Retry After", "3"), None);
}

#[test]
fn every_response_echoes_the_audit_id() {
    let own = common_headers(&request(Method::GET, CM, &[]), 7);
    assert_eq!(own[0].0, AUDIT_ID);
    assert_eq!(own[0].1, "00000000-0000-4000-8000-000000000007");
    let echoed = common_headers(&request(Method::GET, CM, &[("audit-id", "mine")]), 7);
    assert_eq!(echoed[0].1, "mine");
    assert_eq!(own[1].0, CACHE_CONTROL);
    assert_eq!(own[1].1, "no-cache, private");
}
