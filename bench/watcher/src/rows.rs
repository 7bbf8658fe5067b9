//! Measurements and their limits.

use crate::fixture::Fixture;
use crate::sample::{Objects, Reading, Taken, Use};
use crate::server::Collection;

/// A limit with its direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Line {
    AtLeast(f64),
    AtMost(f64),
}

impl Line {
    pub(crate) fn holds(self, value: f64) -> bool {
        match self {
            Self::AtLeast(line) => value >= line,
            Self::AtMost(line) => value <= line,
        }
    }
}

/// The value of a measurement that a row shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Figure {
    /// Objects per second.
    Rate,
    /// Seconds from the first request to the last object; the ratio is the speed-up.
    Wall,
    Cpu,
    /// Seconds to the first object.
    First,
    Peak,
    /// Peak memory minus the memory before the work.
    PeakAboveBase,
    /// Peak memory divided by the memory before the work.
    PeakOverBase,
    /// Bytes per object kept.
    Kept,
}

impl Figure {
    pub(crate) fn unit(self) -> &'static str {
        match self {
            Self::Rate => "/s",
            Self::Wall | Self::Cpu => "s",
            Self::First => "ms",
            Self::Peak | Self::PeakAboveBase => "MB",
            Self::PeakOverBase => "x",
            Self::Kept => "B",
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "byte counts of a measurement")]
    pub(crate) fn of(self, taken: &Taken, count: u64) -> f64 {
        let above = |bytes: u64| bytes.saturating_sub(taken.base) as f64;
        match self {
            Self::Rate => count as f64 / taken.wall,
            Self::Wall => taken.wall,
            Self::Cpu => taken.cpu,
            Self::First => taken.first * 1e3,
            Self::Peak => taken.peak as f64 / 1e6,
            Self::PeakAboveBase => above(taken.peak) / 1e6,
            Self::PeakOverBase => taken.peak as f64 / taken.base as f64,
            Self::Kept => above(taken.kept) / count as f64,
        }
    }

    pub(crate) fn ratio(self, ours: f64, theirs: f64) -> f64 {
        match self {
            Self::Wall => theirs / ours,
            Self::Rate
            | Self::Cpu
            | Self::First
            | Self::Peak
            | Self::PeakAboveBase
            | Self::PeakOverBase
            | Self::Kept => ours / theirs,
        }
    }
}

/// What ours is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Against {
    Theirs,
    /// Ours, with this many objects.
    OursAt(u64),
}

/// A row of the table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) work: &'static str,
    pub(crate) figure: Figure,
    /// Required value and target, if any.
    pub(crate) lines: Option<(Line, Line)>,
    /// Our value is judged instead of the ratio.
    pub(crate) is_own: bool,
}

/// Rows that share their measurements.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Group {
    pub(crate) objects: Objects,
    pub(crate) usage: Use,
    pub(crate) reading: Reading,
    pub(crate) fixture: Fixture,
    pub(crate) count: u64,
    pub(crate) pairs: usize,
    pub(crate) against: Against,
    pub(crate) rows: &'static [Row],
}

impl Group {
    /// Returns the collection on the server for this many objects.
    pub(crate) fn collection(&self, count: u64) -> Collection {
        let (listed, events) = match self.usage {
            Use::Watch => (0, count),
            Use::List | Use::Keep | Use::Store | Use::Relist => (count, 0),
        };
        Collection {
            fixture: self.fixture,
            listed,
            events,
            expires: self.usage == Use::Relist,
        }
    }
}

const fn at_least(name: &'static str, work: &'static str, figure: Figure, must: f64, aim: f64) -> Row {
    Row {
        name,
        work,
        figure,
        lines: Some((Line::AtLeast(must), Line::AtLeast(aim))),
        is_own: false,
    }
}

const fn at_most(name: &'static str, work: &'static str, figure: Figure, must: f64, aim: f64) -> Row {
    Row {
        name,
        work,
        figure,
        lines: Some((Line::AtMost(must), Line::AtMost(aim))),
        is_own: false,
    }
}

const EVENTS: u64 = 200_000;
const SMALL_EVENTS: u64 = 1_000_000;
const LISTED: u64 = 100_000;

const fn watch(objects: Objects, fixture: Fixture, rows: &'static [Row]) -> Group {
    Group {
        objects,
        usage: Use::Watch,
        reading: Reading::Pages,
        fixture,
        count: EVENTS,
        pairs: 5,
        against: Against::Theirs,
        rows,
    }
}

const fn list(objects: Objects, usage: Use, reading: Reading, rows: &'static [Row]) -> Group {
    Group {
        objects,
        usage,
        reading,
        fixture: Fixture::Pod,
        count: LISTED,
        pairs: 5,
        against: Against::Theirs,
        rows,
    }
}

/// All groups, in the order of the table.
pub(crate) const GROUPS: &[Group] = &[
    Group {
        // Ratios within a tenth of 1 need more pairs.
        pairs: 10,
        ..watch(
            Objects::Pods,
            Fixture::Pod,
            &[at_least("W1", "watch, typed Pod", Figure::Rate, 1.05, 1.2)],
        )
    },
    Group {
        count: SMALL_EVENTS,
        ..watch(
            Objects::ConfigMaps,
            Fixture::ConfigMap,
            &[at_least("W2", "watch, typed ConfigMap", Figure::Rate, 1.2, 1.3)],
        )
    },
    watch(
        Objects::Dynamic,
        Fixture::Pod,
        &[at_least("W3", "watch, DynamicObject", Figure::Rate, 1.35, 1.6)],
    ),
    watch(
        Objects::Dynamic,
        Fixture::LeanPod,
        &[at_least(
            "W3",
            "watch, DynamicObject without managedFields on the wire",
            Figure::Rate,
            1.8,
            2.1,
        )],
    ),
    watch(
        Objects::Metadata,
        Fixture::PodMetadata,
        &[at_least("W4", "watch, metadata", Figure::Rate, 1.25, 1.4)],
    ),
    watch(
        Objects::PrunedMetadata,
        Fixture::PodMetadata,
        &[at_least(
            "W4",
            "watch, metadata, managedFields dropped",
            Figure::Rate,
            4.0,
            4.5,
        )],
    ),
    watch(
        Objects::PrunedPods,
        Fixture::Pod,
        &[at_least(
            "W5",
            "watch, Pod, managedFields dropped / cleared",
            Figure::Rate,
            1.8,
            2.0,
        )],
    ),
    watch(
        Objects::PrunedDynamic,
        Fixture::Pod,
        &[at_least(
            "W5",
            "watch, DynamicObject, managedFields dropped / cleared",
            Figure::Rate,
            2.2,
            2.5,
        )],
    ),
    watch(
        Objects::LazyPods,
        Fixture::Pod,
        &[at_least("W6", "watch, lazy Pod / typed", Figure::Rate, 5.0, 8.0)],
    ),
    list(
        Objects::Pods,
        Use::List,
        Reading::Pages,
        &[
            at_most(
                "L1",
                "list in pages, peak above base",
                Figure::PeakAboveBase,
                0.20,
                0.10,
            ),
            at_most("L3", "list in pages, first item", Figure::First, 0.05, 0.02),
            Row {
                name: "L4",
                work: "list in pages, wall",
                figure: Figure::Wall,
                lines: None,
                is_own: false,
            },
        ],
    ),
    list(
        Objects::Pods,
        Use::List,
        Reading::OnePage,
        &[
            at_most("L2", "list in one page, peak", Figure::Peak, 0.005, 0.003),
            at_most("L3", "list in one page, first item", Figure::First, 0.001, 0.0002),
            at_least("L4", "list in one page, wall", Figure::Wall, 2.5, 3.0),
        ],
    ),
    Group {
        against: Against::OursAt(1_000),
        ..list(
            Objects::Pods,
            Use::List,
            Reading::OnePage,
            &[at_most(
                "L2",
                "list in one page, peak / that of 1,000",
                Figure::Peak,
                1.1,
                1.05,
            )],
        )
    },
    list(
        Objects::Pods,
        Use::Keep,
        Reading::Pages,
        &[at_least(
            "L4",
            "list in pages, objects kept, wall",
            Figure::Wall,
            1.4,
            1.6,
        )],
    ),
    list(
        Objects::PrunedPods,
        Use::Keep,
        Reading::Pages,
        &[at_least(
            "L4",
            "list in pages, managedFields dropped / cleared, objects kept, wall",
            Figure::Wall,
            1.7,
            1.8,
        )],
    ),
    list(
        Objects::PrunedPods,
        Use::Store,
        Reading::Pages,
        &[at_most(
            "L5",
            "store, a Pod without managedFields / typed",
            Figure::Kept,
            0.52,
            0.50,
        )],
    ),
    list(
        Objects::LazyPods,
        Use::Store,
        Reading::Pages,
        &[at_most(
            "L5",
            "store, a lazy Pod / typed",
            Figure::Kept,
            0.15,
            0.13,
        )],
    ),
    list(
        Objects::PackedPods,
        Use::Store,
        Reading::Pages,
        // Only a target was set: compression must not cost memory.
        &[at_most(
            "L5",
            "store, a lazy Pod compressed / typed",
            Figure::Kept,
            0.15,
            0.05,
        )],
    ),
    list(
        Objects::Pods,
        Use::List,
        Reading::Streaming,
        &[
            at_most("L6", "streaming list, CPU", Figure::Cpu, 1.1, 1.0),
            at_most("L6", "streaming list, peak", Figure::Peak, 1.1, 1.0),
        ],
    ),
    list(
        Objects::Pods,
        Use::Relist,
        Reading::Pages,
        &[
            at_most("R1", "relist of what did not change, CPU", Figure::Cpu, 0.5, 0.2),
            Row {
                is_own: true,
                ..at_most(
                    "R2",
                    "relist of what did not change, peak / steady",
                    Figure::PeakOverBase,
                    1.3,
                    1.05,
                )
            },
        ],
    ),
];
