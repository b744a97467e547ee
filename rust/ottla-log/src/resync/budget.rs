//! What a search may cost: a budget that grows with the bytes scanned, so that bytes made to look
//! like batches cannot make a scan slower than by a factor. It joins: the parts of a walk can be
//! searched with budgets of their own, and it shows afterwards whether one budget for all of them
//! would have allowed the same.

use serde::{Deserialize, Serialize};

/// Bytes that may be hashed, or read again, for each byte scanned.
pub const BUDGET_PER_BYTE: u64 = 8;

/// The budget at the beginning of a source: a few large batches.
pub const BUDGET_AT_START: u64 = 256 << 20;

/// What a part of a walk did to the budget. A part that was never refused would have gone the same
/// way with any budget of at least `needed`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spending {
    /// By how much the budget has changed.
    change: i64,
    /// The smallest budget that suffices.
    needed: u64,
    /// Whether the budget did not suffice once.
    was_refused: bool,
}

impl Spending {
    /// What is left of the budget that a walk from the beginning of a source starts with.
    fn left(&self) -> u64 {
        BUDGET_AT_START.saturating_add_signed(self.change)
    }

    /// Whether the part on the right would have gone the same way after this one. `is_anchored`:
    /// this one begins with the source.
    pub fn suffices(&self, right: &Self, is_anchored: bool) -> bool {
        !right.was_refused && (!is_anchored || self.left() >= right.needed)
    }

    /// Both parts together.
    #[must_use]
    pub fn join(&self, right: &Self) -> Self {
        let needed_before = i128::from(right.needed).saturating_sub(i128::from(self.change)).max(0);
        Self {
            change: self.change.saturating_add(right.change),
            needed: self.needed.max(u64::try_from(needed_before).unwrap_or(u64::MAX)),
            was_refused: self.was_refused,
        }
    }
}

/// A budget, and what was done to it.
#[derive(Debug)]
pub struct Budget {
    left: u64,
    spending: Spending,
}

impl Budget {
    /// The budget of a walk from the beginning of a source that has spent this much.
    pub fn after(spending: Spending) -> Self {
        Self { left: spending.left(), spending }
    }

    /// A budget of its own for a walk whose beginning is not known.
    pub fn new(bytes: u64) -> Self {
        Self { left: bytes, spending: Spending::default() }
    }

    /// What was done to it.
    pub fn spending(&self) -> Spending {
        self.spending
    }

    /// Whether it did not suffice once.
    pub fn was_refused(&self) -> bool {
        self.spending.was_refused
    }

    /// Records that something had to be left out.
    pub fn refuse(&mut self) {
        self.spending.was_refused = true;
    }

    /// Adds what these bytes earn: they will not be read again.
    pub fn earn(&mut self, bytes: u64) {
        let earned = bytes.saturating_mul(BUDGET_PER_BYTE);
        self.left = self.left.saturating_add(earned);
        let change = &mut self.spending.change;
        *change = change.saturating_add(i64::try_from(earned).unwrap_or(i64::MAX));
    }

    /// Takes the cost of so many bytes, if there is enough.
    pub fn spend(&mut self, bytes: u64) -> bool {
        let Some(rest) = self.left.checked_sub(bytes) else {
            self.refuse();
            return false;
        };
        self.left = rest;
        let spending = &mut self.spending;
        spending.change = spending.change.saturating_sub(i64::try_from(bytes).unwrap_or(i64::MAX));
        spending.needed = spending.needed.max(spending.change.min(0).unsigned_abs());
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Earns (above 0) and spends (below) one after the other: whether all could be spent.
    fn use_up(budget: &mut Budget, amounts: &[i64]) -> bool {
        amounts.iter().all(|&amount| {
            if amount > 0 {
                budget.earn(amount as u64);
            }
            amount > 0 || budget.spend(amount.unsigned_abs())
        })
    }

    #[test]
    fn a_part_of_a_walk_goes_the_same_way_after_any_part_that_leaves_it_enough() {
        let start = BUDGET_AT_START as i64;
        let lefts = [
            vec![],
            vec![-start],
            vec![100, -start],
            vec![-start + 50, 10],
            vec![-50, 40, -start + 500],
        ];
        let rights =
            [vec![], vec![-1], vec![-400, 30, -241], vec![70, -560], vec![-90, 1000, -900]];
        let mut refused = 0;
        for left in &lefts {
            let mut first = Budget::after(Spending::default());
            assert!(use_up(&mut first, left));
            for right in &rights {
                let mut alone = Budget::new(1000);
                assert!(use_up(&mut alone, right));
                let mut behind = Budget::after(first.spending());
                let suffices = use_up(&mut behind, right);
                assert_eq!(first.spending().suffices(&alone.spending(), true), suffices);
                assert!(first.spending().suffices(&alone.spending(), false));
                if suffices {
                    assert_eq!(first.spending().join(&alone.spending()), behind.spending());
                }
                refused += u32::from(!suffices);
            }
        }
        assert!(refused > 3, "{refused}");
        let mut short = Budget::new(10);
        assert!(!use_up(&mut short, &[-11]));
        assert!(short.was_refused());
        assert!(!Spending::default().suffices(&short.spending(), false));
    }

    #[test]
    fn a_budget_that_was_used_up_beyond_all_bounds_is_refused_no_less() {
        let spending = Spending { change: i64::MIN, ..Spending::default() };
        let mut budget = Budget { left: 10, spending };
        assert!(use_up(&mut budget, &[-1]));
        assert!(!use_up(&mut budget, &[-10]));
        assert_eq!(budget.spending().needed, 1 << 63);
    }
}
