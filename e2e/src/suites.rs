//! Test suites of other projects, pinned in `e2e/suites`: which there are, what they reported, which failures are known.
//!
//! It builds and starts nothing; `cargo xtask suites` does. Nothing here knows how the fake works inside.

pub mod expected;
pub mod page;
pub mod report;

use std::path::PathBuf;

use crate::toolchain::repository;

/// A suite.
#[derive(Debug, Clone, Copy)]
pub struct Suite {
    /// The name it is selected by.
    pub name: &'static str,
    /// The folder of its pinned module in `e2e/suites`.
    pub module: &'static str,
    /// The test package, as the module's toolchain names it; the first of several.
    pub package: &'static str,
    /// How it is run.
    pub runner: Runner,
    /// Programs of the module that run beside it, by their folders.
    pub beside: &'static [&'static str],
    /// What it is, for `docs/fidelity.md`.
    pub about: &'static str,
}

/// How a suite is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runner {
    /// A Ginkgo suite of `go test`, in one process.
    Ginkgo,
    /// The Kubernetes e2e suite: the specs of `<module>/<name>.txt`, in several processes.
    Specs,
    /// The subtests of a Go test.
    GoTest(&'static str),
    /// Ginkgo suites of these packages below `package`, each of which starts its own control planes by envtest.
    Envtest(&'static [&'static str]),
    /// The ignored unit tests of these published crates of kube-rs.
    Ignored(&'static [&'static str]),
}

/// Every suite, the quick ones first.
pub const SUITES: [Suite; 9] = [
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

/// What makes a cluster of a server, but for containers.
const CLUSTER: &[&str] = &["nodes", "kube-controller-manager", "kube-scheduler"];

impl Suite {
    /// The suite of that name.
    pub fn named(name: &str) -> Option<&'static Self> {
        SUITES.iter().find(|suite| suite.name == name)
    }

    /// The folder of its module.
    pub fn folder(&self) -> PathBuf {
        folder().join(self.module)
    }

    /// The specs it consists of, if it is one whose specs are listed.
    ///
    /// # Errors
    /// The list cannot be read.
    pub fn specs(&self) -> Result<Option<Vec<String>>, String> {
        if self.runner != Runner::Specs {
            return Ok(None);
        }
        let file = self.folder().join(format!("{}.txt", self.name));
        let text = std::fs::read_to_string(&file).map_err(|why| format!("{}: {why}", file.display()))?;
        Ok(Some(text.lines().map(str::to_owned).collect()))
    }

    /// The pinned version: project and version, from its `go.mod` or `Cargo.toml`.
    ///
    /// # Errors
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

/// Where the modules, the known failures and the counts are.
fn folder() -> PathBuf {
    repository().join("e2e/suites")
}
