//! Components that run beside a suite, started before it and stopped after it.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::programs::Programs;
use super::running::create;
use super::target::Target;

/// Running components.
pub(crate) struct Beside(Vec<(String, Child)>);

impl Beside {
    /// Starts them, each with its log in `folder/NAME.log`.
    ///
    /// # Errors
    /// One does not start.
    pub(crate) fn start(programs: &Programs, target: &Target, folder: &Path) -> Result<Self, String> {
        let mut running = Self(Vec::new());
        for program in &programs.beside {
            let name = program
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let flags: &[&str] = match name.as_str() {
                // Keeps nodes without kubelets as they are.
                "kube-controller-manager" => &[
                    "--leader-elect=false",
                    "--secure-port=0",
                    "--controllers=*,-node-lifecycle-controller",
                ],
                "kube-scheduler" => &["--leader-elect=false", "--secure-port=0"],
                _ => &[],
            };
            let child = Command::new(program)
                .arg("--kubeconfig")
                .arg(&target.kubeconfig)
                .args(flags)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(create(&folder.join(format!("{name}.log")))?)
                .spawn()
                .map_err(|why| format!("{}: {why}", program.display()))?;
            running.0.push((name, child));
        }
        Ok(running)
    }

    /// Checks that all still run.
    ///
    /// # Errors
    /// One has exited.
    pub(crate) fn still_there(&mut self) -> Result<(), String> {
        for (name, child) in &mut self.0 {
            if let Ok(Some(status)) = child.try_wait() {
                return Err(format!("{name} ended with {status}; see {name}.log"));
            }
        }
        Ok(())
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        for (_, child) in &mut self.0 {
            let _gone = child.kill();
            let _status = child.wait();
        }
    }
}
