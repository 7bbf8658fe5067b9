//! Objects of random programs of writes: kinds in their versions, with a vocabulary so small that managers meet. It must not know
//! what is done with them.

use fastrand::Rng;
use serde_json::{Map, Value, json};

/// Definition of the custom resource.
pub(super) const DEFINITION: &str = "things.apply.example.com";

/// Objects of the programs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Thing,
    ConfigMap,
    Service,
    Deployment,
    Autoscaler,
    Ingress,
}

/// Source of objects and their parts.
pub(super) struct Vocabulary {
    pub(super) random: Rng,
}

/// Returns the definition with its two versions.
pub(super) fn definition() -> Value {
    let text = json!({"type": "string"});
    let number = json!({"type": "integer"});
    let ports = json!({
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "proto"],
        "items": {"type": "object", "required": ["port"], "properties": {
            "port": number, "proto": {"type": "string", "default": "TCP"}, "name": text,
            "in": {"type": "object", "properties": {"x": number, "y": text}},
        }},
    });
    let spec = json!({
        "size": {"type": "integer", "default": 1},
        "word": text,
        "nest": {"type": "object", "properties": {
            "a": {"type": "string", "default": "dflt"}, "b": text,
            "deep": {"type": "object", "properties": {"x": number, "y": text}},
        }},
        "m": {"type": "object", "additionalProperties": text},
        "mm": {"type": "object", "additionalProperties": {"type": "object", "properties": {
            "v": text, "w": {"type": "integer", "default": 7},
        }}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
            "known": text,
            "list": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "required": ["name"], "properties": {"name": text, "value": text}}},
        }},
        "ports": ports,
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": text},
        "numbers": {"type": "array", "x-kubernetes-list-type": "set", "items": number},
        "plain": {"type": "array", "items": text},
        "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": text, "b": text}},
        "either": {"x-kubernetes-int-or-string": true},
        "any": {"x-kubernetes-preserve-unknown-fields": true},
        "nothing": {"type": "string", "nullable": true},
        "empty": {"type": "object"},
    });
    let mut of_v1 = spec.clone();
    of_v1["newer"] = text.clone();
    let schema = |spec: Value| {
        json!({"openAPIV3Schema": {"type": "object", "properties": {
            "spec": {"type": "object", "properties": spec},
            "status": {"type": "object", "default": {"phase": "none"}, "properties": {
                "phase": {"type": "string"}, "count": {"type": "integer"},
            }},
        }}})
    };
    let version = |name: &str, is_stored: bool, spec: Value| {
        json!({
            "name": name, "served": true, "storage": is_stored, "schema": schema(spec),
            "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.count"}},
        })
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": DEFINITION},
        "spec": {
            "group": "apply.example.com", "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": [version("v1", true, of_v1), version("v1beta1", false, spec)],
        },
    })
}

impl Kind {
    pub(super) fn versions(self) -> &'static [&'static str] {
        match self {
            Self::Thing => &[
                "apply.example.com/v1",
                "apply.example.com/v1",
                "apply.example.com/v1beta1",
            ],
            Self::ConfigMap | Self::Service => &["v1"],
            Self::Deployment => &["apps/v1"],
            Self::Autoscaler => &["autoscaling/v2", "autoscaling/v1"],
            Self::Ingress => &["networking.k8s.io/v1"],
        }
    }

    pub(super) fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Thing => ("Thing", "things"),
            Self::ConfigMap => ("ConfigMap", "configmaps"),
            Self::Service => ("Service", "services"),
            Self::Deployment => ("Deployment", "deployments"),
            Self::Autoscaler => ("HorizontalPodAutoscaler", "horizontalpodautoscalers"),
            Self::Ingress => ("Ingress", "ingresses"),
        }
    }
}

impl Vocabulary {
    pub(super) fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.random.usize(0..of.len())]
    }

    pub(super) fn chance(&mut self, percent: u8) -> bool {
        self.random.u8(0..100) < percent
    }

    pub(super) fn word(&mut self) -> &'static str {
        self.one(&["1", "2", "3"])
    }

    pub(super) fn status(&mut self, kind: Kind) -> Value {
        match kind {
            Kind::Thing => match self.random.u8(0..3) {
                0 => json!({}),
                1 => json!({"phase": self.word()}),
                _ => json!({"phase": self.word(), "count": self.random.u8(0..3)}),
            },
            Kind::ConfigMap | Kind::Service | Kind::Deployment | Kind::Autoscaler | Kind::Ingress => {
                json!({"replicas": self.random.u8(0..3)})
            }
        }
    }

    fn labels(&mut self, object: &mut Value) {
        object["metadata"] = json!({});
        match self.random.u8(0..10) {
            0 => object["metadata"]["labels"] = json!({}),
            1 => object["metadata"]["labels"] = json!({"a": self.word()}),
            2 => object["metadata"]["annotations"] = json!({"a": self.word(), "b": self.word()}),
            3 => object["metadata"]["finalizers"] = json!([self.one(&["example.com/a", "example.com/b"])]),
            4 => {
                object["metadata"]["annotations"] = json!({"kubectl.kubernetes.io/last-applied-configuration": "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"data\":{\"a\":\"1\"}}\n"});
            }
            _ => {}
        }
    }

    pub(super) fn object(&mut self, kind: Kind, api_version: &str) -> Value {
        let mut object = json!({});
        self.labels(&mut object);
        if kind == Kind::Thing && object["metadata"]["labels"] == json!({}) {
            // Whether a real server writes an applied empty map again depends on the second in which it was written.
            object["metadata"] = json!({});
        }
        match kind {
            Kind::ConfigMap => {
                for field in ["data", "binaryData"] {
                    if self.chance(if field == "data" { 85 } else { 15 }) {
                        let mut data = Map::new();
                        for name in ["a", "b", "c"] {
                            if self.chance(45) {
                                let value = if field == "data" { self.word() } else { "YQ==" };
                                data.insert(
                                    [name, if field == "data" { "" } else { "x" }].concat(),
                                    value.into(),
                                );
                            }
                        }
                        object[field] = data.into();
                    }
                }
                if self.chance(5) {
                    object["immutable"] = false.into();
                }
            }
            Kind::Thing => {
                if self.chance(92) {
                    object["spec"] = self.thing(api_version.ends_with("v1"));
                }
            }
            Kind::Service => object["spec"] = self.service(),
            Kind::Deployment => object["spec"] = self.deployment(),
            Kind::Autoscaler => object["spec"] = self.autoscaler(api_version.ends_with("v2")),
            Kind::Ingress => object["spec"] = self.ingress(),
        }
        object
    }

    fn thing(&mut self, newer: bool) -> Value {
        let mut spec = json!({});
        let fields = [
            "size", "word", "nest", "nest", "m", "mm", "free", "open", "ports", "ports", "set", "numbers",
            "plain", "whole", "either", "any", "nothing", "empty",
        ];
        for _ in 0..self.random.usize(0..4) {
            let field = self.one(&fields);
            spec[field] = self.field(field);
        }
        if newer && self.chance(6) {
            spec["newer"] = self.word().into();
        }
        spec
    }

    fn field(&mut self, field: &str) -> Value {
        if field != "any" && self.chance(4) {
            return Value::Null;
        }
        match field {
            "size" => self.random.u8(0..3).into(),
            "nest" => self.choice(&[
                r#"{}"#,
                r#"{"a":"1"}"#,
                r#"{"a":"2","b":"1"}"#,
                r#"{"b":"1"}"#,
                r#"{"deep":{"x":1}}"#,
                r#"{"deep":{"x":2,"y":"1"}}"#,
                r#"{"deep":{}}"#,
                r#"{"deep":null}"#,
                r#"{"a":null}"#,
            ]),
            "m" => self.choice(&[
                r#"{}"#,
                r#"{"k":"1"}"#,
                r#"{"k":"2","l":"1"}"#,
                r#"{"l":"1"}"#,
                r#"{"k":null}"#,
            ]),
            "mm" => self.choice(&[
                r#"{}"#,
                r#"{"k":{}}"#,
                r#"{"k":{"v":"1"}}"#,
                r#"{"k":{"v":"2","w":3},"l":{"v":"1"}}"#,
                r#"{"l":{"w":1}}"#,
            ]),
            "empty" => self.choice(&[r#"{}"#, r#"{}"#, r#"{"a":1}"#]),
            "free" | "any" => self.choice(&[
                r#"{}"#,
                r#"{"a":{}}"#,
                r#"{"a":[]}"#,
                r#"{"a":[1,2]}"#,
                r#"{"a":{"b":1}}"#,
                r#"{"a":{"b":2,"c":{"d":"1"}}}"#,
                r#"{"a":null}"#,
                r#"{"a":1.0}"#,
                r#"{"a":1}"#,
                r#"{"z":"x"}"#,
            ]),
            "open" => self.choice(&[
                r#"{}"#,
                r#"{"known":"1"}"#,
                r#"{"known":"2","other":{"a":1}}"#,
                r#"{"list":[{"name":"a"}]}"#,
                r#"{"list":[{"name":"b","value":"1"},{"name":"a","value":"2"}]}"#,
                r#"{"other":{"a":2}}"#,
            ]),
            "ports" => self.choice(&[
                r#"[]"#,
                r#"[{"port":80}]"#,
                r#"[{"port":80,"name":"1"}]"#,
                r#"[{"port":80,"proto":"UDP"}]"#,
                r#"[{"port":80,"proto":"TCP","name":"2"},{"port":443}]"#,
                r#"[{"port":443,"in":{"x":1}},{"port":80}]"#,
                r#"[{"port":443,"in":{"x":1,"y":"1"}},{"port":9}]"#,
                r#"[{"port":9,"in":{}}]"#,
                r#"[{"port":80},{"port":80}]"#,
                r#"[{"name":"1"}]"#,
            ]),
            "set" => self.choice(&[
                r#"[]"#,
                r#"["a"]"#,
                r#"["b","a"]"#,
                r#"["a","c"]"#,
                r#"["a<b"]"#,
                r#"["a","a"]"#,
            ]),
            "numbers" => self.choice(&[r#"[]"#, r#"[10,9]"#, r#"[9]"#, r#"[100,9]"#]),
            "plain" => self.choice(&[r#"[]"#, r#"["a"]"#, r#"["b","a"]"#, r#"["a","a"]"#]),
            "whole" => self.choice(&[r#"{}"#, r#"{"a":"1"}"#, r#"{"a":"1","b":"2"}"#, r#"{"b":"1"}"#]),
            "either" => self.choice(&["1", r#""1""#, r#""50%""#]),
            "nothing" => self.choice(&["null", r#""1""#, r#""2""#]),
            _ => self.word().into(),
        }
    }

    fn choice(&mut self, of: &[&str]) -> Value {
        serde_json::from_str(self.one(of)).unwrap_or_default()
    }

    fn service(&mut self) -> Value {
        let mut spec = json!({});
        if self.chance(85) {
            spec["ports"] = self.choice(&[
                r#"[{"port":80}]"#,
                r#"[{"port":80,"name":"http"}]"#,
                r#"[{"port":80,"name":"http","targetPort":1}]"#,
                r#"[{"port":80,"name":"http","targetPort":"web"},{"port":443,"name":"https"}]"#,
                r#"[{"port":443,"name":"https"},{"port":80,"name":"http","protocol":"UDP"}]"#,
                r#"[{"port":53,"name":"udp","protocol":"UDP"},{"port":53,"name":"tcp","protocol":"TCP"}]"#,
                r#"[{"port":9,"name":"nine"},{"port":80,"name":"http"},{"port":443,"name":"https"}]"#,
            ]);
        }
        if self.chance(50) {
            spec["selector"] = self.choice(&[r#"{}"#, r#"{"a":"1"}"#, r#"{"a":"2","b":"1"}"#]);
        }
        if self.chance(15) {
            spec["loadBalancerSourceRanges"] = self.choice(&[r#"["1.2.3.0/24"]"#, "[]"]);
        }
        if self.chance(15) {
            spec["sessionAffinity"] = self.one(&["ClientIP", "None"]).into();
        }
        if self.chance(10) {
            spec["sessionAffinityConfig"] = json!({"clientIP": {"timeoutSeconds": 5}});
        }
        spec
    }

    #[expect(clippy::too_many_lines, reason = "the fields of a Deployment")]
    fn deployment(&mut self) -> Value {
        let mut container = json!({"name": "c"});
        if self.chance(90) {
            container["image"] = self.one(&["i1", "i2"]).into();
        }
        for (field, choices) in [
            (
                "env",
                &[
                    r#"[{"name":"A"}]"#,
                    r#"[{"name":"A","value":"1"}]"#,
                    r#"[{"name":"B","value":"1"},{"name":"A","value":"2"}]"#,
                    r#"[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}]"#,
                    "[]",
                ][..],
            ),
            (
                "ports",
                &[
                    r#"[{"containerPort":80}]"#,
                    r#"[{"containerPort":80,"name":"a"},{"containerPort":443}]"#,
                    r#"[{"containerPort":80,"protocol":"UDP"}]"#,
                ],
            ),
            (
                "livenessProbe",
                &[
                    r#"{"httpGet":{"port":80}}"#,
                    r#"{"httpGet":{"port":80,"path":"/x"},"periodSeconds":3}"#,
                    r#"{"tcpSocket":{"port":80}}"#,
                ],
            ),
            (
                "resources",
                &[
                    r#"{"limits":{"cpu":"1"}}"#,
                    r#"{"requests":{"cpu":"100m","memory":"1Gi"}}"#,
                    "{}",
                ],
            ),
            ("command", &[r#"["a"]"#, r#"["a","b"]"#]),
            (
                "volumeMounts",
                &[
                    r#"[{"name":"v","mountPath":"/a"}]"#,
                    r#"[{"name":"v","mountPath":"/a"},{"name":"v","mountPath":"/b"}]"#,
                ],
            ),
        ] {
            if self.chance(22) {
                container[field] = self.choice(choices);
            }
        }
        let mut pod = json!({"containers": [container]});
        if self.chance(25) {
            let second = json!({"name": "d", "image": self.one(&["i1", "i2"])});
            match self.chance(50) {
                true => pod["containers"] = json!([second, pod["containers"][0]]),
                false => pod["containers"] = json!([pod["containers"][0], second]),
            }
        }
        for (field, choices) in [
            (
                "volumes",
                &[
                    r#"[{"name":"v","emptyDir":{}}]"#,
                    r#"[{"name":"v","configMap":{"name":"a"}},{"name":"w","emptyDir":{}}]"#,
                    r#"[{"name":"v","hostPath":{"path":"/x"}}]"#,
                ][..],
            ),
            (
                "affinity",
                &[
                    r#"{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"Exists"}]}]}}}"#,
                    r#"{"podAntiAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1,"podAffinityTerm":{"topologyKey":"a","labelSelector":{"matchLabels":{"a":"1"}}}}]}}"#,
                    "{}",
                ],
            ),
            ("nodeSelector", &[r#"{"a":"1"}"#, r#"{"a":"2","b":"1"}"#]),
            (
                "tolerations",
                &[
                    r#"[{"key":"a","operator":"Exists"}]"#,
                    r#"[{"key":"b","operator":"Exists"}]"#,
                ],
            ),
            (
                "securityContext",
                &[
                    r#"{"runAsUser":1}"#,
                    r#"{"runAsUser":1,"runAsNonRoot":true}"#,
                    "{}",
                ],
            ),
            ("terminationGracePeriodSeconds", &["5", "30"]),
            (
                "imagePullSecrets",
                &[r#"[{"name":"a"}]"#, r#"[{"name":"b"},{"name":"a"}]"#],
            ),
            ("hostAliases", &[r#"[{"ip":"1.2.3.4","hostnames":["a"]}]"#]),
            (
                "topologySpreadConstraints",
                &[
                    r#"[{"maxSkew":1,"topologyKey":"a","whenUnsatisfiable":"DoNotSchedule","labelSelector":{"matchLabels":{"a":"1"}}}]"#,
                ],
            ),
        ] {
            if self.chance(13) {
                pod[field] = self.choice(choices);
            }
        }
        let mut spec = json!({
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": pod},
        });
        for (field, choices) in [
            ("replicas", &["1", "2"][..]),
            (
                "strategy",
                &[
                    r#"{"type":"Recreate"}"#,
                    r#"{"rollingUpdate":{"maxSurge":1}}"#,
                    r#"{"type":"RollingUpdate","rollingUpdate":{"maxSurge":"50%","maxUnavailable":0}}"#,
                    "{}",
                ],
            ),
            ("minReadySeconds", &["0", "1"]),
            ("paused", &["true", "false"]),
        ] {
            if self.chance(20) {
                spec[field] = self.choice(choices);
            }
        }
        spec
    }

    fn autoscaler(&mut self, is_v2: bool) -> Value {
        let mut spec = json!({
            "scaleTargetRef": {"kind": "Deployment", "name": self.one(&["a", "b"]), "apiVersion": "apps/v1"},
            "maxReplicas": self.one(&[3, 4]),
        });
        if self.chance(40) {
            spec["minReplicas"] = self.one(&[1, 2]).into();
        }
        if self.chance(60) {
            if is_v2 {
                spec["metrics"] = self.choice(&[
                    r#"[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":50}}}]"#,
                    r#"[{"type":"Resource","resource":{"name":"memory","target":{"type":"Utilization","averageUtilization":50}}}]"#,
                    "[]",
                ]);
            } else {
                spec["targetCPUUtilizationPercentage"] = self.one(&[50, 60]).into();
            }
        }
        if is_v2 && self.chance(20) {
            spec["behavior"] = self.choice(&[
                r#"{"scaleDown":{"stabilizationWindowSeconds":60}}"#,
                r#"{"scaleUp":{"selectPolicy":"Max"}}"#,
            ]);
        }
        spec
    }

    fn ingress(&mut self) -> Value {
        let mut spec = json!({});
        if self.chance(70) {
            spec["defaultBackend"] = self.choice(&[
                r#"{"service":{"name":"a","port":{"number":80}}}"#,
                r#"{"service":{"name":"a","port":{"name":"b"}}}"#,
                r#"{"resource":{"kind":"A","name":"b"}}"#,
            ]);
        }
        if self.chance(60) {
            spec["rules"] = self.choice(&[
                r#"[{"host":"a.example.com"}]"#,
                r#"[{"host":"b.example.com","http":{"paths":[{"path":"/","pathType":"Prefix","backend":{"service":{"name":"a","port":{"number":80}}}}]}}]"#,
            ]);
        }
        if self.chance(25) {
            spec["ingressClassName"] = self.word().into();
        }
        if self.chance(25) {
            spec["tls"] = self.choice(&[r#"[{"hosts":["a.example.com"],"secretName":"a"}]"#, "[]"]);
        }
        spec
    }
}
