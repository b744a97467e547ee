//! In which order the files of a partition are listed.

use super::file::{FileKind, FileName, FileState};
use crate::sorting::sort_by;

/// The order in which files are listed, as indexes of their names: segments and the files beside them by
/// offset, however many digits their names have, then the rest by name.
///
/// # Examples
/// ```
/// use ottla_log::names::listed_order;
///
/// let names = [b"partition.metadata".as_slice(), b"100.log", b"42.log", b"100.index"];
/// assert_eq!(listed_order(&names), [2, 3, 1, 0]);
/// ```
pub fn listed_order<N: AsRef<[u8]>>(names: &[N]) -> Vec<usize> {
    let mut keys: Vec<_> = names
        .iter()
        .enumerate()
        .map(|(index, name)| {
            let base_offset = FileName::parse(name.as_ref()).base_offset;
            (base_offset.is_none(), base_offset, name.as_ref(), index)
        })
        .collect();
    sort_by(&mut keys, Ord::cmp);
    keys.into_iter().map(|(_, _, _, index)| index).collect()
}

/// The base offsets of the live segments among files of these names, in order, each once.
pub fn live_base_offsets<'a>(names: impl IntoIterator<Item = &'a [u8]>) -> Vec<i64> {
    let mut found: Vec<i64> = names
        .into_iter()
        .map(FileName::parse)
        .filter(|name| name.kind == FileKind::Segment && name.state == FileState::Live)
        .filter_map(|name| name.base_offset)
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}
