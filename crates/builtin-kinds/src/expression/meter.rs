//! Cost and work of evaluations, charged before each operation, and their limits. It must not know expressions.
//!
//! *Cost* is what a real server counts (cel-go `interpreter/runtimecost.go`, apiserver `pkg/cel/library/cost.go`), in its units.
//! *Work* bounds what costs nothing or too little there: constants and logical operators, elements that are copied or compared
//! within one operation, regular expressions that are compiled. A unit of work is some nanoseconds, or some bytes that are
//! allocated; so time and memory of an expression are bounded, whatever its cost.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;

use super::Failure;
use super::engine::Compiled;

/// Cost limit of one evaluation (`PerCallLimit`).
pub const CALL_COST_MAX: u64 = 1_000_000;

/// Cost limit of all evaluations for one object, or of a policy for one request (`RuntimeCELCostBudget`).
pub const OBJECT_COST_MAX: u64 = 10_000_000;

/// Cost limit of the match conditions of one webhook or policy (`RuntimeCELCostBudgetMatchConditions`).
pub const CONDITIONS_COST_MAX: u64 = 2_500_000;

/// Work limit of one evaluation.
const CALL_WORK_MAX: u64 = 4_000_000;

/// Units of work that go with ten units of cost in a budget.
const WORK_OF_TEN: u64 = 6;

/// Bytes that are read by one unit of work.
const BYTES_READ: usize = 64;

/// Bytes that are allocated by one unit of work.
const BYTES_ALLOCATED: usize = 16;

/// Work of a new list, map or string beside its content.
const ALLOCATION: u64 = 4;

/// Work of an evaluation beside its nodes.
const EVALUATION: u64 = 20;

/// Maximum depth of evaluations within each other: nodes of an expression, and of the variables it refers to.
const DEPTH_MAX: u16 = 400;

/// What several evaluations may take together.
#[derive(Debug)]
pub struct Budget {
    cost_left: u64,
    work_left: u64,
    exhausted: bool,
}

impl Budget {
    /// Creates a budget of a cost, and of the work that goes with it.
    pub fn new(cost: u64) -> Self {
        Self {
            cost_left: cost,
            work_left: cost / 10 * WORK_OF_TEN,
            exhausted: false,
        }
    }

    /// Whether an evaluation took more than was left. Then no more expressions are to be evaluated.
    pub fn is_exhausted(&self) -> bool {
        self.exhausted
    }

    /// Takes work that is done for evaluations outside them.
    pub fn work(&mut self, units: u64) {
        self.exhausted |= units > self.work_left;
        self.work_left = self.work_left.saturating_sub(units);
    }

    pub(super) fn take(&mut self, meter: &Meter) {
        let cost = meter.cost.saturating_add(meter.apart.0);
        self.exhausted |= cost > self.cost_left;
        self.cost_left = self.cost_left.saturating_sub(cost);
        self.work(meter.work.saturating_add(meter.apart.1));
    }
}

/// Counts cost and work of one evaluation.
#[derive(Debug, Default)]
pub struct Meter {
    pub(super) cost: u64,
    pub(super) work: u64,
    /// Cost and work of the variables that were evaluated for the evaluation, each of which has its own limits.
    apart: (u64, u64),
    depth: u16,
    /// Patterns that are not literals, by their source.
    pub(super) patterns: BTreeMap<Box<str>, Compiled>,
    /// Time zones, by their names.
    pub(super) zones: BTreeMap<Box<str>, TimeZone>,
}

impl Meter {
    /// Charges the work of an evaluation beside its nodes.
    ///
    /// # Errors
    /// The limit is exceeded.
    pub(super) fn begin(&mut self) -> Result<(), Failure> {
        self.work(EVALUATION)
    }

    /// Charges a cost.
    ///
    /// # Errors
    /// The limit is exceeded.
    pub(super) fn charge(&mut self, cost: u64) -> Result<(), Failure> {
        self.cost = self.cost.saturating_add(cost);
        match self.cost > CALL_COST_MAX {
            true => Err(Failure::Cost),
            false => Ok(()),
        }
    }

    /// Charges the traversal of a string or bytes of this size, once or more often (`StringTraversalCostFactor`).
    ///
    /// # Errors
    /// The limit is exceeded.
    pub(super) fn traversal(&mut self, size: u64, times: u64) -> Result<(), Failure> {
        self.charge(size.saturating_mul(times).div_ceil(10))
    }

    /// Charges work.
    ///
    /// # Errors
    /// The limit is exceeded.
    pub(super) fn work(&mut self, units: u64) -> Result<(), Failure> {
        let work = self.work.saturating_add(units);
        self.work = work.min(CALL_WORK_MAX);
        match work > CALL_WORK_MAX {
            true => Err(Failure::Cost),
            false => Ok(()),
        }
    }

    /// Charges the work of reading or copying bytes.
    ///
    /// # Errors
    /// The limit is exceeded.
    pub(super) fn bytes(&mut self, bytes: usize) -> Result<(), Failure> {
        self.work(count(bytes / BYTES_READ))
    }

    /// Charges the work of a string or bytes of this length that is created.
    ///
    /// # Errors
    /// The limit is exceeded.
    pub(super) fn allocate(&mut self, bytes: usize) -> Result<(), Failure> {
        self.work(count(bytes / BYTES_ALLOCATED).saturating_add(ALLOCATION))
    }

    /// Charges the work of elements that are copied or visited.
    ///
    /// # Errors
    /// The limit is exceeded.
    pub(super) fn elements(&mut self, elements: usize) -> Result<(), Failure> {
        self.work(count(elements).saturating_add(ALLOCATION))
    }

    /// Returns the meter of a variable that is evaluated within this evaluation.
    ///
    /// # Errors
    /// The variables took more than all evaluations may.
    pub(crate) fn within(&self) -> Result<Self, Failure> {
        match self.apart.0.max(self.apart.1) > OBJECT_COST_MAX {
            true => Err(Failure::Cost),
            false => Ok(Self {
                depth: self.depth,
                apart: self.apart,
                ..Self::default()
            }),
        }
    }

    /// Adds what the evaluation of a variable took.
    pub(crate) fn absorb(&mut self, variable: &Self) {
        self.apart.0 = variable.apart.0.saturating_add(variable.cost);
        self.apart.1 = variable.apart.1.saturating_add(variable.work);
    }

    /// Enters a level of nested evaluations.
    ///
    /// # Errors
    /// They are too deep.
    pub(super) fn enter(&mut self) -> Result<(), Failure> {
        self.depth += 1;
        match self.depth > DEPTH_MAX {
            true => Err(Failure::Cost),
            false => Ok(()),
        }
    }

    /// Leaves a level.
    pub(super) fn leave(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }
}

/// A number of elements as a cost.
pub(super) fn count(elements: usize) -> u64 {
    u64::try_from(elements).unwrap_or(u64::MAX)
}
