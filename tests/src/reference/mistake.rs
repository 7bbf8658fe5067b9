//! Mistakes of the reference client, each observed in a real client. One at a time: a scenario that catches a mutant
//! catches this mistake and no other.

/// A mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mistake {
    /// Watches from the newest item's resourceVersion instead of the list's.
    ResumesFromItem,
    /// Keeps the objects of page 1 of an aborted list when the list restarts.
    KeepsPageOneLeftovers,
    /// Treats HTTP 410 on a watch as transient and retries at the same resourceVersion.
    IgnoresGoneStatus,
    /// Treats an ERROR 410 event as transient and retries at the same resourceVersion.
    IgnoresGoneEvent,
    /// Reports the object of a truncated line.
    TrustsTornLine,
    /// Resumes after the resourceVersion of a truncated line.
    ResumesPastTornLine,
    /// Treats any bookmark as the end of the initial events.
    AnyBookmarkEnds,
    /// Reports a relist as changes only, so that deleted objects stay.
    DropsDeletesOnRelist,
    /// Retries immediately after every failure.
    NeverBacksOff,
    /// Ignores `Retry-After` and uses its own delays.
    IgnoresRetryAfter,
    /// Resumes from the last change although a bookmark had a newer resourceVersion.
    IgnoresBookmarks,
    /// Treats a page without items as the last one.
    StopsAtEmptyPage,
    /// Reports the list as complete after its first page.
    SyncedAfterPageOne,
    /// Watches from the last page's resourceVersion instead of the first's.
    WatchesFromLastPage,
    /// Sends an expired continue token again.
    ResendsDeadToken,
    /// Relists with `resourceVersion=0`.
    RelistsFromZero,
    /// Ignores DELETED events.
    IgnoresDeleted,
    /// Ignores DELETED events before the end of the initial events.
    IgnoresDeletedInInitialEvents,
    /// Reports every change twice.
    ReportsTwice,
    /// Omits the selectors on later pages and on watches.
    ForgetsSelectors,
    /// Decodes every chunk separately, so that a character split across two is damaged.
    DecodesByChunk,
    /// Lets an empty or older bookmark move its resume point back.
    RewindsToBookmark,
    /// Continues reading after an ERROR event.
    ReadsPastError,
    /// Never abandons a silent stream.
    WaitsForever,
    /// Skips an event that it cannot decode, and continues after it.
    SkipsPoison,
    /// Stores objects of other kinds than requested.
    StoresOtherKinds,
    /// Ends at the first error.
    GivesUp,
    /// Reverses the changes that arrive in one chunk.
    ReportsNewestFirst,
    /// Keeps the first uid seen for a name.
    KeepsFirstUid,
    /// Reports all objects as deleted before a relist.
    EmptiesOnRelist,
    /// Reports changes among the initial events as changes, before the snapshot is complete.
    LeaksInitialEvents,
    /// After a cut among the initial events, watches from the newest one received.
    ResumesAmongInitialEvents,
    /// Starts the watch after page 1 and never reads the other pages.
    WatchesBeforeLastPage,
    /// Sends the list's resourceVersion with the continue token.
    PinsLaterPages,
    /// Requests later pages without the limit of the first.
    ForgetsLimit,
    /// Opens the next watch without closing the abandoned one.
    KeepsGivenUpWatch,
    /// Runs in a separate task that is never stopped.
    OutlivesStop,
    /// Buffers a line of any length.
    ReadsWithoutLimit,
    /// Treats a resourceVersion as a floating-point number if possible.
    ReadsVersionsAsNumbers,
    /// Puts a resourceVersion into the URL without escaping it.
    ForgetsEscaping,
    /// Follows one object and accepts objects of other names.
    TakesOtherNames,
    /// Relists after every watch, regardless of how it ended.
    ListsAfterEveryEnd,
    /// Opens a new watch if one received nothing for three seconds.
    DropsQuietWatches,
    /// Rejects lines over 64 KiB.
    RefusesLongLines,
    /// Treats U+0085 and U+2028 as line ends everywhere.
    SplitsAtLineSeparators,
    /// Reads every number as a floating-point number.
    RoundsIntegers,
    /// Ignores an ADDED of a known object.
    IgnoresAdditionsOfKnown,
    /// Ignores a MODIFIED of an unknown object.
    IgnoresChangesOfUnknown,
    /// Accepts an older event, and still resumes from the newest version.
    ResumesFromHighest,
    /// Lets its HTTP client offer gzip for a watch, which decodes only the first member.
    OffersGzipForWatches,
    /// Ignores the body of an error response.
    IgnoresRefusalBodies,
    /// Relists at exactly its last version, and accepts any response to that.
    TrustsExactLists,
    /// Treats a silent watch as that of a quiet collection, for any time.
    TrustsSilence,
    /// Does not request bookmarks.
    AsksForNoBookmarks,
    /// Reports a bookmark as a change.
    StoresBookmarks,
    /// Requests a streaming list without `resourceVersionMatch`.
    StreamsWithoutMatch,
    /// Ends a streaming list at its end marker, and opens a watch.
    WatchesAgainAfterMarker,
    /// Starts a streaming list at its last version, also after the server refused that one.
    RepeatsRefusedVersion,
    /// Repeats a refused streaming list for as long as it is refused.
    RepeatsRefusedStreams,
    /// Watches from its own version if a new list returns a lower one.
    KeepsHigherVersion,
    /// Makes every delay eight times the one before, without a limit.
    DelaysForMinutes,
    /// Keeps its longest delay after a watch that lasted.
    KeepsLongDelays,
    /// Lists after a watch was refused with 429.
    ListsAfterThrottling,
    /// Ends after three failures, without a report.
    GivesUpSilently,
    /// Retries once a second, however often it failed.
    RetriesEverySecond,
    /// Does not report refused requests.
    HidesRefusals,
    /// Ends when a connection is refused.
    GivesUpOnRefusedConnections,
    /// Panics on bytes that are no JSON.
    CrashesOnBrokenJson,
    /// Reports the Status of an ERROR event as an object.
    ReportsStatuses,
    /// Retries at once after an object that it cannot decode.
    SpinsOnPoison,
    /// Does not decode objects with null for an optional value.
    RefusesNulls,
    /// Does not decode list items without `kind`.
    RefusesBareItems,
    /// Reports the last change of a stream only after the next snapshot.
    ReportsLateEvents,
    /// Resumes after a deletion from the version that the object had before.
    ResumesBeforeDeletion,
    /// Reports the items of a list that answers a watch as changes.
    ReadsListsAsEvents,
    /// Watches without a version after a list without one, and resumes from any event.
    AcceptsUnversionedLists,
    /// Lists at a resourceVersion without `resourceVersionMatch`.
    ListsWithoutMatch,
    /// Continues a list with the inconsistent token of a 410, and watches from the version of that page.
    TrustsInconsistentTokens,
    /// Reports the objects of a page before it requests the next one.
    ReportsPageByPage,
    /// Lists at the newest version if it has a page size, though it is set to read any.
    PagesAtTheNewestVersion,
    /// Takes a list for complete whose token expires after page 2.
    StopsAtLateExpiry,
    /// Ignores the `Retry-After` of later pages.
    IgnoresRetryAfterOfPages,
    /// Ignores a change at a version that it has already had.
    SkipsSeenVersions,
    /// Reports the changes behind an ERROR event that came in one chunk with it.
    ReportsWholeChunks,
}

impl Mistake {
    /// All mistakes.
    pub const ALL: [Self; 84] = [
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
        Self::AsksForNoBookmarks,
        Self::StoresBookmarks,
        Self::StreamsWithoutMatch,
        Self::WatchesAgainAfterMarker,
        Self::RepeatsRefusedVersion,
        Self::RepeatsRefusedStreams,
        Self::KeepsHigherVersion,
        Self::DelaysForMinutes,
        Self::KeepsLongDelays,
        Self::ListsAfterThrottling,
        Self::GivesUpSilently,
        Self::RetriesEverySecond,
        Self::HidesRefusals,
        Self::GivesUpOnRefusedConnections,
        Self::CrashesOnBrokenJson,
        Self::ReportsStatuses,
        Self::SpinsOnPoison,
        Self::RefusesNulls,
        Self::RefusesBareItems,
        Self::ReportsLateEvents,
        Self::ResumesBeforeDeletion,
        Self::ReadsListsAsEvents,
        Self::AcceptsUnversionedLists,
        Self::ListsWithoutMatch,
        Self::TrustsInconsistentTokens,
        Self::ReportsPageByPage,
        Self::PagesAtTheNewestVersion,
        Self::StopsAtLateExpiry,
        Self::IgnoresRetryAfterOfPages,
        Self::SkipsSeenVersions,
        Self::ReportsWholeChunks,
    ];

    /// Returns the mistake whose variant has this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|mistake| format!("{mistake:?}") == name)
    }
}
