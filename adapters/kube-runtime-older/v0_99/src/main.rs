//! kube-runtime 0.99.0.

#[path = "../../api.rs"]
mod api;
#[path = "../../since_0_91.rs"]
mod since_0_91;

use std::process::ExitCode;

use kube_core::DynamicObject;
use kube_runtime::watcher::Event;
use protocol::Lines;
use since_0_91::{json, serve};

fn main() -> ExitCode {
    serve("0.99.0", lines)
}

fn lines(event: Event<DynamicObject>) -> Lines {
    match event {
        Event::Init => protocol::init(),
        Event::InitApply(object) => protocol::init_apply(json(object)),
        Event::InitDone => protocol::init_done(),
        Event::Apply(object) => protocol::apply(json(object)),
        Event::Delete(object) => protocol::delete(json(object)),
    }
}
