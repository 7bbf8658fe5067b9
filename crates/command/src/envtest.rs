//! Substitutes for the programs that envtest starts: `kube-apiserver` and `etcd`, by the name under which the program is
//! called, and the directory of links for `KUBEBUILDER_ASSETS`. docs/envtest.md is the manual.

mod apiserver;
mod assets;
mod behind;
mod beside;
mod certificates;
mod etcd;
mod faults;
mod flags;
mod keeper;
mod options;
#[cfg(feature = "proxy")]
mod real;
mod verdict;

use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

pub(crate) use self::assets::{EnvtestAssets, run};
pub(crate) use self::beside::{EnvtestBeside, run as become_beside};
pub(crate) use self::keeper::{EnvtestVerdict, run as keep};

/// Program that is substituted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// kube-apiserver.
    Apiserver,
    /// etcd.
    Etcd,
}

impl Role {
    /// Name of the program.
    const fn name(self) -> &'static str {
        match self {
            Self::Apiserver => "kube-apiserver",
            Self::Etcd => "etcd",
        }
    }

    /// Returns the role by the name under which the program was called (`argv[0]`); `None` for any other name.
    pub(crate) fn of(called: Option<&OsStr>) -> Option<Self> {
        let name = Path::new(called?).file_name()?.to_str()?;
        let name = name.strip_suffix(".exe").unwrap_or(name);
        [Self::Apiserver, Self::Etcd]
            .into_iter()
            .find(|role| role.name() == name)
    }

    /// Runs the program with the arguments that follow its name. The exit codes are those of the real one.
    /// `called`: that name, with the directory.
    pub(crate) fn play(self, called: &OsStr, arguments: impl Iterator<Item = OsString>) -> ExitCode {
        let arguments: Vec<String> = arguments
            .map(|argument| argument.to_string_lossy().into_owned())
            .collect();
        match self {
            Self::Apiserver => apiserver::main(called, &arguments),
            Self::Etcd => etcd::main(&arguments),
        }
    }
}

/// Prints on standard output. A closed pipe is ignored.
fn print(text: &str) {
    let _closed_pipe = std::io::stdout().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("kube-apiserver", Some(Role::Apiserver))]
    #[case("/assets/bin/kube-apiserver", Some(Role::Apiserver))]
    #[case("./etcd", Some(Role::Etcd))]
    #[case("etcd.exe", Some(Role::Etcd))]
    #[case("fake-apiserver", None)]
    #[case("/kube-apiserver/fake-apiserver", None)]
    #[case("my-etcd", None)]
    #[case("", None)]
    fn the_name_decides_the_role(#[case] called: &str, #[case] expected: Option<Role>) {
        assert_eq!(Role::of(Some(OsStr::new(called))), expected);
        assert_eq!(Role::of(None), None);
    }
}
