//! kube-runtime 0.91.0.

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
    serve("0.91.0", lines)
}

fn lines(event: Event<DynamicObject>) -> Lines {
    match event {
        Event::Applied(object) => protocol::apply(json(object)),
        Event::Deleted(object) => protocol::delete(json(object)),
        Event::Restarted(objects) => protocol::set(objects.into_iter().map(json)),
    }
}
