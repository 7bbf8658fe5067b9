//! For each invariant a trace that breaks it, and a similar one that does not.
//!
//! A row lists every invariant that its trace breaks, so it also tests that the others hold.

use std::collections::BTreeSet;

use ::trace::fault::Ending;
use ::trace::record::{ConnId, FrameType, RunEnd, Side, StoreWrite, StreamId, Verb, What, WriteOp};
use ::trace::report::Report;
use rstest::rstest;
use scenario::{ClientMode, Excuse, Place, Scenario, Transport};

use super::*;
use crate::trace::sample::{Sample, object, reported, scenario};

const LIMIT: (&str, &str) = ("limit", "500");

/// `a@5` and `b@7` exist, are listed at 10 and reported.
fn synced() -> Sample {
    let mut s = Sample::new();
    s.wrote("a", "5").wrote("b", "7");
    s.list(&[LIMIT])
        .page("10", "", &[("a", "5"), ("b", "7")])
        .emit_init(&[("a", "5"), ("b", "7")]);
    s
}

/// A watch from 10 that received `c@11`, reported.
fn watching() -> Sample {
    let mut s = synced();
    s.watch("10")
        .after(2000)
        .wrote("c", "11")
        .added("c", "11")
        .emit_apply("c", "11");
    s
}

fn end(mut s: Sample) -> Vec<::trace::record::Record> {
    s.push(What::StopRequested);
    s.complete()
}

fn stop_late(mut s: Sample) -> Vec<::trace::record::Record> {
    s.after(5000);
    end(s)
}

#[rstest]
// ---- where to watch from
#[case::whole_run("", { let mut s = watching(); s.eof().watch("11"); s })]
#[case::resumes_from_a_torn_event("INV-01", { let mut s = watching(); s.wrote("d", "12").torn_added("d", "12", 40).end(Ending::Fin, Side::Server).watch("12").lie().added("d", "12").emit_apply("d", "12"); s })]
#[case::resumes_before_a_torn_event("", { let mut s = watching(); s.wrote("d", "12").torn_added("d", "12", 40).end(Ending::Fin, Side::Server).watch("11").added("d", "12").emit_apply("d", "12"); s })]
#[case::watches_from_an_item("INV-01", { let mut s = synced(); s.watch("7"); s })]
#[case::watches_from_the_last_page("INV-01", paged("12"))]
#[case::watches_from_the_first_page("", paged("10"))]
#[case::resumes_from_an_initial_event("INV-01", { let mut s = synced(); s.watch_list("").added("b", "7").eof().watch("7"); s })]
#[case::resumes_from_the_end_marker("", { let mut s = Sample::new(); s.wrote("a", "5").watch_list("").added("a", "5").bookmark("9", Some("true")).emit_init(&[("a", "5")]).eof().watch("9"); s })]
#[case::resumes_too_early("INV-02", { let mut s = watching(); s.after(1).bookmark("20", None).eof().watch("11"); s })]
#[case::resumes_from_the_bookmark("", { let mut s = watching(); s.after(1).bookmark("20", None).eof().watch("20"); s })]
#[case::resumes_early_after_a_reset("", { let mut s = watching(); s.after(1).bookmark("20", None).rst().watch("11"); s })]
#[case::resumes_early_after_a_restart("INV-02", { let mut s = watching(); s.after(1).bookmark("20", None).eof().closed(Side::Server).watch("11"); s })]
#[case::ignores_a_bookmark_that_goes_back("", { let mut s = watching(); s.lie().bookmark("3", None).eof().watch("11"); s })]
#[case::follows_a_bookmark_that_goes_back("", { let mut s = watching(); s.lie().bookmark("3", None).eof().watch("3"); s })]
#[case::lists_by_stream_not_older_than_it_knew("", { let mut s = watching(); s.lie().bookmark("3", None).eof().watch("3").error(410, "Expired").eof().after(900).watch_list("11"); s })]
#[case::watches_before_any_list("INV-03", { let mut s = Sample::new(); s.watch("10").eof(); s.list(&[LIMIT]).page("10", "", &[]).emit_init(&[]); s })]
#[case::watches_in_the_middle_of_a_list("INV-03 INV-12", { let mut s = Sample::new(); s.wrote("a", "5"); s.list(&[LIMIT]).page("10", "t", &[("a", "5")]).emit_init(&[("a", "5")]).watch("10").lie().bookmark("10", None); s })]
#[case::watches_again_after_410("INV-04", { let mut s = watching(); s.error(410, "Expired").eof().after(900).watch("11"); s })]
#[case::watches_again_after_status_410("INV-04", { let mut s = watching(); s.eof().request(Verb::Watch, &[("resourceVersion", "11")]).status(410, "Expired").after(900).watch("11"); s })]
#[case::relists_after_410("", { let mut s = watching(); s.error(410, "Expired").eof().after(900).list(&[LIMIT]).page("11", "", &[("a", "5"), ("b", "7"), ("c", "11")]).emit_init(&[("a", "5"), ("b", "7"), ("c", "11")]).watch("11"); s })]
#[case::may_miss_a_410_that_a_reset_ate("", { let mut s = watching(); s.error(410, "Expired").rst().after(900).watch("11"); s })]
#[case::pins_the_dead_version("INV-04", dead_version(3))]
#[case::pins_the_dead_version_twice("", dead_version(2))]
#[case::tears_lists_at_the_dead_version("", { let mut s = watching(); s.error(410, "Expired").eof(); for _ in 0..4 { s.after(2000).list(&[("resourceVersion", "10")]).head(200); let stream = s.stream(); s.push(What::Torn { stream, sent: 10, bytes: 90 }).end(Ending::Fin, Side::Server); } s.after(9000).list(&[("resourceVersion", "10")]).page("11", "", &[("a", "5"), ("b", "7"), ("c", "11")]).emit_init(&[("a", "5"), ("b", "7"), ("c", "11")]).watch("11"); s })]
#[case::ends_no_list_at_the_dead_version("", { let mut s = watching(); s.error(410, "Expired").eof(); for _ in 0..4 { s.after(2000).list(&[("resourceVersion", "10")]).unended_page("10", &[("a", "5"), ("b", "7")]).end(Ending::Fin, Side::Server).emit_error("torn"); } s.after(9000).list(&[("resourceVersion", "10")]).page("11", "", &[("a", "5"), ("b", "7"), ("c", "11")]).emit_init(&[("a", "5"), ("b", "7"), ("c", "11")]).watch("11"); s })]
#[case::is_sent_no_list_at_the_dead_version("", { let mut s = watching(); s.error(410, "Expired").eof(); for _ in 0..4 { s.after(2000).list(&[("resourceVersion", "10")]).head(200); let stream = s.stream(); s.push(What::Body { stream, bytes: 0, reason: None, message: None, continue_token: None }).eof().emit_error("not JSON"); } s.after(9000).list(&[("resourceVersion", "10")]).page("11", "", &[("a", "5"), ("b", "7"), ("c", "11")]).emit_init(&[("a", "5"), ("b", "7"), ("c", "11")]).watch("11"); s })]
#[case::gets_past_the_dead_version_but_not_on("", { let mut s = watching(); s.error(410, "Expired").eof(); for _ in 0..4 { s.after(2000).list(&[("resourceVersion", "10")]).page("11", "", &[("a", "5"), ("b", "7"), ("c", "11")]).emit_error("another kind"); } s.after(9000).list(&[("resourceVersion", "10")]).page("11", "", &[("a", "5"), ("b", "7"), ("c", "11")]).emit_init(&[("a", "5"), ("b", "7"), ("c", "11")]).watch("11"); s })]
#[case::finishes_no_list_at_the_dead_version("", { let mut s = watching(); s.error(410, "Expired").eof(); for token in ["t", "u", "v", "w"] { s.after(2000).list(&[("limit", "1"), ("resourceVersion", "11")]).page("11", token, &[("a", "5")]); s.list(&[("limit", "1"), ("continue", token)]).status(410, "Expired"); } s.after(9000).list(&[]).page("11", "", &[("a", "5"), ("b", "7"), ("c", "11")]).emit_init(&[("a", "5"), ("b", "7"), ("c", "11")]).watch("11"); s })]
#[case::may_have_read_a_version_in_unknown_bytes("", { let mut s = watching(); s.garbage().eof().watch("77"); s })]
#[case::finds_a_known_version_in_unknown_bytes("INV-01", { let mut s = watching(); s.garbage().eof().watch("7"); s })]
#[case::rewinds_to_zero("INV-05", { let mut s = watching(); s.error(410, "Expired").eof().after(900).list(&[("resourceVersion", "0")]).page("11", "", &[("a", "5"), ("b", "7"), ("c", "11")]).emit_init(&[("a", "5"), ("b", "7"), ("c", "11")]).watch("11"); s })]
#[case::counts_only_lists_without_a_free_one_between("", { let mut s = dead_version(2); s.watch("10").error(410, "Expired").eof().after(2000).list(&[]).page("10", "", &[("a", "5"), ("b", "7")]).emit_init(&[("a", "5"), ("b", "7")]); s.watch("10").error(410, "Expired").eof().after(2000).list(&[("resourceVersion", "10")]).page("10", "", &[("a", "5"), ("b", "7")]).emit_init(&[("a", "5"), ("b", "7")]).watch("10"); s })]
#[case::reads_no_410_behind_a_refusal("", { let mut s = watching(); s.eof().request(Verb::Watch, &[("resourceVersion", "11")]).head(500).error(410, "Expired").eof().after(900).watch("11"); s })]
#[case::reads_no_bookmark_behind_a_refusal("", { let mut s = watching(); s.eof().request(Verb::Watch, &[("resourceVersion", "11")]).head(500).bookmark("20", None).eof().after(900).watch("11"); s })]
#[case::reads_no_410_behind_another_error("", { let mut s = watching(); s.error(500, "InternalError").error(410, "Expired").eof().after(900).watch("11"); s })]
#[case::waits_for_the_end_of_a_410_line("", { let mut s = watching(); s.frame(FrameType::Error { code: 410, reason: "Expired".into() }, None, 99).after(9000).end(Ending::Fin, Side::Client).watch("11"); s })]
#[case::gave_up_a_stream_as_the_410_came("", { let mut s = watching(); s.eof().request(Verb::Watch, &[("resourceVersion", "11")]).after(5000).emit_error("silent").status(410, "Expired").after(900).watch("11"); s })]
#[case::left_as_the_410_came("", { let mut s = watching(); s.error(410, "Expired").eof().left().after(900).watch("11"); s })]
#[case::left_as_the_bookmark_came("", { let mut s = watching(); s.after(1).bookmark("20", None).eof().left().watch("11"); s })]
#[case::left_after_a_silence_as_the_410_came("", { let mut s = watching(); s.after(5000).error(410, "Expired").end(Ending::Fin, Side::Client).after(900).watch("11"); s })]
#[case::left_after_a_silence_as_head_and_410_came("", { let mut s = synced(); s.request(Verb::Watch, &[("resourceVersion", "10")]).after(5000).head(200).error(410, "Expired").end(Ending::Fin, Side::Client).after(900).watch("10"); s })]
#[case::read_no_further_than_an_event_it_refused("", { let mut s = watching(); s.wrote("d", "12").added("d", "12").error(410, "Expired").eof().emit_error("no Node").after(900).watch("11").added("d", "12").emit_apply("d", "12"); s })]
#[case::reported_what_came_before_the_410("INV-04", { let mut s = watching(); s.wrote("d", "12").added("d", "12").emit_apply("d", "12").error(410, "Expired").eof().emit_error("gone").after(900).watch("12"); s })]
#[case::left_a_410_that_came_soon("INV-04", { let mut s = watching(); s.after(4900).error(410, "Expired").end(Ending::Fin, Side::Client).after(900).watch("11"); s })]
#[case::stayed_when_410_came_after_a_silence("INV-04", { let mut s = watching(); s.after(5000).error(410, "Expired").after(1).end(Ending::Fin, Side::Client).after(900).watch("11"); s })]
#[case::goes_on_from_before_a_set_it_refused("", { let mut s = watching(); s.eof().list(&[LIMIT]).page("12", "", &[("a", "5"), ("b", "7"), ("c", "11")]).emit_error("another kind").after(900).watch("11"); s })]
#[case::goes_back_behind_a_set_it_took("INV-01", { let mut s = watching(); s.eof().list(&[LIMIT]).page("12", "", &[("a", "5"), ("b", "7"), ("c", "11")]).emit_init(&[("a", "5"), ("b", "7"), ("c", "11")]).emit_error("another kind").after(900).watch("11"); s })]
#[case::goes_back_behind_a_set_it_watched("INV-01", { let mut s = watching(); s.eof().list(&[LIMIT]).page("12", "", &[("a", "5"), ("b", "7"), ("c", "11")]).watch("12").eof().emit_error("slow").after(900).watch("11"); s })]
#[case::asks_for_any_state_after_a_set_it_refused("", { let mut s = Sample::new(); s.list(&[("resourceVersion", "0")]).page("10", "", &[]).emit_error("another kind").after(900).list(&[("resourceVersion", "0")]).page("10", "", &[]).emit_init(&[]).watch("10"); s })]
#[case::reported_a_set_and_asks_for_any_state("INV-05", { let mut s = Sample::new(); s.list(&[("resourceVersion", "0")]).page("10", "", &[]).emit_init(&[]).after(900).list(&[("resourceVersion", "0")]).page("10", "", &[]).emit_init(&[]).watch("10"); s })]
#[case::starts_at_zero("", { let mut s = Sample::new(); s.list(&[("resourceVersion", "0")]).page("10", "", &[]).emit_init(&[]).watch("10"); s })]
// ---- what to report
#[case::invents_a_state("INV-06", { let mut s = watching(); s.emit_apply("a", "6").wrote("a", "12").added("a", "12").emit_apply("a", "12"); s })]
#[case::reports_out_of_order("INV-06 INV-08", { let mut s = synced(); s.watch("10").wrote("a", "11").wrote("a", "12").added("a", "11").added("a", "12").emit_apply("a", "12").emit_apply("a", "11").emit_apply("a", "12"); s })]
#[case::follows_a_server_that_goes_back("", { let mut s = synced(); s.watch("10").wrote("a", "11").added("a", "11").emit_apply("a", "11").lie().added("a", "5").emit_apply("a", "5").lie().added("a", "11").emit_apply("a", "11"); s })]
#[case::leaves_an_event_out("INV-07", { let mut s = watching(); s.wrote("d", "12").deleted("d", "13").wrote("e", "14").added("d", "12").removed("d", "13").added("e", "14").emit_apply("e", "14"); s })]
#[case::read_a_later_event_from_a_list("", { let mut s = watching(); s.wrote("d", "12").wrote("d", "13").added("d", "12").added("d", "13").eof().after(900).list(&[LIMIT]).page("13", "", &[("a", "5"), ("b", "7"), ("c", "11"), ("d", "13")]).emit_apply("d", "13"); s })]
#[case::leaves_a_delete_out("INV-07 INV-13", { let mut s = watching(); s.deleted("a", "12").wrote("e", "13").removed("a", "12").added("e", "13").emit_apply("e", "13"); s })]
#[case::skips_a_delete_of_what_it_never_held("", { let mut s = watching(); s.removed("z", "12").wrote("e", "13").added("e", "13").emit_apply("e", "13"); s })]
#[case::says_that_it_could_not_decode("", { let mut s = watching(); s.wrote("d", "12").deleted("d", "13").wrote("e", "14").added("d", "12").emit_error("bad").removed("d", "13").added("e", "14").emit_apply("e", "14"); s })]
#[case::reports_twice("INV-08", { let mut s = watching(); s.emit_apply("c", "11"); s })]
#[case::reports_a_repeated_frame("", { let mut s = watching(); s.lie().added("c", "11").emit_apply("c", "11"); s })]
#[case::reports_again_after_a_relist("", { let mut s = watching(); s.eof().list(&[LIMIT]).page("10", "", &[("a", "5"), ("b", "7")]).emit_init(&[("a", "5"), ("b", "7")]).watch("10").added("c", "11").emit_apply("c", "11"); s })]
#[case::reports_what_was_repeated_before_the_set("", { let mut s = Sample::new(); s.watch_list("").bookmark("9", Some("true")).wrote("a", "10").added("a", "10").lie().added("a", "10").emit_init(&[]).emit_apply("a", "10").emit_apply("a", "10"); s })]
#[case::reports_a_raw_line_sent_twice_behind_the_marker("", { let mut s = Sample::new(); s.watch_list("").bookmark("9", Some("true")).wrote("d", "10").garbage().garbage().emit_init(&[]).emit_apply("d", "10").emit_apply("d", "10"); s })]
#[case::reports_another_kind_of_object("INV-14", { let mut s = watching(); s.write("x", "u-x", "12", WriteOp::Create, false).added("x", "12").emit_apply("x", "12").emit_delete("x", "12"); s })]
#[case::reports_half_an_event("INV-19", { let mut s = watching(); s.wrote("d", "12").torn_added("d", "12", 40).emit_apply("d", "12").rst(); s })]
#[case::reads_it_from_an_unfinished_page("", { let mut s = watching(); s.wrote("d", "12").torn_added("d", "12", 40).rst().after(900).list(&[LIMIT]).head(200).emit(Report::Init).emit(Report::InitApply(reported("d", "u-d", "12"))).emit(Report::Init).emit(Report::InitApply(reported("d", "u-d", "12"))); s.finish_page("12", &[("a", "5"), ("b", "7"), ("c", "11"), ("d", "12")]); for (name, version) in [("a", "5"), ("b", "7"), ("c", "11")] { s.emit(Report::InitApply(reported(name, &format!("u-{name}"), version))); } s.emit(Report::InitDone).watch("12"); s })]
#[case::reports_an_event_without_newline("", { let mut s = watching(); s.wrote("d", "12").torn_added("d", "12", 99).emit_apply("d", "12").end(Ending::Fin, Side::Server).watch("12"); s })]
#[case::reports_a_deleted_object_again("INV-06 INV-08 INV-20", { let mut s = watching(); s.deleted("a", "12").removed("a", "12").emit_delete("a", "12").emit_apply("a", "5").emit_delete("a", "12"); s })]
#[case::believes_a_recreation("", { let mut s = watching(); s.deleted("a", "12").removed("a", "12").emit_delete("a", "12").write("a", "u-2", "13", WriteOp::Create, true).frame(FrameType::Added, Some(object("a", "u-2", "13")), 100).emit(Report::Apply(reported("a", "u-2", "13"))); s })]
#[case::deleted_and_recreated_twice("", { let mut s = watching(); s.write("a", "u-a", "12", WriteOp::Update, false).write("a", "u-a", "13", WriteOp::Update, true).write("a", "u-a", "14", WriteOp::Update, false).removed("a", "12").added("a", "13").removed("a", "14").emit_delete("a", "12").emit_apply("a", "13").emit_delete("a", "14"); s })]
#[case::keeps_the_old_uid("INV-13 INV-20", { let mut s = watching(); s.deleted("a", "12").write("a", "u-2", "13", WriteOp::Create, true); s })]
#[case::reports_events_after_an_error("INV-21", { let mut s = watching(); s.wrote("d", "12").error(500, "InternalError").added("d", "12").emit_apply("d", "12").eof(); s })]
#[case::reads_it_again_elsewhere("", { let mut s = watching(); s.wrote("d", "12").error(500, "InternalError").added("d", "12").eof().watch("11").added("d", "12").emit_apply("d", "12"); s })]
// ---- requests
#[case::reports_a_change_inside_a_relist("INV-09", { let mut s = watching(); s.deleted("c", "12").removed("c", "12").eof().emit(Report::Init).emit_delete("c", "12").list(&[LIMIT]).page("12", "", &[("a", "5"), ("b", "7")]).emit(Report::InitApply(reported("a", "u-a", "5"))).emit(Report::InitApply(reported("b", "u-b", "7"))).emit(Report::InitDone); s })]
#[case::restarts_a_relist("", { let mut s = synced(); s.emit(Report::Init).list(&[LIMIT]).page("10", "t", &[("a", "5")]).emit(Report::InitApply(reported("a", "u-a", "5"))).list(&[LIMIT, ("continue", "t")]).status(410, "Expired").emit(Report::Init).list(&[]).page("10", "", &[("a", "5"), ("b", "7")]).emit_init(&[("a", "5"), ("b", "7")]).watch("10"); s })]
#[case::keeps_the_leftovers_of_a_page("INV-10 INV-11 INV-13", leftovers(false))]
#[case::drops_the_leftovers_of_a_page("", leftovers(true))]
#[case::keeps_what_was_deleted_before_the_marker("INV-10 INV-13", { let mut s = Sample::new(); s.wrote("a", "5").wrote("b", "7").deleted("b", "8"); s.watch_list("").added("a", "5").added("b", "7").removed("b", "8").bookmark("9", Some("true")).emit_init(&[("a", "5"), ("b", "7")]); s })]
#[case::leaves_out_an_item_it_could_not_decode("INV-13", { let mut s = Sample::new(); s.wrote("a", "5").wrote("b", "7"); s.list(&[LIMIT]).page("10", "", &[("a", "5"), ("b", "7")]).emit_error("bad").emit_init(&[("a", "5")]); s })]
#[case::resumes_without_having_reported("INV-11 INV-13", { let mut s = watching(); s.wrote("d", "12").added("d", "12").eof().watch("12"); s })]
#[case::synced_by_a_plain_bookmark("INV-12", { let mut s = Sample::new(); s.wrote("a", "5").watch_list("").added("a", "5").lie().bookmark("9", Some("false")).emit_init(&[("a", "5")]); s })]
#[case::forgets_an_object("INV-13", { let mut s = watching(); s.wrote("d", "12"); s })]
#[case::holds_other_content("INV-13", { let mut s = watching(); s.wrote("d", "12").added("d", "12"); let mut d = reported("d", "u-d", "12"); d.content = Some(std::sync::Arc::new(serde_json::json!({"metadata": {"name": "d", "namespace": "ns1", "uid": "u-d", "resourceVersion": "12"}, "data": {"k": "1"}}))); s.emit(Report::Apply(d)); s })]
#[case::was_sent_other_content_at_the_true_version("", { let mut s = watching(); s.wrote("d", "12").lie().frame(FrameType::Added, Some(object("d", "u-x", "12")), 100); let mut d = reported("d", "u-x", "12"); d.content = Some(std::sync::Arc::new(serde_json::json!({"metadata": {"name": "d", "namespace": "ns1", "uid": "u-x", "resourceVersion": "12"}}))); s.emit(Report::Apply(d)); s })]
// ---- requests
#[case::asks_twice_at_once("INV-17", { let mut s = synced(); s.watch("10").after(10).watch("10").after(3000); s })]
#[case::closes_what_it_left_a_little_later("", { let mut s = synced(); s.watch("10").after(10).watch("10").after(500).push(What::End { stream: StreamId(2), how: Ending::Fin, by: Side::Client }).after(3000); s })]
#[case::invents_a_token("INV-22", { let mut s = Sample::new(); s.list(&[LIMIT]).page("10", "t", &[]).list(&[LIMIT, ("continue", "u")]).lie().page("10", "", &[]).emit_init(&[]); s })]
#[case::changes_the_limit("INV-22", { let mut s = Sample::new(); s.list(&[LIMIT]).page("10", "t", &[]).list(&[("limit", "7"), ("continue", "t")]).page("10", "", &[]).emit_init(&[]); s })]
#[case::sends_a_refused_token_again("INV-22", { let mut s = Sample::new(); s.list(&[LIMIT]).page("10", "t", &[]).list(&[LIMIT, ("continue", "t")]).status(410, "Expired").after(900).list(&[LIMIT, ("continue", "t")]).status(410, "Expired"); s })]
#[case::sends_a_token_again_after_503("", { let mut s = Sample::new(); s.list(&[LIMIT]).page("10", "t", &[]).list(&[LIMIT, ("continue", "t")]).status(503, "ServiceUnavailable").after(900).list(&[LIMIT, ("continue", "t")]).page("10", "", &[]).emit_init(&[]); s })]
#[case::takes_the_inconsistent_token("", { let mut s = Sample::new(); s.list(&[LIMIT]).page("10", "t", &[]).list(&[LIMIT, ("continue", "t")]).refuse(410, "Expired", None, Some("i")).list(&[LIMIT, ("continue", "i")]).page("12", "", &[]).emit_init(&[]).watch("10"); s })]
#[case::asks_again_for_a_page_it_refused("", { let mut s = Sample::new(); s.list(&[LIMIT]).page("10", "t", &[]).list(&[LIMIT, ("continue", "t")]).lie().page("10", "", &[]).emit_error("another kind").after(900).list(&[LIMIT, ("continue", "t")]).page("10", "", &[]).emit_init(&[]).watch("10"); s })]
#[case::asks_again_for_the_last_page("INV-22", { let mut s = Sample::new(); s.list(&[LIMIT]).page("10", "t", &[]).list(&[LIMIT, ("continue", "t")]).page("10", "u", &[]).list(&[LIMIT, ("continue", "t")]).lie().page("10", "", &[]).emit_init(&[]); s })]
#[case::asks_again_for_a_page_sent_as_it_gave_up("", page_at_the_timeout(0, false))]
#[case::asks_again_for_a_page_that_came_later("INV-22", page_at_the_timeout(1, false))]
#[case::sends_a_token_again_that_was_refused_as_it_gave_up("", page_at_the_timeout(0, true))]
#[case::sends_a_token_again_that_was_refused_later("INV-22", page_at_the_timeout(1, true))]
#[case::caps_an_hour("", { let mut s = Sample::new(); s.list(&[]).refuse(429, "TooManyRequests", Some("3600"), None).after(600_000).list(&[]).page("10", "", &[]).emit_init(&[]); s })]
#[case::caps_an_hour_too_low("INV-16", { let mut s = Sample::new(); s.list(&[]).refuse(429, "TooManyRequests", Some("3600"), None).after(300_000).list(&[]).page("10", "", &[]).emit_init(&[]); s })]
#[case::comes_back_too_soon("INV-16", { let mut s = Sample::new(); s.list(&[]).refuse(429, "TooManyRequests", Some("7"), None).after(6900).list(&[]).page("10", "", &[]).emit_init(&[]); s })]
#[case::honours_retry_after("", { let mut s = Sample::new(); s.list(&[]).refuse(429, "TooManyRequests", Some("7"), None).after(6950).list(&[]).page("10", "", &[]).emit_init(&[]); s })]
#[case::reads_no_retry_after_sent_as_it_gave_up("", { let mut s = Sample::new(); s.list(&[]).after(65_000).emit_error("silence").refuse(429, "TooManyRequests", Some("7"), None).after(900).list(&[]).page("10", "", &[]).emit_init(&[]); s })]
#[case::never_backs_off("INV-16", failing(60, 500))]
#[case::keeps_to_the_budget("", failing(60, 700))]
#[case::spins_on_watches_that_end_at_once("INV-16", { let mut s = synced(); for _ in 0..60 { s.watch("10").after(100).eof(); } s.emit(Report::Error { message: "x".into(), code: None }); s })]
fn holds_or_not(#[case] broken: &str, #[case] sample: Sample) {
    let records = end(sample);
    let scenario = scenario();
    let trace = Trace::new(&records);
    let found = violated(&scenario, &trace);
    let ids: BTreeSet<String> = found.iter().map(|found| found.check.to_string()).collect();
    let wanted: BTreeSet<&str> = broken.split_whitespace().collect();
    assert_eq!(
        ids,
        wanted.into_iter().map(str::to_owned).collect(),
        "{:#?}",
        found.iter().map(|found| &found.sentence).collect::<Vec<_>>()
    );
    for contradiction in &found {
        assert!(!contradiction.evidence.is_empty() && contradiction.sentence.starts_with("the client"));
    }
}

/// Two pages, the second scripted to look newer, and a watch.
fn paged(from: &str) -> Sample {
    let mut s = Sample::new();
    s.wrote("a", "5").wrote("b", "7");
    s.list(&[("limit", "1")]).page("10", "t", &[("a", "5")]);
    s.list(&[("limit", "1"), ("continue", "t")])
        .lie()
        .page("12", "", &[("b", "7")]);
    s.emit_init(&[("a", "5"), ("b", "7")]).watch(from);
    s
}

/// A server that answers every list at the expired version with that version, and a client that requests it this many
/// times.
fn dead_version(times: usize) -> Sample {
    let mut s = synced();
    for _ in 0..times {
        s.watch("10").error(410, "Expired").eof().after(2000);
        s.list(&[("resourceVersion", "10")])
            .page("10", "", &[("a", "5"), ("b", "7")]);
        s.emit_init(&[("a", "5"), ("b", "7")]);
    }
    s
}

/// Page 1 contains `a` and `b`, `a` is deleted, the token expires, and the new list contains only `b`.
fn leftovers(dropped: bool) -> Sample {
    let mut s = Sample::new();
    s.wrote("a", "5").wrote("b", "7").emit(Report::Init);
    s.list(&[("limit", "2")])
        .page("10", "t", &[("a", "5"), ("b", "7")]);
    s.emit(Report::InitApply(reported("a", "u-a", "5")))
        .emit(Report::InitApply(reported("b", "u-b", "7")));
    s.deleted("a", "11")
        .list(&[("limit", "2"), ("continue", "t")])
        .status(410, "Expired");
    if dropped {
        s.emit(Report::Init);
    }
    s.list(&[]).page("11", "", &[("b", "7")]);
    s.emit(Report::InitApply(reported("b", "u-b", "7")))
        .emit(Report::InitDone)
        .watch("11");
    s
}

/// This many rejected lists, at this interval.
fn failing(times: usize, every_ms: u64) -> Sample {
    let mut s = Sample::new();
    for _ in 0..times {
        s.list(&[LIMIT]).status(500, "InternalError").after(every_ms);
    }
    s
}

/// A client that goes back once is reported once.
#[rstest]
#[case::and_comes_back(1, |s: &mut Sample| { s.watch("20"); })]
#[case::and_stays(2, |s: &mut Sample| { s.watch("20").bookmark("30", None).eof().watch("20"); })]
#[case::and_goes_on_from_there(1, |s: &mut Sample| { s.watch("11").bookmark("12", None).eof().watch("12"); })]
#[case::and_skips_what_it_is_sent_then(2, |s: &mut Sample| { s.watch("11").bookmark("12", None).eof().watch("20"); })]
fn a_step_back_is_reported_once(#[case] times: usize, #[case] then: fn(&mut Sample)) {
    let mut s = watching();
    s.after(1).bookmark("20", None).eof().watch("11").eof().after(900);
    then(&mut s);
    let records = end(s);
    let found = each(&scenario(), &Trace::new(&records), &ON_THE_WIRE);
    let ids: Vec<String> = found.iter().map(|found| found.check.to_string()).collect();
    assert_eq!(ids, vec!["INV-02"; times]);
}

#[test]
fn inv_15_reports_the_servers_violations() {
    let mut s = synced();
    s.push(What::Request {
        stream: StreamId(2),
        conn: ConnId(2),
        verb: Verb::List,
        method: "GET".to_owned(),
        path: "/api/v1/namespaces/ns1/configmaps".to_owned(),
        query: vec![("resourceVersionMatch".to_owned(), "Exact".to_owned())],
        accept: None,
        user_agent: None,
        replica: Default::default(),
        violations: vec!["resourceVersionMatch without resourceVersion".to_owned()],
    });
    let records = end(s);
    let found = violated(&scenario(), &Trace::new(&records));
    assert_eq!(
        found
            .iter()
            .map(|found| found.check.to_string())
            .collect::<Vec<_>>(),
        ["INV-15"]
    );
}

/// A non-numeric version is the client's fault only if the server never sent it.
#[rstest]
#[case::of_the_server("v1:a", "")]
#[case::of_the_client("v1:b", "INV-01 INV-15")]
fn inv_15_and_non_numeric_versions(#[case] version: &str, #[case] broken: &str) {
    let mut s = Sample::new();
    s.list(&[LIMIT]).lie().page("v1:a", "", &[]).emit_init(&[]);
    s.list(&[LIMIT]).page("v1:a", "", &[]).emit_init(&[]);
    s.push(What::Request {
        stream: StreamId(3),
        conn: ConnId(3),
        verb: Verb::Watch,
        method: "GET".to_owned(),
        path: "/api/v1/namespaces/ns1/configmaps".to_owned(),
        query: vec![("resourceVersion".to_owned(), version.to_owned())],
        accept: None,
        user_agent: None,
        replica: Default::default(),
        violations: vec![format!(
            "resourceVersion: Invalid value: {version:?}: invalid syntax"
        )],
    });
    let records = end(s);
    assert_eq!(broken_by(&scenario(), &records), broken);
}

/// A client that follows one object knows it after the first item, and reports it again after a relist.
#[test]
fn one_object_is_the_complete_snapshot() {
    let mut s = Sample::new();
    s.wrote("a", "5");
    s.list(&[LIMIT]).head(200).emit_init(&[("a", "5")]);
    s.finish_page("10", &[("a", "5")]);
    s.watch("10").error(410, "Expired").eof().after(900);
    s.wrote("a", "11")
        .list(&[LIMIT])
        .page("12", "", &[("a", "11")])
        .emit_apply("a", "11");
    s.watch("12").error(410, "Expired").eof().after(900);
    s.list(&[LIMIT])
        .page("13", "", &[("a", "11")])
        .emit_apply("a", "11")
        .watch("13");
    let records = end(s);
    let mut scenario = scenario();
    scenario.client.mode = ClientMode::Object;
    assert_eq!(violated(&scenario, &Trace::new(&records)), []);
}

/// Deleting an absent object changes nothing; a client that follows one object reports its absence again.
#[rstest]
#[case::after_a_deletion(true, 0, "")]
#[case::after_nothing(false, 0, "INV-12")]
#[case::late_after_a_deletion(true, 7_000, "")]
fn an_absent_object_may_be_reported_again(
    #[case] deleted: bool,
    #[case] consumer_delay_ms: u64,
    #[case] broken: &str,
) {
    let mut s = Sample::new();
    s.list(&[LIMIT]).page("10", "", &[]);
    if consumer_delay_ms == 0 {
        s.emit_init(&[]);
    }
    s.watch("10");
    if deleted {
        s.lie().removed("a", "12");
    }
    if consumer_delay_ms > 0 {
        s.after(consumer_delay_ms).emit_init(&[]);
    }
    s.emit_init(&[]);
    let records = end(s);
    let mut scenario = scenario();
    scenario.client.consumer_delay_ms = consumer_delay_ms;
    scenario.client.mode = ClientMode::Object;
    assert_eq!(broken_by(&scenario, &records), broken);
}

/// A faulty server may send two objects to a client that watches one; such a client cannot report both.
#[rstest]
#[case::of_one(ClientMode::Object, false)]
#[case::of_a_collection(ClientMode::Watcher, true)]
fn one_object_of_two_may_be_reported(#[case] mode: ClientMode, #[case] accused: bool) {
    let mut s = Sample::new();
    s.wrote("a", "5")
        .watch_list("")
        .lie()
        .added("b", "6")
        .added("a", "5");
    s.bookmark("10", Some("true")).emit_init(&[("b", "6")]);
    let records = end(s);
    let mut scenario = scenario();
    scenario.client.mode = mode;
    let found = violated(&scenario, &Trace::new(&records));
    assert_eq!(
        found.iter().any(|found| found.check.is("INV-10")),
        accused,
        "{found:?}"
    );
}

/// A faulty server may send an object that the selectors exclude; a client that caches it breaks INV-14.
#[rstest]
#[case::that_the_selectors_exclude(false, "")]
#[case::that_they_select(true, "INV-10 INV-13")]
fn an_object_may_be_missing_from_a_set(#[case] selected: bool, #[case] broken: &str) {
    let mut s = Sample::new();
    s.wrote("a", "5")
        .write("b", "u-b", "6", WriteOp::Create, selected)
        .watch_list("")
        .lie()
        .added("b", "6")
        .added("a", "5");
    s.bookmark("10", Some("true")).emit_init(&[("a", "5")]);
    assert_eq!(broken_by(&scenario(), &end(s)), broken);
}

/// The invariants that a trace breaks, as a row lists them.
fn broken_by(scenario: &Scenario, records: &[::trace::record::Record]) -> String {
    let found = violated(scenario, &Trace::new(records));
    let ids: Vec<String> = found.iter().map(|found| found.check.to_string()).collect();
    ids.join(" ")
}

/// If the server ends an HTTP/2 stream, the record does not show a client that leaves at the same instant.
#[rstest]
#[case::after_a_silence(5000, "")]
#[case::while_it_listened(4900, "INV-04")]
fn a_stream_may_be_given_up_as_it_ends(#[case] ms: u64, #[case] broken: &str) {
    let mut s = watching();
    s.after(ms).error(410, "Expired").eof().after(900).watch("11");
    let records = end(s);
    let mut scenario = scenario();
    scenario.server.transport = Transport::TlsHttp2;
    assert_eq!(broken_by(&scenario, &records), broken);
}

/// The same for the marker that ends a streaming list: the client reported that it gave up, or fell silent before.
#[rstest]
#[case::after_an_error(4900, true, "")]
#[case::after_a_silence(5000, false, "")]
#[case::while_it_listened(4900, false, "INV-01")]
fn a_streaming_list_may_be_given_up_as_it_ends(
    #[case] ms: u64,
    #[case] is_reported: bool,
    #[case] broken: &str,
) {
    let mut s = watching();
    s.eof().watch_list("11").head(200).after(ms);
    if is_reported {
        s.emit_error("silence");
    }
    s.bookmark("12", Some("true")).left();
    s.after(900).watch_list("11").head(200);
    assert_eq!(broken_by(&scenario(), &s.complete()), broken);
}

/// The same for an event that comes as the stream ends.
#[rstest]
#[case::after_a_silence(5000, "")]
#[case::while_it_listened(4900, "INV-02")]
fn an_event_may_be_unread_as_a_stream_ends(#[case] ms: u64, #[case] broken: &str) {
    let mut s = watching();
    s.after(ms).wrote("d", "12").added("d", "12").eof();
    s.after(900).watch("11").added("d", "12").emit_apply("d", "12");
    let records = end(s);
    let mut scenario = scenario();
    scenario.server.transport = Transport::TlsHttp2;
    assert_eq!(broken_by(&scenario, &records), broken);
}

/// A slow consumer reports late that an event was rejected.
#[rstest]
#[case::slow(1, "")]
#[case::prompt(0, "INV-02")]
fn a_slow_consumer_may_reject_an_event(#[case] consumer_delay_ms: u64, #[case] broken: &str) {
    let mut s = watching();
    s.after(1).wrote("d", "12").added("d", "12").eof();
    s.after(900)
        .watch("11")
        .added("d", "12")
        .emit_error("another kind")
        .emit_apply("d", "12");
    let records = end(s);
    let mut scenario = scenario();
    scenario.client.consumer_delay_ms = consumer_delay_ms;
    assert_eq!(broken_by(&scenario, &records), broken);
}

/// A client gives up the second page, and the server answers then, or a little later.
fn page_at_the_timeout(later_ms: u64, is_refused: bool) -> Sample {
    let next = [LIMIT, ("continue", "t")];
    let mut s = Sample::new();
    s.list(&[LIMIT]).page("10", "t", &[]);
    s.list(&next).after(65_000).emit_error("silence").after(later_ms);
    if is_refused {
        s.status(410, "Expired");
    } else {
        s.page("10", "", &[]);
    }
    s.after(900).list(&next).page("10", "", &[]);
    s.emit_init(&[]).watch("10");
    s
}

/// `retry_after_max` of the scenario is the cap of its client.
#[rstest]
#[case::as_long_as_it_may(Some(5_000), 5_000, "")]
#[case::not_that_long(Some(5_000), 4_000, "INV-16")]
#[case::without_a_cap(None, 5_000, "INV-16")]
fn retry_after_is_capped_by_the_scenario(#[case] cap: Option<u64>, #[case] gap: u64, #[case] broken: &str) {
    let mut s = Sample::new();
    s.list(&[]).refuse(503, "ServiceUnavailable", Some("3600"), None);
    s.after(gap).list(&[]).page("10", "", &[]).emit_init(&[]);
    let mut scenario = scenario();
    scenario.client.backoff.retry_after_max_ms = cap;
    assert_eq!(broken_by(&scenario, &end(s)), broken);
}

/// The same for a page, which is requested again.
#[rstest]
#[case::slow(1, "")]
#[case::prompt(0, "INV-22")]
fn a_slow_consumer_may_reject_a_page(#[case] consumer_delay_ms: u64, #[case] broken: &str) {
    let next = [LIMIT, ("continue", "t")];
    let mut s = Sample::new();
    s.wrote("a", "5").list(&[LIMIT]).page("10", "t", &[]);
    s.list(&next).page("10", "", &[("a", "5")]).after(900);
    s.list(&next).page("10", "", &[("a", "5")]);
    s.emit_error("another kind").emit_init(&[("a", "5")]);
    let mut scenario = scenario();
    scenario.client.consumer_delay_ms = consumer_delay_ms;
    assert_eq!(broken_by(&scenario, &s.complete()), broken);
}

/// A slow consumer reports late that a list was rejected.
#[rstest]
#[case::before_the_watch(true)]
#[case::after_the_watch(false)]
fn a_slow_consumer_may_reject_a_snapshot(#[case] is_before: bool) {
    let mut s = watching();
    s.eof()
        .list(&[LIMIT])
        .page("12", "", &[("a", "5"), ("b", "7"), ("c", "11")])
        .after(900);
    if is_before {
        s.emit_error("another kind").watch("11");
    } else {
        s.watch("11").emit_error("another kind");
    }
    let records = end(s);
    let mut scenario = scenario();
    scenario.client.consumer_delay_ms = 1;
    assert_eq!(violated(&scenario, &Trace::new(&records)), []);
}

/// A version reused after a restore is another state, which is unknown to a client that received nothing since.
#[rstest]
#[case::of_before_the_restore("before", "")]
#[case::of_after_the_restore("after", "")]
#[case::of_neither("never", "INV-13")]
fn a_restore_reuses_versions(#[case] held: &str, #[case] broken: &str) {
    let state = |value: &str| serde_json::json!({"metadata": {"name": "d", "namespace": "ns1", "uid": "u-d", "resourceVersion": "12"}, "data": {"k": value}});
    let write = |value: &str| {
        What::Wrote(StoreWrite {
            resource: "configmaps".to_owned(),
            object: object("d", "u-d", "12"),
            op: WriteOp::Create,
            selected: true,
            by: None,
            content: Some((&state(value)).into()),
        })
    };
    let mut s = watching();
    s.push(write("before")).push(What::Restored { to: 11 });
    s.added("d", "12").push(write("after"));
    let mut d = reported("d", "u-d", "12");
    d.content = Some(std::sync::Arc::new(state(held)));
    s.emit(Report::Apply(d));
    let records = end(s);
    assert_eq!(broken_by(&scenario(), &records), broken);
}

/// Objects read at a version before a restore are compared with their state at that time.
#[rstest]
#[case::it_passed_the_selectors(true, "")]
#[case::it_never_passed(false, "INV-14")]
fn selectors_are_checked_against_every_state_of_a_version(#[case] selected: bool, #[case] broken: &str) {
    let mut s = watching();
    s.write("x", "u-x", "12", WriteOp::Create, selected)
        .added("x", "12")
        .emit_apply("x", "12")
        .push(What::Restored { to: 11 })
        .write("x", "u-x", "12", WriteOp::Create, false)
        .emit_delete("x", "12");
    let records = end(s);
    assert_eq!(broken_by(&scenario(), &records), broken);
}

/// A list and the deletions after it may all be sent before the first of them is reported.
#[rstest]
#[case::as_often_as_it_was_sent(2, "")]
#[case::more_often(3, "INV-12")]
fn one_object_may_be_deleted_again_and_again(#[case] times: usize, #[case] broken: &str) {
    let mut s = Sample::new();
    s.wrote("a", "5").watch_list("").added("a", "5");
    s.bookmark("9", Some("true"))
        .deleted("a", "12")
        .removed("a", "12");
    s.lie().removed("a", "12");
    s.emit_init(&[("a", "5")]).emit_delete("a", "12");
    for _ in 0..times {
        s.emit_init(&[]);
    }
    let records = end(s);
    let mut scenario = scenario();
    scenario.client.mode = ClientMode::Object;
    assert_eq!(broken_by(&scenario, &records), broken);
}

/// A restore undoes what a client has read: its cache is compared with the store of that time.
#[test]
fn a_watch_before_a_restore_is_checked_against_the_store_of_that_time() {
    let mut s = synced();
    s.watch("10").push(What::Restored { to: 6 });
    s.eof()
        .after(900)
        .list(&[LIMIT])
        .page("6", "", &[("a", "5")])
        .emit_init(&[("a", "5")])
        .watch("6");
    let records = end(s);
    assert_eq!(violated(&scenario(), &Trace::new(&records)), []);
}

#[rstest]
#[case::a_request("INV-18", |s: &mut Sample| { s.after(1000).list(&[LIMIT]); })]
#[case::a_report("INV-18", |s: &mut Sample| { s.after(1000).emit_error("late"); })]
#[case::an_open_stream("INV-18", |s: &mut Sample| { s.after(2500).push(What::End { stream: StreamId(2), how: Ending::Fin, by: Side::Client }); })]
#[case::a_prompt_close("", |s: &mut Sample| { s.after(1500).push(What::End { stream: StreamId(2), how: Ending::Fin, by: Side::Client }).after(60_000); })]
#[case::never_closed("INV-18", |s: &mut Sample| { s.after(2000).push(What::LeftOpen { connections: 1 }); })]
#[case::nobody_waited_to_see("", |_: &mut Sample| {})]
fn after_stop(#[case] broken: &str, #[case] then: fn(&mut Sample)) {
    let mut s = watching();
    s.push(What::StopRequested);
    then(&mut s);
    s.push(What::RunEnded(RunEnd::Complete));
    let records = s.records();
    let found = violated(&scenario(), &Trace::new(&records));
    assert_eq!(
        found
            .iter()
            .map(|found| found.check.to_string())
            .collect::<Vec<_>>()
            .join(" "),
        broken
    );
}

#[test]
fn an_excused_invariant_is_not_reported() {
    let mut s = synced();
    s.watch("7");
    let records = stop_late(s);
    let mut scenario = scenario();
    scenario.expect.excused = vec![Excuse {
        invariant: "INV-01".to_owned(),
        because: "reason of the sample".to_owned(),
        at: Place::default(),
    }];
    assert_eq!(violated(&scenario, &Trace::new(&records)), []);
}

#[test]
fn ids_are_consecutive_and_statements_are_one_line() {
    for (index, invariant) in INVARIANTS.iter().enumerate() {
        assert_eq!(invariant.id, format!("INV-{:02}", index + 1));
        assert!(!invariant.statement.contains('\n'));
        // What a cache that does not converge contradicts, the scenario says.
        assert_eq!(invariant.requirements.is_empty(), invariant.id == "INV-13");
    }
}
