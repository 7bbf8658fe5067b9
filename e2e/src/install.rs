//! Installs what `cargo xtask dist` makes as a stranger does: by the line that the documentation prints, in a new folder
//! without Rust, from files of this machine; and runs a first test with it. It must not know how an artefact is made.

pub mod lines;
mod root;
mod served;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use tests::programs;

use self::lines::Lines;
use self::root::Root;
use crate::toolchain::{Missing, copy, fake_apiserver, kept, repository, run};

/// What the published URL is replaced by.
const PUBLISHED: &str = "https://github.com/fake-apiserver/fake-apiserver/releases/download/v0.1.0";

/// Version of setup-envtest; it is not a part of any module here.
const SETUP_ENVTEST: &str = "sigs.k8s.io/controller-runtime/tools/setup-envtest@v0.25.1";

/// Artefacts of one kind, made from this build of `fake-apiserver`.
pub(crate) struct Dist {
    pub(crate) folder: PathBuf,
    /// URL of the folder, by HTTP.
    url: String,
}

/// Makes the artefacts of a kind of `cargo xtask dist --only`, in a folder that no other test of this program uses.
///
/// # Errors
/// They cannot be made.
pub(crate) fn dist(kind: &str, folder: &str) -> Result<Dist, Missing> {
    static BINARY: LazyLock<Result<PathBuf, Missing>> = LazyLock::new(|| {
        let stripped = kept("install").join("fake-apiserver");
        copy(fake_apiserver(), &stripped)?;
        // Half of a debug build is symbols. Without the tool the test is only slower.
        drop(Command::new("strip").arg(&stripped).output());
        Ok(stripped)
    });
    let url = format!("{}/{folder}", served::url(&kept("install"))?);
    let folder = kept("install").join(folder);
    let mut chores = Command::new(programs::path("chores"));
    chores.args(["dist", "--draft", "--level", "0", "--only", kind, "--url", &url]);
    chores
        .arg("--binary")
        .arg(BINARY.clone()?)
        .arg("--to")
        .arg(&folder);
    run(&format!("cargo xtask dist --only {kind}"), &mut chores)?;
    Ok(Dist { folder, url })
}

/// Returns the line of the documentation for a test, with the URL of a local folder instead of the published one.
fn line(test: &str, dist: &Dist) -> String {
    let lines = Lines::read();
    let line = lines
        .of(test)
        .next()
        .unwrap_or_else(|| panic!("lines.yaml has no line for {test}"));
    line.replace(PUBLISHED, &dist.url)
}

/// Unpacks the archive and plays a scenario with a client of the standard library of Python.
///
/// # Errors
/// A tool is missing.
///
/// # Panics
/// If a step fails.
pub fn archive() -> Result<(), Missing> {
    let dist = dist("archives", "archives")?;
    let root = Root::new("archive", &["curl", "tar", "gzip", "uname", "python3"])?;
    root.copy(&repository().join("e2e/install/archive"))?;
    root.succeeds(&line("archive", &dist));
    let played = root.succeeds(
        "./fake-apiserver-*/fake-apiserver run gone/error-event-at-watch-start-forces-a-relist -- python3 client.py",
    );
    assert!(played.contains("1 passed, 0 failed"), "{played}");
    // The documents are those of this version.
    root.succeeds(
        "test -s fake-apiserver-*/man/man1/fake-apiserver-run.1 && test -s fake-apiserver-*/THIRD-PARTY.txt",
    );
    root.succeeds("./fake-apiserver-*/fake-apiserver check fake-apiserver-*/scenarios/gone");
    Ok(())
}

/// Installs the wheel into a new virtual environment and runs a test with pytest.
///
/// # Errors
/// A tool is missing.
///
/// # Panics
/// If a step fails.
pub fn python() -> Result<(), Missing> {
    let dist = dist("wheels", "wheels")?;
    let mut root = Root::new("python", &["python3"])?;
    root.copy(&repository().join("e2e/install/python"))?;
    root.succeeds("python3 -m venv environment");
    // pytest comes from the registry of this machine.
    let others = std::env::var("PIP_FIND_LINKS").unwrap_or_default();
    root.set("PIP_FIND_LINKS", &format!("{} {others}", dist.folder.display()));
    root.set("PIP_CACHE_DIR", &kept("install-pip").display().to_string());
    let activated = format!(". environment/bin/activate && {}", line("python", &dist));
    root.succeeds(&activated);
    root.succeeds("environment/bin/pytest -q");
    root.succeeds("environment/bin/fake-apiserver --version");
    Ok(())
}

/// Installs the npm package and runs a test with Node.
///
/// # Errors
/// A tool is missing.
///
/// # Panics
/// If a step fails.
pub fn javascript() -> Result<(), Missing> {
    let dist = dist("npm", "npm")?;
    let mut root = Root::new("javascript", &["node", "npm", "npx"])?;
    root.copy(&repository().join("e2e/install/javascript"))?;
    served::npm_registry(&dist.folder, &dist.url)?;
    root.set("npm_config_registry", &format!("{}/registry/", dist.url));
    root.succeeds(&line("javascript", &dist));
    root.succeeds("npm test");
    root.succeeds("npx fake-apiserver --version");
    Ok(())
}

/// Adds the Go module from a module proxy of files, and runs a test, which downloads the program; then installs the command.
///
/// # Errors
/// A tool is missing.
///
/// # Panics
/// If a step fails.
pub fn go() -> Result<(), Missing> {
    let dist = dist("go", "go")?;
    let mut root = Root::new("go", &["go"])?;
    root.copy(&repository().join("e2e/install/go"))?;
    root.set("GOPROXY", &format!("file://{}/go,off", dist.folder.display()));
    root.set("GOSUMDB", "off");
    root.set("GOFLAGS", "-modcacherw");
    root.set("GOTOOLCHAIN", "local");
    root.set("CGO_ENABLED", "0");
    // The standard library is compiled once, not by every test.
    root.set("GOCACHE", &kept("install-go").display().to_string());
    for line in Lines::read().of("go") {
        root.succeeds(line);
    }
    root.succeeds("go test -count=1 ./...");
    let version = root.succeeds("go/bin/fake-apiserver --version");
    assert!(version.starts_with("fake-apiserver "), "{version}");
    // It is in the cache now.
    root.set("FAKE_APISERVER_DOWNLOAD", "off");
    root.succeeds("go test -count=1 ./...");
    Ok(())
}

/// Resolves the JUnit extension from a Maven repository of files and runs a test.
///
/// # Errors
/// A tool is missing.
///
/// # Panics
/// If a step fails.
pub fn java() -> Result<(), Missing> {
    let dist = dist("java", "java")?;
    let mut root = Root::new("java", &["java", "mvn"])?;
    root.copy(&repository().join("e2e/install/java"))?;
    let url = format!("file://{}/maven", dist.folder.display());
    root.write(".m2/settings.xml", &served::maven_settings(&url))?;
    // Plugins are downloaded once; what is tested is not taken from an earlier run.
    let cache = kept("install-maven");
    let ours = cache.join("io/github/fake-apiserver");
    if ours.exists() {
        std::fs::remove_dir_all(&ours).map_err(|error| format!("{}: {error}", ours.display()))?;
    }
    let home = root.folder().display().to_string();
    root.set(
        "MAVEN_OPTS",
        &format!("-Dmaven.repo.local={} -Duser.home={home}", cache.display()),
    );
    root.succeeds("mvn --batch-mode --quiet test");
    root.succeeds("test -x .cache/fake-apiserver/*/fake-apiserver");
    Ok(())
}

/// Installs the programs by setup-envtest, and runs the tests of the project in `e2e/envtest` on them.
///
/// # Errors
/// A tool is missing.
///
/// # Panics
/// If a step fails.
pub fn envtest() -> Result<(), Missing> {
    let mut suite = crate::toolchain::envtest_project()?;
    let dist = dist("envtest", "envtest")?;
    let tools = kept("install-setup-envtest");
    if !tools.join("setup-envtest").exists() {
        run(
            "go install setup-envtest",
            Command::new("go")
                .args(["install", SETUP_ENVTEST])
                .env("GOBIN", &tools),
        )?;
    }
    let mut root = Root::new("envtest", &[])?;
    root.add_to_path(&tools);
    let assets = root.succeeds(&line("envtest", &dist));
    let verdict = root.folder().join("verdict.jsonl");
    suite
        .env("KUBEBUILDER_ASSETS", assets.trim())
        .env("FAKE_APISERVER_VERDICT", &verdict);
    suite.env("KUBEBUILDER_CONTROLPLANE_START_TIMEOUT", "2m");
    run("the envtest project", &mut suite).unwrap_or_else(|why| panic!("{why}"));
    let verdict = std::fs::read_to_string(&verdict).unwrap_or_default();
    assert!(verdict.contains("\"outcome\":\"pass\""), "{verdict}");
    Ok(())
}

/// Installs the program as the action for GitHub does: by a digest of its commit, and not with another digest.
///
/// # Errors
/// A tool is missing.
///
/// # Panics
/// If a step fails.
pub fn action() -> Result<(), Missing> {
    const DIGESTS: &str = "packages/go/fakeapiserver/checksums.go";
    let dist = dist("go", "action")?;
    let root = Root::new("action", &["bash", "curl", "tar", "gzip", "sed"])?;
    root.copy_file(
        &repository().join("deploy/action/install"),
        "deploy/action/install",
    )?;
    root.copy_file(&dist.folder.join("go/checksums.go"), DIGESTS)?;
    root.succeeds("bash deploy/action/install installed");
    let version = root.succeeds("installed/bin/fake-apiserver --version");
    assert!(version.starts_with("fake-apiserver "), "{version}");
    root.succeeds(&format!("sed -i 's/gz\", \"[0-9a-f]*/gz\", \"0000/' {DIGESTS}"));
    let refused = root.succeeds("bash deploy/action/install other 2>&1 || echo exit code $?");
    assert!(refused.contains("it is not the file of the release"), "{refused}");
    assert!(refused.ends_with("exit code 1\n"), "{refused}");
    // Without a digest the commit is built; there is no Rust here.
    root.succeeds(&format!("sed -i '/gz/d' {DIGESTS}"));
    let built = root.succeeds("bash deploy/action/install other 2>&1 || true");
    assert!(
        built.contains("fake-apiserver is built") && built.contains("cargo"),
        "{built}"
    );
    Ok(())
}

/// Returns the Markdown files of the repository, with their texts.
///
/// # Errors
/// Git is missing.
pub fn pages() -> Result<Vec<(PathBuf, String)>, Missing> {
    let mut git = Command::new("git");
    git.args(["ls-files", "-z", "--", "*.md"])
        .current_dir(repository());
    let listed = run("git ls-files", &mut git)?;
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let paths = listed.split('\0').filter(|path| !path.is_empty()).map(Path::new);
    // A removed file is listed until the next commit.
    let texts = paths.filter_map(|path| {
        Some((
            path.to_owned(),
            std::fs::read_to_string(repository().join(path)).ok()?,
        ))
    });
    Ok(texts.collect())
}
