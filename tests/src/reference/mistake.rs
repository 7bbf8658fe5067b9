//! The ways in which the reference client can be wrong, each seen in some client of the world. One at a time: a scenario
//! that catches a mutant catches this mistake and no other.

/// One way to be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mistake {
    /// Watches from the newest item's resourceVersion instead of the list's.
    ResumesFromItem,
    /// Keeps what page 1 of an aborted list brought when the list restarts.
    KeepsPageOneLeftovers,
    /// Takes HTTP 410 on a watch for a passing trouble and asks for the same resourceVersion again.
    IgnoresGoneStatus,
    /// Takes an ERROR 410 event for a passing trouble and asks for the same resourceVersion again.
    IgnoresGoneEvent,
    /// Reports the object of a line that was cut off.
    TrustsTornLine,
    /// Resumes after the resourceVersion of a line that was cut off.
    ResumesPastTornLine,
    /// Takes any bookmark for the end of the initial events.
    AnyBookmarkEnds,
    /// Reports a relist as changes only, so that what is gone stays.
    DropsDeletesOnRelist,
    /// Asks again at once, whatever happened.
    NeverBacksOff,
    /// Asks again on its own schedule, whatever `Retry-After` says.
    IgnoresRetryAfter,
    /// Resumes from the last change, though a bookmark brought a newer resourceVersion.
    IgnoresBookmarks,
    /// Takes a page without items for the last one.
    StopsAtEmptyPage,
    /// Calls the list complete after its first page.
    SyncedAfterPageOne,
    /// Watches from the last page's resourceVersion instead of the first's.
    WatchesFromLastPage,
    /// Sends the dead continue token again.
    ResendsDeadToken,
    /// Relists with `resourceVersion=0`.
    RelistsFromZero,
    /// Ignores DELETED events.
    IgnoresDeleted,
    /// Ignores DELETED events before the end of the initial events.
    IgnoresDeletedInInitialEvents,
    /// Reports every change twice.
    ReportsTwice,
    /// Forgets the selectors on later pages and on watches.
    ForgetsSelectors,
    /// Decodes every chunk for itself, so that a character split across two is damaged.
    DecodesByChunk,
    /// Lets an empty or older bookmark move its resume point back.
    RewindsToBookmark,
    /// Goes on reading after an ERROR event.
    ReadsPastError,
    /// Never gives up a silent stream.
    WaitsForever,
    /// Skips an event it cannot decode and goes on after it.
    SkipsPoison,
    /// Stores objects of other kinds than the one it asked for.
    StoresOtherKinds,
    /// Ends for good at the first trouble.
    GivesUp,
    /// Reverses the changes that come in one piece of the stream.
    ReportsNewestFirst,
    /// Keeps the uid it saw first under a name.
    KeepsFirstUid,
    /// Reports everything deleted before it lists again.
    EmptiesOnRelist,
    /// Reports changes among the initial events as changes, before the set is whole.
    LeaksInitialEvents,
    /// After a cut among the initial events, watches from the newest it had.
    ResumesAmongInitialEvents,
    /// Goes on to the watch after page 1 and reads the other pages never.
    WatchesBeforeLastPage,
    /// Sends the list's resourceVersion with the continue token.
    PinsLaterPages,
    /// Asks for later pages without the limit of the first.
    ForgetsLimit,
    /// Opens the next watch and keeps the one it gave up.
    KeepsGivenUpWatch,
    /// Runs in a task of its own that nobody stops.
    OutlivesStop,
    /// Keeps a line in memory however long it is.
    ReadsWithoutLimit,
    /// Takes a resourceVersion for a floating-point number where it can.
    ReadsVersionsAsNumbers,
    /// Puts a resourceVersion into the URL without escaping it.
    ForgetsEscaping,
    /// Follows one object and takes whatever comes for it.
    TakesOtherNames,
    /// Lists again after every watch, however it ended.
    ListsAfterEveryEnd,
    /// Opens a new watch when one brought nothing for three seconds.
    DropsQuietWatches,
    /// Reads lines of up to 64 KiB.
    RefusesLongLines,
    /// Takes U+0085 and U+2028 for the end of a line, wherever they stand.
    SplitsAtLineSeparators,
    /// Reads every number as a floating-point number.
    RoundsIntegers,
    /// Ignores an ADDED of what it has.
    IgnoresAdditionsOfKnown,
    /// Ignores a MODIFIED of what it has not.
    IgnoresChangesOfUnknown,
    /// Takes an older event as it comes, and resumes behind the newest all the same.
    ResumesFromHighest,
    /// Lets its HTTP client offer gzip for a watch too, which reads no further than the first member.
    OffersGzipForWatches,
    /// Takes nothing from the body of a refusal.
    IgnoresRefusalBodies,
    /// Relists at exactly its last version, and takes whatever comes for that.
    TrustsExactLists,
    /// Takes a watch that brings nothing for one of a quiet collection, however long.
    TrustsSilence,
}

impl Mistake {
    /// All of them.
    pub const ALL: [Self; 53] = [
        Self::ResumesFromItem,
        Self::KeepsPageOneLeftovers,
        Self::IgnoresGoneStatus,
        Self::IgnoresGoneEvent,
        Self::TrustsTornLine,
        Self::ResumesPastTornLine,
        Self::AnyBookmarkEnds,
        Self::DropsDeletesOnRelist,
        Self::NeverBacksOff,
        Self::IgnoresRetryAfter,
        Self::IgnoresBookmarks,
        Self::StopsAtEmptyPage,
        Self::SyncedAfterPageOne,
        Self::WatchesFromLastPage,
        Self::ResendsDeadToken,
        Self::RelistsFromZero,
        Self::IgnoresDeleted,
        Self::IgnoresDeletedInInitialEvents,
        Self::ReportsTwice,
        Self::ForgetsSelectors,
        Self::DecodesByChunk,
        Self::RewindsToBookmark,
        Self::ReadsPastError,
        Self::WaitsForever,
        Self::SkipsPoison,
        Self::StoresOtherKinds,
        Self::GivesUp,
        Self::ReportsNewestFirst,
        Self::KeepsFirstUid,
        Self::EmptiesOnRelist,
        Self::LeaksInitialEvents,
        Self::ResumesAmongInitialEvents,
        Self::WatchesBeforeLastPage,
        Self::PinsLaterPages,
        Self::ForgetsLimit,
        Self::KeepsGivenUpWatch,
        Self::OutlivesStop,
        Self::ReadsWithoutLimit,
        Self::ReadsVersionsAsNumbers,
        Self::ForgetsEscaping,
        Self::TakesOtherNames,
        Self::ListsAfterEveryEnd,
        Self::DropsQuietWatches,
        Self::RefusesLongLines,
        Self::SplitsAtLineSeparators,
        Self::RoundsIntegers,
        Self::IgnoresAdditionsOfKnown,
        Self::IgnoresChangesOfUnknown,
        Self::ResumesFromHighest,
        Self::OffersGzipForWatches,
        Self::IgnoresRefusalBodies,
        Self::TrustsExactLists,
        Self::TrustsSilence,
    ];

    /// The one whose variant has this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|mistake| format!("{mistake:?}") == name)
    }
}
