//! `fake-apiserver ctl`: controls a running server from another shell. Every verb is a request to its control API.

pub(crate) mod client;
pub(crate) mod words;

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::Value;

use self::client::Client;
use self::words::From;
use crate::output::printable_lines;
use crate::{Failure, state};

const EXIT_CODES: &str = "\
Exit codes:
  0   success
  1   the server rejected the request, or a wait timed out
  2   invalid command line or rule
  3   no server found
  70  system error";

/// Control a running server: add faults, read the trace.
///
/// Finds the server by its state file. If several are running, KUBECONFIG, --pid, or --control with --control-token
/// selects one.
#[derive(Debug, Args)]
#[command(
    after_help = EXIT_CODES
)]
pub(crate) struct Ctl {
    /// URL of the control API, e.g. http://127.0.0.1:41234.
    #[arg(
        long,
        global = true,
        value_name = "URL",
        env = "FAKE_APISERVER_CONTROL",
        requires = "control_token"
    )]
    control: Option<String>,
    /// Bearer token for the control API.
    #[arg(
        long,
        global = true,
        value_name = "TOKEN",
        env = "FAKE_APISERVER_CONTROL_TOKEN",
        hide_env_values = true
    )]
    control_token: Option<String>,
    /// Process id of the server, if several are running.
    #[arg(long, global = true)]
    pid: Option<u32>,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Show version, URLs, kubeconfig and memory use of the server.
    Status,
    /// List open responses.
    Streams,
    /// Add a rule, written like a step of a scenario.
    ///
    /// The actions of a rule without `when` run immediately.
    ///
    /// Example: fake-apiserver ctl apply 'when: {list: next}, times: 3, do: {reply: {status: 503}}'
    #[command(alias = "rule")]
    Apply {
        /// Rule as YAML or JSON; the outer braces are optional.
        #[arg(required_unless_present = "file", conflicts_with = "file")]
        rule: Option<String>,
        /// Read the rule from this file; `-` is standard input.
        #[arg(short, long)]
        file: Option<PathBuf>,
    },
    /// List active rules.
    Rules,
    /// Remove rules by number.
    Remove {
        /// Numbers of the rules.
        #[arg(required_unless_present = "all")]
        rules: Vec<u64>,
        /// Remove all rules.
        #[arg(long)]
        all: bool,
    },
    /// Answer the next requests with an HTTP error.
    ///
    /// Example: fake-apiserver ctl fail 429 --retry-after 2 --times 3 --resource pods
    Fail {
        /// HTTP status code, e.g. 503.
        status: u16,
        /// `reason` of the Status object, e.g. Expired.
        #[arg(long)]
        reason: Option<String>,
        /// `message` of the Status object.
        #[arg(long)]
        message: Option<String>,
        /// Retry-After header: seconds or an HTTP date.
        #[arg(long)]
        retry_after: Option<String>,
        /// Requests to fail.
        #[arg(long, value_enum, default_value_t = words::Kind::Request)]
        kind: words::Kind,
        /// Number of requests to fail.
        #[arg(long, default_value_t = 1)]
        times: u32,
        #[command(flatten)]
        from: From,
    },
    /// Expire watches with 410 Gone: an ERROR event, or an HTTP status.
    Expire {
        /// Answer the next watches with HTTP 410; leave open watches alone.
        #[arg(long)]
        status: bool,
        /// Number of watches to fail, with --status.
        #[arg(long, default_value_t = 1, requires = "status")]
        times: u32,
        #[command(flatten)]
        from: From,
    },
    /// Compact the store: older resourceVersions and continue tokens expire.
    Compact,
    /// Send a bookmark on open watches.
    Bookmark {
        /// resourceVersion of the bookmark [default: latest].
        #[arg(long)]
        resource_version: Option<String>,
        #[command(flatten)]
        from: From,
    },
    /// Close open watches.
    Cut {
        /// How to close them.
        #[arg(long, value_enum, default_value_t = words::How::Fin)]
        how: words::How,
        #[command(flatten)]
        from: From,
    },
    /// Stop sending on open watches without closing them.
    Stall {
        #[command(flatten)]
        from: From,
    },
    /// Refuse new connections for some time.
    Refuse {
        /// Duration, e.g. 5s.
        #[arg(value_name = "DURATION")]
        lasts: String,
    },
    /// Freeze the watch cache, which makes the apiserver stale.
    Freeze {
        #[command(flatten)]
        which: words::Cache,
    },
    /// Delay updates of the watch cache.
    ///
    /// Example: fake-apiserver ctl lag 2s --replica secondary
    Lag {
        /// Delay, e.g. 500ms.
        #[arg(value_name = "DURATION")]
        by: String,
        #[command(flatten)]
        which: words::Cache,
    },
    /// Undo `freeze` and `lag`; the watch cache catches up at once.
    Thaw {
        #[command(flatten)]
        which: words::Cache,
    },
    /// Wait for a request, a sent event or the end of a response.
    ///
    /// Example: fake-apiserver ctl wait 'sent: {rv: "1005"}, timeout: 10s'
    Wait {
        /// Condition as YAML or JSON; the outer braces are optional.
        wait: String,
    },
    /// Remove all rules and faults, and restore the initial objects.
    Reset,
    /// Print the trace.
    Trace {
        /// Keep printing new records.
        #[arg(short, long)]
        follow: bool,
        /// Number of the first record.
        #[arg(long, default_value_t = 0)]
        since: u64,
        /// Output format.
        #[arg(long, value_enum, default_value_t = words::TraceFormat::Text)]
        format: words::TraceFormat,
    },
    /// Print the verdict so far, as JSON.
    Verdict,
    /// Print the OpenAPI description of the control API.
    Openapi,
}

/// Sends the request of a verb and prints the response.
///
/// # Errors
/// No server is found, the request is rejected, or a system error.
pub(crate) fn run(ctl: Ctl) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::System("cannot start the async runtime".to_owned(), error))?;
    runtime.block_on(steer(ctl))
}

async fn steer(ctl: Ctl) -> Result<(), Failure> {
    if let Verb::Openapi = ctl.verb {
        return print(&format!("{:#}\n", crate::control::openapi()));
    }
    let client = found(&ctl).await?;
    match ctl.verb {
        Verb::Status => print(&words::status(&client.get("/v1").await?, client.token())),
        Verb::Streams => print(&words::streams(&client.get("/v1/streams").await?)),
        Verb::Rules => print(&words::rules(&client.get("/v1/rules").await?["rules"], "active")),
        Verb::Apply { rule, file } => {
            let rule = match (rule, file) {
                (Some(rule), _) => words::braced(&rule),
                (None, Some(file)) => read(&file)?,
                (None, None) => String::new(),
            };
            make(&client, &rule).await
        }
        Verb::Fail {
            status,
            reason,
            message,
            retry_after,
            kind,
            times,
            from,
        } => {
            let reply = words::reply(status, reason, message, retry_after);
            make(&client, &words::rule(&from, Some(kind.word()), times, reply)).await
        }
        Verb::Expire { status, times, from } => {
            let rule = if status {
                let reply = words::reply(
                    410,
                    Some("Expired".to_owned()),
                    Some(words::TOO_OLD.to_owned()),
                    None,
                );
                words::rule(&from, Some("watch"), times, reply)
            } else {
                words::rule(&from, None, 1, words::expired_event())
            };
            make(&client, &rule).await
        }
        Verb::Compact => make(&client, "compact").await,
        Verb::Bookmark {
            resource_version,
            from,
        } => {
            make(
                &client,
                &words::rule(&from, None, 1, words::bookmark(resource_version)),
            )
            .await
        }
        Verb::Cut { how, from } => {
            make(
                &client,
                &words::rule(&from, None, 1, serde_json::json!({"end": how.word()})),
            )
            .await
        }
        Verb::Stall { from } => {
            make(
                &client,
                &words::rule(&from, None, 1, serde_json::json!({"end": "stall"})),
            )
            .await
        }
        Verb::Refuse { lasts } => {
            make(&client, &serde_json::json!({"do": {"refuse": lasts}}).to_string()).await
        }
        Verb::Freeze { which } => make(&client, &which.rule("freeze_watch_cache", None)).await,
        Verb::Lag { by, which } => make(&client, &which.rule("lag_watch_cache", Some(&by))).await,
        Verb::Thaw { which } => make(&client, &which.rule("thaw_watch_cache", None)).await,
        Verb::Remove { rules, all } => {
            if all {
                return print(&words::rules(
                    &client.delete("/v1/rules").await?["removed"],
                    "removed",
                ));
            }
            for rule in rules {
                let removed = client.delete(&format!("/v1/rules/{rule}")).await?;
                print(&words::rules(&removed["removed"], "removed"))?;
            }
            Ok(())
        }
        Verb::Wait { wait } => {
            let met = client.post("/v1/wait", &words::braced(&wait)).await?;
            print(&format!("{}\n", met["line"].as_str().unwrap_or_default()))
        }
        Verb::Reset => print(&words::status(
            &client.post("/v1/reset", "").await?,
            client.token(),
        )),
        Verb::Trace {
            follow,
            since,
            format,
        } => {
            let format = format.word();
            let path = format!("/v1/trace?since={since}&follow={follow}&format={format}");
            client.stream(&path, say_bytes).await
        }
        Verb::Verdict => print(&format!("{:#}\n", client.get("/v1/verdict").await?)),
        Verb::Openapi => Ok(()),
    }
}

async fn make(client: &Client, rule: &str) -> Result<(), Failure> {
    let made = client.post("/v1/rules", rule).await?;
    print(&words::made(&made))
}

/// Returns the server to control.
async fn found(ctl: &Ctl) -> Result<Client, Failure> {
    if let (Some(control), Some(token)) = (&ctl.control, &ctl.control_token) {
        return Client::to(control, token).ok_or_else(|| {
            Failure::Usage(format!(
                "{control} is not the URL of a control API; expected http://127.0.0.1:PORT"
            ))
        });
    }
    let mut alive = Vec::new();
    for state in state::running() {
        if ctl.pid.is_some_and(|pid| pid != state.pid) {
            continue;
        }
        match Client::to(&state.control, &state.token) {
            Some(client) if client.get("/v1").await.is_ok() => alive.push((state, client)),
            Some(_) | None => state::forget(&state),
        }
    }
    if alive.len() > 1
        && ctl.pid.is_none()
        && let Some(meant) = std::env::var_os("KUBECONFIG")
    {
        // KUBECONFIG selects the server that clients in this shell use.
        let is_meant = |state: &state::State| {
            let paths = std::env::split_paths(&meant).map(|path| path.display().to_string());
            paths.into_iter().any(|path| state.kubeconfigs.contains(&path))
        };
        if alive.iter().any(|(state, _)| is_meant(state)) {
            alive.retain(|(state, _)| is_meant(state));
        }
    }
    if alive.len() > 1 {
        let mut list = String::new();
        for (state, _) in &alive {
            // Writing to a String cannot fail.
            let _ = write!(
                list,
                "\n  --pid {}   {} at {}",
                state.pid, state.what, state.server
            );
        }
        return Err(Failure::Usage(format!(
            "{} servers are running; select one:{list}",
            alive.len()
        )));
    }
    alive.pop().map(|(_, client)| client).ok_or_else(|| {
        Failure::NoServer(match ctl.pid {
            Some(pid) => format!("no server with process id {pid}"),
            None => "no server is running; start one: fake-apiserver serve".to_owned(),
        })
    })
}

fn read(file: &PathBuf) -> Result<String, Failure> {
    let text = if file.as_os_str() == "-" {
        io::read_to_string(io::stdin())
    } else {
        std::fs::read_to_string(file)
    };
    text.map_err(|error| Failure::Usage(format!("{}: {error}", file.display())))
}

/// Prints lines that can contain text from a client.
fn print(text: &str) -> Result<(), Failure> {
    say_bytes(printable_lines(text).as_bytes())
}

fn say_bytes(text: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text).and_then(|()| out.flush()) {
        // The reader closed the pipe, as `head` does.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Failure::Silent(0)),
        written => written.map_err(|error| Failure::System("cannot write".to_owned(), error)),
    }
}

/// Formats an error response of the control API.
pub(crate) fn refusal(body: &Value) -> String {
    let text = |key: &str| body.get(key).and_then(Value::as_str);
    let mistakes = body.get("mistakes").and_then(Value::as_array);
    let mut message = String::new();
    for mistake in mistakes.into_iter().flatten() {
        let word = |key: &str| mistake.get(key).and_then(Value::as_str).unwrap_or_default();
        let hint = mistake.get("hint").and_then(Value::as_str).map(in_verbs);
        let hint = hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
        let _ = write!(
            message,
            "{}{}:{}: {}{hint}",
            if message.is_empty() { "" } else { "\n" },
            mistake["line"],
            mistake["column"],
            word("message")
        );
    }
    if message.is_empty() {
        message.push_str(text("error").unwrap_or("rejected without an error message"));
        if let Some(hint) = text("hint") {
            let _ = write!(message, " ({})", in_verbs(hint));
        }
    }
    message
}

/// A hint of the control API, with the verbs of `ctl` in place of its requests.
fn in_verbs(hint: &str) -> String {
    let verbs = [
        ("GET /v1/trace?format=text", "`ctl trace`"),
        ("GET /v1/rules", "`ctl rules`"),
        ("GET /v1/streams", "`ctl streams`"),
    ];
    verbs.iter().fold(hint.to_owned(), |hint, (request, verb)| {
        hint.replace(request, verb)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_name_verbs() {
        let body = serde_json::json!({ "error": "rule not found: 7", "hint": "GET /v1/rules lists them" });
        assert_eq!(refusal(&body), "rule not found: 7 (`ctl rules` lists them)");
    }
}
