//! `cargo xtask conformance`: runs the scenarios with the clients of adapters/adapters.yaml and writes CONFORMANCE.md.
//!
//! What the clients did is kept in adapters/results, a file each; the page is made of these files alone.

mod behaviour;
mod page;
mod record;

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use e2e::adapters::{Client, Registry};

use self::behaviour::Behaviour;
use self::record::Record;
use crate::cargo::{self, Build};
use crate::clients;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Test this client only; can be given several times [default: all].
    #[arg(long, value_name = "NAME")]
    client: Vec<String>,
    /// Compare with the recorded results and CONFORMANCE.md instead of writing them.
    #[arg(long)]
    check: bool,
    /// Write CONFORMANCE.md from the recorded results; run nothing.
    #[arg(long, conflicts_with_all = ["client", "check"])]
    page: bool,
    /// Measure only what the clients ask first and how they wait, for the page's table of behaviour.
    #[arg(long, conflicts_with_all = ["check", "page", "from"])]
    behaviour: bool,
    /// Take the output of earlier runs, NAME.jsonl in this folder, instead of running the clients.
    #[arg(long, value_name = "FOLDER", conflicts_with = "page")]
    from: Option<PathBuf>,
    /// Number of tests of a client to run in parallel.
    #[arg(long, value_name = "N", default_value_t = 8)]
    jobs: u32,
}

/// Exit code 0: done, or nothing differs; 1: a result differs or has no reason; 2: something is missing or broken.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    match conformance(arguments) {
        Ok(wrong) if wrong.is_empty() => ExitCode::SUCCESS,
        Ok(wrong) => {
            wrong.iter().for_each(|line| note(line));
            ExitCode::FAILURE
        }
        Err(problem) => {
            note(&problem);
            ExitCode::from(clients::USAGE)
        }
    }
}

/// What is wrong with the results.
fn conformance(arguments: &Arguments) -> Result<Vec<String>, String> {
    let root = clients::root();
    let registry = Registry::read(&root)?;
    let mut wrong = Vec::new();
    if !arguments.page {
        let chosen = registry.chosen(&arguments.client)?;
        let built = match arguments.from {
            None => Some(Programs::build()?),
            Some(_) => None,
        };
        for client in chosen {
            if let (true, Some(programs)) = (arguments.behaviour, &built) {
                note(&format!("{}: measuring …", client.name));
                let measured = programs.command(&root, &registry, client).and_then(|command| {
                    Behaviour::measure(&root, &programs.fake_apiserver, client, &command)
                });
                match measured {
                    Ok(behaviour) => behaviour.write(&root, &client.name)?,
                    Err(why) => note(&format!("skipped {}: {why}", client.name)),
                }
                continue;
            }
            let output = match (&built, &arguments.from) {
                (Some(programs), _) => match programs.command(&root, &registry, client) {
                    Ok(command) => play(&root, &programs.fake_apiserver, client, &command, arguments.jobs),
                    Err(why) if in_ci() => return Err(format!("{}: {why}", client.name)),
                    Err(why) => Err(why),
                },
                (None, Some(folder)) => {
                    std::fs::read_to_string(folder.join(format!("{}.jsonl", client.name)))
                        .map_err(|error| error.to_string())
                }
                (None, None) => continue,
            };
            let output = match output {
                Ok(output) => output,
                Err(why) => {
                    note(&format!("skipped {}: {why}", client.name));
                    continue;
                }
            };
            let (fresh, complaints) = match Record::of_run(client, &output) {
                Ok(run) => run,
                Err(why) => {
                    wrong.push(why);
                    continue;
                }
            };
            // What is left out may come out in any way.
            let judged = |line: &String| {
                let id = line.split(": ").nth(1).unwrap_or_default();
                registry.left_out(client, id).is_none()
            };
            wrong.extend(complaints.into_iter().filter(judged));
            if arguments.check {
                let differences = Record::read(&root, &client.name)?.differences(&client.name, &fresh);
                wrong.extend(differences.into_iter().filter(judged));
            } else {
                fresh.write(&root, &client.name)?;
            }
        }
    }
    let pages = page::pages(&root, &registry)?;
    wrong.extend(pages.wrong.iter().cloned());
    if arguments.check {
        wrong.extend(pages.stale(&root)?);
    } else {
        pages.write(&root)?;
    }
    Ok(wrong)
}

/// The programs of this workspace.
struct Programs {
    fake_apiserver: PathBuf,
    watcher: PathBuf,
    kube_runtime: PathBuf,
    kube_client: PathBuf,
}

impl Programs {
    fn build() -> Result<Self, String> {
        let [fake_apiserver, watcher, kube_runtime, kube_client] = cargo::programs(
            Build::Debug,
            [
                ("fake-apiserver-cli", "fake-apiserver"),
                ("adapter-watcher", "adapter-watcher"),
                ("adapter-kube-runtime", "adapter-kube-runtime"),
                ("adapter-kube-client", "adapter-kube-client"),
            ],
        )?;
        Ok(Self {
            fake_apiserver,
            watcher,
            kube_runtime,
            kube_client,
        })
    }

    fn command(&self, root: &Path, registry: &Registry, client: &Client) -> Result<Vec<String>, String> {
        // `target/debug/fake-apiserver`: the folder of the profile lies in the target's.
        let target = self.fake_apiserver.ancestors().nth(2).unwrap_or(root);
        let programs: [(&str, &Path); 3] = [
            ("adapter-watcher", &self.watcher),
            ("adapter-kube-runtime", &self.kube_runtime),
            ("adapter-kube-client", &self.kube_client),
        ];
        registry.command(root, target, client, &programs)
    }
}

/// Runs all scenarios with one client: a line of JSON each, and a footer.
fn play(
    root: &Path,
    fake_apiserver: &Path,
    client: &Client,
    command: &[String],
    jobs: u32,
) -> Result<String, String> {
    note(&format!("{}: running …", client.name));
    let known = known_failures(root, &client.name);
    let mut run = Command::new(fake_apiserver);
    run.args(["conformance", "--format", "json", "--retries", "1", "--jobs"])
        .arg(jobs.to_string())
        .stderr(Stdio::inherit());
    if known.is_file() {
        run.arg("--known-failures").arg(known);
    }
    let output = run
        .arg("--")
        .args(command)
        .output()
        .map_err(|error| format!("cannot run {}: {error}", fake_apiserver.display()))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// What a client is known to fail.
fn known_failures(root: &Path, client: &str) -> PathBuf {
    root.join("adapters/known-failures")
        .join(format!("{client}.yaml"))
}

/// Nothing may be skipped there.
fn in_ci() -> bool {
    std::env::var("CI").is_ok_and(|ci| ci == "1" || ci == "true")
}

fn note(line: &str) {
    let _closed_pipe = writeln!(io::stderr(), "conformance: {line}");
}
