//! The first hour of a new user: runs the commands of `docs/try-it.md` unchanged and compares their output with the page.
//!
//! A line of expected output matches the next line that fits, where `…` stands for anything. Below `<!-- stays -->` is a
//! command that keeps running: its first line is awaited at once, the others at the end.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use e2e::lines::Lines;
use e2e::toolchain::{self, or_skip};
use tests::programs::as_in_a_shell;

/// A command of the page, and its expected lines.
struct Step {
    command: String,
    stays: bool,
    printed: Vec<String>,
}

#[test]
fn commands_of_try_it_print_what_the_page_shows() {
    let Some(kubectl) = or_skip(toolchain::go("kubectl")) else {
        return;
    };
    let page = std::fs::read_to_string(toolchain::repository().join("docs/try-it.md")).unwrap();
    let steps = read(&page);
    assert!(steps.len() > 10, "the page has lost its commands");
    let folder = |program: &Path| program.parent().unwrap().to_owned();
    let mut shell = Shell::new(&[
        folder(toolchain::fake_apiserver()),
        folder(Path::new(kubectl.get_program())),
    ]);
    let mut running = Vec::new();
    for step in &steps {
        shell.run(step, &mut running);
    }
    for running in &mut running {
        running.expect_all();
    }
}

/// Returns the commands of the blocks marked `console`.
fn read(page: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let (mut inside, mut stays) = (false, false);
    for line in page.lines() {
        match line {
            "<!-- stays -->" => stays = true,
            "```console" => inside = true,
            "```" => (inside, stays) = (false, false),
            line if inside => match line.strip_prefix("$ ") {
                Some(command) => steps.push(Step {
                    command: command.to_owned(),
                    stays,
                    printed: Vec::new(),
                }),
                None => steps
                    .last_mut()
                    .expect("output stands below its command")
                    .printed
                    .push(line.to_owned()),
            },
            _ => {}
        }
    }
    steps
}

/// State shared by the shells of the user: folder and exported variables.
struct Shell {
    /// Folder of state files, in which `ctl` finds only the server of this test.
    state: PathBuf,
    path: String,
    exports: Vec<String>,
}

impl Shell {
    fn new(programs: &[PathBuf]) -> Self {
        let state = std::env::temp_dir().join(format!("fake-apiserver-hour-{}", std::process::id()));
        std::fs::create_dir_all(&state).expect("a temporary folder can be made");
        let mut path: Vec<String> = programs
            .iter()
            .map(|folder| folder.display().to_string())
            .collect();
        path.push(std::env::var("PATH").expect("Cargo was found along it"));
        Self {
            state,
            path: path.join(":"),
            exports: Vec::new(),
        }
    }

    fn run(&mut self, step: &Step, running: &mut Vec<Running>) {
        if step.command.starts_with("export ") {
            self.exports.push(step.command.clone());
            return;
        }
        // The programs under test precede others in PATH.
        let before = [&self.exports[..], &[format!("PATH={}:$PATH", self.path)]].concat();
        let script = format!("{}; exec {}", before.join("; "), step.command);
        let mut command = Command::new("sh");
        command
            .args(["-c", &script])
            .current_dir(toolchain::repository())
            .env("XDG_RUNTIME_DIR", &self.state)
            .env_remove("KUBECONFIG")
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // The page builds the program first.
        as_in_a_shell(&mut command);
        let mut running_now = Running::start(command, step);
        if step.stays {
            running_now.expect_next();
            running.push(running_now);
        } else {
            running_now.expect_all();
            running_now.expect_end();
        }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.state));
        drop(std::fs::remove_file(
            toolchain::repository().join("fake.kubeconfig"),
        ));
    }
}

/// A running command of the page.
struct Running {
    child: Child,
    command: String,
    printed: Lines,
    complained: Lines,
    expected: std::vec::IntoIter<String>,
    next: usize,
}

impl Running {
    fn start(mut command: Command, step: &Step) -> Self {
        let mut child = command.spawn().expect("there is a shell");
        Self {
            printed: Lines::of(child.stdout.take().expect("piped before")),
            complained: Lines::of(child.stderr.take().expect("piped before")),
            child,
            command: step.command.clone(),
            expected: step.printed.clone().into_iter(),
            next: 0,
        }
    }

    fn expect_all(&mut self) {
        while self.expect_next() {}
    }

    fn expect_next(&mut self) -> bool {
        let Some(expected) = self.expected.next() else {
            return false;
        };
        match self
            .printed
            .find(self.next, |line| fits(line, &expected).then_some(()))
        {
            Ok((number, ())) => self.next = number + 1,
            Err(instead) => panic!(
                "`{}` was to print {expected:?}, and printed {instead:#?} and {:#?}",
                self.command,
                self.complained.since(0)
            ),
        }
        true
    }

    fn expect_end(&mut self) {
        let status = self.child.wait().expect("a child can be waited for");
        assert!(
            status.success(),
            "`{}`: {status}: {:#?}",
            self.command,
            self.complained.since(0)
        );
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Returns whether the line matches, ignoring spaces; `…` matches anything.
fn fits(line: &str, expected: &str) -> bool {
    let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (line, expected) = (squeezed(line), squeezed(expected));
    let mut parts = expected.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = line.strip_prefix(first) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else {
        return rest.is_empty();
    };
    for part in middle {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}
