//! `sim` and `live` give the same story: a run in memory under virtual time equals the run over sockets in real time,
//! request by request, frame by frame, report by report.
//!
//! The scenarios are chosen manually: a few that take less than 3 s for each way in which the two drivers differ (how
//! a response ends, how bytes are split, which side waits, what an error response looks like). Excluded are longer
//! scenarios (back-off, outages, quiet hours, silence, windows of the watch cache: real time would make the test slow
//! and prove nothing more), and short ones that differ from an included one only in the server's content.

use std::time::Duration;

use adapter_watcher::WatcherClient;
use conformance::baseline::Baseline;
use conformance::report::terminal::{self, Style};
use conformance::suite::{self, Driver, Judged, Plan};
use fake_apiserver::record::What;
use rstest::rstest;
use similar::TextDiff;
use tests::repository;
use tests::story::story;

#[rstest]
// How a response ends.
#[case::clean_end("watch/clean-end-after-one-event-resumes-there")]
#[case::clean_ends("watch/clean-eof-resumes-from-the-last-event")]
#[case::fin("conn/a-body-without-its-last-chunk-is-a-plain-disconnect")]
#[case::rst("conn/a-reset-watch-resumes-where-it-was")]
#[case::cut_in_a_line("conn/a-line-cut-at-forty-percent-is-not-an-event")]
#[case::cut_in_a_character("conn/a-cut-inside-a-character-is-just-a-cut")]
#[case::cut_after_an_event("conn/cut-mid-line-resumes-from-the-last-whole-event")]
#[case::goaway("conn/a-graceful-goaway-lets-the-watch-run-on")]
#[case::unclean_tls("conn/an-unclean-tls-close-is-a-plain-disconnect")]
#[case::no_newline("stream/a-last-line-without-its-newline-is-not-lost")]
// How bytes are split.
#[case::many_chunks("stream/an-event-in-many-chunks-is-one-event")]
#[case::one_chunk("stream/events-in-one-chunk-are-all-read")]
#[case::split_characters("stream/characters-split-across-chunks-stay-whole")]
#[case::large("stream/large-events-are-read")]
#[case::gzip_members("conn/a-watch-in-gzip-members-is-read-to-its-end")]
#[case::gzip("conn/compressed-lists-and-refusals-are-read")]
#[case::two_lines("stream/an-event-over-two-lines-is-not-lost")]
// Error responses and invalid data.
#[case::gone_in_stream("gone/error-event-in-mid-stream-forces-a-relist")]
#[case::dead_token("page/expired-token-on-page-2-restarts-the-list")]
#[case::inconsistent_token("page/inconsistent-token-is-no-snapshot")]
#[case::refused_stream("wlist/old-server-refuses-with-422")]
#[case::error_event("retry/an-error-event-ends-the-stream-though-the-server-goes-on")]
#[case::garbage("decode/garbage-in-the-stream-loses-nothing")]
#[case::status("decode/a-status-without-an-envelope-is-a-fault")]
// All ways of reading.
#[case::pages("page/token-comes-back-verbatim")]
#[case::many_pages("scale/a-long-list-in-pages-is-one-snapshot")]
#[case::streaming_list("wlist/one-request-syncs-and-goes-on")]
#[case::from_cache("list/any-semantic-asks-for-version-zero-with-a-page-size-too")]
#[case::metadata("meta/metadata-alone-is-enough-to-follow")]
#[case::one_object("sel/one-object-is-followed-through-its-absence")]
#[case::selector("sel/leaving-the-selector-is-leaving-the-cache")]
#[case::all_namespaces("event/a-name-in-one-namespace-is-not-that-name-in-another")]
#[case::bookmark("bookmark/empty-version-is-no-place-to-resume")]
#[case::reordered("order/an-older-event-does-not-stay-in-the-cache")]
fn both_drivers_give_the_same_story(#[case] id: &str) {
    let simulated = passed(id, Driver::Sim);
    let live = passed(id, Driver::Live);
    let (simulated, live) = (story(&simulated.records), story(&live.records));
    if simulated != live {
        let diff = TextDiff::from_lines(&simulated, &live);
        panic!(
            "{id} is another story over sockets\n{}",
            diff.unified_diff().context_radius(4).header("sim", "live")
        );
    }
}

/// What a story omits, and what it must not omit.
#[test]
fn a_story_ignores_times_but_not_events() {
    let records = passed("event/a-change-to-an-unknown-object-adds-it", Driver::Sim).records;
    let mut later = records.clone();
    for record in &mut later {
        record.at += Duration::from_millis(record.seq * 7);
        if let What::Request { conn, .. } | What::Connected { conn, .. } = &mut record.what {
            conn.0 += 5;
        }
    }
    assert_eq!(story(&records), story(&later));

    for (at, record) in records.iter().enumerate() {
        if let What::Request { .. } | What::Frame { .. } | What::Wrote(_) | What::Reported(_) = record.what {
            let mut without = records.clone();
            without.remove(at);
            assert_ne!(story(&records), story(&without), "{record:?}");
        }
    }
}

fn passed(id: &str, driver: Driver) -> Judged {
    let plan = Plan {
        driver,
        seed: 0,
        jobs: 1,
    };
    let scenario = repository::scenario(id);
    let judged = suite::one(&scenario, &WatcherClient, plan, &Baseline::default());
    let style = Style {
        colour: false,
        columns: 100,
    };
    assert!(judged.verdict.passed(), "\n{}", terminal::failure(&judged, style));
    judged
}
