//! Checks of the facts: one finding per check, with a level and a remedy. It must not access the machine.

use std::io::ErrorKind;

use fake_apiserver::scenario::Version;

use super::facts::{Control, Facts, FolderUse, Kubeconfig, Loopback};

/// Returns the oldest and the newest version that is served.
fn served() -> String {
    format!("{} to {}", Version::OLDEST, Version::NEWEST)
}

/// Returns whether Kubernetes supports a minor version of kubectl: within one of those that are served.
fn is_supported(kubectl: u32) -> bool {
    let (oldest, newest) = (
        u32::from(Version::OLDEST.minor()),
        u32::from(Version::NEWEST.minor()),
    );
    (oldest - 1..=newest + 1).contains(&kubectl)
}

/// Limit of open files below which a few hundred watches can reach it: each uses a connection.
const OPEN_FILES_MIN: u64 = 1024;

/// Severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Ok,
    /// Some clients or uses are affected.
    Warn,
    /// Nothing works until it is fixed.
    Fail,
}

impl Level {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) check: &'static str,
    pub(super) level: Level,
    pub(super) message: String,
    /// How to fix it.
    pub(super) remedy: Option<String>,
}

/// Returns the findings of all checks, in the order in which a client would encounter the problems.
pub(super) fn findings(facts: &Facts) -> Vec<Finding> {
    let mut findings = vec![
        ok(
            "version",
            format!(
                "fake-apiserver {}, Kubernetes {}",
                env!("CARGO_PKG_VERSION"),
                served()
            ),
        ),
        port(facts),
        kubeconfig(&facts.kubeconfig),
        proxy(facts),
        open_files(facts.open_files),
    ];
    findings.extend(
        facts
            .folders
            .iter()
            .map(|(of, path, refused)| folder(*of, &path.display().to_string(), refused.as_deref())),
    );
    findings.push(kubectl(&facts.kubectl));
    findings.push(control(facts.control.as_ref()));
    findings.push(running(&facts.running));
    findings
}

fn port(facts: &Facts) -> Finding {
    let port = facts.port;
    match &facts.loopback {
        Ok(()) if port == 0 => ok(
            "port",
            "127.0.0.1 has free ports and accepts connections".to_owned(),
        ),
        Ok(()) => ok(
            "port",
            format!("127.0.0.1:{port} is free and accepts connections"),
        ),
        Err(Loopback::Bind(ErrorKind::AddrInUse, _)) => fail(
            "port",
            format!("127.0.0.1:{port} is in use"),
            format!("choose another --port or leave it out; `ss -ltnp 'sport = :{port}'` names the process"),
        ),
        Err(Loopback::Bind(ErrorKind::PermissionDenied, _)) => fail(
            "port",
            format!("127.0.0.1:{port} needs privileges"),
            "choose a --port above 1023, or leave it out".to_owned(),
        ),
        Err(Loopback::Bind(_, error)) => fail(
            "port",
            format!("cannot listen on 127.0.0.1:{port}: {error}"),
            "bring the loopback interface up: ip link set lo up".to_owned(),
        ),
        Err(Loopback::Connect(error)) => fail(
            "port",
            format!("connections to 127.0.0.1 do not arrive: {error}"),
            "allow loopback traffic in the firewall or sandbox".to_owned(),
        ),
    }
}

fn kubeconfig(kubeconfig: &Kubeconfig) -> Finding {
    let serve = "run the `export KUBECONFIG=…` line that `fake-apiserver serve` prints";
    match kubeconfig {
        Kubeconfig::None => ok(
            "kubeconfig",
            "KUBECONFIG is not set and there is no ~/.kube/config".to_owned(),
        ),
        Kubeconfig::Missing(value) => fail(
            "kubeconfig",
            format!("KUBECONFIG={value} does not exist; a server removes its kubeconfig on exit"),
            serve.to_owned(),
        ),
        Kubeconfig::Broken(file, error) => fail("kubeconfig", format!("{file}: {error}"), serve.to_owned()),
        Kubeconfig::Leads {
            url, is_local: false, ..
        } => warn(
            "kubeconfig",
            format!("clients without another kubeconfig reach {url}, which is not on this machine"),
            serve.to_owned(),
        ),
        Kubeconfig::Leads {
            url, accepts: false, ..
        } => fail(
            "kubeconfig",
            format!("nothing listens at {url}"),
            serve.to_owned(),
        ),
        Kubeconfig::Leads { by_variable, url, .. } => {
            let by = if *by_variable {
                "KUBECONFIG"
            } else {
                "~/.kube/config"
            };
            ok(
                "kubeconfig",
                format!("{by} leads to {url}, which accepts connections"),
            )
        }
    }
}

fn proxy(facts: &Facts) -> Finding {
    if facts.proxies.is_empty() {
        return ok("proxy", "no proxy variables are set".to_owned());
    }
    let names = facts.proxies.join(", ");
    if spares_loopback(&facts.no_proxy) {
        return ok("proxy", format!("{names} set, and NO_PROXY excludes 127.0.0.1"));
    }
    warn(
        "proxy",
        format!(
            "{names} set, and NO_PROXY does not exclude 127.0.0.1: Python and other clients send its requests to the proxy"
        ),
        "export NO_PROXY=127.0.0.1,localhost no_proxy=127.0.0.1,localhost".to_owned(),
    )
}

/// Returns whether `NO_PROXY` excludes 127.0.0.1 for all clients. `localhost` does not: clients compare names.
fn spares_loopback(no_proxy: &str) -> bool {
    let entries = no_proxy.split([',', ' ']).map(str::trim);
    entries
        .into_iter()
        .any(|entry| matches!(entry, "*" | "127.0.0.1" | "127.0.0.0/8" | "127.0.0.1/32"))
}

fn open_files(limit: Option<u64>) -> Finding {
    match limit {
        None => ok("files", "no limit of open files".to_owned()),
        Some(limit) if limit >= OPEN_FILES_MIN => ok("files", format!("{limit} files may be open")),
        Some(limit) => warn(
            "files",
            format!("only {limit} files may be open: each connection is one"),
            "raise the hard limit: ulimit -Hn 4096 as root, or LimitNOFILE= of the service".to_owned(),
        ),
    }
}

fn folder(of: FolderUse, path: &str, refused: Option<&str>) -> Finding {
    let (check, use_of) = match of {
        FolderUse::Temporary => ("temp", "kubeconfigs"),
        FolderUse::State => ("state", "the files by which `ctl` finds servers"),
        FolderUse::Home => ("home", "kubectl's cache of discovery"),
    };
    let Some(error) = refused else {
        return ok(check, format!("{path} is writable"));
    };
    let message = format!("{path} has to take {use_of}: {error}");
    match of {
        FolderUse::Temporary => fail(
            check,
            message,
            "set TMPDIR to a folder that you can write to".to_owned(),
        ),
        FolderUse::State => warn(
            check,
            message,
            "set XDG_RUNTIME_DIR to a folder of your own, or use --control and --control-token".to_owned(),
        ),
        FolderUse::Home => warn(
            check,
            message,
            "set HOME to a folder that you can write to".to_owned(),
        ),
    }
}

fn kubectl(minor: &Result<u32, String>) -> Finding {
    match minor {
        Ok(minor) if is_supported(*minor) => ok("kubectl", format!("kubectl 1.{minor}")),
        Ok(minor) => warn(
            "kubectl",
            format!("kubectl 1.{minor} is more than one minor away from every version that is served"),
            format!("install kubectl {}", served()),
        ),
        // Only users run it.
        Err(error) => ok("kubectl", format!("no kubectl ({error}); nothing needs it")),
    }
}

fn control(control: Option<&Control>) -> Finding {
    let Some(Control { url, version }) = control else {
        return ok("control", "FAKE_APISERVER_CONTROL is not set".to_owned());
    };
    match version {
        Ok(version) if version == env!("CARGO_PKG_VERSION") => {
            ok("control", format!("{url} is fake-apiserver {version}"))
        }
        Ok(version) => warn(
            "control",
            format!(
                "{url} is fake-apiserver {version}, and this is {}",
                env!("CARGO_PKG_VERSION")
            ),
            "use the same version for the server and for `ctl`".to_owned(),
        ),
        Err(error) => fail(
            "control",
            format!("FAKE_APISERVER_CONTROL={url}: {error}"),
            "unset both variables: `ctl` finds the servers of this machine by itself".to_owned(),
        ),
    }
}

fn running(servers: &[(String, bool)]) -> Finding {
    let alive: Vec<&str> = servers
        .iter()
        .filter(|(_, accepts)| *accepts)
        .map(|(what, _)| what.as_str())
        .collect();
    let gone = servers.len() - alive.len();
    let gone = match gone {
        0 => String::new(),
        gone => format!("; {gone} ended without removing their files"),
    };
    let alive = if alive.is_empty() {
        "none".to_owned()
    } else {
        alive.join(", ")
    };
    ok("servers", format!("running: {alive}{gone}"))
}

fn ok(check: &'static str, message: String) -> Finding {
    Finding {
        check,
        level: Level::Ok,
        message,
        remedy: None,
    }
}

fn warn(check: &'static str, message: String, remedy: String) -> Finding {
    Finding {
        check,
        level: Level::Warn,
        message,
        remedy: Some(remedy),
    }
}

fn fail(check: &'static str, message: String, remedy: String) -> Finding {
    Finding {
        check,
        level: Level::Fail,
        message,
        remedy: Some(remedy),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn healthy() -> Facts {
        Facts {
            port: 0,
            loopback: Ok(()),
            kubeconfig: Kubeconfig::None,
            proxies: Vec::new(),
            no_proxy: String::new(),
            open_files: None,
            folders: vec![(FolderUse::Temporary, "/tmp".into(), None)],
            kubectl: Ok(36),
            control: None,
            running: vec![("http://127.0.0.1:1 (no scenario)".to_owned(), true)],
        }
    }

    fn leads(is_local: bool, accepts: bool) -> Kubeconfig {
        Kubeconfig::Leads {
            by_variable: true,
            url: "https://example.org:6443".to_owned(),
            is_local,
            accepts,
        }
    }

    #[test]
    fn a_healthy_machine_has_no_remedies() {
        let findings = findings(&healthy());
        assert!(
            findings.iter().all(|finding| finding.remedy.is_none()),
            "{findings:#?}"
        );
    }

    #[rstest]
    #[case::port(Facts { port: 6443, loopback: Err(Loopback::Bind(ErrorKind::AddrInUse, "taken".to_owned())), ..healthy() }, "port", Level::Fail)]
    #[case::firewall(Facts { loopback: Err(Loopback::Connect("timed out".to_owned())), ..healthy() }, "port", Level::Fail)]
    #[case::stale_kubeconfig(Facts { kubeconfig: Kubeconfig::Missing("/gone".to_owned()), ..healthy() }, "kubeconfig", Level::Fail)]
    #[case::dead_server(Facts { kubeconfig: leads(true, false), ..healthy() }, "kubeconfig", Level::Fail)]
    #[case::real_cluster(Facts { kubeconfig: leads(false, false), ..healthy() }, "kubeconfig", Level::Warn)]
    #[case::proxy(Facts { proxies: vec!["HTTPS_PROXY".to_owned()], no_proxy: "localhost,.corp".to_owned(), ..healthy() }, "proxy", Level::Warn)]
    #[case::files(Facts { open_files: Some(256), ..healthy() }, "files", Level::Warn)]
    #[case::temp(Facts { folders: vec![(FolderUse::Temporary, "/tmp".into(), Some("denied".to_owned()))], ..healthy() }, "temp", Level::Fail)]
    #[case::home(Facts { folders: vec![(FolderUse::Home, "/h".into(), Some("denied".to_owned()))], ..healthy() }, "home", Level::Warn)]
    #[case::old_kubectl(Facts { kubectl: Ok(28), ..healthy() }, "kubectl", Level::Warn)]
    #[case::control(Facts { control: Some(Control { url: "http://127.0.0.1:1".to_owned(), version: Err("refused".to_owned()) }), ..healthy() }, "control", Level::Fail)]
    fn a_problem_is_one_finding_with_a_remedy(
        #[case] facts: Facts,
        #[case] check: &str,
        #[case] level: Level,
    ) {
        let findings = findings(&facts);
        let bad: Vec<_> = findings
            .iter()
            .filter(|finding| finding.level != Level::Ok)
            .collect();
        assert_eq!(
            bad.iter().map(|bad| (bad.check, bad.level)).collect::<Vec<_>>(),
            [(check, level)]
        );
        assert!(bad[0].remedy.is_some());
    }

    #[rstest]
    #[case("*", true)]
    #[case("example.org, 127.0.0.1", true)]
    #[case("10.0.0.0/8,127.0.0.0/8", true)]
    #[case("localhost", false)]
    #[case("", false)]
    fn loopback_is_spared_by_its_address(#[case] no_proxy: &str, #[case] spared: bool) {
        assert_eq!(spares_loopback(no_proxy), spared);
    }
}
