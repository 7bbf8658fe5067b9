//! Our watcher as an adapter process, for `fake-apiserver conformance`. It must not know the scenario.

use std::process::ExitCode;

use adapter_watcher::WatcherClient;
use conformance::adapter::serve::{OF_A_STREAM, Recovers, serve};

fn main() -> ExitCode {
    serve(&WatcherClient, &OF_A_STREAM, Recovers::Library)
}
