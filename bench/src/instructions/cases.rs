//! The operations whose instructions are counted.
//!
//! A count is the difference of N and 2N operations, after N as warm-up: what a process does once is in neither.

use std::io;
use std::path::PathBuf;

use super::callgrind::{Counted, whole};
use crate::fixture::{AROUND, SMALL as PADDING, config_map};
use crate::http::{Connection, request, request_of_type};
use crate::rows::{CONFIG_MAPS, current_version, watch_from};
use crate::swarm::Swarm;

/// Number of requests of a count.
const REQUESTS: u64 = 200;

/// Counts of which the least is taken.
const ROUNDS: usize = 3;

/// Objects of the listed page.
const PAGE: u64 = 100;

/// Number of pages of a count.
const PAGES: u64 = 50;

/// Watchers of the first count of an event, and more of them of the second: many, because what differs between two rounds is
/// divided by their number.
const WATCHERS: [usize; 2] = [10, 100];

/// Number of events of a count.
const DELIVERED: u64 = 50;

/// Plays of a scenario.
const PLAYS: u64 = 20;

/// Events through a watcher.
const EVENTS: u64 = 1_000;

/// Programs to count, and the folder of their counts.
pub(super) struct Programs {
    pub(super) own: PathBuf,
    pub(super) server: PathBuf,
    pub(super) watcher: PathBuf,
    pub(super) scratch: PathBuf,
}

/// An operation.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) work: &'static str,
    pub(super) count: fn(&Programs) -> io::Result<u64>,
}

/// Every operation.
pub(super) const CASES: [Case; 12] = [
    Case {
        name: "get",
        work: "GET of a ConfigMap of 0.5 KB",
        count: |programs| {
            requests(programs, "get", |_| {
                request("GET", &format!("{CONFIG_MAPS}/one"), b"")
            })
        },
    },
    Case {
        name: "post",
        work: "POST of a ConfigMap of 0.5 KB",
        count: |programs| {
            requests(programs, "post", |n| {
                request(
                    "POST",
                    CONFIG_MAPS,
                    &config_map(&format!("post-{n:07}"), "post", PADDING, n),
                )
            })
        },
    },
    Case {
        name: "put",
        work: "PUT of it",
        count: |programs| {
            requests(programs, "put", |n| {
                request(
                    "PUT",
                    &format!("{CONFIG_MAPS}/one"),
                    &config_map("one", "one", PADDING, n),
                )
            })
        },
    },
    Case {
        name: "merge_patch",
        work: "merge patch of one of its keys",
        count: |programs| {
            requests(programs, "merge_patch", |n| {
                let body = format!(r#"{{"data":{{"n":"{n:08}"}}}}"#);
                let path = format!("{CONFIG_MAPS}/one");
                request_of_type("PATCH", &path, "application/merge-patch+json", body.as_bytes())
            })
        },
    },
    Case {
        name: "apply",
        work: "server-side apply of it",
        count: |programs| {
            requests(programs, "apply", |n| {
                let path = format!("{CONFIG_MAPS}/applied?fieldManager=bench");
                let body = config_map("applied", "applied", PADDING, n);
                request_of_type("PATCH", &path, "application/apply-patch+yaml", &body)
            })
        },
    },
    Case {
        name: "list_page",
        work: "a page of 100 of them",
        count: page,
    },
    Case {
        name: "event",
        work: "an event to one more watcher",
        count: event,
    },
    Case {
        name: "start",
        work: "from the start to the first answer",
        count: start,
    },
    Case {
        name: "scenario",
        work: "a scenario in the simulation, with its verdict",
        count: scenario,
    },
    Case {
        name: "watcher_typed",
        work: "an event of a Pod through the watcher",
        count: |programs| watched(programs, "pods", "pod"),
    },
    Case {
        name: "watcher_dynamic",
        work: "the same as a dynamic object",
        count: |programs| watched(programs, "dynamic", "pod"),
    },
    Case {
        name: "watcher_metadata",
        work: "the same as metadata alone",
        count: |programs| watched(programs, "metadata", "metadata"),
    },
];

/// Counts requests on one connection. `request`: the request with this number.
fn requests(programs: &Programs, name: &str, request: impl Fn(u64) -> Vec<u8>) -> io::Result<u64> {
    let mut counted = served(programs, name)?;
    let mut connection = Connection::open(counted.server.address)?;
    let mut number = 0;
    per_operation(&mut counted, REQUESTS, || {
        number += 1;
        connection.ask(&request(number), false)?.good(name).map(drop)
    })
}

fn page(programs: &Programs) -> io::Result<u64> {
    let mut counted = served(programs, "list_page")?;
    let mut connection = Connection::open(counted.server.address)?;
    for number in 0..PAGE {
        let body = config_map(&format!("listed-{number:03}"), "listed", PADDING, number);
        connection
            .ask(&request("POST", CONFIG_MAPS, &body), false)?
            .good("a POST")?;
    }
    let list = request(
        "GET",
        &format!("{CONFIG_MAPS}?labelSelector=bench%3Dlisted&limit=500"),
        b"",
    );
    per_operation(&mut counted, PAGES, || {
        connection.ask(&list, false)?.good("a LIST").map(drop)
    })
}

/// Counts events to some watchers, and to more of them: the difference is that of the watchers.
fn event(programs: &Programs) -> io::Result<u64> {
    let mut counted = served(programs, "event")?;
    let address = counted.server.address;
    let mut commander = Connection::open(address)?;
    let (mut swarms, mut sums, mut number) = (Vec::new(), Vec::new(), 0);
    for watchers in WATCHERS {
        let version = current_version(&mut commander)?;
        swarms.push((Swarm::open(address, &watch_from(&version), watchers)?, 0));
        let mut send = |times| {
            for _ in 0..times {
                number += 1;
                let body = config_map("one", "one", PADDING, number);
                let put = request("PUT", &format!("{CONFIG_MAPS}/one"), &body);
                let line = commander.ask(&put, false)?.good("a PUT")?.length - 1 + AROUND;
                for (swarm, received) in &mut swarms {
                    *received += line;
                    swarm.reach(*received)?;
                }
            }
            io::Result::Ok(())
        };
        send(DELIVERED)?;
        counted.take()?;
        let mut least = u64::MAX;
        for _ in 0..ROUNDS {
            send(DELIVERED)?;
            least = least.min(counted.take()?);
        }
        sums.push(least);
    }
    let [fewer, more] = sums[..] else {
        unreachable!("it was counted twice");
    };
    Ok(more.saturating_sub(fewer) / (DELIVERED * WATCHERS[1] as u64))
}

fn start(programs: &Programs) -> io::Result<u64> {
    let out = programs.scratch.join("start");
    let mut least = u64::MAX;
    for _ in 0..ROUNDS {
        let mut counted = Counted::start(&programs.server, &["serve", "--quiet"], &out)?;
        let mut connection = Connection::open(counted.server.address)?;
        connection
            .ask(&request("GET", CONFIG_MAPS, b""), false)?
            .good("a LIST")?;
        least = least.min(counted.take()?);
    }
    Ok(least)
}

fn scenario(programs: &Programs) -> io::Result<u64> {
    let count = |plays: u64| {
        let out = programs.scratch.join("scenario");
        whole(&programs.own, &["play", "--times", &plays.to_string()], &out)
    };
    Ok(count(2 * PLAYS)?.saturating_sub(count(PLAYS)?) / PLAYS)
}

/// Counts events through the watcher, of a server that only writes bytes.
fn watched(programs: &Programs, objects: &str, fixture: &str) -> io::Result<u64> {
    let server = crate::child::Child::start_anywhere(&programs.watcher, &["serve"])?;
    let count = |events: u64| {
        let url = format!("http://{}/{fixture}/0/{events}/open", server.address);
        let out = programs.scratch.join(format!("watcher-{objects}"));
        let events = events.to_string();
        let arguments = [
            "sample",
            "--side",
            "ours",
            "--objects",
            objects,
            "--usage",
            "watch",
            "--reading",
            "pages",
            "--count",
            &events,
            "--url",
            &url,
        ];
        whole(&programs.watcher, &arguments, &out)
    };
    // How much a read gets, and with it what is allocated, depends on how busy the machine is.
    let least = |events: u64| {
        (0..ROUNDS).try_fold(u64::MAX, |least, _| Ok::<_, io::Error>(least.min(count(events)?)))
    };
    Ok(least(2 * EVENTS)?.saturating_sub(least(EVENTS)?) / EVENTS)
}

/// Starts a server that has one ConfigMap.
fn served(programs: &Programs, name: &str) -> io::Result<Counted> {
    let out = programs.scratch.join(name);
    let counted = Counted::start(&programs.server, &["serve", "--quiet"], &out)?;
    let mut connection = Connection::open(counted.server.address)?;
    let one = request("POST", CONFIG_MAPS, &config_map("one", "one", PADDING, 0));
    connection.ask(&one, false)?.good("a POST")?;
    Ok(counted)
}

/// Returns the instructions of an operation: 2N less N, after N; the least of some rounds.
fn per_operation(
    counted: &mut Counted,
    times: u64,
    mut operate: impl FnMut() -> io::Result<()>,
) -> io::Result<u64> {
    let mut run = |counted: &Counted, times: u64| {
        (0..times).try_for_each(|_| {
            counted.rest()?;
            operate()
        })
    };
    run(counted, times)?;
    counted.take()?;
    let mut least = u64::MAX;
    for _ in 0..ROUNDS {
        run(counted, times)?;
        let once = counted.take()?;
        run(counted, 2 * times)?;
        let twice = counted.take()?;
        least = least.min(twice.saturating_sub(once) / times);
    }
    Ok(least)
}
