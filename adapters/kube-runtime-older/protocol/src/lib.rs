//! The adapter protocol for a client that is a stream: messages out, commands in. It must not know any version of
//! kube-rs.

use std::io::{self, BufRead as _, Write as _};
use std::process::ExitCode;

use futures::stream::{BoxStream, StreamExt as _};
use serde_json::{json, Value};
use tokio::sync::mpsc;

/// The `hello` message.
pub struct Hello {
    /// Name of the client.
    pub name: &'static str,
    /// Version of the library.
    pub version: &'static str,
    /// Capabilities by name.
    pub caps: &'static [&'static str],
}

/// Messages for an event of the library: none, one, or several.
pub type Lines = Vec<Value>;

/// Returns `init`, the objects of a snapshot, `init-done`.
pub fn set(objects: impl IntoIterator<Item = Value>) -> Lines {
    let items = objects.into_iter().flat_map(init_apply);
    init().into_iter().chain(items).chain(init_done()).collect()
}

/// Returns the start of a snapshot.
pub fn init() -> Lines {
    vec![json!({"ev": "init"})]
}

/// Returns an object of a snapshot.
pub fn init_apply(obj: Value) -> Lines {
    vec![json!({"ev": "init-apply", "obj": obj})]
}

/// Returns the end of a snapshot.
pub fn init_done() -> Lines {
    vec![json!({"ev": "init-done"})]
}

/// Returns an added or changed object.
pub fn apply(obj: Value) -> Lines {
    vec![json!({"ev": "apply", "obj": obj})]
}

/// Returns a deleted object.
pub fn delete(obj: Value) -> Lines {
    vec![json!({"ev": "delete", "obj": obj})]
}

/// Returns an error reported by the library.
pub fn error(message: String, code: Option<u16>) -> Lines {
    vec![json!({"ev": "error", "message": message, "code": code.filter(|code| *code != 0)})]
}

/// Runs the adapter until `stop` or the end of input. `start` creates the event stream for a `start` command.
pub fn serve(
    hello: Hello,
    start: impl AsyncFnOnce(Value) -> Result<BoxStream<'static, Lines>, String>,
) -> ExitCode {
    let client = json!({
        "name": hello.name, "lang": "rust", "version": hello.version,
        "url": "https://github.com/kube-rs/kube", "issues": "https://github.com/kube-rs/kube/issues",
    });
    let hello = json!({
        "ev": "hello", "protocol": 1, "client": client, "contracts": ["informer"], "caps": hello.caps, "recovers": "library",
    });
    print(&hello);
    let (sender, mut commands) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else {
        return ExitCode::FAILURE;
    };
    runtime.block_on(async move {
        let mut start = Some(start);
        let mut events: BoxStream<'static, Lines> = futures::stream::pending().boxed();
        loop {
            let line = tokio::select! {
                biased;
                line = commands.recv() => line,
                lines = events.next() => {
                    match lines {
                        Some(lines) => lines.iter().for_each(print),
                        None => {
                            events = futures::stream::pending().boxed();
                            print(&json!({"ev": "end"}));
                        }
                    }
                    continue;
                }
            };
            let Some(line) = line else { return };
            let command: Value = serde_json::from_str(&line).unwrap_or_default();
            match (command["cmd"].as_str(), start.take()) {
                (Some("stop"), _) => return,
                (Some("start"), Some(start)) if command["contract"] == "informer" => {
                    match start(command).await {
                        Ok(stream) => events = stream,
                        Err(why) => {
                            error(why, None).iter().for_each(print);
                            print(&json!({"ev": "end"}));
                        }
                    }
                }
                (Some("start"), _) => {
                    print(&json!({"ev": "unsupported", "what": "contract", "why": "only informer"}))
                }
                (other, unused) => {
                    start = unused;
                    print(&json!({"ev": "unsupported", "what": "cmd", "why": other}));
                }
            }
        }
    });
    runtime.shutdown_background();
    ExitCode::SUCCESS
}

fn print(line: &Value) {
    let mut out = io::stdout().lock();
    // A closed reader means that the test has ended.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
