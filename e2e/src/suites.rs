//! Test suites of other projects, pinned in `e2e/suites`: list of suites, results, known failures.
//!
//! It builds and starts nothing; `cargo xtask suites` does. It must not know how the fake works.

pub mod expected;
pub mod page;
pub mod report;

use std::path::PathBuf;

use crate::toolchain::repository;

/// A suite.
#[derive(Debug, Clone, Copy)]
pub struct Suite {
    /// Name in options.
    pub name: &'static str,
    /// Folder of its pinned module in `e2e/suites`.
    pub module: &'static str,
    /// Test package, by the name that the toolchain of the module uses; the first of several.
    pub package: &'static str,
    /// How to run it.
    pub runner: Runner,
    /// Programs of the module that run next to it, by their folders.
    pub beside: &'static [&'static str],
    /// Description for `docs/fidelity.md`.
    pub about: &'static str,
}

/// How to run a suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runner {
    /// A Ginkgo suite of `go test`, in one process.
    Ginkgo,
    /// The Kubernetes e2e suite: the specs of `<module>/<name>.txt`, in several processes.
    Specs,
    /// Subtests of a Go test.
    GoTest(&'static str),
    /// Ginkgo suites of these packages below `package`, each of which starts control planes by envtest.
    Envtest(&'static [&'static str]),
    /// Ignored unit tests of these published crates of kube-rs.
    Ignored(&'static [&'static str]),
}

/// All suites, the quick ones first.
pub const SUITES: [Suite; 10] = [
    Suite {
        name: "controller-runtime-client",
        module: "controller-runtime",
        package: "sigs.k8s.io/controller-runtime/pkg/client",
        runner: Runner::Ginkgo,
        beside: &[],
        about: "package `client`: typed, unstructured and metadata clients",
    },
    Suite {
        name: "controller-runtime-cache",
        module: "controller-runtime",
        package: "sigs.k8s.io/controller-runtime/pkg/cache",
        runner: Runner::Ginkgo,
        beside: &[],
        about: "package `cache`: informers and the reader over them",
    },
    Suite {
        name: "controller-runtime-envtest",
        module: "controller-runtime",
        package: "sigs.k8s.io/controller-runtime/pkg",
        runner: Runner::Envtest(&[
            "builder",
            "cache",
            "client",
            "cluster",
            "controller",
            "controller/controllerutil",
            "envtest",
            "handler",
            "internal/controller",
            "internal/recorder",
            "internal/testing/controlplane",
            "manager",
            "manager/internal/integration",
            "metrics/filters",
            "source",
            "webhook",
        ]),
        beside: &[],
        about: "every package that starts envtest, on `fake-apiserver envtest-assets` ([envtest.md](envtest.md))",
    },
    Suite {
        name: "kube-rs",
        module: "kube-rs",
        package: "kube",
        runner: Runner::Ignored(&["kube", "kube-client", "kube-runtime"]),
        beside: &[],
        about: "cluster tests (`#[ignore]`) of the crates `kube`, `kube-client` and `kube-runtime`",
    },
    Suite {
        name: "kube-scheduler",
        module: "kubernetes",
        package: "./components",
        runner: Runner::GoTest("TestScheduler"),
        beside: &["kube-scheduler"],
        about: "our checks of kube-scheduler: binds, spreads, waits, gates, preempts",
    },
    Suite {
        name: "kube-controller-manager",
        module: "kubernetes",
        package: "./components",
        runner: Runner::GoTest("TestControllerManager"),
        beside: &["kube-controller-manager"],
        about: "our checks of its controllers: workloads, endpoints, quotas, budgets, garbage collection",
    },
    Suite {
        name: "api-machinery",
        module: "kubernetes",
        package: "./specs",
        runner: Runner::Specs,
        beside: CLUSTER,
        about: "e2e specs of SIG API Machinery that need no container",
    },
    Suite {
        name: "webhooks",
        module: "kubernetes",
        package: "./specs",
        runner: Runner::Specs,
        beside: CLUSTER,
        about: "e2e specs of SIG API Machinery whose webhooks are served, by processes of this machine",
    },
    Suite {
        name: "other-sigs",
        module: "kubernetes",
        package: "./specs",
        runner: Runner::Specs,
        beside: CLUSTER,
        about: "e2e specs of apps, auth, instrumentation, network, node and scheduling that need no container",
    },
    Suite {
        name: "kubectl-and-storage",
        module: "kubernetes",
        package: "./specs",
        runner: Runner::Specs,
        beside: CLUSTER,
        about: "e2e specs of SIG CLI and SIG Storage that need no container",
    },
];

/// Programs that make a server a cluster without containers.
const CLUSTER: &[&str] = &["nodes", "kube-controller-manager", "kube-scheduler"];

impl Suite {
    /// Returns the suite of that name.
    pub fn named(name: &str) -> Option<&'static Self> {
        SUITES.iter().find(|suite| suite.name == name)
    }

    /// Returns the folder of its module.
    pub fn folder(&self) -> PathBuf {
        folder().join(self.module)
    }

    /// Returns its specs; `None` if it has no list of specs.
    ///
    /// # Errors
    ///
    /// The list cannot be read.
    pub fn specs(&self) -> Result<Option<Vec<String>>, String> {
        if self.runner != Runner::Specs {
            return Ok(None);
        }
        let file = self.folder().join(format!("{}.txt", self.name));
        let text = std::fs::read_to_string(&file).map_err(|why| format!("{}: {why}", file.display()))?;
        Ok(Some(text.lines().map(str::to_owned).collect()))
    }

    /// Returns the pinned project and version, from its `go.mod` or `Cargo.toml`.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or pins nothing known.
    pub fn pinned(&self) -> Result<(&'static str, String), String> {
        const PROJECTS: [(&str, &str); 3] = [
            ("sigs.k8s.io/controller-runtime v", "controller-runtime"),
            ("k8s.io/kubernetes v", "Kubernetes"),
            ("kube-client = \"=", "kube-rs"),
        ];
        let file = self.folder().join(match self.runner {
            Runner::Ginkgo | Runner::Envtest(_) | Runner::Specs | Runner::GoTest(_) => "go.mod",
            Runner::Ignored(_) => "Cargo.toml",
        });
        let text = std::fs::read_to_string(&file).map_err(|why| format!("{}: {why}", file.display()))?;
        let found = text.lines().find_map(|line| {
            let line = line.trim().trim_start_matches("require ");
            PROJECTS.iter().find_map(|(prefix, project)| {
                let version = line.strip_prefix(prefix)?.split([' ', '"']).next()?;
                Some((*project, version.to_owned()))
            })
        });
        found.ok_or_else(|| format!("{} pins no known project", file.display()))
    }
}

/// Returns the folder of the modules, known failures and counts.
fn folder() -> PathBuf {
    repository().join("e2e/suites")
}
