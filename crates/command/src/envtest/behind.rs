//! Programs behind `kube-apiserver` as this program plays it: a real kube-apiserver to forward to, and kube-controller-manager.
//!
//! It must not know how a request is answered.

use std::ffi::OsString;
use std::path::Path;
#[cfg(feature = "proxy")]
use std::time::Duration;

use super::apiserver::Prepared;
use super::beside::Beside;
use super::faults::Faults;
use super::flags::Given;
use crate::Failure;

/// Name of the link to a real kube-apiserver, beside the link to this program.
pub(super) const REAL: &str = "kube-apiserver.real";

/// Name of the link to kube-controller-manager.
pub(super) const CONTROLLERS: &str = "kube-controller-manager";

/// Interval at which a starting kube-apiserver is asked whether it is ready.
#[cfg(feature = "proxy")]
const READY_EVERY: Duration = Duration::from_millis(100);

/// Programs behind the server.
#[derive(Default)]
pub(super) struct Behind {
    #[cfg(feature = "proxy")]
    real: Option<super::real::Real>,
    controllers: Option<Beside>,
}

impl Behind {
    /// Starts kube-controller-manager, if there is one, once the apiserver is ready, and waits until one of the programs ends, which
    /// is a failure. `kubeconfig`: of the server.
    pub(super) async fn attend(&mut self, controllers: Option<&Path>, kubeconfig: &Path) -> Failure {
        #[cfg(feature = "proxy")]
        if let Some(real) = &mut self.real {
            tokio::select! {
                () = ready(&real.cluster), if controllers.is_some() => {}
                failure = real.process.ended() => return failure,
            }
        }
        #[cfg(feature = "proxy")]
        let kubeconfig = self
            .real
            .as_ref()
            .map_or(kubeconfig, |real| real.kubeconfig.path());
        if let Some(program) = controllers {
            match Beside::start(CONTROLLERS, program, &controllers_words(kubeconfig)) {
                Ok(started) => self.controllers = Some(started),
                Err(failure) => return failure,
            }
        }
        let controllers = async {
            match &mut self.controllers {
                Some(controllers) => controllers.ended().await,
                None => std::future::pending().await,
            }
        };
        #[cfg(feature = "proxy")]
        if let Some(real) = &mut self.real {
            return tokio::select! {
                failure = real.process.ended() => failure,
                failure = controllers => failure,
            };
        }
        controllers.await
    }

    /// Stops the programs, the controllers first.
    pub(super) async fn stop(self) {
        if let Some(controllers) = self.controllers {
            controllers.stop().await;
        }
        #[cfg(feature = "proxy")]
        if let Some(real) = self.real {
            real.process.stop().await;
        }
    }
}

/// Waits until an apiserver answers.
#[cfg(feature = "proxy")]
#[expect(clippy::disallowed_methods, reason = "another process starts in real time")]
async fn ready(cluster: &upstream::Cluster) {
    while cluster.probe().await.is_err() {
        tokio::time::sleep(READY_EVERY).await;
    }
}

/// Returns the arguments of kube-controller-manager: the two controllers that deletions wait for.
fn controllers_words(kubeconfig: &Path) -> Vec<OsString> {
    let mut file = OsString::from("--kubeconfig=");
    file.push(kubeconfig);
    let rest = [
        "--controllers=namespace,garbagecollector",
        "--leader-elect=false",
        "--secure-port=0",
    ];
    std::iter::once(file).chain(rest.map(OsString::from)).collect()
}

/// Starts a real apiserver, and prepares a server that forwards to it.
#[cfg(feature = "proxy")]
pub(super) async fn real(
    program: &Path,
    arguments: &[String],
    given: &Given,
    faults: &Faults,
) -> Result<(Prepared, Behind), Failure> {
    use fake_apiserver::server::Server;
    use fake_apiserver::upstream::{Lends, Settings};
    use judge::wire::Loops;

    use super::apiserver::{access, staged};
    use super::real::Real;
    use super::{faults, options};
    use crate::judging::Judge;
    use crate::stage::Origin;

    let front = options::front(given).map_err(Failure::Usage)?;
    let access = access()?;
    let settings = Settings {
        token: access.token.clone(),
        lends: Lends::ForCertificate,
        may_write: false,
    };
    let mut server = Server::forwarding(settings, faults::SEED);
    let rules = faults.add_rules(&mut server)?;
    if let Some(scenario) = faults.scenario()? {
        return Err(Failure::Usage(format!(
            "{}: the scenario {} cannot be played before a real kube-apiserver: write its steps as rules ({})",
            faults::SCENARIO,
            scenario.id,
            faults::RULES
        )));
    }
    let real = Real::start(program, arguments, &front).await?;
    let origin = Origin::Upstream {
        url: real.cluster.server().to_owned(),
        upstream: real.cluster.clone(),
        version: None,
    };
    let logs_all = front.logs_all;
    let prepared = Prepared {
        stage: staged(server, origin, front, access, None)?,
        judge: Judge::of_upstream(Loops::Many, Vec::new()),
        rules,
        scenario: "no scenario".to_owned(),
        shown_from: 0,
        logs_all,
    };
    let behind = Behind {
        real: Some(real),
        ..Behind::default()
    };
    Ok((prepared, behind))
}

#[cfg(not(feature = "proxy"))]
pub(super) async fn real(
    program: &Path,
    _arguments: &[String],
    _given: &Given,
    _faults: &Faults,
) -> Result<(Prepared, Behind), Failure> {
    Err(Failure::Usage(format!(
        "{} is there, and this program is built without the feature `proxy`, which forwards to it",
        program.display()
    )))
}
