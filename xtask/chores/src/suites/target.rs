//! The server a suite runs against, started before it and stopped after it.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use fake_apiserver::scenario::Version;

use crate::oracle;

/// A running server.
pub(crate) struct Target {
    /// Kubeconfig of an administrator.
    pub(crate) kubeconfig: PathBuf,
    process: Process,
}

enum Process {
    Fake(Child),
    Real(oracle::Running),
}

impl Target {
    /// Starts `fake`, or the oracle if there is none, with its log in `folder/server.log`.
    ///
    /// # Errors
    /// It does not start.
    pub(crate) fn start(fake: Option<&Path>, folder: &Path) -> Result<Self, String> {
        let Some(program) = fake else {
            // As envtest: without kube-controller-manager no namespace has the service account that pods need, and
            // cluster IPs are not forwarded, so webhook services are reached at their endpoints.
            let flags = [
                "--disable-admission-plugins=ServiceAccount",
                "--enable-aggregator-routing",
            ];
            let running =
                oracle::Running::begin_with(Version::NEWEST, &flags).map_err(|why| why.to_string())?;
            let kubeconfig = running.kubeconfig().map_err(|why| why.to_string())?;
            return Ok(Self {
                kubeconfig,
                process: Process::Real(running),
            });
        };
        let log = folder.join("server.log");
        let mut child = Command::new(program)
            // As a real server: HTTPS, authentication, authorization.
            .args(["serve", "--quiet", "--tls"])
            .args(["--token", "suites-admin", "--limited-token", "suites-limited"])
            // Its standard input ends with this process, even if a signal kills it.
            .arg("--exit-with-stdin")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(&log).map_err(|why| format!("{}: {why}", log.display()))?)
            .spawn()
            .map_err(|why| format!("{}: {why}", program.display()))?;
        let printed = child.stdout.take().map(BufReader::new);
        let mut lines = printed.into_iter().flat_map(std::io::BufRead::lines);
        let kubeconfig = lines.find_map(|line| {
            let line = line.ok()?;
            line.strip_prefix("export KUBECONFIG=").map(PathBuf::from)
        });
        match kubeconfig {
            Some(kubeconfig) => Ok(Self {
                kubeconfig,
                process: Process::Fake(child),
            }),
            None => {
                let _gone = child.kill();
                let _status = child.wait();
                Err(format!("fake-apiserver did not start; see {}", log.display()))
            }
        }
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        match &mut self.process {
            Process::Fake(child) => {
                // It stops at the end of its standard input and removes its kubeconfig.
                drop(child.stdin.take());
                let _status = child.wait();
            }
            Process::Real(_ends_itself) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_ends_with_the_pipe_of_this_process() {
        let folder = std::env::temp_dir().join(format!("chores-target-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let fake = ::tests::programs::path("fake-apiserver");
        let mut target = Target::start(Some(&fake), &folder).unwrap();
        let Process::Fake(child) = &mut target.process else {
            unreachable!("a fake was started");
        };
        // As when a signal kills this process.
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
        assert!(!target.kubeconfig.exists());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
