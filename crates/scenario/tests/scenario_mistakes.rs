//! Every kind of error in a scenario file, with its error message.

use std::collections::BTreeSet;
use std::path::Path;

use scenario::{Code, LoadErrors, Style, load, parse};

/// Start of every file, unless the error is there.
const HEAD: &str = "scenario: v1\ntitle: A claim\nwhy: A reason\ncovers: [PAGE-05]\n";

/// Name, and text after the head.
const MISTAKES: &[(&str, &str)] = &[
    // ---- form
    ("not-yaml", "steps: [\n"),
    ("anchor", "objects: [{configmap: &a {name: a}}]\n"),
    ("alias", "objects: [{configmap: {name: a, labels: *a}}]\n"),
    ("tag", "client: {page_size: !!int 5}\n"),
    ("merge-key", "client: {<<: {page_size: 5}}\n"),
    ("key-is-a-list", "client: {[a]: 5}\n"),
    ("second-document", "---\nscenario: v1\n"),
    ("duplicate-key", "client: {page_size: 5, page_size: 6}\n"),
    // ---- structure
    (
        "name-inside-a-manifest",
        "objects: [{apiVersion: v1, kind: ConfigMap, as: first, metadata: {name: a}}]\n",
    ),
    ("unknown-key-near", "clinet: {page_size: 2}\n"),
    ("unknown-key-far", "client: {colour: red}\n"),
    ("unknown-action", "steps:\n  - aply: {configmap: {name: a}}\n"),
    ("unknown-word", "steps:\n  - compct\n"),
    (
        "unknown-query-parameter",
        "steps:\n  - when: {list: 1, query: {resourceversion: absent}}\n",
    ),
    ("missing-key", "objects: [{configmap: {labels: {app: x}}}]\n"),
    ("list-for-a-map", "client: [page_size]\n"),
    ("map-for-a-list", "steps: {apply: {configmap: {name: a}}}\n"),
    ("nothing-where-a-value-belongs", "client: {labels: }\n"),
    ("word-for-a-boolean", "client: {bookmarks: yes}\n"),
    ("word-for-a-number", "server: {revision: many}\n"),
    ("not-one-of-near", "client: {initial_list: streaming-list}\n"),
    ("not-one-of-far", "server: {version: \"1.12\"}\n"),
    ("number-out-of-range", "steps:\n  - drop_events: 0\n"),
    ("revision-zero", "server: {revision: 0}\n"),
    ("revision-of-64-bits", "server: {revision: 9223372036854775808}\n"),
    (
        "percent-out-of-range",
        "steps:\n  - truncate: {after_events: 1, percent: 120, then: rst}\n",
    ),
    (
        "status-out-of-range",
        "steps:\n  - when: {list: 1}\n    do: {reply: {status: 42}}\n",
    ),
    // ---- words
    ("not-a-time", "client: {idle_timeout: 30}\n"),
    ("time-is-zero", "steps:\n  - when: {after: 0s}\n    do: compact\n"),
    ("timeout-not-in-seconds", "client: {timeout: 1500ms}\n"),
    ("label-selector", "client: {labels: \"app in x\"}\n"),
    ("field-selector", "client: {fields: metadata.name}\n"),
    (
        "field-that-cannot-be-selected",
        "client: {fields: \"metadata.name!=a,spec.foo=bar\"}\n",
    ),
    ("object-name", "objects: [{configmap: {name: My_Config}}]\n"),
    (
        "namespace-name",
        "target: {resource: pods, namespace: Kube.System}\n",
    ),
    (
        "label-value",
        "objects: [{configmap: {name: a, labels: {\"app/x/y\": z}}}]\n",
    ),
    ("reference", "refs: [\"see the bug\"]\n"),
    (
        "header",
        "steps:\n  - when: {list: 1}\n    do: {reply: {status: 500, headers: {\"a b\": c}}}\n",
    ),
    (
        "status-code",
        "steps:\n  - when: {list: 1}\n    do: {reply: {status: 500, code: gone}}\n",
    ),
    ("name-of-a-step", "steps:\n  - when: {list: 1}\n    as: $page\n"),
    // ---- kinds and objects
    ("unknown-resource", "target: configmap\n"),
    (
        "namespace-of-a-node",
        "target: {resource: nodes, namespace: default}\n",
    ),
    (
        "unknown-kind",
        "objects: [{apiVersion: v1, kind: Deployment, metadata: {name: a}}]\n",
    ),
    (
        "definition-that-is-refused",
        "target: gadgets.probe.example.com\nobjects:\n  - apiVersion: apiextensions.k8s.io/v1\n    kind: CustomResourceDefinition\n    metadata: {name: gadget.probe.example.com}\n    spec: {group: probe.example.com, scope: Namespaced, names: {plural: gadgets, kind: Gadget}, versions: []}\n",
    ),
    (
        "object-before-its-definition",
        "target: gadgets.probe.example.com\nobjects:\n  - {apiVersion: probe.example.com/v1, kind: Gadget, metadata: {name: a}}\n  - {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: gadgets.probe.example.com}, spec: {group: probe.example.com, scope: Namespaced, names: {plural: gadgets, kind: Gadget}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}\n",
    ),
    (
        "object-against-its-schema",
        "target: gadgets.probe.example.com\nobjects:\n  - {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: gadgets.probe.example.com}, spec: {group: probe.example.com, scope: Namespaced, names: {plural: gadgets, kind: Gadget}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer, maximum: 5}}}}}}}]}}\n  - {apiVersion: probe.example.com/v1, kind: Gadget, metadata: {name: a}, spec: {size: 6, colour: red}}\n",
    ),
    (
        "two-kinds",
        "objects: [{configmap: {name: a}, secret: {name: b}}]\n",
    ),
    ("no-kind", "objects: [{repeat: 2}]\n"),
    (
        "same-name-repeated",
        "objects: [{repeat: 3, configmap: {name: a, data: {k: v}}}]\n",
    ),
    (
        "too-many-bytes",
        "objects: [{repeat: 100000, configmap: {name: \"c-{i}\", filler: 1000000}}]\n",
    ),
    (
        "repeated-on-the-wire",
        "steps:\n  - event: {type: ADDED, object: {repeat: 3, configmap: {name: a}}}\n",
    ),
    (
        "sent-again-though-deleted",
        "objects: [{configmap: {name: a}}]\nsteps:\n  - delete: a\n  - event: {type: ADDED, object: a}\n",
    ),
    ("data-of-a-pod", "objects: [{pod: {name: a, data: {k: v}}}]\n"),
    (
        "key-given-elsewhere",
        "objects: [{configmap: {name: a, fields: {kind: Pod}}}]\n",
    ),
    (
        "delete-of-an-unknown-object",
        "objects: [{configmap: {name: web}}]\nsteps:\n  - delete: wep\n",
    ),
    (
        "delete-twice",
        "objects: [{configmap: {name: a}}]\nsteps:\n  - delete: a\n  - delete: a\n",
    ),
    (
        "cache-of-an-unknown-object",
        "objects: [{configmap: {name: a}}]\nexpect: {cache: [a, b]}\n",
    ),
    (
        "event-of-an-unknown-object",
        "objects: [{configmap: {name: a}}]\nexpect: {events: [{apply: c}]}\n",
    ),
    (
        "left-out-unknown-object",
        "steps:\n  - when: {list: 1}\n    do: {edit_page: {without: zz}}\n",
    ),
    // ---- ids
    ("unknown-requirement", "refs: []\n"),
    (
        "unknown-invariant",
        "expect: {excused: [{INV-7: the server lies}]}\n",
    ),
    ("excuse-without-reason", "expect: {excused: [{INV-07: }]}\n"),
    (
        "excused-twice",
        "expect: {excused: [{INV-07: a lie}, {INV-07: a lie}]}\n",
    ),
    (
        "requirements-of-none",
        "expect: {requests: [{list: {}, requirements: []}]}\n",
    ),
    (
        "requirement-not-covered",
        "expect: {counts: [{list: {}, at_most: 1, requirements: [WATCH-04]}]}\n",
    ),
    (
        "requirement-close-to-a-covered-one",
        "expect: {never: [{list: {}, requirements: [PAGE-06]}]}\n",
    ),
    (
        "requirement-misspelt",
        "expect: {events: [{init_done: , requirements: [PAGE-5]}]}\n",
    ),
    (
        "requirement-that-does-not-exist",
        "expect: {never_emitted: [{init_done: , requirements: [SPEED-99]}]}\n",
    ),
    (
        "requirement-twice",
        "expect: {requests: [{list: {}, requirements: [PAGE-05, PAGE-05]}]}\n",
    ),
    (
        "requirement-of-an-alternative",
        "expect: {requests: [{any_of: [{list: {}, requirements: [PAGE-05]}, watch]}]}\n",
    ),
    // ---- names
    (
        "undefined-name",
        "steps:\n  - apply: {configmap: {name: a}}\n    as: first\nexpect: {requests: [{watch: {resourceVersion: $frist}}]}\n",
    ),
    (
        "name-before-it-is-bound",
        "steps:\n  - when: {watch: 1, query: {resourceVersion: $a}}\n  - apply: {configmap: {name: a}}\n    as: a\n",
    ),
    (
        "own-name-in-its-answer",
        "steps:\n  - when: {list: 1}\n    as: l\n    do: {edit_page: {rv: $l}}\n",
    ),
    (
        "expected-name-too-early",
        "expect: {requests: [{watch: {resourceVersion: $l}}, {list: , as: l}]}\n",
    ),
    (
        "name-twice",
        "steps:\n  - when: {list: 1}\n    as: x\n  - when: {watch: 1}\n    as: x\n",
    ),
    (
        "write-named-twice",
        "steps:\n  - do: [{apply: {configmap: {name: a}, as: x}, as: y}]\n",
    ),
    (
        "token-of-a-write",
        "steps:\n  - apply: {configmap: {name: a}}\n    as: a\nexpect: {never: [{page: 2, query: {continue: $a.continue}}]}\n",
    ),
    (
        "version-of-a-moment",
        "steps:\n  - when: {watch: 1}\n    as: w\nexpect: {never: [{watch: {resourceVersion: $w}}]}\n",
    ),
    (
        "unknown-field-of-a-name",
        "steps:\n  - when: {list: 1}\n    as: l\nexpect: {never: [{watch: {resourceVersion: $l.token}}]}\n",
    ),
    ("restore-to-a-text", "steps:\n  - restore: \"5\"\n"),
    (
        "unknown-step",
        "steps:\n  - when: {watch: 1}\n    as: cut\nexpect: {never: [{list: {}, after: cutt}]}\n",
    ),
    (
        "dollar-before-a-step",
        "steps:\n  - when: {watch: 1}\n    as: cut\nexpect: {never: [{list: {}, after: $cut}]}\n",
    ),
    (
        "name-beside-a-wordless-action",
        "steps:\n  - do: [{drop_events: 1, as: x}]\n",
    ),
    (
        "condition-of-nothing",
        "steps:\n  - when: {watch: 1, query: {resourceVersion: {}}}\n",
    ),
    (
        "condition-where-a-value-is-written",
        "steps:\n  - bookmark: {rv: present}\n",
    ),
    // ---- steps that are never met
    (
        "list-is-over",
        "steps:\n  - when: {list: 2}\n  - when: {list: 1}\n",
    ),
    (
        "watch-is-used-up",
        "steps:\n  - when: {watch: next}\n    times: 3\n    do: {reply: {status: 503}}\n  - when: {watch: 2}\n",
    ),
    (
        "page-is-over",
        "objects: [{repeat: 9, configmap: {name: \"c-{i}\"}}]\nclient: {page_size: 2}\nsteps:\n  - when: {list: 1, page: 3}\n  - when: {list: 1, page: 2}\n",
    ),
    (
        "page-without-paging",
        "client: {page_size: none}\nobjects: [{configmap: {name: a}}]\nsteps:\n  - when: {page: 2}\n",
    ),
    (
        "page-without-objects",
        "client: {page_size: 2}\nobjects: [{repeat: 2, configmap: {name: \"c-{i}\"}}]\nsteps:\n  - when: {page: 2}\n",
    ),
    (
        "page-of-the-next-list",
        "client: {page_size: 2}\nobjects: [{repeat: 3, configmap: {name: \"c-{i}\"}}]\nsteps:\n  - when: {list: next, page: 2}\n",
    ),
    (
        "waits-for-an-unknown-object",
        "steps:\n  - when: {emitted: {apply: b}}\n",
    ),
    (
        "list-with-a-token",
        "expect: {requests: [{list: {continue: present}}]}\n",
    ),
    // ---- actions that make no sense
    (
        "stream-action-on-a-list",
        "steps:\n  - when: {list: 1}\n    do: {send: x}\n",
    ),
    (
        "page-action-on-a-watch",
        "steps:\n  - when: {watch: 1}\n    do: {edit_page: {rv: \"1\"}}\n",
    ),
    (
        "stream-action-on-any-request",
        "steps:\n  - when: {request: 3}\n    do: {coalesce: 2}\n",
    ),
    (
        "reply-to-nothing",
        "steps:\n  - when: {after: 5s}\n    do: {reply: {status: 500}}\n",
    ),
    (
        "line-of-text-and-bytes",
        "steps:\n  - when: {watch: 1}\n    do: {send: [{text: x, bytes: y}, {newline: false}]}\n",
    ),
    (
        "line-of-bytes-that-are-none",
        "steps:\n  - when: {watch: 1}\n    do: {send: {bytes: \"\\u0100\"}}\n",
    ),
    (
        "send-after-reply",
        "steps:\n  - when: {watch: 1}\n    do: [{reply: {status: 500}}, {send: x}]\n",
    ),
    (
        "reply-after-send",
        "steps:\n  - when: {watch: 1}\n    do: [{send: x}, {reply: {status: 500}}]\n",
    ),
    (
        "send-after-end",
        "steps:\n  - when: {watch: 1}\n    do: [eof, {send: x}]\n",
    ),
    (
        "end-after-truncate",
        "steps:\n  - when: {watch: 1}\n    do: [{truncate: {after_bytes: 1, then: fin}}, rst]\n",
    ),
    (
        "truncate-behind-the-end",
        "steps:\n  - when: {list: 1}\n    do: [{reply: {status: 500, body: \"too short\"}}, {truncate: {after_bytes: 9, then: rst}}]\n  - when: {list: next}\n    do: [{reply: {status: 500, json: {a: 1}}}, {truncate: {after_bytes: 8, then: rst}}]\n",
    ),
    ("truncate-nowhere", "steps:\n  - truncate: {then: fin}\n"),
    (
        "word-of-http2-on-http1",
        "steps:\n  - when: {watch: 1}\n    do: [goaway, {rst_stream: CANCEL}]\n",
    ),
    (
        "code-that-is-none",
        "server: {transport: tls_h2}\nsteps:\n  - when: {watch: 1}\n    do: {rst_stream: CANCELED}\n",
    ),
    (
        "farewell-of-tls-without-tls",
        "steps:\n  - when: {watch: 1}\n    do: no_close_notify\n",
    ),
    (
        "streams-of-http1",
        "server: {transport: tls_http1, max_concurrent_streams: 3}\n",
    ),
    (
        "two-endings",
        "server: {transport: tls_h2}\nsteps:\n  - when: {watch: 1}\n    do: {end: {fin: , rst: }}\n",
    ),
    (
        "no-answer-that-ends-cleanly",
        "steps:\n  - when: {list: 1}\n    do: {no_answer: eof}\n",
    ),
    (
        "lost-answer-to-a-list",
        "steps:\n  - when: {list: 1}\n    do: {lose_answer: rst}\n",
    ),
    (
        "unmodified-after-a-write",
        "steps:\n  - when: {request: next}\n    do: {reply: {status: 500, unmodified: true, after_write: true}}\n",
    ),
    (
        "two-bodies",
        "steps:\n  - when: {list: 1}\n    do: {reply: {status: 500, body: x, reason: Gone}}\n",
    ),
    (
        "unmodified-is-false",
        "steps:\n  - when: {list: 1}\n    do: {reply: {status: 500, unmodified: false}}\n",
    ),
    (
        "times-without-a-request",
        "steps:\n  - when: {after: 1s}\n    times: 2\n    do: compact\n",
    ),
    (
        "times-and-for",
        "steps:\n  - when: {list: 1}\n    times: 2\n    for: 5s\n",
    ),
    (
        "optional-at-the-end",
        "steps:\n  - {when: {watch: 1}, optional: true, do: eof}\n",
    ),
    (
        "optional-and-always-skipped",
        "steps:\n  - {when: {watch: 1}, optional: true, do: eof}\n  - compact\n",
    ),
    (
        "optional-without-a-trigger",
        "steps:\n  - {optional: true, do: compact}\n  - when: synced\n",
    ),
    (
        "name-of-an-optional-step",
        "steps:\n  - {when: {list: 2}, optional: true, as: again}\n  - when: synced\nexpect: {never: [{watch: {}, after: again}]}\n",
    ),
    ("two-triggers", "steps:\n  - when: {list: 1, watch: 1}\n"),
    ("no-trigger", "steps:\n  - when: {}\n    do: compact\n"),
    (
        "query-of-a-time",
        "steps:\n  - when: {after: 5s, query: {limit: \"5\"}}\n    do: compact\n",
    ),
    (
        "two-actions-in-one-item",
        "steps:\n  - do: [{drop_events: 1, delay: 5s}]\n",
    ),
    (
        "action-beside-do",
        "steps:\n  - apply: {configmap: {name: a}}\n    do: compact\n",
    ),
    ("empty-item", "steps:\n  - do: [{as: x}]\n"),
    ("empty-step", "steps:\n  - {}\n"),
    ("empty-do", "steps:\n  - do: []\n"),
    (
        "empty-writes",
        "steps:\n  - do: [{apply: []}, {delete: []}, {send: []}]\n",
    ),
    (
        "empty-page-edit",
        "steps:\n  - when: {list: 1}\n    do: {edit_page: {}}\n",
    ),
    ("object-in-watcher-mode", "client: {mode: metadata, object: a}\n"),
    ("object-mode-without-object", "client: {mode: object}\n"),
    // ---- expectations
    (
        "two-kinds-of-request",
        "expect: {requests: [{list: {}, watch: {}}]}\n",
    ),
    (
        "name-of-alternatives-of-two-kinds",
        "expect: {requests: [{any_of: [list, watch], as: x}, {watch: {resourceVersion: $x}}]}\n",
    ),
    ("alternatives-of-none", "expect: {requests: [{any_of: []}]}\n"),
    (
        "kind-beside-any-of",
        "expect: {requests: [{any_of: [list], watch: {}}]}\n",
    ),
    (
        "kind-beside-resume",
        "expect: {requests: [{resume: $start, watch: {}}]}\n",
    ),
    (
        "query-beside-a-list",
        "expect: {requests: [{list: {}, query: {limit: \"5\"}}]}\n",
    ),
    (
        "gap-without-bounds",
        "expect: {requests: [list, {list: , gap: {}}]}\n",
    ),
    ("count-without-bounds", "expect: {counts: [{list: {}}]}\n"),
    ("only-without-requests", "expect: {only: true}\n"),
    (
        "code-of-a-change",
        "expect: {events: [{apply: any, code: 410}]}\n",
    ),
    ("slow-over-nothing", "client: {consumer_delay_event: 2}\n"),
    ("event-of-two-kinds", "expect: {events: [{init: , apply: any}]}\n"),
    (
        "version-of-init-done",
        "expect: {events: [{init_done: , rv: \"5\"}]}\n",
    ),
    (
        "replica-that-is-not-there",
        "steps: [{freeze_watch_cache: {replica: secondary}}]\n",
    ),
    (
        "clock-without-direction",
        "steps: [{jump_clock: {}}, {jump_clock: {forward: 1h, back: 1h}}]\n",
    ),
    (
        "cached-twice",
        "objects: [{configmap: {name: a}}]\nexpect: {cache: [a, a]}\n",
    ),
    ("no-reason", "expect: {not_converged: \"\"}\n"),
    // ---- several at once
    (
        "all-at-once",
        "clinet: {page_size: none, timeot: 290}\nobjects:\n  - {configmap: {name: A}}\nsteps:\n  - when: {page: 2}\n    as: p\n  - apply: {configmap: {nme: b}}\n  - when: {watch: 1}\n    do: {reply: {status: 5000}}\nexpect:\n  requests: [{watch: {resourceVersion: $q}}]\n  excused: [{INV-99: because}]\n",
    ),
];

#[test]
fn every_error_has_a_position_and_a_hint() {
    for (name, body) in MISTAKES {
        let text = match *name {
            "unknown-requirement" => HEAD.replace("PAGE-05", "PAGE-5, PAG-05, WATCH-99"),
            _ => format!("{HEAD}{body}"),
        };
        insta::assert_snapshot!(*name, rendered(mistakes_of("group/claim", &text)));
    }
}

#[test]
fn errors_in_the_head() {
    let cases = [
        ("empty-file", "group/claim", String::new()),
        ("only-a-comment", "group/claim", String::from("# nothing\n")),
        ("not-a-map", "group/claim", String::from("- scenario: v1\n")),
        ("head-keys-missing", "group/claim", String::from("scenario: v1\n")),
        ("covers-nothing", "group/claim", HEAD.replace("PAGE-05", "")),
        (
            "covers-twice",
            "group/claim",
            HEAD.replace("PAGE-05", "PAGE-05, PAGE-05"),
        ),
        (
            "unknown-version",
            "group/claim",
            HEAD.replace("scenario: v1", "scenario: v2"),
        ),
        ("id-not-in-kebab-case", "group/My_Claim", HEAD.to_owned()),
        ("no-title", "group/claim", HEAD.replace("A claim", "\"\"")),
    ];
    for (name, id, text) in cases {
        insta::assert_snapshot!(name, rendered(mistakes_of(id, &text)));
    }
}

#[test]
fn a_file_that_is_not_there() {
    let root = Path::new("scenarios");
    let errors = load(&root.join("group/none.yaml"), root).unwrap_err();
    assert_eq!(errors.errors()[0].code, Code::Unreadable);
}

#[test]
fn a_file_that_is_too_large() {
    let text = format!("{HEAD}# {}\n", "x".repeat(2 << 20));
    assert_eq!(
        mistakes_of("group/claim", &text).errors()[0].code,
        Code::OutOfRange
    );
}

#[test]
fn every_code_has_a_test() {
    let seen: BTreeSet<Code> = MISTAKES
        .iter()
        .flat_map(|(_, body)| codes(&format!("{HEAD}{body}")))
        .chain(codes(""))
        .chain(codes(&HEAD.replace("PAGE-05", "PAGE-5")))
        .chain([Code::Unreadable, Code::BadId])
        .collect();
    let unseen: Vec<&str> = Code::ALL
        .iter()
        .filter(|code| !seen.contains(code))
        .map(|code| code.word())
        .collect();
    assert_eq!(unseen, Vec::<&str>::new());
}

#[test]
fn colours_only_if_requested() {
    let errors = mistakes_of("group/claim", "");
    assert!(!errors.render(Style::Plain).contains('\u{1b}'));
    assert!(errors.render(Style::Colour).contains('\u{1b}'));
}

#[test]
fn logs_have_one_line_per_error() {
    let errors = mistakes_of("group/claim", &format!("{HEAD}clinet: {{page_size: x}}\n"));
    insta::assert_snapshot!(errors.to_string(), @r"
    scenarios/group/claim.yaml:5:1: error[unknown-key]: a scenario has no key `clinet` (did you mean `client`?)
    scenarios/group/claim.yaml:5:21: error[wrong-type]: `page_size` must be a whole number or `none`, but is `x`
    2 mistakes in scenarios/group/claim.yaml, which was not run: the file is at fault, not the client. docs/scenario-language.md explains every key.
    ");
}

fn mistakes_of(id: &str, text: &str) -> LoadErrors {
    match parse(id, Path::new("scenarios/group/claim.yaml"), text) {
        Ok(_) => panic!("no mistake was found in\n{text}"),
        Err(errors) => errors,
    }
}

fn rendered(errors: LoadErrors) -> String {
    errors.render(Style::Plain)
}

fn codes(text: &str) -> Vec<Code> {
    let errors = parse("group/claim", Path::new("claim.yaml"), text).err();
    errors
        .iter()
        .flat_map(LoadErrors::errors)
        .map(|error| error.code)
        .collect()
}
