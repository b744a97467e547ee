//! Lists put in order by one sort that serves every type.
//!
//! A sort of the standard library is compiled for each type and each comparison, and takes six
//! kilobytes. This one sorts indexes and calls the comparison through a pointer, which is as quick
//! where a list is short or in order already, as those of a log mostly are.

use std::cmp::Ordering;
use std::mem::replace;

/// Sorts a list; what is equal stays as it was.
///
/// # Examples
/// ```
/// let mut offsets = [(7, 'b'), (3, 'a'), (7, 'a')];
/// ottla_log::sorting::sort_by(&mut offsets, |a, b| a.0.cmp(&b.0));
/// assert_eq!(offsets, [(3, 'a'), (7, 'b'), (7, 'a')]);
/// ```
pub fn sort_by<T>(items: &mut [T], compare: impl Fn(&T, &T) -> Ordering) {
    let mut order = sorted(items.len(), &|a, b| {
        items.get(a).zip(items.get(b)).map_or(Ordering::Equal, |(a, b)| compare(a, b))
    });
    each_swap(&mut order, &mut |a, b| items.swap(a, b));
}

/// Sorts a list by keys; what has equal keys stays as it was.
///
/// # Examples
/// ```
/// let mut names = ["b.log", "a.log"];
/// ottla_log::sorting::sort_by_key(&mut names, |name| name.len());
/// assert_eq!(names, ["b.log", "a.log"]);
/// ```
pub fn sort_by_key<T, K: Ord>(items: &mut [T], key: impl Fn(&T) -> K) {
    sort_by(items, |a, b| key(a).cmp(&key(b)));
}

/// Returns in which order so many items stand: at each place, who comes there. Nothing where they are
/// in order.
fn sorted(count: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    if (0..count).zip(1..count).all(|(before, after)| compare(before, after).is_le()) {
        return Vec::new();
    }
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|&a, &b| compare(a, b));
    order
}

/// Calls for the swaps that bring about an order, which is spent: a cycle after the other.
fn each_swap(order: &mut [usize], swap: &mut dyn FnMut(usize, usize)) {
    for start in 0..order.len() {
        let mut here = start;
        while let Some(next) = order.get_mut(here).map(|place| replace(place, here)) {
            if next == start || next == here {
                break;
            }
            swap(here, next);
            here = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_list_is_sorted_as_by_the_standard_library(
            items in prop::collection::vec((0_u8..9, any::<u16>()), 0..200),
        ) {
            let (mut ours, mut theirs) = (items.clone(), items);
            sort_by_key(&mut ours, |item| item.0);
            theirs.sort_by_key(|item| item.0);
            prop_assert_eq!(&ours, &theirs);
            sort_by(&mut ours, |a, b| b.cmp(a));
            theirs.sort_by(|a, b| b.cmp(a));
            prop_assert_eq!(ours, theirs);
        }
    }
}
