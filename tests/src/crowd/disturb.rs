//! Events in a crowd: writes, reads by name, cut connections, error responses, 410s, compactions, restarts, silence.

use std::sync::Arc;
use std::time::Duration;

use fake_apiserver::fault::Ending;
use fake_apiserver::net::Edge;
use fake_apiserver::scenario::{
    Action, Reply, ReplyBody, RequestKind, RequestTrigger, Rule, RuleTrigger, ShapeAction, StatusSpec,
    StreamAction, Times, Whose,
};
use fake_apiserver::server::Control;
use fastrand::Rng;
use kube_client::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

use super::member::{Process, wait};

/// Object names: few, so that they are created, changed and deleted repeatedly.
const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

pub(super) struct Disturber {
    rng: Rng,
    edge: Edge,
    processes: Vec<Arc<Process>>,
    pub(super) faults: u64,
}

impl Disturber {
    pub(super) fn new(rng: Rng, edge: Edge, processes: Vec<Arc<Process>>) -> Self {
        Self {
            rng,
            edge,
            processes,
            faults: 0,
        }
    }

    /// Waits for some time, then causes an event.
    pub(super) async fn disturb(&mut self) {
        let pause = [1, 10, 100, 1_000, 5_000, 20_000][self.rng.usize(0..6)];
        wait(Duration::from_millis(self.rng.u64(0..=pause))).await;
        match self.rng.u32(0..16) {
            0..8 => self.write().await,
            8 => self.read().await,
            9..12 => self.cut(),
            12 => self.expire(),
            13 => self.edge.control(Control::Compact),
            14 if self.rng.u32(0..4) == 0 => self.edge.control(Control::RestartWatchCaches),
            _ => self.refuse(),
        }
    }

    fn process(&mut self) -> Arc<Process> {
        self.processes[self.rng.usize(0..self.processes.len())].clone()
    }

    /// Writes as one of the processes: controllers write what they watch.
    async fn write(&mut self) {
        let (process, name) = (self.process(), NAMES[self.rng.usize(0..NAMES.len())]);
        let maps = process.maps();
        // The write may be rejected by a rule or lost, and the object to delete may not exist.
        let writing = async {
            if self.rng.u32(0..4) == 0 {
                drop(maps.delete(name, &DeleteParams::default()).await);
            } else {
                let app = ["x", "y"][self.rng.usize(0..2)];
                let map = json!({
                    "apiVersion": "v1", "kind": "ConfigMap",
                    "metadata": {"name": name, "labels": {"app": app}},
                    "data": {"v": self.rng.u32(..).to_string()},
                });
                let parameters = PatchParams::apply("crowd").force();
                drop(maps.patch(name, &parameters, &Patch::Apply(map)).await);
            }
        };
        let _answered = tokio::time::timeout(Duration::from_secs(5), writing).await;
    }

    async fn read(&mut self) {
        let (process, name) = (self.process(), NAMES[self.rng.usize(0..NAMES.len())]);
        let maps = process.maps();
        let _answered = tokio::time::timeout(Duration::from_secs(5), maps.get_opt(name)).await;
    }

    /// Returns the filter of a rule: all requests, those of one name, or one response.
    fn whose(&mut self) -> Whose {
        let mut whose = Whose {
            resource: Some((String::new(), "configmaps".to_owned())),
            ..Whose::default()
        };
        match self.rng.u32(0..4) {
            0 => {}
            1 => whose.user_agent = self.process().agent.map(str::to_owned),
            _ => {
                let streams = self.edge.steer(|server, now| server.streams(now));
                let streams = streams.unwrap_or_default();
                if !streams.is_empty() {
                    whose.stream = Some(streams[self.rng.usize(0..streams.len())].stream);
                }
            }
        }
        whose
    }

    fn cut(&mut self) {
        let ending = [Ending::Eof, Ending::Fin, Ending::Rst, Ending::Rst, Ending::Stall];
        let ending = ending[self.rng.usize(0..ending.len())];
        let whose = self.whose();
        self.rule(
            whose,
            RuleTrigger::Now,
            1,
            vec![Action::Stream(StreamAction::End(ending))],
        );
    }

    fn expire(&mut self) {
        let error = StatusSpec {
            code: Some(410),
            reason: Some("Expired".to_owned()),
            message: Some("too old".to_owned()),
            ..StatusSpec::default()
        };
        let whose = self.whose();
        let actions = vec![
            Action::Stream(StreamAction::SendError(error)),
            Action::Stream(StreamAction::End(Ending::Eof)),
        ];
        self.rule(whose, RuleTrigger::Now, 1, actions);
    }

    /// Makes the next requests fail.
    fn refuse(&mut self) {
        let mut whose = self.whose();
        whose.stream = None;
        let status = [410, 429, 429, 500, 503, 504][self.rng.usize(0..6)];
        let retry_after = matches!(status, 429 | 503) && self.rng.bool();
        let body = ReplyBody::Status(StatusSpec {
            code: Some(status),
            reason: (status == 410).then(|| "Expired".to_owned()),
            ..StatusSpec::default()
        });
        let reply = Reply {
            retry_after: retry_after.then(|| self.rng.u32(0..20).to_string()),
            ..Reply::new(status, body)
        };
        let action = match self.rng.u32(0..4) {
            0 => Action::Shape(ShapeAction::NoAnswer(
                [Ending::Fin, Ending::Rst, Ending::Stall][self.rng.usize(0..3)],
            )),
            1 => Action::Shape(ShapeAction::Delay(self.rng.u64(1..10_000))),
            _ => Action::Shape(ShapeAction::Reply(reply)),
        };
        let kind = [RequestKind::List, RequestKind::Watch, RequestKind::Any][self.rng.usize(0..3)];
        let trigger = RuleTrigger::Request(RequestTrigger {
            kind,
            nth: None,
            query: Vec::new(),
        });
        let times = self.rng.u32(1..6);
        self.rule(whose, trigger, times, vec![action]);
    }

    fn rule(&mut self, from: Whose, when: RuleTrigger, times: u32, actions: Vec<Action>) {
        self.faults += 1;
        let rule = Rule {
            name: None,
            from,
            when,
            times: Times::Count(times),
            actions,
        };
        let ruled = self.edge.steer(|server, now| server.add_rule(now, rule));
        // The limit of pending rules may be reached: then no more are added.
        drop(ruled);
    }
}
