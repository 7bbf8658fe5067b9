//! A running oracle: a real kube-apiserver with its etcd, as `cargo xtask oracle build` builds them.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use kube_client::Client;
use serde_json::{Value, json};

use crate::{kubeconfig, repository};

/// A running oracle, which ends with its standard input.
#[derive(Debug)]
pub struct Oracle {
    child: Child,
    kubeconfig: PathBuf,
}

impl Oracle {
    /// Starts the oracle of Kubernetes 1.37 in the folder `ORACLE_BIN`, by default `fidelity/oracle/bin`. Its administrator's
    /// kubeconfig is written to `folder`.
    ///
    /// # Panics
    ///
    /// It was not built, or does not start.
    pub fn start(folder: &Path) -> Self {
        let built = std::env::var_os("ORACLE_BIN").map(PathBuf::from);
        let built = built.unwrap_or_else(|| repository::root().join("fidelity/oracle/bin"));
        let program = built.join("oracle-1.37");
        assert!(
            program.exists(),
            "{} is not there: cargo xtask oracle build --version 1.37",
            program.display()
        );
        let mut child = Command::new(program)
            .arg("--until-stdin-eof")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it was built for this machine");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped above"))
            .read_line(&mut line)
            .expect("it prints text");
        let announced: Value = serde_json::from_str(&line).expect("its first line is JSON");
        let kubeconfig = folder.join("oracle.json");
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{ "name": "c", "cluster": { "server": announced["url"], "certificate-authority": announced["caFile"] } }],
            "users": [{ "name": "u", "user": { "token": announced["token"] } }],
            "contexts": [{ "name": "c", "context": { "cluster": "c", "user": "u" } }],
        });
        std::fs::write(&kubeconfig, config.to_string()).expect("tests can write to their folder");
        Self { child, kubeconfig }
    }

    /// Kubeconfig of its administrator.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Returns a client of its administrator.
    ///
    /// # Panics
    ///
    /// The kubeconfig was removed.
    pub async fn client(&self) -> Client {
        Client::try_from(kubeconfig::config(&self.kubeconfig).await).expect("its authority can be read")
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // It ends with its input.
        let _ = self.child.wait();
    }
}
