//! Copies in, differences out.

use crate::copies::blocks::BlockReader;
pub use crate::copies::blocks::OpenSegment;
use crate::copies::copy::Copy;
use crate::copies::difference::Comparison;
use crate::copies::finder::DifferenceFinder;
use crate::segment::fingerprint::Fingerprint;
use crate::segment::scanner::Scanner;
use ottla_format::check::Level;
use std::io;

/// Returns how deep a scanner must look to list the batches of copies.
pub fn level_of(copies: &[Copy]) -> Level {
    let has_old_formats = copies.iter().any(|copy| copy.has_old_formats);
    if has_old_formats { Level::Decode } else { Level::Crc }
}

/// Compares the copies of a partition with a scanner of the level that [`level_of`] returns. Reads again where their fingerprints differ, a bounded number
/// of batches at a time.
///
/// # Errors
/// Those of opening and reading.
pub fn compare(
    copies: &[Copy],
    scanner: &mut Scanner,
    open: &mut OpenSegment<'_>,
) -> io::Result<Comparison> {
    let mut finder = DifferenceFinder::new(copies);
    let mut reader = BlockReader { copies, scanner, open, bytes: 0 };
    let prints: Vec<&Fingerprint> = copies.iter().map(|copy| &copy.fingerprint).collect();
    reader.walk(&prints, &mut finder)?;
    let bytes = reader.bytes;
    Ok(Comparison { bytes, ..finder.finish() })
}
