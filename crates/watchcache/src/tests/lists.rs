//! Lists and gets: the state they show, their pages, and what they wait for.

use rstest::rstest;

use super::*;

const EVERY: &str = "7: a/1 a/2 a/3 a/4 a/5 b/1";

#[rstest]
#[case::newest(ListOptions::default(), EVERY)]
#[case::any(ListOptions { resource_version: RequestedVersion::Any, ..ListOptions::default() }, EVERY)]
#[case::not_older(at(3), EVERY)]
#[case::exact(exactly(4), "4: a/1 a/2 a/3")]
#[case::exact_at_the_start(exactly(1), "1: ")]
#[case::exact_before_the_start(exactly(0), "410 The resourceVersion for the provided list is too old.")]
#[case::of_a_namespace(ListOptions { namespace: Some("b".to_owned()), ..ListOptions::default() }, "7: b/1")]
#[case::a_page(ListOptions { limit: Some(2), ..ListOptions::default() }, "7: a/1 a/2 continue +4")]
#[case::a_page_at_a_revision(ListOptions { limit: Some(2), ..at(4) }, "4: a/1 a/2 continue +1")]
#[case::a_page_of_any(
    ListOptions { limit: Some(2), resource_version: RequestedVersion::Any, ..ListOptions::default() },
    EVERY
)]
#[case::the_future(at(9), "wait 3s")]
#[case::exactly_the_future(exactly(9), "wait 3s")]
fn a_list_shows_the_state_its_options_name(#[case] options: ListOptions, #[case] expected: &str) {
    assert_eq!(World::fixture().list(&options), expected);
}

#[rstest]
#[case::or_newer(at(9))]
#[case::exactly(exactly(9))]
fn the_future_is_refused_after_the_wait(#[case] options: ListOptions) {
    assert_eq!(
        World::fixture().list_after(seconds(3.0), &options),
        "504 Timeout: Too large resource version: 9, current: 7"
    );
}

#[test]
fn a_write_ends_the_wait() {
    let mut world = World::fixture();
    assert_eq!(world.list(&at(8)), "wait 3s");
    // A write to another resource is enough: a cache that is asked for a revision asks etcd for progress.
    world.put_into(world.others, "o", "");
    assert_eq!(world.list(&at(8)), EVERY.replace("7:", "8:"));
}

#[test]
fn all_pages_show_the_revision_of_the_first() {
    let mut world = World::fixture();
    let options = ListOptions {
        limit: Some(2),
        namespace: Some("a".to_owned()),
        ..ListOptions::default()
    };
    let first = world.page(&options, &ALL);
    assert_eq!(story(&first), "7: a/1 a/2 continue +3");
    world.put("a/0", "");
    world.delete("a/4");
    let second = world.page(&next(&options, first.continue_token), &ALL);
    assert_eq!(story(&second), "7: a/3 a/4 continue +1");
    let third = world.page(&next(&options, second.continue_token), &ALL);
    assert_eq!(story(&third), "7: a/5");
}

#[test]
fn a_compacted_page_offers_to_continue_inconsistently() {
    let mut world = World::fixture();
    let options = ListOptions {
        limit: Some(2),
        ..ListOptions::default()
    };
    let first = world.page(&options, &ALL);
    world.put("a/25", "");
    world.delete("a/5");
    world.storage.compact();
    let Lookup::Refused(status) = world.answer(&next(&options, first.continue_token), &ALL) else {
        panic!("not refused");
    };
    assert_eq!(status.code, 410);
    let token = ContinueToken::decode(&status.continue_token).unwrap();
    let rest = next(&ListOptions::default(), Some(token));
    assert_eq!(world.list(&rest), "9: a/25 a/3 a/4 b/1");
}

#[test]
fn a_page_is_full_of_what_is_selected_and_does_not_count_the_rest() {
    let world = World::fixture();
    let options = ListOptions {
        limit: Some(2),
        selective: true,
        ..ListOptions::default()
    };
    let first = world.page(&options, &Tagged("x"));
    assert_eq!(story(&first), "7: a/1 a/3 continue");
    let second = world.page(&next(&options, first.continue_token), &Tagged("x"));
    assert_eq!(story(&second), "7: a/5");
}

#[test]
fn the_selector_reads_the_converted_object() {
    let world = World::fixture();
    let page = world.page(&ListOptions::default(), &Loud("X"));
    let tags: Vec<&str> = page.items.iter().map(|note| note.tag).collect();
    assert_eq!((page.items.len(), tags[0]), (3, "X"));
    let answer = world.storage.get(
        world.now,
        world.read(Replica::FIRST),
        "a/1",
        RequestedVersion::Any,
        &Loud("X"),
    );
    let Lookup::Found(Some(note)) = answer else {
        panic!("not found: {answer:?}");
    };
    assert_eq!(note.tag, "X");
}

#[rstest]
#[case::newest(RequestedVersion::Newest, "8 ")]
#[case::any(RequestedVersion::Any, "2 x")]
#[case::not_older(RequestedVersion::At(7), "2 x")]
#[case::what_the_cache_misses(RequestedVersion::At(8), "wait 3s")]
fn a_get_without_a_version_reads_etcd(#[case] version: RequestedVersion, #[case] expected: &str) {
    let mut world = World::fixture();
    world.operate(WatchCacheOp::Freeze);
    world.put("a/1", "");
    let read = world.read(Replica::FIRST);
    let got = match world.storage.get(world.now, read, "a/1", version, &ALL) {
        Lookup::Found(Some(note)) => format!("{} {}", note.revision, note.tag),
        Lookup::Wait { until } => format!("wait {until:?}"),
        Lookup::Found(None) | Lookup::Refused(_) => panic!("not found"),
    };
    assert_eq!(got, expected);
}
